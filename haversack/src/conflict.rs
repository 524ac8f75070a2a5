//! What a merge could not make one: found in the files, and settled.
//!
//! A conflict is two passages in one place, or more if further devices met there. Nothing is remembered about it: the [`note`] above
//! the second passage says how far both go, and a file that does not merge has its copy beside it. So a conflict is also settled
//! by whoever just edits the file, and a line that only looks like a note is at worst listed.
//!
//! # Invariants
//! 1. What a merge kept twice is found (`laws/kinds.rs`, for every kind).
//! 2. Settling changes nothing but the passages, their notes and the blank lines between them, and the conflict is gone afterwards
//!    (`laws/kinds.rs`).
//! 3. To keep the passage of one device is to merge as if the other had not touched the place (`laws/kinds.rs`).

use std::collections::HashMap;
use std::ops::Range;

use haversack_store::Locator;

use crate::display::one_line;
use crate::document::{Document, Entry, Field, METADATA};
use crate::merge::note::{self, About, Mark, Note};
use crate::merge::{conflict_name, reworded, words_of};

/// The letters of an id: no digits, so that it is no number, and no vowels, so that it is no word.
const LETTERS: &[u8; 16] = b"bcdfghjklmnpqrst";

/// How many letters an id has.
const ID_LETTERS: usize = 6;

/// Passages of which one is to stay, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// What it is known by as long as its passages are what they are.
    pub id: String,
    /// The file.
    pub locator: Locator,
    /// What each device has there, at least two.
    pub passages: Vec<Passage>,
    /// The file that holds the second passage, if it is one of its own.
    pub copy: Option<Copy>,
    place: Place,
}

/// What one device has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// What the device is called; of the first nobody knows.
    pub device: Option<String>,
    /// Where it stands in the file, counted from 1; nowhere if it is empty.
    pub lines: Option<Lines>,
    /// What it says, without the last line ending; of a file with a copy the lines that the other does not have.
    pub text: String,
}

/// Lines of a file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The first.
    pub first: usize,
    /// The last, which is one of them.
    pub last: usize,
}

/// The file beside another that holds what did not become its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Where it is.
    pub locator: Locator,
    /// Its size.
    pub size_bytes: usize,
    /// The size of the file it is a copy of; `None` if that is not there any more.
    pub original_bytes: Option<usize>,
}

/// What stays of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Everything; only the notes go.
    Both,
    /// One passage, counted from 1.
    Passage(usize),
}

/// Where a conflict is, in lines counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Passages one below the other, and the notes between them.
    Below { leaves: Vec<Leaf>, notes: Vec<usize> },
    /// A field of the frontmatter, and a value of it in the text.
    Field { note: usize, quoted: Range<usize>, field: Option<Range<usize>> },
    /// An item, and its words as others have them, each below a note.
    Words { head: usize, notes: Vec<usize>, others: Vec<usize> },
    /// A file beside.
    Copy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Leaf {
    lines: Range<usize>,
    device: Option<String>,
    /// How many spaces the merge put before its lines.
    indent: usize,
}

/// Returns the conflicts in a text, in the order of their notes.
pub fn find(locator: &Locator, text: &str) -> Vec<Conflict> {
    if memchr::memmem::find(text.as_bytes(), note::ALSO.as_bytes()).is_none() {
        return Vec::new();
    }
    let page = Page::read(text);
    let mut found: Vec<(usize, Vec<Passage>, Place)> = page.below();
    let mut items: Vec<(usize, Vec<usize>)> = Vec::new();
    for (at, note) in &page.notes {
        match (note.about, page.head(*at, note)) {
            (About::Words, Some(head)) => match items.iter_mut().find(|(other, _)| *other == head) {
                Some((_, notes)) => notes.push(*at),
                None => items.push((head, vec![*at])),
            },
            (About::Field { lines }, _) => found.push(page.field(*at, note, lines)),
            (About::Lines { .. } | About::Words, _) => {}
        }
    }
    found.extend(items.into_iter().map(|(head, notes)| page.words(head, notes)));
    found.sort_by_key(|(at, ..)| *at);
    let mut seen: HashMap<String, usize> = HashMap::new();
    let conflict = |(_, passages, place): (usize, Vec<Passage>, Place)| {
        let said: Vec<String> =
            passages.iter().map(|passage| format!("{:?}{}", passage.device, passage.text)).collect();
        let nth = seen.entry(said.join("\0")).or_default();
        *nth += 1;
        let id = id(locator, &said, *nth);
        Conflict { id, locator: locator.clone(), passages, copy: None, place }
    };
    found.into_iter().map(conflict).collect()
}

