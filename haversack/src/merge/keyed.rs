//! Elements that are known by something: which of them survive, and in which order.
//!
//! An element that the base has stays if both sides have it, or if one side changed it; what the base does not have is new and
//! stays. Twins (elements known by the same) are counted: if a side has more of them than the base, no removal of the other counts.
//!
//! The order is that of the base, or of the side that changed it. What is new stands behind the element of the base that it
//! stands behind on its side; there, what both sides have is there once, and the rest is interleaved by content. A side that
//! has everything of the other has met it before, and its order stands: so a merge that is merged again stays as it is.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::numbers::{NumberMap, NumberSet};

/// An element as it was found.
pub(super) struct Found<'a, V> {
    /// What it is known by wherever it stands; `None` if it is known by what it says, where it stands.
    pub(super) identity: Option<String>,
    pub(super) text: Cow<'a, str>,
    pub(super) place: u32,
    pub(super) value: V,
}

/// An element, with the number by which it is known in one merge.
#[derive(Clone, Debug)]
pub(super) struct Element<V> {
    pub(super) id: u32,
    /// The same for twins.
    twins: u32,
    pub(super) place: u32,
    pub(super) value: V,
}

/// What is particular to a sort of elements.
pub(super) trait Judge<V> {
    /// Tells whether two values say the same.
    fn same(&self, one: &V, other: &V) -> bool;

    /// Returns the value that counts whatever the base was, if there is one.
    fn regardless(&self, _first: &V, _second: &V) -> Option<V> {
        None
    }

    /// Returns one value for two that both differ from the base and from each other.
    fn both(&mut self, base: Option<&V>, first: &V, second: &V) -> V;

    /// Returns where an element goes that both sides put in different places.
    fn place(&self, first: u32, second: u32) -> u32;
}

#[derive(PartialEq, Eq, Hash)]
enum Known<'a> {
    Anywhere(String),
    Here(u32, Cow<'a, str>),
}

/// Numbers the elements of base and sides.
///
/// An identity that one of them has twice identifies nothing: such elements are known by what they say.
pub(super) fn identified<V>(inputs: [Vec<Found<'_, V>>; 3]) -> [Vec<Element<V>>; 3] {
    let mut twice: HashSet<String> = HashSet::new();
    for input in &inputs {
        let mut once = HashSet::new();
        for identity in input.iter().filter_map(|found| found.identity.as_deref()) {
            if !once.insert(identity) {
                twice.insert(identity.to_owned());
            }
        }
    }
    let mut kinds: HashMap<Known<'_>, u32> = HashMap::new();
    let mut ids: NumberMap<(u32, usize), u32> = Default::default();
    let number =
        |count: usize| u32::try_from(count).expect("a file has fewer than four thousand million elements");
    inputs.map(|input| {
        let mut seen: NumberMap<u32, usize> = Default::default();
        let element = |found: Found<'_, V>| {
            let Found { identity, text, place, value } = found;
            let known = match identity {
                Some(identity) if !twice.contains(&identity) => Known::Anywhere(identity),
                _ => Known::Here(place, Cow::Owned(text.into_owned())),
            };
            let next = number(kinds.len());
            let twins = *kinds.entry(known).or_insert(next);
            let nth = seen.entry(twins).or_default();
            *nth += 1;
            let next = number(ids.len());
            let id = *ids.entry((twins, *nth)).or_insert(next);
            Element { id, twins, place, value }
        };
        input.into_iter().map(element).collect()
    })
}

/// Returns what stays, by number.
pub(super) fn survivors<V: Clone + Ord>(
    base: &[Element<V>],
    sides: [&[Element<V>]; 2],
    judge: &mut impl Judge<V>,
) -> NumberMap<u32, Element<V>> {
    let by_id = |elements: &'_ [Element<V>]| -> NumberMap<u32, usize> {
        elements.iter().enumerate().map(|(at, element)| (element.id, at)).collect()
    };
    let (of_base, of_sides) = (by_id(base), sides.map(by_id));
    let kept_by_twins = kept_by_twins(base, sides, &of_base, judge);
    let mut survivors = NumberMap::default();
    survivors.reserve(sides[0].len().max(sides[1].len()));
    for (own, other) in [(0, 1), (1, 0)] {
        for element in sides[own] {
            let before = of_base.get(&element.id).map(|at| &base[*at]);
            match (before, of_sides[other].get(&element.id)) {
                // Taken care of with the first side.
                (_, Some(_)) if own == 1 => {}
                (before, Some(at)) => {
                    let other = &sides[other][*at];
                    survivors.insert(element.id, merged(before, element, other, judge));
                }
                (None, None) => {
                    survivors.insert(element.id, element.clone());
                }
                (Some(before), None) => {
                    if is_changed(before, element, judge) || kept_by_twins.contains(&element.twins) {
                        survivors.insert(element.id, element.clone());
                    }
                }
            }
        }
    }
    survivors
}

