//! Starts from a checkpoint instead of the log's first position, and fetches the contents afterwards.
//!
//! 1. Move the bases to the checkpoint, although the files are not here yet.
//! 2. Write the files in bounded portions, each with its own record. A device that dies in the middle continues with the next portion.
//! 3. Apply the commits after the checkpoint.
//!
//! A device that fetches only files on request skips step 2.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Bytes, Locator, Odd};

use super::apply;
use super::plan::{self, AbsenceReason, Reach};
use super::progress::Stage;
use super::scan::Found;
use super::state::{Advance, BaseLine};
use super::take_in::{IncomingChanges, Work};
use super::{Context, Replica, Report, SyncError};
use crate::ids::{ContentHash, StoreId};
use crate::log::{self, Checkpoint, Content, ContentLocation, unpack};
use crate::many::{self, many};

/// The most files that are written under one record.
const MAX_PORTION_FILES: usize = 2_000;

/// The most bytes that are written under one record, unless one file alone has more.
const MAX_PORTION_BYTES: u64 = 16 * 1024 * 1024;

/// Above this number of files, we list whole directories instead of looking at each locator.
const MANY: usize = 64;

/// The reason for putting files in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// They are new here. A file that a user created here too waits until the whole log is applied.
    Fetching,
    /// A user created them here too. Every sync tries again, without searching the log for missing contents.
    Meeting,
    /// A caller asked for them.
    Asked,
}

impl Replica {
    /// Takes in the newest checkpoint that the log confirms, if there is one.
    pub(super) async fn join(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let Some((checkpoint, head)) = self.remote.newest_checkpoint(context.patience, store).await? else {
            return Ok(());
        };
        // Contents are fetched afterwards, and existing files wait for the rest of the log. But an existing file with the same content
        // is recorded as its base at once, and its content is kept before a user can change it.
        let found = self.look().await?;
        let mut contents = BTreeMap::new();
        for (locator, file) in &checkpoint.files {
            if found.contents.get(locator) == Some(file.hash)
                && let Some(bytes) = self.local(locator).await?
                && ContentHash::of(&bytes) == file.hash
            {
                contents.insert(file.hash, bytes);
            }
        }
        let incoming = IncomingChanges {
            state_after: log::State::from(&checkpoint),
            head,
            touched: checkpoint.files.keys().cloned().collect(),
            odd: checkpoint.odd.iter().map(|odd| (odd.key.clone(), odd.to_string())).collect(),
            contents,
            content_before_deletion: BTreeMap::new(),
            devices: BTreeMap::new(),
            deleters: BTreeMap::new(),
            without_content: AbsenceReason::Unfetched,
            reach: Reach::Middle,
            joined: Some(checkpoint.position),
        };
        self.take_in_some(context, store, incoming, &mut None, report).await.map(drop)
    }

    /// Returns the checkpoint that knows where contents are that were not fetched: the one that this replica started from, or else the newest.
    async fn joined(&self, context: Context<'_>) -> Result<Option<Checkpoint>, SyncError> {
        let Some(store) = self.state.known.store else { return Ok(None) };
        let joined = match self.state.known.joined {
            Some(position) => self.remote.checkpoint(context.patience, store, position).await?,
            None => None,
        };
        let found = match joined {
            Some(joined) => Some(joined),
            None => self.remote.newest_checkpoint(context.patience, store).await?,
        };
        Ok(found.map(|(checkpoint, _)| checkpoint))
    }

    /// Puts the files in place that were not fetched yet.
    pub(super) async fn fetch_new(
        &mut self,
        context: Context<'_>,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let new = self.absent(AbsenceReason::Unfetched);
        self.materialise(context, &new, Purpose::Fetching, report).await
    }

    /// Puts files in place that are not here yet.
    ///
    /// If a user created a file with the same name, it is merged.
    pub(super) async fn materialise(
        &mut self,
        context: Context<'_>,
        locators: &[Locator],
        purpose: Purpose,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let files = self.state.known.log.files();
        let is_absent = |locator: &&Locator| self.state.known.absent.contains_key(*locator);
        let wanted = locators.iter().filter(is_absent);
        let wanted: Vec<(Locator, Content)> =
            wanted.filter_map(|locator| Some((locator.clone(), files.get(locator)?))).collect();
        let bytes = wanted.iter().fold(0_u64, |bytes, (_, content)| bytes.saturating_add(content.size));
        let files = wanted.len() as u64;
        self.receive(context, files, bytes)?;
        if wanted.is_empty() {
            return Ok(());
        }
        let Some(store) = self.state.known.store else { return Ok(()) };
        let checkpoint = self.joined(context).await?;
        let free = match purpose {
            Purpose::Fetching if wanted.len() > MANY => self.free(&wanted).await,
            Purpose::Fetching | Purpose::Meeting | Purpose::Asked => BTreeSet::new(),
        };
        let mut rest = &wanted[..];
        while !rest.is_empty() {
            if !context.patience.has_time() {
                report.out_of_time = true;
                return Ok(());
            }
            context.progress.at(Stage::Fetching, wanted.len() - rest.len(), Some(wanted.len()));
            let (portion, later) = rest.split_at(portion_length(rest));
            self.materialise_some(context, store, portion, checkpoint.as_ref(), &free, purpose, report)
                .await?;
            rest = later;
        }
        Ok(())
    }

