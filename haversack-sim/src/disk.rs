//! The disk as a test holds it: plans what goes wrong, restarts, looks.

mod calls;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unicode_normalization::UnicodeNormalization;

pub use self::calls::{SimDir, SimFile, SimLock};
use crate::editor::Editor;
use crate::image::{Image, InodeId, Seen};
use crate::random::Random;
use crate::schedule::{Call, Schedule, Stop, Verb};

/// How the last life of the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process died: what it wrote is there, synced or not.
    Kill,
    /// The machine stopped: what was not synced is as the seed has it.
    PowerLoss {
        /// Decides what survives.
        seed: u64,
    },
}

/// Tells if two names can be exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// They can.
    Works,
    /// They cannot, and that is found out by trying.
    Refused,
    /// They cannot, and the disk says so.
    Unknown,
}

/// Tells which spellings are one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Those with the same bytes, as on ext4.
    Exact,
    /// Those that differ only by case or by how letters are composed; a file keeps the name that it was made with. So does the disk of a Mac (APFS).
    Folded,
}

/// A disk in memory that does what it is told to go wrong; clones are handles of one disk.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

pub(crate) struct State {
    image: Image,
    schedule: Schedule,
    random: Random,
    note: Vec<u8>,
    /// Every note there was, for a machine that stops and finds an old one.
    older_notes: Vec<Vec<u8>>,
    locks: BTreeMap<String, u64>,
    last_lock: u64,
    exchange: Exchange,
    names: Names,
    most_bytes: usize,
}

impl SimDisk {
    /// Returns an empty disk; `seed` decides how writes tear.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk::with(State {
            image: Image::new(),
            schedule: Schedule::default(),
            random: Random::new(seed),
            note: Vec::new(),
            older_notes: Vec::new(),
            locks: BTreeMap::new(),
            last_lock: 0,
            exchange: Exchange::Works,
            names: Names::Exact,
            most_bytes: usize::MAX,
        })
    }

    /// Returns another disk with the same content, synced or not, on which nothing is planned.
    pub fn fork(&self, seed: u64) -> SimDisk {
        let state = self.state();
        SimDisk::with(State {
            image: state.image.clone(),
            schedule: Schedule::default(),
            random: Random::new(seed),
            note: state.note.clone(),
            older_notes: state.older_notes.clone(),
            locks: BTreeMap::new(),
            last_lock: 0,
            exchange: state.exchange,
            names: state.names,
            most_bytes: state.most_bytes,
        })
    }

    fn with(state: State) -> SimDisk {
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Planning. Calls count from 1, the next one.

    /// Lets the process die in the `calls`-th call from now: it and all later ones fail.
    pub fn crash_after(&self, calls: usize) {
        self.state().schedule.crash_after(calls);
    }

    /// Lets the process die when it is about to make something durable for the `syncs`-th time from now.
    pub fn crash_at_sync(&self, syncs: usize) {
        self.state().schedule.crash_at_sync(syncs);
    }

    /// Lets only the `call`-th call from now fail, with an error of this kind and no effect.
    pub fn fail_at(&self, call: usize, kind: io::ErrorKind) {
        self.state().schedule.fail_at(call, kind);
    }

    /// Lets another program act just before the `call`-th call from now.
    pub fn at_call(&self, call: usize, action: impl FnOnce(&mut Editor<'_>) + Send + 'static) {
        self.state().schedule.at_call(call, Box::new(action));
    }

    /// Lets another program act now.
    pub fn edit<T>(&self, action: impl FnOnce(&mut Editor<'_>) -> T) -> T {
        action(&mut Editor::new(&mut self.state().image))
    }

    /// Lets one call write at most `bytes` bytes from now on.
    pub fn write_at_most(&self, bytes: usize) {
        self.state().most_bytes = bytes;
    }

    /// Says whether two names can change places from now on.
    pub fn set_exchange(&self, exchange: Exchange) {
        self.state().exchange = exchange;
    }

    /// Says which names are one name from now on.
    pub fn set_names(&self, names: Names) {
        self.state().names = names;
    }

    /// Starts anew after a crash: locks are free, nothing is planned, what was lost is lost.
    pub fn restart(&self, crash: Crash) {
        let mut state = self.state();
        state.schedule.clear();
        state.locks.clear();
        if let Crash::PowerLoss { seed } = crash {
            let mut random = Random::new(seed);
            state.image.lose_power(&mut random);
            state.lose_note(&mut random);
        }
    }

    // Looking; none of these counts as a call.

    /// Forgets the calls so far and what is planned.
    pub fn mark(&self) {
        self.state().schedule.clear();
    }

    /// Returns the calls since the last mark or restart, the one that crashed included.
    pub fn calls(&self) -> Vec<Call> {
        self.state().schedule.calls().to_vec()
    }

    /// Returns true if the planned crash has happened.
    pub fn has_crashed(&self) -> bool {
        self.state().schedule.has_crashed()
    }

    /// Returns what is at `path`.
    pub fn look(&self, path: &str) -> Option<Seen> {
        self.state().image.look(path)
    }

    /// Returns the content of the file at `path`.
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        match self.look(path) {
            Some(Seen::File(bytes)) => Some(bytes),
            Some(Seen::Directory | Seen::Link) | None => None,
        }
    }

    /// Returns everything on the disk by its path, names of every kind included.
    pub fn tree(&self) -> BTreeMap<String, Seen> {
        self.state().image.tree()
    }
}

impl State {
    /// Begins a call: others act, then it goes on or not.
    fn enter(&mut self, verb: Verb, subject: impl Into<String>) -> Result<(), Stop> {
        for action in self.schedule.begin(verb, subject.into()) {
            action(&mut Editor::new(&mut self.image));
        }
        self.schedule.verdict()
    }

    /// Returns the name in a directory that is one with `name`, as the directory spells it; `name` itself if there is none.
    fn spelled(&self, dir: InodeId, name: &str) -> String {
        let known = match self.names {
            Names::Exact => Vec::new(),
            Names::Folded => self.image.names(dir, usize::MAX).unwrap_or_default(),
        };
        let mut known = known.into_iter().filter_map(|known| known.text.ok());
        known.find(|known| folded(known) == folded(name)).unwrap_or_else(|| name.to_owned())
    }

    fn set_note(&mut self, note: Vec<u8>) {
        self.older_notes.push(std::mem::replace(&mut self.note, note));
    }

    fn lose_note(&mut self, random: &mut Random) {
        match random.between(0, 2) {
            0 => self.set_note(Vec::new()),
            1 if !self.older_notes.is_empty() => {
                let at = random.between(0, self.older_notes.len() - 1);
                self.set_note(self.older_notes[at].clone());
            }
            _ => {}
        }
    }
}

/// Returns the same text for all spellings of one name.
fn folded(name: &str) -> String {
    name.nfd().flat_map(char::to_lowercase).collect()
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("SimDisk").field("schedule", &state.schedule).finish_non_exhaustive()
    }
}
