//! Who wrote, saw and deleted what: independent of the engine, told only by what users did and saw.
//!
//! Whoever acts is an *actor*: a device, until it is restored from a backup; then it is another one, which remembers less.

use std::collections::{BTreeMap, BTreeSet};

use super::failure::{Broken, Failure};

/// What became of the lines that users wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    /// Counts what users did.
    now: usize,
    lines: BTreeMap<String, Line>,
    /// Deletions of whole files.
    deletions: Vec<Deletion>,
    /// By actor, what its users did that no sync has told the log for certain.
    unsent: Vec<Vec<Deed>>,
    /// Files that were copied with something unsent in them, and when.
    copies: Vec<(&'static str, usize)>,
}

#[derive(Clone, Debug)]
struct Line {
    file: &'static str,
    at: usize,
    added_by: usize,
    /// The actors that had it and took it out, and when.
    removed_by: BTreeMap<usize, usize>,
    /// It was copied before anybody was told: who took it out of the original did not take it out of the copy.
    is_copied: bool,
    /// Adding it, or taking it out, went with a restore: it may be there or not.
    is_open: bool,
}

#[derive(Clone, Debug)]
struct Deletion {
    at: usize,
    file: &'static str,
    actor: usize,
    /// The lines that the file had where it was deleted.
    seen: BTreeSet<String>,
    /// It went with a restore: it may have happened or not.
    is_open: bool,
}

/// Something that a user did.
#[derive(Clone, Debug)]
struct Deed {
    at: usize,
    file: &'static str,
    what: Done,
}

#[derive(Clone, Debug)]
enum Done {
    Added(String),
    Removed(String),
    Deleted { deletion: usize },
}

