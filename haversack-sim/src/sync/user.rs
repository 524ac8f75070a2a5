//! What users and programs do to files, without any lock and knowing nothing of sync.

use std::collections::BTreeSet;

use haversack_store::{Bytes, Locator};

use super::oracle::Oracle;
use super::sheet::{Draft, Sheet, Sheets, Wish};
use super::storage::Saving;
use super::unit::{unit, units_of};
use crate::random::Random;

/// What a user is about to do.
#[derive(Clone, Debug)]
pub(crate) struct Intention {
    pub(crate) sheet: &'static Sheet,
    /// What the user writes.
    unit: String,
    can_move: bool,
    /// Whether there is room for anything but deleting.
    is_full: bool,
    random: Random,
}

/// What a user did to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    /// What the file has afterwards; `None` if it was deleted.
    pub(crate) text: Option<Bytes>,
    pub(crate) how: Saving,
    /// Whether there was no such file before.
    is_made: bool,
    seen: BTreeSet<String>,
    removed: BTreeSet<String>,
    added: Option<String>,
    /// What the added unit is said about.
    about: Option<String>,
}

impl Intention {
    pub(crate) fn new(
        sheets: &Sheets,
        device: usize,
        number: usize,
        is_full: bool,
        mut random: Random,
    ) -> Intention {
        let (sheet, unit, can_move) = (sheets.pick(&mut random), unit(number, device), sheets.are_rearranged);
        Intention { sheet, unit, can_move, is_full, random }
    }

    pub(crate) fn locator(&self) -> Locator {
        Locator::parse(self.sheet.path).expect("a plain name")
    }

    /// Decides, having seen the file and how many there are.
    pub(crate) fn decide(mut self, text: Option<&str>, files: usize) -> Option<Edit> {
        let file = self.sheet.path;
        let seen = units_of(text.unwrap_or_default());
        let choice = self.random.between(0, 19);
        let how = if self.random.coin() { Saving::InPlace } else { Saving::Replacing };
        let wish = match choice {
            // The only file is not deleted: that would look like an emptied directory.
            0 | 1 if text.is_some() && files > 1 => {
                let removed = BTreeSet::new();
                let (is_made, added, about) = (false, None, None);
                return Some(Edit { file, text: None, how, is_made, seen, removed, added, about });
            }
            _ if self.is_full => return None,
            2..=5 => Wish::Remove,
            6..=9 => Wish::Reword,
            10 | 11 if self.can_move => Wish::Move,
            _ => Wish::Add,
        };
        let is_made = text.is_none();
        let draft = self.sheet.edit(wish, text, &self.unit, &mut self.random)?;
        let added = draft.is_added.then_some(self.unit);
        let Draft { text, removed, about, .. } = draft;
        Some(Edit { file, text: Some(text.into()), how, is_made, seen, removed, added, about })
    }
}

impl Edit {
    /// Tells the oracle.
    pub(crate) fn tell(&self, oracle: &mut Oracle, actor: usize) {
        if self.text.is_none() {
            oracle.deleted(actor, self.file, self.seen.clone());
        } else if self.removed.is_empty() && self.added.is_none() {
            oracle.rearranged(actor, self.file);
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
        let file = self.file;
        let removed = self.removed.iter().cloned().collect::<Vec<_>>().join(", ");
        match (&self.text, &self.added) {
            (None, _) => format!("deletes {file}"),
            (_, None) if removed.is_empty() => format!("rearranges {file}"),
            (_, None) => format!("removes {removed} from {file}"),
            (_, Some(added)) if removed.is_empty() => format!("adds {added} to {file}"),
            (_, Some(added)) => format!("replaces {removed} by {added} in {file}"),
        }
    }
}
