//! `haversack resolve`: what stays of a conflict.

use std::process::ExitCode;

use clap::Args;
use haversack::conflict::Keep;
use haversack::store::Locator;
use serde_json::{Value as Json, json};

use super::conflicts::{count, write};
use crate::app::conflicts::{Settled, find, parse_keep, resolve, settle, traced};
use crate::error::CommandError;
use crate::settings::Settings;
use crate::ui::Ui;

/// Resolve a conflict: choose the passage that stays
///
/// On a terminal, without `--keep`, you see each conflict and choose.
#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// The conflict: its letters, or its number in `haversack conflicts` as it is now; every conflict if left out
    conflict: Option<String>,

    /// The passage that stays, by its number, or both
    #[arg(long, value_name = "1|2|both", value_parser = parse_keep, requires = "conflict")]
    keep: Option<Keep>,

    /// Print JSON
    #[arg(long, requires = "keep")]
    json: bool,
}

pub(crate) fn cmd_resolve(
    ui: &mut Ui,
    settings: &Settings,
    args: &ResolveArgs,
) -> Result<ExitCode, CommandError> {
    let (Some(name), Some(keep)) = (&args.conflict, args.keep) else {
        return choose(ui, settings, args.conflict.as_deref());
    };
    let settled = resolve(settings, name, keep)?;
    if args.json {
        let Settled { conflict, resolved, left } = &settled;
        let kept = match keep {
            Keep::Both => Json::from("both"),
            Keep::Passage(number) => Json::from(number),
        };
        let mut answer =
            json!({ "id": conflict.id, "path": conflict.locator.as_str(), "kept": kept, "left": left });
        if let Some(renamed) = &resolved.renamed {
            answer["renamed"] = json!(renamed.as_str());
        }
        ui.json(&answer)?;
    } else {
        ui.note(settled.text(keep));
        ui.note(format!("{} left", count(settled.left)));
    }
    tell_kept(ui, &settled);
    Ok(ExitCode::SUCCESS)
}

fn tell_kept(ui: &mut Ui, settled: &Settled) {
    for kept in &settled.resolved.kept {
        ui.note(format!("Another program saved in that moment; its text is kept as {kept}"));
    }
}

/// Shows the conflicts one by one and asks which passage stays.
fn choose(ui: &mut Ui, settings: &Settings, name: Option<&str>) -> Result<ExitCode, CommandError> {
    if !ui.can_ask() {
        return Err(CommandError::user(
            "say which passage stays: this is not a terminal, so we cannot ask you",
            "See the conflicts: haversack conflicts. Then, for example: haversack resolve CONFLICT --keep 1",
        ));
    }
    let wanted = name.map(|name| find(settings, name)).transpose()?;
    let (all, unread) = traced(settings, &Locator::root())?;
    let mut settled_count = 0;
    let mut left = all.len();
    for (traced, number) in all.into_iter().zip(1_usize..) {
        if wanted.as_ref().is_some_and(|wanted| wanted.id != traced.conflict.id) {
            continue;
        }
        write(ui, &traced, number)?;
        let passages = traced.conflict.passages.len();
        match answer(ui, passages)? {
            Choice::Keep(keep) => {
                let settled = settle(settings, traced.conflict, keep)?;
                ui.note(settled.text(keep));
                tell_kept(ui, &settled);
                (settled_count, left) = (settled_count + 1, settled.left);
            }
            Choice::Skip => {}
            Choice::Quit => break,
        }
    }
    ui.note(match settled_count {
        0 => format!("Nothing was changed. {} left", count(left)),
        _ => format!("{} left", count(left)),
    });
    unread.into_iter().next().map_or(Ok(ExitCode::SUCCESS), |error| Err(error.into()))
}

/// The user's choice for one conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Keep(Keep),
    Skip,
    Quit,
}

/// Asks until the user gives one of the offered answers. The end of the input is a no to everything that is left.
fn answer(ui: &mut Ui, passages: usize) -> Result<Choice, CommandError> {
    let numbers: Vec<String> = (1..=passages).map(|number| number.to_string()).collect();
    let question = format!("Keep {}, both, skip or quit?", numbers.join(", "));
    loop {
        let Some(line) = ui.prompt(&question)? else { return Ok(Choice::Quit) };
        if let Some(choice) = parse_choice(&line, passages) {
            return Ok(choice);
        }
    }
}

fn parse_choice(line: &str, passages: usize) -> Option<Choice> {
    match line.trim().to_lowercase().as_str() {
        "b" | "both" => Some(Choice::Keep(Keep::Both)),
        "s" | "skip" | "" => Some(Choice::Skip),
        "q" | "quit" => Some(Choice::Quit),
        number => {
            let number = number.parse().ok().filter(|number| (1..=passages).contains(number))?;
            Some(Choice::Keep(Keep::Passage(number)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_is_a_passage_or_a_word() {
        let cases = [
            ("2\n", Some(Choice::Keep(Keep::Passage(2)))),
            (" B ", Some(Choice::Keep(Keep::Both))),
            ("", Some(Choice::Skip)),
            ("quit", Some(Choice::Quit)),
            ("3", None),
            ("0", None),
            ("mine", None),
        ];
        for (line, choice) in cases {
            assert_eq!(parse_choice(line, 2), choice, "{line}");
        }
    }
}
