//! Finds a memory that says the same as a text.

use std::collections::BTreeMap;

use futures_lite::StreamExt;
use futures_lite::future::block_on;
use haversack::ids::ContentHash;
use haversack::remember::fingerprint;
use haversack::store::{Backend, EntryKind, Fingerprint, Locator, Result};

use crate::shares::in_shares;

/// Larger files say nothing that could be remembered again.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Facts that memories state, cached by a process that asks more than once.
#[derive(Debug, Default)]
pub struct KnownFacts {
    files: BTreeMap<Locator, Fact>,
}

/// The fact in a file when it was last read.
#[derive(Clone, Copy, Debug)]
struct Fact {
    /// The mark by which it is known that it still says so; `None` if it may have changed since.
    settled: Option<Fingerprint>,
    /// A hash of its words; `None` if it is no text.
    words: Option<ContentHash>,
}

impl KnownFacts {
    /// Returns a value that knows nothing yet.
    pub fn new() -> KnownFacts {
        KnownFacts::default()
    }

    /// Returns the memory below `within` that says the same as a text, whatever the white space, if there is one.
    pub async fn same(
        &mut self,
        files: &dyn Backend,
        within: &Locator,
        text: &str,
    ) -> Result<Option<Locator>> {
        let wanted = fingerprint(text);
        let mark = files.touch_mark().await?;
        let mut pages = files.scan(within, None);
        let mut seen = BTreeMap::new();
        while let Some(page) = pages.next().await {
            let mut unknown = Vec::new();
            for info in page?
                .infos
                .into_iter()
                .filter(|info| info.kind == EntryKind::File && info.size_bytes <= MAX_FILE_BYTES)
            {
                match self.files.get(&info.locator) {
                    Some(fact) if fact.settled == Some(info.fingerprint) => {
                        seen.insert(info.locator, *fact);
                    }
                    _ => unknown.push(info),
                }
            }
            let words = in_shares(&unknown, |info| {
                let object = block_on(files.read(&info.locator))?;
                Ok::<_, haversack::store::Error>(std::str::from_utf8(&object.bytes).ok().map(fingerprint))
            });
            for (info, words) in unknown.into_iter().zip(words) {
                let words = match words {
                    Ok(words) => words,
                    // A file that is gone or cannot be read does not keep a fact from being remembered.
                    Err(_) => continue,
                };
                let settled = info.fingerprint.is_settled(&mark).then_some(info.fingerprint);
                seen.insert(info.locator, Fact { settled, words });
            }
        }
        let same =
            seen.iter().find(|(_, fact)| fact.words == Some(wanted)).map(|(locator, _)| locator.clone());
        self.files.retain(|locator, _| !locator.is_within(within));
        self.files.extend(seen);
        Ok(same)
    }
}
