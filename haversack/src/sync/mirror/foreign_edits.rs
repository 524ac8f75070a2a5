//! Imports the edits that people made in the mirror.
//!
//! 1. Compare the listed objects with the manifest, and read those that differ.
//! 2. Drop objects whose content the log had at any time: they are stale, and the next write of the mirror repairs them.
//! 3. Merge each edit into the working file, as if the user had made it here. Its base is the version in the manifest, or a guess if
//!    another device or a sync client wrote the same file.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Bytes, Condition, ErrorKind, Info, Locator, Version};

use super::THE_MIRROR;
use super::listing::MirrorListing;
use crate::frame::shown;
use crate::ids::{ContentHash, Position, StoreId};
use crate::log;
use crate::manifest::Manifest;
use crate::merge::{Rule, Side, merge};
use crate::sync::places::OurPlaces;
use crate::sync::plan::{AbsenceReason, Reach};
use crate::sync::state::{Advance, BaseLine, Head};
use crate::sync::take_in::{IncomingChanges, Work};
use crate::sync::{Context, ForeignFiles, Origin, Replica, Report, SyncError};

/// The largest object of another program that we import: we hold it in memory.
const MAX_FOREIGN_BYTES: u64 = 256 * 1024 * 1024;

/// A user's edit in the mirror, and the version that the user edited.
pub(super) struct Edit {
    pub(super) locator: Locator,
    pub(super) bytes: Bytes,
    pub(super) base: EditBase,
    pub(super) place: EditPlace,
}

/// The object that holds an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditPlace {
    /// The file's own object. We may replace it once the edit is imported.
    InPlace,
    /// A conflict copy beside it.
    Beside,
}

/// The version that the user edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EditBase {
    /// We know the version. Lines that the edit lacks are deletions.
    Known(Option<ContentHash>),
    /// The most similar version that we found. Lines that the edit lacks may never have been in the user's version, so they stay.
    Guessed(Option<Bytes>),
}

