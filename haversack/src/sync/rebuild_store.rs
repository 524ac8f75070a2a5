//! Lets the devices of a store meet again after its remote was lost: wiped, restored from an old backup, or rebuilt by another device.
//!
//! [`rebuild`] is the same command on every device. It acts on the remote's content:
//!
//! 1. *This store*: positions that the remote has lost are put back (`put_back`). Where another commit stands by now, the replicas go back to
//!    the last common position (`rebase`), and the next sync merges.
//! 2. *Nothing*: a new store begins there, whose `store.json` names this one as its predecessor. Then as below.
//! 3. *A store that continues this one*: if it is not complete, this device adds the files that it lacks, as they were at the position
//!    that this device knows. Then every replica follows it.
//! 4. *Any other store*: nothing is written, and the error says which one it is.
//!
//! # Invariants (docs/adr/0029)
//! - Commits of a rebuild name the predecessor's position whose files they put back. The one that says "complete" was made when the new store
//!   had all files of its author's position, so a file that is missing after it was deleted. Before it, a missing file says nothing
//!   (`sync::lost_remote::file_that_is_not_there_yet_is_not_deleted`, `haversack-sim: lost`).
//! - A replica follows over the oldest of all positions that the rebuild names, and its own. What it deleted after that position is its own
//!   deletion again, so nothing that a slower device put back is resurrected (`sync::lost_remote::follower_that_was_ahead_deletes_again`,
//!   `haversack-sim: lost`).
//! - Several devices may rebuild at once, and one that was killed may start again: the new log orders their commits, and each adds only
//!   the missing files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haversack_store::{Backend, Bytes, Condition, Locator};

use super::plan::{AbsenceReason, Reach};
use super::planted::{Planted, has};
use super::publish::Settled;
use super::put_back::{kept_anywhere, put_back};
use super::rebase::Rebased;
use super::remote::{At, Attempt};
use super::state::Head;
use super::take_in::IncomingChanges;
use super::upkeep::Upkeep;
use super::{Context, Hold, MAX_RECENT_BYTES, Recent, Replica, Report, SyncError, other_store};
use crate::history::archive;
use crate::ids::{CommitId, ContentHash, Position, StoreId};
use crate::log::{
    self, Carried, Commit, Content, FileChange, MAX_CHANGES, MAX_INLINE_BYTES, Notice, Predecessor,
    StoreFile, What, layout,
};
use crate::names;

/// The most bytes of content inside one commit of a rebuild.
const MAX_INLINE_TOTAL: usize = 8 * 1024 * 1024;

/// The most times that a position is tried because another rebuilding device was first.
const MAX_TRIES: usize = 1_024;

/// The number of the predecessor's last commits that a new store lists one by one.
const LISTED_NEAR: u64 = 128;

/// The cause of the commits of a rebuild.
const CAUSE: &str = "rebuild";

/// The result of a rebuild.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// The store that is new in the remote and that this device follows now.
    pub new_store: Option<StoreId>,
    /// True if this device began the new store.
    pub has_begun: bool,
    /// The number of files that this device put into the new store.
    pub files: usize,
    /// The number of restored positions.
    pub positions: u64,
    /// The last position that all replicas which had to go back have in common with the remote.
    pub common: Option<Position>,
    /// The number of replicas that could not go back to the common position: they merge without a base.
    pub without_base: usize,
    /// Files whose content was not put into the new store, and why.
    pub held: Vec<(Locator, Hold)>,
    /// The changes of working files.
    pub report: Report,
}

