//! Lists of items below headings, edited in place: commitments, and what is carried forward. Pure.
//!
//! ```text
//! ## Open                             a section, known by the first word of its heading
//! - 2026-11-18: mend the lamp ^c-4kx  an item, with the lines that are indented below it
//! - (none)                            a placeholder, which counts as nothing
//! ```
//!
//! Every line that no edit names stays as it is, in its place.

use std::ops::Range;

use crate::merge::item_words;

/// An item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its lines, without the end of the last.
    pub(crate) text: String,
    lines: Range<usize>,
}

/// A text in lines.
pub(crate) struct Checklist {
    lines: Vec<String>,
    line_end: &'static str,
}

impl Checklist {
    pub(crate) fn of(text: &str) -> Checklist {
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Checklist { lines: text.split_inclusive('\n').map(str::to_owned).collect(), line_end }
    }

    /// Returns the lines below a heading, up to the next heading; `None` if there is no such heading.
    fn section(&self, name: &str) -> Option<Range<usize>> {
        let heading = self.lines.iter().position(|line| is_heading(line, name))?;
        let below = &self.lines[heading + 1..];
        let end = below.iter().position(|line| line.starts_with('#')).unwrap_or(below.len());
        Some(heading + 1..heading + 1 + end)
    }

    /// Returns the items below a heading.
    pub(crate) fn items(&self, name: &str) -> Vec<Item> {
        let Some(section) = self.section(name) else { return Vec::new() };
        let mut items: Vec<Item> = Vec::new();
        let mut is_inside = false;
        for at in section {
            let line = self.lines[at].trim_end_matches(['\r', '\n']);
            if is_bullet(line) {
                is_inside = true;
                items.push(Item { text: line.to_owned(), lines: at..at + 1 });
            } else if is_inside && line.starts_with([' ', '\t', '>']) {
                let item = items.last_mut().expect("it is inside one");
                item.text.push('\n');
                item.text.push_str(line);
                item.lines.end = at + 1;
            } else if !line.trim().is_empty() {
                is_inside = false;
            }
        }
        items.retain(|item| item_words(&item.text).is_some());
        items
    }

    /// Removes an item.
    pub(crate) fn remove(&mut self, item: &Item) {
        self.lines.drain(item.lines.clone());
    }

    /// Adds an item at the end of a section.
    pub(crate) fn add_last(&mut self, name: &str, item: &str) {
        let section = self.made(name);
        let last = self.lines[section.clone()].iter().rposition(|line| !line.trim().is_empty());
        let at = section.start + last.map_or(0, |last| last + 1);
        self.insert(at, last.is_none(), item);
    }

    /// Adds an item at the beginning of a section.
    pub(crate) fn add_first(&mut self, name: &str, item: &str) {
        let section = self.made(name);
        let first = self.lines[section.clone()].iter().position(|line| is_bullet(line));
        match first {
            Some(first) => self.insert(section.start + first, false, item),
            None => self.add_last(name, item),
        }
    }

    /// Returns a section, adding it at the end of the text if need be; placeholders in it go.
    fn made(&mut self, name: &str) -> Range<usize> {
        if self.section(name).is_none() {
            self.end_last_line();
            if self.lines.last().is_some_and(|line| !line.trim().is_empty()) {
                self.lines.push(self.line_end.to_owned());
            }
            self.lines.push(format!("## {name}{}", self.line_end));
        }
        let section = self.section(name).expect("it is there");
        let is_placeholder = |line: &String| is_bullet(line) && item_words(line).is_none();
        if let Some(at) = self.lines[section].iter().position(is_placeholder) {
            let start = self.section(name).expect("it is there").start;
            self.lines.remove(start + at);
        }
        self.section(name).expect("it is there")
    }

    fn insert(&mut self, at: usize, is_first: bool, item: &str) {
        self.end_last_line();
        let mut lines: Vec<String> = item.lines().map(|line| format!("{line}{}", self.line_end)).collect();
        let is_before_heading = self.lines.get(at).is_some_and(|line| line.starts_with('#'));
        let is_after_heading = at > 0 && self.lines[at - 1].starts_with('#');
        let is_spaced = self.lines.get(at).is_some_and(|line| line.trim().is_empty());
        if is_first && is_after_heading && is_spaced && self.lines.len() > at + 1 {
            // The blank line below the heading stays above the next heading.
            self.lines.splice(at..at, lines);
            return;
        }
        if is_before_heading {
            lines.push(self.line_end.to_owned());
        }
        self.lines.splice(at..at, lines);
    }

