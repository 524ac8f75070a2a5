//! `haversack index`: the index of a memory, and how much of it a session reads.

use std::process::ExitCode;

use clap::Args;
use haversack::index::{MAX_BYTES, MAX_LINES};
use serde_json::json;

use crate::app::index::{Reviewed, review, tidy};
use crate::error::CommandError;
use crate::home::store::{open, open_to_look};
use crate::projects::border::place_of_facts;
use crate::settings::Settings;
use crate::ui::Ui;

/// Show what sessions do not read of MEMORY.md, what it lists twice, and what is missing on either side
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    /// Put it in order: the memories that are used most on top, each listed once, and those that are not listed at the end
    #[arg(long)]
    tidy: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_index(
    ui: &mut Ui,
    settings: &Settings,
    args: &IndexArgs,
) -> Result<ExitCode, CommandError> {
    let place = place_of_facts(settings);
    let is_changed = if args.tidy { tidy(settings, &open(settings)?, &place)? } else { false };
    let Reviewed { file, review } = review(settings, &open_to_look(settings)?, &place)?;
    if args.json {
        ui.json(&json!({
            "file": file.as_str(),
            "changed": is_changed,
            "lines": review.lines,
            "bytes": review.bytes,
            "cut": review.cut,
            "doubled": review.doubled,
            "dead": review.dead,
            "unlisted": review.unlisted,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if is_changed {
        ui.note(format!("Put {file} in order."));
    }
    ui.line(format!("{file}: {} of {MAX_LINES} lines, {} of {MAX_BYTES} bytes", review.lines, review.bytes))?;
    for (title, lines) in [
        ("No session reads these lines", &review.cut),
        ("Listed more than once", &review.doubled),
        ("Listed, and not there", &review.dead),
        ("There, and not listed", &review.unlisted),
    ] {
        if !lines.is_empty() {
            ui.line(format!("\n{title} ({}):", lines.len()))?;
            lines.iter().take(SHOWN).try_for_each(|line| ui.quote(&format!("  {line}\n")))?;
            if lines.len() > SHOWN {
                ui.line(format!("  and {} more", lines.len() - SHOWN))?;
            }
        }
    }
    if !review.is_well() && !args.tidy {
        ui.note("To put it in order: haversack index --tidy");
    }
    Ok(ExitCode::SUCCESS)
}

/// The most lines of each sort that are shown.
const SHOWN: usize = 20;
