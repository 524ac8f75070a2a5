//! Merges text by lines and the gaps between them.
//!
//! 1. Bring moved lines into one order on the base and both sides ([`moves`]).
//! 2. Compare the base with each side: which lines were removed, and which lines were put into which gap.
//! 3. Keep a line of the base if neither side removed it.
//! 4. Fill each gap with the lines of both sides.
//!
//! ```text
//! base      laptop      desktop      result
//! lamp      lamp        lamp         lamp
//! door                  door
//!           window                   window
//! key       key         key          key
//!                       clock        clock
//! ```
//!
//! This is finer than the regions of diff3: a line removed by one side does not come back because the other side wrote next to it.
//!
//! Lines that both sides put into one gap: if one side's lines contain the other's, they are there once. Common lines are there once, blank ones only
//! together with others, since they part paragraphs. List items are interleaved in the order of their content, each side's own
//! order unchanged; other text stays in one piece, the smaller passage first.
//!
//! If both sides replaced the same lines, the second passage comes under a note that names its device.
//!
//! The moves of both sides are kept ([`moves`]). A line that one side removed and the other only moved is gone. If the base has a line several
//! times and each side removes another copy, one copy stays, because both sides still have it.
//!
//! A *mute* line (blank, a rule, a fence) occurs many times. Two mute lines count as the same only after the same line. Otherwise the
//! blank line of a removed paragraph would be found again below a new one.
//!
//! Lines are compared without their endings. The ending of a line that stays is merged like the line: a changed ending
//! wins. A line that is no longer the last one gets an ending if it had none.

mod moves;

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::ops::Range;

use haversack_store::Bytes;
use similar::algorithms::{Capture, diff_slices};
use similar::{Algorithm, DiffOp};

use super::note::{self, About, Mark};
use super::numbers::{NumberMap, NumberSet};
use super::texts::Numbering;
use super::{Merged, Side, interleave};

/// The most lines of two texts that are compared beyond their common lines at both ends. More lines count as
/// replaced. The comparison takes a bounded number of steps, and this bounds their sum.
const MAX_COMPARED_LINES: usize = 1 << 17;

/// How a line ends, in the order of which wins if both sides changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    /// The text ends.
    Nothing,
    /// The text ends in the middle of `\r\n`.
    Return,
    Newline,
    ReturnNewline,
}

impl Ending {
    fn of(line: &[u8]) -> Ending {
        match line {
            [.., b'\r', b'\n'] => Ending::ReturnNewline,
            [.., b'\n'] => Ending::Newline,
            [.., b'\r'] => Ending::Return,
            _ => Ending::Nothing,
        }
    }

    fn as_bytes(self) -> &'static [u8] {
        match self {
            Ending::Nothing => b"",
            Ending::Return => b"\r",
            Ending::Newline => b"\n",
            Ending::ReturnNewline => b"\r\n",
        }
    }

    /// Returns the ending of a line that something comes after.
    fn completed(self, usual: Ending) -> Ending {
        match self {
            Ending::Nothing => usual,
            Ending::Return => Ending::ReturnNewline,
            Ending::Newline | Ending::ReturnNewline => self,
        }
    }

    fn merged(base: Ending, first: Ending, second: Ending) -> Ending {
        if first == base {
            second
        } else if second == base {
            first
        } else {
            first.max(second)
        }
    }
}

/// A line of one text. A file can have millions of lines, so a line holds numbers only; its text is in [`Texts`].
#[derive(Clone, Copy, Debug)]
struct Line {
    /// The same for the same text, in one merge.
    id: u32,
    /// The same for the same text where it says something; a line that says nothing is known by the one it follows.
    place_id: u32,
    look: Look,
    ending: Ending,
}

/// Texts of lines without their endings, by line id.
type Texts<'t> = [&'t [u8]];

/// The line id of a placeholder for a note.
const NOTE: u32 = u32::MAX;

/// Properties of a line's text, one bit each. They are computed once, because a merge asks for them many times.
#[derive(Clone, Copy, Debug)]
struct Look(u8);

