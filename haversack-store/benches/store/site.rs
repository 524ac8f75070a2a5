//! A directory on some filesystem in which both sides work.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack_bench::bare::Bare;
use haversack_bench::scratch::Scratch;
use haversack_bench::{Outcome, machine};
use haversack_store::{Blocking, Bytes, DeviceLocal, Locator};

/// The directory of both sides, each with a tree of its own under the same keys.
pub(crate) struct Site {
    pub(crate) filesystem: String,
    pub(crate) store: Blocking,
    pub(crate) bare: Bare,
    stamp: Cell<u64>,
    // Last, so that the child has ended when its directory goes.
    scratch: Scratch,
}

impl Site {
    pub(crate) fn open(scratch: Scratch, filesystem: String, bare: &Path) -> Outcome<Site> {
        let path = scratch.path();
        fs::create_dir(path.join("bare"))?;
        let backend = DeviceLocal::open(path.join("ours"), path.join("locks"))?;
        let bare = Bare::start(bare, &path.join("bare"))?;
        let store = Blocking::new(Arc::new(backend));
        Ok(Site { filesystem, store, bare, stamp: Cell::new(0), scratch })
    }

    /// Returns a content of `size` that was never written before.
    pub(crate) fn content(&self, size: usize) -> Bytes {
        let mut bytes = vec![b'o'; size];
        let stamp = self.stamp.get() + 1;
        self.stamp.set(stamp);
        let length = size.min(8);
        bytes[..length].copy_from_slice(&stamp.to_le_bytes()[..length]);
        bytes.into()
    }

    /// Makes a directory on both sides, past the store.
    pub(crate) fn make_dir(&self, key: &str) -> Outcome<()> {
        self.both(key).into_iter().try_for_each(|path| Ok(fs::create_dir_all(path)?))
    }

    /// Makes a file of `size` on both sides, past the store, in a directory that is there.
    pub(crate) fn fill(&self, key: &str, size: usize) -> Outcome<()> {
        let bytes = vec![b'f'; size];
        self.both(key).into_iter().try_for_each(|path| Ok(fs::write(path, &bytes)?))
    }

    /// Makes a file of `size` on our side only, past the store, in a directory that is there.
    pub(crate) fn fill_ours(&self, key: &str, size: usize) -> Outcome<()> {
        Ok(fs::write(self.ours(key), vec![b'f'; size])?)
    }

    /// Removes a file on our side, past the store.
    pub(crate) fn forget_ours(&self, key: &str) -> Outcome<()> {
        Ok(fs::remove_file(self.ours(key))?)
    }

    /// Waits until what was filled in has reached the disk and does not disturb what is measured.
    pub(crate) fn calm(&self) {
        machine::calm(self.scratch.path());
    }

    fn ours(&self, key: &str) -> PathBuf {
        self.scratch.path().join("ours").join(key)
    }

    fn both(&self, key: &str) -> [PathBuf; 2] {
        ["ours", "bare"].map(|side| self.scratch.path().join(side).join(key))
    }
}

/// Returns the locator of each key.
pub(crate) fn locators<K: AsRef<str>>(keys: &[K]) -> Outcome<Vec<Locator>> {
    Ok(keys.iter().map(|key| Locator::parse(key.as_ref())).collect::<Result<_, _>>()?)
}