    /// Returns the places where nothing is: a device that joins has few files, and need not look for each of the others.
    ///
    /// A file that a user puts there later is found when the content is written.
    async fn free(&self, wanted: &[(Locator, Content)]) -> BTreeSet<Locator> {
        let parents: BTreeSet<Locator> = wanted.iter().filter_map(|(locator, _)| locator.parent()).collect();
        let mut free: BTreeSet<Locator> = wanted.iter().map(|(locator, _)| locator.clone()).collect();
        for parent in parents {
            match self.files.list(&parent).await {
                Ok(listing) => {
                    for entry in listing.entries {
                        free.remove(&entry.locator);
                    }
                }
                // A link is in the way, or it may not be read: each of its places is looked at by itself.
                Err(_) => free.retain(|locator| locator.parent().as_ref() != Some(&parent)),
            }
        }
        free
    }

    #[expect(clippy::too_many_arguments, reason = "what a portion needs of the whole")]
    async fn materialise_some(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        portion: &[(Locator, Content)],
        checkpoint: Option<&Checkpoint>,
        free: &BTreeSet<Locator>,
        purpose: Purpose,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let Some(head) = self.state.known.head.clone() else { return Ok(()) };
        let wanted: Vec<Content> = portion.iter().map(|(_, content)| *content).collect();
        let mut contents = self.contents(context, &wanted, checkpoint).await?;
        if purpose != Purpose::Meeting {
            let lost = portion.iter().filter(|(_, content)| !contents.contains_key(&content.hash));
            let lost: Vec<(Locator, Content)> = lost.cloned().collect();
            contents.extend(self.found_in_log(context, &lost, head.position).await?);
        }
        let packed = contents.iter().map(|(hash, bytes)| (*hash, bytes.clone())).collect::<Vec<_>>();
        let packed = self.state.keep_all(&packed).await.map_err(SyncError::Local)?;
        let incoming = IncomingChanges::of_contents(head.clone(), contents);
        let mut work = Work::default();
        let mut bases = Vec::new();
        for (locator, content) in portion {
            let is_free = free.contains(locator);
            let placed =
                self.place(context, (locator, *content), is_free, &incoming, purpose, &mut work, report);
            match placed.await {
                Err(SyncError::Local(error)) if apply::concerns_one_file(&error) => {
                    report.refused.push(locator.clone());
                    work.absent.insert(locator.to_string(), AbsenceReason::Refused);
                }
                placed => placed?,
            }
            let absent = work.absent.get(locator.as_str()).copied();
            bases.push(BaseLine {
                absent,
                before: self.state.known.before.get(locator).copied().filter(|_| absent.is_some()),
                pack: packed.get(&content.hash).copied(),
                ..BaseLine::new(locator.as_str(), Some(*content))
            });
        }
        report.fetched += work.moves.len();
        let mark = self.state.known.log.mark();
        let advance = Advance { store, head, mark, attempt: None, joined: None, bases };
        self.carry_out(context, work, advance, report).await
    }

    /// Decides the step for one file.
    #[expect(clippy::too_many_arguments, reason = "what a file needs of its portion")]
    async fn place(
        &self,
        context: Context<'_>,
        (locator, content): (&Locator, Content),
        is_free: bool,
        incoming: &IncomingChanges,
        purpose: Purpose,
        work: &mut Work,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let mine = match is_free {
            true => None,
            false => self.local(locator).await?,
        };
        match (&mine, incoming.contents.get(&content.hash)) {
            (Some(mine), _) if ContentHash::of(mine) == content.hash => {}
            (Some(_), Some(_)) if purpose == Purpose::Fetching => {
                work.absent.insert(locator.to_string(), AbsenceReason::Unfetched);
            }
            (Some(_), _) => {
                // A file that could not be written before goes back to an earlier content of the log.
                let base = self.state.known.before.get(locator).copied();
                self.mix(context, locator, base, &content.hash, incoming, work, report).await?;
            }
            (None, Some(bytes)) => work.put(locator, None, content.hash, bytes.clone()),
            (None, None) => {
                report.missing.push(locator.clone());
                work.absent.insert(locator.to_string(), AbsenceReason::Missing);
            }
        }
        Ok(())
    }

