//! The history of a home's store: what was sent and taken in, and what waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haversack::history::{Held, History};
use haversack::ids::{ContentHash, Position};
use haversack::log::{Commit, What, label};
use haversack::store::{Backend, Bytes, ErrorKind, Locator, block_on};

use crate::error::CommandError;
use crate::home::Home;
use crate::home::store::open_to_look;
use crate::remote::{self, Remote};
use crate::settings::Settings;
use crate::system::Timed;

/// The most commits that are looked through for one answer.
const MAX_LOOKED_AT: usize = 100_000;

/// Deletions by one machine within this time are one deletion, if no other machine changed something in between: an agent deletes files
/// one by one, and each may be a commit.
const DELETED_TOGETHER_MILLISECONDS: i64 = 10 * 60 * 1000;

/// The history of a store, from the newest commit that this home knows.
pub(crate) struct Past<'a> {
    history: History<'a>,
    /// The newest position that was taken in.
    pub(crate) head: Option<Position>,
    /// This machine's name, as its commits have it.
    pub(crate) device: Option<String>,
}

/// A file that differs from what was last agreed on.
pub(crate) struct Waiting {
    pub(crate) locator: Locator,
    /// What was agreed on; `None` for nothing.
    pub(crate) before: Option<Bytes>,
    /// What is here; `None` for nothing.
    pub(crate) now: Option<Bytes>,
    /// True if the file was there before its replica first synced.
    pub(crate) is_import: bool,
}

/// Files that one machine deleted at about the same time.
pub(crate) struct Deletion {
    /// The newest commit of it.
    pub(crate) commit: Arc<Commit>,
    /// The files, each with its content right before.
    pub(crate) files: Vec<(Locator, Bytes)>,
}