impl Replica {
    /// Imports the edits that people made in the mirror, as if they had made them here.
    ///
    /// Returns the stale objects, for the next write of the mirror.
    pub(in crate::sync) async fn import_edits(
        &mut self,
        context: Context<'_>,
        manifest: &Manifest,
        listing: &MirrorListing,
        report: &mut Report,
    ) -> Result<BTreeSet<Locator>, SyncError> {
        let mut stale_objects = BTreeSet::new();
        let (changed, copied) =
            self.changed_objects(context, manifest, listing, &mut stale_objects, report).await?;
        if !changed.is_empty() && self.remote.at(context.patience, self.next().0).await?.is_some() {
            // The log has grown. Its author may have mirrored the new commit, and we could mistake that for an edit.
            return Ok(stale_objects);
        }
        let (Some(store), Some(head)) = (self.state.known.store, self.state.known.head.clone()) else {
            // The log is empty: every object is a new file for us.
            for (locator, bytes) in changed {
                let hash = ContentHash::of(&bytes);
                if context.origins.of(&locator, &hash) == Origin::Unclear {
                    report.awaited.push((locator, hash));
                    continue;
                }
                match self.files.write(&locator, bytes, Condition::Absent).await {
                    Ok(_) => report.foreign.push(locator),
                    Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Invalid) => {}
                    Err(error) => return Err(SyncError::Local(error)),
                }
            }
            return Ok(stale_objects);
        };
        let suspects = changed.iter().map(|(locator, bytes)| (locator.clone(), ContentHash::of(bytes)));
        let known = self.contents_in_log(context, suspects.collect(), Position::FIRST).await?;
        let mut edits = Vec::new();
        for (locator, bytes) in changed {
            stale_objects.insert(locator.clone());
            let hash = ContentHash::of(&bytes);
            let is_old = known.contains(&(locator.clone(), hash));
            if is_old || self.state.known.foreign.get(&locator) == Some(&hash) {
                continue;
            }
            match context.origins.of(&locator, &hash) {
                Origin::Ours => {}
                Origin::Edit => {
                    let base = manifest.entries.get(&locator).and_then(|entry| entry.hash);
                    let is_crossed = base.is_some_and(|base| context.origins.is_crossed(&locator, &base));
                    // If a sync client made a copy, or another device wrote too, the user may have edited another version than ours.
                    let base = match is_crossed || copied.contains(&locator) {
                        true => EditBase::Guessed(self.most_like(context, &locator, &bytes).await?),
                        false => EditBase::Known(base),
                    };
                    edits.push(Edit { locator, bytes, base, place: EditPlace::InPlace });
                }
                Origin::Unclear => report.awaited.push((locator, hash)),
            }
        }
        self.merge_edits(context, store, head, edits, Work::default(), report).await?;
        Ok(stale_objects)
    }

    /// Merges edits into the working files, together with other changes that are due.
    pub(super) async fn merge_edits(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        head: Head,
        edits: Vec<Edit>,
        mut work: Work,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let mut bases = Vec::new();
        for Edit { locator, bytes, base, place } in edits {
            // Only an edit in the file's own object counts as imported there; a conflict copy leaves that note alone.
            let foreign = (place == EditPlace::InPlace).then(|| ContentHash::of(&bytes));
            let (base, bytes) = match base {
                EditBase::Known(base) => (base, bytes),
                EditBase::Guessed(None) => (None, bytes),
                EditBase::Guessed(Some(base)) => match with_all_of(&locator, &base, &bytes) {
                    Some(all) if self.local(&locator).await?.is_some() => {
                        (Some(self.state.keep(&base).await.map_err(SyncError::Local)?), all)
                    }
                    Some(_) | None => (None, bytes),
                },
            };
            let theirs = ContentHash::of(&bytes);
            let incoming = IncomingChanges {
                state_after: log::State::empty(),
                head: head.clone(),
                touched: BTreeSet::new(),
                odd: BTreeMap::new(),
                contents: [(theirs, bytes)].into(),
                content_before_deletion: BTreeMap::new(),
                devices: [(locator.clone(), THE_MIRROR.to_owned())].into(),
                deleters: BTreeMap::new(),
                without_content: AbsenceReason::Missing,
                reach: Reach::End,
                joined: None,
            };
            self.mix(context, &locator, base, &theirs, &incoming, &mut work, report).await?;
            let content = self.state.known.log.files().get(&locator);
            bases.push(BaseLine {
                absent: self.state.known.absent.get(&locator).copied(),
                before: self.state.known.before.get(&locator).copied(),
                held: self.state.known.held.contains(&locator),
                foreign,
                ..BaseLine::new(locator.as_str(), content)
            });
            report.foreign.push(locator);
        }
        if bases.is_empty() {
            return Ok(());
        }
        let mark = self.state.known.log.mark();
        let advance = Advance { store, head, mark, attempt: None, joined: None, bases };
        self.carry_out(context, work, advance, report).await
    }

    /// Returns the objects that differ from both manifest and log, and the originals of conflict copies. Adds missing objects to
    /// `stale_objects`.
    async fn changed_objects(
        &self,
        context: Context<'_>,
        manifest: &Manifest,
        listing: &MirrorListing,
        stale_objects: &mut BTreeSet<Locator>,
        report: &mut Report,
    ) -> Result<(Vec<(Locator, Bytes)>, BTreeSet<Locator>), SyncError> {
        report.odd.extend(listing.odd.iter().map(|odd| (odd.shown.clone(), odd.why.clone())));
        let there: BTreeSet<&Locator> = listing.objects.iter().map(|info| &info.locator).collect();
        let (copies, copied): (BTreeSet<Locator>, BTreeSet<Locator>) =
            context.origins.copies(&listing.locators()).into_iter().unzip();
        stale_objects.extend(manifest.entries.keys().filter(|locator| !there.contains(locator)).cloned());
        let ours = OurPlaces::of(self.state.known.log.files());
        let is_near = |locator: &Locator| {
            context.foreign == ForeignFiles::Anywhere
                || manifest.entries.contains_key(locator)
                || ours.contain(locator)
                || context.origins.is_claimed(locator)
        };
        // Another replica of this device imports the objects outside of our scope.
        let in_scope = listing.objects.iter().filter(|info| self.scope.contains(&info.locator));
        let (infos, far): (Vec<&Info>, Vec<&Info>) =
            in_scope.filter(|info| !copies.contains(&info.locator)).partition(|info| is_near(&info.locator));
        // If the log had the name before, a slow device wrote the object, and the next mirror removes it.
        let (stale, unrelated) = self.split_by_log(context, far).await?;
        report.unrelated.extend(unrelated.into_iter().map(|info| info.locator.clone()));
        let mut changed = Vec::new();
        for info in infos.into_iter().chain(stale) {
            let entry = manifest.entries.get(&info.locator);
            let version = info.version.as_ref().map(Version::as_str);
            if version.is_some() && entry.is_some_and(|entry| entry.version.as_deref() == version) {
                continue;
            }
            if info.size_bytes > MAX_FOREIGN_BYTES {
                let why = format!(
                    "it is larger than {} MiB, which is too large for a memory",
                    MAX_FOREIGN_BYTES / 1024 / 1024
                );
                report.odd.push((shown(info.locator.as_str()), why));
                continue;
            }
            let at = match self.remote.read(context.patience, &info.locator).await {
                // The sync client has not downloaded the file yet. Continue with the other files.
                Err(SyncError::Remote(error)) if error.is_content_awaited() => {
                    report.odd.push((shown(info.locator.as_str()), error.message().to_owned()));
                    continue;
                }
                at => at?,
            };
            let Some(at) = at else { continue };
            let hash = Some(ContentHash::of(&at.bytes));
            let now = self.state.known.log.files().get(&info.locator).map(|content| content.hash);
            if hash != now && hash != entry.and_then(|entry| entry.hash) {
                changed.push((info.locator.clone(), at.bytes));
            }
        }
        Ok((changed, copied))
    }
}

/// Returns an edit with all lines of its guessed base added; `None` if the two cannot be merged.
fn with_all_of(locator: &Locator, base: &Bytes, edit: &Bytes) -> Option<Bytes> {
    let side = |bytes| Side { bytes, device: THE_MIRROR };
    let merged = merge(Rule::of(locator, [&base[..], &edit[..]]), None, side(base), side(edit));
    merged.copy.is_none().then_some(merged.bytes)
}
