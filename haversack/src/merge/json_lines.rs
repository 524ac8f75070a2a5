//! JSON lines: a set of events, one to a line, that has an order.
//!
//! An event is its line; the same line twice is two events. So an event that a side changed is one that it removed and one
//! that it added, and the set merges by counting: a line that a side has more often than the base is there as often as on the
//! side that has most of it, any other as often as on the side that has least.
//!
//! The order is the base's. A line that replaces lines of the base with the same `id` stands where the first of them stood;
//! what is new comes after everything, each side's in the order it has there, interleaved by (`ts`, `id`, line). What has no
//! `ts` stays behind what it followed. If both sides have the same new events in another order, the smaller order wins; so it does
//! if both did nothing but put the events of the base in another order.
//!
//! A line that is no JSON object is an event without `ts` and `id`. Blank lines are none and go; every line ends in `\n`.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::numbers::NumberSet;
use super::texts::{Numbering, TextMap, TextSet};
use super::{Merged, interleave};

/// Merges two sides that both changed; which of them is first does not matter.
pub(super) fn merge(base: &[u8], first: &[u8], second: &[u8]) -> Merged {
    let mut numbers = Numbering::default();
    let base = lines(base, &mut numbers);
    let sides = [lines(first, &mut numbers), lines(second, &mut numbers)];
    let all = numbers.len();
    let base_counts = counts(&base, all);
    let side_counts = sides.each_ref().map(|side| counts(side, all));
    let wanted = |line: Line<'_>| {
        let (before, on_sides) = (base_counts[line.at()], side_counts.each_ref().map(|side| side[line.at()]));
        let most = on_sides[0].max(on_sides[1]);
        if most > before { most } else { on_sides[0].min(on_sides[1]) }
    };

    // For each line of the base whether it stays, and what else stands there.
    let mut places: Vec<(Option<Line<'_>>, Vec<Line<'_>>)> = Vec::with_capacity(base.len());
    let mut replaced: TextMap<String, usize> = TextMap::default();
    let mut ids: TextSet<String> = TextSet::default();
    let mut seen = vec![0; all];
    for (place, line) in base.iter().enumerate() {
        let nth = occurrence(&mut seen, *line);
        if nth < wanted(*line) {
            places.push((Some(*line), Vec::new()));
            continue;
        }
        places.push((None, Vec::new()));
        if let Some(id) = Event::of(*line, nth).id {
            replaced.entry(id).or_insert(place);
        }
    }

    let new = sides.each_ref().map(|side| new_events(side, &base_counts));
    let mut of_id: BTreeMap<&str, [BTreeSet<&[u8]>; 2]> = BTreeMap::new();
    for (side, events) in new.iter().enumerate() {
        for event in events {
            if let Some(id) = &event.id {
                of_id.entry(id).or_default()[side].insert(event.line.text);
            }
        }
    }
    // Only ids that both sides wrote about are looked for among what stayed: parsing is the cost of a merge.
    if of_id.values().any(|[first, second]| !first.is_empty() && !second.is_empty()) {
        ids.extend(base.iter().filter_map(|line| Event::of(*line, 0).id));
    }
    let both_kept = of_id.iter().any(|(id, [first, second])| {
        let is_one_event = replaced.contains_key(*id) || !ids.contains(*id);
        is_one_event && !first.is_subset(second) && !second.is_subset(first)
    });

    let [first, second] = new.each_ref().map(|events| {
        let is_replacement =
            |event: &&Event<'_>| event.id.as_ref().is_some_and(|id| replaced.contains_key(id));
        events.iter().partition::<Vec<&Event<'_>>, _>(is_replacement)
    });
    let replacements: BTreeSet<&Event<'_>> = first.0.into_iter().chain(second.0).collect();
    for event in replacements {
        if let Some(place) = event.id.as_ref().and_then(|id| replaced.get(id)) {
            places[*place].1.push(event.line);
        }
    }
    let appended = in_order(&first.1, &second.1);

    let mut merged: Vec<Line<'_>> = Vec::with_capacity(base.len() + appended.len());
    for (line, others) in places {
        merged.extend(line.into_iter().chain(others));
    }
    merged.extend(appended.iter().map(|event| event.line));
    if merged == base {
        // Both sides have just these events. If that came to the base, whoever meets a side again would take its order.
        merged = sides.into_iter().filter(|side| *side != base).min().unwrap_or(merged);
    }
    let mut bytes = Vec::with_capacity(merged.iter().map(|line| line.text.len() + 1).sum());
    for line in merged {
        bytes.extend_from_slice(line.text);
        bytes.push(b'\n');
    }
    Merged { bytes: Bytes::from(bytes), copy: None, both_kept }
}

