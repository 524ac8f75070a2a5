//! Lists the working directory, and reads only files that may have changed.

use std::collections::{BTreeMap, BTreeSet};

use futures_lite::StreamExt;
use haversack_store::{Backend, Bytes, ErrorKind, Fingerprint, Info, Locator, Odd, Result as StoreResult};
use serde::{Deserialize, Serialize};

use super::plan::{Bases, Contents};
use super::planted::{Planted, has};
use crate::frame::Framed;
use crate::growth::{Growth, Rest};
use crate::ids::ContentHash;
use crate::table::{Table, Writer};

/// The format of the cache; the first was a list of JSON.
pub(crate) const VERSION: u32 = 2;

/// The number of bytes in a file's record: its fingerprint, and the hash of its content.
const RECORD: usize = Fingerprint::BYTES + ContentHash::BYTES;

/// The cost of looking at a file again, apart from reading it, in bytes that could be written in that time.
const LOOK_BYTES: u64 = 16 * 1024;

/// The cache is written again when the cost of the missing entries exceeds this part of the cost of writing.
const WRITE_SHARE: u64 = 8;

/// Maps each file's fingerprint to its content hash.
///
/// An entry is believed only if the file had settled when it was made: a change within the same tick of the clock would not show. So one that
/// was not written again since a file changed does no harm: it is not the file's any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatCache {
    written: Table<RECORD>,
    /// Cached values of files whose record changed since.
    moved: BTreeMap<Locator, Sight>,
}

/// The cached value of such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    /// It has this outside and content, and so many bytes.
    Settled { record: [u8; RECORD], size_bytes: u64 },
    /// It was touched a moment ago: it is read again.
    Fresh,
    /// It is not there.
    Gone,
}

/// The data that is needed to read the cache.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Heading {
    rows: usize,
}

impl StatCache {
    /// Returns how many files there were at the last look, as far as it is known.
    pub(crate) fn len(&self) -> usize {
        let gone = self.moved.values().filter(|sight| **sight == Sight::Gone).count();
        let new = self.moved.iter().filter(|(locator, sight)| {
            matches!(sight, Sight::Settled { .. }) && self.written.find(locator.as_str()).is_none()
        });
        self.written.len() - gone + new.count()
    }

    /// Forgets a file that we changed ourselves.
    pub(crate) fn forget(&mut self, at: &str) {
        match (self.written.find(at), Locator::parse(at)) {
            (Some(_), Ok(locator)) => drop(self.moved.insert(locator, Sight::Fresh)),
            (Some(_) | None, _) => drop(self.moved.remove(at)),
        }
    }

    /// Returns true if writing it costs less than reading the missing files again.
    pub(crate) fn is_worth_writing(&self) -> bool {
        let cost = |sight: &Sight| match sight {
            Sight::Settled { size_bytes, .. } => LOOK_BYTES.saturating_add(*size_bytes),
            Sight::Gone => LOOK_BYTES,
            // It is read again with or without.
            Sight::Fresh => 0,
        };
        let costs = self.moved.values().map(cost).fold(0, u64::saturating_add);
        costs > self.written.bytes() as u64 / WRITE_SHARE
    }

    /// Returns the written cache; `None` if it is damaged.
    pub(crate) fn read(framed: &Framed<Heading>) -> Option<StatCache> {
        let is_known = framed.version == VERSION;
        let written = Table::read(framed.contents.clone(), framed.heading.rows).filter(|_| is_known)?;
        Some(StatCache { written, moved: BTreeMap::new() })
    }

    /// Returns the cache as it is written.
    pub(crate) fn write(&self) -> (Heading, [Vec<u8>; 2]) {
        let mut writer = Writer::default();
        let mut written = self.written.iter().peekable();
        for (locator, sight) in &self.moved {
            while let Some((name, record)) = written.next_if(|(name, _)| *name < locator.as_str()) {
                writer.add(name, record);
            }
            written.next_if(|(name, _)| *name == locator.as_str());
            if let Sight::Settled { record, .. } = sight {
                writer.add(locator.as_str(), record);
            }
        }
        written.for_each(|(name, record)| writer.add(name, record));
        (Heading { rows: writer.count() }, writer.into_parts())
    }