fn is_changed<V>(before: &Element<V>, after: &Element<V>, judge: &impl Judge<V>) -> bool {
    before.place != after.place || !judge.same(&before.value, &after.value)
}

/// Returns the twins of which none is removed: a side has more of them than before, or changed one that the other removed.
fn kept_by_twins<V>(
    base: &[Element<V>],
    sides: [&[Element<V>]; 2],
    of_base: &NumberMap<u32, usize>,
    judge: &impl Judge<V>,
) -> NumberSet<u32> {
    let counts = |elements: &[Element<V>]| {
        let mut counts: NumberMap<u32, usize> = Default::default();
        for element in elements {
            *counts.entry(element.twins).or_default() += 1;
        }
        counts
    };
    let before = counts(base);
    let mut kept = NumberSet::default();
    for side in sides {
        let now = counts(side);
        for element in side {
            let before_count = before.get(&element.twins).copied().unwrap_or(0);
            let changed = of_base.get(&element.id).is_some_and(|at| is_changed(&base[*at], element, judge));
            if now[&element.twins] > before_count || (before_count > 1 && changed) {
                kept.insert(element.twins);
            }
        }
    }
    kept
}

fn merged<V: Clone + Ord>(
    base: Option<&Element<V>>,
    first: &Element<V>,
    second: &Element<V>,
    judge: &mut impl Judge<V>,
) -> Element<V> {
    let place = match base.map(|base| base.place) {
        _ if first.place == second.place => first.place,
        Some(before) if before == first.place => second.place,
        Some(before) if before == second.place => first.place,
        _ => judge.place(first.place, second.place),
    };
    if let Some(value) = judge.regardless(&first.value, &second.value) {
        return Element { id: first.id, twins: first.twins, place, value };
    }
    let before = base.map(|base| &base.value);
    let value = match before {
        _ if first.value == second.value => first.value.clone(),
        Some(before) if *before == first.value => second.value.clone(),
        Some(before) if *before == second.value => first.value.clone(),
        // What only looks different is no change.
        Some(before) if judge.same(before, &first.value) && !judge.same(before, &second.value) => {
            second.value.clone()
        }
        Some(before) if judge.same(before, &second.value) && !judge.same(before, &first.value) => {
            first.value.clone()
        }
        _ if judge.same(&first.value, &second.value) => first.value.clone().min(second.value.clone()),
        _ => judge.both(before, &first.value, &second.value),
    };
    Element { id: first.id, twins: first.twins, place, value }
}

/// Returns the elements of one place in order: those of base and sides that stay there, each once.
pub(super) fn order(base: &[u32], sides: [&[u32]; 2], compare: &dyn Fn(u32, u32) -> Ordering) -> Vec<u32> {
    if sides[0] == sides[1] {
        return sides[0].to_vec();
    }
    let present: NumberSet<u32> = sides.into_iter().flatten().copied().collect();
    let base: Vec<u32> = base.iter().copied().filter(|id| present.contains(id)).collect();
    let positions: NumberMap<u32, usize> = base.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let spine = spine(&base, sides, &positions, compare);
    let spine_positions: NumberMap<u32, usize> =
        spine.iter().enumerate().map(|(at, id)| (*id, at + 1)).collect();

    // For each new element the place in the spine behind which it stands, on the side where that is the earliest.
    let mut anchors: NumberMap<u32, usize> = Default::default();
    for side in sides {
        let mut anchor = 0;
        for id in side {
            match spine_positions.get(id) {
                Some(position) => anchor = *position,
                None => {
                    let earliest = anchors.entry(*id).or_insert(anchor);
                    *earliest = anchor.min(*earliest);
                }
            }
        }
    }
    let mut groups: Vec<[Vec<u32>; 2]> = (0..=spine.len()).map(|_| [Vec::new(), Vec::new()]).collect();
    for (number, side) in sides.into_iter().enumerate() {
        let mut anchor = 0;
        for id in side {
            match spine_positions.get(id) {
                Some(position) => anchor = *position,
                None if anchors[id] == anchor => groups[anchor][number].push(*id),
                None => {}
            }
        }
    }
    let mut all = Vec::with_capacity(present.len());
    for (at, [first, second]) in groups.iter().enumerate() {
        if let Some(behind) = at.checked_sub(1) {
            all.push(spine[behind]);
        }
        all.extend(together(first, second, compare));
    }
    all
}

