//! A device: its files, its state, its connection and the processes that sync it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use haversack::clock::Clock;
use haversack::history::archive::{self, Bounds};
use haversack::ids::{ContentHash, Ids, Timestamp};
use haversack::sync::{
    Asking, Author, Context, Deletions, ForeignFiles, Intervals, Mirror, Patience, Recent, Replica, Report,
    SyncError, rebuild,
};
use haversack::vault::{self, Bridge, Mine};
use haversack_store::{Apart, Backend, Bytes, Locator};

use super::crashing::Crashing;
use super::link::{Connection, Link, Wire};
use super::memory::Numbers;
use super::oracle::Remembered;
use super::schedule::{Ground, Meeting, Stream, Task, Time, stream};
use super::storage::{Hands, Saving, Storage};
use super::unit::units_of;
use crate::disk::Crash;
use crate::random::Random;

/// The most calls of a disk until something happens in the middle of an effect.
pub(crate) const MAX_CALLS: usize = 60;

/// The most syncs of a disk until the process dies in one.
const MAX_SYNCS: usize = 12;

/// After how many commits the log is folded at most.
const MAX_INTERVAL: usize = 6;

/// An hour, in milliseconds.
const HOUR: u64 = 60 * 60 * 1_000;

/// How long a file that no log names is waited for at least, in milliseconds.
const PATIENCE: u64 = vault::ALONE_PATIENCE.as_secs() * 1_000;

/// A sync under way.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<Report, SyncError>> + Send>>;

/// A device.
pub(crate) struct Device {
    pub(crate) number: usize,
    /// Whom the oracle knows it as.
    pub(crate) actor: usize,
    pub(crate) files: Storage,
    state: Storage,
    vault: Option<Vault>,
    meeting: Meeting,
    /// True once it had to merge without a base, because its archive did not reach back.
    lost_base: Arc<AtomicBool>,
    connection: Arc<Mutex<Connection>>,
    is_full: Arc<AtomicBool>,
    /// What its user wrote into the folder by hand, last at each place.
    mine: BTreeMap<Locator, Bytes>,
    pub(crate) processes: Vec<Option<Process>>,
    backup: Option<Backup>,
    /// The working directory while it is not there.
    away: Option<Storage>,
}

/// What a device has for a folder in which devices meet.
#[derive(Clone)]
struct Vault {
    /// Its own order, and what it keeps of all logs.
    home: Storage,
    /// Its copy of the folder.
    folder: Storage,
}

/// A process that syncs.
pub(crate) struct Process {
    pub(crate) running: Running,
    /// When it started, as the oracle counts.
    pub(crate) started: usize,
    /// There was no space left at some time since.
    pub(crate) met_full: bool,
    hands: [Hands; 4],
}

/// When a process starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// As the oracle counts.
    pub(crate) started: usize,
    /// As those do who wait in a folder.
    pub(crate) hours: u64,
    /// How much it has.
    pub(crate) time: Time,
}

/// A copy of a device that was put aside.
struct Backup {
    files: Storage,
    state: Storage,
    /// What it keeps of all logs; the folder is not put back.
    home: Option<Storage>,
    remembered: Remembered,
}

impl Device {
    pub(crate) fn new(
        number: usize,
        actor: usize,
        processes: usize,
        ground: Ground,
        meeting: Meeting,
        numbers: &Arc<Numbers>,
    ) -> Device {
        let is_full: Arc<AtomicBool> = Arc::default();
        let storage = |seed| match ground {
            Ground::Memory => Storage::memory(numbers.clone(), is_full.clone()),
            Ground::Crashing => Storage::crashing(seed, is_full.clone()),
        };
        let (files, state) = (storage(0), storage(1));
        let vault = match meeting {
            Meeting::Log | Meeting::Lost => None,
            Meeting::Vault => Some(Vault { home: storage(2), folder: storage(3).versioned_by_content() }),
        };
        Device::with(number, actor, processes, files, state, vault, meeting, is_full)
    }

    /// Tells whether it had to merge without a base.
    pub(crate) fn has_lost_base(&self) -> bool {
        self.lost_base.load(Ordering::Relaxed)
    }

    /// Returns its copy of the folder in which devices meet.
    pub(crate) fn folder(&self) -> Option<&Storage> {
        self.vault.as_ref().map(|vault| &vault.folder)
    }

    /// Lets its user write a plain file into the folder.
    pub(crate) fn write_by_hand(&mut self, locator: &Locator, text: Bytes, how: Saving) {
        if let Some(vault) = &self.vault {
            vault.folder.save(locator, text.clone(), how);
            self.mine.insert(locator.clone(), text);
        }
    }