/// Lets the replicas of a home meet their store again; the caller syncs them afterwards.
///
/// `history` is the state in which the home's archive is.
pub async fn rebuild(
    context: Context<'_>,
    replicas: &mut [Replica],
    history: Arc<dyn Backend>,
) -> Result<Rebuilt, SyncError> {
    let mut rebuilt = Rebuilt::default();
    for replica in replicas.iter_mut() {
        replica.finish_applying(context, &mut rebuilt.report).await?;
    }
    let Some(leader) = newest(replicas) else { return Ok(rebuilt) };
    let (remote, known) = (&replicas[leader].remote, &replicas[leader].state.known);
    let (Some(store), Some(head)) = (known.store, known.head.as_ref()) else { return Ok(rebuilt) };
    let mut archive = archive::Reader::open(history, store).await.map_err(SyncError::Local)?;
    let file = match remote.store_file(context.patience).await? {
        Some(file) => file,
        None => {
            // A log without the file that names its store is still that store's.
            let there = remote.store_of_log(context.patience).await?;
            let file = match there {
                Some(there) => StoreFile { predecessor: None, ..named(context, there) },
                None => {
                    let (position, mut commits) = (head.position, Vec::new());
                    for position in listed(position) {
                        let hash = replicas[leader].own_hash(&mut archive, position).await?;
                        commits.extend(hash.map(|hash| (position, hash)));
                    }
                    let predecessor = Some(Predecessor { store, position, commits });
                    StoreFile { predecessor, ..named(context, StoreId::from_bytes(context.ids.next())) }
                }
            };
            let made = remote.backend().write(&layout::store_file(), file.encode(), Condition::Absent).await;
            match (remote.store_file(context.patience).await?, made) {
                (Some(found), _) => {
                    rebuilt.has_begun = found == file && file.predecessor.is_some();
                    found
                }
                (None, Err(error)) => return Err(SyncError::Remote(error)),
                (None, Ok(_)) => return Err(SyncError::Unclear("the file that names the store")),
            }
        }
    };
    if file.store == store {
        return come_back(context, replicas, &mut archive, rebuilt).await;
    }
    let Some(predecessor) = file.predecessor.clone().filter(|predecessor| predecessor.store == store) else {
        return Err(other_store(store, &file));
    };
    // The files that this device adds must not be newer than the first device's: see the invariants.
    rebuilt.without_base += go_back(context, replicas, &mut archive, &predecessor).await?;
    let adds = rebuilt.has_begun || !has(Planted::AbsentBeforeComplete);
    if let Some(leader) = newest(replicas).filter(|_| adds) {
        contribute(context, replicas, leader, &file, &mut rebuilt).await?;
    }
    rebuilt.new_store = Some(file.store);
    for replica in replicas.iter_mut() {
        rebuilt.without_base += replica.follow(context, &file, &mut archive, &mut rebuilt.report).await?;
    }
    Ok(rebuilt)
}

/// Returns the replica that has applied most.
fn newest(replicas: &[Replica]) -> Option<usize> {
    let positions =
        replicas.iter().enumerate().filter_map(|(index, replica)| Some((replica.position()?, index)));
    positions.max().map(|(_, index)| index)
}

fn named(context: Context<'_>, store: StoreId) -> StoreFile {
    let name = names::harmless(&context.author.device);
    StoreFile { store, created: context.clock.now(), name, predecessor: None }
}

/// Restores lost positions of the same store, and takes replicas back to the last position that they share with it.
async fn come_back(
    context: Context<'_>,
    replicas: &mut [Replica],
    archive: &mut archive::Reader,
    mut rebuilt: Rebuilt,
) -> Result<Rebuilt, SyncError> {
    rebuilt.positions = put_back(context, replicas, archive).await?;
    for replica in replicas.iter_mut() {
        let is_there = match replica.check_head(context).await {
            Ok(()) => true,
            Err(SyncError::WentBack { .. }) => false,
            Err(trouble) => return Err(trouble),
        };
        if !is_there {
            // The positions that were put back can be of another branch than this replica's.
            let common = replica.own_common(context, archive).await?;
            rebuilt.common = rebuilt.common.into_iter().chain(common).min();
            let rebased = replica.rebase(context, archive, common).await?;
            rebuilt.without_base += usize::from(rebased == Rebased::WithoutBase);
        }
    }
    Ok(rebuilt)
}

/// Returns the positions whose commits a new store names: the last ones, and then fewer and fewer.
fn listed(last: Position) -> impl Iterator<Item = Position> {
    let near = 0..LISTED_NEAR;
    let far = (0..u64::BITS).map(|power| 1_u64 << power).filter(|back| *back >= LISTED_NEAR);
    near.chain(far).filter_map(move |back| Position::new(last.number().checked_sub(back)?))
}

/// Takes replicas that are ahead of a predecessor's position, or on another branch of its log, back to their last common position; returns
/// how many lost their base.
async fn go_back(
    context: Context<'_>,
    replicas: &mut [Replica],
    archive: &mut archive::Reader,
    predecessor: &Predecessor,
) -> Result<usize, SyncError> {
    let mut without_base = 0;
    for replica in replicas {
        replica.end_lost_publishing(predecessor).await?;
        let Some(own) = replica.position() else { continue };
        let common = common(replica, archive, predecessor, own).await?;
        if has(Planted::NewerBaseIsTaken) {
            continue;
        }
        let rebased = replica.rebase(context, archive, common).await?;
        without_base += usize::from(rebased == Rebased::WithoutBase);
    }
    Ok(without_base)
}

