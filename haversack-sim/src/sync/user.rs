//! The edits of users and programs, without any lock and without knowing of sync.

use std::collections::BTreeSet;

use haversack_store::{Bytes, Locator};

use super::oracle::Oracle;
use super::sheet::{Draft, Sheet, Sheets, Wish, other_spelling};
use super::storage::Saving;
use super::unit::{unit, units_of};
use crate::random::Random;

/// A user's next edit.
#[derive(Clone, Debug)]
pub(crate) struct Intention {
    pub(crate) sheet: &'static Sheet,
    /// The unit that the user writes.
    unit: String,
    can_move: bool,
    /// True if the user gives the file its other spelling, if it exists.
    renames: bool,
    /// True if there is only room for deletions.
    is_full: bool,
    random: Random,
}

/// A user's edit of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The file, by the path of its sheet.
    pub(crate) file: &'static str,
    /// Its name where the user found it.
    pub(crate) at: String,
    pub(crate) change: Change,
    /// True if the file did not exist before.
    is_made: bool,
    seen: BTreeSet<String>,
    removed: BTreeSet<String>,
    added: Option<String>,
    /// The thing that the added unit describes.
    about: Option<String>,
}

/// The change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Saved(Bytes, Saving),
    Deleted,
    /// It has this name now.
    Renamed(String),
}

/// A file as a user finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The spelling of its name.
    pub(crate) at: String,
    pub(crate) text: String,
}

impl Intention {
    pub(crate) fn new(
        sheets: &Sheets,
        device: usize,
        number: usize,
        is_full: bool,
        renames: bool,
        mut random: Random,
    ) -> Intention {
        let (sheet, unit, can_move) = (sheets.pick(&mut random), unit(number, device), sheets.are_rearranged);
        Intention { sheet, unit, can_move, renames, is_full, random }
    }

    pub(crate) fn locator(&self) -> Locator {
        Locator::parse(self.sheet.path).expect("a plain name")
    }

    /// Looks for the file under both spellings of its name.
    pub(crate) fn find(&self, mut read: impl FnMut(&str) -> Option<String>) -> Option<Found> {
        self.sheet.spellings().find_map(|at| Some(Found { text: read(&at)?, at }))
    }

    /// Decides, having seen the file and how many there are.
    pub(crate) fn decide(mut self, found: Option<Found>, files: usize) -> Option<Edit> {
        let file = self.sheet.path;
        let (at, text) = found.map_or((file.to_owned(), None), |found| (found.at, Some(found.text)));
        let text = text.as_deref();
        let seen = units_of(text.unwrap_or_default());
        if self.renames
            && text.is_some()
            && let Some(to) = other_spelling(&at)
        {
            let (is_made, removed, added, about) = (false, BTreeSet::new(), None, None);
            let change = Change::Renamed(to);
            return Some(Edit { file, at, change, is_made, seen, removed, added, about });
        }
        let choice = self.random.between(0, 19);
        let how = if self.random.coin() { Saving::InPlace } else { Saving::Replacing };
        let wish = match choice {
            // The only file is not deleted: that would look like an emptied directory.
            0 | 1 if text.is_some() && files > 1 && !self.sheet.only_grows() => {
                let removed = BTreeSet::new();
                let (is_made, added, about) = (false, None, None);
                let change = Change::Deleted;
                return Some(Edit { file, at, change, is_made, seen, removed, added, about });
            }
            _ if self.is_full => return None,
            _ if self.sheet.only_grows() => Wish::Add,
            2..=5 => Wish::Remove,
            6..=9 => Wish::Reword,
            10 | 11 if self.can_move => Wish::Move,
            _ => Wish::Add,
        };
        let is_made = text.is_none();
        let draft = self.sheet.edit(wish, text, &self.unit, &mut self.random)?;
        let added = draft.is_added.then_some(self.unit);
        let Draft { text, removed, about, .. } = draft;
        let change = Change::Saved(text.into(), how);
        Some(Edit { file, at, change, is_made, seen, removed, added, about })
    }
}

impl Edit {
    /// Returns the unit that was added.
    pub(crate) fn added(&self) -> Option<&str> {
        self.added.as_deref()
    }

    /// Tells the oracle.
    pub(crate) fn tell(&self, oracle: &mut Oracle, actor: usize) {
        match &self.change {
            Change::Deleted => oracle.deleted(actor, self.file, self.seen.clone()),
            Change::Renamed(_) => oracle.renamed(actor, self.file),
            Change::Saved(..) if self.removed.is_empty() && self.added.is_none() => {
                oracle.rearranged(actor, self.file);
            }
            Change::Saved(..) => {}
        }
        for removed in &self.removed {
            oracle.removed(actor, self.file, removed);
        }
        if self.is_made {
            oracle.made(self.file);
        }
        if let Some(added) = &self.added {
            oracle.added(actor, self.file, added);
            if let Some(about) = &self.about {
                oracle.said_about(self.file, about, added, &self.removed);
            }
        }
    }

    /// Returns what was done, to be read.
    pub(crate) fn shown(&self) -> String {
        let file = &self.at;
        let removed = self.removed.iter().cloned().collect::<Vec<_>>().join(", ");
        match (&self.change, &self.added) {
            (Change::Deleted, _) => format!("deletes {file}"),
            (Change::Renamed(to), _) => format!("renames {file} to {to}"),
            (_, None) if removed.is_empty() => format!("rearranges {file}"),
            (_, None) => format!("removes {removed} from {file}"),
            (_, Some(added)) if removed.is_empty() => format!("adds {added} to {file}"),
            (_, Some(added)) => format!("replaces {removed} by {added} in {file}"),
        }
    }
}
