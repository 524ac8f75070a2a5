//! The directories of a home that are synced: the directory `memory`, and the directories that are bound to prefixes of the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack::clock::Clock;
use haversack::home::{BoundDirectory, Directory, Home as Directories, Meeting, Stopped};
use haversack::ids::StoreId;
use haversack::log::BadFrame;
use haversack::store::{Backend, DeviceLocal, ErrorKind, Locator, block_on};
use haversack::sync::{Agreement, Author, Context, Gate, Outlook, Replica, SyncError};
use haversack_system::{RandomIds, SystemClock};

use super::gate::NothingPrivate;
use super::mounts::{self, Mount};
use crate::error::{CommandError, Fault};
use crate::settings::{Settings, shown};

/// The home of this machine, open.
pub(crate) struct Home {
    directories: Directories,
    /// The directory of the memory's state, and of each bound directory's.
    states: Vec<(String, PathBuf)>,
    gate: NothingPrivate,
    /// Bound directories that are not there: nothing is done about them.
    pub(crate) vanished: Vec<Mount>,
}

impl Home {
    /// Opens every directory of the home, to sync with the remote.
    pub(crate) fn open(settings: &Settings) -> Result<Home, CommandError> {
        Home::open_with(settings, settings.state(), |mount| mount.state(settings))
    }

    /// Opens every directory of the home, to add their changes to the history that stays on this machine.
    pub(crate) fn open_for_local_history(settings: &Settings) -> Result<Home, CommandError> {
        let root = settings.store().local_history();
        let home = Home::open_with(settings, root.join("memory"), |mount| root.join(mount.state_name()))?;
        let directories = home.directories.with_verb_state(open_state(settings, settings.state())?);
        Ok(Home { directories, ..home })
    }

    fn open_with(
        settings: &Settings,
        memory_state: PathBuf,
        state_of: impl Fn(&Mount) -> PathBuf,
    ) -> Result<Home, CommandError> {
        let mounts = mounts::of(settings)?;
        let mut bound = Vec::new();
        let mut states = vec![(shown(&settings.memory()), memory_state.clone())];
        let mut vanished = Vec::new();
        for mount in mounts {
            let directory = state_of(&mount);
            let name = shown(&mount.directory);
            let is_there = mount.is_there();
            let files = match is_there {
                true => Some(open_mount(settings, &mount)?),
                false => None,
            };
            let state = match is_there || directory.is_dir() {
                true => Some(open_state(settings, directory.clone())?),
                false => None,
            };
            bound.push(BoundDirectory { name: name.clone(), prefix: mount.prefix.clone(), files, state });
            states.push((name, directory));
            if !is_there {
                vanished.push(mount);
            }
        }
        let memory = Arc::new(DeviceLocal::open(settings.memory(), settings.locks())?);
        let state = open_state(settings, memory_state)?;
        let directories = Directories::new(shown(&settings.memory()), memory, state, bound);
        Ok(Home { directories, states, gate: NothingPrivate::of(settings)?, vanished })
    }

    /// Returns the directories, for the engine.
    pub(crate) fn directories(&self) -> &Directories {
        &self.directories
    }

    /// Returns the state in which the verbs note who wrote a file.
    pub(crate) fn signatures(&self) -> &dyn Backend {
        self.directories.verb_state()
    }

    /// Returns the rule for what stays on this machine.
    pub(crate) fn gate(&self) -> &dyn Gate {
        &self.gate
    }

