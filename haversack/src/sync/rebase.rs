//! Takes a replica back to an earlier position of the log, because the remote has lost the later ones.
//!
//! 1. Find the files that changed after that position, and their contents at it, in this device's archive.
//! 2. The commit at that position has the mark of all files: it proves that nothing was guessed wrongly.
//! 3. Their contents are kept, as the contents of bases are.
//! 4. Position and bases move back in one line of the journal. The working files stay.
//!
//! Example: the base is at position 5, where a line was added and a file was deleted; back at 4, the line and the deletion are changes of
//! this device that wait to be sent, and the next sync merges them with the log's commits after 4.

use std::collections::BTreeMap;

use haversack_store::{Bytes, Locator};

use super::plan::AbsenceReason;
use super::rebuild::Trail;
use super::state::{Advance, BaseLine, Head};
use super::upkeep::Upkeep;
use super::{Context, Replica, SyncError};
use crate::history::archive;
use crate::ids::{ContentHash, Position};
use crate::log::{Commit, Content, What};

/// The result of taking a replica back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rebased {
    /// Its bases are those of the position.
    Done,
    /// The archive does not have the files' contents at that position: the next sync merges without a base.
    WithoutBase,
}

impl Replica {
    /// Takes the bases back to an earlier position.
    ///
    /// Without a position, or if the archive does not reach back to it, the replica forgets its bases.
    pub(super) async fn rebase(
        &mut self,
        context: Context<'_>,
        archive: &mut archive::Reader,
        to: Option<Position>,
    ) -> Result<Rebased, SyncError> {
        let Some(head) = self.state.known.head.clone() else { return Ok(Rebased::Done) };
        if to.is_some_and(|to| head.position <= to) {
            return Ok(Rebased::Done);
        }
        let advance = match to {
            Some(to) => self.way_back(context, archive, &head, to).await?,
            None => None,
        };
        self.state.save_upkeep(&Upkeep::default()).await.map_err(SyncError::Local)?;
        match advance {
            Some(advance) => {
                self.state.advance(&advance).await.map_err(SyncError::Local)?;
                Ok(Rebased::Done)
            }
            None => {
                self.state.forget_log().await.map_err(SyncError::Local)?;
                Ok(Rebased::WithoutBase)
            }
        }
    }

    /// Returns how the bases move back; `None` if the archive does not say it.
    async fn way_back(
        &self,
        context: Context<'_>,
        archive: &mut archive::Reader,
        head: &Head,
        to: Position,
    ) -> Result<Option<Advance>, SyncError> {
        let Some(store) = self.state.known.store else { return Ok(None) };
        let Some(mut held) = changed_after(archive, head, to).await? else { return Ok(None) };
        let Some(there) = archive.bytes(to).await.map_err(SyncError::Local)? else { return Ok(None) };
        let Ok(commit) = Commit::decode(&there) else { return Ok(None) };
        let trails = trails(archive, &held, to).await?;
        let mut state = self.state.known.log.clone();
        for (key, content) in &mut held {
            *content = trails.get(key).map_or(*content, |followed| followed.last);
            state.set(key, *content);
        }
        if state.mark() != commit.state {
            return Ok(None);
        }
        let mut contents: BTreeMap<ContentHash, Bytes> = BTreeMap::new();
        for (key, content) in &held {
            let Some(content) = content.filter(|_| self.scope.contains_name(key)) else { continue };
            if self.state.kept(&content.hash).await.map_err(SyncError::Local)?.is_some() {
                continue;
            }
            // A missing content costs a merge its base, and nothing else.
            contents.extend(self.content_of(context, key, content, trails.get(key)).await?);
        }
        let contents: Vec<(ContentHash, Bytes)> = contents.into_iter().collect();
        let packed = self.state.keep_all(&contents).await.map_err(SyncError::Local)?;
        let bases = held.iter().map(|(key, content)| BaseLine {
            absent: content.and_then(|_| match self.state.known.absent.get(key.as_str()) {
                Some(why) => Some(*why),
                None if !self.scope.contains_name(key) => Some(AbsenceReason::Unbound),
                None if state.odd().contains_key(key) => Some(AbsenceReason::Refused),
                None => None,
            }),
            pack: content.and_then(|content| packed.get(&content.hash).copied()),
            ..BaseLine::new(key, *content)
        });
        Ok(Some(Advance {
            store,
            head: Head { position: to, hash: ContentHash::of(&there), version: None },
            mark: commit.state,
            attempt: None,
            joined: None,
            bases: bases.collect(),
        }))
    }

