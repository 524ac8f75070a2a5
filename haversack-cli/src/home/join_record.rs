//! The state before a join, so that the join can be undone: `joined.toml`, and plain copies of the files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use haversack::ids::{ContentHash, Position, Timestamp};
use haversack::store::{Backend, BackendExt, Bytes, Condition, DeviceLocal, ErrorKind, Locator, block_on};
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::records;
use crate::settings::Settings;

/// A join that can be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Joined {
    /// The remote.
    pub(crate) url: String,
    /// This machine's name there.
    pub(crate) device: String,
    /// When.
    pub(crate) time: Timestamp,
    /// The positions that this machine published with it.
    #[serde(default)]
    pub(crate) published: Vec<Position>,
    /// The last position that was applied.
    pub(crate) position: Option<Position>,
}

fn place(settings: &Settings) -> PathBuf {
    settings.state().join("joined.toml")
}

fn copies(settings: &Settings) -> Result<Arc<dyn Backend>, CommandError> {
    let directory = settings.store().before_join();
    Ok(Arc::new(DeviceLocal::open(directory, settings.locks())?))
}

impl Joined {
    /// Returns the join of a home that can be taken back, if there was one.
    pub(crate) fn of(settings: &Settings) -> Result<Option<Joined>, CommandError> {
        records::read(&place(settings), "Remove it; the join can not be taken back then")
    }

    pub(crate) fn save(&self, settings: &Settings) -> Result<(), CommandError> {
        records::write(&place(settings), self, records::Weight::Durable)
    }

    /// Forgets the join and the copies.
    pub(crate) fn forget(settings: &Settings) -> Result<(), CommandError> {
        records::remove(&place(settings))?;
        forget_copies(settings, |_| true)
    }
}

/// Keeps copies of files, in place of those of an earlier join. Copies one file at a time, because all of them may not fit into memory.
pub(crate) fn keep(
    settings: &Settings,
    files: &dyn Backend,
    which: &BTreeMap<Locator, ContentHash>,
) -> Result<(), CommandError> {
    forget_copies(settings, |locator| !which.contains_key(locator))?;
    let copies = copies(settings)?;
    block_on(async {
        for locator in which.keys() {
            let bytes = match files.read(locator).await {
                Ok(object) => object.bytes,
                // The user deleted it a moment ago.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            let _ = copies.write(locator, bytes, Condition::Any).await?;
        }
        Ok(())
    })
}

/// Deletes the copies that `which` selects.
fn forget_copies(settings: &Settings, which: impl Fn(&Locator) -> bool) -> Result<(), CommandError> {
    let copies = copies(settings)?;
    block_on(async {
        for locator in copies.list_all(&Locator::root()).await?.iter().filter(|locator| which(locator)) {
            copies.delete(locator, Condition::Any).await?;
        }
        Ok(())
    })
}

/// Returns the copies.
pub(crate) fn kept(settings: &Settings) -> Result<BTreeMap<Locator, Bytes>, CommandError> {
    let copies = copies(settings)?;
    block_on(async { all(&*copies).await })
}

/// Returns the hash of every file of a backend.
pub(crate) async fn hashes(files: &dyn Backend) -> Result<BTreeMap<Locator, ContentHash>, CommandError> {
    let mut hashes = BTreeMap::new();
    for locator in files.list_all(&Locator::root()).await? {
        let hash = ContentHash::of(&files.read(&locator).await?.bytes);
        hashes.insert(locator, hash);
    }
    Ok(hashes)
}

/// Returns every file of a backend.
pub(crate) async fn all(files: &dyn Backend) -> Result<BTreeMap<Locator, Bytes>, CommandError> {
    let mut all = BTreeMap::new();
    for locator in files.list_all(&Locator::root()).await? {
        let object = files.read(&locator).await?;
        all.insert(locator, object.bytes);
    }
    Ok(all)
}
