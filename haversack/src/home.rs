//! One sync of a whole home.
//!
//! A home has one memory directory, and it can have bound directories. A bound directory holds the files whose path in the store begins with one prefix, for
//! example `claude_memory/lighthouse/`. The memory directory holds all other files. Each directory is a replica with a state of its own, and all replicas of
//! a home follow one log. The command line, the simulator, the tests and the benches sync a home with [`sync`]:
//!
//! 1. Finish a batch of writes that a killed process left half done.
//! 2. Move each file of the memory directory whose path begins with a bound prefix into the directory that is bound to that prefix.
//! 3. If the devices meet in a synced folder: check the folder, and read it if this home has never read it.
//! 4. Open every replica.
//! 5. Each replica reads the new commits of the log, merges them, and publishes its changes.
//! 6. In a synced folder: carry the new commits both ways, and let the replicas take in the commits that arrived.
//! 7. Add the commits of this round to the archive, for the history.
//! 8. Write the mirror, if something changed and the store is small enough.
//!
//! # Invariants
//! - In a synced folder, a home publishes its own changes before it applies changes that have arrived: step 5 comes before step 6. So each commit is based
//!   only on versions that were in the files when its user changed them (`haversack-sim: sync`).
//! - A round skips a bound directory that is missing, emptied or broken, and syncs the others. A broken memory directory stops the round
//!   (`home::broken_directory_stops_only_itself`).
//! - One file can be both in the memory directory and in the bound directory. The move keeps every line of both, even if the process is killed during the
//!   move and the next round repeats it (`home::moved_file_keeps_lines_of_both_sides`).
//! - The archive has every commit that the round published, even if a later step failed.

mod hand_over;
mod lost_and_found;
mod rebuild;
mod report;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use haversack_store::{Backend, InMemory, Locator, Mounted, Overlay, Prefixed, SplitBackend};

pub use self::lost_and_found::LostAndFound;
pub use self::rebuild::{HomeRebuilt, rebuild};
pub use self::report::{HomeReport, Stopped};
use crate::Memory;
use crate::ids::{Ids, ReplicaId, Timestamp};
use crate::sync::planted::{Planted, has};
use crate::sync::{
    Agreement, Asking, Context, Gate, Intervals, Mirror, OneLog, Origins, Outlook, ReadOnce, Replica, Report,
    Scope, SyncError, agreement, look, replica_of,
};
use crate::vault::lost::Named;
use crate::vault::{Bridge, FolderOrigins, Mine};

/// One directory of a home that is there: a replica.
#[derive(Clone, Debug)]
pub struct Directory {
    /// The directory's name for people.
    pub name: String,
    /// The files, at their places in the store.
    pub files: Arc<dyn Backend>,
    /// The replica's state.
    pub state: Arc<dyn Backend>,
    /// The part of the store that belongs in this directory.
    pub scope: Scope,
}

/// A directory of another program, bound to a prefix of the store.
#[derive(Clone, Debug)]
pub struct BoundDirectory {
    /// The directory's name for people.
    pub name: String,
    /// The place of its files in the store.
    pub prefix: Locator,
    /// The files, named from the directory's own root; `None` while the directory is not there.
    pub files: Option<Arc<dyn Backend>>,
    /// The replica's state; `None` if the directory is not there and never synced.
    pub state: Option<Arc<dyn Backend>>,
}

/// The directories of one store on this device.
#[derive(Clone, Debug)]
pub struct Home {
    /// The bound directories that are there, then the memory directory.
    directories: Vec<Directory>,
    bound: Vec<BoundDirectory>,
    /// The files of the memory directory alone.
    memory_files: Arc<dyn Backend>,
    /// The state in which the verbs note their writers and unfinished batches.
    verb_state: Arc<dyn Backend>,
}

