//! The records of the state: what is under way, and what is counted or guessed.

use haversack_store::{Bytes, Condition, ErrorKind, Result as StoreResult};
use serde::{Deserialize, Serialize};

use super::files::{damaged, encode, place, read_frame, read_version, write_frame};
use super::{Advance, BaseLine, State};
use crate::ids::{CommitId, ContentHash, Position};
use crate::sync::incoming::Removals;
use crate::sync::outgoing::DeletionRecord;
use crate::sync::scan::{self, StatCache};
use crate::sync::upkeep::Upkeep;

/// The commit that is being published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Publishing {
    pub(crate) position: Position,
    pub(crate) bytes: Bytes,
    /// The bases that come of it.
    pub(crate) bases: Vec<BaseLine>,
}

/// Something that is being done to working files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Applying {
    /// Tells the reserved names of one attempt from those of another.
    pub(crate) attempt: String,
    /// How many of the moves, from the first, have to be carried out in order.
    #[serde(skip_serializing_if = "nothing", default)]
    pub(crate) in_order: usize,
    pub(crate) moves: Vec<Move>,
    /// How the bases move when all of it is done.
    pub(crate) advance: Advance,
}

fn nothing(count: &usize) -> bool {
    *count == 0
}

/// A sync client's copy that is among the working files only to be in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Passing {
    pub(crate) at: String,
    pub(crate) hash: ContentHash,
}

/// What is done to one working file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) at: String,
    /// What was there; `None` for nothing.
    pub(crate) expected: Option<ContentHash>,
    /// What comes there; `None` for nothing.
    pub(crate) new: Option<ContentHash>,
    /// Of a file that goes: what it held on the other side before it was deleted, if that is not what was there. Of a file that comes where
    /// nothing was: what both sides go back to, should the user have it under another spelling.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) last: Option<ContentHash>,
}

#[derive(Serialize, Deserialize)]
struct PublishingHeading {
    position: Position,
    bases: Vec<BaseLine>,
}

impl State {
    /// Fixes the bytes of a commit before the first attempt to publish it.
    pub(crate) async fn begin_publishing(&mut self, publishing: &Publishing) -> StoreResult<()> {
        self.make_durable().await?;
        let heading = PublishingHeading { position: publishing.position, bases: publishing.bases.clone() };
        write_frame(&*self.backend, "publishing", &heading, &[&publishing.bytes]).await
    }

    /// Returns the commit whose publishing was not finished.
    pub(crate) async fn publishing(&self) -> StoreResult<Option<Publishing>> {
        let found = read_frame::<PublishingHeading>(&*self.backend, "publishing").await?;
        let publishing = |(heading, bytes): (PublishingHeading, Bytes)| Publishing {
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

    pub(crate) async fn begin_applying(&mut self, applying: &Applying) -> StoreResult<()> {
        self.make_durable().await?;
        write_frame(&*self.backend, "applying", applying, &[]).await
    }

    /// Returns what was being done to working files when a process died.
    pub(crate) async fn applying(&self) -> StoreResult<Option<Applying>> {
        let found = read_frame::<Applying>(&*self.backend, "applying").await?.map(|(applying, _)| applying);
        match found {
            // Names are made of it.
            Some(applying) if applying.attempt.parse::<CommitId>().is_err() => Err(damaged("applying", "it")),
            found => Ok(found),
        }
    }

    pub(crate) async fn end_applying(&mut self) -> StoreResult<()> {
        self.make_durable().await?;
        self.backend.delete(&place("applying"), Condition::Any).await
    }

    /// Notes that a copy is to go from the working files, before it comes there.
    pub(crate) async fn begin_passing(&mut self, passing: &Passing) -> StoreResult<()> {
        write_frame(&*self.backend, "passing", passing, &[]).await
    }

    /// Returns the copy that is still to go.
    pub(crate) async fn passing(&self) -> StoreResult<Option<Passing>> {
        Ok(read_frame::<Passing>(&*self.backend, "passing").await?.map(|(passing, _)| passing))
    }

    pub(crate) async fn end_passing(&mut self) -> StoreResult<()> {
        self.make_durable().await?;
        self.backend.delete(&place("passing"), Condition::Any).await
    }

    /// Returns which fingerprint had which content at the last look.
    ///
    /// One that cannot be read is as good as none: everything is looked at.
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

    /// Returns how far the log was folded when this replica last looked; what cannot be read is looked for again.
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

    /// Returns the deletions of other devices that were carried out here lately; a count that cannot be read is none.
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

    /// Returns the deletions that were found here lately; a record that cannot be read is none.
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

    /// Begins to count deletions anew, those of other devices and those of this one: the user has answered.
    pub(crate) async fn forget_deletions(&self) -> StoreResult<()> {
        self.backend.delete(&place("removals"), Condition::Any).await?;
        self.backend.delete(&place("deletions"), Condition::Any).await
    }
}
