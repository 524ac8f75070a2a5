//! Syncs through a folder that a sync client copies between devices. Each device writes only its own log there.
//!
//! In such a folder, no device can create a file exactly once for all: every device has a copy of the folder, files arrive in any order and half
//! at first, and if two devices wrote the same name, the client keeps one of them. Therefore:
//!
//! 1. Every device writes its own log ([`layout`]). No other device writes to it.
//! 2. Each [`Entry`] of a log contains a commit, its contents, and the last entry of every log that its author had read ([`Heads`]).
//! 3. The files are a pure function of the entries that have arrived ([`merge_file()`]).
//! 4. The rest of the engine needs one log with one order. So each device has such a log in its home: its *home log*. A [`Bridge`] appends the
//!    entries of other devices to the home log, one commit for each, and turns each new commit of the home log into an entry.
//!
//! ```text
//!  laptop                             folder                              desktop
//!  home log 1 2 3 4 5 ── bridge ──▶  log/laptop/1 2 3    ── bridge ──▶  home log 1 2 3 4 5
//!                     ◀── bridge ──  log/desktop/1 2     ◀── bridge ──
//! ```
//!
//! # Invariants
//! 1. Two devices that have read the same entries see the same files, in whatever order they came (`haversack-sim: vault`).
//! 2. An addition of an entry stays, unless an entry whose author had seen it removed it; and a line removed in this way stays removed
//!    (`haversack-sim: vault`).
//! 3. The base of two entries is the state that both of their authors had read. Every device that has both entries can compute it, because the logs hold the
//!    contents. The order in which a device learned of them decides nothing.
//! 4. A merge without a user's change makes no commit. Otherwise it would count as an edit and win over a deletion that does not know of it.
//! 5. A device's home log at a position is the merge of the entries that it had read then. Its commits are sent on those heads, unchanged,
//!    before it imports anything else. So all merging is done by [`merge_file()`] (`haversack-sim: vault`).
//! 6. A device keeps a copy of everything that it has read: a folder that loses it, or goes back, changes nothing (`vault::folder_that_loses_logs_changes_nothing`), and
//!    gets it back from any device that has a copy (`vault::lost_logs_of_a_gone_machine_are_restored`).

// Hidden: the command line reports copies, lost uploads and stray files of a folder with these modules.

mod bridge;
mod contents;
#[doc(hidden)]
pub mod copies;
mod cursor;
mod entries;
mod entry;
mod file_merge;
mod folder;
mod heads;
#[doc(hidden)]
pub mod layout;
mod log_copies;
mod logs;
#[doc(hidden)]
pub mod lost;
mod mend;
mod origins;
#[doc(hidden)]
pub mod strays;
mod tail;

pub use self::bridge::{Bridge, TransferStats};
pub(crate) use self::cursor::VERSION as NEWEST_CURSOR;
pub(crate) use self::entries::VERSION as NEWEST_ENTRIES;
pub(crate) use self::entry::VERSION as NEWEST_ENTRY;
pub use self::origins::{FolderOrigins, Mine};

// The simulator plays the merge of logs alone, tests read entries, and the command `doctor` compares heads.
#[doc(hidden)]
pub use self::{
    entry::Entry,
    file_merge::{FileOutcome, available, merge_file},
    heads::Heads,
    logs::Logs,
    origins::{ALONE_PATIENCE, PATIENCE},
};
