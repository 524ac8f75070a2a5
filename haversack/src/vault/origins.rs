//! Tells plain files in a folder that our devices wrote from files that a person wrote by hand.
//!
//! A file that arrives looks like an edit. The content that a device writes into the folder is in its log, or announced there. But the
//! file may arrive before the log. So we wait for a content that no log names: until a log names it, until the user says that it is
//! theirs, or until it has lain there for a while in which everything else arrived ([`PATIENCE`]). If there is only one device, the wait is
//! short ([`ALONE_PATIENCE`]): another one may just be arriving, its files before its log. Time decides only how long is waited, never which of
//! two contents is the newer one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use haversack_store::{Backend, Condition, ErrorKind, Locator};
use serde::{Deserialize, Serialize};

use super::bridge::Bridge;
use super::copies;
use super::file_merge::available;
use super::logs::{Crossed, Logs};
use crate::frame;
use crate::ids::{ContentHash, Position, ReplicaId, Timestamp};
use crate::sync::planted::{Planted, has};
use crate::sync::{Context, Origin, Origins, SyncError};

/// The time that we wait for a log that names a file.
pub const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The time that we wait if no other device has a log.
pub const ALONE_PATIENCE: Duration = Duration::from_secs(60);

const KIND: &str = "awaited";
const VERSION: u32 = 1;
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The files in a folder that the user or an agent of this device wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mine {
    /// None is known.
    #[default]
    Nothing,
    /// These, with their content at the time of the user's statement: a sync client may replace each of them later.
    These(BTreeSet<(Locator, ContentHash)>),
    /// All files that no log names.
    Everything,
}

impl Mine {
    /// Adds files that this device's user wrote.
    pub fn and(self, more: BTreeSet<(Locator, ContentHash)>) -> Mine {
        match self {
            Mine::Everything => Mine::Everything,
            Mine::Nothing => Mine::These(more),
            Mine::These(these) => Mine::These(these.into_iter().chain(more).collect()),
        }
    }
}

/// The origins of the plain files of a folder.
#[derive(Clone, Debug)]
pub struct FolderOrigins {
    named: HashMap<(Locator, ContentHash), Crossed>,
    mine: Mine,
    /// Files that we waited for before, and the start of the wait.
    awaited: BTreeMap<(Locator, ContentHash), Timestamp>,
    /// Files that came before this moment have waited long enough.
    long_ago: Timestamp,
    /// True if there was time to read all entries that have arrived. Otherwise the base of an edit is unknown.
    is_all_read: bool,
    machines: Vec<String>,
    /// The part of this device's folder log that is in the folder, or announced there.
    told: Option<Position>,
}

impl Origins for FolderOrigins {
    fn of(&self, locator: &Locator, hash: &ContentHash) -> Origin {
        let is_mine = || match &self.mine {
            Mine::Nothing => false,
            Mine::These(these) => these.contains(&(locator.clone(), *hash)),
            Mine::Everything => true,
        };
        let waited =
            || self.awaited.get(&(locator.clone(), *hash)).is_some_and(|since| *since <= self.long_ago);
        if self.named.contains_key(&(locator.clone(), *hash)) {
            Origin::Ours
        } else if (self.is_all_read && (is_mine() || waited())) || has(Planted::StrangeIsAnEdit) {
            Origin::Edit
        } else {
            Origin::Unclear
        }
    }

    fn is_claimed(&self, locator: &Locator) -> bool {
        match &self.mine {
            Mine::These(these) => these.iter().any(|(claimed, _)| claimed == locator),
            Mine::Nothing | Mine::Everything => false,
        }
    }

    fn is_crossed(&self, locator: &Locator, hash: &ContentHash) -> bool {
        self.named.get(&(locator.clone(), *hash)) != Some(&Crossed::No)
    }

    fn copies(&self, there: &[Locator]) -> Vec<(Locator, Locator)> {
        let machines: Vec<&str> = self.machines.iter().map(String::as_str).collect();
        let found = copies::waiting(there, &machines).copies;
        found.into_iter().map(|pair| (pair.copy, pair.original)).collect()
    }

    fn is_told(&self, position: Position) -> bool {
        // The replica has not applied the entries after this position yet: its plain files would undo changes of others.
        self.told == Some(position)
    }
}

