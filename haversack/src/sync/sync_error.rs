//! The error of a sync, and the action that a caller can take.

use std::error::Error as StdError;
use std::fmt;

use haversack_store::{Error as StoreError, ErrorKind};

use super::Budget;
use crate::frame::BadFrame;
use crate::ids::{Position, StoreId, Timestamp};

/// The action that a caller can take after a sync stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncErrorKind {
    /// Run the same sync again later: the remote, another process or another device is busy.
    RetryLater,
    /// Change the parameters of the sync: the directory, the address of the remote, free space, or a limit or confirmation in the
    /// [`Context`](super::Context).
    FixInput,
    /// Sign in, or change the permissions.
    SignIn,
    /// Put the store back from this device, or follow the device that did: [`rebuild`](super::rebuild).
    RebuildRemote,
    /// Update this program: a newer one wrote the remote.
    Update,
    /// Put the object that the error names back from a backup of the remote.
    RestoreObject,
    /// Report it: the storage or this program did something that it must not do.
    Report,
}

/// Why a sync stopped; everything that was written is safe on this device.
#[derive(Debug)]
#[non_exhaustive]
pub enum SyncError {
    /// Another process syncs.
    Busy,
    /// The remote does not answer or refuses.
    Remote(StoreError),
    /// The storage of this device failed.
    Local(StoreError),
    /// The remote belongs to another store.
    OtherStore {
        /// The store that this replica belongs to.
        expected: StoreId,
        /// The store in the remote.
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
        /// The store that continues it.
        found: StoreId,
        /// The device that began to rebuild it.
        device: String,
    },
    /// The log ends here: the store was moved.
    Moved {
        /// The new address, as the log says. No request has gone to it yet.
        url: String,
        /// The device that moved it.
        device: String,
        /// The time of the move.
        time: Timestamp,
    },
    /// A position of the log that this device has read is missing or different now.
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
        /// The object.
        what: String,
        /// The fault in it.
        why: BadFrame,
    },
    /// A commit does not fit what came before it.
    Unfit {
        /// The position of the commit.
        position: Position,
        /// The contradiction.
        why: String,
    },
    /// The remote does not return the content that it had acknowledged.
    Unclear(&'static str),
    /// All working files disappeared at once: the directory is empty or is not there.
    Vanished,
    /// The synced folder is empty: it is not mounted, or its files were deleted.
    Emptied,
    /// Another device wrote first at each of our attempts to write to the remote.
    Outrun,
    /// Others sent more than this device receives in one sync.
    TooMuch {
        /// The files and bytes that this sync would have received.
        received: Budget,
        /// The files and bytes that it may receive.
        budget: Budget,
    },
}

impl SyncError {
    /// Returns the action that a caller can take.
    pub fn kind(&self) -> SyncErrorKind {
        match self {
            SyncError::Busy | SyncError::Outrun => SyncErrorKind::RetryLater,
            SyncError::Remote(error) | SyncError::Local(error) => kind_of(error),
            SyncError::OtherStore { .. }
            | SyncError::Moved { .. }
            | SyncError::Vanished
            | SyncError::Emptied
            | SyncError::TooMuch { .. } => SyncErrorKind::FixInput,
            SyncError::Wiped { .. }
            | SyncError::Rebuilt { .. }
            | SyncError::WentBack { .. }
            | SyncError::Gap { .. } => SyncErrorKind::RebuildRemote,
            SyncError::Damaged { why, .. } if why.is_newer() => SyncErrorKind::Update,
            SyncError::Damaged { .. } | SyncError::Unfit { .. } => SyncErrorKind::RestoreObject,
            SyncError::Unclear(_) => SyncErrorKind::Report,
        }
    }
}

