//! Mistakes that can be switched on, so that the simulator shows that it would find them.
//!
//! Only with the feature `planted`, and only for the thread that switches one on; otherwise nothing of it is there. Programs with the feature hold a text that
//! `cargo xtask test` looks for: the program of users must not have it.

/// A mistake that a programmer could make here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "planted"), expect(unreachable_pub, reason = "only the feature makes it public"))]
pub enum Planted {
    /// A new commit for every attempt at a position.
    NewBytesForEveryAttempt,
    /// If the answer for a position is lost, assume another device's commit is there.
    LostAnswerMeansTheirs,
    /// A position whose answer was lost is taken for ours.
    LostAnswerMeansOurs,
    /// A commit is tried before its bytes are recorded.
    TriedBeforeFixed,
    /// The bases move before the files.
    BaseBeforeFile,
    /// The files move without a record of what for.
    FileWithoutRecord,
    /// Drop content that was displaced from a working file.
    DisplacedIsDropped,
    /// Merge displaced content again after a crash.
    DisplacedIsMergedAgain,
    /// Of two changed versions the newer one stays, whole.
    NewestWins,
    /// Two changed versions are put together without their base.
    Union,
    /// A deletion wins over a change that did not see it.
    DeletionWins,
    /// Forget the former content of a deleted file that stays.
    StartIsForgotten,
    /// Ignore the changes before a deletion if the file stays.
    LastIsIgnored,
    /// A file of the same size is taken for the same.
    SizeTellsContent,
    /// Append to any content.
    AppendToAnything,
    /// The contents of bases are not kept.
    BasesAreNotKept,
    /// Do not remove prepared contents that were not used.
    LeftoversStay,
    /// Two processes sync one replica at once.
    NoSyncLock,
    /// A directory that is not there is taken for one whose files were deleted.
    AbsenceIsMassDeletion,
    /// Build a commit on working files without the newly applied changes.
    CommitOnStaleRead,
    /// The outside of a file that was just written is believed.
    StaleStatTrusted,
    /// Remove prepared contents although a record names them.
    IncomingSwept,
    /// Treat begun work as done if its directory is missing.
    VanishedIsDone,
    /// A checkpoint is believed without asking the log.
    CheckpointUnverified,
    /// An edit in the mirror is written over.
    ForeignOverwritten,
    /// A position whose commit is in a segment counts as not there.
    SegmentIgnored,
    /// The edit of a file that another device has renamed is dropped.
    RenameDropsEdit,
    /// After a remote was lost: a file that the new store does not have yet counts as deleted.
    AbsentBeforeComplete,
    /// After a remote was lost: the base is the newer of both positions.
    NewerBaseIsTaken,
    /// Treat a killed process's writes as durable because they can be read. A test of its own finds this; schedules hardly do.
    SeenIsDurable,
    /// In a vault: a commit goes out as if its author had read all that has arrived.
    SeenIsEverything,
    /// In a vault: an entry is read though something is missing that its author had read.
    GapsAreRead,
    /// In a synced folder: merge two devices' versions without their common base.
    NoCommonStart,
    /// In a synced folder: publish merges of others' entries as own changes.
    MergesAreCommits,
    /// In a vault: half an entry is taken for one that changes nothing.
    HalfIsRead,
    /// In a synced folder: treat entries that a run copied without time to import as imported.
    KeptIsTakenIn,
    /// In a synced folder: write merges into the folder without announcing them. A test of its own finds it; schedules hardly do.
    MergesAreNotAnnounced,
    /// In a vault: a plain file that no log names is taken for an edit at once.
    StrangeIsAnEdit,
    /// The gate is asked about new files only.
    GateAsksAboutNewFilesOnly,
    /// The gate is not asked about lines that were appended.
    GateIgnoresAppends,
    /// The gate is not asked about a file that was merged.
    GateIgnoresMerges,
    /// The deletion of a file that was rolled up leaves before its roll-up.
    SourcesLeaveFirst,
    /// A tidy deletes the sources before it writes their roll-up.
    TidyDeletesFirst,
    /// A tidy writes over whatever its files hold by now.
    TidyTrustsItsPlan,
    /// A source that comes back is rolled up again.
    RollUpsForgetIds,
    /// A file that moves to a bound directory is deleted before it is written there.
    HandOverDeletesFirst,
    /// A bound directory holds the files of a deeper bound directory too.
    DeeperDirectoryForgotten,
    /// The memory directory holds the files of a bound directory that is not there.
    AbsentPrefixIsTheMemorys,
    /// A file that was moved to a bound directory counts as deleted once that is unbound.
    MovedIsDeleted,
    /// A file that comes back into a directory's scope counts as deleted there.
    UnbindingDeletes,
    /// Attribute a change to the last signer, of any file.
    LastWriterIsTaken,
    /// Appended lines are sent without their writer.
    AppendsAreNotSigned,
    /// A signed change that was merged is sent without its writer.
    MergeIsNotSigned,
    /// Contents are dropped from the history though no newer checkpoint has those that are still in use.
    ShortenedWithoutCheckpoint,
    /// Objects that the newest checkpoint names are deleted.
    NamedObjectsSwept,
    /// A device that skips to a checkpoint ignores the files that others deleted meanwhile.
    SkipDeletesNothing,
    /// A commit without its contents counts as the end of the log.
    AbridgedIsTheEnd,
}

