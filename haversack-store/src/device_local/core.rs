//! The operations of device-local on a disk, except writing content ([`edit`](super::edit)).

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::fs::{Fs, Name, NodeKind, Stat, Target};
use super::memo::Memo;
use super::note::{self, UnderWay};
use super::recent::Recent;
use super::recover::{Content, Leftover};
use super::temp::{Digest, Temp, Verdict};
use super::trust::{Owed, Trust};
use super::twins::{New, Twins};
use super::walk::{self, EntryHandle, Way, expect_file};
use crate::backend::{Condition, Entry, EntryKind, Info, Listing, Object, Odd};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::{Children, Locator, is_own_name};
use crate::refuse::{condition_failed, is_a_directory};
use crate::version::{Fingerprint, TouchMark};

/// The mode of a new file: only its owner can read and write it.
pub(super) const FILE_MODE: u32 = 0o600;

/// The time that a writer waits for the writers of other processes.
const WRITE_WAIT: Duration = Duration::from_secs(60);

/// The name of the lock that every change takes.
pub(super) const WRITE_LOCK: &str = "write";

/// The largest file that is read: a disk image must not take all memory.
const MAX_OBJECT_BYTES: u64 = 1 << 30;

/// The most appends that wait for a barrier before one is made.
const MAX_UNSYNCED: usize = 64;

/// A disk and what is remembered about it.
#[derive(Debug)]
pub(super) struct Core<F: Fs> {
    pub(super) fs: F,
    pub(super) twins: Twins,
    pub(super) trust: Trust,
    pub(super) memo: Memo,
    pub(super) recent: Recent<F>,
    unsynced: Mutex<Unsynced<F>>,
}

/// Files with appended bytes that may not have reached the disk, each with its inode.
struct Unsynced<F: Fs> {
    files: Vec<(u64, F::File)>,
    /// A sync failed: some of what was appended may be lost, and no later sync can tell.
    failed: bool,
}

impl<F: Fs> Default for Unsynced<F> {
    fn default() -> Unsynced<F> {
        Unsynced { files: Vec::new(), failed: false }
    }
}

impl<F: Fs> std::fmt::Debug for Unsynced<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unsynced({} files, failed: {})", self.files.len(), self.failed)
    }
}

impl<F: Fs> Core<F> {
    /// Returns the core for `fs`, having cleaned up after a writer that died.
    pub(super) fn open(fs: F) -> Result<Core<F>> {
        let (twins, trust, memo) = (Twins::default(), Trust::default(), Memo::default());
        let core = Core { fs, twins, trust, memo, recent: Recent::default(), unsynced: Mutex::default() };
        let lock = core.fs.lock(WRITE_LOCK, Duration::ZERO);
        // Taken means that its holder is alive and the note is its own.
        if let Some(_lock) = lock.map_err(|error| Error::from_io(Operation::Open, WRITE_LOCK, error))? {
            core.recover_noted()?;
        }
        Ok(core)
    }

