//! A remote that counts what is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use haversack::store::{
    Appended, Backend, Bytes, Condition, Durability, Info, Listing, Locator, Object, Pages, Result, Written,
    forward_backend,
};

/// Counts requests and the bytes that are written.
#[derive(Debug)]
pub(crate) struct Counted {
    inner: Arc<dyn Backend>,
    reads: AtomicU64,
    lists: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
}

/// The requests to a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) reads: u64,
    pub(crate) lists: u64,
    pub(crate) writes: u64,
    pub(crate) written_bytes: u64,
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Backend>) -> Counted {
        let zero = || AtomicU64::new(0);
        Counted { inner, reads: zero(), lists: zero(), writes: zero(), written_bytes: zero() }
    }

    /// Returns what was asked since the last time.
    pub(crate) fn asked(&self) -> Asked {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Asked {
            reads: take(&self.reads),
            lists: take(&self.lists),
            writes: take(&self.writes),
            written_bytes: take(&self.written_bytes),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for Counted {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        count(&self.reads);
        self.inner.read(locator).await
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        count(&self.writes);
        self.written_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.inner.write(locator, bytes, condition).await
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        self.writes.fetch_add(objects.len() as u64, Ordering::Relaxed);
        let bytes = objects.iter().map(|(_, bytes)| bytes.len() as u64);
        self.written_bytes.fetch_add(bytes.sum(), Ordering::Relaxed);
        self.inner.prepare(objects).await
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        count(&self.writes);
        self.inner.append(locator, bytes, durability).await
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        count(&self.lists);
        self.inner.list(locator).await
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        count(&self.lists);
        self.inner.scan(prefix, after)
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        count(&self.reads);
        self.inner.info(locator).await
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        count(&self.writes);
        self.inner.delete(locator, condition).await
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        count(&self.writes);
        self.inner.rename(from, to).await
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        count(&self.writes);
        self.inner.exchange(one, other).await
    }

    forward_backend!(self => self.inner; barrier, touch_mark, mkdir, lock, capabilities, conflict_strategy);
}
