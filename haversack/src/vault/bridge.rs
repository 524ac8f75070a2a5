//! Exchanges commits between a synced folder and this device's home log.
//!
//! There are two kinds of logs:
//!
//! - A **folder log** is in the synced folder. Each device has one and writes only its own changes there. An item of it is an *entry*.
//! - The **home log** is in the home of a device, and only this device reads it. It has the changes of all devices in one order. An item of it is a
//!   *commit* at a *position*.
//!
//! One run:
//!
//! 1. *Collect*: turn each new commit of the home log into an entry. The entry lists its heads. For each folder log, the head is the last entry that this
//!    device had taken in when the commit was made.
//! 2. *Fetch*: copy the new entries of other devices from the folder into the home, as far as they have arrived.
//! 3. *Take in*: go through the new entries one by one. An entry can be read when the entries that it is based on have arrived. Merge the files that the
//!    entry changes, from all folder logs ([`merge_file`](super::merge_file)). Append the result to the home log as one commit with the entry's id.
//! 4. *Send*: write the new entries of step 1 to this device's folder log.
//!
//! Example: the laptop's home log has positions 1 to 5: three entries of the laptop and two of the desktop. So its heads are laptop 3, desktop 2. The user's
//! edit became position 6. Step 1 turns it into entry laptop 4 on these heads. Step 2 finds entry desktop 3. Step 3 merges it and appends the result as
//! position 7. Step 4 writes entry laptop 4 to the folder.
//!
//! If a run is killed, the next run continues its work. Step 1 stores an entry in the home before step 4 writes it to the folder, so the home shows which
//! entries are not sent yet. Each commit of the home log has the id of its entry, so the home log shows which entries are taken in.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use haversack_store::{Backend, Bytes, Condition, Error as StoreError, ErrorKind, Guard, Locator, Operation};

use super::cursor::{self, FolderCursor, LogName};
use super::entry::{Entry, MAX_SHOWN};
use super::file_merge::{FileOutcome, MergeCache, available};
use super::folder::{FolderListing, without_gap};
use super::heads::Heads;
use super::layout::Range;
use super::log_copies::LogCopies;
use super::logs::{Logs, Numbered, first_part_id, taken_id};
use super::tail::Tail;
use crate::ids::{CommitId, ContentHash, Ids, Position, ReplicaId, StoreId};
use crate::log::{Commit, FileChange, StoreFile};
use crate::merge::conflict_name;
use crate::names;
use crate::sync::planted::{Planted, has};
use crate::sync::{Context, Impatient, Remote, SyncError};

/// The lock that a run holds; never waited for.
const LOCK: &str = "vault";

/// The most times that a run starts over because another process of this device wrote to the home log.
const MAX_ROUNDS: usize = 64;

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferStats {
    /// The number of imported entries of other devices.
    pub taken: usize,
    /// The number of entries written to the folder.
    pub sent: usize,
    /// Files of logs that are there and cannot be read yet: half arrived, or only a placeholder.
    pub waiting: Vec<Locator>,
    /// The number of entries that wait for other entries, which their authors had read and which have not arrived.
    pub early: usize,
}

/// A synced folder, and the home log that the rest of the engine uses instead of it.
#[derive(Debug)]
pub struct Bridge {
    pub(super) folder: Arc<dyn Backend>,
    pub(super) home: Arc<dyn Backend>,
    pub(super) log: Remote,
    pub(super) replica: ReplicaId,
    pub(super) cursor: FolderCursor,
    saved: FolderCursor,
    pub(super) read: Option<Read>,
    /// Contents that were put together in this run.
    pub(super) contents: HashMap<ContentHash, Bytes>,
    /// Contents in the home log that perhaps no folder log has.
    unannounced: BTreeSet<(Locator, ContentHash)>,
    _lock: Guard,
}

/// The logs, after the local copies were read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) kept: LogCopies,
    pub(super) logs: Logs,
    /// The files merged in this run.
    pub(super) cache: MergeCache,
}

impl Bridge {
    /// Opens a folder. `home` is this device's storage for it; no other process of this device can open it at the same time.
    pub async fn open(
        folder: Arc<dyn Backend>,
        home: Arc<dyn Backend>,
        ids: &dyn Ids,
    ) -> Result<Bridge, SyncError> {
        Bridge::open_within(folder, home, ids, Duration::ZERO).await
    }

