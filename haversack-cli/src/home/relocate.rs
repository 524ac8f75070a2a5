//! Takes the store of a home to another place, or follows another machine that did.

use std::sync::Arc;

use haversack::ids::Timestamp;
use haversack::store::{Backend, block_on};
use haversack::sync::{Context, Moved, Progress, SyncError, move_store};
use haversack_system::{Backoff, RandomIds, SystemClock};

use super::replicas::Home;
use super::round::author;
use crate::error::CommandError;
use crate::remote::{self, Remote};
use crate::settings::Settings;

/// The new place of a store, as its log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MovedTo {
    pub(crate) url: String,
    pub(crate) device: String,
    pub(crate) time: Timestamp,
}

/// Applies new commits, and returns the new place of the store, if its log ends with one. Sends no request to the new place.
pub(crate) fn where_to(settings: &Settings, remote: &Remote) -> Result<Option<MovedTo>, CommandError> {
    let (home, author, patience) = (Home::open(settings)?, author(settings, remote), Backoff::new());
    let meeting = remote::meeting(settings, remote)?;
    let context = Context {
        patience: &patience,
        asking: meeting.asking(),
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    let mut replica = home.open_memory(settings, &meeting, context)?;
    // Apply the commits from before the move first.
    for _ in 0..2 {
        match block_on(replica.pull(context)) {
            Ok(_) => {}
            Err(SyncError::Moved { url, device, time }) => return Ok(Some(MovedTo { url, device, time })),
            Err(trouble) => return Err(trouble.into()),
        }
    }
    Ok(None)
}

/// Copies the store to another place, and ends its log here.
pub(crate) fn move_to(
    settings: &Settings,
    remote: &Remote,
    new: &Remote,
    progress: &dyn Progress,
) -> Result<Moved, CommandError> {
    let (home, author, patience) = (Home::open(settings)?, author(settings, remote), Backoff::new());
    let meeting = remote::meeting(settings, remote)?;
    let context = Context {
        patience: &patience,
        progress,
        asking: meeting.asking(),
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    let mut replica = home.open_memory(settings, &meeting, context)?;
    let to: Arc<dyn Backend> = remote::make(settings, new)?;
    Ok(block_on(move_store(context, &mut replica, to, &new.url))?)
}

/// Makes sure that a place holds this memory's store, as far as this machine knows it.
pub(crate) fn check(settings: &Settings, new: &Remote) -> Result<(), CommandError> {
    let (home, author, patience) = (Home::open(settings)?, author(settings, new), Backoff::new());
    let context = Context { patience: &patience, ..Context::new(&SystemClock, &RandomIds, &author) };
    let replica = home.open_memory(settings, &remote::meeting(settings, new)?, context)?;
    Ok(block_on(replica.check_remote(context))?)
}
