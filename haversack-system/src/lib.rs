//! Time, randomness and waiting for the engine, taken from the operating system.
//!
//! The engine (`haversack`) reads no clock and draws no random number, so that the simulator can replay it. A program hands both in. This crate
//! holds the implementations that a program on a real machine wants: [`SystemClock`], [`RandomIds`] and [`Backoff`].
//!
//! The crate may read the clock, ask for random bytes and put a thread to sleep. It may not open files or sockets, read the environment or
//! print. It needs no async runtime: [`Backoff`] waits on a thread of its own, so it works under any executor.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use haversack::clock::Clock;
use haversack::ids::{Ids, Timestamp};
use haversack::sync::Patience;

/// The longest wait before the first repetition of a request.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The number of times that the wait doubles; after that it stays as it is, at most 6.4 s.
const MAX_DOUBLINGS: usize = 6;

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Ids made of random bytes from the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn next(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has randomness");
        bytes
    }
}

/// Waits twice as long before each repetition of a request, and gives up at a deadline if it has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    deadline: Option<Instant>,
}

impl Backoff {
    /// Returns one without a deadline.
    pub fn new() -> Backoff {
        Backoff::default()
    }

    /// Returns one whose deadline is `time` from now.
    pub fn for_at_most(time: Duration) -> Backoff {
        Backoff { deadline: Instant::now().checked_add(time) }
    }
}

#[async_trait]
impl Patience for Backoff {
    async fn wait(&self, repetition: usize) -> bool {
        let wait = wait_before(repetition, RandomIds.next()[0]);
        if self.deadline.is_some_and(|deadline| Instant::now() + wait >= deadline) {
            return false;
        }
        blocking::unblock(move || std::thread::sleep(wait)).await;
        true
    }

    fn has_time(&self) -> bool {
        self.deadline.is_none_or(|deadline| Instant::now() < deadline)
    }
}

/// Returns the wait before a repetition: half of it fixed, half by `chance`, so that two devices do not collide again and again.
fn wait_before(repetition: usize, chance: u8) -> Duration {
    let longest = FIRST_WAIT.saturating_mul(1 << repetition.min(MAX_DOUBLINGS));
    longest.mul_f64(0.5 + f64::from(chance) / f64::from(u8::MAX) / 2.0)
}

/// The examples of the guide are compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/library.md")]
struct Guide;

/// So are those of the guide to the graph.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/graph.md")]
struct GraphGuide;

#[cfg(test)]
mod tests {
    use haversack::store::block_on;

    use super::*;

    #[test]
    fn wait_doubles_up_to_its_bound() {
        let waits = |repetition| (wait_before(repetition, 0), wait_before(repetition, u8::MAX));
        let millis = |shortest, longest| (Duration::from_millis(shortest), Duration::from_millis(longest));
        assert_eq!(waits(0), millis(50, 100));
        assert_eq!(waits(1), millis(100, 200));
        assert_eq!(waits(6), millis(3_200, 6_400));
        assert_eq!(waits(usize::MAX), millis(3_200, 6_400));
    }

    #[test]
    fn backoff_waits_until_its_deadline_only() {
        let started = Instant::now();
        assert!(block_on(Backoff::new().wait(0)));
        assert!(started.elapsed() >= Duration::from_millis(50));
        let short = Backoff::for_at_most(Duration::from_millis(1));
        assert!(!block_on(short.wait(0)), "the wait would end after the deadline");
        assert!(!Backoff::for_at_most(Duration::ZERO).has_time());
        assert!(Backoff::for_at_most(Duration::MAX).has_time(), "a deadline beyond the end of time is none");
    }

    #[test]
    fn random_ids_differ() {
        assert_ne!(RandomIds.next(), RandomIds.next());
    }

    #[test]
    fn system_clock_counts_milliseconds() {
        // 2020-09-13; a unit other than milliseconds would be far off.
        assert!((1_600_000_000_000..16_000_000_000_000).contains(&SystemClock.now().0));
    }
}
