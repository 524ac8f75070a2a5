//! The tiers of files: the owner of their truth, and the permission to sync. And a look for changes.
//!
//! Source files are the truth. What is derived from them can be rebuilt, and of that only the shared
//! abstracts may be carried to other machines: a database that something replicates file by file breaks.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use futures_lite::StreamExt;

use crate::backend::{Backend, EntryKind};
use crate::error::{ErrorKind, Result};
use crate::locator::Locator;
use crate::version::{Fingerprint, Version};

/// The owner of a tree's truth, and the permission to replicate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The files people and agents write.
    Source,
    /// Derived from the source, useful everywhere: summaries and abstracts.
    SharedAbstracts,
    /// Derived from the source, of this device only: the search index.
    LocalIndex,
}

impl Tier {
    /// Returns true if something outside may replicate this tier.
    pub fn syncs(self) -> bool {
        match self {
            Tier::Source | Tier::SharedAbstracts => true,
            Tier::LocalIndex => false,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Tier::Source => "source",
            Tier::SharedAbstracts => "shared-abstracts",
            Tier::LocalIndex => "local-index",
        })
    }
}

/// Keeps a derived tier true to its source.
#[async_trait]
pub trait DerivedMaintenance: Send + Sync {
    /// Rebuilds a derived tier from the source alone.
    async fn reindex(&self, tier: Tier) -> Result<()>;

    /// Returns the changes in the source since `known` was taken.
    ///
    /// Modification times are a hint, content decides: see [`look_again`].
    async fn changed_since(&self, known: &Sightings) -> Result<Changes>;
}

/// The last look at a tree, so that the next look reads only files that may have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sightings {
    seen: BTreeMap<Locator, Sighting>,
}

/// The last look at one object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sighting {
    version: Version,
    /// Only what had settled when it was seen is worth comparing later.
    settled: Option<Fingerprint>,
}

impl Sightings {
    /// Returns the version that was seen at `locator`.
    pub fn version(&self, locator: &Locator) -> Option<&Version> {
        self.seen.get(locator).map(|sighting| &sighting.version)
    }

    /// Returns the number of objects seen.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Returns true if nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Returns every object with its version, and with its fingerprint if that can tell later whether the object changed.
    ///
    /// An index writes them down, and [`Sightings::from_iter`] reads them back.
    pub fn iter(&self) -> impl Iterator<Item = (&Locator, &Version, Option<Fingerprint>)> {
        self.seen.iter().map(|(locator, Sighting { version, settled })| (locator, version, *settled))
    }

    /// Returns the fingerprint of an object, if it can tell later whether the object changed.
    pub fn settled(&self, locator: &Locator) -> Option<Fingerprint> {
        self.seen.get(locator)?.settled
    }
}

impl FromIterator<(Locator, Version, Option<Fingerprint>)> for Sightings {
    fn from_iter<I: IntoIterator<Item = (Locator, Version, Option<Fingerprint>)>>(seen: I) -> Sightings {
        let seen =
            seen.into_iter().map(|(locator, version, settled)| (locator, Sighting { version, settled }));
        Sightings { seen: seen.collect() }
    }
}

/// The differences between two looks at a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Objects that are new.
    pub added: Vec<Locator>,
    /// Objects with other content.
    pub changed: Vec<Locator>,
    /// Objects that are gone.
    pub removed: Vec<Locator>,
    /// Objects that are there and could not be read. Their content is unknown.
    pub unread: Vec<Locator>,
    /// The present look, for the next comparison, without the unread objects.
    pub now: Sightings,
    /// The number of objects that had to be read.
    pub read: usize,
}

/// Scans everything below `prefix` and returns the changes since `known`.
///
/// An object is read unless its fingerprint is the one of last time and had settled then: a file
/// restored with an old time is seen, and one that was only touched is not reported.
pub async fn look_again(backend: &dyn Backend, prefix: &Locator, known: &Sightings) -> Result<Changes> {
    let mark = backend.touch_mark().await?;
    let mut changes = Changes::default();
    let mut pages = backend.scan(prefix, None);
    while let Some(page) = pages.next().await {
        for info in page?.infos.into_iter().filter(|info| info.kind == EntryKind::File) {
            let before = known.seen.get(&info.locator);
            let settled = info.fingerprint.is_settled(&mark).then_some(info.fingerprint);
            let version = match (before, info.version) {
                (_, Some(version)) => version,
                (Some(before), None) if before.settled == Some(info.fingerprint) => before.version.clone(),
                (_, None) => {
                    changes.read += 1;
                    match backend.read(&info.locator).await {
                        Ok(object) => object.version,
                        Err(error) if error.kind() == ErrorKind::NotFound => continue,
                        Err(_) => {
                            changes.unread.push(info.locator);
                            continue;
                        }
                    }
                }
            };
            match before {
                None => changes.added.push(info.locator.clone()),
                Some(before) if before.version != version => changes.changed.push(info.locator.clone()),
                Some(_) => {}
            }
            changes.now.seen.insert(info.locator, Sighting { version, settled });
        }
    }
    let is_gone =
        |locator: &&Locator| !changes.now.seen.contains_key(*locator) && !changes.unread.contains(*locator);
    let gone = known.seen.keys().filter(is_gone);
    changes.removed = gone.cloned().collect();
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_local_index_never_syncs() {
        let never: Vec<Tier> = [Tier::Source, Tier::SharedAbstracts, Tier::LocalIndex]
            .into_iter()
            .filter(|tier| !tier.syncs())
            .collect();
        assert_eq!(never, [Tier::LocalIndex]);
    }
}
