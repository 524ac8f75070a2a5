//! `haversack check`: whether every memory is as its kind wants it.

use std::process::ExitCode;

use clap::Args;
use haversack::kind::{Flaw, flaws, repaired};
use haversack::store::{BackendExt, Condition, Locator, block_on};
use haversack_recall::{Duplicate, PassageOf};
use serde_json::{Value, json};

use crate::app::stale::StaleFinding;
use crate::app::{recall, stale};
use crate::error::CommandError;
use crate::home::kinds::load;
use crate::home::store::{open, open_to_look};
use crate::projects::names::{Names, locate_existing};
use crate::settings::Settings;
use crate::ui::Ui;

/// Check that every memory is as its kind wants it; exits with 1 if something is left to do
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The file or directory; the whole memory if left out
    #[arg(default_value = "")]
    path: String,

    /// Fill in fields that follow from the files themselves
    #[arg(long)]
    fix: bool,

    /// Show passages of different memories that say nearly the same
    #[arg(long, conflicts_with = "fix")]
    duplicates: bool,

    /// Show what became wrong by itself: links to files that are gone, memories past their date, two memories of one name, citations of code that changed. Citations
    /// are checked inside the checkout of their project
    #[arg(long, conflicts_with = "fix")]
    stale: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The findings in a file.
struct Found {
    locator: Locator,
    flaw: Flaw,
    is_fixed: bool,
}

pub(crate) fn cmd_check(
    ui: &mut Ui,
    settings: &Settings,
    args: &CheckArgs,
) -> Result<ExitCode, CommandError> {
    let below = locate_existing(settings, &args.path)?;
    if args.duplicates || args.stale {
        return tell_findings(ui, settings, &below, args);
    }
    let kinds = load(settings)?;
    let memory = if args.fix { open(settings)? } else { open_to_look(settings)? };
    let looked: Result<(usize, Vec<Found>), CommandError> = block_on(async {
        let infos = match memory.files().scan_all(&below).await?.infos {
            infos if infos.is_empty() && !below.is_root() => vec![memory.files().info(&below).await?],
            infos => infos,
        };
        let mut all = Vec::new();
        for info in &infos {
            let object = memory.files().read(&info.locator).await?;
            let before = flaws(&kinds, &info.locator, &object.bytes);
            let mut left = before.clone();
            if let Some(bytes) = repaired(&kinds, &info.locator, &object.bytes).filter(|_| args.fix) {
                left = flaws(&kinds, &info.locator, &bytes);
                let condition = Condition::Matches(object.version);
                let _ = memory.files().write(&info.locator, bytes, condition).await?;
            }
            let locator = &info.locator;
            all.extend(before.into_iter().map(|flaw| {
                let is_fixed = !left.contains(&flaw);
                Found { locator: locator.clone(), flaw, is_fixed }
            }));
        }
        Ok((infos.len(), all))
    });
    let (files, found) = looked?;
    tell(ui, files, &found, args)?;
    let is_left = found.iter().any(|found| !found.is_fixed);
    Ok(if is_left { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Prints the near-duplicates that a recall from here could find, and what became wrong by itself, as far as they are asked for.
fn tell_findings(
    ui: &mut Ui,
    settings: &Settings,
    below: &Locator,
    args: &CheckArgs,
) -> Result<ExitCode, CommandError> {
    let alike = if args.duplicates { Some(recall::duplicates(settings, below)?) } else { None };
    let stale = if args.stale { Some(stale::stale(settings, below)?) } else { None };
    if args.json {
        let mut json = serde_json::Map::new();
        json.extend(alike.as_deref().map(|found| ("duplicates".to_owned(), duplicates_json(found))));
        json.extend(stale.as_deref().map(|found| ("stale".to_owned(), stale_json(found))));
        ui.json(&Value::Object(json))?;
    } else {
        alike.as_deref().map_or(Ok(()), |found| tell_duplicates(ui, settings, found))?;
        stale.as_deref().map_or(Ok(()), |found| tell_stale(ui, found))?;
    }
    let is_well = alike.is_none_or(|found| found.is_empty()) && stale.is_none_or(|found| found.is_empty());
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn duplicates_json(found: &[Duplicate]) -> Value {
    let place = |passage: &PassageOf| json!({ "path": passage.locator.as_str(), "lines": [passage.lines.0, passage.lines.1] });
    let pairs = found
        .iter()
        .map(|pair| json!({ "one": place(&pair.one), "other": place(&pair.other), "alike": pair.alike }));
    pairs.collect()
}

fn stale_json(found: &[StaleFinding]) -> Value {
    found.iter().map(|found| json!({ "path": found.locator.as_str(), "what": found.what })).collect()
}

fn tell_duplicates(ui: &mut Ui, settings: &Settings, found: &[Duplicate]) -> Result<(), CommandError> {
    let names = Names::of(settings)?;
    let place = |passage: &PassageOf| {
        format!("{}:{}-{}", names.show(&passage.locator), passage.lines.0, passage.lines.1)
    };
    for pair in found {
        ui.line(format!(
            "{}  {}  {:.0} % of the words are the same",
            place(&pair.one),
            place(&pair.other),
            100.0 * pair.alike
        ))?;
    }
    ui.note(count(found.len(), "pair of passages says", "pairs of passages say") + " nearly the same");
    Ok(())
}

fn tell_stale(ui: &mut Ui, found: &[StaleFinding]) -> Result<(), CommandError> {
    for found in found {
        ui.line(format!("{}: {}", found.locator, found.what))?;
    }
    ui.note(match found.len() {
        0 => "Nothing is stale.".to_owned(),
        some => count(some, "thing is stale.", "things are stale."),
    });
    Ok(())
}

fn tell(ui: &mut Ui, files: usize, found: &[Found], args: &CheckArgs) -> Result<(), CommandError> {
    if args.json {
        let flaws: Vec<_> = found
            .iter()
            .map(|Found { locator, flaw, is_fixed }| {
                json!({ "path": locator.as_str(), "flaw": flaw.to_string(), "fixed": is_fixed, "fixable": flaw.is_repaired() })
            })
            .collect();
        return ui.json(&json!({ "files": files, "flaws": flaws }));
    }
    for Found { locator, flaw, is_fixed } in found {
        ui.line(format!("{locator}: {flaw}{}", if *is_fixed { " (fixed)" } else { "" }))?;
    }
    let left = found.iter().filter(|found| !found.is_fixed).count();
    let fixable = found.iter().filter(|found| !found.is_fixed && found.flaw.is_repaired()).count();
    ui.note(format!("{}: {}", count(files, "file", "files"), count(left, "flaw", "flaws")));
    if fixable > 0 && !args.fix {
        ui.note(format!("Hint: To repair {fixable} of them: haversack check --fix"));
    }
    Ok(())
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
