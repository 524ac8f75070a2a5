//! The `memory` backend: a real backend that forgets, deterministic to the byte.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use crate::backend::{
    Appended, Backend, Condition, Durability, Entry, EntryKind, Guard, Info, Listing, Object, Pages, Written,
};
use crate::blocking::offload;
use crate::capabilities::{Capabilities, ConflictStrategy};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::ext::pages_of;
use crate::locator::Locator;
use crate::refuse::{
    check_lock_name, check_rename, condition_failed, is_a_directory, lock_busy, nothing_there, root_refused,
    twin_refused,
};
use crate::version::{Fingerprint, TouchMark, Version};

/// The guarantees of the `memory` backend.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    concurrent_writers: true,
    conflict_files: false,
    encryption: false,
    sync: false,
    create_if_absent: true,
    update_if_match: true,
    conditional_delete: true,
    flat_append: false,
    empty_directories: true,
    tree: true,
    atomic_rename: true,
    exchange: true,
    durable: false,
    refuses_case_twins: true,
};

/// Objects in this process's memory; every state of an object has a version of its own.
#[derive(Debug, Default)]
pub struct InMemory {
    tree: Mutex<Tree>,
    locks: Arc<Locks>,
}

impl InMemory {
    /// Returns an empty backend.
    pub fn new() -> InMemory {
        InMemory::default()
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Tree {
    objects: BTreeMap<Locator, Stored>,
    directories: BTreeSet<Locator>,
    /// Every name there is, by how a case-insensitive disk would compare it.
    folded: HashMap<String, Locator>,
    /// Counts writes: versions and fingerprints are its values.
    writes: u64,
}

#[derive(Debug)]
struct Stored {
    bytes: Bytes,
    write: u64,
}

impl Stored {
    fn version(&self) -> Version {
        Version::new(self.write.to_string())
    }
}

impl Tree {
    fn kind(&self, locator: &Locator) -> Option<EntryKind> {
        if self.objects.contains_key(locator) {
            Some(EntryKind::File)
        } else if locator.is_root() || self.directories.contains(locator) {
            Some(EntryKind::Directory)
        } else {
            None
        }
    }

    /// Refuses what is not an object, for operations on content.
    fn expect_not_directory(&self, operation: Operation, locator: &Locator) -> Result<()> {
        match self.kind(locator) {
            Some(EntryKind::Directory) => Err(is_a_directory(operation, locator)),
            Some(EntryKind::File) | None => Ok(()),
        }
    }

    /// Makes sure that `locator` can be created, and makes the directories above it.
    fn make_way(&mut self, operation: Operation, locator: &Locator, moving: Option<&Locator>) -> Result<()> {
        locator.check_portable().map_err(|reason| Error::invalid(operation, locator, reason))?;
        let mut missing = Vec::new();
        let mut at = Some(locator.clone());
        while let Some(place) = at {
            match self.kind(&place) {
                Some(EntryKind::Directory) => break,
                Some(EntryKind::File) if &place != locator => {
                    let message = format!("{place} is a file, not a directory");
                    return Err(Error::new(ErrorKind::Invalid, operation, locator, message));
                }
                Some(EntryKind::File) => {}
                None => missing.push(place.clone()),
            }
            at = place.parent();
        }
        for place in &missing {
            if let Some(twin) = self.folded.get(&place.folded())
                && Some(twin) != moving
                && twin != place
            {
                return Err(twin_refused(operation, place, twin));
            }
        }
        for place in missing.into_iter().filter(|place| place != locator) {
            self.add_directory(place);
        }
        Ok(())
    }

    fn add_directory(&mut self, locator: Locator) {
        self.folded.insert(locator.folded(), locator.clone());
        self.directories.insert(locator);
    }

    fn add_object(&mut self, locator: Locator, stored: Stored) {
        self.folded.insert(locator.folded(), locator.clone());
        self.objects.insert(locator, stored);
    }

    fn remove(&mut self, locator: &Locator) -> Option<Stored> {
        self.folded.remove(&locator.folded());
        self.directories.remove(locator);
        self.objects.remove(locator)
    }

    fn children(&self, directory: &Locator) -> Vec<Entry> {
        let child = |locator: &Locator, kind| {
            (locator.parent().as_ref() == Some(directory)).then(|| Entry { locator: locator.clone(), kind })
        };
        let files = self.objects.keys().filter_map(|locator| child(locator, EntryKind::File));
        let directories = self.directories.iter().filter_map(|locator| child(locator, EntryKind::Directory));
        let mut entries: Vec<Entry> = files.chain(directories).collect();
        entries.sort();
        entries
    }

    fn check(&self, operation: Operation, locator: &Locator, condition: &Condition) -> Result<()> {
        let stored = self.objects.get(locator);
        let holds = match condition {
            Condition::Any => true,
            Condition::Absent => stored.is_none(),
            Condition::Matches(version) => stored.is_some_and(|stored| &stored.version() == version),
        };
        if holds { Ok(()) } else { Err(condition_failed(operation, locator, condition)) }
    }

    fn put(&mut self, locator: &Locator, bytes: Bytes) -> Version {
        self.writes += 1;
        let stored = Stored { bytes, write: self.writes };
        let version = stored.version();
        self.add_object(locator.clone(), stored);
        version
    }

    fn info(&self, locator: &Locator, stored: &Stored) -> Info {
        Info {
            locator: locator.clone(),
            kind: EntryKind::File,
            size_bytes: stored.bytes.len() as u64,
            modified: None,
            version: Some(stored.version()),
            fingerprint: Fingerprint::new(&[stored.write], i64::try_from(stored.write).unwrap_or(i64::MAX)),
        }
    }
}

#[async_trait]
impl Backend for InMemory {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        let tree = self.tree();
        tree.expect_not_directory(Operation::Read, locator)?;
        match tree.objects.get(locator) {
            Some(stored) => Ok(Object { bytes: stored.bytes.clone(), version: stored.version() }),
            None => Err(nothing_there(Operation::Read, locator)),
        }
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        let mut tree = self.tree();
        tree.expect_not_directory(Operation::Write, locator)?;
        tree.check(Operation::Write, locator, &condition)?;
        if !tree.objects.contains_key(locator) {
            tree.make_way(Operation::Write, locator, None)?;
        }
        Ok(Written { version: tree.put(locator, bytes), displaced: None })
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, _durability: Durability) -> Result<Appended> {
        let mut tree = self.tree();
        tree.expect_not_directory(Operation::Append, locator)?;
        let before = match tree.objects.get(locator) {
            Some(stored) => stored.bytes.clone(),
            None => {
                tree.make_way(Operation::Append, locator, None)?;
                Bytes::new()
            }
        };
        let mut whole = BytesMut::with_capacity(before.len() + bytes.len());
        whole.extend_from_slice(&before);
        whole.extend_from_slice(&bytes);
        tree.put(locator, whole.freeze());
        Ok(Appended { offset: before.len() as u64, displaced: None })
    }

    async fn barrier(&self) -> Result<()> {
        Ok(())
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        let mut entries = self.tree().children(locator);
        entries.retain(|entry| !entry.locator.is_reserved() || locator.is_reserved());
        Ok(Listing { entries, odd: Vec::new() })
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        let tree = self.tree();
        let start = match after {
            Some(after) => Bound::Excluded(after.clone()),
            None => Bound::Unbounded,
        };
        let infos = tree
            .objects
            .range((start, Bound::Unbounded))
            .filter(|(locator, _)| locator.is_within(prefix))
            .filter(|(locator, _)| !locator.is_reserved() || prefix.is_reserved())
            .map(|(locator, stored)| tree.info(locator, stored));
        pages_of(infos.collect(), Vec::new())
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        let tree = self.tree();
        match tree.kind(locator) {
            Some(EntryKind::File) => Ok(tree.info(locator, &tree.objects[locator])),
            Some(EntryKind::Directory) => Ok(Info {
                locator: locator.clone(),
                kind: EntryKind::Directory,
                size_bytes: 0,
                modified: None,
                version: None,
                fingerprint: Fingerprint::new(&[], i64::MIN),
            }),
            None => Err(nothing_there(Operation::Info, locator)),
        }
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        Ok(TouchMark::new(i64::try_from(self.tree().writes).unwrap_or(i64::MAX).saturating_add(1)))
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        if locator.is_root() {
            return Err(root_refused(Operation::Delete));
        }
        let mut tree = self.tree();
        if tree.kind(locator) == Some(EntryKind::Directory) {
            if matches!(condition, Condition::Matches(_)) {
                return Err(is_a_directory(Operation::Delete, locator));
            }
            if !tree.children(locator).is_empty() {
                let message = "the directory is not empty";
                return Err(Error::new(ErrorKind::Invalid, Operation::Delete, locator, message));
            }
            tree.remove(locator);
            return Ok(());
        }
        tree.check(Operation::Delete, locator, &condition)?;
        tree.remove(locator);
        Ok(())
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        let mut tree = self.tree();
        check_rename(from, to)?;
        let Some(kind) = tree.kind(from) else {
            return Err(nothing_there(Operation::Rename, from));
        };
        if tree.kind(to).is_some() {
            return Err(condition_failed(Operation::Rename, to, &Condition::Absent));
        }
        tree.make_way(Operation::Rename, to, Some(from))?;
        if kind == EntryKind::File {
            if let Some(stored) = tree.remove(from) {
                tree.add_object(to.clone(), stored);
            }
            return Ok(());
        }
        let moved = |locator: &Locator| locator.below(from).and_then(|rest| to.join(&rest).ok());
        let pairs: Vec<(Locator, Locator)> = tree
            .objects
            .keys()
            .chain(&tree.directories)
            .filter_map(|locator| Some((locator.clone(), moved(locator)?)))
            .collect();
        let inside = tree.objects.keys().chain(&tree.directories).filter(|l| l.is_within(from)).count();
        if pairs.len() != inside {
            let message = "a name below it would become too long";
            return Err(Error::new(ErrorKind::Invalid, Operation::Rename, from, message));
        }
        for (old, new) in pairs {
            match tree.remove(&old) {
                Some(stored) => tree.add_object(new, stored),
                None => tree.add_directory(new),
            }
        }
        Ok(())
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        let mut tree = self.tree();
        for place in [one, other] {
            tree.expect_not_directory(Operation::Exchange, place)?;
            if !tree.objects.contains_key(place) {
                return Err(nothing_there(Operation::Exchange, place));
            }
        }
        if one != other
            && let (Some(first), Some(second)) = (tree.remove(one), tree.remove(other))
        {
            tree.add_object(one.clone(), second);
            tree.add_object(other.clone(), first);
        }
        Ok(())
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        let mut tree = self.tree();
        match tree.kind(locator) {
            Some(EntryKind::Directory) => Ok(()),
            Some(EntryKind::File) => {
                Err(Error::new(ErrorKind::Invalid, Operation::Mkdir, locator, "a file has that name"))
            }
            None => {
                tree.make_way(Operation::Mkdir, locator, None)?;
                tree.add_directory(locator.clone());
                Ok(())
            }
        }
    }

    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        check_lock_name(name)?;
        if let Some(held) = Locks::take(&self.locks, name, Duration::ZERO) {
            return Ok(Guard::new(held));
        }
        let (locks, owned) = (self.locks.clone(), name.to_owned());
        match offload(move || Locks::take(&locks, &owned, wait)).await {
            Some(held) => Ok(Guard::new(held)),
            None => Err(lock_busy(name, wait)),
        }
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::None
    }
}

#[derive(Debug, Default)]
struct Locks {
    taken: Mutex<HashSet<String>>,
    released: Condvar,
}

impl Locks {
    fn take(locks: &Arc<Locks>, name: &str, wait: Duration) -> Option<MemoryLock> {
        let deadline = Instant::now() + wait;
        let mut taken = locks.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while taken.contains(name) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            (taken, _) = locks.released.wait_timeout(taken, left).unwrap_or_else(PoisonError::into_inner);
        }
        taken.insert(name.to_owned());
        Some(MemoryLock { locks: locks.clone(), name: name.to_owned() })
    }
}

struct MemoryLock {
    locks: Arc<Locks>,
    name: String,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.locks.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
        self.locks.released.notify_all();
    }
}
