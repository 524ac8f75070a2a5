//! The newest version of each format that this release reads.
//!
//! A release that meets a newer one refuses the file and changes nothing ([`BadFrame::Newer`](crate::log::BadFrame)). So these numbers tell whether two
//! releases can share a store.

use crate::{graph, log, manifest, memory, sync, vault};

/// The formats of a remote, then those of a home, by name.
pub const NEWEST_VERSIONS: [(&str, u32); 15] = [
    ("store", log::NEWEST_STORE_FILE),
    ("commit", log::NEWEST_COMMIT),
    ("folded", log::NEWEST_FOLDED),
    ("segment", log::NEWEST_SEGMENT),
    ("checkpoint", log::NEWEST_CHECKPOINT),
    ("folder-entry", vault::NEWEST_ENTRY),
    ("folder-entries", vault::NEWEST_ENTRIES),
    ("manifest", manifest::SCHEMA_VERSION),
    ("graph-registry", graph::NEWEST_REGISTRY),
    ("identity", sync::NEWEST_IDENTITY),
    ("snapshot", sync::NEWEST_SNAPSHOT),
    ("journal", sync::NEWEST_JOURNAL),
    ("stat-cache", sync::NEWEST_STAT_CACHE),
    ("folder-cursor", vault::NEWEST_CURSOR),
    ("batch", memory::NEWEST_BATCH),
];
