//! Merges a file that was changed in two places: three-way merges, as pure functions.
//!
//! A merge takes the base, from which both sides started, and the two sides. It reads no clock, asks no user and never fails. Passages that
//! cannot be reconciled is kept twice, never marked up as a conflict and never dropped.
//!
//! # Invariants
//! 1. A side that did not change is not looked at: if one side is the base, or both are the same, the result is the other one
//!    byte for byte (`unchanged_side_is_not_parsed`).
//! 2. It does not matter which side is called ours (`the_sides_have_no_rank`): the sides are put in the order of their content
//!    first, so that nothing below could tell.
//! 3. Text stays text, JSON lines stay JSON lines, and no line is a conflict marker (`text_stays_text`, `json_lines_stay_json`).
//! 4. Additions of a side are there, in that side's order; lines that one side removed and the other left alone are gone
//!    (`merge_loses_and_revives_no_line`, `no_event_is_lost_and_none_comes_back`).
//! 5. Taking in the same change a second time changes nothing (`change_merged_twice_is_merged_once`,
//!    `paragraph_merged_twice_is_merged_once`, `event_merged_twice_is_merged_once`). For text this is so as far
//!    as its lines can be told apart: if a side adds a line that the base has elsewhere, or the base has it twice, the result cannot
//!    show which of them was meant. Blank lines, rules and fences are told apart by the line before them. Lines that were
//!    moved are told apart (`lines_put_elsewhere_are_taken_in_once`).
//! 6. Three devices get the same lines in every order of merging, and the same bytes if their additions are list items
//!    or events (`three_devices_come_to_the_same_lines`, `three_devices_come_to_the_same_list`,
//!    `three_devices_come_to_the_same_events`).
//!
//! 7. For every kind, on files as they are written: all of this, and frontmatter, JSON and YAML that parsed still do
//!    (`laws/kinds.rs`). A text that is merged again with either side stays as it is.
//! 8. Real files come out as a person would have it (`golden.rs`, `tests/fixtures/merge`).
//!
//! The rules are made of few parts: [`keyed`] says which elements stay and in which order, [`outline`] applies it to text under headings,
//! [`tree`] to data, [`fields`] to frontmatter; [`lines`] is for everything else. [`style`] removes and restores line endings, accents and byte-order marks.
//! If a rule cannot read a text, it merges by lines. Data that it cannot read stays whole.
//!
//! The existence of a file is not decided here.

mod blanks;
mod commitments;
mod digest;
mod document;
mod fields;
mod items;
mod json;
mod json_lines;
mod keyed;
mod lines;
mod moment;
pub(crate) mod note;
mod numbers;
mod outline;
mod pieces;
mod sections;
mod state;
mod style;
mod texts;
mod tree;
mod yaml;

use std::borrow::Cow;

pub(crate) use self::commitments::{Parts as ItemParts, id as item_id, reworded, words_of};
pub(crate) use self::items::{link_target, words as item_words};
use haversack_store::{Bytes, InvalidLocator, Locator, MAX_SEGMENT_BYTES};

use self::outline::Newest;
use self::style::{Plain, Style};
use crate::kind::Kinds;

/// One side of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side<'a> {
    /// The file's content on this side.
    pub bytes: &'a [u8],
    /// The device's name for people. It decides nothing.
    pub device: &'a str,
}

/// How a file merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// By the fields at its top and the lines below them: facts, notes, other text.
    Prose,
    /// By the links of its entries.
    Index,
    /// By day and heading, the newest day where the file has it: above, if it does not tell.
    Log,
    /// By day and heading; new days go on top, newest first, in any order of the older days.
    Prepend,
    /// By heading.
    Threads,
    /// By title, in use or not.
    Callbacks,
    /// By item, pending or consumed.
    CarryForward,
    /// By id or words, open or delivered.
    Commitments,
    /// By session and heading.
    Digest,
    /// By item, with the counts of its headings made new.
    Summary,
    /// By the day that each part comes from.
    RollUp,
    /// By events, one to a line, each of which stands for itself.
    JsonLines,
    /// By path, in JSON.
    Json,
    /// By path, in YAML.
    Yaml,
    /// By members, one to a line.
    Set,
    /// The further of two marks.
    Cursor,
    /// Not at all: one content stays, the other becomes a copy beside it.
    Whole,
}

impl Rule {
    /// Every rule, with the name that it has in tables.
    pub const ALL: &[(&str, Rule)] = &[
        ("prose", Rule::Prose),
        ("index", Rule::Index),
        ("log", Rule::Log),
        ("prepend", Rule::Prepend),
        ("threads", Rule::Threads),
        ("callbacks", Rule::Callbacks),
        ("carry-forward", Rule::CarryForward),
        ("commitments", Rule::Commitments),
        ("digest", Rule::Digest),
        ("summary", Rule::Summary),
        ("roll-up", Rule::RollUp),
        ("json-lines", Rule::JsonLines),
        ("json", Rule::Json),
        ("yaml", Rule::Yaml),
        ("set", Rule::Set),
        ("cursor", Rule::Cursor),
        ("whole", Rule::Whole),
    ];

