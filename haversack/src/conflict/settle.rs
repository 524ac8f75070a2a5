//! Settles a conflict: writes the text with only the kept passages.

use std::ops::Range;

use super::noted_text::{NotedText, ending, indentation, unindented};
use super::{Conflict, ConflictLines, Keep};
use crate::merge::note::{self, About};

/// Returns the text with only the kept passages of a conflict; `None` if there is no such passage.
pub fn settle(text: &str, conflict: &Conflict, keep: Keep) -> Option<String> {
    let number = match keep {
        Keep::Both => None,
        Keep::Passage(number) => Some(number.checked_sub(1).filter(|at| *at < conflict.passages.len())?),
    };
    let text_with_notes = NotedText::read(text);
    let mut edit = TextEdit::new(&text_with_notes);
    match &conflict.place {
        ConflictLines::Below { leaves, notes } => {
            edit.remove(notes.iter().copied());
            for (at, leaf) in leaves.iter().enumerate() {
                match number {
                    Some(number) if number == at => edit.unindent(leaf.lines.clone(), leaf.indent),
                    Some(_) => edit.remove(leaf.lines.clone()),
                    None => {}
                }
            }
        }
        ConflictLines::Words { head, notes, others } => {
            edit.remove(notes.iter().copied());
            if let Some(number) = number {
                edit.remove(others.iter().copied());
                edit.lines[*head] =
                    conflict.passages[number].text.clone() + ending(text_with_notes.lines[*head]);
            }
        }
        ConflictLines::Field { note, quoted, field } => {
            edit.remove([*note]);
            if number.is_some() {
                edit.remove(quoted.clone());
            }
            if number == Some(1) {
                edit.set_field(field.clone(), &conflict.passages[1].text);
            }
        }
        ConflictLines::Copy => return None,
    }
    Some(edit.written())
}

/// An edit of a text: changed and removed lines.
struct TextEdit<'p, 'a> {
    text_with_notes: &'p NotedText<'a>,
    lines: Vec<String>,
    is_removed: Vec<bool>,
}

impl<'p, 'a> TextEdit<'p, 'a> {
    fn new(text_with_notes: &'p NotedText<'a>) -> TextEdit<'p, 'a> {
        let lines: Vec<String> = text_with_notes.lines.iter().map(|line| (*line).to_owned()).collect();
        TextEdit { text_with_notes, is_removed: vec![false; lines.len()], lines }
    }

    fn remove(&mut self, lines: impl IntoIterator<Item = usize>) {
        lines.into_iter().for_each(|at| self.is_removed[at] = true);
    }

    fn unindent(&mut self, lines: Range<usize>, indent: usize) {
        for at in lines {
            self.lines[at] = unindented(self.text_with_notes.lines[at], indent).to_owned();
        }
    }

    /// Replaces a field, or adds it at the end of the frontmatter.
    fn set_field(&mut self, field: Option<Range<usize>>, value: &str) {
        let newline = if self.text_with_notes.text.contains("\r\n") { "\r\n" } else { "\n" };
        let indent = field
            .clone()
            .and_then(|mut lines| lines.next())
            .map_or(0, |at| indentation(self.text_with_notes.lines[at]));
        let written =
            |line: &str| format!("{}{line}{newline}", " ".repeat(if line.is_empty() { 0 } else { indent }));
        let value: String = value.lines().map(written).collect();
        match field {
            Some(field) => {
                self.lines[field.start] = value;
                self.remove(field.start + 1..field.end);
            }
            None if self.text_with_notes.fields_end > 0 => {
                self.lines[self.text_with_notes.fields_end - 1].insert_str(0, &value)
            }
            None if value.is_empty() => {}
            None => {
                let mark =
                    if self.text_with_notes.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
                if let Some(first) = self.lines.iter_mut().next() {
                    first.insert_str(mark, &format!("---{newline}{value}---{newline}"));
                }
            }
        }
    }

    /// Corrects the line counts of the remaining notes.
    fn correct_counts(&mut self) {
        for node in self.text_with_notes.nodes().iter().filter(|node| !self.is_removed[node.at]) {
            let left = |lines: Range<usize>| {
                lines.filter(|at| !self.text_with_notes.is_blank(*at) && !self.is_removed[*at]).count()
            };
            let was = |lines: Range<usize>| lines.filter(|at| !self.text_with_notes.is_blank(*at)).count();
            let (above, below) = (left(node.above.clone()), left(node.below.clone()));
            if (above, below) != (was(node.above.clone()), was(node.below.clone())) {
                let note = note::write(node.note.mark, node.note.device, About::Lines { above, below });
                let line = self.text_with_notes.lines[node.at];
                self.lines[node.at] = format!("{}{note}{}", " ".repeat(node.note.indent), ending(line));
            }
        }
    }

    /// Writes the text. Of the blank lines around removed lines, the longer run stays.
    fn written(mut self) -> String {
        self.correct_counts();
        let mut text = String::with_capacity(self.text_with_notes.text.len());
        let mut at = 0;
        while at < self.lines.len() {
            let is_open = |at: &usize| self.is_removed[*at] || self.text_with_notes.is_blank(*at);
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
        if !self.text_with_notes.text.ends_with('\n') {
            let length = text.strip_suffix('\n').map_or(text.len(), |text| text.trim_end_matches('\r').len());
            text.truncate(length);
        }
        text
    }
}
