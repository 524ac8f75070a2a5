//! Writes the mirror: the objects that are not up to date, then the manifest.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Condition, Error as StoreError, ErrorKind, Locator, Version};

use super::objects::{Outcome, Unanswered};
use super::{MAX_ROUNDS, Mirrored, manifest_locator};
use crate::history::archive;
use crate::ids::{ContentHash, Timestamp};
use crate::log::{Commit, layout};
use crate::manifest::Manifest;
use crate::sync::remote::At;
use crate::sync::state::{Advance, BaseLine};
use crate::sync::{Context, Replica, SyncError};

/// The manifest as we read it, with its version.
pub(super) struct ReadManifest {
    pub(super) manifest: Manifest,
    version: Option<Version>,
}

/// The result of writing the manifest.
enum Publication {
    /// The manifest is up to date.
    Done,
    /// Another device wrote the manifest first.
    Outrun,
    /// The remote gave no answer: only reading the manifest shows if it was written.
    Unanswered(StoreError),
}

impl Replica {
    /// Brings the objects and the manifest up to date with the position that this replica has applied. Checks the objects that the last
    /// reconcile found to differ from the manifest, too.
    ///
    /// Does nothing until other devices can read that position in a log ([`is_told`](crate::sync::Origins::is_told)); a later call writes then.
    pub async fn mirror(&mut self, context: Context<'_>) -> Result<Mirrored, SyncError> {
        let mut mirrored = Mirrored::default();
        if !self.is_told(context) {
            return Ok(mirrored);
        }
        self.remove_merged_copies(context).await?;
        let mut unanswered = Unanswered::default();
        for _ in 0..MAX_ROUNDS {
            let Some(index) = self.read_manifest(context).await? else {
                mirrored.foreign.push(manifest_locator());
                return Ok(mirrored);
            };
            match self.write_mirror(context, index, &self.stale_objects, &mut mirrored).await? {
                Publication::Done => {
                    self.stale_objects.clear();
                    self.forget_replaced_edits(&mirrored).await?;
                    return Ok(mirrored);
                }
                Publication::Outrun => unanswered = Unanswered::default(),
                Publication::Unanswered(error) => {
                    unanswered.note(error)?;
                    unanswered.give_up()?;
                }
            }
            mirrored.foreign.clear();
            mirrored.refused.clear();
        }
        // Another device writes the mirror at the moment, with the same content.
        Ok(mirrored)
    }

    /// Forgets imported edits that the mirror does not hold any more: a user may make the same edit again.
    async fn forget_replaced_edits(&mut self, mirrored: &Mirrored) -> Result<(), SyncError> {
        let known = &self.state.known;
        let (Some(store), Some(head)) = (known.store, known.head.clone()) else { return Ok(()) };
        let ended = known.foreign.iter().filter_map(|(locator, hash)| {
            let now = known.log.files().get(locator);
            let now_hash = now.map(|content| content.hash).unwrap_or(ContentHash::of(b""));
            let has_ended = *hash != now_hash && !mirrored.foreign.contains(locator);
            has_ended.then(|| BaseLine {
                absent: known.absent.get(locator).copied(),
                before: known.before.get(locator).copied(),
                held: known.held.contains(locator),
                foreign: Some(now_hash),
                ..BaseLine::new(locator.as_str(), now)
            })
        });
        let bases: Vec<BaseLine> = ended.collect();
        if bases.is_empty() {
            return Ok(());
        }
        let mark = known.log.mark();
        let advance = Advance { store, head, mark, attempt: None, joined: None, bases };
        self.state.advance(&advance).await.map_err(SyncError::Local)
    }

    /// Reads the manifest; `None` if `manifest.json` is the file of another program.
    pub(super) async fn read_manifest(
        &self,
        context: Context<'_>,
    ) -> Result<Option<ReadManifest>, SyncError> {
        let Some(At { bytes, version }) = self.remote.read(context.patience, &manifest_locator()).await?
        else {
            return Ok(Some(ReadManifest { manifest: Manifest::default(), version: None }));
        };
        match Manifest::decode(&bytes) {
            Ok(manifest) if manifest.store.is_none_or(|store| Some(store) == self.state.known.store) => {
                Ok(Some(ReadManifest { manifest, version }))
            }
            Err(why) if why.is_newer() => Err(SyncError::Damaged { what: "manifest.json".to_owned(), why }),
            Err(_) if !Manifest::is_remnant(&bytes, self.state.known.store) => Ok(None),
            // The manifest is of another store or damaged. We compare all objects and write a new one.
            Ok(_) | Err(_) => Ok(Some(ReadManifest { manifest: Manifest::default(), version })),
        }
    }