    /// Returns the files in the folder that are what its user wrote there, with what that is.
    fn mine(&self) -> BTreeSet<(Locator, ContentHash)> {
        if self.mine.is_empty() {
            return BTreeSet::new();
        }
        let there = self.folder().map(Storage::all).unwrap_or_default();
        let is_mine = |(locator, text): &(&Locator, &Bytes)| there.get(*locator) == Some(*text);
        self.mine
            .iter()
            .filter(is_mine)
            .map(|(locator, text)| (locator.clone(), ContentHash::of(text)))
            .collect()
    }

    #[expect(clippy::too_many_arguments, reason = "all that a device is made of")]
    fn with(
        number: usize,
        actor: usize,
        processes: usize,
        files: Storage,
        state: Storage,
        vault: Option<Vault>,
        meeting: Meeting,
        is_full: Arc<AtomicBool>,
    ) -> Device {
        let processes = (0..processes).map(|_| None).collect();
        let connection = Arc::default();
        Device {
            number,
            actor,
            files,
            state,
            vault,
            meeting,
            lost_base: Arc::default(),
            connection,
            is_full,
            mine: BTreeMap::new(),
            processes,
            backup: None,
            away: None,
        }
    }

    /// Returns a new device with a copy of files and state as they are now, whatever is under way.
    pub(crate) fn copy(&self, number: usize, actor: usize, processes: usize) -> Device {
        let is_full: Arc<AtomicBool> = Arc::default();
        let files = self.at_home().copy(is_full.clone());
        let state = self.state.copy(is_full.clone());
        let vault = self.vault.as_ref().map(|vault| Vault {
            home: vault.home.copy(is_full.clone()),
            folder: vault.folder.copy(is_full.clone()),
        });
        Device::with(number, actor, processes, files, state, vault, self.meeting, is_full)
    }

    /// Returns the working directory, wherever it is.
    fn at_home(&self) -> &Storage {
        self.away.as_ref().unwrap_or(&self.files)
    }

    pub(crate) fn is_away(&self) -> bool {
        self.away.is_some()
    }

    pub(crate) fn is_syncing(&self) -> bool {
        self.processes.iter().any(Option::is_some)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    pub(crate) fn set_full(&mut self, is_full: bool) {
        self.is_full.store(is_full, Ordering::Relaxed);
        for process in self.processes.iter_mut().flatten() {
            process.met_full |= is_full;
        }
    }

    pub(crate) fn set_offline(&self, is_offline: bool) {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).is_offline = is_offline;
    }

    /// Lets the device be connected and let in.
    pub(crate) fn calm_down(&mut self) {
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = Connection::default();
        self.set_full(false);
        self.disks().for_each(Crashing::forget_plans);
    }

    /// Returns all units that are anywhere in the working directory, under our own names too.
    pub(crate) fn units(&self) -> BTreeSet<String> {
        units(self.at_home())
    }

