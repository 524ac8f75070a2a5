//! A day in short, made from its interaction log: what needs an answer, what was handled, what to know. Pure.
//!
//! Events are grouped into threads by channel and counterparty:
//!
//! - a thread in which both sides wrote is handled by the agent's last message; a message that came after it needs an answer;
//! - a thread in which only others wrote needs an answer;
//! - a thread in which only the agent wrote is worth knowing.
//!
//! Messages that the agent's own name sent inbound are its own echo and left out. The page is made from the data alone, so a device that merged the
//! data makes the same page as the others ([`DaySummary::page`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use haversack_store::Locator;
use serde::{Deserialize, Serialize};

use crate::day::{Day, Zone};
use crate::event::{Direction, LoggedEvent};

/// The longest text of an entry, in characters.
const MAX_CHARACTERS: usize = 400;

/// One thread of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryEntry {
    /// The id of the event that it tells of; two devices meet at it.
    #[serde(default)]
    pub id: String,
    /// The time of day, where the summary was made.
    #[serde(default)]
    pub time: String,
    /// The channel.
    #[serde(default)]
    pub channel: String,
    /// The counterparty.
    #[serde(default)]
    pub who: String,
    /// The content of the message.
    #[serde(default)]
    pub summary: String,
}

/// The number of entries below each heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Threads that wait for an answer.
    pub needs_you: usize,
    /// Threads that were answered.
    pub handled: usize,
    /// Threads in which the agent got no answer.
    pub heads_up: usize,
}

/// A day in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaySummary {
    /// The day.
    pub day: String,
    /// The numbers of entries.
    #[serde(default)]
    pub counts: Counts,
    /// Threads that wait for an answer.
    #[serde(default)]
    pub needs_you: Vec<SummaryEntry>,
    /// Threads that were answered.
    #[serde(default)]
    pub handled: Vec<SummaryEntry>,
    /// Threads in which the agent got no answer.
    #[serde(default)]
    pub heads_up: Vec<SummaryEntry>,
}

/// Returns the place of a day's summary as data.
pub fn data_of(day: Day) -> Locator {
    Locator::parse(&format!("summaries/{day}.json")).expect("a day is a plain name")
}

/// Returns the place of a day's summary as a page.
pub fn page_of(day: Day) -> Locator {
    Locator::parse(&format!("summaries/{day}.html")).expect("a day is a plain name")
}

/// The last events of a thread.
#[derive(Default)]
struct Thread<'e> {
    inbound: Option<&'e LoggedEvent>,
    outbound: Option<&'e LoggedEvent>,
}

/// Makes the summary of a day from its events, the earliest first.
pub fn summarize(day: Day, events: &[LoggedEvent], zone: &Zone) -> DaySummary {
    let own_names: BTreeSet<String> = events
        .iter()
        .filter(|event| event.direction == Direction::Outbound)
        .map(|event| event.sender.to_lowercase())
        .collect();
    let mut threads: BTreeMap<(&str, String), Thread<'_>> = BTreeMap::new();
    for event in events {
        let counterparty = match event.direction {
            Direction::Inbound if own_names.contains(&event.sender.to_lowercase()) => continue,
            Direction::Inbound => &event.sender,
            Direction::Outbound => event.recipient.as_ref().unwrap_or(&event.channel),
        };
        let thread = threads.entry((&event.channel, counterparty.to_lowercase())).or_default();
        match event.direction {
            Direction::Inbound => thread.inbound = Some(event),
            Direction::Outbound => thread.outbound = Some(event),
        }
    }
    let mut summary = DaySummary {
        day: day.to_string(),
        counts: Counts::default(),
        needs_you: Vec::new(),
        handled: Vec::new(),
        heads_up: Vec::new(),
    };
    let entry = |event: &LoggedEvent| entry(event, zone);
    for thread in threads.values() {
        match (thread.inbound, thread.outbound) {
            (Some(inbound), Some(outbound)) => {
                summary.handled.push(entry(outbound));
                if inbound.time > outbound.time {
                    summary.needs_you.push(entry(inbound));
                }
            }
            (Some(inbound), None) => summary.needs_you.push(entry(inbound)),
            (None, Some(outbound)) => summary.heads_up.push(entry(outbound)),
            (None, None) => {}
        }
    }
    for entries in [&mut summary.needs_you, &mut summary.handled, &mut summary.heads_up] {
        entries.sort_by(|one, other| (&one.time, &one.id).cmp(&(&other.time, &other.id)));
    }
    summary.counted()
}

