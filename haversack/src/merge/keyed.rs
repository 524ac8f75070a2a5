//! Elements that are known by something: which of them survive, and in which order.
//!
//! An element of the base stays if both sides have it, or if one side extended or changed it; an element that the base does not
//! have is new and stays. Twins (elements known by the same) are counted: if a side has more of them than the base, no removal of the other counts.
//!
//! The order is that of the base, or of the side that changed it. A new element stands after the element of the base that it
//! follows on its side. There, common elements are there once, and the rest is interleaved by content. A side that
//! has everything of the other has met it before, and its order stands: so a merge that is merged again stays as it is.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Index;

use super::numbers::{NumberMap, NumberSet, Table};
use super::texts::Numbering;

/// An element with its identity.
pub(super) struct Named<'a, V> {
    /// Its identity, independent of its place; `None` if its text and place identify it.
    pub(super) identity: Option<Cow<'a, str>>,
    pub(super) text: Cow<'a, str>,
    pub(super) place: u32,
    pub(super) value: V,
}

/// The same with a number for its identity.
pub(super) struct Found<V> {
    pub(super) identity: Option<u32>,
    pub(super) text: u32,
    pub(super) place: u32,
    pub(super) value: V,
}

/// The number of a text that says nothing.
pub(super) const NOTHING_SAID: u32 = u32::MAX;

