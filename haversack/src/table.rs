//! Sorted names with a record each, in one buffer, found where they lie.
//!
//! ```text
//! for every name, in order: where it ends among the names (4 bytes, the lowest first), and its record
//! the names, one after the other
//! ```
//!
//! Reading a table checks it once, without decoding its records. A record is decoded when it is needed. So a caller with a hundred
//! thousand files pays for the few that changed.

use std::cmp::Ordering;

use haversack_store::Bytes;

/// The number of bytes for the end of a name.
const END: usize = 4;

/// Sorted names, each with a record of so many bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table<const RECORD: usize> {
    bytes: Bytes,
    rows: usize,
}

impl<const RECORD: usize> Table<RECORD> {
    /// Reads a table of so many names; `None` if it is none.
    pub(crate) fn read(bytes: Bytes, rows: usize) -> Option<Table<RECORD>> {
        let names = bytes.get(rows.checked_mul(END + RECORD)?..)?;
        // Names that are whole together may be cut in a character each.
        let names = str::from_utf8(names).ok()?;
        let table = Table { bytes: bytes.clone(), rows };
        let (mut start, mut before) = (0, None);
        for row in 0..rows {
            let end = table.end(row);
            let name = names.get(start..end)?;
            if before >= Some(name) {
                return None;
            }
            (start, before) = (end, Some(name));
        }
        (start == names.len()).then_some(table)
    }

    /// Returns how many names there are.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Returns how many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns a name and its record.
    pub(crate) fn row(&self, row: usize) -> (&str, &[u8; RECORD]) {
        let name = str::from_utf8(self.name(row)).expect("looked at when it was read");
        (name, self.record(row))
    }

    /// Returns the record of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8; RECORD]> {
        self.find(name).map(|row| self.record(row))
    }

    /// Returns every name and its record, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[u8; RECORD])> {
        (0..self.rows).map(|row| self.row(row))
    }

    /// Returns where a name is.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low.midpoint(high);
            match self.name(middle).cmp(name.as_bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns a way to find names that are asked for in order.
    pub(crate) fn cursor(&self) -> Cursor<'_, RECORD> {
        Cursor { table: self, row: 0 }
    }

    /// Returns the record of a row.
    pub(crate) fn record(&self, row: usize) -> &[u8; RECORD] {
        let start = row * (END + RECORD) + END;
        let record = self.bytes[start..].first_chunk();
        record.expect("looked at when it was read")
    }

    fn name(&self, row: usize) -> &[u8] {
        let names = self.rows * (END + RECORD);
        let start = if row == 0 { 0 } else { self.end(row - 1) };
        &self.bytes[names + start..names + self.end(row)]
    }

    fn end(&self, row: usize) -> usize {
        let end = self.bytes[row * (END + RECORD)..].first_chunk().map_or(0, |end| u32::from_le_bytes(*end));
        usize::try_from(end).unwrap_or(usize::MAX)
    }
}

/// Finds names that are asked for in order, each row looked at once.
pub(crate) struct Cursor<'a, const RECORD: usize> {
    table: &'a Table<RECORD>,
    row: usize,
}

impl<'a, const RECORD: usize> Cursor<'a, RECORD> {
    /// Returns the record of a name that comes after the one that was asked for before, and tells `skipped` of the names between them.
    pub(crate) fn seek(&mut self, name: &str, mut skipped: impl FnMut(&'a str)) -> Option<&'a [u8; RECORD]> {
        while self.row < self.table.rows {
            match self.table.name(self.row).cmp(name.as_bytes()) {
                Ordering::Less => skipped(self.table.row(self.row).0),
                Ordering::Equal => {
                    self.row += 1;
                    return Some(self.table.record(self.row - 1));
                }
                Ordering::Greater => return None,
            }
            self.row += 1;
        }
        None
    }

    /// Returns the names that are left.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &'a str> {
        let table = self.table;
        (self.row..table.rows).map(|row| table.row(row).0)
    }
}

/// A table that is being written.
#[derive(Debug, Default)]
pub(crate) struct Writer<const RECORD: usize> {
    rows: Vec<u8>,
    names: Vec<u8>,
    count: usize,
}

impl<const RECORD: usize> Writer<RECORD> {
    /// Adds a name, which comes after all that were added before.
    pub(crate) fn add(&mut self, name: &str, record: &[u8; RECORD]) {
        self.names.extend_from_slice(name.as_bytes());
        // A longer one is more than a file of the state may hold.
        let end = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.rows.extend_from_slice(&end.to_le_bytes());
        self.rows.extend_from_slice(record);
        self.count += 1;
    }

