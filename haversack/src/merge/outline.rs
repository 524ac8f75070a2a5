//! Merges text under headings, by heading.
//!
//! A heading is identified by its place and its text. A heading that both sides have is one, with any text below it. It goes
//! if a side removed it and nothing is left below it. Below a heading are list items and other text, or just a text; which of
//! them stay, and in which order, is said in [`keyed`](super::keyed). An item has its heading as one of its properties, so one that
//! went below another heading has moved.
//!
//! Blank lines are not merged as lines: two pieces that are neighbours on a side are parted as they are there, others as is
//! usual in the file.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

use super::keyed::{Element, Found, Judge, NOTHING_SAID, Survivors, identified, order, survivors};
use super::note::{self, About, Mark};
use super::numbers::NumberMap;
use super::pieces::{Class, Cut, Ended, Pieces, heading_level, least_gap, usual_gap};
use super::texts::Numbering;
use super::{Outcome, Part, moment};

/// The settings of a rule that merges by headings.
pub(super) struct Shape<'s> {
    pub(super) cut: Cut,
    /// Returns the identity of an item, independent of its place.
    pub(super) identity: fn(&str) -> Option<Cow<'_, str>>,
    /// Returns the identity of a heading.
    pub(super) section: fn(&str) -> Cow<'_, str>,
    /// Tells which of two headings an item goes below that both sides moved: the greater.
    pub(super) rank: fn(&str) -> u8,
    /// The place of new days. The order of the file's days decides, unless this is [`Newest::AlwaysFirst`].
    pub(super) newest: Newest,
    /// Joins two texts that both differ from the base and from each other.
    pub(super) join: &'s dyn Fn(Option<&str>, &str, &str) -> Outcome,
}

/// The place of a log's newest day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newest {
    /// Above the other days, in any order of those.
    AlwaysFirst,
    First,
    Last,
}

/// Merges two texts; `None` if one of them cannot be cut.
pub(super) fn merge(base: Option<&str>, sides: [&str; 2], shape: &Shape<'_>) -> Option<Outcome> {
    let mut places = Places::new();
    let [base_input, first, second] = [
        Input::read(base.unwrap_or_default(), shape, &mut places)?,
        Input::read(sides[0], shape, &mut places)?,
        Input::read(sides[1], shape, &mut places)?,
    ];
    let is_ended = first.is_ended || second.is_ended;
    let [base_input, first, second] = Sorted::of([base_input, first, second], places.places.len());
    let inputs = [&base_input, &first, &second];

    let mut judge = Joining { shape, places: &places, inputs, both_kept: false };
    let kept = survivors(&base_input.elements, [&first.elements, &second.elements], &mut judge);
    let both_kept = judge.both_kept;
    let writer = Writer {
        inputs,
        live: live(&kept, &places),
        residents: inputs.map(|input| residents(input, &kept, places.places.len())),
        kept,
        places: &places,
        newest: newest(inputs, &places, shape),
    };
    let mut pieces = Vec::new();
    writer.write_below(ROOT, &mut pieces);
    Some(Outcome { text: joined(&pieces, inputs, is_ended), both_kept })
}

/// Joins two list items: the lines of both in one item, the second under a note.
pub(super) fn join_items(base: Option<&str>, first: Part<'_>, second: Part<'_>) -> Outcome {
    if let Some(text) =
        [(first, second), (second, first)].into_iter().find(|(one, other)| holds(one.text, other.text))
    {
        return Outcome { text: text.0.text.to_owned(), both_kept: false };
    }
    // The same text on two days is one; the later day counts.
    if undated(first.text) == undated(second.text) {
        return Outcome { text: first.text.max(second.text).to_owned(), both_kept: false };
    }
    if let Some(base) = base.filter(|base| base.contains('\n')) {
        let outcome = super::by_lines(base, first, second);
        if !outcome.both_kept {
            return outcome;
        }
    }
    let (above, below) = if first.text <= second.text { (first, second) } else { (second, first) };
    let note = note::write(Mark::Quote, below.device, About::texts(above.text, below.text));
    let indented: Vec<String> = below.text.lines().map(|line| format!("  {line}")).collect();
    Outcome { text: format!("{}\n  {note}\n{}", above.text, indented.join("\n")), both_kept: true }
}