    /// Returns how a file merges, by its name and everything it holds or held: the base, if there is one, and both sides.
    ///
    /// That is the rule that it states, else that of its kind, by the table that is compiled in; see [`Kinds::rule`] for another.
    pub fn of<'a>(locator: &Locator, contents: impl IntoIterator<Item = &'a [u8]>) -> Rule {
        Kinds::built_in().rule(locator, contents)
    }

    /// Returns the rule that a text states; data have no place to state one.
    pub fn stated(name: &str) -> Option<Rule> {
        let known = Rule::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, rule)| *rule).filter(|rule| rule.is_of_texts())
    }

    /// Returns true if it is for texts that can have a frontmatter.
    pub fn is_of_texts(self) -> bool {
        match self {
            Rule::Prose
            | Rule::Index
            | Rule::Log
            | Rule::Prepend
            | Rule::Threads
            | Rule::Callbacks
            | Rule::CarryForward
            | Rule::Commitments
            | Rule::Digest
            | Rule::Summary
            | Rule::RollUp => true,
            Rule::JsonLines | Rule::Json | Rule::Yaml | Rule::Set | Rule::Cursor | Rule::Whole => false,
        }
    }

    /// Returns the name that the rule has in tables.
    pub fn name(self) -> &'static str {
        Rule::ALL.iter().find(|(_, rule)| *rule == self).expect("every rule has a name").0
    }
}

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The merged content.
    pub bytes: Bytes,
    /// The other content of a file that merges not at all: it becomes a copy beside it, see [`conflict_name`].
    pub copy: Option<Bytes>,
    /// True if a passage could not be reconciled and is there twice.
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
        Rule::Whole => whole(first.bytes, second.bytes),
        Rule::JsonLines => json_lines::merge(base.unwrap_or_default(), first.bytes, second.bytes),
        Rule::Json | Rule::Yaml => {
            data(rule, base, first, second).unwrap_or_else(|| whole(first.bytes, second.bytes))
        }
        _ => typed(rule, base, first, second)
            .unwrap_or_else(|| lines::merge(base.unwrap_or_default(), first, second)),
    }
}

/// A text of one side.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    text: &'a str,
    device: &'a str,
}

/// The result for two texts.
#[derive(Debug)]
struct Outcome {
    text: String,
    both_kept: bool,
}

/// Merges parsed texts, and writes the result in the file's style; `None` if they cannot be parsed.
fn typed(rule: Rule, base: Option<&[u8]>, first: Side<'_>, second: Side<'_>) -> Option<Merged> {
    let base = match base {
        Some(bytes) => Some(Plain::read(bytes)?),
        None => None,
    };
    let sides = [Plain::read(first.bytes)?, Plain::read(second.bytes)?];
    let style = Style::merged(base.as_ref().map(|base| base.style), sides[0].style, sides[1].style);
    let parts = [
        Part { text: &sides[0].text, device: first.device },
        Part { text: &sides[1].text, device: second.device },
    ];
    let base = base.as_ref().map(|base| &*base.text);
    let by_rule = |base: Option<&str>, parts: [Part<'_>; 2]| {
        let merged = by_rule(rule, base, parts);
        // A text that we cannot parse is merged by lines.
        merged.or_else(|| Some(by_lines(base.unwrap_or_default(), parts[0], parts[1])))
    };
    let Outcome { text, both_kept } = three(base, parts, &by_rule)?;
    Some(Merged { bytes: style.write(text), copy: None, both_kept })
}

