//! The faults at each call, and the calls so far.

use std::fmt;
use std::io;

use crate::editor::Editor;

/// An action of another program between two calls.
pub(crate) type Action = Box<dyn FnOnce(&mut Editor<'_>) + Send>;

/// The called method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the method of its name; renames are told apart by their target")]
pub enum Verb {
    OpenDir,
    MakeDir,
    Open,
    OpenAppend,
    Create,
    Stat,
    StatFile,
    StatDir,
    Read,
    Append,
    Truncate,
    SyncFiles,
    SyncDir,
    RenameReplaced,
    RenameFree,
    Exchange,
    Unlink,
    RemoveDir,
    Names,
    Lock,
    Note,
    SetNote,
}

/// One call of the seam.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub verb: Verb,
    /// The names it was given, if any.
    pub subject: String,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.verb, self.subject)
    }
}

/// Why a call does not happen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The process dies in this call.
    DiesNow,
    /// The process is dead.
    Dead,
    /// The call fails and the process goes on.
    Fails(io::ErrorKind),
}

impl From<Stop> for io::Error {
    fn from(stop: Stop) -> io::Error {
        match stop {
            Stop::DiesNow | Stop::Dead => io::Error::other("simulated crash"),
            Stop::Fails(kind) => io::Error::new(kind, "simulated fault"),
        }
    }
}

/// The calls made since a mark, and what is planned; positions count from 1 since the mark.
#[derive(Default)]
pub(crate) struct Schedule {
    calls: Vec<Call>,
    crash_at: Option<usize>,
    /// The number of syncs until the one in which the process dies.
    syncs_left: Option<usize>,
    crashed: bool,
    faults: Vec<(usize, io::ErrorKind)>,
    actions: Vec<(usize, Action)>,
}

impl Schedule {
    /// Forgets the calls so far and all plans.
    pub(crate) fn clear(&mut self) {
        *self = Schedule::default();
    }

    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    pub(crate) fn has_crashed(&self) -> bool {
        self.crashed
    }

    pub(crate) fn crash_after(&mut self, calls: usize) {
        self.crash_at = Some(self.calls.len() + calls);
    }

    pub(crate) fn crash_at_sync(&mut self, syncs: usize) {
        self.syncs_left = Some(syncs);
    }

    pub(crate) fn fail_at(&mut self, call: usize, kind: io::ErrorKind) {
        self.faults.push((self.calls.len() + call, kind));
    }

    pub(crate) fn at_call(&mut self, call: usize, action: Action) {
        self.actions.push((self.calls.len() + call, action));
    }

    /// Records a call that is about to happen and returns what another program does before it.
    pub(crate) fn begin(&mut self, verb: Verb, subject: String) -> Vec<Action> {
        if self.crashed {
            return Vec::new();
        }
        self.calls.push(Call { verb, subject });
        let now = self.calls.len();
        if let (Verb::SyncFiles | Verb::SyncDir, Some(left)) = (verb, &mut self.syncs_left) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.crash_at = Some(now);
            }
        }
        let (due, later) = std::mem::take(&mut self.actions).into_iter().partition(|(at, _)| *at == now);
        self.actions = later;
        let due: Vec<(usize, Action)> = due;
        due.into_iter().map(|(_, action)| action).collect()
    }

    /// Returns true if the call that began goes on.
    pub(crate) fn verdict(&mut self) -> Result<(), Stop> {
        let now = self.calls.len();
        if self.crashed {
            return Err(Stop::Dead);
        }
        if self.crash_at == Some(now) {
            self.crashed = true;
            return Err(Stop::DiesNow);
        }
        match self.faults.iter().find(|(at, _)| *at == now) {
            Some((_, kind)) => Err(Stop::Fails(*kind)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("calls", &self.calls.len())
            .field("crash_at", &self.crash_at)
            .field("crashed", &self.crashed)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}
