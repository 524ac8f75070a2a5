//! The refusals that every backend words alike.

use std::time::Duration;

use crate::backend::Condition;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;

/// The error for a place where nothing is.
pub(crate) fn nothing_there(operation: Operation, locator: &Locator) -> Error {
    Error::new(ErrorKind::NotFound, operation, locator, "nothing is there")
}

/// The error for a condition that does not hold, in one wording for every backend.
pub(crate) fn condition_failed(operation: Operation, locator: &Locator, condition: &Condition) -> Error {
    let message = match condition {
        Condition::Any => "it changed meanwhile",
        Condition::Absent => "something is there already",
        Condition::Matches(_) => "it is not the version that was read",
    };
    Error::new(ErrorKind::Conflict, operation, locator, message)
}

/// The error for a name that a case-insensitive disk would confuse with `twin`.
pub(crate) fn twin_refused(operation: Operation, locator: &Locator, twin: &Locator) -> Error {
    let message = format!("{twin} differs from it only by case, and some disks cannot hold both");
    Error::new(ErrorKind::Invalid, operation, locator, message)
}

/// The error for an operation that would remove or move the root itself.
pub(crate) fn root_refused(operation: Operation) -> Error {
    Error::new(ErrorKind::Invalid, operation, &Locator::root(), "it is the whole memory")
}

/// The error for content that was asked of a directory or would go to one.
pub(crate) fn is_a_directory(operation: Operation, locator: &Locator) -> Error {
    Error::new(ErrorKind::Invalid, operation, locator, "it is a directory, not a file")
}

/// Refuses renames that can never work.
pub(crate) fn check_rename(from: &Locator, to: &Locator) -> Result<()> {
    if from.is_root() || to.is_root() {
        return Err(root_refused(Operation::Rename));
    }
    if to.is_within(from) && to != from {
        let message = "a directory cannot move into itself";
        return Err(Error::new(ErrorKind::Invalid, Operation::Rename, from, message));
    }
    Ok(())
}

/// Refuses a lock name that some disk could not hold.
pub(crate) fn check_lock_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=64).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    let message = "lock names are 1 to 64 lower-case letters, digits and dashes";
    Err(Error::at(ErrorKind::Invalid, Operation::Lock, name.escape_debug().to_string(), message))
}

/// The error for a lock that stayed taken.
pub(crate) fn lock_busy(name: &str, wait: Duration) -> Error {
    let message = if wait.is_zero() {
        "another process holds it".to_owned()
    } else {
        format!("another process held it for the whole {wait:?} that this one waited")
    };
    Error::at(ErrorKind::Busy, Operation::Lock, name, message)
}
