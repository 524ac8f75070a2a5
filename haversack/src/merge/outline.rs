//! Text under headings, merged by heading and by what is below.
//!
//! A heading is known by where it is and what it says; one that both sides have is one, whatever each of them put below it. It goes
//! if a side removed it and nothing is left below it. Below a heading are list items and other text, or just a text; which of
//! them stay, and in which order, is said in [`keyed`](super::keyed). An item has its heading as one of its properties, so one that
//! went below another heading has moved.
//!
//! Blank lines are not merged as lines: two pieces that are neighbours on a side are parted as they are there, others as is
//! usual in the file.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use super::keyed::{Element, Found, Judge, identified, order, survivors};
use super::note::{self, About, Mark};
use super::numbers::{NumberMap, NumberSet};
use super::pieces::{Class, Cut, Pieces, heading_level, least_gap, usual_gap};
use super::{Outcome, Part, moment};

/// What is particular to a rule that merges by headings.
pub(super) struct Shape<'s> {
    pub(super) cut: Cut,
    /// Returns what an item is known by wherever it stands.
    pub(super) identity: fn(&str) -> Option<String>,
    /// Returns what a heading is known by.
    pub(super) section: fn(&str) -> String,
    /// Tells which of two headings an item goes below that both sides moved: the greater.
    pub(super) rank: fn(&str) -> u8,
    /// Where new days go, if the file does not tell.
    pub(super) newest: Newest,
    /// Joins two texts that both differ from the base and from each other.
    pub(super) join: &'s dyn Fn(Option<&str>, &str, &str) -> Outcome,
}

/// Where the newest day of a log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newest {
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
    let [base_input, first, second] = Sorted::of([base_input, first, second]);
    let inputs = [&base_input, &first, &second];

    let mut judge = Joining { shape, places: &places, inputs, both_kept: false };
    let kept = survivors(&base_input.elements, [&first.elements, &second.elements], &mut judge);
    let both_kept = judge.both_kept;
    let writer = Writer {
        inputs,
        live: live(&kept, &places),
        residents: residents(inputs, &kept),
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
    // The same on two days is the same; the later day is told.
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

/// Tells whether every line of a text is in another, in the same order; indentation does not count.
fn holds(long: &str, short: &str) -> bool {
    let mut lines = long.lines();
    short.lines().all(|line| lines.any(|other| other.trim() == line.trim()))
}

const ROOT: u32 = 0;

/// The headings of base and sides, numbered; the first is the text itself.
struct Places {
    places: Vec<Place>,
    numbers: HashMap<(u32, String, usize), u32>,
}

struct Place {
    parent: u32,
    /// The date in its heading.
    date: Option<String>,
    key: String,
}

impl Places {
    fn new() -> Places {
        Places {
            places: vec![Place { parent: ROOT, date: None, key: String::new() }],
            numbers: HashMap::new(),
        }
    }

    fn number(&mut self, parent: u32, key: String, nth: usize) -> u32 {
        let next =
            u32::try_from(self.places.len()).expect("a file has fewer than four thousand million headings");
        *self.numbers.entry((parent, key.clone(), nth)).or_insert_with(|| {
            self.places.push(Place { parent, date: moment::date_in(&key).map(str::to_owned), key });
            next
        })
    }

    fn get(&self, place: u32) -> &Place {
        &self.places[place as usize]
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Block<'a> {
    text: Cow<'a, str>,
    class: Class,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Known {
    Start,
    Heading(u32),
    Block(u32),
    End,
}

/// One text, read.
struct Input<'a> {
    found: Vec<Found<'a, Block<'a>>>,
    headings: NumberMap<u32, &'a str>,
    children: NumberMap<u32, Vec<u32>>,
    /// The pieces in order with the blank lines above them; a heading by its number, a block by its turn.
    sequence: Vec<(Class, Option<u32>, usize)>,
    gap: usize,
    is_ended: bool,
}

impl<'a> Input<'a> {
    fn read(text: &'a str, shape: &Shape<'_>, places: &mut Places) -> Option<Input<'a>> {
        let Pieces { pieces, gap, is_ended } = Pieces::of(text, shape.cut)?;
        let mut input = Input {
            found: Vec::new(),
            headings: NumberMap::default(),
            children: NumberMap::default(),
            sequence: Vec::new(),
            gap,
            is_ended,
        };
        let mut above: Vec<(usize, u32)> = Vec::new();
        let mut seen: HashMap<(u32, String), usize> = HashMap::new();
        let mut has_body = false;
        for piece in pieces {
            let place = above.last().map_or(ROOT, |(_, place)| *place);
            if piece.class == Class::Heading {
                if shape.cut == Cut::Bodies && !has_body {
                    input.add(Class::Body, "", place, shape);
                }
                let level = heading_level(piece.text);
                while above.last().is_some_and(|(other, _)| *other >= level) {
                    above.pop();
                }
                let parent = above.last().map_or(ROOT, |(_, place)| *place);
                let key = (shape.section)(piece.text);
                let nth = seen.entry((parent, key.clone())).or_default();
                let place = places.number(parent, key, *nth);
                *nth += 1;
                above.push((level, place));
                input.headings.insert(place, piece.text);
                input.children.entry(parent).or_default().push(place);
                input.sequence.push((Class::Heading, Some(place), piece.gap));
                has_body = false;
            } else {
                input.add(piece.class, piece.text, place, shape);
                input.sequence.push((piece.class, None, piece.gap));
                has_body = true;
            }
        }
        if shape.cut == Cut::Bodies && !has_body {
            input.add(Class::Body, "", above.last().map_or(ROOT, |(_, place)| *place), shape);
        }
        Some(input)
    }

    fn add(&mut self, class: Class, text: &'a str, place: u32, shape: &Shape<'_>) {
        let identity = if class == Class::Item { (shape.identity)(text) } else { None };
        // There is one body below each heading, whatever it says.
        let known = if class == Class::Body { "" } else { text };
        let value = Block { text: Cow::Borrowed(text), class };
        self.found.push(Found { identity, text: Cow::Borrowed(known), place, value });
    }
}

/// One text, its pieces numbered.
struct Sorted<'a> {
    elements: Vec<Element<Block<'a>>>,
    headings: NumberMap<u32, &'a str>,
    children: NumberMap<u32, Vec<u32>>,
    /// The blank lines between two neighbours.
    gaps: NumberMap<(Known, Known), usize>,
    usual: NumberMap<(Class, Class), NumberMap<usize, usize>>,
}

