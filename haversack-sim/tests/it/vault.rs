//! Devices that meet in a folder which a sync client replicates: a few schedules in every test run, and those that once broke a promise.

use haversack::planted::{self, Planted};
use haversack_sim::sync::{LogsOnlySchedule, Meeting, Run, Schedule, explain, run};

/// Schedules that broke a promise while the vault was written; some of the first ones do other things by now.
const REGRESSIONS: [(u64, &str); 45] = [
    (5_012_490, "a signature was lost behind half a line that a killed process had left"),
    (
        6_001_058,
        "an edit by hand that cannot be merged was written over before a log had its copy, and its device was put back from a backup",
    ),
    (9, "a device and its copy wrote under one name"),
    (131, "one copy was made twice"),
    (193, "what stood beside a file was not told to others"),
    (533, "two devices had begun a store at once"),
    (2058, "a device that was put back from a backup wrote what it had written already, and differently"),
    (2063, "what was kept under a former name was not sent"),
    (4800, "one of two contents had no place of its own when the other was changed"),
    (5150, "two devices changed a file that a third had deleted, and their common start was forgotten"),
    (6672, "a commit that two copies had not told was taken for one entry"),
    (7571, "what a device and its copy had not told came twice"),
    (9481, "what was removed before a deletion came back with the file that stood against it"),
    (11_477, "a line that one device removed came back because others' lines had changed their order"),
    (17_843, "a directory that a killed process had made was gone when the machine stopped"),
    (38, "a copy was waited for under its own name, and looked for under another"),
    (185, "a copy that was made from nothing took away what was there"),
    (379, "what took the place of a file was taken for made from it"),
    (
        8350,
        "a device that had seen nobody else took another one's file for an edit, and what that one removed came back",
    ),
    (
        20_017_487,
        "an edit was not known as taken in any more once a copy of its file was, and another device took it in again",
    ),
    (
        3_075_816,
        "a removal left nothing that a deletion had not seen, and came back with what was changed meanwhile",
    ),
    (
        3_086_197,
        "what an edit by hand came to was in the folder before any log named it, and its device was put back",
    ),
    (
        51_055_979,
        "a device that was killed had put a file into the folder before its log, and another took it for an edit",
    ),
    (
        50_014_560,
        "words were in a note below a commitment on one side, in their place on the other, and lost",
    ),
    (3_094_029, "what a client put in the place of a file that somebody said is theirs was taken for theirs"),
    (
        15_927,
        "what was carried after a device had looked was not in the plain files that it wrote over others'",
    ),
    (60_001_042, "the same with an edit of what was written over"),
    (
        70_134_810,
        "what was removed beside a deletion came back with what stood against it, because a third device had made the file anew",
    ),
    (
        70_841_702,
        "a copy that showed that a file was not made from what it had held was taken away before anybody told of that file",
    ),
    (70_785_884, "the same with a file that its device had seen replaced"),
    (70_945_588, "an edit of what another device had written was taken for one of what was there before it"),
    (
        70_952_101,
        "one of three contents that lost for a moment had no place of its own when something was built on another",
    ),
    (
        73_095_335,
        "a line that had been removed before one of two deletions came back with what stood against both",
    ),
    (
        73_663_538,
        "what had been kept and not taken in when a device died was not taken in as long as nothing new arrived",
    ),
    (
        22_818,
        "an edit was taken out of the folder before it was told, and its device was put back from a backup",
    ),
    (
        76_133_792,
        "a deletion that took nothing from a file was named in a note there, and brought it back to whoever deleted it next",
    ),
    (
        77_675_708,
        "a file that was deleted in the middle of a sync came back, because a merge had counted the items below a heading again",
    ),
    (79_036_966, "a line that two devices had put elsewhere was there twice, and replaced once"),
    (
        81_341_433,
        "a device that was put back from a backup took an edit in before it had time to read what the edit was made from",
    ),
    (
        83_349_192,
        "a conflict copy that was taken in went before it was told, and its device was put back from a backup",
    ),
    (
        84_274_822,
        "what was deleted while a sync read others was not told, and its device was put back from a backup",
    ),
    (84_339_198, "the same where the sync had something else to tell"),
    (
        84_363_792,
        "what was left below a heading that a line was taken from stood against a user who had made the file anew",
    ),
    (
        85_097_033,
        "a copy of a home that was taking another name took the same one, and a third never read what it told",
    ),
    (
        86_162_908,
        "of a line that was there twice, in a text and in a note, two devices each took out another one",
    ),
];

/// A schedule that finds each planted mistake.
const BITES: [(Planted, u64); 7] = [
    (Planted::SeenIsEverything, 6),
    (Planted::GapsAreRead, 1555),
    (Planted::NoCommonStart, 7),
    (Planted::MergesAreCommits, 22),
    (Planted::HalfIsRead, 32),
    (Planted::KeptIsTakenIn, 26_968),
    (Planted::StrangeIsAnEdit, 3578),
];

#[test]
fn every_planted_mistake_is_found() {
    for (planted, seed) in BITES {
        assert_eq!(run(Run::in_vault(seed)).err(), None, "seed {seed} without a mistake");
        let found = run(Run { planted: Some(planted), ..Run::in_vault(seed) });
        assert!(
            found.is_err(),
            "{planted:?} is not found by seed {seed}: cargo xtask sim --vault --mutants finds another"
        );
    }
}

#[test]
fn what_once_broke_a_promise_does_not_any_more() {
    for (seed, what) in REGRESSIONS {
        run(Run::in_vault(seed)).unwrap_or_else(|why| panic!("seed {seed} ({what}): {why}"));
    }
}

#[test]
fn a_few_schedules_hold() {
    for seed in 1_000_000..1_000_100 {
        run(Run::in_vault(seed)).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

/// The merge of logs alone; far more of it runs in `cargo xtask sim --weave`.
#[test]
fn logs_come_to_what_was_written() {
    for seed in 0..500 {
        LogsOnlySchedule::at(seed).play().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    let breaks = |seed: &u64| LogsOnlySchedule::at(*seed).play().is_err();
    let found = planted::with(Some(Planted::NoCommonStart), || (0..500).find(breaks));
    let seed = found.expect("a merge without its common start is found");
    let least = planted::with(Some(Planted::NoCommonStart), || LogsOnlySchedule::at(seed).shrink())
        .expect("it breaks");
    let (told, result) = planted::with(Some(Planted::NoCommonStart), || least.explain());
    assert!(result.is_err() && told.contains("reads the log of"), "{told}");
    assert!(told.lines().count() < LogsOnlySchedule::at(seed).explain().0.lines().count(), "{told}");
}

/// Every action of a sync client occurs in a few schedules.
#[test]
fn everything_happens() {
    let mut all = String::new();
    for seed in 0..60 {
        all.push_str(&explain(&Schedule::at(Meeting::Vault, seed), None).0);
    }
    for happens in [
        "half of .haversack/log",
        "store.json was changed on both sides",
        "conflicted copy",
        "sync-conflict",
        "[Conflict",
        "is copied to",
        "is restored",
        "is full",
        "the working directory is gone",
        "in the folder",
        "an hour goes by",
    ] {
        assert!(all.contains(happens), "{happens}");
    }
}
