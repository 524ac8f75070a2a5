//! Takes a change back, and keeps later edits.
//!
//! 1. [`plan`] selects the changes and decides the fate of every file. It changes nothing.
//! 2. The caller shows the plan, and asks the user if there is one to ask.
//! 3. [`Plan::carry_out`] changes the files. The result is a new version, which syncs like any edit.

pub(crate) mod join;
mod last;

use std::collections::{BTreeMap, BTreeSet};

use haversack::clock::Clock;
use haversack::history::{Undone, take_back};
use haversack::ids::Timestamp;
use haversack::store::{Bytes, ErrorKind, Locator, block_on};
use haversack::sync::IMPORT;
use haversack::{Change, Memory};
use haversack_system::{Backoff, SystemClock};

use super::history::{counts, headline};
use crate::error::CommandError;
use crate::home::Home;
use crate::home::history::{ChangeNumber, Enough, HistoryReader, NumberedChange, Waiting, open_home};
use crate::home::store::{is_project_record, open_because};
use crate::settings::Settings;
use crate::ui::moments::counted;

/// The cause of an undo in the history, also if a later sync sends it.
const CAUSE: &str = "undo";

/// The name that stands for the newest session.
const LAST_SESSION: &str = "last";

/// The note about an undo that found nothing.
pub(crate) const NOTHING: &str = "There is nothing to undo. See the changes: haversack log";

/// The note about an undo that was carried out.
pub(crate) const DONE: &str =
    "Undone. Your other machines follow at their next sync. Changed your mind: haversack undo";

/// The changes that an undo takes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The last change of this machine, or the last undo.
    Last,
    /// The change with this number, of any machine.
    Change(ChangeNumber),
    /// The last change of a file or directory, of any machine.
    File(Locator),
    /// All changes of a session of an agent: its id, the beginning of it, or "last" for the newest session.
    Session(String),
    /// The last change of a session.
    LastOfSession(String),
    /// All changes of the last so many milliseconds.
    Since(i64),
}

/// A change of one file that is to be taken back.
struct Taken {
    locator: Locator,
    before: Option<Bytes>,
    after: Option<Bytes>,
}

/// The fate of a file in an undo.
pub(crate) struct Outcome {
    pub(crate) locator: Locator,
    /// The content before the undo; `None` if there is no file.
    now: Option<Bytes>,
    /// The content after the undo; `None` if there is no file.
    then: Option<Bytes>,
    /// True if the undo leaves the file as it is.
    pub(crate) stays: bool,
    /// True if another machine deleted the file and its deletion is held here: the file stays, and is sent again.
    pub(crate) is_sent_again: bool,
}

/// An undo that was not carried out yet.
pub(crate) struct Plan {
    title: String,
    pub(crate) outcomes: Vec<Outcome>,
    home: Home,
    memory: Memory,
}

/// Selects the changes and decides the fate of every file; changes nothing.
pub(crate) fn plan(settings: &Settings, wanted: &Wanted) -> Result<Plan, CommandError> {
    let patience = Backoff::new();
    let home = open_home(settings)?;
    let held = match wanted {
        Wanted::Change(_) => held_deletions(&home)?,
        _ => BTreeSet::new(),
    };
    let (title, taken) = select(settings, &home, &patience, wanted)?;
    let memory = open_because(settings, CAUSE)?;
    let read = |locator: &Locator| match block_on(memory.files().read(locator)) {
        Ok(object) => Ok(Some(object.bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::from(error)),
    };
    let outcomes = decide(taken, &held, read)?;
    Ok(Plan { title, outcomes, home, memory })
}

impl Plan {
    /// Returns true if the undo would change nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.outcomes.iter().all(|outcome| outcome.stays && !outcome.is_sent_again)
    }

    /// Returns the name of the change, and a line for every file.
    pub(crate) fn text(&self) -> String {
        text(&self.title, &self.outcomes)
    }

    /// Takes the changes back.
    pub(crate) fn carry_out(&self, settings: &Settings) -> Result<(), CommandError> {
        let sent_again: BTreeSet<&Locator> = self
            .outcomes
            .iter()
            .filter(|outcome| outcome.is_sent_again)
            .map(|outcome| &outcome.locator)
            .collect();
        self.home.keep_held(settings, |locator| sent_again.contains(locator))?;
        let changes: Vec<Change> =
            self.outcomes.iter().filter(|outcome| !outcome.stays).map(Outcome::change).collect();
        if !changes.is_empty() {
            let position = self.home.memory().look()?.position;
            last::remember(settings, position, &self.outcomes)?;
            block_on(self.memory.batch(&changes))?;
        }
        Ok(())
    }
}

