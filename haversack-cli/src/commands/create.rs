//! `haversack create`: a new file.

use std::process::ExitCode;

use clap::Args;
use haversack::store::Locator;
use serde_json::json;

use super::content::content;
use crate::app::create::{self, Created};
use crate::error::CommandError;
use crate::settings::Settings;
use crate::ui::Ui;

/// Make a new file
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// The file; directories on the way are made. A bare name in a checkout belongs to that project
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
    let place = create::place(settings, &args.path)?;
    let created = create::create(settings, &place, content(args.text.as_deref())?)?;
    let locator = &place.locator;
    if args.json {
        ui.json(&json!({ "path": locator.as_str(), "version": created.version }))?;
    } else {
        ui.note(told(locator, &created));
    }
    match created.is_indexed {
        true => super::tell_index_overflow(ui, settings, locator)?,
        false => super::tell_overflow(ui, settings, locator)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the message about a file that was made.
pub(super) fn told(locator: &Locator, created: &Created) -> String {
    match created.is_indexed {
        true => format!("Created {locator}, with its line in MEMORY.md"),
        false => format!("Created {locator}"),
    }
}
