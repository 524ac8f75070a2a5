//! What becomes of a file that was changed in two places: three-way merges, as pure functions.
//!
//! A merge takes the base that both sides started from and the two sides; it reads no clock, asks nobody and never fails. What
//! cannot be reconciled is kept twice, never marked up as a conflict and never dropped.
//!
//! # Invariants
//! 1. A side that did not change is not looked at: if one side is the base, or both are the same, the result is the other one
//!    byte for byte (`a_side_that_did_not_change_is_not_looked_at`).
//! 2. It does not matter which side is called ours (`the_sides_have_no_rank`): the sides are put in the order of their content
//!    first, so that nothing below could tell.
//! 3. Text stays text, JSON lines stay JSON lines, and no line is a conflict marker (`text_stays_text`, `json_lines_stay_json`).
//! 4. What a side added is there, in the order it had on that side; what a side removed and the other left alone is not there
//!    (`nothing_is_lost_and_nothing_comes_back`, `no_event_is_lost_and_none_comes_back`).
//! 5. Taking in the same change a second time changes nothing (`a_change_taken_in_twice_is_taken_in_once`,
//!    `a_paragraph_taken_in_twice_is_taken_in_once`, `an_event_taken_in_twice_is_taken_in_once`). For text this is so as far
//!    as its lines can be told apart: if a side adds a line that the base has elsewhere, or the base has it twice, nobody can
//!    see in the result which of them was meant. Lines that say nothing are told apart by what they follow.
//! 6. Three devices come to the same lines in whatever order they meet, and to the same bytes if what they added are list items
//!    or events (`three_devices_come_to_the_same_lines`, `three_devices_come_to_the_same_list`,
//!    `three_devices_come_to_the_same_events`).
//!
//! Whether a file is there at all is not decided here.

mod json_lines;
mod lines;

use haversack_store::{Bytes, InvalidLocator, Locator, MAX_SEGMENT_BYTES};

/// One side of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side<'a> {
    /// What the file holds there.
    pub bytes: &'a [u8],
    /// What the device is called, for people; it decides nothing.
    pub device: &'a str,
}

/// How a file merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// By lines that have an order: notes, indexes, logs.
    Prose,
    /// By events, one to a line, each of which stands for itself.
    JsonLines,
    /// Not at all: one content stays, the other becomes a copy beside it.
    Whole,
}

impl Rule {
    /// Returns how a file merges, by its name and everything it holds or held: the base, if there is one, and both sides.
    ///
    /// What is not UTF-8 or holds a NUL is no text, and one such content is enough: text cannot be merged into it.
    pub fn of<'a>(locator: &Locator, contents: impl IntoIterator<Item = &'a [u8]>) -> Rule {
        let is_text = |bytes: &[u8]| memchr::memchr(0, bytes).is_none() && std::str::from_utf8(bytes).is_ok();
        if !contents.into_iter().all(is_text) {
            return Rule::Whole;
        }
        match locator.name().rsplit_once('.') {
            Some((_, extension)) if extension.eq_ignore_ascii_case("jsonl") => Rule::JsonLines,
            _ => Rule::Prose,
        }
    }
}

/// What a merge came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// What the file holds now.
    pub bytes: Bytes,
    /// The other content of a file that merges not at all: it becomes a copy beside it, see [`conflict_name`].
    pub copy: Option<Bytes>,
    /// Whether something could not be reconciled and is there twice.
    pub both_kept: bool,
}

/// Merges two sides of a file over the base they started from; `None` if each made the file on its own.
pub fn merge(rule: Rule, base: Option<&[u8]>, ours: Side<'_>, theirs: Side<'_>) -> Merged {
    if ours.bytes == theirs.bytes || base == Some(theirs.bytes) {
        return Merged { bytes: Bytes::copy_from_slice(ours.bytes), copy: None, both_kept: false };
    }
    if base == Some(ours.bytes) {
        return Merged { bytes: Bytes::copy_from_slice(theirs.bytes), copy: None, both_kept: false };
    }
    let (first, second) = if ours.bytes < theirs.bytes { (ours, theirs) } else { (theirs, ours) };
    match rule {
        Rule::Prose => lines::merge(base.unwrap_or_default(), first, second),
        Rule::JsonLines => json_lines::merge(base.unwrap_or_default(), first.bytes, second.bytes),
        Rule::Whole => whole(first.bytes, second.bytes),
    }
}

/// Returns the name of the copy beside a file that holds what did not become its content.
///
/// `sketch.png` becomes `sketch.conflict-1a2b3c4d.png`: the digits are the beginning of the content's BLAKE3 hash, so that
/// every device gives the same content the same name. A name that would be too long is shortened before them.
pub fn conflict_name(locator: &Locator, content: &[u8]) -> Result<Locator, InvalidLocator> {
    let hash = blake3::hash(content).to_hex();
    let mark = format!(".conflict-{}", &hash[..8]);
    let name = locator.name();
    let (stem, extension) = match name.rfind('.') {
        // A name that only begins with a dot has no extension; one that fills the name is none either.
        Some(dot) if dot > 0 && name.len() - dot + mark.len() < MAX_SEGMENT_BYTES => name.split_at(dot),
        _ => (name, ""),
    };
    let stem = &stem[..stem.floor_char_boundary(MAX_SEGMENT_BYTES - mark.len() - extension.len())];
    let parent = locator.parent().unwrap_or_else(Locator::root);
    parent.child(&format!("{stem}{mark}{extension}"))
}

/// Keeps two contents of which neither can be put into the other.
fn whole(first: &[u8], second: &[u8]) -> Merged {
    let by_hash = |bytes: &[u8]| *blake3::hash(bytes).as_bytes();
    let (stays, copy) = if by_hash(first) <= by_hash(second) { (first, second) } else { (second, first) };
    Merged { bytes: Bytes::copy_from_slice(stays), copy: Some(Bytes::copy_from_slice(copy)), both_kept: true }
}

/// Interleaves two sequences, each in the order it has, the smaller head first.
///
/// What follows a head and is smaller goes with it. So each element stands where the greatest before it in its own sequence
/// belongs; that is the same for three sequences in whatever order they are interleaved, as long as no two heads are equal.
fn interleave<'a, T: Ord>(mut first: &'a [T], mut second: &'a [T]) -> Vec<&'a T> {
    let mut all = Vec::with_capacity(first.len() + second.len());
    while let ([first_head, first_rest @ ..], [second_head, ..]) = (first, second) {
        if second_head < first_head {
            (first, second) = (second, first);
            continue;
        }
        let followers = first_rest.iter().take_while(|element| *element <= first_head).count();
        let (group, rest) = first.split_at(1 + followers);
        all.extend(group);
        first = rest;
    }
    all.extend(first.iter().chain(second));
    all
}
