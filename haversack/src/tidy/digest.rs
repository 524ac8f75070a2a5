//! The text of a roll-up: `compacted/2026-W47.md`, `compacted/2026-11.md`, `compacted/2026.md`. Pure.
//!
//! ```text
//! ---
//! name: 2026-W47
//! description: 9 events of 2 days
//! type: weekly_digest
//! generated: tidy
//! ---
//!
//! # 2026-W47
//!
//! ## 2026-11-16 · interactions/2026-11-16.jsonl
//! - 09:05Z chat ← a teammate: Asked for the new port ^7c9e6679-7425
//! ```
//!
//! A section tells of one source and is known by its heading. A line ends with the id of the line that it was made from: of an event, the
//! beginning of its id; of any other line, a hash of the source's name and the line's words. The same line is never added twice, so a source that comes
//! back from a device that was offline adds only the lines that are new.
//!
//! Adding changes no other byte of the file: what a person wrote into a roll-up stays where it is.

use std::collections::BTreeSet;
use std::fmt::Write;

use haversack_store::Locator;
use serde::Deserialize;

use super::parts::{Chunk, Section, chunks, sections};
use crate::day::{Day, Period};
use crate::document::{self, Document, scalar};
use crate::ids::ContentHash;
use crate::sync::planted::{Planted, has};

/// The longest line, in characters. The whole text stays in the history.
const MAX_LINE_CHARACTERS: usize = 400;

/// The digits of an id that is a hash.
const HASH_DIGITS: usize = 12;

/// A line of a roll-up, with the id of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) id: String,
    /// The line, with its id at the end.
    pub(super) text: String,
}

/// A line that a roll-up does not have, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) id: String,
    pub(super) why: &'static str,
}

/// The lines of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) kept: Vec<Line>,
    pub(super) dropped: Vec<Dropped>,
}

#[derive(Deserialize)]
struct RawEvent {
    #[serde(default)]
    id: String,
    #[serde(default)]
    ts: String,
    #[serde(default)]
    channel: String,
    #[serde(default)]
    direction: String,
    #[serde(default)]
    sender: String,
    summary: String,
    #[serde(default)]
    recipient: String,
    #[serde(default)]
    action: String,
}

/// Returns the lines of a day's interaction log. Acknowledgements and repeats are dropped. A line that is no event is kept as it is.
pub(super) fn of_events(source: &Locator, log: &str) -> Lines {
    let mut lines = Lines::default();
    let mut said: BTreeSet<(String, String)> = BTreeSet::new();
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(event) = serde_json::from_str::<RawEvent>(line) else {
            lines.kept.push(plain(source, "", line));
            continue;
        };
        let id = match event.id.get(..13) {
            Some(start) if start.bytes().all(|c| c.is_ascii_hexdigit() || c == b'-') => start.to_owned(),
            _ => hash_id(source, "", line),
        };
        if is_acknowledgement(&event.summary) {
            lines.dropped.push(Dropped { id, why: "acknowledgement" });
        } else if !said.insert((event.sender.clone(), words(&event.summary))) {
            lines.dropped.push(Dropped { id, why: "repeat" });
        } else {
            lines.kept.push(ended(event_text(&event), id));
        }
    }
    lines
}

fn event_text(event: &RawEvent) -> String {
    let mut text = String::from("- ");
    if let Some(time) = event.ts.get(11..16).filter(|_| event.ts.get(10..11) == Some("T")) {
        let _ = write!(text, "{time}Z ");
    }
    if !event.channel.is_empty() {
        let _ = write!(text, "{} ", event.channel);
    }
    let _ = match event.direction.as_str() {
        "outbound" if event.recipient.is_empty() => write!(text, "{} →", event.sender),
        "outbound" => write!(text, "{} → {}", event.sender, event.recipient),
        _ => write!(text, "← {}", event.sender),
    };
    let _ = write!(text, ": {}", event.summary);
    if !event.action.is_empty() {
        let _ = write!(text, " ({})", event.action);
    }
    text
}

/// Returns the lines of a text such as a session digest, each with the name of its section.
pub(super) fn of_text(source: &Locator, text: &str) -> Lines {
    let mut lines = Lines::default();
    for section in sections(document::body_of(text)) {
        let title = section.title.unwrap_or_default();
        for chunk in chunks(section.body).iter().filter(|chunk| !chunk.text.trim().is_empty()) {
            if !chunk.is_placeholder() {
                lines.kept.push(plain(
                    source,
                    title,
                    &chunk.text.lines().map(str::trim).collect::<Vec<_>>().join(" "),
                ));
            }
        }
    }
    lines
}

fn plain(source: &Locator, title: &str, text: &str) -> Line {
    let id = hash_id(source, title, text);
    let words = Chunk { text, is_item: true }.words();
    ended(if title.is_empty() { format!("- {words}") } else { format!("- {title}: {words}") }, id)
}

