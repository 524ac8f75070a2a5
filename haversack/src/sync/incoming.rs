//! Deletions that other devices made: many at once are held.
//!
//! A writer in the remote that is hostile or broken must not empty this device. So the deletions of other devices are counted, for
//! each project, since the user's last answer and for at most a day. If they are very many, the files stay here:
//!
//! 1. The log and the bases move on, so nothing else waits.
//! 2. The file keeps its content and a mark. It is not sent as a new file.
//! 3. An edit wins over the deletion: the edited file is sent. `sync --allow-deletes` removes the marked files, `restore --deleted` sends
//!    them again.
//!
//! Not counted: deletions by this home's own replicas, files whose content has another name now, and files that are past the retention
//! of their kind.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use haversack_store::Locator;
use serde::{Deserialize, Serialize};

use super::plan::{self, Pending, Step};
use super::state::{Advance, BaseLine};
use super::take_in::{IncomingChanges, Work};
use super::{Context, Deletions, Replica, Report, SyncError};
use crate::day::Day;
use crate::ids::{ContentHash, Timestamp};
use crate::kind::Kinds;

/// The period in which deletions are counted together, also [those of this device](super::outgoing).
pub(super) const COUNTED_MILLISECONDS: i64 = 24 * 3600 * 1000;

/// The deletions of other devices that were carried out here lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Removals {
    /// The time of the first one.
    since: Timestamp,
    /// The number of files, by project.
    counts: BTreeMap<String, usize>,
}

/// The decision about the removals in a batch of commits.
pub(super) struct Judged {
    /// Files that stay.
    pub(super) held: BTreeSet<Locator>,
    /// The count to write down once the others are gone.
    pub(super) removals: Option<Removals>,
}

