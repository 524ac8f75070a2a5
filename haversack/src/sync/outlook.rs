//! How a replica stands, looked at without a remote and without changing anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack_store::{Backend, Locator, Odd, Result as StoreResult};

use super::apply;
use super::held;
use super::outgoing::{self, Judgement};
use super::plan::{self, AbsenceReason};
use super::renames;
use super::scan::{self, StatCache};
use super::state::{JournalEnd, LogView, State};
use super::{Gate, Hold, Scope};
use crate::ids::{ContentHash, Position, ReplicaId, StoreId, Timestamp};

/// How a replica stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// The replica's id; `None` before its first sync.
    pub replica: Option<ReplicaId>,
    /// The store it follows, once it was met.
    pub store: Option<StoreId>,
    /// The last applied position.
    pub position: Option<Position>,
    /// True if the replica has never synced: its files are no edits.
    pub is_first: bool,
    /// The number of files here.
    pub files: usize,
    /// New files that wait to be sent.
    pub created: Vec<Locator>,
    /// Changed files that wait to be sent.
    pub changed: Vec<Locator>,
    /// Deletions that wait to be sent.
    pub deleted: Vec<Locator>,
    /// Deletions that wait for the user's answer.
    pub waiting_deletions: Vec<Locator>,
    /// Files that other devices deleted, very many at once: they stay here until the user decides.
    pub held_deletions: Vec<Locator>,
    /// True if all files disappeared at once.
    pub has_vanished: bool,
    /// Files that stay on this device, and why.
    pub held: Vec<(Locator, Hold)>,
    /// Files that could not be written here: this disk cannot hold the name, or something that is no writable file is in the way.
    pub refused: Vec<Locator>,
    /// Texts of other programs that were displaced and could not be merged, under names of our own.
    pub put_aside: Vec<Locator>,
    /// Places where files are that could not be looked at, and why: they count as they were.
    pub unseen: Vec<(Locator, String)>,
    /// Files that are not carried because of their names, made printable, and why.
    pub odd_names: Vec<(String, String)>,
    /// The number of links, pipes and other things that are no files of a memory.
    pub left_alone: usize,
    /// Files whose content the remote does not have.
    pub missing: Vec<Locator>,
    /// Files that were not fetched yet.
    pub unfetched: Vec<Locator>,
    /// Work that a killed process left unfinished.
    pub underway: Underway,
}

/// Work that another process has begun, killed or still running. The next sync continues it.
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
pub(crate) async fn replica_of(state: Arc<dyn Backend>) -> StoreResult<Option<ReplicaId>> {
    State::replica(&*state).await
}

/// The part of an [`Outlook`] that a replica's state knows by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The replica; `None` before its first sync.
    pub replica: Option<ReplicaId>,
    /// The store that it follows; `None` before it met one.
    pub store: Option<StoreId>,
    /// The last position that it applied.
    pub position: Option<Position>,
}

/// Reads the agreement of a replica with its store, without a look at its files.
pub(crate) async fn agreement(state: Arc<dyn Backend>) -> StoreResult<Agreement> {
    Ok(match State::look(state).await? {
        Some((state, JournalEnd::Whole | JournalEnd::CutShort)) => Agreement {
            replica: Some(state.identity.replica),
            store: state.known.store,
            position: state.known.head.as_ref().map(|head| head.position),
        },
        _ => Agreement::default(),
    })
}

/// Returns the content that a file of a replica is based on: the last one that this replica agreed on with the store.
pub(crate) async fn base_of(state: Arc<dyn Backend>, locator: &Locator) -> StoreResult<Option<ContentHash>> {
    Ok(match State::look(state).await? {
        Some((state, JournalEnd::Whole | JournalEnd::CutShort)) => state.known.ground(locator.as_str()),
        _ => None,
    })
}

/// Returns the files that the remote had at this replica's last sync, with their sizes. Asks the remote nothing.
pub async fn remote_files(state: Arc<dyn Backend>) -> StoreResult<Vec<(Locator, u64)>> {
    let Some((state, JournalEnd::Whole | JournalEnd::CutShort)) = State::look(state).await? else {
        return Ok(Vec::new());
    };
    let files = state.known.log.files();
    let sized = |name: Locator| files.get(&name).map(|content| content.size).map(|size| (name, size));
    Ok(files.entries().map(|entry| entry.locator()).filter_map(sized).collect())
}

