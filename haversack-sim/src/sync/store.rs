//! The remote as different stores are: how they answer a lost race, what they call a version, what they list.
//!
//! | model | a lost race | a version | besides |
//! |---|---|---|---|
//! | Azure | 409, the condition does not hold | one per write | |
//! | S3 | 412, or 409 that says nothing about the outcome | told by the content | 503 as "slow down" |
//! | GCS | 412 | one per write | 429 |
//! | a directory | the name is taken | told by the content | answers at once, or the disk is not there |

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::{Duration, UNIX_EPOCH};

use haversack_store::{
    Bytes, Condition, Entry, EntryKind, Error, ErrorKind, Fingerprint, Info, Listing, Locator, Object,
    Operation, Result, Version, Written,
};

use super::weather::Weather;
use crate::random::Random;

/// The imitated storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    Azure,
    S3,
    Gcs,
    Directory,
}

impl Model {
    /// Every model.
    const ALL: [Model; 4] = [Model::Azure, Model::S3, Model::Gcs, Model::Directory];

    pub(crate) fn any(random: &mut Random) -> Model {
        // Three of four schedules have a way to the remote on which something can happen.
        Model::ALL[random.between(0, Model::ALL.len() - 1)]
    }

    /// Returns what can go wrong on the way to this store.
    pub(crate) fn weather(self, weather: Weather) -> Weather {
        match self {
            Model::Azure | Model::S3 | Model::Gcs => weather,
            // Nothing is on its way to a directory: a call is done or it is not.
            Model::Directory => Weather { refused: weather.refused, ..Weather::default() },
        }
    }

    /// Returns how the store refuses a request without doing it.
    pub(crate) fn refusal(self, operation: Operation, random: &mut Random) -> (ErrorKind, &'static str) {
        let creates = operation == Operation::Write;
        match (self, random.between(0, 2)) {
            (Model::S3, 0) if creates => (ErrorKind::Unavailable, "409 conditional request conflict"),
            (Model::S3, 0 | 1) => (ErrorKind::Busy, "503 slow down"),
            (Model::Gcs, 0 | 1) => (ErrorKind::Busy, "429 too many requests"),
            (Model::Azure, 0 | 1) => (ErrorKind::Busy, "503 server busy"),
            (Model::Directory, _) => (ErrorKind::Busy, "the lock is taken"),
            (Model::Azure | Model::S3 | Model::Gcs, _) => (ErrorKind::Unavailable, "500 internal error"),
        }
    }
}

/// The remote of all devices.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) model: Model,
    objects: BTreeMap<Locator, Stored>,
    writes: u64,
    times: Times,
}

/// Tells if the store tells when an object was written: its clock counts a second for every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Told,
    Unknown,
}

#[derive(Debug)]
struct Stored {
    bytes: Bytes,
    write: u64,
}

impl Store {
    pub(crate) fn new(model: Model, times: Times) -> Store {
        Store { model, objects: BTreeMap::new(), writes: 0, times }
    }

    fn version(&self, stored: &Stored) -> Version {
        match self.model {
            Model::Azure | Model::Gcs => Version::new(stored.write.to_string()),
            Model::S3 | Model::Directory => Version::of_content(&stored.bytes),
        }
    }

    pub(crate) fn read(&self, locator: &Locator) -> Result<Object> {
        match self.objects.get(locator) {
            Some(stored) => Ok(Object { bytes: stored.bytes.clone(), version: self.version(stored) }),
            None => Err(nothing_there(Operation::Read, locator)),
        }
    }

    pub(crate) fn write(
        &mut self,
        locator: &Locator,
        bytes: Bytes,
        condition: &Condition,
        random: &mut Random,
    ) -> Result<Written> {
        self.check(Operation::Write, locator, condition, random)?;
        self.writes += 1;
        let stored = Stored { bytes, write: self.writes };
        let version = self.version(&stored);
        self.objects.insert(locator.clone(), stored);
        Ok(Written { version, displaced: None })
    }

