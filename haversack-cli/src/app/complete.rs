//! Values that a shell offers when the user presses the tab key: paths of memories, projects, kinds, machines, agents and settings.
//!
//! Everything is read from this machine. Nothing is made, and the remote is not asked.

use haversack::display::one_line;
use haversack::store::{EntryKind, block_on};
use haversack::{Memory, View};

use super::devices::known_devices;
use crate::agents::AGENTS;
use crate::error::CommandError;
use crate::home::store::{is_project_record, open_to_look};
use crate::home::{Home, kinds};
use crate::projects::names::{Names, holds_projects, locate};
use crate::settings::Settings;
use crate::settings::declarations::DECLARATIONS;

/// The most values that are offered at once.
const MAX_CANDIDATES: usize = 500;

/// The sort of value that an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Memory,
    Project,
    Kind,
    Machine,
    Agent,
    Setting,
}

/// Returns the values that begin with the typed text.
pub(crate) fn candidates(
    settings: &Settings,
    subject: Subject,
    typed: &str,
) -> Result<Vec<String>, CommandError> {
    let mut all = match subject {
        Subject::Memory => memories(settings, typed)?,
        Subject::Project => {
            let names = Names::of(settings)?;
            names.places().map(|place| names.show(&place)).collect()
        }
        Subject::Kind => kinds::load(settings)?.iter().map(|kind| kind.name.clone()).collect(),
        Subject::Machine => machines(settings)?,
        Subject::Agent => AGENTS.iter().map(|agent| agent.name().to_owned()).collect(),
        Subject::Setting => DECLARATIONS.iter().map(|declaration| declaration.key.to_owned()).collect(),
    };
    // Another machine chose the name. A shell prints it.
    all.retain(|name| name.starts_with(typed) && one_line(name) == *name);
    all.sort_unstable();
    all.dedup();
    all.truncate(MAX_CANDIDATES);
    Ok(all)
}

/// Returns the files and directories of the directory that the user typed so far.
fn memories(settings: &Settings, typed: &str) -> Result<Vec<String>, CommandError> {
    let directory = typed.rfind('/').map_or("", |slash| &typed[..=slash]);
    let memory = open_to_look(settings)?;
    let names = Names::of(settings)?;
    let place = locate(settings, directory)?;
    let mut found = entries(&memory, &place, |name| format!("{directory}{name}"));
    if place.is_root() {
        found.retain(|name| name != "state/" && !name.starts_with("claude_memory/"));
        found.extend(names.places().map(|project| format!("{directory}{}/", names.show(&project))));
    }
    Ok(found)
}

/// Returns the entries of a directory, with a slash after each directory. A place that is no directory has none.
fn entries(
    memory: &Memory,
    place: &haversack::store::Locator,
    spell: impl Fn(&str) -> String,
) -> Vec<String> {
    let Ok(View::Directory(listing)) = block_on(memory.view(place)) else { return Vec::new() };
    let shown = listing
        .entries
        .iter()
        .filter(|entry| !is_project_record(&entry.locator) && !holds_projects(&entry.locator));
    let names = shown.map(|entry| {
        let name = spell(entry.locator.name());
        if entry.kind == EntryKind::Directory { format!("{name}/") } else { name }
    });
    names.collect()
}

fn machines(settings: &Settings) -> Result<Vec<String>, CommandError> {
    if !settings.memory().exists() {
        return Ok(Vec::new());
    }
    let devices = known_devices(settings, &Home::open(settings)?)?;
    Ok(devices.into_iter().filter(|device| !device.is_this_one).map(|device| device.name).collect())
}
