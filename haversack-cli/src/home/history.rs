//! The history of a home: the changes of its store, before them the changes that stayed on this machine, and the changes that wait.
//!
//! A home without a remote has a [local history](super::local_history). Its changes are numbered `local-1`, `local-2`, … If a remote is added
//! later, they are the older part of the history.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use haversack::history::{History, PastContent};
use haversack::home::Work;
use haversack::ids::{ContentHash, Position, ReplicaId};
use haversack::log::{Commit, What, label};
use haversack::store::{Backend, Bytes, ErrorKind, Locator, block_on};
use haversack_system::Backoff;

use super::local_history;
use crate::error::CommandError;
use crate::home::Home;
use crate::home::store::open_to_look;
use crate::remote::{self, Remote};
use crate::settings::Settings;

/// The most commits that are looked through for one answer.
pub(crate) const MAX_LOOKED_AT: usize = 100_000;

/// Deletions by one machine within this time are one deletion, if no other machine changed something in between: an agent deletes files
/// one by one, and each may be a commit.
const DELETED_TOGETHER_MILLISECONDS: i64 = 10 * 60 * 1000;

/// The beginning of the numbers of changes that stayed on this machine.
const LOCAL: &str = "local-";

/// The history of a home, from the newest change that this machine knows.
pub(crate) struct HistoryReader<'a> {
    /// The changes of the log that the home syncs with now, then those of its local log from the time before.
    parts: Vec<Part<'a>>,
    /// The last applied position of the store's log.
    pub(crate) head: Option<Position>,
    /// The replicas of this home that follow the store.
    pub(crate) replicas: BTreeSet<ReplicaId>,
    /// This machine's name, as its commits have it.
    pub(crate) device: Option<String>,
}

/// The changes of one log.
struct Part<'a> {
    log: Log,
    history: History<'a>,
    head: Option<Position>,
}

/// A log that a home has changes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// The log of the store, which all its machines have.
    Store,
    /// The log that stays on this machine.
    Local,
}

/// The number of a change, as `haversack log` shows it: `12`, or `local-3` for a change that stayed on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeNumber {
    pub(crate) log: Log,
    pub(crate) number: u64,
}

impl fmt::Display for ChangeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.log {
            Log::Store => self.number.to_string(),
            Log::Local => format!("{LOCAL}{}", self.number),
        };
        f.pad(&text)
    }
}

impl FromStr for ChangeNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<ChangeNumber, String> {
        let (log, digits) = match text.strip_prefix(LOCAL) {
            Some(digits) => (Log::Local, digits),
            None => (Log::Store, text),
        };
        match digits.parse() {
            Ok(number) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(ChangeNumber { log, number })
            }
            _ => Err("a change has a number like 12 or local-3: see haversack log".to_owned()),
        }
    }
}

/// A change: a commit, and its number.
#[derive(Clone, Debug)]
pub(crate) struct NumberedChange {
    commit: Arc<Commit>,
    pub(crate) number: ChangeNumber,
}

impl NumberedChange {
    /// Returns true if the machine of this name made the change. A change that stayed on this machine is its own, under any name.
    pub(crate) fn is_of(&self, device: Option<&String>) -> bool {
        self.number.log == Log::Local || Some(&self.commit.device) == device
    }
}

impl Deref for NumberedChange {
    type Target = Commit;

    fn deref(&self) -> &Commit {
        &self.commit
    }
}

/// A file that differs from its last agreed version.
pub(crate) struct Waiting {
    pub(crate) locator: Locator,
    /// The agreed version; `None` if there was no file.
    pub(crate) before: Option<Bytes>,
    /// The version here; `None` if there is no file.
    pub(crate) now: Option<Bytes>,
    /// True if the file was there before its replica first synced.
    pub(crate) is_import: bool,
}

/// Files that one machine deleted at about the same time.
pub(crate) struct Deletion {
    /// The newest change that deleted some of them.
    pub(crate) change: NumberedChange,
    /// The files, each with its content right before.
    pub(crate) files: Vec<(Locator, Bytes)>,
}

/// Opens the home for its history. Without a remote, the changes since the last time are recorded first.
pub(crate) fn open_home(settings: &Settings) -> Result<Home, CommandError> {
    if !local_history::is_used(settings)? {
        return Home::open(settings);
    }
    if !settings.memory().is_dir() {
        // Looking makes nothing: a mistyped `--home` would leave a new home behind.
        return Err(no_history());
    }
    local_history::record(settings, Work::Sync, "edit")?;
    Home::open_for_local_history(settings)
}

fn no_history() -> CommandError {
    CommandError::user(
        "there is no history yet: it begins with the first write",
        "Write something: haversack create notes.md TEXT. Or connect an agent: haversack init",
    )
}