/// Returns a title, and a line for every file.
fn text(title: &str, outcomes: &[Outcome]) -> String {
    if outcomes.is_empty() {
        return String::new();
    }
    let files = outcomes.iter().map(|outcome| format!("  {}   {}\n", outcome.locator, outcome.fate()));
    format!("{title}\n{}", files.collect::<String>())
}

/// Returns the files that other machines deleted and whose deletion is held here.
fn held_deletions(home: &Home) -> Result<BTreeSet<Locator>, CommandError> {
    let mut held = BTreeSet::new();
    for place in home.places() {
        held.extend(place.look()?.held_deletions);
    }
    Ok(held)
}

/// Returns the changes to undo, newest first, and their description.
fn select(
    settings: &Settings,
    home: &Home,
    patience: &Backoff,
    wanted: &Wanted,
) -> Result<(String, Vec<Taken>), CommandError> {
    let last = if *wanted == Wanted::Last { last::remembered(settings)? } else { None };
    let mut history = match (HistoryReader::open(settings, home, patience), &last) {
        (Ok(history), _) => history,
        // After leaving a store, the only history is that undo.
        (Err(_), Some(_)) => return Ok(the_last_undo(last)),
        (Err(error), None) => return Err(error),
    };
    if last.as_ref().is_some_and(|last| last.position.is_some())
        && is_newest(&mut history, home, last.as_ref())?
    {
        return Ok(the_last_undo(last));
    }
    // The records of projects are ours: taking a proof back would lock its checkouts out.
    let is_about = |locator: &Locator| {
        let is_wanted = match wanted {
            Wanted::File(path) => locator.is_within(path),
            _ => true,
        };
        is_wanted && !is_project_record(locator)
    };
    let mut taken = Vec::new();
    if !matches!(wanted, Wanted::Session(_) | Wanted::Change(_)) {
        for Waiting { locator, before, now, is_import } in history.waiting(home)? {
            let is_theirs = match wanted {
                Wanted::LastOfSession(session) => {
                    let writer = block_on(haversack::writer_of(home.signatures(), &locator, now.as_deref()))?;
                    writer.and_then(|writer| writer.session).as_ref() == Some(session)
                }
                _ => true,
            };
            // A file that was there before Haversack is no edit.
            if is_about(&locator) && is_theirs && !is_import {
                taken.push(Taken { locator, before, after: now });
            }
        }
    }
    if !taken.is_empty() && !matches!(wanted, Wanted::Since(_)) {
        return Ok(("Not sent yet:".to_owned(), taken));
    }
    let commits = match wanted {
        Wanted::Change(number) => vec![numbered(&mut history, *number)?],
        _ => selected(&mut history, wanted, &is_about)?,
    };
    let title = match (commits.as_slice(), wanted) {
        ([], _) => String::new(),
        (several, Wanted::Session(_)) => {
            let session = several[0].session.clone().unwrap_or_default();
            format!("Session {session}, {}:", counted(several.len(), "change"))
        }
        ([one], _) => headline(one).trim_start().to_owned(),
        (several, _) => format!("{}:", counted(several.len(), "change")),
    };
    for commit in commits {
        for change in commit.changes.iter().filter(|change| is_about(&change.locator)) {
            let (before, after) = history.around(&change.locator, &commit)?;
            taken.push(Taken { locator: change.locator.clone(), before, after });
        }
    }
    Ok((title, taken))
}

/// Returns the commit of a number; an import is refused.
fn numbered(history: &mut HistoryReader<'_>, number: ChangeNumber) -> Result<NumberedChange, CommandError> {
    let commit = history.change(number)?;
    if commit.cause == IMPORT {
        return Err(CommandError::user(
            format!(
                "change {number} sent files that were there before Haversack, so undo does not remove them"
            ),
            "Delete a file: haversack delete PATH. Leave a store that was joined: haversack undo --join",
        ));
    }
    Ok(commit)
}

fn the_last_undo(last: Option<last::Last>) -> (String, Vec<Taken>) {
    let taken = last.map(|last| last.taken).unwrap_or_default();
    ("The last undo is taken back:".to_owned(), taken)
}

/// Returns true if nothing was done here since the last undo, except sending it.
fn is_newest(
    history: &mut HistoryReader<'_>,
    home: &Home,
    last: Option<&last::Last>,
) -> Result<bool, CommandError> {
    let Some(last) = last else { return Ok(false) };
    let mut is_newest = history.waiting(home)?.iter().all(|file| last.has(&file.locator));
    let device = history.device.clone();
    history.each(|commit| {
        if commit.number.log == last.log && Some(commit.position) <= last.position {
            return Enough::Yes;
        }
        let is_ours = commit.is_of(device.as_ref());
        is_newest &= !is_ours || commit.changes.iter().all(|change| last.has(&change.locator));
        Enough::No
    })?;
    Ok(is_newest)
}

