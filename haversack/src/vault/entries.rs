//! A range of a log's entries in one file, byte for byte: a long log is few files, which is what sync clients can carry.

use haversack_store::Bytes;
use serde::{Deserialize, Serialize};

use super::entry::{Entry, MAX_ENTRY_BYTES};
use super::layout::Range;
use crate::frame::{self, BadFrame, Framed, Parts, Unfit, as_number};
use crate::ids::ReplicaId;

/// The largest file of entries.
pub(super) const MAX_ENTRIES_BYTES: usize = 64 * 1024 * 1024;

const KIND: &str = "entries";
pub(crate) const VERSION: u32 = 1;

/// Entries that follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entries {
    pub(super) replica: ReplicaId,
    pub(super) range: Range,
    /// The bytes of each.
    pub(super) entries: Vec<Bytes>,
}

impl Entries {
    /// Returns the bytes of a file that holds them.
    pub(super) fn encode(&self) -> Result<Bytes, Unfit> {
        let heading = Heading {
            replica: self.replica,
            first: self.range.first,
            last: self.range.last,
            entries: self.entries.iter().map(|entry| as_number(entry.len())).collect(),
        };
        let contents: Vec<&[u8]> = self.entries.iter().map(|entry| &entry[..]).collect();
        frame::encode(KIND, VERSION, &heading, &contents, MAX_ENTRIES_BYTES)
    }

    /// Reads a file of a log, which holds one entry or a range of them; it must be the one that its place says.
    pub(super) fn decode(replica: ReplicaId, range: Range, bytes: &Bytes) -> Result<Vec<Entry>, BadFrame> {
        let entries = if range.first == range.last {
            vec![Entry::decode(bytes)?]
        } else {
            Entries::parts(replica, range, bytes)?.iter().map(Entry::decode).collect::<Result<_, _>>()?
        };
        let numbers = range.first..=range.last;
        let fits = entries
            .iter()
            .zip(numbers.clone())
            .all(|(entry, number)| (entry.replica, entry.number) == (replica, number));
        match fits && entries.len() == numbers.count() {
            true => Ok(entries),
            false => Err(BadFrame::damaged("it holds other entries than its name says")),
        }
    }

    /// Returns the bytes of each entry of a file that holds a range.
    pub(super) fn parts(replica: ReplicaId, range: Range, bytes: &Bytes) -> Result<Vec<Bytes>, BadFrame> {
        let Framed { heading, contents, .. } =
            frame::decode::<Heading>(KIND, VERSION, bytes, MAX_ENTRIES_BYTES)?;
        if (heading.replica, heading.first, heading.last) != (replica, range.first, range.last) {
            return Err(BadFrame::damaged("it holds other entries than its name says"));
        }
        let mut parts = Parts::of(contents);
        let mut entries = Vec::new();
        for length in heading.entries {
            if length > as_number(MAX_ENTRY_BYTES) {
                return Err(BadFrame::TooLarge {
                    what: "bytes of an entry",
                    limit: as_number(MAX_ENTRY_BYTES),
                });
            }
            entries.push(parts.take(length)?);
        }
        parts.end()?;
        Ok(entries)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Heading {
    replica: ReplicaId,
    first: u64,
    last: u64,
    /// The length of each entry.
    entries: Vec<u64>,
}
