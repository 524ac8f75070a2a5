//! What the engine is handed of this machine: time, chance and patience.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use haversack::clock::Clock;
use haversack::ids::{Ids, Timestamp};
use haversack::sync::Patience;

/// How long the first repetition of a request waits.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The system's clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The system's chance.
pub(crate) struct RandomIds;

impl Ids for RandomIds {
    fn next(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has randomness");
        bytes
    }
}

/// Waits longer each time, and stops at a deadline.
pub(crate) struct Timed {
    deadline: Option<Instant>,
}

impl Timed {
    /// Returns one that has so much time, or all there is.
    pub(crate) fn for_at_most(time: Option<Duration>) -> Timed {
        Timed { deadline: time.map(|time| Instant::now() + time) }
    }
}

#[async_trait]
impl Patience for Timed {
    async fn wait(&self, repetition: usize) -> bool {
        let doubled = FIRST_WAIT.saturating_mul(1 << repetition.min(6));
        // Half of it by chance, so that two devices do not meet again and again.
        let chance = f64::from(RandomIds.next()[0]) / 255.0;
        let wait = doubled.mul_f64(0.5 + chance / 2.0);
        if self.deadline.is_some_and(|deadline| Instant::now() + wait >= deadline) {
            return false;
        }
        // Nothing else runs on this thread.
        std::thread::sleep(wait);
        true
    }

    fn has_time(&self) -> bool {
        self.deadline.is_none_or(|deadline| Instant::now() < deadline)
    }
}