/// What an actor had not told the log when it was copied.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    at: usize,
    unsent: Vec<Deed>,
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
        self.unsent[actor].push(Deed { at: self.now, file, what });
    }

    /// A user added a line.
    pub(crate) fn added(&mut self, actor: usize, file: &'static str, line: &str) {
        self.did(actor, file, Done::Added(line.to_owned()));
        let known = Line {
            file,
            at: self.now,
            added_by: actor,
            removed_by: BTreeMap::new(),
            is_copied: false,
            is_open: false,
        };
        self.lines.insert(line.to_owned(), known);
    }

    /// Somebody wrote a text that knew nothing of us: whatever is in it is there anew, perhaps for several devices at once.
    pub(crate) fn carried<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        for line in lines {
            self.with(line, |line, _| line.is_copied = true);
        }
    }

    /// A user took a line out.
    pub(crate) fn removed(&mut self, actor: usize, file: &'static str, line: &str) {
        self.did(actor, file, Done::Removed(line.to_owned()));
        let now = self.now;
        self.with(line, |line, _| line.removed_by.extend([(actor, now)]));
    }

    /// Notes something about a line; one that a merge made is nobody's.
    fn with(&mut self, text: &str, note: impl FnOnce(&mut Line, &str)) {
        if let Some(line) = self.lines.get_mut(text) {
            note(line, text);
        }
    }

    /// A user deleted a file that had these lines.
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

    /// Tells whether an actor has told the log everything.
    pub(crate) fn is_told(&self, actor: usize) -> bool {
        self.unsent[actor].is_empty()
    }

    /// What was not told when a copy was made, and is in it, is also the copy's own: returns the actor that the copy is.
    pub(crate) fn copied(&mut self, copied: &Remembered, there: &BTreeSet<String>) -> usize {
        let actor = self.actor();
        for deed in &copied.unsent {
            self.copies.push((deed.file, copied.at));
            match &deed.what {
                Done::Added(line) => self.with(line, |line, text| line.is_copied |= there.contains(text)),
                Done::Removed(line) => self.with(line, |line, _| line.removed_by.extend([(actor, deed.at)])),
                Done::Deleted { .. } => {}
            }
        }
        self.unsent[actor].clone_from(&copied.unsent);
        actor
    }

    /// A device was restored: what it did since the copy and did not tell is gone.
    pub(crate) fn restored(&mut self, actor: usize, copied: &Remembered) {
        for deed in std::mem::take(&mut self.unsent[actor]) {
            match deed.what {
                _ if deed.at <= copied.at => {}
                Done::Added(line) | Done::Removed(line) => self.with(&line, |line, _| line.is_open = true),
                Done::Deleted { deletion } => self.deletions[deletion].is_open = true,
            }
        }
        if copied.is_syncing {
            self.open_passing(copied);
        }
    }

    /// What was done and undone before a copy was made, and not told, may have been told by the sync that was under way: the restored
    /// device takes it for somebody else's.
    fn open_passing(&mut self, copied: &Remembered) {
        let is_new = |text: &String| {
            copied.unsent.iter().any(|deed| matches!(&deed.what, Done::Added(line) if line == text))
        };
        for deed in &copied.unsent {
            match &deed.what {
                Done::Added(_) => {}
                Done::Removed(line) => {
                    self.with(line, |line, text| line.is_open |= is_new(&text.to_owned()));
                }
                Done::Deleted { deletion } => {
                    let before = |other: &&Deed| other.file == deed.file && other.at < deed.at;
                    if copied.unsent.iter().any(|other| before(&other)) {
                        self.deletions[*deletion].is_open = true;
                        for line in self.deletions[*deletion].seen.clone().iter().filter(|line| is_new(line))
                        {
                            self.with(line, |line, _| line.is_open = true);
                        }
                    }
                }
            }
        }
    }

    /// Returns what is wrong with the lines that are there at the end.
    pub(crate) fn judge(&self, there: &BTreeMap<String, BTreeSet<String>>) -> Result<(), Failure> {
        for (text, line) in self.lines.iter().filter(|(_, line)| !line.is_open) {
            let is_there = there.get(line.file).is_some_and(|lines| lines.contains(text));
            let deletions = || self.deletions.iter().filter(|deletion| deletion.file == line.file);
            let went_with_file = deletions().any(|deletion| deletion.seen.contains(text));
            if !is_there && line.removed_by.is_empty() && !went_with_file {
                return Err(Broken::Lost.because(format!("{text:?} of {}", line.file)));
            }
            if !is_there || line.is_copied {
                continue;
            }
            // Whoever took it out and deleted the file before anybody heard of it leaves only the deletion to be heard of.
            let excused = deletions().any(|deletion| {
                let removed_before = |at: &usize| *at < deletion.at;
                self.edited_unseen(deletion)
                    && line.removed_by.get(&deletion.actor).is_some_and(removed_before)
            });
            if !line.removed_by.is_empty() && !excused && !self.was_moved(line.file) {
                return Err(Broken::Resurrected.because(format!("{text:?} of {}", line.file)));
            }
            let deleted_for_good = deletions().any(|deletion| {
                deletion.seen.contains(text) && !deletion.is_open && !self.edited_unseen(deletion)
            });
            if deleted_for_good {
                return Err(Broken::Resurrected.because(format!("{text:?} of {}, with its file", line.file)));
            }
        }
        Ok(())
    }

    /// Tells whether a line of the file went from an original, by itself or with the file, and came back from a copy, at another
    /// place: to a merge its neighbours have moved, and what was removed on the other side has been put there anew.
    fn was_moved(&self, file: &'static str) -> bool {
        let in_file = self.lines.iter().filter(|(_, line)| line.file == file);
        in_file.filter(|(_, line)| line.is_copied).any(|(text, line)| {
            let went = |deletion: &Deletion| deletion.file == file && deletion.seen.contains(text);
            !line.removed_by.is_empty() || self.deletions.iter().any(went)
        })
    }

    /// Tells whether somebody changed the file without having seen the deletion, as far as lines tell.
    fn edited_unseen(&self, deletion: &Deletion) -> bool {
        let was_copied = self.copies.iter().any(|(file, at)| *file == deletion.file && *at < deletion.at);
        was_copied
            || self.lines.iter().filter(|(_, line)| line.file == deletion.file).any(|(text, line)| {
                if line.removed_by.keys().any(|by| *by != deletion.actor) {
                    return true;
                }
                // An own line is not seen if it was saved in the very moment in which sync replaced the file.
                let is_own = line.added_by == deletion.actor;
                let was_removed = line.removed_by.get(&deletion.actor).is_some_and(|at| *at < deletion.at);
                let was_saved_then = line.at < deletion.at && !was_removed;
                !deletion.seen.contains(text) && (!is_own || was_saved_then)
            })
    }
}
