//! Lets this machine's home meet its store again after the remote was lost.
//!
//! A bucket or directory: the engine rebuilds the log from all replicas of the home. A synced folder: the engine puts the logs back byte for
//! byte. A full sync follows.

use haversack::home::{HomeRebuilt as Rebuilt, rebuild as rebuild_home};
use haversack::store::block_on;
use haversack::sync::{Context, Progress};
use haversack_system::{Backoff, RandomIds, SystemClock};

use super::replicas::Home;
use super::round::{Summary, SyncOptions, Work, author, sync_with};
use crate::error::CommandError;
use crate::remote::{self, Remote};
use crate::settings::Settings;

/// The result of a rebuild.
pub(crate) struct HomeRebuilt {
    pub(crate) rebuilt: Rebuilt,
    /// The result of the sync after it.
    pub(crate) summary: Summary,
}

/// Rebuilds the store of a home in its remote, or follows another machine that did; then syncs.
pub(crate) fn rebuild(
    settings: &Settings,
    remote: &Remote,
    progress: &dyn Progress,
) -> Result<HomeRebuilt, CommandError> {
    let home = Home::open(settings)?;
    let (author, patience) = (author(settings, remote), Backoff::new());
    let context = Context {
        gate: home.gate(),
        patience: &patience,
        progress,
        cause: "rebuild",
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    let meeting = remote::new_meeting(settings, remote)?;
    let rebuilt = block_on(rebuild_home(home.directories(), &meeting, context, settings.lock_wait));
    let rebuilt = rebuilt.map_err(|stopped| home.explain(stopped))?;
    drop(home);
    // Open the remote again: its contents have changed since they were read.
    let meeting = remote::new_meeting(settings, remote)?;
    let summary = sync_with(settings, remote, &meeting, &SyncOptions::new(Work::Full, "rebuild"), progress)?;
    Ok(HomeRebuilt { rebuilt, summary })
}
