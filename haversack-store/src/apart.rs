//! Two backends as one: Haversack's own names in one of them, everything else in the other.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::backend::{
    Appended, Backend, Condition, Durability, Guard, Info, Listing, Object, Pages, Written,
};
use crate::capabilities::{Capabilities, ConflictStrategy};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;
use crate::version::TouchMark;

/// A backend whose own names are kept elsewhere.
///
/// A folder that everybody sees holds the plain files, and what the engine writes beside them stays on this device. Locks are those of the
/// backend that has our own names, and so is what is promised.
#[derive(Clone, Debug)]
pub struct Apart {
    own: Arc<dyn Backend>,
    plain: Arc<dyn Backend>,
}

impl Apart {
    /// Returns `plain` with our own names in `own`.
    pub fn new(own: Arc<dyn Backend>, plain: Arc<dyn Backend>) -> Apart {
        Apart { own, plain }
    }

    fn side(&self, locator: &Locator) -> &dyn Backend {
        if locator.is_reserved() { &*self.own } else { &*self.plain }
    }

    /// Returns the backend that has both places.
    fn both(&self, operation: Operation, one: &Locator, other: &Locator) -> Result<&dyn Backend> {
        match one.is_reserved() == other.is_reserved() {
            true => Ok(self.side(one)),
            false => {
                let message = "our own names and the others are in two storages";
                Err(Error::new(ErrorKind::Unsupported, operation, one, message))
            }
        }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for Apart {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        self.side(locator).read(locator).await
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        self.side(locator).write(locator, bytes, condition).await
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        self.own.prepare(objects).await
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        self.side(locator).append(locator, bytes, durability).await
    }

    async fn barrier(&self) -> Result<()> {
        self.own.barrier().await?;
        self.plain.barrier().await
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        self.side(locator).list(locator).await
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        self.side(prefix).scan(prefix, after)
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        self.side(locator).info(locator).await
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        self.plain.touch_mark().await
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        self.side(locator).delete(locator, condition).await
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        self.both(Operation::Rename, from, to)?.rename(from, to).await
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        self.both(Operation::Exchange, one, other)?.exchange(one, other).await
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        self.side(locator).mkdir(locator).await
    }

    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        self.own.lock(name, wait).await
    }

    fn capabilities(&self) -> Capabilities {
        self.own.capabilities()
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        self.own.conflict_strategy()
    }
}
