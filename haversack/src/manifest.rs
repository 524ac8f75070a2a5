//! `manifest.json`: the readable index of the plain objects beside the log, for people and other programs.
//!
//! ```json
//! {
//!   "schema_version": 1,
//!   "updated_at": "2026-04-17T20:00:00Z",
//!   "store": "0d5c…", "position": 42,
//!   "entries": {
//!     "behavioral/MEMORY.md": {"size": 1234, "mtime": "2026-04-17T19:58:00Z", "hash": "af13…", "version": "0x8D…"},
//!     "behavioral/feedback_*.md": {"count": 115, "total_size": 184000}
//!   }
//! }
//! ```
//!
//! A key with `count` is a group: a pattern that more than [`MAX_UNGROUPED`] of the single entries match. Groups stand beside the single
//! entries and are derived from them: they are written, and skipped when a manifest is read.
//!
//! # Invariants
//! - It is derived: a damaged one is written anew (`sync::mirror::unreadable_manifest_is_rewritten`). One of a newer
//!   schema is left alone (`newer_schema_is_left_alone`).
//! - A `manifest.json` of another program is never replaced (`sync::mirror::manifest_of_another_program_is_left_alone`).
//! - An entry says what an object held when we last wrote it, so a foreign edit can be told from it (`sync::mirror`).
//! - A name that is no locator is left out, and does not stop the rest (`odd_names_are_left_out`).

use std::collections::BTreeMap;

use haversack_store::{Bytes, Locator};
use serde::{Deserialize, Serialize};

use crate::frame::{BadFrame, as_number, shown};
use crate::ids::{ContentHash, Position, StoreId, Timestamp};

/// The largest manifest that is read.
pub const MAX_MANIFEST_BYTES: usize = 64 * 1024 * 1024;

/// The schema that is written, and the newest that is read.
pub const SCHEMA_VERSION: u32 = 1;

/// A pattern that more files than this match has an entry of its own.
pub const MAX_UNGROUPED: usize = 100;

/// The first bytes of every manifest that [`Manifest::encode`] returns.
const OPENING: &[u8] = b"{\n  \"schema_version\": ";

/// The index of the plain objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The store they are of.
    pub store: Option<StoreId>,
    /// The position of the log that they show.
    pub position: Option<Position>,
    /// When it was written, to be shown.
    pub updated_at: Option<Timestamp>,
    /// The objects.
    pub entries: BTreeMap<Locator, Entry>,
}

/// An object, as it was when we last wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its size in bytes.
    pub size: u64,
    /// The time of the commit that gave the file this content, if that is known.
    pub mtime: Option<Timestamp>,
    /// The name of its content.
    pub hash: Option<ContentHash>,
    /// The storage's version of it.
    pub version: Option<String>,
}

impl Manifest {
    /// Returns the bytes: the same for the same manifest.
    pub fn encode(&self) -> Bytes {
        let entries = self.entries.iter().map(|(locator, entry)| {
            let line = EntryLine {
                size: Some(entry.size),
                mtime: entry.mtime.map(|time| time.to_string()),
                hash: entry.hash,
                version: entry.version.clone(),
                ..EntryLine::default()
            };
            (locator.to_string(), line)
        });
        let groups = self.groups().into_iter().map(|(pattern, group)| {
            let (count, total_size) = (Some(group.count), Some(group.total_size));
            (pattern, EntryLine { count, total_size, ..EntryLine::default() })
        });
        let lines = Lines {
            schema_version: SCHEMA_VERSION,
            updated_at: self.updated_at.map(|time| time.to_string()),
            store: self.store,
            position: self.position,
            // A file that is called like a pattern has its own entry: the later one counts.
            entries: groups.chain(entries).collect(),
        };
        let mut bytes = serde_json::to_vec_pretty(&lines).expect("strings and numbers print");
        bytes.push(b'\n');
        bytes.into()
    }

