//! `haversack prune`: deletes old files of one kind.

use std::process::ExitCode;

use clap::Args;
use haversack::day::Day;
use serde_json::json;

use crate::app::prune::prune;
use crate::app::tidy::Mode;
use crate::error::CommandError;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::{counted, parse_span};

/// Delete the files of a kind that are older than a time; only says which, unless --yes
///
/// The age of a file is that of the day, week, month or year in its name. What is deleted can be brought back: haversack undo.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// The age, as 90d
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    older_than: i64,

    /// The kind: haversack kinds
    #[arg(long)]
    kind: String,

    /// Delete them
    #[arg(long)]
    yes: bool,

    /// The day that counts as today
    #[arg(long, value_name = "DAY", hide = true)]
    day: Option<Day>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The milliseconds of a day.
const DAY: i64 = 24 * 3600 * 1000;

pub(crate) fn cmd_prune(
    ui: &mut Ui,
    settings: &Settings,
    args: &PruneArgs,
) -> Result<ExitCode, CommandError> {
    let days = u32::try_from(args.older_than / DAY).unwrap_or(0);
    if days == 0 {
        return Err(CommandError::user(
            "prune needs an age of at least a day",
            "haversack prune --older-than 90d --kind session_digest",
        ));
    }
    let mode = if args.yes { Mode::Apply } else { Mode::DryRun };
    let pruned = prune(settings, &args.kind, days, args.day, mode)?;
    let files: Vec<&str> = pruned
        .plan
        .actions
        .iter()
        .flat_map(|action| &action.edits)
        .map(|edit| edit.locator.as_str())
        .collect();
    if args.json {
        let kept: Vec<_> = pruned
            .plan
            .kept
            .iter()
            .map(|kept| json!({ "path": kept.locator.as_str(), "why": kept.why }))
            .collect();
        ui.json(&json!({ "deleted": args.yes, "files": files, "kept": kept }))?;
        return Ok(ExitCode::SUCCESS);
    }
    ui.text(&pruned.text())?;
    let count = counted(files.len(), "file");
    match (args.yes, files.is_empty()) {
        (_, true) => ui.note(format!(
            "No file of the kind {} is older than {}.",
            args.kind,
            counted(usize::try_from(days).unwrap_or(usize::MAX), "day")
        )),
        (true, false) => ui.note(format!("Deleted {count}. To take it back: haversack undo")),
        (false, false) => ui.note(format!(
            "{count} would be deleted. Nothing was changed. To delete: the same command with --yes"
        )),
    }
    Ok(if pruned.applied.stopped.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