fn entry(event: &LoggedEvent, zone: &Zone) -> SummaryEntry {
    let who = match event.direction {
        Direction::Inbound => event.sender.clone(),
        Direction::Outbound => event.recipient.clone().unwrap_or_default(),
    };
    let short = |text: &str| -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.chars().count() > MAX_CHARACTERS {
            true => line.chars().take(MAX_CHARACTERS - 1).chain(['…']).collect(),
            false => line,
        }
    };
    let action = event.action.as_deref().map(|action| format!(" ({})", short(action))).unwrap_or_default();
    SummaryEntry {
        id: event.id.clone(),
        time: zone.time_of(event.time),
        channel: short(&event.channel),
        who: short(&who),
        summary: format!("{}{action}", short(&event.summary)),
    }
}

impl DaySummary {
    /// Reads a summary from its data; `None` if it is none. The counts are made new: a merge changes the lists alone.
    pub fn read(data: &[u8]) -> Option<DaySummary> {
        // A list would be read as the fields in their order.
        let is_object = data.trim_ascii_start().starts_with(b"{");
        let summary = serde_json::from_slice::<DaySummary>(data).ok().filter(|_| is_object);
        summary.map(DaySummary::counted)
    }

    fn counted(mut self) -> DaySummary {
        self.counts = Counts {
            needs_you: self.needs_you.len(),
            handled: self.handled.len(),
            heads_up: self.heads_up.len(),
        };
        self
    }

    /// Returns the summary as data.
    pub fn data(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("texts and numbers print");
        text.push('\n');
        text
    }

    /// Returns the summary as a page for a browser. Everything that others wrote is escaped; the page loads nothing and runs nothing.
    pub fn page(&self) -> String {
        let day = escaped(&self.day);
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>{day}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>{day}</h1>\n"
        );
        for (class, title, entries) in [
            ("needs", "Needs you", &self.needs_you),
            ("handled", "Handled", &self.handled),
            ("heads", "Heads up", &self.heads_up),
        ] {
            // Writing to a string does not fail.
            let _ = writeln!(
                page,
                "<section class=\"{class}\">\n<h2>{title} <span>{}</span></h2>",
                entries.len()
            );
            if entries.is_empty() {
                page.push_str("<p class=\"none\">—</p>\n");
            } else {
                page.push_str("<ul>\n");
                entries.iter().for_each(|entry| page.push_str(&row(entry)));
                page.push_str("</ul>\n");
            }
            page.push_str("</section>\n");
        }
        page.push_str("<footer>Something is missing or misjudged? Tell your agent, and it will know next time.</footer>\n</main>\n</body>\n</html>\n");
        page
    }
}

