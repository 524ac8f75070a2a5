//! A few devices, a remote, users and a scheduler, all from one seed.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll, Waker};

use haversack::clock::Clock;
use haversack::ids::{Ids, Timestamp};
use haversack::log::{Carried, Commit, What};
use haversack::sync::planted::{self, Planted};
use haversack::sync::{Author, Context, Deletions, Intervals, Replica, Report, Trouble};
use haversack_store::{Backend, BackendExt, Bytes, Condition, ErrorKind, Locator, block_on};

use super::link::{Disk, Link, Stepped, Weather, Wire};
use super::oracle::Oracle;
use crate::random::Random;

/// The files that users work on: two that merge by lines, one by events, one in a directory.
const FILES: [&str; 4] = ["notes.md", "index.md", "events.jsonl", "deep/er.md"];

/// More effects than a sync makes.
const MAX_EFFECTS: usize = 100_000;

/// How many rounds of syncs all devices need at most when nothing goes wrong any more.
const MAX_ROUNDS: usize = 3;

/// What a run is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Decides everything.
    pub seed: u64,
    /// A mistake to switch on in the engine.
    pub planted: Option<Planted>,
}

impl Run {
    /// Returns the run of a seed, with the engine as it is.
    pub fn of(seed: u64) -> Run {
        Run { seed, planted: None }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The hash of everything that happened.
    pub trace: String,
    /// How many effects there were.
    pub effects: usize,
    /// How many commits are in the log.
    pub commits: usize,
}

struct Device {
    number: usize,
    files: Arc<Disk>,
    state: Arc<Disk>,
    online: Arc<Mutex<bool>>,
    running: Option<Running>,
}

type Running = Pin<Box<dyn Future<Output = Result<Report, Trouble>> + Send>>;

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

/// A clock that jumps: nothing may depend on it.
struct Jumping {
    random: AtomicU64,
}

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        let number = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        Timestamp(i64::try_from(number % 4_000_000_000_000).unwrap_or(0))
    }
}

struct World {
    random: Random,
    wire: Arc<Wire>,
    devices: Vec<Device>,
    oracle: Oracle,
    ids: Arc<SeededIds>,
    clock: Arc<Jumping>,
    next_line: usize,
    effects: usize,
    trace: blake3::Hasher,
    log: Option<String>,
    /// At the end somebody looks after every device and says that what is gone was meant to go.
    deletions: Deletions,
}

/// Runs one seed; the error says which promise was broken.
pub fn run(run: Run) -> Result<Ended, String> {
    planted::with(run.planted, || World::new(run.seed, None).play())
}

/// Runs one seed and returns what happened, to be read.
pub fn explain(run: Run) -> (String, Result<Ended, String>) {
    let mut world = World::new(run.seed, Some(String::new()));
    let result = planted::with(run.planted, || world.play());
    let commits = world.commits();
    let mut log = world.log.take().unwrap_or_default();
    log.push_str(&commits);
    (log, result)
}

impl World {
    fn new(seed: u64, log: Option<String>) -> World {
        let mut random = Random::new(seed);
        let count = random.between(1, 4);
        // Swarm: each seed has some kinds of bad weather and not others.
        let mut share = |most: usize| if random.coin() { random.between(0, most) } else { 0 };
        let weather = Weather {
            lost_requests: share(15),
            lost_answers: share(15),
            delayed: share(10),
            repeated: share(10),
            refused: share(10),
        };
        let wire = Wire::new(Random::new(seed ^ 0x5157), weather);
        let devices = (0..count).map(|number| Device {
            number,
            files: Arc::default(),
            state: Arc::default(),
            online: Arc::new(Mutex::new(true)),
            running: None,
        });
        World {
            devices: devices.collect(),
            wire,
            oracle: Oracle::default(),
            ids: Arc::new(SeededIds { random: Mutex::new(Random::new(seed ^ 0x1d5)) }),
            clock: Arc::new(Jumping { random: AtomicU64::new(seed) }),
            next_line: 0,
            effects: 0,
            trace: blake3::Hasher::new(),
            random,
            log,
            deletions: Deletions::Cautious,
        }
    }

    fn play(&mut self) -> Result<Ended, String> {
        let actions = self.random.between(30, 200);
        for _ in 0..actions {
            self.act()?;
        }
        self.settle()
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        let what = what();
        self.trace.update(what.as_bytes()).update(b"\n");
        if let Some(log) = &mut self.log {
            log.push_str(&what);
            log.push('\n');
        }
    }

