//! Devices that tidy: a few schedules in every test run.

use std::collections::BTreeSet;

use haversack::planted::Planted;
use haversack_sim::sync::{Meeting, Run, Schedule, explain, run};

/// A schedule that finds each planted mistake.
const BITES: [(Planted, u64); 4] = [
    (Planted::SourcesLeaveFirst, 1013),
    (Planted::TidyDeletesFirst, 2),
    (Planted::TidyTrustsItsPlan, 313),
    (Planted::RollUpsForgetIds, 1005),
];

/// Schedules that must hold, because each broke a promise once.
const REGRESSIONS: [(u64, &str); 1] = [(
    14_133,
    "a user made the roll-up in the moment in which a batch found it missing, and the batch replaced it",
)];

#[test]
fn mistakes_of_tidies_are_found() {
    for planted in Planted::IN_TIDIES {
        let (_, seed) = BITES.iter().find(|(bite, _)| *bite == planted).expect("a seed for every mistake");
        assert_eq!(run(Run::with_tidies(*seed)).err(), None, "seed {seed} without a mistake");
        let found = run(Run { planted: Some(planted), ..Run::with_tidies(*seed) });
        assert!(
            found.is_err(),
            "{planted:?} is not found by seed {seed}: cargo xtask sim --tidy --mutants finds another"
        );
    }
}

#[test]
fn schedules_with_tidies_hold() {
    for seed in 0..200 {
        run(Run::with_tidies(seed)).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[test]
fn schedules_that_lost_a_line_once_hold() {
    for (seed, broke) in REGRESSIONS {
        run(Run::with_tidies(seed)).unwrap_or_else(|why| panic!("seed {seed}: {why}; once {broke}"));
    }
}

/// Every roll-up is made in some schedule, and decisions are stored.
#[test]
fn every_roll_up_happens() {
    let mut missing: BTreeSet<&str> = [
        "tidies on 2026-",
        "compacted/2026-W45.md",
        "compacted/2026-11.md",
        "compacted/2026.md",
        "compacted/log/",
        "less telling than others",
        "all secrets are allowed",
    ]
    .into();
    for seed in 0..400 {
        let (shown, _) = explain(&Schedule::at(Meeting::Aged, seed), None);
        missing.retain(|happens| !shown.contains(happens));
        if missing.is_empty() {
            return;
        }
    }
    panic!("never happened: {missing:?}");
}