/// Returns a line of at most so many characters, with its id at the end.
fn ended(text: String, id: String) -> Line {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = text.char_indices().nth(MAX_LINE_CHARACTERS) {
        text.truncate(end);
        text.push('…');
    }
    Line { text: format!("{text} ^{id}"), id }
}

fn hash_id(source: &Locator, title: &str, text: &str) -> String {
    let hash = ContentHash::of(format!("{}\n{title}\n{}", source.name(), words(text)).as_bytes()).to_string();
    hash.chars().take(HASH_DIGITS).collect()
}

/// Returns the words of a text, without white space and capitals.
pub(super) fn words(text: &str) -> String {
    text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// Words of messages that say nothing but that another message arrived.
const ACKNOWLEDGEMENTS: &[&str] = &[
    "ok", "okay", "thanks", "thank", "you", "ty", "thx", "ping", "pong", "hi", "hello", "hey", "bye", "lol",
    "haha", "👍", "🙏", "👌",
];

fn is_acknowledgement(text: &str) -> bool {
    let words = words(text);
    let mut words = words.split(' ').map(|word| word.trim_matches(|c: char| c.is_ascii_punctuation()));
    text.len() <= 40 && words.all(|word| word.is_empty() || ACKNOWLEDGEMENTS.contains(&word))
}

/// Returns the id at the end of a line.
pub(super) fn id_of(line: &str) -> Option<&str> {
    let line = line.lines().next()?.trim_end();
    let (_, id) = line.rsplit_once(" ^")?;
    let is_id = !id.is_empty() && id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
    is_id.then_some(id)
}

/// Returns what a line is known by: its id, or else its words.
fn key(chunk: &Chunk<'_>) -> String {
    id_of(chunk.text).map_or_else(|| words(chunk.text), |id| format!("^{id}"))
}

/// Returns the ids of all lines of a roll-up.
pub(super) fn ids(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(id_of).map(str::to_owned).collect()
}

/// A section that is to be in a roll-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewSection {
    pub(super) title: String,
    pub(super) day: Option<Day>,
    pub(super) body: String,
}

/// Returns the section of a source.
pub(super) fn section_of(day: Day, source: &str, lines: &[Line]) -> NewSection {
    let body = lines.iter().map(|line| format!("{}\n", line.text)).collect();
    NewSection { title: format!("{day} · {source}"), day: Some(day), body }
}

/// Returns a new roll-up without sections.
pub(super) fn empty(period: Period) -> String {
    let kind = match period {
        Period::Day(_) | Period::Week { .. } => "weekly_digest",
        Period::Month { .. } => "monthly_digest",
        Period::Year(_) => "yearly_digest",
    };
    let name = scalar(&period.to_string());
    format!(
        "---\nname: {name}\ndescription: Older days in short, made by haversack tidy\ntype: {kind}\ngenerated: tidy\n---\n\n# {period}\n"
    )
}

/// Adds a section to a roll-up, in the order of days. Lines that the section has already are not added, nor lines whose id is anywhere in the roll-up: an edit by
/// hand can leave two sections with one heading.
pub(super) fn with_section(text: &str, new: &NewSection) -> String {
    let body = document::body_of(text);
    let above = &text[..text.len() - body.len()];
    let parts = sections(body);
    let known: BTreeSet<String> = match has(Planted::RollUpsForgetIds) {
        true => BTreeSet::new(),
        false => ids(body).into_iter().map(|id| format!("^{id}")).collect(),
    };
    if let Some(at) = parts.iter().position(|part| part.title == Some(new.title.as_str())) {
        let mut there: BTreeSet<String> = chunks(parts[at].body).iter().map(key).collect();
        there.extend(known);
        let is_new = |chunk: &Chunk<'_>| !there.contains(&key(chunk)) || has(Planted::RollUpsForgetIds);
        let more: String = chunks(&new.body)
            .iter()
            .filter(|chunk| !chunk.text.trim().is_empty() && is_new(chunk))
            .map(|chunk| format!("{}\n", chunk.text.trim_end()))
            .collect();
        if more.is_empty() {
            return text.to_owned();
        }
        return written(above, &parts, at + 1, |out| {
            trim_end(out);
            let _ = write!(out, "\n{more}");
            if at + 1 < parts.len() {
                out.push('\n');
            }
        });
    }
    let lines = chunks(&new.body);
    let lines = lines.iter().filter(|chunk| !known.contains(&key(chunk)));
    let lines: String = lines.map(|chunk| chunk.text).collect();
    if lines.trim().is_empty() {
        return text.to_owned();
    }
    let before = parts.iter().rposition(|part| match (part.title, part.day(), new.day) {
        (None, ..) => true,
        (Some(title), Some(day), Some(new_day)) => (day, title) < (new_day, new.title.as_str()),
        (Some(_), None, _) => false,
        (Some(_), Some(_), None) => true,
    });
    let at = before.map_or(0, |before| before + 1);
    written(above, &parts, at, |out| {
        trim_end(out);
        let gap = if out.is_empty() { "" } else { "\n\n" };
        let _ = write!(out, "{gap}## {}\n{}\n", new.title, lines.trim_matches('\n'));
        if at < parts.len() {
            out.push('\n');
        }
    })
}

