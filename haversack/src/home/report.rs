//! The result of one round.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::fmt;

use haversack_store::Locator;

use super::{Directory, Home};
use crate::history::archive::{self, Bounds};
use crate::ids::{Position, ReplicaId, Timestamp};
use crate::sync::{Context, Recent, Replica, Report, SyncError, SyncErrorKind};
use crate::vault::TransferStats;

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
    pub transfers: TransferStats,
    /// The plain files of a synced folder that no log names, and the end of the wait for each.
    pub waits: BTreeMap<Locator, Timestamp>,
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
    pub(super) fn add_carriage(&mut self, carried: TransferStats) {
        self.transfers.taken += carried.taken;
        self.transfers.sent += carried.sent;
        (self.transfers.waiting, self.transfers.early) = (carried.waiting, carried.early);
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
    /// Returns the action that a caller can take.
    pub fn kind(&self) -> SyncErrorKind {
        self.error.kind()
    }

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
        // A home runs a replica several times in one round, and each run lists what it finds, also what an earlier run listed.
        extend_sorted(&mut self.merged, other.merged);
        extend_sorted(&mut self.both_kept, other.both_kept);
        extend_sorted(&mut self.edits_won, other.edits_won);
        replace_by_name(&mut self.held, other.held);
        extend_sorted(&mut self.refused, other.refused);
        extend_sorted(&mut self.missing, other.missing);
        extend_sorted(&mut self.waiting_deletions, other.waiting_deletions);
        extend_sorted(&mut self.held_deletions, other.held_deletions);
        extend_sorted(&mut self.foreign, other.foreign);
        extend_sorted(&mut self.unrelated, other.unrelated);
        extend_sorted(&mut self.not_mirrored, other.not_mirrored);
        extend_sorted(&mut self.awaited, other.awaited);
        replace_by_name(&mut self.odd, other.odd);
        replace_by_name(&mut self.unseen, other.unseen);
        self.out_of_time |= other.out_of_time;
        self.not_folded = other.not_folded.or(self.not_folded.take());
    }
}

/// Adds entries that are not there yet.
fn extend_sorted<T: Ord>(all: &mut Vec<T>, more: Vec<T>) {
    all.extend(more);
    all.sort_unstable();
    all.dedup();
}

/// Adds entries; a later one takes the place of an earlier one with the same name.
fn replace_by_name<Name: Ord, T>(all: &mut Vec<(Name, T)>, more: Vec<(Name, T)>) {
    let names: BTreeSet<&Name> = more.iter().map(|(name, _)| name).collect();
    all.retain(|(name, _)| !names.contains(name));
    all.extend(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Hold;

    /// The two runs of a round in a synced folder find the same files.
    #[test]
    fn file_of_two_runs_is_reported_once() {
        let file = |name: &str| Locator::parse(name).expect("a name");
        let run = |why: &str| Report {
            merged: vec![file("merged.md")],
            held: vec![(file("held.md"), Hold::whole(why))],
            unseen: vec![(file("unseen"), why.to_owned())],
            waiting_deletions: vec![file("two.md"), file("one.md")],
            ..Report::default()
        };
        let mut report = run("it was large");
        report.add(run("it holds a secret"));
        report.add(Report { waiting_deletions: vec![file("three.md")], ..Report::default() });
        assert_eq!(report.merged, [file("merged.md")]);
        assert_eq!(report.waiting_deletions, [file("one.md"), file("three.md"), file("two.md")]);
        assert_eq!(report.held, [(file("held.md"), Hold::whole("it holds a secret"))]);
        assert_eq!(report.unseen, [(file("unseen"), "it holds a secret".to_owned())]);
    }
}