impl Replica {
    /// Decides which removals are held.
    pub(super) async fn judge_removals(
        &self,
        context: Context<'_>,
        incoming: &IncomingChanges,
        steps: &[Step],
    ) -> Result<Judged, SyncError> {
        let nothing = Judged { held: BTreeSet::new(), removals: None };
        let removed: Vec<(&Locator, ContentHash)> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Remove { locator, expected, .. } => Some((locator, *expected)),
                _ => None,
            })
            .collect();
        if removed.is_empty() || context.deletions == Deletions::Allowed {
            return Ok(nothing);
        }
        let now = context.clock.now();
        // The device that deleted may count its days in another zone.
        let today = Day::latest_anywhere(now);
        let here: HashSet<ContentHash> = incoming
            .touched
            .iter()
            .filter_map(|locator| incoming.state_after.files().get(locator).map(|content| content.hash))
            .collect();
        let counts = |(locator, hash): &(&Locator, ContentHash)| {
            let by_us = incoming.deleters.get(*locator).is_some_and(|by| context.own_replicas.contains(by));
            let is_past = || Kinds::built_in().of(locator, &[]).is_past(locator, today);
            !by_us && !here.contains(hash) && !is_past()
        };
        let mut groups: BTreeMap<&str, Vec<&Locator>> = BTreeMap::new();
        for (locator, _) in removed.iter().filter(|removed| counts(removed)) {
            groups.entry(project_of(locator)).or_default().push(locator);
        }
        if groups.is_empty() {
            return Ok(nothing);
        }
        let stored = self.state.removals().await.map_err(SyncError::Local)?;
        let is_recent = |stored: &Removals| (0..COUNTED_MILLISECONDS).contains(&(now.0 - stored.since.0));
        let mut removals =
            stored.filter(is_recent).unwrap_or(Removals { since: now, counts: BTreeMap::new() });
        let mut held = BTreeSet::new();
        for (project, files) in groups {
            let before = removals.counts.get(project).copied().unwrap_or(0);
            if plan::is_many(before + files.len(), || before + self.count_files(project)) {
                held.extend(files.into_iter().cloned());
            } else {
                removals.counts.insert(project.to_owned(), before + files.len());
            }
        }
        Ok(Judged { held, removals: Some(removals) })
    }

    /// Counts the files of a project in this replica.
    fn count_files(&self, project: &str) -> usize {
        let known = &self.state.known;
        let files = known.log.files().entries().map(|entry| entry.name);
        let files = files.filter(|name| self.scope.holds(name) && !known.absent.contains_key(*name));
        files.filter(|name| project_in(name) == project).count()
    }

    /// Removes the files whose deletion was held, if the user allows it. A file that was edited since stays.
    pub(super) async fn let_held_go(
        &mut self,
        context: Context<'_>,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        if context.deletions == Deletions::Cautious {
            return Ok(());
        }
        self.state.forget_deletions().await.map_err(SyncError::Local)?;
        let (mut work, held) = (Work::default(), self.held_deletions());
        for (locator, hash) in held.clone() {
            if self.local(&locator).await?.is_some_and(|bytes| ContentHash::of(&bytes) == hash) {
                work.add(&locator, Some(hash), None);
            }
        }
        self.unmark(context, held, work, report, |_| None).await
    }

    /// Forgets the marks of files that the user has deleted here since.
    pub(super) async fn forget_absent_held(
        &mut self,
        context: Context<'_>,
        pending: &Pending,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let is_here = |locator: &Locator| {
            pending.held_deletions.binary_search(locator).is_ok()
                || pending.changed.binary_search(locator).is_ok()
        };
        let absent: Vec<_> =
            self.held_deletions().into_iter().filter(|(locator, _)| !is_here(locator)).collect();
        self.unmark(context, absent, Work::default(), report, |_| None).await
    }

    /// Keeps those of the held files that are wanted: the next sync sends them as new files. Returns them.
    pub async fn keep_held(
        &mut self,
        context: Context<'_>,
        is_wanted: impl Fn(&Locator) -> bool,
    ) -> Result<Vec<Locator>, SyncError> {
        let mut held = self.held_deletions();
        held.retain(|(locator, _)| is_wanted(locator));
        let kept: Vec<Locator> = held.iter().map(|(locator, _)| locator.clone()).collect();
        self.state.forget_deletions().await.map_err(SyncError::Local)?;
        self.unmark(context, held, Work::default(), &mut Report::default(), Some).await?;
        Ok(kept)
    }

    /// Removes the marks, together with the steps on the files.
    async fn unmark(
        &mut self,
        context: Context<'_>,
        held: Vec<(Locator, ContentHash)>,
        work: Work,
        report: &mut Report,
        before: impl Fn(ContentHash) -> Option<ContentHash>,
    ) -> Result<(), SyncError> {
        let known = &self.state.known;
        let (Some(store), Some(head)) = (known.store, known.head.clone()) else { return Ok(()) };
        if held.is_empty() {
            return Ok(());
        }
        let lines = held.into_iter().map(|(locator, hash)| BaseLine {
            before: before(hash),
            foreign: known.foreign.get(&locator).copied(),
            ..BaseLine::new(locator.as_str(), None)
        });
        let mark = known.log.mark();
        let advance = Advance { store, head, mark, attempt: None, joined: None, bases: lines.collect() };
        self.carry_out(context, work, advance, report).await
    }

    /// Returns the files whose deletion is held, with their last content.
    fn held_deletions(&self) -> Vec<(Locator, ContentHash)> {
        let known = &self.state.known;
        let held =
            known.held.iter().filter_map(|locator| Some((locator.clone(), *known.before.get(locator)?)));
        held.collect()
    }
}

/// Returns the part of the store that a file is counted with: its project, or the rest.
pub(super) fn project_of(locator: &Locator) -> &str {
    project_in(locator.as_str())
}

pub(super) fn project_in(name: &str) -> &str {
    let below = name.strip_prefix("claude_memory/").and_then(|below| below.split_once('/'));
    below.map_or("", |(project, _)| project)
}
