//! The `device-local` backend: plain files under one directory of this machine.
//!
//! # Invariants
//! 1. Acknowledged content is on the disk: content synced, then its name, then the directory
//!    (`haversack-sim`: `crash_at_every_call`).
//! 2. A target name always leads to a complete old or a complete new file (`crash_at_every_call`,
//!    `readers_never_see_half`).
//! 3. Content that another program saved between our read and our replace is returned and kept on disk until its
//!    merger deletes it (`editor_at_every_call`, `similar_content_is_not_the_same`).
//! 4. Only the holder of the write lock makes working names, so one found under the lock belongs to
//!    no live process; its name and content decide its treatment, never its age
//!    (`crash_at_every_call`).
//! 5. Every name is looked up in an opened directory and no link is followed: nothing outside the root is
//!    touched (`swapped_directories_never_leak`). What stayed open since the last verb is used only if the names
//!    still lead to it (`swapped_directory_is_left_alone`).
//!
//! One window remains: a program that keeps a file open across our replace and writes to it afterwards
//! writes to the file that was replaced. What it wrote before our replace is kept.

mod content;
mod core;
mod edit;
pub mod fs;
mod memo;
mod note;
mod os;
mod prepare;
mod queue;
mod recent;
mod recover;
mod relocate;
mod scan;
mod temp;
mod trust;
mod twins;
mod walk;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use self::core::{Core, WRITE_LOCK};
use self::edit::{Done, Edit, Ended, How};
use self::fs::Fs;
use self::memo::HashedContent;
pub use self::os::Disk;
use self::queue::{Batches, Queue, Waiting};
use self::relocate::Relocation;
use self::scan::Walk;
use crate::backend::{
    Appended, Backend, Condition, Durability, Guard, Info, Listing, Object, Pages, Written, check_own,
};
use crate::blocking::{may_block, offload};
use crate::capabilities::{Capabilities, ConflictStrategy};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;
use crate::refuse::{check_lock_name, lock_busy, root_refused};
use crate::version::TouchMark;

/// The name of this backend.
pub const PROTOCOL: &str = "device-local";

/// The guarantees of this backend.
pub const CAPABILITIES: Capabilities = Capabilities {
    concurrent_writers: true,
    conflict_files: false,
    encryption: false,
    sync: false,
    create_if_absent: true,
    update_if_match: true,
    conditional_delete: true,
    flat_append: true,
    empty_directories: true,
    tree: true,
    atomic_rename: true,
    exchange: true,
    durable: true,
    refuses_case_twins: true,
};

/// The most edits that are applied together; each may hold two files open, and a process may often have 1,024, or elsewhere than on
/// Linux 256.
const MAX_BATCH_EDITS: usize = if cfg!(target_os = "linux") { 256 } else { 64 };

/// The most objects that are given other names together: that holds no file open.
const MAX_BATCH_MOVES: usize = 2_048;

/// The most bytes that are applied together, unless one edit alone has more.
const MAX_BATCH_BYTES: usize = 32 * 1024 * 1024;

/// Up to this size, content is hashed on the calling thread, which may have other work: it takes some ten microseconds.
const MAX_HASHED_HERE_BYTES: usize = 64 * 1024;

/// The most times that an append is tried again because another program creates the file at the same moment.
const MAX_APPEND_TRIES: usize = 4;

/// Plain files under one directory of this machine.
///
/// The disk is a parameter so that a simulator can supply one that fails.
pub struct DeviceLocal<F: Fs = Disk> {
    inner: Arc<Inner<F>>,
}

impl DeviceLocal {
    /// Opens the directory `root`, making it if need be, with its lock files in the directory `locks`.
    ///
    /// `locks` must not be inside `root`. Processes that share a root must share the locks too. What a
    /// writer that died left behind is cleaned up first.
    pub fn open(root: impl AsRef<Path>, locks: impl AsRef<Path>) -> Result<DeviceLocal> {
        DeviceLocal::on(opened(root.as_ref(), locks.as_ref(), Disk::open)?)
    }

    /// Opens the directory `root` like [`DeviceLocal::open`], but only if it exists and its path leads through no link.
    pub fn open_real(root: impl AsRef<Path>, locks: impl AsRef<Path>) -> Result<DeviceLocal> {
        DeviceLocal::on(opened(root.as_ref(), locks.as_ref(), Disk::open_real)?)
    }

    /// Stops exchanging files and replaces them as on a filesystem that cannot exchange.
    ///
    /// There what another program saves in the moment of our replace is lost; a filesystem that cannot
    /// exchange is noticed by itself.
    pub fn without_exchange(self) -> DeviceLocal {
        self.inner.core.fs.forget_exchange();
        self
    }
}