impl Home {
    /// Returns the home with this memory directory and these bound directories.
    ///
    /// A bound directory holds the files below its prefix, except those of a deeper bound directory. The memory directory holds the rest. A
    /// prefix stays bound while its directory is not there.
    pub fn new(
        name: impl Into<String>,
        memory_files: Arc<dyn Backend>,
        state: Arc<dyn Backend>,
        bound: Vec<BoundDirectory>,
    ) -> Home {
        let prefixes: Vec<Locator> = bound.iter().map(|directory| directory.prefix.clone()).collect();
        let mut directories = Vec::new();
        for BoundDirectory { name, prefix, files, state } in &bound {
            let (Some(files), Some(state)) = (files, state) else { continue };
            let is_deeper = |other: &&Locator| *other != prefix && other.is_within(prefix);
            let is_known = |_: &&Locator| !has(Planted::DeeperDirectoryForgotten);
            let deeper = prefixes.iter().filter(is_deeper).filter(is_known).cloned();
            directories.push(Directory {
                name: name.clone(),
                files: Arc::new(Mounted::new(files.clone(), prefix.clone())),
                state: state.clone(),
                scope: Scope::within(prefix.clone()).except(deeper).bound(),
            });
        }
        let is_there = |directory: &&BoundDirectory| directory.files.is_some();
        let prefixes: Vec<Locator> = match has(Planted::AbsentPrefixIsTheMemorys) {
            true => bound.iter().filter(is_there).map(|directory| directory.prefix.clone()).collect(),
            false => prefixes,
        };
        directories.push(Directory {
            name: name.into(),
            files: memory_files.clone(),
            state: state.clone(),
            scope: Scope::default().except(prefixes),
        });
        Home { directories, bound, memory_files, verb_state: state }
    }

    /// Names the state in which the verbs note their writers and unfinished batches, if it is not the memory directory's own.
    pub fn with_verb_state(self, verb_state: Arc<dyn Backend>) -> Home {
        Home { verb_state, ..self }
    }

    /// Returns the state in which the verbs note their writers and unfinished batches.
    pub fn verb_state(&self) -> &dyn Backend {
        &*self.verb_state
    }

    /// Returns the directories that are there: the bound ones, then the memory directory.
    pub fn directories(&self) -> &[Directory] {
        &self.directories
    }

    /// Returns the memory directory.
    pub fn memory(&self) -> &Directory {
        self.directories.last().expect("every home has a memory directory")
    }

    /// Returns the bound directories, also those that are not there.
    pub fn bound(&self) -> &[BoundDirectory] {
        &self.bound
    }

    /// Returns the store's files: the memory directory with the bound directories at their prefixes.
    pub fn files(&self) -> Arc<dyn Backend> {
        let bound = self.bound.iter().map(|bound| (bound.prefix.clone(), bound.files.clone()));
        with_bound_directories(self.memory_files.clone(), bound.collect())
    }

    /// Looks at a directory of this home without asking the remote.
    pub async fn look(
        &self,
        directory: &Directory,
        gate: &dyn Gate,
        now: Timestamp,
    ) -> Result<Outlook, SyncError> {
        let signed = Some(&*self.verb_state);
        look(&*directory.files, directory.state.clone(), &directory.scope, gate, now, signed)
            .await
            .map_err(SyncError::Local)
    }

    /// Returns the agreement of each directory with the store. The files of the directories are not looked at.
    pub async fn agreements(&self) -> Result<Vec<Agreement>, Stopped> {
        let mut agreements = Vec::new();
        for directory in &self.directories {
            let read = agreement(directory.state.clone()).await.map_err(SyncError::Local);
            agreements.push(read.map_err(|error| Stopped::at(directory, error))?);
        }
        Ok(agreements)
    }

    /// Returns the ids of all replicas of the home that have synced before, also of bound directories that are not there now.
    pub async fn replicas(&self) -> Result<BTreeSet<ReplicaId>, Stopped> {
        let memory = self.memory();
        let bound = self.bound.iter().filter_map(|bound| Some((&bound.name, bound.state.clone()?)));
        let mut ids = BTreeSet::new();
        for (name, state) in bound.chain([(&memory.name, memory.state.clone())]) {
            let found = replica_of(state).await.map_err(SyncError::Local);
            ids.extend(found.map_err(|error| Stopped { directory: Some(name.clone()), error })?);
        }
        Ok(ids)
    }

