//! The part of every log that was read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::ReplicaId;

/// The last entry of every replica's log that was read, together with all entries before it.
///
/// A log whose replica is not named was not read at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Heads(BTreeMap<ReplicaId, u64>);

impl Heads {
    /// Returns how far the log of a replica was read; 0 if not at all.
    pub fn of(&self, replica: ReplicaId) -> u64 {
        self.0.get(&replica).copied().unwrap_or_default()
    }

    /// Adds the log of a replica up to an entry.
    #[must_use]
    pub fn with(mut self, replica: ReplicaId, number: u64) -> Heads {
        if number > self.of(replica) {
            self.0.insert(replica, number);
        }
        self
    }

    /// Returns what either has read.
    #[must_use]
    pub fn join(self, other: &Heads) -> Heads {
        other.0.iter().fold(self, |heads, (replica, number)| heads.with(*replica, *number))
    }

    /// Returns the entries that both have read.
    #[must_use]
    pub fn meet(&self, other: &Heads) -> Heads {
        let both = self.0.iter().map(|(replica, number)| (*replica, other.of(*replica).min(*number)));
        Heads(both.filter(|(_, number)| *number > 0).collect())
    }

    /// Returns true if these heads contain all entries of the other.
    pub fn covers(&self, other: &Heads) -> bool {
        other.0.iter().all(|(replica, number)| self.of(*replica) >= *number)
    }

    /// Returns the logs that were read, and how far.
    pub fn each(&self) -> impl Iterator<Item = (ReplicaId, u64)> {
        self.0.iter().map(|(replica, number)| (*replica, *number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(number: u8) -> ReplicaId {
        ReplicaId::from_bytes([number; 16])
    }

    #[test]
    fn heads_join_and_meet() {
        let one = Heads::default().with(replica(1), 3).with(replica(2), 1);
        let other = Heads::default().with(replica(1), 2).with(replica(3), 4);
        assert_eq!(one.meet(&other), Heads::default().with(replica(1), 2));
        let joined = one.clone().join(&other);
        assert!(joined.covers(&one) && joined.covers(&other) && !one.covers(&other));
        assert_eq!((joined.of(replica(1)), joined.of(replica(9))), (3, 0));
        assert_eq!(one.clone().with(replica(1), 2), one, "a log is not read backwards");
    }
}