/// Returns the action that a caller can take about a storage.
fn kind_of(error: &StoreError) -> SyncErrorKind {
    match error.kind() {
        ErrorKind::Busy | ErrorKind::Unavailable | ErrorKind::Conflict => SyncErrorKind::RetryLater,
        ErrorKind::Denied => SyncErrorKind::SignIn,
        ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Full | ErrorKind::Unsupported => {
            SyncErrorKind::FixInput
        }
        // `ErrorKind` is open: a kind that this code does not know is not the caller's fault.
        _ => SyncErrorKind::Report,
    }
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyncError::Busy => f.write_str("another process is syncing"),
            SyncError::Remote(error) => f.write_str(match error.kind() {
                ErrorKind::Busy | ErrorKind::Unavailable => "the remote could not be reached",
                _ => "the remote could not be used",
            }),
            SyncError::Local(_) => f.write_str("this machine's storage failed"),
            SyncError::OtherStore { expected, found } => {
                write!(f, "the remote holds another store: {found}, not {expected}")
            }
            SyncError::Wiped { .. } => f.write_str("the remote is empty: the store that was there is gone"),
            SyncError::Rebuilt { device, .. } => {
                write!(f, "the remote was lost, and \"{device}\" rebuilt the store there")
            }
            SyncError::Moved { url, device, time } => {
                write!(f, "\"{device}\" moved the store to {url} ({time})")
            }
            SyncError::WentBack { position } => {
                write!(
                    f,
                    "the remote's history has changed: its change {} is missing or different",
                    position.number()
                )
            }
            SyncError::Gap { missing, found } => {
                write!(f, "the log has a gap: position {missing} is not there, though {found} is")
            }
            SyncError::Damaged { what, .. } => write!(f, "{what} cannot be read"),
            SyncError::Unfit { position, why } => {
                write!(f, "the commit at position {} does not fit: {why}", position.number())
            }
            SyncError::Unclear(what) => write!(f, "the remote returns other content than it stored: {what}"),
            SyncError::Vanished => f.write_str(
                "all files disappeared at once, and Haversack did not delete them on your other machines",
            ),
            SyncError::Emptied => f.write_str("the synced folder is empty, though it had files before"),
            SyncError::Outrun => f.write_str(
                "each time this machine tried to write to the remote, another machine wrote first",
            ),
            SyncError::TooMuch { received, budget } if received.files > budget.files => write!(
                f,
                "the remote has more than {} new files for this machine, so the sync stopped before it wrote them",
                budget.files
            ),
            SyncError::TooMuch { budget, .. } => write!(
                f,
                "the remote has more than {} MB of new files for this machine, so the sync stopped before it wrote them",
                budget.bytes / 1_000_000
            ),
        }
    }
}

impl StdError for SyncError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            SyncError::Remote(error) | SyncError::Local(error) => Some(error),
            SyncError::Damaged { why, .. } => Some(why),
            SyncError::Busy
            | SyncError::OtherStore { .. }
            | SyncError::Wiped { .. }
            | SyncError::Rebuilt { .. }
            | SyncError::Moved { .. }
            | SyncError::WentBack { .. }
            | SyncError::Gap { .. }
            | SyncError::Unfit { .. }
            | SyncError::Unclear(_)
            | SyncError::Vanished
            | SyncError::Emptied
            | SyncError::Outrun
            | SyncError::TooMuch { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use haversack_store::Operation;

    use super::*;

    #[test]
    fn kind_is_the_caller_action() {
        let store = |kind| StoreError::at(kind, Operation::Read, "ports.md", "no");
        let id = StoreId::from_bytes([1; 16]);
        let damaged = |why| SyncError::Damaged { what: "manifest.json".to_owned(), why };
        for (error, kind) in [
            (SyncError::Busy, SyncErrorKind::RetryLater),
            (SyncError::Remote(store(ErrorKind::Unavailable)), SyncErrorKind::RetryLater),
            (SyncError::Remote(store(ErrorKind::Denied)), SyncErrorKind::SignIn),
            (SyncError::Remote(store(ErrorKind::Full)), SyncErrorKind::FixInput),
            (SyncError::Local(store(ErrorKind::Internal)), SyncErrorKind::Report),
            (SyncError::OtherStore { expected: id, found: id }, SyncErrorKind::FixInput),
            (SyncError::Wiped { expected: id }, SyncErrorKind::RebuildRemote),
            (SyncError::Vanished, SyncErrorKind::FixInput),
            (SyncError::Unclear("a commit"), SyncErrorKind::Report),
            (damaged(BadFrame::Truncated), SyncErrorKind::RestoreObject),
            (damaged(BadFrame::Newer { version: 2 }), SyncErrorKind::Update),
        ] {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
