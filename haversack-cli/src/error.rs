//! The error of a command, and its exit code.

use std::error::Error as StdError;
use std::fmt;
use std::process::ExitCode;

use haversack::store::cloud::Refusal;
use haversack::store::{Error as StoreError, ErrorKind};
use haversack::sync::SyncError;
use haversack::{Error, Reason};

/// A command that failed: what happened, why, and what to do.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) fault: Fault,
    pub(crate) message: String,
    pub(crate) source: Option<Box<dyn StdError + Send + Sync>>,
    pub(crate) hint: Option<String>,
}

/// A problem that does not stop the command, with its cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    pub(crate) message: String,
    pub(crate) cure: String,
}

/// The party that can solve the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The user, or the machine's owner.
    User,
    /// The reader of our output closed it.
    BrokenPipe,
    /// We can.
    Ours,
}

impl CommandError {
    pub(crate) fn user(message: impl Into<String>, hint: impl Into<String>) -> CommandError {
        CommandError { fault: Fault::User, message: message.into(), source: None, hint: Some(hint.into()) }
    }

    /// Returns the error of something that failed, with what led to it.
    pub(crate) fn caused(fault: Fault, error: &dyn StdError, hint: Option<String>) -> CommandError {
        CommandError { fault, message: error.to_string(), source: error.source().map(causes), hint }
    }

    /// Returns what happened and what led to it, for where there is one line.
    pub(crate) fn in_one_line(&self) -> String {
        let cause = self.source.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{}{cause}", self.message)
    }

    /// Returns the error with its causes and its cure, a line each.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("Error: {}\n", self.message);
        let mut cause = self.source.as_deref().map(|source| source as &dyn StdError);
        while let Some(error) = cause {
            text.push_str(&format!("Caused by: {error}\n"));
            cause = error.source();
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("Hint: {hint}\n"));
        }
        text
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

/// Returns a text as a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "_-./:@%+=,~\\".contains(character);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    // A shell replaces `~` only outside of quotes.
    let (start, rest) = text.strip_prefix("~/").map_or(("", text), |rest| ("~/", rest));
    format!("{start}'{}'", rest.replace('\'', r"'\''"))
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> CommandError {
        let fault = if error.kind() == ErrorKind::Internal { Fault::Ours } else { Fault::User };
        // The store's own message is the headline; what is behind it is the cause.
        CommandError {
            fault,
            message: error.to_string(),
            source: error.source().map(causes),
            hint: match Refusal::of(&error) {
                Some(refusal) => Some(refusal.cure().to_owned()),
                None => hint_for(error.kind()).map(str::to_owned),
            },
        }
    }
}

/// Returns what to do about a storage that refused.
fn hint_for(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::Full => Some("Make space on the disk, then run the same command again"),
        ErrorKind::Denied => Some("Check the permissions: haversack doctor"),
        ErrorKind::Busy => Some("Another process is writing; run the same command again"),
        ErrorKind::Unsupported => Some("List the storages: haversack backends"),
        _ => None,
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> CommandError {
        // A command in a hint can be copied into a shell.
        let place = quoted(error.locator().as_str());
        let hint = match error.reason() {
            Reason::NotFound => Some("List the files: haversack ls".to_owned()),
            Reason::Exists => Some(
                "Change the existing file with str-replace, insert or append, or choose another name"
                    .to_owned(),
            ),
            Reason::IsDirectory => Some(format!("List it: haversack ls {place}")),
            Reason::NotEmpty => {
                Some(format!("Delete it with everything in it: haversack delete --recursive {place}"))
            }
            Reason::IsRoot => Some("Name a file or directory in the memory: haversack ls".to_owned()),
            Reason::IntoItself => Some("Take a name outside of it".to_owned()),
            Reason::NotText { .. } => {
                Some("Only text can be edited. Keep a copy of the file before you replace it".to_owned())
            }
            Reason::TooLarge { .. } => {
                Some("Split it into smaller files: an agent must be able to read a memory".to_owned())
            }
            Reason::EmptyOld => Some("Name the text to replace, or use insert".to_owned()),
            Reason::OldNotFound => {
                Some(format!("Copy the text exactly as it is in the file: haversack view {place}"))
            }
            Reason::OldNotUnique(_) => {
                Some("Include more of the surrounding text, so that it matches one place only".to_owned())
            }
            Reason::LineOutOfRange { lines, .. } => {
                Some(format!("Name a line from 0 (the top) to {lines}: haversack view {place}"))
            }
            Reason::Changed => {
                Some("Run the same command again. It starts from the present content".to_owned())
            }
            Reason::NoConflict => Some("List the conflicts again: haversack conflicts".to_owned()),
            Reason::NoPassage { passages } => {
                Some(format!("Keep one of 1 to {passages}, or both: haversack conflicts"))
            }
            Reason::Restless => Some("Close the other program, then run the same command again".to_owned()),
            Reason::Storage if error.kind() == ErrorKind::Invalid => Some("Take another name".to_owned()),
            _ => hint_for(error.kind()).map(str::to_owned),
        };
        let fault = if error.kind() == ErrorKind::Internal { Fault::Ours } else { Fault::User };
        let message = error.to_string();
        let source = StdError::source(&error).map(causes);
        CommandError { fault, message, source, hint }
    }
}

