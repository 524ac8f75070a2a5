//! Devices at a log whose old commits lose their contents: a few schedules in every test run.

use haversack::planted::Planted;
use haversack_sim::sync::{Run, run};

/// A schedule that finds each planted mistake.
const BITES: [(Planted, u64); 4] = [
    (Planted::ShortenedWithoutCheckpoint, 132),
    (Planted::NamedObjectsSwept, 116),
    (Planted::SkipDeletesNothing, 19_297),
    (Planted::AbridgedIsTheEnd, 271),
];

#[test]
fn mistakes_of_short_histories_are_found() {
    for planted in Planted::IN_SHORT_HISTORIES {
        let (_, seed) = BITES.iter().find(|(bite, _)| *bite == planted).expect("a seed for every mistake");
        assert_eq!(run(Run::with_short_history(*seed)).err(), None, "seed {seed} without a mistake");
        let found = run(Run { planted: Some(planted), ..Run::with_short_history(*seed) });
        assert!(
            found.is_err(),
            "{planted:?} is not found by seed {seed}: cargo xtask sim --shorten --mutants finds another"
        );
    }
}

#[test]
fn schedules_with_short_histories_hold() {
    for seed in 0..200 {
        run(Run::with_short_history(seed)).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}
