//! `haversack str-replace`: one passage for another.

use std::process::ExitCode;

use clap::Args;
use haversack::store::block_on;

use super::content::text;
use crate::error::CommandError;
use crate::home::store::open;
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::Ui;

/// Replace a text that occurs exactly once in a file
#[derive(Debug, Args)]
pub(crate) struct StrReplaceArgs {
    /// The file
    path: String,

    /// The old text, taken literally
    #[arg(allow_hyphen_values = true)]
    old: String,

    /// The new text, taken literally; stdin if left out
    #[arg(allow_hyphen_values = true)]
    new: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_str_replace(
    ui: &mut Ui,
    settings: &Settings,
    args: &StrReplaceArgs,
) -> Result<ExitCode, CommandError> {
    let locator = locate(settings, &args.path)?;
    let new = text(args.new.as_deref())?;
    let edited = block_on(open(settings)?.str_replace(&locator, &args.old, &new))?;
    super::tell_edited(ui, &locator, &edited, args.json)
}
