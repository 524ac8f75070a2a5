//! Why a verb was refused or failed.

use std::error::Error as StdError;
use std::fmt;

use haversack_store::{Error as StoreError, ErrorKind, Locator, Operation};

use crate::text::{Occurrences, Refusal};

/// The result of every verb.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A verb of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Looking at a file or a directory.
    View,
    /// Making a new file.
    Create,
    /// Replacing a passage.
    StrReplace,
    /// Inserting lines.
    Insert,
    /// Adding to the end.
    Append,
    /// Removing a file or a directory.
    Delete,
    /// Moving a file or a directory.
    Rename,
    /// Several changes, all or nothing.
    Batch,
    /// Settling a conflict.
    Resolve,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::View => "view",
            Verb::Create => "create",
            Verb::StrReplace => "edit",
            Verb::Insert => "insert into",
            Verb::Append => "append to",
            Verb::Delete => "delete",
            Verb::Rename => "rename",
            Verb::Batch => "apply the batch to",
            Verb::Resolve => "resolve a conflict in",
        })
    }
}

/// Why a verb did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Nothing is there.
    NotFound,
    /// Something is there already.
    Exists,
    /// It is a directory where a file is needed.
    IsDirectory,
    /// It is a directory with something in it.
    NotEmpty,
    /// It is the memory itself.
    IsRoot,
    /// A directory would be moved into itself.
    IntoItself,
    /// It is not UTF-8 text; the first byte that is not is named.
    NotText {
        /// The number of bytes before it that are text.
        valid_bytes: usize,
    },
    /// It is too large for a verb that works on text.
    TooLarge {
        /// Its size.
        size_bytes: u64,
    },
    /// The text to be replaced is empty.
    EmptyOld,
    /// The text to be replaced is not there.
    OldNotFound,
    /// The text to be replaced is there more than once, overlapping occurrences included.
    OldNotUnique(Occurrences),
    /// The file has fewer lines.
    LineOutOfRange {
        /// The line that was named.
        line: usize,
        /// The number of lines.
        lines: usize,
    },
    /// It is not what it was any more.
    Changed,
    /// The passages of a conflict are not what they were, or not there.
    NoConflict,
    /// A conflict has fewer passages.
    NoPassage {
        /// The number of passages.
        passages: usize,
    },
    /// Another program changed the file again and again while it was edited.
    Restless,
    /// A recorded batch is not applied yet. The next writer completes it.
    Unfinished,
    /// The storage refused or failed; the source says why.
    Storage,
}

impl From<Refusal> for Reason {
    fn from(refusal: Refusal) -> Reason {
        match refusal {
            Refusal::EmptyOld => Reason::EmptyOld,
            Refusal::OldNotFound => Reason::OldNotFound,
            Refusal::OldNotUnique(occurrences) => Reason::OldNotUnique(occurrences),
            Refusal::LineOutOfRange { line, lines } => Reason::LineOutOfRange { line, lines },
        }
    }
}

/// A verb that did nothing, where, and why.
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    verb: Verb,
    locator: Locator,
    reason: Reason,
    /// The number of the change in its batch, counted from 0.
    change: Option<usize>,
    source: Option<StoreError>,
}

impl Error {
    pub(crate) fn new(verb: Verb, locator: &Locator, reason: impl Into<Reason>) -> Error {
        let (locator, reason) = (locator.clone(), reason.into());
        Error { inner: Box::new(Inner { verb, locator, reason, change: None, source: None }) }
    }

    pub(crate) fn storage(verb: Verb, locator: &Locator, source: StoreError) -> Error {
        Error::new(verb, locator, Reason::Storage).caused_by(source)
    }

    /// Returns the storage's error behind this one; another reason becomes an internal error with the same text.
    pub(crate) fn into_store_error(self) -> StoreError {
        let text = self.to_string();
        let Inner { locator, source, .. } = *self.inner;
        source
            .unwrap_or_else(|| StoreError::at(ErrorKind::Internal, Operation::Write, locator.as_str(), text))
    }

    pub(crate) fn caused_by(mut self, source: StoreError) -> Error {
        self.inner.source = Some(source);
        self
    }

    pub(crate) fn in_batch(mut self, change: usize) -> Error {
        self.inner.change = Some(change);
        self
    }

    /// Returns what was tried.
    pub fn verb(&self) -> Verb {
        self.inner.verb
    }

    /// Returns the place it is about: of a rename that found its target taken, the target.
    pub fn locator(&self) -> &Locator {
        &self.inner.locator
    }

    /// Returns why nothing was done.
    pub fn reason(&self) -> &Reason {
        &self.inner.reason
    }

    /// Returns which change of a batch was refused, counted from 0.
    pub fn change(&self) -> Option<usize> {
        self.inner.change
    }

    /// Returns what the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match &self.inner.reason {
            Reason::NotFound => ErrorKind::NotFound,
            Reason::Exists | Reason::Changed | Reason::NoConflict | Reason::Restless => ErrorKind::Conflict,
            Reason::Storage | Reason::Unfinished => {
                self.inner.source.as_ref().map_or(ErrorKind::Internal, StoreError::kind)
            }
            Reason::IsDirectory
            | Reason::NotEmpty
            | Reason::IsRoot
            | Reason::IntoItself
            | Reason::NotText { .. }
            | Reason::TooLarge { .. }
            | Reason::EmptyOld
            | Reason::OldNotFound
            | Reason::OldNotUnique(_)
            | Reason::LineOutOfRange { .. }
            | Reason::NoPassage { .. } => ErrorKind::Invalid,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NotFound => f.write_str("nothing is there"),
            Reason::Exists => f.write_str("something is there already"),
            Reason::IsDirectory => f.write_str("it is a directory, not a file"),
            Reason::NotEmpty => f.write_str("the directory is not empty"),
            Reason::IsRoot => f.write_str("it is the memory itself"),
            Reason::IntoItself => f.write_str("a directory cannot be moved into itself"),
            Reason::NotText { valid_bytes } => {
                write!(f, "it is not text: byte {} is not UTF-8", valid_bytes + 1)
            }
            Reason::TooLarge { size_bytes } => write!(f, "it is too large to edit ({size_bytes} bytes)"),
            Reason::EmptyOld => f.write_str("the text to replace is empty"),
            Reason::OldNotFound => f.write_str("the text to replace is not there"),
            Reason::OldNotUnique(Occurrences { lines, more }) => {
                let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
                let more = if *more { " and more" } else { "" };
                write!(f, "the text to replace is there more than once, in lines {}{more}", lines.join(", "))
            }
            Reason::LineOutOfRange { line, lines } => {
                write!(f, "there is no line {line}, the file has {lines}")
            }
            Reason::Changed => f.write_str("it changed while we were writing"),
            Reason::NoConflict => f.write_str("its passages have changed"),
            Reason::NoPassage { passages } => write!(f, "it has {passages} passages"),
            Reason::Restless => f.write_str("another program keeps changing it"),
            Reason::Unfinished => {
                f.write_str("the batch is recorded and not applied yet; the next write completes it")
            }
            Reason::Storage => f.write_str("the storage refused"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { verb, locator, reason, change, .. } = &*self.inner;
        if let Some(change) = change {
            write!(f, "change {} of the batch: ", change + 1)?;
        }
        if locator.is_root() {
            write!(f, "could not {verb} the memory: {reason}")
        } else {
            write!(f, "could not {verb} {locator}: {reason}")
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.inner.reason)?;
        match &self.inner.source {
            Some(source) => write!(f, ": {source:?}"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_ref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Returns an error with everything that led to it, in one line.
pub(crate) fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