    /// Notes the written cache.
    pub(crate) fn was_written(&mut self, heading: &Heading, contents: Bytes) {
        if let Some(written) = Table::read(contents, heading.rows) {
            *self = StatCache { written, moved: BTreeMap::new() };
        }
    }
}

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) contents: Contents,
    /// Files that exist and cannot be served or read.
    pub(crate) odd: Vec<Odd>,
    /// Files that could not be read, and other places at which the log knows of files, and why they could not be looked at.
    pub(crate) unseen: Vec<(Locator, String)>,
    /// The number of files that had to be read.
    pub(crate) read: usize,
    /// Files that were not read, because their growth is recorded.
    pub(crate) grown: BTreeSet<Locator>,
    /// True if a file was listed, and gone when it was read.
    has_vanished: bool,
}

impl Found {
    /// Keeps the last known state of unreadable files: they are not deleted.
    pub(crate) fn keep_unseen(&mut self, bases: Bases<'_>) {
        if self.odd.iter().all(|odd| odd.at.is_none()) {
            return;
        }
        let mut kept = Vec::new();
        for odd in &self.odd {
            let Some(at) = &odd.at else { continue };
            let is_missed =
                |name: &str| at.holds(name) && !bases.absent.contains_key(name) && !self.contents.holds(name);
            let before = kept.len();
            let entries = bases.files.entries().filter(|entry| is_missed(entry.name));
            kept.extend(entries.map(|entry| (entry.locator(), entry.content.hash)));
            if kept.len() > before && self.unseen.iter().all(|(unseen, _)| unseen != at) {
                self.unseen.push((at.clone(), odd.why.clone()));
            }
        }
        self.contents.extend(kept);
    }
}

/// The most times that the scan starts over because a file disappeared.
const MAX_LOOKS: usize = 3;

/// Looks at every file.
///
/// A file that was listed and is gone when it is read may have been renamed in this moment: then its new name was not listed. So everything is
/// looked at again.
pub(crate) async fn scan(
    files: &dyn Backend,
    cache: &mut StatCache,
    growths: &BTreeMap<Locator, Growth>,
) -> StoreResult<Found> {
    let mut found = look(files, cache, growths).await?;
    for _ in 1..MAX_LOOKS {
        if !found.has_vanished {
            break;
        }
        found = look(files, cache, growths).await?;
    }
    Ok(found)
}

