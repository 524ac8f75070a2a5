//! `haversack diff`: what a change did, or what waits to be sent.

use std::process::ExitCode;

use clap::Args;

use crate::app::history::{Difference, differences};
use crate::error::CommandError;
use crate::home::history::ChangeNumber;
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::{Ui, colors};

/// Show the changes that wait to be sent, or one change
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The change, by its number in `haversack log` (12, local-3), or only this file or directory, or both
    #[arg(value_name = "NUMBER|PATH", num_args = 0..=2)]
    wanted: Vec<String>,

    /// Show this change: its number in `haversack log`
    #[arg(long, value_name = "NUMBER")]
    at: Option<ChangeNumber>,
}

pub(crate) fn cmd_diff(ui: &mut Ui, settings: &Settings, args: &DiffArgs) -> Result<ExitCode, CommandError> {
    let (number, path) = read(args)?;
    let differences = differences(settings, &locate(settings, path)?, number)?;
    let shown: String = differences.iter().map(Difference::unified).collect();
    ui.page();
    ui.painted_bytes(shown.as_bytes(), colors::diff)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the change and the place that the arguments name. A text that reads as a number is a change; a file of that name is `/memories/12`.
fn read(args: &DiffArgs) -> Result<(Option<ChangeNumber>, &str), CommandError> {
    let mut number = args.at;
    let mut path = None;
    for text in &args.wanted {
        match text.parse::<ChangeNumber>() {
            Ok(parsed) if number.is_none() => number = Some(parsed),
            _ if path.is_none() => path = Some(text.as_str()),
            _ => {
                let message = format!("diff takes one change and one place, and {text} is one too many");
                return Err(CommandError::user(message, "haversack diff NUMBER PATH"));
            }
        }
    }
    Ok((number, path.unwrap_or_default()))
}
