//! Finds the conflicts of a text by their notes.

use std::collections::HashMap;
use std::ops::Range;

use haversack_store::Locator;

use super::noted_text::{NotePassages, NotedText, indentation, unindented};
use super::{Conflict, ConflictLines, Lines, Passage, PassageLines, id};
use crate::display::one_line;
use crate::document::Document;
use crate::merge::note::{self, About, Note};
use crate::merge::{reworded, words_of};

/// Returns the conflicts in a text, in the order of their notes.
pub fn find(locator: &Locator, text: &str) -> Vec<Conflict> {
    if memchr::memmem::find(text.as_bytes(), note::ALSO.as_bytes()).is_none() {
        return Vec::new();
    }
    let text_with_notes = NotedText::read(text);
    let mut found: Vec<(usize, Vec<Passage>, ConflictLines)> = text_with_notes.below();
    let mut items: Vec<(usize, Vec<usize>)> = Vec::new();
    for (at, note) in &text_with_notes.notes {
        match (note.about, text_with_notes.head(*at, note)) {
            (About::Words, Some(head)) => match items.iter_mut().find(|(other, _)| *other == head) {
                Some((_, notes)) => notes.push(*at),
                None => items.push((head, vec![*at])),
            },
            (About::Field { lines }, _) => found.push(text_with_notes.field(*at, note, lines)),
            (About::Lines { .. } | About::Words, _) => {}
        }
    }
    found.extend(items.into_iter().map(|(head, notes)| text_with_notes.words(head, notes)));
    found.sort_by_key(|(at, ..)| *at);
    let mut seen: HashMap<String, usize> = HashMap::new();
    let conflict = |(_, passages, place): (usize, Vec<Passage>, ConflictLines)| {
        let said: Vec<String> =
            passages.iter().map(|passage| format!("{:?}{}", passage.device, passage.text)).collect();
        let nth = seen.entry(said.join("\0")).or_default();
        *nth += 1;
        let id = id(locator, &said, *nth);
        Conflict { id, locator: locator.clone(), passages, copy: None, place }
    };
    found.into_iter().map(conflict).collect()
}

impl<'a> NotedText<'a> {
    /// Returns the conflicts whose passages stand one below the other.
    ///
    /// When a third device joins a conflict, the merge treats both passages as one passage of the next note. We return such a pile of
    /// passages as one conflict.
    fn below(&self) -> Vec<(usize, Vec<Passage>, ConflictLines)> {
        let mut nodes = self.nodes();
        nodes.sort_by_key(|node| (std::cmp::Reverse(node.span().len()), node.at));
        let mut found = Vec::new();
        for number in 0..nodes.len() {
            if nodes[number].is_part {
                continue;
            }
            let (mut leaves, mut notes) = (Vec::new(), Vec::new());
            collect_pile(&mut nodes, number, None, &mut leaves, &mut notes);
            notes.sort_unstable();
            // If one item is kept, it moves left to the indentation of the first passage.
            let left = leaves.first().map_or(0, |leaf: &PassageLines| {
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
            found.push((notes[0], passages, ConflictLines::Below { leaves, notes }));
        }
        found
    }

    fn passage(&self, device: Option<String>, lines: Range<usize>, text: &str) -> Passage {
        let lines = (!lines.is_empty()).then(|| Lines { first: lines.start + 1, last: lines.end });
        Passage {
            // The name comes from a note in the file, which any program can write.
            device: device.map(|device| one_line(&device).into_owned()),
            lines,
            text: text.strip_suffix('\n').map_or(text, |text| text.trim_end_matches('\r')).to_owned(),
        }
    }

    /// Returns the conflict of an item whose wording differs between devices.
    fn words(&self, head: usize, notes: Vec<usize>) -> (usize, Vec<Passage>, ConflictLines) {
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
        (notes[0], passages, ConflictLines::Words { head, notes, others })
    }

    /// Returns the conflict of a field of the frontmatter.
    fn field(&self, at: usize, note: &Note<'_>, lines: usize) -> (usize, Vec<Passage>, ConflictLines) {
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
        (at, passages, ConflictLines::Field { note: at, quoted, field })
    }

    /// Returns the lines of a field at the top level or below `metadata`.
    fn field_lines(&self, name: &str) -> Option<Range<usize>> {
        let raw = Document::read(self.text).field(name)?.raw;
        let start = raw.as_ptr() as usize - self.text.as_ptr() as usize;
        let first = self.text[..start].split_inclusive('\n').count();
        Some(first..first + raw.split_inclusive('\n').count())
    }
}

/// Gathers the passages and notes of a pile.
fn collect_pile(
    nodes: &mut [NotePassages<'_>],
    number: usize,
    under: Option<(String, usize)>,
    leaves: &mut Vec<PassageLines>,
    notes: &mut Vec<usize>,
) {
    nodes[number].is_part = true;
    notes.push(nodes[number].at);
    let own = (nodes[number].note.device.to_owned(), nodes[number].note.indent);
    for (lines, under) in [(nodes[number].above.clone(), under), (nodes[number].below.clone(), Some(own))] {
        let is_pile = |node: &NotePassages<'_>| !node.is_part && node.span() == lines && !lines.is_empty();
        match nodes.iter().position(is_pile) {
            Some(pile) => collect_pile(nodes, pile, under, leaves, notes),
            None => {
                let (device, indent) = under.map_or((None, 0), |(device, indent)| (Some(device), indent));
                leaves.push(PassageLines { lines, device, indent });
            }
        }
    }
}
