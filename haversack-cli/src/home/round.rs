//! One sync of this machine's home: opens the home and its remote, calls the engine's round ([`haversack::home`]), and notes if the remote
//! was reached.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use haversack::clock::Clock;
pub(crate) use haversack::home::Work;
use haversack::home::{HomeReport, Meeting, Round, Stopped};
use haversack::ids::{Position, Timestamp};
use haversack::store::{Locator, block_on};
use haversack::sync::{Author, Context, Deletions, Intervals, Mirror, Progress, Report, SyncError};
use haversack::vault::{Mine, TransferStats};
use haversack_system::{Backoff, RandomIds, SystemClock};

use super::contact::{Contact, Failure};
use super::findings::{self, Synced};
use super::history_days::kept_contents;
use super::lost_and_found::LostAndFound;
use super::mounts;
use super::replicas::Home;
use super::store::is_project_record;
use crate::error::CommandError;
use crate::remote::{self, Remote};
use crate::settings::{Settings, shown};

/// The most files of a store whose mirror a sync writes itself; a larger store's mirror is written in the background.
const MAX_MIRRORED_FILES: usize = 200;

/// The most arrived files of a synced folder in which a sync looks for conflicts.
const MAX_LOOKED_AT: usize = 100;

/// The options of a sync.
pub(crate) struct SyncOptions<'a> {
    pub(crate) work: Work<'a>,
    pub(crate) deletions: Deletions,
    /// The time it has; `None` for all it takes.
    pub(crate) time: Option<Duration>,
    /// The cause, for the history.
    pub(crate) cause: &'a str,
    /// The plain files in a synced folder that this user wrote.
    pub(crate) mine: Mine,
}

impl<'a> SyncOptions<'a> {
    /// Returns the options of most syncs: all the time it takes, and very many deletions wait for the user.
    pub(crate) fn new(work: Work<'a>, cause: &'a str) -> SyncOptions<'a> {
        SyncOptions { work, deletions: Deletions::Cautious, time: None, cause, mine: Mine::Nothing }
    }
}

/// The result of a sync.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Files of this machine that others receive.
    pub(crate) sent: BTreeSet<Locator>,
    /// Files that this machine received.
    pub(crate) received: BTreeSet<Locator>,
    /// The reports of all replicas together.
    pub(crate) report: Report,
    /// Bound directories that are not there or were emptied.
    pub(crate) vanished: Vec<String>,
    /// Bound directories that became links, and are not bound any more.
    pub(crate) unbound: Vec<String>,
    /// Bound directories whose own disk failed, and why. The others synced all the same.
    pub(crate) failed: Vec<(String, String)>,
    /// The positions that this sync published.
    pub(crate) published: Vec<Position>,
    /// True if the sync wrote the mirror: the list of plain copies that it did not write is complete.
    is_mirrored: bool,
    /// True if the mirror is still to be written, by the caller.
    pub(crate) is_mirror_late: bool,
    /// Entries that were carried to and from a synced folder.
    pub(crate) transfers: TransferStats,
    /// Edits that the client of a synced folder could not upload and that were imported: their paths, and the files they were made from.
    pub(crate) rescued: Vec<(String, Locator)>,
    /// The plain files of a synced folder that no log names, and the end of the wait for each.
    pub(crate) waits: BTreeMap<Locator, Timestamp>,
    /// The number of log files that a synced folder had lost and that were put back.
    pub(crate) mended: usize,
    /// The newest position that this home knows.
    pub(crate) position: Option<Position>,
    /// The number of files that were fetched without their commits.
    fetched: usize,
}

impl Summary {
    fn new(home: &Home, unbound: &[mounts::Mount], report: HomeReport) -> Summary {
        let HomeReport { sent, received, sync, failed, .. } = report;
        // The records of projects are ours: the user counts memories.
        let memories =
            |files: BTreeSet<Locator>| files.into_iter().filter(|file| !is_project_record(file)).collect();
        let explain = |stopped: Stopped| {
            let name = stopped.directory.clone().unwrap_or_default();
            (name, home.explain(stopped).in_one_line())
        };
        Summary {
            sent: memories(sent),
            received: memories(received),
            fetched: sync.fetched,
            report: sync,
            vanished: report.vanished,
            unbound: unbound.iter().map(|mount| shown(&mount.directory)).collect(),
            failed: failed.into_iter().map(explain).collect(),
            published: report.published,
            is_mirrored: report.is_mirrored,
            is_mirror_late: report.is_mirror_late,
            transfers: report.transfers,
            rescued: Vec::new(),
            waits: report.waits,
            mended: report.mended,
            position: report.position,
        }
    }

    /// Returns the number of parts of other machines' logs that have not arrived whole in a folder.
    pub(crate) fn arriving(&self) -> usize {
        self.transfers.waiting.len() + self.transfers.early
    }

    /// Returns the number of files that this machine received.
    pub(crate) fn received(&self) -> usize {
        self.received.len().max(self.fetched)
    }
}

/// Syncs every directory of the home, and notes if the remote was reached.
pub(crate) fn sync(
    settings: &Settings,
    remote: &Remote,
    options: &SyncOptions<'_>,
    progress: &dyn Progress,
) -> Result<Summary, CommandError> {
    noting_contact(settings, remote, options, || {
        let meeting = remote::meeting(settings, remote);
        let meeting = meeting.map_err(|error| Failed::There(Failure::Refused, error))?;
        sync_home(settings, remote, &meeting, options, progress)
    })
}

