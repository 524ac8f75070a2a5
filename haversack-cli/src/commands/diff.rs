//! `haversack diff`: what a change did, or what waits to be sent.

use std::process::ExitCode;

use clap::Args;
use haversack::store::Locator;

use crate::app::history::{Difference, differences, history};
use crate::error::CommandError;
use crate::home::history::ChangeNumber;
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::paths::quoted;
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
    let within = locate(settings, path)?;
    let differences = differences(settings, &within, number)?;
    if differences.is_empty() {
        ui.note(nothing(settings, within, path, number)?);
        return Ok(ExitCode::SUCCESS);
    }
    let shown: String = differences.iter().map(Difference::unified).collect();
    ui.page();
    ui.painted_bytes(shown.as_bytes(), colors::diff)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a sentence about a difference that is empty, with the command that shows the last change.
fn nothing(
    settings: &Settings,
    within: Locator,
    path: &str,
    number: Option<ChangeNumber>,
) -> Result<String, CommandError> {
    let place = if path.is_empty() { String::new() } else { format!(" {}", quoted(path)) };
    if let Some(number) = number {
        return Ok(format!("Change {number} did not change{place}. See its files: haversack log {number}"));
    }
    Ok(match history(settings, within, 1)?.commits.first() {
        Some(last) => {
            format!("Nothing waits to be sent. See the last change: haversack diff {}{place}", last.number)
        }
        None => "Nothing waits to be sent, and the history is empty.".to_owned(),
    })
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