    /// Keeps files that another device deleted, very many at once, and that are still here: the next sync sends them again. Returns the
    /// files that it kept.
    pub async fn keep_held(
        &self,
        context: Context<'_>,
        lock_wait: Duration,
        is_wanted: impl Fn(&Locator) -> bool,
    ) -> Result<Vec<Locator>, Stopped> {
        let mut kept = Vec::new();
        for directory in &self.directories {
            let outlook = self.look(directory, context.gate, context.clock.now()).await;
            let outlook = outlook.map_err(|error| Stopped::at(directory, error))?;
            if outlook.held_deletions.iter().any(&is_wanted) {
                // Keeping files asks nothing of a remote.
                let nowhere = Arc::new(InMemory::new());
                let mut replica = directory.open(nowhere, context, lock_wait).await?;
                kept.extend(replica.keep_held(context, &is_wanted).await?);
            }
        }
        Ok(kept)
    }

    /// Finishes a batch that a killed process left, and moves files to the directories where they belong.
    pub async fn tidy(&self, ids: &dyn Ids, lock_wait: Duration) -> Result<(), SyncError> {
        let memory = Memory::new(self.files(), self.verb_state.clone()).with_lock_wait(lock_wait);
        memory.complete().await.map_err(local)?;
        self.move_to_bound_directories(ids, lock_wait).await
    }

    /// Moves each file of the memory directory whose path begins with a bound prefix into the directory that is bound to that prefix.
    ///
    /// Such a file was there before the directory was bound, or was written while that directory was missing. A name that is never written into a bound
    /// directory stays.
    pub async fn move_to_bound_directories(
        &self,
        ids: &dyn Ids,
        lock_wait: Duration,
    ) -> Result<(), SyncError> {
        hand_over::move_to_bound_directories(self, ids, lock_wait).await
    }
}

/// Puts bound directories at their prefixes over the files of the memory directory; `None` stands for a directory that is not there.
///
/// The files of a directory that is not there wait in the memory directory, and not in a bound directory around it, which would never send them.
pub fn with_bound_directories(
    memory: Arc<dyn Backend>,
    bound: Vec<(Locator, Option<Arc<dyn Backend>>)>,
) -> Arc<dyn Backend> {
    let mut there: Vec<(Locator, Arc<dyn Backend>)> = Vec::new();
    let mut absent = Vec::new();
    for (prefix, files) in bound {
        match files {
            Some(files) => there.push((prefix, files)),
            None => absent.push(prefix),
        }
    }
    for prefix in absent {
        if there.iter().any(|(around, _)| prefix != *around && prefix.is_within(around)) {
            let waiting = Prefixed::new(memory.clone(), prefix.clone());
            there.push((prefix, Arc::new(waiting)));
        }
    }
    if there.is_empty() { memory } else { Arc::new(Overlay::fenced(memory, there)) }
}

impl Directory {
    /// Opens the replica, waiting for a process that syncs it already.
    pub async fn open(
        &self,
        remote: Arc<dyn Backend>,
        context: Context<'_>,
        lock_wait: Duration,
    ) -> Result<Replica, Stopped> {
        let (files, state) = (self.files.clone(), self.state.clone());
        let opened = Replica::open_within(files, state, remote, context.ids, lock_wait).await;
        let replica = opened.map_err(|error| Stopped::at(self, error))?;
        Ok(replica.with_scope(self.scope.clone()))
    }
}

fn local(error: crate::Error) -> SyncError {
    SyncError::Local(error.into_store_error())
}

/// The place where the devices of a store meet.
#[derive(Clone, Debug)]
pub struct Meeting {
    remote: Arc<dyn Backend>,
    /// The same storage; a round begins and ends its memory of the objects.
    read_once: Arc<ReadOnce>,
    folder: Option<Folder>,
}

