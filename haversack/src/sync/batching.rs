//! Decides when a long-lived process sends the lines that it appended: soon, but not each line by itself.
//!
//! Nothing is queued: the lines are in the working files, and the next sync sends every file that differs from its base. So a process that is
//! killed loses no batch.

use std::time::Duration;

use crate::ids::Timestamp;

/// The longest time that the first write of a batch waits.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The most bytes that wait.
const MAX_WAITING_BYTES: u64 = 4 * 1024;

/// The writes since the last sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batching {
    first: Option<Timestamp>,
    bytes: u64,
}

/// The time of the next sync.
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
    /// Notes a write.
    pub fn wrote(&mut self, now: Timestamp, bytes: u64) {
        self.first.get_or_insert(now);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns the time of the next sync.
    pub fn due(&self, now: Timestamp) -> Due {
        let Some(first) = self.first else { return Due::Never };
        // A clock that was set back must not keep anything waiting.
        let Ok(waited) = u64::try_from(now.0.saturating_sub(first.0)) else { return Due::Now };
        match MAX_WAIT.checked_sub(Duration::from_millis(waited)) {
            Some(rest) if !rest.is_zero() && self.bytes < MAX_WAITING_BYTES => Due::In(rest),
            _ => Due::Now,
        }
    }

    /// Notes that a sync begins: later writes belong to the next batch.
    pub fn begin(&mut self) {
        *self = Batching::default();
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
        batching.begin();
        assert_eq!(batching.due(at(9_000)), Due::Never);
    }
}