fn by_rule(rule: Rule, base: Option<&str>, parts: [Part<'_>; 2]) -> Option<Outcome> {
    let in_document = |body: document::Body<'_>| document::merge(base, parts, body);
    match rule {
        Rule::Prose
            if [base, Some(parts[0].text), Some(parts[1].text)]
                .into_iter()
                .flatten()
                .any(crate::document::begins_with_rule) =>
        {
            in_document(&|base, [first, second]| Some(by_paragraphs(base.unwrap_or_default(), first, second)))
        }
        Rule::Prose => Some(by_lines(base.unwrap_or_default(), parts[0], parts[1])),
        Rule::Index => in_document(&items::index),
        Rule::Log => in_document(&|base, parts| sections::merge(base, parts, Newest::First)),
        Rule::Prepend => in_document(&|base, parts| sections::merge(base, parts, Newest::AlwaysFirst)),
        Rule::Threads => in_document(&|base, parts| sections::merge(base, parts, Newest::Last)),
        Rule::RollUp => in_document(&sections::roll_up),
        Rule::Callbacks => in_document(&items::callbacks),
        Rule::CarryForward => in_document(&items::carry_forward),
        Rule::Commitments => in_document(&commitments::merge),
        Rule::Digest => digest::merge(base, parts),
        Rule::Summary => in_document(&items::summary),
        Rule::Set => Some(state::set(base, parts)),
        Rule::Cursor => Some(state::cursor(parts)),
        Rule::JsonLines | Rule::Json | Rule::Yaml | Rule::Whole => None,
    }
}

/// Merges data by path; `None` if it can only be kept whole.
fn data(rule: Rule, base: Option<&[u8]>, first: Side<'_>, second: Side<'_>) -> Option<Merged> {
    let is_blank = |bytes: &&[u8]| bytes.iter().all(u8::is_ascii_whitespace);
    let base_bytes = base.filter(|base| !is_blank(base));
    let base = match base_bytes {
        Some(bytes) => Some(Plain::read(bytes)?),
        None => None,
    };
    let sides = [Plain::read(first.bytes)?, Plain::read(second.bytes)?];
    let style = Style::merged(base.as_ref().map(|base| base.style), sides[0].style, sides[1].style);
    let texts = base.iter().chain(&sides).map(|plain| &*plain.text);
    let (text, lost) = match rule {
        Rule::Json => {
            let Some(trees) = texts.clone().map(json::read).collect::<Option<Vec<_>>>() else {
                // Content that is not JSON is text. JSON above our limits is kept whole.
                let is_json = texts.clone().all(json::is_json);
                return (!is_json).then(|| lines::merge(base_bytes.unwrap_or_default(), first, second));
            };
            let grown = grown(&trees)?;
            (json::write(&grown.tree), grown.lost)
        }
        _ => {
            let yamls = texts.map(yaml::read).collect::<Option<Vec<_>>>()?;
            let has_rule = yamls.iter().any(|yaml| yaml.has_rule);
            let trees: Vec<tree::Tree<'_>> = yamls.into_iter().map(|yaml| yaml.tree).collect();
            let grown = grown(&trees)?;
            (yaml::write(&yaml::Yaml { tree: grown.tree, has_rule }), grown.lost)
        }
    };
    let copy = lost.map(|side| Bytes::copy_from_slice([first, second][side].bytes));
    Some(Merged { bytes: style.write(text), both_kept: copy.is_some(), copy })
}

/// Merges trees: the base, if there is one, and both sides.
fn grown<'a>(trees: &[tree::Tree<'a>]) -> Option<tree::Grown<'a>> {
    match trees {
        [base, first, second] => Some(tree::merge(Some(base), [first, second])),
        [first, second] => Some(tree::merge(None, [first, second])),
        _ => None,
    }
}

/// Merges two texts, unless there is nothing to merge.
fn three(base: Option<&str>, [first, second]: [Part<'_>; 2], merge: document::Body<'_>) -> Option<Outcome> {
    let unchanged = |part: Part<'_>| Some(Outcome { text: part.text.to_owned(), both_kept: false });
    if first.text == second.text || base == Some(second.text) {
        return unchanged(first);
    }
    if base == Some(first.text) {
        return unchanged(second);
    }
    // The lower part can tell the sides apart, so order them by content.
    if first.text < second.text { merge(base, [first, second]) } else { merge(base, [second, first]) }
}

/// Merges two texts by their lines.
fn by_lines(base: &str, first: Part<'_>, second: Part<'_>) -> Outcome {
    let lines = |_: Option<&str>, parts: [Part<'_>; 2]| {
        let [first, second] = parts.map(|part| Side { bytes: part.text.as_bytes(), device: part.device });
        let merged = lines::merge(base.as_bytes(), first, second);
        let text = String::from_utf8(merged.bytes.into()).expect("lines of texts are text");
        Some(Outcome { text, both_kept: merged.both_kept })
    };
    three(Some(base), [first, second], &lines).expect("lines can always be merged")
}

/// Merges two texts by their lines, in which blank lines only part paragraphs.
fn by_paragraphs(base: &str, first: Part<'_>, second: Part<'_>) -> Outcome {
    let without_blanks = [base, first.text, second.text].map(blanks::left_out);
    if without_blanks.iter().all(|text| matches!(text, Cow::Borrowed(_))) {
        return by_lines(base, first, second);
    }
    let [base_lines, first_lines, second_lines] = &without_blanks;
    let sides = [Part { text: first_lines, ..first }, Part { text: second_lines, ..second }];
    let Outcome { text, both_kept } = by_lines(base_lines, sides[0], sides[1]);
    // Drop these copies: they are as long as the texts themselves.
    drop(without_blanks);
    Outcome { text: blanks::put_back(&text, base, [first.text, second.text]), both_kept }
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
        // A name that only begins with a dot has no extension, and neither has one that fills the name.
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
/// Smaller elements after a head go with it. So each element stands where the greatest before it in its own sequence
/// belongs; that is the same for three sequences in every order of interleaving, as long as no two heads are equal.
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