/// Numbers the identities of the elements of base and sides.
pub(super) fn found<V>(inputs: [Vec<Named<'_, V>>; 3]) -> [Vec<Found<V>>; 3] {
    let (mut identities, mut texts) = (Numbering::default(), Numbering::default());
    inputs.map(|input| {
        identities.begin();
        texts.begin_with(input.len());
        let found = |Named { identity, text, place, value }| {
            let identity = identity.map(|identity| identities.number(identity));
            // Two empty texts are not compared: where there is nothing to read, that takes longer than reading.
            let text = if text.is_empty() { NOTHING_SAID } else { texts.number(text) };
            Found { identity, text, place, value }
        };
        input.into_iter().map(found).collect()
    })
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

/// The rules for one sort of elements.
pub(super) trait Judge<V> {
    /// Returns true if two values say the same.
    fn same(&self, one: &V, other: &V) -> bool;

    /// Returns true if a value adds something: a value that only loses something does not win over a removal.
    fn adds(&self, before: &V, after: &V) -> bool {
        !self.same(before, after)
    }

    /// Returns the value that counts with any base, if there is one.
    fn regardless(&self, _first: &V, _second: &V) -> Option<V> {
        None
    }

    /// Returns one value for two that both differ from the base and from each other.
    fn both(&mut self, base: Option<&V>, first: &V, second: &V) -> V;

    /// Returns where an element goes that both sides put in different places.
    fn place(&self, first: u32, second: u32) -> u32;
}

/// The elements of base and sides that stay, by number.
pub(super) struct Survivors<V> {
    /// One place for each number that was given out.
    elements: Vec<Option<Element<V>>>,
}

impl<V> Survivors<V> {
    pub(super) fn get(&self, id: u32) -> Option<&Element<V>> {
        self.elements.get(id as usize)?.as_ref()
    }

    pub(super) fn take(&mut self, id: u32) -> Option<Element<V>> {
        self.elements.get_mut(id as usize)?.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Element<V>> {
        self.elements.iter().flatten()
    }
}

impl<V> Index<u32> for Survivors<V> {
    type Output = Element<V>;

    fn index(&self, id: u32) -> &Element<V> {
        self.get(id).expect("what is asked for stays")
    }
}

/// Numbers the elements of base and sides.
///
/// An identity that one of them has twice identifies nothing: such elements are identified by their text.
pub(super) fn identified<V>(inputs: [Vec<Found<V>>; 3]) -> [Vec<Element<V>>; 3] {
    let is_twice = is_twice(&inputs);
    let mut by_identity: Vec<Option<u32>> = vec![None; is_twice.len()];
    let mut texts: Numbering<(u32, u32)> = Numbering::default();
    let mut by_text: Vec<Option<u32>> = Vec::new();
    // The first of some twins has its number in the list, the others in the map.
    let mut firsts: Vec<u32> = Vec::new();
    let mut others: NumberMap<(u32, u32), u32> = NumberMap::default();
    let (mut next_twins, mut next_id) = (0, 0);
    inputs.map(|input| {
        // The number of equal twins before, in this input.
        let mut seen: Vec<u32> = vec![0; firsts.len()];
        texts.begin_with(input.len());
        let element = |Found { identity, text, place, value }| {
            let twins = match identity {
                Some(identity) if !is_twice[identity as usize] => {
                    *by_identity[identity as usize].get_or_insert_with(|| given(&mut next_twins))
                }
                _ => {
                    let number = texts.number((place, text)) as usize;
                    by_text.resize(texts.len(), None);
                    *by_text[number].get_or_insert_with(|| given(&mut next_twins))
                }
            };
            let at = twins as usize;
            if at == firsts.len() {
                firsts.push(given(&mut next_id));
            }
            if at >= seen.len() {
                seen.resize(at + 1, 0);
            }
            let id = match seen[at] {
                0 => firsts[at],
                nth => *others.entry((twins, nth)).or_insert_with(|| given(&mut next_id)),
            };
            seen[at] += 1;
            Element { id, twins, place, value }
        };
        input.into_iter().map(element).collect()
    })
}

/// Gives out a number.
fn given(next: &mut u32) -> u32 {
    let number = *next;
    *next = number.checked_add(1).expect("a file has fewer than four thousand million elements");
    number
}

/// Tells which identities an input has twice.
fn is_twice<V>(inputs: &[Vec<Found<V>>; 3]) -> Vec<bool> {
    // The last input that has an identity.
    let mut seen_in: Vec<Option<u8>> = Vec::new();
    let mut is_twice: Vec<bool> = Vec::new();
    for (number, input) in (0..).zip(inputs) {
        for identity in input.iter().filter_map(|found| found.identity) {
            let at = identity as usize;
            if at >= seen_in.len() {
                seen_in.resize(at + 1, None);
                is_twice.resize(at + 1, false);
            }
            is_twice[at] |= seen_in[at].replace(number) == Some(number);
        }
    }
    is_twice
}

/// Returns what stays, by number.
pub(super) fn survivors<V: Clone + Ord>(
    base: &[Element<V>],
    sides: [&[Element<V>]; 2],
    judge: &mut impl Judge<V>,
) -> Survivors<V> {
    let elements = || base.iter().chain(sides[0]).chain(sides[1]);
    let count = |of: fn(&Element<V>) -> u32| elements().map(of).max().map_or(0, |most| most as usize + 1);
    let (ids, twins) = (count(|element| element.id), count(|element| element.twins));
    let by_id = |elements: &'_ [Element<V>]| -> Vec<Option<u32>> {
        let mut places = vec![None; ids];
        for (at, element) in (0..).zip(elements) {
            places[element.id as usize] = Some(at);
        }
        places
    };
    let (of_base, of_sides) = (by_id(base), sides.map(by_id));
    let before = |element: &Element<V>| of_base[element.id as usize].map(|at| &base[at as usize]);
    let kept_by_twins = kept_by_twins(base, sides, twins, &before, judge);
    let mut survivors: Vec<Option<Element<V>>> = Vec::new();
    survivors.resize_with(ids, || None);
    for (own, other) in [(0, 1), (1, 0)] {
        for element in sides[own] {
            let survivor = match (before(element), of_sides[other][element.id as usize]) {
                // Taken care of with the first side.
                (_, Some(_)) if own == 1 => continue,
                (before, Some(at)) => merged(before, element, &sides[other][at as usize], judge),
                (None, None) => element.clone(),
                (Some(before), None) => {
                    let stands = before.place != element.place || judge.adds(&before.value, &element.value);
                    if !kept_by_twins[element.twins as usize] && !stands {
                        continue;
                    }
                    element.clone()
                }
            };
            survivors[element.id as usize] = Some(survivor);
        }
    }
    Survivors { elements: survivors }
}

fn is_changed<V>(before: &Element<V>, after: &Element<V>, judge: &impl Judge<V>) -> bool {
    before.place != after.place || !judge.same(&before.value, &after.value)
}

/// Tells of which twins none is removed: a side has more of them than before, or changed one that the other removed.
fn kept_by_twins<'e, V>(
    base: &[Element<V>],
    sides: [&'e [Element<V>]; 2],
    twins: usize,
    before: &dyn Fn(&'e Element<V>) -> Option<&'e Element<V>>,
    judge: &impl Judge<V>,
) -> Vec<bool> {
    let counts = |elements: &[Element<V>]| {
        let mut counts = vec![0_u32; twins];
        for element in elements {
            counts[element.twins as usize] += 1;
        }
        counts
    };
    let counts_before = counts(base);
    let mut kept = vec![false; twins];
    for side in sides {
        let now = counts(side);
        for element in side {
            let twins = element.twins as usize;
            let is_changed = || before(element).is_some_and(|before| is_changed(before, element, judge));
            kept[twins] |= now[twins] > counts_before[twins]
                || (counts_before[twins] > 1 && !kept[twins] && is_changed());
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
        // A difference in appearance only is no change.
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
pub(super) fn order<'s>(
    base: &[u32],
    sides: [&'s [u32]; 2],
    compare: &dyn Fn(u32, u32) -> Ordering,
) -> Cow<'s, [u32]> {
    if sides[0] == sides[1] {
        return Cow::Borrowed(sides[0]);
    }
    let mut present = Table::of(sides.into_iter().flatten().copied());
    for id in sides.into_iter().flatten() {
        present.set(*id, 0);
    }
    let base: Vec<u32> = base.iter().copied().filter(|id| present.get(*id).is_some()).collect();
    let mut positions = present;
    positions.clear();
    for (at, id) in (0..).zip(&base) {
        positions.set(*id, at);
    }
    let spine = spine(&base, sides, &positions, compare);
    let mut spine_positions = positions;
    for (at, id) in (1..).zip(&spine) {
        spine_positions.set(*id, at);
    }

    // For each new element the place in the spine behind which it stands, on the side where that is the earliest.
    let mut anchors: NumberMap<u32, u32> = Default::default();
    let new = sides.map(|side| {
        let mut anchor = 0;
        let mut new: Vec<(u32, u32)> = Vec::new();
        for id in side {
            match spine_positions.get(*id) {
                Some(position) => anchor = position,
                None => {
                    let earliest = anchors.entry(*id).or_insert(anchor);
                    *earliest = anchor.min(*earliest);
                    new.push((anchor, *id));
                }
            }
        }
        new
    });
    let [first, second] = new.map(|mut new| {
        new.retain(|(anchor, id)| anchors[id] == *anchor);
        new.sort_by_key(|(anchor, _)| *anchor);
        new
    });
    let mut all = Vec::with_capacity(spine.len() + first.len() + second.len());
    let mut rests = [first.as_slice(), second.as_slice()];
    for anchor in 0.. {
        let [first, second] = rests.each_mut().map(|rest| behind(rest, anchor));
        if !first.is_empty() || !second.is_empty() {
            all.extend(together(&first, &second, compare));
        }
        let Some(next) = spine.get(anchor as usize) else { break };
        all.push(*next);
    }
    Cow::Owned(all)
}

/// Takes off what stands behind one place in the spine.
fn behind(rest: &mut &[(u32, u32)], anchor: u32) -> Vec<u32> {
    let count = rest.iter().take_while(|(at, _)| *at == anchor).count();
    rest.split_off(..count).into_iter().flatten().map(|(_, id)| *id).collect()
}

/// Returns the elements of the base in the order that they have now.
fn spine(
    base: &[u32],
    sides: [&[u32]; 2],
    positions: &Table,
    compare: &dyn Fn(u32, u32) -> Ordering,
) -> Vec<u32> {
    let is_as_before = |side: &[u32]| side.iter().filter_map(|id| positions.get(*id)).is_sorted();
    if sides.iter().all(|side| is_as_before(side)) {
        return base.to_vec();
    }
    let old = sides
        .map(|side| -> Vec<u32> { side.iter().copied().filter(|id| positions.get(*id).is_some()).collect() });
    let order = match [is_as_before(&old[0]), is_as_before(&old[1])] {
        [_, true] => &old[0],
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

/// Returns the elements that both sides put in one place.
fn together(first: &[u32], second: &[u32], compare: &dyn Fn(u32, u32) -> Ordering) -> Vec<u32> {
    if first.is_empty() || second.is_empty() {
        return [first, second].concat();
    }
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
        let mut once = NumberSet::default();
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

/// Merges two ordered sets: removed elements are gone, added elements are there once.
pub(super) fn three_way_set<'a>(base: &[&'a str], sides: [&[&'a str]; 2]) -> Vec<&'a str> {
    let mut numbers: Numbering<&str> = Numbering::default();
    let mut names: Vec<&'a str> = Vec::new();
    // For each member the inputs that have it.
    let mut seen_in: Vec<[bool; 3]> = Vec::new();
    let mut numbered: [Vec<u32>; 3] = Default::default();
    for (input, members) in [base, sides[0], sides[1]].into_iter().enumerate() {
        numbers.begin();
        for member in members.iter().copied() {
            let number = numbers.number(member);
            let at = number as usize;
            if at == names.len() {
                names.push(member);
                seen_in.push([false; 3]);
            }
            if !std::mem::replace(&mut seen_in[at][input], true) {
                numbered[input].push(number);
            }
        }
    }
    for list in &mut numbered {
        list.retain(|number| {
            let [base, first, second] = seen_in[*number as usize];
            !base || (first && second)
        });
    }
    let [base, first, second] = numbered;
    let compare = |one: u32, other: u32| names[one as usize].cmp(names[other as usize]);
    let merged = order(&base, [&first, &second], &compare);
    merged.iter().map(|number| names[*number as usize]).collect()
}
