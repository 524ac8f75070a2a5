//! Imports the conflict copies that a sync client made of mirror objects.
//!
//! 1. Merge the copy into its original. Write the copy itself as a working file too, in the same step.
//! 2. Publish both: the history then has the copy under its own name.
//! 3. Delete the copy's working file, and the object once other devices can read the history.
//!
//! A record in the state ([`CopyRecord`]) finishes step 3 after a crash.

use haversack_store::{Bytes, Condition, Error as StoreError, ErrorKind, Locator};

use super::foreign_edits::{Edit, EditBase, EditPlace};
use super::listing::MirrorListing;
use crate::ids::{ContentHash, Position};
use crate::sync::places::OurPlaces;
use crate::sync::remote::At;
use crate::sync::state::CopyRecord;
use crate::sync::take_in::Work;
use crate::sync::{Context, ForeignFiles, Origin, Replica, Report, Sending, SyncError};

/// The result of merging a copy.
enum CopyOutcome {
    Merged,
    /// The copy stays where it is for the next reconcile.
    Postponed,
}

impl Replica {
    /// Imports conflict copies and removes them. [`Replica::mirror`] removes the copies that other devices cannot read in a log yet.
    ///
    /// A copy whose name is a file of the store stays, because it is a user's file by now.
    pub(in crate::sync) async fn import_copies(
        &mut self,
        context: Context<'_>,
        listing: &MirrorListing,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        self.finish_copy(context, report).await?;
        let ours = OurPlaces::of(self.state.known.log.files());
        for (copy, original) in context.origins.copies(&listing.locators()) {
            let is_ours = |locator: &Locator| self.state.known.log.files().contains_key(locator);
            if !self.scope.contains(&copy) || is_ours(&copy) {
                continue;
            }
            let is_near = context.foreign == ForeignFiles::Anywhere || ours.contain(&original);
            if !is_near && !context.origins.is_claimed(&copy) {
                report.unrelated.push(copy);
                continue;
            }
            let Some(At { bytes, version: Some(version) }) =
                self.remote.read(context.patience, &copy).await?
            else {
                continue;
            };
            let hash = ContentHash::of(&bytes);
            let suspects = [(original.clone(), hash), (copy.clone(), hash)].into();
            let is_known = !self.contents_in_log(context, suspects, Position::FIRST).await?.is_empty();
            let origin = match context.origins.of(&original, &hash) {
                _ if is_known => Origin::Ours,
                // Earlier reports named the copy, not the original, as awaited.
                Origin::Unclear => context.origins.of(&copy, &hash),
                origin => origin,
            };
            match origin {
                // Keep the conflict copy until some log contains the version that replaced the original. Until then, the copy is the only
                // sign that an edit of the replacement was not based on our version.
                Origin::Ours if !self.is_told_of(context, &original).await? => {}
                Origin::Ours => drop(self.merged_copies.insert(copy, version)),
                Origin::Unclear => report.awaited.push((copy, hash)),
                Origin::Edit => match self.merge_copy(context, &copy, &original, bytes, report).await? {
                    CopyOutcome::Merged => drop(self.merged_copies.insert(copy, version)),
                    CopyOutcome::Postponed => {}
                },
            }
        }
        self.remove_merged_copies(context).await
    }

    /// Removes merged copies, once other devices can read their content in a log.
    pub(super) async fn remove_merged_copies(&mut self, context: Context<'_>) -> Result<(), SyncError> {
        if !self.is_told(context) {
            return Ok(());
        }
        while let Some((copy, version)) = self.merged_copies.pop_first() {
            match self.remote.backend().delete(&copy, Condition::Matches(version)).await {
                Ok(()) => {}
                // The copy has changed since, or the remote gave no answer: the next reconcile looks again.
                Err(error) if is_unclear(&error) || error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(SyncError::Remote(error)),
            }
        }
        Ok(())
    }

