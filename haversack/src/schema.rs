//! The newest version of each format that this release reads.
//!
//! A release that meets a newer one refuses the file and changes nothing ([`BadFrame::Newer`](crate::log::BadFrame)). So these numbers tell whether two
//! releases can share a store.

use crate::{log, manifest, sync, vault};

/// The formats of a remote and of a home, by name.
pub const NEWEST_VERSIONS: [(&str, u32); 7] = [
    ("store", log::NEWEST_STORE_FILE),
    ("commit", log::NEWEST_COMMIT),
    ("segment", log::NEWEST_SEGMENT),
    ("checkpoint", log::NEWEST_CHECKPOINT),
    ("folder-entry", vault::NEWEST_ENTRY),
    ("manifest", manifest::SCHEMA_VERSION),
    ("snapshot", sync::NEWEST_SNAPSHOT),
];
