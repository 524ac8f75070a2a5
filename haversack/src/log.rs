//! The log: a store's commits in one order, at positions that are created once and never changed.
//!
//! The log is the truth of a remote, its history and its audit. This module is pure: it has the formats and their rules. Code that
//! reads and writes a remote is built on top of it.
//!
//! # The layout of a remote
//! ```text
//! .haversack/store.json                 which store this is                              StoreFile
//! .haversack/log/<position>             one commit                                       Commit
//!                                       or, once it is in a segment, where                Folded
//! .haversack/segments/<first>-<last>    the commits of a range, their own bytes          Segment
//!                                       or, once they are old, without their contents     (docs/adr/0040)
//! .haversack/checkpoints/<position>     the state after a commit                         Checkpoint
//! .haversack/objects/<hash>             a content too large for a commit, or a pack      bytes
//! ```
//!
//! # The five rules
//! A log stays whole among devices that crash, wait and repeat themselves as long as these rules hold. They bind every publisher. Each is
//! named here with the test that holds it.
//!
//! 1. *Fixed before tried.* The bytes of a commit, its id among them, are on disk before the first attempt to create the next position, and
//!    that position is created only if nothing is there. (`haversack-sim: sync`.)
//! 2. *Tried until known.* Only reading the position shows its commit. Until a commit is there, the same bytes are tried again. A
//!    lost answer proves nothing. (`haversack-sim: sync`.)
//! 3. *Built on everything.* A commit names the hash of the one before it and the mark of the state after it, so one that was built on
//!    less than everything is noticed: `log::chain::commit_belongs_to_one_position`, `log::chain::different_state_is_noticed`.
//! 4. *A file and its base move together.* (`haversack-sim: sync`.)
//! 5. *Pending is derived.* Every file that differs from its base is pending, no matter who wrote it. (`haversack-sim: sync`.)
//!
//! # Invariants of the formats
//! - Cut or changed bytes are refused or read as what was written: `log::hostile::damage_is_never_read_as_something_else`.
//! - One odd name does not stop the rest, and is accounted for in the mark: `log::names::one_odd_name_does_not_stop_the_rest`.
//! - A kind of change that is not known is not guessed at: `log::hostile::unknown_change_is_refused`.
//! - Everything that we write can be read: `log::hostile::what_cannot_be_read_is_not_written`.
//! - Formats do not change by accident: `log::golden`.

mod abridged;
mod bounded;
mod change;
mod checkpoint;
mod commit;
pub(crate) mod files;
mod folded;
// The command `debug`, the simulator and tests look for files of the log with it.
#[doc(hidden)]
pub mod layout;
mod mark;
mod notice;
mod odd;
mod pack;
mod segment;
mod state;
mod store_file;

pub use self::change::{Carried, FileChange, OddChange, What};
pub use self::commit::{Commit, Misplaced};
pub use self::files::{Content, Files};
pub use self::mark::StateMark;
pub use self::notice::Notice;
pub use self::odd::Oddity;
pub use self::store_file::{Predecessor, StoreFile};
pub use crate::frame::BadFrame;

// The parts of the format that only the command `debug`, the simulator and tests need.
pub(crate) use self::abridged::{hash_of, is_abridged};
pub(crate) use self::pack::unpack;
#[doc(hidden)]
pub use self::{
    abridged::{Form, StoredCommit, abridge},
    change::MAX_INLINE_BYTES,
    checkpoint::{Checkpoint, FileState, MAX_CHECKPOINT_FILES, OddFile},
    commit::{MAX_CHANGES, MAX_COMMIT_BYTES, MAX_LABEL_BYTES, label},
    folded::Folded,
    mark::Mismatch,
    pack::{ContentLocation, MAX_PACK_BYTES, Pack, pack},
    segment::{MAX_SEGMENT_BYTES, Segment},
    state::State,
    store_file::MAX_STORE_FILE_BYTES,
};
pub(crate) use self::{
    checkpoint::VERSION as NEWEST_CHECKPOINT, commit::ENDING_VERSION as NEWEST_COMMIT,
    folded::VERSION as NEWEST_FOLDED, segment::VERSION as NEWEST_SEGMENT,
    store_file::FORMAT as NEWEST_STORE_FILE,
};