/// Returns the conflict of a file with its copy; `None` if it is none, or none any more.
///
/// The name of a copy holds the hash of its content, so one that was changed has become a file of its own.
pub fn of_copy(
    copy: &Locator,
    content: &[u8],
    original: &Locator,
    original_content: Option<&[u8]>,
) -> Option<Conflict> {
    if conflict_name(original, content).ok()? != *copy {
        return None;
    }
    let as_text =
        |bytes| std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).unwrap_or_default();
    let [one, other] = [original_content.unwrap_or_default(), content].map(as_text);
    let passage = |text| Passage { device: None, lines: None, text };
    let state = original_content.map(|bytes| blake3::hash(bytes).to_hex().to_string()).unwrap_or_default();
    Some(Conflict {
        id: id(original, &[copy.to_string(), state], 1),
        locator: original.clone(),
        passages: vec![passage(own_lines(one, other)), passage(own_lines(other, one))],
        copy: Some(Copy {
            locator: copy.clone(),
            size_bytes: content.len(),
            original_bytes: original_content.map(<[u8]>::len),
        }),
        place: Place::Copy,
    })
}

/// Returns the lines of a text that another does not have.
fn own_lines(text: &str, other: &str) -> String {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    other.lines().for_each(|line| *counts.entry(line).or_default() += 1);
    let mut own = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match counts.get_mut(line) {
            Some(count) if *count > 0 => *count -= 1,
            _ => own.push(line),
        }
    }
    own.join("\n")
}

/// Returns the name of the file that a copy would be of, if its name is that of a copy.
pub fn original_name(copy: &Locator) -> Option<Locator> {
    let name = copy.name();
    let (stem, rest) = name.rsplit_once(".conflict-")?;
    let (hash, extension) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let is_hash = hash.len() == 8 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let parent = copy.parent().unwrap_or_else(Locator::root);
    is_hash.then(|| parent.child(&format!("{stem}{extension}")).ok()).flatten()
}

/// Returns the text in which a conflict was found with only what is to stay; `None` if there is no such passage.
pub fn settle(text: &str, conflict: &Conflict, keep: Keep) -> Option<String> {
    let number = match keep {
        Keep::Both => None,
        Keep::Passage(number) => Some(number.checked_sub(1).filter(|at| *at < conflict.passages.len())?),
    };
    let page = Page::read(text);
    let mut edit = Edit::new(&page);
    match &conflict.place {
        Place::Below { leaves, notes } => {
            edit.remove(notes.iter().copied());
            for (at, leaf) in leaves.iter().enumerate() {
                match number {
                    Some(number) if number == at => edit.unindent(leaf.lines.clone(), leaf.indent),
                    Some(_) => edit.remove(leaf.lines.clone()),
                    None => {}
                }
            }
        }
        Place::Words { head, notes, others } => {
            edit.remove(notes.iter().copied());
            if let Some(number) = number {
                edit.remove(others.iter().copied());
                edit.lines[*head] = conflict.passages[number].text.clone() + ending(page.lines[*head]);
            }
        }
        Place::Field { note, quoted, field } => {
            edit.remove([*note]);
            if number.is_some() {
                edit.remove(quoted.clone());
            }
            if number == Some(1) {
                edit.set_field(field.clone(), &conflict.passages[1].text);
            }
        }
        Place::Copy => return None,
    }
    Some(edit.written())
}

fn id(locator: &Locator, said: &[String], nth: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(locator.as_str().as_bytes());
    for text in said {
        hasher.update(&[0]).update(text.as_bytes());
    }
    hasher.update(&[0]).update(nth.to_string().as_bytes());
    let hash = hasher.finalize();
    hash.as_bytes()[..ID_LETTERS].iter().map(|byte| char::from(LETTERS[usize::from(byte % 16)])).collect()
}

