//! Opens the memory that a command works on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack::Memory;
use haversack::store::{Backend, DeviceLocal, EntryKind, ErrorKind, InMemory, Locator, Overlay, block_on};

use crate::error::CommandError;
use crate::home::mounts;
use crate::home::{Home, local_history, open_mount};
use crate::settings::{Settings, shown};

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
    Ok(if bound.is_empty() { files } else { Arc::new(Overlay::fenced(files, bound)) })
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

/// Returns the file of the memory that a user calls `text`: a path on this machine, or a place in the memory.
///
/// 1. `/memories/x.md` is a place in the memory.
/// 2. A path on this machine (absolute, below `~`, or relative to the current directory) names a file if it lies in a bound directory or
///    in the home's `memory/`.
/// 3. Any other text is a place in the memory, as `haversack ls` prints it.
///
/// A file that was deleted here is known as long as its deletion waits to be sent. Everything else is an error, so that no command
/// does nothing and reports success. A relative text that names two different files, one by each reading, is an error too.
pub(crate) fn locate_file(settings: &Settings, text: &str) -> Result<Locator, CommandError> {
    let path = real_path(text);
    let at_path = match &path {
        Some(path) => place_of(settings, path)?.map(|(_, locator)| locator),
        None => None,
    };
    let is_explicit = path.is_some() && is_explicit_path(text);
    let in_memory = match (is_explicit, &at_path) {
        (true, _) => None,
        (false, Some(_)) => locate(text).ok(),
        (false, None) => Some(locate(text)?),
    };
    let mut found = Vec::new();
    let mut is_directory = false;
    for locator in at_path.iter().chain(&in_memory) {
        match look_up(settings, locator)? {
            Known::File if !found.contains(&locator) => found.push(locator),
            Known::Directory => is_directory = true,
            Known::File | Known::Nothing => {}
        }
    }
    match found[..] {
        [file] => Ok(file.clone()),
        [] if is_directory => Err(CommandError::user(
            format!("{text} is a directory, and one file is needed"),
            "Name a file in it: haversack ls",
        )),
        [] if is_explicit && at_path.is_none() => Err(CommandError::user(
            format!(
                "{text} is not in the memory: it lies in no bound directory, and not in {}",
                shown(&settings.memory())
            ),
            "See the files of the memory: haversack ls. See the bound directories: haversack mount list",
        )),
        [] => Err(CommandError::user(
            format!("the memory has no file {text}"),
            "See the files of the memory: haversack ls",
        )),
        [ref at_path, ref in_memory, ..] => Err(CommandError::user(
            format!("{text} names two files: {at_path} (in this directory) and {in_memory}"),
            format!("Name one: ./{text} or /memories/{in_memory}"),
        )),
    }
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

/// Returns the path on this machine that a text means; `None` for a place in the memory as agents write it.
fn real_path(text: &str) -> Option<PathBuf> {
    if text == "/memories" || text.starts_with("/memories/") {
        return None;
    }
    let path = match text.strip_prefix("~/").zip(std::env::home_dir()) {
        Some((below, home)) => home.join(below),
        None => PathBuf::from(text),
    };
    std::path::absolute(path).ok()
}

/// Tells whether a text can only be meant as a path on this machine.
fn is_explicit_path(text: &str) -> bool {
    Path::new(text).is_absolute() || ["./", "../", "~/"].iter().any(|start| text.starts_with(start))
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

/// What the memory knows at a place.
enum Known {
    /// A file, also one whose deletion waits to be sent.
    File,
    Directory,
    Nothing,
}

fn look_up(settings: &Settings, locator: &Locator) -> Result<Known, CommandError> {
    match block_on(open_to_look(settings)?.files().info(locator)) {
        Ok(info) if info.kind == EntryKind::Directory => return Ok(Known::Directory),
        Ok(_) => return Ok(Known::File),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    for place in Home::open(settings)?.places().filter(|place| place.scope.contains(locator)) {
        let look = place.look()?;
        if [look.deleted, look.waiting_deletions, look.unfetched].concat().contains(locator) {
            return Ok(Known::File);
        }
    }
    Ok(Known::Nothing)
}
