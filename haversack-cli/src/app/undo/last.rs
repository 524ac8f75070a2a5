//! The last undo, so that it can be undone: its changes may be in no history.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haversack::ids::Position;
use haversack::store::{Bytes, Locator};
use serde::{Deserialize, Serialize};

use super::{Outcome, Taken};
use crate::error::CommandError;
use crate::home::history::Log;
use crate::home::local_history;
use crate::home::store::open;
use crate::records;
use crate::settings::Settings;

/// The last undo.
pub(super) struct Last {
    /// The newest position of the log at that time.
    pub(super) position: Option<Position>,
    /// The log that the home synced with at that time.
    pub(super) log: Log,
    /// Its changes.
    pub(super) taken: Vec<Taken>,
}

impl Last {
    /// Returns true if it is about a file.
    pub(super) fn has(&self, locator: &Locator) -> bool {
        self.taken.iter().any(|taken| taken.locator == *locator)
    }
}

#[derive(Serialize, Deserialize)]
struct Lines {
    position: Option<Position>,
    /// True if the home had no remote then: the position is in the local log.
    #[serde(default)]
    is_local: bool,
    file: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    path: String,
    before: Option<String>,
    after: Option<String>,
}

fn place(settings: &Settings) -> std::path::PathBuf {
    settings.state().join("undone.toml")
}

/// Records an undo before it begins.
pub(super) fn remember(
    settings: &Settings,
    position: Option<Position>,
    outcomes: &[Outcome],
) -> Result<(), CommandError> {
    let encode = |bytes: &Option<Bytes>| bytes.as_ref().map(|bytes| STANDARD.encode(bytes));
    let file = outcomes.iter().filter(|outcome| !outcome.stays).map(|outcome| Line {
        path: outcome.locator.to_string(),
        before: encode(&outcome.now),
        after: encode(&outcome.then),
    });
    let is_local = local_history::is_used(settings)?;
    let lines = Lines { position, is_local, file: file.collect() };
    records::write(&place(settings), &lines, records::Weight::Durable)
}

/// Returns the last undo, if every file is still as the undo left it.
pub(super) fn remembered(settings: &Settings) -> Result<Option<Last>, CommandError> {
    // An unreadable record cannot be undone this way.
    let Some(lines) = records::read::<Lines>(&place(settings), "").ok().flatten() else { return Ok(None) };
    let decode = |text: Option<String>| match text {
        None => Some(None),
        Some(text) => STANDARD.decode(text).ok().map(|bytes| Some(Bytes::from(bytes))),
    };
    let memory = open(settings)?;
    let mut taken = Vec::new();
    for Line { path, before, after } in lines.file {
        let (Ok(locator), Some(before), Some(after)) = (Locator::parse(&path), decode(before), decode(after))
        else {
            return Ok(None);
        };
        let now = haversack::store::block_on(memory.files().read(&locator)).ok().map(|object| object.bytes);
        if now != after {
            return Ok(None);
        }
        taken.push(Taken { locator, before, after });
    }
    let log = if lines.is_local { Log::Local } else { Log::Store };
    Ok(Some(Last { position: lines.position, log, taken }))
}
