//! The log where all devices meet: reading positions, creating the next one, contents beside it.
//!
//! A read that fails is repeated while the caller has patience, at most [`MAX_TRIES`] times in all. A cloud backend repeats requests
//! itself, because it sees `Retry-After`; its tries count here ([`StoreError::tries`]), so the two layers do not multiply. A write is
//! repeated only by callers that can find out its outcome: a lost answer does not say if the write was done.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use futures_lite::StreamExt;
use haversack_store::{
    Backend, Bytes, Condition, Error as StoreError, ErrorKind, Info, Locator, Result as StoreResult, Version,
};

use super::SyncError;
use super::patience::Patience;
use super::planted::{Planted, has};
use super::state::Head;
use crate::clock::Clock;
use crate::frame::BadFrame;
use crate::ids::{ContentHash, Ids, Position, StoreId};
use crate::log::layout::{self, Item};
use crate::log::{self, Checkpoint, Commit, Folded, Segment, StoreFile, StoredCommit};

/// The most checkpoints that are tried before the log is read from its start.
const MAX_CHECKPOINTS: usize = 3;

/// The most times that a request is sent, including the backend's retries.
pub(crate) const MAX_TRIES: u32 = 4;

/// The storage that all devices of a store meet at.
#[derive(Debug)]
pub(crate) struct Remote {
    backend: Arc<dyn Backend>,
    /// The segment that was read last. Most readers read the next folded position too.
    segment: Mutex<Option<Arc<Segment>>>,
}

/// The commit at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) bytes: Bytes,
    /// The remote's version of the object, if the commit has an object of its own.
    pub(crate) version: Option<Version>,
}

impl At {
    /// Returns the commit. Its contents can be missing.
    pub(crate) fn commit(&self) -> Result<Commit, BadFrame> {
        Ok(StoredCommit::decode(&self.bytes)?.commit)
    }

    /// Returns the hash of the commit when it was whole, by which the next one names it.
    pub(crate) fn hash(&self) -> ContentHash {
        log::hash_of(&self.bytes)
    }

    /// Returns true if the commit has its contents no more.
    pub(crate) fn is_abridged(&self) -> bool {
        log::is_abridged(&self.bytes)
    }
}

/// The result of an attempt to create a position.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// It was created, by this attempt.
    Created(Version),
    /// Perhaps created by us, perhaps by another device: only reading the position can tell.
    NotKnown(StoreError),
}

impl Remote {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Remote {
        Remote { backend, segment: Mutex::new(None) }
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Returns the store's identity; creates a store if there is none.
    pub(crate) async fn meet(
        &self,
        patience: &dyn Patience,
        clock: &dyn Clock,
        ids: &dyn Ids,
        name: &str,
    ) -> Result<StoreId, SyncError> {
        if let Some(store) = self.store(patience).await? {
            return Ok(store);
        }
        let store = match self.store_of_log(patience).await? {
            Some(store) => store,
            None => StoreId::from_bytes(ids.next()),
        };
        let file = StoreFile { store, created: clock.now(), name: name.to_owned(), predecessor: None };
        // Read the file to see which store was first; this answer does not tell.
        let made = self.backend.write(&layout::store_file(), file.encode(), Condition::Absent).await;
        match (self.store(patience).await?, made) {
            (Some(store), _) => Ok(store),
            (None, Err(error)) => Err(SyncError::Remote(error)),
            (None, Ok(_)) => Err(SyncError::Unclear("the file that names the store")),
        }
    }

    /// Returns the store whose log is here, though the file that names it is not.
    pub(crate) async fn store_of_log(&self, patience: &dyn Patience) -> Result<Option<StoreId>, SyncError> {
        let items = self.items(patience, &layout::commits(), None).await?;
        let first = items.iter().find_map(|(item, _)| match item {
            Item::Commit(position) => Some(*position),
            _ => None,
        });
        let Some(position) = first else { return Ok(None) };
        let Some(at) = self.at(patience, position).await? else { return Ok(None) };
        match at.commit() {
            Ok(commit) => Ok(Some(commit.store)),
            Err(why) => {
                Err(SyncError::Damaged { what: format!("the commit at position {}", position.number()), why })
            }
        }
    }

