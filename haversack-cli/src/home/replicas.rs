//! The directories of a home that are synced: the directory `memory`, and the directories that are bound to prefixes of the store.
//!
//! Each is a replica with a state of its own; all of them follow one log.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haversack::clock::Clock;
use haversack::store::{Backend, DeviceLocal, ErrorKind, InMemory, Locator, Under, block_on};
use haversack::sync::{Author, Context, Outlook, Replica, Scope, Trouble, look};
use haversack::vault::Bridge;

use super::gate::NothingPrivate;
use super::mounts::{self, Mount};
use crate::error::{CommandError, Fault};
use crate::remote::Vault;
use crate::settings::{Settings, shown};
use crate::system::{RandomIds, SystemClock};

/// How often a process that syncs already is asked whether it is done.
const POLL: Duration = Duration::from_millis(20);

/// One replica of a home.
pub(crate) struct Place {
    /// What people call it.
    pub(crate) name: String,
    /// Its files, at their places in the store.
    pub(crate) files: Arc<dyn Backend>,
    /// What it remembers.
    pub(crate) state: Arc<dyn Backend>,
    /// Where that is.
    directory: PathBuf,
    /// Which part of the store it holds.
    pub(crate) scope: Scope,
    /// What of it stays here.
    pub(super) gate: Arc<NothingPrivate>,
    /// The state of the memory itself: who wrote what in every replica is noted there.
    signed: Arc<dyn Backend>,
}

impl Place {
    /// Looks at it, without the remote.
    pub(crate) fn look(&self) -> Result<Outlook, CommandError> {
        let (now, signed) = (SystemClock.now(), Some(&*self.signed));
        let looked = block_on(look(&*self.files, self.state.clone(), &self.scope, &*self.gate, now, signed));
        looked.map_err(|error| self.explain(Trouble::Local(error)))
    }

    /// Returns why it could not be worked on; a state that is damaged has one cure.
    pub(super) fn explain(&self, trouble: Trouble) -> CommandError {
        match &trouble {
            Trouble::Local(error) if error.kind() == ErrorKind::Internal => {
                let directory = shown(&self.directory);
                let hint = format!(
                    "All you wrote is where it was. Move {directory} away, then: haversack sync (it merges what is here with the remote)"
                );
                CommandError::caused(Fault::User, &trouble, Some(hint))
            }
            _ => trouble.into(),
        }
    }
}

/// The replicas of a home.
pub(crate) struct Home {
    /// The bound directories that are there, then the memory itself, which follows them all.
    pub(crate) places: Vec<Place>,
    /// Bound directories that are not there: nothing is done about them.
    pub(crate) vanished: Vec<Mount>,
}

impl Home {
    /// Opens every replica of the home.
    pub(crate) fn open(settings: &Settings) -> Result<Home, CommandError> {
        let mounts = mounts::of(settings)?;
        let (there, vanished): (Vec<Mount>, Vec<Mount>) = mounts.iter().cloned().partition(Mount::is_there);
        let gate = Arc::new(NothingPrivate::of(settings)?);
        let state = open_state(settings, settings.state())?;
        let mut places = Vec::new();
        for mount in there {
            let deeper = mounts.iter().map(|other| other.prefix.clone());
            let deeper = deeper.filter(|prefix| *prefix != mount.prefix && prefix.is_within(&mount.prefix));
            places.push(Place {
                name: shown(&mount.directory),
                files: Arc::new(Under::new(open_mount(settings, &mount)?, mount.prefix.clone())),
                state: open_state(settings, mount.state(settings))?,
                directory: mount.state(settings),
                scope: Scope::within(mount.prefix.clone()).except(deeper).bound(),
                gate: gate.clone(),
                signed: state.clone(),
            });
        }
        places.push(Place {
            name: shown(&settings.memory()),
            files: Arc::new(DeviceLocal::open(settings.memory(), settings.locks())?),
            state: state.clone(),
            directory: settings.state(),
            scope: Scope::default().except(mounts.into_iter().map(|mount| mount.prefix)),
            gate,
            signed: state,
        });
        Ok(Home { places, vanished })
    }

    /// Forgets what was agreed on with a store, so that the next sync starts anew.
    pub(crate) fn forget(&self) -> Result<(), CommandError> {
        for place in &self.places {
            block_on(haversack::sync::forget(&*place.state))?;
        }
        Ok(())
    }

    /// Returns the replica of the memory itself.
    pub(crate) fn memory(&self) -> &Place {
        self.places.last().expect("the memory is always there")
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

/// Opens a folder that a sync client replicates, waiting for a process that is at it already.
pub(super) fn bridge_patiently(settings: &Settings, vault: &Vault) -> Result<Bridge, CommandError> {
    let deadline = Instant::now() + settings.lock_wait;
    loop {
        match block_on(Bridge::open(vault.folder.clone(), vault.home.clone(), &RandomIds)) {
            Err(Trouble::Busy) if Instant::now() < deadline => std::thread::sleep(POLL),
            opened => return Ok(opened?),
        }
    }
}

/// Opens a replica, waiting for a process that syncs it already.
pub(super) fn open_patiently(
    settings: &Settings,
    place: &Place,
    remote: Arc<dyn Backend>,
) -> Result<Replica, CommandError> {
    let deadline = Instant::now() + settings.lock_wait;
    loop {
        let open = Replica::open(place.files.clone(), place.state.clone(), remote.clone(), &RandomIds);
        match block_on(open) {
            Err(Trouble::Busy) if Instant::now() < deadline => std::thread::sleep(POLL),
            Err(trouble) => return Err(place.explain(trouble)),
            Ok(replica) => return Ok(replica.with_scope(place.scope.clone())),
        }
    }
}

/// Keeps those of the held files (deleted by another machine, still here) that are wanted: the next sync sends them again. Returns them.
pub(crate) fn keep_held(
    settings: &Settings,
    home: &Home,
    is_wanted: impl Fn(&Locator) -> bool,
) -> Result<Vec<Locator>, CommandError> {
    let author = Author::default();
    let context = Context::new(&SystemClock, &RandomIds, &author);
    let mut kept = Vec::new();
    for place in &home.places {
        if place.look()?.held_deletions.iter().any(&is_wanted) {
            // Keeping files asks nothing of a remote.
            let mut replica = open_patiently(settings, place, Arc::new(InMemory::new()))?;
            kept.extend(block_on(replica.keep_held(context, &is_wanted))?);
        }
    }
    Ok(kept)
}
