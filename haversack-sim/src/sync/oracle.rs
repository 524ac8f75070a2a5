//! Who wrote, saw and deleted what: independent of the engine, told only by what users did and saw.

use std::collections::{BTreeMap, BTreeSet};

/// What became of the lines that users wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    lines: BTreeMap<String, Line>,
    /// Deletions of whole files.
    deletions: Vec<Deletion>,
}

#[derive(Clone, Debug)]
struct Line {
    file: &'static str,
    /// A device that had it took it out.
    removed: bool,
    /// The devices that took it out.
    removed_by: BTreeSet<usize>,
}

#[derive(Clone, Debug)]
struct Deletion {
    file: &'static str,
    device: usize,
    /// The lines that the file had where it was deleted.
    seen: BTreeSet<String>,
}

impl Oracle {
    /// A user added a line.
    pub(crate) fn added(&mut self, file: &'static str, line: &str) {
        let known = Line { file, removed: false, removed_by: BTreeSet::new() };
        self.lines.insert(line.to_owned(), known);
    }

    /// A user took a line out.
    pub(crate) fn removed(&mut self, device: usize, line: &str) {
        if let Some(line) = self.lines.get_mut(line) {
            line.removed = true;
            line.removed_by.insert(device);
        }
    }

    /// A user deleted a file that had these lines.
    pub(crate) fn deleted(&mut self, device: usize, file: &'static str, seen: BTreeSet<String>) {
        self.deletions.push(Deletion { file, device, seen });
    }

    /// Returns what is wrong with the lines that are there at the end.
    pub(crate) fn judge(&self, there: &BTreeMap<String, BTreeSet<String>>) -> Result<(), String> {
        for (text, line) in &self.lines {
            let is_there = there.get(line.file).is_some_and(|lines| lines.contains(text));
            let deletions = || self.deletions.iter().filter(|deletion| deletion.file == line.file);
            let went_with_file = deletions().any(|deletion| deletion.seen.contains(text));
            if !is_there && !line.removed && !went_with_file {
                return Err(format!("lost: {text:?} of {}", line.file));
            }
            // Whoever took it out and deleted the file before anybody heard of it leaves only the deletion to be heard of.
            let excused = deletions()
                .any(|deletion| self.edited_unseen(deletion) && line.removed_by.contains(&deletion.device));
            if is_there && line.removed && !excused {
                return Err(format!("resurrected: {text:?} of {}", line.file));
            }
            let deleted_for_good =
                deletions().any(|deletion| deletion.seen.contains(text) && !self.edited_unseen(deletion));
            if is_there && deleted_for_good {
                return Err(format!("resurrected with its file: {text:?} of {}", line.file));
            }
        }
        Ok(())
    }

    /// Tells whether somebody changed the file without having seen the deletion, as far as lines tell.
    fn edited_unseen(&self, deletion: &Deletion) -> bool {
        self.lines.iter().filter(|(_, line)| line.file == deletion.file).any(|(text, line)| {
            let added_unseen = !deletion.seen.contains(text);
            let removed_unseen =
                deletion.seen.contains(text) && line.removed_by.iter().any(|by| *by != deletion.device);
            added_unseen || removed_unseen
        })
    }
}
