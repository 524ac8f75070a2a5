//! What a replica remembers between syncs: who it is, how far it has read, and what it last agreed on.
//!
//! In a backend of its own, beside the working files:
//!
//! - `identity` who the replica is.
//! - `snapshot` position, mark and bases; `journal-<n>` what moved since the `n`-th snapshot, a line for each advance. An advance
//!   is one line: position and bases move together or not at all. A line that was cut short by a crash did not happen. What
//!   can be read may not be on the disk yet, if its writer was killed: nothing is built on it before it is ([`State::make_durable`]).
//! - `publishing` the bytes of the commit under way, from before the first attempt until its position is known to be taken.
//! - `applying` what is being done to working files, from before the first until their bases have moved.
//! - `passing` a sync client's copy that was put into the file it is a copy of, and is a working file until that is in the history.
//! - `objects/<hash>` the contents of the bases, one by one or many in one pack.
//! - `removals` how many deletions of other devices were carried out here lately; losing it makes the guard against many of them forget.
//! - `deletions` which files disappeared here lately, and which deletions wait for the user; losing it makes that guard forget.
//! - `upkeep` how far the log was folded when this replica last looked; losing it costs a request.
//! - `stat-cache` which fingerprint had which content; losing it costs time.

mod files;
mod journal;
mod known;
mod objects;
mod records;

use std::sync::{Arc, Mutex};

use haversack_store::{
    Backend, BackendExt, Bytes, Condition, Error as StoreError, ErrorKind, Locator, Operation,
    Result as StoreResult,
};
use serde::{Deserialize, Serialize};

use self::files::{damaged, place, read_frame, read_version, write_frame};
pub(crate) use self::journal::Journal;
pub(crate) use self::known::{Advance, BaseLine, Head, Known};
pub(crate) use self::records::{Applying, Move, Passing, Publishing};
use super::snapshot;
use crate::ids::{ContentHash, Ids, ReplicaId};

/// Who a replica is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) replica: ReplicaId,
    /// It was made just now, and nobody has looked yet at what an earlier one may have left in the working directory.
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
    pub(crate) known: Known,
    snapshot: u64,
    snapshot_bytes: u64,
    journal_bytes: u64,
    /// Whether all that was read is known to be on the disk.
    is_durable: bool,
    /// Whether the snapshot has an older format.
    is_old: bool,
    recent_pack: Mutex<Option<(ContentHash, Bytes)>>,
}

impl State {
    /// Loads the state, making an identity for a replica that has none.
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
        // The next line must not be written behind one that was cut short; and a snapshot of an older format takes long to read.
        if journal == Journal::CutShort || state.is_old {
            state.fold().await?;
        }
        Ok(state)
    }

    /// Reads who the replica is; `None` if there is no state.
    pub(crate) async fn replica(backend: &dyn Backend) -> StoreResult<Option<ReplicaId>> {
        Ok(read_frame::<Identity>(backend, "identity").await?.map(|(identity, _)| identity.replica))
    }

    /// Reads the state and changes nothing; `None` if there is none.
    pub(crate) async fn look(backend: Arc<dyn Backend>) -> StoreResult<Option<(State, Journal)>> {
        let Some((identity, _)) = read_frame::<Identity>(&*backend, "identity").await? else {
            return Ok(None);
        };
        let mut state = State {
            backend,
            identity,
            known: Known::default(),
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

    /// Tells whether nobody has looked yet at what an earlier replica may have left in the working directory.
    pub(crate) fn is_fresh(&self) -> bool {
        self.identity.fresh
    }

    /// Notes that somebody has.
    pub(crate) async fn settle_in(&mut self) -> StoreResult<()> {
        if self.identity.fresh {
            self.identity.fresh = false;
            write_frame(&*self.backend, "identity", &self.identity, &[]).await?;
        }
        Ok(())
    }
}

/// Forgets everything that a replica agreed on with a log; the next sync starts anew, with a merge without base.
pub async fn forget(state: &dyn Backend) -> StoreResult<()> {
    let all = state.list_all(&Locator::root()).await?;
    let is = |name: &'static str| move |locator: &&Locator| locator.as_str().starts_with(name);
    // Whatever is left if this is cut short is an earlier state, and whole.
    for name in [
        "publishing",
        "applying",
        "passing",
        "journal-",
        "snapshot",
        "stat-cache",
        "upkeep",
        "removals",
        "deletions",
        "objects/",
        "identity",
    ] {
        for locator in all.iter().filter(is(name)) {
            state.delete(locator, Condition::Any).await?;
        }
    }
    Ok(())
}
