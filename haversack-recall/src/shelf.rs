//! The texts of a memory, kept by a process that looks more than once.

use std::collections::BTreeMap;
use std::time::SystemTime;

use futures_lite::StreamExt;
use haversack::ids::ContentHash;
use haversack::kind::Kinds;
use haversack::remember::fingerprint;
use haversack::store::{Backend, EntryKind, ErrorKind, Fingerprint, Locator, Result};

use crate::search::{Words, rank};
use crate::{Hit, Query, Recalled};

/// How much of one file is looked through.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// How much is looked through in all.
const MAX_TOTAL_BYTES: u64 = 64 * 1024 * 1024;

/// How much is kept between two looks; the rest is read again.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// The texts of a memory as they were last seen.
#[derive(Debug, Default)]
pub struct Shelf {
    texts: BTreeMap<Locator, Kept>,
    kept_bytes: usize,
}

/// A text as it was last seen.
#[derive(Debug)]
struct Kept {
    /// The mark by which it is known that it is still the same; `None` if it may have changed since.
    settled: Option<Fingerprint>,
    /// The text; `None` if it is none, or is not kept.
    text: Option<Box<str>>,
    says: Option<ContentHash>,
    modified: Option<SystemTime>,
    seen: bool,
}

/// What is not in a look.
#[derive(Debug, Default)]
struct LeftOut {
    unread: Vec<Locator>,
    looked_through: usize,
    total_bytes: u64,
}

impl Shelf {
    /// Returns an empty shelf.
    pub fn new() -> Shelf {
        Shelf::default()
    }

    /// Finds the memories that have to do with a query.
    pub async fn recall(&mut self, files: &dyn Backend, query: &Query) -> Result<Recalled> {
        let words = Words::of(&query.text);
        let mut counted = Vec::new();
        let left_out = self
            .each(files, &query.within, |locator, text| {
                if let Some(counts) = words.count(locator.as_str(), text) {
                    counted.push((locator.clone(), counts));
                }
            })
            .await?;
        let mut ranked = rank(&words, counted, left_out.looked_through);
        ranked.truncate(query.limit);
        let mut hits = Vec::new();
        for (locator, score) in ranked {
            let kept = self.texts.get(&locator);
            let modified = kept.and_then(|kept| kept.modified);
            let text = match kept.and_then(|kept| kept.text.as_deref()) {
                Some(text) => text.to_owned(),
                None => match files.read(&locator).await {
                    Ok(object) => String::from_utf8_lossy(&object.bytes).into_owned(),
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                },
            };
            let passage = words.passage(&text);
            let kind = Kinds::built_in().of(&locator, text.as_bytes()).name.clone();
            hits.push(Hit { locator, lines: passage.lines, passage: passage.text, kind, modified, score });
        }
        Ok(Recalled { hits, looked_through: left_out.looked_through, unread: left_out.unread })
    }

    /// Returns the memory below `within` that says the same as a text, if there is one.
    pub async fn same(
        &mut self,
        files: &dyn Backend,
        within: &Locator,
        text: &str,
    ) -> Result<Option<Locator>> {
        let wanted = fingerprint(text);
        let _ = self.each(files, within, |_, _| {}).await?;
        let mut below = self.texts.iter().filter(|(locator, _)| locator.is_within(within));
        Ok(below.find(|(_, kept)| kept.says == Some(wanted)).map(|(locator, _)| locator.clone()))
    }

    /// Looks at every text below `within`, reading only what may have changed.
    async fn each(
        &mut self,
        files: &dyn Backend,
        within: &Locator,
        mut look: impl FnMut(&Locator, &str),
    ) -> Result<LeftOut> {
        let mut left_out = LeftOut::default();
        let mark = files.touch_mark().await?;
        let mut pages = files.scan(within, None);
        self.texts.values_mut().for_each(|kept| kept.seen = false);
        while let Some(page) = pages.next().await {
            let page = page?;
            for info in page.infos.into_iter().filter(|info| info.kind == EntryKind::File) {
                let settled = info.fingerprint.is_settled(&mark).then_some(info.fingerprint);
                if let Some(kept) = self.texts.get_mut(&info.locator)
                    && kept.settled == Some(info.fingerprint)
                    && (kept.text.is_some() || kept.says.is_none())
                {
                    kept.seen = true;
                    if let Some(text) = &kept.text {
                        left_out.looked_through += 1;
                        left_out.total_bytes += text.len() as u64;
                        look(&info.locator, text);
                    }
                    continue;
                }
                if info.size_bytes > MAX_FILE_BYTES || left_out.total_bytes > MAX_TOTAL_BYTES {
                    left_out.unread.push(info.locator);
                    continue;
                }
                let bytes = match files.read(&info.locator).await {
                    Ok(object) => object.bytes,
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(_) => {
                        left_out.unread.push(info.locator);
                        continue;
                    }
                };
                let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
                if let Some(text) = text {
                    left_out.looked_through += 1;
                    left_out.total_bytes += text.len() as u64;
                    look(&info.locator, text);
                }
                self.keep(info.locator, settled, text, info.modified);
            }
        }
        let is_gone = |locator: &Locator, kept: &Kept| !kept.seen && locator.is_within(within);
        self.texts.retain(|locator, kept| !is_gone(locator, kept));
        self.kept_bytes =
            self.texts.values().filter_map(|kept| kept.text.as_ref()).map(|text| text.len()).sum();
        Ok(left_out)
    }

    fn keep(
        &mut self,
        locator: Locator,
        settled: Option<Fingerprint>,
        text: Option<&str>,
        modified: Option<SystemTime>,
    ) {
        let says = text.map(fingerprint);
        let is_room = self.kept_bytes + text.map_or(0, str::len) <= MAX_KEPT_BYTES;
        let text: Option<Box<str>> = text.filter(|_| is_room).map(Box::from);
        self.kept_bytes += text.as_deref().map_or(0, str::len);
        self.texts.insert(locator, Kept { settled, text, says, modified, seen: true });
    }
}
