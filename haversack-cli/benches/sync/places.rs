//! The storages of devices and of their remote.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use haversack::clock::Clock;
use haversack::home::{self, Home, Meeting, Round, Work};
use haversack::ids::{Ids, Timestamp};
use haversack::store::{Backend, DeviceLocal, InMemory};
use haversack::sync::{Author, Context, Intervals, Mirror, Report};
use haversack_bench::Outcome;

use crate::counted::Counted;

/// A kind of place for the files, states and remotes of devices.
pub(crate) struct Places {
    pub(crate) name: String,
    root: Option<PathBuf>,
    next: AtomicU64,
}

impl Places {
    pub(crate) fn in_memory() -> Places {
        Places { name: "memory".to_owned(), root: None, next: AtomicU64::new(0) }
    }

    pub(crate) fn directories(root: &Path, name: &str) -> Places {
        Places { name: name.to_owned(), root: Some(root.to_owned()), next: AtomicU64::new(0) }
    }

    /// Returns a new, empty place.
    pub(crate) fn make(&self) -> Outcome<Arc<dyn Backend>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Ok(match &self.root {
            None => Arc::new(InMemory::new()),
            Some(root) => {
                Arc::new(DeviceLocal::open(root.join(format!("place-{number}")), root.join("locks"))?)
            }
        })
    }

    /// Returns a new remote that counts what is asked of it.
    pub(crate) fn remote(&self) -> Outcome<Arc<Counted>> {
        Ok(Arc::new(Counted::new(self.make()?)))
    }

    /// Returns a device without files, whose own storage is in memory: preparations need not wait for a disk.
    pub(crate) fn quick_device(&self, remote: &Arc<Counted>) -> Device {
        let make = || Arc::new(InMemory::new());
        Device { files: make(), state: make(), remote: remote.clone() }
    }

    /// Returns a device without files.
    pub(crate) fn device(&self, remote: &Arc<Counted>) -> Outcome<Device> {
        Ok(Device { files: self.make()?, state: self.make()?, remote: remote.clone() })
    }
}

/// One device.
pub(crate) struct Device {
    pub(crate) files: Arc<dyn Backend>,
    state: Arc<dyn Backend>,
    remote: Arc<Counted>,
}

struct Numbers(AtomicU64);

impl Ids for Numbers {
    fn next(&self) -> [u8; 16] {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)).to_be_bytes()
    }
}

struct Midnight;

impl Clock for Midnight {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}

static NUMBERS: Numbers = Numbers(AtomicU64::new(1));

impl Device {
    /// Does one round of the device's home, as a short-lived process does.
    pub(crate) fn sync(&self) -> Outcome<Report> {
        self.sync_folding(Intervals::default())
    }

    /// Does the same, and folds the log as often as is said.
    pub(crate) fn sync_folding(&self, intervals: Intervals) -> Outcome<Report> {
        let author = Author { device: "laptop".to_owned(), agent: None, session: None };
        let home = Home::new("laptop", self.files.clone(), self.state.clone(), Vec::new());
        let context = Context { intervals, ..Context::new(&Midnight, &NUMBERS, &author) };
        let round = Round { mirror: Mirror::Off, ..Round::new(Work::Sync) };
        let meeting = Meeting::log(self.remote.clone());
        Ok(haversack::store::block_on(home::sync(&home, &meeting, context, &round))?.sync)
    }
}