impl Look {
    const BLANK: u8 = 1;
    const MUTE: u8 = 2;
    const HEADING: u8 = 4;
    const LIST_ITEM: u8 = 8;
    const INDENTED: u8 = 16;

    fn of(text: &[u8]) -> Look {
        let is_mute = !text.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
        let is_indented = matches!(text, [b' ' | b'\t', ..]);
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_list_item = match &text[digits..] {
            [b'-' | b'*' | b'+', b' ', ..] => digits == 0,
            [b'.' | b')', b' ', ..] => digits > 0,
            _ => false,
        };
        let bits = [
            (is_mute && text.trim_ascii().is_empty(), Look::BLANK),
            (is_mute, Look::MUTE),
            (text.starts_with(b"#"), Look::HEADING),
            (is_list_item, Look::LIST_ITEM),
            (is_indented, Look::INDENTED),
        ];
        Look(bits.into_iter().filter(|(is_so, _)| *is_so).map(|(_, bit)| bit).sum())
    }
}

impl Line {
    fn text<'t>(&self, texts: &Texts<'t>) -> &'t [u8] {
        texts[self.id as usize]
    }

    fn is_blank(&self) -> bool {
        self.look.0 & Look::BLANK != 0
    }

    /// Returns true if the line says nothing, so that there are many like it: a blank one, a rule, a fence.
    fn is_mute(&self) -> bool {
        self.look.0 & Look::MUTE != 0
    }

    fn is_heading(&self) -> bool {
        self.look.0 & Look::HEADING != 0
    }

    fn is_list_item(&self) -> bool {
        self.look.0 & Look::LIST_ITEM != 0
    }

    fn is_indented(&self) -> bool {
        self.look.0 & Look::INDENTED != 0
    }

    fn ended_as(self, ending: Ending) -> Self {
        Line { ending, ..self }
    }
}

/// The place of a base line on one side: its number there plus one. `Option<LineNumber>` takes four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineNumber(NonZeroU32);

impl LineNumber {
    fn new(number: usize) -> LineNumber {
        let place = u32::try_from(number + 1).ok().and_then(NonZeroU32::new);
        LineNumber(place.expect("a file has fewer than four thousand million lines"))
    }