    /// Returns the files that could not be written before, and whose place is free now.
    pub(super) fn writable_again(&self, found: &Found) -> Vec<Locator> {
        let refused = self.absent(AbsenceReason::Refused);
        if refused.is_empty() {
            return refused;
        }
        let names: BTreeSet<String> = found.contents.iter().map(|(locator, _)| locator.folded()).collect();
        let directories = found.contents.iter().flat_map(|(locator, _)| plan::directories(locator.as_str()));
        let spellings: BTreeMap<String, &str> =
            directories.map(|name| (Locator::fold(name).into_owned(), name)).collect();
        let is_free = |locator: &Locator| {
            let name = locator.folded();
            let below = format!("{name}/");
            let has_file_above = name.match_indices('/').any(|(end, _)| names.contains(&name[..end]));
            let has_file_below =
                names.range(below.clone()..).next().is_some_and(|key| key.starts_with(&below));
            let is_in_the_way = |odd: &Odd| odd.at.as_ref().is_some_and(|at| at.holds(locator.as_str()));
            let has_twin_above = plan::directories(locator.as_str()).any(|directory| {
                spellings.get(Locator::fold(directory).as_ref()).is_some_and(|other| *other != directory)
            });
            locator.check_portable().is_ok()
                && !has_twin_above
                && !names.contains(&name)
                && !has_file_above
                && !has_file_below
                && !found.odd.iter().any(is_in_the_way)
        };
        refused.into_iter().filter(is_free).collect()
    }

    /// Returns the content of a base: kept here, or from the remote if it was not fetched yet.
    pub(super) async fn base_content(
        &self,
        context: Context<'_>,
        hash: &ContentHash,
    ) -> Result<Option<Bytes>, SyncError> {
        if let Some(kept) = self.state.kept(hash).await.map_err(SyncError::Local)? {
            return Ok(Some(kept));
        }
        let known = &self.state.known;
        let mut unfetched = known.absent.keys().filter_map(|locator| known.log.files().get(locator));
        let Some(content) = unfetched.find(|content| content.hash == *hash) else { return Ok(None) };
        let checkpoint = self.joined(context).await?;
        Ok(self.contents(context, &[content], checkpoint.as_ref()).await?.remove(hash))
    }

    /// Returns contents that the log names, from here or from the remote; missing ones are left out.
    pub(super) async fn contents(
        &self,
        context: Context<'_>,
        wanted: &[Content],
        checkpoint: Option<&Checkpoint>,
    ) -> Result<BTreeMap<ContentHash, Bytes>, SyncError> {
        let kept = self.state.kept_of(wanted.iter().map(|content| content.hash)).await;
        let mut contents = kept.map_err(SyncError::Local)?;
        let mut objects = BTreeSet::new();
        let mut packs: BTreeMap<ContentHash, Vec<(u64, Content)>> = BTreeMap::new();
        let places: BTreeMap<ContentHash, &ContentLocation> = checkpoint
            .iter()
            .flat_map(|checkpoint| checkpoint.files.values().map(|file| (file.hash, &file.place)))
            .collect();
        for content in wanted {
            if contents.contains_key(&content.hash) {
                continue;
            }
            match places.get(&content.hash) {
                Some(ContentLocation::Inline(bytes)) => drop(contents.insert(content.hash, bytes.clone())),
                Some(ContentLocation::Pack { object, offset }) => {
                    packs.entry(*object).or_default().push((*offset, *content));
                }
                Some(ContentLocation::Object(_)) | None => drop(objects.insert(content.hash)),
            }
        }
        let names: Vec<ContentHash> = objects.into_iter().chain(packs.keys().copied()).collect();
        let mut reads: Vec<many::Work<'_, Option<Bytes>, SyncError>> = Vec::with_capacity(names.len());
        for name in &names {
            reads.push(Box::pin(self.remote.object(context.patience, name)));
        }
        for (name, bytes) in names.iter().zip(many(many::MAX_AT_ONCE, reads).await?) {
            let Some(bytes) = bytes else { continue };
            match packs.get(name) {
                // Sizes can be made up.
                None if wanted.contains(&Content { hash: *name, size: bytes.len() as u64 }) => {
                    contents.insert(*name, bytes);
                }
                None => {}
                Some(parts) => {
                    let parts = parts.iter().filter_map(|(offset, content)| {
                        Some((content.hash, unpack(&bytes, *offset, content)?))
                    });
                    contents.extend(parts);
                }
            }
        }
        Ok(contents)
    }
}

/// Returns the number of files that are written under one record.
fn portion_length(files: &[(Locator, Content)]) -> usize {
    let mut bytes: u64 = 0;
    let fits = |(_, content): &&(Locator, Content)| {
        bytes = content.size.saturating_add(bytes);
        bytes <= MAX_PORTION_BYTES
    };
    files.iter().take(MAX_PORTION_FILES).take_while(fits).count().max(1)
}