    /// Writes the objects that are not up to date, then the manifest.
    async fn write_mirror(
        &self,
        context: Context<'_>,
        index: ReadManifest,
        stale_objects: &BTreeSet<Locator>,
        mirrored: &mut Mirrored,
    ) -> Result<Publication, SyncError> {
        let Some(head) = &self.state.known.head else { return Ok(Publication::Done) };
        let ReadManifest { manifest, version } = index;
        if let Some(ahead) = manifest.position.filter(|position| *position > head.position)
            && self.remote.read(context.patience, &layout::commit(ahead)).await?.is_some()
        {
            // This device is behind and leaves the manifest alone. A manifest ahead of the log is damaged.
            return Ok(Publication::Done);
        }
        let files = self.state.known.log.files();
        let mut entries = manifest.entries.clone();
        let is_stale = |locator: &Locator| {
            let now = files.get(locator).map(|content| content.hash);
            let is_written = manifest.entries.get(locator).is_some_and(|entry| entry.hash == now);
            // Another replica has the content of a file outside of our scope, and writes it.
            let is_here = now.is_none() || self.scope.contains(locator);
            is_here && (!is_written || now.is_none() || stale_objects.contains(locator))
        };
        let named = manifest.entries.keys().chain(stale_objects).cloned();
        let all: BTreeSet<Locator> = files.keys().chain(named).collect();
        let mut stale: Vec<&Locator> = all.iter().filter(|locator| is_stale(locator)).collect();
        mirrored.left = stale.len().saturating_sub(context.mirrored_at_once);
        stale.truncate(context.mirrored_at_once);
        // Remove before writing: a new object may need the name of an old one. The order does not matter otherwise.
        let (removed, written): (Vec<&Locator>, Vec<&Locator>) =
            stale.iter().partition(|locator| !files.contains_key(**locator));
        let times = self.times(context, &written, &manifest).await?;
        let mut outcomes = self.write_objects(context, &removed, &manifest, &times).await?;
        outcomes.extend(self.write_objects(context, &written, &manifest, &times).await?);
        for (locator, outcome) in removed.iter().chain(&written).zip(outcomes) {
            // We have not fetched the content; a device that has it writes the object.
            let Some(outcome) = outcome else { continue };
            match outcome {
                Outcome::Done(Some(entry)) => {
                    mirrored.written += 1;
                    entries.insert((*locator).clone(), entry);
                }
                Outcome::Done(None) => {
                    mirrored.removed += 1;
                    entries.remove(*locator);
                }
                // The entry stays: it names the version that the user edited.
                Outcome::Foreign => mirrored.foreign.push((*locator).clone()),
                Outcome::Refused => {
                    entries.remove(*locator);
                    mirrored.refused.extend(files.contains_key(*locator).then(|| (*locator).clone()));
                }
            }
        }
        let is_current = stale.is_empty() || manifest.position == Some(head.position);
        if is_current && entries == manifest.entries && version.is_some() {
            return Ok(Publication::Done);
        }
        let store = self.state.known.store;
        // While stale objects are left, the mirror does not show the newest position.
        let position = if mirrored.left == 0 { Some(head.position) } else { manifest.position };
        let manifest = Manifest { store, position, updated_at: Some(context.clock.now()), entries };
        let condition = version.map_or(Condition::Absent, Condition::Matches);
        match self.remote.backend().write(&manifest_locator(), manifest.encode(), condition).await {
            Ok(_) => Ok(Publication::Done),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Publication::Outrun),
            Err(error) => Ok(Publication::Unanswered(error)),
        }
    }

    /// Returns the time of each file's last change, if we know it. Sources, in this order:
    ///
    /// 1. The manifest, for a file that it has with the same content.
    /// 2. The commits that this replica just applied or published.
    /// 3. The archive on this device.
    async fn times(
        &self,
        context: Context<'_>,
        locators: &[&Locator],
        manifest: &Manifest,
    ) -> Result<BTreeMap<Locator, Timestamp>, SyncError> {
        let mut times = BTreeMap::new();
        let mut wanted = BTreeMap::new();
        for locator in locators {
            let Some(content) = self.state.known.log.files().get(*locator) else { continue };
            let entry = manifest.entries.get(*locator).filter(|entry| entry.hash == Some(content.hash));
            match entry.and_then(|entry| entry.mtime) {
                Some(time) => drop(times.insert((*locator).clone(), time)),
                None => drop(wanted.insert((*locator).clone(), content.hash)),
            }
        }
        for recent in self.recent.iter().rev() {
            let commit = recent.bytes.as_ref().and_then(|bytes| Commit::decode(bytes).ok());
            if let Some(commit) = commit {
                times.extend(archive::times_in(&commit, &mut wanted));
            }
        }
        if let (Some(state), Some(store)) = (context.archive, self.state.known.store) {
            times.extend(archive::times(state, store, wanted).await.map_err(SyncError::Local)?);
        }
        Ok(times)
    }
}