/// Syncs with a meeting place that is open already.
pub(crate) fn sync_with(
    settings: &Settings,
    remote: &Remote,
    meeting: &Meeting,
    options: &SyncOptions<'_>,
    progress: &dyn Progress,
) -> Result<Summary, CommandError> {
    noting_contact(settings, remote, options, || sync_home(settings, remote, meeting, options, progress))
}

/// Syncs, and notes if the remote was reached.
fn noting_contact(
    settings: &Settings,
    remote: &Remote,
    options: &SyncOptions<'_>,
    sync: impl FnOnce() -> Result<Summary, Failed>,
) -> Result<Summary, CommandError> {
    if let Some(finding) = haversack::secrets::find(options.cause.as_bytes()).first() {
        // All readers of the remote see the message in the history.
        return Err(CommandError::user(
            format!("the message holds {} ({}), so nothing was sent", finding.rule.name, finding.rule.id),
            "Say it without the secret: haversack sync --message TEXT",
        ));
    }
    let now = SystemClock.now();
    match sync() {
        Ok(summary) => {
            let mut contact = Contact::of(settings).reached(now, summary.arriving());
            let is_full = options.work == Work::Full;
            if summary.is_mirrored || (is_full && remote.mirror) {
                contact = contact.with_not_mirrored(&summary.report.not_mirrored);
            }
            if is_full {
                contact = contact.looked(now).with_waits(&summary.waits);
            }
            contact.save(settings)?;
            let absent = summary.vanished.iter().chain(summary.failed.iter().map(|(name, _)| name));
            let synced = Synced {
                work: options.work,
                report: &summary.report,
                files: summary.sent.iter().chain(&summary.received).collect(),
                absent: absent.map(String::as_str).collect(),
            };
            // Without the record the next session looks at all files.
            if findings::note(settings, &synced).is_err() {
                findings::forget(settings)?;
            }
            Ok(summary)
        }
        Err(Failed::There(failure, error)) => {
            Contact::of(settings).failed(now, failure, &error).save(settings)?;
            findings::forget(settings)?;
            Err(error)
        }
        Err(Failed::Here(error)) => {
            findings::forget(settings)?;
            Err(error)
        }
    }
}

/// A sync that stopped, on this machine or at the remote.
enum Failed {
    Here(CommandError),
    There(Failure, CommandError),
}

impl From<CommandError> for Failed {
    fn from(error: CommandError) -> Failed {
        Failed::Here(error)
    }
}

impl Failed {
    fn of(home: &Home, stopped: Stopped) -> Failed {
        match &stopped.error {
            SyncError::Busy | SyncError::Local(_) | SyncError::Vanished => {
                Failed::Here(home.explain(stopped))
            }
            trouble => Failed::There(Failure::of(trouble), home.explain(stopped)),
        }
    }
}

fn sync_home(
    settings: &Settings,
    remote: &Remote,
    meeting: &Meeting,
    options: &SyncOptions<'_>,
    progress: &dyn Progress,
) -> Result<Summary, Failed> {
    let unbound = mounts::unbind_links(settings)?;
    let home = Home::open(settings)?;
    let author = author(settings, remote);
    let patience = options.time.map_or_else(Backoff::new, Backoff::for_at_most);
    // Only a look at everything drops old contents.
    let keep_contents = match options.work {
        Work::Full => kept_contents(settings)?.duration(),
        Work::Sync | Work::Pull | Work::Near(_) | Work::PushOne(_) => None,
    };
    let context = Context {
        gate: home.gate(),
        patience: &patience,
        progress,
        deletions: options.deletions,
        budget: settings.budget,
        intervals: Intervals { keep_contents, ..Intervals::default() },
        cause: options.cause,
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    let lost_and_found = match remote::vault(settings, remote)? {
        Some(vault) => LostAndFound::of(settings, remote, vault.folder)?,
        None => None,
    };
    let round = Round {
        mirror: if remote.mirror { Mirror::On } else { Mirror::Off },
        mirrored_files: MAX_MIRRORED_FILES,
        mine: options.mine.clone(),
        lost_and_found: lost_and_found.as_ref().map(|found| found as &dyn haversack::home::LostAndFound),
        lock_wait: settings.lock_wait,
        ..Round::new(options.work)
    };
    let report = block_on(haversack::home::sync(home.directories(), meeting, context, &round));
    let report = report.map_err(|stopped| Failed::of(&home, stopped))?;
    let mut summary = Summary::new(&home, &unbound, report);
    if meeting.is_folder() {
        name_arrived_conflicts(settings, &mut summary);
    }
    if let Some(found) = lost_and_found {
        summary.rescued.extend(found.rescued().into_iter().map(|(path, of)| (shown(&path), of)));
    }
    Ok(summary)
}

/// Adds the arrived files with two versions of a passage to the report. In a synced folder the logs are merged before the files, so the report of the files
/// does not name them.
fn name_arrived_conflicts(settings: &Settings, summary: &mut Summary) {
    let named = &summary.report.both_kept;
    let arrived = summary.received.iter().filter(|file| !named.contains(file));
    let arrived: Vec<Locator> = arrived.take(MAX_LOOKED_AT).cloned().collect();
    // The sync is done. A file that cannot be read now is named by the next look at conflicts.
    let Ok(conflicts) = findings::conflicts_in(settings, &arrived) else { return };
    let found: BTreeSet<Locator> = conflicts.found.into_iter().map(|conflict| conflict.locator).collect();
    summary.report.both_kept.extend(found);
}

/// Returns the name under which this machine's commits are in the history.
pub(super) fn author(settings: &Settings, remote: &Remote) -> Author {
    let writer = &settings.writer;
    Author { device: remote.device.clone(), agent: writer.agent.clone(), session: writer.session.clone() }
}
