//! `haversack conflicts`: what two devices wrote in the same place, side by side.

use std::process::ExitCode;

use clap::Args;
use haversack::Error;
use haversack::conflict::{Conflict, Lines, Passage};
use serde_json::{Value as Json, json};

use crate::app::conflicts::{Origin, TracedConflict, traced};
use crate::error::CommandError;
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::wrap::wrapped;
use crate::ui::{Ui, colors};

/// The narrowest column that a passage is shown in beside another.
const MIN_COLUMN: usize = 30;

/// The margin left of every passage.
const MARGIN: &str = "   ";

/// Show passages that two machines changed differently, with machine, agent and time
#[derive(Debug, Args)]
pub(crate) struct ConflictsArgs {
    /// The file or directory; the whole memory if left out
    #[arg(default_value = "")]
    path: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_conflicts(
    ui: &mut Ui,
    settings: &Settings,
    args: &ConflictsArgs,
) -> Result<ExitCode, CommandError> {
    ui.page();
    let (found, unread) = traced(settings, &locate(settings, &args.path)?)?;
    if args.json {
        let all: Vec<Json> = found.iter().zip(1_usize..).map(as_json).collect();
        let unread: Vec<Json> = unread.iter().map(unread_as_json).collect();
        ui.json(&json!({ "conflicts": all, "unread": unread }))?;
    } else {
        for (conflict, number) in found.iter().zip(1_usize..) {
            write(ui, conflict, number)?;
        }
        for error in unread.iter().skip(1) {
            ui.note(format!("{} could not be looked at", error.locator()));
        }
        ui.note(count(found.len()));
        if let Some(first) = found.first() {
            ui.note(format!("Hint: Resolve the first one: haversack resolve {} --keep 1", first.conflict.id));
        }
    }
    // That nothing was found there says nothing.
    unread.into_iter().next().map_or(Ok(ExitCode::SUCCESS), |error| Err(error.into()))
}

fn unread_as_json(error: &Error) -> Json {
    json!({ "path": error.locator().as_str(), "why": error.to_string() })
}

/// Returns how many conflicts there are, in words.
pub(super) fn count(conflicts: usize) -> String {
    match conflicts {
        0 => "No conflicts".to_owned(),
        1 => "1 conflict".to_owned(),
        more => format!("{more} conflicts"),
    }
}

/// Shows a conflict, its passages side by side if there is room.
pub(super) fn write(ui: &mut Ui, traced: &TracedConflict, number: usize) -> Result<(), CommandError> {
    let Conflict { id, passages, .. } = &traced.conflict;
    ui.painted(&format!("{number}  {id}  {}\n", traced.place()), colors::conflict)?;
    let (titles, bodies) = (traced.titles(), traced.bodies());
    // A bar and a space at each side of it.
    let taken = MARGIN.len() + 3 * (passages.len() - 1);
    let column = ui.width().map(|width| width.saturating_sub(taken) / passages.len());
    match column.filter(|column| *column >= MIN_COLUMN) {
        Some(column) => {
            let cells: Vec<Vec<String>> = titles
                .iter()
                .zip(&bodies)
                .map(|(title, body)| [wrapped(title, column), wrapped(body, column)].concat())
                .collect();
            let rows = cells.iter().map(Vec::len).max().unwrap_or(0);
            for row in 0..rows {
                let cell =
                    |cells: &Vec<String>| format!("{:<column$}", cells.get(row).map_or("", String::as_str));
                let line = cells.iter().map(cell).collect::<Vec<_>>().join(" │ ");
                ui.quote(&format!("{}\n", format!("{MARGIN}{line}").trim_end()))?;
            }
        }
        None => {
            for line in traced.text().lines().skip(1) {
                ui.quote(&format!("{line}\n"))?;
            }
        }
    }
    ui.line("")
}

fn as_json((traced, number): (&TracedConflict, usize)) -> Json {
    let TracedConflict { conflict, origins } = traced;
    let pair = |lines: Option<Lines>| lines.map(|Lines { first, last }| json!([first, last]));
    let passages: Vec<Json> = conflict
        .passages
        .iter()
        .zip(origins)
        .zip(1_usize..)
        .map(|((passage, origin), keep)| {
            let Passage { device, lines, text } = passage;
            let mut shown = json!({ "keep": keep, "device": device, "lines": pair(*lines), "text": text });
            if let Some(Origin { device, agent, time }) = origin {
                shown["device"] = json!(device);
                shown["agent"] = json!(agent);
                shown["time"] = json!(time.to_string());
            }
            shown
        })
        .collect();
    let mut answer = json!({
        "number": number,
        "id": conflict.id,
        "path": conflict.locator.as_str(),
        "lines": pair(traced.lines()),
        "passages": passages,
    });
    if let Some(copy) = &conflict.copy {
        answer["copy"] = json!({
            "path": copy.locator.as_str(),
            "size_bytes": copy.size_bytes,
            "original_bytes": copy.original_bytes,
        });
    }
    answer
}
