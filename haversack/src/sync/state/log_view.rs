//! A replica's view of the log: the position that it has read, the base of every file, and the journal lines that move them.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Locator, Result as StoreResult};
use serde::{Deserialize, Serialize};

use super::files::damaged;
use crate::ids::{ContentHash, Position, StoreId};
use crate::log::{self, Content, StateMark};
use crate::sync::plan::{AbsenceReason, Bases};
use crate::sync::snapshot::{Packed, Packs};

/// A replica's view of the log: the position that it has read, and the base of every file.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogView {
    /// The store that the log belongs to; `None` before the first sync.
    pub(crate) store: Option<StoreId>,
    /// The last position that the replica has applied.
    pub(crate) head: Option<Head>,
    /// The log's files at that position: they are the bases.
    pub(crate) log: log::State,
    /// Files of the log that are not in the working directory, and why.
    pub(crate) absent: BTreeMap<Locator, AbsenceReason>,
    /// Earlier contents that working files are still based on ([`Bases::before`]).
    pub(crate) before: BTreeMap<Locator, ContentHash>,
    /// Of those, the files that stayed because their deletion is held.
    pub(crate) held: BTreeSet<Locator>,
    /// The last edit in the mirror that we imported, for each file.
    pub(crate) foreign: BTreeMap<Locator, ContentHash>,
    /// The checkpoint that this replica started from. It names the places of contents that were not fetched yet.
    pub(crate) joined: Option<Position>,
    /// The attempt at working files that moved the bases last.
    pub(in crate::sync) attempt: Option<String>,
    /// The packs of the state, by the contents in them.
    pub(in crate::sync) packed: Packs,
}

/// The last position that the replica has applied, and the hash of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) position: Position,
    pub(crate) hash: ContentHash,
    /// The remote's version of that object. A listing shows by it that the object is still the same.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) version: Option<String>,
}

/// One move of the replica along the log: the new position and the bases that change with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Advance {
    pub(crate) store: StoreId,
    pub(crate) head: Head,
    /// The mark of all files after the move.
    pub(crate) mark: StateMark,
    /// The attempt at working files that ends with this move.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) attempt: Option<String>,
    /// The checkpoint that the replica starts from, if this move is the start.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) joined: Option<Position>,
    pub(crate) bases: Vec<BaseLine>,
}

/// A base as the journal has it: locator, content, size, and the reason if the file is not in the working directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaseLine {
    pub(crate) at: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) hash: Option<ContentHash>,
    #[serde(skip_serializing_if = "is_zero", default)]
    pub(crate) size: u64,
    #[serde(rename = "elsewhere", skip_serializing_if = "Option::is_none", default)]
    pub(crate) absent: Option<AbsenceReason>,
    /// An earlier content that the working file is still based on ([`Bases::before`]).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) before: Option<ContentHash>,
    /// True if the file stayed because its deletion is held.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) held: bool,
    /// The pack that has the content, and the offset in it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) pack: Option<(ContentHash, u64)>,
    /// The last edit in the mirror that we imported, for each file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) foreign: Option<ContentHash>,
}

impl BaseLine {
    pub(crate) fn new(at: &str, content: Option<Content>) -> BaseLine {
        let (hash, size) = (content.map(|content| content.hash), content.map_or(0, |content| content.size));
        BaseLine { at: at.to_owned(), hash, size, ..BaseLine::default() }
    }

    fn content(&self) -> Option<Content> {
        self.hash.map(|hash| Content { hash, size: self.size })
    }

    /// Returns the content's hash and its place in a pack, if it is in one.
    pub(super) fn packed(&self) -> Option<(ContentHash, Packed)> {
        let ((pack, offset), hash) = (self.pack?, self.hash.or(self.before)?);
        Some((hash, Packed { pack, offset, size: self.size }))
    }
}

fn is_zero(size: &u64) -> bool {
    *size == 0
}