/// A text in lines, with the notes in it.
struct Page<'a> {
    text: &'a str,
    lines: Vec<&'a str>,
    notes: Vec<(usize, Note<'a>)>,
    /// How many lines the frontmatter has that is understood, with its rules.
    fields_end: usize,
    /// What is between the first two rules, understood or not.
    between_rules: Range<usize>,
}

/// A note between two passages.
struct Node<'n> {
    at: usize,
    note: &'n Note<'n>,
    above: Range<usize>,
    below: Range<usize>,
    is_part: bool,
}

impl Node<'_> {
    fn span(&self) -> Range<usize> {
        self.above.start.min(self.at)..self.below.end.max(self.at + 1)
    }
}

impl<'a> Page<'a> {
    fn read(text: &'a str) -> Page<'a> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let document = Document::read(text);
        let fields_end = match document.frontmatter {
            Some(_) => text[..text.len() - document.body.len()].split_inclusive('\n').count(),
            None => 0,
        };
        let is_rule = |line: &&str| line.trim_start_matches('\u{feff}').trim_end() == "---";
        let between_rules = match lines.split_first() {
            Some((first, rest)) if is_rule(first) => 1..rest.iter().position(&is_rule).map_or(1, |at| at + 1),
            _ => 0..0,
        };
        let notes = lines.iter().enumerate().filter_map(|(at, line)| Some((at, note::read(line)?)));
        let is_in_place = |(at, note): &(usize, Note<'_>)| match note.mark {
            Mark::Comment => between_rules.contains(at),
            Mark::Quote => *at >= fields_end,
        };
        let notes = notes.filter(is_in_place).collect();
        Page { text, lines, notes, fields_end, between_rules }
    }

    fn is_blank(&self, at: usize) -> bool {
        self.lines[at].trim().is_empty()
    }

    /// Returns lines without blank ones at both ends.
    fn trimmed(&self, lines: Range<usize>) -> Range<usize> {
        let Some(start) = lines.clone().find(|at| !self.is_blank(*at)) else {
            return lines.start..lines.start;
        };
        let end = lines.clone().rfind(|at| !self.is_blank(*at)).map_or(start, |at| at + 1);
        start..end
    }

