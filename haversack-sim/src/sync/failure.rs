//! The promise that a schedule broke.

use std::fmt;

/// The kind of a broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// A line is gone that no user removed.
    Lost,
    /// A line is there that a user removed.
    Resurrected,
    /// The devices do not come to agree, or not to rest.
    NotConverged,
    /// A sync stopped for no reason that it may have.
    Stuck,
    /// Something is left over.
    LeftOver,
    /// A byte of a file that the gate holds back was sent.
    Leaked,
    /// A signed write is in the history under another name.
    Misattributed,
    /// A directory has files that do not belong there, or was changed after it was unbound.
    Trespassed,
    /// The engine gave up in the middle of it.
    Panicked,
}

impl Broken {
    /// Returns the failure with what is known of it.
    pub(crate) fn because(self, why: impl Into<String>) -> Failure {
        Failure { broken: self, why: why.into() }
    }
}

/// How a schedule broke a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of the promise.
    pub broken: Broken,
    /// The observation.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = match self.broken {
            Broken::Lost => "lost",
            Broken::Resurrected => "resurrected",
            Broken::NotConverged => "not converged",
            Broken::Stuck => "stuck",
            Broken::LeftOver => "left over",
            Broken::Leaked => "leaked",
            Broken::Misattributed => "misattributed",
            Broken::Trespassed => "trespassed",
            Broken::Panicked => "panicked",
        };
        write!(f, "{broken}: {}", self.why)
    }
}

impl std::error::Error for Failure {}