/// A folder that a sync client replicates.
#[derive(Clone, Debug)]
struct Folder {
    folder: Arc<dyn Backend>,
    /// The home log, and the copies of all folder logs.
    home: Arc<dyn Backend>,
}

impl Meeting {
    /// Returns a log in a remote: a bucket, or a directory that one machine at a time writes to.
    pub fn log(remote: Arc<dyn Backend>) -> Meeting {
        Meeting::at(remote, None)
    }

    /// Returns a folder that a sync client replicates. `home` is this device's storage for it.
    pub fn folder(folder: Arc<dyn Backend>, home: Arc<dyn Backend>) -> Meeting {
        let remote = SplitBackend::new(home.clone(), folder.clone());
        Meeting::at(Arc::new(remote), Some(Folder { folder, home }))
    }

    fn at(remote: Arc<dyn Backend>, folder: Option<Folder>) -> Meeting {
        let read_once = Arc::new(ReadOnce::new(remote));
        Meeting { remote: read_once.clone(), read_once, folder }
    }

    /// Returns the storage with the log that the replicas of this device follow.
    pub fn remote(&self) -> &Arc<dyn Backend> {
        &self.remote
    }

    /// Returns true if a sync client replicates it.
    pub fn is_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Returns how the remote is asked for news. A folder has been looked at already; another remote may have been wiped or replaced.
    pub fn asking(&self) -> Asking {
        if self.is_folder() { Asking::ForNext } else { Asking::FromLast }
    }

    /// Opens the bridge to a folder, waiting for a process that uses it already.
    async fn bridge(&self, context: Context<'_>, lock_wait: Duration) -> Result<Option<Bridge>, SyncError> {
        let Some(Folder { folder, home }) = &self.folder else { return Ok(None) };
        Bridge::open_within(folder.clone(), home.clone(), context.ids, lock_wait).await.map(Some)
    }
}

/// The work of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work<'a> {
    /// Take in the news, and publish all changes.
    Sync,
    /// Take in the news.
    Pull,
    /// Sync the bound directory that has this place, and the memory directory.
    Near(&'a Locator),
    /// Publish one file.
    PushOne(&'a Locator),
    /// Look at everything again: every file here, every object of the mirror, every part of the log.
    Full,
}

/// The options of one round, beside its [`Context`].
#[derive(Clone)]
pub struct Round<'a> {
    /// The work to do.
    pub work: Work<'a>,
    /// Returns true if the store is mirrored as plain objects.
    pub mirror: Mirror,
    /// The most files of a store whose mirror the round writes itself. A larger store's mirror is left to the caller
    /// ([`HomeReport::is_mirror_late`]).
    pub mirrored_files: usize,
    /// The plain files in a synced folder that this device's user wrote.
    pub mine: Mine,
    /// Finds edits that the client of a synced folder put aside; a full round imports them.
    pub lost_and_found: Option<&'a dyn LostAndFound>,
    /// The time that a round waits for another process of this home.
    pub lock_wait: Duration,
}

impl Round<'_> {
    /// Returns a round for some work, with the mirror written at once and no waiting for other processes.
    pub fn new(work: Work<'_>) -> Round<'_> {
        Round {
            work,
            mirror: Mirror::On,
            mirrored_files: usize::MAX,
            mine: Mine::Nothing,
            lost_and_found: None,
            lock_wait: Duration::ZERO,
        }
    }
}

