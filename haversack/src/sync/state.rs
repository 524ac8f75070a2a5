//! The state of a replica between syncs: its identity, its position in the log, and the base of every file.
//!
//! The state has a backend of its own, beside the working files. It holds these files:
//!
//! - `identity`: the id of the replica.
//! - `snapshot`: position, mark and bases.
//! - `journal-<n>`: the changes since the `n`-th snapshot ([`journal`]). Each line is one [`Advance`], so that position and bases move
//!   together or not at all. A crash can cut the last line short; that advance did not happen. If a writer was killed, we may read
//!   bytes that are not on the disk yet: we build on them only after [`State::make_durable`].
//! - `publishing`: the bytes of the commit under way. It is written before the first attempt and deleted once its position is taken.
//! - `applying`: the changes to working files under way. It is written before the first change and deleted once the bases have moved.
//! - `passing`: a conflict copy that we merged into its original. The copy is a working file until the history has it.
//! - `objects/<hash>`: the contents of the bases, one by one or many in one pack ([`objects`]).
//! - `removals`: the number of recent deletions of other devices that we carried out. Without it, that guard starts counting at zero.
//! - `deletions`: the files that disappeared here recently, and the deletions that wait for the user. Without it, that guard starts at zero.
//! - `begun`: an empty file. The replica has synced with a log that had no commit, and has sent none yet. So its first commit has edits,
//!   not files that were there before.
//! - `upkeep`: the part of the log that was folded when this replica last looked. Losing it costs a request.
//! - `stat-cache`: the content of each file by its fingerprint. Losing it costs time.

mod files;
mod journal;
mod log_view;
mod objects;
mod records;

use std::sync::{Arc, Mutex};

use haversack_store::{
    Backend, BackendExt, Bytes, Condition, Error as StoreError, ErrorKind, Locator, Operation,
    Result as StoreResult,
};
use serde::{Deserialize, Serialize};

pub(crate) use self::files::VERSION as NEWEST_IDENTITY;
use self::files::{damaged, place, read_frame, read_version, write_frame};
pub(crate) use self::journal::{JournalEnd, VERSION as NEWEST_JOURNAL};
pub(crate) use self::log_view::{Advance, BaseLine, Head, LogView};
pub(crate) use self::records::{ApplyRecord, CopyRecord, Move, PublishRecord};
use super::snapshot;
use crate::ids::{ContentHash, Ids, ReplicaId, StoreId};

/// The identity of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) replica: ReplicaId,
    /// True until the first sync has looked for remains of an earlier replica in the working directory.
    #[serde(skip_serializing_if = "is_settled", default)]
    fresh: bool,
}

fn is_settled(fresh: &bool) -> bool {
    !fresh
}

/// The state of one replica.
#[derive(Debug)]
pub(crate) struct State {
    backend: Arc<dyn Backend>,
    pub(crate) identity: Identity,
    pub(crate) known: LogView,
    snapshot: u64,
    snapshot_bytes: u64,
    journal_bytes: u64,
    /// True once everything that we read is on the disk.
    is_durable: bool,
    /// True if the snapshot has an older format.
    is_old: bool,
    /// The pack that was read last, with its hash.
    recent_pack: Mutex<Option<(ContentHash, Bytes)>>,
}

impl State {
    /// Loads the state; a replica without identity gets one.
    pub(crate) async fn load(backend: Arc<dyn Backend>, ids: &dyn Ids) -> StoreResult<State> {
        let found = match State::look(backend.clone()).await? {
            Some(found) => Some(found),
            None => {
                let identity = Identity { replica: ReplicaId::from_bytes(ids.next()), fresh: true };
                write_frame(&*backend, "identity", &identity, &[]).await?;
                State::look(backend.clone()).await?
            }
        };
        let Some((mut state, journal)) = found else {
            let message = "it is not there after it was written";
            return Err(StoreError::new(ErrorKind::Internal, Operation::Read, &place("identity"), message));
        };
        // The next line must not follow a line that was cut short. A snapshot of an older format is slow to read.
        if journal == JournalEnd::CutShort || state.is_old {
            state.fold().await?;
        }
        Ok(state)
    }

    /// Reads the id of the replica; `None` if there is no state.
    pub(crate) async fn replica(backend: &dyn Backend) -> StoreResult<Option<ReplicaId>> {
        Ok(read_frame::<Identity>(backend, "identity").await?.map(|(identity, _)| identity.replica))
    }

