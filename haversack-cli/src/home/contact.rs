//! When this home last reached its remote, and when it tries again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use haversack::ids::Timestamp;
use haversack::store::Locator;
use haversack::sync::{SyncError, SyncErrorKind};
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::records;
use crate::remote::is_vault;
use crate::settings::Settings;

/// The pause after the first failure.
const FIRST_BACK_OFF: Duration = Duration::from_secs(30);

/// The longest wait between two tries.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(600);

/// The interval at which the whole remote is checked for changes by other programs.
const LOOK_AGAIN: Duration = Duration::from_secs(24 * 3600);

/// The same for a folder that a sync client replicates: people edit there, and clients make copies.
const LOOK_AGAIN_IN_A_FOLDER: Duration = Duration::from_secs(3600);

/// The most unwritten plain copies that are remembered.
const MAX_NOT_MIRRORED: usize = 100;

/// The most waiting files that are remembered.
const MAX_WAITS: usize = 1000;

/// Why a sync could not use the remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Failure {
    /// The remote does not answer, or is busy: this passes without the user.
    Offline,
    /// The remote is gone, refuses us, is another store or is damaged: the user has to act.
    Refused,
}

impl Failure {
    /// Returns the failure behind an error of the remote.
    pub(crate) fn of(trouble: &SyncError) -> Failure {
        match trouble.kind() {
            SyncErrorKind::RetryLater => Failure::Offline,
            _ => Failure::Refused,
        }
    }
}

/// The state of the connection to the remote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contact {
    /// When a sync last went through.
    pub(crate) reached: Option<Timestamp>,
    /// When it was last tried.
    pub(crate) tried: Option<Timestamp>,
    /// The number of failures since.
    #[serde(default)]
    pub(crate) failures: u32,
    /// Since when it fails.
    pub(crate) failing_since: Option<Timestamp>,
    /// The sort of the last failure; unknown in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Failure>,
    /// Why it failed.
    pub(crate) trouble: Option<String>,
    /// Its cure.
    pub(crate) cure: Option<String>,
    /// The number of files of other machines' logs that had not arrived completely.
    #[serde(default)]
    pub(crate) arriving: usize,
    /// When everything there was last looked at.
    pub(crate) looked: Option<Timestamp>,
    /// Plain copies that were not written, because a file that we did not write is in their place.
    #[serde(default)]
    pub(crate) not_mirrored: Vec<String>,
    /// Plain files of a synced folder that no machine's log names.
    #[serde(default)]
    pub(crate) waits: Vec<Wait>,
}

/// A plain file of a synced folder that no machine's log names: we take it in as an edit at the end of the wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wait {
    pub(crate) path: String,
    pub(crate) until: Timestamp,
}

fn place(settings: &Settings) -> PathBuf {
    settings.state().join("contact.toml")
}

impl Contact {
    /// Reads the record; an unreadable one counts as empty.
    pub(crate) fn of(settings: &Settings) -> Contact {
        records::read(&place(settings), "").ok().flatten().unwrap_or_default()
    }

    pub(crate) fn save(&self, settings: &Settings) -> Result<(), CommandError> {
        records::write(&place(settings), self, records::Weight::Light)
    }

    pub(crate) fn forget(settings: &Settings) -> Result<(), CommandError> {
        records::remove(&place(settings))
    }

    /// Returns the record after a successful sync that left this many parts of logs for later.
    pub(crate) fn reached(self, now: Timestamp, arriving: usize) -> Contact {
        let Contact { looked, not_mirrored, waits, .. } = self;
        let (reached, tried) = (Some(now), Some(now));
        Contact { reached, tried, arriving, looked, not_mirrored, waits, ..Contact::default() }
    }

    /// Returns the record after a check of the plain copies.
    pub(crate) fn with_not_mirrored(self, not_mirrored: &[Locator]) -> Contact {
        let not_mirrored = not_mirrored.iter().take(MAX_NOT_MIRRORED).map(Locator::to_string).collect();
        Contact { not_mirrored, ..self }
    }

    /// Returns the record after a check of a synced folder's plain files.
    pub(crate) fn with_waits(self, waits: &BTreeMap<Locator, Timestamp>) -> Contact {
        let waits = waits.iter().take(MAX_WAITS);
        let waits = waits.map(|(file, until)| Wait { path: file.to_string(), until: *until }).collect();
        Contact { waits, ..self }
    }

    /// Returns the record after a check of everything.
    pub(crate) fn looked(self, now: Timestamp) -> Contact {
        Contact { looked: Some(now), ..self }
    }

    /// Returns true if everything in a remote is to be looked at again.
    pub(crate) fn is_look_due(&self, now: Timestamp, url: &str) -> bool {
        let pause = if is_vault(url) { LOOK_AGAIN_IN_A_FOLDER } else { LOOK_AGAIN };
        let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        // A clock that was set back must not put it off for ever.
        self.looked.is_none_or(|looked| !(looked.0..looked.0.saturating_add(pause)).contains(&now.0))
    }

    /// Returns the record after a failed sync.
    pub(crate) fn failed(self, now: Timestamp, failure: Failure, error: &CommandError) -> Contact {
        Contact {
            tried: Some(now),
            failures: self.failures.saturating_add(1),
            failing_since: self.failing_since.or(Some(now)),
            failure: Some(failure),
            trouble: Some(error.in_one_line()),
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
    use haversack::store::{Error as StoreError, ErrorKind, Operation};

    use super::*;

    #[test]
    fn waits_grow_from_half_a_minute_to_ten_minutes() {
        let error = CommandError::user("the remote could not be reached", "wait");
        let mut contact = Contact::default();
        assert_eq!(contact.next_try(), None);
        let mut waits = Vec::new();
        for _ in 0..40 {
            contact = contact.failed(Timestamp(0), Failure::Offline, &error);
            waits.push(contact.next_try().expect("later").0 / 1000);
        }
        assert_eq!(waits[..7], [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(waits[39], 600);
        assert_eq!(contact.reached(Timestamp(5), 0).next_try(), None);
    }

    #[test]
    fn failure_is_refused_unless_it_passes_by_itself() {
        let remote = |kind| SyncError::Remote(StoreError::at(kind, Operation::Read, "a.md", "no"));
        for kind in [ErrorKind::Unavailable, ErrorKind::Busy] {
            assert_eq!(Failure::of(&remote(kind)), Failure::Offline, "{kind:?}");
        }
        for kind in [ErrorKind::Denied, ErrorKind::Invalid, ErrorKind::NotFound, ErrorKind::Full] {
            assert_eq!(Failure::of(&remote(kind)), Failure::Refused, "{kind:?}");
        }
        assert_eq!(Failure::of(&SyncError::Emptied), Failure::Refused);
        assert_eq!(Failure::of(&SyncError::Outrun), Failure::Offline);
    }

    #[test]
    fn everything_is_looked_at_now_and_then() {
        let (hour, folder, bucket) = (3_600_000, "vault:///home/me/Dropbox/haversack", "s3://lighthouse");
        let never = Contact::default();
        assert!(never.is_look_due(Timestamp(0), folder) && never.is_look_due(Timestamp(0), bucket));
        let looked = never.looked(Timestamp(0)).reached(Timestamp(1), 0);
        let due = |hours: i64, url| looked.is_look_due(Timestamp(hours * hour), url);
        assert_eq!(
            [due(0, folder), due(1, folder), due(23, bucket), due(24, bucket)],
            [false, true, false, true]
        );
        assert!(due(-1, bucket), "the clock was set back");
    }
}