/// Syncs every directory of a home.
///
/// The context's `signed`, `archive`, `asking`, `own_replicas` and `origins` are those of the home and the meeting place: the round sets them.
pub async fn sync(
    home: &Home,
    meeting: &Meeting,
    context: Context<'_>,
    round: &Round<'_>,
) -> Result<HomeReport, Stopped> {
    home.tidy(context.ids, round.lock_wait).await?;
    let own = home.replicas().await?;
    // In a synced folder every device keeps its own log whole: entries name the commits of others.
    let keep_contents = context.intervals.keep_contents.filter(|_| !meeting.is_folder());
    let context = Context {
        intervals: Intervals { keep_contents, ..context.intervals },
        signed: Some(&*home.verb_state),
        archive: Some(&*home.memory().state),
        asking: meeting.asking(),
        own_replicas: &own,
        ..context
    };
    let mut report = HomeReport::new(home);
    let mut bridge = meeting.bridge(context, round.lock_wait).await?;
    if let Some(bridge) = &mut bridge {
        report.add_carriage(bridge.prepare(context).await?);
    }
    let mut replicas = Vec::new();
    for directory in home.directories().iter().filter(|directory| round.work.concerns(home, directory)) {
        let replica = directory.open(meeting.remote.clone(), context, round.lock_wait).await?;
        replicas.push((directory, replica));
    }
    // A commit that some directory of this home knew before is no news.
    report.known = replicas.iter().filter_map(|(_, replica)| replica.position()).max();
    let mut running = Running { home, replicas, report };
    meeting.read_once.forget_listing();
    let ran = running.run(context, round, meeting, bridge.as_mut()).await;
    meeting.read_once.forget_listing();
    let Running { replicas, mut report, .. } = running;
    let mut replicas: Vec<Replica> = replicas.into_iter().map(|(_, replica)| replica).collect();
    // The commits of a round that failed are in the history all the same.
    let archived = report.archive(home, context, &mut replicas).await;
    let origins = ran?;
    archived?;
    let context =
        Context { origins: origins.as_ref().map_or(&OneLog as &dyn Origins, |known| known), ..context };
    report.position = replicas.iter().filter_map(Replica::position).max();
    mirror(&mut replicas, context, round, &mut report).await;
    if meeting.is_folder() {
        // In a synced folder an unknown plain file may be on its way with its log: the report lists it as awaited.
        report.sync.not_mirrored.clear();
    }
    Ok(report)
}

impl Work<'_> {
    /// Returns true if a directory takes part.
    fn concerns(self, home: &Home, directory: &Directory) -> bool {
        match self {
            Work::PushOne(locator) => directory.scope.contains(locator),
            Work::Near(prefix) => directory.scope.contains(prefix) || std::ptr::eq(directory, home.memory()),
            Work::Sync | Work::Pull | Work::Full => true,
        }
    }
}

/// A round under way.
struct Running<'h> {
    home: &'h Home,
    replicas: Vec<(&'h Directory, Replica)>,
    report: HomeReport,
}

