//! The bases on disk: a table, and a JSON line for each of the few bases that need more fields.
//!
//! A base is read in place when it is needed. The contents of the frame are the [table](Table), and then the rows of
//! contents that are in packs, 4 bytes each, in the order of the contents' hashes.

use std::collections::{BTreeMap, HashMap};

use haversack_store::{Bytes, Locator};
use serde::{Deserialize, Serialize};

use super::plan::AbsenceReason;
use super::state::{BaseLine, Head, LogView};
use crate::ids::{ContentHash, Position, StoreId};
use crate::log::files::{CONTENT, Files, RECORD, content};
use crate::log::{self, Content, StateMark};
use crate::table::{Table, Writer};

/// The format of the snapshot; the first had no table, and all bases were in its heading.
pub(crate) const VERSION: u32 = 2;

/// The size of a row number in bytes.
const ROW: usize = 4;

/// The known data, without the bases in the table.
#[derive(Serialize, Deserialize)]
pub(super) struct Heading {
    pub(super) number: u64,
    store: Option<StoreId>,
    head: Option<Head>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    attempt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    joined: Option<Position>,
    mark: StateMark,
    /// Bases with fields that the table does not have.
    bases: Vec<BaseLine>,
    #[serde(default)]
    table: Shape,
}

/// The data that is needed to read the table.
#[derive(Serialize, Deserialize)]
struct Shape {
    rows: usize,
    /// The mark of the files in it.
    mark: StateMark,
    /// The packs that its records count, from 1.
    packs: Vec<ContentHash>,
    /// The number of its contents that are in a pack.
    packed: usize,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { rows: 0, mark: StateMark::empty(), packs: Vec::new(), packed: 0 }
    }
}

/// The location of a content in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) pack: ContentHash,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// In which packs contents are.
#[derive(Clone, Debug, Default)]
pub(super) struct Packs {
    table: Table<RECORD>,
    packs: Vec<ContentHash>,
    /// The rows of packed contents, in the order of their hashes.
    order: Bytes,
    /// The new locations of contents that moved since.
    moved: HashMap<ContentHash, Packed>,
}

impl Packs {
    pub(super) fn get(&self, hash: &ContentHash) -> Option<Packed> {
        self.moved.get(hash).copied().or_else(|| self.written(hash))
    }

    pub(super) fn extend(&mut self, packed: impl IntoIterator<Item = (ContentHash, Packed)>) {
        self.moved.extend(packed);
    }

    fn written(&self, hash: &ContentHash) -> Option<Packed> {
        let (rows, _) = self.order.as_chunks::<ROW>();
        let row = |row: &[u8; ROW]| usize::try_from(u32::from_le_bytes(*row)).unwrap_or(usize::MAX);
        let held = |at: &[u8; ROW]| {
            let row = row(at);
            (row < self.table.len()).then(|| content(self.table.record(row)).hash)
        };
        let at = rows.partition_point(|at| held(at) < Some(*hash));
        let at = rows.get(at).filter(|at| held(at) == Some(*hash))?;
        self.of(self.table.record(row(at)))
    }

    /// Returns where the content of a record is.
    fn of(&self, record: &[u8; RECORD]) -> Option<Packed> {
        let (number, offset) = record[CONTENT + 1..].split_first_chunk()?;
        let number = usize::try_from(u32::from_le_bytes(*number)).ok()?.checked_sub(1)?;
        let offset = u64::from_le_bytes(*offset.first_chunk()?);
        Some(Packed { pack: *self.packs.get(number)?, offset, size: content(record).size })
    }
}

/// Encodes the state; returns the heading and the parts of the contents.
pub(super) fn write(known: &LogView, number: u64) -> (Heading, Vec<Vec<u8>>) {
    let mut writer = Writer::<RECORD>::default();
    let mut numbers: HashMap<ContentHash, u32> = HashMap::new();
    let mut shape = Shape::default();
    let mut order: Vec<(ContentHash, u32)> = Vec::new();
    for entry in known.log.files().entries() {
        let hash = entry.content.hash;
        let packed = known.packed.moved.get(&hash).copied();
        let packed = packed.or_else(|| match entry.record {
            Some(record) => known.packed.of(record),
            None => known.packed.written(&hash),
        });
        let pack = packed.map_or(0, |packed| {
            *numbers.entry(packed.pack).or_insert_with(|| {
                shape.packs.push(packed.pack);
                u32::try_from(shape.packs.len()).unwrap_or(u32::MAX)
            })
        });
        if packed.is_some() {
            order.push((hash, u32::try_from(writer.count()).unwrap_or(u32::MAX)));
        }
        let absent = known.absent.get(entry.name).copied();
        writer
            .add(entry.name, &record(entry.content, absent, pack, packed.map_or(0, |packed| packed.offset)));
    }
    order.sort_unstable();
    let bases: Vec<BaseLine> = known.extra_lines();
    (shape.rows, shape.packed) = (writer.count(), order.len());
    shape.mark = known.log.mark_without_odd();
    let heading = Heading {
        number,
        store: known.store,
        head: known.head.clone(),
        attempt: known.attempt.clone(),
        joined: known.joined,
        mark: known.log.mark(),
        bases,
        table: shape,
    };
    let order = order.into_iter().flat_map(|(_, row)| row.to_le_bytes()).collect();
    let [rows, names] = writer.into_parts();
    (heading, vec![rows, names, order])
}

