//! `haversack restore`: brings a file back as it once was, or deleted files.

use std::process::ExitCode;

use clap::Args;

use crate::app::restore::{Restored, Version, Written, restore};
use crate::error::CommandError;
use crate::home::history::ChangeNumber;
use crate::projects::names::locate;
use crate::settings::Settings;
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
    let version = match args.at {
        Some(number) => Version::After(number),
        None if args.deleted => Version::Deleted,
        None => Version::Previous,
    };
    let Restored { kept, written } = restore(settings, &locate(settings, &args.path)?, version)?;
    for locator in &kept {
        ui.note(format!("Kept {locator}: the next sync sends it again"));
    }
    match written {
        Some(written) => Ok(tell(ui, &written?)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Prints which files are back, and returns the exit code.
fn tell(ui: &mut Ui, written: &Written) -> ExitCode {
    let Written { files, failed, deletion, is_incomplete } = written;
    if *is_incomplete {
        ui.note("Older changes are in the remote, which cannot be reached.");
    }
    for locator in files {
        ui.note(format!("Restored {locator}"));
    }
    for why in failed {
        ui.note(format!("Not restored: {why}"));
    }
    if files.is_empty() && failed.is_empty() {
        ui.note("There is nothing to restore. See the changes: haversack log");
    } else if !failed.is_empty() {
        ui.note("Move the files or directories in their places away, then run the same command again.");
    }
    if let Some((number, device)) = deletion {
        ui.note(format!(
            "{device} deleted this (change {number}). To restore the deletion before this one, run the same command again."
        ));
    }
    if files.is_empty() || !failed.is_empty() { ExitCode::from(1) } else { ExitCode::SUCCESS }
}
