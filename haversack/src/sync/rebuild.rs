//! Contents that are nowhere else any more, put together again from the commits that carried them.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Bytes, Locator};

use super::mirror::SEARCHED_AT_ONCE;
use super::{Context, Replica, SyncError};
use crate::ids::{ContentHash, Position};
use crate::log::{Carried, Content, FileChange, What};

/// The commits that a file's content came with, from its last whole one on.
#[derive(Default)]
pub(super) struct Trail {
    parts: Vec<Carried>,
    pub(super) now: Option<Content>,
}

impl Trail {
    /// Returns the trail of a file whose whole content is known.
    pub(super) fn of(content: Content, bytes: Bytes) -> Trail {
        Trail { parts: vec![Carried::Inline(bytes)], now: Some(content) }
    }

    pub(super) fn follow(&mut self, what: &What) {
        let part = match what {
            What::Put { content, .. } => {
                self.parts.clear();
                content
            }
            What::Append { base, added, .. } if self.now.is_some_and(|now| now.hash == *base) => added,
            What::Append { .. } | What::Delete { .. } => return *self = Trail::default(),
        };
        self.parts.push(match part {
            // A slice would hold on to the whole commit.
            Carried::Inline(bytes) => Carried::Inline(Bytes::copy_from_slice(bytes)),
            Carried::Object(hash) => Carried::Object(*hash),
        });
        self.now = what.after();
    }
}

impl Replica {
    /// Returns the content that an append extends: kept here, from the remote if it was not fetched yet, or found again.
    pub(super) async fn extended(
        &self,
        context: Context<'_>,
        locator: &Locator,
        base: Content,
    ) -> Result<Option<Bytes>, SyncError> {
        if let Some(kept) = self.base_content(context, &base.hash).await? {
            return Ok(Some(kept));
        }
        if let Some(local) = self.local(locator).await?.filter(|local| base.is_of(local)) {
            return Ok(Some(local));
        }
        let Some(last) = self.position() else { return Ok(None) };
        Ok(self.found_in_log(context, &[(locator.clone(), base)], last).await?.remove(&base.hash))
    }

    /// Returns past contents of files in the log up to a position; contents that are missing there too are left out.
    pub(super) async fn found_in_log(
        &self,
        context: Context<'_>,
        wanted: &[(Locator, Content)],
        last: Position,
    ) -> Result<BTreeMap<ContentHash, Bytes>, SyncError> {
        self.found_after(context, wanted, BTreeMap::new(), None, last).await
    }

    /// Returns the same from the commits after a position alone. `trails` says where the files' contents at that position are.
    pub(super) async fn found_after(
        &self,
        context: Context<'_>,
        wanted: &[(Locator, Content)],
        mut trails: BTreeMap<Locator, Trail>,
        after: Option<Position>,
        last: Position,
    ) -> Result<BTreeMap<ContentHash, Bytes>, SyncError> {
        let mut found = BTreeMap::new();
        for (locator, _) in wanted {
            trails.entry(locator.clone()).or_default();
        }
        let hashes: BTreeSet<ContentHash> = wanted.iter().map(|(_, content)| content.hash).collect();
        let mut next = after.map_or(Position::FIRST.number(), |after| after.number() + 1);
        while next <= last.number() && found.len() < hashes.len() {
            let end = last.number().min(next + SEARCHED_AT_ONCE - 1);
            let positions = (next..=end).filter_map(Position::new).collect();
            let read = match self.read_positions(context, positions).await {
                Ok(read) => read,
                // A part of it that cannot be read is for those to tell who need it.
                Err(SyncError::Damaged { .. }) => return Ok(found),
                Err(trouble) => return Err(trouble),
            };
            for at in read.into_iter().flatten() {
                let Ok(commit) = at.commit() else { return Ok(found) };
                for FileChange { locator, what } in &commit.changes {
                    let Some(trail) = trails.get_mut(locator) else { continue };
                    trail.follow(what);
                    let Some(now) = trail.now.filter(|now| hashes.contains(&now.hash)) else { continue };
                    if let Some(content) = self.put_together_from(context, trail).await?
                        && wanted.iter().any(|(_, wanted)| wanted.is_of(&content))
                    {
                        found.insert(now.hash, content);
                    }
                }
            }
            next = end + 1;
        }
        Ok(found)
    }

    /// Returns the past content of a file that is most similar to the given content, as its probable base; `None` if it is more similar to
    /// none of them.
    pub(super) async fn most_like(
        &self,
        context: Context<'_>,
        locator: &Locator,
        content: &Bytes,
    ) -> Result<Option<Bytes>, SyncError> {
        let Some(last) = self.position() else { return Ok(None) };
        let mut trail = Trail::default();
        let mut nearest = (apart(b"", content), None);
        let mut next = Position::FIRST.number();
        while next <= last.number() {
            let end = last.number().min(next + SEARCHED_AT_ONCE - 1);
            let positions = (next..=end).filter_map(Position::new).collect();
            for at in self.read_positions(context, positions).await?.into_iter().flatten() {
                let Ok(commit) = at.commit() else { continue };
                let Some(change) = commit.changes.iter().find(|change| change.locator == *locator) else {
                    continue;
                };
                trail.follow(&change.what);
                if let Some(held) =
                    self.put_together_from(context, &trail).await?.filter(|held| !held.is_empty())
                {
                    // Of equals the newest.
                    let distance = apart(&held, content);
                    if distance <= nearest.0 {
                        nearest = (distance, Some(held));
                    }
                }
            }
            next = end + 1;
        }
        Ok(nearest.1)
    }

    pub(super) async fn put_together_from(
        &self,
        context: Context<'_>,
        trail: &Trail,
    ) -> Result<Option<Bytes>, SyncError> {
        let mut whole = Vec::new();
        for part in &trail.parts {
            let Some(bytes) = self.carried(context, part).await? else { return Ok(None) };
            whole.extend_from_slice(&bytes);
        }
        Ok(Some(whole.into()))
    }
}

/// Returns how many lines one of two texts has and the other does not.
fn apart(one: &[u8], other: &[u8]) -> usize {
    let mut lines: BTreeMap<&[u8], isize> = BTreeMap::new();
    for line in one.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        *lines.entry(line).or_default() += 1;
    }
    for line in other.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        *lines.entry(line).or_default() -= 1;
    }
    lines.values().map(|count| count.unsigned_abs()).sum()
}
