//! The contexts of past sessions, for `haversack why`: `state/hooks/given.jsonl`.

use std::fs;
use std::path::PathBuf;

use haversack::context::{LeftOut, Portion};
use haversack::ids::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agents::journal;
use crate::settings::Settings;

/// The size at which older lines are removed.
const MAX_BYTES: u64 = 512 * 1024;

/// The context of one session at one of its starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContextRecord {
    pub(crate) time: Timestamp,
    pub(crate) session: Option<String>,
    /// How it began.
    pub(crate) source: String,
    /// The project's name for people.
    pub(crate) project: String,
    pub(crate) portions: Vec<Portion>,
    /// Files that were left out because the budget was spent.
    #[serde(default)]
    pub(crate) left_out: Vec<LeftOut>,
    /// The number of further files that were left out.
    #[serde(default)]
    pub(crate) more_left_out: usize,
    /// The cost of all parts.
    pub(crate) tokens: usize,
    /// The line that the user saw.
    pub(crate) message: Option<String>,
}

fn file(settings: &Settings) -> PathBuf {
    settings.home.join("state").join("hooks").join("given.jsonl")
}

impl ContextRecord {
    /// Writes it down. That it cannot be is no reason to fail.
    pub(crate) fn note(&self, settings: &Settings) {
        if let Ok(line) = serde_json::to_string(self) {
            drop(journal::append(&file(settings), &format!("{line}\n"), MAX_BYTES));
        }
    }
}

/// Returns what sessions were given, the newest first.
pub(crate) fn all(settings: &Settings) -> Vec<ContextRecord> {
    let file = file(settings);
    let texts = [journal::before(&file), file].map(|file| fs::read_to_string(file).unwrap_or_default());
    // Skip a line that a crash cut short.
    let mut records: Vec<ContextRecord> = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    records.reverse();
    records
}