    /// Reads the state and changes nothing; `None` if there is none.
    pub(crate) async fn look(backend: Arc<dyn Backend>) -> StoreResult<Option<(State, JournalEnd)>> {
        let Some((identity, _)) = read_frame::<Identity>(&*backend, "identity").await? else {
            return Ok(None);
        };
        let mut state = State {
            backend,
            identity,
            known: LogView::default(),
            snapshot: 0,
            snapshot_bytes: 0,
            journal_bytes: 0,
            is_durable: false,
            is_old: false,
            recent_pack: Mutex::new(None),
        };
        if let Some(framed) =
            read_version::<snapshot::Heading>(&*state.backend, "snapshot", snapshot::VERSION).await?
        {
            state.snapshot = framed.heading.number;
            state.snapshot_bytes = framed.contents.len() as u64;
            state.is_old = framed.version < snapshot::VERSION;
            let known = snapshot::read(framed.heading, &framed.contents);
            state.known = known.ok_or_else(|| damaged("bases", "one of them"))?;
        }
        let journal = state.replay().await?;
        Ok(Some((state, journal)))
    }

    /// Returns true until the first sync has looked for remains of an earlier replica in the working directory.
    pub(crate) fn is_fresh(&self) -> bool {
        self.identity.fresh
    }

    /// Returns true if the replica has synced before, also if there was no commit in the log and nothing to send.
    pub(crate) async fn has_begun(&self) -> StoreResult<bool> {
        if self.known.head.is_some() {
            return Ok(true);
        }
        match self.backend.info(&place("begun")).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Notes that the replica has synced, where no position says so.
    pub(crate) async fn begin(&self) -> StoreResult<()> {
        if !self.has_begun().await? {
            let _ = self.backend.write(&place("begun"), Bytes::new(), Condition::Any).await?;
        }
        Ok(())
    }

    /// Notes that the first sync has looked for such remains.
    pub(crate) async fn settle_in(&mut self) -> StoreResult<()> {
        if self.identity.fresh {
            self.identity.fresh = false;
            write_frame(&*self.backend, "identity", &self.identity, &[]).await?;
        }
        Ok(())
    }
}

/// The files of a replica's state, by the beginnings of their names.
///
/// The order makes a crash harmless: if the first ones are gone, the files that remain are a whole, earlier state.
const FILES: [&str; 12] = [
    "publishing",
    "applying",
    "passing",
    "journal-",
    "snapshot",
    "stat-cache",
    "upkeep",
    "removals",
    "deletions",
    "begun",
    "objects/",
    "identity",
];

/// The directory of the states of stores that this replica has left.
const LEFT: &str = "left";

/// Deletes the state of a replica. Its next sync is like its first: it merges without bases.
pub async fn forget(state: &dyn Backend) -> StoreResult<()> {
    for locator in state_files(state, "").await? {
        state.delete(&locator, Condition::Any).await?;
    }
    Ok(())
}

/// Puts the state of a replica aside, because the replica leaves its store for another one. [`return_to`] brings it back.
///
/// Returns the store that the replica left; `None` if it had none.
pub async fn leave(state: &Arc<dyn Backend>) -> StoreResult<Option<StoreId>> {
    let Some((State { known: LogView { store, .. }, .. }, _)) = State::look(state.clone()).await? else {
        return Ok(None);
    };
    let Some(store) = store else {
        forget(&**state).await?;
        return Ok(None);
    };
    let aside = format!("{LEFT}/{store}/");
    // A state that was put aside before is older.
    for old in state_files(&**state, &aside).await? {
        state.delete(&old, Condition::Any).await?;
    }
    for locator in state_files(&**state, "").await? {
        state.rename(&locator, &place(&format!("{aside}{locator}"))).await?;
    }
    Ok(Some(store))
}

/// Returns true if this replica has left a store earlier, and can return to it.
pub async fn has_left(state: &dyn Backend, store: StoreId) -> StoreResult<bool> {
    Ok(!state_files(state, &format!("{LEFT}/{store}/")).await?.is_empty())
}

/// Brings the state of a store back that this replica left earlier. The replica has no other state now.
pub async fn return_to(state: &dyn Backend, store: StoreId) -> StoreResult<()> {
    let aside = format!("{LEFT}/{store}/");
    let files = state_files(state, &aside).await?;
    // The last files first: a state that is brought back in part is an earlier one.
    for locator in files.iter().rev() {
        let Some(name) = locator.as_str().strip_prefix(&aside) else { continue };
        match state.rename(locator, &place(name)).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            renamed => renamed?,
        }
    }
    Ok(())
}

/// Returns the files of a state below a prefix, in the order of [`FILES`].
async fn state_files(state: &dyn Backend, prefix: &str) -> StoreResult<Vec<Locator>> {
    let all = state.list_all(&Locator::root()).await?;
    let below = |name: &str| {
        let start = format!("{prefix}{name}");
        all.iter().filter(move |locator| locator.as_str().starts_with(&start)).cloned().collect::<Vec<_>>()
    };
    Ok(FILES.iter().flat_map(|name| below(name)).collect())
}
