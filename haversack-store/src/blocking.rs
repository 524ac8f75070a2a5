//! The verbs for callers that do not await.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::StreamExt;

use crate::backend::{Appended, Backend, Condition, Durability, Guard, Info, Listing, Object, Page, Written};
use crate::capabilities::{Capabilities, ConflictStrategy};
use crate::error::Result;
use crate::ext::BackendExt;
use crate::locator::Locator;

thread_local! {
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Runs `future` to its end on this thread.
///
/// Works anywhere, inside a running runtime too: backends drive themselves. While it runs, a backend
/// does its blocking work on this thread, which is waiting anyway.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let _restore = Permission(MAY_BLOCK.replace(true));
    futures_lite::future::block_on(future)
}

/// Lets a future do its blocking work on threads kept for it, under [`block_on`] too.
///
/// For futures of which many are under way at once: on the one thread that waits they would be done one after the other, and a disk
/// makes many files durable in the time that it takes for one.
pub async fn aside<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _restore = Permission(MAY_BLOCK.replace(false));
        future.as_mut().poll(context)
    })
    .await
}

struct Permission(bool);

impl Drop for Permission {
    fn drop(&mut self) {
        MAY_BLOCK.set(self.0);
    }
}

/// Does blocking work: here if this thread waits anyway, else on a thread kept for it.
pub(crate) async fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    if may_block() { work() } else { ::blocking::unblock(work).await }
}

/// Returns true if this thread waits anyway.
pub(crate) fn may_block() -> bool {
    MAY_BLOCK.get()
}

/// A backend whose verbs return when they are done.
#[derive(Clone, Debug)]
pub struct Blocking {
    backend: Arc<dyn Backend>,
}

impl Blocking {
    /// Returns the blocking face of `backend`.
    pub fn new(backend: Arc<dyn Backend>) -> Blocking {
        Blocking { backend }
    }

    /// Returns the backend behind it.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// See [`Backend::read`].
    pub fn read(&self, locator: &Locator) -> Result<Object> {
        block_on(self.backend.read(locator))
    }

    /// See [`Backend::write`].
    pub fn write(&self, locator: &Locator, bytes: impl Into<Bytes>, condition: Condition) -> Result<Written> {
        block_on(self.backend.write(locator, bytes.into(), condition))
    }

    /// See [`Backend::prepare`].
    pub fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        block_on(self.backend.prepare(objects))
    }

    /// See [`Backend::append`].
    pub fn append(
        &self,
        locator: &Locator,
        bytes: impl Into<Bytes>,
        durability: Durability,
    ) -> Result<Appended> {
        block_on(self.backend.append(locator, bytes.into(), durability))
    }

    /// See [`Backend::barrier`].
    pub fn barrier(&self) -> Result<()> {
        block_on(self.backend.barrier())
    }

    /// See [`Backend::list`].
    pub fn list(&self, locator: &Locator) -> Result<Listing> {
        block_on(self.backend.list(locator))
    }

    /// See [`Backend::scan`]; calls `visit` with each page until it returns an error.
    pub fn scan(
        &self,
        prefix: &Locator,
        after: Option<&Locator>,
        mut visit: impl FnMut(Page) -> Result<()>,
    ) -> Result<()> {
        block_on(async {
            let mut pages = self.backend.scan(prefix, after);
            while let Some(page) = pages.next().await {
                visit(page?)?;
            }
            Ok(())
        })
    }

    /// See [`Backend::info`].
    pub fn info(&self, locator: &Locator) -> Result<Info> {
        block_on(self.backend.info(locator))
    }

    /// See [`Backend::delete`].
    pub fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        block_on(self.backend.delete(locator, condition))
    }

    /// See [`Backend::rename`].
    pub fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        block_on(self.backend.rename(from, to))
    }

    /// See [`Backend::exchange`].
    pub fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        block_on(self.backend.exchange(one, other))
    }

    /// See [`Backend::mkdir`].
    pub fn mkdir(&self, locator: &Locator) -> Result<()> {
        block_on(self.backend.mkdir(locator))
    }

    /// See [`Backend::lock`].
    pub fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        block_on(self.backend.lock(name, wait))
    }

    /// See [`Backend::capabilities`].
    pub fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    /// See [`Backend::conflict_strategy`].
    pub fn conflict_strategy(&self) -> ConflictStrategy {
        self.backend.conflict_strategy()
    }

    /// See [`BackendExt::read_text`].
    pub fn read_text(&self, locator: &Locator) -> Result<Option<String>> {
        block_on(self.backend.read_text(locator))
    }

    /// See [`BackendExt::write_text`].
    pub fn write_text(&self, locator: &Locator, text: &str) -> Result<Written> {
        block_on(self.backend.write_text(locator, text))
    }

    /// See [`BackendExt::append_text`].
    pub fn append_text(&self, locator: &Locator, text: &str) -> Result<Appended> {
        block_on(self.backend.append_text(locator, text))
    }

    /// See [`BackendExt::exists`].
    pub fn exists(&self, locator: &Locator) -> Result<bool> {
        block_on(self.backend.exists(locator))
    }

    /// See [`BackendExt::list_all`].
    pub fn list_all(&self, prefix: &Locator) -> Result<Vec<Locator>> {
        block_on(self.backend.list_all(prefix))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn one_thing_is_done_here_and_many_are_done_aside() {
        let me = thread::current().id();
        let here = || offload(|| thread::current().id());
        block_on(async {
            assert_eq!(here().await, me);
            assert_ne!(aside(here()).await, me);
            // A task ends with the task that it runs in.
            assert_eq!(here().await, me);
            assert_eq!(aside(async { block_on(here()) }).await, me, "who waits again waits anyway");
        });
    }
}
