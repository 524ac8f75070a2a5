//! When a long-lived process sends what it wrote: soon, but not every line by itself.
//!
//! Nothing is queued: what was written is in the working files, durably, and what differs from its base is sent by whichever sync comes
//! next. So a process that is killed loses no batch, and one that lives too short to wait leaves it to the next.

use std::time::Duration;

use crate::ids::Timestamp;

/// How long the first write of a batch waits at most.
pub const MAX_WAIT: Duration = Duration::from_secs(5);

/// How many bytes wait at most.
pub const MAX_WAITING_BYTES: u64 = 4 * 1024;

/// What was written since the last sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batching {
    first: Option<Timestamp>,
    bytes: u64,
}

/// When it is time to sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing waits.
    Never,
    /// After this long.
    In(Duration),
    /// Now.
    Now,
}

impl Batching {
    /// Notes that something was written.
    pub fn wrote(&mut self, now: Timestamp, bytes: u64) {
        self.first.get_or_insert(now);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns when it is time to sync.
    pub fn due(&self, now: Timestamp) -> Due {
        let Some(first) = self.first else { return Due::Never };
        // A clock that was set back must not keep anything waiting.
        let Ok(waited) = u64::try_from(now.0.saturating_sub(first.0)) else { return Due::Now };
        match MAX_WAIT.checked_sub(Duration::from_millis(waited)) {
            Some(rest) if !rest.is_zero() && self.bytes < MAX_WAITING_BYTES => Due::In(rest),
            _ => Due::Now,
        }
    }

    /// Notes that a sync begins: what is written from now on belongs to the next batch.
    pub fn begin(&mut self) -> Batching {
        std::mem::take(self)
    }

    /// Notes that the sync of a batch failed: it still waits.
    pub fn put_back(&mut self, batch: Batching) {
        self.first = batch.first.or(self.first);
        self.bytes = self.bytes.saturating_add(batch.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_sent_when_it_is_old_or_large_enough() {
        let at = Timestamp;
        let mut batching = Batching::default();
        assert_eq!(batching.due(at(0)), Due::Never);
        batching.wrote(at(1_000), 100);
        batching.wrote(at(3_000), 100);
        assert_eq!(batching.due(at(3_000)), Due::In(Duration::from_secs(3)));
        assert_eq!(batching.due(at(6_000)), Due::Now);
        assert_eq!(batching.due(at(900)), Due::Now, "the clock was set back");
        batching.wrote(at(3_000), MAX_WAITING_BYTES - 200);
        assert_eq!(batching.due(at(3_000)), Due::Now);
        let batch = batching.begin();
        assert_eq!(batching.due(at(9_000)), Due::Never);
        batching.wrote(at(4_000), 1);
        batching.put_back(batch);
        assert_eq!(batching.due(at(4_000)), Due::Now, "it failed, and still waits");
    }
}
