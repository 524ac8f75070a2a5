//! A segment: passages that were indexed together, and the terms in them. Pure.
//!
//! A segment never changes after it was written, except that its passages can be marked as dead. All numbers in it are little-endian.
//!
//! - A passage is a record of [`RECORD_BYTES`] bytes. The passages of a file stand together, in their order.
//! - The postings of a term are the passages that have it: the distance to the passage before as a variable-length number, whose lowest bit says
//!   whether a byte with the counts follows. Without it, the term is once in the text.
//! - The dead passages are one bit each.

use crate::text::chunks::Occurrences;

/// The size of a passage's record.
pub(crate) const RECORD_BYTES: usize = 22;

/// The most that is counted of a term in the text and the title of one passage.
const MAX_TEXT: u16 = 31;
const MAX_TITLE: u16 = 7;

/// A passage in a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Its file, by the number that the index gave it.
    pub(crate) file: u32,
    /// The first line, from 1, and how many lines follow it.
    pub(crate) first_line: u32,
    pub(crate) more_lines: u16,
    /// The number of its words.
    pub(crate) length: u16,
    /// The day it is about, in days since 1970; 0 if it does not say.
    pub(crate) day: u16,
    /// The project it belongs to and its kind, by the numbers of their names; project 0 is none.
    pub(crate) project: u16,
    pub(crate) kind: u16,
    /// The number of passages before it in its file.
    pub(crate) place: u16,
    /// The first day on which its file is out of date, in days since 1970; 0 if it does not say.
    pub(crate) outdated_from: u16,
}

impl Record {
    /// Returns true if its file is out of date on a day, in days since 1970.
    pub(crate) fn is_outdated(&self, today: u16) -> bool {
        self.outdated_from > 0 && self.outdated_from <= today
    }

    /// Appends the record to the bytes of a segment.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.file.to_le_bytes());
        bytes.extend(self.first_line.to_le_bytes());
        let Record { more_lines, length, day, project, kind, place, outdated_from, .. } = *self;
        for half in [more_lines, length, day, project, kind, place, outdated_from] {
            bytes.extend(half.to_le_bytes());
        }
    }

    /// Reads all records of a segment; `None` if their bytes are damaged.
    pub(crate) fn read_all(bytes: &[u8]) -> Option<Vec<Record>> {
        let (records, rest) = bytes.as_chunks::<RECORD_BYTES>();
        let read = |record: &[u8; RECORD_BYTES]| {
            let half = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]);
            let word = |at: usize| u32::from(half(at)) | (u32::from(half(at + 2)) << 16);
            Record {
                file: word(0),
                first_line: word(4),
                more_lines: half(8),
                length: half(10),
                day: half(12),
                project: half(14),
                kind: half(16),
                place: half(18),
                outdated_from: half(20),
            }
        };
        let records: Vec<Record> = records.iter().map(read).collect();
        let is_whole = records.iter().enumerate().all(|(at, record)| usize::from(record.place) <= at);
        (rest.is_empty() && is_whole).then_some(records)
    }
}

/// The postings of one term, while a segment is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct PostingsWriter {
    bytes: Vec<u8>,
    next: u32,
}

impl PostingsWriter {
    /// Appends a passage, which must come after the ones before.
    pub(crate) fn push(&mut self, passage: u32, occurrences: Occurrences) {
        let counts =
            Occurrences { text: occurrences.text.min(MAX_TEXT), title: occurrences.title.min(MAX_TITLE) };
        let is_once = counts == Occurrences { text: 1, title: 0 };
        let mut number = (u64::from(passage - self.next) << 1) | u64::from(!is_once);
        while number >= 0x80 {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
        if !is_once {
            self.bytes.push(counts.text.to_le_bytes()[0] | (counts.title.to_le_bytes()[0] << 5));
        }
        self.next = passage + 1;
    }

    /// Returns the bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Calls `found` with every passage of some postings; `None` if their bytes are damaged.
pub(crate) fn read_postings(
    mut bytes: &[u8],
    passages: usize,
    mut found: impl FnMut(u32, Occurrences),
) -> Option<()> {
    let mut next: u64 = 0;
    while !bytes.is_empty() {
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let (byte, rest) = bytes.split_first()?;
            bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
            if shift > 35 {
                return None;
            }
        }
        let mut occurrences = Occurrences { text: 1, title: 0 };
        if number & 1 == 1 {
            let (byte, rest) = bytes.split_first()?;
            bytes = rest;
            occurrences = Occurrences { text: u16::from(byte & 0x1f), title: u16::from(byte >> 5) };
        }
        let passage = next + (number >> 1);
        if passage >= u64::try_from(passages).ok()? {
            return None;
        }
        found(u32::try_from(passage).ok()?, occurrences);
        next = passage + 1;
    }
    Some(())
}

/// Returns true if a passage is marked as dead.
pub(crate) fn is_dead(dead: &[u8], passage: u32) -> bool {
    let at = usize::try_from(passage / 8).unwrap_or(usize::MAX);
    dead.get(at).is_some_and(|byte| byte & (1 << (passage % 8)) != 0)
}

/// Marks some passages as dead.
pub(crate) fn bury(dead: &mut Vec<u8>, passages: std::ops::Range<u32>) {
    for passage in passages {
        let at = usize::try_from(passage / 8).unwrap_or(usize::MAX);
        if dead.len() <= at {
            dead.resize(at + 1, 0);
        }
        dead[at] |= 1 << (passage % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occurrences(text: u16, title: u16) -> Occurrences {
        Occurrences { text, title }
    }

    #[test]
    fn records_survive_writing() {
        let record = Record {
            file: 70_000,
            first_line: 80_000,
            more_lines: 3,
            length: 40,
            day: 20_000,
            project: 2,
            kind: 9,
            place: 1,
            outdated_from: 20_515,
        };
        let first = Record { place: 0, outdated_from: 0, ..record };
        let mut bytes = Vec::new();
        first.write(&mut bytes);
        record.write(&mut bytes);
        assert_eq!(bytes.len(), 2 * RECORD_BYTES);
        assert_eq!(Record::read_all(&bytes), Some(vec![first, record]));
        assert_eq!(Record::read_all(&bytes[..RECORD_BYTES + 1]), None);
        assert_eq!(Record::read_all(&bytes[RECORD_BYTES..]), None, "a second passage without a first");
    }

    #[test]
    fn postings_survive_writing() {
        let postings = [
            (0, occurrences(1, 0)),
            (1, occurrences(2, 1)),
            (500, occurrences(0, 7)),
            (100_000, occurrences(31, 0)),
        ];
        let mut writer = PostingsWriter::default();
        postings.iter().for_each(|(passage, occurrences)| writer.push(*passage, *occurrences));
        let bytes = writer.into_bytes();
        let mut read = Vec::new();
        read_postings(&bytes, 100_001, |passage, occurrences| read.push((passage, occurrences)))
            .expect("whole");
        assert_eq!(read, postings);
        assert_eq!(read_postings(&bytes, 100_000, |_, _| {}), None, "a passage that is not there");
        assert_eq!(read_postings(&bytes[..bytes.len() - 1], 100_001, |_, _| {}), None);
        assert_eq!(read_postings(&[0xff; 9], 10, |_, _| {}), None);
    }

    #[test]
    fn dead_passages_are_marked() {
        let mut dead = Vec::new();
        bury(&mut dead, 7..10);
        let marked: Vec<u32> = (0..20).filter(|passage| is_dead(&dead, *passage)).collect();
        assert_eq!(marked, [7, 8, 9]);
    }
}
