//! The number of sessions that read each memory file of a project: `state/uses/<project>.json`. It stays on this machine, and losing it costs order alone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::private_name;
use crate::error::CommandError;
use crate::projects::Project;
use crate::records::{self, Weight};
use crate::settings::Settings;

/// The most files that are counted of a project.
const MAX_FILES: usize = 20_000;

/// Returns the record of a project's uses.
pub(crate) fn file(settings: &Settings, project: &Project) -> PathBuf {
    settings.home.join("state").join("uses").join(format!("{}.json", private_name(project)))
}

/// Returns how often each file was used, by its name below the memory directory.
pub(super) fn of(settings: &Settings, project: &Project) -> BTreeMap<String, u64> {
    read(&file(settings, project))
}

pub(crate) fn read(file: &PathBuf) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Counts uses of files.
pub(crate) fn count(file: &PathBuf, used: impl IntoIterator<Item = String>) -> Result<(), CommandError> {
    let mut uses = read(file);
    let before = uses.clone();
    for name in used {
        if uses.len() < MAX_FILES || uses.contains_key(&name) {
            let count = uses.entry(name).or_default();
            *count = count.saturating_add(1);
        }
    }
    if uses == before {
        return Ok(());
    }
    let text = serde_json::to_string(&uses).map_err(|error| CommandError::ours(error.to_string()))?;
    records::write_text(file, &text, Weight::Light)
}
