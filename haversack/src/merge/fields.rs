//! The frontmatter of two sides, merged by field.
//!
//! A field is identified by its name, at the top or below `metadata`: Claude Code moves fields that it does not know, and a moved
//! field is still the same. Values are compared by meaning, so that quotes and brackets are no changes.
//!
//! A field has one value. If both sides changed it, the newest of two times and all items of two lists are taken. Of other
//! values the longer stays; the other is handed back, and goes into the text under a note. `modified` and `originSessionId`, which
//! Claude Code stamps on every file that it writes, never clash: the newest stays, and the session that goes with it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use super::keyed::{Element, Judge, Named, found, identified, order, survivors, three_way_set};
use super::moment;
use crate::document::{Entry, Frontmatter, ListItem, METADATA, Value, list_items};

/// The result for two frontmatters.
pub(super) struct Fields {
    /// All of it with its rules; empty if no field is left.
    pub(super) text: String,
    /// The values that did not stay, as they were written.
    pub(super) others: Vec<Other>,
}

/// A value that did not stay.
pub(super) struct Other {
    pub(super) device: String,
    pub(super) lines: String,
}

/// Fields that hold a time, of which the newest counts.
const TIMES: &[&str] =
    &["modified", "modified_at", "updated", "updated_at", "last_updated", "last_seen", "last_referenced"];

/// Fields that belong to the newest of those times.
const STAMPS: &[&str] = &["originSessionId", "node_type"];

const TOP: u32 = 0;
const BELOW: u32 = 1;

/// Returns true if a field holds a time of which the newest counts.
pub(super) fn is_time(name: &str) -> bool {
    TIMES.contains(&name)
}

/// Merges two frontmatters that both changed; `None` if they cannot be put into one.
pub(super) fn merge(
    base: Option<&Frontmatter<'_>>,
    sides: [Option<&Frontmatter<'_>>; 2],
    devices: [&str; 2],
) -> Option<Fields> {
    let inputs = [base, sides[0], sides[1]].map(|frontmatter| frontmatter.map(Lines::of).unwrap_or_default());
    let forms = inputs.iter().filter_map(|input| input.metadata).collect::<Vec<_>>();
    if forms.contains(&Metadata::Opaque) && forms.iter().any(|form| *form != Metadata::Opaque) {
        return None;
    }
    let indent = forms
        .iter()
        .filter_map(|form| if let Metadata::Fields(indent) = form { Some(*indent) } else { None })
        .min();
    let [base, first, second] = identified(found(inputs.map(|input| input.named)));
    let modified = [&first, &second].map(|side| {
        let time = side.iter().find(|element| element.value.name.as_deref() == Some("modified"));
        time.map(|element| element.value.plain())
    });
    let mut judge = Choosing { devices, newer: newer(&modified), others: Vec::new() };
    let kept = survivors(&base, [&first, &second], &mut judge);
    let in_place = |place: u32| {
        let ids = |input: &[Element<Line<'_>>]| -> Vec<u32> {
            let stays = |element: &&Element<Line<'_>>| {
                element.place == place && kept.get(element.id).is_some_and(|kept| kept.place == place)
            };
            input.iter().filter(stays).map(|element| element.id).collect()
        };
        let compare = |one: u32, other: u32| kept[one].value.cmp(&kept[other].value);
        order(&ids(&base), [&ids(&first), &ids(&second)], &compare).into_owned()
    };
    let mut text = String::new();
    let below: String =
        in_place(BELOW).iter().map(|id| kept[*id].value.indented(indent.unwrap_or(2))).collect();
    let mut is_below_written = below.is_empty();
    for id in in_place(TOP) {
        let line = &kept[id].value;
        if line.is_header {
            if !below.is_empty() {
                text.push_str(&line.indented(0));
                text.push_str(&below);
                is_below_written = true;
            }
        } else {
            text.push_str(&line.indented(0));
        }
    }
    if !is_below_written {
        text.push_str(&format!("{METADATA}:\n{below}"));
    }
    if !text.is_empty() {
        text = format!("---\n{text}---\n");
    }
    Some(Fields { text, others: judge.others })
}

/// Returns which side has the newer time.
fn newer(times: &[Option<Cow<'_, str>>; 2]) -> Option<usize> {
    match times {
        [Some(first), Some(second)] => match moment::compare(first, second) {
            Ordering::Less => Some(1),
            Ordering::Equal => None,
            Ordering::Greater => Some(0),
        },
        [Some(_), None] => Some(0),
        [None, Some(_)] => Some(1),
        [None, None] => None,
    }
}

/// How the fields below `metadata` are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metadata {
    Fields(usize),
    Opaque,
}

#[derive(Default)]
struct Lines<'a> {
    named: Vec<Named<'a, Line<'a>>>,
    metadata: Option<Metadata>,
}

impl<'a> Lines<'a> {
    fn of(frontmatter: &'a Frontmatter<'_>) -> Lines<'a> {
        let mut lines = Lines::default();
        for entry in &frontmatter.entries {
            let children =
                entry.field().filter(|field| field.name == METADATA).map(|field| (field, field.children()));
            match children {
                Some((field, Some(children))) => {
                    let (head, below) = field.raw.split_once('\n').unwrap_or((field.raw, ""));
                    let first = below.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                    let indent = first.len() - first.trim_start_matches(' ').len();
                    lines.metadata = Some(Metadata::Fields(indent));
                    lines.add(
                        Line { name: Some(METADATA.to_owned()), raw: Cow::Borrowed(head), is_header: true },
                        TOP,
                    );
                    for child in children {
                        lines.add(Line::of(&child, indent), BELOW);
                    }
                }
                Some((_, None)) => {
                    lines.metadata = Some(Metadata::Opaque);
                    lines.add(Line::of(entry, 0), TOP);
                }
                None => lines.add(Line::of(entry, 0), TOP),
            }
        }
        lines
    }

    fn add(&mut self, line: Line<'a>, place: u32) {
        self.named.push(Named {
            identity: line.name.clone().map(Cow::Owned),
            text: line.raw.clone(),
            place,
            value: line,
        });
    }
}

