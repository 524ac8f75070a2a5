//! `haversack restore`: brings a file back as it once was, or deleted files.

use std::process::ExitCode;

use clap::Args;
use haversack::Change;
use haversack::store::{Bytes, Locator, block_on};

use crate::error::{CommandError, Fault};
use crate::home::history::{
    AtHand, ChangeNumber, Deletion, Enough, NumberedChange, Past, Waiting, open_home,
};
use crate::home::store::{is_project_record, locate, open};
use crate::settings::Settings;
use crate::system::Timed;
use crate::ui::Ui;

/// Bring a file back as it once was, or deleted files
///
/// It becomes a new version, which syncs like any edit. Exits with 1 if there is nothing to bring back.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The file; or a directory, of which the files come back that were deleted last, on this machine or another
    #[arg(default_value = "")]
    path: String,

    /// As it was after this change: its number in `haversack log`
    #[arg(long, value_name = "NUMBER", conflicts_with = "deleted")]
    at: Option<ChangeNumber>,

    /// Bring back all files that were deleted last: those whose deletion was not sent yet, or that another machine deleted and we kept;
    /// if there are none, those of the newest deletion in `haversack log`. Once more for the deletion before
    #[arg(long)]
    deleted: bool,
}

pub(crate) fn cmd_restore(
    ui: &mut Ui,
    settings: &Settings,
    args: &RestoreArgs,
) -> Result<ExitCode, CommandError> {
    let locator = locate(&args.path)?;
    let patience = Timed::for_at_most(None);
    let home = open_home(settings)?;
    let mut past = Past::open(settings, &home, &patience)?;
    if let Some(number) = args.at {
        let change = past.change(number)?;
        let held = past.held_after(&locator, &change)?;
        return put(ui, settings, held.map(|bytes| (locator, bytes)).into_iter().collect());
    }
    if !args.deleted && locator.is_root() {
        return Err(CommandError::user(
            "a file or directory has to be named",
            "Name it, or bring back all files that were deleted last: haversack restore --deleted",
        ));
    }
    let kept = home.keep_held(settings, |file| file.is_within(&locator))?;
    for locator in &kept {
        ui.note(format!("Kept {locator}: the next sync sends it again"));
    }
    let waiting: Vec<Waiting> =
        past.waiting(&home)?.into_iter().filter(|file| file.locator.is_within(&locator)).collect();
    if kept.contains(&locator) {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.deleted
        && let Named::File(version) = look_up(&mut past, &waiting, &locator)?
    {
        return put(ui, settings, version.map(|bytes| (locator, bytes)).into_iter().collect());
    }
    let unsent: Vec<(Locator, Bytes)> = waiting
        .into_iter()
        .filter(|file| file.now.is_none())
        .filter_map(|file| Some((file.locator, file.before?)))
        .collect();
    if !unsent.is_empty() {
        return put(ui, settings, unsent);
    }
    if !kept.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    put_last_deletion(ui, settings, &mut past, &locator)
}

/// What a path names in the history.
enum Named {
    /// A file, with its content before its newest change.
    File(Option<Bytes>),
    /// A directory, or nothing.
    Directory,
}

/// Looks up what a path names: the newest change at it or below it decides.
fn look_up(past: &mut Past<'_>, waiting: &[Waiting], locator: &Locator) -> Result<Named, CommandError> {
    if let Some(file) = waiting.iter().find(|file| file.locator == *locator)
        && let Some(before) = &file.before
    {
        return Ok(Named::File(Some(before.clone())));
    }
    let mut newest: Option<NumberedChange> = None;
    past.each(|commit| {
        let is_about = commit.changes.iter().any(|change| change.locator.is_within(locator));
        if is_about {
            newest = Some(commit.clone());
        }
        if is_about { Enough::Yes } else { Enough::No }
    })?;
    match newest {
        Some(commit) if commit.changes.iter().any(|change| change.locator == *locator) => {
            past.held_before(locator, &commit).map(Named::File)
        }
        Some(_) | None => Ok(Named::Directory),
    }
}

/// Brings back the files below a place that were deleted last and are not there now.
fn put_last_deletion(
    ui: &mut Ui,
    settings: &Settings,
    past: &mut Past<'_>,
    within: &Locator,
) -> Result<ExitCode, CommandError> {
    let memory = open(settings)?;
    let is_there = |file: &Locator| block_on(memory.files().info(file)).is_ok();
    // The records of projects are ours: the user deletes and restores memories.
    let is_wanted = |file: &Locator| file.is_within(within) && !is_project_record(file) && !is_there(file);
    let (deletion, at_hand) = past.last_deletion(is_wanted)?;
    let Some(Deletion { change, files }) = deletion else {
        if at_hand == AtHand::Some {
            ui.note("Older changes are in the remote, which cannot be reached.");
        }
        return put(ui, settings, Vec::new());
    };
    let (number, device) = (change.number, change.device.clone());
    let done = put(ui, settings, files)?;
    ui.note(format!(
        "{device} deleted this (change {number}). To bring back what was deleted before, run the same command again."
    ));
    Ok(done)
}

fn put(ui: &mut Ui, settings: &Settings, found: Vec<(Locator, Bytes)>) -> Result<ExitCode, CommandError> {
    let memory = open(settings)?;
    let mut changes = Vec::new();
    for (locator, bytes) in found {
        let expected = match block_on(memory.files().read(&locator)) {
            Ok(object) => Some(object.bytes),
            Err(error) if error.kind() == haversack::store::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        if expected.as_ref() != Some(&bytes) {
            changes.push(Change::Put { locator, expected, bytes: Some(bytes) });
        }
    }
    if changes.is_empty() {
        ui.note("There is nothing to bring back. See what happened: haversack log");
        return Ok(ExitCode::from(1));
    }
    let (mut failed, count) = (Vec::new(), changes.len());
    // A file that has no place does not keep the others from coming back.
    while !changes.is_empty()
        && let Err(error) = block_on(memory.batch(&changes))
    {
        match error.change().filter(|number| *number < changes.len() && count > 1) {
            Some(number) => {
                changes.remove(number);
                failed.push(error);
            }
            None => return Err(error.into()),
        }
    }
    for change in &changes {
        if let Change::Put { locator, .. } = change {
            ui.note(format!("Restored {locator}"));
        }
    }
    for error in &failed {
        let why = CommandError::caused(Fault::User, error, None).in_one_line();
        ui.note(format!("Not restored: {why}"));
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    ui.note("Move away what is in the place of these files, then run the same command again.");
    Ok(ExitCode::from(1))
}