    fn number(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Merges two sides that both changed; `first` is the smaller one.
pub(super) fn merge(base: &[u8], first: Side<'_>, second: Side<'_>) -> Merged {
    let mut ids = Ids::default();
    let base = split(base, &mut ids);
    let sides = [split(first.bytes, &mut ids), split(second.bytes, &mut ids)];
    // Drop the tables that found equal lines: they can be as large as the text, and only the texts of lines are needed from here on.
    let (texts, mutes) = (ids.texts.into_keys(), ids.mutes);
    let Put { lines, notes } = put_together(base, sides, [first.device, second.device], &texts, mutes);
    Merged { bytes: joined(&lines, &texts, &notes), copy: None, both_kept: !notes.is_empty() }
}

/// Lines of a merged text with placeholders for notes, and the texts of the notes in their order.
struct Put {
    lines: Vec<Line>,
    notes: Vec<String>,
}

/// Returns the lines of the merged text.
fn put_together(
    mut base: Vec<Line>,
    mut sides: [Vec<Line>; 2],
    devices: [&str; 2],
    texts: &Texts<'_>,
    mut mutes: Mutes,
) -> Put {
    moves::straighten(&mut base, &mut sides, texts, &mut mutes);
    drop(mutes);
    let known = texts.len();
    let mut places = [align(&base, &sides[0]), align(&base, &sides[1])];
    keep_what_both_say(&base, &mut sides, &mut places, known);
    let moved = [moved(&base, &sides[0], &places[0], known), moved(&base, &sides[1], &places[1], known)];
    let gone = [without(&moved[0], &sides[1]), without(&moved[1], &sides[0])];
    for (side, gone) in gone.iter().enumerate().filter(|(_, gone)| !gone.is_empty()) {
        leave_out(gone, &mut sides[side], &mut places[side]);
    }
    let changes = changes(&base, &sides, &places);
    let front_matter = front_matter(&base, texts);

    let mut notes: Vec<String> = Vec::new();
    let mut merged: Vec<Line> = Vec::with_capacity(sides[0].len().max(sides[1].len()));
    let mut at = 0;
    let mut rest = changes.as_slice();
    while let Some(next) = rest.first() {
        merged.extend(unchanged(&base, &sides, &places, at..next.base.start));
        let mut end = next.base.end;
        let together = rest.iter().take_while(|change| {
            let touches = change.base.start <= end;
            end = if touches { end.max(change.base.end) } else { end };
            touches
        });
        let (stretch, others) = rest.split_at(together.count());
        (at, rest) = (end, others);

        let [first_added, second_added] = added(stretch);
        // Over the whole stretch, because a merged text shows its changes over the whole stretch.
        if hold(&first_added, &second_added, &mut merged) {
            continue;
        }
        let Parted { changes, below } = parted(&base, stretch);
        for passage in passages(&changes) {
            let [first_added, second_added] = added(passage);
            if !both_replaced(&base, passage) {
                combine(&first_added, &second_added, texts, &mut merged);
                continue;
            }
            let in_front_matter = front_matter.contains(&passage[0].base.start);
            let mark = if in_front_matter { Mark::Comment } else { Mark::Quote };
            notes.extend(replace(&first_added, &second_added, devices, mark, texts, &mut merged));
        }
        merged.extend(below);
    }
    merged.extend(unchanged(&base, &sides, &places, at..base.len()));
    let moved_twice: NumberSet<u32> = moved[0].intersection(&moved[1]).copied().collect();
    if !moved_twice.is_empty() {
        let mut met = NumberSet::default();
        merged.retain(|line| !moved_twice.contains(&line.id) || met.insert(line.id));
    }
    Put { lines: merged, notes }
}

/// Keeps one of the lines that the base has several times where each side removed those that the other left.
fn keep_what_both_say(
    base: &[Line],
    sides: &mut [Vec<Line>; 2],
    places: &mut [Vec<Option<LineNumber>>; 2],
    known: usize,
) {
    // By the number of a line: tells if one of its sort was left by the first side only, by the second only, by both.
    let mut left = vec![[false; 3]; known];
    for (number, line) in base.iter().enumerate() {
        let [first, second] = [places[0][number].is_some(), places[1][number].is_some()];
        let left = &mut left[line.id as usize];
        left[0] |= first && !second;
        left[1] |= second && !first;
        left[2] |= first && second;
    }
    let is_crossed = |line: &Line| left[line.id as usize] == [true, true, false] && !line.is_mute();
    if !base.iter().any(is_crossed) {
        return;
    }
    let mut said: NumberSet<u32> = NumberSet::default();
    for (side, places) in sides.iter().zip(places.iter()) {
        let stays: NumberSet<usize> = places.iter().flatten().map(|place| place.number()).collect();
        said.extend(side.iter().enumerate().filter(|(at, _)| !stays.contains(at)).map(|(_, line)| line.id));
    }
    let mut kept = [NumberSet::default(), NumberSet::default()];
    for (number, line) in base.iter().enumerate().filter(|(_, line)| is_crossed(line)) {
        let lacking = [0, 1].into_iter().find(|side| places[*side][number].is_none());
        let is_left = places.iter().any(|places| places[number].is_some());
        if let Some(lacking) = lacking.filter(|_| is_left && said.insert(line.id)) {
            kept[lacking].insert(number);
        }
    }
    for ((side, places), kept) in sides.iter_mut().zip(places).zip(&kept) {
        put_back(base, kept, side, places);
    }
}

/// Puts lines of the base back into a side that removed them, each behind the one before it that is there.
fn put_back(
    base: &[Line],
    numbers: &NumberSet<usize>,
    side: &mut Vec<Line>,
    places: &mut [Option<LineNumber>],
) {
    let mut all = Vec::with_capacity(side.len() + numbers.len());
    let mut taken = 0;
    for (number, place) in places.iter_mut().enumerate() {
        match place {
            Some(at) => {
                let at = at.number();
                all.extend_from_slice(&side[taken..=at]);
                taken = at + 1;
            }
            None if numbers.contains(&number) => all.push(base[number]),
            None => continue,
        }
        *place = Some(LineNumber::new(all.len() - 1));
    }
    all.extend_from_slice(&side[taken..]);
    *side = all;
}

/// Returns the lines that a side moved, of those that the base and the side have exactly once.
fn moved(base: &[Line], side: &[Line], places: &[Option<LineNumber>], known: usize) -> NumberSet<u32> {
    let mut stays = vec![false; side.len()];
    for place in places.iter().flatten() {
        stays[place.number()] = true;
    }
    let mut counts = vec![[0_u8; 2]; known];
    for (which, lines) in [base, side].into_iter().enumerate() {
        for line in lines {
            let count = &mut counts[line.id as usize][which];
            *count = count.saturating_add(1);
        }
    }
    let new = side.iter().zip(stays).filter(|(line, stays)| !stays && !line.is_mute());
    new.map(|(line, _)| line.id).filter(|id| counts[*id as usize] == [1, 1]).collect()
}

/// Returns which of some lines another text has not.
fn without(ids: &NumberSet<u32>, lines: &[Line]) -> NumberSet<u32> {
    let mut left = ids.clone();
    for line in lines.iter().take_while(|_| !ids.is_empty()) {
        left.remove(&line.id);
    }
    left
}

/// Removes lines from a side that it moved; the places of the others are known already.
fn leave_out(ids: &NumberSet<u32>, side: &mut Vec<Line>, places: &mut [Option<LineNumber>]) {
    let mut left = 0;
    let mut now = Vec::with_capacity(side.len());
    side.retain(|line| {
        now.push(LineNumber::new(left));
        let stays = !ids.contains(&line.id);
        left += usize::from(stays);
        stays
    });
    places.iter_mut().flatten().for_each(|place| *place = now[place.number()]);
}

/// The numbers by which the lines of one merge are known.
#[derive(Default)]
struct Ids<'a> {
    texts: Numbering<&'a [u8]>,
    mutes: Mutes,
}

/// Numbers mute lines by their text, by the line before them, and by the number of mute lines in between.
#[derive(Default)]
struct Mutes(Numbering<(u32, Option<u32>, u32)>);

impl Mutes {
    /// Gives every line of a text its identity.
    fn place(&mut self, lines: &mut [Line]) {
        self.0.begin();
        let (mut speaking, mut between) = (None, 0);
        for line in lines {
            // Even numbers are for lines that say something, odd ones for those that do not.
            if !line.is_mute() {
                (speaking, between) = (Some(line.id), 0);
                line.place_id = 2 * line.id;
                continue;
            }
            between += 1;
            line.place_id = 2 * self.0.number((line.id, speaking, between)) + 1;
        }
    }
}

fn split<'a>(bytes: &'a [u8], ids: &mut Ids<'a>) -> Vec<Line> {
    let count = memchr::memchr_iter(b'\n', bytes).count() + 1;
    ids.texts.begin_with(count);
    let line = |line: &'a [u8]| {
        let ending = Ending::of(line);
        let text = &line[..line.len() - ending.as_bytes().len()];
        let id = ids.texts.number(text);
        Line { id, place_id: 2 * id, look: Look::of(text), ending }
    };
    let mut rest = bytes;
    let lines = std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let line = rest.split_off(..end)?;
        (!line.is_empty()).then_some(line)
    });
    let mut all = Vec::with_capacity(count);
    all.extend(lines.map(line));
    ids.mutes.place(&mut all);
    all
}

