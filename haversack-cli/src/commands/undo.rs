//! `haversack undo`: takes a change back, keeping what was edited later.

mod join;
mod last;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use haversack::Change;
use haversack::clock::Clock;
use haversack::history::{Undone, take_back};
use haversack::ids::Timestamp;
use haversack::log::Commit;
use haversack::store::{Bytes, ErrorKind, Locator, block_on};
use haversack::sync::IMPORT;
use serde_json::json;

use crate::app::history::{counts, headline};
use crate::error::CommandError;
use crate::home::Home;
use crate::home::history::{Enough, Past, Waiting};
use crate::home::store::{locate, open};
use crate::projects::proof;
use crate::settings::Settings;
use crate::system::{SystemClock, Timed};
use crate::ui::moments::{counted, parse_span};
use crate::ui::{Answer, Ui};

/// Take back the last change, a change by its number, a file's last change, a session, or a join
///
/// What was edited later stays. The result is a new version, which syncs like any edit and can itself be taken back.
#[derive(Debug, Default, Args)]
pub(crate) struct UndoArgs {
    /// Only this change, of any machine: its number in `haversack log`; or only the last change of this file
    #[arg(value_name = "NUMBER|PATH")]
    target: Option<Target>,

    /// Everything that a session of an agent did: its id, the beginning of it, or "last" for the newest
    #[arg(long, value_name = "ID", conflicts_with_all = ["target", "join", "since"])]
    session: Option<String>,

    /// Everything of the last 30min, 2h, 3d or 1w
    #[arg(long, value_name = "TIME", value_parser = parse_span, conflicts_with_all = ["target", "join"])]
    since: Option<i64>,

    /// Leave the store that was joined: its files go, what this machine sent there goes, what was here before comes back
    #[arg(long, conflicts_with = "target")]
    join: bool,

    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Only the last change of this session; set by a server for the session that asks.
    #[arg(skip)]
    only_session: Option<String>,
}

impl UndoArgs {
    /// Asks for the last change of a session, or the last change of a file, to be taken back at once.
    pub(crate) fn last(path: Option<String>, session: Option<String>) -> UndoArgs {
        let only_session = session.filter(|_| path.is_none());
        UndoArgs { target: path.map(Target::Path), yes: true, only_session, ..UndoArgs::default() }
    }
}

/// The change or the file that an undo is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// The number of a change.
    Change(u64),
    /// A file, of which the last change is meant.
    Path(String),
}

impl FromStr for Target {
    type Err = Infallible;

    /// Reads digits as a number; `/memories/12` names a file that is called 12.
    fn from_str(text: &str) -> Result<Target, Infallible> {
        Ok(text.parse().map_or_else(|_| Target::Path(text.to_owned()), Target::Change))
    }
}

/// What a file was before a change, and after it.
type Before = Option<Bytes>;
type After = Option<Bytes>;

/// A change that is to be taken back, of one file.
struct Taken {
    locator: Locator,
    before: Before,
    after: After,
}

/// What becomes of a file.
struct Outcome {
    locator: Locator,
    now: Option<Bytes>,
    then: Option<Bytes>,
    stays: bool,
    /// True if another machine deleted the file and its deletion is held here: the file stays, and is sent again.
    is_sent_again: bool,
}