    /// Returns the notes that part the lines above from those below.
    fn nodes(&self) -> Vec<Node<'_>> {
        let node = |(at, note): &'_ (usize, Note<'a>)| -> Option<(usize, usize, usize)> {
            let is_alone = note.about == About::Words && self.head(*at, note).is_none();
            match note.about {
                About::Lines { above, below } => Some((*at, above, below)),
                // An item that lost its head.
                About::Words if is_alone => Some((*at, 1, 1)),
                About::Words | About::Field { .. } => None,
            }
        };
        let found = self.notes.iter().filter_map(|noted| Some((node(noted)?, &noted.1)));
        let found = found.map(|((at, above, below), note)| {
            let room = match note.mark {
                Mark::Comment => self.between_rules.clone(),
                Mark::Quote => self.fields_end..self.lines.len(),
            };
            let speaking = |at: &usize| !self.is_blank(*at);
            let start = (room.start..at).rev().filter(speaking).take(above).last().unwrap_or(at);
            let end = (at + 1..room.end).filter(speaking).take(below).last().map_or(at + 1, |last| last + 1);
            Node {
                at,
                note,
                above: self.trimmed(start..at),
                below: self.trimmed(at + 1..end),
                is_part: false,
            }
        });
        found.collect()
    }

    /// Returns the conflicts of passages that stand one below the other.
    ///
    /// Where a third device met two passages, both are one passage of the next note: such a pile is one conflict.
    fn below(&self) -> Vec<(usize, Vec<Passage>, Place)> {
        let mut nodes = self.nodes();
        nodes.sort_by_key(|node| (std::cmp::Reverse(node.span().len()), node.at));
        let mut found = Vec::new();
        for number in 0..nodes.len() {
            if nodes[number].is_part {
                continue;
            }
            let (mut leaves, mut notes) = (Vec::new(), Vec::new());
            gather(&mut nodes, number, None, &mut leaves, &mut notes);
            notes.sort_unstable();
            // What stands to the left of everything is where an item goes that is to stand alone.
            let left = leaves.first().map_or(0, |leaf: &Leaf| {
                leaf.lines.clone().map(|at| indentation(self.lines[at])).next().unwrap_or(0)
            });
            for leaf in &mut leaves {
                leaf.indent = leaf.indent.saturating_sub(left);
            }
            let passages = leaves.iter().map(|leaf| {
                let text: String =
                    leaf.lines.clone().map(|at| unindented(self.lines[at], leaf.indent)).collect();
                self.passage(leaf.device.clone(), leaf.lines.clone(), &text)
            });
            let passages = passages.collect();
            found.push((notes[0], passages, Place::Below { leaves, notes }));
        }
        found
    }

    fn passage(&self, device: Option<String>, lines: Range<usize>, text: &str) -> Passage {
        let lines = (!lines.is_empty()).then(|| Lines { first: lines.start + 1, last: lines.end });
        Passage {
            // The note that names it is in the file, where anybody can write.
            device: device.map(|device| one_line(&device).into_owned()),
            lines,
            text: text.strip_suffix('\n').map_or(text, |text| text.trim_end_matches('\r')).to_owned(),
        }
    }

    /// Returns the item that a note is in.
    fn head(&self, at: usize, note: &Note<'_>) -> Option<usize> {
        let is_outside = |at: &usize| !self.is_blank(*at) && indentation(self.lines[*at]) < note.indent;
        (self.fields_end..at).rev().find(is_outside)
    }

    fn words(&self, head: usize, notes: Vec<usize>) -> (usize, Vec<Passage>, Place) {
        let line = self.lines[head];
        let mut passages = vec![self.passage(None, head..head + 1, line)];
        let mut others = Vec::new();
        for (at, note) in self.notes.iter().filter(|(at, _)| notes.contains(at)) {
            let other = self.trimmed(at + 1..self.lines.len()).start;
            let is_other = self
                .lines
                .get(other)
                .is_some_and(|line| indentation(line) >= note.indent && note::read(line).is_none());
            let lines = if is_other { other..other + 1 } else { other..other };
            let said = if is_other { words_of(self.lines[other].trim()) } else { "" };
            let text = reworded(line.trim_end_matches(['\r', '\n']), said);
            passages.push(self.passage(Some(note.device.to_owned()), lines.clone(), &text));
            others.extend(lines);
        }
        (notes[0], passages, Place::Words { head, notes, others })
    }

    fn field(&self, at: usize, note: &Note<'_>, lines: usize) -> (usize, Vec<Passage>, Place) {
        let is_quoted = |at: &usize| {
            self.lines[*at].trim_start().starts_with('>') && note::read(self.lines[*at]).is_none()
        };
        let count = (at + 1..self.lines.len()).take(lines).take_while(is_quoted).count();
        let quoted = at + 1..at + 1 + count;
        let text: String = quoted
            .clone()
            .map(|at| {
                let line = self.lines[at].trim_start().trim_start_matches('>');
                line.strip_prefix(' ').unwrap_or(line)
            })
            .collect();
        let field = text.split_once(':').and_then(|(name, _)| self.field_lines(name));
        let now: String = field.clone().unwrap_or(0..0).map(|at| self.lines[at]).collect();
        let indent = now.lines().next().map_or(0, indentation);
        let now: String = now.split_inclusive('\n').map(|line| unindented(line, indent)).collect();
        let passages = vec![
            self.passage(None, field.clone().unwrap_or(0..0), &now),
            self.passage(Some(note.device.to_owned()), quoted.clone(), &text),
        ];
        (at, passages, Place::Field { note: at, quoted, field })
    }

    /// Returns the lines of a field, be it at the top or below `metadata`.
    fn field_lines(&self, name: &str) -> Option<Range<usize>> {
        let frontmatter = Document::read(self.text).frontmatter?;
        let named = |entries: &[Entry<'a>]| -> Option<Field<'a>> {
            entries.iter().filter_map(Entry::field).find(|field| field.name == name).cloned()
        };
        let below = || named(&named_metadata(&frontmatter.entries)?.children()?);
        let raw = named(&frontmatter.entries).or_else(below)?.raw;
        let start = raw.as_ptr() as usize - self.text.as_ptr() as usize;
        let first = self.text[..start].split_inclusive('\n').count();
        Some(first..first + raw.split_inclusive('\n').count())
    }
}

