//! Opens the memory that a command works on.

use std::sync::Arc;

use haversack::Memory;
use haversack::store::{Backend, DeviceLocal, InMemory, Locator, Overlay, block_on};

use crate::error::CommandError;
use crate::home::{Home, Place, open_mount};
use crate::mounts;
use crate::settings::Settings;

/// Opens the memory of the home, making it if need be.
pub(crate) fn open(settings: &Settings) -> Result<Memory, CommandError> {
    let files = files(settings)?;
    let state = Arc::new(DeviceLocal::open(settings.state(), settings.locks())?);
    Ok(Memory::new(files, state).with_lock_wait(settings.lock_wait).with_writer(settings.writer.clone()))
}

/// Opens the files of the home, making their directory if need be, with the bound directories in their places.
pub(crate) fn files(settings: &Settings) -> Result<Arc<dyn Backend>, CommandError> {
    with_mounts(settings, Arc::new(DeviceLocal::open(settings.memory(), settings.locks())?))
}

/// Puts the bound directories that are there in their places.
fn with_mounts(settings: &Settings, files: Arc<dyn Backend>) -> Result<Arc<dyn Backend>, CommandError> {
    let mut bound = Vec::new();
    for mount in mounts::of(settings)?.into_iter().filter(mounts::Mount::is_there) {
        bound.push((mount.prefix.clone(), open_mount(settings, &mount)?));
    }
    Ok(if bound.is_empty() { files } else { Arc::new(Overlay::new(files, bound)) })
}

/// Completes a batch that a process left unfinished, before its files are looked at as a whole.
pub(crate) fn complete(settings: &Settings, home: &Home) -> Result<(), CommandError> {
    let Place { files, state, .. } = home.memory();
    let memory = Memory::new(with_mounts(settings, files.clone())?, state.clone());
    Ok(block_on(memory.with_lock_wait(settings.lock_wait).complete())?)
}

/// Opens the memory of the home to look at it, and makes nothing: a mistyped `--home` would leave a new home behind.
pub(crate) fn open_to_look(settings: &Settings) -> Result<Memory, CommandError> {
    let files: Arc<dyn Backend> = match settings.memory().try_exists() {
        Ok(false) => Arc::new(InMemory::new()),
        // Whatever is wrong with it, opening it says so.
        Ok(true) | Err(_) => Arc::new(DeviceLocal::open(settings.memory(), settings.locks())?),
    };
    Ok(Memory::new(with_mounts(settings, files)?, Arc::new(InMemory::new())))
}

/// Returns the place that a user calls `path`: relative to the memory, or from `/memories` as agents write it.
pub(crate) fn locate(path: &str) -> Result<Locator, CommandError> {
    let below = path.strip_prefix("/memories").filter(|rest| rest.is_empty() || rest.starts_with('/'));
    Locator::parse(below.unwrap_or(path)).map_err(|error| {
        CommandError::user(error.to_string(), "Name a place inside the memory: haversack ls")
    })
}
