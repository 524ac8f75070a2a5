//! The file storage face: six commands over paths, for programs written against that interface.
//!
//! The same verbs underneath, with what such programs expect: lines are inserted before a line counted from 1, a directory
//! with something in it is not deleted, and every error has a [`Code`].

use std::error::Error as StdError;
use std::fmt;

use haversack_store::{Bytes, ErrorKind, Locator};

use crate::error::{Error, Reason, with_causes};
use crate::memory::{Change, Depth, Memory, View};
use crate::text::Ending;

/// A memory as a storage of files.
#[derive(Clone, Debug)]
pub struct FileStorage {
    memory: Memory,
}

/// What a look at a path found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// A file.
    File {
        /// What is in it.
        content: Content,
        /// How many bytes that is.
        size_bytes: u64,
    },
    /// A directory.
    Directory {
        /// The names in it, sorted.
        entries: Vec<String>,
    },
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// UTF-8 text.
    Text(String),
    /// Anything else.
    Bytes(Bytes),
}

/// One change of a [batch](FileStorage::batch).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// See [`FileStorage::create`].
    Create {
        /// Where.
        path: String,
        /// Its content.
        content: Bytes,
    },
    /// See [`FileStorage::str_replace`].
    StrReplace {
        /// Where.
        path: String,
        /// What is there.
        old_str: String,
        /// What comes in its place.
        new_str: String,
    },
    /// See [`FileStorage::insert`].
    Insert {
        /// Where.
        path: String,
        /// The line before which, from 1.
        insert_line: usize,
        /// The new line.
        new_str: String,
    },
    /// See [`FileStorage::delete`].
    Delete {
        /// Where.
        path: String,
    },
    /// See [`FileStorage::rename`].
    Rename {
        /// From where.
        old_path: String,
        /// To where.
        new_path: String,
    },
}

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// Nothing is at the path.
    FileNotFound,
    /// Something is at the path already.
    FileExists,
    /// The path cannot be used, or leads to a directory where a file is needed.
    InvalidPath,
    /// The system refuses access.
    PermissionDenied,
    /// The text to be replaced is empty or not there.
    StringNotFound,
    /// The text to be replaced is there more than once.
    StringNotUnique,
    /// The directory has something in it.
    DirectoryNotEmpty,
    /// The file has no such line.
    InvalidLineNumber,
    /// Anything else: the content is not text, the disk is full, another process holds the memory.
    OperationFailed,
}