    /// Returns true if other devices can read in a log everything that the mirror shows.
    pub(super) fn is_told(&self, context: Context<'_>) -> bool {
        self.state.known.head.as_ref().is_none_or(|head| context.origins.is_told(head.position))
    }

    /// Returns true if a log has the content of an object, or if the object is missing.
    async fn is_told_of(&self, context: Context<'_>, locator: &Locator) -> Result<bool, SyncError> {
        let Some(At { bytes, .. }) = self.remote.read(context.patience, locator).await? else {
            return Ok(true);
        };
        let hash = ContentHash::of(&bytes);
        if context.origins.of(locator, &hash) == Origin::Ours {
            return Ok(true);
        }
        let suspects = [(locator.clone(), hash)].into();
        Ok(!self.contents_in_log(context, suspects, Position::FIRST).await?.is_empty())
    }

    /// Merges a copy into its original, and puts the copy itself into the history.
    ///
    /// Both changes of the working files are one step, so a killed process cannot leave half of it. A record says that the copy's working
    /// file is still to be removed.
    async fn merge_copy(
        &mut self,
        context: Context<'_>,
        copy: &Locator,
        original: &Locator,
        bytes: Bytes,
        report: &mut Report,
    ) -> Result<CopyOutcome, SyncError> {
        if self.local(copy).await?.is_some() {
            // A working file with the copy's name exists that stays on this machine.
            return Ok(CopyOutcome::Postponed);
        }
        let (Some(store), Some(head)) = (self.state.known.store, self.state.known.head.clone()) else {
            // The log is empty: the copy's content is a new file for us.
            return match self.files.write(original, bytes, Condition::Absent).await {
                Ok(_) => self.rounds(context, Sending::All, report).await.map(|()| CopyOutcome::Merged),
                Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Invalid) => {
                    Ok(CopyOutcome::Postponed)
                }
                Err(error) => Err(SyncError::Local(error)),
            };
        };
        // The sync client does not say which version the copy is based on.
        let base = EditBase::Guessed(self.most_like(context, original, &bytes).await?);
        let mut work = Work::default();
        let hash = self.state.keep(&bytes).await.map_err(SyncError::Local)?;
        work.add(copy, None, Some(bytes.clone()));
        let passing = CopyRecord { at: copy.to_string(), hash };
        self.state.begin_passing(&passing).await.map_err(SyncError::Local)?;
        let edit = Edit { locator: original.clone(), bytes, base, place: EditPlace::Beside };
        self.merge_edits(context, store, head, vec![edit], work, report).await?;
        self.rounds(context, Sending::All, report).await?;
        if report.refused.contains(original) {
            // The working directory cannot hold the original, so the copy keeps its own name.
            self.state.end_passing().await.map_err(SyncError::Local)?;
            return Ok(CopyOutcome::Merged);
        }
        self.finish_copy(context, report).await?;
        Ok(CopyOutcome::Merged)
    }

    /// Removes the working file of a merged copy, unless it has changed since.
    async fn finish_copy(&mut self, context: Context<'_>, report: &mut Report) -> Result<(), SyncError> {
        let Some(passing) = self.state.passing().await.map_err(SyncError::Local)? else { return Ok(()) };
        if let Ok(copy) = Locator::parse(&passing.at) {
            let there = match self.files.read(&copy).await {
                Ok(there) => Some(there),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(SyncError::Local(error)),
            };
            if let Some(there) = there.filter(|there| ContentHash::of(&there.bytes) == passing.hash) {
                match self.files.delete(&copy, Condition::Matches(there.version)).await {
                    Ok(()) => {}
                    Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => {}
                    Err(error) => return Err(SyncError::Local(error)),
                }
                self.rounds(context, Sending::All, report).await?;
            }
        }
        self.state.end_passing().await.map_err(SyncError::Local)
    }
}

/// Returns true if only a read shows the result of a failed write.
fn is_unclear(error: &StoreError) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Busy | ErrorKind::Unavailable)
}
