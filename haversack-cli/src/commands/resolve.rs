//! `haversack resolve`: what stays of a conflict.

use std::process::ExitCode;

use clap::Args;
use haversack::conflict::{Conflict, Keep};
use haversack::store::{Locator, block_on};
use haversack::{Conflicts, Resolved};
use serde_json::{Value as Json, json};

use super::conflicts::count;
use crate::error::CommandError;
use crate::home::store::{open, open_to_look};
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
    let root = Locator::root();
    let Conflicts { found, unread } = block_on(open_to_look(settings)?.conflicts(&root))?;
    let conflict = match (named(&found, &args.conflict), unread.into_iter().next()) {
        // It may be there.
        (Err(_), Some(unread)) => return Err(unread.into()),
        (conflict, _) => conflict?,
    };
    let memory = open(settings)?;
    let Resolved { renamed, kept } = block_on(memory.resolve(conflict, args.keep))?;
    let left = block_on(memory.conflicts(&root))?.found.len();
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

/// Returns the conflict that a user names.
fn named<'c>(conflicts: &'c [Conflict], name: &str) -> Result<&'c Conflict, CommandError> {
    let by_number = name.parse::<usize>().ok().and_then(|number| conflicts.get(number.checked_sub(1)?));
    let mut by_id = conflicts.iter().filter(|conflict| conflict.id == name);
    match (by_number.or(by_id.next()), by_id.next()) {
        (Some(conflict), None) => Ok(conflict),
        (_, Some(_)) => Err(CommandError::user(
            format!("there are two conflicts {name}"),
            "Name it by its number: haversack conflicts",
        )),
        (None, None) => Err(CommandError::user(
            format!("there is no conflict {name}, or its passages are not what they were"),
            "See what there is now: haversack conflicts",
        )),
    }
}
