//! Prints the state of a replica, for debugging.

use std::sync::Arc;

use haversack_store::{Backend, BackendExt, Result as StoreResult};
use serde::Serialize;

use super::plan::AbsenceReason;
use super::state::{JournalEnd, State};
use crate::ids::{CommitId, ContentHash, Position, ReplicaId, StoreId};
use crate::log::Commit;

/// The data that a replica keeps between syncs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dump {
    /// The replica's id.
    pub replica: ReplicaId,
    /// The store it follows, once it was met.
    pub store: Option<StoreId>,
    /// The last applied position.
    pub position: Option<Position>,
    /// The hash of the commit there.
    pub commit: Option<ContentHash>,
    /// True if the journal ends with a line that a crash cut short.
    pub cut_short: bool,
    /// The bases, file by file.
    pub bases: Vec<DumpedBase>,
    /// The commit whose publishing was not finished.
    pub publishing: Option<DumpedPublishing>,
    /// The working files that are being changed.
    pub applying: Vec<String>,
    /// The number of objects that hold contents.
    pub objects: usize,
}

/// A base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DumpedBase {
    /// The file.
    pub at: String,
    /// The name of its content; `None` for a file that the log deleted and that stayed here.
    pub hash: Option<ContentHash>,
    /// Its size in bytes.
    pub size: u64,
    /// Why it is not in the working directory, if it is not.
    pub elsewhere: Option<&'static str>,
}

/// A commit whose publishing was not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DumpedPublishing {
    /// The position it is for.
    pub position: Position,
    /// Its id, if it can be read.
    pub id: Option<CommitId>,
}

/// Reads the state of a replica, and changes nothing; `None` if there is no replica.
pub async fn dump(state: Arc<dyn Backend>) -> StoreResult<Option<Dump>> {
    let objects = haversack_store::Locator::parse("objects").expect("a plain name");
    let objects = state.list_all(&objects).await?.len();
    let Some((state, journal)) = State::look(state).await? else { return Ok(None) };
    let known = &state.known;
    let files = known.log.files().iter().map(|(locator, content)| DumpedBase {
        at: locator.to_string(),
        hash: Some(content.hash),
        size: content.size,
        elsewhere: known.absent.get(&locator).map(|why| match why {
            AbsenceReason::Unfetched => "unfetched",
            AbsenceReason::Refused => "refused",
            AbsenceReason::Missing => "missing",
            AbsenceReason::Unbound => "unbound",
        }),
    });
    let stayed = known.before.keys();
    let stayed =
        stayed.map(|locator| DumpedBase { at: locator.to_string(), hash: None, size: 0, elsewhere: None });
    let publishing = state.publishing().await?.map(|publishing| DumpedPublishing {
        position: publishing.position,
        id: Commit::decode(&publishing.bytes).ok().map(|commit| commit.id),
    });
    let applying = state.applying().await?.map(|applying| applying.moves).unwrap_or_default();
    Ok(Some(Dump {
        replica: state.identity.replica,
        store: known.store,
        position: known.head.as_ref().map(|head| head.position),
        commit: known.head.as_ref().map(|head| head.hash),
        cut_short: journal == JournalEnd::CutShort,
        bases: files.chain(stayed).collect(),
        publishing,
        applying: applying.into_iter().map(|moved| moved.at).collect(),
        objects,
    }))
}
