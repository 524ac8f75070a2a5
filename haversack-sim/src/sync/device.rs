//! A device: its files, its state, its connection and the processes that sync it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use haversack::clock::Clock;
use haversack::day::Day;
use haversack::home::{self, BoundDirectory, Home, HomeReport, Round, Stopped, Work};
use haversack::ids::{ContentHash, Ids, Timestamp};
use haversack::sync::{
    Author, Context, Deletions, ForeignFiles, Gate, Hold, Intervals, Mirror, Patience, SyncError,
};
use haversack::tidy::Decision;
use haversack::vault::{self, Mine};
use haversack::{Memory, Writer};
use haversack_store::{Backend, Bytes, Error, Locator};

use super::age;
use super::crashing::Crashing;
use super::link::{Connection, Link, Wire};
use super::memory::Numbers;
use super::oracle::Remembered;
use super::schedule::{DeviceStorage, KEPT_POSITIONS, MAX_KEPT_SECONDS, Meeting, Stream, Task, Time, stream};
use super::storage::{Hands, Saving, Storage};
use super::unit::{self, units_of};
use crate::disk::Crash;
use crate::random::Random;

/// The most calls of a disk until something happens in the middle of an effect.
pub(crate) const MAX_CALLS: usize = 60;

/// The most syncs of a disk until the process dies in one.
const MAX_SYNCS: usize = 12;

/// The record of files that a sync is putting into a directory, in the state of its replica.
const APPLYING: &str = "applying";

/// After how many commits the log is folded at most.
const MAX_INTERVAL: usize = 6;

/// An hour, in milliseconds.
const HOUR: u64 = 60 * 60 * 1_000;

/// The least time to wait for a file that no log names, in milliseconds.
const PATIENCE: u64 = vault::ALONE_PATIENCE.as_secs() * 1_000;

/// A sync under way.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<HomeReport, Stopped>> + Send>>;

/// A device.
pub(crate) struct Device {
    pub(crate) number: usize,
    /// The device's number in the oracle.
    pub(crate) actor: usize,
    pub(crate) files: Storage,
    pub(crate) state: Storage,
    /// The bound directories, also those that are not there.
    pub(crate) bound: Vec<Bound>,
    /// The directories that were unbound, by slot, with the files that they had then.
    pub(crate) unbound: BTreeMap<usize, (Storage, BTreeMap<Locator, Bytes>)>,
    vault: Option<Vault>,
    meeting: Meeting,
    /// The files that its last sync held back.
    pub(crate) held: Vec<Locator>,
    /// True once it had to merge without a base, because its archive did not reach back.
    lost_base: Arc<AtomicBool>,
    /// The units that its tidies planned to drop, each with the decision that says so.
    pub(crate) dropped: Arc<Mutex<Vec<(String, Decision)>>>,
    connection: Arc<Mutex<Connection>>,
    is_full: Arc<AtomicBool>,
    /// The last text that its user wrote by hand into each file of the folder.
    mine: BTreeMap<Locator, Bytes>,
    pub(crate) processes: Vec<Option<Process>>,
    backup: Option<Backup>,
    /// The working directory while it is not there.
    away: Option<Storage>,
}

/// The prefixes that directories are bound to, by slot: two directories for each prefix.
pub(crate) const SLOTS: [&str; 4] = ["lighthouse", "lighthouse/lamp", "lighthouse", "lighthouse/lamp"];

/// A directory that is bound to a prefix.
pub(crate) struct Bound {
    pub(crate) slot: usize,
    pub(crate) prefix: Locator,
    /// The user's number in the oracle.
    pub(crate) actor: usize,
    pub(crate) files: Storage,
    pub(crate) state: Storage,
    /// True while the directory is not there.
    pub(crate) is_absent: bool,
    /// The files in it that belong to a deeper directory since that was bound; `None` if a sync was putting files here when that was bound,
    /// because the next sync completes that.
    pub(crate) outside: Option<BTreeMap<Locator, Bytes>>,
}

impl Bound {
    /// Returns true if a file is below its prefix.
    pub(crate) fn is_around(&self, path: &str) -> bool {
        self.prefix.holds(path)
    }

    pub(crate) fn name(&self) -> String {
        format!("directory {} at {}", self.slot, self.prefix)
    }
}

