//! Storage that does what it is told at once, with a clock behind the fingerprints that may be coarse.
//!
//! Every effect of a process is between two moments: it can die before it, and after it without knowing. An append that was
//! under way when its process died may be cut short. A full disk refuses whatever needs room.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_lite::{StreamExt, stream};
use haversack_store::{
    Appended, Backend, BackendExt, Bytes, Condition, Durability, Error, ErrorKind, Fingerprint, Guard,
    InMemory, Info, Listing, Locator, Object, Operation, Pages, Result, TouchMark, Version, Written,
    block_on, forward_backend,
};

use super::storage::{Saving, room};
use super::weather::moment;
use crate::random::Random;

/// The fingerprint of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Every state has a name of its own.
    Versions,
    /// Size, inode and a time that ticks now and then: a change within one tick may not show.
    Ticks,
}

/// The clock and the inode numbers of all filesystems.
#[derive(Debug)]
pub(crate) struct Numbers {
    outside: Outside,
    tick: AtomicI64,
    inode: AtomicU64,
}

impl Numbers {
    pub(crate) fn new(outside: Outside) -> Arc<Numbers> {
        Arc::new(Numbers { outside, tick: AtomicI64::new(0), inode: AtomicU64::new(0) })
    }

    /// Lets it be `tick`.
    pub(crate) fn set(&self, tick: i64) {
        self.tick.store(tick, Ordering::Relaxed);
    }

    fn now(&self) -> i64 {
        self.tick.load(Ordering::Relaxed)
    }
}

/// The properties of one state of a file.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    inode: u64,
    tick: i64,
}

/// A device's files or its state, in memory.
#[derive(Debug)]
pub(crate) struct Memory {
    contents: InMemory,
    numbers: Arc<Numbers>,
    stamps: Mutex<BTreeMap<Version, Stamp>>,
    locks: Arc<Mutex<BTreeSet<String>>>,
    /// Shared by all storages of a device.
    is_full: Arc<AtomicBool>,
    versions: Versions,
}

/// The source of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Versions {
    Write,
    Content,
}

impl Memory {
    pub(crate) fn new(numbers: Arc<Numbers>, is_full: Arc<AtomicBool>) -> Arc<Memory> {
        Arc::new(Memory {
            contents: InMemory::new(),
            numbers,
            stamps: Mutex::default(),
            locks: Arc::default(),
            is_full,
            versions: Versions::Write,
        })
    }

    /// Returns another storage with nothing in it, where a version is told by the content.
    pub(crate) fn versioned_by_content(&self) -> Arc<Memory> {
        let Memory { numbers, is_full, .. } = self;
        let contents = InMemory::new();
        let (numbers, is_full, versions) = (numbers.clone(), is_full.clone(), Versions::Content);
        let (stamps, locks) = (Mutex::default(), Arc::default());
        Arc::new(Memory { contents, numbers, stamps, locks, is_full, versions })
    }

    /// Returns another storage with nothing in it.
    pub(crate) fn empty(&self, is_full: Arc<AtomicBool>) -> Arc<Memory> {
        let empty = Memory::new(self.numbers.clone(), is_full);
        match self.versions {
            Versions::Write => empty,
            Versions::Content => empty.versioned_by_content(),
        }
    }

    /// Returns another storage with the same content, without held locks.
    pub(crate) fn copy(&self, is_full: Arc<AtomicBool>) -> Arc<Memory> {
        let copy = self.empty(is_full);
        for (locator, bytes) in self.all() {
            let _ = block_on(copy.write(&locator, bytes, Condition::Any)).expect("a copy of what was there");
        }
        copy
    }

    /// Returns everything that is there, our own names included.
    pub(crate) fn all(&self) -> BTreeMap<Locator, Bytes> {
        let own = Locator::reserved(".haversack").expect("one of ours");
        let mut all = BTreeMap::new();
        for prefix in [Locator::root(), own] {
            for locator in block_on(self.contents.list_all(&prefix)).expect("listed") {
                let object = block_on(self.contents.read(&locator)).expect("just listed");
                all.insert(locator, object.bytes);
            }
        }
        all
    }