fn trim_end(text: &mut String) {
    text.truncate(text.trim_end().len());
}

/// Puts parts together, with something between the first `at` of them and the others.
fn written(above: &str, parts: &[Section<'_>], at: usize, between: impl FnOnce(&mut String)) -> String {
    let mut out = above.to_owned();
    let write = |out: &mut String, parts: &[Section<'_>]| {
        for part in parts {
            out.push_str(part.heading);
            out.push_str(part.body);
        }
    };
    write(&mut out, &parts[..at]);
    between(&mut out);
    write(&mut out, &parts[at..]);
    out
}

/// A section of a roll-up on its way to the roll-up of a longer period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Onward {
    /// The day that decides which roll-up receives it.
    pub(super) day: Day,
    pub(super) section: NewSection,
    pub(super) kept: Vec<String>,
    pub(super) dropped: Vec<Dropped>,
}

/// Returns the sections of a roll-up for the roll-ups of longer periods: at most `limit` lines with an id of each section, the most telling ones. What a person
/// wrote goes on whole.
pub(super) fn onward(text: &str, period: Period, limit: Option<u32>) -> Vec<Onward> {
    let body = Document::read(text).body;
    // The title of the whole is no text of a section, wherever an edit by hand has left it.
    let title = format!("# {period}");
    let body: String = body.split_inclusive('\n').filter(|line| line.trim_end() != title).collect();
    let mut onward = Vec::new();
    for part in sections(&body) {
        // The middle of a period is in the month and year that it counts to.
        let middle = period.first_day().plus(period.last_day().days_since(period.first_day()) / 2);
        let (title, day, lines) = match part.title {
            Some(title) if part.day().is_some() => (title.to_owned(), part.day(), part.body.to_owned()),
            Some(title) => (
                format!("{period} · {}", title.trim_start_matches(&format!("{period} · "))),
                None,
                part.body.to_owned(),
            ),
            None => {
                let lines = part.body.lines().map(|line| format!("{line}\n")).collect();
                (period.to_string(), None, lines)
            }
        };
        if lines.trim().is_empty() {
            continue;
        }
        let chunks = chunks(&lines);
        let dropped = least_telling(&chunks, limit);
        let body: String = chunks
            .iter()
            .enumerate()
            .filter(|(at, _)| !dropped.contains(at))
            .map(|(_, chunk)| chunk.text)
            .collect();
        let ids = |at: usize| id_of(chunks[at].text).map(str::to_owned);
        onward.push(Onward {
            day: day.unwrap_or(middle),
            section: NewSection { title, day, body },
            kept: (0..chunks.len()).filter(|at| !dropped.contains(at)).filter_map(ids).collect(),
            dropped: dropped
                .iter()
                .filter_map(|at| ids(*at))
                .map(|id| Dropped { id, why: "less telling than others of its day" })
                .collect(),
        });
    }
    onward
}

/// Returns the numbers of the lines with an id beyond the limit, the least telling ones.
fn least_telling(chunks: &[Chunk<'_>], limit: Option<u32>) -> BTreeSet<usize> {
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut generated: Vec<usize> =
        (0..chunks.len()).filter(|at| id_of(chunks[*at].text).is_some()).collect();
    generated.sort_by_key(|at| (std::cmp::Reverse(weight(chunks[*at].text)), *at));
    generated.into_iter().skip(limit).collect()
}

/// Beginnings of words that mark a decision, a promise, a rule or a failure.
const TELLING: &[&str] = &[
    "decid", "agree", "promis", "always", "never", "remember", "must", "deadline", "because", "releas",
    "ship", "fix", "broke", "fail", "learn", "prefer", "rule", "chose", "cancel", "approv", "reject",
];

/// Returns how telling a line is: words of decisions, numbers, length.
fn weight(line: &str) -> usize {
    let text = line.split_once(": ").map_or(line, |(_, text)| text);
    let text = text.rsplit_once(" ^").map_or(text, |(text, _)| text).to_lowercase();
    let telling = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| TELLING.iter().any(|start| word.starts_with(start)))
        .count();
    2 * telling.min(4)
        + usize::from(text.contains(|c: char| c.is_ascii_digit()))
        + usize::from(text.chars().count() >= 40)
}