impl<'a> Sorted<'a> {
    fn of(inputs: [Input<'a>; 3]) -> [Sorted<'a>; 3] {
        let mut rests = Vec::new();
        let found = inputs.map(|Input { found, headings, children, sequence, gap, .. }| {
            rests.push((headings, children, sequence, gap));
            found
        });
        let mut rests = rests.into_iter();
        identified(found).map(|elements| {
            let (headings, children, sequence, end_gap) = rests.next().expect("one for each input");
            let (mut gaps, mut usual) = (NumberMap::default(), NumberMap::<_, NumberMap<_, _>>::default());
            let mut blocks = elements.iter().filter(|element| !element.value.text.is_empty());
            let mut above = (Class::Start, Known::Start);
            let last = (Class::End, None, end_gap);
            for (class, heading, gap) in sequence.into_iter().chain([last]) {
                let known = match (class, heading) {
                    (Class::End, _) => Known::End,
                    (_, Some(place)) => Known::Heading(place),
                    (_, None) => Known::Block(blocks.next().expect("as many as were read").id),
                };
                gaps.insert((above.1, known), gap);
                *usual.entry((above.0, class)).or_default().entry(gap).or_insert(0) += 1;
                above = (class, known);
            }
            Sorted { elements, headings, children, gaps, usual }
        })
    }

    fn children(&self, place: u32) -> &[u32] {
        self.children.get(&place).map_or(&[], Vec::as_slice)
    }
}

/// How two blocks that differ become one.
struct Joining<'j, 'a> {
    shape: &'j Shape<'j>,
    places: &'j Places,
    inputs: [&'j Sorted<'a>; 3],
    both_kept: bool,
}

impl<'a> Judge<Block<'a>> for Joining<'_, 'a> {
    fn same(&self, one: &Block<'a>, other: &Block<'a>) -> bool {
        one.text == other.text
    }

