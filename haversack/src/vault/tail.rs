//! The end of a device's own order: what its files are there, and what comes next.

use haversack_store::Bytes;

use crate::ids::{ContentHash, Position, StoreId};
use crate::log::{self, Commit};
use crate::sync::{Impatient, Remote, SyncError};

/// The end of a log that only this device writes.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    pub(super) files: log::State,
    pub(super) position: Option<Position>,
    pub(super) hash: ContentHash,
}

impl Tail {
    /// Reads a log to its end, from its newest checkpoint on.
    pub(super) async fn load(log: &Remote, store: StoreId) -> Result<Tail, SyncError> {
        let mut tail = match log.newest_checkpoint(&Impatient, store).await? {
            None => Tail { files: log::State::empty(), position: None, hash: ContentHash::of(b"") },
            Some((checkpoint, head)) => {
                Tail { files: log::State::from(&checkpoint), position: Some(head.position), hash: head.hash }
            }
        };
        tail.follow(log).await?;
        Ok(tail)
    }

    /// Reads on to the end of the log.
    pub(super) async fn follow(&mut self, log: &Remote) -> Result<(), SyncError> {
        while let Some(at) = log.at(&Impatient, self.next()).await? {
            let commit = Commit::decode(&at.bytes).map_err(|why| SyncError::Damaged {
                what: format!("the commit at position {}", self.next().number()),
                why,
            })?;
            self.add(&commit, &at.bytes)?;
        }
        Ok(())
    }

    /// Adds the commit that comes next.
    pub(super) fn add(&mut self, commit: &Commit, bytes: &Bytes) -> Result<(), SyncError> {
        let position = self.next();
        let added = self.files.apply(commit);
        added.map_err(|why| SyncError::Unfit { position, why: why.to_string() })?;
        (self.position, self.hash) = (Some(position), ContentHash::of(bytes));
        Ok(())
    }

    /// Returns the position after the last one.
    pub(super) fn next(&self) -> Position {
        self.position.map_or(Position::FIRST, |last| last.next().unwrap_or(Position::LAST))
    }
}
