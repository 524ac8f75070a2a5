//! Puts positions back that a remote has lost, byte for byte, from the archive of this device.
//!
//! 1. Find the last position at which the remote and the archive have the same commit. Every commit names the hash of the one before it,
//!    so all positions before an equal one are equal, and a few reads find it.
//! 2. If nothing stands after it, create the missing positions again with the archived bytes, their large contents first.
//! 3. If another commit stands there by now, that position is the end of the common part: the caller takes the replicas back to it.
//!
//! Example: the archive has 1–9, the remote was restored with 1–6. Positions 7–9 are created again, and nobody notices. If a device that
//! knew only 1–6 had committed 7 before that, the common part ends at 6.

use haversack_store::{Bytes, ErrorKind};

use super::remote::{Attempt, patiently};
use super::{Context, Replica, SyncError};
use crate::history::archive;
use crate::ids::{ContentHash, Position};
use crate::log::layout;
use crate::log::{Carried, Commit, What};

/// How often the end of the common part is looked for again, because another device wrote meanwhile.
const MAX_ROUNDS: usize = 16;

/// What a remote has of the log that this device knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PutBack {
    /// The last position that the remote and this device have in common; `None` if there is none, or if none is known.
    pub(super) common: Option<Position>,
    /// How many positions were put back.
    pub(super) positions: u64,
}

/// What became of one position.
enum Fate {
    PutBack,
    /// Another commit stands there.
    Taken,
    /// The archive does not have it, or a large content of it is nowhere on this device.
    NotHere,
}

/// Puts the lost positions back, as far as they are archived.
pub(super) async fn put_back(
    context: Context<'_>,
    replicas: &[Replica],
    archive: &mut archive::Reader,
) -> Result<PutBack, SyncError> {
    let newest = replicas.iter().filter_map(|replica| Some((replica, replica.position()?)));
    let Some((leader, last)) = newest.max_by_key(|(_, position)| *position) else {
        return Ok(PutBack { common: None, positions: 0 });
    };
    let mut positions = 0;
    for _ in 0..MAX_ROUNDS {
        let mut common = leader.common(context, replicas, archive, last).await?;
        loop {
            let next = common.map_or(Some(Position::FIRST), Position::next);
            let Some(next) = next.filter(|next| *next <= last) else {
                return Ok(PutBack { common, positions });
            };
            match leader.put_back_one(context, replicas, archive, next).await? {
                Fate::PutBack => {
                    positions += 1;
                    common = Some(next);
                }
                Fate::NotHere => return Ok(PutBack { common, positions }),
                Fate::Taken => break,
            }
        }
        let found = leader.common(context, replicas, archive, last).await?;
        // Somebody else may have put the same commit back.
        if found == common {
            return Ok(PutBack { common, positions });
        }
    }
    Err(SyncError::Outrun)
}

impl Replica {
    /// Returns the last position up to `last` at which the remote has the commit that this device knows.
    async fn common(
        &self,
        context: Context<'_>,
        replicas: &[Replica],
        archive: &mut archive::Reader,
        last: Position,
    ) -> Result<Option<Position>, SyncError> {
        // The highest position that is known to be equal, and the lowest that is known not to be.
        let (mut equal, mut other) = (0, last.number() + 1);
        let mut step = 1;
        while other - equal > 1 {
            // Most of the time only the last few are lost.
            let number = if equal == 0 { other.saturating_sub(step).max(1) } else { (equal + other) / 2 };
            step *= 2;
            let Some(position) = Position::new(number) else { break };
            let ours = known_hash(replicas, archive, position).await?;
            let theirs = self.remote.at(context.patience, position).await?;
            match (ours, theirs) {
                (Some(ours), Some(theirs)) if ContentHash::of(&theirs.bytes) == ours => equal = number,
                // What this device does not know counts as different: an earlier position is the safer base.
                (Some(_) | None, _) => other = number,
            }
        }
        Ok(Position::new(equal))
    }