    /// Does one thing.
    fn act(&mut self) -> Result<(), String> {
        let device = self.random.between(0, self.devices.len() - 1);
        match self.random.between(0, 99) {
            0..=24 => self.edit(device),
            25..=39 => self.start(device),
            40..=44 => self.crash(device),
            45..=49 => {
                let online = self.devices[device].online.clone();
                let mut online = online.lock().unwrap_or_else(PoisonError::into_inner);
                *online = !*online;
                let now = *online;
                drop(online);
                self.note(|| format!("{device}: online {now}"));
            }
            50..=56 => {
                if self.wire.deliver_late() {
                    self.note(|| "a late request arrives".to_owned());
                }
            }
            _ => {
                let effects = self.random.between(1, 40);
                for _ in 0..effects {
                    self.step(device)?;
                }
            }
        }
        Ok(())
    }

    /// Starts a sync on a device that has none.
    fn start(&mut self, number: usize) {
        if self.devices[number].running.is_some() {
            return;
        }
        self.note(|| format!("{number}: sync"));
        let device = &self.devices[number];
        let files: Arc<dyn Backend> = Arc::new(Stepped::new(device.files.clone()));
        let state: Arc<dyn Backend> = Arc::new(Stepped::new(device.state.clone()));
        let remote: Arc<dyn Backend> = Arc::new(Link::new(self.wire.clone(), device.online.clone()));
        let (ids, clock, deletions) = (self.ids.clone(), self.clock.clone(), self.deletions);
        let compacts = self.random.coin() && self.deletions == Deletions::Cautious;
        let intervals = Intervals {
            checkpoint_commits: self.random.between(1, 6) as u64,
            segment_commits: self.random.between(1, 6) as u64,
            keep_positions: std::time::Duration::ZERO,
        };
        let running = async move {
            let author = Author { device: format!("device {number}"), agent: None, session: None };
            let mut replica = Replica::open(files, state, remote, &*ids).await?;
            let context = Context { deletions, intervals, ..Context::new(&*clock, &*ids, &author) };
            let report = replica.sync(context).await?;
            if compacts {
                replica.compact(context).await?;
            }
            Ok(report)
        };
        self.devices[number].running = Some(Box::pin(running));
    }

    /// Lets a device's sync go on for one effect.
    fn step(&mut self, number: usize) -> Result<(), String> {
        let Some(running) = &mut self.devices[number].running else { return Ok(()) };
        self.effects += 1;
        let polled = running.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
        if let Poll::Ready(result) = polled {
            self.devices[number].running = None;
            let shown = match &result {
                Ok(report) => format!("took {}, published {}", report.taken, report.published),
                Err(trouble) => trouble.to_string(),
            };
            self.note(|| format!("{number}: {shown}"));
            match result {
                Ok(_) | Err(Trouble::Remote(_) | Trouble::Unclear(_) | Trouble::Outrun) => {}
                // One file was deleted here and the others there: it waits for somebody who says so.
                Err(Trouble::Vanished) if self.deletions == Deletions::Cautious => {}
                // A user who deletes and makes a file again and again in the very moment: the next sync goes on.
                Err(Trouble::Local(error)) if error.kind() == ErrorKind::Busy => {}
                Err(trouble) => return Err(format!("device {number} has trouble: {trouble:?}")),
            }
        }
        Ok(())
    }

    /// Lets the process of a device die.
    fn crash(&mut self, number: usize) {
        if self.devices[number].running.take().is_some() {
            self.note(|| format!("{number}: dies"));
            for disk in [self.devices[number].files.clone(), self.devices[number].state.clone()] {
                disk.tear(&mut self.random);
            }
        }
    }

    /// Lets a user of a device do something to a file, with any editor.
    fn edit(&mut self, number: usize) {
        let file = FILES[self.random.between(0, FILES.len() - 1)];
        let files = self.devices[number].files.contents.clone();
        let locator = Locator::parse(file).expect("a plain name");
        let text = block_on(files.read_text(&locator)).expect("text");
        let mut lines: Vec<String> = text.as_deref().unwrap_or_default().lines().map(str::to_owned).collect();
        let kind = self.random.between(0, 9);
        match kind {
            // The only file is not deleted: that would look like an emptied directory.
            0 if text.is_some() && self.count_files(number) > 1 => {
                self.note(|| format!("{number}: deletes {file}"));
                self.oracle.deleted(number, file, lines.iter().cloned().collect());
                block_on(files.delete(&locator, Condition::Any)).expect("deleted");
                return;
            }
            1 | 2 if !lines.is_empty() => {
                let line = lines.remove(self.random.between(0, lines.len() - 1));
                self.note(|| format!("{number}: removes {line} from {file}"));
                self.oracle.removed(number, &line);
            }
            3 if !lines.is_empty() => {
                let at = self.random.between(0, lines.len() - 1);
                let new = self.new_line(number, file);
                let old = std::mem::replace(&mut lines[at], new.clone());
                self.note(|| format!("{number}: replaces {old} by {new} in {file}"));
                self.oracle.removed(number, &old);
                self.oracle.added(file, &new);
            }
            _ => {
                let at = self.random.between(0, lines.len());
                let new = self.new_line(number, file);
                self.note(|| format!("{number}: adds {new} to {file} at {at}"));
                self.oracle.added(file, &new);
                let at = if file.ends_with(".jsonl") { lines.len() } else { at };
                lines.insert(at, new);
            }
        }
        let mut text = lines.join("\n");
        text.push('\n');
        let text = if lines.is_empty() { Bytes::new() } else { Bytes::from(text) };
        drop(block_on(files.write(&locator, text, Condition::Any)).expect("written"));
    }

