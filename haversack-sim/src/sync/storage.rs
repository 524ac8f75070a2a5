//! The storage of a device's files and state: in memory, or in `device-local` on a disk that crashes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haversack_store::{Backend, Bytes, Error, ErrorKind, Locator, Operation, Result};

use super::crashing::Crashing;
use super::memory::{self, Memory, Numbers};
use crate::random::Random;

/// How a user's editor saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saving {
    /// It writes into the file.
    InPlace,
    /// It puts another file in its place.
    Replacing,
}

/// A storage; clones are handles of one.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    Memory(Arc<Memory>),
    Crashing(Crashing),
}

/// The operations of a process under way in a storage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hands(pub(super) Arc<memory::Hands>);

impl Storage {
    pub(crate) fn memory(numbers: Arc<Numbers>, is_full: Arc<AtomicBool>) -> Storage {
        Storage::Memory(Memory::new(numbers, is_full))
    }

    pub(crate) fn crashing(seed: u64, is_full: Arc<AtomicBool>) -> Storage {
        Storage::Crashing(Crashing::new(seed, is_full))
    }

    /// Lets a version be told by the content, as in a folder.
    pub(crate) fn versioned_by_content(self) -> Storage {
        match self {
            Storage::Memory(memory) => Storage::Memory(memory.versioned_by_content()),
            // It is so anyway.
            Storage::Crashing(crashing) => Storage::Crashing(crashing),
        }
    }

    /// Returns another storage of the same sort with nothing in it.
    pub(crate) fn empty(&self, is_full: Arc<AtomicBool>) -> Storage {
        match self {
            Storage::Memory(memory) => Storage::Memory(memory.empty(is_full)),
            Storage::Crashing(_) => Storage::crashing(0, is_full),
        }
    }

    /// Returns another storage with the same content, without held locks.
    pub(crate) fn copy(&self, is_full: Arc<AtomicBool>) -> Storage {
        match self {
            Storage::Memory(memory) => Storage::Memory(memory.copy(is_full)),
            Storage::Crashing(crashing) => Storage::Crashing(crashing.copy(is_full)),
        }
    }

    /// Opens it for a process.
    pub(crate) fn open(&self, hands: &Hands) -> Result<Arc<dyn Backend>> {
        match self {
            Storage::Memory(memory) => Ok(Arc::new(memory::Stepped::new(memory.clone(), hands.0.clone()))),
            Storage::Crashing(crashing) => crashing.open(),
        }
    }

    /// Returns everything that is there, our own names included.
    pub(crate) fn all(&self) -> BTreeMap<Locator, Bytes> {
        match self {
            Storage::Memory(memory) => memory.all(),
            Storage::Crashing(crashing) => crashing.all(),
        }
    }

    /// Returns a file as a user reads it.
    pub(crate) fn text(&self, locator: &Locator) -> Option<String> {
        match self {
            Storage::Memory(memory) => memory.text(locator),
            Storage::Crashing(crashing) => crashing.text(locator),
        }
    }

    /// Lets a user save a file.
    pub(crate) fn save(&self, locator: &Locator, text: Bytes, how: Saving) {
        match self {
            Storage::Memory(memory) => memory.save(locator, text, how),
            Storage::Crashing(crashing) => crashing.save(locator, &text, how),
        }
    }

    /// Lets a user delete a file.
    pub(crate) fn remove(&self, locator: &Locator) {
        match self {
            Storage::Memory(memory) => memory.remove(locator),
            Storage::Crashing(crashing) => crashing.remove(locator),
        }
    }

    /// Lets a user rename a file.
    pub(crate) fn rename(&self, from: &Locator, to: &Locator) {
        match self {
            Storage::Memory(memory) => memory.rename(from, to),
            Storage::Crashing(crashing) => crashing.rename(from, to),
        }
    }

    /// Cuts short what was under way when its process died.
    pub(crate) fn tear(&self, hands: &Hands, random: &mut Random) {
        match self {
            Storage::Memory(memory) => memory.tear(&hands.0, random),
            // It tears by itself.
            Storage::Crashing(_) => {}
        }
    }
}

/// Refuses what needs room on a full disk.
pub(super) fn room(is_full: &AtomicBool, operation: Operation, locator: &Locator) -> Result<()> {
    match is_full.load(Ordering::Relaxed) {
        true => Err(Error::new(ErrorKind::Full, operation, locator, "no space is left")),
        false => Ok(()),
    }
}
