//! `haversack devices`: the machines of a store.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::clock::Clock;
use haversack_system::SystemClock;
use serde_json::json;

use crate::app::devices::{devices, remove_device};
use crate::error::CommandError;
use crate::settings::{Settings, flags};
use crate::ui::Ui;
use crate::ui::moments::ago;

/// Show the machines that write to this memory, or take one off the list
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct DevicesArgs {
    #[command(subcommand)]
    action: Option<Action>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Remove a machine from the list, because it is lost or gone; its changes stay
    Remove {
        /// Its name
        name: String,
    },
}

pub(crate) fn cmd_devices(
    ui: &mut Ui,
    settings: &Settings,
    args: &DevicesArgs,
) -> Result<ExitCode, CommandError> {
    if let Some(Action::Remove { name }) = &args.action {
        return remove(ui, settings, name);
    }
    let devices = devices(settings)?;
    let now = SystemClock.now();
    if args.json {
        let each = devices.iter().map(|device| {
            let last_change = device.last_change.map(|time| time.to_string());
            json!({ "name": device.name, "last_change": last_change, "is_this_one": device.is_this_one })
        });
        ui.json(&json!({ "devices": each.collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = vec![vec!["machine".to_owned(), "last change".to_owned()]];
    for device in &devices {
        let this = if device.is_this_one { " (this one)" } else { "" };
        let last = device.last_change.map_or("none yet".to_owned(), |time| ago(now, time));
        rows.push(vec![format!("{}{this}", device.name), last]);
    }
    ui.table(&rows)?;
    Ok(ExitCode::SUCCESS)
}

fn remove(ui: &mut Ui, settings: &Settings, name: &str) -> Result<ExitCode, CommandError> {
    let device = remove_device(settings, name)?;
    let last = device.last_change.map_or("never".to_owned(), |time| ago(SystemClock.now(), time));
    ui.note(format!(
        "{name} is off the list. Its last change came {last}; changes after that are only on that machine.\n\
         If the machine is lost, it can still reach the remote. Revoke its access there."
    ));
    Ok(ExitCode::SUCCESS)
}