/// Looks at every file once.
async fn look(
    files: &dyn Backend,
    cache: &mut StatCache,
    growths: &BTreeMap<Locator, Growth>,
) -> StoreResult<Found> {
    let mark = files.touch_mark().await?;
    let mut found = Found::default();
    let mut contents = Vec::with_capacity(cache.written.len());
    let mut moved = BTreeMap::new();
    let mut written = cache.written.cursor();
    let gone = |moved: &mut BTreeMap<Locator, Sight>, name: &str| {
        moved.extend(Locator::parse(name).ok().map(|locator| (locator, Sight::Gone)));
    };
    let mut pages = files.scan(&Locator::root(), None);
    while let Some(page) = pages.next().await {
        let page = page?;
        found.odd.extend(page.odd);
        for info in page.infos {
            let token = token(&info);
            let at_writing = written.seek(info.locator.as_str(), |name| gone(&mut moved, name));
            let known = match cache.moved.get(&info.locator) {
                Some(Sight::Settled { record, .. }) => Some(record),
                Some(Sight::Fresh | Sight::Gone) => None,
                None => at_writing,
            };
            let hash = match known.map(|record| record.split_at(Fingerprint::BYTES)) {
                Some((known, hash)) if *known == token => hash.try_into().map(ContentHash::from_bytes).ok(),
                _ => None,
            };
            let is_settled = info.fingerprint.is_settled(&mark) || has(Planted::StaleStatTrusted);
            let rest = if is_settled { Rest::Settled } else { Rest::Fresh };
            let growth = growths.get(&info.locator).filter(|growth| {
                info.version.is_none() && growth.fits(&info.fingerprint, info.size_bytes, rest)
            });
            let hash = match (hash, growth) {
                (Some(hash), _) => hash,
                (None, Some(growth)) => {
                    found.grown.insert(info.locator.clone());
                    growth.published().base().hash
                }
                (None, None) => {
                    found.read += 1;
                    match files.read(&info.locator).await {
                        Ok(object) => ContentHash::of(&object.bytes),
                        Err(error) if error.kind() == ErrorKind::NotFound => {
                            found.has_vanished = true;
                            if at_writing.is_some() {
                                moved.insert(info.locator, Sight::Gone);
                            }
                            continue;
                        }
                        // A problem with one file does not stop the others.
                        Err(error) if matches!(error.kind(), ErrorKind::Denied | ErrorKind::Invalid) => {
                            let (shown, why) = (info.locator.to_string(), error.message().to_owned());
                            found.unseen.push((info.locator.clone(), why.clone()));
                            found.odd.push(Odd { at: Some(info.locator), shown, why });
                            continue;
                        }
                        Err(error) => return Err(error),
                    }
                }
            };
            if info.version.is_some() || is_settled {
                let mut record = [0; RECORD];
                record[..Fingerprint::BYTES].copy_from_slice(&token);
                record[Fingerprint::BYTES..].copy_from_slice(&hash.to_bytes());
                if at_writing != Some(&record) {
                    let sight = Sight::Settled { record, size_bytes: info.size_bytes };
                    moved.insert(info.locator.clone(), sight);
                }
            } else if at_writing.is_some() {
                moved.insert(info.locator.clone(), Sight::Fresh);
            }
            contents.push((info.locator, hash));
        }
    }
    written.rest().for_each(|name| gone(&mut moved, name));
    cache.moved = moved;
    found.contents = contents.into();
    Ok(found)
}