/// Decodes a state; `None` if it is damaged.
pub(super) fn read(heading: Heading, contents: &Bytes) -> Option<LogView> {
    let Heading { number: _, store, head, attempt, joined, mark, bases, table: shape } = heading;
    let mut known = LogView { store, head, attempt, joined, ..LogView::default() };
    let (table, packs) = tables(&shape, contents)?;
    match Files::written(table.clone()) {
        Some(files) => {
            known.log = log::State::written(files, shape.mark);
            known.absent = absent(&table);
            known.packed = packs;
        }
        // A name that was good when it was written is odd now.
        None => {
            let lines: Vec<BaseLine> =
                table.iter().map(|(name, record)| line(&packs, name, record)).collect();
            known.take(&lines, shape.mark).ok()?;
        }
    }
    known.take(&bases, mark).ok()?;
    Some(known)
}

/// Lets the state refer to the written file.
pub(super) fn settle(known: &mut LogView, heading: &Heading, contents: &Bytes) {
    if let Some((table, packs)) = tables(&heading.table, contents)
        && let Some(files) = Files::written(table)
    {
        known.log.was_written(files);
        // Contents that are not in the table are in the lines beside it, or will be named soon.
        let mut moved = std::mem::take(&mut known.packed.moved);
        let before = known.before.values().filter_map(|hash| Some((*hash, known.packed.written(hash)?)));
        for (hash, packed) in before {
            moved.entry(hash).or_insert(packed);
        }
        known.packed = Packs { moved, ..packs };
    }
}

fn tables(shape: &Shape, contents: &Bytes) -> Option<(Table<RECORD>, Packs)> {
    let end = contents.len().checked_sub(shape.packed.checked_mul(ROW)?)?;
    let table = Table::read(contents.slice(..end), shape.rows)?;
    let order = contents.slice(end..);
    let packs = Packs { table: table.clone(), packs: shape.packs.clone(), order, moved: HashMap::new() };
    Some((table, packs))
}

fn record(content: Content, absent: Option<AbsenceReason>, pack: u32, offset: u64) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    let parts: [&[u8]; 5] = [
        &content.hash.to_bytes(),
        &content.size.to_le_bytes(),
        &[code(absent)],
        &pack.to_le_bytes(),
        &offset.to_le_bytes(),
    ];
    let mut rest = &mut record[..];
    for part in parts {
        let (place, after) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = after;
    }
    record
}

fn line(packs: &Packs, name: &str, record: &[u8; RECORD]) -> BaseLine {
    let pack = packs.of(record).map(|packed| (packed.pack, packed.offset));
    BaseLine { absent: why(record[CONTENT]), pack, ..BaseLine::new(name, Some(content(record))) }
}

fn absent(table: &Table<RECORD>) -> BTreeMap<Locator, AbsenceReason> {
    let not_here = table.iter().filter(|(_, record)| record[CONTENT] != 0);
    let named = |(name, record): (&str, &[u8; RECORD])| {
        Some((Locator::from_stored_key(name).ok()?, why(record[CONTENT])?))
    };
    not_here.filter_map(named).collect()
}

fn code(absent: Option<AbsenceReason>) -> u8 {
    match absent {
        None => 0,
        Some(AbsenceReason::Unfetched) => 1,
        Some(AbsenceReason::Refused) => 2,
        Some(AbsenceReason::Missing) => 3,
        Some(AbsenceReason::Unbound) => 4,
    }
}

