//! The errors of a recall.

use std::fmt;

use haversack::store;

/// The reason why the index could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The memory could not be looked at. The index is not the cause.
    Files,
    /// The index is damaged: rebuild it.
    Damaged,
    /// A newer version of the program wrote the index: leave it alone.
    Newer,
    /// Other processes kept the index locked: try again later.
    Busy,
    /// The place of the index cannot be written: read-only, full, or not there.
    Unwritable,
    /// The model that makes vectors cannot be used. Words are searched without it.
    Model,
}

/// The reason why a recall did not happen.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Files(store::Error),
    Database(rusqlite::Error),
    Disk(std::io::Error),
    None,
}

/// The result of a recall.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns what the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn new(kind: ErrorKind) -> Error {
        Error { kind, source: Source::None }
    }

    /// Returns the error of a model.
    pub(crate) fn from_model(error: std::io::Error) -> Error {
        Error { kind: ErrorKind::Model, source: Source::Disk(error) }
    }

    /// Returns the error of the memory, if it is the cause.
    pub fn into_files(self) -> std::result::Result<store::Error, Error> {
        match self.source {
            Source::Files(error) => Ok(error),
            _ => Err(self),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ErrorKind::Files => "the memory could not be looked at",
            ErrorKind::Damaged => "the search index is damaged",
            ErrorKind::Newer => "a newer version of the program wrote the search index",
            ErrorKind::Busy => "other processes kept the search index locked",
            ErrorKind::Unwritable => "the search index cannot be written",
            ErrorKind::Model => "the model for search by meaning cannot be used",
        })
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.source {
            Source::Files(error) => Some(error),
            Source::Database(error) => Some(error),
            Source::Disk(error) => Some(error),
            Source::None => None,
        }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        Error { kind: ErrorKind::Files, source: Source::Files(error) }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error { kind: ErrorKind::Unwritable, source: Source::Disk(error) }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        use rusqlite::ErrorCode;
        let kind = match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
            ) => ErrorKind::Busy,
            Some(
                ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::DiskFull
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure
                | ErrorCode::NoLargeFileSupport,
            ) => ErrorKind::Unwritable,
            // Our statements fit our tables. If one fails otherwise, or a value has another type, the tables are not as we wrote them.
            Some(_) | None => ErrorKind::Damaged,
        };
        Error { kind, source: Source::Database(error) }
    }
}
