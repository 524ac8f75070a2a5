//! `haversack status`: is all well, and if not, what to do. The first line is the verdict.

use std::process::ExitCode;

use clap::Args;
use haversack::ids::Timestamp;
use serde_json::{Value, json};

use crate::app::status::{Extent, Status, status};
use crate::commands::version;
use crate::error::CommandError;
use crate::settings::Settings;
use crate::ui::{Ui, colors};

/// Show if all is well, and how to solve each problem
///
/// Exits with 0 if there is nothing for you to do, with 1 if there is something. Asks the remote nothing.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print one line, for a status bar
    #[arg(long, conflicts_with = "json")]
    line: bool,

    /// Name every file of a problem, not only the first ones
    #[arg(long)]
    all: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_status(
    ui: &mut Ui,
    settings: &Settings,
    args: &StatusArgs,
) -> Result<ExitCode, CommandError> {
    let status = status(settings, if args.all { Extent::All } else { Extent::Short })?;
    if args.json {
        ui.json(&to_json(&status))?;
    } else if args.line {
        ui.line(status.one_line())?;
    } else {
        if args.all {
            ui.page();
        }
        let (verdict, is_well) = (status.verdict(), status.problems.is_empty());
        ui.painted(&status.text(), |line| colors::status(line, &verdict, is_well))?;
    }
    Ok(if status.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Returns the state for programs.
fn to_json(status: &Status) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    let problems =
        status.problems.iter().map(|problem| json!({ "what": problem.what, "cure": problem.cure }));
    let devices = status.devices.iter().map(|device| {
            json!({ "name": device.name, "last_change": time(device.last_change), "is_this_one": device.is_this_one })
        });
    let waits = status.waits.iter().map(|wait| json!({ "path": wait.path, "until": wait.until.to_string() }));
    json!({
        "version": version::VERSION,
        "schema": version::schema(),
        "verdict": status.verdict(),
        "problems": problems.collect::<Vec<_>>(),
        "remote": status.remote,
        "kept_local": status.is_kept_local,
        "last_contact": time(status.reached),
        "failing_since": time(status.failing_since),
        "next_try": time(status.next_try),
        "files": status.files,
        "waiting": status.waiting,
        "unfetched": status.unfetched,
        "left_alone": status.left_alone,
        "unknown": status.unknown,
        "without_commit": status.without_commit,
        "arriving": status.arriving,
        "waits": waits.collect::<Vec<_>>(),
        "unfinished": status.is_underway,
        "index": status.index, "model": status.model,
        "devices": devices.collect::<Vec<_>>(),
        "tidy": status.tidy,
    })
}