fn joined(lines: &[Line], texts: &Texts<'_>, notes: &[String]) -> Bytes {
    let ending = |wanted| lines.iter().filter(|line| line.ending == wanted).count();
    let usual = match ending(Ending::ReturnNewline) > ending(Ending::Newline) {
        true => Ending::ReturnNewline,
        false => Ending::Newline,
    };
    let noted: usize = notes.iter().map(String::len).sum();
    let said = lines.iter().filter(|line| line.id != NOTE).map(|line| line.text(texts).len());
    let endings = usual.as_bytes().len() * lines.len();
    let mut bytes = Vec::with_capacity(noted + said.sum::<usize>() + endings);
    let mut notes = notes.iter();
    for (number, line) in lines.iter().enumerate() {
        match line.id {
            NOTE => bytes.extend_from_slice(notes.next().map_or(&[], |note| note.as_bytes())),
            _ => bytes.extend_from_slice(line.text(texts)),
        }
        let is_last = number + 1 == lines.len();
        let ending = if is_last { line.ending } else { line.ending.completed(usual) };
        bytes.extend_from_slice(ending.as_bytes());
    }
    Bytes::from(bytes)
}

/// Returns where each line of the base is on a side; `None` if it is gone.
///
/// Headings that are there once find each other first: a line that went to another section is then a line that moved, not the
/// heading.
fn align(base: &[Line], side: &[Line]) -> Vec<Option<LineNumber>> {
    let [base_ids, side_ids] =
        [base, side].map(|lines| lines.iter().map(|line| line.place_id).collect::<Vec<u32>>());
    let [base_headings, side_headings] = [base, side].map(single_headings);
    let mut places = vec![None; base.len()];
    let mut section = (0, 0);
    let most = base_ids.iter().chain(&side_ids).max().map_or(0, |most| *most as usize + 1);
    let mut marks = vec![Presence::default(); most];
    let mut align_section = |base_end: usize, side_end: usize| {
        let (of_base, of_side) = (&base_ids[section.0..base_end], &side_ids[section.1..side_end]);
        pairs(of_base, of_side, &mut marks, |of_base, of_side| {
            places[section.0 + of_base] = Some(LineNumber::new(section.1 + of_side));
        });
        section = (base_end, side_end);
    };
    let heading_ids =
        |ids: &[u32], headings: &[usize]| -> Vec<u32> { headings.iter().map(|at| ids[*at]).collect() };
    for run in common(&heading_ids(&base_ids, &base_headings), &heading_ids(&side_ids, &side_headings)) {
        for offset in 0..run.length {
            // A section begins with its heading: where both begin, they have that in common.
            align_section(base_headings[run.first + offset], side_headings[run.second + offset]);
        }
    }
    align_section(base.len(), side.len());
    places
}

