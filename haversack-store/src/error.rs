//! The one error of this crate: what happened, at which place, and what the caller can do.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use crate::locator::{InvalidLocator, Locator};

/// The result of every operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The caller's possible reaction to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing is there: go on without it.
    NotFound,
    /// The state is not the one the caller named: re-read, merge and try again.
    Conflict,
    /// The input can never work: fix it.
    Invalid,
    /// Another process holds it: try again later.
    Busy,
    /// The storage does not answer: try again later; whether it was done is not known.
    Unavailable,
    /// The storage refuses this user: sign in, or change the permissions.
    Denied,
    /// There is no space left: make some.
    Full,
    /// This storage cannot do that at all: choose another one.
    Unsupported,
    /// Something that should not happen did: report it.
    Internal,
}

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Opening a backend.
    Open,
    /// Reading an object.
    Read,
    /// Writing an object.
    Write,
    /// Appending to an object.
    Append,
    /// Making earlier appends durable.
    Barrier,
    /// Listing a directory.
    List,
    /// Scanning a tree.
    Scan,
    /// Asking about an object.
    Info,
    /// Deleting an object.
    Delete,
    /// Renaming an object.
    Rename,
    /// Letting two objects change places.
    Exchange,
    /// Making a directory.
    Mkdir,
    /// Taking a lock.
    Lock,
    /// Cleaning up after a crash.
    Recover,
    /// Choosing a backend by name.
    Select,
    /// Proving who one is.
    SignIn,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Append => "append to",
            Operation::Barrier => "make durable",
            Operation::List => "list",
            Operation::Scan => "scan",
            Operation::Info => "look at",
            Operation::Delete => "delete",
            Operation::Rename => "rename",
            Operation::Exchange => "exchange",
            Operation::Mkdir => "make directory",
            Operation::Lock => "lock",
            Operation::Recover => "recover",
            Operation::Select => "select backend",
            Operation::SignIn => "sign in at",
        })
    }
}

/// An operation that failed, with its place and its cause.
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    operation: Operation,
    place: String,
    message: String,
    tries: u32,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Returns an error about an object; the message says why, without the place.
    pub fn new(
        kind: ErrorKind,
        operation: Operation,
        locator: &Locator,
        message: impl Into<String>,
    ) -> Error {
        Error::at(kind, operation, locator.as_str(), message)
    }

    /// Returns an error about something that has no locator: a root, a lock, a backend name.
    pub fn at(
        kind: ErrorKind,
        operation: Operation,
        place: impl Into<String>,
        message: impl Into<String>,
    ) -> Error {
        let inner =
            Inner { kind, operation, place: place.into(), message: message.into(), tries: 1, source: None };
        Error { inner: Box::new(inner) }
    }

    /// Returns the error for an I/O failure, its kind told by the operating system's code.
    pub fn from_io(operation: Operation, place: impl Into<String>, error: io::Error) -> Error {
        let (kind, message) = classify(&error);
        Error::at(kind, operation, place, message).with_source(error)
    }

    /// Adds the cause.
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.inner.source = Some(source.into());
        self
    }

    /// Says how often the backend sent the request before it gave up.
    pub fn with_tries(mut self, tries: u32) -> Error {
        self.inner.tries = tries.max(1);
        self
    }

    /// Returns the same error as seen by a caller who knows the place by another name.
    pub(crate) fn with_place(mut self, place: impl Into<String>) -> Error {
        self.inner.place = place.into();
        self
    }

    /// Returns what the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Returns how often the backend sent the request before it gave up; 1 if it does not repeat requests.
    ///
    /// A caller that repeats requests counts these tries as its own, so that two layers do not multiply.
    pub fn tries(&self) -> u32 {
        self.inner.tries
    }

    /// Returns what was being done.
    pub fn operation(&self) -> Operation {
        self.inner.operation
    }

    /// Returns where: a locator's key, or the name of what was opened, locked or selected.
    pub fn place(&self) -> &str {
        &self.inner.place
    }

    /// Returns why, without the operation and the place.
    pub fn message(&self) -> &str {
        &self.inner.message
    }
}

