//! Keeps the log short to read: checkpoints, segments, and positions that say which segment has their commit.
//!
//! Any device may do this at any moment, and none has to: a missing checkpoint or segment costs time, never data. All of it is created once under a
//! name that describes it, so two devices that do the same at once write the same. A position itself is never removed: a request to
//! create it can arrive arbitrarily late (docs/adr/0008).

use std::collections::BTreeMap;
use std::time::Duration;

use haversack_store::{Bytes, Condition, ErrorKind, Locator};
use serde::{Deserialize, Serialize};

use super::rebuild::Trail;
use super::remote::{At, patiently};
use super::state::Head;
use super::{Context, Replica, SyncError};
use crate::ids::{ContentHash, Position, StoreId};
use crate::log::layout::{self, Item};
use crate::log::{
    Checkpoint, Content, ContentLocation, FileState, Folded, MAX_CHANGES, MAX_SEGMENT_BYTES, Segment, pack,
};

/// The intervals at which the log is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// After how many commits there is a new checkpoint.
    pub checkpoint_commits: u64,
    /// The number of commits in a segment.
    pub segment_commits: u64,
    /// The time that a commit stays at its position after it was folded into a segment, by the remote's own clock.
    pub keep_positions: Duration,
    /// The time that the log keeps the contents of a commit, by the remote's own clock; `None` for ever.
    pub keep_contents: Option<Duration>,
    /// The number of files in one commit when a lost store is rebuilt; at most [`MAX_CHANGES`].
    pub rebuilt_files: usize,
}

impl Default for Intervals {
    fn default() -> Intervals {
        const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);
        Intervals {
            checkpoint_commits: 128,
            segment_commits: 256,
            keep_positions: MONTH,
            keep_contents: None,
            rebuilt_files: MAX_CHANGES,
        }
    }
}

/// The folded part of the log, as this replica last saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Upkeep {
    /// The newest checkpoint.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    checkpoint: Option<Position>,
    /// The last position that is in a segment.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    segment: Option<Position>,
    /// The last position whose commit is abridged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) abridged: Option<Position>,
}

/// The packs of a new checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packs {
    /// Contents that an older checkpoint has stay in its packs.
    Shared,
    /// All packs are new, so that the older ones can go.
    Fresh,
}

pub(super) fn number(position: Option<Position>) -> u64 {
    position.map_or(0, Position::number)
}

impl Replica {
    /// Writes a checkpoint and a segment if it is time.
    pub(super) async fn upkeep(&mut self, context: Context<'_>) -> Result<(), SyncError> {
        let (Some(store), Some(head)) = (self.state.known.store, self.state.known.head.clone()) else {
            return Ok(());
        };
        let Intervals { checkpoint_commits, segment_commits, .. } = context.intervals;
        let before = self.state.upkeep().await.map_err(SyncError::Local)?;
        let mut upkeep = before;
        let now = head.position.number();
        if now >= number(upkeep.checkpoint) + checkpoint_commits {
            let newest = self.remote.newest_checkpoint(context.patience, store).await?;
            upkeep.checkpoint = newest.as_ref().map(|(_, head)| head.position);
            if now >= number(upkeep.checkpoint) + checkpoint_commits {
                let older = newest.map(|(old, _)| old);
                let written = self.write_checkpoint(context, store, &head, older, Packs::Shared).await?;
                upkeep.checkpoint = if written { Some(head.position) } else { upkeep.checkpoint };
            }
        }
        if now >= number(upkeep.segment) + segment_commits {
            upkeep.segment = self.last_folded(context).await?;
            while now >= number(upkeep.segment) + segment_commits && context.patience.has_time() {
                match self.write_segment(context, store, upkeep.segment).await? {
                    Some(last) => upkeep.segment = Some(last),
                    None => break,
                }
            }
        }
        if upkeep != before {
            self.state.save_upkeep(&upkeep).await.map_err(SyncError::Local)?;
        }
        Ok(())
    }

