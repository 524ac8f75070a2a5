//! Devices that share one log: a few schedules in every test run, and those that once broke a promise.

use haversack::planted::Planted;
use haversack_sim::sync::{Run, Schedule, explain, play, run, shrink};

/// Schedules that must hold. Of the first, each is found by planting the mistake that a sync once made, so it is known to meet what broke
/// a promise then. The others broke one while sync was written, on schedules that were made differently: plain ones today. What a killed
/// process left and a machine that stopped forgot has a test of its own (`twice`).
const REGRESSIONS: [(u64, &str); 38] = [
    (15, "what a dead process had prepared was left over"),
    (432, "a displaced text was merged again after a crash, and with it what the user had removed since"),
    (6479, "two devices changed a file that a third had deleted, and their common start was forgotten"),
    (78_706, "what was removed before a deletion came back with the file that stood against it"),
    (394, "what was begun was taken for done in a directory that was not there"),
    (
        300_036_007,
        "a killed process's line of the journal was built on, and was gone when the machine stopped",
    ),
    (500_006_236, "what a device that was ahead had mirrored was taken for an edit by hand"),
    (500_100_762, "what had been put into a file was not found while its base had not moved"),
    (540_159_279, "the oracle missed a mark that had gone into a further one, which its user then set back"),
    (
        541_023_837,
        "the oracle missed that a copy made during a sync cannot know what its user had undone by then",
    ),
    (
        542_238_327,
        "the oracle wanted a line gone from a section that one device removed and another changed at the same time",
    ),
    (100_044_621, "what came out of an exchange was dropped, because an earlier try had left a sign"),
    (
        200_059_433,
        "a sync ended well and had not sent what waited, because another device was faster in between",
    ),
    (919, "two devices changed events that a third had deleted"),
    (282, "a file was deleted and made again in the moment of an exchange"),
    (18_937, "a file that was changed in the moment of its removal forgot what it started from"),
    (358_674, "a file that was deleted while a displaced text was merged came back without the merge"),
    (414_153, "a file came back for a text that only removed lines"),
    (646_940, "a text that met no file was taken for the start of one that came later"),
    (808_612, "one file was deleted here and the others there"),
    (815_323, "what came out of an exchange was the same as what had gone in"),
    (114_504, "a directory was away when a step was completed, and what it had set aside stayed"),
    (40_000_082, "two devices made a file, one of them renamed it, and it never arrived under its new name"),
    (
        40_300_136,
        "a text that came out of an exchange was dropped, because its file was renamed by case in that moment",
    ),
    (40_100_562, "a file was renamed back while a change was put into it, and the change was lost"),
    (40_200_107, "a file was made under the old name in the moment of a rename, and an edit was lost"),
    (40_501_551, "two devices renamed a file in the same way, and a line that one of them removed came back"),
    (40_702_811, "a file that was renamed during a look counted as deleted"),
    (40_400_126, "an empty sign was put aside as if it was a text"),
    (54_004_342, "a file that was renamed here made way for a change that was undone"),
    (58_005_734, "a rename stood against a deletion without what was removed before"),
    (
        24_216,
        "two devices renamed a file in the same way, one in the moment of a sync, and a line that it had removed came back",
    ),
    (
        5_004_786,
        "the oracle missed that a step begun before a deeper directory was bound is completed after it",
    ),
    (5_026_831, "the oracle took a file for sent that waited for a directory that was not there"),
    (
        7_010_790,
        "an event that waited for a bound directory was sent under the writer of an event that had been sent before",
    ),
    (5_045_794, "a signature was lost behind half a line that a killed process had left"),
    (
        5_137_552,
        "the commit of a killed process held a file that had left the directory's scope, and the next sync deleted that file everywhere",
    ),
    (720_310_356, "a base had no content where a file became what the log has while its device was joining"),
];

