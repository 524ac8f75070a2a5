//! The home: the directory that holds everything of Haversack on one machine.
//!
//! [`replicas`] opens the directories that are synced, [`round`] syncs them. The other modules are the home's records, and the rules for
//! what leaves this machine.

pub(crate) mod allowlist;
pub(crate) mod contact;
pub(crate) mod findings;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod history_days;
pub(crate) mod join_record;
pub(crate) mod kinds;
pub(crate) mod local_history;
pub(crate) mod lost_and_found;
pub(crate) mod mounts;
pub(crate) mod rebuild;
pub(crate) mod relocate;
mod replicas;
mod round;
pub(crate) mod store;

pub(crate) use self::replicas::{Home, HomeDirectory, open_mount};
pub(crate) use self::round::{Summary, SyncOptions, Work, sync, sync_with};