    fn end_last_line(&mut self) {
        if let Some(last) = self.lines.last_mut()
            && !last.ends_with('\n')
        {
            last.push_str(self.line_end);
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.lines.concat()
    }
}

/// Tells whether a line is a heading whose first word is a name.
fn is_heading(line: &str, name: &str) -> bool {
    let rest = line.trim_start_matches('#');
    let first = rest.split_whitespace().next().unwrap_or_default();
    rest.len() < line.len() && first.trim_end_matches(':').eq_ignore_ascii_case(name)
}

/// Tells whether a line begins an item.
fn is_bullet(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match digits {
        0 => line.starts_with("- ") || line.starts_with("* ") || line.starts_with("+ "),
        _ => line[digits..].starts_with(". ") || line[digits..].starts_with(") "),
    }
}

/// Finds the one item that words or an id name: all of its words, or else words that no other item has.
pub(crate) fn find<'i>(items: &'i [Item], wanted: &str, id: impl Fn(&Item) -> Option<String>) -> Found<'i> {
    let wanted = wanted.trim().trim_start_matches('^');
    if wanted.is_empty() {
        return Found::Nothing;
    }
    if let Some(item) = items.iter().find(|item| id(item).is_some_and(|id| id.eq_ignore_ascii_case(wanted))) {
        return Found::One(item);
    }
    let words = |text: &str| item_words(text).map(|words| words.into_owned());
    let as_item = words(&format!("- {wanted}"));
    if let Some(item) = items.iter().find(|item| as_item.is_some() && words(&item.text) == as_item) {
        return Found::One(item);
    }
    let part = wanted.to_lowercase();
    let mut having = items.iter().filter(|item| item.text.to_lowercase().contains(&part));
    match (having.next(), having.next()) {
        (Some(item), None) => Found::One(item),
        (Some(_), Some(_)) => Found::Several,
        (None, _) => Found::Nothing,
    }
}

/// The item that a user named.
pub(crate) enum Found<'i> {
    One(&'i Item),
    Several,
    Nothing,
}

/// Returns a text of a person or a model as the words of an item: in one line, without what a list would read as something else.
pub(crate) fn as_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let harmless: String = line.chars().filter(|c| !crate::display::is_harmful(*c)).collect();
    harmless.trim_start_matches(['#', '>', '-', '*', '+', ' ']).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str, name: &str, item: &str) -> String {
        let mut list = Checklist::of(text);
        list.add_last(name, item);
        list.into_text()
    }

    #[test]
    fn items_are_added_where_people_would_put_them() {
        for (text, expected) in [
            ("", "## Open\n- new\n"),
            ("## Open\n", "## Open\n- new\n"),
            ("## Open\n\n## Delivered\n", "## Open\n- new\n\n## Delivered\n"),
            ("## Open\n## Delivered\n", "## Open\n- new\n\n## Delivered\n"),
            ("## Open\n- (none right now)\n\n## Delivered\n", "## Open\n- new\n\n## Delivered\n"),
            ("## Open\n- old\n  more\n\n## Delivered\n", "## Open\n- old\n  more\n- new\n\n## Delivered\n"),
            ("# Mine\n\nText", "# Mine\n\nText\n\n## Open\n- new\n"),
            ("## Open items:\r\n- old", "## Open items:\r\n- old\r\n- new\r\n"),
            ("## OPEN\n\n- old\n", "## OPEN\n\n- old\n- new\n"),
        ] {
            assert_eq!(added(text, "Open", "- new"), expected, "{text:?}");
        }
        let mut list = Checklist::of("## Open\n- old\n\n## Delivered\n");
        list.add_first("Open", "- new");
        list.add_first("Delivered", "- done");
        assert_eq!(list.into_text(), "## Open\n- new\n- old\n\n## Delivered\n- done\n");
    }

    #[test]
    fn items_have_their_lines_and_placeholders_are_none() {
        let text = "## Open\n\n- one\n  more\n\nProse.\n* two\n3. three\n- (none)\n-no item\n\n## Delivered\n- four\n";
        let list = Checklist::of(text);
        let items: Vec<String> = list.items("Open").into_iter().map(|item| item.text).collect();
        assert_eq!(items, ["- one\n  more", "* two", "3. three"]);
        assert_eq!(list.items("Closed"), []);
        let mut list = Checklist::of(text);
        let first = list.items("Open").swap_remove(0);
        list.remove(&first);
        assert_eq!(list.into_text(), text.replace("- one\n  more\n", ""));
    }

    #[test]
    fn words_of_others_cannot_be_a_heading_or_two_lines() {
        assert_eq!(as_words("## Delivered\n- all of it \u{1b}[2J"), "Delivered - all of it [2J");
        assert_eq!(as_words(" \n "), "");
    }
}
