//! Secrets that may be sent all the same, known by their fingerprints: `allowed.toml`.

use std::path::PathBuf;

use haversack::ids::Timestamp;
use haversack::secrets::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::records;
use crate::settings::Settings;

/// A secret that may be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allowed {
    /// Its fingerprint; the secret itself is not stored.
    pub(crate) fingerprint: Fingerprint,
    /// The rule that it matched.
    pub(crate) rule: String,
    /// Its place at that time, for people: it may move.
    pub(crate) path: String,
    /// When it was allowed.
    pub(crate) time: Timestamp,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    #[serde(default)]
    allowed: Vec<Allowed>,
}

fn place(settings: &Settings) -> PathBuf {
    settings.store().allowlist()
}

/// Returns the allowed secrets of a home, in their order.
pub(crate) fn of(settings: &Settings) -> Result<Vec<Allowed>, CommandError> {
    let cure = "Repair it, or remove it and allow the lines again: haversack allow PATH:LINE";
    let lines: Lines = records::read(&place(settings), cure)?.unwrap_or_default();
    Ok(lines.allowed)
}

/// Writes it down.
pub(crate) fn save(settings: &Settings, allowed: Vec<Allowed>) -> Result<(), CommandError> {
    records::write(&place(settings), &Lines { allowed }, records::Weight::Durable)
}