/// A field, or a line between fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line<'a> {
    /// Its lines without indentation and the last ending.
    raw: Cow<'a, str>,
    name: Option<String>,
    /// True if it is the line above the fields of `metadata`.
    is_header: bool,
}

impl<'a> Line<'a> {
    fn of(entry: &Entry<'a>, indent: usize) -> Line<'a> {
        let raw = entry.raw();
        let raw = raw.strip_suffix('\n').unwrap_or(raw);
        let unindented = |line: &str| line.get(indent..).unwrap_or_default().to_owned();
        let raw = match indent {
            0 => Cow::Borrowed(raw),
            _ => Cow::Owned(raw.split('\n').map(unindented).collect::<Vec<_>>().join("\n")),
        };
        Line { raw, name: entry.field().map(|field| field.name.to_owned()), is_header: false }
    }

    fn indented(&self, indent: usize) -> String {
        let space = " ".repeat(indent);
        let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("{space}{line}\n") };
        self.raw.split('\n').map(line).collect()
    }

    fn after_colon(&self) -> &str {
        self.raw.split_once(':').map_or("", |(_, rest)| rest)
    }

    fn value(&self) -> Value {
        Value::read(self.after_colon())
    }

    /// Returns the value without quotes.
    fn plain(&self) -> Cow<'_, str> {
        match self.value() {
            Value::Text(text) => Cow::Owned(text),
            Value::List(_) | Value::Other => Cow::Borrowed(self.after_colon()),
        }
    }
}

/// How one value is chosen.
struct Choosing<'d> {
    devices: [&'d str; 2],
    newer: Option<usize>,
    others: Vec<Other>,
}

impl<'a> Judge<Line<'a>> for Choosing<'_> {
    fn same(&self, one: &Line<'a>, other: &Line<'a>) -> bool {
        one.raw == other.raw
            || match (one.value(), other.value()) {
                (Value::Other, _) | (_, Value::Other) => false,
                (one, other) => one == other,
            }
    }

    /// Times only move forward, on either side.
    fn regardless(&self, first: &Line<'a>, second: &Line<'a>) -> Option<Line<'a>> {
        let is_time = first.name.as_deref().is_some_and(is_time);
        is_time.then(|| {
            let newest =
                moment::compare(&first.plain(), &second.plain()).then_with(|| first.raw.cmp(&second.raw));
            if newest.is_lt() { second.clone() } else { first.clone() }
        })
    }

    fn both(&mut self, base: Option<&Line<'a>>, first: &Line<'a>, second: &Line<'a>) -> Line<'a> {
        let name = first.name.as_deref().unwrap_or_default();
        if STAMPS.contains(&name) {
            return match self.newer {
                Some(0) => first.clone(),
                Some(_) => second.clone(),
                None => first.clone().max(second.clone()),
            };
        }
        if let Some(list) = joined_lists(base, first, second) {
            return list;
        }
        let weight = |line: &Line<'_>| (line.raw.len(), line.raw.to_string());
        let (stays, goes, device) = match weight(first) >= weight(second) {
            true => (first, second, self.devices[1]),
            false => (second, first, self.devices[0]),
        };
        self.others.push(Other { device: device.to_owned(), lines: goes.raw.to_string() });
        stays.clone()
    }

    fn place(&self, first: u32, second: u32) -> u32 {
        first.max(second)
    }
}

/// Joins two lists; `None` if one is not a list.
fn joined_lists<'a>(base: Option<&Line<'a>>, first: &Line<'a>, second: &Line<'a>) -> Option<Line<'a>> {
    let items = |line: &Line<'a>| list_items(line.after_colon());
    let (first_items, second_items) = (items(first)?, items(second)?);
    let base_items = base.and_then(items).unwrap_or_default();
    let mut spellings: HashMap<&str, &str> = HashMap::new();
    for ListItem { plain, raw } in first_items.iter().chain(&second_items) {
        let spelling = spellings.entry(plain).or_insert(raw);
        *spelling = raw.as_str().min(spelling);
    }
    let [base_plain, first_plain, second_plain] = [&base_items, &first_items, &second_items]
        .map(|items| items.iter().map(|item| item.plain.as_str()).collect::<Vec<_>>());
    let all = three_way_set(&base_plain, [&first_plain, &second_plain]);
    let name = first.name.clone().unwrap_or_default();
    let raws: Vec<&str> = all.iter().map(|item| spellings[item]).collect();
    let is_in_brackets = |line: &Line<'_>| line.after_colon().trim_start().starts_with('[');
    let raw = match is_in_brackets(first) && is_in_brackets(second) {
        true => format!("{name}: [{}]", raws.join(", ")),
        false if raws.is_empty() => format!("{name}: []"),
        false => format!(
            "{name}:\n{}",
            raws.iter().map(|item| format!("  - {item}")).collect::<Vec<_>>().join("\n")
        ),
    };
    Some(Line { raw: Cow::Owned(raw), name: first.name.clone(), is_header: false })
}