    pub(crate) fn delete(
        &mut self,
        locator: &Locator,
        condition: &Condition,
        random: &mut Random,
    ) -> Result<()> {
        self.check(Operation::Delete, locator, condition, random)?;
        self.objects.remove(locator);
        Ok(())
    }

    fn check(
        &self,
        operation: Operation,
        locator: &Locator,
        condition: &Condition,
        random: &mut Random,
    ) -> Result<()> {
        let there = self.objects.get(locator);
        let holds = match condition {
            Condition::Any => true,
            Condition::Absent => there.is_none(),
            Condition::Matches(version) => there.is_some_and(|stored| self.version(stored) == *version),
        };
        if holds {
            return Ok(());
        }
        let (kind, message) = match self.model {
            Model::Azure => (ErrorKind::Conflict, "409 it is there already"),
            Model::S3 if random.between(0, 3) == 0 => {
                (ErrorKind::Unavailable, "409 conditional request conflict")
            }
            Model::S3 | Model::Gcs => (ErrorKind::Conflict, "412 the condition does not hold"),
            Model::Directory => (ErrorKind::Conflict, "the name is taken"),
        };
        Err(Error::new(kind, operation, locator, message))
    }

    pub(crate) fn info(&self, locator: &Locator) -> Result<Info> {
        match self.objects.get(locator) {
            Some(stored) => Ok(self.described(locator, stored)),
            None => Err(nothing_there(Operation::Info, locator)),
        }
    }

    fn described(&self, locator: &Locator, stored: &Stored) -> Info {
        let version = self.version(stored);
        Info {
            locator: locator.clone(),
            kind: EntryKind::File,
            size_bytes: stored.bytes.len() as u64,
            modified: match self.times {
                Times::Told => Some(UNIX_EPOCH + Duration::from_secs(stored.write)),
                Times::Unknown => None,
            },
            fingerprint: Fingerprint::of_version(&version),
            version: Some(version),
        }
    }

    /// Returns the next few objects below `prefix`, without the newest `missed` writes.
    pub(crate) fn page(
        &self,
        prefix: &Locator,
        after: Option<&Locator>,
        missed: u64,
        most: usize,
    ) -> Vec<Info> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let listed = self
            .objects
            .range::<Locator, _>((start, Bound::Unbounded))
            .filter(|(locator, _)| locator.is_within(prefix))
            .filter(|(locator, _)| !locator.is_reserved() || prefix.is_reserved())
            .filter(|(_, stored)| stored.write + missed <= self.writes);
        listed.take(most).map(|(locator, stored)| self.described(locator, stored)).collect()
    }

    /// Returns what is right below `directory`, without the newest `missed` writes.
    pub(crate) fn children(&self, directory: &Locator, missed: u64) -> Listing {
        let mut entries = BTreeSet::new();
        for info in self.page(directory, None, missed, usize::MAX) {
            let (mut at, mut kind) = (info.locator, EntryKind::File);
            while let Some(parent) = at.parent() {
                if parent == *directory {
                    entries.insert(Entry { locator: at, kind });
                    break;
                }
                (at, kind) = (parent, EntryKind::Directory);
            }
        }
        Listing { entries: entries.into_iter().collect(), odd: Vec::new() }
    }

    /// Takes everything out.
    pub(crate) fn take(&mut self) -> BTreeMap<Locator, Bytes> {
        let objects = std::mem::take(&mut self.objects).into_iter();
        objects.map(|(locator, stored)| (locator, stored.bytes)).collect()
    }

    /// Returns everything below `prefix`, as it is.
    pub(crate) fn all(&self, prefix: &Locator) -> impl Iterator<Item = (&Locator, &Bytes)> {
        let within = self.objects.iter().filter(|(locator, _)| locator.is_within(prefix));
        within.map(|(locator, stored)| (locator, &stored.bytes))
    }
}

fn nothing_there(operation: Operation, locator: &Locator) -> Error {
    Error::new(ErrorKind::NotFound, operation, locator, "nothing is there")
}
