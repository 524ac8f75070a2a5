//! Devices whose remote is wiped, restored from a backup and replaced by another store: a few schedules in every test run.

use std::collections::BTreeSet;

use haversack::planted::Planted;
use haversack_sim::sync::{Meeting, Run, Schedule, explain, run};

/// A schedule that finds each planted mistake.
const BITES: [(Planted, u64); 2] = [(Planted::AbsentBeforeComplete, 1537), (Planted::NewerBaseIsTaken, 858)];

#[test]
fn every_mistake_after_a_loss_is_found() {
    for planted in Planted::AFTER_A_LOSS {
        let (_, seed) = BITES.iter().find(|(bite, _)| *bite == planted).expect("a seed for every mistake");
        assert_eq!(run(Run::with_losses(*seed)).err(), None, "seed {seed} without a mistake");
        let found = run(Run { planted: Some(planted), ..Run::with_losses(*seed) });
        assert!(
            found.is_err(),
            "{planted:?} is not found by seed {seed}: cargo xtask sim --lost --mutants finds another"
        );
    }
}

#[test]
fn a_few_schedules_with_losses_hold() {
    for seed in 0..400 {
        run(Run::with_losses(seed)).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

/// Every kind of loss happens in some schedule.
#[test]
fn every_loss_happens() {
    let mut missing: BTreeSet<&str> = [
        "the remote is wiped",
        "the remote is backed up",
        "the backup of the remote is put back",
        "another store is in the place of the remote",
        "the remote is back in its place",
        "rebuilds",
        "the store that was there is gone",
        "rebuilt the store there",
        "the remote's history has changed",
        "the remote holds another store",
    ]
    .into();
    for seed in 0..4_000 {
        let (shown, _) = explain(&Schedule::at(Meeting::Lost, seed), None);
        missing.retain(|happens| !shown.contains(happens));
        if missing.is_empty() {
            return;
        }
    }
    panic!("never happened: {missing:?}");
}