/// Returns the last position that a replica has in common with a predecessor.
async fn common(
    replica: &Replica,
    archive: &mut archive::Reader,
    predecessor: &Predecessor,
    own: Position,
) -> Result<Option<Position>, SyncError> {
    let mut last = own.min(predecessor.position);
    for (position, hash) in &predecessor.commits {
        if *position > last {
            continue;
        }
        match replica.own_hash(archive, *position).await? {
            Some(known) if known != *hash => {
                last = Position::new(position.number() - 1).unwrap_or(Position::FIRST)
            }
            // Positions between two that are listed count as equal if the one before them is.
            Some(_) | None => return Ok(Some(last)),
        }
    }
    Ok(if predecessor.commits.is_empty() { Some(last) } else { None })
}

/// The present content of a store that continues another one.
struct Successor {
    store: StoreId,
    state: log::State,
    /// Its last position that was read.
    head: Option<Head>,
    /// The oldest position of the predecessor that a commit of the rebuild names.
    oldest: Option<Position>,
    is_complete: bool,
    /// The contents of files that differ from the bases.
    contents: BTreeMap<ContentHash, Bytes>,
    /// Contents that are only named: they are objects of their own, or no device has put them there yet.
    named: Vec<(Locator, Content)>,
    devices: BTreeMap<Locator, String>,
    recent: Vec<Recent>,
}

impl Successor {
    /// Returns the position after the last one, and the hash that a commit there names.
    fn next(&self) -> (Position, ContentHash) {
        match &self.head {
            None => (Position::FIRST, ContentHash::of(b"")),
            Some(head) => (head.position.next().unwrap_or(Position::LAST), head.hash),
        }
    }

    /// Adds the next commit.
    fn add(&mut self, store: StoreId, at: &At) -> Result<Commit, SyncError> {
        let (position, previous) = self.next();
        let damaged = |why| SyncError::Damaged { what: format!("the commit at position {position}"), why };
        let commit = at.commit().map_err(damaged)?;
        let unfit = |why: String| SyncError::Unfit { position, why };
        commit.belongs(store, position, previous).map_err(|why| unfit(why.to_string()))?;
        self.state.apply(&commit).map_err(|why| unfit(why.to_string()))?;
        if let Some(Notice::Rebuild { position, is_complete }) = commit.notice {
            self.oldest = Some(self.oldest.map_or(position, |oldest| oldest.min(position)));
            self.is_complete = is_complete;
        }
        let version = at.version.as_ref().map(ToString::to_string);
        self.head = Some(Head { position, hash: at.hash(), version });
        Ok(commit)
    }
}

impl Replica {
    /// Ends the publishing of a commit that a lost remote had, as the store that continues it says.
    async fn end_lost_publishing(&mut self, predecessor: &Predecessor) -> Result<(), SyncError> {
        let Some(publishing) = self.state.publishing().await.map_err(SyncError::Local)? else {
            return Ok(());
        };
        let named = (publishing.position, ContentHash::of(&publishing.bytes));
        if self.next().0 == publishing.position && predecessor.commits.contains(&named) {
            self.settled(&publishing, Settled::Ours, None).await?;
        }
        Ok(())
    }

    /// Reads the log of a store that continues another one, up to the commit that completes it.
    ///
    /// Contents that are the same as the bases are not held: a store can be larger than the memory of a device.
    async fn read_successor(&self, context: Context<'_>, store: StoreId) -> Result<Successor, SyncError> {
        let mut found = Successor {
            store,
            state: log::State::empty(),
            head: None,
            oldest: None,
            is_complete: false,
            contents: BTreeMap::new(),
            named: Vec::new(),
            devices: BTreeMap::new(),
            recent: Vec::new(),
        };
        let mut bytes_held = 0;
        while !found.is_complete {
            let Some(at) = self.remote.at(context.patience, found.next().0).await? else { break };
            let commit = found.add(store, &at)?;
            for FileChange { locator, what } in &commit.changes {
                found.devices.insert(locator.clone(), commit.device.clone());
                let Some(after) = what.after().filter(|_| self.scope.contains(locator)) else { continue };
                let is_base = self.state.known.log.files().get(locator) == Some(after);
                match what {
                    What::Put { content: Carried::Object(_), .. } => {
                        found.named.push((locator.clone(), after))
                    }
                    What::Put { content: Carried::Inline(bytes), .. } if !is_base => {
                        // A slice would hold on to the whole commit.
                        found.contents.insert(after.hash, Bytes::copy_from_slice(bytes));
                    }
                    What::Put { .. } | What::Append { .. } | What::Delete { .. } => {}
                }
            }
            bytes_held += at.bytes.len();
            let is_whole = !at.is_abridged();
            let recent = Recent::new(&commit, at.bytes);
            let bytes = recent.bytes.clone().filter(|_| is_whole && bytes_held <= MAX_RECENT_BYTES);
            found.recent.push(Recent { bytes, ..recent });
        }
        Ok(found)
    }

