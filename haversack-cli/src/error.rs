//! What a command reports when it fails, and the exit code that goes with it.

use std::error::Error as StdError;
use std::process::ExitCode;

use haversack::store::{Error as StoreError, ErrorKind};

/// A command that failed: what happened, why, and what to do.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) fault: Fault,
    pub(crate) message: String,
    pub(crate) source: Option<Box<dyn StdError + Send + Sync>>,
    pub(crate) hint: Option<String>,
}

/// Who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The user, or the machine's owner.
    User,
    /// Whoever reads our output went away.
    BrokenPipe,
    /// We can.
    Ours,
}

impl CommandError {
    pub(crate) fn user(message: impl Into<String>, hint: impl Into<String>) -> CommandError {
        CommandError { fault: Fault::User, message: message.into(), source: None, hint: Some(hint.into()) }
    }

    pub(crate) fn ours(message: impl Into<String>) -> CommandError {
        CommandError { fault: Fault::Ours, message: message.into(), source: None, hint: None }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.fault {
            Fault::User => ExitCode::from(1),
            Fault::BrokenPipe => ExitCode::from(3),
            Fault::Ours => ExitCode::from(255),
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> CommandError {
        let hint = match error.kind() {
            ErrorKind::Full => Some("Make space on the disk, then run the same command again"),
            ErrorKind::Denied => Some("Check the permissions: haversack doctor"),
            ErrorKind::Busy => Some("Another process is writing; run the same command again"),
            ErrorKind::Unsupported => Some("See what there is: haversack backends"),
            _ => None,
        };
        let fault = if error.kind() == ErrorKind::Internal { Fault::Ours } else { Fault::User };
        // The store's own message is the headline; what is behind it is the cause.
        CommandError {
            fault,
            message: error.to_string(),
            source: error.source().map(|source| source.to_string().into()),
            hint: hint.map(str::to_owned),
        }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> CommandError {
        let fault = match error.kind() {
            std::io::ErrorKind::BrokenPipe => Fault::BrokenPipe,
            _ => Fault::User,
        };
        let message = "the output could not be written".to_owned();
        CommandError { fault, message, source: Some(error.into()), hint: None }
    }
}