    /// Returns a file as a user reads it.
    pub(crate) fn text(&self, locator: &Locator) -> Option<String> {
        block_on(self.contents.read_text(locator)).expect("text")
    }

    /// Lets a user save a file.
    pub(crate) fn save(&self, locator: &Locator, text: Bytes, how: Saving) {
        let old = block_on(self.contents.info(locator)).ok().and_then(|info| info.version);
        let inode = old.and_then(|old| self.stamps().get(&old).map(|stamp| stamp.inode));
        let inode = inode.filter(|_| self.numbers.outside == Outside::Ticks && how == Saving::InPlace);
        let written = block_on(self.contents.write(locator, text, Condition::Any)).expect("saved");
        self.stamp(written.version, inode);
    }

    /// Lets a user delete a file.
    pub(crate) fn remove(&self, locator: &Locator) {
        block_on(self.contents.delete(locator, Condition::Any)).expect("deleted");
    }

    /// Lets a user rename a file.
    pub(crate) fn rename(&self, from: &Locator, to: &Locator) {
        block_on(self.contents.rename(from, to)).expect("renamed");
    }

    /// Cuts an append short that was under way when its process died.
    pub(crate) fn tear(&self, hands: &Hands, random: &mut Random) {
        let Some((locator, from, to)) = hands.unfinished().take() else { return };
        let Ok(object) = block_on(self.contents.read(&locator)) else { return };
        // Another program has appended since.
        if object.bytes.len() != to {
            return;
        }
        let torn = object.bytes.slice(..random.between(from, to));
        let _ = block_on(self.write(&locator, torn, Condition::Any)).expect("cut short");
    }

    fn stamps(&self) -> MutexGuard<'_, BTreeMap<Version, Stamp>> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes when a state came about, in a new file unless it is in an old one.
    fn stamp(&self, version: Version, inode: Option<u64>) {
        let inode = inode.unwrap_or_else(|| self.numbers.inode.fetch_add(1, Ordering::Relaxed));
        self.stamps().insert(version, Stamp { inode, tick: self.numbers.now() });
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        let by_content = (self.versions == Versions::Content).then(|| Version::of_content(&bytes));
        let condition = self.condition(locator, condition).await;
        let mut written = self.contents.write(locator, bytes, condition).await?;
        self.stamp(written.version.clone(), None);
        if let Some(version) = by_content {
            written.version = version;
        }
        Ok(written)
    }

    async fn read(&self, locator: &Locator) -> Result<Object> {
        let mut object = self.contents.read(locator).await?;
        if self.versions == Versions::Content {
            object.version = Version::of_content(&object.bytes);
        }
        Ok(object)
    }

    /// Returns the condition as the contents know it.
    async fn condition(&self, locator: &Locator, condition: Condition) -> Condition {
        match (condition, self.contents.read(locator).await) {
            (Condition::Matches(version), Ok(there)) if self.versions == Versions::Content => {
                let holds = version == Version::of_content(&there.bytes);
                Condition::Matches(if holds { there.version } else { version })
            }
            (condition, _) => condition,
        }
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        let appended = self.contents.append(locator, bytes, durability).await?;
        if let Some(version) = self.contents.info(locator).await?.version {
            self.stamp(version, None);
        }
        Ok(appended)
    }

    /// Returns what the outside of a file tells on this filesystem.
    fn outside(&self, mut info: Info) -> Info {
        let stamp = info.version.take().and_then(|version| self.stamps().get(&version).copied());
        let Some(Stamp { inode, tick }) = stamp else { return info };
        match self.numbers.outside {
            Outside::Versions => {
                // In a folder, the version is unknown without reading the content.
                info.version = (self.versions == Versions::Write).then(|| Version::new(inode.to_string()));
                info.fingerprint = Fingerprint::new(&[inode], i64::MIN);
            }
            Outside::Ticks => {
                info.fingerprint = Fingerprint::new(&[info.size_bytes, inode, tick.cast_unsigned()], tick);
            }
        }
        info
    }