impl<F: Fs> DeviceLocal<F> {
    /// Opens the backend on any disk, having cleaned up after a writer that died.
    pub fn on(fs: F) -> Result<DeviceLocal<F>> {
        let inner = Inner { core: Arc::new(Core::open(fs)?), writers: Queue::new(), movers: Queue::new() };
        Ok(DeviceLocal { inner: Arc::new(inner) })
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Inner<F>) -> T + Send + 'static) -> T {
        let inner = self.inner.clone();
        offload(move || work(&inner)).await
    }

    /// Does something with the disk itself, where blocking is fine.
    pub(crate) async fn on_disk<T: Send + 'static>(&self, work: impl FnOnce(&F) -> T + Send + 'static) -> T {
        self.run(move |inner| work(&inner.core.fs)).await
    }
}

impl<F: Fs> fmt::Debug for DeviceLocal<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceLocal").field("disk", &self.inner.core.fs).finish()
    }
}

/// Opens the disk at `root`, saying what is wrong with it if it cannot be.
pub(crate) fn open_disk(root: &Path, locks: &Path) -> Result<Disk> {
    opened(root, locks, Disk::open)
}

fn opened(
    root: &Path,
    locks: &Path,
    open: impl FnOnce(&Path, &Path) -> std::io::Result<Disk>,
) -> Result<Disk> {
    let place = root.display().to_string();
    if place.is_empty() {
        return Err(Error::at(ErrorKind::Invalid, Operation::Open, "\"\"", "no directory was named"));
    }
    open(root, locks).map_err(|error| {
        if error.kind() == std::io::ErrorKind::InvalidInput {
            return Error::at(ErrorKind::Invalid, Operation::Open, place.clone(), error.to_string());
        }
        Error::from_io(Operation::Open, place.clone(), error)
    })
}

/// The backend over any disk.
struct Inner<F: Fs> {
    core: Arc<Core<F>>,
    writers: Queue<Edit, Ended<F>>,
    movers: Queue<Relocation, Result<()>>,
}

impl<F: Fs> Batches<Edit, Ended<F>> for Core<F> {
    fn choose(&self, waiting: &mut VecDeque<Waiting<Edit>>) -> Vec<Waiting<Edit>> {
        take_batch(waiting)
    }

    fn work(&self, edits: Vec<Edit>) -> Vec<Ended<F>> {
        self.apply(&edits)
    }

    fn lost(&self) -> Ended<F> {
        Error::at(ErrorKind::Internal, Operation::Write, "the batch", "its writer panicked").into()
    }
}

impl<F: Fs> Batches<Relocation, Result<()>> for Core<F> {
    fn choose(&self, waiting: &mut VecDeque<Waiting<Relocation>>) -> Vec<Waiting<Relocation>> {
        waiting.drain(..waiting.len().min(MAX_BATCH_MOVES)).collect()
    }

    fn work(&self, relocations: Vec<Relocation>) -> Vec<Result<()>> {
        self.relocate(&relocations)
    }

    fn lost(&self) -> Result<()> {
        Err(Error::at(ErrorKind::Internal, Operation::Rename, "the batch", "its mover panicked"))
    }
}

impl<F: Fs> Inner<F> {
    async fn submit(self: &Arc<Self>, edit: Edit) -> Result<Done> {
        if may_block() {
            return self.writers.submit(edit, &*self.core).result;
        }
        let lead = || self.let_lead(|inner| inner.writers.lead_all(&*inner.core));
        self.writers.submit_aside(edit, lead).await.result
    }

    async fn relocate(self: &Arc<Self>, relocation: Relocation) -> Result<()> {
        if may_block() {
            return self.movers.submit(relocation, &*self.core);
        }
        let lead = || self.let_lead(|inner| inner.movers.lead_all(&*inner.core));
        self.movers.submit_aside(relocation, lead).await
    }

    fn let_lead(self: &Arc<Self>, lead: impl FnOnce(&Inner<F>) + Send + 'static) {
        let inner = self.clone();
        ::blocking::unblock(move || lead(&inner)).detach();
    }

    async fn write(
        self: &Arc<Self>,
        locator: Locator,
        bytes: Bytes,
        condition: Condition,
    ) -> Result<Written> {
        // New content was rarely there a moment ago: hash it without a lookup.
        let new = if bytes.len() <= MAX_HASHED_HERE_BYTES {
            HashedContent::by_hashing(bytes)
        } else {
            offload(move || HashedContent::by_hashing(bytes)).await
        };
        let how = How::Write { wrote: new.digest, version: new.version.clone(), condition };
        let edit = Edit { locator, bytes: new.bytes.clone(), how };
        match self.submit(edit).await? {
            Done::Written(written) => {
                self.core.memo.remember(new);
                Ok(written)
            }
            Done::Appended(_) => unreachable!("a write answers as a write"),
        }
    }