    /// Returns the working files, to be compared.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let all = self.files.all().into_iter().filter(|(locator, _)| !locator.is_reserved());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        all.map(|(locator, bytes)| (locator.to_string(), text(&bytes))).collect()
    }

    /// Returns what is left of an unfinished step.
    pub(crate) fn left_over(&self) -> Option<Locator> {
        self.files.all().into_keys().find(Locator::is_reserved)
    }

    /// Lets the working directory be gone.
    pub(crate) fn vanish(&mut self) {
        let empty = self.files.empty(self.is_full.clone());
        self.away = Some(std::mem::replace(&mut self.files, empty));
    }

    /// Lets the working directory be back.
    pub(crate) fn come_back(&mut self) {
        if let Some(files) = self.away.take() {
            self.files = files;
        }
    }

    /// Puts a copy aside.
    pub(crate) fn back_up(&mut self, remembered: Remembered) {
        let (files, state) =
            (self.at_home().copy(self.is_full.clone()), self.state.copy(self.is_full.clone()));
        let home = self.vault.as_ref().map(|vault| vault.home.copy(self.is_full.clone()));
        self.backup = Some(Backup { files, state, home, remembered });
    }

    /// Puts back what was copied; returns what the copy remembers, and its units.
    pub(crate) fn restore(&mut self) -> Option<(Remembered, BTreeSet<String>)> {
        let backup = self.backup.as_ref()?;
        self.away = None;
        self.files = backup.files.copy(self.is_full.clone());
        self.state = backup.state.copy(self.is_full.clone());
        if let (Some(vault), Some(home)) = (&mut self.vault, &backup.home) {
            vault.home = home.copy(self.is_full.clone());
        }
        Some((backup.remembered.clone(), units(&backup.files)))
    }

    /// Lets a process die; returns whether there was one.
    pub(crate) fn die(&mut self, process: usize, random: &mut Random) -> bool {
        let Some(process) = self.processes.get_mut(process).and_then(Option::take) else { return false };
        drop(process.running);
        for (storage, hands) in self.storages().zip(&process.hands) {
            storage.tear(hands, random);
        }
        if !self.is_syncing() {
            self.disks().for_each(Crashing::forget_plans);
        }
        true
    }

    /// Lets a process die in the middle of a call of the disk, soon; returns whether there is one that crashes.
    pub(crate) fn plan_crash(&self, random: &mut Random) -> bool {
        let storages: Vec<&Storage> = self.storages().collect();
        let storage = storages[random.between(0, storages.len() - 1)];
        if let Storage::Crashing(crashing) = storage {
            match random.coin() {
                true => crashing.plan_crash(random.between(1, MAX_CALLS)),
                false => crashing.plan_crash_at_sync(random.between(1, MAX_SYNCS)),
            }
        }
        matches!(storage, Storage::Crashing(_))
    }

    /// Tells whether a planned crash has happened.
    pub(crate) fn has_crashed(&self) -> bool {
        self.disks().any(Crashing::has_crashed)
    }

    /// Starts anew, after the process died or the machine stopped; returns which, if it has a disk that crashes.
    pub(crate) fn restart(&self, random: &mut Random) -> Option<Crash> {
        let is_power_loss = random.coin();
        let mut crash = None;
        for disk in self.disks() {
            let seed = random.number();
            let now = if is_power_loss { Crash::PowerLoss { seed } } else { Crash::Kill };
            disk.restart(now);
            crash = Some(now);
        }
        crash
    }

    fn disks(&self) -> impl Iterator<Item = &Crashing> {
        self.storages().filter_map(|storage| match storage {
            Storage::Crashing(crashing) => Some(crashing),
            Storage::Memory(_) => None,
        })
    }

    /// Returns everything it stores something in.
    fn storages(&self) -> impl Iterator<Item = &Storage> {
        let vault = self.vault.iter().flat_map(|vault| [&vault.home, &vault.folder]);
        [&self.files, &self.state].into_iter().chain(vault)
    }

    /// Starts a sync.
    pub(crate) fn start(
        &mut self,
        process: usize,
        seed: u64,
        wire: &Arc<Wire>,
        now: Now,
        task: Task,
        deletions: Deletions,
    ) {
        let Now { started, hours, time } = now;
        let number = self.number;
        let hands: [Hands; 4] = Default::default();
        let opened = (self.files.open(&hands[0]), self.state.open(&hands[1]));
        let (faults, choices) = (stream(seed, Stream::Faults), stream(seed, Stream::Store));
        let link = Link::new(wire.clone(), self.connection.clone(), number, faults, choices);
        let remote: Arc<dyn Backend> = Arc::new(link);
        let vault =
            self.vault.as_ref().map(|vault| (vault.home.open(&hands[2]), vault.folder.open(&hands[3])));
        let ids = SeededIds { random: Mutex::new(stream(seed, Stream::Ids)) };
        let mine = Mine::These(self.mine());
        let random = AtomicU64::new(stream(seed, Stream::Clock).number());
        let clock = Jumping { random, hours: vault.as_ref().map(|_| hours) };
        let patience = Hurried::new(time);
        let mut folding = stream(seed, Stream::Folding);
        let mut commits = || folding.between(1, MAX_INTERVAL) as u64;
        let (checkpoint_commits, segment_commits) = (commits(), commits());
        let (meeting, lost_base) = (self.meeting, self.lost_base.clone());
        let (keep_positions, rebuilt_files) = (Duration::ZERO, 1);
        let intervals = Intervals { checkpoint_commits, segment_commits, keep_positions, rebuilt_files };
        let running = async move {
            let (files, state) = (opened.0.map_err(SyncError::Local)?, opened.1.map_err(SyncError::Local)?);
            let author = Author { device: format!("device {number}"), agent: None, session: None };
            let context = Context {
                deletions,
                intervals,
                patience: &patience,
                foreign: ForeignFiles::Anywhere,
                ..Context::new(&clock, &ids, &author)
            };
            let Some((home, folder)) = vault else {
                let mut replica = Replica::open(files, state.clone(), remote, &ids).await?;
                return match meeting {
                    Meeting::Lost => sync_or_rebuild(&mut replica, context, task, state, &lost_base).await,
                    Meeting::Log | Meeting::Vault => sync(&mut replica, context, task).await,
                };
            };
            let (home, folder) = (home.map_err(SyncError::Local)?, folder.map_err(SyncError::Remote)?);
            let mut bridge = Bridge::open(folder.clone(), home.clone(), &ids).await?;
            bridge.prepare(context).await?;
            let mut replica = Replica::open(files, state, Arc::new(Apart::new(home, folder)), &ids).await?;
            let mut report = replica.sync(context).await?;
            let carried = bridge.carry(context).await?;
            if carried.taken == 0 && task == Task::Sync {
                return Ok(report);
            }
            let mut origins = bridge.origins(context, mine.clone()).await?;
            let known = Context { origins: &origins, ..context };
            let first = if task == Task::Mirror { Task::Sync } else { task };
            let second = sync(&mut replica, known, first).await?;
            if second.published > 0 {
                if bridge.carry(context).await?.taken > 0 {
                    report.taken += replica.pull(context).await?.taken;
                }
                origins = bridge.origins(context, mine).await?;
            }
            if task == Task::Reconcile {
                bridge.await_files(context, &second.awaited).await?;
                bridge.mend().await?;
            }
            if matches!(task, Task::Mirror | Task::Reconcile) {
                replica.mirror(Context { origins: &origins, ..context }).await?;
            }
            report.published += second.published;
            report.taken += second.taken;
            report.out_of_time |= second.out_of_time;
            report.held = second.held;
            report.waiting_deletions = second.waiting_deletions;
            Ok(report)
        };
        let met_full = self.is_full();
        self.processes[process] = Some(Process { running: Box::pin(running), started, met_full, hands });
    }
}

