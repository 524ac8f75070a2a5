//! The log where all devices meet: reading positions, creating the next one, contents beside it.

use std::sync::Arc;

use haversack_store::{Backend, Bytes, Condition, Error as StoreError, ErrorKind, Result as StoreResult};

use super::Trouble;
use crate::clock::Clock;
use crate::ids::{ContentHash, Ids, Position, StoreId};
use crate::log::{StoreFile, layout};

/// The storage that all devices of a store meet at.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    backend: Arc<dyn Backend>,
}

/// What is known after an attempt to create a position.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// It was created, by this attempt.
    Created,
    /// Perhaps, or somebody else did: only reading it tells.
    NotKnown(StoreError),
}

impl Remote {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Remote {
        Remote { backend }
    }

    /// Returns which store this is, making a new one where there is none.
    pub(crate) async fn meet(
        &self,
        clock: &dyn Clock,
        ids: &dyn Ids,
        name: &str,
    ) -> Result<StoreId, Trouble> {
        if let Some(store) = self.store().await? {
            return Ok(store);
        }
        let file =
            StoreFile { store: StoreId::from_bytes(ids.next()), created: clock.now(), name: name.to_owned() };
        // Whose was first is told by reading, not by this answer.
        let made = self.backend.write(&layout::store_file(), file.encode(), Condition::Absent).await;
        match (self.store().await?, made) {
            (Some(store), _) => Ok(store),
            (None, Err(error)) => Err(Trouble::Remote(error)),
            (None, Ok(_)) => Err(Trouble::Unclear("the file that names the store")),
        }
    }

    async fn store(&self) -> Result<Option<StoreId>, Trouble> {
        match read(&*self.backend, &layout::store_file()).await.map_err(Trouble::Remote)? {
            None => Ok(None),
            Some(bytes) => match StoreFile::decode(&bytes) {
                Ok(file) => Ok(Some(file.store)),
                Err(why) => Err(Trouble::Damaged { what: "the file that names the store".to_owned(), why }),
            },
        }
    }

    /// Returns the bytes at a position.
    pub(crate) async fn at(&self, position: Position) -> Result<Option<Bytes>, Trouble> {
        read(&*self.backend, &layout::commit(position)).await.map_err(Trouble::Remote)
    }

    /// Tries to create a position.
    pub(crate) async fn attempt(&self, position: Position, bytes: Bytes) -> Attempt {
        match self.backend.write(&layout::commit(position), bytes, Condition::Absent).await {
            Ok(_) => Attempt::Created,
            Err(error) => Attempt::NotKnown(error),
        }
    }

    /// Makes a content available to everybody who reads a commit that names it.
    pub(crate) async fn put_object(&self, bytes: &Bytes) -> Result<ContentHash, Trouble> {
        let hash = ContentHash::of(bytes);
        match self.backend.write(&layout::object(&hash), bytes.clone(), Condition::Absent).await {
            Ok(_) => Ok(hash),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(hash),
            Err(error) => Err(Trouble::Remote(error)),
        }
    }

    /// Returns a content that a commit names; what is not what it should be counts as not there.
    pub(crate) async fn object(&self, hash: &ContentHash) -> Result<Option<Bytes>, Trouble> {
        let found = read(&*self.backend, &layout::object(hash)).await.map_err(Trouble::Remote)?;
        Ok(found.filter(|bytes| ContentHash::of(bytes) == *hash))
    }
}

async fn read(backend: &dyn Backend, locator: &haversack_store::Locator) -> StoreResult<Option<Bytes>> {
    match backend.read(locator).await {
        Ok(object) => Ok(Some(object.bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
