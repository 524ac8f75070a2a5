//! The files of a state: those that were written down, where they lie, and what became of them since.

use std::borrow::Borrow;
use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::iter::Peekable;

use haversack_store::Locator;

use super::odd;
use crate::frame::as_number;
use crate::ids::ContentHash;
use crate::table::Table;

/// The number of bytes in a file's record: first its content's hash and size, then the bytes of the record's owner.
pub(crate) const RECORD: usize = CONTENT + 13;

/// The bytes of the content.
pub(crate) const CONTENT: usize = ContentHash::BYTES + 8;

/// The content of a file, by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The content's name.
    pub hash: ContentHash,
    /// Its size in bytes.
    pub size: u64,
}

impl Content {
    /// Returns true if these bytes have the hash and the size, which may be forged.
    pub(crate) fn is_of(&self, bytes: &[u8]) -> bool {
        self.size == as_number(bytes.len()) && ContentHash::of(bytes) == self.hash
    }
}

/// Files by name, sorted, and what each of them holds.
///
/// Copies are cheap: they share what was written down.
#[derive(Clone, Default)]
pub struct Files {
    written: Table<RECORD>,
    /// Files that changed since; `None` for deleted files.
    moved: BTreeMap<Locator, Option<Content>>,
    count: usize,
}

impl Files {
    /// Returns the files of a table; `None` if one of its names cannot be a file's.
    pub(crate) fn written(table: Table<RECORD>) -> Option<Files> {
        let is_file = |(name, _): (&str, _)| odd::is_file(name);
        let count = table.len();
        table.iter().all(is_file).then(|| Files { written: table.clone(), moved: BTreeMap::new(), count })
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns what a file holds.
    pub fn get(&self, name: &(impl Borrow<str> + ?Sized)) -> Option<Content> {
        let name = name.borrow();
        match self.moved.get(name) {
            Some(now) => *now,
            None => self.written.get(name).map(content),
        }
    }

    /// Returns true if a file is there.
    pub fn contains_key(&self, name: &(impl Borrow<str> + ?Sized)) -> bool {
        self.get(name).is_some()
    }

    /// Returns every file and what it holds, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Locator, Content)> {
        self.entries().map(|entry| (entry.locator(), entry.content))
    }

    /// Returns every file, in order.
    pub fn keys(&self) -> impl Iterator<Item = Locator> {
        self.entries().map(|entry| entry.locator())
    }

    /// Returns what the files hold, in their order.
    pub fn values(&self) -> impl Iterator<Item = Content> {
        self.entries().map(|entry| entry.content)
    }

    /// Returns every file as it lies, in order.
    pub(crate) fn entries(&self) -> Entries<'_> {
        Entries { written: &self.written, row: 0, moved: self.moved.iter().peekable() }
    }

    pub(super) fn insert(&mut self, locator: Locator, content: Content) {
        self.count += usize::from(!self.contains_key(&locator));
        self.moved.insert(locator, Some(content));
    }

    /// Takes a file away; returns what it held.
    pub(super) fn remove(&mut self, name: &str) -> Option<Content> {
        let held = self.get(name)?;
        self.count -= 1;
        match self.written.find(name) {
            Some(_) => drop(self.moved.insert(locator(name), None)),
            None => drop(self.moved.remove(name)),
        }
        Some(held)
    }
}

/// A file as it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) content: Content,
    /// All that was written down about it, if nothing became of it since.
    pub(crate) record: Option<&'a [u8; RECORD]>,
    moved: Option<&'a Locator>,
}

impl Entry<'_> {
    pub(crate) fn locator(&self) -> Locator {
        self.moved.map_or_else(|| locator(self.name), Locator::clone)
    }
}

