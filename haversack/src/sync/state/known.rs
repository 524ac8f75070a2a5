//! What a replica has read of the log, and the lines that move it.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Locator, Result as StoreResult};
use serde::{Deserialize, Serialize};

use super::files::damaged;
use crate::ids::{ContentHash, Position, StoreId};
use crate::log::{self, Content, StateMark};
use crate::sync::plan::{Bases, Elsewhere};
use crate::sync::snapshot::{Packed, Packs};

/// What a replica has read of the log, and what it agreed on with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The store that the log belongs to, once it was met.
    pub(crate) store: Option<StoreId>,
    /// The last position that was taken in.
    pub(crate) head: Option<Head>,
    /// The log's files at that position: they are the bases.
    pub(crate) log: log::State,
    /// Files of the log that are not in the working directory, and why.
    pub(crate) elsewhere: BTreeMap<Locator, Elsewhere>,
    /// Earlier contents that working files still go back to ([`Bases::before`]).
    pub(crate) before: BTreeMap<Locator, ContentHash>,
    /// Of those, the files that stayed because their deletion is held.
    pub(crate) held: BTreeSet<Locator>,
    /// What somebody had put into the mirror by hand that was taken in.
    pub(crate) foreign: BTreeMap<Locator, ContentHash>,
    /// The checkpoint that this replica started from: it knows where the contents of files are that were not fetched yet.
    pub(crate) joined: Option<Position>,
    /// Which attempt at working files moved the bases last.
    pub(in crate::sync) attempt: Option<String>,
    /// In which packs of the state contents are.
    pub(in crate::sync) packed: Packs,
}

/// The last position that was taken in, and the hash of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) position: Position,
    pub(crate) hash: ContentHash,
    /// What the remote calls that object, to see in a listing that it is still the same.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) version: Option<String>,
}

/// Bases that move, together with how far the log was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Advance {
    pub(crate) store: StoreId,
    pub(crate) head: Head,
    /// The mark that all files must have afterwards.
    pub(crate) mark: StateMark,
    /// The attempt at working files that this ends.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) attempt: Option<String>,
    /// The checkpoint that this is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) joined: Option<Position>,
    pub(crate) bases: Vec<BaseLine>,
}

/// A base as it is written: place, content, size, and whether the file is here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaseLine {
    pub(crate) at: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) hash: Option<ContentHash>,
    #[serde(skip_serializing_if = "is_zero", default)]
    pub(crate) size: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) elsewhere: Option<Elsewhere>,
    /// An earlier content that the working file still goes back to ([`Bases::before`]).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) before: Option<ContentHash>,
    /// True if the file stayed because its deletion is held.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) held: bool,
    /// The pack that has the content, and where in it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) pack: Option<(ContentHash, u64)>,
    /// What somebody had put into the mirror by hand that was taken in.
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

    /// Returns the content that is in a pack, and where.
    pub(super) fn packed(&self) -> Option<(ContentHash, Packed)> {
        let ((pack, offset), hash) = (self.pack?, self.hash.or(self.before)?);
        Some((hash, Packed { pack, offset, size: self.size }))
    }
}

fn is_zero(size: &u64) -> bool {
    *size == 0
}

impl Known {
    pub(crate) fn bases(&self) -> Bases<'_> {
        Bases { files: self.log.files(), elsewhere: &self.elsewhere, before: &self.before, held: &self.held }
    }

    /// Returns the content that a working file goes back to.
    pub(crate) fn ground(&self, at: &str) -> Option<ContentHash> {
        let base = self.log.files().get(at).map(|content| content.hash);
        base.filter(|_| !self.elsewhere.contains_key(at)).or_else(|| self.before.get(at).copied())
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

    /// Moves bases; the mark tells whether they are what was written down.
    pub(in crate::sync) fn take(&mut self, bases: &[BaseLine], mark: StateMark) -> StoreResult<()> {
        for line in bases {
            self.log.set(&line.at, line.content());
            // An odd name must not be taken for the file that it resembles.
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
            match line.elsewhere {
                Some(why) => drop(self.elsewhere.insert(locator, why)),
                None if self.elsewhere.is_empty() => {}
                None => drop(self.elsewhere.remove(&locator)),
            }
            self.packed.extend(line.packed());
        }
        if self.log.mark() == mark { Ok(()) } else { Err(damaged("bases", "one of them")) }
    }

    /// Returns what there is to say about bases besides what they hold, where that is and why they are not here.
    pub(in crate::sync) fn unusual_lines(&self) -> Vec<BaseLine> {
        let files = self.foreign.iter().filter_map(|(locator, foreign)| {
            let content = self.log.files().get(locator)?;
            Some(BaseLine {
                elsewhere: self.elsewhere.get(locator).copied(),
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
                elsewhere: self.elsewhere.get(locator).copied(),
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