/// Joins two texts that tell of the same: the second under a note, unless one holds the other.
pub(super) fn join_accounts(first: Part<'_>, second: Part<'_>) -> Outcome {
    if let Some(text) =
        [(first, second), (second, first)].into_iter().find(|(one, other)| holds(one.text, other.text))
    {
        return Outcome { text: text.0.text.to_owned(), both_kept: false };
    }
    let (above, below) = if first.text <= second.text { (first, second) } else { (second, first) };
    let note = note::write(Mark::Quote, below.device, About::texts(above.text, below.text));
    Outcome { text: format!("{}\n\n{note}\n{}", above.text, below.text), both_kept: true }
}

/// Returns a text without its dates.
fn undated(text: &str) -> String {
    let mut rest = text.to_owned();
    while let Some(date) = moment::date_in(&rest).map(str::to_owned) {
        rest = rest.replace(&date, "");
    }
    rest
}

/// Returns true if every line of a text is in another, in the same order; indentation does not count.
fn holds(long: &str, short: &str) -> bool {
    let mut lines = long.lines();
    short.lines().all(|line| lines.any(|other| other.trim() == line.trim()))
}

const ROOT: u32 = 0;

/// The headings of base and sides, numbered, and the blocks below them; the first heading is the text itself.
struct Places<'a> {
    places: Vec<Section<'a>>,
    /// The texts of blocks, and the identity of each block that was asked for.
    texts: Numbering<&'a str>,
    known_by: Vec<Option<Option<u32>>>,
    identities: Numbering<Cow<'a, str>>,
    keys: Numbering<Cow<'a, str>>,
    /// For each key the first heading with it, and its parent; then the others, by their parents.
    firsts: Vec<(u32, u32)>,
    others: NumberMap<(u32, u32), u32>,
}

struct Section<'a> {
    parent: u32,
    /// The date in its heading.
    date: Option<[u8; 10]>,
    key: Cow<'a, str>,
    /// The next heading that says the same below the same.
    twin: Option<u32>,
}

impl<'a> Places<'a> {
    fn new() -> Places<'a> {
        let root = Section { parent: ROOT, date: None, key: Cow::Borrowed(""), twin: None };
        Places {
            places: vec![root],
            texts: Numbering::default(),
            known_by: Vec::new(),
            identities: Numbering::default(),
            keys: Numbering::default(),
            firsts: Vec::new(),
            others: NumberMap::default(),
        }
    }

    /// Goes to the beginning of the next text, which has at most so many pieces.
    fn begin(&mut self, lines: usize, cut: Cut) {
        let (blocks, headings) = match cut {
            Cut::Blocks => (lines, 0),
            Cut::Bodies => (0, lines / 2),
        };
        self.texts.begin_with(blocks);
        self.identities.begin_with(blocks);
        self.keys.begin_with(headings);
    }

    /// Returns the number of an item's identity, by the number of its text.
    fn identity(&mut self, text: &'a str, number: u32, shape: &Shape<'_>) -> Option<u32> {
        let at = number as usize;
        if self.known_by.len() <= at {
            self.known_by.resize(at + 1, None);
        }
        *self.known_by[at]
            .get_or_insert_with(|| (shape.identity)(text).map(|identity| self.identities.number(identity)))
    }

    /// Returns the number of the first heading that says something below another.
    fn first(&mut self, parent: u32, key: Cow<'a, str>) -> u32 {
        let number = self.keys.number(key.clone());
        match self.firsts.get(number as usize) {
            Some((above, place)) if *above == parent => return *place,
            Some(_) => {
                if let Some(place) = self.others.get(&(parent, number)) {
                    return *place;
                }
            }
            None => {}
        }
        let date = moment::date_in(&key).and_then(|date| date.as_bytes().try_into().ok());
        let place = self.add(Section { parent, date, key, twin: None });
        match number as usize == self.firsts.len() {
            true => self.firsts.push((parent, place)),
            false => drop(self.others.insert((parent, number), place)),
        }
        place
    }

    /// Returns the number of the next heading that says the same below the same.
    fn twin(&mut self, place: u32) -> u32 {
        let Section { parent, date, ref key, twin } = self.places[place as usize];
        if let Some(twin) = twin {
            return twin;
        }
        let key = key.clone();
        let twin = self.add(Section { parent, date, key, twin: None });
        self.places[place as usize].twin = Some(twin);
        twin
    }

    fn add(&mut self, place: Section<'a>) -> u32 {
        let number =
            u32::try_from(self.places.len()).expect("a file has fewer than four thousand million headings");
        self.places.push(place);
        number
    }

    fn get(&self, place: u32) -> &Section<'a> {
        &self.places[place as usize]
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Block<'a> {
    text: Cow<'a, str>,
    class: Class,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Start,
    Heading(u32),
    Block(u32),
    End,
}

