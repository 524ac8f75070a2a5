//! `haversack log`: who wrote what, on which machine, when and why.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::app::history::{INCOMPLETE, change_details, change_name, history};
use crate::error::CommandError;
use crate::home::history::{ChangeNumber, Log, NumberedChange, Waiting};
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::moments::parse_count;
use crate::ui::{Ui, colors};

/// Show who wrote what, on which machine, when and why
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Only changes of this file or directory; or a change by its number, as 12 or local-3, with all its files
    #[arg(default_value = "", value_name = "PATH|NUMBER")]
    target: String,

    /// The number of changes
    #[arg(long, short = 'n', default_value_t = 20, value_parser = parse_count)]
    count: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_log(ui: &mut Ui, settings: &Settings, args: &LogArgs) -> Result<ExitCode, CommandError> {
    // `/memories/12` names a file that is called 12.
    if let Ok(number) = args.target.parse::<ChangeNumber>() {
        let details = change_details(settings, number)?;
        match args.json {
            true => ui.json(&to_json(&details.change))?,
            false => {
                ui.page();
                ui.painted(&details.text(), colors::log)?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let history = history(settings, locate(settings, &args.target)?, args.count)?;
    if args.json {
        let waiting = history.waiting.iter().map(waiting_to_json).collect::<Vec<_>>();
        let commits = history.commits.iter().map(to_json).collect::<Vec<_>>();
        ui.json(&json!({ "waiting": waiting, "changes": commits, "all_at_hand": history.is_complete }))?;
        return Ok(ExitCode::SUCCESS);
    }
    ui.page();
    ui.painted(&history.text(), colors::log)?;
    if !history.is_complete {
        ui.note(INCOMPLETE);
    }
    Ok(ExitCode::SUCCESS)
}

fn waiting_to_json(file: &Waiting) -> Value {
    json!({ "path": file.locator.as_str(), "what": file.change_name() })
}

fn to_json(commit: &NumberedChange) -> Value {
    let changes = commit.changes.iter().map(|change| {
        let size = change.what.after().map(|content| content.size);
        json!({ "path": change.locator.as_str(), "what": change_name(&change.what), "size_bytes": size })
    });
    json!({
        "number": match commit.number {
            ChangeNumber { log: Log::Store, number } => json!(number),
            local => json!(local.to_string()),
        },
        "id": commit.id.to_string(),
        "time": commit.time.to_string(),
        "device": commit.device,
        "agent": commit.agent,
        "session": commit.session,
        "cause": commit.cause,
        "files": changes.collect::<Vec<_>>(),
    })
}