    /// Does `work` as the only writer of all processes.
    pub(super) fn locked<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let lock = self.fs.lock(WRITE_LOCK, WRITE_WAIT);
        match lock.map_err(|error| Error::from_io(Operation::Lock, WRITE_LOCK, error))? {
            Some(_lock) => {
                self.recover_noted()?;
                work()
            }
            None => Err(crate::refuse::lock_busy(WRITE_LOCK, WRITE_WAIT)),
        }
    }

    /// Returns the place of `locator`, and in `way` the directories that lead to it.
    pub(super) fn find_with_way(
        &self,
        operation: Operation,
        locator: &Locator,
        way: &mut Way<F>,
    ) -> Result<EntryHandle<F>> {
        if let Some((place, open)) = self.recent.find(&self.fs, locator) {
            *way = open;
            return Ok(place);
        }
        let place = walk::find_with_way(&self.fs, operation, locator, way)?;
        self.recent.went(&self.fs, locator, way);
        Ok(place)
    }

    /// Opens the file at `place`, refusing what is none.
    pub(super) fn open_file(&self, operation: Operation, place: &EntryHandle<F>) -> Result<(F::File, Stat)> {
        let failed = |error| place.failed(&self.fs, operation, error);
        let file = self.fs.open(&place.dir, &place.name).map_err(failed)?;
        let stat = self.fs.stat_file(&file).map_err(failed)?;
        expect_file(operation, &place.locator, stat.kind)?;
        Ok((file, stat))
    }

    /// Returns the content at `place`, the file it is in and what is known about that.
    pub(super) fn load(
        &self,
        operation: Operation,
        place: &EntryHandle<F>,
    ) -> Result<(Bytes, F::File, Stat)> {
        let (file, stat) = self.open_file(operation, place)?;
        if stat.size > MAX_OBJECT_BYTES {
            let message =
                format!("it is larger than {MAX_OBJECT_BYTES} bytes, too large to be held in memory");
            return Err(Error::new(ErrorKind::Invalid, operation, &place.locator, message));
        }
        let bytes =
            self.fs.read(&file, stat.size).map_err(|error| place.failed(&self.fs, operation, error))?;
        Ok((bytes.into(), file, stat))
    }

    pub(super) fn read(&self, locator: &Locator) -> Result<Object> {
        if locator.is_root() {
            return Err(is_a_directory(Operation::Read, locator));
        }
        let place = self.find_with_way(Operation::Read, locator, &mut Vec::new())?;
        let (bytes, file, stat) = self.load(Operation::Read, &place)?;
        let known = self.memo.know(bytes);
        self.memo.remember(known.clone());
        self.recent.read(locator, &known.version, file, stat);
        Ok(Object { bytes: known.bytes, version: known.version })
    }

    pub(super) fn info(&self, locator: &Locator) -> Result<Info> {
        let stat = if locator.is_root() {
            self.fs.stat_dir(&self.fs.root()).map_err(|error| Error::from_io(Operation::Info, "", error))?
        } else {
            let place: EntryHandle<F> = walk::find(&self.fs, Operation::Info, locator)?;
            self.fs
                .stat(&place.dir, &place.name)
                .map_err(|error| place.failed(&self.fs, Operation::Info, error))?
        };
        match info_of(locator.clone(), &stat) {
            Some(info) => Ok(info),
            None => Err(expect_file(Operation::Info, locator, stat.kind).expect_err("not a file")),
        }
    }

    pub(super) fn list(&self, locator: &Locator) -> Result<Listing> {
        let dir = match walk::find_dir(&self.fs, Operation::List, locator) {
            Ok(dir) => dir,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Listing::default()),
            Err(error) => {
                // A file has no children; a link or a pipe in the way is worth saying.
                return match self.info(locator) {
                    Ok(_) => Ok(Listing::default()),
                    Err(_) if self.goes_through_file(locator) => Ok(Listing::default()),
                    Err(_) => Err(error),
                };
            }
        };
        let names = self
            .fs
            .names(&dir, usize::MAX)
            .map_err(|error| Error::from_io(Operation::List, locator.as_str(), error))?;
        let mut listing = Listing { entries: Vec::with_capacity(names.len()), odd: Vec::new() };
        let mut children = Children::of(locator);
        for name in &names {
            match served(&mut children, name) {
                Served::Entry(entry) => listing.entries.push(entry),
                Served::Odd(odd) => listing.odd.push(odd),
                Served::Ours(_) => {}
            }
        }
        listing.entries.sort_unstable();
        listing.odd.sort_by(|a, b| a.shown.cmp(&b.shown));
        Ok(listing)
    }

    /// Returns true if a place above `locator` is a file, so that nothing can be there.
    pub(super) fn goes_through_file(&self, locator: &Locator) -> bool {
        let above = std::iter::successors(locator.parent(), Locator::parent);
        let mut known = above.filter_map(|place| self.info(&place).ok());
        known.next().is_some_and(|nearest| nearest.kind == EntryKind::File)
    }

    pub(super) fn touch_mark(&self) -> Result<TouchMark> {
        const SECOND: i64 = 1_000_000_000;
        let failed = |error| Error::from_io(Operation::Info, "the filesystem's clock", error);
        self.locked(|| {
            let (root, name) = (self.fs.root(), Temp::Draft(usize::MAX).to_string());
            let file = match self.fs.create(&root, &name, FILE_MODE) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.fs.unlink(&root, &name).map_err(failed)?;
                    self.fs.create(&root, &name, FILE_MODE)
                }
                created => created,
            };
            let file = match file {
                // We may not write there: other programs wrote the files, and we never know them to be settled.
                Err(error) if is_read_only(&error) => return Ok(TouchMark::new(i64::MIN)),
                file => file,
            };
            let stat = file.and_then(|file| self.fs.stat_file(&file)).map_err(failed)?;
            self.fs.unlink(&root, &name).map_err(failed)?;
            // Some filesystems count in (two) seconds, others in the kernel's ticks.
            let granularity = if stat.modified_ns % SECOND == 0 { 2 * SECOND } else { SECOND / 50 };
            Ok(TouchMark::new(stat.modified_ns.min(stat.changed_ns).saturating_sub(granularity)))
        })
    }

    pub(super) fn mkdir(&self, locator: &Locator) -> Result<()> {
        match self.info(locator) {
            Ok(Info { kind: EntryKind::File, .. }) => {
                let message = "a file has that name";
                return Err(Error::new(ErrorKind::Invalid, Operation::Mkdir, locator, message));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            // One that is there may have been made a moment ago by a process that died: it is synced too.
            Ok(Info { kind: EntryKind::Directory, .. }) | Err(_) => {}
        }
        self.locked(|| {
            let mut way = Vec::new();
            walk::make_dirs(&self.fs, &self.twins, Operation::Mkdir, locator, &mut way)?;
            self.settle(Operation::Mkdir, locator, &way, None)
        })
    }

    pub(super) fn delete(&self, locator: &Locator, condition: &Condition) -> Result<()> {
        let operation = Operation::Delete;
        let expected = match condition {
            Condition::Any | Condition::Absent => None,
            Condition::Matches(version) => Some(version),
        };
        self.locked(|| {
            let gone = |error: Error| match expected {
                Some(_) if error.kind() == ErrorKind::NotFound => {
                    condition_failed(operation, locator, condition)
                }
                _ => error,
            };
            let place: EntryHandle<F> = match walk::find(&self.fs, operation, locator) {
                Err(error) if error.kind() == ErrorKind::NotFound && expected.is_none() => return Ok(()),
                found => found.map_err(gone)?,
            };
            let failed = |error| gone(place.failed(&self.fs, operation, error));
            let stat = self.fs.stat(&place.dir, &place.name);
            if *condition == Condition::Absent
                && stat.as_ref().is_ok_and(|stat| stat.kind != NodeKind::Directory)
            {
                return Err(condition_failed(operation, locator, condition));
            }
            if stat.is_ok() && expected.is_none() {
                self.announce_deletion(UnderWay::Name { at: place.locator.clone() }).map_err(failed)?;
            }
            let result = match (stat, expected) {
                // Perhaps it was deleted a moment ago by a process that died: that it is gone is synced too.
                (Err(error), _) if error.kind() == io::ErrorKind::NotFound => match expected {
                    None => Ok(()),
                    Some(_) => Err(condition_failed(operation, locator, condition)),
                },
                (Err(error), _) => return Err(failed(error)),
                (Ok(stat), None) if stat.kind == NodeKind::Directory => {
                    self.fs.remove_dir(&place.dir, &place.name).map_err(failed)
                }
                (Ok(stat), None) if stat.kind == NodeKind::File => {
                    self.fs.unlink(&place.dir, &place.name).map_err(failed)
                }
                (Ok(stat), Some(version)) if stat.kind == NodeKind::File => {
                    let (file, stat) = self.open_file(operation, &place).map_err(gone)?;
                    let Some(held) = self.holds(&file, stat.size, version).map_err(failed)? else {
                        return Err(condition_failed(operation, locator, condition));
                    };
                    self.take_away(&place, held.digest(), condition)
                }
                (Ok(stat), _) => return expect_file(operation, locator, stat.kind),
            };
            let settled = self.settle(operation, locator, &Vec::new(), Some(&place.dir));
            // The next writer completes an operation that failed half-way.
            let is_over = result.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::Conflict);
            settled?;
            if is_over {
                self.clear_note(operation, locator)?;
            }
            result
        })
    }

    /// Notes the name that is about to be deleted; a full disk must not prevent a deletion.
    fn announce_deletion(&self, under_way: UnderWay) -> io::Result<()> {
        match self.fs.set_note(&note::encode(&[under_way])) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
            noted => noted,
        }
    }

    /// Removes the file that was read, and gives back what turns out to be another one.
    fn take_away(&self, place: &EntryHandle<F>, read: Digest, condition: &Condition) -> Result<()> {
        let operation = Operation::Delete;
        let failed = |error| place.failed(&self.fs, operation, error);
        let temp = Temp::gone(read, &place.name);
        let name = temp.to_string();
        let under_way = UnderWay::Temp { name: name.clone(), target: place.locator.clone() };
        // Without a note a scan finds the leftover.
        self.announce_deletion(under_way).map_err(failed)?;
        match self.fs.rename(&place.dir, &place.name, &place.dir, &name, Target::Free) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let parent = place.locator.parent().unwrap_or_else(Locator::root);
                self.recover_leftover(&Leftover { parent, temp: temp.clone() }, Some(&place.locator))?;
                self.fs.rename(&place.dir, &place.name, &place.dir, &name, Target::Free).map_err(failed)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(condition_failed(operation, &place.locator, condition));
            }
            result => result.map_err(failed)?,
        }
        let content = self.content_of(&place.dir, &name).map_err(failed)?;
        let is_ours = matches!(&content, Some(Content::File(bytes)) if temp.judge(Digest::of(bytes)) == Verdict::Discard);
        match content {
            Some(_) if is_ours => self.fs.unlink(&place.dir, &name).map_err(failed),
            Some(content) => {
                match self.fs.rename(&place.dir, &name, &place.dir, &place.name, Target::Free) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        self.keep(&place.dir, &name, &place.locator, &content).map_err(failed)?;
                    }
                    result => result.map_err(failed)?,
                }
                Err(condition_failed(operation, &place.locator, condition))
            }
            None => Ok(()),
        }
    }

    /// Refuses a new name that some platform cannot hold or would confuse with another.
    ///
    /// `now` is how its directory is.
    pub(super) fn check_new(
        &self,
        operation: Operation,
        place: &EntryHandle<F>,
        now: &Stat,
        moving: Option<&str>,
    ) -> Result<()> {
        if place.locator.is_reserved() {
            return Ok(());
        }
        place.locator.check_portable().map_err(|reason| Error::invalid(operation, &place.locator, reason))?;
        let new: New<'_, F> = New { locator: &place.locator, dir: &place.dir, now, name: &place.name };
        self.twins.check(&self.fs, operation, &new, moving)
    }

    fn clear_note(&self, operation: Operation, locator: &Locator) -> Result<()> {
        self.fs.set_note(&[]).map_err(|error| Error::from_io(operation, locator.as_str(), error))
    }

    /// Makes durable what changed in `dir` and the directories that lead to it.
    pub(super) fn settle(
        &self,
        operation: Operation,
        locator: &Locator,
        way: &Way<F>,
        dir: Option<&Arc<F::Dir>>,
    ) -> Result<()> {
        let mut owed = Owed::default();
        let settled = self
            .trust
            .question(&self.fs, way, &mut owed)
            .and_then(|_| dir.map_or(Ok(()), |dir| owed.add(&self.fs, dir).map(drop)))
            .and_then(|()| self.trust.settle(&self.fs, owed));
        settled.map_err(|error| Error::from_io(operation, locator.as_str(), error))
    }

    /// Remembers a file to be synced at the next barrier.
    pub(super) fn sync_later(&self, file: F::File, inode: u64) -> io::Result<()> {
        let full = {
            let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
            // A handle of the same file would sync the same bytes.
            if unsynced.files.iter().all(|(other, _)| *other != inode) {
                unsynced.files.push((inode, file));
            }
            unsynced.files.len() >= MAX_UNSYNCED
        };
        if full { self.sync_unsynced() } else { Ok(()) }
    }

    /// Makes all appends so far durable; once that failed it cannot be known any more.
    pub(super) fn sync_unsynced(&self) -> io::Result<()> {
        let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        if unsynced.failed {
            let message =
                "an earlier sync failed, so what was appended before it may be lost; open the store again";
            return Err(io::Error::other(message));
        }
        let waiting = std::mem::take(&mut unsynced.files);
        if waiting.is_empty() {
            return Ok(());
        }
        let files: Vec<&F::File> = waiting.iter().map(|(_, file)| file).collect();
        let result = self.fs.sync_files(&files).into_iter().collect();
        unsynced.failed = Result::is_err(&result);
        result
    }
}