    fn both(&mut self, base: Option<&Block<'a>>, first: &Block<'a>, second: &Block<'a>) -> Block<'a> {
        let joined = (self.shape.join)(base.map(|base| &*base.text), &first.text, &second.text);
        self.both_kept |= joined.both_kept;
        let text = joined.text.trim_matches('\n').to_owned();
        Block { text: Cow::Owned(text), class: first.class }
    }

    fn place(&self, first: u32, second: u32) -> u32 {
        let weight = |place: u32| {
            let heading =
                self.inputs.iter().find_map(|input| input.headings.get(&place)).copied().unwrap_or_default();
            ((self.shape.rank)(heading), &self.places.get(place).key)
        };
        if weight(first) >= weight(second) { first } else { second }
    }
}

/// Returns the headings below which something stays.
fn live(kept: &NumberMap<u32, Element<Block<'_>>>, places: &Places) -> NumberSet<u32> {
    let mut live = NumberSet::default();
    for element in kept.values() {
        let mut place = element.place;
        while live.insert(place) {
            place = places.get(place).parent;
        }
    }
    live
}

/// Returns for each heading what stays below it, as each input has it in order.
fn residents(
    inputs: [&Sorted<'_>; 3],
    kept: &NumberMap<u32, Element<Block<'_>>>,
) -> NumberMap<u32, [Vec<u32>; 3]> {
    let mut residents: NumberMap<u32, [Vec<u32>; 3]> = Default::default();
    for (number, input) in inputs.into_iter().enumerate() {
        for element in &input.elements {
            if kept.get(&element.id).is_some_and(|kept| kept.place == element.place) {
                residents.entry(element.place).or_default()[number].push(element.id);
            }
        }
    }
    residents
}

/// Returns where the newest day stands, by the days that follow each other in the file.
fn newest(inputs: [&Sorted<'_>; 3], places: &Places, shape: &Shape<'_>) -> Newest {
    let (mut falling, mut rising) = (0, 0);
    for children in inputs.iter().flat_map(|input| input.children.values()) {
        let dates: Vec<&String> =
            children.iter().filter_map(|place| places.get(*place).date.as_ref()).collect();
        for pair in dates.windows(2) {
            match pair[0].cmp(pair[1]) {
                Ordering::Less => rising += 1,
                Ordering::Equal => {}
                Ordering::Greater => falling += 1,
            }
        }
    }
    match falling.cmp(&rising) {
        Ordering::Less => Newest::Last,
        Ordering::Equal => shape.newest,
        Ordering::Greater => Newest::First,
    }
}

/// A piece of the merged text.
type Written<'w> = (Known, Class, &'w str);

struct Writer<'w, 'a> {
    inputs: [&'w Sorted<'a>; 3],
    places: &'w Places,
    kept: NumberMap<u32, Element<Block<'a>>>,
    live: NumberSet<u32>,
    residents: NumberMap<u32, [Vec<u32>; 3]>,
    newest: Newest,
}

impl<'w> Writer<'w, '_> {
    fn write_below(&'w self, place: u32, pieces: &mut Vec<Written<'w>>) {
        if let Some([base, first, second]) = self.residents.get(&place) {
            let compare = |one: u32, other: u32| self.kept[&one].value.cmp(&self.kept[&other].value);
            for id in order(base, [first, second], &compare) {
                let block = &self.kept[&id].value;
                if !block.text.is_empty() {
                    pieces.push((Known::Block(id), block.class, &block.text));
                }
            }
        }
        let [base, first, second] = self.inputs.map(|input| input.children(place));
        let stays = |child: &u32| {
            let has = |side: usize| self.inputs[side].headings.contains_key(child);
            let both = has(1) && has(2);
            both || !has(0) || self.live.contains(child)
        };
        let [base, first, second] =
            [base, first, second].map(|side| side.iter().copied().filter(stays).collect::<Vec<u32>>());
        let compare = |one: u32, other: u32| self.compare_headings(one, other);
        let mut children = order(&base, [&first, &second], &compare);
        // A heading takes in what is deeper behind it.
        children.sort_by_cached_key(|child| std::cmp::Reverse(heading_level(self.heading(*child))));
        for child in children {
            pieces.push((Known::Heading(child), Class::Heading, self.heading(child)));
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
        let [base, first, second] = self.inputs.map(|input| input.headings.get(&place).copied());
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
    let mut above = (Known::Start, Class::Start);
    for (known, class, piece) in pieces.iter().copied().chain([(Known::End, Class::End, "")]) {
        let gap = gap(inputs, above, (known, class)).max(least_gap(above.1, class, piece));
        if class != Class::End || !pieces.is_empty() {
            text.extend(std::iter::repeat_n('\n', gap));
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
fn gap(inputs: [&Sorted<'_>; 3], above: (Known, Class), below: (Known, Class)) -> usize {
    let [base, first, second] = inputs.map(|input| input.gaps.get(&(above.0, below.0)).copied());
    match (first, second) {
        (Some(first), Some(second)) if base == Some(first) => second,
        (Some(first), Some(second)) if base == Some(second) => first,
        (Some(first), Some(second)) => first.max(second),
        (Some(gap), None) | (None, Some(gap)) => gap,
        (None, None) => {
            let mut counts: NumberMap<usize, usize> = Default::default();
            for (gap, count) in
                inputs.iter().filter_map(|input| input.usual.get(&(above.1, below.1))).flatten()
            {
                *counts.entry(*gap).or_default() += count;
            }
            let most = counts.into_iter().max_by_key(|(gap, count)| (*count, *gap));
            most.map_or_else(|| usual_gap(above.1, below.1), |(gap, _)| gap)
        }
    }
}
