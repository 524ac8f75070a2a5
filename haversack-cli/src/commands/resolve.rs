//! `haversack resolve`: what stays of a conflict.

use std::process::ExitCode;

use clap::Args;
use haversack::Resolved;
use haversack::conflict::{Conflict, Keep};
use serde_json::{Value as Json, json};

use super::conflicts::count;
use crate::app::conflicts::{Settled, resolve};
use crate::error::CommandError;
use crate::settings::Settings;
use crate::ui::Ui;

/// Settle a conflict by saying what stays
#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// The conflict: its letters, or its number in `haversack conflicts` as it is now
    conflict: String,

    /// What stays: a passage by its number, or both
    #[arg(long, value_name = "1|2|both", value_parser = parse_keep)]
    keep: Keep,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_keep(text: &str) -> Result<Keep, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(Keep::Passage(number)),
        _ if text == "both" => Ok(Keep::Both),
        _ => Err("it is neither the number of a passage nor \"both\"".to_owned()),
    }
}

pub(crate) fn cmd_resolve(
    ui: &mut Ui,
    settings: &Settings,
    args: &ResolveArgs,
) -> Result<ExitCode, CommandError> {
    let Settled { conflict, resolved: Resolved { renamed, kept }, left } =
        resolve(settings, &args.conflict, args.keep)?;
    let Conflict { id, locator, .. } = conflict;
    if args.json {
        let keep = match args.keep {
            Keep::Both => Json::from("both"),
            Keep::Passage(number) => Json::from(number),
        };
        let mut answer = json!({ "id": id, "path": locator.as_str(), "kept": keep, "left": left });
        if let Some(renamed) = &renamed {
            answer["renamed"] = json!(renamed.as_str());
        }
        ui.json(&answer)?;
    } else {
        let what = match (args.keep, &renamed) {
            (Keep::Passage(number), _) => format!("Kept {number} in {locator}"),
            (Keep::Both, None) => format!("Kept both in {locator}"),
            (Keep::Both, Some(renamed)) => format!("Kept both: {locator} and {renamed}"),
        };
        ui.note(what);
        ui.note(format!("{} left", count(left)));
    }
    for kept in kept {
        ui.note(format!("Another program saved in that moment; its text is kept as {kept}"));
    }
    Ok(ExitCode::SUCCESS)
}
