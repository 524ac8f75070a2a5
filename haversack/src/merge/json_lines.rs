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

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use haversack_store::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::{Merged, interleave};

/// Merges two sides that both changed; which of them is first does not matter.
pub(super) fn merge(base: &[u8], first: &[u8], second: &[u8]) -> Merged {
    let base = lines(base);
    let sides = [lines(first), lines(second)];
    let base_counts = counts(&base);
    let side_counts = sides.each_ref().map(|side| counts(side));
    let count = |counts: &HashMap<&[u8], usize>, line: &[u8]| counts.get(line).copied().unwrap_or(0);
    let wanted = |line: &[u8]| {
        let (before, on_sides) =
            (count(&base_counts, line), side_counts.each_ref().map(|side| count(side, line)));
        let most = on_sides[0].max(on_sides[1]);
        if most > before { most } else { on_sides[0].min(on_sides[1]) }
    };

    let mut places: Vec<Vec<&[u8]>> = Vec::with_capacity(base.len());
    let mut replaced: HashMap<String, usize> = HashMap::new();
    let mut ids: HashSet<String> = HashSet::new();
    let mut seen: HashMap<&[u8], usize> = HashMap::new();
    for (place, line) in base.iter().enumerate() {
        let nth = occurrence(&mut seen, line);
        if nth < wanted(line) {
            places.push(vec![line]);
            continue;
        }
        places.push(Vec::new());
        if let Some(id) = Event::of(line, nth).id {
            replaced.entry(id).or_insert(place);
        }
    }

    let new = sides.each_ref().map(|side| new_events(side, &base_counts));
    let mut of_id: BTreeMap<&str, [BTreeSet<&[u8]>; 2]> = BTreeMap::new();
    for (side, events) in new.iter().enumerate() {
        for event in events {
            if let Some(id) = &event.id {
                of_id.entry(id).or_default()[side].insert(event.line);
            }
        }
    }
    // Only ids that both sides wrote about are looked for among what stayed: parsing is the cost of a merge.
    if of_id.values().any(|[first, second]| !first.is_empty() && !second.is_empty()) {
        ids.extend(base.iter().filter_map(|line| Event::of(line, 0).id));
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
            places[*place].push(event.line);
        }
    }
    let appended = in_order(&first.1, &second.1);

    let mut merged: Vec<&[u8]> = places.into_iter().flatten().collect();
    merged.extend(appended.iter().map(|event| event.line));
    if merged == base {
        // Both sides have just these events. If that came to the base, whoever meets a side again would take its order.
        merged = sides.into_iter().filter(|side| *side != base).min().unwrap_or(merged);
    }
    let mut bytes = Vec::new();
    for line in merged {
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    Merged { bytes: Bytes::from(bytes), copy: None, both_kept }
}

/// One line that is not in the base, or not as often.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event<'a> {
    /// Empty if it has none, which is before every other.
    ts: String,
    id: Option<String>,
    line: &'a [u8],
    /// How many of the same line come before it.
    nth: usize,
}

impl<'a> Event<'a> {
    fn of(line: &'a [u8], nth: usize) -> Event<'a> {
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
        let is_object = line.trim_ascii_start().starts_with(b"{");
        match serde_json::from_slice(line) {
            Ok(Fields { ts, id }) if is_object => {
                Event { ts: string(ts).unwrap_or_default(), id: string(id), line, nth }
            }
            _ => Event { ts: String::new(), id: None, line, nth },
        }
    }
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.trim_ascii().is_empty()).collect()
}

fn counts<'a>(lines: &[&'a [u8]]) -> HashMap<&'a [u8], usize> {
    let mut counts = HashMap::with_capacity(lines.len());
    for line in lines {
        occurrence(&mut counts, line);
    }
    counts
}

/// Counts a line and returns how often it was seen before.
fn occurrence<'a>(counts: &mut HashMap<&'a [u8], usize>, line: &'a [u8]) -> usize {
    let count = counts.entry(line).or_default();
    *count += 1;
    *count - 1
}

/// Returns what a side has beyond the base.
fn new_events<'a>(side: &[&'a [u8]], base_counts: &HashMap<&[u8], usize>) -> Vec<Event<'a>> {
    let mut seen = HashMap::new();
    let numbered = side.iter().map(|line| (*line, occurrence(&mut seen, line)));
    let is_new = |(line, nth): &(&[u8], usize)| *nth >= base_counts.get(line).copied().unwrap_or(0);
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
            let mut once = HashSet::new();
            let all = interleave(first, second).into_iter().copied();
            all.filter(|event| once.insert((event.line, event.nth))).collect()
        }
    }
}
