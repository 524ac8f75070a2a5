//! A schedule, played: a few devices, a remote, and users.

mod age;
mod arrange;
mod lose;
mod meddle;
mod settle;
mod signed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll, Waker};

use haversack::home::{HomeReport, Stopped};
use haversack::sync::{Deletions, Mirror, SyncError};
use haversack_store::{Bytes, ErrorKind, Locator};

use self::age::Aged;
use self::lose::Swapped;
use self::signed::Signed;
use super::client::{Client, Found, Whole};
use super::crashing;
use super::device::{Device, MAX_CALLS, Now, Secrets};
use super::failure::{Broken, Failure};
use super::link::Wire;
use super::memory::Numbers;
use super::oracle::Oracle;
use super::schedule::{Action, Begins, Homes, Meeting, Schedule, Stream, Task, Time, What, stream};
use super::sheet::{Sheet, Sheets};
use super::storage::Storage;
use super::store::Times;
use super::user::{Change, Edit, Intention};
use crate::editor::Editor;
use crate::image::Seen;
use crate::random::Random;

/// The most effects of a process before it dies in the middle of one.
const MAX_LAST_EFFECTS: usize = 60;

/// The most paths that a client carries at a time.
const MAX_CARRIED: usize = 12;

/// One in how many times that a client carries something it carries everything, and then there is time.
const QUIET_HOURS: usize = 4;

/// How a schedule ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The hash of everything that happened.
    pub trace: String,
    /// The number of effects.
    pub effects: usize,
    /// The number of commits in the log.
    pub commits: usize,
}

/// The world in which a schedule is played.
pub(crate) struct World<'a> {
    schedule: &'a Schedule,
    wire: Arc<Wire>,
    /// The client that copies a folder between devices, if they meet in one.
    client: Client,
    numbers: Arc<Numbers>,
    devices: BTreeMap<usize, Device>,
    oracle: Oracle,
    /// The number in the oracle of the program that changes the mirror.
    meddler: usize,
    effects: usize,
    trace: blake3::Hasher,
    log: Option<String>,
    /// The edits of programs in the middle of an effect.
    done: Arc<Mutex<Vec<(usize, Edit)>>>,
    /// At the end, a user confirms on every device that the missing files were deleted on purpose.
    deletions: Deletions,
    /// The simulated time, for devices that wait in a folder.
    hours: u64,
    /// The backup of the remote.
    backup: Option<BTreeMap<Locator, Bytes>>,
    /// The remote while another store is in its place, and that store as it was put there.
    swapped: Option<Swapped>,
    /// Devices that have never read or written a commit: they know of no store.
    strangers: BTreeSet<usize>,
    /// Devices that have not synced since the remote was wiped.
    apart: BTreeSet<usize>,
    /// True once a device was killed or failed while it rebuilt the store in a remote that was lost.
    is_rebuild_cut: bool,
    secrets: Secrets,
    signed: Signed,
    aged: Aged,
}