    fn new_line(&mut self, number: usize, file: &str) -> String {
        self.next_line += 1;
        let line = self.next_line;
        if file.ends_with(".jsonl") {
            format!("{{\"id\":\"{number}-{line}\"}}")
        } else {
            format!("line {line} of {number}")
        }
    }

    fn count_files(&self, number: usize) -> usize {
        block_on(self.devices[number].files.contents.list_all(&Locator::root())).expect("listed").len()
    }

    /// Lets everything calm down and looks at what there is.
    fn settle(&mut self) -> Result<Ended, String> {
        for number in 0..self.devices.len() {
            self.crash(number);
            *self.devices[number].online.lock().unwrap_or_else(PoisonError::into_inner) = true;
        }
        self.deletions = Deletions::Allowed;
        self.wire.clear_up();
        while self.wire.deliver_late() {}
        self.note(|| "all is calm".to_owned());
        for _ in 0..MAX_ROUNDS {
            self.sync_all()?;
        }
        let first = self.files(0);
        for number in 1..self.devices.len() {
            let other = self.files(number);
            if other != first {
                return Err(format!("device 0 has {first:?}, device {number} has {other:?}"));
            }
        }
        let writes = self.wire.writes();
        self.sync_all()?;
        if self.wire.writes() != writes {
            return Err("one more round still writes".to_owned());
        }
        if self.files(0) != first {
            return Err("one more round still changes files".to_owned());
        }
        let there = first.iter().map(|(key, text)| (key.clone(), text.lines().map(str::to_owned).collect()));
        self.oracle.judge(&there.collect::<BTreeMap<String, BTreeSet<String>>>())?;
        self.no_leftovers()?;
        let commits = Locator::reserved(".haversack/log").expect("one of ours");
        let commits = block_on(self.wire.remote.list_all(&commits)).expect("listed").len();
        let trace = self.trace.finalize().to_hex()[..16].to_owned();
        Ok(Ended { trace, effects: self.effects, commits })
    }

    fn sync_all(&mut self) -> Result<(), String> {
        for number in 0..self.devices.len() {
            self.start(number);
            for _ in 0..MAX_EFFECTS {
                if self.devices[number].running.is_none() {
                    break;
                }
                self.step(number)?;
            }
            if self.devices[number].running.is_some() {
                return Err(format!("device {number} does not come to an end"));
            }
        }
        Ok(())
    }

    fn files(&self, number: usize) -> BTreeMap<String, String> {
        let files = &self.devices[number].files.contents;
        let read = |locator: Locator| {
            let text = block_on(files.read_text(&locator)).expect("text").unwrap_or_default();
            (locator.to_string(), text)
        };
        let all = block_on(files.list_all(&Locator::root())).expect("listed");
        all.into_iter().map(read).collect()
    }

    /// Returns what is in the log, to be read.
    fn commits(&self) -> String {
        let mut shown = String::new();
        let log = Locator::reserved(".haversack/log").expect("one of ours");
        for locator in block_on(self.wire.remote.list_all(&log)).expect("listed") {
            let bytes = block_on(self.wire.remote.read(&locator)).expect("read").bytes;
            match Commit::decode(&bytes) {
                Ok(commit) => {
                    let (position, device) = (commit.position.number(), &commit.device);
                    shown.push_str(&format!("position {position} by {device}\n"));
                    for change in commit.changes {
                        let what = match change.what {
                            What::Put { content: Carried::Inline(bytes), .. } => {
                                format!("= {:?}", String::from_utf8_lossy(&bytes))
                            }
                            What::Append { added: Carried::Inline(bytes), .. } => {
                                format!("+ {:?}", String::from_utf8_lossy(&bytes))
                            }
                            What::Put { .. } | What::Append { .. } => "an object".to_owned(),
                            What::Delete => "deleted".to_owned(),
                        };
                        shown.push_str(&format!("  {} {what}\n", change.locator));
                    }
                }
                Err(error) => shown.push_str(&format!("{locator}: {error}\n")),
            }
        }
        shown
    }

    /// Makes sure that nothing of an unfinished step is left anywhere.
    fn no_leftovers(&self) -> Result<(), String> {
        for device in &self.devices {
            let own = Locator::reserved(".haversack").expect("one of ours");
            let left = block_on(device.files.contents.list_all(&own)).expect("listed");
            if let Some(left) = left.first() {
                return Err(format!("device {} has {left} left", device.number));
            }
        }
        Ok(())
    }
}