impl Code {
    /// Returns the code as programs know it.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::FileNotFound => "FILE_NOT_FOUND",
            Code::FileExists => "FILE_EXISTS",
            Code::InvalidPath => "INVALID_PATH",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::StringNotFound => "STRING_NOT_FOUND",
            Code::StringNotUnique => "STRING_NOT_UNIQUE",
            Code::DirectoryNotEmpty => "DIRECTORY_NOT_EMPTY",
            Code::InvalidLineNumber => "INVALID_LINE_NUMBER",
            Code::OperationFailed => "OPERATION_FAILED",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A command that did nothing: what kind of error, why, and where.
#[derive(Debug)]
pub struct StorageError {
    /// What kind of error it is.
    pub code: Code,
    /// What happened and why.
    pub message: String,
    /// The path it is about, as the caller spelled it.
    pub path: String,
    source: Option<Error>,
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl StdError for StorageError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl FileStorage {
    /// Returns `memory` as a storage of files.
    pub fn new(memory: Memory) -> FileStorage {
        FileStorage { memory }
    }

    /// Returns the content of a file, or the names in a directory.
    pub async fn view(&self, path: &str) -> Result<FileContent, StorageError> {
        let locator = locate(path)?;
        match self.memory.view(&locator).await.map_err(|error| translate(path, error))? {
            View::Directory(listing) => {
                let entries = listing.entries.iter().map(|entry| entry.locator.name().to_owned()).collect();
                Ok(FileContent::Directory { entries })
            }
            View::File(object) => {
                let size_bytes = object.bytes.len() as u64;
                let content = match String::from_utf8(object.bytes.into()) {
                    Ok(text) => Content::Text(text),
                    Err(error) => Content::Bytes(error.into_bytes().into()),
                };
                Ok(FileContent::File { content, size_bytes })
            }
        }
    }

    /// Makes a new file, and the directories on the way.
    pub async fn create(&self, path: &str, content: impl Into<Bytes>) -> Result<(), StorageError> {
        let locator = locate(path)?;
        self.memory.create(&locator, content).await.map_err(|error| translate(path, error))?;
        Ok(())
    }

    /// Replaces the only occurrence of `old_str`, literally.
    pub async fn str_replace(&self, path: &str, old_str: &str, new_str: &str) -> Result<(), StorageError> {
        let locator = locate(path)?;
        let edited = self.memory.str_replace(&locator, old_str, new_str).await;
        edited.map_err(|error| translate(path, error))?;
        Ok(())
    }

    /// Inserts `new_str` as a whole line before line `insert_line`, counted from 1; one more than there are lines is the end.
    pub async fn insert(&self, path: &str, insert_line: usize, new_str: &str) -> Result<(), StorageError> {
        let locator = locate(path)?;
        let inserted = self.memory.insert(&locator, line_before(insert_line), new_str, Ending::Kept).await;
        inserted.map_err(|error| translate(path, error))?;
        Ok(())
    }

    /// Removes a file or an empty directory.
    pub async fn delete(&self, path: &str) -> Result<(), StorageError> {
        let locator = locate(path)?;
        self.memory.delete(&locator, Depth::Single).await.map_err(|error| translate(path, error))
    }

    /// Moves a file or a directory to a path that is free, making the directories on the way.
    pub async fn rename(&self, old_path: &str, new_path: &str) -> Result<(), StorageError> {
        let (from, to) = (locate(old_path)?, locate(new_path)?);
        self.memory.rename(&from, &to).await.map_err(|error| {
            let path = if error.locator() == &to { new_path } else { old_path };
            translate(path, error)
        })
    }

    /// Makes several changes, all or nothing, each seeing those before it.
    pub async fn batch(&self, operations: &[Operation]) -> Result<(), StorageError> {
        let changes: Result<Vec<Change>, StorageError> = operations.iter().map(change).collect();
        let report = self.memory.batch(&changes?).await.map_err(|error| {
            let path = error.locator().to_string();
            translate(&path, error)
        })?;
        // Texts of other programs that saved in that very moment are kept aside, and `haversack doctor` lists them.
        drop(report);
        Ok(())
    }
}

fn change(operation: &Operation) -> Result<Change, StorageError> {
    Ok(match operation {
        Operation::Create { path, content } => {
            Change::Create { locator: locate(path)?, bytes: content.clone() }
        }
        Operation::StrReplace { path, old_str, new_str } => {
            Change::StrReplace { locator: locate(path)?, old: old_str.clone(), new: new_str.clone() }
        }
        Operation::Insert { path, insert_line, new_str } => Change::Insert {
            locator: locate(path)?,
            after_line: line_before(*insert_line),
            text: new_str.clone(),
            ending: Ending::Kept,
        },
        Operation::Delete { path } => Change::Delete { locator: locate(path)?, depth: Depth::Single },
        Operation::Rename { old_path, new_path } => {
            Change::Rename { from: locate(old_path)?, to: locate(new_path)? }
        }
    })
}

/// Returns the line after which to insert; there is none before line 0, and no file has that many lines.
fn line_before(insert_line: usize) -> usize {
    insert_line.checked_sub(1).unwrap_or(usize::MAX)
}

fn locate(path: &str) -> Result<Locator, StorageError> {
    Locator::parse(path).map_err(|error| StorageError {
        code: Code::InvalidPath,
        message: error.to_string(),
        path: path.to_owned(),
        source: None,
    })
}

fn translate(path: &str, error: Error) -> StorageError {
    let code = match error.reason() {
        Reason::NotFound => Code::FileNotFound,
        Reason::Exists => Code::FileExists,
        Reason::IsDirectory | Reason::IsRoot | Reason::IntoItself => Code::InvalidPath,
        Reason::NotEmpty => Code::DirectoryNotEmpty,
        Reason::EmptyOld | Reason::OldNotFound => Code::StringNotFound,
        Reason::OldNotUnique(_) => Code::StringNotUnique,
        Reason::LineOutOfRange { .. } => Code::InvalidLineNumber,
        Reason::Storage if error.kind() == ErrorKind::Invalid => Code::InvalidPath,
        Reason::Storage if error.kind() == ErrorKind::Denied => Code::PermissionDenied,
        Reason::NotText { .. }
        | Reason::TooLarge { .. }
        | Reason::Changed
        | Reason::NoConflict
        | Reason::NoPassage { .. }
        | Reason::Restless
        | Reason::Unfinished
        | Reason::Storage => Code::OperationFailed,
    };
    StorageError { code, message: with_causes(&error), path: path.to_owned(), source: Some(error) }
}
