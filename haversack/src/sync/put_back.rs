//! Puts positions back that a remote has lost, byte for byte, from the archive of this device.
//!
//! 1. Find the last position at which the remote and the archive have the same commit. Every commit names the hash of the one before it,
//!    so all positions before an equal one are equal, and a few reads find it.
//! 2. If nothing stands after it, create the missing positions again with the archived bytes, their large contents first. A commit that was
//!    not built on the position before it is of another branch of the log: it is not put back.
//! 3. If another commit stands there by now, that position is the end of the common part: the caller takes the replicas back to it.
//!
//! Example: the archive has 1–9, the remote was restored with 1–6. Positions 7–9 are created again, and no other device notices. If a device
//! that knew only 1–6 had committed 7 before that, the common part ends at 6.
//!
//! The replicas of one home can stand on different branches, because a sync that is killed leaves them at different positions. Example: the
//! replica of a project published 7, and the remote lost it. The replica of the memory was at 6, so it applies the 7 of another device, and the
//! archive then has that one. So each replica has its own common part ([`Replica::own_common`]).

use haversack_store::{Bytes, ErrorKind};

use super::remote::{Attempt, patiently};
use super::{Context, Replica, SyncError};
use crate::history::archive;
use crate::ids::{ContentHash, Position};
use crate::log::layout;
use crate::log::{Carried, Commit, What};

/// The most times that we look for the end of the common part again because another device wrote.
const MAX_ROUNDS: usize = 16;

/// The outcome for one position.
enum Fate {
    /// It is there again; the hash is that of its commit.
    PutBack(ContentHash),
    /// Another commit stands there.
    Taken,
    /// The archive does not have it on this branch, or a large content of it is nowhere on this device.
    NotHere,
}

/// The commits that are compared with those of a remote.
#[derive(Clone, Copy)]
enum KnownCommits<'a> {
    /// Those that the archive has, or else any replica.
    Home(&'a [Replica]),
    /// The commits that one replica has applied.
    Replica(&'a Replica),
}

impl KnownCommits<'_> {
    async fn hash(
        self,
        archive: &mut archive::Reader,
        position: Position,
    ) -> Result<Option<ContentHash>, SyncError> {
        match self {
            KnownCommits::Home(replicas) => known_hash(replicas, archive, position).await,
            KnownCommits::Replica(replica) => replica.own_hash(archive, position).await,
        }
    }
}

/// Puts the lost positions back, as far as they are archived; returns their number.
pub(super) async fn put_back(
    context: Context<'_>,
    replicas: &[Replica],
    archive: &mut archive::Reader,
) -> Result<u64, SyncError> {
    let newest = replicas.iter().filter_map(|replica| Some((replica, replica.position()?)));
    let Some((leader, last)) = newest.max_by_key(|(_, position)| *position) else {
        return Ok(0);
    };
    let mut positions = 0;
    for _ in 0..MAX_ROUNDS {
        let mut common = leader.common(context, KnownCommits::Home(replicas), archive, last).await?;
        let mut previous = match common {
            Some(common) => known_hash(replicas, archive, common).await?,
            None => Some(ContentHash::of(b"")),
        };
        loop {
            let next = common.map_or(Some(Position::FIRST), Position::next);
            let Some(next) = next.filter(|next| *next <= last) else {
                return Ok(positions);
            };
            match leader.put_back_one(context, replicas, archive, next, previous).await? {
                Fate::PutBack(hash) => {
                    positions += 1;
                    (common, previous) = (Some(next), Some(hash));
                }
                Fate::NotHere => return Ok(positions),
                Fate::Taken => break,
            }
        }
        let found = leader.common(context, KnownCommits::Home(replicas), archive, last).await?;
        // Another device may have put the same commit back.
        if found == common {
            return Ok(positions);
        }
    }
    Err(SyncError::Outrun)
}

impl Replica {
    /// Returns the last position that this replica has in common with a remote which lacks the replica's last commit; `None` if there is
    /// none, or if the archive has another branch of the log.
    pub(super) async fn own_common(
        &self,
        context: Context<'_>,
        archive: &mut archive::Reader,
    ) -> Result<Option<Position>, SyncError> {
        let before = self.position().and_then(|last| Position::new(last.number() - 1));
        let Some(before) = before else { return Ok(None) };
        self.common(context, KnownCommits::Replica(self), archive, before).await
    }

    /// Returns the hash of the commit that this replica has applied at a position; `None` if the archive has another branch of the log.
    pub(super) async fn own_hash(
        &self,
        archive: &mut archive::Reader,
        position: Position,
    ) -> Result<Option<ContentHash>, SyncError> {
        let Some(head) = &self.state.known.head else { return Ok(None) };
        if position == head.position {
            return Ok(Some(head.hash));
        }
        let archived = archive.bytes(head.position).await.map_err(SyncError::Local)?;
        if archived.is_some_and(|bytes| ContentHash::of(&bytes) != head.hash) {
            return Ok(None);
        }
        known_hash(std::slice::from_ref(self), archive, position).await
    }

    /// Returns the last position up to `last` at which the remote has the known commit.
    async fn common(
        &self,
        context: Context<'_>,
        known: KnownCommits<'_>,
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
            let ours = known.hash(archive, position).await?;
            let theirs = self.remote.at(context.patience, position).await?;
            match (ours, theirs) {
                (Some(ours), Some(theirs)) if theirs.hash() == ours => equal = number,
                // A position that this device does not know counts as different: an earlier position is the safer base.
                (Some(_) | None, _) => other = number,
            }
        }
        Ok(Position::new(equal))
    }

    /// Creates one position again; its commit must have been built on the one with the hash `previous`.
    async fn put_back_one(
        &self,
        context: Context<'_>,
        replicas: &[Replica],
        archive: &mut archive::Reader,
        position: Position,
        previous: Option<ContentHash>,
    ) -> Result<Fate, SyncError> {
        if let Some(there) = self.remote.at(context.patience, position).await? {
            let (ours, theirs) = (known_hash(replicas, archive, position).await?, there.hash());
            return Ok(if ours == Some(theirs) { Fate::PutBack(theirs) } else { Fate::Taken });
        }
        let Some(bytes) = archive.bytes(position).await.map_err(SyncError::Local)? else {
            return Ok(Fate::NotHere);
        };
        let Ok(commit) = Commit::decode(&bytes) else { return Ok(Fate::NotHere) };
        if Some(commit.previous) != previous {
            return Ok(Fate::NotHere);
        }
        for what in commit.changes.iter().map(|change| &change.what) {
            if !self.put_back_object(context, replicas, what).await? {
                return Ok(Fate::NotHere);
            }
        }
        let error = match self.remote.attempt(position, bytes.clone()).await {
            Attempt::Created(_) => return Ok(Fate::PutBack(ContentHash::of(&bytes))),
            Attempt::NotKnown(error) => error,
        };
        // Ignore the answer; reading the position shows its content.
        match self.remote.at(context.patience, position).await? {
            Some(there) if there.bytes == bytes => Ok(Fate::PutBack(ContentHash::of(&bytes))),
            Some(_) => Ok(Fate::Taken),
            None => Err(SyncError::Remote(error)),
        }
    }

    /// Puts the large content of a change back if the remote has lost it; returns false if it is nowhere on this device.
    pub(super) async fn put_back_object(
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