    /// Returns the patterns that many entries match: `DIRECTORY/*.EXTENSION` and `DIRECTORY/WORD_*.EXTENSION`.
    fn groups(&self) -> BTreeMap<String, Group> {
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        if self.entries.len() <= MAX_UNGROUPED {
            return groups;
        }
        for (locator, entry) in &self.entries {
            for pattern in patterns(locator) {
                let group = groups.entry(pattern).or_default();
                group.count += 1;
                group.total_size += entry.size;
            }
        }
        groups.retain(|_, group| group.count > MAX_UNGROUPED);
        groups
    }

    /// Returns true if bytes that are no manifest may be what is left of one of ours: nothing, zeros, a part that begins like ours, or
    /// a text that names our store.
    ///
    /// Anything else is the file of another program that uses the same name.
    pub fn is_remnant(bytes: &[u8], store: Option<StoreId>) -> bool {
        let is_blank = bytes.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace());
        let begins_like_ours = || bytes.iter().zip(OPENING).all(|(byte, ours)| byte == ours);
        let names_our_store =
            || store.is_some_and(|store| memchr::memmem::find(bytes, store.to_string().as_bytes()).is_some());
        is_blank || begins_like_ours() || names_our_store()
    }

    /// Reads a manifest.
    pub fn decode(bytes: &Bytes) -> Result<Manifest, BadFrame> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(BadFrame::TooLarge { what: "bytes", limit: as_number(MAX_MANIFEST_BYTES) });
        }
        let bad = |error: serde_json::Error| BadFrame::damaged(shown(&error.to_string()));
        let Schema { schema_version: version } = serde_json::from_slice(bytes).map_err(bad)?;
        if version > SCHEMA_VERSION {
            return Err(BadFrame::Newer { version });
        }
        let lines: Lines = serde_json::from_slice(bytes).map_err(bad)?;
        let singles = lines.entries.into_iter().filter(|(_, line)| line.count.is_none());
        let entries = singles.filter_map(|(key, line)| {
            let locator = Locator::from_stored_key(&key)
                .ok()
                .filter(|locator| !locator.is_root() && !locator.is_reserved())?;
            let mtime = line.mtime.as_deref().and_then(read_time);
            let size = line.size.unwrap_or_default();
            Some((locator, Entry { size, mtime, hash: line.hash, version: line.version }))
        });
        Ok(Manifest {
            store: lines.store,
            position: lines.position,
            updated_at: lines.updated_at.as_deref().and_then(read_time),
            entries: entries.collect(),
        })
    }
}

/// The files that match a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    count: usize,
    total_size: u64,
}

/// Returns the patterns that a file is counted in.
fn patterns(locator: &Locator) -> impl Iterator<Item = String> {
    let key = locator.as_str();
    let (directory, name) = key.rsplit_once('/').map_or(("", key), |(directory, name)| (directory, name));
    let slash = if directory.is_empty() { "" } else { "/" };
    let parts = name.rsplit_once('.').filter(|(stem, extension)| !stem.is_empty() && !extension.is_empty());
    let all = parts.map(|(_, extension)| format!("{directory}{slash}*.{extension}"));
    let of_word = parts.and_then(|(stem, extension)| {
        let (word, _) = stem.split_once('_').filter(|(word, _)| !word.is_empty())?;
        Some(format!("{directory}{slash}{word}_*.{extension}"))
    });
    all.into_iter().chain(of_word)
}

fn read_time(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|time| Timestamp(time.as_millisecond()))
}

#[derive(Deserialize)]
struct Schema {
    schema_version: u32,
}

#[derive(Serialize, Deserialize)]
struct Lines {
    schema_version: u32,
    #[serde(default)]
    updated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    store: Option<StoreId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    position: Option<Position>,
    entries: BTreeMap<String, EntryLine>,
}

