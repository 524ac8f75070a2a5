//! Brings moved lines into one order on the base and both sides, before the rest of the merge.
//!
//! 1. Select the lines that are exactly once in the base and exactly once in each side. Other lines move with their neighbours ([`arrange`]).
//! 2. Collect the inversions of each side: pairs of selected lines that are in the opposite order on that side.
//! 3. Compute the smallest order with the inversions of both sides (the join of two permutations in the weak order).
//! 4. Put the base and both sides into that order. After that no line has moved; only additions and removals are left.
//!
//! ```text
//! base     laptop     desktop     order
//! a        b          a           c
//! b        a          c           b
//! c        c          b           a      (laptop: b before a; desktop: c before b; so c before a too)
//! ```
//!
//! The order does not depend on the names of the sides. It contains every inversion of both sides, so merging the result with one of the sides
//! again gives the same order and changes nothing. A line that one side removed is gone, wherever the other side moved it ([`leave_out`]).

use super::{Line, Mutes, Texts, front_matter};

/// The most times that a line is put before another. Beyond that, no order is computed.
const MAX_STEPS: usize = 1 << 25;

/// No place in the order: the line is one of several, or not everywhere.
const NOWHERE: u32 = u32::MAX;

/// Brings the base and both sides into the common order of the sides' moves.
pub(super) fn straighten(
    base: &mut Vec<Line>,
    sides: &mut [Vec<Line>; 2],
    texts: &Texts<'_>,
    mutes: &mut Mutes,
) {
    let known = texts.len();
    let counts = counts(base, sides, known);
    let is_firm = |line: &Line| counts[line.id as usize] == [1; 3] && !line.is_mute();
    // Text between two rules at the top keeps its place.
    let body = &base[front_matter(base, texts).end..];
    let firm: Vec<u32> = body.iter().filter(|line| is_firm(line)).map(|line| line.id).collect();
    let orders = sides.each_ref().map(|side| places(side, &firm, known));
    if let Some(order) = joined(&orders) {
        let mut ranks = vec![NOWHERE; known];
        for (rank, number) in (1..).zip(&order) {
            ranks[firm[*number as usize] as usize] = rank;
        }
        let mut is_heading = vec![false; known];
        base.iter().filter(|line| line.is_heading()).for_each(|line| is_heading[line.id as usize] = true);
        let stays = stays(&order, |number| is_heading[firm[number as usize] as usize]);
        arrange(base, &ranks, &stays, mutes);
        sides.iter_mut().for_each(|side| arrange(side, &ranks, &stays, mutes));
    }
    for (side, only_here) in sides.iter_mut().zip([[1, 1, 0], [1, 0, 1]]) {
        let is_gone = |line: &Line| counts[line.id as usize] == only_here && !line.is_mute();
        leave_out(base, side, &is_firm, &is_gone, known);
    }
}

/// Returns how often the base and the sides have each line.
fn counts(base: &[Line], sides: &[Vec<Line>; 2], known: usize) -> Vec<[u8; 3]> {
    let mut counts = vec![[0_u8; 3]; known];
    for (which, lines) in [base, &sides[0], &sides[1]].into_iter().enumerate() {
        for line in lines {
            let count = &mut counts[line.id as usize][which];
            *count = count.saturating_add(1);
        }
    }
    counts
}

/// Returns the places that lines have on a side.
fn places(side: &[Line], firm: &[u32], known: usize) -> Vec<u32> {
    let mut at = vec![NOWHERE; known];
    for (place, line) in (0..).zip(side) {
        at[line.id as usize] = place;
    }
    firm.iter().map(|id| at[*id as usize]).collect()
}

/// Returns the order that holds the inversions of both; `None` if there are none, or too many to be put together.
fn joined([first, second]: &[Vec<u32>; 2]) -> Option<Vec<u32>> {
    match [first.is_sorted(), second.is_sorted()] {
        [true, true] => return None,
        [false, true] => return Some(by_place(first)),
        [true, false] => return Some(by_place(second)),
        [false, false] => {}
    }
    /// A line, and the furthest place that it or one before it has on either side.
    struct Step {
        number: u32,
        furthest: [u32; 2],
    }
    let mut order: Vec<Step> = Vec::with_capacity(first.len());
    let mut steps = 0;
    for (number, places) in (0..).zip(first.iter().zip(second)) {
        let places = [*places.0, *places.1];
        // Before the first line that either side has behind it; all that follow from there on are behind it, too.
        let before = |side: usize| order.partition_point(|step| step.furthest[side] < places[side]);
        let at = before(0).min(before(1));
        steps += order.len() - at;
        if steps > MAX_STEPS {
            return None;
        }
        let furthest = at.checked_sub(1).map_or([0; 2], |above| order[above].furthest);
        order.insert(at, Step { number, furthest });
        for step in &mut order[at..] {
            step.furthest = [0, 1].map(|side| step.furthest[side].max(places[side]));
        }
    }
    Some(order.into_iter().map(|step| step.number).collect())
}