/// The headings of one text, by number.
#[derive(Default)]
struct Headings<'a> {
    texts: Vec<Option<&'a str>>,
    /// In order, each with its parent.
    places: Vec<(u32, u32)>,
}

impl<'a> Headings<'a> {
    fn add(&mut self, parent: u32, place: u32, text: &'a str) {
        if self.texts.len() <= place as usize {
            self.texts.resize(place as usize + 1, None);
        }
        self.texts[place as usize] = Some(text);
        self.places.push((parent, place));
    }

    fn get(&self, place: u32) -> Option<&'a str> {
        self.texts.get(place as usize).copied().flatten()
    }
}

/// The blocks right below each heading, in order.
struct Below {
    numbers: Vec<u32>,
    /// The start of each heading's blocks; one more for the end.
    starts: Vec<u32>,
}

impl Below {
    /// Sorts numbers by the heading that comes before each of them.
    fn of(pairs: impl Iterator<Item = (u32, u32)> + Clone, places: usize) -> Below {
        let mut starts = vec![0; places + 1];
        for (place, _) in pairs.clone() {
            starts[place as usize + 1] += 1;
        }
        for place in 0..places {
            starts[place + 1] += starts[place];
        }
        let mut numbers = vec![0; starts[places] as usize];
        let mut next = starts.clone();
        for (place, number) in pairs {
            let at = &mut next[place as usize];
            numbers[*at as usize] = number;
            *at += 1;
        }
        Below { numbers, starts }
    }

