//! Takes a store to another place, and ends its log where it was (docs/adr/0030).
//!
//! 1. Copy the log, the segments, the checkpoints and the objects, byte for byte; read every copy back. Write `store.json` last, so that no device
//!    finds a store there before it is whole.
//! 2. End the old log: create its next position with a commit that names the new address. Creating it proves that nothing was
//!    committed since the copy; if something was, take it in and begin again.
//!
//! The new place has the same store and the same positions, so nothing that a device knows changes but the address. The commit that ends the
//! old log is not copied: the new log continues at that position.
//!
//! Killed at any moment, the same call continues: it only compares existing objects.

use std::sync::Arc;

use haversack_store::{Backend, Locator};

use super::progress::Stage;
use super::remote::{Attempt, Remote};
use super::{Context, Replica, SyncError, other_store};
use crate::ids::{CommitId, StoreId};
use crate::log::layout::{self, Item};
use crate::log::{Commit, Folded, Notice, StoreFile};
use crate::many::{MAX_AT_ONCE, Work, many};
use crate::names;

/// The most times that the copy is updated because other devices commit.
const MAX_ROUNDS: usize = 64;

/// The result of a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// The number of copied objects.
    pub copied: usize,
    /// The number of objects that an interrupted move had copied before.
    pub there: usize,
}

/// Copies the store that a replica follows to another place, and ends its log here. The replica should be up to date.
pub async fn move_store(
    context: Context<'_>,
    replica: &mut Replica,
    to: Arc<dyn Backend>,
    url: &str,
) -> Result<Moved, SyncError> {
    let Some(store) = replica.store() else { return Err(SyncError::Unclear("which store this is")) };
    let target = Remote::new(to);
    match target.store_file(context.patience).await? {
        Some(file) if file.store != store => return Err(other_store(store, &file)),
        _ => {}
    }
    let mut moved = Moved::default();
    for _ in 0..MAX_ROUNDS {
        replica.copy_all(context, store, &target, &mut moved).await?;
        match replica.pull(context).await {
            Ok(report) if report.taken > 0 => continue,
            Ok(_) => {}
            // A move to this place that was cut short after its last step.
            Err(SyncError::Moved { url: there, .. }) if there == url => return Ok(moved),
            Err(trouble) => return Err(trouble),
        }
        if replica.end_log(context, store, url).await? {
            return Ok(moved);
        }
    }
    Err(SyncError::Outrun)
}

impl Replica {
    /// Checks that the remote holds this replica's store, with the last position that it has applied.
    pub async fn check_remote(&self, context: Context<'_>) -> Result<(), SyncError> {
        let Some(expected) = self.state.known.store else { return Ok(()) };
        match self.remote.store_file(context.patience).await? {
            Some(file) if file.store != expected => Err(other_store(expected, &file)),
            Some(_) => self.check_head(context).await,
            None => Err(SyncError::Wiped { expected }),
        }
    }

    /// Copies everything of the store that the other place does not have, and reads all of it back.
    async fn copy_all(
        &self,
        context: Context<'_>,
        store: StoreId,
        target: &Remote,
        moved: &mut Moved,
    ) -> Result<(), SyncError> {
        *moved = Moved::default();
        // Contents first, so that a reader of a commit finds all contents that it names.
        for directory in [layout::objects(), layout::checkpoints(), layout::segments(), layout::commits()] {
            let here = self.remote.items(context.patience, &directory, None).await?;
            let places: Vec<Locator> = here.into_iter().map(|(item, _)| item.locator()).collect();
            for (number, some) in places.chunks(MAX_AT_ONCE).enumerate() {
                context.progress.at(Stage::Sending, number * MAX_AT_ONCE, Some(places.len()));
                let mut copies: Vec<Work<'_, Copied, SyncError>> = Vec::with_capacity(some.len());
                for place in some {
                    copies.push(Box::pin(self.copy_one(context, target, place)));
                }
                for copied in many(MAX_AT_ONCE, copies).await? {
                    moved.copied += usize::from(copied == Copied::Now);
                    moved.there += usize::from(copied == Copied::Before);
                }
            }
        }
        let file = self.remote.store_file(context.patience).await?;
        let file = file.unwrap_or(StoreFile {
            store,
            created: context.clock.now(),
            name: names::harmless(&context.author.device),
            predecessor: None,
        });
        target.create(context.patience, &layout::store_file(), &file.encode()).await?;
        match target.store_file(context.patience).await? {
            Some(found) if found.store == store => Ok(()),
            Some(found) => Err(other_store(store, &found)),
            None => Err(SyncError::Unclear("the file that names the store")),
        }
    }

    async fn copy_one(
        &self,
        context: Context<'_>,
        target: &Remote,
        place: &Locator,
    ) -> Result<Copied, SyncError> {
        // It was listed: who has removed it since has put something else in its place.
        let Some(at) = self.remote.read(context.patience, place).await? else { return Ok(Copied::Not) };
        if let Some(Item::Commit(_)) = Item::at(place)
            && let Ok(Commit { notice: Some(Notice::Moved { .. }), .. }) = Commit::decode(&at.bytes)
        {
            return Ok(Copied::Not);
        }
        let before = target.read(context.patience, place).await?;
        if let Some(there) = &before {
            // A position that was folded since says where its commit is, which was copied with its segment.
            return match there.bytes == at.bytes || Folded::is_at(&at.bytes) {
                true => Ok(Copied::Before),
                false => Err(in_the_way(place)),
            };
        }
        target.create(context.patience, place, &at.bytes).await?;
        match target.read(context.patience, place).await? {
            Some(there) if there.bytes == at.bytes => Ok(Copied::Now),
            Some(_) => Err(in_the_way(place)),
            None => Err(SyncError::Unclear("a copy of the store")),
        }
    }

    /// Creates the position that ends the log; returns false if another device committed there.
    async fn end_log(&self, context: Context<'_>, store: StoreId, url: &str) -> Result<bool, SyncError> {
        let (position, previous) = self.next();
        let commit = Commit {
            store,
            position,
            id: CommitId::from_bytes(context.ids.next()),
            previous,
            replica: self.id(),
            device: names::harmless(&context.author.device),
            agent: None,
            session: None,
            time: context.clock.now(),
            cause: "move".to_owned(),
            state: self.state.known.log.mark(),
            changes: Vec::new(),
            odd: Vec::new(),
            notice: Some(Notice::Moved { url: url.to_owned() }),
        };
        let bytes = commit.encode().map_err(|why| SyncError::Unfit { position, why: why.to_string() })?;
        let error = match self.remote.attempt(position, bytes).await {
            Attempt::Created(_) => return Ok(true),
            Attempt::NotKnown(error) => error,
        };
        match self.remote.at(context.patience, position).await? {
            Some(there) => match there.commit() {
                Ok(Commit { notice: Some(Notice::Moved { url: there }), .. }) if there == url => Ok(true),
                _ => Ok(false),
            },
            None => Err(SyncError::Remote(error)),
        }
    }
}

/// The result for one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    Now,
    Before,
    Not,
}

fn in_the_way(place: &Locator) -> SyncError {
    let why = crate::frame::BadFrame::damaged("another object is in its place");
    SyncError::Damaged { what: format!("the copy of {place}"), why }
}
