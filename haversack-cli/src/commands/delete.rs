//! `haversack delete`: one file or directory less.

use std::process::ExitCode;

use clap::Args;
use haversack::Depth;
use haversack::store::block_on;
use serde_json::json;

use crate::error::CommandError;
use crate::home::store::open;
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::Ui;

/// Delete a file or an empty directory
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The file or directory
    path: String,

    /// Delete a directory with everything in it
    #[arg(long, short)]
    recursive: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_delete(
    ui: &mut Ui,
    settings: &Settings,
    args: &DeleteArgs,
) -> Result<ExitCode, CommandError> {
    let locator = locate(settings, &args.path)?;
    let depth = if args.recursive { Depth::Recursive } else { Depth::Single };
    block_on(open(settings)?.delete(&locator, depth))?;
    if args.json {
        ui.json(&json!({ "path": locator.as_str() }))?;
    } else {
        ui.note(format!("Deleted {locator}"));
    }
    Ok(ExitCode::SUCCESS)
}