    /// Returns a content that a file had: from the commits that carried it, or from the file, if it still holds it.
    async fn content_of(
        &self,
        context: Context<'_>,
        key: &str,
        content: Content,
        followed: Option<&Followed>,
    ) -> Result<Option<(ContentHash, Bytes)>, SyncError> {
        if let Some(Followed { trail, .. }) = followed
            && let Some(bytes) = self.put_together_from(context, trail).await?
            && content.is_of(&bytes)
        {
            return Ok(Some((content.hash, bytes)));
        }
        let Ok(locator) = Locator::parse(key) else { return Ok(None) };
        let local = self.local(&locator).await?.filter(|bytes| content.is_of(bytes));
        Ok(local.map(|bytes| (content.hash, bytes)))
    }
}

/// A file, followed through the archive.
#[derive(Default)]
struct Followed {
    /// The commits that its content came with, if the archive has all of them.
    trail: Trail,
    /// The file's content after the last of them.
    last: Option<Content>,
}

/// Returns the files that were changed after a position, with their contents before, if the changes contain them; `None` if
/// the archive does not have all of these commits.
async fn changed_after(
    archive: &mut archive::Reader,
    head: &Head,
    to: Position,
) -> Result<Option<BTreeMap<String, Option<Content>>>, SyncError> {
    let mut held: BTreeMap<String, Option<Content>> = BTreeMap::new();
    for number in to.number() + 1..=head.position.number() {
        let Some(position) = Position::new(number) else { return Ok(None) };
        let Some(bytes) = archive.bytes(position).await.map_err(SyncError::Local)? else { return Ok(None) };
        let Ok(commit) = Commit::decode(&bytes) else { return Ok(None) };
        // Another branch of the log may have been archived at these positions.
        if position == head.position && ContentHash::of(&bytes) != head.hash {
            return Ok(None);
        }
        let changes = commit.changes.iter().map(|change| (change.locator.as_str(), &change.what));
        for (key, what) in changes.chain(commit.odd.iter().map(|odd| (odd.key.as_str(), &odd.what))) {
            let before = match what {
                What::Append { base, base_size, .. } => Some(Content { hash: *base, size: *base_size }),
                What::Put { .. } | What::Delete { .. } => None,
            };
            held.entry(key.to_owned()).or_insert(before);
        }
    }
    Ok(Some(held))
}

/// Follows files through all archived commits up to a position; a file that none of them changed is left out.
async fn trails(
    archive: &mut archive::Reader,
    files: &BTreeMap<String, Option<Content>>,
    to: Position,
) -> Result<BTreeMap<String, Followed>, SyncError> {
    let mut trails: BTreeMap<String, Followed> = BTreeMap::new();
    for number in archive.first_before(to).number()..=to.number() {
        let Some(position) = Position::new(number) else { continue };
        let Some(bytes) = archive.bytes(position).await.map_err(SyncError::Local)? else { continue };
        let Ok(commit) = Commit::decode(&bytes) else { continue };
        let changes = commit.changes.iter().map(|change| (change.locator.as_str(), &change.what));
        for (key, what) in changes.chain(commit.odd.iter().map(|odd| (odd.key.as_str(), &odd.what))) {
            if files.contains_key(key) {
                let followed = trails.entry(key.to_owned()).or_default();
                followed.trail.follow(what);
                followed.last = what.after();
            }
        }
    }
    Ok(trails)
}