    pub(crate) async fn store(&self, patience: &dyn Patience) -> Result<Option<StoreId>, SyncError> {
        Ok(self.store_file(patience).await?.map(|file| file.store))
    }

    /// Returns the content of the store's identity file.
    pub(crate) async fn store_file(&self, patience: &dyn Patience) -> Result<Option<StoreFile>, SyncError> {
        match self.read(patience, &layout::store_file()).await? {
            None => Ok(None),
            Some(at) => match StoreFile::decode(&at.bytes) {
                Ok(file) => Ok(Some(file)),
                Err(why) => Err(SyncError::Damaged { what: "the file that names the store".to_owned(), why }),
            },
        }
    }

    /// Returns the commit at a position, from its segment if it was folded.
    pub(crate) async fn at(
        &self,
        patience: &dyn Patience,
        position: Position,
    ) -> Result<Option<At>, SyncError> {
        let Some(at) = self.read(patience, &layout::commit(position)).await? else { return Ok(None) };
        if !Folded::is_at(&at.bytes) {
            return Ok(Some(at));
        }
        if has(Planted::SegmentIgnored) {
            return Ok(None);
        }
        let damaged =
            |why| SyncError::Damaged { what: format!("what stands at position {}", position.number()), why };
        let folded = Folded::decode(&at.bytes).map_err(damaged)?;
        let segment = self.segment(patience, folded.first, folded.last).await?;
        let bytes = segment.filter(|segment| segment.store == folded.store);
        let bytes = bytes.and_then(|segment| segment.get(position).cloned());
        let bytes = bytes.ok_or_else(|| damaged(BadFrame::damaged("its segment does not have it")))?;
        Ok(Some(At { bytes, version: None }))
    }

    /// Returns the commits of a range; `None` if there is no such segment.
    pub(crate) async fn segment(
        &self,
        patience: &dyn Patience,
        first: Position,
        last: Position,
    ) -> Result<Option<Arc<Segment>>, SyncError> {
        let known = self.segment.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| (known.first, known.last) == (first, last)) {
            return Ok(Some(known));
        }
        let Some(at) = self.read(patience, &layout::segment(first, last)).await? else { return Ok(None) };
        let damaged = |why| SyncError::Damaged { what: format!("the segment {first}-{last}"), why };
        let segment = Segment::decode(&at.bytes).map_err(damaged)?;
        if (segment.first, segment.last) != (first, last) {
            return Err(damaged(BadFrame::damaged("it is of another range")));
        }
        let segment = Arc::new(segment);
        *self.segment.lock().unwrap_or_else(PoisonError::into_inner) = Some(segment.clone());
        Ok(Some(segment))
    }

