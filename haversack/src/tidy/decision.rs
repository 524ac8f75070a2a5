//! The decision log: one line for each source that a tidy rolled up, dropped or marked, and for each proposal that was answered.
//! `compacted/log/2026-11-18.jsonl`, kept for 30 days.
//!
//! A line has no time and no device, so two devices that decide the same write the same line, and the merge keeps it once.

use haversack_store::Locator;
use serde::{Deserialize, Serialize};

use super::COMPACTED;
use crate::day::{Day, Period};
use crate::ids::ContentHash;

/// A line of a source that is in no roll-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedLine {
    /// Its id.
    pub id: String,
    /// Why it was dropped.
    pub why: String,
}

/// What became of one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The day of the tidy.
    pub day: String,
    /// What was done.
    pub action: String,
    /// The kind of the source.
    pub kind: String,
    /// The file that was rolled up, dropped or changed.
    pub source: String,
    /// The hash of its content before.
    pub hash: String,
    /// The roll-up that received its lines; of a proposal, its target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// The rule.
    pub reason: String,
    /// The ids of the lines that are in the roll-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// The lines that are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedLine>,
    /// The parts of the file that left or moved; of a proposal, the lines that it was made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

#[derive(Serialize)]
struct IdentifiedLine<'a> {
    id: String,
    #[serde(flatten)]
    decision: &'a Decision,
}

/// The actions of the user's answers to proposals.
pub(crate) const PROMOTE: &str = "promote";
pub(crate) const REJECT: &str = "reject";

impl Decision {
    /// Returns true if it is the user's answer to a proposal, and no part of a tidy.
    pub fn is_of_proposal(&self) -> bool {
        [PROMOTE, REJECT].contains(&self.action.as_str())
    }

    /// Returns the line of the log. Its id is a hash of the decision.
    pub(crate) fn line(&self) -> String {
        let text = serde_json::to_string(self).expect("texts print");
        let id: String = ContentHash::of(text.as_bytes()).to_string().chars().take(16).collect();
        let line = IdentifiedLine { id, decision: self };
        serde_json::to_string(&line).expect("texts print") + "\n"
    }

    /// Returns the decision without texts of the memory.
    pub(super) fn without_texts(self) -> Decision {
        let lines =
            self.lines.iter().map(|line| format!("(hash {})", ContentHash::of(line.as_bytes()))).collect();
        Decision { lines, ..self }
    }
}

/// Returns the decision log of a day beside the roll-ups of a directory.
pub(crate) fn log_at(place: &Locator, day: Day) -> Locator {
    place.child(&format!("{COMPACTED}/log/{day}.jsonl")).unwrap_or_else(|_| place.clone())
}

/// Returns the day of a decision log; `None` for any other file.
pub fn log_of(locator: &Locator) -> Option<Day> {
    let parent = locator.parent()?;
    let is_log = parent.name() == "log" && parent.parent()?.name() == COMPACTED;
    match Period::of_name(locator.name())? {
        Period::Day(day) if is_log && locator.name().ends_with(".jsonl") => Some(day),
        _ => None,
    }
}

/// Reads a decision log. Lines that are none are passed over.
pub fn read_log(log: &[u8]) -> Vec<Decision> {
    log.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
