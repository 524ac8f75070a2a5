//! One entry of a device's log in a vault.

use haversack_store::{Bytes, Locator};
use serde::{Deserialize, Serialize};

use super::heads::Heads;
use crate::frame::{self, BadFrame, Framed, Unfit, as_number};
use crate::ids::{ContentHash, ReplicaId};
use crate::log::{Commit, MAX_COMMIT_BYTES};

/// The largest entry: a commit, and its metadata.
pub(super) const MAX_ENTRY_BYTES: usize = MAX_COMMIT_BYTES + 4 * 1024 * 1024;

/// The most logs that an entry can name.
pub(super) const MAX_REPLICAS: usize = 10_000;

/// The most contents that one entry announces.
pub(super) const MAX_SHOWN: usize = 10_000;

const KIND: &str = "entry";
pub(crate) const VERSION: u32 = 1;

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whose log it is in.
    pub replica: ReplicaId,
    /// The number of the entry; the first is 1.
    pub number: u64,
    /// The entries of every log that its author had read, including its own.
    pub seen: Heads,
    /// The author's changes, as in the author's home log; `None` if the entry only announces something.
    pub commit: Option<Commit>,
    /// Contents that its author puts into the folder as plain files, and that no commit contains: results of merges.
    ///
    /// A device that finds one of them in the folder knows that it is no edit by hand.
    pub shown: Vec<(Locator, ContentHash)>,
}

impl Entry {
    /// Returns the bytes of the entry, which are the same every time.
    pub fn encode(&self) -> Result<Bytes, Unfit> {
        if self.number == 0 || self.seen.each().count() > MAX_REPLICAS || self.shown.len() > MAX_SHOWN {
            return Err(Unfit::wrong("an entry has a number, and bounded lists"));
        }
        let commit = self.commit.as_ref().map(Commit::encode).transpose()?;
        let shown = self.shown.iter().map(|(at, hash)| Shown { at: at.to_string(), hash: *hash });
        let heading = Heading {
            replica: self.replica,
            number: self.number,
            seen: self.seen.clone(),
            commit: commit.as_ref().map(|commit| as_number(commit.len())),
            shown: shown.collect(),
        };
        let contents: Vec<&[u8]> = commit.iter().map(|commit| &commit[..]).collect();
        frame::encode(KIND, VERSION, &heading, &contents, MAX_ENTRY_BYTES)
    }

    /// Reads the bytes of an entry and believes nothing that can be checked; half of one is refused.
    pub fn decode(bytes: &Bytes) -> Result<Entry, BadFrame> {
        let Framed { heading, contents, .. } =
            frame::decode::<Heading>(KIND, VERSION, bytes, MAX_ENTRY_BYTES)?;
        let Heading { replica, number, seen, commit, shown } = heading;
        if seen.each().count() > MAX_REPLICAS {
            return Err(BadFrame::TooLarge { what: "logs", limit: as_number(MAX_REPLICAS) });
        }
        if shown.len() > MAX_SHOWN {
            return Err(BadFrame::TooLarge { what: "announcements", limit: as_number(MAX_SHOWN) });
        }
        if commit.unwrap_or_default() != as_number(contents.len()) {
            return Err(BadFrame::damaged("its commit does not have the announced length"));
        }
        // An entry that had read itself, or what comes after it, has no place in any order.
        if number == 0 || seen.of(replica) >= number {
            return Err(BadFrame::damaged("its number contradicts the entries that its author had read"));
        }
        let commit = commit.map(|_| Commit::decode(&contents)).transpose()?;
        // A refused name names no file here.
        let shown = shown.into_iter().filter_map(|shown| Some((Locator::parse(&shown.at).ok()?, shown.hash)));
        Ok(Entry { replica, number, seen, commit, shown: shown.collect() })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Heading {
    replica: ReplicaId,
    number: u64,
    seen: Heads,
    /// The length of the commit, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    shown: Vec<Shown>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Shown {
    at: String,
    hash: ContentHash,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CommitId, Position, StoreId, Timestamp};
    use crate::log::{Carried, FileChange, StateMark, What};

    fn entry() -> Entry {
        let replica = ReplicaId::from_bytes([7; 16]);
        let content = Bytes::from_static(b"- lighthouse\n");
        let locator = Locator::parse("notes/lighthouse.md").expect("valid");
        let hash = ContentHash::of(&content);
        let commit = Commit {
            store: StoreId::from_bytes([1; 16]),
            position: Position::FIRST,
            id: CommitId::from_bytes([2; 16]),
            previous: ContentHash::of(b""),
            replica,
            device: "laptop".to_owned(),
            agent: None,
            session: None,
            time: Timestamp(1_789_000_000_000),
            cause: "sync".to_owned(),
            state: StateMark::empty(),
            changes: vec![FileChange {
                locator: locator.clone(),
                what: What::Put { hash, size: 13, content: Carried::Inline(content), from: None },
            }],
            odd: Vec::new(),
            notice: None,
        };
        let seen = Heads::default().with(replica, 2).with(ReplicaId::from_bytes([9; 16]), 4);
        Entry { replica, number: 3, seen, commit: Some(commit), shown: vec![(locator, hash)] }
    }

    #[test]
    fn what_is_written_is_read() {
        let whole = entry();
        assert_eq!(Entry::decode(&whole.encode().expect("fits")), Ok(whole.clone()));
        let note = Entry { commit: None, ..whole };
        assert_eq!(Entry::decode(&note.encode().expect("fits")), Ok(note));
    }

    #[test]
    fn half_of_one_and_damage_are_refused() {
        let bytes = entry().encode().expect("fits");
        for length in 0..bytes.len() {
            assert!(Entry::decode(&bytes.slice(..length)).is_err(), "{length} bytes of it");
        }
        for place in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.to_vec();
            changed[place] ^= 1;
            assert!(Entry::decode(&changed.into()).is_err(), "byte {place} changed");
        }
    }

    #[test]
    fn an_entry_that_had_read_itself_is_refused() {
        let own = entry();
        let seen = own.seen.clone().with(own.replica, 3);
        let bytes = Entry { seen, ..own }.encode().expect("fits");
        assert!(Entry::decode(&bytes).is_err());
    }
}
