//! The history of a store: its log, read backwards from the newest commit.
//!
//! Commits come from the [archive](mod@archive), to which every sync adds, and then from the remote, if it can be reached. A commit in neither is
//! reported as unknown, which differs from nothing (`sync::history::unknown_is_not_nothing`).

pub mod archive;
mod undo;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haversack_store::{Backend, Bytes, Locator};

pub use self::undo::{Undone, take_back};
use crate::ids::{ContentHash, Position, StoreId};
use crate::log::{Carried, Commit, Form, StoredCommit, What};
use crate::sync::{Patience, Remote, SyncError};

/// The commits of a store as far as they are at hand.
pub struct History<'a> {
    archive: archive::Reader,
    remote: Option<Remote>,
    patience: &'a dyn Patience,
    store: StoreId,
    commits: BTreeMap<Position, Arc<Commit>>,
    /// The positions among them whose contents the remote has dropped.
    abridged: BTreeSet<Position>,
}

/// The content of a file at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PastContent {
    /// This.
    Content(Bytes),
    /// It was not there.
    Nothing,
    /// That can not be told: the commits that say so are not at hand.
    Unknown,
    /// The remote has dropped it, because it was too old.
    Dropped,
}

impl<'a> History<'a> {
    /// Opens the history of a store: what the state has of it, and what a remote has.
    pub async fn open(
        state: Arc<dyn Backend>,
        remote: Option<Arc<dyn Backend>>,
        store: StoreId,
        patience: &'a dyn Patience,
    ) -> Result<History<'a>, SyncError> {
        let archive = archive::Reader::open(state, store).await.map_err(SyncError::Local)?;
        let remote = remote.map(Remote::new);
        Ok(History { archive, remote, patience, store, commits: BTreeMap::new(), abridged: BTreeSet::new() })
    }

    /// Returns the commit at a position; `None` if it is not at hand.
    pub async fn commit(&mut self, position: Position) -> Result<Option<Arc<Commit>>, SyncError> {
        if let Some(commit) = self.commits.get(&position) {
            return Ok(Some(commit.clone()));
        }
        let commit = match self.archive.bytes(position).await.map_err(SyncError::Local)? {
            Some(bytes) => Some(bytes),
            None => self.in_remote(position).await?,
        };
        let stored = commit.and_then(|bytes| StoredCommit::decode(&bytes).ok());
        let is_it =
            |stored: &StoredCommit| (stored.commit.store, stored.commit.position) == (self.store, position);
        let Some(StoredCommit { commit, form, .. }) = stored.filter(is_it) else { return Ok(None) };
        if form == Form::Abridged {
            self.abridged.insert(position);
        }
        let commit = Arc::new(commit);
        self.commits.insert(position, commit.clone());
        Ok(Some(commit))
    }

    /// Forgets the commits that were read, for callers that ask for each commit once.
    pub fn forget(&mut self) {
        self.commits.clear();
    }

    async fn in_remote(&self, position: Position) -> Result<Option<Bytes>, SyncError> {
        let Some(remote) = &self.remote else { return Ok(None) };
        match remote.at(self.patience, position).await {
            Ok(at) => Ok(at.map(|at| at.bytes)),
            Err(SyncError::Remote(_) | SyncError::Damaged { .. }) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Returns what a file held right after a position; before the first there was nothing.
    pub async fn held(
        &mut self,
        locator: &Locator,
        position: Option<Position>,
    ) -> Result<PastContent, SyncError> {
        // Appended parts since the last whole content, the latest first.
        let mut added: Vec<Bytes> = Vec::new();
        let mut number = position.map_or(0, Position::number);
        while let Some(position) = Position::new(number) {
            number -= 1;
            let Some(commit) = self.commit(position).await? else { return Ok(PastContent::Unknown) };
            let Some(change) = commit.changes.iter().find(|change| change.locator == *locator) else {
                continue;
            };
            let carried = match &change.what {
                What::Delete { .. } => return Ok(PastContent::Nothing),
                What::Put { content: carried, .. } | What::Append { added: carried, .. } => carried,
            };
            let Some(bytes) = self.carried(carried).await? else {
                return Ok(match self.abridged.contains(&position) {
                    true => PastContent::Dropped,
                    false => PastContent::Unknown,
                });
            };
            added.push(bytes);
            if let What::Put { .. } = change.what {
                added.reverse();
                return Ok(PastContent::Content(added.concat().into()));
            }
        }
        Ok(PastContent::Nothing)
    }

    /// Returns what a file held right before a commit changed it.
    ///
    /// In a synced folder a file can be deleted together with an edit that was in no commit before. The deletion names the edited content
    /// then.
    pub async fn held_before(
        &mut self,
        locator: &Locator,
        commit: &Commit,
    ) -> Result<PastContent, SyncError> {
        let change = commit.changes.iter().find(|change| change.locator == *locator);
        if let Some(What::Delete { before: Some(hash) }) = change.map(|change| &change.what)
            && let Some(bytes) = self.object(hash).await?
        {
            return Ok(PastContent::Content(bytes));
        }
        let before = commit.position.number().checked_sub(1).and_then(Position::new);
        self.held(locator, before).await
    }

    async fn carried(&self, carried: &Carried) -> Result<Option<Bytes>, SyncError> {
        match carried {
            Carried::Inline(bytes) => Ok(Some(bytes.clone())),
            Carried::Object(hash) => self.object(hash).await,
        }
    }

    async fn object(&self, hash: &ContentHash) -> Result<Option<Bytes>, SyncError> {
        let Some(remote) = &self.remote else { return Ok(None) };
        match remote.object(self.patience, hash).await {
            Err(SyncError::Remote(_)) => Ok(None),
            found => found,
        }
    }
}
