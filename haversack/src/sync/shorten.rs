//! Shortens the history in a remote (docs/adr/0040): drops the contents of old commits, and deletes objects that nothing needs any more.
//!
//! A commit or segment without its contents is *abridged*, one with its contents is *whole*. An abridged commit still has its author, time and file names,
//! and the hashes of its contents.
//!
//! 1. Find the segments that are older than [`Intervals::keep_contents`](super::Intervals) by the remote's clock, and whose positions already hold only a
//!    reference to the segment ([`Replica::compact`]).
//! 2. Write a checkpoint at the end of the log. It shares no pack with an older checkpoint. From now on this checkpoint has every content that is in use.
//! 3. Read the end of the log again. If another device has committed meanwhile, stop; a later run begins again.
//! 4. Replace each of these segments by its abridged form.
//! 5. Delete the older checkpoints.
//! 6. Delete each object that is older than [`Intervals::keep_positions`](super::Intervals) and that neither a checkpoint nor a whole commit names.
//!
//! Example: 1,000 commits, and the first 512 are older than a year. Step 2 writes the checkpoint at position 1,000. Step 4 abridges the segments 1-256 and
//! 257-512. A new device starts at position 1,000, and a device that was away since position 300 [skips](Replica::skip_to_checkpoint) to 1,000.
//!
//! # Invariants
//! - Every content of the current files is in the remote at any moment: `haversack-sim: shorten`.
//! - If the process is killed, every device can still read the log, and the next process that shortens continues the work: `haversack-sim: shorten`.
//! - If the checkpoint is damaged, the next full sync of any device writes another one: `sync::shorten::damaged_checkpoint_is_written_again`.
//! - No device deletes an object that a new commit names. A device that publishes a commit writes the commit's objects again, even if they exist
//!   (`Remote::put_object`). So these objects are new, and no device deletes them. When the commit is at its position, the device looks for the objects
//!   once more.

use std::collections::BTreeSet;
use std::time::SystemTime;

use haversack_store::{Condition, ErrorKind, Info};

use super::planted::{Planted, has};
use super::publish::LogTail;
use super::remote::patiently;
use super::upkeep::{Packs, number};
use super::{Context, Replica, SyncError};
use crate::ids::{ContentHash, Position, StoreId};
use crate::log::layout::{self, Item};
use crate::log::{Carried, ContentLocation, Folded, Segment, StoredCommit, What};

impl Replica {
    /// Drops the contents of old commits from the remote; returns the number of abridged segments.
    pub(super) async fn shorten(&mut self, context: Context<'_>) -> Result<usize, SyncError> {
        let (Some(store), Some(head)) = (self.state.known.store, self.state.known.head.clone()) else {
            return Ok(0);
        };
        self.mend_checkpoint(context, store).await?;
        let old = self.old_segments(context, head.position).await?;
        if old.is_empty() {
            return Ok(0);
        }
        if !has(Planted::ShortenedWithoutCheckpoint) && !self.write_fresh_checkpoint(context, store).await? {
            return Ok(0);
        }
        // A commit that came meanwhile may go back to an older checkpoint's packs.
        if self.log_tail(context).await? != LogTail::Reached {
            return Ok(0);
        }
        let mut abridged = 0;
        for (first, last) in old {
            if !context.patience.has_time() {
                return Ok(abridged);
            }
            abridged += usize::from(self.abridge_segment(context, store, first, last).await?);
            let mut upkeep = self.state.upkeep().await.map_err(SyncError::Local)?;
            upkeep.abridged = upkeep.abridged.max(Some(last));
            self.state.save_upkeep(&upkeep).await.map_err(SyncError::Local)?;
        }
        if abridged > 0 {
            self.delete_older_checkpoints(context, head.position).await?;
            self.sweep_objects(context).await?;
        }
        Ok(abridged)
    }

    /// Writes a checkpoint if the log needs one and none is there that it confirms: another program damaged or deleted it.
    async fn mend_checkpoint(&mut self, context: Context<'_>, store: StoreId) -> Result<(), SyncError> {
        let first = self.remote.at(context.patience, Position::FIRST).await?;
        if !first.is_some_and(|at| at.is_abridged())
            || self.remote.newest_checkpoint(context.patience, store).await?.is_some()
        {
            return Ok(());
        }
        if let Some(head) = &self.state.known.head {
            self.delete(context, &layout::checkpoint(head.position), Condition::Any).await?;
        }
        self.write_fresh_checkpoint(context, store).await.map(drop)
    }