impl Bridge {
    /// Returns the origins of the folder's plain files, after all entries were exchanged.
    pub async fn origins(&mut self, context: Context<'_>, mine: Mine) -> Result<FolderOrigins, SyncError> {
        let told = self.cursor.announced;
        let heads = self.cursor.heads.clone();
        let own: BTreeSet<_> = self.cursor.former.iter().copied().chain([self.replica]).collect();
        let awaited = load(&*self.home).await?;
        let logs = &self.read().await?.logs;
        let is_all_read = available(logs) == heads;
        let patience = patience(logs, &own);
        Ok(FolderOrigins {
            named: logs.crossings(&heads, &own),
            mine,
            awaited,
            long_ago: Timestamp(context.clock.now().0.saturating_sub(patience)),
            is_all_read,
            machines: logs.devices().map(str::to_owned).collect(),
            told,
        })
    }

    /// Stores the files that wait, with the start of each wait. Returns the end of each wait.
    pub async fn await_files(
        &mut self,
        context: Context<'_>,
        awaited: &[(Locator, ContentHash)],
    ) -> Result<BTreeMap<Locator, Timestamp>, SyncError> {
        let before = load(&*self.home).await?;
        let now = context.clock.now();
        let since = |file: &(Locator, ContentHash)| *before.get(file).unwrap_or(&now);
        let after: BTreeMap<_, _> = awaited.iter().map(|file| (file.clone(), since(file))).collect();
        let own: BTreeSet<_> = self.cursor.former.iter().copied().chain([self.replica]).collect();
        let patience = if after.is_empty() { 0 } else { patience(&self.read().await?.logs, &own) };
        let until = |since: &Timestamp| Timestamp(since.0.saturating_add(patience));
        let ends = after.iter().map(|((at, _), since)| (at.clone(), until(since))).collect();
        if after == before {
            return Ok(ends);
        }
        let lines = after.into_iter().map(|((at, hash), since)| Line { at: at.to_string(), hash, since });
        let list = List { awaited: lines.collect() };
        let bytes = frame::encode(KIND, VERSION, &list, &[], MAX_BYTES)
            .map_err(|why| SyncError::Unfit { position: Position::FIRST, why: why.to_string() })?;
        self.home.write(&place(), bytes, Condition::Any).await.map(drop).map_err(SyncError::Local)?;
        Ok(ends)
    }
}

/// Returns how long a file is waited for, in milliseconds.
fn patience(logs: &Logs, own: &BTreeSet<ReplicaId>) -> i64 {
    let patience = if logs.replicas().is_subset(own) { ALONE_PATIENCE } else { PATIENCE };
    i64::try_from(patience.as_millis()).unwrap_or(i64::MAX)
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    awaited: Vec<Line>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    at: String,
    hash: ContentHash,
    since: Timestamp,
}

fn place() -> Locator {
    Locator::parse("awaited").expect("a plain name")
}

/// Returns the waiting files; if the record is lost, the wait starts again.
async fn load(home: &dyn Backend) -> Result<BTreeMap<(Locator, ContentHash), Timestamp>, SyncError> {
    let bytes = match home.read(&place()).await {
        Ok(object) => object.bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(SyncError::Local(error)),
    };
    let list = frame::decode::<List>(KIND, VERSION, &bytes, MAX_BYTES).map(|framed| framed.heading);
    let lines = list.unwrap_or_default().awaited.into_iter();
    Ok(lines.filter_map(|line| Some(((Locator::parse(&line.at).ok()?, line.hash), line.since))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seed 81341433 of the vault's schedules: a device that was put back from a backup had no time to read its own last entries, and took an edit of
    /// what they had put into the folder for an edit of what it had put there before.
    #[test]
    fn an_edit_waits_until_all_is_read() {
        let (at, hash) = (Locator::parse("notes.md").expect("valid"), ContentHash::of(b"by hand"));
        let mut origins = FolderOrigins {
            named: HashMap::new(),
            mine: Mine::Everything,
            awaited: BTreeMap::new(),
            long_ago: Timestamp(0),
            is_all_read: false,
            machines: Vec::new(),
            told: None,
        };
        assert_eq!(origins.of(&at, &hash), Origin::Unclear);
        origins.is_all_read = true;
        assert_eq!(origins.of(&at, &hash), Origin::Edit);
        origins.mine = Mine::Nothing;
        assert_eq!(origins.of(&at, &hash), Origin::Unclear);
        origins.awaited.insert((at.clone(), hash), Timestamp(0));
        assert_eq!(origins.of(&at, &hash), Origin::Edit);
    }
}