    /// Returns how many names were added.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the bytes, in two parts that follow one another.
    pub(crate) fn into_parts(self) -> [Vec<u8>; 2] {
        [self.rows, self.names]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn written(rows: &BTreeMap<String, [u8; 3]>) -> Bytes {
        let mut writer = Writer::default();
        rows.iter().for_each(|(name, record)| writer.add(name, record));
        writer.into_parts().concat().into()
    }

    fn some() -> BTreeMap<String, [u8; 3]> {
        ["a", "a/ü", "b"].into_iter().zip(0..).map(|(name, number)| (name.to_owned(), [number; 3])).collect()
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let bytes = written(&some());
        assert!(Table::<3>::read(bytes.clone(), 3).is_some());
        assert!(Table::<3>::read(Bytes::new(), 0).is_some());
        for rows in [0, 1, 2, 4, usize::MAX] {
            assert_eq!(Table::<3>::read(bytes.clone(), rows), None, "{rows} rows");
        }
        for cut in 0..bytes.len() {
            assert_eq!(Table::<3>::read(bytes.slice(..cut), 3), None, "cut at {cut}");
        }
        let out_of_order = {
            let mut writer = Writer::<3>::default();
            ["b", "a"].iter().for_each(|name| writer.add(name, &[0; 3]));
            Bytes::from(writer.into_parts().concat())
        };
        assert_eq!(Table::<3>::read(out_of_order, 2), None);
        // Name ends in the middle of a character, or before the name's start.
        for (at, end) in [(7, 4), (7, 0), (14, 200)] {
            let mut wrong = bytes.to_vec();
            wrong[at] = end;
            assert_eq!(Table::<3>::read(wrong.into(), 3), None, "{end} at {at}");
        }
    }

    #[test]
    fn a_cursor_tells_what_it_passes() {
        let table = Table::<3>::read(written(&some()), 3).expect("a table");
        let mut cursor = table.cursor();
        let mut passed = Vec::new();
        assert_eq!(cursor.seek("a", |name| passed.push(name)), Some(&[0; 3]));
        assert_eq!(cursor.seek("a!", |name| passed.push(name)), None);
        assert!(passed.is_empty());
        assert_eq!(cursor.seek("aa", |name| passed.push(name)), None);
        assert_eq!(passed, ["a/ü"]);
        assert_eq!(cursor.rest().collect::<Vec<_>>(), ["b"]);
    }

    proptest! {
        #[test]
        fn a_table_is_a_sorted_map(
            rows in proptest::collection::btree_map("[a-cü/]{0,4}", any::<[u8; 3]>(), 0..40),
            asked in proptest::collection::btree_set("[a-cü/]{0,4}", 0..40),
        ) {
            let table = Table::<3>::read(written(&rows), rows.len()).expect("a table");
            prop_assert_eq!(table.len(), rows.len());
            let all: Vec<_> = table.iter().map(|(name, record)| (name.to_owned(), *record)).collect();
            prop_assert_eq!(all, rows.clone().into_iter().collect::<Vec<_>>());
            let mut cursor = table.cursor();
            let mut passed = Vec::new();
            for name in &asked {
                prop_assert_eq!(table.get(name), rows.get(name));
                prop_assert_eq!(cursor.seek(name, |passing| passed.push(passing)), rows.get(name));
            }
            passed.extend(cursor.rest());
            let expected: Vec<&str> = rows.keys().filter(|name| !asked.contains(*name)).map(String::as_str).collect();
            prop_assert_eq!(passed, expected);
        }
    }
}