/// Syncs with a remote that can get lost, as a home does: it keeps the commits that it saw.
async fn sync_or_rebuild(
    replica: &mut Replica,
    context: Context<'_>,
    task: Task,
    state: Arc<dyn Backend>,
    lost_base: &AtomicBool,
) -> Result<Report, SyncError> {
    let context = Context { asking: Asking::FromLast, ..context };
    if task == Task::Rebuild {
        let rebuilt = rebuild(context, std::slice::from_mut(replica), state.clone()).await;
        keep(replica, &*state).await?;
        lost_base.fetch_or(rebuilt?.without_base > 0, Ordering::Relaxed);
    }
    let synced = sync(replica, context, task).await;
    keep(replica, &*state).await?;
    synced
}

async fn keep(replica: &mut Replica, state: &dyn Backend) -> Result<(), SyncError> {
    let Some(store) = replica.store() else { return Ok(()) };
    let recent = replica.take_recent().into_iter().filter_map(Recent::read).collect();
    let bounds = Bounds { bytes: u64::MAX, oldest: Timestamp(i64::MIN) };
    archive::keep(state, store, recent, bounds).await.map_err(SyncError::Local)
}

async fn sync(replica: &mut Replica, context: Context<'_>, task: Task) -> Result<Report, SyncError> {
    match task {
        Task::Sync | Task::Rebuild => replica.sync(context).await,
        Task::Compact => {
            let report = replica.sync(context).await?;
            replica.compact(context).await?;
            Ok(report)
        }
        Task::Mirror => {
            let report = replica.sync(context).await?;
            replica.mirror(context).await?;
            Ok(report)
        }
        Task::Reconcile => replica.reconcile(context, Mirror::On).await,
    }
}

fn units(storage: &Storage) -> BTreeSet<String> {
    storage.all().values().flat_map(|bytes| units_of(&String::from_utf8_lossy(bytes))).collect()
}

/// Ids that a seed repeats.
struct SeededIds {
    random: Mutex<Random>,
}

impl Ids for SeededIds {
    fn next(&self) -> [u8; 16] {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&random.number().to_le_bytes());
        bytes[8..].copy_from_slice(&random.number().to_le_bytes());
        bytes
    }
}

/// Has time for so many steps, if it is in haste.
struct Hurried {
    left: Option<AtomicUsize>,
}

impl Hurried {
    fn new(time: Time) -> Hurried {
        let left = match time {
            Time::Enough => None,
            Time::Steps(steps) => Some(steps.into()),
        };
        Hurried { left }
    }
}

#[async_trait]
impl Patience for Hurried {
    async fn wait(&self, _: usize) -> bool {
        false
    }

    fn has_time(&self) -> bool {
        let fewer = |left: usize| left.checked_sub(1);
        self.left
            .as_ref()
            .is_none_or(|left| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok())
    }
}

/// A clock that jumps: nothing may depend on it, but for how long is waited in a folder, where it jumps within minutes.
struct Jumping {
    random: AtomicU64,
    /// What time it is in a folder.
    hours: Option<u64>,
}

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        let number = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let milliseconds = match self.hours {
            None => number % 4_000_000_000_000,
            Some(hours) => hours * HOUR + number % (PATIENCE / 2),
        };
        Timestamp(i64::try_from(milliseconds).unwrap_or(0))
    }
}
