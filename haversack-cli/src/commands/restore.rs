//! `haversack restore`: a file as it once was.

use std::process::ExitCode;

use clap::Args;
use haversack::Change;
use haversack::ids::Position;
use haversack::store::{Bytes, Locator, block_on};

use crate::error::CommandError;
use crate::home::{self, Home};
use crate::past::{Enough, Past};
use crate::settings::Settings;
use crate::store::{locate, open};
use crate::system::Timed;
use crate::ui::Ui;

/// Bring a file back as it once was
///
/// It becomes a new version, which syncs like any edit. Exits with 1 if there is nothing to bring back.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The file, or a directory with all that was deleted in it
    #[arg(default_value = "")]
    path: String,

    /// As it was after this change: its number in `haversack log`
    #[arg(long, value_name = "NUMBER", conflicts_with = "deleted")]
    at: Option<u64>,

    /// Bring back everything that was deleted here and whose deletion was not sent yet, and send what other machines deleted and we kept
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
    let home = Home::open(settings)?;
    let mut past = Past::open(settings, &home, &patience)?;
    let found: Vec<(Locator, Bytes)> = if args.deleted {
        let waiting = past.waiting(&home)?.into_iter();
        let deleted = waiting.filter(|file| file.now.is_none() && file.locator.is_within(&locator));
        deleted.filter_map(|file| Some((file.locator, file.before?))).collect()
    } else if locator.is_root() {
        return Err(CommandError::user(
            "a file has to be named",
            "Name it, or bring back all deletions that were not sent: haversack restore --deleted",
        ));
    } else if let Some(number) = args.at {
        let position = past.commit(number)?.position;
        past.held(&locator, Some(position))?.map(|bytes| (locator.clone(), bytes)).into_iter().collect()
    } else {
        last_version(&mut past, &home, &locator)?.map(|bytes| (locator.clone(), bytes)).into_iter().collect()
    };
    let kept = if args.deleted { home::keep_held(settings, &home, &locator)? } else { Vec::new() };
    for locator in &kept {
        ui.note(format!("Kept {locator}: the next sync sends it again"));
    }
    if found.is_empty() && !kept.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    put(ui, settings, found)
}

/// Returns the newest content of a file that is not what is there now.
fn last_version(past: &mut Past<'_>, home: &Home, locator: &Locator) -> Result<Option<Bytes>, CommandError> {
    let waiting = past.waiting(home)?.into_iter().find(|file| file.locator == *locator);
    if let Some(before) = waiting.and_then(|file| file.before) {
        return Ok(Some(before));
    }
    let mut newest: Option<Position> = None;
    past.each(|commit| {
        let is_about = commit.changes.iter().any(|change| change.locator == *locator);
        if is_about {
            newest = Some(commit.position);
        }
        if is_about { Enough::Yes } else { Enough::No }
    })?;
    let before = newest.and_then(|position| position.number().checked_sub(1)).and_then(Position::new);
    past.held(locator, before)
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
    block_on(memory.batch(&changes))?;
    for change in &changes {
        if let Change::Put { locator, .. } = change {
            ui.note(format!("Restored {locator}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