    /// Writes the state at the last applied position; contents that an older checkpoint has stay where they are.
    ///
    /// Contents that are not here, because their files are outside of the replica's scope or not fetched yet, come from the commits after the older
    /// checkpoint (docs/adr/0037). Returns false if it could not: a device with unreadable names, or without contents that the remote has lost too,
    /// leaves it to others.
    pub(super) async fn write_checkpoint(
        &self,
        context: Context<'_>,
        store: StoreId,
        head: &Head,
        older: Option<Checkpoint>,
        packs: Packs,
    ) -> Result<bool, SyncError> {
        let state = &self.state.known.log;
        if !state.odd().is_empty() {
            return Ok(false);
        }
        let older_files =
            older.iter().filter(|_| packs == Packs::Shared).flat_map(|older| older.files.values());
        let mut places: BTreeMap<ContentHash, ContentLocation> = older_files
            .filter(|file| !matches!(file.place, ContentLocation::Inline(_)))
            .map(|file| (file.hash, file.place.clone()))
            .collect();
        let mut new = Vec::new();
        let mut elsewhere: Vec<(Locator, Content)> = Vec::new();
        for (locator, content) in state.files().iter() {
            if places.contains_key(&content.hash) {
                continue;
            }
            match self.state.kept(&content.hash).await.map_err(SyncError::Local)? {
                Some(bytes) => new.push(bytes),
                None => elsewhere.push((locator, content)),
            }
        }
        let found = self.contents_elsewhere(context, &elsewhere, older.as_ref(), head).await?;
        for (_, content) in &elsewhere {
            let Some(bytes) = found.get(&content.hash) else { return Ok(false) };
            new.push(bytes.clone());
        }
        let (packs, new_places) = pack(&new);
        for pack in &packs {
            self.remote.put_object(context.patience, &pack.bytes).await?;
        }
        for (bytes, place) in new.iter().zip(new_places) {
            if let ContentLocation::Object(_) = place {
                self.remote.put_object(context.patience, bytes).await?;
            }
            places.insert(ContentHash::of(bytes), place);
        }
        let files = state.files().iter().map(|(locator, content)| {
            let place = places.get(&content.hash).cloned().unwrap_or(ContentLocation::Inline(Bytes::new()));
            (locator, FileState { hash: content.hash, size: content.size, place })
        });
        let checkpoint = Checkpoint {
            store,
            position: head.position,
            commit: head.hash,
            state: state.mark(),
            files: files.collect(),
            odd: Vec::new(),
        };
        let position = head.position;
        let bytes = checkpoint.encode().map_err(|why| SyncError::Unfit { position, why: why.to_string() })?;
        self.remote.create(context.patience, &layout::checkpoint(position), &bytes).await?;
        Ok(true)
    }

    /// Returns contents of the log's files that this replica does not keep. Those that the remote has lost too are left out.
    async fn contents_elsewhere(
        &self,
        context: Context<'_>,
        wanted: &[(Locator, Content)],
        older: Option<&Checkpoint>,
        head: &Head,
    ) -> Result<BTreeMap<ContentHash, Bytes>, SyncError> {
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        // What was appended since extends the content that the older checkpoint has.
        let before: Vec<(&Locator, Content)> = wanted
            .iter()
            .filter_map(|(locator, _)| Some((locator, older?.files.get(locator)?)))
            .map(|(locator, file)| (locator, Content { hash: file.hash, size: file.size }))
            .collect();
        let contents: Vec<Content> = before.iter().map(|(_, content)| *content).collect();
        let contents = self.contents(context, &contents, older).await?;
        let trails = before.into_iter().filter_map(|(locator, content)| {
            Some((locator.clone(), Trail::of(content, contents.get(&content.hash)?.clone())))
        });
        let after = older.map(|older| older.position);
        let mut found = self.found_after(context, wanted, trails.collect(), after, head.position).await?;
        // An older checkpoint inside of which a content lies has it for a file that did not change.
        found.extend(contents);
        Ok(found)
    }

    /// Returns the last position that is in a segment.
    async fn last_folded(&self, context: Context<'_>) -> Result<Option<Position>, SyncError> {
        let mut segments = self.segments(context).await?;
        // A segment beyond the log's end is forged or damaged.
        segments.retain(|(_, last)| Some(*last) <= self.position());
        segments.sort_unstable();
        // Only what follows without a gap counts.
        let mut folded = None;
        for (first, last) in segments {
            if first.number() <= number(folded) + 1 {
                folded = folded.max(Some(last));
            }
        }
        Ok(folded)
    }