/// A line, with the number by which it is known in one merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line<'a> {
    text: &'a [u8],
    /// The same for the same text.
    number: u32,
}

impl Line<'_> {
    fn at(self) -> usize {
        self.number as usize
    }
}

/// One line that is not in the base, or not as often.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event<'a> {
    /// Empty if it has none, which is before every other.
    ts: String,
    id: Option<String>,
    line: Line<'a>,
    /// How many of the same line come before it.
    nth: usize,
}

impl<'a> Event<'a> {
    fn of(line: Line<'a>, nth: usize) -> Event<'a> {
        #[derive(Deserialize)]
        struct Fields {
            #[serde(default)]
            ts: Value,
            #[serde(default)]
            id: Value,
        }
        let string = |value| match value {
            Value::String(string) => Some(string),
            _ => None,
        };
        // An array would do for the fields as well.
        let is_object = line.text.trim_ascii_start().starts_with(b"{");
        match serde_json::from_slice(line.text) {
            Ok(Fields { ts, id }) if is_object => {
                Event { ts: string(ts).unwrap_or_default(), id: string(id), line, nth }
            }
            _ => Event { ts: String::new(), id: None, line, nth },
        }
    }
}

fn lines<'a>(bytes: &'a [u8], numbers: &mut Numbering<&'a [u8]>) -> Vec<Line<'a>> {
    numbers.begin();
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let line = |text: &'a [u8]| Line { text, number: numbers.number(text) };
    lines.filter(|line| !line.trim_ascii().is_empty()).map(line).collect()
}

fn counts(lines: &[Line<'_>], all: usize) -> Vec<usize> {
    let mut counts = vec![0; all];
    for line in lines {
        occurrence(&mut counts, *line);
    }
    counts
}

/// Counts a line and returns how often it was seen before.
fn occurrence(counts: &mut [usize], line: Line<'_>) -> usize {
    let count = &mut counts[line.at()];
    *count += 1;
    *count - 1
}

/// Returns what a side has beyond the base.
fn new_events<'a>(side: &[Line<'a>], base_counts: &[usize]) -> Vec<Event<'a>> {
    let mut seen = vec![0; base_counts.len()];
    let numbered = side.iter().map(|line| (*line, occurrence(&mut seen, *line)));
    let is_new = |(line, nth): &(Line<'_>, usize)| *nth >= base_counts[line.at()];
    numbered.filter(is_new).map(|(line, nth)| Event::of(line, nth)).collect()
}

/// Returns the new events of both sides, each once.
fn in_order<'e, 'a>(first: &[&'e Event<'a>], second: &[&'e Event<'a>]) -> Vec<&'e Event<'a>> {
    let [first_set, second_set] =
        [first, second].map(|events| events.iter().copied().collect::<BTreeSet<_>>());
    match (first_set.is_superset(&second_set), second_set.is_superset(&first_set)) {
        (true, true) => first.min(second).to_vec(),
        // One side has met the other's events before, and what it made of their order then stands.
        (true, false) => first.to_vec(),
        (false, true) => second.to_vec(),
        (false, false) => {
            let mut once = NumberSet::default();
            let all = interleave(first, second).into_iter().copied();
            all.filter(|event| once.insert((event.line.number, event.nth))).collect()
        }
    }
}
