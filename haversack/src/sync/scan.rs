//! What is in the working directory, read only where it may have changed.

use std::collections::BTreeMap;

use futures_lite::StreamExt;
use haversack_store::{Backend, ErrorKind, Info, Locator, Odd, Result as StoreResult};
use serde::{Deserialize, Serialize};

use super::plan::Contents;
use super::planted::{Planted, has};
use crate::ids::ContentHash;

/// Which outside of a file had which content.
///
/// An entry is believed only if the file had settled when it was made: a change within the same tick of the clock would not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatCache {
    entries: BTreeMap<Locator, (String, ContentHash)>,
    /// Whether it is not what was written any more.
    is_changed: bool,
}

/// An entry as it is written.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CacheLine {
    at: String,
    outside: String,
    hash: ContentHash,
}

impl StatCache {
    /// Returns how many files there were at the last look, as far as it is known.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets a file that we changed ourselves.
    pub(crate) fn forget(&mut self, at: &str) {
        self.is_changed |= self.entries.remove(at).is_some();
    }

    /// Tells whether it is not what was written any more.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Notes that it was written.
    pub(crate) fn was_written(&mut self) {
        self.is_changed = false;
    }

    /// Returns the cache that was written as `lines`; a line that makes no sense is left out.
    pub(crate) fn read(lines: Vec<CacheLine>) -> StatCache {
        let entries = lines
            .into_iter()
            .filter_map(|line| Some((Locator::parse(&line.at).ok()?, (line.outside, line.hash))));
        StatCache { entries: entries.collect(), is_changed: false }
    }

    /// Returns the cache as it is written.
    pub(crate) fn lines(&self) -> Vec<CacheLine> {
        let line = |(locator, (outside, hash)): (&Locator, &(String, ContentHash))| CacheLine {
            at: locator.to_string(),
            outside: outside.clone(),
            hash: *hash,
        };
        self.entries.iter().map(line).collect()
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) contents: Contents,
    /// What is there but cannot be served.
    pub(crate) odd: Vec<Odd>,
    /// How many files had to be read.
    pub(crate) read: usize,
}

/// Looks at every file.
pub(crate) async fn scan(files: &dyn Backend, cache: &mut StatCache) -> StoreResult<Found> {
    let mark = files.touch_mark().await?;
    let mut found = Found::default();
    let mut entries = BTreeMap::new();
    let mut pages = files.scan(&Locator::root(), None);
    while let Some(page) = pages.next().await {
        let page = page?;
        found.odd.extend(page.odd);
        for info in page.infos {
            let token = token(&info);
            let hash = match cache.entries.get(&info.locator) {
                Some((known, hash)) if *known == token => *hash,
                _ => {
                    found.read += 1;
                    match files.read(&info.locator).await {
                        Ok(object) => ContentHash::of(&object.bytes),
                        Err(error) if error.kind() == ErrorKind::NotFound => continue,
                        Err(error) => return Err(error),
                    }
                }
            };
            let is_settled = info.fingerprint.is_settled(&mark) || has(Planted::StaleStatTrusted);
            if info.version.is_some() || is_settled {
                entries.insert(info.locator.clone(), (token, hash));
            }
            found.contents.insert(info.locator, hash);
        }
    }
    cache.is_changed |= cache.entries != entries;
    cache.entries = entries;
    Ok(found)
}

/// Returns what a file's outside is called: its version where the backend knows it, else its fingerprint.
fn token(info: &Info) -> String {
    match &info.version {
        _ if has(Planted::SizeTellsContent) => info.size_bytes.to_string(),
        Some(version) => version.to_string(),
        None => info.fingerprint.to_string(),
    }
}