    fn room(&self, operation: Operation, locator: &Locator) -> Result<()> {
        room(&self.is_full, operation, locator)
    }
}

/// The operations of a process that it does not know yet to be done.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    /// An append: where, from where and to where.
    unfinished: Mutex<Option<(Locator, usize, usize)>>,
}

impl Hands {
    fn unfinished(&self) -> MutexGuard<'_, Option<(Locator, usize, usize)>> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A storage as one process uses it, one effect at a time.
#[derive(Clone, Debug)]
pub(crate) struct Stepped {
    storage: Arc<Memory>,
    hands: Arc<Hands>,
}

impl Stepped {
    pub(crate) fn new(storage: Arc<Memory>, hands: Arc<Hands>) -> Stepped {
        Stepped { storage, hands }
    }
}

/// A lock of a storage that is held until this is dropped, as by a process that dies.
struct Held {
    locks: Arc<Mutex<BTreeSet<String>>>,
    name: String,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

/// Does an effect between two moments.
macro_rules! effect {
    ($call:expr) => {{
        moment().await;
        let result = $call.await;
        moment().await;
        result
    }};
}

#[async_trait]
impl Backend for Stepped {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        moment().await;
        self.storage.read(locator).await
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        effect!(async {
            self.storage.room(Operation::Write, locator)?;
            self.storage.write(locator, bytes, condition).await
        })
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        moment().await;
        let mut result = Ok(());
        for (locator, bytes) in objects {
            let length = bytes.len();
            result = self.storage.room(Operation::Write, &locator);
            if result.is_ok() {
                result = self.storage.write(&locator, bytes, Condition::Any).await.map(drop);
            }
            if result.is_err() {
                break;
            }
            // In a folder nothing half-written is seen.
            if self.storage.versions == Versions::Write {
                *self.hands.unfinished() = Some((locator, 0, length));
            }
        }
        moment().await;
        *self.hands.unfinished() = None;
        result
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        moment().await;
        self.storage.room(Operation::Append, locator)?;
        let added = bytes.len();
        let appended = self.storage.append(locator, bytes, durability).await;
        if let Ok(appended) = &appended {
            let from = usize::try_from(appended.offset).expect("small files");
            *self.hands.unfinished() = Some((locator.clone(), from, from + added));
        }
        moment().await;
        *self.hands.unfinished() = None;
        appended
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        moment().await;
        self.storage.contents.list(locator).await
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        let (prefix, after) = (prefix.clone(), after.cloned());
        let begun = stream::once_future(async move {
            moment().await;
            self.storage.contents.scan(&prefix, after.as_ref())
        });
        Box::pin(begun.flatten().map(|page| {
            page.map(|mut page| {
                page.infos = page.infos.into_iter().map(|info| self.storage.outside(info)).collect();
                page
            })
        }))
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        moment().await;
        self.storage.contents.info(locator).await.map(|info| self.storage.outside(info))
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        moment().await;
        Ok(TouchMark::new(self.storage.numbers.now()))
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        effect!(async {
            let condition = self.storage.condition(locator, condition).await;
            self.storage.contents.delete(locator, condition).await
        })
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        effect!(self.storage.contents.rename(from, to))
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        effect!(self.storage.contents.exchange(one, other))
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        effect!(async {
            self.storage.room(Operation::Mkdir, locator)?;
            self.storage.contents.mkdir(locator).await
        })
    }

    async fn lock(&self, name: &str, _: Duration) -> Result<Guard> {
        moment().await;
        let locks = self.storage.locks.clone();
        // A simulation does not wait: a lock is free or it is not.
        let is_free = locks.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        match is_free {
            true => Ok(Guard::new(Held { locks, name: name.to_owned() })),
            false => Err(Error::at(ErrorKind::Busy, Operation::Lock, name, "another process holds it")),
        }
    }

    forward_backend!(self => self.storage.contents; barrier, capabilities, conflict_strategy);
}