    /// Returns the ranges of segments that are old enough to lose their contents, and not known to have lost them.
    async fn old_segments(
        &self,
        context: Context<'_>,
        head: Position,
    ) -> Result<Vec<(Position, Position)>, SyncError> {
        let Some(keep) = context.intervals.keep_contents else { return Ok(Vec::new()) };
        let known = number(self.state.upkeep().await.map_err(SyncError::Local)?.abridged);
        let newest = self.newest_change(context).await?;
        let mut old = Vec::new();
        for (item, info) in self.remote.items(context.patience, &layout::segments(), None).await? {
            let Item::Segment { first, last } = item else { continue };
            if last.number() <= known || last >= head || age(&info, newest).is_none_or(|age| age < keep) {
                continue;
            }
            // Positions of a segment are folded in order: if the last one was, all were.
            let at_last = self.remote.read(context.patience, &layout::commit(last)).await?;
            if at_last.is_some_and(|at| Folded::is_at(&at.bytes)) {
                old.push((first, last));
            }
        }
        old.sort_unstable();
        Ok(old)
    }

    /// Writes a checkpoint at the end of the log whose packs no older checkpoint has; returns false if that is not possible now.
    async fn write_fresh_checkpoint(
        &mut self,
        context: Context<'_>,
        store: StoreId,
    ) -> Result<bool, SyncError> {
        let Some(head) = self.state.known.head.clone() else { return Ok(false) };
        let newest = self.remote.newest_checkpoint(context.patience, store).await?;
        // If one is there already, it stays, and everything that it names stays too.
        if newest.as_ref().is_some_and(|(_, at)| at.position == head.position) {
            return Ok(true);
        }
        let older = newest.map(|(older, _)| older);
        if !self.write_checkpoint(context, store, &head, older, Packs::Fresh).await? {
            return Ok(false);
        }
        let written = self.remote.checkpoint(context.patience, store, head.position).await?;
        Ok(written.is_some())
    }