    /// Takes in a complete store that continues this replica's; returns 1 if that had to be done without a base.
    ///
    /// All its files are one batch of changes over the bases: the batch touches every file that either of them has.
    async fn follow(
        &mut self,
        context: Context<'_>,
        file: &StoreFile,
        archive: &mut archive::Reader,
        report: &mut Report,
    ) -> Result<usize, SyncError> {
        let known = &self.state.known;
        let is_ours = |store: StoreId| file.predecessor.as_ref().is_some_and(|before| before.store == store);
        if !known.store.is_some_and(is_ours) || known.head.is_none() {
            return Ok(0);
        }
        let oldest = self.read_successor(context, file.store).await?.oldest;
        if !has(Planted::NewerBaseIsTaken)
            && self.rebase(context, archive, oldest).await? == Rebased::WithoutBase
        {
            return Ok(1);
        }
        // Once more: which contents differ from the bases depends on the bases.
        let mut successor = self.read_successor(context, file.store).await?;
        let is_complete = successor.is_complete || has(Planted::AbsentBeforeComplete);
        let Some(head) = successor.head.take().filter(|_| is_complete) else {
            return Err(SyncError::Unclear("the commit that completes the store"));
        };
        self.add_named(context, &mut successor).await?;
        let known = &self.state.known.log;
        let touched: BTreeSet<Locator> = known.files().keys().chain(successor.state.files().keys()).collect();
        let dropped = known.odd().keys().map(|key| (key.clone(), "its name is refused here".to_owned()));
        let odd = dropped.collect();
        let sizes = successor.contents.values().map(|bytes| bytes.len() as u64);
        let (files, bytes) = (successor.contents.len() as u64, sizes.sum());
        self.receive(context, files, bytes)?;
        let incoming = IncomingChanges {
            state_after: successor.state,
            head,
            touched,
            odd,
            contents: successor.contents,
            content_before_deletion: BTreeMap::new(),
            devices: successor.devices,
            deleters: BTreeMap::new(),
            without_content: AbsenceReason::Unfetched,
            reach: Reach::End,
            joined: None,
        };
        self.take_in_some(context, file.store, incoming, &mut None, report).await?;
        self.state.save_upkeep(&Upkeep::default()).await.map_err(SyncError::Local)?;
        self.note_recent(successor.recent);
        Ok(0)
    }

    /// Fetches the contents that the new store only names and that differ here, and adds those that it lacks and this device has.
    async fn add_named(&self, context: Context<'_>, successor: &mut Successor) -> Result<(), SyncError> {
        let mut checkpoint = None;
        for (locator, content) in std::mem::take(&mut successor.named) {
            let kept = self.state.kept(&content.hash).await.map_err(SyncError::Local)?;
            let here = match kept {
                Some(kept) => Some(kept),
                None => self.local(&locator).await?.filter(|bytes| content.is_of(bytes)),
            };
            match here {
                Some(bytes) if context.gate.holds(&locator, &bytes).is_some() => {}
                Some(bytes) => drop(self.remote.put_object(context.patience, &bytes).await?),
                None => {
                    let there = self.remote.object(context.patience, &content.hash).await?;
                    let mut there = there.filter(|bytes| content.is_of(bytes));
                    if there.is_none() {
                        // The new store is so old by now that its first commits have lost their contents.
                        if checkpoint.is_none() {
                            let store = successor.store;
                            checkpoint = Some(self.remote.newest_checkpoint(context.patience, store).await?);
                        }
                        let newest = checkpoint.iter().flatten().map(|(newest, _)| newest).next();
                        there = self.contents(context, &[content], newest).await?.remove(&content.hash);
                    }
                    successor.contents.extend(there.map(|bytes| (content.hash, bytes)));
                }
            }
        }
        Ok(())
    }
}