/// Returns where the headings are that a text has only once.
fn single_headings(lines: &[Line]) -> Vec<usize> {
    let mut counts: NumberMap<u32, usize> = NumberMap::default();
    for line in lines.iter().filter(|line| line.is_heading()) {
        *counts.entry(line.id).or_default() += 1;
    }
    (0..lines.len()).filter(|number| counts.get(&lines[*number].id) == Some(&1)).collect()
}

/// Elements that two sequences have in common, one after the other in both.
struct Run {
    first: usize,
    second: usize,
    length: usize,
}

/// Returns a long common subsequence as runs.
fn common(first: &[u32], second: &[u32]) -> Vec<Run> {
    let prefix = first.iter().zip(second).take_while(|(a, b)| a == b).count();
    let (first_rest, second_rest) = (&first[prefix..], &second[prefix..]);
    let suffix = first_rest.iter().rev().zip(second_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let first_middle = &first_rest[..first_rest.len() - suffix];
    let second_middle = &second_rest[..second_rest.len() - suffix];

    let mut runs = vec![Run { first: 0, second: 0, length: prefix }];
    if first_middle.len() + second_middle.len() <= MAX_COMPARED_LINES {
        let mut capture = Capture::new();
        let Ok(()) = diff_slices(Algorithm::Myers, &mut capture, first_middle, second_middle);
        runs.extend(capture.into_ops().into_iter().filter_map(|operation| match operation {
            DiffOp::Equal { old_index, new_index, len } => {
                Some(Run { first: prefix + old_index, second: prefix + new_index, length: len })
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => None,
        }));
    }
    runs.push(Run { first: first.len() - suffix, second: second.len() - suffix, length: suffix });
    runs.retain(|run| run.length > 0);
    runs
}

/// In which of two sequences a number is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Presence {
    first: bool,
    second: bool,
}

impl Presence {
    const IN_BOTH: Presence = Presence { first: true, second: true };
}

/// Finds the common elements of two sequences; `marks` has a place for every number.
fn pairs(first: &[u32], second: &[u32], marks: &mut [Presence], mut found: impl FnMut(usize, usize)) {
    let prefix = first.iter().zip(second).take_while(|(a, b)| a == b).count();
    if let Some([ones, others]) = in_one_order(&first[prefix..], &second[prefix..], marks) {
        (0..prefix).for_each(|at| found(at, at));
        let both = ones.into_iter().zip(others);
        both.for_each(|(one, other)| found(prefix + one as usize, prefix + other as usize));
        return;
    }
    for run in common(first, second) {
        (0..run.length).for_each(|at| found(run.first + at, run.second + at));
    }
}

/// Returns the places of the common elements of two sequences, if both have them in the same order; `None` if not.
///
/// This holds if a side only added and removed lines. Then there is one longest common subsequence and nothing to search for: the number of
/// steps is the number of lines.
fn in_one_order(first: &[u32], second: &[u32], marks: &mut [Presence]) -> Option<[Vec<u32>; 2]> {
    first.iter().for_each(|id| marks[*id as usize].first = true);
    second.iter().for_each(|id| marks[*id as usize].second = true);
    let in_both = |ids: &[u32]| -> Vec<u32> {
        let is_in_both = |id: u32| marks[id as usize] == Presence::IN_BOTH;
        (0..).zip(ids).filter(|(_, id)| is_in_both(**id)).map(|(at, _)| at).collect()
    };
    let (ones, others) = (in_both(first), in_both(second));
    // For the next two.
    first.iter().chain(second).for_each(|id| marks[*id as usize] = Presence::default());
    let is_same = ones.len() == others.len()
        && ones.iter().zip(&others).all(|(one, other)| first[*one as usize] == second[*other as usize]);
    is_same.then_some([ones, others])
}

/// One side's change at one place: removed lines of the base, and its own lines in their place.
#[derive(Clone)]
struct Change<'a> {
    base: Range<usize>,
    which: Which,
    added: &'a [Line],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    First,
    Second,
}

