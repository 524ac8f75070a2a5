//! JSON lines: a set of events, one to a line, that has an order.
//!
//! An event is its line; the same line twice is two events. So an event that a side changed is one that it removed and one
//! that it added, and the set merges by counting: a line that a side has more often than the base is there as often as on the
//! side that has most of it, any other as often as on the side that has least.
//!
//! The order is the base's. A line that replaces lines of the base with the same `id` stands where the first of them stood;
//! new lines come after everything, each side's in its own order, interleaved by (`ts`, `id`, line). A line without
//! `ts` stays after the line before it. If both sides have the same new events in another order, the smaller order wins; so it does
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
    // Drop the table that found equal lines: it is not needed any more.
    let texts = numbers.into_keys();
    let (merged, both_kept) = put_together(base, sides, &texts);
    let mut bytes = Vec::with_capacity(merged.iter().map(|line| texts[*line as usize].len() + 1).sum());
    for line in merged {
        bytes.extend_from_slice(texts[line as usize]);
        bytes.push(b'\n');
    }
    Merged { bytes: Bytes::from(bytes), copy: None, both_kept }
}

/// The number of a line. Lines with the same text have the same number within one merge.
type Number = u32;

/// Returns the lines of the merged text, and true if two versions of one event were both kept.
fn put_together(base: Vec<Number>, sides: [Vec<Number>; 2], texts: &[&[u8]]) -> (Vec<Number>, bool) {
    let all = texts.len();
    let base_counts = counts(&base, all);
    let side_counts = sides.each_ref().map(|side| counts(side, all));
    let wanted = |line: Number| {
        let at = line as usize;
        let (before, on_sides) = (base_counts[at], side_counts.each_ref().map(|side| side[at]));
        let most = on_sides[0].max(on_sides[1]);
        if most > before { most } else { on_sides[0].min(on_sides[1]) }
    };
    let event = |line: Number, nth: u32| Event::of(Line { text: texts[line as usize], number: line }, nth);

    // Places of removed base lines, with the lines that replace them.
    let mut emptied: BTreeMap<usize, Vec<Number>> = BTreeMap::new();
    let mut replaced: TextMap<String, usize> = TextMap::default();
    let mut ids: TextSet<String> = TextSet::default();
    let mut seen = vec![0; all];
    for (place, line) in base.iter().enumerate() {
        let nth = occurrence(&mut seen, *line);
        if nth < wanted(*line) {
            continue;
        }
        emptied.insert(place, Vec::new());
        if let Some(id) = event(*line, nth).id {
            replaced.entry(id).or_insert(place);
        }
    }

    let new = sides.each_ref().map(|side| new_events(side, &base_counts, &event));
    let mut of_id: BTreeMap<&str, [BTreeSet<&[u8]>; 2]> = BTreeMap::new();
    for (side, events) in new.iter().enumerate() {
        for event in events {
            if let Some(id) = &event.id {
                of_id.entry(id).or_default()[side].insert(event.line.text);
            }
        }
    }
    // Only ids that both sides wrote about are looked for among what stayed: parsing is the cost of a merge.
    let in_both = |[first, second]: &[BTreeSet<&[u8]>; 2]| !first.is_empty() && !second.is_empty();
    if of_id.values().any(in_both) {
        let is_asked_for = |id: &String| of_id.get(id.as_str()).is_some_and(in_both);
        ids.extend(base.iter().filter_map(|line| event(*line, 0).id).filter(is_asked_for));
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
        let place = event.id.as_ref().and_then(|id| replaced.get(id));
        if let Some(others) = place.and_then(|place| emptied.get_mut(place)) {
            others.push(event.line.number);
        }
    }
    let appended = in_order(&first.1, &second.1);

    let mut merged: Vec<Number> = Vec::with_capacity(base.len() + appended.len());
    let mut at = 0;
    for (place, others) in emptied {
        merged.extend(&base[at..place]);
        merged.extend(others);
        at = place + 1;
    }
    merged.extend(&base[at..]);
    merged.extend(appended.iter().map(|event| event.line.number));
    if merged == base {
        // Both sides have exactly these events. If the result were the base's order, the next merge with a side would take that side's order.
        let said = |line: &Number| texts[*line as usize];
        let reordered = sides.into_iter().filter(|side| *side != base);
        let least = reordered.min_by(|one, other| one.iter().map(said).cmp(other.iter().map(said)));
        merged = least.unwrap_or(merged);
    }
    (merged, both_kept)
}

/// A line with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line<'a> {
    text: &'a [u8],
    number: Number,
}

/// One line that is not in the base, or not as often.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event<'a> {
    /// Empty if it has none, which is before every other.
    ts: String,
    id: Option<String>,
    line: Line<'a>,
    /// The number of equal lines before it.
    nth: u32,
}

impl<'a> Event<'a> {
    fn of(line: Line<'a>, nth: u32) -> Event<'a> {
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

fn lines<'a>(bytes: &'a [u8], numbers: &mut Numbering<&'a [u8]>) -> Vec<Number> {
    let count = memchr::memchr_iter(b'\n', bytes).count() + 1;
    numbers.begin_with(count);
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut all = Vec::with_capacity(count);
    all.extend(lines.filter(|line| !line.trim_ascii().is_empty()).map(|line| numbers.number(line)));
    all
}

fn counts(lines: &[Number], all: usize) -> Vec<u32> {
    let mut counts = vec![0; all];
    for line in lines {
        occurrence(&mut counts, *line);
    }
    counts
}

/// Counts a line and returns how often it was seen before.
fn occurrence(counts: &mut [u32], line: Number) -> u32 {
    let count = &mut counts[line as usize];
    *count += 1;
    *count - 1
}

/// Returns a side's additions to the base.
fn new_events<'a>(
    side: &[Number],
    base_counts: &[u32],
    event: &impl Fn(Number, u32) -> Event<'a>,
) -> Vec<Event<'a>> {
    let mut seen = vec![0; base_counts.len()];
    let numbered = side.iter().map(|line| (*line, occurrence(&mut seen, *line)));
    let is_new = |(line, nth): &(Number, u32)| *nth >= base_counts[*line as usize];
    numbered.filter(is_new).map(|(line, nth)| event(line, nth)).collect()
}

/// Returns the new events of both sides, each once.
fn in_order<'e, 'a>(first: &[&'e Event<'a>], second: &[&'e Event<'a>]) -> Vec<&'e Event<'a>> {
    let [first_set, second_set] =
        [first, second].map(|events| events.iter().copied().collect::<BTreeSet<_>>());
    match (first_set.is_superset(&second_set), second_set.is_superset(&first_set)) {
        (true, true) => first.min(second).to_vec(),
        // One side has merged the other's events before, so its order counts.
        (true, false) => first.to_vec(),
        (false, true) => second.to_vec(),
        (false, false) => {
            let mut once = NumberSet::default();
            let all = interleave(first, second).into_iter().copied();
            all.filter(|event| once.insert((event.line.number, event.nth))).collect()
        }
    }
}