    /// Folds the commits after a position into a segment; returns its last position, if there are commits enough.
    async fn write_segment(
        &self,
        context: Context<'_>,
        store: StoreId,
        after: Option<Position>,
    ) -> Result<Option<Position>, SyncError> {
        let count = context.intervals.segment_commits;
        let start = number(after) + 1;
        let positions = (start..start + count).filter_map(Position::new);
        let read = self.read_positions(context, positions.collect()).await?;
        let mut commits: Vec<Bytes> = read.into_iter().map_while(|at| at.map(|at| at.bytes)).collect();
        // As many as fit, so that the same work gives the same segment on every device.
        while commits.iter().map(Bytes::len).sum::<usize>() > MAX_SEGMENT_BYTES / 2 && commits.len() > 1 {
            commits.truncate(commits.len() / 2);
        }
        let last = Position::new(start + commits.len() as u64 - 1);
        let (Some(first), Some(last)) = (Position::new(start), last.filter(|last| last.number() >= start))
        else {
            return Ok(None);
        };
        let segment = Segment { store, first, last, commits };
        let bytes =
            segment.encode().map_err(|why| SyncError::Unfit { position: first, why: why.to_string() })?;
        self.remote.create(context.patience, &layout::segment(first, last), &bytes).await?;
        Ok(Some(last))
    }

    /// Lets positions that have been in a segment for long enough say so instead of holding their commit.
    ///
    /// Returns how many were changed.
    pub async fn compact(&mut self, context: Context<'_>) -> Result<usize, SyncError> {
        let Some(store) = self.state.known.store else { return Ok(0) };
        let newest = self.newest_change(context).await?;
        let segments = self.remote.items(context.patience, &layout::segments(), None).await?;
        let mut changed = 0;
        for (item, info) in segments {
            let Item::Segment { first, last } = item else { continue };
            let age = info.modified.zip(newest).and_then(|(then, now)| now.duration_since(then).ok());
            let is_old = age.unwrap_or_default() >= context.intervals.keep_positions;
            if is_old && context.patience.has_time() {
                changed += self.compact_segment(context, store, first, last).await?;
            }
        }
        Ok(changed)
    }

    /// Returns when the log last grew, by the remote's clock.
    pub(super) async fn newest_change(
        &self,
        context: Context<'_>,
    ) -> Result<Option<std::time::SystemTime>, SyncError> {
        let Some(head) = &self.state.known.head else { return Ok(None) };
        let locator = layout::commit(head.position);
        match patiently(context.patience, || self.remote.backend().info(&locator)).await {
            Ok(info) => Ok(info.modified),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SyncError::Remote(error)),
        }
    }

    async fn compact_segment(
        &self,
        context: Context<'_>,
        store: StoreId,
        first: Position,
        last: Position,
    ) -> Result<usize, SyncError> {
        // They are changed in order: if the last one was, all were.
        let at_last = self.remote.read(context.patience, &layout::commit(last)).await?;
        if at_last.is_none_or(|at| Folded::is_at(&at.bytes)) {
            return Ok(0);
        }
        let segment = match self.remote.segment(context.patience, first, last).await {
            Ok(Some(segment)) if segment.store == store => segment,
            Ok(_) | Err(SyncError::Damaged { .. }) => return Ok(0),
            Err(trouble) => return Err(trouble),
        };
        let folded = Folded { store, first, last };
        let folded =
            folded.encode().map_err(|why| SyncError::Unfit { position: first, why: why.to_string() })?;
        let mut changed = 0;
        for number in first.number()..=last.number() {
            let Some(position) = Position::new(number) else { continue };
            let locator = layout::commit(position);
            let Some(At { bytes, version: Some(version) }) =
                self.remote.read(context.patience, &locator).await?
            else {
                continue;
            };
            // Only positions whose commit is in the segment, byte for byte.
            if segment.get(position) != Some(&bytes) {
                continue;
            }
            let matches = Condition::Matches(version);
            match self.remote.backend().write(&locator, folded.clone(), matches).await {
                Ok(_) => changed += 1,
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(SyncError::Remote(error)),
            }
        }
        Ok(changed)
    }
}