    /// Returns the bound directories that are there, then the memory directory.
    pub(crate) fn places(&self) -> impl Iterator<Item = HomeDirectory<'_>> {
        self.directories.directories().iter().map(|directory| HomeDirectory { home: self, directory })
    }

    /// Returns the memory directory.
    pub(crate) fn memory(&self) -> HomeDirectory<'_> {
        HomeDirectory { home: self, directory: self.directories.memory() }
    }

    /// Opens the replica of the memory directory.
    pub(crate) fn open_memory(
        &self,
        settings: &Settings,
        meeting: &Meeting,
        context: Context<'_>,
    ) -> Result<Replica, CommandError> {
        let opened = self.directories.memory().open(meeting.remote().clone(), context, settings.lock_wait);
        block_on(opened).map_err(|stopped| self.explain(stopped))
    }

    /// Returns the agreement of each directory with the store, without a scan of its files.
    pub(crate) fn agreements(&self) -> Result<Vec<Agreement>, CommandError> {
        block_on(self.directories.agreements()).map_err(|stopped| self.explain(stopped))
    }

    /// Forgets the agreement with a store, so that the next sync starts from the beginning.
    pub(crate) fn forget(&self) -> Result<(), CommandError> {
        for directory in self.directories.directories() {
            block_on(haversack::sync::forget(&*directory.state))?;
        }
        Ok(())
    }

    /// Leaves the store for another one. The agreement with it is kept, for a return.
    pub(crate) fn leave(&self, settings: &Settings) -> Result<(), CommandError> {
        let mut left = None;
        for directory in self.directories.directories() {
            left = block_on(haversack::sync::leave(&directory.state))?.or(left);
        }
        let Some(left) = left else { return Ok(()) };
        rename_if_there(&settings.store().vault(), &settings.store().left_vault(left))
    }

    /// Returns true if this home left the store earlier, and can return to it.
    pub(crate) fn has_left(&self, store: StoreId) -> Result<bool, CommandError> {
        Ok(block_on(haversack::sync::has_left(&*self.directories.memory().state, store))?)
    }

    /// Returns to a store that this home left earlier; returns true if there was one. Leaves the present store for it.
    pub(crate) fn return_to(&self, settings: &Settings, store: StoreId) -> Result<bool, CommandError> {
        if !self.has_left(store)? {
            return Ok(false);
        }
        self.leave(settings)?;
        for directory in self.directories.directories() {
            block_on(haversack::sync::return_to(&*directory.state, store))?;
        }
        rename_if_there(&settings.store().left_vault(store), &settings.store().vault())?;
        Ok(true)
    }

    /// Finishes a batch that a killed process left, and moves files into the bound directories where they belong.
    pub(crate) fn tidy(&self, settings: &Settings) -> Result<(), CommandError> {
        block_on(self.directories.tidy(&RandomIds, settings.lock_wait)).map_err(CommandError::from)
    }

    /// Keeps the wanted ones of the held files: another machine deleted them, and they are still here. The next sync sends them again.
    /// Returns the files that it kept.
    pub(crate) fn keep_held(
        &self,
        settings: &Settings,
        is_wanted: impl Fn(&Locator) -> bool,
    ) -> Result<Vec<Locator>, CommandError> {
        let author = Author::default();
        let context = Context { gate: self.gate(), ..Context::new(&SystemClock, &RandomIds, &author) };
        let kept = block_on(self.directories.keep_held(context, settings.lock_wait, is_wanted));
        kept.map_err(|stopped| self.explain(stopped))
    }

    /// Returns the error of a stopped sync for the user. A damaged state has one cure.
    pub(crate) fn explain(&self, Stopped { directory, error }: Stopped) -> CommandError {
        match &error {
            SyncError::Local(cause) if cause.kind() == ErrorKind::Internal => {
                let state = directory.and_then(|name| self.states.iter().find(|(other, _)| *other == name));
                let state = state.map_or_else(|| "its state".to_owned(), |(_, state)| shown(state));
                let update =
                    if is_newer(cause) { "Update Haversack on this machine. If you cannot: " } else { "" };
                let hint = format!(
                    "{update}Your files are where they were. Move {state} away, then: haversack sync (it merges your files with the remote)"
                );
                CommandError::caused(Fault::User, &error, Some(hint))
            }
            _ => error.into(),
        }
    }
}

/// Tells whether a later version of Haversack wrote the state.
fn is_newer(error: &haversack::store::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<BadFrame>());
    cause.is_some_and(BadFrame::is_newer)
}

/// Renames a directory; one that is not there stays so.
fn rename_if_there(from: &Path, to: &Path) -> Result<(), CommandError> {
    if !from.is_dir() {
        return Ok(());
    }
    match std::fs::remove_dir_all(to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    Ok(std::fs::rename(from, to)?)
}

/// One directory of an open home.
#[derive(Clone, Copy)]
pub(crate) struct HomeDirectory<'a> {
    home: &'a Home,
    directory: &'a Directory,
}

impl std::ops::Deref for HomeDirectory<'_> {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        self.directory
    }
}

impl HomeDirectory<'_> {
    /// Looks at the directory, without the remote.
    pub(crate) fn look(&self) -> Result<Outlook, CommandError> {
        let HomeDirectory { home, directory } = self;
        let looked = block_on(home.directories.look(directory, home.gate(), SystemClock.now()));
        let stopped = |error| Stopped { directory: Some(directory.name.clone()), error };
        looked.map_err(|error| home.explain(stopped(error)))
    }
}

/// Opens a bound directory. A directory that is reached through a link is refused, also if the link appears at this moment.
pub(crate) fn open_mount(settings: &Settings, mount: &Mount) -> Result<Arc<dyn Backend>, CommandError> {
    let opened = DeviceLocal::open_real(&mount.directory, settings.shared_locks())?;
    Ok(Arc::new(opened))
}

pub(super) fn open_state(settings: &Settings, directory: PathBuf) -> Result<Arc<dyn Backend>, CommandError> {
    Ok(Arc::new(DeviceLocal::open(directory, settings.locks())?))
}