/// Returns the numbers of places in the order of the places.
fn by_place(places: &[u32]) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..).take(places.len()).collect();
    numbers.sort_unstable_by_key(|number| places[*number as usize]);
    numbers
}

/// Returns true for every rank, including the beginning and the end, that stays in its place while others move.
///
/// Headings come first: a line that went to another section is a line that moved, not the heading.
fn stays(order: &[u32], is_heading: impl Fn(u32) -> bool) -> Vec<bool> {
    let mut stays = vec![false; order.len() + 2];
    let ranked = || (1..).zip(order.iter().copied());
    let headings: Vec<(usize, u32)> = ranked().filter(|(_, number)| is_heading(*number)).collect();
    let fixed = ascending(&headings);
    let mut left = ranked().peekable();
    let mut others = Vec::new();
    let mut above: Option<(usize, u32)> = None;
    for below in fixed.into_iter().map(Some).chain([None]) {
        let is_between = |number: u32| {
            above.is_none_or(|(_, least)| number > least) && below.is_none_or(|(_, most)| number < most)
        };
        others.clear();
        while let Some(next) = left.next_if(|(rank, _)| below.is_none_or(|(below, _)| *rank < below)) {
            others.extend(Some(next).filter(|(_, number)| is_between(*number)));
        }
        ascending(&others).into_iter().chain(below).for_each(|(rank, _)| stays[rank] = true);
        above = below;
    }
    stays[0] = true;
    stays[order.len() + 1] = true;
    stays
}