    /// Returns the newest checkpoint that the log confirms.
    pub(crate) async fn newest_checkpoint(
        &self,
        patience: &dyn Patience,
        store: StoreId,
    ) -> Result<Option<(Checkpoint, Head)>, SyncError> {
        let items = self.items(patience, &layout::checkpoints(), None).await?;
        let positions = items.into_iter().rev().filter_map(|(item, _)| match item {
            Item::Checkpoint(position) => Some(position),
            _ => None,
        });
        for position in positions.take(MAX_CHECKPOINTS) {
            if let Some(found) = self.checkpoint(patience, store, position).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns a checkpoint, if the log confirms it.
    ///
    /// Any device may have written it. A damaged or forged checkpoint is ignored.
    pub(crate) async fn checkpoint(
        &self,
        patience: &dyn Patience,
        store: StoreId,
        position: Position,
    ) -> Result<Option<(Checkpoint, Head)>, SyncError> {
        let at = self.read(patience, &layout::checkpoint(position)).await?;
        let Some(checkpoint) = at.and_then(|at| Checkpoint::decode(&at.bytes).ok()) else { return Ok(None) };
        let at = match self.at(patience, position).await {
            Ok(Some(at)) => at,
            // Nothing confirms it.
            Ok(None) | Err(SyncError::Damaged { .. }) => return Ok(None),
            Err(trouble) => return Err(trouble),
        };
        let Ok(commit) = at.commit() else { return Ok(None) };
        let hash = at.hash();
        let is_confirmed = (checkpoint.store, checkpoint.position) == (store, position)
            && (commit.store, commit.position) == (store, position)
            && (checkpoint.commit, checkpoint.state) == (hash, commit.state);
        if !is_confirmed && !has(Planted::CheckpointUnverified) {
            return Ok(None);
        }
        let version = at.version.map(|version| version.to_string());
        Ok(Some((checkpoint, Head { position, hash, version })))
    }

    /// Tries to create a position.
    pub(crate) async fn attempt(&self, position: Position, bytes: Bytes) -> Attempt {
        match self.backend.write(&layout::commit(position), bytes, Condition::Absent).await {
            Ok(written) => Attempt::Created(written.version),
            Err(error) => Attempt::NotKnown(error),
        }
    }

    /// Makes a content available to every device that reads a commit that names it.
    ///
    /// An object that exists already is written again: then it is as new as the commit that will name it, and no device deletes it as an old one
    /// (docs/adr/0040).
    pub(crate) async fn put_object(
        &self,
        patience: &dyn Patience,
        bytes: &Bytes,
    ) -> Result<ContentHash, SyncError> {
        let hash = ContentHash::of(bytes);
        let locator = layout::object(&hash);
        let write = || self.backend.write(&locator, bytes.clone(), Condition::Absent);
        match patiently(patience, write).await {
            Ok(_) => return Ok(hash),
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            // Ignore the outcome; the object that exists now counts.
            Err(error) => {
                return match self.object(patience, &hash).await {
                    Ok(Some(_)) => Ok(hash),
                    Ok(None) | Err(_) => Err(SyncError::Remote(error)),
                };
            }
        }
        let again = || self.backend.write(&locator, bytes.clone(), Condition::Any);
        let _ = patiently(patience, again).await.map_err(SyncError::Remote)?;
        Ok(hash)
    }

    /// Forgets the segment that was read last, after it was replaced.
    pub(crate) fn forget_segment(&self) {
        *self.segment.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Creates an object whose content is the same from every device; an existing object stays.
    pub(crate) async fn create(
        &self,
        patience: &dyn Patience,
        locator: &Locator,
        bytes: &Bytes,
    ) -> Result<(), SyncError> {
        let write = || self.backend.write(locator, bytes.clone(), Condition::Absent);
        match patiently(patience, write).await {
            Err(error) if error.kind() != ErrorKind::Conflict => Err(SyncError::Remote(error)),
            _ => Ok(()),
        }
    }

    /// Returns a content that a commit names; a content with another hash counts as missing.
    pub(crate) async fn object(
        &self,
        patience: &dyn Patience,
        hash: &ContentHash,
    ) -> Result<Option<Bytes>, SyncError> {
        let found = self.read(patience, &layout::object(hash)).await?;
        Ok(found.map(|at| at.bytes).filter(|bytes| ContentHash::of(bytes) == *hash))
    }

    /// Returns the objects below a directory of ours, after a given name, sorted by their kind.
    pub(crate) async fn items(
        &self,
        patience: &dyn Patience,
        directory: &Locator,
        after: Option<&Locator>,
    ) -> Result<Vec<(Item, Info)>, SyncError> {
        let list = || async {
            let mut items = Vec::new();
            let mut pages = self.backend.scan(directory, after);
            while let Some(page) = pages.next().await {
                let known = page?.infos.into_iter();
                items.extend(known.filter_map(|info| Some((Item::at(&info.locator)?, info))));
            }
            Ok(items)
        };
        patiently(patience, list).await.map_err(SyncError::Remote)
    }

    /// Returns the object at a locator.
    pub(crate) async fn read(
        &self,
        patience: &dyn Patience,
        locator: &Locator,
    ) -> Result<Option<At>, SyncError> {
        match patiently(patience, || self.backend.read(locator)).await {
            Ok(object) => Ok(Some(At { bytes: object.bytes, version: Some(object.version) })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SyncError::Remote(error)),
        }
    }
}

/// Sends a request until there is an answer, at most [`MAX_TRIES`] times in all, while the caller has patience.
pub(crate) async fn patiently<T, F: Future<Output = StoreResult<T>>>(
    patience: &dyn Patience,
    mut ask: impl FnMut() -> F,
) -> StoreResult<T> {
    let mut repetition = 0;
    let mut tries = 0;
    loop {
        match ask().await {
            Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::Unavailable) => {
                repetition += 1;
                tries += error.tries();
                if tries >= MAX_TRIES || !patience.wait(repetition).await {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
}
