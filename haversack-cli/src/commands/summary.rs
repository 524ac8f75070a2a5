//! `haversack summary`: a day in short.

use std::process::ExitCode;

use clap::Args;
use haversack::summary::{DaySummary, SummaryEntry, data_of, page_of};
use serde_json::json;

use crate::app::summary::{parse_day, summarize};
use crate::error::CommandError;
use crate::home::store::open;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::counted;

/// Sum up a day of the interaction log: what needs you, what was handled, what to know
///
/// Writes summaries/DAY.json and a page for the browser, summaries/DAY.html. Running it again changes nothing unless the day went on.
#[derive(Debug, Args)]
pub(crate) struct SummaryArgs {
    /// The day, as 2026-11-18, today or yesterday
    #[arg(long, default_value = "today")]
    day: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_summary(
    ui: &mut Ui,
    settings: &Settings,
    args: &SummaryArgs,
) -> Result<ExitCode, CommandError> {
    let day = parse_day(settings, &args.day)?;
    let made = summarize(settings, &open(settings)?, day)?;
    if !made.unread.is_empty() {
        let lines: Vec<String> = made.unread.iter().take(5).map(ToString::to_string).collect();
        let more = if made.unread.len() > 5 { ", …" } else { "" };
        let are = if made.unread.len() == 1 { "is no event and was" } else { "are no events and were" };
        ui.note(format!(
            "{} of interactions/{day}.jsonl {are} passed over: {}{more}",
            counted(made.unread.len(), "line"),
            lines.join(", ")
        ));
    }
    if args.json {
        let (data, page) = (data_of(day).to_string(), page_of(day).to_string());
        ui.json(&json!({
            "day": day.to_string(),
            "summary": made.summary,
            "written": made.is_written,
            "unread_lines": made.unread,
            "files": made.summary.as_ref().map(|_| [data, page]),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(summary) = made.summary else {
        ui.note(format!("Nothing was said on {day}, so there is nothing to sum up."));
        return Ok(ExitCode::SUCCESS);
    };
    write(ui, &summary)?;
    let done = if made.is_written { "Written to" } else { "Unchanged:" };
    ui.note(format!("{done} {}, and as a page {}", data_of(day), page_of(day)));
    Ok(ExitCode::SUCCESS)
}

fn write(ui: &mut Ui, summary: &DaySummary) -> Result<(), CommandError> {
    ui.line(&summary.day)?;
    for (title, entries) in
        [("Needs you", &summary.needs_you), ("Handled", &summary.handled), ("Heads up", &summary.heads_up)]
    {
        ui.line(format!("\n{title} ({})", entries.len()))?;
        if entries.is_empty() {
            ui.line("  —")?;
        }
        for SummaryEntry { id: _, time, channel, who, summary } in entries {
            let who = if who.is_empty() { "—" } else { who };
            ui.quote(&format!("  {time}  {who} ({channel}): {summary}\n"))?;
        }
    }
    Ok(())
}
