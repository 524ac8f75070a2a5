//! `haversack schedule`: entries for cron, systemd and launchd.

use std::process::ExitCode;

use clap::Args;

use crate::app::schedule::{self, Install, Scheduler};
use crate::app::tidy::note_schedule;
use crate::error::CommandError;
use crate::settings::Settings;
use crate::ui::Ui;

/// Print entries for the system's scheduler: tidy once a day, sync every quarter of an hour
///
/// Agents that are set up sync by themselves. This is for machines on which no agent runs for days.
#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// The scheduler; the one of this system if left out
    scheduler: Option<Scheduler>,

    /// Write the entries
    #[arg(long)]
    install: bool,

    /// Remove the entries
    #[arg(long, conflicts_with = "install")]
    remove: bool,
}

pub(crate) fn cmd_schedule(
    ui: &mut Ui,
    settings: &Settings,
    args: &ScheduleArgs,
) -> Result<ExitCode, CommandError> {
    let scheduler = args.scheduler.unwrap_or_else(schedule::usual);
    let [on, off] = schedule::switches(scheduler);
    if !args.install && !args.remove {
        for file in schedule::files(settings, scheduler)? {
            if !file.name.is_empty() {
                ui.line(format!("# ~/{}", file.name))?;
            }
            ui.text(&file.text)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (install, done, switch) = match args.install {
        true => (Install::Write, "Wrote", on),
        false => (Install::Remove, "Removed the entries from", off),
    };
    for place in schedule::install(settings, scheduler, install)? {
        ui.note(format!("{done} {place}"));
    }
    note_schedule(settings, install)?;
    if !switch.is_empty() {
        ui.note(format!("To switch them {}: {switch}", if args.install { "on" } else { "off now" }));
    }
    Ok(ExitCode::SUCCESS)
}