/// Returns what an error was caused by, without its own type.
fn causes(error: &(dyn StdError + 'static)) -> Box<dyn StdError + Send + Sync> {
    Box::new(Cause { message: error.to_string(), source: error.source().map(causes) })
}

/// One line of what led to an error.
#[derive(Debug)]
struct Cause {
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
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

impl From<SyncError> for CommandError {
    fn from(trouble: SyncError) -> CommandError {
        let cure = Refusal::of(&trouble).map(|refusal| refusal.cure().to_owned());
        let hint = match &trouble {
            SyncError::Busy => "Wait until that sync has ended, then run the same command again",
            SyncError::Remote(error) if error.kind() == ErrorKind::Full => {
                "All you wrote is safe on this machine. Make space where the remote is, then: haversack sync"
            }
            SyncError::Remote(_) => "All you wrote is safe on this machine. Try again later: haversack sync",
            SyncError::Local(error) if error.kind() == ErrorKind::Full => {
                "Your files are unchanged. Make space on this machine's disk, then: haversack sync"
            }
            SyncError::Local(_) => "Your files are unchanged. Check the home: haversack doctor",
            SyncError::OtherStore { .. } => {
                "Nothing was written there. To rebuild this memory's store at another place: haversack remote rebuild URL. To join the other store with another home: haversack --home DIRECTORY join URL"
            }
            SyncError::WentBack { .. } | SyncError::Gap { .. } => {
                "We wrote nothing there. Restore it from this machine: haversack remote rebuild"
            }
            SyncError::Wiped { .. } => {
                "Nothing was written there, and everything is on this machine. Put it back: haversack remote rebuild"
            }
            SyncError::Rebuilt { .. } => {
                "Follow it, and merge this machine's files with it: haversack remote rebuild"
            }
            SyncError::Moved { .. } => {
                "We have not contacted the new place. If you or a person you trust moved it: haversack remote move --follow"
            }
            SyncError::Damaged { why, .. } if why.is_newer() => "Update Haversack on this machine",
            SyncError::Damaged { .. } | SyncError::Unfit { .. } => {
                "Nothing was lost here, and nothing was written there. Put that file back from a backup of the remote, then: haversack sync"
            }
            SyncError::Unclear(_) => {
                "Nothing was lost here, and nothing was written there. Look at it: haversack debug log"
            }
            SyncError::Vanished => {
                "Bring the directory or its disk back, or: haversack restore --deleted. If you meant to delete the files everywhere: haversack sync --allow-deletes"
            }
            SyncError::Emptied => {
                "Nothing was deleted anywhere. Mount the folder, or start its sync client. If the files of the folder were deleted, write them again from this machine: haversack remote rebuild"
            }
            SyncError::Outrun => "Other machines write at this moment. Run the same command again",
            SyncError::TooMuch { .. } => {
                "See their author: haversack debug log. If you want them: haversack sync --config receive.files=NUMBER --config receive.megabytes=NUMBER"
            }
            _ => "Nothing was lost here. Run the same command again",
        };
        CommandError::caused(Fault::User, &trouble, Some(cure.unwrap_or(hint.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use haversack::store::Operation;

    use super::*;

    #[test]
    fn a_full_disk_is_told_by_where_it_is() {
        let full = || StoreError::at(ErrorKind::Full, Operation::Write, "a.md", "the disk is full");
        for (trouble, cure) in [
            (SyncError::Local(full()), "Make space on this machine's disk"),
            (SyncError::Remote(full()), "Make space where the remote is"),
        ] {
            let told = CommandError::from(trouble);
            assert!(told.hint.as_deref().is_some_and(|hint| hint.contains(cure)), "{told:?}");
        }
    }

    #[test]
    fn errors_page_has_the_messages_of_a_sync() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors.md"));
        let page = page.expect("the page is there");
        let error = |kind| StoreError::at(kind, Operation::Write, "a.md", "no");
        for trouble in [
            SyncError::Busy,
            SyncError::Remote(error(ErrorKind::Unavailable)),
            SyncError::Remote(error(ErrorKind::Denied)),
            SyncError::Local(error(ErrorKind::Denied)),
            SyncError::Vanished,
            SyncError::Emptied,
            SyncError::Outrun,
        ] {
            assert!(page.contains(&format!("| `{trouble}` |")), "docs/errors.md lacks: {trouble}");
        }
    }
}
