//! Why a sync stopped.

use std::error::Error as StdError;
use std::fmt;

use haversack_store::{Error as StoreError, ErrorKind};

use super::Budget;
use crate::frame::BadFrame;
use crate::ids::{Position, StoreId, Timestamp};

/// Why a sync stopped; everything that was written is safe on this device.
#[derive(Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// Another process syncs.
    Busy,
    /// The remote does not answer or refuses.
    Remote(StoreError),
    /// This device's storage does.
    Local(StoreError),
    /// The remote belongs to another store.
    OtherStore {
        /// The one that this replica belongs to.
        expected: StoreId,
        /// The one that is there.
        found: StoreId,
    },
    /// Nothing of a store is in the remote any more.
    Wiped {
        /// The store that was there.
        expected: StoreId,
    },
    /// Another device rebuilt the store after its remote was lost: the remote holds a new store that continues this one.
    Rebuilt {
        /// The store that this replica belongs to.
        expected: StoreId,
        /// The one that continues it.
        found: StoreId,
        /// The device that began to rebuild it.
        device: String,
    },
    /// The log ends here: the store was moved.
    Moved {
        /// Where it is now, as the log says. Nobody has asked that place for anything yet.
        url: String,
        /// The device that moved it.
        device: String,
        /// When.
        time: Timestamp,
    },
    /// What was read of the log before is not there any more, or is something else.
    WentBack {
        /// The position that differs.
        position: Position,
    },
    /// A position of the log is not there, though a later one is.
    Gap {
        /// The position that is not there.
        missing: Position,
        /// The later one.
        found: Position,
    },
    /// Something in the remote cannot be read.
    Damaged {
        /// What.
        what: String,
        /// Why.
        why: BadFrame,
    },
    /// A commit does not fit what came before it.
    Unfit {
        /// Where it is.
        position: Position,
        /// Why.
        why: String,
    },
    /// The remote does not return what it said it had stored.
    Unclear(&'static str),
    /// All working files are gone at once: the directory was emptied or is not there.
    Vanished,
    /// The folder where devices meet is empty: it is not mounted, or its client emptied it.
    Emptied,
    /// Another device was faster again and again.
    Outrun,
    /// Others sent more than this device receives in one sync.
    TooMuch {
        /// What this sync would have received.
        received: Budget,
        /// What it may receive.
        budget: Budget,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Busy => f.write_str("another process is syncing"),
            Trouble::Remote(error) => f.write_str(match error.kind() {
                ErrorKind::Busy | ErrorKind::Unavailable => "the remote could not be reached",
                _ => "the remote could not be used",
            }),
            Trouble::Local(_) => f.write_str("this device's storage failed"),
            Trouble::OtherStore { expected, found } => {
                write!(f, "the remote holds another store: {found}, not {expected}")
            }
            Trouble::Wiped { .. } => f.write_str("the remote is empty: the store that was there is gone"),
            Trouble::Rebuilt { device, .. } => {
                write!(f, "the remote was lost, and \"{device}\" rebuilt the store there")
            }
            Trouble::Moved { url, device, time } => {
                write!(f, "\"{device}\" moved the store to {url} ({time})")
            }
            Trouble::WentBack { position } => {
                write!(f, "the remote went back: position {} is not what it was", position.number())
            }
            Trouble::Gap { missing, found } => {
                write!(f, "the log has a gap: position {missing} is not there, though {found} is")
            }
            Trouble::Damaged { what, .. } => write!(f, "{what} cannot be read"),
            Trouble::Unfit { position, why } => {
                write!(f, "the commit at position {} does not fit: {why}", position.number())
            }
            Trouble::Unclear(what) => write!(f, "the remote does not return what it stored: {what}"),
            Trouble::Vanished => f.write_str("all files are gone at once; nothing was deleted anywhere"),
            Trouble::Emptied => f.write_str("the folder is empty: it is not mounted, or was emptied"),
            Trouble::Outrun => f.write_str("other devices were faster again and again"),
            Trouble::TooMuch { received, budget } if received.files > budget.files => write!(
                f,
                "the remote has more than {} new files for this device, so the sync stopped before it wrote them",
                budget.files
            ),
            Trouble::TooMuch { budget, .. } => write!(
                f,
                "the remote has more than {} MB of new files for this device, so the sync stopped before it wrote them",
                budget.bytes / 1_000_000
            ),
        }
    }
}

impl StdError for Trouble {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Trouble::Remote(error) | Trouble::Local(error) => Some(error),
            Trouble::Damaged { why, .. } => Some(why),
            Trouble::Busy
            | Trouble::OtherStore { .. }
            | Trouble::Wiped { .. }
            | Trouble::Rebuilt { .. }
            | Trouble::Moved { .. }
            | Trouble::WentBack { .. }
            | Trouble::Gap { .. }
            | Trouble::Unfit { .. }
            | Trouble::Unclear(_)
            | Trouble::Vanished
            | Trouble::Emptied
            | Trouble::Outrun
            | Trouble::TooMuch { .. } => None,
        }
    }
}
