//! When this home last reached its remote, and when it tries again.

use std::path::PathBuf;
use std::time::Duration;

use haversack::ids::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::records;
use crate::settings::Settings;

/// How long after the first failure it is tried again.
const FIRST_BACK_OFF: Duration = Duration::from_secs(30);

/// The longest wait between two tries.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(600);

/// What is known about the way to the remote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contact {
    /// When a sync last went through.
    pub(crate) reached: Option<Timestamp>,
    /// When it was last tried.
    pub(crate) tried: Option<Timestamp>,
    /// How often it failed since.
    #[serde(default)]
    pub(crate) failures: u32,
    /// Since when it fails.
    pub(crate) failing_since: Option<Timestamp>,
    /// Why it failed.
    pub(crate) trouble: Option<String>,
    /// What to do about it.
    pub(crate) cure: Option<String>,
}

fn place(settings: &Settings) -> PathBuf {
    settings.state().join("contact.toml")
}

impl Contact {
    /// Reads what is known; a record that cannot be read is as good as none.
    pub(crate) fn of(settings: &Settings) -> Contact {
        records::read(&place(settings), "").ok().flatten().unwrap_or_default()
    }

    pub(crate) fn save(&self, settings: &Settings) -> Result<(), CommandError> {
        records::write(&place(settings), self, records::Weight::Light)
    }

    pub(crate) fn forget(settings: &Settings) -> Result<(), CommandError> {
        records::remove(&place(settings))
    }

    /// Returns what is known after a sync went through.
    pub(crate) fn reached(now: Timestamp) -> Contact {
        Contact { reached: Some(now), tried: Some(now), ..Contact::default() }
    }

    /// Returns what is known after one did not.
    pub(crate) fn failed(self, now: Timestamp, error: &CommandError) -> Contact {
        let cause = error.source.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        Contact {
            tried: Some(now),
            failures: self.failures.saturating_add(1),
            failing_since: self.failing_since.or(Some(now)),
            trouble: Some(format!("{}{cause}", error.message)),
            cure: error.hint.clone(),
            ..self
        }
    }

    /// Returns when it is worth trying again by itself; `None` if at once.
    pub(crate) fn next_try(&self) -> Option<Timestamp> {
        let doublings = self.failures.checked_sub(1)?.min(10);
        let wait = FIRST_BACK_OFF.saturating_mul(1 << doublings).min(LONGEST_BACK_OFF);
        Some(Timestamp(self.tried?.0 + i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_from_half_a_minute_to_ten_minutes() {
        let error = CommandError::user("the remote could not be reached", "wait");
        let mut contact = Contact::default();
        assert_eq!(contact.next_try(), None);
        let mut waits = Vec::new();
        for _ in 0..40 {
            contact = contact.failed(Timestamp(0), &error);
            waits.push(contact.next_try().expect("later").0 / 1000);
        }
        assert_eq!(waits[..7], [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(waits[39], 600);
        assert_eq!(Contact::reached(Timestamp(5)).next_try(), None);
    }
}
