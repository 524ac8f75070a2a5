//! What users and programs do to files, without any lock and knowing nothing of sync.

use haversack_store::{Bytes, Locator};

use super::oracle::Oracle;
use super::storage::Saving;
use crate::random::Random;

/// The files that users work on: two that merge by lines, one by events, one in a directory.
pub(crate) const FILES: [&str; 4] = ["notes.md", "index.md", "events.jsonl", "deep/er.md"];

/// What a user is about to do.
#[derive(Clone, Debug)]
pub(crate) struct Intention {
    pub(crate) device: usize,
    /// Names the line that is written.
    pub(crate) number: usize,
    pub(crate) file: &'static str,
    /// Whether there is room for anything but deleting.
    pub(crate) is_full: bool,
    random: Random,
}

/// What a user did to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    /// What the file has afterwards; `None` if it was deleted.
    pub(crate) text: Option<Bytes>,
    pub(crate) how: Saving,
    seen: Vec<String>,
    removed: Option<String>,
    added: Option<String>,
}

impl Intention {
    pub(crate) fn new(device: usize, number: usize, is_full: bool, mut random: Random) -> Intention {
        let file = FILES[random.between(0, FILES.len() - 1)];
        Intention { device, number, file, is_full, random }
    }

    pub(crate) fn locator(&self) -> Locator {
        Locator::parse(self.file).expect("a plain name")
    }

    /// Decides, having seen the file and how many there are.
    pub(crate) fn decide(mut self, text: Option<&str>, files: usize) -> Option<Edit> {
        let file = self.file;
        let seen: Vec<String> = text.unwrap_or_default().lines().map(str::to_owned).collect();
        let mut lines = seen.clone();
        let (mut removed, mut added) = (None, None);
        let choice = self.random.between(0, 9);
        let how = if self.random.coin() { Saving::InPlace } else { Saving::Replacing };
        match choice {
            // The only file is not deleted: that would look like an emptied directory.
            0 if text.is_some() && files > 1 => {
                return Some(Edit { file, text: None, how, seen, removed, added });
            }
            _ if self.is_full => return None,
            1 | 2 if !lines.is_empty() => {
                removed = Some(lines.remove(self.random.between(0, lines.len() - 1)));
            }
            3 | 4 if !lines.is_empty() => {
                let at = self.random.between(0, lines.len() - 1);
                let new = self.new_line();
                removed = Some(std::mem::replace(&mut lines[at], new.clone()));
                added = Some(new);
            }
            _ => {
                let at = self.random.between(0, lines.len());
                let at = if file.ends_with(".jsonl") { lines.len() } else { at };
                lines.insert(at, self.new_line());
                added = Some(lines[at].clone());
            }
        }
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        Some(Edit { file, text: Some(text.into()), how, seen, removed, added })
    }

    fn new_line(&self) -> String {
        let Intention { device, number, .. } = self;
        match self.file.ends_with(".jsonl") {
            true => format!("{{\"id\":\"{device}-{number}\"}}"),
            false => format!("line {number} of {device}"),
        }
    }
}

impl Edit {
    /// Tells the oracle.
    pub(crate) fn tell(&self, oracle: &mut Oracle, actor: usize) {
        if self.text.is_none() {
            oracle.deleted(actor, self.file, self.seen.iter().cloned().collect());
        }
        if let Some(removed) = &self.removed {
            oracle.removed(actor, self.file, removed);
        }
        if let Some(added) = &self.added {
            oracle.added(actor, self.file, added);
        }
    }

    /// Returns what was done, to be read.
    pub(crate) fn shown(&self) -> String {
        let file = self.file;
        match (&self.removed, &self.added) {
            (None, None) => format!("deletes {file}"),
            (Some(removed), None) => format!("removes {removed} from {file}"),
            (None, Some(added)) => format!("adds {added} to {file}"),
            (Some(removed), Some(added)) => format!("replaces {removed} by {added} in {file}"),
        }
    }
}
