//! Devices that share one log: a few schedules in every test run, and those that once broke a promise.

use haversack_sim::sync::{Run, run};

/// Seeds that broke a promise while sync was written, and how.
const REGRESSIONS: [(u64, &str); 7] = [
    (8, "what a dead process had prepared was left over"),
    (1464, "a displaced text was merged again after a crash, and with it what the user had removed since"),
    (2142, "two devices changed a file that a third had deleted, and their common start was forgotten"),
    (919, "the same, with events"),
    (282, "a file was deleted and made again in the moment of an exchange"),
    (18_815, "what was removed before a deletion came back with the file that stood against it"),
    (18_937, "a file that was changed in the moment of its removal forgot what it started from"),
];

#[test]
fn what_once_broke_a_promise_does_not_any_more() {
    for (seed, what) in REGRESSIONS {
        run(Run::of(seed)).unwrap_or_else(|why| panic!("seed {seed} ({what}): {why}"));
    }
}

#[test]
fn a_seed_does_the_same_again() {
    for seed in 0..40 {
        assert_eq!(run(Run::of(seed)), run(Run::of(seed)), "seed {seed}");
    }
}

#[test]
fn a_few_schedules_hold() {
    for seed in 1_000_000..1_000_200 {
        run(Run::of(seed)).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}
