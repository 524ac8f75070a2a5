//! The state that a log comes to: its commits, folded one after the other.

use std::collections::BTreeMap;

use super::change::{FileChange, What};
use super::checkpoint::Checkpoint;
use super::commit::Commit;
use super::files::{Content, Files};
use super::mark::{Mismatch, StateMark};
use super::odd;
use crate::frame::shown;
use crate::ids::ContentHash;

/// The files after a commit, and their contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    files: Files,
    odd: BTreeMap<String, Content>,
    mark: StateMark,
}

impl Default for State {
    fn default() -> State {
        State::empty()
    }
}

impl State {
    /// Returns the state before the first commit.
    pub fn empty() -> State {
        State { files: Files::default(), odd: BTreeMap::new(), mark: StateMark::empty() }
    }

    /// Returns the state that was written down with its mark.
    pub(crate) fn written(files: Files, mark: StateMark) -> State {
        State { files, odd: BTreeMap::new(), mark }
    }

    /// Puts files that were written down in the place of the same files.
    pub(crate) fn was_written(&mut self, files: Files) {
        self.files = files;
    }

    /// Returns the files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Returns what the log holds under names that are refused here: only counted, so that the mark is right.
    pub fn odd(&self) -> &BTreeMap<String, Content> {
        &self.odd
    }

    /// Returns the mark.
    pub fn mark(&self) -> StateMark {
        self.mark
    }

    /// Returns the mark of the files alone.
    pub(crate) fn mark_without_odd(&self) -> StateMark {
        let mut mark = self.mark;
        self.odd.iter().for_each(|(key, content)| mark.remove_key(key, &content.hash));
        mark
    }

    /// Returns the mark of the state that `changes` make of this one, for the commit that will carry them.
    pub fn mark_after(&self, changes: &[FileChange]) -> Result<StateMark, Mismatch> {
        self.fold(changes.iter().map(|change| (change.locator.as_str(), &change.what)))
    }

    /// Takes a commit in; a commit that does not fit changes nothing.
    ///
    /// That it is the next one is for [`Commit::belongs`] to say.
    pub fn apply(&mut self, commit: &Commit) -> Result<(), Mismatch> {
        let changes = commit.changes.iter().map(|change| (change.locator.as_str(), &change.what));
        let odd = commit.odd.iter().map(|odd| (odd.key.as_str(), &odd.what));
        let mark = self.fold(changes.chain(odd))?;
        if mark != commit.state {
            return Err(Mismatch::Mark { expected: commit.state, found: mark });
        }
        for FileChange { locator, what } in &commit.changes {
            self.forget(locator.as_str());
            if let Some(content) = what.after() {
                self.files.insert(locator.clone(), content);
            }
        }
        for odd in &commit.odd {
            self.forget(&odd.key);
            if let Some(content) = odd.what.after() {
                self.odd.insert(odd.key.clone(), content);
            }
        }
        self.mark = mark;
        Ok(())
    }

    fn fold<'a>(&self, changes: impl Iterator<Item = (&'a str, &'a What)>) -> Result<StateMark, Mismatch> {
        let mut mark = self.mark;
        for (key, what) in changes {
            let now = self.holds(key);
            if let What::Append { base, base_size, .. } = what {
                let base = Content { hash: *base, size: *base_size };
                if now != Some(base) {
                    return Err(Mismatch::Base { key: shown(key), base, found: now });
                }
            }
            if let Some(now) = now {
                mark.remove_key(key, &now.hash);
            }
            if let Some(after) = what.after() {
                mark.add_key(key, &after.hash);
            }
        }
        Ok(mark)
    }

    /// Returns the mark after files were [set](State::set).
    pub(crate) fn mark_with<'a>(
        &self,
        contents: impl Iterator<Item = (&'a str, Option<ContentHash>)>,
    ) -> StateMark {
        let mut mark = self.mark;
        let mut set: BTreeMap<&str, Option<ContentHash>> = BTreeMap::new();
        for (key, content) in contents {
            let now = || self.holds(key).map(|content| content.hash);
            if let Some(now) = set.insert(key, content).unwrap_or_else(now) {
                mark.remove_key(key, &now);
            }
            if let Some(content) = content {
                mark.add_key(key, &content);
            }
        }
        mark
    }

    /// Sets a file's content, as a device that has read the log stored it.
    pub(crate) fn set(&mut self, key: &str, content: Option<Content>) {
        if let Some(before) = self.forget(key) {
            self.mark.remove_key(key, &before.hash);
        }
        if let Some(content) = content {
            self.mark.add_key(key, &content.hash);
            match odd::file(key) {
                Ok(locator) => self.files.insert(locator, content),
                Err(_) => drop(self.odd.insert(key.to_owned(), content)),
            }
        }
    }

    fn holds(&self, key: &str) -> Option<Content> {
        self.files.get(key).or_else(|| self.odd.get(key).copied())
    }

    /// Removes a name, odd or not: a checkpoint of another device may have judged the name differently. Returns its former content.
    fn forget(&mut self, key: &str) -> Option<Content> {
        self.files.remove(key).or_else(|| self.odd.remove(key))
    }
}

impl From<&Checkpoint> for State {
    fn from(checkpoint: &Checkpoint) -> State {
        let content = |hash: &ContentHash, size: &u64| Content { hash: *hash, size: *size };
        let files = checkpoint.files.iter();
        let odd = checkpoint.odd.iter();
        State {
            files: files.map(|(locator, file)| (locator.clone(), content(&file.hash, &file.size))).collect(),
            odd: odd.map(|odd| (odd.key.clone(), content(&odd.file.hash, &odd.file.size))).collect(),
            mark: checkpoint.state,
        }
    }
}
