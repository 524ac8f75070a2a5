//! Merges logs by day, roll-ups and threads: the text below each heading merges on its own.
//!
//! A heading that both sides wrote is one. A day that is new goes where the file has its newest: above the others, or below.

use std::borrow::Cow;

use super::outline::{self, Newest, Shape, join_accounts};
use super::pieces::Cut;
use super::texts::last_pair;
use super::{Outcome, Part, by_paragraphs};

/// Merges two texts by their headings; `None` if one of them cannot be cut.
pub(super) fn merge(base: Option<&str>, sides: [Part<'_>; 2], newest: Newest) -> Option<Outcome> {
    let join = |base: Option<&str>, first: Part<'_>, second: Part<'_>| {
        by_paragraphs(base.unwrap_or_default(), first, second)
    };
    merge_with(base, sides, newest, &join)
}

/// Merges two roll-ups. Lines with the id of their source merge by it. If both devices wrote about a day in their own words, the two texts stay one below the other.
pub(super) fn roll_up(base: Option<&str>, sides: [Part<'_>; 2]) -> Option<Outcome> {
    if sides.iter().all(|side| side.text.lines().any(|line| source_id(line).is_some())) {
        return by_source(base, sides);
    }
    let join = |base: Option<&str>, first: Part<'_>, second: Part<'_>| match base {
        Some(base) if !base.is_empty() => by_paragraphs(base, first, second),
        _ => join_accounts(first, second),
    };
    merge_with(base, sides, Newest::Last, &join)
}

/// Merges two roll-ups by the sources of their lines.
fn by_source(base: Option<&str>, sides: [Part<'_>; 2]) -> Option<Outcome> {
    let join = |base: Option<&str>, first: &str, second: &str| {
        outline::join_items(base, Part { text: first, ..sides[0] }, Part { text: second, ..sides[1] })
    };
    let shape = Shape {
        cut: Cut::Blocks,
        identity: |item| source_id(item.lines().next()?).map(Cow::Borrowed),
        section: heading,
        rank: |_| 0,
        newest: Newest::Last,
        join: &join,
    };
    outline::merge(base, sides.map(|side| side.text), &shape)
}

/// Returns the id of the source at the end of an item's line.
fn source_id(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let at = last_pair(line, *b" ^").filter(|_| line.starts_with("- "))?;
    let id = &line[at + 2..];
    let is_id = id.len() >= 8 && id.bytes().all(|c| c.is_ascii_hexdigit() || c == b'-');
    is_id.then_some(id)
}

fn merge_with(
    base: Option<&str>,
    sides: [Part<'_>; 2],
    newest: Newest,
    join: &dyn Fn(Option<&str>, Part<'_>, Part<'_>) -> Outcome,
) -> Option<Outcome> {
    let join = |base: Option<&str>, first: &str, second: &str| {
        join(base, Part { text: first, ..sides[0] }, Part { text: second, ..sides[1] })
    };
    let shape =
        Shape { cut: Cut::Bodies, identity: |_| None, section: heading, rank: |_| 0, newest, join: &join };
    outline::merge(base, sides.map(|side| side.text), &shape)
}

/// Returns the identity of a heading: its text.
pub(super) fn heading(line: &str) -> Cow<'_, str> {
    let line = line.trim_end();
    if last_pair(line, *b"  ").is_some() || line.as_bytes().contains(&b'\t') {
        return Cow::Owned(line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    Cow::Borrowed(line)
}
