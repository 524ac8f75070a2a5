//! Lets a home meet its store again after the remote was lost.
//!
//! A bucket or directory: the engine's rebuild over all replicas of the home, then a full sync. A replicated folder: the logs are put back
//! byte for byte, then a full sync.

use std::collections::BTreeSet;
use std::sync::Arc;

use haversack::ids::ReplicaId;
use haversack::store::{Backend, block_on};
use haversack::sync::{Author, Context, Progress, ReadOnce, Rebuilt, Replica};

use super::replicas::{Home, bridge_patiently, open_patiently};
use super::round::{Manner, Summary, Work, adopt, asking, own_replicas, sync_with};
use super::store;
use crate::error::CommandError;
use crate::remote::{self, Remote};
use crate::settings::Settings;
use crate::system::{RandomIds, SystemClock, Timed};

/// What a rebuild of a home did.
pub(crate) struct HomeRebuilt {
    pub(crate) rebuilt: Rebuilt,
    /// How many files of logs were put back into a folder.
    pub(crate) put_back: usize,
    /// What the sync after it did.
    pub(crate) summary: Summary,
}

/// Returns who this machine is in the history.
pub(super) fn author(settings: &Settings, remote: &Remote) -> Author {
    let writer = &settings.writer;
    Author { device: remote.device.clone(), agent: writer.agent.clone(), session: writer.session.clone() }
}

/// Rebuilds the store of a home in its remote, or follows another machine that did; then syncs.
pub(crate) fn rebuild(
    settings: &Settings,
    remote: &Remote,
    progress: &dyn Progress,
) -> Result<HomeRebuilt, CommandError> {
    let home = Home::open(settings)?;
    store::complete(settings, &home)?;
    adopt(settings)?;
    let (author, patience) = (author(settings, remote), Timed::for_at_most(None));
    let own: BTreeSet<ReplicaId> = own_replicas(settings, &home)?;
    let context = Context {
        gate: &*home.memory().gate,
        patience: &patience,
        progress,
        own_replicas: &own,
        cause: "rebuild",
        asking: asking(remote),
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    let mut rebuilt = Rebuilt::default();
    let mut put_back = 0;
    match remote::vault(settings, remote)? {
        Some(vault) => put_back = block_on(bridge_patiently(settings, &vault)?.put_back(context))?,
        None => {
            let backend: Arc<dyn Backend> = Arc::new(ReadOnce::new(remote::make(settings, remote)?));
            let open = |place| open_patiently(settings, place, backend.clone());
            let mut replicas = home.places.iter().map(open).collect::<Result<Vec<Replica>, _>>()?;
            let state = home.memory().state.clone();
            rebuilt = block_on(haversack::sync::rebuild(context, &mut replicas, state))?;
            // The commits that were read belong to the history; the sync below counts what came and went.
            Summary::default().account(&home, &own, &mut replicas)?;
        }
    }
    let backend: Arc<dyn Backend> = Arc::new(ReadOnce::new(remote::make(settings, remote)?));
    let manner = Manner::new(Work::full(remote), "rebuild");
    let summary = sync_with(settings, remote, backend, &manner, progress)?;
    Ok(HomeRebuilt { rebuilt, put_back, summary })
}
