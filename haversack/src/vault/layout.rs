//! The names in a synced folder.
//!
//! ```text
//! .haversack/store.json                     which store this is
//! .haversack/log/<replica>/<number>         one entry of a device's log
//! .haversack/log/<replica>/<first>-<last>   a range of them, their own bytes one after the other
//! .haversack/objects/<replica>/<hash>       a content too large for a commit
//! ```
//!
//! Below a replica's name only that replica writes, and everything is complete before its name is there. What the folder has lost, others put
//! back as it was.

use haversack_store::Locator;

use crate::ids::{ContentHash, Position, ReplicaId};

const LOGS: &str = ".haversack/log";
const OBJECTS: &str = ".haversack/objects";

/// Entries of a log that are in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// The number of the first of them.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
}

impl Range {
    /// Returns the range of one entry.
    pub fn one(number: u64) -> Range {
        Range { first: number, last: number }
    }

    /// Returns the name of its file.
    pub fn name(self) -> String {
        let key = |number: u64| Position::new(number).map(Position::key).unwrap_or_default();
        match self.first == self.last {
            true => key(self.first),
            false => format!("{}-{}", key(self.first), key(self.last)),
        }
    }

    /// Returns the range that has this name; any other name is nothing of ours.
    pub fn from_name(name: &str) -> Option<Range> {
        let number = |key: &str| Position::from_key(key).ok().map(Position::number);
        match name.split_once('-') {
            None => number(name).map(Range::one),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                (first < last).then_some(Range { first, last })
            }
        }
    }
}

/// Returns the directory of all logs.
pub fn logs() -> Locator {
    ours(LOGS)
}

/// Returns the directory of one log.
pub fn log(replica: ReplicaId) -> Locator {
    ours(&format!("{LOGS}/{replica}"))
}

/// Returns the file of a range of entries.
pub fn entries(replica: ReplicaId, range: Range) -> Locator {
    ours(&format!("{LOGS}/{replica}/{}", range.name()))
}

/// Returns where a large content of a replica's commits is.
pub fn object(replica: ReplicaId, hash: &ContentHash) -> Locator {
    ours(&format!("{OBJECTS}/{replica}/{hash}"))
}

/// Returns whose log is in a directory.
pub fn replica_at(locator: &Locator) -> Option<ReplicaId> {
    let (directory, name) = locator.as_str().rsplit_once('/')?;
    name.parse().ok().filter(|_| directory == LOGS)
}

/// Returns which entries are in a file of a log.
pub fn range_at(locator: &Locator) -> Option<Range> {
    Range::from_name(locator.as_str().rsplit_once('/')?.1)
}

fn ours(key: &str) -> Locator {
    Locator::reserved(key).expect("short plain names below our own directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_has_one_name() {
        for range in [Range::one(1), Range::one(4_711), Range { first: 1, last: 128 }] {
            assert_eq!(Range::from_name(&range.name()), Some(range));
        }
        for name in [
            "",
            "1",
            "0000000000000000",
            "0000000000000001 (conflicted copy)",
            "0000000000000001.tmp",
            "0000000000000002-0000000000000001",
            "0000000000000001-0000000000000001",
        ] {
            assert_eq!(Range::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_log_is_known_by_its_directory() {
        let replica = ReplicaId::from_bytes([10; 16]);
        assert_eq!(replica_at(&log(replica)), Some(replica));
        assert_eq!(replica_at(&ours(".haversack/log/laptop")), None);
        assert_eq!(range_at(&entries(replica, Range::one(3))), Some(Range::one(3)));
    }
}