/// Adds to a store that continues this one the files that it lacks, until it is complete.
async fn contribute(
    context: Context<'_>,
    replicas: &[Replica],
    leader: usize,
    file: &StoreFile,
    rebuilt: &mut Rebuilt,
) -> Result<(), SyncError> {
    let leader = &replicas[leader];
    let Some(position) = leader.position() else { return Ok(()) };
    if leader.state.known.store == Some(file.store) {
        return Ok(());
    }
    let mut successor = leader.read_successor(context, file.store).await?;
    for _ in 0..MAX_TRIES {
        if successor.is_complete {
            return Ok(());
        }
        let missing = leader.state.known.log.files().iter();
        let missing = missing.filter(|(locator, _)| !successor.state.files().contains_key(locator));
        let missing: Vec<(Locator, Content)> = missing.collect();
        let mut changes = Vec::new();
        let mut inline = 0;
        let mut folded = BTreeSet::new();
        for (locator, content) in &missing {
            let most = context.intervals.rebuilt_files.clamp(1, MAX_CHANGES);
            if changes.len() >= most || inline > MAX_INLINE_TOTAL {
                break;
            }
            // Names that differ only by case do not fit into one commit.
            if !folded.insert(locator.folded()) {
                continue;
            }
            let carried = put_in(context, leader, replicas, locator, *content, rebuilt).await?;
            if let Carried::Inline(bytes) = &carried {
                inline += bytes.len();
            }
            let what = What::Put { hash: content.hash, size: content.size, content: carried, from: None };
            changes.push(FileChange { locator: locator.clone(), what });
        }
        let (added, is_complete) = (changes.len(), changes.len() == missing.len());
        let (at, previous) = successor.next();
        let unfit = |why: String| SyncError::Unfit { position: at, why };
        let commit = Commit {
            store: file.store,
            position: at,
            id: CommitId::from_bytes(context.ids.next()),
            previous,
            replica: leader.id(),
            device: names::harmless(&context.author.device),
            agent: None,
            session: None,
            time: context.clock.now(),
            cause: CAUSE.to_owned(),
            state: successor.state.mark_after(&changes).map_err(|why| unfit(why.to_string()))?,
            changes,
            odd: Vec::new(),
            notice: Some(Notice::Rebuild { position, is_complete }),
        };
        let bytes = commit.encode().map_err(|why| unfit(why.to_string()))?;
        match leader.remote.attempt(at, bytes.clone()).await {
            Attempt::Created(version) => {
                successor.add(file.store, &At { bytes, version: Some(version) })?;
                rebuilt.files += added;
            }
            Attempt::NotKnown(error) => {
                successor = leader.read_successor(context, file.store).await?;
                // If nothing new is there, the request may still arrive: running the command again finds it.
                if successor.next().0 == at {
                    return Err(SyncError::Remote(error));
                }
            }
        }
    }
    Err(SyncError::Outrun)
}

/// Returns a file's content as a commit carries it. A content that is not on this device, or that must stay here, is only named: a device
/// that has it puts it there when it follows.
async fn put_in(
    context: Context<'_>,
    leader: &Replica,
    replicas: &[Replica],
    locator: &Locator,
    content: Content,
    rebuilt: &mut Rebuilt,
) -> Result<Carried, SyncError> {
    let mut bytes = kept_anywhere(replicas, &content.hash).await?;
    for replica in replicas {
        if bytes.is_none() && replica.scope.contains(locator) {
            bytes = replica.local(locator).await?.filter(|bytes| content.is_of(bytes));
        }
    }
    let Some(bytes) = bytes else { return Ok(Carried::Object(content.hash)) };
    if let Some(hold) = context.gate.holds(locator, &bytes) {
        if !rebuilt.held.iter().any(|(held, _)| held == locator) {
            rebuilt.held.push((locator.clone(), hold));
        }
        return Ok(Carried::Object(content.hash));
    }
    if bytes.len() <= MAX_INLINE_BYTES {
        return Ok(Carried::Inline(bytes));
    }
    Ok(Carried::Object(leader.remote.put_object(context.patience, &bytes).await?))
}