impl<'a> World<'a> {
    /// Returns the world in which nothing has happened yet; with a log, what happens is written there.
    pub(crate) fn new(schedule: &'a Schedule, log: Option<String>) -> World<'a> {
        let numbers = Numbers::new(schedule.outside);
        let mut oracle = Oracle::default();
        let meddler = oracle.actor();
        let mut devices = BTreeMap::new();
        for (number, planned) in schedule.devices.iter().enumerate() {
            if planned.begins == Begins::Empty {
                let (actor, ground) = (oracle.actor(), schedule.ground);
                let (processes, meeting) = (planned.processes, schedule.meeting);
                devices.insert(number, Device::new(number, actor, processes, ground, meeting, &numbers));
            }
        }
        let times = match schedule.meeting {
            Meeting::Shortened => Times::Told,
            Meeting::Log | Meeting::Vault | Meeting::Lost | Meeting::Aged => Times::Unknown,
        };
        World {
            schedule,
            wire: Wire::new(schedule.model, schedule.weather, times),
            client: Client::default(),
            numbers,
            devices,
            oracle,
            meddler,
            effects: 0,
            trace: blake3::Hasher::new(),
            log,
            done: Arc::default(),
            deletions: Deletions::Cautious,
            hours: 0,
            backup: None,
            swapped: None,
            strangers: (0..schedule.devices.len()).collect(),
            apart: BTreeSet::new(),
            is_rebuild_cut: false,
            secrets: Secrets::default(),
            signed: Signed::default(),
            aged: Aged::default(),
        }
    }

    /// Lets everything happen.
    pub(crate) fn play(&mut self) -> Result<Ended, Failure> {
        self.bind_first();
        for action in &self.schedule.actions {
            self.tick(action.number);
            self.act(*action)?;
        }
        self.settle()
    }

    /// Returns what happened, and what is in the log.
    pub(crate) fn told(mut self) -> String {
        let commits = self.commits();
        self.log.take().unwrap_or_default() + &commits
    }

    fn tick(&self, number: usize) {
        let tick = number / self.schedule.actions_per_tick;
        self.numbers.set(i64::try_from(tick).expect("few actions"));
    }

    fn note(&mut self, what: impl AsRef<str>) {
        self.trace.update(what.as_ref().as_bytes()).update(b"\n");
        if let Some(log) = &mut self.log {
            log.push_str(what.as_ref());
            log.push('\n');
        }
    }

    /// Does one thing; what is to be done to a device that is not there is left out.
    fn act(&mut self, action: Action) -> Result<(), Failure> {
        let mut disk = stream(action.seed, Stream::Disk);
        match action.what {
            What::Edit { device } => self.edit(device, action),
            What::Sync { device, process, task } => {
                self.aged.today = Some(self.schedule.shown_day(action));
                self.start(device, process, task, action.seed, self.schedule.time(action));
            }
            What::Meddle => self.meddle(action),
            What::Forge => self.forge(action),
            What::Lose(loss) => self.lose(loss, action.seed)?,
            What::GoOn { device, process, effects } => {
                for _ in 0..effects {
                    if !self.step(device, process)? {
                        break;
                    }
                }
            }
            What::Die { device, process } => self.die(device, process, &mut disk),
            What::Stop { device } => self.break_down(device, &mut disk)?,
            What::GoOffline { device } | What::ComeOnline { device } => {
                let is_offline = action.what == What::GoOffline { device };
                if let Some(device) = self.devices.get(&device) {
                    device.set_offline(is_offline);
                }
                self.note(format!("{device}: {}", if is_offline { "goes offline" } else { "is online" }));
            }
            What::Arrive if self.schedule.meeting == Meeting::Vault => {
                let mut random = stream(action.seed, Stream::Store);
                let mut found = Found::default();
                for _ in 0..random.between(1, MAX_CARRIED) {
                    self.carry_one(&mut found, Whole::Sometimes, &mut random);
                }
                if self.schedule.mirror == Mirror::On && random.between(1, QUIET_HOURS) == 1 {
                    self.carry_all(&mut random)?;
                    self.hours += 1;
                    self.note("an hour goes by in which everything arrives");
                }
            }
            What::Arrive => {
                if let Some(at) = self.wire.deliver_late(&mut stream(action.seed, Stream::Store)) {
                    self.note(format!("a late request arrives at {at}"));
                }
            }
            What::Copy { from, to } => self.copy(from, to),
            What::BackUp { device } => {
                let Some(found) = self.devices.get_mut(&device) else { return Ok(()) };
                found.back_up(self.oracle.remember(found.actor, found.is_syncing()));
                self.note(format!("{device}: is backed up"));
            }
            What::Restore { device } => self.restore(device, &mut disk),
            What::Arrange { device } => self.arrange(device, action.seed)?,
            What::Allow => {
                self.secrets.allow_all();
                self.note("all secrets are allowed");
            }
            What::Vanish { device } => self.vanish(device, &mut disk),
            What::Return { device } => self.come_back(device, &mut disk),
            What::FillUp { device } | What::MakeRoom { device } => {
                let is_full = action.what == What::FillUp { device };
                if let Some(device) = self.devices.get_mut(&device) {
                    device.set_full(is_full);
                }
                self.note(format!("{device}: {}", if is_full { "is full" } else { "has room" }));
            }
        }
        Ok(())
    }

    /// Lets the client carry one path to or from some device; returns whether there was anything to carry.
    fn carry_one(&mut self, found: &mut Found, whole: Whole, random: &mut Random) -> bool {
        let numbers: Vec<usize> = self.devices.keys().copied().collect();
        let Some(last) = numbers.len().checked_sub(1) else { return false };
        let first = random.between(0, last);
        for number in numbers.iter().cycle().skip(first).take(numbers.len()) {
            let Some(folder) = self.devices.get(number).and_then(Device::folder) else { continue };
            if let Some(carried) = self.client.step(found, *number, folder, whole, random) {
                self.note(carried);
                return true;
            }
        }
        false
    }

    /// Starts a sync in a process that has none.
    fn start(&mut self, number: usize, process: usize, task: Task, seed: u64, time: Time) {
        let Some(device) = self.devices.get_mut(&number) else { return };
        if device.processes.get(process).is_none_or(Option::is_some) {
            return;
        }
        let today = self.aged.today.unwrap_or_else(|| self.schedule.last_day());
        let now = Now { started: self.oracle.now(), hours: self.hours, today, time };
        device.start(process, seed, &self.wire, now, task, self.deletions, self.secrets.clone());
        let does = match task {
            Task::Sync => "syncs",
            Task::Compact => "syncs and compacts",
            Task::Mirror => "syncs and mirrors",
            Task::Reconcile => "reconciles",
            Task::Rebuild => "rebuilds",
            Task::Tidy => "tidies",
        };
        let on = if task == Task::Tidy { format!(" on {today}") } else { String::new() };
        let haste = if time == Time::Enough { "" } else { " in haste" };
        self.note(format!("{}: {does}{on}{haste}", shown(number, process)));
        self.take_notice();
    }

    /// Lets a sync go on for one effect; returns whether there is one that can.
    fn step(&mut self, number: usize, process: usize) -> Result<bool, Failure> {
        let Some(device) = self.devices.get_mut(&number) else { return Ok(false) };
        let Some(Some(syncing)) = device.processes.get_mut(process) else { return Ok(false) };
        self.effects += 1;
        let polled = syncing.running.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
        for happened in self.wire.happened() {
            self.note(happened);
        }
        self.take_notice();
        self.check_sent()?;
        self.check_store()?;
        if self.devices.get(&number).is_some_and(Device::has_crashed) {
            return Ok(false);
        }
        let Poll::Ready(result) = polled else { return Ok(true) };
        self.end(number, process, result)?;
        Ok(false)
    }

    /// Takes notice of how a sync ended.
    fn end(
        &mut self,
        number: usize,
        process: usize,
        result: Result<HomeReport, Stopped>,
    ) -> Result<(), Failure> {
        self.check_folder(number)?;
        let actors = match (&result, self.devices.get(&number)) {
            (Ok(report), Some(device)) => device.told_actors(report),
            _ => Vec::new(),
        };
        let result = result.map(|report| report.sync).map_err(|stopped| stopped.error);
        let told = match &result {
            Ok(report) => format!("took {}, published {}", report.taken, report.published),
            Err(trouble) => trouble.to_string(),
        };
        self.note(format!("{}: {told}", shown(number, process)));
        let device = self.devices.get_mut(&number).expect("it has just synced");
        let ended = device.processes[process].take().expect("it has just ended");
        let others = device.processes.iter().flatten().count();
        self.is_rebuild_cut |= ended.task == Task::Rebuild && result.is_err();
        match result {
            Ok(report) => {
                if report.taken + report.published > 0 {
                    self.strangers.remove(&number);
                }
                self.apart.remove(&number);
                device.held = report.held.iter().map(|(locator, _)| locator.clone()).collect();
                let is_all = report.held.is_empty() && report.waiting_deletions.is_empty();
                if is_all && !report.out_of_time {
                    actors.into_iter().for_each(|actor| self.oracle.told(actor, ended.started));
                }
                Ok(())
            }
            Err(SyncError::Remote(_) | SyncError::Unclear(_) | SyncError::Outrun) => Ok(()),
            Err(
                SyncError::Wiped { .. }
                | SyncError::WentBack { .. }
                | SyncError::Gap { .. }
                | SyncError::Rebuilt { .. }
                | SyncError::OtherStore { .. },
            ) if self.schedule.meeting == Meeting::Lost && self.deletions == Deletions::Cautious => Ok(()),
            Err(SyncError::Busy) if others > 0 => Ok(()),
            // One file was deleted here and the others there: it waits for the user's answer.
            Err(SyncError::Vanished) if self.deletions == Deletions::Cautious => Ok(()),
            // A user who deletes and makes a file again and again in the very moment: the next sync goes on.
            Err(SyncError::Local(error)) if error.kind() == ErrorKind::Busy => Ok(()),
            Err(SyncError::Local(error)) if error.kind() == ErrorKind::Full && ended.met_full => Ok(()),
            Err(trouble) => Err(Broken::Stuck.because(format!("device {number} has trouble: {trouble:?}"))),
        }
    }

    /// Lets a process die.
    fn die(&mut self, number: usize, process: usize, random: &mut Random) {
        let Some(device) = self.devices.get_mut(&number) else { return };
        if let Some(task) = device.die(process, random) {
            self.is_rebuild_cut |= task == Task::Rebuild;
            // A line that was just signed may be cut short: it costs the name, never the content.
            self.signed.forget_unsent(number);
            self.note(format!("{}: dies", shown(number, process)));
        }
    }

    /// Lets a device stop, in the middle of a call of its disk if it has one that crashes.
    fn break_down(&mut self, number: usize, random: &mut Random) -> Result<(), Failure> {
        let Some(device) = self.devices.get(&number) else { return Ok(()) };
        if let Some(process) = device.processes.iter().position(Option::is_some)
            && device.plan_crash(random)
        {
            for _ in 0..MAX_LAST_EFFECTS {
                if !self.step(number, process)? {
                    break;
                }
            }
        }
        let is_midway = self.devices.get(&number).is_some_and(Device::has_crashed);
        self.stop(number, random);
        let crash = self.devices.get(&number).and_then(|device| device.restart(random));
        if let Some(crash) = crash {
            let midway = if is_midway { ", in the middle of a call" } else { "" };
            self.note(format!("{number}: stops{midway}: {crash:?}"));
        }
        Ok(())
    }

    /// Lets all processes of a device die.
    fn stop(&mut self, number: usize, random: &mut Random) {
        let processes = self.devices.get(&number).map_or(0, |device| device.processes.len());
        for process in 0..processes {
            self.die(number, process, random);
        }
    }

    fn copy(&mut self, from: usize, to: usize) {
        let planned = &self.schedule.devices[to];
        let Some(device) = self.devices.get(&from).filter(|_| planned.begins == Begins::AsCopy) else {
            return;
        };
        let remembered = self.oracle.remember(device.actor, device.is_syncing());
        let actor = self.oracle.copied(&remembered, &device.units());
        let copy = device.copy(to, actor, planned.processes);
        self.devices.insert(to, copy);
        self.client.copy(from, to);
        self.note(format!("{from}: is copied to {to}"));
    }

    fn restore(&mut self, number: usize, random: &mut Random) {
        self.stop(number, random);
        let Some(device) = self.devices.get_mut(&number) else { return };
        let Some((remembered, units)) = device.restore() else { return };
        self.oracle.restored(device.actor, &remembered);
        device.actor = self.oracle.copied(&remembered, &units);
        self.note(format!("{number}: is restored"));
    }

    /// Takes a working directory away that has several files, all of which the log knows: one that has only one cannot be told
    /// from one whose only file was deleted.
    fn vanish(&mut self, number: usize, random: &mut Random) {
        self.stop(number, random);
        let Some(device) = self.devices.get_mut(&number) else { return };
        if device.is_away() || !self.oracle.is_told(device.actor) || device.texts().len() < 2 {
            return;
        }
        device.vanish();
        self.note(format!("{number}: the working directory is gone"));
    }

    fn come_back(&mut self, number: usize, random: &mut Random) {
        self.stop(number, random);
        let Some(device) = self.devices.get_mut(&number).filter(|device| device.is_away()) else { return };
        device.come_back();
        self.note(format!("{number}: the working directory is back"));
    }

    /// Lets a user of a device do something to a file, with any editor; on a disk that crashes also in the middle of an effect.
    fn edit(&mut self, number: usize, action: Action) {
        let Some(device) = self.devices.get(&number).filter(|device| !device.is_away()) else { return };
        if self.schedule.homes == Homes::Bound {
            return self.edit_in_directories(number, action);
        }
        let random = stream(action.seed, Stream::Users);
        let sheets = self.schedule.sheets;
        let renames = self.schedule.is_rename(action);
        let intention = Intention::new(&sheets, number, action.number, device.is_full(), renames, random);
        if let Storage::Crashing(crashing) = &device.files
            && device.is_syncing()
        {
            let calls = stream(action.seed, Stream::Disk).between(1, MAX_CALLS);
            let done = self.done.clone();
            crashing.at_call(calls, move |editor| {
                done.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(act(editor, &sheets, number, intention));
            });
            return;
        }
        let named = |at: &str| Locator::parse(at).expect("a plain name");
        let found = intention.find(|at| device.files.text(&named(at)));
        let Some(edit) = intention.decide(found, device.texts().len()) else { return };
        let locator = named(&edit.at);
        if let Some(unit) = edit.added().filter(|_| self.schedule.is_secret(action)) {
            self.secrets.hold(unit);
        }
        match &edit.change {
            Change::Saved(text, how) => device.files.save(&locator, text.clone(), *how),
            Change::Deleted => device.files.remove(&locator),
            Change::Renamed(to) => device.files.rename(&locator, &named(to)),
        }
        self.did(number, &edit);
    }

    /// Takes notice of what programs did in the middle of an effect.
    fn take_notice(&mut self) {
        let done = std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner));
        for (number, edit) in done {
            self.did(number, &edit);
        }
    }

    /// Takes notice of what a user did.
    fn did(&mut self, number: usize, edit: &Edit) {
        let Some(device) = self.devices.get(&number) else { return };
        edit.tell(&mut self.oracle, device.actor);
        self.note(format!("{number}: {}", edit.shown()));
    }
}

/// Returns how a process is called: the first one of a device by its device.
fn shown(number: usize, process: usize) -> String {
    if process == 0 { number.to_string() } else { format!("{number}'s other process") }
}

/// Lets a program act in the middle of another process's effect.
fn act(
    editor: &mut Editor<'_>,
    sheets: &Sheets,
    number: usize,
    intention: Intention,
) -> Option<(usize, Edit)> {
    let read = |editor: &Editor<'_>, path: &str| match editor.look(path) {
        Some(Seen::File(bytes)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Some(Seen::Directory | Seen::Link) | None => None,
    };
    let is_there = |sheet: &Sheet| sheet.spellings().any(|at| read(editor, &at).is_some());
    let files = sheets.iter().filter(|sheet| is_there(sheet)).count();
    let found = intention.find(|at| read(editor, at));
    let edit = intention.decide(found, files)?;
    match &edit.change {
        Change::Saved(text, how) => crashing::save(editor, &edit.at, text, *how),
        Change::Deleted => crashing::remove(editor, &edit.at),
        Change::Renamed(to) => crashing::rename(editor, &edit.at, to),
    }
    Some((number, edit))
}