    /// Opens a folder, and waits at most `lock_wait` for another process that uses it.
    pub async fn open_within(
        folder: Arc<dyn Backend>,
        home: Arc<dyn Backend>,
        ids: &dyn Ids,
        lock_wait: Duration,
    ) -> Result<Bridge, SyncError> {
        let lock = match home.lock(LOCK, lock_wait).await {
            Ok(lock) => lock,
            Err(error) if error.kind() == ErrorKind::Busy => return Err(SyncError::Busy),
            Err(error) => return Err(SyncError::Local(error)),
        };
        // Files of a killed process can be read here, and may not be on the disk yet.
        home.barrier().await.map_err(SyncError::Local)?;
        let cursor = FolderCursor::load(&*home).await?;
        let name = cursor::name(&*home, &cursor).await?;
        let (replica, old) = match name {
            LogName::Current(name) => (name, None),
            LogName::Stale(name) => (name, Some(name)),
            LogName::Missing => (ReplicaId::from_bytes(ids.next()), None),
        };
        let log = Remote::new(home.clone());
        let (saved, read, contents, unannounced) = (cursor.clone(), None, HashMap::new(), BTreeSet::new());
        let mut bridge =
            Bridge { folder, home, log, replica, cursor, saved, read, contents, unannounced, _lock: lock };
        match name {
            LogName::Current(_) => {}
            LogName::Stale(_) | LogName::Missing => bridge.begin_anew(old, ids).await?,
        }
        bridge.finish_moving().await?;
        Ok(bridge)
    }

    /// Takes a name that no device has.
    async fn begin_anew(&mut self, old: Option<ReplicaId>, ids: &dyn Ids) -> Result<(), SyncError> {
        let old = match self.cursor.moving {
            None => old,
            // A copy of a home that is renaming its log cannot be told from that home: every copy completes the rename in the same way, and none
            // continues under that name.
            Some(moving) => {
                cursor::write_name(&*self.home, &mut self.cursor, old, moving.to).await?;
                self.replica = moving.to;
                self.finish_moving().await?;
                Some(moving.to)
            }
        };
        let new = match old {
            None => self.replica,
            Some(_) => {
                // Entries made while this name was ours are sent under it. Every copy of this home does the same.
                self.read().await?;
                self.follow().await?;
                ReplicaId::from_bytes(ids.next())
            }
        };
        self.replica = cursor::rename(&*self.home, &mut self.cursor, old, new).await?;
        Ok(())
    }

    /// Returns the name of this device's folder log.
    pub fn replica(&self) -> ReplicaId {
        self.replica
    }

    /// Returns the imported part of every log.
    pub fn heads(&self) -> &Heads {
        &self.cursor.heads
    }

    /// Returns the contents that the logs name, as far as this device has taken them in.
    pub async fn contents(&mut self) -> Result<Vec<(Locator, ContentHash)>, SyncError> {
        let heads = self.cursor.heads.clone();
        Ok(self.read().await?.logs.contents(&heads).collect())
    }

    /// Returns the entries that are kept.
    pub async fn logs(&mut self) -> Result<&Logs, SyncError> {
        Ok(&self.read().await?.logs)
    }

    /// Makes sure that the folder is there and is the one it was.
    ///
    /// A device with local changes publishes them before it imports entries, because they were made on the old state. Only a device that has
    /// read nothing yet reads first.
    pub async fn prepare(&mut self, context: Context<'_>) -> Result<TransferStats, SyncError> {
        let there = self.look().await?;
        self.meet(context, &there).await?;
        match self.cursor.heads == Heads::default() {
            true => self.carry(context).await,
            false => Ok(TransferStats::default()),
        }
    }

    /// Imports entries that have arrived, and writes nothing to the folder.
    pub async fn take_in_only(&mut self, context: Context<'_>) -> Result<TransferStats, SyncError> {
        let mut transfers = TransferStats::default();
        let there = self.look().await?;
        let store = self.meet(context, &there).await?;
        self.fetch(&there, &mut transfers).await?;
        self.take_in(context, store, &mut transfers).await?;
        self.save().await?;
        Ok(transfers)
    }

