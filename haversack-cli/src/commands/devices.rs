//! `haversack devices`: the machines of a store.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::clock::Clock;
use haversack::ids::Timestamp;
use haversack::store::{BackendExt, Locator, block_on};
use serde_json::json;

use crate::error::CommandError;
use crate::home::Home;
use crate::home::history::{Enough, Past};
use crate::home::store::{open, open_to_look};
use crate::settings::{Settings, flags};
use crate::system::{SystemClock, Timed};
use crate::ui::Ui;
use crate::ui::moments::ago;

/// The file of the store that names the machines that are gone; it syncs and merges like every set.
const REMOVED: &str = "state/removed_devices.set";

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
    /// Take a machine off the list, because it is lost or gone; what it wrote stays
    Remove {
        /// Its name
        name: String,
    },
}

/// A machine, and when it last wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) last_change: Option<Timestamp>,
    pub(crate) is_this_one: bool,
}

pub(crate) fn cmd_devices(
    ui: &mut Ui,
    settings: &Settings,
    args: &DevicesArgs,
) -> Result<ExitCode, CommandError> {
    let home = Home::open(settings)?;
    let patience = Timed::for_at_most(None);
    let mut past = Past::open(settings, &home, &patience)?;
    let devices = devices(settings, &mut past)?;
    if let Some(Action::Remove { name }) = &args.action {
        return remove(ui, settings, &devices, name);
    }
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

/// Returns the machines, this one first, then by their last change.
pub(crate) fn devices(settings: &Settings, past: &mut Past<'_>) -> Result<Vec<Device>, CommandError> {
    let removed = removed(settings)?;
    let mut seen: BTreeMap<String, Timestamp> = BTreeMap::new();
    past.each(|commit| {
        seen.entry(commit.device.clone()).or_insert(commit.time);
        Enough::No
    })?;
    let this = past.device.clone();
    let mut devices: Vec<Device> = seen
        .into_iter()
        .map(|(name, time)| Device {
            is_this_one: this.as_ref() == Some(&name),
            last_change: Some(time),
            name,
        })
        .filter(|device| device.is_this_one || !removed.contains(&device.name))
        .collect();
    if let Some(name) = this.filter(|name| !devices.iter().any(|device| device.name == *name)) {
        devices.push(Device { name, last_change: None, is_this_one: true });
    }
    devices.sort_by_key(|device| (!device.is_this_one, std::cmp::Reverse(device.last_change)));
    Ok(devices)
}

fn place() -> Locator {
    Locator::parse(REMOVED).expect("a plain name")
}

fn removed(settings: &Settings) -> Result<BTreeSet<String>, CommandError> {
    let text = block_on(open_to_look(settings)?.files().read_text(&place()))?.unwrap_or_default();
    Ok(text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn remove(
    ui: &mut Ui,
    settings: &Settings,
    devices: &[Device],
    name: &str,
) -> Result<ExitCode, CommandError> {
    let Some(device) = devices.iter().find(|device| device.name == name) else {
        return Err(CommandError::user(
            format!("there is no machine \"{name}\""),
            "See their names: haversack devices",
        ));
    };
    if device.is_this_one {
        return Err(CommandError::user(
            "this is the machine you are on",
            "To stop syncing it: haversack remote remove",
        ));
    }
    block_on(open(settings)?.append(&place(), format!("{name}\n")))?;
    let last = device.last_change.map_or("never".to_owned(), |time| ago(SystemClock.now(), time));
    ui.note(format!(
        "{name} is off the list. Its last change came {last}; what it wrote after that is only on it.\n\
         If it is lost, it can still reach the remote: take its access away there."
    ));
    Ok(ExitCode::SUCCESS)
}