    /// Creates one position again.
    async fn put_back_one(
        &self,
        context: Context<'_>,
        replicas: &[Replica],
        archive: &mut archive::Reader,
        position: Position,
    ) -> Result<Fate, SyncError> {
        if let Some(there) = self.remote.at(context.patience, position).await? {
            let ours = known_hash(replicas, archive, position).await?;
            return Ok(match ours == Some(ContentHash::of(&there.bytes)) {
                true => Fate::PutBack,
                false => Fate::Taken,
            });
        }
        let Some(bytes) = archive.bytes(position).await.map_err(SyncError::Local)? else {
            return Ok(Fate::NotHere);
        };
        let Ok(commit) = Commit::decode(&bytes) else { return Ok(Fate::NotHere) };
        for what in commit.changes.iter().map(|change| &change.what) {
            if !self.put_back_object(context, replicas, what).await? {
                return Ok(Fate::NotHere);
            }
        }
        let error = match self.remote.attempt(position, bytes.clone()).await {
            Attempt::Created(_) => return Ok(Fate::PutBack),
            Attempt::NotKnown(error) => error,
        };
        // Whatever the answer was, reading tells what is there.
        match self.remote.at(context.patience, position).await? {
            Some(there) if there.bytes == bytes => Ok(Fate::PutBack),
            Some(_) => Ok(Fate::Taken),
            None => Err(SyncError::Remote(error)),
        }
    }

    /// Puts the large content of a change back if the remote has lost it; returns false if it is nowhere on this device.
    async fn put_back_object(
        &self,
        context: Context<'_>,
        replicas: &[Replica],
        what: &What,
    ) -> Result<bool, SyncError> {
        let (object, whole, start) = match what {
            What::Put { content: Carried::Object(object), hash, .. } => (*object, *hash, 0),
            What::Append { added: Carried::Object(object), hash, base_size, .. } => {
                (*object, *hash, *base_size)
            }
            What::Delete { before: Some(object) } => (*object, *object, 0),
            What::Put { .. } | What::Append { .. } | What::Delete { before: None } => return Ok(true),
        };
        let place = layout::object(&object);
        match patiently(context.patience, || self.remote.backend().info(&place)).await {
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(SyncError::Remote(error)),
        }
        let Some(bytes) = kept_anywhere(replicas, &whole).await? else { return Ok(false) };
        let part = usize::try_from(start)
            .ok()
            .and_then(|start| (start <= bytes.len()).then(|| bytes.slice(start..)));
        match part.filter(|part| ContentHash::of(part) == object) {
            Some(part) => self.remote.put_object(context.patience, &part).await.map(|_| true),
            None => Ok(false),
        }
    }
}

/// Returns the hash of the commit that this device knows at a position: the archive has it, or the one after it names it.
pub(super) async fn known_hash(
    replicas: &[Replica],
    archive: &mut archive::Reader,
    position: Position,
) -> Result<Option<ContentHash>, SyncError> {
    if let Some(bytes) = archive.bytes(position).await.map_err(SyncError::Local)? {
        return Ok(Some(ContentHash::of(&bytes)));
    }
    let heads = replicas.iter().filter_map(|replica| replica.state.known.head.as_ref());
    if let Some(head) = heads.into_iter().find(|head| head.position == position) {
        return Ok(Some(head.hash));
    }
    let Some(next) = position.next() else { return Ok(None) };
    let after = archive.bytes(next).await.map_err(SyncError::Local)?;
    Ok(after.and_then(|bytes| Commit::decode(&bytes).ok()).map(|commit| commit.previous))
}

/// Returns a content that any replica of this home keeps.
pub(super) async fn kept_anywhere(
    replicas: &[Replica],
    hash: &ContentHash,
) -> Result<Option<Bytes>, SyncError> {
    for replica in replicas {
        if let Some(bytes) = replica.state.kept(hash).await.map_err(SyncError::Local)? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}
