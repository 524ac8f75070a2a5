//! Problems of projects that need the user: the files that stay here, the deletions that wait, and the files with two versions of a passage.
//!
//! 1. The first session in a project looks at all its files ([`Findings::look`]) and records what it found.
//! 2. Every round that syncs the project ([`note`]) brings the record up to date. It reads only the files that it sent, received or merged.
//! 3. A later session takes the record of the round that it waited for, and scans nothing.
//!
//! A round that failed may have written files, so it removes the record, and the next session looks at all files again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use haversack::conflict::Conflict;
use haversack::home::Work;
use haversack::store::{Locator, block_on};
use haversack::sync::{Hold, Report};
use haversack::{Conflicts, Reason};
use serde::{Deserialize, Serialize};

use super::gate;
use super::mounts;
use super::replicas::Home;
use super::store::open_to_look;
use crate::error::CommandError;
use crate::records;
use crate::settings::{Settings, shown};

/// The problems of one project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Findings {
    /// The number of files that stay on this machine.
    pub(crate) held: usize,
    /// The number of files that another machine deleted, very many at once.
    pub(crate) held_deletions: usize,
    /// The number of files that disappeared here.
    pub(crate) waiting_deletions: usize,
    /// The files that had two versions of a passage.
    conflicts: BTreeSet<String>,
    /// The first file that stays.
    pub(crate) first_held: Option<HeldFile>,
}

/// A file that stays on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldFile {
    /// Its name for people.
    pub(crate) name: String,
    pub(crate) why: String,
}

/// The findings of the projects that sessions were started in, by prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Record(BTreeMap<String, Findings>);

fn place(settings: &Settings) -> PathBuf {
    settings.state().join("findings.toml")
}

impl Record {
    /// Reads the record; an unreadable one counts as empty.
    fn of(settings: &Settings) -> Record {
        records::read(&place(settings), "").ok().flatten().unwrap_or_default()
    }

    fn save(&self, settings: &Settings) -> Result<(), CommandError> {
        records::write(&place(settings), self, records::Weight::Light)
    }
}

impl Findings {
    /// Returns the recorded findings of a project; `None` if its files have to be looked at.
    pub(crate) fn recorded(settings: &Settings, prefix: &Locator) -> Option<Findings> {
        Record::of(settings).0.remove(prefix.as_str())
    }

    /// Scans the files of a project, and records what it found.
    pub(crate) fn look(settings: &Settings, home: &Home, prefix: &Locator) -> Result<Findings, CommandError> {
        let mut record = Record::of(settings);
        let known = record.0.remove(prefix.as_str());
        let mut found = Findings::default();
        let mut changed = Vec::new();
        for place in home.places().filter(|place| place.scope.contains(prefix)) {
            let look = place.look()?;
            found.hold(&look.held);
            found.held_deletions += look.held_deletions.len();
            found.waiting_deletions += look.waiting_deletions.len();
            changed.extend(look.created);
            changed.extend(look.changed);
        }
        let conflicts = match known {
            Some(known) => conflicts_in(settings, &known.may_conflict(&changed, prefix))?,
            None => block_on(open_to_look(settings)?.conflicts(prefix))?,
        };
        found.conflicts = names(&conflicts);
        record.0.insert(prefix.to_string(), found.clone());
        record.save(settings)?;
        Ok(found)
    }

    /// Returns the first conflict that is still there.
    pub(crate) fn first_conflict(&self, settings: &Settings) -> Result<Option<Conflict>, CommandError> {
        let files: Vec<Locator> = self.may_conflict(&[], &Locator::root());
        Ok(conflicts_in(settings, &files)?.found.into_iter().next())
    }

    fn hold(&mut self, held: &[(Locator, Hold)]) {
        self.held += held.len();
        let first =
            held.first().map(|(file, hold)| HeldFile { name: gate::named(file), why: hold.why.clone() });
        self.first_held = self.first_held.take().or(first);
    }

    /// Returns the files below a prefix that had a conflict, or that changed since.
    fn may_conflict(&self, changed: &[Locator], prefix: &Locator) -> Vec<Locator> {
        let known = self.conflicts.iter().filter_map(|name| Locator::parse(name).ok());
        let all: BTreeSet<Locator> = known.chain(changed.iter().cloned()).collect();
        all.into_iter().filter(|file| file.is_within(prefix)).collect()
    }
}

fn names(Conflicts { found, .. }: &Conflicts) -> BTreeSet<String> {
    found.iter().map(|conflict| conflict.locator.to_string()).collect()
}

/// A round that worked.
pub(super) struct Synced<'a> {
    pub(super) work: Work<'a>,
    pub(super) report: &'a Report,
    /// The files that it sent or received.
    pub(super) files: BTreeSet<&'a Locator>,
    /// The directories that took no part, by their names.
    pub(super) absent: BTreeSet<&'a str>,
}

/// Brings the record up to date after a round.
pub(super) fn note(settings: &Settings, synced: &Synced<'_>) -> Result<(), CommandError> {
    let before = Record::of(settings);
    if before.0.is_empty() {
        return Ok(());
    }
    let mut record = before.clone();
    let Synced { work, report, files, absent } = synced;
    let merged =
        [&report.merged, &report.both_kept, &report.edits_won, &report.foreign].into_iter().flatten();
    let touched: Vec<Locator> = merged.chain(files.iter().copied()).cloned().collect();
    // A directory that took no part is looked at again.
    for mount in mounts::of(settings)? {
        if absent.contains(shown(&mount.directory).as_str()) {
            record.0.remove(mount.prefix.as_str());
        }
    }
    for (name, findings) in &mut record.0 {
        let Ok(prefix) = Locator::parse(name) else { continue };
        findings.conflicts = names(&conflicts_in(settings, &findings.may_conflict(&touched, &prefix))?);
        let is_whole = match work {
            Work::Sync | Work::Full => true,
            Work::Near(near) => **near == prefix,
            Work::Pull | Work::PushOne(_) => false,
        };
        if is_whole && !report.out_of_time {
            let below = |files: &[Locator]| files.iter().filter(|file| file.is_within(&prefix)).count();
            let held = report.held.iter().filter(|(file, _)| file.is_within(&prefix)).cloned();
            (findings.held, findings.first_held) = (0, None);
            findings.hold(&held.collect::<Vec<_>>());
            findings.held_deletions = below(&report.held_deletions);
            findings.waiting_deletions = below(&report.waiting_deletions);
        }
    }
    if record == before { Ok(()) } else { record.save(settings) }
}

/// Removes the record after a round that failed.
pub(super) fn forget(settings: &Settings) -> Result<(), CommandError> {
    records::remove(&place(settings))
}

/// Returns the conflicts in some files, and the files that could not be read.
pub(crate) fn conflicts_in(settings: &Settings, files: &[Locator]) -> Result<Conflicts, CommandError> {
    let mut all = Conflicts::default();
    if files.is_empty() {
        return Ok(all);
    }
    let memory = open_to_look(settings)?;
    for file in files {
        match block_on(memory.conflicts(file)) {
            Ok(Conflicts { found, unread }) => {
                all.found.extend(found);
                all.unread.extend(unread);
            }
            // The file was deleted meanwhile.
            Err(error) if *error.reason() == Reason::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}