#[derive(Default, Serialize, Deserialize)]
struct EntryLine {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    mtime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    hash: Option<ContentHash>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    version: Option<String>,
    /// The number of matching files, if this is a group.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    total_size: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Manifest {
        let entry = Entry {
            size: 18,
            mtime: Some(Timestamp(1_776_455_880_000)),
            hash: Some(ContentHash::of(b"x")),
            version: Some("0x8D".to_owned()),
        };
        Manifest {
            store: Some(StoreId::from_bytes([1; 16])),
            position: Position::new(42),
            updated_at: Some(Timestamp(1_776_456_000_000)),
            entries: [(Locator::parse("behavioral/MEMORY.md").expect("valid"), entry)].into(),
        }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let bytes = example().encode();
        assert_eq!(Manifest::decode(&bytes), Ok(example()));
        let text = std::str::from_utf8(&bytes).expect("text");
        assert!(text.contains("\"updated_at\": \"2026-04-17T20:00:00Z\""), "{text}");
    }

    #[test]
    fn the_schema_of_others_is_read() {
        let seed = r#"{"schema_version":1,"updated_at":"2026-04-17T20:00:00Z","entries":{
            "behavioral/MEMORY.md":{"size":1234,"mtime":"..."},"behavioral/feedback_*.md":{"count":15,"total_size":24000}}}"#;
        let manifest = Manifest::decode(&Bytes::from_static(seed.as_bytes())).expect("read");
        let memory = &manifest.entries["behavioral/MEMORY.md"];
        assert_eq!((memory.size, memory.mtime, memory.hash), (1234, None, None));
        assert_eq!(manifest.entries.len(), 1, "a group is no file");
    }

    #[test]
    fn groups_stand_beside_the_entries_of_large_directories() {
        let entry = |size| Entry { size, mtime: None, hash: None, version: None };
        let locator = |name: &str| Locator::parse(name).expect("valid");
        let mut manifest = example();
        for number in 0..=MAX_UNGROUPED {
            manifest.entries.insert(locator(&format!("notes/feedback_{number}.md")), entry(10));
        }
        for number in 0..MAX_UNGROUPED {
            manifest.entries.insert(locator(&format!("notes/deep/day {number}.md")), entry(1));
            manifest.entries.insert(locator(&format!("notes/{number}")), entry(1));
        }
        for name in ["notes/user_role.md", "notes/plain.md", "notes/_x.md", "notes/.hidden"] {
            manifest.entries.insert(locator(name), entry(2));
        }
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest));
        let text = std::str::from_utf8(&bytes).expect("text");
        let lines: Lines = serde_json::from_str(text).expect("a manifest");
        let groups: Vec<_> = lines
            .entries
            .iter()
            .filter_map(|(pattern, line)| Some((pattern.as_str(), line.count?, line.total_size?)))
            .collect();
        assert_eq!(groups, [("notes/*.md", 104, 1016), ("notes/feedback_*.md", 101, 1010)]);
        assert_eq!(text.matches("\"count\"").count(), 2, "only groups have it");
    }

    #[test]
    fn odd_names_are_left_out() {
        let entries = r#""../x":{"size":1},"a//b":{"size":1},"":{"size":1},"manifest.json":{"size":1},"ok.md":{"size":2}"#;
        let bytes = format!(r#"{{"schema_version":1,"entries":{{{entries}}}}}"#);
        let manifest = Manifest::decode(&bytes.into()).expect("read");
        assert_eq!(manifest.entries.keys().map(Locator::as_str).collect::<Vec<_>>(), ["ok.md"]);
    }

    #[test]
    fn newer_schema_is_left_alone() {
        let newer = Bytes::from_static(br#"{"schema_version":2,"entries":[]}"#);
        assert_eq!(Manifest::decode(&newer), Err(BadFrame::Newer { version: 2 }));
        for damaged in [&b"{"[..], b"", b"[]", br#"{"schema_version":1}"#, br#"{"entries":{}}"#] {
            let decoded = Manifest::decode(&Bytes::from_static(damaged));
            assert!(matches!(decoded, Err(BadFrame::Damaged { .. })), "{decoded:?}");
        }
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = example().encode();
        for cut in 0..bytes.len() - 2 {
            assert!(Manifest::decode(&bytes.slice(..cut)).is_err(), "cut at {cut}");
        }
    }
}
