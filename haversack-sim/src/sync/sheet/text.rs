//! Text, as a user writes it: items under headings, below fields.

use std::ops::Range;

use super::Wish;
use crate::random::Random;
use crate::sync::unit::{key, key_in, units};

/// How an item is written that has a key and a unit.
type Item = fn(&str, &str) -> String;

/// The name of a field that every memory has.
pub(super) const DESCRIPTION: &str = "description: ";

/// A sort of text.
#[derive(Debug)]
pub(super) struct Text {
    /// The `type` in the fields; `None` if there are no fields.
    fields: Option<&'static str>,
    /// The text of a new file below the fields.
    start: &'static str,
    /// Headings that a user adds with the first item below them.
    headings: &'static [&'static str],
    item: Item,
    adds: Adds,
}

/// The place of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Adds {
    Anywhere,
    AtTheEnd,
    /// Items go anywhere, new headings above the others.
    HeadingsOnTop,
    /// Anywhere below the fields that another program wrote.
    BelowFields,
}

impl Text {
    const fn new(fields: Option<&'static str>, start: &'static str, item: Item) -> Text {
        Text { fields, start, headings: &[], item, adds: Adds::Anywhere }
    }

    /// Items, and nothing else.
    pub(super) const fn lines(item: Item) -> Text {
        Text::new(None, "", item)
    }

    /// Items that come one after the other.
    pub(super) const fn events(item: Item) -> Text {
        Text { adds: Adds::AtTheEnd, ..Text::new(None, "", item) }
    }

    /// Items somewhere below the first line.
    pub(super) const fn under(start: &'static str, item: Item) -> Text {
        Text::new(None, start, item)
    }

    /// Items below fields, and below headings if there are any.
    pub(super) const fn below_fields(of_type: &'static str, start: &'static str, item: Item) -> Text {
        Text::new(Some(of_type), start, item)
    }

    /// Items below fields and headings, which come with their first item.
    pub(super) const fn by_day(of_type: &'static str, headings: &'static [&'static str], item: Item) -> Text {
        Text { headings, ..Text::new(Some(of_type), "", item) }
    }

    /// Items below headings, which come with their first item.
    pub(super) const fn in_sections(headings: &'static [&'static str], item: Item) -> Text {
        Text { headings, adds: Adds::BelowFields, ..Text::new(None, "", item) }
    }

    /// Items below fields and headings; a new heading comes on top, with its first item.
    pub(super) const fn by_day_on_top(
        of_type: &'static str,
        headings: &'static [&'static str],
        item: Item,
    ) -> Text {
        Text { adds: Adds::HeadingsOnTop, ..Text::by_day(of_type, headings, item) }
    }

    /// Returns what a text becomes.
    pub(super) fn edit(&self, wish: Wish, before: &str, unit: &str, random: &mut Random) -> String {
        let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
        let top = end_of_fields(&lines);
        let items = items(&lines);
        let one = (!items.is_empty()).then(|| items[random.between(0, items.len() - 1)].clone());
        match (wish, one) {
            (Wish::Remove, Some(item)) if !lines[item.start].starts_with(DESCRIPTION) => {
                lines.drain(item);
            }
            (Wish::Reword, Some(item)) => {
                let line = &lines[item.start];
                let new = match line.split_once(": ") {
                    Some((name, _)) if item.start < top => format!("{name}: {unit}"),
                    _ => (self.item)(key_in(line).unwrap_or(&key(unit)), unit),
                };
                lines.splice(item, [new]);
            }
            (Wish::Move, Some(item)) if item.start >= top => {
                let item: Vec<String> = lines.drain(item).collect();
                let at = self.place(&lines, random);
                lines.splice(at..at, item);
            }
            _ => self.add(&mut lines, unit, random),
        }
        let lines = if self.start.contains("(0)") { counted(lines) } else { lines };
        lines.iter().flat_map(|line| [line, "\n"]).collect()
    }

    fn add(&self, lines: &mut Vec<String>, unit: &str, random: &mut Random) {
        let key = key(unit);
        if lines.iter().all(|line| line.trim().is_empty()) {
            *lines = self.begun(unit);
            // A fact is what it says at the top.
            if self.fields.is_some() && self.headings.is_empty() && self.start.is_empty() {
                return;
            }
        }
        let top = end_of_fields(lines);
        let choice = random.between(0, 7);
        if top > 0 && choice == 0 && self.adds != Adds::BelowFields {
            lines.insert(top - 1, format!("{key}: {unit}"));
            return;
        }
        let item = (self.item)(&key, unit);
        let missing = self.headings.iter().find(|heading| !lines.iter().any(|line| line == *heading));
        let has_any = lines[top..].iter().any(|line| line.starts_with('#'));
        if let Some(heading) = missing
            && (choice < 3 || !has_any)
        {
            let at = if self.adds == Adds::HeadingsOnTop { top } else { lines.len() };
            lines.splice(at..at, ["".to_owned(), (*heading).to_owned(), item]);
            return;
        }
        let at = self.place(lines, random);
        lines.insert(at, item);
    }

    /// Returns a new file, without an item.
    fn begun(&self, unit: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(of_type) = self.fields {
            let description =
                if self.start.is_empty() && self.headings.is_empty() { unit } else { "the lighthouse" };
            lines.extend([
                "---".to_owned(),
                "name: lighthouse".to_owned(),
                format!("{DESCRIPTION}{description}"),
            ]);
            lines.extend([format!("type: {of_type}"), "---".to_owned()]);
        }
        lines.extend(self.start.lines().map(str::to_owned));
        lines
    }

    /// Returns where an item can go: below the fields and the first heading, and not into another item.
    fn place(&self, lines: &[String], random: &mut Random) -> usize {
        if self.adds == Adds::AtTheEnd {
            return lines.len();
        }
        let top = end_of_fields(lines);
        let is_heading = |line: &String| line.starts_with(['#', '\0']);
        let first = lines[top..].iter().position(is_heading).map_or(top, |at| top + at + 1);
        let places: Vec<usize> = (first..=lines.len())
            .filter(|at| lines.get(*at).is_none_or(|line| !line.starts_with(' ')))
            .collect();
        places[random.between(0, places.len() - 1)]
    }
}

/// Returns how many of the lines are fields and their rules.
fn end_of_fields(lines: &[String]) -> usize {
    match lines {
        [first, rest @ ..] if first == "---" => {
            rest.iter().position(|line| line == "---").map_or(0, |end| end + 2)
        }
        _ => 0,
    }
}

/// Returns the lines of each item: one with a unit in it, and what is indented below it.
fn items(lines: &[String]) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        match items.last_mut() {
            Some(item) if item.end == number && line.starts_with(' ') => item.end += 1,
            _ if units(line).next().is_some() => items.push(number..number + 1),
            _ => {}
        }
    }
    items
}

/// Returns lines with headings like `## Handled (0)` that say how many items are below them.
fn counted(mut lines: Vec<String>) -> Vec<String> {
    for at in 0..lines.len() {
        let Some((name, _)) = lines[at].strip_prefix("## ").and_then(|heading| heading.split_once(" ("))
        else {
            continue;
        };
        let below = lines[at + 1..].iter().take_while(|line| !line.starts_with('#'));
        let count = below.filter(|line| line.starts_with("- ")).count();
        lines[at] = format!("## {name} ({count})");
    }
    lines
}
