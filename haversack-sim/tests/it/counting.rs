//! Ids that are counted, and a clock that stands still.

use std::sync::atomic::{AtomicU64, Ordering};

use haversack::clock::Clock;
use haversack::ids::{Ids, Timestamp};

/// Counts the ids it gives; no time passes.
#[derive(Default)]
pub(crate) struct Counting(AtomicU64);

impl Ids for Counting {
    fn next(&self) -> [u8; 16] {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [7; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes
    }
}

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}
