//! The progress of a sync, for a display.

/// The present stage of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Commits are read.
    Reading,
    /// Contents are fetched and put into working files.
    Fetching,
    /// Commits are published.
    Sending,
    /// The plain objects beside the log are brought up to date.
    Mirroring,
    /// Objects are looked at before they are copied.
    Looking,
    /// Objects are copied from one storage to another.
    Copying,
}

/// Is told how far a sync is.
pub trait Progress: Send + Sync {
    /// Says that so much of a stage is done, and how much there is in all, if that is known.
    fn at(&self, stage: Stage, done: usize, total: Option<usize>);
}

/// Reports nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn at(&self, _: Stage, _: usize, _: Option<usize>) {}
}