/// A schedule that finds each planted mistake.
const BITES: [(Planted, u64); 27] = [
    (Planted::NewBytesForEveryAttempt, 13),
    (Planted::LostAnswerMeansTheirs, 214),
    (Planted::LostAnswerMeansOurs, 9),
    (Planted::TriedBeforeFixed, 144),
    (Planted::BaseBeforeFile, 52),
    (Planted::FileWithoutRecord, 52),
    (Planted::DisplacedIsDropped, 29),
    (Planted::DisplacedIsMergedAgain, 188),
    (Planted::NewestWins, 0),
    (Planted::Union, 9),
    (Planted::DeletionWins, 21),
    (Planted::StartIsForgotten, 94_103),
    (Planted::LastIsIgnored, 131_305),
    (Planted::SizeTellsContent, 85),
    (Planted::AppendToAnything, 5),
    (Planted::BasesAreNotKept, 2),
    (Planted::LeftoversStay, 15),
    (Planted::NoSyncLock, 102),
    (Planted::AbsenceIsMassDeletion, 106),
    (Planted::CommitOnStaleRead, 0),
    (Planted::StaleStatTrusted, 19_728),
    (Planted::IncomingSwept, 52),
    (Planted::VanishedIsDone, 1869),
    (Planted::CheckpointUnverified, 10),
    (Planted::ForeignOverwritten, 132),
    (Planted::SegmentIgnored, 14),
    (Planted::RenameDropsEdit, 10),
];

/// A schedule that finds each planted mistake with bound directories, gates and signatures.
const HOME_BITES: [(Planted, u64); 11] = [
    (Planted::GateAsksAboutNewFilesOnly, 38),
    (Planted::GateIgnoresAppends, 74),
    (Planted::GateIgnoresMerges, 74),
    (Planted::HandOverDeletesFirst, 546),
    (Planted::DeeperDirectoryForgotten, 0),
    (Planted::AbsentPrefixIsTheMemorys, 322),
    (Planted::MovedIsDeleted, 11_205),
    (Planted::UnbindingDeletes, 924),
    (Planted::LastWriterIsTaken, 38),
    (Planted::AppendsAreNotSigned, 36),
    (Planted::MergeIsNotSigned, 36),
];

#[test]
fn planted_mistakes_in_homes_are_found() {
    for (planted, seed) in HOME_BITES {
        assert_eq!(run(Run::of(seed)).err(), None, "seed {seed} without a mistake");
        let found = run(Run { planted: Some(planted), ..Run::of(seed) });
        assert!(
            found.is_err(),
            "{planted:?} is not found by seed {seed}: cargo xtask sim --mutants finds another"
        );
    }
}

#[test]
fn every_planted_mistake_is_found() {
    for planted in Planted::ALL {
        let (_, seed) = BITES.iter().find(|(bite, _)| *bite == planted).expect("a seed for every mistake");
        assert_eq!(run(Run::of(*seed)).err(), None, "seed {seed} without a mistake");
        let found = run(Run { planted: Some(planted), ..Run::of(*seed) });
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

/// A schedule that breaks a promise is shown as short as it can be.
#[test]
fn what_fails_shrinks_to_a_few_actions() {
    for (planted, most) in
        [(Planted::NewestWins, 12), (Planted::LostAnswerMeansOurs, 9), (Planted::NoSyncLock, 12)]
    {
        let (_, seed) = BITES.iter().find(|(bite, _)| *bite == planted).expect("a seed for every mistake");
        let run = Run { planted: Some(planted), ..Run::of(*seed) };
        let shrunk = shrink(run).expect("it fails");
        assert!(shrunk.schedule.len() <= most, "{planted:?}: {} actions are left", shrunk.schedule.len());
        let again = play(&shrunk.schedule, run.planted).expect_err("it still fails");
        assert_eq!(again, shrunk.failure, "{planted:?}");
        let (told, _) = explain(&shrunk.schedule, run.planted);
        assert!(told.lines().count() < 100, "{planted:?}: {told}");
    }
    assert!(shrink(Run::of(0)).is_none(), "there is nothing to shrink in what holds");
}

/// Every kind of fault occurs in a few hundred schedules.
#[test]
fn everything_happens() {
    let mut all = String::new();
    for seed in 0..300 {
        all.push_str(&explain(&Schedule::of(seed), None).0);
    }
    for happens in [
        "the request is lost",
        "the answer is lost",
        "delayed",
        "done twice, and once more later",
        "a late request arrives",
        "409 it is there already",
        "409 conditional request conflict",
        "412 the condition does not hold",
        "the name is taken",
        "429 too many requests",
        "503 slow down",
        "500 internal error",
        "401 not let in",
        "403 not let in",
        "offline",
        "dies",
        "another process is syncing",
        "is copied to",
        "is restored",
        "the working directory is gone",
        "all files disappeared at once",
        "is full",
        "this machine's storage failed",
        "syncs and compacts",
        "syncs and mirrors",
        "reconciles",
        "in the mirror",
        "forges the checkpoint",
        "renames notes.md to NOTES.md",
    ] {
        assert!(all.contains(happens), "{happens}");
    }
}