#[cfg(feature = "planted")]
impl Planted {
    /// Every mistake that schedules are to find.
    pub const ALL: [Planted; 27] = [
        Planted::NewBytesForEveryAttempt,
        Planted::LostAnswerMeansTheirs,
        Planted::LostAnswerMeansOurs,
        Planted::TriedBeforeFixed,
        Planted::BaseBeforeFile,
        Planted::FileWithoutRecord,
        Planted::DisplacedIsDropped,
        Planted::DisplacedIsMergedAgain,
        Planted::NewestWins,
        Planted::Union,
        Planted::DeletionWins,
        Planted::StartIsForgotten,
        Planted::LastIsIgnored,
        Planted::SizeTellsContent,
        Planted::AppendToAnything,
        Planted::BasesAreNotKept,
        Planted::LeftoversStay,
        Planted::NoSyncLock,
        Planted::AbsenceIsMassDeletion,
        Planted::CommitOnStaleRead,
        Planted::StaleStatTrusted,
        Planted::IncomingSwept,
        Planted::VanishedIsDone,
        Planted::CheckpointUnverified,
        Planted::ForeignOverwritten,
        Planted::SegmentIgnored,
        Planted::RenameDropsEdit,
    ];

    /// Every mistake that schedules over a vault are to find.
    pub const IN_A_VAULT: [Planted; 7] = [
        Planted::SeenIsEverything,
        Planted::GapsAreRead,
        Planted::NoCommonStart,
        Planted::MergesAreCommits,
        Planted::HalfIsRead,
        Planted::KeptIsTakenIn,
        Planted::StrangeIsAnEdit,
    ];

    /// Every mistake with bound directories, gates and signatures that schedules are to find.
    pub const IN_HOMES: [Planted; 11] = [
        Planted::GateAsksAboutNewFilesOnly,
        Planted::GateIgnoresAppends,
        Planted::GateIgnoresMerges,
        Planted::HandOverDeletesFirst,
        Planted::DeeperDirectoryForgotten,
        Planted::AbsentPrefixIsTheMemorys,
        Planted::MovedIsDeleted,
        Planted::UnbindingDeletes,
        Planted::LastWriterIsTaken,
        Planted::AppendsAreNotSigned,
        Planted::MergeIsNotSigned,
    ];

    /// Every mistake that schedules over a remote that gets lost are to find.
    pub const AFTER_A_LOSS: [Planted; 2] = [Planted::AbsentBeforeComplete, Planted::NewerBaseIsTaken];

    /// Every mistake of tidies that schedules are to find.
    pub const IN_TIDIES: [Planted; 4] = [
        Planted::SourcesLeaveFirst,
        Planted::TidyDeletesFirst,
        Planted::TidyTrustsItsPlan,
        Planted::RollUpsForgetIds,
    ];

    /// Every mistake around commits without contents that schedules are to find.
    pub const IN_SHORT_HISTORIES: [Planted; 4] = [
        Planted::ShortenedWithoutCheckpoint,
        Planted::NamedObjectsSwept,
        Planted::SkipDeletesNothing,
        Planted::AbridgedIsTheEnd,
    ];
}

#[cfg(feature = "planted")]
mod switch {
    use std::cell::Cell;

    use super::Planted;

    thread_local! {
        static SWITCHED_ON: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    /// A text that every program with the feature holds; `xtask/src/planted.rs` looks for it.
    static MARKER: &str = "haversack: this program can make planted mistakes";

    /// Does something with a mistake switched on in this thread.
    pub fn with<T>(planted: Option<Planted>, work: impl FnOnce() -> T) -> T {
        let before = SWITCHED_ON.replace(planted);
        let result = work();
        SWITCHED_ON.set(before);
        result
    }

    pub(crate) fn has(planted: Planted) -> bool {
        // Without a use, the optimizer would drop the text.
        std::hint::black_box(MARKER);
        SWITCHED_ON.get() == Some(planted)
    }
}

#[cfg(feature = "planted")]
pub(crate) use switch::has;
#[cfg(feature = "planted")]
pub use switch::with;

#[cfg(not(feature = "planted"))]
pub(crate) const fn has(_: Planted) -> bool {
    false
}