/// Returns a file's token: its version if the backend knows it, else its fingerprint.
fn token(info: &Info) -> [u8; Fingerprint::BYTES] {
    let fingerprint = match &info.version {
        _ if has(Planted::SizeTellsContent) => Fingerprint::new(&[info.size_bytes], 0),
        Some(version) => Fingerprint::of_version(version),
        None => info.fingerprint,
    };
    fingerprint.to_bytes()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may wait")]
mod tests {
    use haversack_store::{Condition, InMemory, block_on};

    use super::super::plan::AbsenceReason;
    use super::*;
    use crate::log::{Content, Files};

    fn at(name: &str) -> Locator {
        Locator::parse(name).expect("valid")
    }

    fn put(files: &InMemory, name: &str, text: &str) {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let _ = block_on(files.write(&at(name), bytes, Condition::Any)).expect("written");
    }

    /// Looks at all files, and returns how many were read.
    fn look(files: &InMemory, cache: &mut StatCache) -> usize {
        let found = block_on(scan(files, cache, &BTreeMap::new())).expect("looked at");
        let all = block_on(scan(files, &mut StatCache::default(), &BTreeMap::new())).expect("looked at");
        assert_eq!(found.contents, all.contents);
        found.read
    }

    /// Returns the cache as a new process reads it.
    fn read_back(cache: &StatCache) -> StatCache {
        let (heading, parts) = cache.write();
        let framed = Framed { version: VERSION, heading, contents: parts.concat().into() };
        StatCache::read(&framed).expect("a cache")
    }

    #[test]
    fn only_what_changed_is_read_again() {
        let files = InMemory::new();
        for (name, text) in [("a", "1"), ("b", "2"), ("c", "3")] {
            put(&files, name, text);
        }
        let mut cache = StatCache::default();
        assert_eq!((look(&files, &mut cache), look(&files, &mut cache), cache.len()), (3, 0, 3));
        assert!(cache.is_worth_writing());
        let mut cache = read_back(&cache);
        assert_eq!((look(&files, &mut cache), cache.len(), cache.is_worth_writing()), (0, 3, false));
        put(&files, "b", "other");
        put(&files, "d", "4");
        block_on(files.delete(&at("a"), Condition::Any)).expect("gone");
        // In both cases: written or not.
        let mut unwritten = cache.clone();
        for cache in [&mut cache, &mut unwritten] {
            assert_eq!((look(&files, cache), look(&files, cache), cache.len()), (2, 0, 3));
        }
        let mut cache = read_back(&cache);
        assert_eq!((look(&files, &mut cache), cache.len(), cache.is_worth_writing()), (0, 3, false));
        cache.forget("b");
        cache.forget("nothing");
        assert_eq!((look(&files, &mut cache), cache.len()), (1, 3));
        block_on(files.delete(&at("b"), Condition::Any)).expect("gone");
        block_on(files.delete(&at("c"), Condition::Any)).expect("gone");
        block_on(files.delete(&at("d"), Condition::Any)).expect("gone");
        assert_eq!((look(&files, &mut cache), cache.len()), (0, 0));
        assert!(cache.is_worth_writing(), "that all of them are gone is not forgotten");
    }

    #[test]
    fn what_could_not_be_looked_at_is_as_it_was() {
        let hash = |text: &str| ContentHash::of(text.as_bytes());
        let content = |text: &str| Content { hash: hash(text), size: 1 };
        let known = ["a", "c/d", "c/e/f", "cd", "linked", "fetched"];
        let files: Files = known.iter().map(|name| (at(name), content("before"))).collect();
        let absent = BTreeMap::from([(at("fetched"), AbsenceReason::Unfetched)]);
        let (before, held) = (BTreeMap::new(), BTreeSet::new());
        let bases = Bases { files: &files, absent: &absent, before: &before, held: &held };
        let odd =
            |name: &str, at: Option<Locator>| Odd { at, shown: name.to_owned(), why: "refused".to_owned() };
        let unseen = |name: &str| odd(name, Some(at(name)));
        let mut found = Found {
            contents: Contents::from_iter([(at("a"), hash("after")), (at("c/d"), hash("after"))]),
            odd: vec![unseen("c"), unseen("linked"), unseen("fetched"), unseen("new"), odd("a name", None)],
            ..Found::default()
        };
        found.keep_unseen(bases);
        let shown: Vec<(&str, bool)> =
            found.contents.iter().map(|(locator, now)| (locator.as_str(), *now == hash("before"))).collect();
        assert_eq!(shown, [("a", false), ("c/d", false), ("c/e/f", true), ("linked", true)], "cd is gone");
        let unseen: Vec<&str> = found.unseen.iter().map(|(locator, _)| locator.as_str()).collect();
        assert_eq!(unseen, ["c", "linked"]);
    }

    #[test]
    fn a_large_cache_is_not_written_for_one_file() {
        let files = InMemory::new();
        (0..4_000).for_each(|number| put(&files, &format!("{number:04}"), "text"));
        let mut cache = StatCache::default();
        look(&files, &mut cache);
        let mut cache = read_back(&cache);
        put(&files, "0100", "other");
        assert_eq!((look(&files, &mut cache), cache.is_worth_writing()), (1, false));
        put(&files, "0200", &"a long text".repeat(10_000));
        assert_eq!((look(&files, &mut cache), cache.is_worth_writing()), (1, true));
    }

    #[test]
    fn a_cache_of_another_format_is_none() {
        for (version, rows) in [(1, 0), (VERSION, 1), (VERSION, usize::MAX)] {
            let framed = Framed { version, heading: Heading { rows }, contents: Bytes::new() };
            assert_eq!(StatCache::read(&framed), None, "version {version}, {rows} rows");
        }
    }
}