/// Returns the changes of both sides, in the order of the base.
fn changes<'a>(
    base: &[Line],
    sides: &'a [Vec<Line>; 2],
    places: &[Vec<Option<LineNumber>>; 2],
) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    for ((side, places), which) in sides.iter().zip(places).zip([Which::First, Which::Second]) {
        let (mut base_at, mut side_at) = (0, 0);
        let kept = places.iter().enumerate().filter_map(|(number, place)| Some((number, (*place)?.number())));
        for (base_next, side_next) in kept.chain([(base.len(), side.len())]) {
            if base_at < base_next || side_at < side_next {
                let added = &side[side_at..side_next];
                changes.push(Change { base: base_at..base_next, which, added });
            }
            (base_at, side_at) = (base_next + 1, side_next + 1);
        }
    }
    changes.sort_by_key(|change| (change.base.start, change.base.end, change.which));
    changes
}

/// Returns lines of the base that both sides have.
fn unchanged(
    base: &[Line],
    sides: &[Vec<Line>; 2],
    places: &[Vec<Option<LineNumber>>; 2],
    lines: Range<usize>,
) -> impl Iterator<Item = Line> {
    lines.map(|number| {
        let line = base[number];
        let ending = |side: usize| {
            places[side][number].map_or(line.ending, |place| sides[side][place.number()].ending)
        };
        line.ended_as(Ending::merged(line.ending, ending(0), ending(1)))
    })
}

/// Changes that touch, and the mute lines below them that both sides have.
struct Parted<'a> {
    changes: Vec<Change<'a>>,
    below: Vec<Line>,
}

