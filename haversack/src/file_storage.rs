//! Storage of files behind six commands: the seam of the graph, and of programs that were written against such an interface.
//!
//! [`FileStorage`] is the seam: its users do not know where the files are. [`MemoryStorage`] offers it over a [`Memory`](crate::Memory), and over any
//! backend by itself; `AnthropicMemoryStorage` over a memory store of Anthropic's. Lines are inserted before a line counted from 1, a
//! directory with something in it is not deleted, and every error has a [`Code`].

#[cfg(feature = "cloud")]
mod anthropic;
mod memory_storage;

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;

use async_trait::async_trait;
use haversack_store::{Bytes, ErrorKind, Locator};

#[cfg(feature = "cloud")]
pub use self::anthropic::AnthropicMemoryStorage;
pub use self::memory_storage::MemoryStorage;
use crate::error::{Error, Reason, with_causes};
use crate::ids::ContentHash;

/// A storage of files that can be swapped for another one.
///
/// Each command is atomic for all who use the same storage: of two commands that change one file, the second sees the result of the first.
#[async_trait]
pub trait FileStorage: fmt::Debug + Send + Sync {
    /// Returns the content of a file, or the names in a directory.
    async fn view(&self, path: &str) -> Result<FileContent, StorageError>;

    /// Makes a new file, and the directories on the way; a file that is there already is [`Code::FileExists`].
    async fn create(&self, path: &str, content: Bytes) -> Result<(), StorageError>;

    /// Makes new files as [`create`](Self::create) does, each by itself, and returns the results in their order. If a path is no path of a file, or the storage
    /// cannot be written at all, none is made.
    async fn create_all(
        &self,
        files: Vec<(String, Bytes)>,
    ) -> Result<Vec<Result<(), StorageError>>, StorageError> {
        let mut results = Vec::with_capacity(files.len());
        for (path, content) in files {
            results.push(self.create(&path, content).await);
        }
        Ok(results)
    }

    /// Replaces the only occurrence of `old_str`, literally.
    async fn str_replace(&self, path: &str, old_str: &str, new_str: &str) -> Result<(), StorageError>;

    /// Inserts `new_str` as a whole line before line `insert_line`, counted from 1; one more than there are lines is the end.
    async fn insert(&self, path: &str, insert_line: usize, new_str: &str) -> Result<(), StorageError>;

    /// Removes a file or an empty directory.
    async fn delete(&self, path: &str) -> Result<(), StorageError>;

    /// Moves a file or a directory to a path that is free, making the directories on the way.
    async fn rename(&self, old_path: &str, new_path: &str) -> Result<(), StorageError>;

    /// Makes several changes, all or nothing, each seeing those before it.
    async fn batch(&self, operations: &[Operation]) -> Result<(), StorageError>;

    /// Returns a mark for each file below a directory, by its path there: a file whose mark did not change has not changed. None for a directory that is not there.
    ///
    /// A storage that cannot tell without reading hashes the contents, which is what this does.
    async fn marks(&self, directory: &str) -> Result<BTreeMap<String, String>, StorageError> {
        let mut marks = BTreeMap::new();
        let mut below = vec![String::new()];
        while let Some(at) = below.pop() {
            match self.view(&format!("{directory}/{at}")).await {
                Ok(FileContent::Directory { entries }) => {
                    let inside = |name: String| if at.is_empty() { name } else { format!("{at}/{name}") };
                    below.extend(entries.into_iter().map(inside));
                }
                Ok(FileContent::File { content, .. }) => {
                    marks.insert(at, ContentHash::of(content.as_bytes()).to_string());
                }
                // It is gone since its directory was looked at.
                Err(error) if error.code == Code::FileNotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(marks)
    }
}

/// The result of looking at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// A file.
    File {
        /// The content.
        content: Content,
        /// Its size.
        size_bytes: u64,
    },
    /// A directory.
    Directory {
        /// The names in it, sorted.
        entries: Vec<String>,
    },
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// UTF-8 text.
    Text(String),
    /// Anything else.
    Bytes(Bytes),
}

impl Content {
    /// Returns the content as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Content::Text(text) => text.as_bytes(),
            Content::Bytes(bytes) => bytes,
        }
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Content {
        match String::from_utf8(bytes.into()) {
            Ok(text) => Content::Text(text),
            Err(error) => Content::Bytes(error.into_bytes().into()),
        }
    }
}

impl From<Content> for Bytes {
    fn from(content: Content) -> Bytes {
        match content {
            Content::Text(text) => text.into(),
            Content::Bytes(bytes) => bytes,
        }
    }
}

/// One change of a [batch](FileStorage::batch).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// See [`FileStorage::create`].
    Create {
        /// The path.
        path: String,
        /// Its content.
        content: Bytes,
    },
    /// See [`FileStorage::str_replace`].
    StrReplace {
        /// The path.
        path: String,
        /// The old text.
        old_str: String,
        /// The new text.
        new_str: String,
    },
    /// See [`FileStorage::insert`].
    Insert {
        /// The path.
        path: String,
        /// The line before which, from 1.
        insert_line: usize,
        /// The new line.
        new_str: String,
    },
    /// See [`FileStorage::delete`].
    Delete {
        /// The path.
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

/// The kind of an error.
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
    /// The kind of the error.
    pub code: Code,
    /// The event and its cause.
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

impl StorageError {
    /// Returns an error of a storage's own.
    pub fn new(code: Code, message: impl Into<String>, path: impl Into<String>) -> StorageError {
        StorageError { code, message: message.into(), path: path.into(), source: None }
    }
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
