//! A folder that a sync client replicates, as the place where devices meet: logs that only their own device writes.
//!
//! In such a folder nothing can be created once for all: every device has a copy of it, files arrive in any order, half at first, and
//! where two devices wrote the same name the client keeps one of them. So every device writes a log of its own ([`layout`]). Each
//! [`Entry`] names how far its author had read every log ([`Heads`]) and carries the commit with the contents it changed. What all of
//! them come to is a function of the entries that are there, and of nothing else ([`merge_file()`]).
//!
//! The rest of the engine knows one log with one order. Each device has such a log, at home, for itself alone: a [`Bridge`] adds to it
//! what others' entries come to, one commit for each, and makes an entry of each commit that is new in it.
//!
//! # Invariants
//! 1. Two devices that have read the same entries see the same files, in whatever order they came (`haversack-sim: vault`).
//! 2. An addition of an entry stays, unless an entry whose author had seen it removed it; and a line removed in this way stays removed
//!    (`haversack-sim: vault`).
//! 3. The common start of two entries is what both of their authors had read; it is at hand wherever both are, since the logs hold their
//! contents. The order in which a device learned of them decides nothing.
//! 4. A merge without a user's change makes no commit. Otherwise it would count as an edit and win over a deletion that does not know of it.
//! 5. A device's own log at a position is what the entries come to that it had read then. Its commits go out on those heads, unchanged,
//!    before anything else is taken in; so all merging is done by [`merge_file()`] (`haversack-sim: vault`).
//! 6. A device keeps a copy of everything that it has read: a folder that loses it, or goes back, changes nothing (`vault::a_folder_that_loses_logs_changes_nothing`), and
//! gets it back from any device that has a copy (`vault::what_the_folder_lost_of_a_machine_that_is_gone_is_put_back`).

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
