//! Why an operation of the graph did nothing.

use std::error::Error as StdError;
use std::fmt;

use crate::file_storage::{self, StorageError};

/// The kind of an error: programs decide by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// The graph has no ontology yet.
    OntologyNotFound,
    /// The graph has an ontology already.
    OntologyAlreadyExists,
    /// The ontology has a type of this name already.
    TypeAlreadyExists,
    /// The ontology has no such node type.
    InvalidNodeType,
    /// The ontology has no such connection type.
    InvalidConnectionType,
    /// The connection type does not connect nodes of these types.
    InvalidTopology,
    /// The connection type requires a property that was not given.
    RequiredPropertyMissing,
    /// There is no such node.
    NodeNotFound,
    /// There is no such connection.
    ConnectionNotFound,
    /// A content or the registry could not be written.
    FileCreationFailed,
    /// A content or the registry could not be read.
    ContentReadFailed,
    /// The content is not what its encoding says.
    InvalidEncoding,
    /// An argument cannot be used.
    InvalidArgument,
}

impl Code {
    /// Every code.
    pub const ALL: [Code; 13] = [
        Code::OntologyNotFound,
        Code::OntologyAlreadyExists,
        Code::TypeAlreadyExists,
        Code::InvalidNodeType,
        Code::InvalidConnectionType,
        Code::InvalidTopology,
        Code::RequiredPropertyMissing,
        Code::NodeNotFound,
        Code::ConnectionNotFound,
        Code::FileCreationFailed,
        Code::ContentReadFailed,
        Code::InvalidEncoding,
        Code::InvalidArgument,
    ];

    /// Returns the code as programs know it.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::OntologyNotFound => "ONTOLOGY_NOT_FOUND",
            Code::OntologyAlreadyExists => "ONTOLOGY_ALREADY_EXISTS",
            Code::TypeAlreadyExists => "TYPE_ALREADY_EXISTS",
            Code::InvalidNodeType => "INVALID_NODE_TYPE",
            Code::InvalidConnectionType => "INVALID_CONNECTION_TYPE",
            Code::InvalidTopology => "INVALID_TOPOLOGY",
            Code::RequiredPropertyMissing => "REQUIRED_PROPERTY_MISSING",
            Code::NodeNotFound => "NODE_NOT_FOUND",
            Code::ConnectionNotFound => "CONNECTION_NOT_FOUND",
            Code::FileCreationFailed => "FILE_CREATION_FAILED",
            Code::ContentReadFailed => "CONTENT_READ_FAILED",
            Code::InvalidEncoding => "INVALID_ENCODING",
            Code::InvalidArgument => "INVALID_ARGUMENT",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An operation of the graph that did nothing: what kind of error, and why.
#[derive(Debug)]
pub struct GraphError {
    /// The kind of the error.
    pub code: Code,
    /// The event, with the node, connection, type or file.
    pub message: String,
    source: Option<StorageError>,
}

impl GraphError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> GraphError {
        GraphError { code, message: message.into(), source: None }
    }

    pub(crate) fn caused(code: Code, message: impl Into<String>, source: StorageError) -> GraphError {
        GraphError { code, message: message.into(), source: Some(source) }
    }

    /// Returns the code of the storage's error behind this one.
    pub(crate) fn storage_code(&self) -> Option<file_storage::Code> {
        self.source.as_ref().map(|source| source.code)
    }

    /// Tells whether a file was not there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.storage_code() == Some(file_storage::Code::FileNotFound)
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl StdError for GraphError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| source as &(dyn StdError + 'static))
    }
}