    /// Exchanges new entries in both directions.
    pub async fn carry(&mut self, context: Context<'_>) -> Result<TransferStats, SyncError> {
        let mut transfers = TransferStats::default();
        let there = self.look().await?;
        let store = self.meet(context, &there).await?;
        self.notice_twin(context, &there).await?;
        self.find_unannounced().await?;
        self.follow().await?;
        self.fetch(&there, &mut transfers).await?;
        self.take_in(context, store, &mut transfers).await?;
        self.announce().await?;
        self.send(context, &there, &mut transfers).await?;
        self.fold(&there).await?;
        self.save().await?;
        self.contents.clear();
        if let Some(read) = &mut self.read {
            read.cache = MergeCache::default();
        }
        Ok(transfers)
    }

    /// Makes sure that the folder is the one it was, and that it and this device's own order know which store they are.
    async fn meet(&mut self, context: Context<'_>, there: &FolderListing) -> Result<StoreId, SyncError> {
        let place = crate::log::layout::store_file();
        let file = match self.folder.read(&place).await {
            Ok(object) => match StoreFile::decode(&object.bytes) {
                Err(why) if why.is_newer() => {
                    return Err(SyncError::Damaged { what: "the file that names the store".to_owned(), why });
                }
                file => Some(file.ok()),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(SyncError::Remote(error)),
        };
        let here = self.log.store_file(&Impatient).await.map_err(local)?;
        let known = self.cursor.store.or_else(|| here.as_ref().map(|file| file.store));
        // Two devices may have begun at once, and one file lost: where a log is that was read before, it is the same folder.
        let has_known = self.cursor.kept.each().any(|(replica, _)| there.logs.contains_key(&replica));
        self.cursor.is_known |= has_known;
        let is_new = !self.cursor.is_known;
        let named = |store| StoreFile {
            store,
            created: context.clock.now(),
            name: names::harmless(&context.author.device),
            predecessor: None,
        };
        let file = match (file, known) {
            (Some(Some(file)), Some(known)) if file.store != known && !has_known && !is_new => {
                return Err(SyncError::OtherStore { expected: known, found: file.store });
            }
            // An empty folder is not mounted, or was emptied by its client: delete nothing, and start no new store there.
            (None, Some(_)) if !has_known && !is_new => return Err(SyncError::Emptied),
            (_, Some(known)) => named(known),
            (Some(Some(file)), None) => file,
            (Some(None), None) => return Err(SyncError::Remote(not_yet(&place))),
            (None, None) if !there.logs.is_empty() => return Err(SyncError::Remote(not_yet(&place))),
            (None, None) => {
                let file = named(StoreId::from_bytes(context.ids.next()));
                let written = self.folder.write(&place, file.encode(), Condition::Absent).await;
                let _ = written.map_err(SyncError::Remote)?;
                file
            }
        };
        if here.is_none() {
            let written = self.home.write(&place, file.encode(), Condition::Absent).await;
            let _ = written.map_err(SyncError::Local)?;
        }
        self.cursor.store = Some(file.store);
        Ok(file.store)
    }

    pub(super) async fn read(&mut self) -> Result<&mut Read, SyncError> {
        if self.read.is_none() {
            let (kept, logs) = LogCopies::load(self.home.clone()).await?;
            self.cursor.kept = logs
                .replicas()
                .into_iter()
                .fold(Heads::default(), |heads, replica| heads.with(replica, without_gap(&logs, replica)));
            self.read = Some(Read { kept, logs, cache: MergeCache::default() });
        }
        Ok(self.read.as_mut().expect("it was just read"))
    }

    /// Makes entries of the commits that are new in this device's own order.
    async fn follow(&mut self) -> Result<(), SyncError> {
        loop {
            let next =
                self.cursor.position.map_or(Position::FIRST, |last| last.next().unwrap_or(Position::LAST));
            let Some(commit) = self.own_commit(next).await? else { return Ok(()) };
            if self.read().await?.logs.is_first_part(commit.id) {
                // The rest of its entry follows: the entry is not imported yet.
                self.unannounced.extend(contents_after(&commit));
                self.cursor.position = Some(next);
                continue;
            }
            let known = match has(Planted::MergesAreCommits) && commit.replica != self.replica {
                true => None,
                false => self.entry_of(commit.id).await?,
            };
            let known = match known {
                Some(known) => {
                    // If a device imported it and was killed, it has announced nothing. Our own entry names it itself.
                    self.unannounced.extend(contents_after(&commit));
                    known
                }
                None => self.make_entry(Some(commit), Vec::new()).await?,
            };
            let knows = self.read().await?.logs.knows(known);
            self.cursor.heads = std::mem::take(&mut self.cursor.heads).join(&knows);
            self.cursor.position = Some(next);
        }
    }

    /// Returns the commit at a position of this device's own order.
    async fn own_commit(&self, position: Position) -> Result<Option<Commit>, SyncError> {
        let Some(at) = self.log.at(&Impatient, position).await.map_err(local)? else { return Ok(None) };
        let commit = Commit::decode(&at.bytes).map_err(|why| SyncError::Damaged {
            what: format!("the commit at position {}", position.number()),
            why,
        })?;
        Ok(Some(commit))
    }

    /// Finds commits in the home log that a killed process did not announce.
    async fn find_unannounced(&mut self) -> Result<(), SyncError> {
        let mut last = self.cursor.announced;
        while last < self.cursor.position {
            let next = last.map_or(Position::FIRST, |last| last.next().unwrap_or(Position::LAST));
            let Some(commit) = self.own_commit(next).await? else { break };
            self.unannounced.extend(contents_after(&commit));
            last = Some(next);
        }
        Ok(())
    }

    /// Returns the entry that a commit of this device's own order is.
    async fn entry_of(&mut self, id: CommitId) -> Result<Option<Numbered>, SyncError> {
        let names: Vec<ReplicaId> = self.cursor.former.iter().copied().chain([self.replica]).collect();
        Ok(self.read().await?.logs.of_commit(id, &names))
    }

    /// Adds an entry to the home's copy of this device's folder log.
    async fn make_entry(
        &mut self,
        commit: Option<Commit>,
        shown: Vec<(Locator, ContentHash)>,
    ) -> Result<Numbered, SyncError> {
        let seen = match has(Planted::SeenIsEverything) {
            true => available(&self.read().await?.logs),
            false => self.cursor.heads.clone(),
        };
        let commit = match commit {
            Some(commit) => Some(self.carried_whole(commit, &seen).await?),
            None => None,
        };
        let replica = self.replica;
        let position = self.cursor.position.unwrap_or(Position::FIRST);
        let read = self.read().await?;
        let number = read.logs.last(replica) + 1;
        let entry = Entry { replica, number, seen, commit, shown };
        let bytes = entry.encode().map_err(|why| SyncError::Unfit { position, why: why.to_string() })?;
        read.kept.add(replica, Range::one(number), bytes).await?;
        read.logs.add(&entry);
        self.cursor.kept = std::mem::take(&mut self.cursor.kept).with(replica, number);
        Ok((replica, number))
    }

    /// Returns the number of this device's last entry.
    pub(super) fn own_last(&self) -> u64 {
        self.cursor.kept.of(self.replica)
    }

    /// Appends the readable entries to the home log.
    async fn take_in(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        transfers: &mut TransferStats,
    ) -> Result<(), SyncError> {
        let is_all_taken = || self.cursor.heads.covers(&self.cursor.kept) || has(Planted::KeptIsTakenIn);
        if self.read.is_none() && is_all_taken() {
            // No new file arrived, there is no new commit here, and no earlier run left work.
            return Ok(());
        }
        let mut tail: Option<Tail> = None;
        'rounds: for _ in 0..MAX_ROUNDS {
            self.follow().await?;
            let heads = self.cursor.heads.clone();
            let logs = &self.read().await?.logs;
            let all = available(logs);
            let fresh = logs.between(&heads, &all);
            let known = all.each().map(|(_, number)| number).sum::<u64>();
            transfers.early = usize::try_from(logs.len() as u64 - known).unwrap_or_default();
            if fresh.is_empty() {
                return Ok(());
            }
            let mut end = match tail.take() {
                Some(tail) => tail,
                None => Tail::load(&self.log, store).await.map_err(local)?,
            };
            end.follow(&self.log).await.map_err(local)?;
            if end.position != self.cursor.position {
                tail = Some(end);
                continue;
            }
            // Before a commit is built on one of two contents, make a copy of the other.
            if self.put_beside(context, store, &fresh, &all, &mut end).await? {
                tail = Some(end);
                continue;
            }
            let mut is_unsaved = false;
            for at in fresh {
                if !context.patience.has_time() {
                    break 'rounds;
                }
                match self.add(store, at, &mut end, &mut is_unsaved).await? {
                    Added::Done => transfers.taken += 1,
                    Added::Outrun => {
                        tail = Some(end);
                        continue 'rounds;
                    }
                }
            }
            tail = Some(end);
        }
        Ok(())
    }