/// Parts changes from the mute lines at their end that are there before and after.
///
/// Such a line is known by the one it follows, so it counts as replaced when that one is. Both sides did so here, and without
/// it their changes may be about different lines.
fn parted<'a>(base: &[Line], stretch: &[Change<'a>]) -> Parted<'a> {
    let mut changes = stretch.to_vec();
    let mut below = Vec::new();
    let last = |which| stretch.iter().rposition(|change| change.which == which);
    if let (Some(first), Some(second)) = (last(Which::First), last(Which::Second)) {
        loop {
            let [first_change, second_change] = [&changes[first], &changes[second]];
            let end = first_change.base.end;
            let is_removed = end == second_change.base.end
                && !first_change.base.is_empty()
                && !second_change.base.is_empty();
            let ([first_added @ .., line], [second_added @ .., other]) =
                (first_change.added, second_change.added)
            else {
                break;
            };
            if !is_removed || !line.is_mute() || [line.id, other.id] != [base[end - 1].id; 2] {
                break;
            }
            below.push(line.ended_as(line.ending.max(other.ending)));
            changes[first].added = first_added;
            changes[second].added = second_added;
            changes[first].base.end -= 1;
            changes[second].base.end -= 1;
        }
    }
    below.reverse();
    changes.retain(|change| !change.base.is_empty() || !change.added.is_empty());
    changes.sort_by_key(|change| (change.base.start, change.base.end, change.which));
    Parted { changes, below }
}

/// Cuts changes that touch into those that are about the same place.
fn passages<'c, 'a>(stretch: &'c [Change<'a>]) -> impl Iterator<Item = &'c [Change<'a>]> {
    let mut end = 0;
    stretch.chunk_by(move |before, change| {
        end = end.max(before.base.end);
        change.base.start < end || change.base == before.base
    })
}

/// Returns what each side added.
fn added<'a>(changes: &[Change<'a>]) -> [Cow<'a, [Line]>; 2] {
    [Which::First, Which::Second].map(|which| {
        let mut own = changes.iter().filter(|change| change.which == which);
        match (own.next(), own.next()) {
            (None, _) => Cow::Borrowed(&[][..]),
            (Some(only), None) => Cow::Borrowed(only.added),
            (Some(first), Some(second)) => {
                let all = [first, second].into_iter().chain(own);
                Cow::Owned(all.flat_map(|change| change.added).copied().collect())
            }
        }
    })
}

/// Returns true if both sides removed the same line, other than a mute one.
fn both_replaced(base: &[Line], changes: &[Change<'_>]) -> bool {
    let mut removed = [0..0, 0..0];
    changes.iter().any(|change| {
        let (own, other) = match change.which {
            Which::First => (0, 1),
            Which::Second => (1, 0),
        };
        removed[own] = change.base.clone();
        let mut common = change.base.start.max(removed[other].start)..change.base.end.min(removed[other].end);
        common.any(|number| !base[number].is_mute())
    })
}

/// Puts the longer of two passages into the merged text if it contains the other, line by line; returns true if it does.
fn hold(first: &[Line], second: &[Line], merged: &mut Vec<Line>) -> bool {
    let (long, short) = if first.len() < second.len() { (second, first) } else { (first, second) };
    let mut rest = short.iter().peekable();
    for line in long {
        rest.next_if(|other| other.id == line.id);
    }
    match rest.peek() {
        Some(_) => return false,
        None if long.len() == short.len() => merged.extend(shared(first, second)),
        None => merged.extend(long),
    }
    true
}

/// Returns lines that both sides have.
fn shared(first: &[Line], second: &[Line]) -> impl Iterator<Item = Line> {
    first.iter().zip(second).map(|(line, other)| line.ended_as(line.ending.max(other.ending)))
}

/// Puts two passages of the same gap into the merged text, with their common lines once.
fn combine(first: &[Line], second: &[Line], texts: &Texts<'_>, merged: &mut Vec<Line>) {
    if hold(first, second, merged) {
        return;
    }
    let ids = |lines: &[Line]| -> Vec<u32> { lines.iter().map(|line| line.id).collect() };
    let (mut first_at, mut second_at) = (0, 0);
    for run in common(&ids(first), &ids(second)) {
        let [first_end, second_end] = [run.first + run.length, run.second + run.length];
        let (first_run, second_run) = (&first[run.first..first_end], &second[run.second..second_end]);
        if first_run.iter().all(Line::is_blank) {
            continue;
        }
        merged.extend(in_order(&first[first_at..run.first], &second[second_at..run.second], texts));
        merged.extend(shared(first_run, second_run));
        (first_at, second_at) = (first_end, second_end);
    }
    merged.extend(in_order(&first[first_at..], &second[second_at..], texts));
}

/// Returns two passages without common lines except blank ones, in an order that depends on their content only.
fn in_order(first: &[Line], second: &[Line], texts: &Texts<'_>) -> Vec<Line> {
    if first.is_empty() || second.is_empty() {
        return [first, second].concat();
    }
    if let (Some(first), Some(second)) = (List::of(first, texts), List::of(second, texts)) {
        let above = if first.above.len() < second.above.len() { second.above } else { first.above };
        let below = if first.below.len() < second.below.len() { second.below } else { first.below };
        let items = interleave(&first.items, &second.items).into_iter().flat_map(|item| item.lines);
        return above.iter().chain(items).chain(below).copied().collect();
    }
    let passage = |lines| Passage { lines, texts };
    if passage(second) < passage(first) { [second, first].concat() } else { [first, second].concat() }
}

/// Lines, compared by their text.
#[derive(Clone, Copy)]
struct Passage<'l> {
    lines: &'l [Line],
    texts: &'l Texts<'l>,
}

