//! `haversack append`: more at the end of a file.

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

/// Add to the end of a file, making it if need be
#[derive(Debug, Args)]
pub(crate) struct AppendArgs {
    /// The file
    path: String,

    /// The added text, taken literally; stdin if left out
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_append(
    ui: &mut Ui,
    settings: &Settings,
    args: &AppendArgs,
) -> Result<ExitCode, CommandError> {
    let locator = locate(settings, &args.path)?;
    let content = content(args.text.as_deref())?;
    let added = content.len() as u64;
    let offset = block_on(open(settings)?.append(&locator, content))?;
    if args.json {
        ui.json(&json!({ "path": locator.as_str(), "size_bytes": offset + added }))?;
    } else {
        ui.note(format!("Added {added} bytes to {locator}"));
    }
    super::tell_overflow(ui, settings, &locator)?;
    Ok(ExitCode::SUCCESS)
}