    /// Appends one entry to the home log: the merged files that it changed.
    async fn add(
        &mut self,
        store: StoreId,
        at: Numbered,
        tail: &mut Tail,
        is_unsaved: &mut bool,
    ) -> Result<Added, SyncError> {
        let logs = &self.read().await?.logs;
        let (knows, files): (Heads, Vec<Locator>) = (logs.knows(at), logs.files(at).cloned().collect());
        let with = self.cursor.heads.clone().join(&knows);
        let mut changes = Vec::new();
        let mut inline = 0;
        for locator in files {
            let made = self.made(&locator, &with).await?;
            let now = tail.files.files().get(&locator);
            let what = match made {
                FileOutcome::Absent { before } => match now {
                    Some(now) => Some(self.gone(now, before).await?),
                    None => None,
                },
                FileOutcome::FromEntry { content, .. } if now == Some(content) => None,
                FileOutcome::FromEntry { by, .. } => self.written_now(by, &locator, now, &mut inline).await?,
                FileOutcome::Merged { bytes, .. } => {
                    let hash = ContentHash::of(&bytes);
                    self.unannounced.insert((locator.clone(), hash));
                    match now.is_some_and(|now| now.hash == hash) {
                        true => None,
                        false => Some(self.put(bytes, &mut inline).await?),
                    }
                }
            };
            changes.extend(what.map(|what| FileChange { locator, what }));
        }
        let entry = self.read().await?.kept.entry(at).await?;
        let theirs = entry.as_deref().and_then(|entry| entry.commit.as_ref()).map(|commit| commit.heading());
        if let Some(theirs) = theirs.filter(|_| !changes.is_empty()) {
            if *is_unsaved {
                // An entry without changes leaves no trace in the home log: save the cursor before any commit is built on it.
                self.save().await?;
                *is_unsaved = false;
            }
            let (changes, twins) = without_twins(changes);
            let parts = [(twins, first_part_id(at)), (changes, taken_id(at))];
            for (changes, id) in parts.into_iter().filter(|(changes, _)| !changes.is_empty()) {
                let theirs = Commit { id, ..theirs.heading() };
                let commit = self.next_commit(store, tail, changes, theirs)?;
                if self.create(&commit, tail).await? == Added::Outrun {
                    return Ok(Added::Outrun);
                }
            }
        } else {
            *is_unsaved = true;
        }
        self.cursor.heads = with;
        Ok(Added::Done)
    }

