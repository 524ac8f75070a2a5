//! The machines of a store.

use std::collections::{BTreeMap, BTreeSet};

use haversack::ids::Timestamp;
use haversack::store::{BackendExt, Locator, block_on};
use haversack_system::Backoff;

use super::history::HistoryInShort;
use crate::error::CommandError;
use crate::home::Home;
use crate::home::history::{Enough, HistoryReader, Log};
use crate::home::store::{open, open_to_look};
use crate::settings::Settings;

/// The file of the store that names the machines that are gone; it syncs and merges like every set.
const REMOVED: &str = "state/removed_devices.set";

/// A machine of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: String,
    /// The time of its newest change; `None` if it has not written yet.
    pub(crate) last_change: Option<Timestamp>,
    pub(crate) is_this_one: bool,
}

/// Returns the machines of the store; asks the remote for older changes.
pub(crate) fn devices(settings: &Settings) -> Result<Vec<Device>, CommandError> {
    let home = Home::open(settings)?;
    let patience = Backoff::new();
    devices_in(settings, &mut HistoryReader::open(settings, &home, &patience)?)
}

/// Returns the machines of the store that this machine's own archive names; asks the remote nothing.
pub(super) fn known_devices(settings: &Settings, home: &Home) -> Result<Vec<Device>, CommandError> {
    let patience = Backoff::new();
    devices_in(settings, &mut HistoryReader::at_hand(settings, home, &patience)?)
}

/// Returns the machines of the store that some changes name.
pub(crate) fn devices_among(
    settings: &Settings,
    history: &HistoryInShort,
) -> Result<Vec<Device>, CommandError> {
    let mut seen: BTreeMap<String, Timestamp> = BTreeMap::new();
    for change in history.changes.iter().filter(|change| change.number.log == Log::Store) {
        seen.entry(change.device.clone()).or_insert(change.time);
    }
    in_order(settings, seen, history.device.clone())
}

/// Takes a machine off the list. Its files and its history stay.
pub(crate) fn remove_device(settings: &Settings, name: &str) -> Result<Device, CommandError> {
    let devices = devices(settings)?;
    let Some(device) = devices.into_iter().find(|device| device.name == name) else {
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
    block_on(open(settings)?.append(&removed_devices(), format!("{name}\n")))?;
    Ok(device)
}

/// Returns the machines, this one first, then by their last change.
fn devices_in(settings: &Settings, history: &mut HistoryReader<'_>) -> Result<Vec<Device>, CommandError> {
    let mut seen: BTreeMap<String, Timestamp> = BTreeMap::new();
    history.each(|change| {
        if change.number.log == Log::Store {
            seen.entry(change.device.clone()).or_insert(change.time);
        }
        Enough::No
    })?;
    in_order(settings, seen, history.device.clone())
}

/// Returns machines with the times of their newest changes, this one first, without those that were taken off the list.
fn in_order(
    settings: &Settings,
    seen: BTreeMap<String, Timestamp>,
    this: Option<String>,
) -> Result<Vec<Device>, CommandError> {
    let removed = removed(settings)?;
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

fn removed_devices() -> Locator {
    Locator::parse(REMOVED).expect("a plain name")
}

fn removed(settings: &Settings) -> Result<BTreeSet<String>, CommandError> {
    let text = block_on(open_to_look(settings)?.files().read_text(&removed_devices()))?.unwrap_or_default();
    Ok(text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
