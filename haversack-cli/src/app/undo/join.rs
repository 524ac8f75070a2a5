//! Takes a join back, in the store and here.
//!
//! 1. In the store, the changes that this machine sent with the join are taken back, through a replica in memory.
//! 2. This home leaves the remote.
//! 3. The files here get their content from before the join, with later edits.
//!
//! Each step can be repeated. After a crash between two of them, the same command finishes the undo.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack::Change;
use haversack::history::{History, PastContent, Undone, take_back};
use haversack::store::{Backend, Bytes, Condition, ErrorKind, InMemory, Locator, block_on};
use haversack::sync::{Author, Context, Deletions, Replica, SyncError};
use haversack_system::{Backoff, RandomIds, SystemClock};

use super::{Outcome, last, text};
use crate::error::CommandError;
use crate::home::Home;
use crate::home::contact::Contact;
use crate::home::join_record::{self, Joined};
use crate::home::store::open;
use crate::remote::{self, Remote};
use crate::settings::Settings;

/// The undo of a join that was not carried out yet.
pub(crate) struct JoinPlan {
    joined: Joined,
    pub(crate) outcomes: Vec<Outcome>,
}

/// The result of the undo of a join.
pub(crate) struct JoinUndone {
    /// The address of the store that this home left.
    pub(crate) url: String,
    /// The number of this machine's files that were undone in the store.
    pub(crate) taken_back: usize,
}

/// Decides the fate of the files here; changes nothing.
pub(crate) fn plan(settings: &Settings) -> Result<JoinPlan, CommandError> {
    let Some(joined) = Joined::of(settings)? else {
        return Err(CommandError::user(
            "there is no join to take back",
            "See the changes that you can undo: haversack log",
        ));
    };
    let outcomes = here(settings, &joined)?;
    Ok(JoinPlan { joined, outcomes })
}

impl JoinPlan {
    /// Returns a title, and a line for every file.
    pub(crate) fn text(&self) -> String {
        text(&format!("The join of {} is taken back:", self.joined.url), &self.outcomes)
    }

    /// Takes the join back.
    pub(crate) fn carry_out(self, settings: &Settings) -> Result<JoinUndone, CommandError> {
        let taken_back = there(settings, &self.joined)?;
        leave(settings)?;
        let memory = open(settings)?;
        let changes: Vec<Change> =
            self.outcomes.iter().filter(|outcome| !outcome.stays).map(Outcome::change).collect();
        if !changes.is_empty() {
            last::remember(settings, None, &self.outcomes)?;
            block_on(memory.batch(&changes))?;
        }
        Joined::forget(settings)?;
        Ok(JoinUndone { url: self.joined.url, taken_back })
    }
}

/// Decides the fate of the files here: their content before the join, with the edits since.
fn here(settings: &Settings, joined: &Joined) -> Result<Vec<Outcome>, CommandError> {
    let before = join_record::kept(settings)?;
    let memory = open(settings)?;
    let now = block_on(join_record::all(memory.files()))?;
    let backend = remote::open(settings, &Remote::at(settings, &joined.url)?)?;
    let patience = Backoff::new();
    let home = Home::open(settings)?;
    let state = home.memory().state.clone();
    let store = block_on(haversack::sync::store_at(backend.clone(), &patience))?;
    let mut history = match store {
        Some(store) => Some(block_on(History::open(state, Some(backend), store.store, &patience))?),
        None => None,
    };
    let mut outcomes = BTreeMap::new();
    for locator in before.keys().chain(now.keys()) {
        if outcomes.contains_key(locator) {
            continue;
        }
        let held = match &mut history {
            Some(history) => block_on(history.held(locator, joined.position))?,
            None => PastContent::Unknown,
        };
        let after = match held {
            PastContent::Content(bytes) => Some(bytes),
            // It is not of the store: nothing of it came with the join.
            PastContent::Nothing | PastContent::Unknown | PastContent::Dropped => {
                before.get(locator).cloned()
            }
        };
        let (was, is) = (before.get(locator), now.get(locator));
        let then = match take_back(locator, was, after.as_ref(), is) {
            Undone::Before(bytes) => bytes,
            Undone::Mixed(bytes) => Some(bytes),
            Undone::Stays => is.cloned(),
        };
        let (stays, is) = (then == is.cloned(), is.cloned());
        outcomes.insert(
            locator.clone(),
            Outcome { locator: locator.clone(), now: is, then, stays, is_sent_again: false },
        );
    }
    Ok(outcomes.into_values().filter(|outcome| !outcome.stays).collect())
}

/// Takes back in the store the commits that this machine published with the join; returns the number of files.
fn there(settings: &Settings, joined: &Joined) -> Result<usize, CommandError> {
    if joined.published.is_empty() {
        return Ok(0);
    }
    let backend = remote::open(settings, &Remote::at(settings, &joined.url)?)?;
    let patience = Backoff::new();
    let author = Author { device: joined.device.clone(), ..Author::default() };
    let context = Context {
        patience: &patience,
        deletions: Deletions::Allowed,
        cause: "undo of a join",
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    let (files, state) = (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
    block_on(async {
        let mut replica = Replica::open(files.clone(), state.clone(), backend.clone(), &RandomIds).await?;
        replica.pull(context).await?;
        let Some(store) = replica.store() else { return Ok(0) };
        let mut history = History::open(state, Some(backend), store, &patience).await?;
        let mut count = 0;
        for position in joined.published.iter().rev() {
            let Some(commit) = history.commit(*position).await? else { continue };
            let earlier = position.number().checked_sub(1).and_then(haversack::ids::Position::new);
            for change in &commit.changes {
                let before = content(history.held(&change.locator, earlier).await?);
                let after = content(history.held(&change.locator, Some(*position)).await?);
                let now = read(&*files, &change.locator).await?;
                let undone = take_back(&change.locator, before.as_ref(), after.as_ref(), now.as_ref());
                let then = match undone {
                    Undone::Before(bytes) => bytes,
                    Undone::Mixed(bytes) => Some(bytes),
                    Undone::Stays => continue,
                };
                count += 1;
                let written = match then {
                    Some(bytes) => files.write(&change.locator, bytes, Condition::Any).await.map(drop),
                    None => files.delete(&change.locator, Condition::Any).await,
                };
                written.map_err(SyncError::Local)?;
            }
        }
        replica.sync(context).await?;
        Ok::<usize, SyncError>(count)
    })
    .map_err(CommandError::from)
}

fn content(held: PastContent) -> Option<Bytes> {
    match held {
        PastContent::Content(bytes) => Some(bytes),
        PastContent::Nothing | PastContent::Unknown | PastContent::Dropped => None,
    }
}

async fn read(files: &dyn Backend, locator: &Locator) -> Result<Option<Bytes>, SyncError> {
    match files.read(locator).await {
        Ok(object) => Ok(Some(object.bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SyncError::Local(error)),
    }
}

/// Forgets the remote, and the last state that was shared with it.
fn leave(settings: &Settings) -> Result<(), CommandError> {
    Remote::forget(settings)?;
    Contact::forget(settings)?;
    Home::open(settings)?.forget()
}
