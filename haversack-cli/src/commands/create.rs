//! `haversack create`: a new file.

use std::process::ExitCode;

use clap::Args;
use haversack::store::block_on;
use serde_json::json;

use super::content::content;
use crate::error::CommandError;
use crate::home::store::open;
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::Ui;

/// Make a new file
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// The file; directories on the way are made
    path: String,

    /// Its text, taken as it is; stdin if left out
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_create(
    ui: &mut Ui,
    settings: &Settings,
    args: &CreateArgs,
) -> Result<ExitCode, CommandError> {
    let locator = locate(settings, &args.path)?;
    let content = content(args.text.as_deref())?;
    let version = block_on(open(settings)?.create(&locator, content))?;
    if args.json {
        ui.json(&json!({ "path": locator.as_str(), "version": version.as_str() }))?;
    } else {
        ui.note(format!("Created {locator}"));
    }
    Ok(ExitCode::SUCCESS)
}
