//! Devices that share one log: a few schedules in every test run, and those that once broke a promise.

use haversack::sync::planted::Planted;
use haversack_sim::sync::{Run, run};

/// Seeds that broke a promise while sync was written, and how; what a schedule meets changes with the engine's effects.
const REGRESSIONS: [(u64, &str); 12] = [
    (8, "what a dead process had prepared was left over"),
    (1464, "a displaced text was merged again after a crash, and with it what the user had removed since"),
    (2142, "two devices changed a file that a third had deleted, and their common start was forgotten"),
    (919, "the same, with events"),
    (282, "a file was deleted and made again in the moment of an exchange"),
    (18_815, "what was removed before a deletion came back with the file that stood against it"),
    (18_937, "a file that was changed in the moment of its removal forgot what it started from"),
    (358_674, "a file that was deleted while a displaced text was merged came back without the merge"),
    (414_153, "a file came back for a text that only removed lines"),
    (646_940, "a text that met no file was taken for the start of one that came later"),
    (808_612, "one file was deleted here and the others there"),
    (815_323, "what came out of an exchange was the same as what had gone in"),
];

/// A schedule that finds each planted mistake.
const BITES: [(Planted, u64); 18] = [
    (Planted::NewBytesForEveryAttempt, 12),
    (Planted::LostAnswerMeansTheirs, 12),
    (Planted::LostAnswerMeansOurs, 1),
    (Planted::TriedBeforeFixed, 400),
    (Planted::BaseBeforeFile, 37),
    (Planted::FileWithoutRecord, 32),
    (Planted::DisplacedIsDropped, 37),
    (Planted::DisplacedIsMergedAgain, 195),
    (Planted::NewestWins, 0),
    (Planted::Union, 0),
    (Planted::DeletionWins, 3),
    (Planted::StartIsForgotten, 79),
    (Planted::LastIsIgnored, 8714),
    (Planted::SizeTellsContent, 2),
    (Planted::AppendToAnything, 0),
    (Planted::BasesAreNotKept, 2),
    (Planted::LeftoversStay, 12),
    (Planted::SegmentIgnored, 8),
];

#[test]
fn every_planted_mistake_is_found() {
    for planted in Planted::ALL {
        let (_, seed) = BITES.iter().find(|(bite, _)| *bite == planted).expect("a seed for every mistake");
        assert!(run(Run::of(*seed)).is_ok(), "seed {seed} without a mistake");
        let found = run(Run { seed: *seed, planted: Some(planted) });
        assert!(
            found.is_err(),
            "{planted:?} is not found by seed {seed}: cargo xtask sim --mutants finds another"
        );
    }
}

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
