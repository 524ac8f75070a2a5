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

/// Merges two roll-ups: if both rolled up a day independently, the two texts stay one below the other.
pub(super) fn roll_up(base: Option<&str>, sides: [Part<'_>; 2]) -> Option<Outcome> {
    let join = |base: Option<&str>, first: Part<'_>, second: Part<'_>| match base {
        Some(base) if !base.is_empty() => by_paragraphs(base, first, second),
        _ => join_accounts(first, second),
    };
    merge_with(base, sides, Newest::Last, &join)
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