/// Looks at a replica's files and state.
///
/// `signed` is the state in which it was noted who wrote what.
pub async fn look(
    files: &dyn Backend,
    state: Arc<dyn Backend>,
    scope: &Scope,
    gate: &dyn Gate,
    now: Timestamp,
    signed: Option<&dyn Backend>,
) -> StoreResult<Outlook> {
    let mut outlook = Outlook { is_first: true, ..Outlook::default() };
    let mut cache = StatCache::default();
    let mut unmet = LogView::default();
    let mut state = match State::look(state).await? {
        Some((state, JournalEnd::Whole | JournalEnd::CutShort)) => Some(state),
        _ => None,
    };
    if let Some(state) = &state {
        cache = state.cache().await?;
        outlook.replica = Some(state.identity.replica);
        outlook.is_first = !state.has_begun().await?;
        outlook.underway = Underway {
            publishing: state.publishing().await?.is_some(),
            applying: state.applying().await?.is_some(),
        };
    }
    let known = state.as_mut().map_or(&mut unmet, |state| &mut state.known);
    outlook.store = known.store;
    outlook.position = known.head.as_ref().map(|head| head.position);
    // Files that moved into another directory's scope since the last sync are not missing.
    let unbound = known.log.files().entries().filter(|entry| !scope.holds(entry.name));
    known.absent.extend(unbound.map(|entry| (entry.locator(), AbsenceReason::Unbound)));
    let known = state.as_ref().map_or(&unmet, |state| &state.known);
    let mut found = scan::scan(files, &mut cache, &BTreeMap::new()).await?;
    let bases = known.bases();
    let fenced = found.contents.iter().filter(|(locator, _)| scope.fences(locator)).count();
    found.contents.retain(|locator| scope.contains(locator));
    found.keep_unseen(bases);
    // Names that differ only by case are reported as held back, with their cure.
    let is_name = |shown: &str| Locator::parse(shown).is_ok_and(|locator| locator.as_str() == shown);
    let is_odd_name = |odd: &&Odd| odd.at.is_none() && !is_name(&odd.shown);
    let odd_names = found.odd.iter().filter(is_odd_name);
    outlook.odd_names = odd_names.map(|odd| (odd.shown.clone(), odd.why.clone())).collect();
    outlook.left_alone = found.odd.len() - found.unseen.len() - outlook.odd_names.len() + fenced;
    outlook.unseen = found.unseen;
    outlook.put_aside = apply::texts_put_aside(files).await?;
    let local = found.contents;
    outlook.files = local.len();
    let mut pending = plan::pending(bases, &local);
    let why = |why: AbsenceReason| {
        let absent = known.absent.iter().filter(move |(_, found)| **found == why);
        absent.map(|(locator, _)| locator.clone()).collect()
    };
    outlook.unfetched = why(AbsenceReason::Unfetched);
    outlook.refused = why(AbsenceReason::Refused);
    outlook.missing = why(AbsenceReason::Missing);
    outlook.held_deletions.clone_from(&pending.held_deletions);
    if let Some(state) = &state {
        match outgoing::look(state, now, signed, &local, &pending).await? {
            Judgement::Waiting(waiting, record) => pending.wait(waiting, record),
            Judgement::Vanished => {
                outlook.has_vanished = true;
                pending.waiting = std::mem::take(&mut pending.deleted);
            }
        }
        pending.renames = renames::find(files, state, &local, &pending).await?;
        outlook.held = held::keep_here(files, state, gate, &mut pending).await?;
    } else {
        outlook.held = plan::unfit_names(bases, &pending);
        pending.changed.retain(|locator| outlook.held.iter().all(|(held, _)| held != locator));
    }
    outlook.waiting_deletions = std::mem::take(&mut pending.waiting);
    outlook.deleted = std::mem::take(&mut pending.deleted);
    let old_name = |locator: &Locator| {
        pending.renames.iter().find(|rename| rename.to == *locator).map(|rename| rename.before)
    };
    for locator in &pending.changed {
        let Ok(object) = files.read(locator).await else { continue };
        let base = known.log.files().get(locator).map(|content| content.hash);
        let hold = match &state {
            Some(state) => {
                held::hold(state, gate, locator, &object.bytes, base.or(old_name(locator))).await?
            }
            None => gate.holds(locator, &object.bytes),
        };
        match hold {
            Some(hold) => outlook.held.push((locator.clone(), hold)),
            None if base.is_some() => outlook.changed.push(locator.clone()),
            None => outlook.created.push(locator.clone()),
        }
    }
    Ok(outlook)
}