impl<'a> Past<'a> {
    /// Opens the history; a remote that cannot be reached only makes it shorter.
    pub(crate) fn open(
        settings: &Settings,
        home: &Home,
        patience: &'a Timed,
    ) -> Result<Past<'a>, CommandError> {
        let remote = Remote::for_looking(settings)?;
        let backend = remote.as_ref().and_then(|remote| remote::open(settings, remote).ok());
        Past::of(home, remote, backend, patience)
    }

    /// Opens as much of the history as is on this machine.
    pub(crate) fn local(
        settings: &Settings,
        home: &Home,
        patience: &'a Timed,
    ) -> Result<Past<'a>, CommandError> {
        Past::of(home, Remote::for_looking(settings)?, None, patience)
    }

    fn of(
        home: &Home,
        remote: Option<Remote>,
        backend: Option<Arc<dyn Backend>>,
        patience: &'a Timed,
    ) -> Result<Past<'a>, CommandError> {
        let looks = home.places().map(|place| place.look()).collect::<Result<Vec<_>, _>>()?;
        let store = looks.iter().find_map(|look| look.store);
        let head = looks.iter().filter_map(|look| look.position).max();
        let Some(store) = store else {
            return Err(CommandError::user(
                "there is no history yet: it begins with the first sync",
                "Name a remote and sync: haversack remote add file:///a/directory, haversack sync",
            ));
        };
        let state = home.memory().state.clone();
        let history = block_on(History::open(state, backend, store, patience))?;
        let device = remote.map(|remote| label(&remote.device));
        Ok(Past { history, head, device })
    }

    /// Calls `visit` with the commits from the newest on, until it has enough; tells whether all were at hand.
    pub(crate) fn each(
        &mut self,
        mut visit: impl FnMut(&Arc<Commit>) -> Enough,
    ) -> Result<AtHand, CommandError> {
        let newest = self.head.map_or(0, Position::number);
        for number in (1..=newest).rev().take(MAX_LOOKED_AT) {
            let Some(position) = Position::new(number) else { break };
            let Some(commit) = block_on(self.history.commit(position))? else { return Ok(AtHand::Some) };
            if visit(&commit) == Enough::Yes {
                break;
            }
        }
        Ok(AtHand::All)
    }

    /// Refuses a place that never had a file: neither the memory now nor any commit that can be read has one at or below it.
    ///
    /// A mistyped path would otherwise look like a file without changes.
    pub(crate) fn refuse_unknown(
        &mut self,
        settings: &Settings,
        locator: &Locator,
    ) -> Result<(), CommandError> {
        if locator.is_root() || block_on(open_to_look(settings)?.files().info(locator)).is_ok() {
            return Ok(());
        }
        let mut is_in_history = false;
        let at_hand = self.each(|commit| {
            is_in_history = commit.changes.iter().any(|change| change.locator.is_within(locator));
            if is_in_history { Enough::Yes } else { Enough::No }
        })?;
        if is_in_history {
            return Ok(());
        }
        let which = match at_hand {
            AtHand::All => "its history",
            AtHand::Some => "the part of its history that can be read without the remote",
        };
        Err(CommandError::user(
            format!("there is no {locator} in the memory, nor in {which}"),
            "See the files of the memory: haversack ls",
        ))
    }

    /// Returns the commit of a number, as `haversack log` shows it.
    pub(crate) fn commit(&mut self, number: u64) -> Result<Arc<Commit>, CommandError> {
        let newest = self.head.map_or(0, Position::number);
        let Some(position) = Position::new(number).filter(|_| number <= newest) else {
            return Err(CommandError::user(
                format!("there is no change {number}: the newest that this machine knows is {newest}"),
                "See the changes and their numbers: haversack log. Get newer ones: haversack sync",
            ));
        };
        block_on(self.history.commit(position))?.ok_or_else(|| {
            CommandError::user(
                format!("change {number} is not kept on this machine, and the remote cannot be reached"),
                "Run the same command again when you are online. See which changes are here: haversack log",
            )
        })
    }

    /// Returns what a file held after a position; before the first there was nothing.
    pub(crate) fn held(
        &mut self,
        locator: &Locator,
        position: Option<Position>,
    ) -> Result<Option<Bytes>, CommandError> {
        let held = block_on(self.history.held(locator, position))?;
        known(locator, held)
    }

    /// Returns what a file held right before a commit changed it.
    pub(crate) fn held_before(
        &mut self,
        locator: &Locator,
        commit: &Commit,
    ) -> Result<Option<Bytes>, CommandError> {
        let held = block_on(self.history.held_before(locator, commit))?;
        known(locator, held)
    }

    /// Returns the content of a file before a commit and after it.
    pub(crate) fn around(
        &mut self,
        locator: &Locator,
        commit: &Commit,
    ) -> Result<(Option<Bytes>, Option<Bytes>), CommandError> {
        Ok((self.held_before(locator, commit)?, self.held(locator, Some(commit.position))?))
    }

    /// Returns the newest deletion of wanted files, by whatever machine; tells whether all commits that it looked for were at hand.
    ///
    /// A file whose content the same commit put under another name was moved, not deleted. A file that was written again after its
    /// deletion is left out.
    pub(crate) fn last_deletion(
        &mut self,
        is_wanted: impl Fn(&Locator) -> bool,
    ) -> Result<(Option<Deletion>, AtHand), CommandError> {
        let mut found: Option<Deletion> = None;
        let mut seen: BTreeSet<Locator> = BTreeSet::new();
        let newest = self.head.map_or(0, Position::number);
        for position in (1..=newest).rev().take(MAX_LOOKED_AT).filter_map(Position::new) {
            let Some(commit) = block_on(self.history.commit(position))? else {
                return Ok((found, AtHand::Some));
            };
            if let Some(Deletion { commit: newest, .. }) = &found
                && (newest.device != commit.device
                    || newest.time.0 - commit.time.0 > DELETED_TOGETHER_MILLISECONDS)
            {
                break;
            }
            let moved_to: BTreeSet<ContentHash> = commit
                .changes
                .iter()
                .filter_map(|change| change.what.after())
                .map(|content| content.hash)
                .collect();
            for change in &commit.changes {
                let is_deletion = matches!(change.what, What::Delete { .. });
                if !seen.insert(change.locator.clone()) || !is_deletion || !is_wanted(&change.locator) {
                    continue;
                }
                let before = self.held_before(&change.locator, &commit)?;
                let Some(before) = before.filter(|bytes| !moved_to.contains(&ContentHash::of(bytes))) else {
                    continue;
                };
                let deletion =
                    found.get_or_insert_with(|| Deletion { commit: commit.clone(), files: Vec::new() });
                deletion.files.push((change.locator.clone(), before));
            }
        }
        Ok((found, AtHand::All))
    }

    /// Returns what waits to be sent, with what was agreed on before.
    pub(crate) fn waiting(&mut self, home: &Home) -> Result<Vec<Waiting>, CommandError> {
        let mut waiting: BTreeMap<Locator, Waiting> = BTreeMap::new();
        for place in home.places() {
            let look = place.look()?;
            let is_first_sync = look.position.is_none();
            let names = [look.created, look.changed, look.deleted, look.waiting_deletions].concat();
            for locator in names {
                let before = self.held(&locator, look.position)?;
                let now = match block_on(place.files.read(&locator)) {
                    Ok(object) => Some(object.bytes),
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    Err(error) => return Err(error.into()),
                };
                let is_import = is_first_sync && before.is_none();
                waiting.insert(locator.clone(), Waiting { locator, before, now, is_import });
            }
        }
        Ok(waiting.into_values().collect())
    }
}

/// Returns what a file held, or why that cannot be told.
fn known(locator: &Locator, held: Held) -> Result<Option<Bytes>, CommandError> {
    match held {
        Held::Content(bytes) => Ok(Some(bytes)),
        Held::Nothing => Ok(None),
        Held::Unknown => Err(CommandError::user(
            format!(
                "an older version of {locator} is not kept on this machine, and the remote cannot be reached"
            ),
            "Run the same command again when you are online",
        )),
    }
}

/// Whether a visitor wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enough {
    Yes,
    No,
}

/// Whether everything that was asked for could be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtHand {
    All,
    Some,
}
