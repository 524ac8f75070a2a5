//! The lines of a text, and the notes that merges left in it.

use std::ops::Range;

use crate::document::{Document, RuledText};
use crate::merge::note::{self, About, Mark, Note};

/// The lines of a text, and the notes that merges left in it.
pub(super) struct NotedText<'a> {
    pub(super) text: &'a str,
    pub(super) lines: Vec<&'a str>,
    pub(super) notes: Vec<(usize, Note<'a>)>,
    /// The number of lines of the frontmatter with its rules, if we can read it.
    pub(super) fields_end: usize,
    /// The lines between the first two rules, even if we cannot read them.
    pub(super) between_rules: Range<usize>,
}

/// A note, with the passages above and below it.
pub(super) struct NotePassages<'n> {
    pub(super) at: usize,
    pub(super) note: &'n Note<'n>,
    pub(super) above: Range<usize>,
    pub(super) below: Range<usize>,
    /// True once the note belongs to a pile.
    pub(super) is_part: bool,
}

impl NotePassages<'_> {
    pub(super) fn span(&self) -> Range<usize> {
        self.above.start.min(self.at)..self.below.end.max(self.at + 1)
    }
}

impl<'a> NotedText<'a> {
    pub(super) fn read(text: &'a str) -> NotedText<'a> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let document = Document::read(text);
        let fields_end = match document.frontmatter {
            Some(_) => text[..text.len() - document.body.len()].split_inclusive('\n').count(),
            None => 0,
        };
        let between_rules = match RuledText::split(text.trim_start_matches('\u{feff}')) {
            Some(ruled) => 1..1 + ruled.between.split_inclusive('\n').count(),
            None => 0..0,
        };
        let notes = lines.iter().enumerate().filter_map(|(at, line)| Some((at, note::read(line)?)));
        let is_in_place = |(at, note): &(usize, Note<'_>)| match note.mark {
            Mark::Comment => between_rules.contains(at),
            Mark::Quote => *at >= fields_end,
        };
        let notes = notes.filter(is_in_place).collect();
        NotedText { text, lines, notes, fields_end, between_rules }
    }

    pub(super) fn is_blank(&self, at: usize) -> bool {
        self.lines[at].trim().is_empty()
    }

    /// Returns lines without blank ones at both ends.
    pub(super) fn trimmed(&self, lines: Range<usize>) -> Range<usize> {
        let Some(start) = lines.clone().find(|at| !self.is_blank(*at)) else {
            return lines.start..lines.start;
        };
        let end = lines.clone().rfind(|at| !self.is_blank(*at)).map_or(start, |at| at + 1);
        start..end
    }

    /// Returns the notes between two passages.
    pub(super) fn nodes(&self) -> Vec<NotePassages<'_>> {
        let node = |(at, note): &'_ (usize, Note<'a>)| -> Option<(usize, usize, usize)> {
            let is_alone = note.about == About::Words && self.head(*at, note).is_none();
            match note.about {
                About::Lines { above, below } => Some((*at, above, below)),
                // The item above this note is gone.
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
            NotePassages {
                at,
                note,
                above: self.trimmed(start..at),
                below: self.trimmed(at + 1..end),
                is_part: false,
            }
        });
        found.collect()
    }

    /// Returns the line of the item that contains a note.
    pub(super) fn head(&self, at: usize, note: &Note<'_>) -> Option<usize> {
        let is_outside = |at: &usize| !self.is_blank(*at) && indentation(self.lines[*at]) < note.indent;
        (self.fields_end..at).rev().find(is_outside)
    }
}

pub(super) fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

pub(super) fn unindented(line: &str, indent: usize) -> &str {
    &line[indentation(line).min(indent)..]
}

pub(super) fn ending(line: &str) -> &str {
    &line[line.trim_end_matches(['\r', '\n']).len()..]
}