impl<'l> Passage<'l> {
    fn said(&self) -> impl Iterator<Item = &'l [u8]> {
        let texts = self.texts;
        self.lines.iter().map(|line| line.text(texts))
    }
}

impl Ord for Passage<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.said().cmp(other.said())
    }
}

impl PartialOrd for Passage<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Passage<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Passage<'_> {}

/// A list, and the blank lines that part it from the text around it.
struct List<'l> {
    above: &'l [Line],
    /// Each with the indented lines below it.
    items: Vec<Passage<'l>>,
    below: &'l [Line],
}

impl<'l> List<'l> {
    fn of(lines: &'l [Line], texts: &'l Texts<'_>) -> Option<List<'l>> {
        let start = lines.iter().position(|line| !line.is_blank())?;
        let end = lines.iter().rposition(|line| !line.is_blank())? + 1;
        let list = &lines[start..end];
        let is_list = list[0].is_list_item()
            && list.iter().all(|line| line.is_list_item() || (line.is_indented() && !line.is_blank()));
        let passage = |lines| Passage { lines, texts };
        let items = || list.chunk_by(|_, line| !line.is_list_item()).map(passage).collect();
        is_list.then(|| List { above: &lines[..start], items: items(), below: &lines[end..] })
    }
}

/// Returns the lines of the base between the two rules of its front matter; the second rule is one of them.
fn front_matter(base: &[Line], texts: &Texts<'_>) -> Range<usize> {
    let is_rule = |line: &Line| line.text(texts) == b"---";
    match base {
        [first, rest @ ..] if is_rule(first) => 1..rest.iter().position(is_rule).map_or(1, |end| end + 2),
        _ => 0..0,
    }
}

/// Puts both of two passages into the merged text that replaced the same lines; the second comes under a note, which is returned.
fn replace(
    first: &[Line],
    second: &[Line],
    devices: [&str; 2],
    mark: Mark,
    texts: &Texts<'_>,
    merged: &mut Vec<Line>,
) -> Option<String> {
    if hold(first, second, merged) {
        return None;
    }
    let same = |(line, other): &(&Line, &Line)| line.id == other.id;
    let prefix = first.iter().zip(second).take_while(same).count();
    let (first_rest, second_rest) = (&first[prefix..], &second[prefix..]);
    let suffix = first_rest.iter().rev().zip(second_rest.iter().rev()).take_while(same).count();
    let [first_own, second_own] =
        [first_rest, second_rest].map(|rest| Passage { lines: &rest[..rest.len() - suffix], texts });
    let (above, device, below) = match second_own < first_own {
        true => (second_own, devices[0], first_own),
        false => (first_own, devices[1], second_own),
    };
    let note = note::write(mark, device, About::lines(above.said(), below.said()));

    merged.extend(shared(&first[..prefix], &second[..prefix]));
    merged.extend(above.lines);
    merged.push(Line { id: NOTE, place_id: NOTE, look: Look(0), ending: Ending::Nothing });
    merged.extend(below.lines);
    merged.extend(shared(&first_rest[first_own.lines.len()..], &second_rest[second_own.lines.len()..]));
    Some(note)
}