/// Returns the elements of the base in the order that they have now.
fn spine(
    base: &[u32],
    sides: [&[u32]; 2],
    positions: &NumberMap<u32, usize>,
    compare: &dyn Fn(u32, u32) -> Ordering,
) -> Vec<u32> {
    let old = sides
        .map(|side| -> Vec<u32> { side.iter().copied().filter(|id| positions.contains_key(id)).collect() });
    let is_as_before = |side: &[u32]| side.is_sorted_by_key(|id| positions[id]);
    let order = match [is_as_before(&old[0]), is_as_before(&old[1])] {
        [true, true] => return base.to_vec(),
        [false, true] => &old[0],
        [true, false] => &old[1],
        [false, false] => {
            let sets = old.each_ref().map(|side| side.iter().copied().collect::<NumberSet<u32>>());
            let common = |side: &[u32], other: &NumberSet<u32>| -> Vec<u32> {
                side.iter().copied().filter(|id| other.contains(id)).collect()
            };
            let [first, second] = [common(&old[0], &sets[1]), common(&old[1], &sets[0])];
            let smaller = first
                .iter()
                .zip(&second)
                .map(|(one, other)| compare(*one, *other))
                .find(|order| order.is_ne());
            match [sets[0].is_superset(&sets[1]), sets[1].is_superset(&sets[0])] {
                // A side that has more has met the other before, or leaves less to be put in.
                [true, false] => &old[0],
                [false, true] => &old[1],
                _ if smaller == Some(Ordering::Greater) => &old[1],
                _ => &old[0],
            }
        }
    };
    let mut spine = order.clone();
    let mut there: NumberSet<u32> = spine.iter().copied().collect();
    for (at, id) in base.iter().enumerate() {
        if there.insert(*id) {
            let behind =
                at.checked_sub(1).and_then(|before| spine.iter().position(|other| *other == base[before]));
            spine.insert(behind.map_or(0, |behind| behind + 1), *id);
        }
    }
    spine
}

/// Returns what both sides put in one place.
fn together(first: &[u32], second: &[u32], compare: &dyn Fn(u32, u32) -> Ordering) -> Vec<u32> {
    let sets = [first, second].map(|side| side.iter().copied().collect::<NumberSet<u32>>());
    match [sets[0].is_superset(&sets[1]), sets[1].is_superset(&sets[0])] {
        [true, true] => {
            let smaller = first
                .iter()
                .zip(second)
                .map(|(one, other)| compare(*one, *other))
                .find(|order| order.is_ne());
            return if smaller == Some(Ordering::Greater) { second.to_vec() } else { first.to_vec() };
        }
        [true, false] => return first.to_vec(),
        [false, true] => return second.to_vec(),
        [false, false] => {}
    }
    let common = |own: &[u32], other: usize| -> Vec<u32> {
        own.iter().copied().filter(|id| sets[other].contains(id)).collect()
    };
    let shared = common(first, 1);
    if shared != common(second, 0) {
        let mut once = HashSet::new();
        return interleaved(first, second, compare).into_iter().filter(|id| once.insert(*id)).collect();
    }
    let mut all = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first, second);
    for id in shared {
        let split = |side: &[u32]| side.iter().position(|other| *other == id).unwrap_or(side.len());
        let ((first_part, first_rest), (second_part, second_rest)) =
            (first.split_at(split(first)), second.split_at(split(second)));
        all.extend(interleaved(first_part, second_part, compare));
        all.push(id);
        (first, second) = (&first_rest[1..], &second_rest[1..]);
    }
    all.extend(interleaved(first, second, compare));
    all
}

/// Interleaves two sequences, the smaller head first and with it what follows and is smaller.
fn interleaved<'a>(
    mut first: &'a [u32],
    mut second: &'a [u32],
    compare: &dyn Fn(u32, u32) -> Ordering,
) -> Vec<u32> {
    let mut all = Vec::with_capacity(first.len() + second.len());
    while let ([first_head, first_rest @ ..], [second_head, ..]) = (first, second) {
        if compare(*second_head, *first_head).is_lt() {
            (first, second) = (second, first);
            continue;
        }
        let followers = first_rest.iter().take_while(|id| compare(**id, *first_head).is_le()).count();
        let (group, rest) = first.split_at(1 + followers);
        all.extend(group);
        first = rest;
    }
    all.extend(first.iter().chain(second));
    all
}

/// Merges two sets that have an order: what a side removed is gone, what a side added is there, each once.
pub(super) fn three_way_set(base: &[String], sides: [&[String]; 2]) -> Vec<String> {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    let mut numbered: Vec<Vec<u32>> = Vec::new();
    for members in [base, sides[0], sides[1]] {
        let mut once = HashSet::new();
        let mut list = Vec::new();
        for member in members {
            let next = u32::try_from(names.len()).expect("a file has fewer than four thousand million lines");
            let number = *numbers.entry(member).or_insert_with(|| {
                names.push(member);
                next
            });
            if once.insert(number) {
                list.push(number);
            }
        }
        numbered.push(list);
    }
    let sets: Vec<NumberSet<u32>> = numbered.iter().map(|list| list.iter().copied().collect()).collect();
    let stays =
        |number: &u32| !sets[0].contains(number) || (sets[1].contains(number) && sets[2].contains(number));
    for list in &mut numbered {
        list.retain(stays);
    }
    let compare = |one: u32, other: u32| names[one as usize].cmp(names[other as usize]);
    let merged = order(&numbered[0], [&numbered[1], &numbered[2]], &compare);
    merged.into_iter().map(|number| names[number as usize].to_owned()).collect()
}
