//! Makes the vectors of memories with the model, so that recall can search by meaning.

use std::time::{Duration, Instant};

use haversack::sync::{Progress, Stage};
use haversack_recall::VectorCount;

use super::model::{self, State};
use super::recall::{failed, index_file, refresh, search};
use crate::error::CommandError;
use crate::home::store::{is_local, open_to_look};
use crate::settings::Settings;

/// How many passages get vectors at once.
const AT_ONCE: usize = 64;

/// The same in the background, where a hook may wait for the process.
const AT_ONCE_IN_BACKGROUND: usize = 16;

/// Makes the vectors of all memories that have none; returns how many passages have them, or `None` if all had them before.
pub(crate) fn embed(
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<Option<VectorCount>, CommandError> {
    refresh(settings)?;
    let memory = open_to_look(settings)?;
    let search = search(settings);
    let mut last = None;
    while let Some(count) = search.embed_some(memory.files(), AT_ONCE).map_err(failed)? {
        progress.at(Stage::Looking, count.done, Some(count.all));
        last = Some(count);
    }
    Ok(last)
}

/// Makes vectors for so long, or until something else is wanted. It does nothing without a model, and in a home that has no index.
pub(crate) fn embed_for(
    settings: &Settings,
    time: Duration,
    is_wanted_elsewhere: impl Fn() -> bool,
) -> Result<(), CommandError> {
    if model::state(settings) != State::Ready || !is_local(settings) || !index_file(settings).is_file() {
        return Ok(());
    }
    let started = Instant::now();
    let memory = open_to_look(settings)?;
    let search = search(settings);
    while started.elapsed() < time && !is_wanted_elsewhere() {
        if search.embed_some(memory.files(), AT_ONCE_IN_BACKGROUND).map_err(failed)?.is_none() {
            break;
        }
    }
    Ok(())
}

/// Deletes the model and all vectors; returns false if there was no model.
pub(crate) fn remove(settings: &Settings) -> Result<bool, CommandError> {
    let was_there = model::remove(settings)?;
    if was_there && index_file(settings).is_file() {
        search(settings).forget_vectors().map_err(failed)?;
    }
    Ok(was_there)
}
