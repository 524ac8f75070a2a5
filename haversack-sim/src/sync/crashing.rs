//! The real `device-local` on a disk that forgets what was not synced: the slow and thorough ground.
//!
//! A process may die in the middle of a call of the disk ([`Crashing::plan_crash`]), the machine may stop
//! ([`Crashing::restart`]), and other programs act between two calls of one effect ([`Crashing::at_call`]). What a user saves is
//! synced by the editor, so it survives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use futures_lite::{StreamExt, stream};
use haversack_store::{
    Appended, Backend, BackendExt, Bytes, Condition, DeviceLocal, Durability, Guard, Info, Listing, Locator,
    Object, Operation, Pages, Result, TouchMark, Written, block_on, forward_backend,
};

use super::storage::{Saving, room};
use super::weather::moment;
use crate::disk::{Crash, SimDisk};
use crate::editor::Editor;
use crate::image::Seen;

/// A device's files or its state, on a disk that crashes; clones are handles of one.
#[derive(Clone, Debug)]
pub(crate) struct Crashing {
    disk: SimDisk,
    is_full: Arc<AtomicBool>,
}

impl Crashing {
    pub(crate) fn new(seed: u64, is_full: Arc<AtomicBool>) -> Crashing {
        Crashing { disk: SimDisk::new(seed), is_full }
    }

    pub(crate) fn copy(&self, is_full: Arc<AtomicBool>) -> Crashing {
        Crashing { disk: self.disk.fork(0), is_full }
    }

    /// Opens it for a process.
    pub(crate) fn open(&self) -> Result<Arc<dyn Backend>> {
        let local = DeviceLocal::on(self.disk.clone())?;
        Ok(Arc::new(Stepped { local, is_full: self.is_full.clone() }))
    }

    /// Returns everything that is there, our own names included, as one who opens it finds it.
    pub(crate) fn all(&self) -> BTreeMap<Locator, Bytes> {
        let local = DeviceLocal::on(self.disk.fork(0)).expect("a disk that works");
        let own = Locator::reserved(".haversack").expect("one of ours");
        let mut all = BTreeMap::new();
        for prefix in [Locator::root(), own] {
            for locator in block_on(local.list_all(&prefix)).expect("listed") {
                let object = block_on(local.read(&locator)).expect("just listed");
                all.insert(locator, object.bytes);
            }
        }
        all
    }

    pub(crate) fn text(&self, locator: &Locator) -> Option<String> {
        self.disk.read(locator.as_str()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) fn save(&self, locator: &Locator, text: &[u8], how: Saving) {
        self.disk.edit(|editor| save(editor, locator.as_str(), text, how));
    }

    pub(crate) fn remove(&self, locator: &Locator) {
        self.disk.edit(|editor| remove(editor, locator.as_str()));
    }

    pub(crate) fn rename(&self, from: &Locator, to: &Locator) {
        self.disk.edit(|editor| rename(editor, from.as_str(), to.as_str()));
    }

    /// Lets the process die in the `calls`-th call from now.
    pub(crate) fn plan_crash(&self, calls: usize) {
        self.disk.crash_after(calls);
    }

    /// Lets the process die when it is about to make something durable for the `syncs`-th time from now.
    pub(crate) fn plan_crash_at_sync(&self, syncs: usize) {
        self.disk.crash_at_sync(syncs);
    }

    /// Returns true if the planned crash has happened.
    pub(crate) fn has_crashed(&self) -> bool {
        self.disk.has_crashed()
    }

    /// Lets another program act just before the `calls`-th call from now.
    pub(crate) fn at_call(&self, calls: usize, action: impl FnOnce(&mut Editor<'_>) + Send + 'static) {
        self.disk.at_call(calls, action);
    }

    /// Lets nothing of what was planned happen.
    pub(crate) fn forget_plans(&self) {
        self.disk.mark();
    }

    /// Starts anew after a crash.
    pub(crate) fn restart(&self, crash: Crash) {
        self.disk.restart(crash);
    }
}

/// Saves a file as an editor does that means it.
pub(crate) fn save(editor: &mut Editor<'_>, path: &str, text: &[u8], how: Saving) {
    for (end, _) in path.match_indices('/') {
        if editor.look(&path[..end]) != Some(Seen::Directory) {
            editor.make_dir(&path[..end]);
        }
    }
    match how {
        Saving::InPlace => editor.overwrite(path, text),
        Saving::Replacing => editor.replace(path, text),
    }
    editor.sync_at(path);
}

/// Deletes a file as an editor does that means it.
pub(crate) fn remove(editor: &mut Editor<'_>, path: &str) {
    editor.remove(path);
    editor.sync_at(path);
}

/// Renames a file as a program does that means it.
pub(crate) fn rename(editor: &mut Editor<'_>, from: &str, to: &str) {
    editor.rename(from, to);
    editor.sync_at(to);
}

/// The backend as one process uses it, one effect at a time.
#[derive(Debug)]
struct Stepped {
    local: DeviceLocal<SimDisk>,
    is_full: Arc<AtomicBool>,
}

/// Does an effect between two moments, on this thread.
macro_rules! effect {
    ($call:expr) => {{
        moment().await;
        let result = block_on($call);
        moment().await;
        result
    }};
}

#[async_trait]
impl Backend for Stepped {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        moment().await;
        block_on(self.local.read(locator))
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        effect!(async {
            room(&self.is_full, Operation::Write, locator)?;
            self.local.write(locator, bytes, condition).await
        })
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        effect!(async {
            for (locator, _) in &objects {
                room(&self.is_full, Operation::Write, locator)?;
            }
            self.local.prepare(objects).await
        })
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        effect!(async {
            room(&self.is_full, Operation::Append, locator)?;
            self.local.append(locator, bytes, durability).await
        })
    }

    async fn barrier(&self) -> Result<()> {
        effect!(self.local.barrier())
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        moment().await;
        block_on(self.local.list(locator))
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        let (prefix, after) = (prefix.clone(), after.cloned());
        let begun = stream::once_future(async move {
            moment().await;
            let pages: Vec<_> = block_on(self.local.scan(&prefix, after.as_ref()).collect());
            stream::iter(pages)
        });
        Box::pin(begun.flatten())
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        moment().await;
        block_on(self.local.info(locator))
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        moment().await;
        block_on(self.local.touch_mark())
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        effect!(self.local.delete(locator, condition))
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        effect!(self.local.rename(from, to))
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        effect!(self.local.exchange(one, other))
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        effect!(async {
            room(&self.is_full, Operation::Mkdir, locator)?;
            self.local.mkdir(locator).await
        })
    }

    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        moment().await;
        block_on(self.local.lock(name, wait))
    }

    forward_backend!(self => self.local; capabilities, conflict_strategy);
}
