//! Merges the digests of one day's sessions.
//!
//! Two sessions that digest the same day write one file. Their texts come one after the other, each under a heading with its
//! session; as long as there is only one, its text has no such heading. Texts about one session on two devices merge by
//! their headings.
//!
//! A description is of the day, not of a session: descriptions that differ are joined, so that two sessions of one day never conflict.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::outline::Newest;
use super::{Outcome, Part, document, sections};
use crate::document::{Document, Value, scalar};

/// The fields that name a session.
const SESSION: &[&str] = &["session", "session_id", "originSessionId"];

/// The field that describes a day in one line.
const DESCRIPTION: &str = "description";

/// The beginning of a session's heading.
const HEADING: &str = "# Session ";

/// Merges two digests; `None` if one of them cannot be cut.
pub(super) fn merge(base: Option<&str>, sides: [Part<'_>; 2]) -> Option<Outcome> {
    let texts: Vec<&str> = base.into_iter().chain(sides.map(|side| side.text)).collect();
    let sessions: BTreeSet<String> = texts.iter().filter_map(|text| session(text)).collect();
    let has_any_headings = texts.iter().any(|text| has_headings(Document::read(text).body));
    if sessions.len() < 2 && !has_any_headings {
        let texts = agreed(base, sides.map(|side| Cow::Borrowed(side.text)));
        let sides = [Part { text: &texts[0], ..sides[0] }, Part { text: &texts[1], ..sides[1] }];
        return document::merge(base, sides, &|base, bodies| sections::merge(base, bodies, Newest::Last));
    }
    // A session that wrote over the digest of another has not seen it, rather than removed it.
    let before = base.and_then(session);
    let is_fresh =
        |text: &str| !has_headings(Document::read(text).body) && before.is_some() && session(text) != before;
    let is_any_fresh = sides.iter().any(|side| is_fresh(side.text));
    let base = base.map(under_heading);
    let texts = agreed(base.as_deref(), sides.map(|side| under_heading(side.text)));
    let sides = [Part { text: &texts[0], ..sides[0] }, Part { text: &texts[1], ..sides[1] }];
    document::merge(base.as_deref(), sides, &|base, bodies| {
        sections::merge(base.filter(|_| !is_any_fresh), bodies, Newest::Last)
    })
}

/// Returns both sides with the same values in the fields that tell of the whole day.
fn agreed<'a>(base: Option<&str>, mut sides: [Cow<'a, str>; 2]) -> [Cow<'a, str>; 2] {
    for name in [DESCRIPTION, "name", "duration_hours", "session", "session_id"] {
        let [first, second] = [0, 1].map(|side| Document::read(&sides[side]).text(name));
        let (Some(first), Some(second)) = (first, second) else { continue };
        let before = base.and_then(|base| Document::read(base).text(name));
        if first == second || before.as_deref().is_some_and(|before| before == first || before == second) {
            continue;
        }
        let value = match name {
            DESCRIPTION => {
                let parts: BTreeSet<&str> = first.split("; ").chain(second.split("; ")).collect();
                parts.into_iter().collect::<Vec<_>>().join("; ")
            }
            _ => first.max(second),
        };
        sides = sides.map(|side| with_value(side, name, &value));
    }
    sides
}

/// Returns a text with another value in a field that it has.
fn with_value<'a>(text: Cow<'a, str>, name: &str, value: &str) -> Cow<'a, str> {
    let document = Document::read(&text);
    let Some(field) = document.field(name) else { return text };
    if matches!(field.value(), Value::Text(old) if old == value) {
        return text;
    }
    let start = field.raw.as_ptr() as usize - text.as_ptr() as usize;
    let indent = &field.raw[..field.raw.len() - field.raw.trim_start().len()];
    let line_end = if field.raw.ends_with('\n') { "\n" } else { "" };
    let line = format!("{indent}{name}: {}{line_end}", scalar(value));
    let end = start + field.raw.len();
    Cow::Owned([&text[..start], &line, &text[end..]].concat())
}

fn session(text: &str) -> Option<String> {
    let document = Document::read(text);
    SESSION.iter().find_map(|name| document.text(name)).filter(|session| !session.is_empty())
}

fn has_headings(body: &str) -> bool {
    body.lines().any(|line| line.starts_with(HEADING))
}

/// Puts the text of the only session of a digest under its heading.
fn under_heading(text: &str) -> Cow<'_, str> {
    let document = Document::read(text);
    let body = document.body.trim_start_matches('\n');
    match session(text) {
        Some(session) if !has_headings(body) && !body.is_empty() => {
            let above = &text[..text.len() - document.body.len()];
            let ended = if above.ends_with('\n') { "" } else { "\n" };
            Cow::Owned(format!("{above}{ended}\n{HEADING}{session}\n\n{body}"))
        }
        _ => Cow::Borrowed(text),
    }
}