    /// Makes copies of contents that could not be merged, now or after a part of the new entries was added, unless a log names them
    /// already; returns true if there are any.
    async fn put_beside(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        fresh: &[Numbered],
        heads: &Heads,
        tail: &mut Tail,
    ) -> Result<bool, SyncError> {
        let mut with = self.cursor.heads.clone();
        let logs = &self.read().await?.logs;
        let mut stages: Vec<Heads> = Vec::with_capacity(fresh.len());
        let mut touched: BTreeMap<Locator, Vec<usize>> = BTreeMap::new();
        for (stage, at) in fresh.iter().enumerate() {
            with = with.join(&logs.knows(*at));
            stages.push(with.clone());
            for locator in logs.files(*at) {
                touched.entry(locator.clone()).or_default().push(stage);
            }
        }
        let mut copies = Vec::new();
        for (locator, at) in touched {
            // A user may edit the file while it holds the first content, before the second one wins.
            for stage in at {
                if let FileOutcome::Merged { copies: beside, .. } =
                    self.made(&locator, &stages[stage]).await?
                {
                    let logs = &self.read().await?.logs;
                    let is_left = |copy: &Bytes| {
                        !logs.is_replaced(&locator, &ContentHash::of(copy), &stages[stage], heads)
                    };
                    copies.extend(beside.into_iter().filter(is_left).map(|copy| (locator.clone(), copy)));
                }
            }
        }
        let mut changes: Vec<FileChange> = Vec::new();
        let mut inline = 0;
        for (locator, copy) in copies {
            let Ok(name) = conflict_name(&locator, &copy) else { continue };
            // A second name that differs only by case has its place in the next round.
            if changes.iter().any(|change| change.locator.folded() == name.folded()) {
                continue;
            }
            if self.read().await?.logs.is_touched(&name) || tail.files.files().contains_key(&name) {
                continue;
            }
            changes.push(FileChange { locator: name, what: self.put(copy, &mut inline).await? });
        }
        if changes.is_empty() {
            return Ok(false);
        }
        let ours = Commit {
            store,
            position: Position::FIRST,
            id: CommitId::from_bytes(context.ids.next()),
            previous: tail.hash,
            replica: self.replica,
            device: names::harmless(&context.author.device),
            agent: None,
            session: None,
            time: context.clock.now(),
            cause: "two contents of one file".to_owned(),
            state: tail.files.mark(),
            changes: Vec::new(),
            odd: Vec::new(),
            notice: None,
        };
        let commit = self.next_commit(store, tail, changes, ours)?;
        // It becomes an entry like any other commit. If another process was faster, try again.
        self.create(&commit, tail).await.map(|_| true)
    }