fn why(code: u8) -> Option<AbsenceReason> {
    match code {
        1 => Some(AbsenceReason::Unfetched),
        2 => Some(AbsenceReason::Refused),
        3 => Some(AbsenceReason::Missing),
        4 => Some(AbsenceReason::Unbound),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> ContentHash {
        ContentHash::of(text.as_bytes())
    }

    fn base(at: &str, text: &str) -> BaseLine {
        BaseLine::new(at, Some(Content { hash: hash(text), size: text.len() as u64 }))
    }

    /// Bases of which there is all there can be to say.
    fn example() -> LogView {
        let lines = [
            BaseLine { pack: Some((hash("pack"), 7)), ..base("a.md", "a") },
            base("b/ü.md", "b"),
            BaseLine { absent: Some(AbsenceReason::Unfetched), ..base("c.md", "c") },
            BaseLine {
                absent: Some(AbsenceReason::Unbound),
                pack: Some((hash("other"), 0)),
                ..base("d.md", "d")
            },
            BaseLine { foreign: Some(hash("by hand")), pack: Some((hash("pack"), 1)), ..base("e.md", "e") },
            BaseLine {
                before: Some(hash("was")),
                pack: Some((hash("pack"), 9)),
                size: 3,
                ..BaseLine::new("f.md", None)
            },
            BaseLine { foreign: Some(hash("gone")), ..BaseLine::new("g.md", None) },
            base("odd/../name", "odd"),
            BaseLine { pack: Some((hash("pack"), 7)), ..base("same as a", "a") },
        ];
        let mut log = log::State::empty();
        lines
            .iter()
            .for_each(|line| log.set(&line.at, line.hash.map(|hash| Content { hash, size: line.size })));
        let mut known = LogView { attempt: Some("7".to_owned()), ..LogView::default() };
        known.take(&lines, log.mark()).expect("the mark of all of them");
        known
    }

    /// Writes the state, and reads it again.
    fn written(known: &LogView) -> (Heading, Bytes) {
        let (heading, parts) = write(known, 3);
        let json = serde_json::to_vec(&heading).expect("prints");
        (serde_json::from_slice(&json).expect("reads"), parts.concat().into())
    }

    fn read_back(known: &LogView) -> LogView {
        let (heading, contents) = written(known);
        read(heading, &contents).expect("whole")
    }

    fn assert_same(known: &LogView, expected: &LogView) {
        assert_eq!(known.log, expected.log);
        assert_eq!(known.attempt, expected.attempt);
        assert_eq!(known.absent, expected.absent);
        assert_eq!(known.before, expected.before);
        assert_eq!(known.foreign, expected.foreign);
        for text in ["a", "b", "c", "d", "e", "was", "odd", "new", "unknown"] {
            assert_eq!(known.packed.get(&hash(text)), expected.packed.get(&hash(text)), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let known = example();
        assert_eq!((known.log.files().len(), known.log.odd().len()), (6, 1));
        assert_same(&read_back(&known), &known);
        assert_same(&read_back(&read_back(&known)), &known);
        let mut settled = example();
        let (heading, contents) = written(&settled);
        settle(&mut settled, &heading, &contents);
        assert_same(&settled, &known);
        assert_same(&read_back(&LogView::default()), &LogView::default());
    }

    #[test]
    fn what_moves_afterwards_is_written_too() {
        let moves = [
            BaseLine { pack: Some((hash("new pack"), 4)), ..base("a.md", "new") },
            BaseLine::new("b/ü.md", None),
            base("c.md", "c"),
            BaseLine { pack: Some((hash("new pack"), 40)), ..base("d.md", "d") },
            base("z.md", "z"),
        ];
        let (mut one, mut other) = (example(), read_back(&example()));
        for known in [&mut one, &mut other] {
            let lines = moves.iter().map(|line| (line.at.as_str(), line.hash));
            let mark = known.log.mark_with(lines);
            known.take(&moves, mark).expect("the mark of all of them");
        }
        assert_same(&other, &one);
        assert_same(&read_back(&other), &one);
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let known = example();
        let (_, contents) = written(&known);
        for cut in 0..contents.len() {
            assert!(read(written(&known).0, &contents.slice(..cut)).is_none(), "cut at {cut}");
        }
        let (mut heading, _) = written(&known);
        heading.mark = StateMark::empty();
        assert!(read(heading, &contents).is_none(), "another mark");
        for (rows, packed) in [(0, 0), (5, 4), (7, 4), (6, 0), (6, usize::MAX), (usize::MAX, 4)] {
            let (mut heading, _) = written(&known);
            (heading.table.rows, heading.table.packed) = (rows, packed);
            assert!(read(heading, &contents).is_none(), "{rows} rows, {packed} packed");
        }
    }

    /// An earlier Haversack may have written a name that a later one refuses.
    #[test]
    fn a_name_that_is_odd_now_is_told_from_files() {
        let mut writer = Writer::default();
        let mut mark = log::State::empty();
        for name in [".haversack/x", "a.md"] {
            let content = Content { hash: hash(name), size: 1 };
            mark.set(name, Some(content));
            writer.add(name, &record(content, None, 0, 0));
        }
        let (mut heading, _) = written(&LogView::default());
        heading.mark = mark.mark();
        heading.table = Shape { rows: writer.count(), mark: mark.mark(), ..Shape::default() };
        let known = read(heading, &writer.into_parts().concat().into()).expect("whole");
        assert_eq!((known.log.files().len(), known.log.odd().len()), (1, 1));
    }
}
