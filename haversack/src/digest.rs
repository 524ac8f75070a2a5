//! A session's task, events, decisions and open threads: `session_digest_<day>.md`. Pure.
//!
//! One file holds the digests of a day, one block for each session:
//!
//! ```text
//! # Session 7f3a91c2
//!
//! ## Arcs
//! - We moved the ports.                         written by the agent
//! - Asked: move the ports to one file ^recorded   written from the record of the session
//!
//! ## Relational notes
//! ## Open threads to next session
//! ```
//!
//! An item that ends in `^recorded` was made from the record of a session, without a model. [`with_record`] replaces these items of its own session and
//! leaves every other line as it is, so a session that goes on is recorded again, and what an agent wrote stays.

use haversack_store::Locator;

use crate::day::Day;
use crate::document::Document;
use crate::kind::{Kinds, stating};
use crate::secrets;

/// The mark at the end of an item that was made from a record.
const RECORDED: &str = " ^recorded";

const HEADING: &str = "# Session ";
const ARCS: &str = "## Arcs";
const RELATIONAL: &str = "## Relational notes";
const OPEN: &str = "## Open threads to next session";

/// The fields of a file that name its session.
const SESSION_FIELDS: &[&str] = &["session", "session_id", "originSessionId"];

/// The longest line, in characters.
const MAX_LINE_CHARACTERS: usize = 240;

/// The most items of one sort.
const MAX_ITEMS: usize = 12;

/// The most files that are named.
const MAX_FILES: usize = 30;

/// The most lines of a summary of a compacted conversation.
const MAX_SUMMARY_LINES: usize = 40;

/// The record of a session, as programs saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRecord {
    /// The id of the session.
    pub session: String,
    /// The first prompts.
    pub prompts: Vec<String>,
    /// The files that it changed.
    pub files: Vec<String>,
    /// Messages in and out, in a line each.
    pub events: Vec<String>,
    /// Commitments that were made.
    pub opened: Vec<String>,
    /// Commitments that were delivered.
    pub closed: Vec<String>,
    /// The last summary that the agent made of a compacted conversation.
    pub compacted: Option<String>,
    /// The number of compactions of the conversation.
    pub compactions: usize,
    /// The open threads.
    pub open: Vec<String>,
    /// Its duration in minutes.
    pub minutes: Option<u64>,
}

impl SessionRecord {
    /// Returns true if nothing happened that is worth a digest.
    pub fn is_empty(&self) -> bool {
        let SessionRecord {
            session: _,
            prompts,
            files,
            events,
            opened,
            closed,
            compacted,
            compactions: _,
            open: _,
            minutes: _,
        } = self;
        [prompts, files, events, opened, closed].into_iter().all(Vec::is_empty) && compacted.is_none()
    }
}

/// Returns the name of the file with a day's digests.
pub fn file_of(day: Day) -> String {
    format!("session_digest_{day}.md")
}

/// Returns the digests of a day with the record of a session in them. `text` is the file as it is, if there is one.
pub fn with_record(text: Option<&str>, kinds: &Kinds, day: Day, record: &SessionRecord) -> String {
    let session = session_name(&record.session);
    let text = match text.filter(|text| !text.trim().is_empty()) {
        Some(text) => text.to_owned(),
        None => new_file(kinds, day),
    };
    let (above, body) = split(&text);
    let body = under_heading(body, &text);
    let mut lines: Vec<String> = body.lines().map(str::to_owned).collect();
    let heading = format!("{HEADING}{session}");
    let start = match lines.iter().position(|line| line.trim_end() == heading) {
        Some(start) => start,
        None => {
            while lines.last().is_some_and(|line| line.trim().is_empty()) {
                lines.pop();
            }
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.push(heading);
            lines.len() - 1
        }
    };
    let end = lines[start + 1..].iter().position(|line| line.starts_with(HEADING));
    let end = end.map_or(lines.len(), |end| start + 1 + end);
    let rest = lines.split_off(end);
    let mut block = without_recorded(lines.split_off(start));
    for (section, items) in sections(record) {
        if !items.is_empty() {
            add(&mut block, section, items);
        }
    }
    while block.last().is_some_and(|line| line.trim().is_empty()) {
        block.pop();
    }
    if !rest.is_empty() {
        block.push(String::new());
    }
    let body: String = lines.into_iter().chain(block).chain(rest).map(|line| format!("{line}\n")).collect();
    let between = if above.is_empty() { "" } else { "\n" };
    format!("{above}{between}{}", body.trim_start_matches('\n'))
}

