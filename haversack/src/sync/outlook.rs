//! How a replica stands, looked at without a remote and without changing anything.

use std::sync::Arc;

use haversack_store::{Backend, Locator, Result as StoreResult};

use super::plan::{self, Elsewhere, Gone};
use super::scan::{self, StatCache};
use super::state::{Journal, Known, State};
use super::{Gate, Hold, Scope};
use crate::ids::{Position, ReplicaId, StoreId};

/// How a replica stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Who it is; nobody before its first sync.
    pub replica: Option<ReplicaId>,
    /// The store it follows, once it was met.
    pub store: Option<StoreId>,
    /// The last position that was taken in.
    pub position: Option<Position>,
    /// How many files are here.
    pub files: usize,
    /// New files that wait to be sent.
    pub created: Vec<Locator>,
    /// Changed files that wait to be sent.
    pub changed: Vec<Locator>,
    /// Deletions that wait to be sent.
    pub deleted: Vec<Locator>,
    /// Deletions that wait until somebody says that they are meant.
    pub waiting_deletions: Vec<Locator>,
    /// Files that other devices deleted, very many at once: they stay here until the user decides.
    pub held_deletions: Vec<Locator>,
    /// Whether all files are gone at once.
    pub has_vanished: bool,
    /// Files that stay on this device, and why.
    pub held: Vec<(Locator, Hold)>,
    /// Files that this disk cannot hold.
    pub refused: Vec<Locator>,
    /// Places where files are that could not be looked at, and why: they count as they were.
    pub unseen: Vec<(Locator, String)>,
    /// How many other things are there that are no files of a memory: links, pipes, names that are refused.
    pub left_alone: usize,
    /// Files whose content the remote does not have.
    pub missing: Vec<Locator>,
    /// Files that were not fetched yet.
    pub unfetched: Vec<Locator>,
    /// What a process that died left unfinished.
    pub underway: Underway,
}

/// What a process that died, or one that is at it, left unfinished: the next sync goes on with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Underway {
    /// A commit was being published.
    pub publishing: bool,
    /// Working files were being changed.
    pub applying: bool,
}

impl Outlook {
    /// Returns how many changes wait to be sent.
    pub fn waiting(&self) -> usize {
        self.created.len() + self.changed.len() + self.deleted.len()
    }
}

/// Returns the id of the replica that a state belongs to; `None` before its first sync.
pub async fn replica_of(state: Arc<dyn Backend>) -> StoreResult<Option<ReplicaId>> {
    State::replica(&*state).await
}

/// Looks at a replica's files and state.
pub async fn look(
    files: &dyn Backend,
    state: Arc<dyn Backend>,
    scope: &Scope,
    gate: &dyn Gate,
) -> StoreResult<Outlook> {
    let mut outlook = Outlook::default();
    let mut cache = StatCache::default();
    let mut unmet = Known::default();
    let mut state = match State::look(state).await? {
        Some((state, Journal::Whole | Journal::CutShort)) => Some(state),
        _ => None,
    };
    if let Some(state) = &state {
        cache = state.cache().await?;
        outlook.replica = Some(state.identity.replica);
        outlook.underway = Underway {
            publishing: state.publishing().await?.is_some(),
            applying: state.applying().await?.is_some(),
        };
    }
    let known = state.as_mut().map_or(&mut unmet, |state| &mut state.known);
    outlook.store = known.store;
    outlook.position = known.head.as_ref().map(|head| head.position);
    // What belongs into another directory since the last sync is not missed here.
    let unbound = known.log.files().entries().filter(|entry| !scope.holds(entry.name));
    known.elsewhere.extend(unbound.map(|entry| (entry.locator(), Elsewhere::Unbound)));
    let known = state.as_ref().map_or(&unmet, |state| &state.known);
    let mut found = scan::scan(files, &mut cache).await?;
    let bases = known.bases();
    let fenced = found.contents.iter().filter(|(locator, _)| scope.fences(locator)).count();
    found.contents.retain(|locator| scope.contains(locator));
    found.keep_unseen(bases);
    outlook.left_alone = found.odd.len() - found.unseen.len() + fenced;
    outlook.unseen = found.unseen;
    let local = found.contents;
    outlook.files = local.len();
    let pending = plan::pending(bases, &local);
    let why = |why: Elsewhere| {
        let elsewhere = known.elsewhere.iter().filter(move |(_, found)| **found == why);
        elsewhere.map(|(locator, _)| locator.clone()).collect()
    };
    outlook.unfetched = why(Elsewhere::Unfetched);
    outlook.refused = why(Elsewhere::Refused);
    outlook.missing = why(Elsewhere::Missing);
    outlook.held = plan::unfit_names(bases, &pending);
    outlook.held_deletions.clone_from(&pending.held_deletions);
    match plan::judge_gone(bases, &local, &pending) {
        Gone::Deleted => outlook.deleted = pending.deleted,
        Gone::Ask => outlook.waiting_deletions = pending.deleted,
        Gone::Vanished => {
            outlook.has_vanished = true;
            outlook.waiting_deletions = pending.deleted;
        }
    }
    for locator in pending.changed {
        if outlook.held.iter().any(|(held, _)| *held == locator) {
            continue;
        }
        let Ok(object) = files.read(&locator).await else { continue };
        let sent = known.log.files().get(&locator);
        let mut hold = gate.holds(&locator, &object.bytes);
        if let (Some(_), Some(state), Some(sent)) = (&hold, &state, sent)
            && let Some(sent) = state.kept(&sent.hash).await?
        {
            hold = gate.still_holds(&locator, &object.bytes, &sent);
        }
        match hold {
            Some(hold) => outlook.held.push((locator, hold)),
            None if sent.is_some() => outlook.changed.push(locator),
            None => outlook.created.push(locator),
        }
    }
    Ok(outlook)
}
