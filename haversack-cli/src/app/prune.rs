//! Deletes old files of one kind, because the user says so.

use std::collections::BTreeMap;

use haversack::day::Day;
use haversack::store::{BackendExt, Locator, block_on};
use haversack::tidy::{self, Applied};

use super::review::Proposed;
use super::tidy::{Mode, Tidied};
use crate::error::CommandError;
use crate::home::kinds;
use crate::home::store::{open, open_to_look};
use crate::settings::Settings;

/// Deletes the files of a kind whose name is older than so many days, or says which they are.
pub(crate) fn prune(
    settings: &Settings,
    kind: &str,
    older_than_days: u32,
    day: Option<Day>,
    mode: Mode,
) -> Result<Tidied, CommandError> {
    let today = day.unwrap_or_else(|| settings.today());
    let kinds = kinds::load(settings)?;
    let kind = kinds::named(&kinds, kind)?;
    let memory = if mode == Mode::DryRun { open_to_look(settings)? } else { open(settings)? };
    let mut files = BTreeMap::new();
    for locator in block_on(memory.files().list_all(&Locator::root()))? {
        let is_named = kind.names.iter().any(|pattern| pattern.matches(&locator));
        if is_named || (!kind.types.is_empty() && locator.name().ends_with(".md")) {
            let bytes = block_on(memory.files().read(&locator))?.bytes;
            files.insert(locator, bytes);
        }
    }
    let plan = tidy::prune(&kinds, &files, &kind.name, older_than_days, today);
    let applied = match mode {
        Mode::DryRun => Applied::default(),
        Mode::Apply => block_on(tidy::apply(&memory, &plan)),
    };
    Ok(Tidied { plan, applied, proposed: Proposed::default(), mode })
}
