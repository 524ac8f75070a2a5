//! Kills a `haversack sync` in its middle: after it has written down what it is about to publish, before that is published.
//!
//! Nothing in the sync helps with it. The demo takes the lock of the directory where the machines meet, as another writer would, so that
//! the sync has to wait exactly there; once its journal shows that it is, it is killed.

use std::fs::File;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haversack::clock::Clock;
use haversack::store::{DeviceLocal, block_on};
use haversack::sync::{Outlook, Scope, look};
use haversack_system::SystemClock;

use super::sandbox::Sandbox;
use super::script::Machine;
use crate::error::CommandError;
use crate::home::gate::NothingPrivate;

/// The time in which a sync must reach its middle; the lock holds it there for longer.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The interval between two looks.
const POLL: Duration = Duration::from_millis(2);

/// How the name of the file ends by which writers of a directory exclude each other.
const WRITE_LOCK: &str = ".write.lock";

/// How a sync was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Killed {
    /// The signal that ended it, where there are signals.
    pub(super) signal: Option<i32>,
    /// The number of commits in the log before.
    pub(super) commits_before: usize,
    /// And after.
    pub(super) commits_after: usize,
    /// True if a commit is left that was recorded and not published.
    pub(super) is_publishing: bool,
}

impl Killed {
    /// Returns in what it was not the middle.
    pub(super) fn differences(&self) -> Vec<String> {
        let mut found = Vec::new();
        if cfg!(unix) && self.signal != Some(9) {
            found.push(format!("the sync ended with signal {:?} instead of 9", self.signal));
        }
        if self.commits_before != self.commits_after {
            let Killed { commits_before, commits_after, .. } = self;
            found.push(format!("the log had {commits_before} commits and has {commits_after}"));
        }
        if !self.is_publishing {
            found.push("the killed sync left nothing unfinished".to_owned());
        }
        found
    }
}

/// Starts a sync on a machine and kills it in its middle.
pub(super) fn kill_in_the_middle(sandbox: &Sandbox, machine: Machine) -> Result<Killed, CommandError> {
    let commits_before = commits(sandbox)?;
    let lock = hold(sandbox)?;
    let mut sync = sandbox.start(machine, &["sync"])?;
    let waited = wait_for_the_middle(sandbox, machine, &mut sync);
    // In every case, the sync must not outlive the demo.
    let ended = sync.kill().and_then(|()| sync.wait());
    drop(lock);
    waited?;
    let status = ended.map_err(|error| trouble("the sync could not be killed", error))?;
    Ok(Killed {
        signal: signal(status),
        commits_before,
        commits_after: commits(sandbox)?,
        is_publishing: outlook(sandbox, machine)?.underway.publishing,
    })
}

/// Takes the lock of the directory where the machines meet; it is free again when the file is dropped.
fn hold(sandbox: &Sandbox) -> Result<File, CommandError> {
    let mut directories = vec![sandbox.user()];
    let mut locks = Vec::new();
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(&directory)
            .map_err(|error| trouble("the demo's own user directory cannot be read", error))?;
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.to_string_lossy().ends_with(WRITE_LOCK) {
                locks.push(path);
            }
        }
    }
    let [lock] = &locks[..] else {
        return Err(CommandError::ours(format!("there are {} locks where one should be", locks.len())));
    };
    let locked =
        File::options().read(true).write(true).open(lock).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| trouble("the lock of the shared directory cannot be taken", error))
}

fn wait_for_the_middle(sandbox: &Sandbox, machine: Machine, sync: &mut Child) -> Result<(), CommandError> {
    let deadline = Instant::now() + MAX_WAIT;
    while Instant::now() < deadline {
        if outlook(sandbox, machine)?.underway.publishing {
            return Ok(());
        }
        if let Ok(Some(status)) = sync.try_wait() {
            return Err(CommandError::ours(format!("the sync ended before it was killed: {status}")));
        }
        std::thread::sleep(POLL);
    }
    Err(CommandError::ours("the sync did not reach the point where the demo kills it"))
}

/// Looks at a machine's memory and journal, changing nothing.
fn outlook(sandbox: &Sandbox, machine: Machine) -> Result<Outlook, CommandError> {
    let home = sandbox.home(machine);
    let locks = home.join("state").join("locks");
    let files = DeviceLocal::open(home.join("memory"), &locks)?;
    let state = DeviceLocal::open(home.join("state").join("default"), &locks)?;
    let (scope, gate, now) = (Scope::default(), NothingPrivate::default(), SystemClock.now());
    Ok(block_on(look(&files, Arc::new(state), &scope, &gate, now, None))?)
}

/// Returns how many commits the log has.
fn commits(sandbox: &Sandbox) -> Result<usize, CommandError> {
    let entries = std::fs::read_dir(sandbox.shared().join(".haversack").join("log"))
        .map_err(|error| trouble("the log cannot be read", error))?;
    Ok(entries.count())
}

fn trouble(what: &str, error: std::io::Error) -> CommandError {
    CommandError { source: Some(error.into()), ..CommandError::ours(what) }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_no_kill_in_the_middle_is_told() {
        let killed = Killed { signal: Some(9), commits_before: 1, commits_after: 1, is_publishing: true };
        assert_eq!(killed.differences(), Vec::<String>::new());
        let published = Killed { commits_after: 2, ..killed };
        assert_eq!(published.differences(), ["the log had 1 commits and has 2"]);
        let early = Killed { is_publishing: false, ..killed };
        assert_eq!(early.differences(), ["the killed sync left nothing unfinished"]);
        #[cfg(unix)]
        assert_eq!(Killed { signal: None, ..killed }.differences().len(), 1);
    }
}
