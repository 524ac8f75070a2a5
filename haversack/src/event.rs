//! A message on a channel: one line of the day's interaction log.
//!
//! [`line()`] writes an event, [`read`] reads a whole log. A line that is no event is counted and passed over. If a writer was killed in the middle of
//! a line, the next event stands behind the torn one; [`read`] finds it there.

use std::collections::HashSet;

use haversack_store::Locator;
use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::ids::Timestamp;
use crate::names;
use crate::signed::Writer;

/// The channel of an event that does not say.
const DEFAULT_CHANNEL: &str = "terminal";

/// The longest field, in bytes: a log of sentences, not of documents.
const MAX_FIELD_BYTES: usize = 8 * 1024;

/// Something that was said on a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The content of the message, in a sentence.
    pub summary: String,
    /// The sender.
    pub sender: String,
    /// `inbound` or `outbound`.
    pub direction: String,
    /// The channel.
    pub channel: Option<String>,
    /// The recipient.
    pub recipient: Option<String>,
    /// The action that followed.
    pub action: Option<String>,
}

/// The time, writer and machine of an event. The model never chooses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The event's id.
    pub id: [u8; 16],
    /// When.
    pub time: Timestamp,
    /// On which machine.
    pub device: String,
    /// The writer.
    pub writer: Writer,
}

#[derive(Serialize)]
struct Line<'a> {
    id: String,
    ts: String,
    channel: &'a str,
    direction: &'a str,
    sender: &'a str,
    summary: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'a str>,
    device: &'a str,
    #[serde(flatten)]
    writer: &'a Writer,
}

/// Returns the line of an event; the error says what is wrong with it.
pub fn line(event: &Event, stamp: &Stamp) -> Result<String, String> {
    let direction = event.direction.trim();
    if !["inbound", "outbound"].contains(&direction) {
        return Err(format!("`direction` is inbound or outbound, not \"{direction}\""));
    }
    let said = |text: &Option<String>| {
        text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let must = |name: &str, text: &str| match text.trim() {
        "" => Err(format!("`{name}` is empty")),
        text => Ok(text.to_owned()),
    };
    let (summary, sender) = (must("summary", &event.summary)?, must("sender", &event.sender)?);
    let channel = said(&event.channel).unwrap_or_else(|| DEFAULT_CHANNEL.to_owned());
    let (recipient, action) = (said(&event.recipient), said(&event.action));
    let fields = [Some(&summary), Some(&sender), Some(&channel), recipient.as_ref(), action.as_ref()];
    if let Some(long) = fields.into_iter().flatten().find(|field| field.len() > MAX_FIELD_BYTES) {
        return Err(format!(
            "a field has {} bytes, and an event has at most {MAX_FIELD_BYTES} in each",
            long.len()
        ));
    }
    let device = names::harmless(&stamp.device);
    let writer = Writer {
        agent: stamp.writer.agent.as_deref().map(names::harmless),
        session: stamp.writer.session.as_deref().map(names::harmless),
        cause: None,
    };
    let line = Line {
        id: uuid(stamp.id),
        ts: stamp.time.to_string(),
        channel: &channel,
        direction,
        sender: &sender,
        summary: &summary,
        recipient: recipient.as_deref(),
        action: action.as_deref(),
        device: &device,
        writer: &writer,
    };
    let mut text = serde_json::to_string(&line).expect("texts print");
    text.push('\n');
    Ok(text)
}

/// Returns the log of a day.
pub fn log_of(day: Day) -> Locator {
    Locator::parse(&format!("interactions/{day}.jsonl")).expect("a day is a plain name")
}

/// The direction of an event that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// A message to the agent.
    Inbound,
    /// The agent wrote.
    Outbound,
}

/// An event of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its id; empty if its writer gave it none.
    pub id: String,
    /// When it was written down.
    pub time: Timestamp,
    /// The channel.
    pub channel: String,
    /// The direction.
    pub direction: Direction,
    /// The sender.
    pub sender: String,
    /// The content of the message, in a sentence.
    pub summary: String,
    /// The recipient.
    pub recipient: Option<String>,
    /// The action that followed.
    pub action: Option<String>,
    /// The machine on which it was written down.
    pub device: Option<String>,
    /// The session that wrote it down.
    pub session: Option<String>,
}

/// A log that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLog {
    /// Its events, the earliest first; none twice.
    pub events: Vec<LoggedEvent>,
    /// The numbers of the lines that are no events.
    pub unread: Vec<usize>,
}

#[derive(Deserialize)]
struct RawEvent {
    #[serde(default)]
    id: String,
    ts: String,
    #[serde(default)]
    channel: Option<String>,
    direction: Direction,
    sender: String,
    summary: String,
    #[serde(default)]
    recipient: Option<String>,
    #[serde(default)]
    action: Option<String>,
    #[serde(default)]
    device: Option<String>,
    #[serde(default)]
    session: Option<String>,
}