/// Files as they lie, in order.
pub(crate) struct Entries<'a> {
    written: &'a Table<RECORD>,
    row: usize,
    moved: Peekable<btree_map::Iter<'a, Locator, Option<Content>>>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let written = (self.row < self.written.len()).then(|| self.written.row(self.row));
            let moved = self.moved.peek().map(|(locator, _)| locator.as_str());
            match written {
                Some((name, record)) if moved.is_none_or(|moved| name < moved) => {
                    self.row += 1;
                    return Some(Entry { name, content: content(record), record: Some(record), moved: None });
                }
                Some((name, _)) if moved == Some(name) => self.row += 1,
                Some(_) | None => {}
            }
            let (locator, now) = self.moved.next()?;
            if let Some(content) = *now {
                return Some(Entry { name: locator.as_str(), content, record: None, moved: Some(locator) });
            }
        }
    }
}

/// Returns the content that a record begins with.
pub(crate) fn content(record: &[u8; RECORD]) -> Content {
    let (hash, rest) = record.split_first_chunk().expect("it is longer");
    let size = rest.first_chunk().expect("it is longer");
    Content { hash: ContentHash::from_bytes(*hash), size: u64::from_le_bytes(*size) }
}

fn locator(name: &str) -> Locator {
    Locator::from_stored_key(name).expect("looked at when it was read")
}

impl PartialEq for Files {
    fn eq(&self, other: &Files) -> bool {
        let all = |files: &Files| {
            files.entries().map(|entry| (entry.name.to_owned(), entry.content)).collect::<Vec<_>>()
        };
        self.count == other.count && all(self) == all(other)
    }
}

impl Eq for Files {}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries().map(|entry| (entry.name, entry.content))).finish()
    }
}

impl FromIterator<(Locator, Content)> for Files {
    fn from_iter<T: IntoIterator<Item = (Locator, Content)>>(files: T) -> Files {
        let moved: BTreeMap<Locator, Option<Content>> =
            files.into_iter().map(|(locator, content)| (locator, Some(content))).collect();
        Files { written: Table::default(), count: moved.len(), moved }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::Writer;

    fn held(number: u8) -> Content {
        Content { hash: ContentHash::of(&[number]), size: u64::from(number) }
    }

    fn table(files: &BTreeMap<String, u8>) -> Option<Files> {
        let mut writer = Writer::default();
        for (name, number) in files {
            let Content { hash, size } = held(*number);
            let mut record = [0; RECORD];
            record[..CONTENT].copy_from_slice(&[&hash.to_bytes()[..], &size.to_le_bytes()].concat());
            writer.add(name, &record);
        }
        let rows = writer.count();
        Files::written(Table::read(writer.into_parts().concat().into(), rows).expect("a table"))
    }

    #[test]
    fn names_that_are_no_files_are_noticed() {
        for (name, is_file) in [
            ("notes/a.md", true),
            ("ü.md", true),
            ("", false),
            ("a//b", false),
            ("../a", false),
            (".haversack/a", false),
            ("manifest.json", false),
            ("u\u{308}.md", false),
        ] {
            assert_eq!(table(&[(name.to_owned(), 1)].into()).is_some(), is_file, "{name}");
        }
    }

    proptest! {
        #[test]
        fn files_are_a_sorted_map(
            written in proptest::collection::btree_map("[a-c]{1,2}", 0_u8..3, 0..8),
            moves in proptest::collection::vec(("[a-c]{1,2}", proptest::option::of(0_u8..3)), 0..16),
        ) {
            let mut files = table(&written).expect("files");
            let mut expected: BTreeMap<String, Content> =
                written.into_iter().map(|(name, number)| (name, held(number))).collect();
            for (name, now) in moves {
                match now {
                    Some(number) => {
                        files.insert(locator(&name), held(number));
                        expected.insert(name.clone(), held(number));
                    }
                    None => prop_assert_eq!(files.remove(&name), expected.remove(&name)),
                }
                prop_assert_eq!(files.get(name.as_str()), expected.get(&name).copied());
                prop_assert_eq!((files.len(), files.is_empty()), (expected.len(), expected.is_empty()));
            }
            let all: Vec<_> = files.iter().map(|(locator, content)| (locator.to_string(), content)).collect();
            prop_assert_eq!(all, expected.clone().into_iter().collect::<Vec<_>>());
            let same: Files = expected.iter().map(|(name, content)| (locator(name), *content)).collect();
            prop_assert_eq!(files, same);
        }
    }
}