fn row(entry: &SummaryEntry) -> String {
    let SummaryEntry { id: _, time, channel, who, summary } = entry;
    let who = if who.is_empty() { "—" } else { who };
    format!(
        "<li><div class=\"head\"><b>{}</b> <i>{}</i> <time>{}</time></div><p>{}</p></li>\n",
        escaped(who),
        escaped(channel),
        escaped(time),
        escaped(summary)
    )
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if crate::display::is_harmful(c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #1d2430; --soft: #667085; --paper: #f6f4ef; --card: #ffffff; --line: #e4e0d8 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e6e1; --soft: #9aa3b2; --paper: #16181d; --card: #1f232b; --line: #2e343f } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 42rem; margin: 0 auto; padding: 2.5rem 1.25rem 3rem }
h1 { font-size: 1.6rem; margin: 0 0 1.5rem; letter-spacing: -0.01em }
h2 { font-size: 1rem; margin: 2rem 0 0.6rem; display: flex; align-items: center; gap: 0.5rem }
h2 span { font-size: 0.8rem; min-width: 1.6rem; padding: 0 0.4rem; border-radius: 1rem; text-align: center; color: #fff; background: var(--soft) }
.needs h2 span { background: #b4450f }
.handled h2 span { background: #2f7d4f }
.heads h2 span { background: #3a6ea5 }
ul { list-style: none; margin: 0; padding: 0; background: var(--card); border: 1px solid var(--line); border-radius: 0.6rem; overflow: hidden }
li { padding: 0.75rem 1rem }
li + li { border-top: 1px solid var(--line) }
.head { display: flex; gap: 0.6rem; align-items: baseline; flex-wrap: wrap }
i, time, .none, footer { color: var(--soft); font-style: normal; font-size: 0.85rem }
time { margin-left: auto; font-variant-numeric: tabular-nums }
p { margin: 0.15rem 0 0; overflow-wrap: anywhere }
footer { margin-top: 2.5rem }
";

#[cfg(test)]
mod tests {
    use Direction::{Inbound, Outbound};

    use super::*;
    use crate::ids::Timestamp;
    use crate::merge::{Rule, Side, merge};

    fn event(
        id: &str,
        minutes: i64,
        direction: Direction,
        channel: &str,
        who: &str,
        said: &str,
    ) -> LoggedEvent {
        let (sender, recipient) = match direction {
            Inbound => (who.to_owned(), None),
            Outbound => ("Agent".to_owned(), Some(who.to_owned())),
        };
        LoggedEvent {
            id: id.to_owned(),
            time: Timestamp(1_763_424_000_000 + minutes * 60_000),
            channel: channel.to_owned(),
            direction,
            sender,
            summary: said.to_owned(),
            recipient,
            action: None,
            device: None,
            session: None,
        }
    }

    fn summary(events: &[LoggedEvent]) -> DaySummary {
        summarize("2025-11-18".parse().expect("a day"), events, &Zone::from(jiff::tz::TimeZone::UTC))
    }

    #[test]
    fn threads_need_an_answer_are_handled_or_worth_knowing() {
        let made = summary(&[
            event("1", 1, Inbound, "email", "Ann", "asks for the port"),
            event("2", 2, Outbound, "email", "ann", "says 5433"),
            event("3", 3, Inbound, "email", "ANN", "asks for the other port"),
            event("4", 4, Inbound, "chat", "Ann", "says hello"),
            event("5", 5, Outbound, "chat", "Bo", "tells of the release"),
            event("6", 6, Inbound, "chat", "agent", "its own echo"),
        ]);
        let ids = |entries: &[SummaryEntry]| entries.iter().map(|entry| entry.id.clone()).collect::<String>();
        assert_eq!(
            (ids(&made.needs_you), ids(&made.handled), ids(&made.heads_up)),
            ("34".into(), "2".into(), "5".into())
        );
        assert_eq!(made.counts, Counts { needs_you: 2, handled: 1, heads_up: 1 });
        assert_eq!(made.needs_you[0].time, "00:03");
        assert_eq!(DaySummary::read(made.data().as_bytes()), Some(made));
    }

    #[test]
    fn page_escapes_what_others_wrote() {
        let evil = "</p><script>alert(1)</script>\u{202e}& \"x\"";
        let page = summary(&[event("1", 1, Inbound, "<b>", "'Ann'", evil)]).page();
        assert!(!page.contains("<script") && !page.contains('\u{202e}'), "{page}");
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("&#39;Ann&#39;"));
        assert_eq!(page.matches("<p class=\"none\">—</p>").count(), 2);
    }

    #[test]
    fn summaries_of_two_devices_merge_and_are_counted_again() {
        let base = summary(&[event("1", 1, Inbound, "email", "Ann", "asks")]);
        let one = summary(&[
            event("1", 1, Inbound, "email", "Ann", "asks"),
            event("2", 2, Inbound, "chat", "Bo", "asks too"),
        ]);
        let other = summary(&[
            event("1", 1, Inbound, "email", "Ann", "asks"),
            event("3", 3, Outbound, "chat", "Cy", "tells"),
        ]);
        let [base, one, other] = [base, one, other].map(|made| made.data());
        let side = |text: &'static str, device| Side { bytes: text.as_bytes(), device };
        let [one, other]: [&'static str; 2] = [one, other].map(|text| &*Box::leak(text.into_boxed_str()));
        let merged = merge(Rule::Json, Some(base.as_bytes()), side(one, "laptop"), side(other, "desktop"));
        let merged = DaySummary::read(&merged.bytes).expect("still a summary");
        assert_eq!(merged.counts, Counts { needs_you: 2, handled: 0, heads_up: 1 });
    }

    #[test]
    fn data_of_another_shape_is_no_summary() {
        for odd in [
            "",
            "[]",
            "[\"2026-04-17\"]",
            "{\"counts\":{}}",
            "{\"day\":7}",
            "{\"day\":\"x\",\"needs_you\":7}",
        ] {
            assert_eq!(DaySummary::read(odd.as_bytes()), None, "{odd}");
        }
        // Only the counts, as another program wrote them.
        let counts = "{\"day\":\"2026-04-17\",\"counts\":{\"needs_you\":1,\"handled\":0,\"heads_up\":0}}";
        assert_eq!(DaySummary::read(counts.as_bytes()).map(|made| made.counts), Some(Counts::default()));
    }
}
