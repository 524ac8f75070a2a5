//! Records the writes, views and deletions of users: independent of the engine, from the users' actions alone.
//!
//! An *actor* is a device, until it is restored from a backup; then it is another actor, which remembers less.

use std::collections::{BTreeMap, BTreeSet};

use super::failure::{Broken, Failure};
use super::sheet::{Reading, reading};

/// The fates of the units that users wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    /// Counts what users did.
    now: usize,
    units: BTreeMap<String, Unit>,
    /// Deletions of whole files.
    deletions: Vec<Deletion>,
    /// By actor, what its users did that no sync has told the log for certain.
    unsent: Vec<Vec<UserAction>>,
    /// Files that were copied with something unsent in them, and when.
    copies: Vec<(&'static str, usize)>,
    /// Actors that changed a file without new or removed units.
    rearranged: Vec<(&'static str, usize)>,
    /// Actors that renamed a file.
    renamed: Vec<(&'static str, usize)>,
    /// Files that were written where they were not, and when.
    made: Vec<(&'static str, usize)>,
    /// By file and thing, what was said about it, each with all that its author knew of it.
    said: BTreeMap<(&'static str, String), Vec<Saying>>,
}

/// Something that was said about a thing.
#[derive(Clone, Debug)]
struct Saying {
    unit: String,
    instead_of: BTreeSet<String>,
}

/// The units at the end, by file.
#[derive(Clone, Debug, Default)]
pub(crate) struct There {
    pub(crate) files: BTreeMap<String, BTreeSet<String>>,
    /// The units in copies that could not be merged.
    pub(crate) copies: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Clone, Debug)]
struct Unit {
    file: &'static str,
    at: usize,
    added_by: usize,
    /// The actors that had it and took it out, and when.
    removed_by: BTreeMap<usize, usize>,
    /// The unit was copied before it was published: a removal in the original does not remove it from the copy.
    is_copied: bool,
    /// Adding it, or taking it out, went with a restore: it may be there or not.
    is_open: bool,
    /// Another user reworded the same thing at the same time: the unit may be in a note.
    is_told_twice: bool,
}

#[derive(Clone, Debug)]
struct Deletion {
    at: usize,
    file: &'static str,
    actor: usize,
    /// The units that the file had where it was deleted.
    seen: BTreeSet<String>,
    /// It went with a restore: it may have happened or not.
    is_open: bool,
}

/// Something that a user did.
#[derive(Clone, Debug)]
struct UserAction {
    at: usize,
    file: &'static str,
    what: Done,
}

#[derive(Clone, Debug)]
enum Done {
    Added(String),
    Removed(String),
    Rearranged,
    Renamed,
    Deleted { deletion: usize },
}

/// The changes of an actor that were not published when it was copied.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    at: usize,
    unsent: Vec<UserAction>,
    /// A sync was under way: what it had read it may tell later, which the copy cannot know.
    is_syncing: bool,
}

impl Oracle {
    /// Returns a new actor, who has done nothing.
    pub(crate) fn actor(&mut self) -> usize {
        self.unsent.push(Vec::new());
        self.unsent.len() - 1
    }

    fn did(&mut self, actor: usize, file: &'static str, what: Done) {
        self.now += 1;
        self.unsent[actor].push(UserAction { at: self.now, file, what });
    }

    /// A user added a unit.
    pub(crate) fn added(&mut self, actor: usize, file: &'static str, unit: &str) {
        self.did(actor, file, Done::Added(unit.to_owned()));
        let known = Unit {
            file,
            at: self.now,
            added_by: actor,
            removed_by: BTreeMap::new(),
            is_copied: false,
            is_open: false,
            is_told_twice: false,
        };
        self.units.insert(unit.to_owned(), known);
    }

    /// Notes that the new unit replaces the former words about a thing.
    ///
    /// If two users reword it without knowing of each other, both texts stay, one of them under a note: the
    /// note stays, even if the thing changes later.
    pub(crate) fn said_about(
        &mut self,
        file: &'static str,
        about: &str,
        unit: &str,
        replaced: &BTreeSet<String>,
    ) {
        let said = self.said.entry((file, about.to_owned())).or_default();
        let earlier = said.iter().filter(|saying| replaced.contains(&saying.unit));
        let mut instead_of: BTreeSet<String> =
            earlier.flat_map(|saying| saying.instead_of.iter().cloned()).collect();
        instead_of.extend(replaced.iter().cloned());
        let is_told_twice = said.iter().any(|saying| !instead_of.contains(&saying.unit));
        said.push(Saying { unit: unit.to_owned(), instead_of });
        if is_told_twice {
            let all: Vec<String> = said.iter().map(|saying| saying.unit.clone()).collect();
            for unit in all {
                self.with(&unit, |unit, _| unit.is_told_twice = true);
            }
        }
    }

    /// Notes a text by a person who does not know of Haversack: all its units are new, perhaps for several devices at once.
    pub(crate) fn carried<'a>(&mut self, file: &'static str, units: impl Iterator<Item = &'a str>) {
        // An import changes the file again, independent of another device that has imported it and changes it.
        self.copies.push((file, self.now));
        for unit in units {
            self.with(unit, |unit, _| unit.is_copied = true);
        }
    }

    /// A user took a unit out.
    pub(crate) fn removed(&mut self, actor: usize, file: &'static str, unit: &str) {
        self.did(actor, file, Done::Removed(unit.to_owned()));
        let now = self.now;
        self.with(unit, |unit, _| unit.removed_by.extend([(actor, now)]));
    }

    /// A user wrote a file where it was not.
    pub(crate) fn made(&mut self, file: &'static str) {
        self.made.push((file, self.now));
    }

    /// A user changed a file in which nothing is new or gone: some of it stands elsewhere, and to a merge is new there.
    pub(crate) fn rearranged(&mut self, actor: usize, file: &'static str) {
        self.did(actor, file, Done::Rearranged);
        self.rearranged.push((file, actor));
    }

    /// Notes a rename: a change that wins over a deletion by a user who has not seen it.
    pub(crate) fn renamed(&mut self, actor: usize, file: &'static str) {
        self.did(actor, file, Done::Renamed);
        self.renamed.push((file, actor));
    }

    /// Notes something about a unit; a unit that a merge made has no author.
    fn with(&mut self, text: &str, note: impl FnOnce(&mut Unit, &str)) {
        if let Some(unit) = self.units.get_mut(text) {
            note(unit, text);
        }
    }

    /// A user deleted a file that had these units.
    pub(crate) fn deleted(&mut self, actor: usize, file: &'static str, seen: BTreeSet<String>) {
        self.did(actor, file, Done::Deleted { deletion: self.deletions.len() });
        self.deletions.push(Deletion { at: self.now, file, actor, seen, is_open: false });
    }

    /// Returns the moment, to be told when a sync that starts now has ended.
    pub(crate) fn now(&self) -> usize {
        self.now
    }

    /// A sync that started at a moment has ended well: what was done before is told.
    pub(crate) fn told(&mut self, actor: usize, started: usize) {
        self.unsent[actor].retain(|deed| deed.at > started);
    }

    /// Returns what a copy of a device that is made now remembers.
    pub(crate) fn remember(&self, actor: usize, is_syncing: bool) -> Remembered {
        Remembered { at: self.now, unsent: self.unsent[actor].clone(), is_syncing }
    }

    /// Returns true if an actor has told the log everything.
    pub(crate) fn is_told(&self, actor: usize) -> bool {
        self.unsent[actor].is_empty()
    }

    /// Makes the copy's own changes of the unpublished changes at the copy: returns the copy's actor.
    pub(crate) fn copied(&mut self, copied: &Remembered, there: &BTreeSet<String>) -> usize {
        let actor = self.actor();
        for deed in &copied.unsent {
            self.copies.push((deed.file, copied.at));
            match &deed.what {
                Done::Added(unit) => self.with(unit, |unit, text| unit.is_copied |= there.contains(text)),
                Done::Removed(unit) => self.with(unit, |unit, _| unit.removed_by.extend([(actor, deed.at)])),
                Done::Rearranged | Done::Renamed | Done::Deleted { .. } => {}
            }
        }
        self.unsent[actor].clone_from(&copied.unsent);
        if copied.is_syncing {
            self.open_passing(copied);
        }
        actor
    }

    /// A device was restored: what it did since the copy and did not tell is gone.
    pub(crate) fn restored(&mut self, actor: usize, copied: &Remembered) {
        for deed in std::mem::take(&mut self.unsent[actor]) {
            match deed.what {
                _ if deed.at <= copied.at => {}
                Done::Rearranged | Done::Renamed => {}
                Done::Added(unit) | Done::Removed(unit) => self.with(&unit, |unit, _| unit.is_open = true),
                Done::Deleted { deletion } => self.deletions[deletion].is_open = true,
            }
        }
        if copied.is_syncing {
            self.open_passing(copied);
        }
    }

    /// Changes that were made and undone before a copy, without being published, may have been published by the sync under way: the copy, or the
    /// restored device, takes them for another device's.
    fn open_passing(&mut self, copied: &Remembered) {
        let is_new = |text: &String| {
            copied.unsent.iter().any(|deed| matches!(&deed.what, Done::Added(unit) if unit == text))
        };
        for deed in &copied.unsent {
            match &deed.what {
                Done::Added(_) | Done::Rearranged | Done::Renamed => {}
                Done::Removed(unit) => {
                    self.with(unit, |unit, text| unit.is_open |= is_new(&text.to_owned()));
                }
                Done::Deleted { deletion } => {
                    let before = |other: &&UserAction| other.file == deed.file && other.at < deed.at;
                    if copied.unsent.iter().any(|other| before(&other)) {
                        self.deletions[*deletion].is_open = true;
                        for unit in self.deletions[*deletion].seen.clone().iter().filter(|unit| is_new(unit))
                        {
                            self.with(unit, |unit, _| unit.is_open = true);
                        }
                    }
                }
            }
        }
    }

    /// Returns true if a user took a unit out of any file, or deleted a file that had it.
    pub(crate) fn is_removed(&self, text: &str) -> bool {
        self.units.get(text).is_none_or(|unit| unit.is_open || !unit.removed_by.is_empty())
            || self.deletions.iter().any(|deletion| deletion.seen.contains(text))
    }

    /// Returns all units, each with its file.
    pub(crate) fn units(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.units.iter().map(|(text, unit)| (text.as_str(), unit.file))
    }

    /// Returns what is wrong with the units that are there at the end.
    pub(crate) fn judge(&self, there: &There) -> Result<(), Failure> {
        for (text, unit) in self.units.iter().filter(|(_, unit)| !unit.is_open) {
            let reading = reading(unit.file);
            let in_file = |units: &BTreeSet<String>| match reading {
                Reading::Furthest => units.last().is_some_and(|furthest| furthest >= text),
                Reading::Merged | Reading::Whole => units.contains(text),
            };
            let holds = |all: &BTreeMap<String, BTreeSet<String>>| all.get(unit.file).is_some_and(in_file);
            let is_there = holds(&there.files);
            let deletions = || self.deletions.iter().filter(|deletion| deletion.file == unit.file);
            let went_with_file = deletions().any(|deletion| in_file(&deletion.seen));
            // A mark is as good as gone where it met a further one, and a user who saw that one may set another, further back.
            let overtaken = reading == Reading::Furthest && self.was_overtaken(unit.file, text);
            let gone_by_hand = !unit.removed_by.is_empty() || went_with_file || overtaken;
            if !is_there && !holds(&there.copies) && !gone_by_hand {
                return Err(Broken::Lost.because(format!("{text:?} of {}", unit.file)));
            }
            if !is_there || unit.is_copied || reading != Reading::Merged {
                continue;
            }
            // If a user removed it and deleted the file before a sync, only the deletion is published. If the file
            // was created again, a section is gone from it, and a section that another device changed stays whole, as it was there.
            let excused = deletions().any(|deletion| {
                let removed_before = |at: &usize| *at < deletion.at;
                let by_deleter = unit.removed_by.get(&deletion.actor).is_some_and(removed_before);
                // The first of them cannot be known: neither knew of the other.
                let by_anybody = !unit.removed_by.is_empty();
                self.edited_unseen(deletion) && (by_deleter || by_anybody && self.was_made_anew(deletion))
            });
            let moved = |(file, _): &(&str, usize)| *file == unit.file;
            let excused = excused || unit.is_told_twice || self.rearranged.iter().any(moved);
            if !unit.removed_by.is_empty() && !excused && !self.was_moved(unit.file) {
                return Err(Broken::Resurrected.because(format!("{text:?} of {}", unit.file)));
            }
            let deleted_for_good = deletions().any(|deletion| {
                deletion.seen.contains(text) && !deletion.is_open && !self.edited_unseen(deletion)
            });
            if deleted_for_good {
                return Err(Broken::Resurrected.because(format!("{text:?} of {}, with its file", unit.file)));
            }
        }
        Ok(())
    }

    /// Returns true if a user removed a mark further than this one.
    fn was_overtaken(&self, file: &str, mark: &str) -> bool {
        let mut further = self.units.iter().filter(|(text, unit)| unit.file == file && text.as_str() > mark);
        further.any(|(_, unit)| !unit.removed_by.is_empty())
    }

    /// Returns true if a unit of the file went from an original, by itself or with the file, and came back from a copy, at another
    /// place: to a merge its neighbours have moved, and what was removed on the other side has been put there anew.
    fn was_moved(&self, file: &'static str) -> bool {
        let in_file = self.units.iter().filter(|(_, unit)| unit.file == file);
        in_file.filter(|(_, unit)| unit.is_copied).any(|(text, unit)| {
            let went = |deletion: &Deletion| deletion.file == file && deletion.seen.contains(text);
            !unit.removed_by.is_empty() || self.deletions.iter().any(went)
        })
    }

    /// Returns true if the deleting user wrote to the file again, or any user created it again after seeing the deletion.
    fn was_made_anew(&self, deletion: &Deletion) -> bool {
        let mut in_file = self.units.values().filter(|unit| unit.file == deletion.file);
        in_file.any(|unit| unit.added_by == deletion.actor && unit.at > deletion.at)
            || self.made.iter().any(|(file, at)| *file == deletion.file && *at >= deletion.at)
    }

    /// Returns true if a user changed the file without having seen the deletion, as far as units show.
    fn edited_unseen(&self, deletion: &Deletion) -> bool {
        let was_copied = self.copies.iter().any(|(file, at)| *file == deletion.file && *at < deletion.at);
        let by_another = |(file, by): &(&str, usize)| *file == deletion.file && *by != deletion.actor;
        was_copied
            || self.rearranged.iter().chain(&self.renamed).any(by_another)
            || self.units.iter().filter(|(_, unit)| unit.file == deletion.file).any(|(text, unit)| {
                if unit.removed_by.keys().any(|by| *by != deletion.actor) {
                    return true;
                }
                // An own unit is not seen if it was saved in the very moment in which sync replaced the file.
                let is_own = unit.added_by == deletion.actor;
                let was_removed = unit.removed_by.get(&deletion.actor).is_some_and(|at| *at < deletion.at);
                let was_saved_then = unit.at < deletion.at && !was_removed;
                !deletion.seen.contains(text) && (!is_own || was_saved_then)
            })
    }
}