impl Running<'_> {
    /// Does steps 5 and 6; returns the origins of plain files in a synced folder, if the round looked for them.
    async fn run(
        &mut self,
        context: Context<'_>,
        round: &Round<'_>,
        meeting: &Meeting,
        bridge: Option<&mut Bridge>,
    ) -> Result<Option<FolderOrigins>, Stopped> {
        let (Some(bridge), Some(Folder { folder, .. })) = (bridge, &meeting.folder) else {
            self.run_all(context, round, round.work).await?;
            return Ok(None);
        };
        // Publish the changes of this home first: the user made them before the arrived changes were in the files.
        let first = if round.work == Work::Full { Work::Sync } else { round.work };
        if first != Work::Pull {
            self.run_all(context, round, first).await?;
        }
        let carried = bridge.carry(context).await?;
        let is_more = carried.taken > 0 || matches!(round.work, Work::Full | Work::Pull);
        self.report.add_carriage(carried);
        let mut mine = round.mine.clone();
        if let (Some(lost_and_found), Work::Full, Mirror::On) =
            (round.lost_and_found, round.work, round.mirror)
        {
            let named = Named::of(bridge.contents().await?);
            let edits = lost_and_found.edits(&named).map_err(SyncError::Local)?;
            let rescued = lost_and_found::put_copies(&**folder, edits).await.map_err(SyncError::Remote)?;
            mine = mine.and(rescued);
        }
        let is_looking = round.mirror == Mirror::On && (is_more || self.report.sync.published > 0);
        let mut origins = match is_looking {
            true => Some(bridge.origins(context, mine.clone()).await?),
            false => None,
        };
        if is_more {
            let known: &dyn Origins = origins.as_ref().map_or(&OneLog, |known| known);
            let before = self.report.sync.published;
            self.run_all(Context { origins: known, ..context }, round, round.work).await?;
            if self.report.sync.published > before {
                let carried = bridge.carry(context).await?;
                if carried.taken > 0 {
                    self.run_all(context, round, Work::Pull).await?;
                }
                self.report.add_carriage(carried);
                // The commits that were carried just now may be mirrored.
                if origins.is_some() {
                    origins = Some(bridge.origins(context, mine).await?);
                }
            }
        }
        if round.work == Work::Full {
            self.report.waits = bridge.await_files(context, &self.report.sync.awaited).await?;
            self.report.mended = bridge.mend().await?;
        }
        Ok(origins)
    }

    /// Lets every replica do its part. A bound directory that is gone or fails takes no part from then on.
    async fn run_all(
        &mut self,
        context: Context<'_>,
        round: &Round<'_>,
        work: Work<'_>,
    ) -> Result<(), Stopped> {
        let mut left: VecDeque<_> = std::mem::take(&mut self.replicas).into();
        let mut stopped = None;
        while let Some((directory, mut replica)) = left.pop_front() {
            let is_memory = std::ptr::eq(directory, self.home.memory());
            match run(&mut replica, context, round, work).await {
                Ok(report) => self.report.sync.add(report),
                Err(SyncError::Vanished) if !is_memory => {
                    self.report.vanished.push(directory.name.clone());
                    continue;
                }
                Err(error @ SyncError::Local(_)) if !is_memory => {
                    self.report.failed.push(Stopped::at(directory, error));
                    continue;
                }
                Err(error) => stopped = Some(Stopped::at(directory, error)),
            }
            self.replicas.push((directory, replica));
            if stopped.is_some() {
                break;
            }
        }
        self.replicas.extend(left);
        if let Some(stopped) = stopped {
            return Err(stopped);
        }
        // The replicas that ran first have not taken in the commits of the later ones yet.
        let newest = self.replicas.iter().filter_map(|(_, replica)| replica.position()).max();
        for (directory, replica) in &mut self.replicas {
            if replica.position() < newest {
                let pulled = replica.pull(context).await;
                self.report.sync.add(pulled.map_err(|error| Stopped::at(directory, error))?);
            }
        }
        Ok(())
    }
}

async fn run(
    replica: &mut Replica,
    context: Context<'_>,
    round: &Round<'_>,
    work: Work<'_>,
) -> Result<Report, SyncError> {
    match work {
        Work::Sync | Work::Near(_) => replica.sync(context).await,
        Work::Pull => replica.pull(context).await,
        Work::PushOne(locator) => replica.push_one(context, locator).await,
        Work::Full => replica.reconcile(context, round.mirror).await,
    }
}

/// Does step 8.
async fn mirror(replicas: &mut [Replica], context: Context<'_>, round: &Round<'_>, report: &mut HomeReport) {
    let is_new = !report.published.is_empty() || report.transfers.taken > 0;
    if round.mirror == Mirror::Off || !is_new || !context.patience.has_time() {
        return;
    }
    let files = replicas.last().map_or(0, |replica| replica.log_files().len());
    if files > round.mirrored_files {
        report.is_mirror_late = true;
        return;
    }
    // Each replica has the contents of its own directory only.
    let last = replicas.last().map(Replica::id);
    let has_new = |id| report.transfers.taken > 0 || report.publishers.contains(&id) || Some(id) == last;
    let mut not_mirrored = Vec::new();
    for replica in replicas.iter_mut().filter(|replica| has_new(replica.id())) {
        match replica.mirror(context).await {
            Ok(mirrored) => not_mirrored.extend(mirrored.foreign),
            // The mirror is derived: the next device that publishes writes it. A remote that does not answer one replica does not answer
            // the next one.
            Err(SyncError::Remote(_)) => break,
            Err(_) => {}
        }
    }
    let not_mirrored = Report { not_mirrored, ..Report::default() };
    report.sync.add(not_mirrored);
    report.is_mirrored = true;
}