/// Returns the wanted commits, newest first.
fn selected(
    history: &mut HistoryReader<'_>,
    wanted: &Wanted,
    is_about: &dyn Fn(&Locator) -> bool,
) -> Result<Vec<NumberedChange>, CommandError> {
    let now = SystemClock.now();
    let device = history.device.clone();
    // The session, once the newest one is found that "last" stands for.
    let mut session = match wanted {
        Wanted::Session(session) => session.clone(),
        _ => String::new(),
    };
    let mut commits = Vec::new();
    history.each(|commit| {
        if commit.cause == IMPORT {
            return Enough::No;
        }
        let (is_wanted, enough) = match wanted {
            Wanted::Session(_) => {
                if session == LAST_SESSION && commit.session.is_some() {
                    session = commit.session.clone().unwrap_or_default();
                }
                let is_wanted = commit.session.as_ref().is_some_and(|id| id.starts_with(session.as_str()));
                (is_wanted, Enough::No)
            }
            Wanted::LastOfSession(session) => (commit.session.as_ref() == Some(session), Enough::Yes),
            Wanted::Since(span) => (commit.time >= Timestamp(now.0 - span), Enough::No),
            // The last change of a file is that of any machine. The last change of all is this machine's own.
            Wanted::Last | Wanted::File(_) | Wanted::Change(_) => {
                let touches = commit.changes.iter().any(|change| is_about(&change.locator));
                let is_ours = commit.is_of(device.as_ref());
                (touches && (is_ours || *wanted != Wanted::Last), Enough::Yes)
            }
        };
        if !is_wanted {
            return Enough::No;
        }
        commits.push(commit.clone());
        enough
    })?;
    let sessions: BTreeSet<&str> = commits.iter().filter_map(|commit| commit.session.as_deref()).collect();
    if matches!(wanted, Wanted::Session(begin) if begin != LAST_SESSION) && sessions.len() > 1 {
        let sessions: Vec<&str> = sessions.into_iter().collect();
        return Err(CommandError::user(
            format!("several sessions begin like that: {}", sessions.join(", ")),
            "Choose one of them: haversack undo --session ID",
        ));
    }
    Ok(commits)
}

/// Decides the fate of every file.
fn decide(
    taken: Vec<Taken>,
    held: &BTreeSet<Locator>,
    read: impl Fn(&Locator) -> Result<Option<Bytes>, CommandError>,
) -> Result<Vec<Outcome>, CommandError> {
    let mut outcomes: BTreeMap<Locator, Outcome> = BTreeMap::new();
    for Taken { locator, before, after } in taken {
        if !outcomes.contains_key(&locator) {
            let now = read(&locator)?;
            let is_sent_again = after.is_none() && now.is_some() && held.contains(&locator);
            let then = now.clone();
            let outcome = Outcome { locator: locator.clone(), now, then, stays: true, is_sent_again };
            outcomes.insert(locator.clone(), outcome);
        }
        let outcome = outcomes.get_mut(&locator).expect("it was just put there");
        match take_back(&locator, before.as_ref(), after.as_ref(), outcome.then.as_ref()) {
            Undone::Before(before) => outcome.then = before,
            Undone::Mixed(bytes) => outcome.then = Some(bytes),
            Undone::Stays => {}
        }
        outcome.stays = outcome.then == outcome.now;
    }
    Ok(outcomes.into_values().collect())
}

impl Outcome {
    fn change(&self) -> Change {
        Change::Put { locator: self.locator.clone(), expected: self.now.clone(), bytes: self.then.clone() }
    }

    /// Returns the fate in a few words.
    pub(crate) fn fate(&self) -> String {
        match (&self.now, &self.then) {
            _ if self.is_sent_again => "stays here, and is sent again".to_owned(),
            _ if self.stays => "stays: it was edited later, or nothing is left to undo".to_owned(),
            (None, _) => "restored".to_owned(),
            (Some(_), None) => "deleted".to_owned(),
            (Some(_), Some(_)) => {
                let (gone, added) = self.line_counts();
                format!("−{gone} +{added}")
            }
        }
    }

    /// Returns how many lines the undo removes and adds.
    pub(crate) fn line_counts(&self) -> (usize, usize) {
        counts(self.now.as_ref(), self.then.as_ref())
    }

    /// Returns true if the undo brings a deleted file back.
    pub(crate) fn comes_back(&self) -> bool {
        self.now.is_none() && self.then.is_some()
    }

    /// Returns true if the undo deletes the file.
    pub(crate) fn is_deleted(&self) -> bool {
        self.now.is_some() && self.then.is_none()
    }
}
