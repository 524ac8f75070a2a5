//! Random use of real homes: renames past us and with the verb, twins, swaps of files and directories, lost directories, links, pipes and
//! immutable files in place of files, killed syncs, and a remote that is wiped or restored from an old backup.
//!
//! 1. [`schedule`](super::schedule) turns a number into homes and operations.
//! 2. [`player`](super::player) carries the operations out and notes what each means for the words in the files.
//! 3. [`verdict`](super::verdict) lets everything settle and judges: every word is in every home or a `status` names its file; what was
//!    deleted stays deleted; all homes are equal; a further sync sends nothing.
//!
//! `HAVERSACK_SEED=17` plays one schedule. Beside it, `HAVERSACK_SEEDS=20` plays as many from there on, `HAVERSACK_SHRINK=1` makes a failing one
//! as short as it can, `HAVERSACK_ONLY=3,8,9` plays only the operations with these numbers, and `HAVERSACK_WITHOUT=PutLink,PutPipe` leaves kinds of
//! operations out, which makes other schedules.

use super::schedule::{Kind, SWITCHED_ON, Schedule};
use super::verdict::{Failure, judge};

/// Operations in a schedule.
const STEPS: usize = 60;

/// The number of plays of a shorter schedule before it counts as one that holds: kills do not always come at the same moment.
const TRIES: usize = 2;

/// Returns the schedules to play.
fn seeds() -> std::ops::RangeInclusive<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("HAVERSACK_SEED") {
        Some(seed) => seed..=seed + number("HAVERSACK_SEEDS").unwrap_or(1) - 1,
        None if std::env::var_os("HAVERSACK_SOAK").is_some() => 1..=200,
        None => 1..=3,
    }
}

/// Returns the kinds of operations in the schedules.
fn kinds() -> Vec<Kind> {
    let without = std::env::var("HAVERSACK_WITHOUT").unwrap_or_default();
    let is_in = |kind: &Kind| !without.split(',').any(|name| name == format!("{kind:?}"));
    SWITCHED_ON.into_iter().filter(is_in).collect()
}

/// Returns the schedule of a seed, or the part of it that was asked for.
fn schedule(seed: u64) -> Schedule {
    let mut schedule = Schedule::of(seed, STEPS, &kinds());
    if let Ok(only) = std::env::var("HAVERSACK_ONLY") {
        let numbers: Vec<usize> = only.split(',').filter_map(|number| number.parse().ok()).collect();
        schedule.operations.retain(|operation| numbers.contains(&operation.number));
    }
    schedule
}

/// Leaves operations out, by halves, quarters and one by one, as long as the same promise breaks.
fn shrunk(schedule: &Schedule, failure: Failure) -> (Schedule, Failure) {
    let (mut schedule, mut failure) = (schedule.clone(), failure);
    let mut length = schedule.operations.len() / 2;
    while length > 0 {
        let mut start = 0;
        while start < schedule.operations.len() {
            let mut shorter = schedule.clone();
            shorter.operations.drain(start..(start + length).min(shorter.operations.len()));
            let found =
                (0..TRIES).find_map(|_| judge(&shorter).err().filter(|found| found.broken == failure.broken));
            match found {
                Some(found) => (schedule, failure) = (shorter, found),
                None => start += length,
            }
        }
        length /= 2;
    }
    (schedule, failure)
}

/// Returns a failing schedule as it is printed.
fn told(schedule: &Schedule, failure: &Failure) -> String {
    format!(
        "seed {} breaks a promise, with {} homes that meet at a {:?}:\n{}\n{:?}: {}\nPlay it again: HAVERSACK_SEED={} cargo test -p haversack-cli --test it real_use",
        schedule.seed,
        schedule.homes.len(),
        schedule.meeting,
        failure.trace.join("\n"),
        failure.broken,
        failure.why,
        schedule.seed,
    )
}

#[test]
fn real_use_loses_nothing() {
    let mut failures = Vec::new();
    for seed in seeds() {
        let schedule = schedule(seed);
        let Err(failure) = judge(&schedule) else { continue };
        let (schedule, failure) = match std::env::var_os("HAVERSACK_SHRINK") {
            Some(_) => shrunk(&schedule, failure),
            None => (schedule, failure),
        };
        failures.push(told(&schedule, &failure));
    }
    assert!(failures.is_empty(), "{}\n{} schedules failed", failures.join("\n\n"), failures.len());
}