    async fn append(
        self: &Arc<Self>,
        locator: Locator,
        bytes: Bytes,
        durability: Durability,
    ) -> Result<Appended> {
        let edit = Edit { locator, bytes, how: How::Append(durability) };
        let mut tries = 1;
        loop {
            match self.submit(edit.clone()).await {
                Err(error) if error.kind() == ErrorKind::Conflict && tries < MAX_APPEND_TRIES => tries += 1,
                Err(error) => return Err(error),
                Ok(Done::Appended(appended)) => return Ok(appended),
                Ok(Done::Written(_)) => unreachable!("an append answers as an append"),
            }
        }
    }

    fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        check_lock_name(name)?;
        if name == WRITE_LOCK {
            let message = "the name is the backend's own";
            return Err(Error::at(ErrorKind::Invalid, Operation::Lock, name, message));
        }
        let lock = self.core.fs.lock(name, wait);
        match lock.map_err(|error| Error::from_io(Operation::Lock, name, error))? {
            Some(lock) => {
                self.core.recent.locked();
                Ok(Guard::new(HeldLock { core: self.core.clone(), _lock: lock }))
            }
            None => Err(lock_busy(name, wait)),
        }
    }
}

/// A named lock that is held.
struct HeldLock<F: Fs> {
    core: Arc<Core<F>>,
    _lock: F::Lock,
}

impl<F: Fs> Drop for HeldLock<F> {
    fn drop(&mut self) {
        self.core.recent.unlocked();
    }
}

/// Takes the edits that can be done together: a bounded number, no two of one place.
fn take_batch(waiting: &mut VecDeque<Waiting<Edit>>) -> Vec<Waiting<Edit>> {
    // A single job need not be compared with others.
    if waiting.len() == 1 {
        return waiting.drain(..).collect();
    }
    let mut batch = Vec::new();
    let mut places = HashSet::new();
    let mut bytes = 0;
    let mut at = 0;
    while at < waiting.len() && batch.len() < MAX_BATCH_EDITS {
        let edit = &waiting[at].job;
        let fits = batch.is_empty() || bytes + edit.bytes.len() <= MAX_BATCH_BYTES;
        // Two names that differ only by case are two edits of one place here: the second must see the first.
        if !fits || !places.insert(edit.locator.folded()) {
            at += 1;
            continue;
        }
        bytes += edit.bytes.len();
        batch.extend(waiting.remove(at));
    }
    batch
}

#[async_trait]
impl<F: Fs> Backend for DeviceLocal<F> {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        let locator = locator.clone();
        self.run(move |inner| inner.core.read(&locator)).await
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        self.inner.write(locator.clone(), bytes, condition).await
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        check_own(&objects)?;
        self.run(move |inner| inner.core.prepare(objects)).await
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        self.inner.append(locator.clone(), bytes, durability).await
    }

    async fn barrier(&self) -> Result<()> {
        self.run(|inner| {
            inner.core.sync_unsynced().map_err(|error| Error::from_io(Operation::Barrier, "", error))?;
            // The next holder of the write lock completes the work of a holder that died.
            inner.core.locked(|| Ok(()))
        })
        .await
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        let locator = locator.clone();
        self.run(move |inner| inner.core.list(&locator)).await
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        let walk = Walk::new(self.inner.core.clone(), prefix.clone(), after.cloned());
        Box::pin(futures_lite::stream::unfold(Some(walk), |walk| async {
            let mut walk = walk?;
            let (page, walk) = offload(move || {
                let page = walk.next_page();
                (page, walk)
            })
            .await;
            match page {
                Ok(Some(page)) => Some((Ok(page), Some(walk))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        let locator = locator.clone();
        self.run(move |inner| inner.core.info(&locator)).await
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        self.run(|inner| inner.core.touch_mark()).await
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        if locator.is_root() {
            return Err(root_refused(Operation::Delete));
        }
        let locator = locator.clone();
        self.run(move |inner| inner.core.delete(&locator, &condition)).await
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        let (from, to) = (from.clone(), to.clone());
        self.inner.relocate(Relocation::Move { from, to }).await
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        let (one, other) = (one.clone(), other.clone());
        self.inner.relocate(Relocation::Exchange { one, other }).await
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        let locator = locator.clone();
        self.run(move |inner| inner.core.mkdir(&locator)).await
    }

    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        let name = name.to_owned();
        self.run(move |inner| inner.lock(&name, wait)).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { exchange: self.inner.core.fs.can_exchange(), ..CAPABILITIES }
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::None
    }
}
