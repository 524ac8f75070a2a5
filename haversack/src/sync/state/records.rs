//! The records of the state: the commit, the file changes and the conflict copy under way; counters and caches that may be lost.

use haversack_store::{Bytes, Condition, ErrorKind, Result as StoreResult};
use serde::{Deserialize, Serialize};

use super::files::{damaged, encode, place, read_frame, read_version, write_frame};
use super::{Advance, BaseLine, State};
use crate::ids::{CommitId, ContentHash, Position};
use crate::sync::incoming::Removals;
use crate::sync::outgoing::DeletionRecord;
use crate::sync::scan::{self, StatCache};
use crate::sync::upkeep::Upkeep;

/// The commit under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublishRecord {
    pub(crate) position: Position,
    pub(crate) bytes: Bytes,
    /// The bases that change once the commit has its position.
    pub(crate) bases: Vec<BaseLine>,
}

/// Changes to working files under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApplyRecord {
    /// An id that is part of the reserved file names of this attempt.
    pub(crate) attempt: String,
    /// The number of moves, from the first, that must happen in order.
    #[serde(skip_serializing_if = "is_none", default)]
    pub(crate) in_order: usize,
    pub(crate) moves: Vec<Move>,
    /// The move of the bases after all changes.
    pub(crate) advance: Advance,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A conflict copy that is a working file only until the history has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyRecord {
    pub(crate) at: String,
    pub(crate) hash: ContentHash,
}

/// The change of one working file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) at: String,
    /// The content before; `None` if there was no file.
    pub(crate) expected: Option<ContentHash>,
    /// The content after; `None` if the file is deleted.
    pub(crate) new: Option<ContentHash>,
    /// For a deletion: the last content on the other device, if it differs from `expected`. For a new file: the common base, in case the user
    /// has just renamed the file to this name or to another spelling.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) last: Option<ContentHash>,
    /// The old name of a file that one side renamed and the other changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) renamed_from: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct PublishHeading {
    position: Position,
    bases: Vec<BaseLine>,
}

impl State {
    /// Fixes the bytes of a commit before the first attempt to publish it.
    pub(crate) async fn begin_publishing(&mut self, publishing: &PublishRecord) -> StoreResult<()> {
        self.make_durable().await?;
        let heading = PublishHeading { position: publishing.position, bases: publishing.bases.clone() };
        write_frame(&*self.backend, "publishing", &heading, &[&publishing.bytes]).await
    }

    /// Returns the commit that a killed process left unfinished.
    pub(crate) async fn publishing(&self) -> StoreResult<Option<PublishRecord>> {
        let found = read_frame::<PublishHeading>(&*self.backend, "publishing").await?;
        let publishing = |(heading, bytes): (PublishHeading, Bytes)| PublishRecord {
            position: heading.position,
            bytes,
            bases: heading.bases,
        };
        Ok(found.map(publishing))
    }

    pub(crate) async fn end_publishing(&mut self) -> StoreResult<()> {
        self.make_durable().await?;
        self.backend.delete(&place("publishing"), Condition::Any).await
    }

    pub(crate) async fn begin_applying(&mut self, applying: &ApplyRecord) -> StoreResult<()> {
        self.make_durable().await?;
        write_frame(&*self.backend, "applying", applying, &[]).await
    }

    /// Returns the changes to working files that a killed process left unfinished.
    pub(crate) async fn applying(&self) -> StoreResult<Option<ApplyRecord>> {
        let found =
            read_frame::<ApplyRecord>(&*self.backend, "applying").await?.map(|(applying, _)| applying);
        match found {
            // The attempt becomes part of file names.
            Some(applying) if applying.attempt.parse::<CommitId>().is_err() => Err(damaged("applying", "it")),
            found => Ok(found),
        }
    }

    pub(crate) async fn end_applying(&mut self) -> StoreResult<()> {
        self.make_durable().await?;
        self.backend.delete(&place("applying"), Condition::Any).await
    }

    /// Notes a conflict copy that will be removed from the working files, before it is written there.
    pub(crate) async fn begin_passing(&mut self, passing: &CopyRecord) -> StoreResult<()> {
        write_frame(&*self.backend, "passing", passing, &[]).await
    }

    /// Returns the conflict copy that is still to be removed from the working files.
    pub(crate) async fn passing(&self) -> StoreResult<Option<CopyRecord>> {
        Ok(read_frame::<CopyRecord>(&*self.backend, "passing").await?.map(|(passing, _)| passing))
    }

    pub(crate) async fn end_passing(&mut self) -> StoreResult<()> {
        self.make_durable().await?;
        self.backend.delete(&place("passing"), Condition::Any).await
    }

    /// Returns the contents by fingerprint at the last scan.
    ///
    /// A damaged cache counts as empty: the next scan reads every file.
    pub(crate) async fn cache(&self) -> StoreResult<StatCache> {
        match read_version::<scan::Heading>(&*self.backend, "stat-cache", scan::VERSION).await {
            Ok(Some(framed)) => Ok(StatCache::read(&framed).unwrap_or_default()),
            Ok(None) => Ok(StatCache::default()),
            Err(error) if error.kind() == ErrorKind::Internal => Ok(StatCache::default()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn save_cache(&self, cache: &mut StatCache) -> StoreResult<()> {
        let (heading, parts) = cache.write();
        let parts = [&parts[0][..], &parts[1][..]];
        let bytes = encode("stat-cache", scan::VERSION, &heading, &parts)?;
        let _ = self.backend.write(&place("stat-cache"), bytes.clone(), Condition::Any).await?;
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        cache.was_written(&heading, bytes.slice(bytes.len() - length..));
        Ok(())
    }

    /// Returns the part of the log that was folded when this replica last looked. A damaged record counts as empty.
    pub(crate) async fn upkeep(&self) -> StoreResult<Upkeep> {
        match read_frame::<Upkeep>(&*self.backend, "upkeep").await {
            Ok(found) => Ok(found.map(|(upkeep, _)| upkeep).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Internal => Ok(Upkeep::default()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn save_upkeep(&self, upkeep: &Upkeep) -> StoreResult<()> {
        write_frame(&*self.backend, "upkeep", upkeep, &[]).await
    }

    /// Returns the recent deletions of other devices that we carried out. A damaged record counts as none.
    pub(crate) async fn removals(&self) -> StoreResult<Option<Removals>> {
        match read_frame::<Removals>(&*self.backend, "removals").await {
            Ok(found) => Ok(found.map(|(removals, _)| removals)),
            Err(error) if error.kind() == ErrorKind::Internal => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn save_removals(&self, removals: &Removals) -> StoreResult<()> {
        write_frame(&*self.backend, "removals", removals, &[]).await
    }

    /// Returns the recent deletions on this device. A damaged record counts as none.
    pub(crate) async fn deletions(&self) -> StoreResult<DeletionRecord> {
        match read_frame::<DeletionRecord>(&*self.backend, "deletions").await {
            Ok(found) => Ok(found.map(|(deletions, _)| deletions).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Internal => Ok(DeletionRecord::default()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn save_deletions(&self, deletions: &DeletionRecord) -> StoreResult<()> {
        write_frame(&*self.backend, "deletions", deletions, &[]).await
    }

    /// Starts counting deletions at zero, those of other devices and of this one, because the user has answered.
    pub(crate) async fn forget_deletions(&self) -> StoreResult<()> {
        self.backend.delete(&place("removals"), Condition::Any).await?;
        self.backend.delete(&place("deletions"), Condition::Any).await
    }
}
