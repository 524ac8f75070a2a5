//! Writes the mirror: the objects that are not up to date, then the manifest.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Condition, Error as StoreError, ErrorKind, Locator, Version};

use super::objects::{Outcome, Unanswered};
use super::{MAX_ROUNDS, Mirrored, place};
use crate::history::archive;
use crate::ids::{ContentHash, Timestamp};
use crate::log::{Commit, layout};
use crate::manifest::Manifest;
use crate::sync::remote::At;
use crate::sync::state::{Advance, BaseLine};
use crate::sync::{Context, Replica, Trouble};

/// The manifest as it was read.
pub(super) struct Index {
    pub(super) manifest: Manifest,
    version: Option<Version>,
}

/// What became of the manifest.
enum Publication {
    /// It says what it should.
    Done,
    /// Another device wrote it in between.
    Outrun,
    /// The remote gave no answer: only reading it tells.
    Unanswered(StoreError),
}

impl Replica {
    /// Brings the plain objects and the manifest up to date with the position that was taken in, and looks at those that the last
    /// reconciliation found to be something else than the manifest says.
    ///
    /// Does nothing as long as others cannot read in a log what they would see ([`is_told`](super::Origins::is_told)): it is called again then.
    pub async fn mirror(&mut self, context: Context<'_>) -> Result<Mirrored, Trouble> {
        let mut mirrored = Mirrored::default();
        if !self.is_told(context) {
            return Ok(mirrored);
        }
        self.remove_taken(context).await?;
        let mut unanswered = Unanswered::default();
        for _ in 0..MAX_ROUNDS {
            let Some(index) = self.index(context).await? else {
                mirrored.foreign.push(place());
                return Ok(mirrored);
            };
            match self.mirror_once(context, index, &self.mend, &mut mirrored).await? {
                Publication::Done => {
                    self.mend.clear();
                    self.end_foreign(&mirrored).await?;
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
        // Somebody else is at it: they write what we would.
        Ok(mirrored)
    }

    /// Notes that edits which were taken in are not there any more: the same text could be put there again.
    async fn end_foreign(&mut self, mirrored: &Mirrored) -> Result<(), Trouble> {
        let known = &self.state.known;
        let (Some(store), Some(head)) = (known.store, known.head.clone()) else { return Ok(()) };
        let ended = known.foreign.iter().filter_map(|(locator, hash)| {
            let now = known.log.files().get(locator);
            let now_hash = now.map(|content| content.hash).unwrap_or(ContentHash::of(b""));
            let has_ended = *hash != now_hash && !mirrored.foreign.contains(locator);
            has_ended.then(|| BaseLine {
                elsewhere: known.elsewhere.get(locator).copied(),
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
        self.state.advance(&advance).await.map_err(Trouble::Local)
    }

    /// Reads the manifest; `None` if `manifest.json` is the file of another program.
    pub(super) async fn index(&self, context: Context<'_>) -> Result<Option<Index>, Trouble> {
        let Some(At { bytes, version }) = self.remote.read(context.patience, &place()).await? else {
            return Ok(Some(Index { manifest: Manifest::default(), version: None }));
        };
        match Manifest::decode(&bytes) {
            Ok(manifest) if manifest.store.is_none_or(|store| Some(store) == self.state.known.store) => {
                Ok(Some(Index { manifest, version }))
            }
            Err(why) if why.is_newer() => Err(Trouble::Damaged { what: "manifest.json".to_owned(), why }),
            Err(_) if !Manifest::is_remnant(&bytes, self.state.known.store) => Ok(None),
            // It is of another store, or damaged: everything is compared, and a new one is written.
            Ok(_) | Err(_) => Ok(Some(Index { manifest: Manifest::default(), version })),
        }
    }

    /// Writes the objects that are not up to date, then the manifest.
    async fn mirror_once(
        &self,
        context: Context<'_>,
        index: Index,
        mend: &BTreeSet<Locator>,
        mirrored: &mut Mirrored,
    ) -> Result<Publication, Trouble> {
        let Some(head) = &self.state.known.head else { return Ok(Publication::Done) };
        let Index { manifest, version } = index;
        if let Some(ahead) = manifest.position.filter(|position| *position > head.position)
            && self.remote.read(context.patience, &layout::commit(ahead)).await?.is_some()
        {
            // A device that is behind leaves the manifest alone. One that is ahead of the log is damaged.
            return Ok(Publication::Done);
        }
        let files = self.state.known.log.files();
        let mut entries = manifest.entries.clone();
        let is_stale = |locator: &Locator| {
            let now = files.get(locator).map(|content| content.hash);
            let is_written = manifest.entries.get(locator).is_some_and(|entry| entry.hash == now);
            // What is outside of our part has its content elsewhere: whoever has that writes it.
            let is_here = now.is_none() || self.scope.contains(locator);
            is_here && (!is_written || now.is_none() || mend.contains(locator))
        };
        let named = manifest.entries.keys().chain(mend).cloned();
        let all: BTreeSet<Locator> = files.keys().chain(named).collect();
        let mut stale: Vec<&Locator> = all.iter().filter(|locator| is_stale(locator)).collect();
        mirrored.left = stale.len().saturating_sub(context.mirrored_at_once);
        stale.truncate(context.mirrored_at_once);
        // What goes before what comes: a new object may need its name. Otherwise they have nothing to do with one another.
        let (goes, comes): (Vec<&Locator>, Vec<&Locator>) =
            stale.iter().partition(|locator| !files.contains_key(**locator));
        let times = self.times(context, &comes, &manifest).await?;
        let mut outcomes = self.mirror_some(context, &goes, &manifest, &times).await?;
        outcomes.extend(self.mirror_some(context, &comes, &manifest, &times).await?);
        for (locator, outcome) in goes.iter().chain(&comes).zip(outcomes) {
            // Not fetched here: whoever has it writes it.
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
                // The entry stays: it tells what the edit was made from.
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
        // As long as something is left, the objects are not those of the newest position.
        let position = if mirrored.left == 0 { Some(head.position) } else { manifest.position };
        let manifest = Manifest { store, position, updated_at: Some(context.clock.now()), entries };
        let condition = version.map_or(Condition::Absent, Condition::Matches);
        match self.remote.backend().write(&place(), manifest.encode(), condition).await {
            Ok(_) => Ok(Publication::Done),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Publication::Outrun),
            Err(error) => Ok(Publication::Unanswered(error)),
        }
    }

    /// Returns when files were changed last, as far as that is known. In this order:
    ///
    /// 1. The manifest, for a file that it has with the same content.
    /// 2. The commits that this replica just took in or published.
    /// 3. The archive on this device.
    async fn times(
        &self,
        context: Context<'_>,
        locators: &[&Locator],
        manifest: &Manifest,
    ) -> Result<BTreeMap<Locator, Timestamp>, Trouble> {
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
            times.extend(archive::times(state, store, wanted).await.map_err(Trouble::Local)?);
        }
        Ok(times)
    }
}