/// Returns the most of some ranked numbers that ascend.
fn ascending(ranked: &[(usize, u32)]) -> Vec<(usize, u32)> {
    // For each length what ends a run of it with the least number, and for each what comes before it in its run.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(ranked.len());
    for (at, (_, number)) in ranked.iter().enumerate() {
        let length = ends.partition_point(|end| ranked[*end].1 < *number);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut run: Vec<_> =
        std::iter::successors(ends.last().copied(), |at| before[*at]).map(|at| ranked[at]).collect();
    run.reverse();
    run
}

/// Puts lines into the order of their ranks.
///
/// Lines between two ranked lines that are still neighbours stay between them. Otherwise they go with the line above, if that one stays
/// or moves with its section. If the line moves alone, only lines indented below it and blank lines go with it, and the rest stays before
/// the line below.
fn arrange(lines: &mut Vec<Line>, ranks: &[u32], stays: &[bool], mutes: &mut Mutes) {
    let end = u32::try_from(stays.len() - 1).expect("a file has fewer lines");
    let rank = |line: &Line| Some(ranks[line.id as usize]).filter(|rank| *rank != NOWHERE);
    if lines.iter().filter_map(rank).is_sorted() {
        return;
    }
    let mut pieces: Vec<((u32, bool), &[Line])> = Vec::new();
    let mut rest = lines.as_slice();
    let (mut above, mut section) = (0, 0);
    while above != end {
        // The line ranked `above`, if it is a line, and all lines up to the next ranked one.
        let own = usize::from(above > 0);
        let next = rest[own..].iter().position(|line| rank(line).is_some()).map_or(rest.len(), |at| own + at);
        let (piece, others) = rest.split_at(next);
        let below = others.first().and_then(rank).unwrap_or(end);
        if piece.first().is_some_and(|line| own == 1 && line.is_heading()) {
            section = above;
        }
        let is_apart = stays[below as usize] && !stays[above as usize] && stays[section as usize];
        let goes_along = below == above + 1 || !is_apart;
        let clinging = piece[own..].iter().take_while(|line| line.is_mute() || line.is_indented()).count();
        // A blank line before a heading separates it from the text above.
        let is_before_heading = own + clinging == piece.len() && others.first().is_some_and(Line::is_heading);
        let parting = piece.iter().rev().take_while(|line| is_before_heading && line.is_mute()).count();
        let clinging = clinging - parting.min(clinging);
        let (with_above, with_below) = piece.split_at(if goes_along { piece.len() } else { own + clinging });
        pieces.push(((above, true), with_above));
        pieces.push(((below, false), with_below));
        (rest, above) = (others, below);
    }
    pieces.sort_by_key(|(place, _)| *place);
    *lines = pieces.into_iter().flat_map(|(_, piece)| piece).copied().collect();
    mutes.place(lines);
}

/// Removes lines that the other side removed and this one moved: they are gone, and their place says nothing about others.
fn leave_out(
    base: &[Line],
    side: &mut Vec<Line>,
    is_firm: &impl Fn(&Line) -> bool,
    is_gone: &impl Fn(&Line) -> bool,
    known: usize,
) {
    if !side.iter().any(is_gone) {
        return;
    }
    // Behind how many firm lines, and behind how many others, a line is.
    let mut places = vec![(0, 0); known];
    let mut firm = 0;
    for (at, line) in (1_u32..).zip(base) {
        firm += u32::from(is_firm(line));
        places[line.id as usize] = (firm, at);
    }
    let (mut firm, mut last) = (0, 0);
    side.retain(|line| {
        firm += u32::from(is_firm(line));
        if !is_gone(line) {
            return true;
        }
        let (behind, at) = places[line.id as usize];
        let is_in_place = behind == firm && at > last;
        last = if is_in_place { at } else { last };
        is_in_place
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the places of the numbers of an order.
    fn places_of(order: &[u32]) -> Vec<u32> {
        by_place(order)
    }

    fn join(first: &[u32], second: &[u32]) -> Vec<u32> {
        joined(&[places_of(first), places_of(second)]).unwrap_or_else(|| (0..).take(first.len()).collect())
    }

    fn inversions(order: &[u32]) -> Vec<(u32, u32)> {
        let pairs = |at: usize| order[at + 1..].iter().map(move |later| (*later, order[at]));
        let mut inversions: Vec<_> =
            (0..order.len()).flat_map(pairs).filter(|(one, other)| one < other).collect();
        inversions.sort_unstable();
        inversions
    }

    fn orders(length: u32) -> Vec<Vec<u32>> {
        if length == 0 {
            return vec![Vec::new()];
        }
        let shorter = orders(length - 1);
        let with = |order: &Vec<u32>, at: usize| [&order[..at], &[length - 1], &order[at..]].concat();
        shorter.iter().flat_map(|order| (0..=order.len()).map(move |at| with(order, at))).collect()
    }

    #[test]
    fn every_two_orders_of_five_lines_have_one_that_holds_both() {
        let all = orders(5);
        for (first, second) in all.iter().flat_map(|first| all.iter().map(move |second| (first, second))) {
            let both = join(first, second);
            assert_eq!(both, join(second, first), "{first:?} {second:?}");
            let held = inversions(&both);
            for side in [first, second] {
                assert!(
                    inversions(side).iter().all(|pair| held.contains(pair)),
                    "{first:?} {second:?}: {both:?}"
                );
                assert_eq!(join(&both, side), both, "{first:?} {second:?}");
            }
            // The smallest cycle: keep every line that no side moved.
            let is_less = |other: &&Vec<u32>| {
                let others = inversions(other);
                let holds = |side: &[u32]| inversions(side).iter().all(|pair| others.contains(pair));
                others.len() < held.len() && holds(first) && holds(second)
            };
            assert_eq!(all.iter().find(is_less), None, "{first:?} {second:?}: {both:?}");
        }
    }

    #[test]
    fn as_many_as_possible_stay() {
        let shown = |order: &[u32]| {
            let stays = stays(order, |number| number == 9);
            let staying = order.iter().zip(&stays[1..]).filter(|(_, stays)| **stays);
            staying.map(|(number, _)| *number).collect::<Vec<u32>>()
        };
        assert_eq!(shown(&[1, 2, 3, 0]), [1, 2, 3]);
        assert_eq!(shown(&[3, 0, 1, 2]), [0, 1, 2]);
        assert_eq!(shown(&[0, 2, 1, 3]), [0, 1, 3]);
        assert!(shown(&[]).is_empty());
        // A heading stays before its text.
        assert_eq!(shown(&[0, 9, 1, 2, 3]), [0, 9]);
    }
}