fn classify(error: &io::Error) -> (ErrorKind, &'static str) {
    use io::ErrorKind as Io;
    match error.kind() {
        Io::NotFound => (ErrorKind::NotFound, "nothing is there"),
        Io::PermissionDenied => (ErrorKind::Denied, "the system refuses access"),
        Io::ReadOnlyFilesystem => (ErrorKind::Denied, "the filesystem is read-only"),
        Io::StorageFull => (ErrorKind::Full, "the disk is full"),
        Io::QuotaExceeded => (ErrorKind::Full, "the disk quota is used up"),
        Io::FileTooLarge => (ErrorKind::Full, "the file would exceed the size limit"),
        Io::NotADirectory => (ErrorKind::Invalid, "a name on the way is a file, not a directory"),
        Io::IsADirectory => (ErrorKind::Invalid, "it is a directory, not a file"),
        Io::DirectoryNotEmpty => (ErrorKind::Invalid, "the directory is not empty"),
        Io::InvalidFilename => (ErrorKind::Invalid, "the system cannot hold that name"),
        Io::AlreadyExists => (ErrorKind::Conflict, "something is there already"),
        Io::WouldBlock | Io::ResourceBusy => (ErrorKind::Busy, "it is in use"),
        Io::TimedOut | Io::Interrupted => (ErrorKind::Unavailable, "the storage did not answer"),
        Io::Unsupported => (ErrorKind::Unsupported, "the filesystem cannot do that"),
        _ if error.get_ref().is_some_and(|inner| inner.is::<NotHere>()) => {
            (ErrorKind::Unavailable, "its content is not on this machine yet")
        }
        _ if is_loop(error) => {
            (ErrorKind::Invalid, "a symbolic link is in the way, and links are not followed")
        }
        _ => (ErrorKind::Internal, "the storage failed"),
    }
}

/// A file of which a sync client has brought the name and not the content.
#[derive(Debug)]
pub(crate) struct NotHere;

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its sync client has brought only the name so far")
    }
}

impl StdError for NotHere {}

impl From<NotHere> for io::Error {
    fn from(not_here: NotHere) -> io::Error {
        io::Error::other(not_here)
    }
}

/// Returns true if the system met a symbolic link where none may be.
///
/// `std` has the kind (`FilesystemLoop`) but not yet on the stable channel.
#[cfg(unix)]
fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
fn is_loop(_: &io::Error) -> bool {
    false
}

/// Names the place of an error as the caller of a wrapper knows it.
pub(crate) fn seen_as<T>(locator: &Locator, result: Result<T>) -> Result<T> {
    result.map_err(|error| error.with_place(locator.as_str()))
}

/// Does the same for something that has two places: each as the wrapped backend knows it, and as the caller does.
pub(crate) fn seen_as_either<T>(places: [(&Locator, &Locator); 2], result: Result<T>) -> Result<T> {
    result.map_err(|error| {
        let seen = places.iter().find(|(inner, _)| inner.as_str() == error.place()).unwrap_or(&places[0]).1;
        error.with_place(seen.as_str())
    })
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { operation, place, message, .. } = &*self.inner;
        match operation {
            Operation::Select => write!(f, "{message}"),
            Operation::Barrier => write!(f, "could not make earlier appends durable: {message}"),
            _ if place.is_empty() => write!(f, "could not {operation} the root: {message}"),
            _ => write!(f, "could not {operation} {place}: {message}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.inner.kind)?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl Error {
    /// Returns true if a sync client has brought only the name of the file so far: its content may still come.
    pub fn is_content_awaited(&self) -> bool {
        let cause = self.source().and_then(|source| source.downcast_ref::<io::Error>());
        cause.and_then(io::Error::get_ref).is_some_and(|inner| inner.is::<NotHere>())
    }

    /// Returns the error for a name that cannot be used in this operation.
    pub fn invalid(operation: Operation, locator: &Locator, reason: InvalidLocator) -> Error {
        Error::new(ErrorKind::Invalid, operation, locator, "the name cannot be used").with_source(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sentences_without_their_cause() {
        let full = Error::from_io(Operation::Write, "a/b.md", io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.to_string(), "could not write a/b.md: the disk is full");
        assert_eq!(full.kind(), ErrorKind::Full);
        assert!(full.source().is_some());
        let root = Error::new(ErrorKind::Invalid, Operation::Delete, &Locator::root(), "it stays");
        assert_eq!(root.to_string(), "could not delete the root: it stays");
    }
}
