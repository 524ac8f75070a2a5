//! How long the remote keeps the contents of old changes: a number of days that belongs to the store.
//!
//! All machines share it in `state/history.json`, which syncs and merges like every JSON file. A file that cannot be read keeps everything.

use std::time::Duration;

use haversack::rewrite;
use haversack::store::{BackendExt, ErrorKind, Locator, block_on};
use serde::Deserialize;
use serde_json::json;

use super::store::{open_because, open_to_look};
use crate::error::CommandError;
use crate::settings::Settings;

/// The days in a store that does not say it.
const DEFAULT_DAYS: u64 = 365;

/// The fewest days. A machine that writes to the store must not be able to drop its whole history.
pub(crate) const MIN_DAYS: u64 = 30;

/// The time that the remote keeps the contents of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptContents {
    /// So many days.
    Days(u64),
    Forever,
}

impl KeptContents {
    /// Returns it as the engine takes it.
    pub(crate) fn duration(self) -> Option<Duration> {
        const DAY_SECONDS: u64 = 24 * 60 * 60;
        match self {
            KeptContents::Days(days) => {
                Some(Duration::from_secs(days.max(MIN_DAYS).saturating_mul(DAY_SECONDS)))
            }
            KeptContents::Forever => None,
        }
    }
}

#[derive(Debug, Deserialize)]
struct Stored {
    /// `null` keeps contents for ever.
    days: Option<u64>,
}

fn place() -> Locator {
    Locator::parse("state/history.json").expect("a plain name")
}

/// Returns the time that the store says.
pub(crate) fn kept_contents(settings: &Settings) -> Result<KeptContents, CommandError> {
    let memory = open_to_look(settings)?;
    Ok(match block_on(memory.files().read_text(&place())) {
        Ok(None) => KeptContents::Days(DEFAULT_DAYS),
        Ok(Some(text)) => match serde_json::from_str(&text) {
            Ok(Stored { days: Some(days) }) => KeptContents::Days(days.max(MIN_DAYS)),
            Ok(Stored { days: None }) | Err(_) => KeptContents::Forever,
        },
        Err(error) if error.kind() == ErrorKind::Invalid => KeptContents::Forever,
        Err(error) => return Err(error.into()),
    })
}

/// Writes the time into the store; the next sync sends it to the other machines.
pub(crate) fn keep_contents(settings: &Settings, kept: KeptContents) -> Result<(), CommandError> {
    let days = match kept {
        KeptContents::Days(days) => Some(days),
        KeptContents::Forever => None,
    };
    let text = format!("{}\n", json!({ "days": days }));
    block_on(rewrite(&open_because(settings, "history")?, &place(), |_| Some(text.clone())))?;
    Ok(())
}