    /// Returns the commit after the end, by the author of another one.
    fn next_commit(
        &self,
        store: StoreId,
        tail: &Tail,
        changes: Vec<FileChange>,
        theirs: Commit,
    ) -> Result<Commit, SyncError> {
        let position = tail.next();
        let state = tail.files.mark_after(&changes);
        let state = state.map_err(|why| SyncError::Unfit { position, why: why.to_string() })?;
        Ok(Commit { store, position, previous: tail.hash, state, changes, odd: Vec::new(), ..theirs })
    }

    /// Creates the next position of this device's own order.
    async fn create(&mut self, commit: &Commit, tail: &mut Tail) -> Result<Added, SyncError> {
        let position = commit.position;
        let bytes = commit.encode().map_err(|why| SyncError::Unfit { position, why: why.to_string() })?;
        let place = crate::log::layout::commit(position);
        match self.home.write(&place, bytes.clone(), Condition::Absent).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(Added::Outrun),
            Err(error) => return Err(SyncError::Local(error)),
        }
        tail.add(commit, &bytes).map_err(local)?;
        // A commit of our own is looked at again: it becomes an entry.
        if commit.replica != self.replica {
            self.cursor.position = Some(position);
        }
        Ok(Added::Done)
    }

    /// Announces the merge results that are written into the folder as plain files.
    async fn announce(&mut self) -> Result<(), SyncError> {
        let mut shown: Vec<(Locator, ContentHash)> = Vec::new();
        if !self.unannounced.is_empty() && !has(Planted::MergesAreNotAnnounced) {
            let heads = self.cursor.heads.clone();
            let named: HashSet<(Locator, ContentHash)> = self.read().await?.logs.contents(&heads).collect();
            shown.extend(self.unannounced.iter().filter(|content| !named.contains(*content)).cloned());
        }
        for shown in shown.chunks(MAX_SHOWN) {
            let at = self.make_entry(None, shown.to_vec()).await?;
            let knows = self.read().await?.logs.knows(at);
            self.cursor.heads = std::mem::take(&mut self.cursor.heads).join(&knows);
        }
        self.unannounced.clear();
        self.cursor.announced = self.cursor.position;
        Ok(())
    }

    pub(super) async fn save(&mut self) -> Result<(), SyncError> {
        if self.saved != self.cursor {
            self.cursor.save(&*self.home).await?;
            self.saved = self.cursor.clone();
        }
        Ok(())
    }
}

/// Separates files whose names differ only by case from a file before them: one commit cannot hold both.
///
/// One device renames a file by case while another edits it. The edit wins over the deletion of the old name, so both names stay.
fn without_twins(changes: Vec<FileChange>) -> (Vec<FileChange>, Vec<FileChange>) {
    let mut names = BTreeSet::new();
    changes
        .into_iter()
        .partition(|change| change.what.after().is_none() || names.insert(change.locator.folded()))
}

/// Returns what files hold after a commit.
fn contents_after(commit: &Commit) -> impl Iterator<Item = (Locator, ContentHash)> {
    commit.changes.iter().filter_map(|change| Some((change.locator.clone(), change.what.after()?.hash)))
}

/// The result of an attempt to append to the home log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    Done,
    /// Another process of this device was faster.
    Outrun,
}

/// Something has not arrived that will.
fn not_yet(locator: &Locator) -> StoreError {
    StoreError::new(
        ErrorKind::Unavailable,
        Operation::Read,
        locator,
        "it has not arrived yet, or only half of it",
    )
}

/// The device's own order is no remote: what fails there fails here.
pub(super) fn local(trouble: SyncError) -> SyncError {
    match trouble {
        SyncError::Remote(error) => SyncError::Local(error),
        other => other,
    }
}