fn named_metadata<'a>(entries: &[Entry<'a>]) -> Option<Field<'a>> {
    entries.iter().filter_map(Entry::field).find(|field| field.name == METADATA).cloned()
}

/// Gathers the passages and notes of a pile.
fn gather(
    nodes: &mut [Node<'_>],
    number: usize,
    under: Option<(String, usize)>,
    leaves: &mut Vec<Leaf>,
    notes: &mut Vec<usize>,
) {
    nodes[number].is_part = true;
    notes.push(nodes[number].at);
    let own = (nodes[number].note.device.to_owned(), nodes[number].note.indent);
    for (lines, under) in [(nodes[number].above.clone(), under), (nodes[number].below.clone(), Some(own))] {
        let is_pile = |node: &Node<'_>| !node.is_part && node.span() == lines && !lines.is_empty();
        match nodes.iter().position(is_pile) {
            Some(pile) => gather(nodes, pile, under, leaves, notes),
            None => {
                let (device, indent) = under.map_or((None, 0), |(device, indent)| (Some(device), indent));
                leaves.push(Leaf { lines, device, indent });
            }
        }
    }
}

/// What is to become of a text.
struct Edit<'p, 'a> {
    page: &'p Page<'a>,
    lines: Vec<String>,
    is_removed: Vec<bool>,
}

impl<'p, 'a> Edit<'p, 'a> {
    fn new(page: &'p Page<'a>) -> Edit<'p, 'a> {
        let lines: Vec<String> = page.lines.iter().map(|line| (*line).to_owned()).collect();
        Edit { page, is_removed: vec![false; lines.len()], lines }
    }

    fn remove(&mut self, lines: impl IntoIterator<Item = usize>) {
        lines.into_iter().for_each(|at| self.is_removed[at] = true);
    }

    fn unindent(&mut self, lines: Range<usize>, indent: usize) {
        for at in lines {
            self.lines[at] = unindented(self.page.lines[at], indent).to_owned();
        }
    }

    /// Puts a value in the place of a field, or at the end of the frontmatter.
    fn set_field(&mut self, field: Option<Range<usize>>, value: &str) {
        let newline = if self.page.text.contains("\r\n") { "\r\n" } else { "\n" };
        let indent =
            field.clone().and_then(|mut lines| lines.next()).map_or(0, |at| indentation(self.page.lines[at]));
        let written =
            |line: &str| format!("{}{line}{newline}", " ".repeat(if line.is_empty() { 0 } else { indent }));
        let value: String = value.lines().map(written).collect();
        match field {
            Some(field) => {
                self.lines[field.start] = value;
                self.remove(field.start + 1..field.end);
            }
            None if self.page.fields_end > 0 => self.lines[self.page.fields_end - 1].insert_str(0, &value),
            None if value.is_empty() => {}
            None => {
                let mark = if self.page.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
                if let Some(first) = self.lines.iter_mut().next() {
                    first.insert_str(mark, &format!("---{newline}{value}---{newline}"));
                }
            }
        }
    }

    /// Counts again in the notes around what was removed.
    fn count_again(&mut self) {
        for node in self.page.nodes().iter().filter(|node| !self.is_removed[node.at]) {
            let left = |lines: Range<usize>| {
                lines.filter(|at| !self.page.is_blank(*at) && !self.is_removed[*at]).count()
            };
            let was = |lines: Range<usize>| lines.filter(|at| !self.page.is_blank(*at)).count();
            let (above, below) = (left(node.above.clone()), left(node.below.clone()));
            if (above, below) != (was(node.above.clone()), was(node.below.clone())) {
                let note = note::write(node.note.mark, node.note.device, About::Lines { above, below });
                let line = self.page.lines[node.at];
                self.lines[node.at] = format!("{}{note}{}", " ".repeat(node.note.indent), ending(line));
            }
        }
    }

    /// Writes the text; around what was removed the greater gap stays.
    fn written(mut self) -> String {
        self.count_again();
        let mut text = String::with_capacity(self.page.text.len());
        let mut at = 0;
        while at < self.lines.len() {
            let is_open = |at: &usize| self.is_removed[*at] || self.page.is_blank(*at);
            let end = (at..self.lines.len()).find(|at| !is_open(at)).unwrap_or(self.lines.len());
            let first = (at..end).find(|at| self.is_removed[*at]);
            let last = (at..end).rfind(|at| self.is_removed[*at]);
            let gap = match (first, last) {
                (Some(first), Some(last)) => {
                    let (above, below) = (at..first, last + 1..end);
                    let is_below_greater = above.len() < below.len() && at > 0;
                    if is_below_greater || end == self.lines.len() { below } else { above }
                }
                _ => at..end,
            };
            gap.for_each(|at| text.push_str(&self.lines[at]));
            if let Some(line) = self.lines.get(end) {
                text.push_str(line);
            }
            at = end + 1;
        }
        if !self.page.text.ends_with('\n') {
            let length = text.strip_suffix('\n').map_or(text.len(), |text| text.trim_end_matches('\r').len());
            text.truncate(length);
        }
        text
    }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn unindented(line: &str, indent: usize) -> &str {
    &line[indentation(line).min(indent)..]
}

fn ending(line: &str) -> &str {
    &line[line.trim_end_matches(['\r', '\n']).len()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Conflict> {
        find(&Locator::parse("lamp.md").expect("a locator"), text)
    }

    /// Returns what the passages of each conflict say, parted by bars.
    fn shown(text: &str) -> Vec<String> {
        let device = |passage: &Passage| {
            passage.device.as_ref().map(|device| format!("{device}: ")).unwrap_or_default()
        };
        let shown = |conflict: &Conflict| {
            let passages: Vec<String> = conflict
                .passages
                .iter()
                .map(|passage| format!("{}{}", device(passage), passage.text))
                .collect();
            passages.join(" | ").replace('\n', "/")
        };
        found(text).iter().map(shown).collect()
    }

    /// Settles the first conflict in every way: both, 1, 2, and so on.
    fn settled(text: &str) -> Vec<String> {
        let conflict = &found(text)[0];
        let ways = std::iter::once(Keep::Both).chain((1..=conflict.passages.len()).map(Keep::Passage));
        assert_eq!(settle(text, conflict, Keep::Passage(conflict.passages.len() + 1)), None);
        assert_eq!(settle(text, conflict, Keep::Passage(0)), None);
        ways.map(|keep| settle(text, conflict, keep).expect("a passage")).collect()
    }

    #[test]
    fn lines_one_below_the_other() {
        let text = "Top.\n12 s\n> [also, from desktop:]\n15 s\nWhite.\n";
        assert_eq!(shown(text), ["12 s | desktop: 15 s"]);
        assert_eq!(found(text)[0].passages[1].lines, Some(Lines { first: 4, last: 4 }));
        assert_eq!(
            settled(text),
            ["Top.\n12 s\n15 s\nWhite.\n", "Top.\n12 s\nWhite.\n", "Top.\n15 s\nWhite.\n"]
        );
        let text = "a\n\nb\n\n> [also, from desktop, 1 line for the 2 above:]\nc\n\nd";
        assert_eq!(shown(text), ["a//b | desktop: c"]);
        assert_eq!(settled(text), ["a\n\nb\n\nc\n\nd", "a\n\nb\n\nd", "c\n\nd"]);
        let text = "a\r\n> [also, from desktop, 2 lines for the 1 above:]\r\nb\r\nc";
        assert_eq!(settled(text), ["a\r\nb\r\nc", "a", "b\r\nc"]);
    }

    #[test]
    fn comments_in_a_frontmatter_that_is_not_understood() {
        let text = "---\nname: *a\n# [also, from desktop, 2 lines for the 9 above:]\nname: *b\n---\n# [also, from desktop:]\n";
        assert_eq!(shown(text), ["name: *a | desktop: name: *b"], "a heading is none");
        assert_eq!(settled(text)[2], "---\nname: *b\n---\n# [also, from desktop:]\n");
    }

    #[test]
    fn items_and_what_is_below_them() {
        let text = "- [L](l.md) — 10\n  > [also, from desktop:]\n  - [L](l.md) — 15\n- x\n";
        assert_eq!(shown(text), ["- [L](l.md) — 10 | desktop: - [L](l.md) — 15"]);
        assert_eq!(
            settled(text),
            [
                "- [L](l.md) — 10\n  - [L](l.md) — 15\n- x\n",
                "- [L](l.md) — 10\n- x\n",
                "- [L](l.md) — 15\n- x\n"
            ]
        );
    }

    #[test]
    fn words_of_an_item_keep_what_became_of_it() {
        let text = "## Delivered\n- [x] 2026-10-02: [c-1] Paint door ✓\n  > [also, from tablet, in other words:]\n  - [c-1] Paint it\n  > [also, from laptop, in other words:]\n  - [c-1] Paint red\n  More.\n";
        assert_eq!(
            shown(text),
            [
                "- [x] 2026-10-02: [c-1] Paint door ✓ | tablet: - [x] 2026-10-02: [c-1] Paint it ✓ | laptop: - [x] 2026-10-02: [c-1] Paint red ✓"
            ]
        );
        let [both, one, _, three] = &settled(text)[..] else { panic!("four ways") };
        assert_eq!(
            both,
            "## Delivered\n- [x] 2026-10-02: [c-1] Paint door ✓\n  - [c-1] Paint it\n  - [c-1] Paint red\n  More.\n"
        );
        assert_eq!(one, "## Delivered\n- [x] 2026-10-02: [c-1] Paint door ✓\n  More.\n");
        assert_eq!(three, "## Delivered\n- [x] 2026-10-02: [c-1] Paint red ✓\n  More.\n");
    }

    #[test]
    fn fields_are_set_where_they_are() {
        let body = "\n> [also, from laptop, as a field:]\n> status: \"old\"\n\nText.\n";
        for (fields, now, set) in [
            ("---\nname: a\nstatus: new\n---\n", "status: new", "---\nname: a\nstatus: \"old\"\n---\n"),
            (
                "---\nmetadata:\n  status: new\n  x: 1\n---\n",
                "status: new",
                "---\nmetadata:\n  status: \"old\"\n  x: 1\n---\n",
            ),
            (
                "---\nstatus:\n  - a\n  - b\nx: 1\n---\n",
                "status:/  - a/  - b",
                "---\nstatus: \"old\"\nx: 1\n---\n",
            ),
            ("---\nname: a\n---\n", "", "---\nname: a\nstatus: \"old\"\n---\n"),
            ("", "", "---\nstatus: \"old\"\n---\n"),
        ] {
            let text = format!("{fields}{body}");
            assert_eq!(shown(&text), [format!("{now} | laptop: status: \"old\"")]);
            let [both, one, two] = &settled(&text)[..] else { panic!("three ways") };
            assert_eq!(both, &format!("{fields}\n> status: \"old\"\n\nText.\n"));
            assert_eq!(one, &format!("{fields}\nText.\n"));
            assert_eq!(two, &format!("{set}\nText.\n"));
        }
        let text = "---\ntags: a\n---\n> [also, from laptop, 3 lines as a field:]\n> tags:\n>   - a\n>   - b\n> Said somebody.";
        assert_eq!(settled(text)[2], "---\ntags:\n  - a\n  - b\n---\n> Said somebody.");
    }

    #[test]
    fn three_devices_make_a_pile() {
        let text =
            "12\n> [also, from desktop:]\n15\n> [also, from tablet, 1 line for the 3 above:]\n20\nrest\n";
        assert_eq!(shown(text), ["12 | desktop: 15 | tablet: 20"]);
        assert_eq!(settled(text), ["12\n15\n20\nrest\n", "12\nrest\n", "15\nrest\n", "20\nrest\n"]);
        let text = "- c\n  > [also, from tablet, 3 lines for the 1 above:]\n  - a\n    > [also, from desktop:]\n    - b\n      more\n";
        assert_eq!(shown(text), ["- c | tablet: - a | desktop: - b"]);
        assert_eq!(settled(text)[3], "- b\n      more\n");
    }

    #[test]
    fn a_conflict_within_a_passage_is_settled_on_its_own() {
        let text = "a\nb\n> [also, from desktop:]\nB\nc\n> [also, from tablet, 1 line for the 5 above:]\nd\n";
        assert_eq!(shown(text), ["b | desktop: B", "a/b/> [also, from desktop:]/B/c | tablet: d"]);
        let settled = settled(text);
        assert_eq!(settled[1], "a\nb\nc\n> [also, from tablet, 1 line for the 3 above:]\nd\n");
        assert_eq!(shown(&settled[1]), ["a/b/c | tablet: d"]);
        assert_eq!(shown(&settled[0]), ["a/b/B/c | tablet: d"]);
    }

    #[test]
    fn what_only_looks_like_a_note_does_no_harm() {
        for text in [
            "",
            "> [also, from desktop]\n",
            "He said:\n> also, from desktop:\nyes\n",
            "# [also, from desktop:]\n",
            "x > [also, from desktop:]\n",
        ] {
            assert_eq!(shown(text), [""; 0], "{text}");
        }
        // Nothing is above or below it, or less than it says.
        for (text, one, two) in [
            ("> [also, from the archive:]\n", "", ""),
            ("> [also, from the archive:]\nIt burned.\n", "", "It burned.\n"),
            (
                "---\nname: a\n---\n> [also, from the archive:]\nIt burned.\n",
                "---\nname: a\n---\n",
                "---\nname: a\n---\nIt burned.\n",
            ),
            ("a\n> [also, from the archive, 7 lines for the 9 above:]\nb\n", "a\n", "b\n"),
            (
                "a\n> [also, from the archive, 18446744073709551615 lines for the 18446744073709551615 above:]\n",
                "a\n",
                "",
            ),
            ("> [also, from the archive, in other words:]\n", "", ""),
            ("> [also, from the archive, 2 lines as a field:]\n\n> no", "> no", "> no"),
        ] {
            assert_eq!(settled(text)[1..], [one, two], "{text}");
        }
    }

    #[test]
    fn ids_are_of_what_is_said() {
        let one = "12\n> [also, from desktop:]\n15\n";
        let ids = |text: &str| found(text).into_iter().map(|conflict| conflict.id).collect::<Vec<_>>();
        let id = ids(one);
        assert_eq!(id[0].len(), ID_LETTERS);
        assert!(id[0].bytes().all(|byte| LETTERS.contains(&byte)), "{id:?}");
        assert_eq!(ids(&format!("Above.\n\n{one}Below.\n")), id);
        assert_ne!(ids(&one.replace("15", "16")), id);
        let twice = ids(&format!("{one}and\n{one}"));
        assert_eq!(twice[0], id[0]);
        assert_ne!(twice[1], id[0]);
        assert_ne!(find(&Locator::parse("lens.md").expect("a locator"), one)[0].id, id[0]);
    }

    #[test]
    fn copies_are_known_by_name_and_content() {
        let locator = |name: &str| Locator::parse(name).expect("a locator");
        let original = locator("a/sketch.png");
        let copy = conflict_name(&original, b"\0new").expect("a name");
        assert_eq!(original_name(&copy), Some(original.clone()));
        for no in [
            "sketch.png",
            "a.conflict-1234567.png",
            "a.conflict-1234567g.png",
            "conflict-12345678",
            "a.conflict-12345678x",
        ] {
            assert_eq!(original_name(&locator(no)), None, "{no}");
        }
        let conflict = of_copy(&copy, b"\0new", &original, Some(b"\0older")).expect("a conflict");
        assert_eq!(
            conflict.copy,
            Some(Copy { locator: copy.clone(), size_bytes: 4, original_bytes: Some(6) })
        );
        assert_eq!(of_copy(&copy, b"\0changed", &original, None), None);
        let gone = of_copy(&copy, b"\0new", &original, None).expect("a conflict");
        assert_ne!(gone.id, conflict.id);
        assert_eq!(settle("", &gone, Keep::Both), None);
        let json = locator("x.json");
        let [ours, theirs] =
            ["{\n  \"a\": 1,\n  \"b\": 1\n}\n", "{\n  \"a\": 2,\n  \"b\": 1\n}\n"].map(str::as_bytes);
        let copy = conflict_name(&json, theirs).expect("a name");
        let conflict = of_copy(&copy, theirs, &json, Some(ours)).expect("a conflict");
        assert_eq!(
            conflict.passages.iter().map(|passage| passage.text.trim()).collect::<Vec<_>>(),
            ["\"a\": 1,", "\"a\": 2,"]
        );
    }
}