/// A directory in which a user finds a file.
pub(crate) struct Place {
    pub(crate) actor: usize,
    pub(crate) files: Storage,
    prefix: Locator,
}

impl Place {
    /// Returns the name of a file in this directory.
    pub(crate) fn name_of(&self, path: &str) -> Locator {
        let locator = Locator::parse(path).expect("a plain name");
        below(&locator, &self.prefix).expect("a file of this directory")
    }

    /// Returns the number of files in the directory.
    pub(crate) fn count(&self) -> usize {
        self.files.all().into_keys().filter(|locator| !locator.is_reserved()).count()
    }
}

/// A device's part of a folder in which devices meet.
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
    pub(crate) task: Task,
    opened: Opened,
}

/// The storages that a process has opened.
#[derive(Default)]
struct Opened {
    storages: Vec<(Storage, Hands)>,
}

impl Opened {
    fn open(&mut self, storage: &Storage) -> Result<Arc<dyn Backend>, Error> {
        let hands = Hands::default();
        let opened = storage.open(&hands);
        self.storages.push((storage.clone(), hands));
        opened
    }

    /// Cuts short what was under way when the process died.
    fn tear(&self, random: &mut Random) {
        for (storage, hands) in &self.storages {
            storage.tear(hands, random);
        }
    }
}

/// When a process starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// As the oracle counts.
    pub(crate) started: usize,
    /// As those do who wait in a folder.
    pub(crate) hours: u64,
    /// As its calendar shows.
    pub(crate) today: Day,
    /// The time that it has.
    pub(crate) time: Time,
}

/// A copy of a device that was put aside.
struct Backup {
    files: Storage,
    state: Storage,
    /// Its copies of all logs; the folder is not restored.
    home: Option<Storage>,
    remembered: Remembered,
}

impl Device {
    pub(crate) fn new(
        number: usize,
        actor: usize,
        processes: usize,
        ground: DeviceStorage,
        meeting: Meeting,
        numbers: &Arc<Numbers>,
    ) -> Device {
        let is_full: Arc<AtomicBool> = Arc::default();
        let storage = |seed| match ground {
            DeviceStorage::Memory => Storage::memory(numbers.clone(), is_full.clone()),
            DeviceStorage::Crashing => Storage::crashing(seed, is_full.clone()),
        };
        let (files, state) = (storage(0), storage(1));
        let vault = match meeting {
            Meeting::Log | Meeting::Lost | Meeting::Aged | Meeting::Shortened => None,
            Meeting::Vault => Some(Vault { home: storage(2), folder: storage(3).versioned_by_content() }),
        };
        Device::with(number, actor, processes, files, state, vault, meeting, is_full)
    }

    /// Returns true if it had to merge without a base.
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
            bound: Vec::new(),
            unbound: BTreeMap::new(),
            vault,
            meeting,
            held: Vec::new(),
            lost_base: Arc::default(),
            dropped: Arc::default(),
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

