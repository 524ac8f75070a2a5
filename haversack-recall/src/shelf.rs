//! The texts of a memory, kept by a process that looks more than once.

use std::collections::BTreeMap;
use std::time::SystemTime;

use futures_lite::StreamExt;
use haversack::ids::ContentHash;
use haversack::kind::Kinds;
use haversack::remember::fingerprint;
use haversack::store::{Backend, EntryKind, ErrorKind, Fingerprint, Info, Locator, Object, Result, block_on};

use crate::search::{Words, rank};
use crate::{Hit, Query, Recalled};

/// How much of one file is looked through.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// How much is looked through in all.
const MAX_TOTAL_BYTES: u64 = 64 * 1024 * 1024;

/// How much is kept between two looks; the rest is read again.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// How many threads read at once, and how many files are worth one.
const MAX_READERS: usize = 4;
const WORTH_A_READER: usize = 32;

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

impl Kept {
    /// Returns what it says, whatever the white space.
    fn says(&mut self) -> Option<ContentHash> {
        if self.says.is_none() {
            self.says = self.text.as_deref().map(fingerprint);
        }
        self.says
    }
}

/// What is not in a look.
#[derive(Debug, Default)]
struct LeftOut {
    unread: Vec<Locator>,
    looked_through: usize,
    total_bytes: u64,
}

impl LeftOut {
    fn count(&mut self, text: &str) {
        self.looked_through += 1;
        self.total_bytes += text.len() as u64;
    }
}

/// Reads files, several at a time if they are many.
fn read_all(files: &dyn Backend, infos: &[Info]) -> Vec<Result<Object>> {
    let read = |infos: &[Info]| -> Vec<Result<Object>> {
        infos.iter().map(|info| block_on(files.read(&info.locator))).collect()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_READERS);
    let share = infos.len().div_ceil(threads);
    if share < WORTH_A_READER {
        return read(infos);
    }
    std::thread::scope(|scope| {
        let readers: Vec<_> = infos.chunks(share).map(|infos| scope.spawn(move || read(infos))).collect();
        readers.into_iter().flat_map(|reader| reader.join().expect("reading does not panic")).collect()
    })
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
        let mut below = self.texts.iter_mut().filter(|(locator, _)| locator.is_within(within));
        Ok(below.find_map(|(locator, kept)| (kept.says() == Some(wanted)).then(|| locator.clone())))
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
            let mut unknown = Vec::new();
            for info in page?.infos.into_iter().filter(|info| info.kind == EntryKind::File) {
                if let Some(kept) = self.texts.get_mut(&info.locator)
                    && kept.settled == Some(info.fingerprint)
                    && (kept.text.is_some() || kept.says.is_none())
                {
                    kept.seen = true;
                    if let Some(text) = &kept.text {
                        left_out.count(text);
                        look(&info.locator, text);
                    }
                } else if info.size_bytes > MAX_FILE_BYTES || left_out.total_bytes > MAX_TOTAL_BYTES {
                    left_out.unread.push(info.locator);
                } else {
                    unknown.push(info);
                }
            }
            for (info, read) in unknown.iter().zip(read_all(files, &unknown)) {
                let bytes = match read {
                    Ok(object) => object.bytes,
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(_) => {
                        left_out.unread.push(info.locator.clone());
                        continue;
                    }
                };
                let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
                if let Some(text) = text {
                    left_out.count(text);
                    look(&info.locator, text);
                }
                let settled = info.fingerprint.is_settled(&mark).then_some(info.fingerprint);
                self.keep(info.locator.clone(), settled, text, info.modified);
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
        let is_room = self.kept_bytes + text.map_or(0, str::len) <= MAX_KEPT_BYTES;
        // What is kept can be asked later.
        let says = text.filter(|_| !is_room).map(fingerprint);
        let text: Option<Box<str>> = text.filter(|_| is_room).map(Box::from);
        self.kept_bytes += text.as_deref().map_or(0, str::len);
        self.texts.insert(locator, Kept { settled, text, says, modified, seen: true });
    }
}
