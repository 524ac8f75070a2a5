//! `haversack rename`: another name for a file or directory.

use std::process::ExitCode;

use clap::Args;
use haversack::store::block_on;
use serde_json::json;

use crate::error::CommandError;
use crate::home::store::open;
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::Ui;

/// Move a file or directory to a name that is free
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// The file or directory
    old: String,

    /// The new path; missing directories are created
    new: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_rename(
    ui: &mut Ui,
    settings: &Settings,
    args: &RenameArgs,
) -> Result<ExitCode, CommandError> {
    let (from, to) = (locate(settings, &args.old)?, locate(settings, &args.new)?);
    block_on(open(settings)?.rename(&from, &to))?;
    if args.json {
        ui.json(&json!({ "old_path": from.as_str(), "new_path": to.as_str() }))?;
    } else {
        ui.note(format!("Renamed {from} to {to}"));
    }
    Ok(ExitCode::SUCCESS)
}