/// Returns true if something failed because this user may not write there.
fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// The sort of a name in a directory, for a caller.
pub(super) enum Served {
    /// A file or directory.
    Entry(Entry),
    /// Something that cannot be served.
    Odd(Odd),
    /// A name of our own; with it what it stands for, if it is a working name.
    Ours(Option<Temp>),
}

/// Tells what a name found in a directory is to a caller.
pub(super) fn served(children: &mut Children<'_>, name: &Name) -> Served {
    let parent = children.parent();
    let odd_at = |at: Option<Locator>, name: &str, why: &str| {
        let shown = match parent.is_root() {
            true => name.escape_debug().to_string(),
            false => format!("{parent}/{}", name.escape_debug()),
        };
        Served::Odd(Odd { at, shown, why: why.to_owned() })
    };
    let odd = |name: &str, why: &str| odd_at(None, name, why);
    let kind = name.kind;
    let name = match &name.text {
        Ok(name) => name,
        Err(shown) => return odd(shown, "its name is not Unicode"),
    };
    if is_own_name(name) {
        return Served::Ours(Temp::parse(name));
    }
    if name.contains('/') {
        return odd(name, "its name contains a slash");
    }
    let locator = match children.parse(name) {
        Ok(locator) => locator,
        Err(reason) => match (children.reserved(name), parent.is_reserved()) {
            (Ok(locator), true) => locator,
            (Ok(_), false) => return Served::Ours(None),
            (Err(reason), true) => return odd(name, &reason.to_string()),
            (Err(_), false) => return odd(name, &reason.to_string()),
        },
    };
    let kind = match kind {
        NodeKind::File => EntryKind::File,
        NodeKind::Directory => EntryKind::Directory,
        NodeKind::Link => {
            return odd_at(Some(locator), name, "it is a symbolic link, and links are not followed");
        }
        NodeKind::Other => return odd_at(Some(locator), name, "it is a pipe, socket or device"),
    };
    Served::Entry(Entry { locator, kind })
}

/// Returns what a caller may know about a file or directory; `None` for anything else.
pub(super) fn info_of(locator: Locator, stat: &Stat) -> Option<Info> {
    let (kind, size_bytes) = match stat.kind {
        NodeKind::File => (EntryKind::File, stat.size),
        NodeKind::Directory => (EntryKind::Directory, 0),
        NodeKind::Link | NodeKind::Other => return None,
    };
    let parts = [
        stat.size,
        stat.modified_ns.cast_unsigned(),
        stat.changed_ns.cast_unsigned(),
        stat.inode,
        stat.device,
    ];
    let fingerprint = Fingerprint::new(&parts, stat.modified_ns.max(stat.changed_ns));
    let since = Duration::from_nanos(u64::try_from(stat.modified_ns).unwrap_or(0));
    let modified = Some(std::time::UNIX_EPOCH + since);
    Some(Info { locator, kind, size_bytes, modified, version: None, fingerprint })
}