impl LogView {
    pub(crate) fn bases(&self) -> Bases<'_> {
        Bases { files: self.log.files(), absent: &self.absent, before: &self.before, held: &self.held }
    }

    /// Returns the content that a working file is based on.
    pub(crate) fn ground(&self, at: &str) -> Option<ContentHash> {
        let base = self.log.files().get(at).map(|content| content.hash);
        base.filter(|_| !self.absent.contains_key(at)).or_else(|| self.before.get(at).copied())
    }

    pub(super) fn advance(&mut self, advance: &Advance) -> StoreResult<()> {
        self.store = Some(advance.store);
        self.head = Some(advance.head.clone());
        self.joined = advance.joined.or(self.joined);
        if advance.attempt.is_some() {
            self.attempt.clone_from(&advance.attempt);
        }
        self.take(&advance.bases, advance.mark)
    }

    /// Applies lines to the bases. Fails if the result does not have the mark.
    pub(in crate::sync) fn take(&mut self, bases: &[BaseLine], mark: StateMark) -> StoreResult<()> {
        for line in bases {
            self.log.set(&line.at, line.content());
            // An odd name must not stand for the file that it resembles.
            let Some(locator) = Locator::parse(&line.at).ok().filter(|locator| locator.as_str() == line.at)
            else {
                continue;
            };
            if let Some(foreign) = line.foreign {
                self.foreign.insert(locator.clone(), foreign);
            }
            match line.before {
                Some(before) => drop(self.before.insert(locator.clone(), before)),
                None if self.before.is_empty() => {}
                None => drop(self.before.remove(&locator)),
            }
            match line.held {
                true => drop(self.held.insert(locator.clone())),
                false if self.held.is_empty() => {}
                false => drop(self.held.remove(&locator)),
            }
            match line.absent {
                Some(why) => drop(self.absent.insert(locator, why)),
                None if self.absent.is_empty() => {}
                None => drop(self.absent.remove(&locator)),
            }
            self.packed.extend(line.packed());
        }
        if self.log.mark() == mark { Ok(()) } else { Err(damaged("bases", "one of them")) }
    }

    /// Returns a line for each base that has more than a content, its place and the reason for its absence.
    pub(in crate::sync) fn extra_lines(&self) -> Vec<BaseLine> {
        let files = self.foreign.iter().filter_map(|(locator, foreign)| {
            let content = self.log.files().get(locator)?;
            Some(BaseLine {
                absent: self.absent.get(locator).copied(),
                foreign: Some(*foreign),
                pack: self.packed.get(&content.hash).map(|packed| (packed.pack, packed.offset)),
                ..BaseLine::new(locator.as_str(), Some(content))
            })
        });
        let odd = self.log.odd().iter().map(|(key, content)| BaseLine::new(key, Some(*content)));
        let before = self.before.iter().map(|(locator, before)| {
            let content = self.log.files().get(locator);
            // The pack of a line is that of its newer content.
            let packed = self.packed.get(&content.map_or(*before, |content| content.hash));
            let mut line = BaseLine {
                before: Some(*before),
                held: self.held.contains(locator),
                foreign: self.foreign.get(locator).copied(),
                absent: self.absent.get(locator).copied(),
                pack: packed.map(|packed| (packed.pack, packed.offset)),
                ..BaseLine::new(locator.as_str(), content)
            };
            if content.is_none() {
                line.size = packed.map_or(0, |packed| packed.size);
            }
            line
        });
        let is_alone =
            |locator: &Locator| !self.log.files().contains_key(locator) && !self.before.contains_key(locator);
        let foreign = self.foreign.iter().filter(|(locator, _)| is_alone(locator));
        let foreign = foreign.map(|(locator, foreign)| BaseLine {
            foreign: Some(*foreign),
            ..BaseLine::new(locator.as_str(), None)
        });
        files.chain(odd).chain(before).chain(foreign).collect()
    }
}
