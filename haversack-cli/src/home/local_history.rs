//! The history of a home without a remote.
//!
//! A home without a remote syncs with a local log, in `state/local/log`. So `log`, `diff`, `undo` and `restore` work from the first write
//! on. The log stays on this machine: a remote that is added later begins with the files as they are then.
//!
//! 1. [`begin`] runs before the first write. It adds the files that are there already, as an import: they are no edits.
//! 2. [`resume`] runs when the home leaves its remote. It adds the changes of the remote's time, also as an import.
//! 3. [`record`] runs after each command that writes, in the background process, and before a command that shows history. It adds the changes
//!    since the last time.
//!
//! The replicas have states of their own for this log, in `state/local/`. Their states for a remote do not change.

use std::sync::Arc;

use haversack::home::{Meeting, Round, Work, sync};
use haversack::store::{Backend, DeviceLocal, block_on};
use haversack::sync::{Author, Context, IMPORT, Intervals, Mirror, Progress, Quiet, SyncError};
use haversack_system::{Backoff, RandomIds, SystemClock};

use super::replicas::Home;
use crate::error::CommandError;
use crate::remote::{self, Remote};
use crate::settings::Settings;
use crate::ui::Bar;

/// The number of commits between two checkpoints. A checkpoint has every changed content whole, and no other machine begins from this log.
const CHECKPOINT_COMMITS: u64 = 4096;

/// Returns true if this home keeps its own history: it has no remote.
pub(crate) fn is_used(settings: &Settings) -> Result<bool, CommandError> {
    Ok(Remote::for_looking(settings)?.is_none())
}

/// Opens the log of this home's own history.
pub(crate) fn log(settings: &Settings) -> Result<Arc<dyn Backend>, CommandError> {
    Ok(Arc::new(DeviceLocal::open(settings.store().local_history().join("log"), settings.locks())?))
}

/// Begins the history with the files that are there, if the home has no remote and no history yet.
pub(crate) fn begin(settings: &Settings) -> Result<(), CommandError> {
    match settings.store().local_history().join("memory").is_dir() || !is_used(settings)? {
        true => Ok(()),
        false => import(settings),
    }
}

/// Goes on with the history after the time with a remote: the changes of that time are no edits of the next command.
pub(crate) fn resume(settings: &Settings) -> Result<(), CommandError> {
    match settings.memory().is_dir() {
        true => import(settings),
        false => Ok(()),
    }
}

/// Adds the files as they are now to the history, as an import.
fn import(settings: &Settings) -> Result<(), CommandError> {
    let bar = Bar::of("recording the files that are there");
    let imported = round(settings, Work::Sync, IMPORT, &bar);
    bar.end();
    imported
}

/// Adds the changes since the last time to the history, if the home has no remote.
pub(crate) fn record(settings: &Settings, work: Work<'_>, cause: &str) -> Result<(), CommandError> {
    match settings.memory().is_dir() && is_used(settings)? {
        true => round(settings, work, cause, &Quiet),
        // Recording makes no home.
        false => Ok(()),
    }
}

fn round(
    settings: &Settings,
    work: Work<'_>,
    cause: &str,
    progress: &dyn Progress,
) -> Result<(), CommandError> {
    let home = Home::open_for_local_history(settings)?;
    let writer = &settings.writer;
    let author = Author {
        device: remote::device_name(),
        agent: writer.agent.clone(),
        session: writer.session.clone(),
    };
    let patience = Backoff::new();
    // The log never leaves this machine, so no file is held back from it.
    let intervals = Intervals { checkpoint_commits: CHECKPOINT_COMMITS, ..Intervals::default() };
    let context = Context {
        cause,
        patience: &patience,
        progress,
        intervals,
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    let round = Round { mirror: Mirror::Off, lock_wait: settings.lock_wait, ..Round::new(work) };
    match block_on(sync(home.directories(), &Meeting::log(log(settings)?), context, &round)) {
        Ok(_) => Ok(()),
        // Another process records. The changes that it does not see are recorded the next time.
        Err(stopped) if matches!(stopped.error, SyncError::Busy) => Ok(()),
        // A directory that was emptied is no change that the user made, until a command says so.
        Err(stopped) if matches!(stopped.error, SyncError::Vanished) => Ok(()),
        Err(stopped) => Err(home.explain(stopped)),
    }
}