impl<'a> HistoryReader<'a> {
    /// Opens the history of a home that [`open_home`] opened; a remote that cannot be reached only makes it shorter.
    pub(crate) fn open(
        settings: &Settings,
        home: &Home,
        patience: &'a Backoff,
    ) -> Result<HistoryReader<'a>, CommandError> {
        let remote = Remote::for_looking(settings)?;
        let backend = remote.as_ref().and_then(|remote| remote::open(settings, remote).ok());
        HistoryReader::of(settings, home, remote, backend, patience)
    }

    /// Opens the part of the history that is on this machine.
    pub(crate) fn at_hand(
        settings: &Settings,
        home: &Home,
        patience: &'a Backoff,
    ) -> Result<HistoryReader<'a>, CommandError> {
        HistoryReader::of(settings, home, Remote::for_looking(settings)?, None, patience)
    }

    fn of(
        settings: &Settings,
        home: &Home,
        remote: Option<Remote>,
        backend: Option<Arc<dyn Backend>>,
        patience: &'a Backoff,
    ) -> Result<HistoryReader<'a>, CommandError> {
        let mut history =
            HistoryReader { parts: Vec::new(), head: None, replicas: BTreeSet::new(), device: None };
        match &remote {
            Some(remote) => {
                history.add(Log::Store, home, backend, patience)?;
                history.device = Some(label(&remote.device));
            }
            None => history.device = Some(label(&remote::device_name())),
        }
        if settings.store().local_history().is_dir() {
            let own = Home::open_for_local_history(settings)?;
            history.add(Log::Local, &own, Some(local_history::log(settings)?), patience)?;
        }
        if remote.is_none() && settings.state().is_dir() {
            // The changes of a store that this home left.
            history.add(Log::Store, &Home::open(settings)?, None, patience)?;
        }
        match history.parts.is_empty() {
            true => Err(no_history()),
            false => Ok(history),
        }
    }

    /// Adds the changes of one log, if the home has synced with it.
    fn add(
        &mut self,
        log: Log,
        home: &Home,
        backend: Option<Arc<dyn Backend>>,
        patience: &'a Backoff,
    ) -> Result<(), CommandError> {
        let agreements = home.agreements()?;
        let Some(store) = agreements.iter().find_map(|agreement| agreement.store) else { return Ok(()) };
        let head = agreements.iter().filter_map(|agreement| agreement.position).max();
        let history = block_on(History::open(home.memory().state.clone(), backend, store, patience))?;
        if log == Log::Store {
            self.head = head;
            self.replicas = agreements.iter().filter_map(|agreement| agreement.replica).collect();
        }
        self.parts.push(Part { log, history, head });
        Ok(())
    }

    /// Calls `visit` with the changes from the newest on, until it has enough; returns true if all were available.
    pub(crate) fn each(
        &mut self,
        mut visit: impl FnMut(&NumberedChange) -> Enough,
    ) -> Result<AtHand, CommandError> {
        let mut missing = None;
        for number in self.numbers().take(MAX_LOOKED_AT) {
            if missing == Some(number.log) {
                continue;
            }
            match self.at_number(number)? {
                Some(change) if visit(&change) == Enough::Yes => break,
                Some(_) => {}
                // The older changes of this log are not at hand either.
                None => missing = Some(number.log),
            }
        }
        Ok(if missing.is_some() { AtHand::Some } else { AtHand::All })
    }

    /// Returns the numbers of all changes, the newest first.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = ChangeNumber> + use<> {
        let heads: Vec<(Log, u64)> =
            self.parts.iter().map(|part| (part.log, part.head.map_or(0, Position::number))).collect();
        heads
            .into_iter()
            .flat_map(|(log, head)| (1..=head).rev().map(move |number| ChangeNumber { log, number }))
    }

    /// Returns the change with a number; `None` if it is not at hand.
    pub(crate) fn at_number(&mut self, number: ChangeNumber) -> Result<Option<NumberedChange>, CommandError> {
        let (Some(part), Some(position)) = (self.part(number.log), Position::new(number.number)) else {
            return Ok(None);
        };
        let commit = block_on(part.history.commit(position))?;
        Ok(commit.map(|commit| NumberedChange { commit, number }))
    }

    fn part(&mut self, log: Log) -> Option<&mut Part<'a>> {
        self.parts.iter_mut().find(|part| part.log == log)
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

    /// Returns the change with a number, as `haversack log` shows it.
    pub(crate) fn change(&mut self, number: ChangeNumber) -> Result<NumberedChange, CommandError> {
        let log = number.log;
        let part = self.part(log);
        let newest = part.as_ref().and_then(|part| part.head).map_or(0, Position::number);
        let position = Position::new(number.number).filter(|_| number.number <= newest);
        let (Some(part), Some(position)) = (part, position) else {
            let newest = ChangeNumber { log, number: newest };
            return Err(CommandError::user(
                format!("there is no change {number}: the newest that this machine knows is {newest}"),
                "See the changes and their numbers: haversack log. Get newer ones: haversack sync",
            ));
        };
        let commit = block_on(part.history.commit(position))?.ok_or_else(|| {
            CommandError::user(
                format!("change {number} is not kept on this machine, and the remote cannot be reached"),
                "Run the same command again when you are online. See which changes are here: haversack log",
            )
        })?;
        Ok(NumberedChange { commit, number })
    }

    /// Returns the content of a file after a position of the newest log; before the first position there was nothing.
    fn held(&mut self, locator: &Locator, position: Option<Position>) -> Result<Option<Bytes>, CommandError> {
        match self.parts.first_mut() {
            Some(part) => known(locator, block_on(part.history.held(locator, position))?),
            None => Ok(None),
        }
    }

    /// Returns the content of a file after a change.
    pub(crate) fn held_after(
        &mut self,
        locator: &Locator,
        change: &NumberedChange,
    ) -> Result<Option<Bytes>, CommandError> {
        match self.part(change.number.log) {
            Some(part) => known(locator, block_on(part.history.held(locator, Some(change.position)))?),
            None => Ok(None),
        }
    }

    /// Returns the content of a file right before a change.
    pub(crate) fn held_before(
        &mut self,
        locator: &Locator,
        change: &NumberedChange,
    ) -> Result<Option<Bytes>, CommandError> {
        match self.part(change.number.log) {
            Some(part) => known(locator, block_on(part.history.held_before(locator, change))?),
            None => Ok(None),
        }
    }

    /// Returns the content of a file before a change and after it.
    pub(crate) fn around(
        &mut self,
        locator: &Locator,
        change: &NumberedChange,
    ) -> Result<(Option<Bytes>, Option<Bytes>), CommandError> {
        Ok((self.held_before(locator, change)?, self.held_after(locator, change)?))
    }

    /// Returns the newest deletion of wanted files, by any machine; returns true if all commits that it needed were available.
    ///
    /// A file whose content the same commit put under another name was moved, not deleted. A file that was written again after its
    /// deletion is left out.
    pub(crate) fn last_deletion(
        &mut self,
        is_wanted: impl Fn(&Locator) -> bool,
    ) -> Result<(Option<Deletion>, AtHand), CommandError> {
        let mut found: Option<Deletion> = None;
        let mut seen: BTreeSet<Locator> = BTreeSet::new();
        for number in self.numbers().take(MAX_LOOKED_AT) {
            let Some(change) = self.at_number(number)? else { return Ok((found, AtHand::Some)) };
            if let Some(Deletion { change: newest, .. }) = &found
                && (newest.device != change.device
                    || newest.time.0 - change.time.0 > DELETED_TOGETHER_MILLISECONDS)
            {
                break;
            }
            let after = change.changes.iter().filter_map(|file| file.what.after());
            let moved_to: BTreeSet<ContentHash> = after.map(|content| content.hash).collect();
            for file in &change.changes {
                let is_deletion = matches!(file.what, What::Delete { .. });
                if !seen.insert(file.locator.clone()) || !is_deletion || !is_wanted(&file.locator) {
                    continue;
                }
                let before = self.held_before(&file.locator, &change)?;
                let Some(before) = before.filter(|bytes| !moved_to.contains(&ContentHash::of(bytes))) else {
                    continue;
                };
                let deletion =
                    found.get_or_insert_with(|| Deletion { change: change.clone(), files: Vec::new() });
                deletion.files.push((file.locator.clone(), before));
            }
        }
        Ok((found, AtHand::All))
    }

    /// Returns the changes that wait to be sent, with their bases.
    pub(crate) fn waiting(&mut self, home: &Home) -> Result<Vec<Waiting>, CommandError> {
        let mut waiting: BTreeMap<Locator, Waiting> = BTreeMap::new();
        for place in home.places() {
            let look = place.look()?;
            let names = [look.created, look.changed, look.deleted, look.waiting_deletions].concat();
            for locator in names {
                let before = self.held(&locator, look.position)?;
                let now = match block_on(place.files.read(&locator)) {
                    Ok(object) => Some(object.bytes),
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    Err(error) => return Err(error.into()),
                };
                let is_import = look.is_first && before.is_none();
                waiting.insert(locator.clone(), Waiting { locator, before, now, is_import });
            }
        }
        Ok(waiting.into_values().collect())
    }
}

/// Returns a file's past content, or the error that it is unknown.
fn known(locator: &Locator, held: PastContent) -> Result<Option<Bytes>, CommandError> {
    match held {
        PastContent::Content(bytes) => Ok(Some(bytes)),
        PastContent::Nothing => Ok(None),
        PastContent::Unknown => Err(CommandError::user(
            format!(
                "an older version of {locator} is not kept on this machine, and the remote cannot be reached"
            ),
            "Run the same command again when you are online",
        )),
        PastContent::Dropped => Err(CommandError::user(
            format!("the remote does not keep this old version of {locator} any more"),
            "See how long it keeps the contents of changes: haversack remote history",
        )),
    }
}

/// Tells if a visitor wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enough {
    Yes,
    No,
}

/// Tells if everything could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtHand {
    All,
    Some,
}