    /// Returns the working files, to be compared. A file of which two directories have different texts is there under two names.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (prefix, locator, bytes) in self.all_files() {
            let path = join(&prefix, &locator);
            if self.is_deeper(&prefix, &path) {
                continue;
            }
            let path = path.to_string();
            *counts.entry(path.clone()).or_default() += 1;
            match texts.get(&path) {
                Some(there) if *there != text(&bytes) => {
                    texts.insert(format!("{path} elsewhere"), text(&bytes));
                }
                _ => drop(texts.insert(path, text(&bytes))),
            }
        }
        for (path, count) in counts {
            if count != self.holders(&path).max(1) {
                texts.insert(format!("{path} in {count} directories"), String::new());
            }
        }
        texts
    }

    /// Returns the number of directories that hold a file.
    fn holders(&self, path: &str) -> usize {
        let locator = Locator::parse(path).expect("a plain name");
        let is_around = |bound: &&Bound| locator.is_within(&bound.prefix);
        let deepest = self.bound.iter().filter(is_around).map(|bound| &bound.prefix).max();
        deepest.map_or(1, |deepest| {
            self.bound.iter().filter(|bound| bound.prefix == *deepest && !bound.is_absent).count()
        })
    }

    /// Returns the working files of all directories that are there: the prefix of the directory, the name there, and the content.
    fn all_files(&self) -> Vec<(Locator, Locator, Bytes)> {
        let bound = self.bound.iter().filter(|bound| !bound.is_absent);
        let all = bound.map(|bound| (bound.prefix.clone(), &bound.files));
        let all = std::iter::once((Locator::root(), &self.files)).chain(all);
        all.flat_map(|(prefix, files)| {
            let files = files.all().into_iter().filter(|(locator, _)| !locator.is_reserved());
            files.map(move |(locator, bytes)| (prefix.clone(), locator, bytes))
        })
        .collect()
    }

    /// Returns true if a file belongs to a directory that is bound deeper than `prefix`.
    fn is_deeper(&self, prefix: &Locator, path: &Locator) -> bool {
        let is_deeper = |bound: &Bound| bound.prefix != *prefix && bound.prefix.is_within(prefix);
        self.bound.iter().any(|bound| is_deeper(bound) && path.is_within(&bound.prefix))
    }

    /// Returns the files of a bound directory that belong to a deeper one.
    pub(crate) fn outside(&self, bound: &Bound) -> BTreeMap<Locator, Bytes> {
        let mut all = bound.files.all();
        all.retain(|locator, _| {
            !locator.is_reserved() && self.is_deeper(&bound.prefix, &join(&bound.prefix, locator))
        });
        all
    }

    /// Notes the files that lie in each directory and belong to a deeper one: no sync touches them from now on, except to complete a step.
    pub(crate) fn note_outside(&mut self) {
        let is_midway = |bound: &Bound| bound.state.all().keys().any(|locator| locator.name() == APPLYING);
        let outside = |bound: &Bound| (!is_midway(bound)).then(|| self.outside(bound));
        let outside: Vec<_> = self.bound.iter().map(outside).collect();
        for (bound, outside) in self.bound.iter_mut().zip(outside) {
            bound.outside = outside;
        }
    }

    /// Returns a directory with files that do not belong there, once all is calm.
    pub(crate) fn trespassed(&self) -> Option<String> {
        let is_foreign = |(prefix, locator, _): &(Locator, Locator, Bytes)| {
            prefix.is_root() && self.is_deeper(prefix, locator)
        };
        if let Some((_, locator, _)) = self.all_files().into_iter().find(is_foreign) {
            return Some(format!("the memory directory has {locator}"));
        }
        let has_changed =
            |bound: &&Bound| bound.outside.as_ref().is_some_and(|before| self.outside(bound) != *before);
        if let Some(bound) = self.bound.iter().find(has_changed) {
            return Some(format!("{} has files of a deeper directory", bound.name()));
        }
        let changed = self.unbound.iter().find(|(_, (files, before))| files.all() != *before);
        changed.map(|(slot, _)| format!("directory {slot} was changed after it was unbound"))
    }

    /// Returns the directory in which a user or an agent works on a file; `None` if it is not there. `choice` decides between two directories.
    pub(crate) fn place(&self, path: &str, choice: usize) -> Option<Place> {
        let locator = Locator::parse(path).expect("a plain name");
        let memory = || Place { actor: self.actor, files: self.files.clone(), prefix: Locator::root() };
        let is_around = |bound: &&Bound| locator.is_within(&bound.prefix);
        let Some(deepest) = self.bound.iter().filter(is_around).map(|bound| &bound.prefix).max() else {
            return Some(memory());
        };
        let there = |bound: &&Bound| bound.prefix == *deepest && !bound.is_absent;
        let there: Vec<&Bound> = self.bound.iter().filter(there).collect();
        match there.get(choice % there.len().max(1)) {
            Some(Bound { actor, files, prefix, .. }) => {
                Some(Place { actor: *actor, files: files.clone(), prefix: prefix.clone() })
            }
            // While the directory is not there, some write into the memory directory.
            None => choice.is_multiple_of(2).then(memory),
        }
    }

    /// Returns the actors of its directories that have told everything in a sync with this report.
    ///
    /// A file of a directory that is not there waits in the memory directory, or was moved there and not sent: the memory's user has told
    /// everything only in a round of all directories.
    pub(crate) fn told_actors(&self, report: &HomeReport) -> Vec<usize> {
        let has_told = |bound: &&Bound| {
            let name = bound.name();
            let failed = report.failed.iter().any(|stopped| stopped.directory.as_ref() == Some(&name));
            !failed && !report.vanished.contains(&name)
        };
        let is_whole = self.bound.iter().all(|bound| has_told(&bound) && !bound.is_absent);
        let bound = self.bound.iter().filter(has_told).map(|bound| bound.actor);
        bound.chain(is_whole.then_some(self.actor)).collect()
    }

    /// Returns its home, with directories opened for a process.
    fn home(&self, opened: &mut Opened) -> Result<Home, Error> {
        let (files, state) = (opened.open(&self.files)?, opened.open(&self.state)?);
        let mut all = Vec::new();
        for bound in &self.bound {
            let files = if bound.is_absent { None } else { Some(opened.open(&bound.files)?) };
            let state = Some(opened.open(&bound.state)?);
            all.push(BoundDirectory { name: bound.name(), prefix: bound.prefix.clone(), files, state });
        }
        Ok(Home::new("the memory", files, state, all))
    }

    /// Returns the memory as an agent writes it.
    pub(crate) fn memory_of(&self, agent: &str) -> Memory {
        let home = self.home(&mut Opened::default()).expect("storage in memory");
        let writer = Writer { agent: Some(agent.to_owned()), session: None, cause: None };
        let state = self.state.open(&Hands::default()).expect("storage in memory");
        Memory::new(home.files(), state).with_lock_wait(Duration::ZERO).with_writer(writer)
    }

    /// Returns an empty storage of the same sort as its own.
    pub(crate) fn empty_storage(&self) -> Storage {
        self.state.empty(self.is_full.clone())
    }

    /// Returns the texts that were put aside because another program wrote the same file in that moment. `status` names them.
    pub(crate) fn put_aside(&self) -> Vec<String> {
        let files = self.files.all().into_iter();
        let aside = files.filter(|(locator, _)| locator.as_str().starts_with(".haversack/kept/"));
        aside.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()).collect()
    }

    /// Returns what is left of an unfinished step.
    pub(crate) fn left_over(&self) -> Option<Locator> {
        let all = self.bound.iter().map(|bound| &bound.files).chain([&self.files]);
        all.flat_map(Storage::all).map(|(locator, _)| locator).find(Locator::is_reserved)
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

    /// Lets a process die; returns its task, if there was one.
    pub(crate) fn die(&mut self, process: usize, random: &mut Random) -> Option<Task> {
        let process = self.processes.get_mut(process).and_then(Option::take)?;
        drop(process.running);
        process.opened.tear(random);
        if !self.is_syncing() {
            self.disks().for_each(Crashing::forget_plans);
        }
        Some(process.task)
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

    /// Returns true if a planned crash has happened.
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
    #[expect(clippy::too_many_arguments, reason = "all that a process of a device depends on")]
    pub(crate) fn start(
        &mut self,
        process: usize,
        seed: u64,
        wire: &Arc<Wire>,
        now: Now,
        task: Task,
        deletions: Deletions,
        secrets: Secrets,
    ) {
        let Now { started, hours, today, time } = now;
        let number = self.number;
        let mut opened = Opened::default();
        let home = self.home(&mut opened);
        let state = opened.open(&self.state);
        let dropped = self.dropped.clone();
        let vault = self.vault.as_ref().map(|vault| (opened.open(&vault.home), opened.open(&vault.folder)));
        let (faults, choices) = (stream(seed, Stream::Faults), stream(seed, Stream::Store));
        let link = Link::new(wire.clone(), self.connection.clone(), number, faults, choices);
        let remote: Arc<dyn Backend> = Arc::new(link);
        let ids = SeededIds { random: Mutex::new(stream(seed, Stream::Ids)) };
        let mine = Mine::These(self.mine());
        let random = AtomicU64::new(stream(seed, Stream::Clock).number());
        let clock = Jumping { random, hours, meeting: self.meeting };
        let patience = Hurried::new(time);
        let mut folding = stream(seed, Stream::Folding);
        let mut commits = || folding.between(1, MAX_INTERVAL) as u64;
        let (checkpoint_commits, segment_commits) = (commits(), commits());
        let lost_base = self.lost_base.clone();
        let (keep_positions, keep_contents) = match self.meeting {
            Meeting::Shortened => {
                let seconds = stream(seed, Stream::Shortening).between(0, MAX_KEPT_SECONDS);
                (KEPT_POSITIONS, Some(Duration::from_secs(seconds as u64)))
            }
            Meeting::Log | Meeting::Vault | Meeting::Lost | Meeting::Aged => (Duration::ZERO, None),
        };
        let rebuilt_files = 1;
        let intervals =
            Intervals { checkpoint_commits, segment_commits, keep_positions, keep_contents, rebuilt_files };
        let running = async move {
            let local = |opened: Result<Arc<dyn Backend>, Error>| opened.map_err(SyncError::Local);
            let home = home.map_err(SyncError::Local)?;
            let meeting = match vault {
                None => home::Meeting::log(remote),
                Some((own, folder)) => home::Meeting::folder(folder.map_err(SyncError::Remote)?, local(own)?),
            };
            let author = Author { device: format!("device {number}"), agent: None, session: None };
            let context = Context {
                deletions,
                intervals,
                patience: &patience,
                gate: &secrets,
                foreign: ForeignFiles::Anywhere,
                ..Context::new(&clock, &ids, &author)
            };
            if task == Task::Rebuild {
                let rebuilt = home::rebuild(&home, &meeting, context, Duration::ZERO).await?.rebuilt;
                lost_base.fetch_or(rebuilt.without_base > 0, Ordering::Relaxed);
            }
            if task == Task::Tidy {
                let report = home::sync(&home, &meeting, context, &Round::new(Work::Sync)).await?;
                if report.sync.out_of_time || report.sync.missing.len() + report.sync.unseen.len() > 0 {
                    return Ok(report);
                }
                let memory = Memory::new(home.files(), local(state)?).with_lock_wait(Duration::ZERO);
                age::tidy(&memory, today, &secrets, &dropped).await;
            }
            let (work, mirror) = match task {
                Task::Sync | Task::Rebuild | Task::Tidy => (Work::Sync, Mirror::Off),
                Task::Mirror => (Work::Sync, Mirror::On),
                Task::Compact => (Work::Full, Mirror::Off),
                Task::Reconcile => (Work::Full, Mirror::On),
            };
            home::sync(&home, &meeting, context, &Round { mirror, mine, ..Round::new(work) }).await
        };
        let met_full = self.is_full();
        let running = Box::pin(running);
        self.processes[process] = Some(Process { running, started, met_full, task, opened });
    }
}

/// Returns the name of a file in the directory of a prefix; `None` if it is not below the prefix.
pub(crate) fn below(locator: &Locator, prefix: &Locator) -> Option<Locator> {
    if prefix.is_root() {
        return Some(locator.clone());
    }
    Locator::parse(locator.as_str().strip_prefix(prefix.as_str())?.strip_prefix('/')?).ok()
}

/// Returns the place in the store of a file in a directory.
fn join(prefix: &Locator, locator: &Locator) -> Locator {
    let path = if prefix.is_root() { locator.to_string() } else { format!("{prefix}/{locator}") };
    Locator::parse(&path).expect("a plain name")
}

fn units(storage: &Storage) -> BTreeSet<String> {
    storage.all().values().flat_map(|bytes| units_of(&String::from_utf8_lossy(bytes))).collect()
}

/// The secrets that the gates of all devices hold back: a secret is on one device until it is allowed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    held: Arc<Mutex<BTreeSet<String>>>,
}