pub(crate) fn cmd_undo(ui: &mut Ui, settings: &Settings, args: &UndoArgs) -> Result<ExitCode, CommandError> {
    if args.join {
        return join::undo_join(ui, settings, args);
    }
    let patience = Timed::for_at_most(None);
    let home = Home::open(settings)?;
    let held = match args.target {
        Some(Target::Change(_)) => held_deletions(&home)?,
        Some(Target::Path(_)) | None => BTreeSet::new(),
    };
    let (title, taken) = select(settings, &home, &patience, args)?;
    let memory = open(settings)?;
    let read = |locator: &Locator| match block_on(memory.files().read(locator)) {
        Ok(object) => Ok(Some(object.bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::from(error)),
    };
    let outcomes = decide(taken, &held, read)?;
    let changes: Vec<Change> =
        outcomes.iter().filter(|outcome| !outcome.stays).map(Outcome::change).collect();
    let sent_again: BTreeSet<&Locator> =
        outcomes.iter().filter(|outcome| outcome.is_sent_again).map(|outcome| &outcome.locator).collect();
    tell(ui, &title, &outcomes, args)?;
    if changes.is_empty() && sent_again.is_empty() {
        ui.note("There is nothing to take back. See what happened: haversack log");
        return Ok(ExitCode::from(1));
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && ui.ask("Take that back? Later edits to these files stay.")? == Answer::No {
        ui.note("Nothing was changed.");
        return Ok(ExitCode::from(1));
    }
    home.keep_held(settings, |locator| sent_again.contains(locator))?;
    if !changes.is_empty() {
        let position = home.memory().look()?.position;
        last::remember(settings, position, &outcomes)?;
        block_on(memory.batch(&changes))?;
    }
    ui.note("Undone. Your other machines follow at their next sync. Changed your mind: haversack undo");
    Ok(ExitCode::SUCCESS)
}

/// Returns the files that other machines deleted and whose deletion is held here.
fn held_deletions(home: &Home) -> Result<BTreeSet<Locator>, CommandError> {
    let mut held = BTreeSet::new();
    for place in home.places() {
        held.extend(place.look()?.held_deletions);
    }
    Ok(held)
}

/// Returns what is to be taken back, newest first, and what to call it.
fn select(
    settings: &Settings,
    home: &Home,
    patience: &Timed,
    args: &UndoArgs,
) -> Result<(String, Vec<Taken>), CommandError> {
    let (number, path) = match &args.target {
        Some(Target::Change(number)) => (Some(*number), None),
        Some(Target::Path(path)) => (None, Some(locate(path)?)),
        None => (None, None),
    };
    let is_plain = args.target.is_none()
        && args.session.is_none()
        && args.since.is_none()
        && args.only_session.is_none();
    let last = if is_plain { last::remembered(settings)? } else { None };
    let mut past = match (Past::open(settings, home, patience), &last) {
        (Ok(past), _) => past,
        // After leaving a store there is no history, but what was done then.
        (Err(_), Some(_)) => return Ok(the_last_undo(last)),
        (Err(error), None) => return Err(error),
    };
    if last.as_ref().is_some_and(|last| last.position.is_some()) && is_newest(&mut past, home, last.as_ref())?
    {
        return Ok(the_last_undo(last));
    }
    // The records of projects are ours: taking a proof back would lock its checkouts out.
    let is_about = |locator: &Locator| {
        path.as_ref().is_none_or(|path| locator.is_within(path)) && !proof::is_record(locator)
    };
    let mut taken = Vec::new();
    if args.session.is_none() && number.is_none() {
        for Waiting { locator, before, now, is_import } in past.waiting(home)? {
            let is_theirs = match &args.only_session {
                Some(session) => {
                    let writer =
                        block_on(haversack::writer_of(&*home.memory().state, &locator, now.as_deref()))?;
                    writer.and_then(|writer| writer.session).as_ref() == Some(session)
                }
                None => true,
            };
            // What was there before we came is no edit.
            if is_about(&locator) && is_theirs && !is_import {
                taken.push(Taken { locator, before, after: now });
            }
        }
    }
    if !taken.is_empty() && args.since.is_none() {
        return Ok(("Not sent yet:".to_owned(), taken));
    }
    let commits = match number {
        Some(number) => vec![numbered(&mut past, number)?],
        None => selected(&mut past, args, &is_about)?,
    };
    let title = match (commits.as_slice(), &args.session) {
        ([], _) => String::new(),
        ([one], None) => headline(one).trim_start().to_owned(),
        (several, Some(_)) => {
            let session = several[0].session.clone().unwrap_or_default();
            format!("Session {session}, {}:", counted(several.len(), "change"))
        }
        (several, None) => format!("{}:", counted(several.len(), "change")),
    };
    for commit in commits {
        for change in commit.changes.iter().filter(|change| is_about(&change.locator)) {
            let (before, after) = past.around(&change.locator, &commit)?;
            taken.push(Taken { locator: change.locator.clone(), before, after });
        }
    }
    Ok((title, taken))
}

/// Returns the commit of a number; an import is refused.
fn numbered(past: &mut Past<'_>, number: u64) -> Result<Arc<Commit>, CommandError> {
    let commit = past.commit(number)?;
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

/// Tells whether nothing was done here since the last undo, except sending it.
fn is_newest(past: &mut Past<'_>, home: &Home, last: Option<&last::Last>) -> Result<bool, CommandError> {
    let Some(last) = last else { return Ok(false) };
    let mut is_newest = past.waiting(home)?.iter().all(|file| last.has(&file.locator));
    let device = past.device.clone();
    past.each(|commit| {
        if Some(commit.position) <= last.position {
            return Enough::Yes;
        }
        let is_ours = Some(&commit.device) == device.as_ref();
        is_newest &= !is_ours || commit.changes.iter().all(|change| last.has(&change.locator));
        Enough::No
    })?;
    Ok(is_newest)
}

/// Returns the commits that are meant, newest first.
fn selected(
    past: &mut Past<'_>,
    args: &UndoArgs,
    is_about: &dyn Fn(&Locator) -> bool,
) -> Result<Vec<Arc<Commit>>, CommandError> {
    let now = SystemClock.now();
    let since = args.since.map(|span| Timestamp(now.0 - span));
    let mut session = args.session.clone();
    let device = past.device.clone();
    let mut commits = Vec::new();
    past.each(|commit| {
        let touches = commit.changes.iter().any(|change| is_about(&change.locator));
        if commit.cause == IMPORT {
            return Enough::No;
        }
        if let Some(wanted) = &mut session {
            if wanted == "last" && commit.session.is_some() {
                *wanted = commit.session.clone().unwrap_or_default();
            }
            if commit.session.as_ref().is_some_and(|session| session.starts_with(wanted.as_str())) {
                commits.push(commit.clone());
            }
            return Enough::No;
        }
        if let Some(session) = &args.only_session {
            return match commit.session.as_ref() == Some(session) {
                true => {
                    commits.push(commit.clone());
                    Enough::Yes
                }
                false => Enough::No,
            };
        }
        if let Some(since) = since {
            if commit.time >= since {
                commits.push(commit.clone());
            }
            return Enough::No;
        }
        // The last change of a file is anybody's; the last change of all is this machine's own.
        let is_meant = args.target.is_some() || Some(&commit.device) == device.as_ref();
        if touches && is_meant {
            commits.push(commit.clone());
            return Enough::Yes;
        }
        Enough::No
    })?;
    let sessions: BTreeSet<&str> = commits.iter().filter_map(|commit| commit.session.as_deref()).collect();
    if args.session.as_deref().is_some_and(|wanted| wanted != "last" && sessions.len() > 1) {
        let sessions: Vec<&str> = sessions.into_iter().collect();
        return Err(CommandError::user(
            format!("several sessions begin like that: {}", sessions.join(", ")),
            "Name one of them: haversack undo --session ID",
        ));
    }
    Ok(commits)
}

/// Decides what becomes of every file.
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

    fn what(&self) -> String {
        match (&self.now, &self.then) {
            _ if self.is_sent_again => "stays here, and is sent again".to_owned(),
            _ if self.stays => "stays: it was edited later, or nothing of it is left".to_owned(),
            (None, _) => "comes back".to_owned(),
            (Some(_), None) => "goes".to_owned(),
            (Some(_), Some(_)) => {
                let (gone, added) = counts(self.now.as_ref(), self.then.as_ref());
                format!("−{gone} +{added}")
            }
        }
    }
}

fn tell(ui: &mut Ui, title: &str, outcomes: &[Outcome], args: &UndoArgs) -> Result<(), CommandError> {
    if args.json {
        let each = outcomes.iter().map(|outcome| {
            let (gone, added) = counts(outcome.now.as_ref(), outcome.then.as_ref());
            let (was, is) = (outcome.now.is_some(), outcome.then.is_some());
            json!({
                "path": outcome.locator.as_str(), "stays": outcome.stays, "removed_lines": gone, "added_lines": added,
                "comes_back": !was && is, "goes": was && !is,
                "is_sent_again": outcome.is_sent_again,
            })
        });
        return ui.json(&json!({ "files": each.collect::<Vec<_>>(), "done": !args.dry_run }));
    }
    if outcomes.is_empty() {
        return Ok(());
    }
    ui.line(title)?;
    for outcome in outcomes {
        ui.line(format!("  {}   {}", outcome.locator, outcome.what()))?;
    }
    Ok(())
}