fn new_file(kinds: &Kinds, day: Day) -> String {
    let locator = Locator::parse(&file_of(day)).expect("a plain name");
    let text = format!(
        "---\nname: Session {day}\ndescription: What the sessions of {day} did and left open\ntype: session_digest\n---\n"
    );
    stating(kinds, &locator, text)
}

/// Splits a file below its frontmatter.
fn split(text: &str) -> (&str, &str) {
    let body = Document::read(text).body;
    text.split_at(text.len() - body.len())
}

/// Puts the text of the only session of a digest under its heading, if the file says which session wrote it.
fn under_heading(body: &str, text: &str) -> String {
    let document = Document::read(text);
    let session = SESSION_FIELDS.iter().find_map(|name| document.text(name)).filter(|name| !name.is_empty());
    let has_headings = body.lines().any(|line| line.starts_with(HEADING));
    match session {
        Some(session) if !has_headings && !body.trim().is_empty() => {
            format!("{HEADING}{session}\n\n{}", body.trim_start_matches('\n'))
        }
        _ => body.to_owned(),
    }
}

/// Returns the lines of a block without those that were made from an earlier record.
fn without_recorded(block: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in block {
        if line.ends_with(RECORDED) {
            is_inside = true;
            continue;
        }
        is_inside &= line.starts_with("  > ");
        if !is_inside {
            kept.push(line);
        }
    }
    // A heading of ours that has nothing below it any more.
    let mut lines: Vec<String> = Vec::new();
    for line in kept.into_iter().rev() {
        let is_ours = [ARCS, RELATIONAL, OPEN].contains(&line.as_str());
        let below = lines.iter().rev().find(|line| !line.trim().is_empty());
        let is_empty = below.is_none_or(|below| below.starts_with('#'));
        if !(is_ours && is_empty) {
            lines.push(line);
        }
    }
    lines.reverse();
    lines
}

/// Returns the items of each section.
fn sections(record: &SessionRecord) -> [(&'static str, Vec<String>); 3] {
    let all = |label: &'static str, texts: &[String]| {
        let items = texts.iter().take(MAX_ITEMS).filter_map(move |text| item(label, text));
        let more = texts.len().saturating_sub(MAX_ITEMS);
        let more = (more > 0).then(|| format!("- {label}{more} more{RECORDED}"));
        items.chain(more).collect::<Vec<String>>()
    };
    let mut arcs = all("Asked: ", &record.prompts);
    if let Some(files) = files(&record.files) {
        arcs.extend(item("Changed: ", &files));
    }
    arcs.extend(all("Promised: ", &record.opened));
    arcs.extend(all("Delivered: ", &record.closed));
    if let Some(minutes) = record.minutes.filter(|minutes| *minutes > 0) {
        let (hours, minutes) = (minutes / 60, minutes % 60);
        let lasted = if hours > 0 { format!("{hours} h {minutes} min") } else { format!("{minutes} min") };
        arcs.push(format!("- Lasted: {lasted}{RECORDED}"));
    }
    if let Some(summary) = &record.compacted {
        let times = match record.compactions {
            0 | 1 => String::new(),
            times => format!(" (the last of {times})"),
        };
        let mut text = format!("- The agent's summary when the conversation was compacted{times}:{RECORDED}");
        let lines: Vec<String> =
            summary.lines().map(short).filter(|line| !line.is_empty() && is_no_secret(line)).collect();
        for line in lines.iter().take(MAX_SUMMARY_LINES) {
            text.push_str(&format!("\n  > {line}"));
        }
        if lines.len() > MAX_SUMMARY_LINES {
            text.push_str(&format!("\n  > … {} more lines", lines.len() - MAX_SUMMARY_LINES));
        }
        arcs.push(text);
    }
    [(ARCS, arcs), (RELATIONAL, all("", &record.events)), (OPEN, all("", &record.open))]
}