    fn get(&self, place: u32) -> &[u32] {
        let at = place as usize;
        &self.numbers[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// One text, read.
struct Input<'a> {
    found: Vec<Found<Block<'a>>>,
    headings: Headings<'a>,
    /// The pieces in order with the blank lines above them; a heading by its number, a block by its turn.
    sequence: Vec<(Class, Option<u32>, u32)>,
    gap: u32,
    is_ended: bool,
}

impl<'a> Input<'a> {
    fn read(text: &'a str, shape: &Shape<'_>, places: &mut Places<'a>) -> Option<Input<'a>> {
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
        let mut input = Input {
            found: Vec::with_capacity(lines),
            headings: Headings::default(),
            sequence: Vec::with_capacity(lines),
            gap: 0,
            is_ended: false,
        };
        let mut above: Vec<(usize, u32)> = Vec::new();
        // The last of the same headings that came before, by the number of the first.
        let mut last: Vec<Option<u32>> = Vec::new();
        places.begin(lines, shape.cut);
        let mut has_body = false;
        let mut pieces = Pieces::of(text, shape.cut);
        for piece in &mut pieces {
            let place = above.last().map_or(ROOT, |(_, place)| *place);
            if piece.class == Class::Heading {
                if shape.cut == Cut::Bodies && !has_body {
                    input.add(Class::Body, "", place, shape, places);
                }
                let level = heading_level(piece.text);
                while above.last().is_some_and(|(other, _)| *other >= level) {
                    above.pop();
                }
                let parent = above.last().map_or(ROOT, |(_, place)| *place);
                let first = places.first(parent, (shape.section)(piece.text));
                if last.len() <= first as usize {
                    last.resize(first as usize + 1, None);
                }
                let last = &mut last[first as usize];
                let place = *last.insert(last.map_or(first, |last| places.twin(last)));
                above.push((level, place));
                input.headings.add(parent, place, piece.text);
                input.sequence.push((Class::Heading, Some(place), piece.gap));
                has_body = false;
            } else {
                input.add(piece.class, piece.text, place, shape, places);
                input.sequence.push((piece.class, None, piece.gap));
                has_body = true;
            }
        }
        if shape.cut == Cut::Bodies && !has_body {
            input.add(Class::Body, "", above.last().map_or(ROOT, |(_, place)| *place), shape, places);
        }
        let Ended { gap, is_ended } = pieces.ended()?;
        Some(Input { gap, is_ended, ..input })
    }

    fn add(&mut self, class: Class, text: &'a str, place: u32, shape: &Shape<'_>, places: &mut Places<'a>) {
        // There is one body below each heading, with any text.
        let number = if class == Class::Body { NOTHING_SAID } else { places.texts.number(text) };
        let identity = if class == Class::Item { places.identity(text, number, shape) } else { None };
        let value = Block { text: Cow::Borrowed(text), class };
        self.found.push(Found { identity, text: number, place, value });
    }
}

/// One text, its pieces numbered.
struct Sorted<'a> {
    elements: Vec<Element<Block<'a>>>,
    headings: Headings<'a>,
    children: Below,
    gaps: Gaps,
}

/// The blank lines of one text: for each piece the piece above it, and the number of blank lines between.
struct Gaps {
    of_blocks: Vec<(Anchor, u32)>,
    of_headings: Vec<(Anchor, u32)>,
    of_end: (Anchor, u32),
    /// How frequent each number of blank lines is between two sorts of pieces.
    usual: [[NumberMap<u32, usize>; CLASSES]; CLASSES],
}

/// The number of sorts of pieces.
const CLASSES: usize = Class::End as usize + 1;

impl Gaps {
    fn add(&mut self, above: (Class, Anchor), below: (Class, Anchor), gap: u32) {
        // The end is above nothing.
        let put = |list: &mut Vec<(Anchor, u32)>, number: u32| {
            if list.len() <= number as usize {
                list.resize(number as usize + 1, (Anchor::End, 0));
            }
            list[number as usize] = (above.1, gap);
        };
        match below.1 {
            Anchor::Block(id) => put(&mut self.of_blocks, id),
            Anchor::Heading(place) => put(&mut self.of_headings, place),
            Anchor::Start | Anchor::End => self.of_end = (above.1, gap),
        }
        *self.usual[above.0 as usize][below.0 as usize].entry(gap).or_insert(0) += 1;
    }

    /// Returns how many are between two pieces; `None` if they are no neighbours.
    fn between(&self, above: Anchor, below: Anchor) -> Option<u32> {
        let found = match below {
            Anchor::Block(id) => self.of_blocks.get(id as usize),
            Anchor::Heading(place) => self.of_headings.get(place as usize),
            Anchor::Start | Anchor::End => Some(&self.of_end),
        };
        found.filter(|(known, _)| *known == above).map(|(_, gap)| *gap)
    }
}

impl<'a> Sorted<'a> {
    fn of(inputs: [Input<'a>; 3], places: usize) -> [Sorted<'a>; 3] {
        let mut rests = Vec::new();
        let found = inputs.map(|Input { found, headings, sequence, gap, .. }| {
            rests.push((headings, sequence, gap));
            found
        });
        let mut rests = rests.into_iter();
        identified(found).map(|elements| {
            let (headings, sequence, end_gap) = rests.next().expect("one for each input");
            let mut gaps = Gaps {
                of_blocks: Vec::with_capacity(elements.len()),
                of_headings: Vec::with_capacity(headings.texts.len()),
                of_end: (Anchor::End, 0),
                usual: Default::default(),
            };
            let mut blocks = elements.iter().filter(|element| !element.value.text.is_empty());
            let mut above = (Class::Start, Anchor::Start);
            let last = (Class::End, None, end_gap);
            for (class, heading, gap) in sequence.into_iter().chain([last]) {
                let known = match (class, heading) {
                    (Class::End, _) => Anchor::End,
                    (_, Some(place)) => Anchor::Heading(place),
                    (_, None) => Anchor::Block(blocks.next().expect("as many as were read").id),
                };
                gaps.add(above, (class, known), gap);
                above = (class, known);
            }
            let children = Below::of(headings.places.iter().copied(), places);
            Sorted { elements, headings, children, gaps }
        })
    }
}

/// How two blocks that differ become one.
struct Joining<'j, 'a> {
    shape: &'j Shape<'j>,
    places: &'j Places<'a>,
    inputs: [&'j Sorted<'a>; 3],
    both_kept: bool,
}

impl<'a> Judge<Block<'a>> for Joining<'_, 'a> {
    fn same(&self, one: &Block<'a>, other: &Block<'a>) -> bool {
        one.text == other.text
    }

    fn adds(&self, before: &Block<'a>, after: &Block<'a>) -> bool {
        if before.text == after.text {
            return false;
        }
        let said: HashSet<&str> = before.text.lines().map(str::trim_end).collect();
        after.text.lines().map(str::trim_end).any(|line| !line.is_empty() && !said.contains(line))
    }

    fn both(&mut self, base: Option<&Block<'a>>, first: &Block<'a>, second: &Block<'a>) -> Block<'a> {
        let joined = (self.shape.join)(base.map(|base| &*base.text), &first.text, &second.text);
        self.both_kept |= joined.both_kept;
        let text = joined.text.trim_matches('\n').to_owned();
        Block { text: Cow::Owned(text), class: first.class }
    }

    fn place(&self, first: u32, second: u32) -> u32 {
        let weight = |place: u32| {
            let heading = self.inputs.iter().find_map(|input| input.headings.get(place)).unwrap_or_default();
            ((self.shape.rank)(heading), &self.places.get(place).key)
        };
        if weight(first) >= weight(second) { first } else { second }
    }
}

/// Tells below which headings something stays.
fn live(kept: &Survivors<Block<'_>>, places: &Places<'_>) -> Vec<bool> {
    let mut live = vec![false; places.places.len()];
    for element in kept.iter() {
        let mut place = element.place;
        while !std::mem::replace(&mut live[place as usize], true) {
            place = places.get(place).parent;
        }
    }
    live
}

/// Returns what stays below each heading of one text, where it is there.
fn residents(input: &Sorted<'_>, kept: &Survivors<Block<'_>>, places: usize) -> Below {
    let stays =
        |element: &&Element<Block<'_>>| kept.get(element.id).is_some_and(|kept| kept.place == element.place);
    Below::of(input.elements.iter().filter(stays).map(|element| (element.place, element.id)), places)
}

/// Returns where the newest day stands, by the days that follow each other in the file.
fn newest(inputs: [&Sorted<'_>; 3], places: &Places<'_>, shape: &Shape<'_>) -> Newest {
    if shape.newest == Newest::AlwaysFirst {
        return Newest::First;
    }
    let (mut falling, mut rising) = (0, 0);
    let all = (0..).zip(&places.places).map(|(place, _)| place);
    for children in inputs.iter().flat_map(|input| all.clone().map(|place| input.children.get(place))) {
        let mut dates = children.iter().filter_map(|place| places.get(*place).date);
        let mut above = dates.next();
        for date in dates {
            match above.cmp(&Some(date)) {
                Ordering::Less => rising += 1,
                Ordering::Equal => {}
                Ordering::Greater => falling += 1,
            }
            above = Some(date);
        }
    }
    match falling.cmp(&rising) {
        Ordering::Less => Newest::Last,
        Ordering::Equal => shape.newest,
        Ordering::Greater => Newest::First,
    }
}

/// A piece of the merged text.
type Written<'w> = (Anchor, Class, &'w str);

struct Writer<'w, 'a> {
    inputs: [&'w Sorted<'a>; 3],
    places: &'w Places<'a>,
    kept: Survivors<Block<'a>>,
    live: Vec<bool>,
    residents: [Below; 3],
    newest: Newest,
}

impl<'w> Writer<'w, '_> {
    fn write_below(&'w self, place: u32, pieces: &mut Vec<Written<'w>>) {
        let [base, first, second] = self.residents.each_ref().map(|residents| residents.get(place));
        let compare = |one: u32, other: u32| self.kept[one].value.cmp(&self.kept[other].value);
        for id in order(base, [first, second], &compare).iter() {
            let block = &self.kept[*id].value;
            if !block.text.is_empty() {
                pieces.push((Anchor::Block(*id), block.class, &block.text));
            }
        }
        let [base, first, second] = self.inputs.map(|input| input.children.get(place));
        if first.is_empty() && second.is_empty() {
            return;
        }
        let stays = |child: &u32| {
            let has = |side: usize| self.inputs[side].headings.get(*child).is_some();
            let both = has(1) && has(2);
            both || !has(0) || self.live[*child as usize]
        };
        let [base, first, second] =
            [base, first, second].map(|side| side.iter().copied().filter(stays).collect::<Vec<u32>>());
        let compare = |one: u32, other: u32| self.compare_headings(one, other);
        let mut children = order(&base, [&first, &second], &compare).into_owned();
        // Deeper headings after a heading belong to it.
        children.sort_by_cached_key(|child| std::cmp::Reverse(heading_level(self.heading(*child))));
        for child in children {
            pieces.push((Anchor::Heading(child), Class::Heading, self.heading(child)));
            self.write_below(child, pieces);
        }
    }

    fn compare_headings(&self, one: u32, other: u32) -> Ordering {
        let [one_place, other_place] = [one, other].map(|place| self.places.get(place));
        let by_date = match (&one_place.date, &other_place.date) {
            (Some(one), Some(other)) if self.newest == Newest::First => other.cmp(one),
            (Some(one), Some(other)) => one.cmp(other),
            _ => Ordering::Equal,
        };
        by_date.then_with(|| self.heading(one).cmp(self.heading(other))).then(one.cmp(&other))
    }

    /// Returns the text of a heading: the one that a side changed.
    fn heading(&self, place: u32) -> &'w str {
        let [base, first, second] = self.inputs.map(|input| input.headings.get(place));
        match (first, second) {
            (Some(first), Some(second)) if base == Some(first) => second,
            (Some(first), Some(second)) if base == Some(second) => first,
            (Some(first), Some(second)) => first.max(second),
            (one, other) => one.or(other).unwrap_or_default(),
        }
    }
}

fn joined(pieces: &[Written<'_>], inputs: [&Sorted<'_>; 3], is_ended: bool) -> String {
    let mut text = String::with_capacity(pieces.iter().map(|(_, _, text)| text.len() + 2).sum());
    let mut above = (Anchor::Start, Class::Start);
    for (known, class, piece) in pieces.iter().copied().chain([(Anchor::End, Class::End, "")]) {
        let gap = gap(inputs, above, (known, class)).max(least_gap(above.1, class, piece));
        if class != Class::End || !pieces.is_empty() {
            text.extend(std::iter::repeat_n('\n', gap as usize));
        }
        if class != Class::End {
            text.push_str(piece);
            text.push('\n');
        }
        above = (known, class);
    }
    if !is_ended {
        text.truncate(text.trim_end_matches('\n').len());
    }
    text
}

/// Returns how many blank lines part two pieces.
fn gap(inputs: [&Sorted<'_>; 3], above: (Anchor, Class), below: (Anchor, Class)) -> u32 {
    let [base, first, second] = inputs.map(|input| input.gaps.between(above.0, below.0));
    match (first, second) {
        (Some(first), Some(second)) if base == Some(first) => second,
        (Some(first), Some(second)) if base == Some(second) => first,
        (Some(first), Some(second)) => first.max(second),
        (Some(gap), None) | (None, Some(gap)) => gap,
        (None, None) => {
            let mut counts: NumberMap<u32, usize> = Default::default();
            let of_input =
                inputs.iter().flat_map(|input| &input.gaps.usual[above.1 as usize][below.1 as usize]);
            for (gap, count) in of_input {
                *counts.entry(*gap).or_default() += count;
            }
            let most = counts.into_iter().max_by_key(|(gap, count)| (*count, *gap));
            most.map_or_else(|| usual_gap(above.1, below.1), |(gap, _)| gap)
        }
    }
}