/// Reads a log. Lines that are no events are passed over, and numbered in the result.
pub fn read(log: &[u8]) -> EventLog {
    let mut events: Vec<LoggedEvent> = Vec::new();
    let mut unread = Vec::new();
    let mut seen = HashSet::new();
    for (at, line) in log.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let whole = event_in(line);
        if whole.is_none() {
            unread.push(at + 1);
        }
        let Some(event) = whole.or_else(|| behind_a_torn_one(line)) else { continue };
        if event.id.is_empty() || seen.insert(event.id.clone()) {
            events.push(event);
        }
    }
    events.sort_by(|one, other| (one.time, &one.id).cmp(&(other.time, &other.id)));
    EventLog { events, unread }
}

fn event_in(line: &[u8]) -> Option<LoggedEvent> {
    let raw: RawEvent = serde_json::from_slice(line).ok()?;
    let time: jiff::Timestamp = raw.ts.parse().ok()?;
    Some(LoggedEvent {
        id: raw.id,
        time: Timestamp(time.as_millisecond()),
        channel: raw.channel.unwrap_or_else(|| DEFAULT_CHANNEL.to_owned()),
        direction: raw.direction,
        sender: raw.sender,
        summary: raw.summary,
        recipient: raw.recipient,
        action: raw.action,
        device: raw.device,
        session: raw.session,
    })
}

/// Returns the event at the end of a line whose beginning is a part of another.
fn behind_a_torn_one(line: &[u8]) -> Option<LoggedEvent> {
    const START: &[u8] = b"{\"id\":\"";
    let last = memchr::memmem::rfind(line, START)?;
    event_in(&line[last..])
}

/// Returns random bytes as a UUID of version 4.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kinds;

    fn event() -> Event {
        Event {
            summary: " Asked when the lamp\nis mended ".to_owned(),
            sender: "a teammate".to_owned(),
            direction: "inbound".to_owned(),
            action: Some(String::new()),
            ..Event::default()
        }
    }

    fn stamp() -> Stamp {
        let writer = Writer { agent: Some("claude-code".to_owned()), session: None, cause: None };
        Stamp { id: [0xff; 16], time: Timestamp(1_763_251_200_000), device: "laptop".to_owned(), writer }
    }

    #[test]
    fn an_event_is_one_line_that_says_who_wrote_it() {
        assert_eq!(
            line(&event(), &stamp()).expect("fits"),
            "{\"id\":\"ffffffff-ffff-4fff-bfff-ffffffffffff\",\"ts\":\"2025-11-16T00:00:00Z\",\"channel\":\"terminal\",\
             \"direction\":\"inbound\",\"sender\":\"a teammate\",\"summary\":\"Asked when the lamp\\nis mended\",\
             \"device\":\"laptop\",\"agent\":\"claude-code\"}\n"
        );
        let log = log_of("2026-11-16".parse().expect("a day"));
        assert_eq!(Kinds::built_in().of(&log, b"").name, "interaction");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |event: Event| line(&event, &stamp()).expect_err("unfit");
        assert_eq!(
            refused(Event { direction: "sideways".to_owned(), ..event() }),
            "`direction` is inbound or outbound, not \"sideways\""
        );
        assert_eq!(refused(Event { summary: " ".to_owned(), ..event() }), "`summary` is empty");
        assert!(refused(Event { sender: "x".repeat(9000), ..event() }).contains("9000 bytes"));
    }

    #[test]
    fn log_is_read_and_torn_lines_are_numbered() {
        let of = |id: u8, time: i64| {
            let stamp = Stamp { id: [id; 16], time: Timestamp(time), ..stamp() };
            line(&event(), &stamp).expect("fits")
        };
        let torn = &of(3, 30)[..70];
        let text = format!(
            "{}{}\nnot JSON\n{{\"ts\":1}}\n{torn}{}\n{}{{\"id",
            of(2, 20),
            of(2, 20),
            of(1, 10),
            of(4, 40)
        );
        let log = read(text.as_bytes());
        let times: Vec<i64> = log.events.iter().map(|event| event.time.0).collect();
        assert_eq!(times, [10, 20, 40]);
        assert_eq!(log.unread, [4, 5, 6, 9]);
        assert_eq!(log.events[0].sender, "a teammate");
        assert_eq!(read(b""), EventLog::default());
        assert_eq!(read(&[0xff, b'\n', 0]).unread, [1, 2]);
    }

    #[test]
    fn event_hides_a_name_that_holds_a_secret() {
        let token = format!("gh{}_{}", "p", "q7Rt2LmXw9ZcK4vB8nHs1DfG6jYp3TaE5uQo");
        let stamp = Stamp { device: format!("laptop\n{token}"), ..stamp() };
        let line = line(&event(), &stamp).expect("a line");
        assert!(!line.contains(&token) && line.contains("\"device\":\"hidden-"), "{line}");
    }
}
