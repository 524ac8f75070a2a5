//! The growth of long files: lets a sync publish appended bytes without reading the file.
//!
//! 1. A sync publishes an append to a file of at least [`MIN_BYTES`]. It writes a record: the file's hash in a form that can grow
//!    ([`GrowingHash`]), and the fingerprint of the file.
//! 2. While the record is there, the verb `append` adds a line to it: the appended bytes, and the fingerprints before and after ([`Watch`]).
//! 3. The next sync scans the file. If each line begins with the fingerprint at which the one before it ended, and the file has the last
//!    fingerprint, then the file's content is the base and the bytes of the lines ([`Growth::fits`]).
//! 4. After publishing, the sync writes the record again, without lines.
//!
//! The record is a shortcut. If it is lost, damaged or does not fit, the sync reads the file.
//!
//! A fingerprint cannot show another program's change that leaves the size and falls into the same tick of the clock as our append. So a sync
//! reads the whole file when it has grown by an eighth since it was read, and whenever it has come to rest without new lines.

use std::collections::BTreeMap;

use haversack_store::{
    Backend, BackendExt, Bytes, Condition, Durability, Fingerprint, Locator, Result as StoreResult,
};
use serde::{Deserialize, Serialize};

use crate::growing_hash::GrowingHash;
use crate::ids::ContentHash;
use crate::log::Content;

/// The size from which a file's growth is recorded. Shorter files are read.
pub(crate) const MIN_BYTES: u64 = 1024 * 1024;

/// The most files with a record.
const MAX_RECORDS: usize = 8;

/// The longest record. A file that grew by more between two syncs is read.
const MAX_RECORD_BYTES: u64 = 4 * 1024 * 1024;

/// A file is read again when it has grown by this part since it was read.
const READ_SHARE: u64 = 8;

/// The growth of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    known: KnownFile,
    appended: Vec<AppendedLine>,
}

/// The state of a file when it was published last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KnownFile {
    path: String,
    content: ContentHash,
    size: u64,
    /// The size when the whole file was read last.
    read_bytes: u64,
    hash: GrowingHash,
    fingerprint: String,
    /// The object of the replica's state that grows with the file.
    kept: ContentHash,
}

/// One append.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct AppendedLine {
    before: String,
    offset: u64,
    text: String,
    after: String,
}

impl Growth {
    /// Returns the growth of a file that was just read.
    pub(crate) fn begin(
        locator: &Locator,
        bytes: &[u8],
        fingerprint: &Fingerprint,
        kept: ContentHash,
    ) -> Growth {
        let hash = GrowingHash::of(bytes);
        let size = bytes.len() as u64;
        let known = KnownFile {
            path: locator.to_string(),
            content: hash.content_hash(),
            size,
            read_bytes: size,
            hash,
            fingerprint: shown(fingerprint),
            kept,
        };
        Growth { known, appended: Vec::new() }
    }

    /// Returns the published content.
    pub(crate) fn base(&self) -> Content {
        Content { hash: self.known.content, size: self.known.size }
    }

    /// Returns the object of the replica's state that grows with the file.
    pub(crate) fn kept(&self) -> ContentHash {
        self.known.kept
    }

    /// Returns true if a file with this fingerprint and size is known to be the base and the appended bytes.
    pub(crate) fn fits(&self, fingerprint: &Fingerprint, size_bytes: u64, rest: Rest) -> bool {
        let mut end = (self.known.fingerprint.as_str(), self.known.size);
        for line in &self.appended {
            if (line.before.as_str(), line.offset) != end {
                return false;
            }
            end = (&line.after, line.offset + line.text.len() as u64);
        }
        let is_read_soon =
            size_bytes - self.known.read_bytes.min(size_bytes) > self.known.read_bytes / READ_SHARE;
        let is_at_rest = rest == Rest::Settled && self.appended.is_empty();
        !is_read_soon && !is_at_rest && end == (shown(fingerprint).as_str(), size_bytes)
    }

    /// Returns the appended bytes.
    pub(crate) fn added(&self) -> Bytes {
        self.appended.iter().map(|line| line.text.as_str()).collect::<String>().into()
    }

    /// Returns the growth after the appended bytes are published.
    pub(crate) fn published(&self) -> Growth {
        let mut known = self.known.clone();
        for line in &self.appended {
            known.hash.extend(line.text.as_bytes());
            known.size += line.text.len() as u64;
            known.fingerprint.clone_from(&line.after);
        }
        known.content = known.hash.content_hash();
        Growth { known, appended: Vec::new() }
    }
}

/// Tells if a file was touched so recently that a further change may not show in its fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// A further change would show.
    Settled,
    /// It may not show.
    Fresh,
}

/// Reads all records; damaged ones are left out.
pub(crate) async fn read(state: &dyn Backend) -> StoreResult<BTreeMap<Locator, Growth>> {
    let mut growths = BTreeMap::new();
    for entry in state.list(&directory()).await?.entries.into_iter().take(MAX_RECORDS) {
        let Some(text) = state.read_text(&entry.locator).await.ok().flatten() else { continue };
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let known = lines.next().and_then(|line| serde_json::from_str::<KnownFile>(line).ok());
        let appended: Option<Vec<AppendedLine>> = lines.map(|line| serde_json::from_str(line).ok()).collect();
        if let (Some(known), Some(appended)) = (known, appended)
            && let Ok(locator) = Locator::parse(&known.path)
        {
            growths.insert(locator, Growth { known, appended });
        }
    }
    Ok(growths)
}

