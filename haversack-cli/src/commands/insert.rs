//! `haversack insert`: lines in the middle of a file.

use std::process::ExitCode;

use clap::Args;
use haversack::Ending;
use haversack::store::block_on;

use super::content::text;
use crate::error::CommandError;
use crate::home::store::open;
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::parse_count;

/// Insert whole lines after a line of a file
#[derive(Debug, Args)]
pub(crate) struct InsertArgs {
    /// The file
    path: String,

    /// The line after which, counted from 1; 0 is the top
    #[arg(value_parser = parse_count)]
    line: usize,

    /// The lines, taken as they are; stdin if left out
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_insert(
    ui: &mut Ui,
    settings: &Settings,
    args: &InsertArgs,
) -> Result<ExitCode, CommandError> {
    let locator = locate(settings, &args.path)?;
    let text = text(args.text.as_deref())?;
    let edited = block_on(open(settings)?.insert(&locator, args.line, &text, Ending::Kept))?;
    super::tell_edited(ui, &locator, &edited, args.json)
}