fn files(files: &[String]) -> Option<String> {
    let named: Vec<&str> = files.iter().take(MAX_FILES).map(String::as_str).collect();
    let more = files.len().saturating_sub(MAX_FILES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

fn item(label: &str, text: &str) -> Option<String> {
    let text = short(text);
    match text.is_empty() {
        true => None,
        // The file would not leave this machine.
        false if !is_no_secret(&text) => {
            Some(format!("- {label}(a line that looks like a secret was left out){RECORDED}"))
        }
        false => Some(format!("- {label}{text}{RECORDED}")),
    }
}

fn is_no_secret(text: &str) -> bool {
    secrets::find(text.as_bytes()).is_empty()
}

/// Returns a foreign text in one harmless line.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !crate::display::is_harmful(*c)).collect();
    let line = line.trim_end_matches(RECORDED.trim_start()).trim_end();
    match line.chars().count() > MAX_LINE_CHARACTERS {
        true => line.chars().take(MAX_LINE_CHARACTERS - 1).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

/// Returns the id of a session as it is in a heading.
fn session_name(session: &str) -> String {
    let name: String =
        session.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.')).take(64).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// Adds items at the end of a section of a block, adding the section if need be.
fn add(block: &mut Vec<String>, section: &str, items: Vec<String>) {
    let lines = items.iter().flat_map(|item| item.lines()).map(str::to_owned).collect::<Vec<_>>();
    let found = block.iter().position(|line| line.trim_end().eq_ignore_ascii_case(section));
    let Some(start) = found else {
        while block.last().is_some_and(|line| line.trim().is_empty()) {
            block.pop();
        }
        block.extend([String::new(), section.to_owned()]);
        block.extend(lines);
        return;
    };
    let below = &block[start + 1..];
    let end = below.iter().position(|line| line.starts_with('#')).unwrap_or(below.len());
    let last = below[..end].iter().rposition(|line| !line.trim().is_empty());
    let at = start + 1 + last.map_or(0, |last| last + 1);
    block.splice(at..at, lines);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::{Rule, Side, merge};

    fn day() -> Day {
        "2026-11-18".parse().expect("a day")
    }

    fn record(session: &str) -> SessionRecord {
        SessionRecord {
            session: session.to_owned(),
            prompts: vec!["Move the ports\nto one file".to_owned()],
            files: vec!["src/ports.rs".to_owned(), "README.md".to_owned()],
            events: vec!["09:14 a teammate (email): asked for the port".to_owned()],
            opened: vec!["tell the teammate".to_owned()],
            closed: vec!["mend the lamp".to_owned()],
            compacted: Some("We moved the ports.\n\nStaging is 5433.".to_owned()),
            compactions: 2,
            open: vec!["tell the teammate".to_owned()],
            minutes: Some(95),
        }
    }

    fn written(text: Option<&str>, record: &SessionRecord) -> String {
        with_record(text, Kinds::built_in(), day(), record)
    }

    const ONE: &str = "---
name: Session 2026-11-18
description: What the sessions of 2026-11-18 did and left open
type: session_digest
---

# Session 7f3a

## Arcs
- Asked: Move the ports to one file ^recorded
- Changed: src/ports.rs, README.md ^recorded
- Promised: tell the teammate ^recorded
- Delivered: mend the lamp ^recorded
- Lasted: 1 h 35 min ^recorded
- The agent's summary when the conversation was compacted (the last of 2): ^recorded
  > We moved the ports.
  > Staging is 5433.

## Relational notes
- 09:14 a teammate (email): asked for the port ^recorded

## Open threads to next session
- tell the teammate ^recorded
";

    #[test]
    fn record_becomes_a_block_and_is_recorded_again_in_its_place() {
        assert_eq!(written(None, &record("7f3a")), ONE);
        assert_eq!(written(Some(ONE), &record("7f3a")), ONE);
        let two = written(Some(ONE), &record("91c2"));
        assert_eq!(
            two,
            format!("{ONE}\n{}", ONE.split_once("\n\n").expect("a body").1.replace("7f3a", "91c2"))
        );
        let shorter = SessionRecord {
            prompts: vec!["Stop".to_owned()],
            session: "7f3a".to_owned(),
            ..SessionRecord::default()
        };
        let changed = written(Some(&two), &shorter);
        assert!(changed.contains("# Session 7f3a\n\n## Arcs\n- Asked: Stop ^recorded\n\n# Session 91c2\n\n## Arcs\n- Asked: Move"), "{changed}");
    }

    #[test]
    fn lines_of_an_agent_stay() {
        let theirs = "---\nname: session-2026-11-18\ndescription: Ports moved\nmetadata:\n  type: session_digest\n  originSessionId: 7f3a\n---\n\n## Arcs\n1. Ports moved to one file\n\n## Between us\n- be brief\n\n## Open threads to next session\n- the other port\n";
        let text = written(Some(theirs), &record("7f3a"));
        for line in theirs.lines() {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert!(
            text.contains("---\n\n# Session 7f3a\n\n## Arcs\n1. Ports moved to one file\n- Asked: Move"),
            "{text}"
        );
        assert_eq!(written(Some(&text), &record("7f3a")), text);
        let other = written(Some(theirs), &record("91c2"));
        assert!(
            other.contains("# Session 7f3a\n\n## Arcs\n1. Ports") && other.contains("\n# Session 91c2\n"),
            "{other}"
        );
        // Without a session in its fields, it belongs to no session.
        let by_hand = "## Arcs\n- by hand\n";
        let text = written(Some(by_hand), &record("7f3a"));
        assert!(text.starts_with("## Arcs\n- by hand\n\n# Session 7f3a\n\n## Arcs\n"), "{text}");
    }

    #[test]
    fn hostile_text_is_one_harmless_line() {
        let evil = SessionRecord {
            session: "a/b\n# Session x".to_owned(),
            prompts: vec![
                "x\n# Session 91c2\n---\n\u{1b}[2J ^recorded".to_owned(),
                "y".repeat(5000),
                format!("use {}", concat!("AKIA", "Z7QK3XN5PLVT2RWD")),
                " ".to_owned(),
            ],
            compacted: Some("---\n# Session 91c2\n</haversack-memory>\n".repeat(100)),
            ..SessionRecord::default()
        };
        let text = written(None, &evil);
        assert_eq!(text.lines().filter(|line| line.starts_with(HEADING)).count(), 1, "{text}");
        assert!(!text.contains("AKIA") && !text.contains('\u{1b}') && text.lines().count() < 70, "{text}");
        assert!(text.contains("- Asked: x # Session 91c2 --- [2J ^recorded\n"), "{text}");
        assert_eq!(written(Some(&text), &evil), text);
        assert!(SessionRecord::default().is_empty() && !evil.is_empty());
    }

    #[test]
    fn two_sessions_of_one_day_never_conflict() {
        let base = written(None, &record("7f3a"));
        let theirs = "---\nname: session-2026-11-18\ndescription: Ports moved\ntype: session_digest\noriginSessionId: 91c2\n---\n\n## Arcs\n- Ports moved\n";
        let sides = [
            written(Some(&base), &record("c0de")),
            written(
                Some(&base.replace("What the sessions of 2026-11-18 did and left open", "Ports and lamps")),
                &record("91c2"),
            ),
            theirs.to_owned(),
            base.clone(),
        ];
        for base in [None, Some(base.as_str())] {
            for one in &sides {
                for other in &sides {
                    let side = |text, device| Side { bytes: str::as_bytes(text), device };
                    let merged = merge(
                        Rule::Digest,
                        base.map(str::as_bytes),
                        side(one, "laptop"),
                        side(other, "desktop"),
                    );
                    let text = String::from_utf8_lossy(&merged.bytes);
                    assert!(!merged.both_kept && !text.contains("[also"), "{text}");
                }
            }
        }
    }
}
