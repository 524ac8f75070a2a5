//! Opens the memory that a command works on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack::home::with_bound_directories;
use haversack::store::{
    Backend, DeviceLocal, DirectoryKind, EntryKind, ErrorKind, InMemory, Locator, block_on, recognise,
};
use haversack::{Memory, Writer};

use crate::error::CommandError;
use crate::home::mounts;
use crate::home::{Home, local_history, open_mount};
use crate::settings::Settings;

/// The directory of the store with the records of projects.
pub(crate) const PROJECT_RECORDS: &str = "state/projects";

/// Returns true if a file is a record of a project, which is ours and no memory of the user's.
pub(crate) fn is_project_record(file: &Locator) -> bool {
    file.as_str().strip_prefix(PROJECT_RECORDS).is_some_and(|rest| rest.starts_with('/'))
}

/// Opens the memory of the home to write to it, making it if need be.
pub(crate) fn open(settings: &Settings) -> Result<Memory, CommandError> {
    // A history that cannot begin must not keep the user from writing. The next recording reports the cause.
    drop(local_history::begin(settings));
    let files = files(settings)?;
    let state = Arc::new(DeviceLocal::open(settings.state(), settings.locks())?);
    Ok(Memory::new(files, state).with_lock_wait(settings.lock_wait).with_writer(settings.writer.clone()))
}

/// Opens the memory to write to it; the history shows the changes under this cause, whichever process sends them.
pub(crate) fn open_because(settings: &Settings, cause: &str) -> Result<Memory, CommandError> {
    let writer = Writer { cause: Some(cause.to_owned()), ..settings.writer.clone() };
    Ok(open(settings)?.with_writer(writer))
}

/// Opens the files of the home, making their directory if need be, with the bound directories in their places.
pub(crate) fn files(settings: &Settings) -> Result<Arc<dyn Backend>, CommandError> {
    with_mounts(settings, Arc::new(DeviceLocal::open(settings.memory(), settings.locks())?))
}

/// Puts the bound directories in their places.
fn with_mounts(settings: &Settings, files: Arc<dyn Backend>) -> Result<Arc<dyn Backend>, CommandError> {
    let mut bound = Vec::new();
    for mount in mounts::of(settings)? {
        let there = if mount.is_there() { Some(open_mount(settings, &mount)?) } else { None };
        bound.push((mount.prefix, there));
    }
    Ok(with_bound_directories(files, bound))
}

/// Returns true if only this machine writes to the home's disk.
pub(crate) fn is_local(settings: &Settings) -> bool {
    match recognise(&settings.home, settings.surroundings.user.as_deref()) {
        DirectoryKind::Synced { .. } | DirectoryKind::Network { .. } => false,
        DirectoryKind::Obsidian { .. } | DirectoryKind::Perhaps { .. } | DirectoryKind::Local => true,
    }
}

/// Opens the memory of the home to look at it, and makes nothing: a mistyped `--home` would leave a new home behind.
pub(crate) fn open_to_look(settings: &Settings) -> Result<Memory, CommandError> {
    let files: Arc<dyn Backend> = match settings.memory().try_exists() {
        Ok(false) => Arc::new(InMemory::new()),
        // Opening it reports any problem.
        Ok(true) | Err(_) => Arc::new(DeviceLocal::open(settings.memory(), settings.locks())?),
    };
    Ok(Memory::new(with_mounts(settings, files)?, Arc::new(InMemory::new())))
}

/// Returns the prefix and the place in the memory of a path on this machine; `None` if the path lies in no bound directory and not
/// in the home's `memory/`. The prefix is that of the bound directory.
///
/// The file may be missing, or a link: only its directory is followed.
pub(crate) fn place_of(settings: &Settings, path: &Path) -> Result<Option<(Locator, Locator)>, CommandError> {
    let Some((directory, name)) = path.parent().zip(path.file_name()) else { return Ok(None) };
    let path = without_links(directory).join(name);
    let memory = settings.memory();
    let memory = memory.canonicalize().unwrap_or(memory);
    let mounts = mounts::of(settings)?.into_iter().map(|mount| (mount.directory, mount.prefix));
    let mut roots: Vec<(PathBuf, Locator)> = mounts.chain([(memory, Locator::root())]).collect();
    // The deepest directory first: a bound directory can lie in another.
    roots.sort_by_key(|(directory, _)| std::cmp::Reverse(directory.iter().count()));
    for (directory, prefix) in roots {
        let Ok(below) = path.strip_prefix(&directory) else { continue };
        let names: Option<Vec<&str>> = below.iter().map(|name| name.to_str()).collect();
        if let Some(file) = names.and_then(|names| prefix.child(&names.join("/")).ok()) {
            return Ok(Some((prefix, file)));
        }
    }
    Ok(None)
}

/// Follows the links in a path, as far as it exists.
fn without_links(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let Ok(real) = existing.canonicalize() {
            return path.strip_prefix(existing).map(|rest| real.join(rest)).unwrap_or(real);
        }
    }
    path.to_owned()
}

/// The thing that the memory knows at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupResult {
    /// A file, also one whose deletion waits to be sent.
    File,
    Directory,
    Nothing,
}

/// Looks a place up in the memory, and among the deletions that wait to be sent.
pub(crate) fn look_up(settings: &Settings, locator: &Locator) -> Result<LookupResult, CommandError> {
    match block_on(open_to_look(settings)?.files().info(locator)) {
        Ok(info) if info.kind == EntryKind::Directory => return Ok(LookupResult::Directory),
        Ok(_) => return Ok(LookupResult::File),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    for place in Home::open(settings)?.places().filter(|place| place.scope.contains(locator)) {
        let look = place.look()?;
        if [look.deleted, look.waiting_deletions, look.unfetched].concat().contains(locator) {
            return Ok(LookupResult::File);
        }
    }
    Ok(LookupResult::Nothing)
}
