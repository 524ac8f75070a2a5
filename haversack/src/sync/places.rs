//! The locators beside the log that belong to the memory: a file there that we did not write is an edit of the memory.
//!
//! A remote can hold files that have nothing to do with the memory: a folder of documents, a bucket that another program uses.
//! They must never become memory by accident. A place is ours if
//!
//! 1. it is below a directory that Haversack itself lays out (`behavioral/`, `claude_memory/<id>/`, …), or
//! 2. the store has a file below the same top-level directory (in `claude_memory/`: below the same directory of one agent memory), or
//! 3. it has no directory, and the store has a file without a directory.
//!
//! Example: the store has `MEMORY.md` and `notes/lamp.md`. Then `ports.md`, `notes/new/x.md` and `state/x.json` are at places of ours, and
//! `taxes/2025.ods` is not.

use std::collections::BTreeSet;

use haversack_store::Locator;

use crate::log::Files;

/// The directories that Haversack lays out at the top of a store.
const LAID_OUT: [&str; 5] = ["behavioral", "compacted", "interactions", "state", "summaries"];

/// The directory whose directories are one agent memory each; a file directly in it is no memory.
const AGENT_MEMORIES: &str = "claude_memory";

/// The places of a store.
#[derive(Debug)]
pub(super) struct OurPlaces {
    /// The top-level directories that hold a file of the store, see [`top`].
    tops: BTreeSet<String>,
}

impl OurPlaces {
    /// Returns the places of a store that has these files.
    pub(super) fn of(files: &Files) -> OurPlaces {
        let mut tops = BTreeSet::new();
        for locator in files.keys() {
            let top = top(&locator);
            if !tops.contains(top) {
                tops.insert(top.to_owned());
            }
        }
        OurPlaces { tops }
    }

    /// Returns true if a file at this place belongs to the memory.
    pub(super) fn contain(&self, locator: &Locator) -> bool {
        let top = top(locator);
        let is_agent_memory = || top.strip_prefix(AGENT_MEMORIES).is_some_and(|id| id.starts_with('/'));
        self.tops.contains(top) || LAID_OUT.contains(&top) || is_agent_memory()
    }
}

/// Returns the top-level directory of a file, `claude_memory/<id>` for one of an agent memory; empty if it has no directory.
fn top(locator: &Locator) -> &str {
    let key = locator.as_str();
    let Some((top, rest)) = key.split_once('/') else { return "" };
    match rest.find('/').filter(|_| top == AGENT_MEMORIES) {
        Some(end) => &key[..top.len() + 1 + end],
        None => top,
    }
}
