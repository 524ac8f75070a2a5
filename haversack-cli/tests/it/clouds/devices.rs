//! Devices at the engine's level: files and state in memory, the remote a cloud.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack::log::{Commit, layout};
use haversack::store::{Backend, BackendExt, Bytes, Condition, InMemory, Locator, block_on};
use haversack::sync::{Author, Context, Replica, Report, SyncError};
use haversack_system::{Backoff, RandomIds, SystemClock};

use super::Place;

/// A device with its own way to the remote.
pub(super) struct Device {
    pub(super) name: String,
    files: Arc<InMemory>,
    state: Arc<InMemory>,
    remote: Arc<dyn Backend>,
}

pub(super) fn at(key: &str) -> Locator {
    Locator::parse(key).expect("valid")
}

impl Device {
    pub(super) fn new(name: impl Into<String>, place: &Place) -> Device {
        Device::below(name, place, "")
    }

    /// Returns one that meets the others at another prefix.
    pub(super) fn below(name: impl Into<String>, place: &Place, prefix: &str) -> Device {
        let remote = place.open_below(prefix);
        Device { name: name.into(), files: Arc::default(), state: Arc::default(), remote }
    }

    pub(super) fn read(&self, path: &str) -> Option<String> {
        block_on(self.files.read_text(&at(path))).expect("text")
    }

    pub(super) fn write(&self, path: &str, text: impl Into<Bytes>) {
        let _ = block_on(self.files.write(&at(path), text.into(), Condition::Any)).expect("written");
    }

    pub(super) fn delete(&self, path: &str) {
        block_on(self.files.delete(&at(path), Condition::Any)).expect("deleted");
    }

    /// Adds to the end of a file, as an agent does.
    pub(super) fn append(&self, path: &str, text: &str) {
        let before = self.read(path).unwrap_or_default();
        self.write(path, before + text);
    }

    pub(super) fn sync(&self) -> Result<Report, SyncError> {
        let author = Author { device: self.name.clone(), ..Author::default() };
        block_on(async {
            let mut replica =
                Replica::open(self.files.clone(), self.state.clone(), self.remote.clone(), &RandomIds)
                    .await?;
            let context = Context::new(&SystemClock, &RandomIds, &author);
            replica.sync(Context { patience: &Backoff::new(), ..context }).await
        })
    }

    /// Syncs until it goes through; the line may be bad.
    pub(super) fn synced(&self) -> Report {
        let mut troubles = Vec::new();
        while troubles.len() < 20 {
            match self.sync() {
                Ok(report) => return report,
                Err(trouble @ (SyncError::Remote(_) | SyncError::Outrun)) => {
                    troubles.push(format!("{trouble:?}"))
                }
                Err(trouble) => panic!("{}: {trouble:?}", self.name),
            }
        }
        panic!("{}: {troubles:#?}", self.name);
    }

    /// Returns the user's files.
    pub(super) fn files(&self) -> BTreeMap<String, String> {
        let all = block_on(self.files.list_all(&Locator::root())).expect("listed");
        all.into_iter().map(|place| (place.to_string(), self.read(place.as_str()).expect("there"))).collect()
    }
}

/// Lets all devices sync until they should have everything, and returns the files that they have then.
pub(super) fn settle(devices: &[Device]) -> BTreeMap<String, String> {
    for _ in 0..3 {
        for device in devices {
            device.synced();
        }
    }
    let files = devices[0].files();
    for device in devices {
        let report = device.synced();
        assert_eq!((report.published, report.taken), (0, 0), "{} is quiet", device.name);
        assert_eq!(device.files(), files, "{}", device.name);
    }
    files
}

/// Returns every commit of the log, in order.
pub(super) fn log(place: &Place) -> Vec<Commit> {
    let backend = place.open();
    let mut commits: Vec<Commit> = Vec::new();
    loop {
        let next = commits.last().map_or(Some(haversack::ids::Position::FIRST), |last| last.position.next());
        match block_on(backend.read(&layout::commit(next.expect("far away")))) {
            Ok(object) => commits.push(Commit::decode(&object.bytes).expect("whole")),
            Err(_) => return commits,
        }
    }
}
