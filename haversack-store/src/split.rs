//! Two backends as one: Haversack's own names in one of them, everything else in the other.

use std::sync::Arc;

use async_trait::async_trait;

use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::forward_backend;
use crate::locator::Locator;

/// A backend whose own names are kept elsewhere.
///
/// A folder that everybody sees holds the plain files, and what the engine writes beside them stays on this device. Locks are those of the
/// backend that has our own names, and so is what is promised.
#[derive(Clone, Debug)]
pub struct SplitBackend {
    own: Arc<dyn Backend>,
    plain: Arc<dyn Backend>,
}

impl SplitBackend {
    /// Returns `plain` with our own names in `own`.
    pub fn new(own: Arc<dyn Backend>, plain: Arc<dyn Backend>) -> SplitBackend {
        SplitBackend { own, plain }
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
impl Backend for SplitBackend {
    async fn barrier(&self) -> Result<()> {
        self.own.barrier().await?;
        self.plain.barrier().await
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        self.both(Operation::Rename, from, to)?.rename(from, to).await
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        self.both(Operation::Exchange, one, other)?.exchange(one, other).await
    }

    forward_backend!(self, locator => self.side(locator); read, write, append, list, scan, info, delete, mkdir);
    forward_backend!(self => self.own; prepare, lock, capabilities, conflict_strategy);
    forward_backend!(self => self.plain; touch_mark);
}
