//! Reads a store as a machine would that has never seen it, and compares it with what is here.

use std::sync::Arc;

use haversack::ids::ContentHash;
use haversack::store::{BackendExt, InMemory, Locator, block_on};
use haversack::sync::{Author, Context, Fetching, Replica, SyncError};
use haversack_system::{Backoff, RandomIds, SystemClock};

use crate::error::CommandError;
use crate::home::Home;
use crate::home::store::is_project_record;
use crate::remote::{self, Remote};
use crate::settings::Settings;

/// The files that were read back.
pub(crate) struct ReadBack {
    /// The number of files in the store that are equal to the files here.
    pub(crate) files: usize,
    /// Files that are not, and are not held back.
    pub(crate) missing: Vec<Locator>,
}

pub(crate) fn read_back(settings: &Settings) -> Result<ReadBack, CommandError> {
    let remote = Remote::expected(settings)?;
    let backend = remote::open(settings, &remote)?;
    let patience = Backoff::new();
    let author = Author::default();
    let context = Context {
        patience: &patience,
        fetching: Fetching::WhenAsked,
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    let there = block_on(async {
        let (files, state) = (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
        let mut replica = Replica::open(files, state, backend, &RandomIds).await?;
        replica.pull(context).await?;
        Ok::<_, SyncError>(replica.log_files().clone())
    })?;
    let mut back = ReadBack { files: 0, missing: Vec::new() };
    for place in Home::open(settings)?.places() {
        let look = place.look()?;
        for locator in block_on(place.files.list_all(&Locator::root()))? {
            let is_outside =
                !place.scope.contains(&locator) || look.held.iter().any(|(held, _)| *held == locator);
            if is_outside {
                continue;
            }
            let here = ContentHash::of(&block_on(place.files.read(&locator))?.bytes);
            match there.get(&locator).is_some_and(|content| content.hash == here) {
                true if is_project_record(&locator) => {}
                true => back.files += 1,
                false => back.missing.push(locator),
            }
        }
    }
    Ok(back)
}