    /// Replaces a segment by the same one without contents; returns false if another device has just done that.
    async fn abridge_segment(
        &self,
        context: Context<'_>,
        store: StoreId,
        first: Position,
        last: Position,
    ) -> Result<bool, SyncError> {
        let locator = layout::segment(first, last);
        let Some(at) = self.remote.read(context.patience, &locator).await? else { return Ok(false) };
        let segment = match Segment::decode(&at.bytes) {
            Ok(segment) if segment.store == store && (segment.first, segment.last) == (first, last) => {
                segment
            }
            // A damaged segment is for those to tell who need it.
            Ok(_) | Err(_) => return Ok(false),
        };
        let Some(version) = at.version.filter(|_| segment.is_whole()) else { return Ok(false) };
        let unfit = |why: crate::frame::Unfit| SyncError::Unfit { position: first, why: why.to_string() };
        let bytes = segment.abridged().and_then(|segment| segment.encode()).map_err(unfit)?;
        self.remote.forget_segment();
        match self.remote.backend().write(&locator, bytes, Condition::Matches(version)).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(SyncError::Remote(error)),
        }
    }

    async fn delete_older_checkpoints(
        &self,
        context: Context<'_>,
        newest: Position,
    ) -> Result<(), SyncError> {
        for (item, _) in self.remote.items(context.patience, &layout::checkpoints(), None).await? {
            let Item::Checkpoint(position) = item else { continue };
            if position < newest {
                self.delete(context, &layout::checkpoint(position), Condition::Any).await?;
            }
        }
        Ok(())
    }

    /// Deletes old objects that no whole commit and no checkpoint names.
    async fn sweep_objects(&self, context: Context<'_>) -> Result<(), SyncError> {
        let Some(store) = self.state.known.store else { return Ok(()) };
        let newest = self.newest_change(context).await?;
        let keep = context.intervals.keep_positions;
        let is_old = |info: &Info| age(info, newest).is_some_and(|age| age >= keep);
        let objects = self.remote.items(context.patience, &layout::objects(), None).await?;
        let Some(named) = self.named_objects(context, store).await? else { return Ok(()) };
        for (item, info) in objects {
            let Item::Object(hash) = item else { continue };
            if named.contains(&hash) || !is_old(&info) {
                continue;
            }
            // A device that needs the object again has written it again.
            let locator = layout::object(&hash);
            match patiently(context.patience, || self.remote.backend().info(&locator)).await {
                Ok(now) if is_old(&now) => {
                    let condition = now.version.map_or(Condition::Any, Condition::Matches);
                    self.delete(context, &locator, condition).await?;
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(SyncError::Remote(error)),
            }
        }
        Ok(())
    }

    /// Returns the objects that the checkpoints and the whole commits name; `None` if one of them cannot be read.
    async fn named_objects(
        &self,
        context: Context<'_>,
        store: StoreId,
    ) -> Result<Option<BTreeSet<ContentHash>>, SyncError> {
        let mut named = BTreeSet::new();
        if has(Planted::NamedObjectsSwept) {
            return Ok(Some(named));
        }
        for (item, _) in self.remote.items(context.patience, &layout::checkpoints(), None).await? {
            let Item::Checkpoint(position) = item else { continue };
            let checkpoint = self.remote.checkpoint(context.patience, store, position).await?;
            // A checkpoint that the log does not confirm is used by nobody.
            for file in checkpoint.iter().flat_map(|(checkpoint, _)| checkpoint.files.values()) {
                match file.place {
                    ContentLocation::Pack { object, .. } => drop(named.insert(object)),
                    ContentLocation::Object(hash) => drop(named.insert(hash)),
                    ContentLocation::Inline(_) => {}
                }
            }
        }
        let mut next = Position::FIRST.number();
        let mut segments = self.segments(context).await?;
        segments.sort_unstable();
        for (first, last) in segments {
            if first.number() > next || last.number() < next {
                continue;
            }
            let Some(segment) = self.remote.segment(context.patience, first, last).await? else {
                return Ok(None);
            };
            for bytes in &segment.commits {
                name_objects(bytes, &mut named);
            }
            next = last.number() + 1;
        }
        loop {
            let positions =
                (next..next + super::mirror::SEARCHED_AT_ONCE).filter_map(Position::new).collect();
            let read = self.read_positions(context, positions).await?;
            let found = read.iter().flatten().count();
            read.iter().flatten().for_each(|at| name_objects(&at.bytes, &mut named));
            next += found as u64;
            if found < read.len() {
                return Ok(Some(named));
            }
        }
    }

    async fn delete(
        &self,
        context: Context<'_>,
        locator: &haversack_store::Locator,
        condition: Condition,
    ) -> Result<(), SyncError> {
        let delete = || self.remote.backend().delete(locator, condition.clone());
        match patiently(context.patience, delete).await {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict) => Ok(()),
            Err(error) => Err(SyncError::Remote(error)),
        }
    }
}

/// Adds the objects that a whole commit names. An abridged commit names contents that were dropped.
fn name_objects(bytes: &haversack_store::Bytes, named: &mut BTreeSet<ContentHash>) {
    let Ok(stored) = StoredCommit::decode(bytes) else { return };
    if stored.form == crate::log::Form::Abridged {
        return;
    }
    for change in stored
        .commit
        .changes
        .iter()
        .map(|change| &change.what)
        .chain(stored.commit.odd.iter().map(|odd| &odd.what))
    {
        match change {
            What::Put { content: Carried::Object(hash), .. }
            | What::Append { added: Carried::Object(hash), .. }
            | What::Delete { before: Some(hash) } => drop(named.insert(*hash)),
            What::Put { .. } | What::Append { .. } | What::Delete { before: None } => {}
        }
    }
}

/// Returns how long before the newest change an object was written, if the remote tells times.
fn age(info: &Info, newest: Option<SystemTime>) -> Option<std::time::Duration> {
    let (then, now) = info.modified.zip(newest)?;
    Some(now.duration_since(then).unwrap_or_default())
}