impl Secrets {
    pub(crate) fn hold(&self, unit: &str) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(unit.to_owned());
    }

    pub(crate) fn allow_all(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns a secret in a content that is held back.
    pub(crate) fn found_in(&self, content: &[u8]) -> Option<String> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(content);
        unit::units(&text).find(|unit| held.contains(*unit)).map(str::to_owned)
    }
}

impl Gate for Secrets {
    fn holds(&self, _: &Locator, content: &[u8]) -> Option<Hold> {
        self.found_in(content).map(|unit| Hold::whole(format!("{unit} is a secret")))
    }
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

/// A clock that jumps. In a folder it jumps within minutes, because devices wait there for files. With a remote that gets lost it jumps
/// within a month, because a device keeps its commits for a year.
struct Jumping {
    random: AtomicU64,
    /// The time in a folder.
    hours: u64,
    meeting: Meeting,
}

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        let number = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let milliseconds = match self.meeting {
            Meeting::Log | Meeting::Aged | Meeting::Shortened => number % 4_000_000_000_000,
            Meeting::Lost => number % (30 * 24 * HOUR),
            Meeting::Vault => self.hours * HOUR + number % (PATIENCE / 2),
        };
        Timestamp(i64::try_from(milliseconds).unwrap_or(0))
    }
}