/// Writes the records of files that were published, and removes others if there are too many.
pub(crate) async fn write(state: &dyn Backend, growths: &BTreeMap<Locator, Growth>) -> StoreResult<()> {
    for (locator, growth) in growths {
        let mut text = serde_json::to_string(&growth.known).expect("texts and numbers print");
        text.push('\n');
        let _ = state.write(&place(locator), text.into(), Condition::Any).await?;
    }
    let all = state.list(&directory()).await?.entries;
    let is_kept = |entry: &Locator| growths.keys().any(|locator| place(locator) == *entry);
    let others: Vec<Locator> = all.into_iter().map(|entry| entry.locator).filter(|at| !is_kept(at)).collect();
    let room = MAX_RECORDS.saturating_sub(growths.len());
    for other in others.iter().skip(room) {
        state.delete(other, Condition::Any).await?;
    }
    Ok(())
}

/// An append under way to a file whose growth is recorded.
pub(crate) struct Watch {
    record: Locator,
    before: (String, u64),
}

impl Watch {
    /// Begins an append; `None` if the file's growth is not recorded.
    pub(crate) async fn begin(state: &dyn Backend, files: &dyn Backend, locator: &Locator) -> Option<Watch> {
        let record = place(locator);
        let info = state.info(&record).await.ok()?;
        if info.size_bytes > MAX_RECORD_BYTES {
            return None;
        }
        let before = files.info(locator).await.ok()?;
        Some(Watch { record, before: (shown(&before.fingerprint), before.size_bytes) })
    }

    /// Records the append. A problem costs the next sync the time to read the file.
    pub(crate) async fn note(
        self,
        state: &dyn Backend,
        files: &dyn Backend,
        locator: &Locator,
        offset: u64,
        bytes: &Bytes,
    ) {
        let (before, size_before) = self.before;
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let Ok(after) = files.info(locator).await else { return };
        // Another program appended in between.
        if size_before != offset || after.size_bytes != offset + bytes.len() as u64 {
            return;
        }
        let line = AppendedLine { before, offset, text: text.to_owned(), after: shown(&after.fingerprint) };
        let mut line = serde_json::to_string(&line).expect("texts and numbers print");
        line.push('\n');
        drop(state.append(&self.record, line.into(), Durability::AtBarrier).await);
    }
}

/// Returns the name of the object that grows with a file, from the content with which it begins. No content has this hash as its name.
pub(crate) fn growing_object(content: &ContentHash) -> ContentHash {
    ContentHash::of(format!("grows from {content}").as_bytes())
}

fn directory() -> Locator {
    Locator::parse("growth").expect("a plain name")
}

fn place(locator: &Locator) -> Locator {
    let name = ContentHash::of(locator.as_str().as_bytes()).to_string();
    directory().child(&name[..16]).expect("a plain name")
}

fn shown(fingerprint: &Fingerprint) -> String {
    fingerprint.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use futures_lite::future::block_on;
    use haversack_store::InMemory;

    use super::*;

    fn fingerprint(number: u64) -> Fingerprint {
        Fingerprint::new(&[number], 0)
    }

    #[test]
    fn growth_fits_only_the_file_that_it_describes() {
        let locator = Locator::parse("log.jsonl").expect("valid");
        let begun = Growth::begin(&locator, b"0123456789abcdef", &fingerprint(1), ContentHash::of(b"kept"));
        let line = |before: u64, offset: u64, after: u64| AppendedLine {
            before: shown(&fingerprint(before)),
            offset,
            text: "x".to_owned(),
            after: shown(&fingerprint(after)),
        };
        let with = |appended: &[AppendedLine]| Growth { appended: appended.to_vec(), ..begun.clone() };
        let grown = with(&[line(1, 16, 2), line(2, 17, 3)]);
        for rest in [Rest::Settled, Rest::Fresh] {
            assert!(grown.fits(&fingerprint(3), 18, rest));
            assert!(!grown.fits(&fingerprint(4), 18, rest), "it was changed since");
            assert!(!grown.fits(&fingerprint(3), 19, rest));
            let gap = with(&[line(1, 16, 2), line(9, 17, 3)]);
            assert!(!gap.fits(&fingerprint(3), 18, rest), "another program wrote in between");
            let foreign = with(&[line(1, 16, 2), line(2, 18, 3)]);
            assert!(!foreign.fits(&fingerprint(3), 19, rest));
        }
        assert!(begun.fits(&fingerprint(1), 16, Rest::Fresh));
        assert!(!begun.fits(&fingerprint(1), 16, Rest::Settled), "it is read when it has come to rest");
        let long = with(&[line(1, 16, 2), line(2, 17, 3), line(3, 18, 4)]);
        assert!(!long.fits(&fingerprint(4), 19, Rest::Fresh), "it grew by more than an eighth");
        let published = grown.published();
        assert_eq!(published.base(), Content { hash: ContentHash::of(b"0123456789abcdefxx"), size: 18 });
        assert!(published.fits(&fingerprint(3), 18, Rest::Fresh));
    }

    #[test]
    fn records_are_few_and_damaged_ones_are_left_out() {
        let state = InMemory::new();
        let at = |number: usize| Locator::parse(&format!("{number}.jsonl")).expect("valid");
        for number in 0..12 {
            let growth = Growth::begin(&at(number), b"text", &fingerprint(1), ContentHash::of(b"kept"));
            block_on(write(&state, &BTreeMap::from([(at(number), growth)]))).expect("written");
        }
        let all = block_on(read(&state)).expect("read");
        assert!(all.len() == MAX_RECORDS && all.contains_key(&at(11)), "{:?}", all.keys());
        let damage = Bytes::from_static(b"{half a li");
        let _ = block_on(state.append(&place(&at(11)), damage, Durability::AtBarrier)).expect("there");
        assert!(!block_on(read(&state)).expect("read").contains_key(&at(11)));
    }
}
