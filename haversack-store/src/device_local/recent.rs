//! Recently used directories and files, still open: the next verb often uses the same directory, and a reader with a lock often
//! replaces the file that it read.
//!
//! A shortcut and nothing else: what is open is used only if the names that lead to it still do, each looked up in the directory
//! before it and no link followed, as in opening it again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fs::{Fs, NodeKind, Stat};
use super::walk::{EntryHandle, Level, Way};
use crate::locator::Locator;
use crate::version::Version;

/// True if an open handle does not prevent moving, replacing or deleting the file.
pub(super) const KEEPS_OPEN: bool = cfg!(unix);

/// The recently used handles.
pub(super) struct Recent<F: Fs> {
    directory: Mutex<Option<Arc<Directory<F>>>>,
    file: Mutex<Option<Seen<F>>>,
    /// The number of named locks that this process holds.
    locks: AtomicUsize,
}

/// A directory and those that lead to it.
struct Directory<F: Fs> {
    key: String,
    way: Way<F>,
}

/// A file that was read.
struct Seen<F: Fs> {
    locator: Locator,
    version: Version,
    file: F::File,
    stat: Stat,
}

/// A file that was read and is still the one under its name.
pub(super) struct Reopened<F: Fs> {
    pub(super) file: F::File,
    pub(super) stat: Stat,
    /// True if its size and times have not changed. The content may still have changed, within a tick of the clock.
    pub(super) looks_untouched: bool,
}

impl<F: Fs> Default for Recent<F> {
    fn default() -> Recent<F> {
        Recent { directory: Mutex::default(), file: Mutex::default(), locks: AtomicUsize::new(0) }
    }
}

impl<F: Fs> std::fmt::Debug for Recent<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recent")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if the two are one file or directory; what is open cannot be deleted and its number given to another.
fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.kind, one.device, one.inode) == (other.kind, other.device, other.inode)
}

impl<F: Fs> Recent<F> {
    /// Returns the place of `locator` and the way to it, if its directory is open and still the one.
    pub(super) fn find(&self, fs: &F, locator: &Locator) -> Option<(EntryHandle<F>, Way<F>)> {
        let directory =
            lock(&self.directory).clone().filter(|directory| directory.key == locator.parent_key())?;
        // Other names may be spelled otherwise by the disk.
        if !locator.as_str().is_ascii() {
            return None;
        }
        let mut way: Way<F> = Vec::with_capacity(directory.way.len());
        for (level, name) in directory.way.iter().zip(locator.segments()) {
            let now = fs.stat(&level.parent, name).ok()?;
            if !level.stat.as_ref().is_some_and(|opened| is_same(opened, &now)) {
                return None;
            }
            way.push(Level { parent: level.parent.clone(), dir: level.dir.clone(), stat: Some(now) });
        }
        let dir = way.last()?.dir.clone();
        Some((EntryHandle { dir, name: locator.name().to_owned(), locator: locator.clone() }, way))
    }

    /// Keeps the way to `locator` open.
    pub(super) fn went(&self, fs: &F, locator: &Locator, way: &mut Way<F>) {
        if !KEEPS_OPEN || way.is_empty() || !locator.as_str().is_ascii() {
            return;
        }
        for level in way.iter_mut() {
            let Ok(stat) = fs.stat_dir(&level.dir) else { return };
            level.stat = Some(stat);
        }
        let key = locator.parent_key().to_owned();
        let before = lock(&self.directory).replace(Arc::new(Directory { key, way: way.clone() }));
        // Closed when no caller waits for it.
        drop(before);
    }

    /// Keeps a file open that a lock holder read, until the holder replaces it or releases the lock.
    pub(super) fn read(&self, locator: &Locator, version: &Version, file: F::File, stat: Stat) {
        if !KEEPS_OPEN || self.locks.load(Ordering::Acquire) == 0 {
            return;
        }
        let seen = Seen { locator: locator.clone(), version: version.clone(), file, stat };
        let before = lock(&self.file).replace(seen);
        drop(before);
    }

    /// Returns the file that was read at `place` as `version`, if it is still there.
    pub(super) fn take(&self, fs: &F, place: &EntryHandle<F>, version: &Version) -> Option<Reopened<F>> {
        let seen =
            lock(&self.file).take_if(|seen| seen.locator == place.locator && seen.version == *version)?;
        let now = fs.stat(&place.dir, &place.name).ok()?;
        let is_there = now.kind == NodeKind::File && is_same(&seen.stat, &now);
        is_there.then(|| Reopened { file: seen.file, looks_untouched: seen.stat == now, stat: now })
    }

    /// Counts a lock that was taken.
    pub(super) fn locked(&self) {
        self.locks.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a lock that was given up: who holds none keeps no file open.
    pub(super) fn unlocked(&self) {
        if self.locks.fetch_sub(1, Ordering::AcqRel) == 1 {
            let before = lock(&self.file).take();
            drop(before);
        }
    }
}
