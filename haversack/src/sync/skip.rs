//! Brings a device up to date that was away for long: the next commits that it must read are abridged, which means that they have lost their contents
//! (docs/adr/0040).
//!
//! 1. Read the newest checkpoint that the log confirms. Its position is higher than that of every abridged commit.
//! 2. Compare its files with the replica's bases. Each file that differs is one incoming change.
//! 3. For each changed file that this replica has, fetch the new content. Contents of new files are fetched later, as after a join.
//! 4. Apply all changes as one batch. A file that was edited here is merged with the new content; the base is their common ancestor.
//! 5. Continue with the commit after the checkpoint.
//!
//! Example (each letter is a line): our base is position 10, the commits up to 900 are abridged, and the newest checkpoint is at 1,000. `notes.md` is `a` in
//! our base, `ab` in our working file, and `ca` in the checkpoint. The batch merges `ab` and `ca`; their common ancestor is `a`. The result is `cab`, and our
//! position becomes 1,000.
//!
//! # Invariants
//! - Local changes since the base survive: `sync::shorten::late_device_merges_over_its_base`.
//! - A file that another device deleted meanwhile does not come back: `sync::shorten::late_device_deletes_what_others_deleted`.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Bytes, Locator};

use super::plan::{AbsenceReason, Reach};
use super::planted::{Planted, has};
use super::scan::Found;
use super::take_in::{IncomingChanges, Taking};
use super::{Context, Replica, Report, SyncError};
use crate::frame::BadFrame;
use crate::ids::{ContentHash, Position, ReplicaId, StoreId};
use crate::log::{self, Checkpoint, Content, StoredCommit};

/// The authors of the abridged commits.
#[derive(Default)]
struct Authors {
    /// The device that changed each file last.
    devices: BTreeMap<Locator, String>,
    /// The replica that deleted each deleted file.
    deleters: BTreeMap<Locator, ReplicaId>,
}

impl Replica {
    /// Applies the newest checkpoint as one batch of changes over the bases.
    pub(super) async fn skip_to_checkpoint(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        seen: &mut Option<Found>,
        report: &mut Report,
    ) -> Result<Taking, SyncError> {
        let next = self.next().0;
        let newest = self.remote.newest_checkpoint(context.patience, store).await?;
        let Some((checkpoint, head)) = newest.filter(|(_, head)| head.position >= next) else {
            let what = format!("the commit at position {}", next.number());
            let why = BadFrame::damaged("its contents were dropped, and no later checkpoint is there");
            return Err(SyncError::Damaged { what, why });
        };
        let state_after = log::State::from(&checkpoint);
        let Authors { devices, deleters } = self.authors(context, store, next).await?;
        let known = &self.state.known.log;
        let names: BTreeSet<Locator> = known.files().keys().chain(state_after.files().keys()).collect();
        let differs = |locator: &Locator| match has(Planted::SkipDeletesNothing) {
            true => {
                state_after.files().get(locator).is_some_and(|new| known.files().get(locator) != Some(new))
            }
            false => known.files().get(locator) != state_after.files().get(locator),
        };
        let touched: BTreeSet<Locator> = names.into_iter().filter(differs).collect();
        let odd_now = checkpoint.odd.iter().map(|odd| (odd.key.clone(), odd.to_string()));
        let odd_before = known.odd().keys().map(|key| (key.clone(), "its name is refused here".to_owned()));
        let odd: BTreeMap<String, String> = odd_before.chain(odd_now).collect();
        let odd = odd.into_iter().filter(|(key, _)| known.odd().get(key) != state_after.odd().get(key));
        let incoming = IncomingChanges {
            odd: odd.collect(),
            contents: self.contents_of_changed(context, &checkpoint, &state_after, &touched).await?,
            state_after,
            touched,
            content_before_deletion: BTreeMap::new(),
            devices,
            deleters,
            without_content: AbsenceReason::Unfetched,
            reach: Reach::Middle,
            joined: Some(checkpoint.position),
            head,
        };
        let skipped = checkpoint.position.number() - next.number() + 1;
        let taking = self.take_in_some(context, store, incoming, seen, report).await?;
        report.taken += usize::try_from(skipped).unwrap_or(usize::MAX);
        Ok(taking)
    }

    /// Returns the contents of changed files that are in the working directory: they replace files here, or are merged with them.
    async fn contents_of_changed(
        &mut self,
        context: Context<'_>,
        checkpoint: &Checkpoint,
        state_after: &log::State,
        touched: &BTreeSet<Locator>,
    ) -> Result<BTreeMap<ContentHash, Bytes>, SyncError> {
        let known = &self.state.known;
        let is_here = |locator: &&Locator| {
            let has_base = known.log.files().contains_key(*locator) && !known.absent.contains_key(*locator);
            has_base && self.scope.contains(locator)
        };
        let wanted: Vec<Content> =
            touched.iter().filter(is_here).filter_map(|locator| state_after.files().get(locator)).collect();
        let bytes = wanted.iter().fold(0_u64, |bytes, content| bytes.saturating_add(content.size));
        self.receive(context, wanted.len() as u64, bytes)?;
        self.contents(context, &wanted, Some(checkpoint)).await
    }

    /// Reads the authors of the abridged commits from their segments. A segment that cannot be read costs only names.
    async fn authors(
        &self,
        context: Context<'_>,
        store: StoreId,
        next: Position,
    ) -> Result<Authors, SyncError> {
        let mut authors = Authors::default();
        let mut segments = self.segments(context).await?;
        segments.retain(|(_, last)| *last >= next);
        segments.sort_unstable();
        for (first, last) in segments {
            let segment = match self.remote.segment(context.patience, first, last).await {
                Ok(Some(segment)) if segment.store == store => segment,
                Ok(_) | Err(SyncError::Damaged { .. }) => continue,
                Err(trouble) => return Err(trouble),
            };
            for bytes in &segment.commits {
                let Ok(StoredCommit { commit, .. }) = StoredCommit::decode(bytes) else { continue };
                for change in commit.changes {
                    if change.what.after().is_none() {
                        authors.deleters.insert(change.locator.clone(), commit.replica);
                    }
                    authors.devices.insert(change.locator, commit.device.clone());
                }
            }
        }
        Ok(authors)
    }
}
