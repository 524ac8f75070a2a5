//! The result of one round.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::fmt;

use haversack_store::Locator;

use super::{Directory, Home};
use crate::history::archive::{self, Bounds};
use crate::ids::{Position, ReplicaId, Timestamp};
use crate::sync::{Context, Recent, Replica, Report, SyncError};
use crate::vault::Carriage;

/// The most bytes of commits that a device keeps beside those in the remote.
const MAX_HISTORY_BYTES: u64 = 64 * 1024 * 1024;

/// The time that a device keeps commits, in milliseconds.
const MAX_HISTORY_AGE: i64 = 365 * 24 * 3600 * 1000;

/// The result of one round of a home.
#[derive(Debug, Default)]
pub struct HomeReport {
    /// Files of this device that others receive.
    pub sent: BTreeSet<Locator>,
    /// Files that this device received.
    pub received: BTreeSet<Locator>,
    /// The reports of all replicas together.
    pub sync: Report,
    /// Bound directories that are not there or were emptied.
    pub vanished: Vec<String>,
    /// Bound directories whose own disk failed. The other directories synced all the same.
    pub failed: Vec<Stopped>,
    /// The positions that this round published.
    pub published: Vec<Position>,
    /// The replicas that published them.
    pub(super) publishers: BTreeSet<ReplicaId>,
    /// True if the round wrote the mirror: `not_mirrored` in the report is complete.
    pub is_mirrored: bool,
    /// True if the mirror is still to be written, because the store is large.
    pub is_mirror_late: bool,
    /// Entries that were carried to and from a synced folder.
    pub carriage: Carriage,
    /// The number of log files that a synced folder had lost and the round put back.
    pub mended: usize,
    /// The newest position that this home knew before the round.
    pub(super) known: Option<Position>,
    /// The newest position that it knows now.
    pub position: Option<Position>,
}

impl HomeReport {
    pub(super) fn new(home: &Home) -> HomeReport {
        let absent = home.bound.iter().filter(|bound| bound.files.is_none());
        HomeReport { vanished: absent.map(|bound| bound.name.clone()).collect(), ..HomeReport::default() }
    }

    /// Adds one run of the bridge to a folder.
    pub(super) fn add_carriage(&mut self, carried: Carriage) {
        self.carriage.taken += carried.taken;
        self.carriage.sent += carried.sent;
        (self.carriage.waiting, self.carriage.early) = (carried.waiting, carried.early);
    }

    /// Counts the files of the new commits, and keeps the commits in the archive.
    ///
    /// A commit of another directory of this home is no news from another device, also if that directory takes no part in this round.
    pub(super) async fn archive(
        &mut self,
        home: &Home,
        context: Context<'_>,
        replicas: &mut [Replica],
    ) -> Result<(), SyncError> {
        let syncing: BTreeSet<ReplicaId> = replicas.iter().map(Replica::id).collect();
        let recent = replicas.iter_mut().flat_map(Replica::take_recent);
        let recent: BTreeMap<Position, Recent> = recent.map(|recent| (recent.position, recent)).collect();
        let mut commits = Vec::new();
        for (position, Recent { replica, files, bytes, .. }) in recent {
            commits.extend(bytes.map(|bytes| (position, bytes)));
            if Some(position) <= self.known {
                continue;
            }
            if syncing.contains(&replica) {
                self.sent.extend(files);
                self.published.push(position);
                self.publishers.insert(replica);
            } else if !context.own_replicas.contains(&replica) {
                self.received.extend(files);
            }
        }
        let Some(store) = replicas.iter().find_map(Replica::store) else { return Ok(()) };
        let oldest = Timestamp(context.clock.now().0.saturating_sub(MAX_HISTORY_AGE));
        let bounds = Bounds { bytes: MAX_HISTORY_BYTES, oldest };
        archive::keep(&*home.memory().state, store, commits, bounds).await.map_err(SyncError::Local)
    }
}

/// The error that stopped a round or one of its directories.
#[derive(Debug)]
pub struct Stopped {
    /// The directory it happened in, by its name; `None` if it concerns the whole home.
    pub directory: Option<String>,
    /// The error.
    pub error: SyncError,
}

impl Stopped {
    pub(super) fn at(directory: &Directory, error: SyncError) -> Stopped {
        Stopped { directory: Some(directory.name.clone()), error }
    }
}

impl From<SyncError> for Stopped {
    fn from(error: SyncError) -> Stopped {
        Stopped { directory: None, error }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.directory {
            Some(directory) => write!(f, "{directory}: {}", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl StdError for Stopped {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}

impl Report {
    /// Adds the report of another run of the same home.
    pub(crate) fn add(&mut self, other: Report) {
        self.taken += other.taken;
        self.published += other.published;
        self.fetched += other.fetched;
        self.merged.extend(other.merged);
        self.both_kept.extend(other.both_kept);
        self.edits_won.extend(other.edits_won);
        self.held.extend(other.held);
        extend_sorted(&mut self.refused, other.refused);
        self.missing.extend(other.missing);
        self.waiting_deletions.extend(other.waiting_deletions);
        // Each replica lists all deletions that it holds, in every run.
        extend_sorted(&mut self.held_deletions, other.held_deletions);
        self.foreign.extend(other.foreign);
        self.unrelated.extend(other.unrelated);
        extend_sorted(&mut self.not_mirrored, other.not_mirrored);
        self.awaited.extend(other.awaited);
        self.odd.extend(other.odd);
        self.unseen.extend(other.unseen);
        self.out_of_time |= other.out_of_time;
        self.not_folded = other.not_folded.or(self.not_folded.take());
    }
}

fn extend_sorted(all: &mut Vec<Locator>, more: Vec<Locator>) {
    all.extend(more);
    all.sort_unstable();
    all.dedup();
}
