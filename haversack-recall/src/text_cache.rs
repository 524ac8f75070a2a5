//! The texts of a memory, kept by a process that looks more than once.

use std::collections::BTreeMap;
use std::time::SystemTime;

use futures_lite::StreamExt;
use haversack::ids::ContentHash;
use haversack::kind::Kinds;
use haversack::remember::fingerprint;
use haversack::store::{Backend, EntryKind, ErrorKind, Fingerprint, Locator, Result, block_on};

use crate::search::{Words, rank};
use crate::{Hit, Projects, Query, Recalled};

/// The searched part of one file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The searched bytes in all.
const MAX_TOTAL_BYTES: u64 = 64 * 1024 * 1024;

/// The cached bytes between two queries; other files are read again.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// The most threads at once, and the number of files that is worth one.
const MAX_THREADS: usize = 4;
const WORTH_A_THREAD: usize = 32;

/// The texts of a memory as they were last seen.
#[derive(Debug, Default)]
pub struct TextCache {
    texts: BTreeMap<Locator, CachedText>,
    cached_bytes: usize,
}

/// A text as it was last seen.
#[derive(Debug)]
struct CachedText {
    /// The mark by which it is known that it is still the same; `None` if it may have changed since.
    settled: Option<Fingerprint>,
    /// The text; `None` if it is none, or is not kept.
    text: Option<Box<str>>,
    says: Option<ContentHash>,
    modified: Option<SystemTime>,
    seen: bool,
}

impl CachedText {
    /// Returns a text with its name, if it is kept.
    fn with_text<'a>((locator, cached): (&'a Locator, &'a CachedText)) -> Option<(&'a Locator, &'a str)> {
        Some((locator, cached.text.as_deref()?))
    }

    /// Returns what it says, whatever the white space.
    fn says(&mut self) -> Option<ContentHash> {
        if self.says.is_none() {
            self.says = self.text.as_deref().map(fingerprint);
        }
        self.says
    }
}

/// Files that a query did not search.
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

/// Does the same with every item, in shares on several threads if they are many; the results are in the items' order.
fn in_shares<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let share = items.len().div_ceil(threads);
    if share < WORTH_A_THREAD {
        return items.iter().map(work).collect();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let shares = items.chunks(share);
        let threads: Vec<_> =
            shares.map(|share| scope.spawn(move || share.iter().map(work).collect::<Vec<R>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the work does not panic")).collect()
    })
}

impl TextCache {
    /// Returns an empty shelf.
    pub fn new() -> TextCache {
        TextCache::default()
    }

    /// Finds the memories that have to do with a query.
    pub async fn recall(&mut self, files: &dyn Backend, query: &Query) -> Result<Recalled> {
        let words = Words::of(&query.text);
        let mut counted = Vec::new();
        let left_out = self
            .each(files, &query.within, &query.projects, |texts| {
                let counts = in_shares(texts, |(locator, text)| words.count(locator.as_str(), text));
                let found = texts.iter().zip(counts);
                counted
                    .extend(found.filter_map(|((locator, _), counts)| Some(((*locator).clone(), counts?))));
            })
            .await?;
        let mut ranked = rank(&words, counted, left_out.looked_through);
        ranked.truncate(query.limit);
        let mut hits = Vec::new();
        for (locator, score) in ranked {
            let cached = self.texts.get(&locator);
            let modified = cached.and_then(|cached| cached.modified);
            let text = match cached.and_then(|cached| cached.text.as_deref()) {
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
        let _ = self.each(files, within, &Projects::all(), |_| {}).await?;
        let mut below = self.texts.iter_mut().filter(|(locator, _)| locator.is_within(within));
        Ok(below.find_map(|(locator, cached)| (cached.says() == Some(wanted)).then(|| locator.clone())))
    }

    /// Looks at every text below `within` that `projects` hold, many at a time, reading only what may have changed.
    async fn each(
        &mut self,
        files: &dyn Backend,
        within: &Locator,
        projects: &Projects,
        mut look: impl FnMut(&[(&Locator, &str)]),
    ) -> Result<LeftOut> {
        let mut left_out = LeftOut::default();
        let mark = files.touch_mark().await?;
        let mut pages = files.scan(within, None);
        self.texts.values_mut().for_each(|cached| cached.seen = false);
        while let Some(page) = pages.next().await {
            let (mut known, mut unknown) = (Vec::new(), Vec::new());
            let infos = page?.infos.into_iter().filter(|info| info.kind == EntryKind::File);
            for info in infos.filter(|info| projects.hold(&info.locator)) {
                if let Some(cached) = self.texts.get_mut(&info.locator)
                    && cached.settled == Some(info.fingerprint)
                    && (cached.text.is_some() || cached.says.is_none())
                {
                    cached.seen = true;
                    if let Some(text) = &cached.text {
                        left_out.count(text);
                        known.push(info.locator);
                    }
                } else if info.size_bytes > MAX_FILE_BYTES || left_out.total_bytes > MAX_TOTAL_BYTES {
                    left_out.unread.push(info.locator);
                } else {
                    unknown.push(info);
                }
            }
            let text_of = |locator| self.texts.get_key_value(locator).and_then(CachedText::with_text);
            look(&known.iter().filter_map(text_of).collect::<Vec<_>>());
            let read = in_shares(&unknown, |info| block_on(files.read(&info.locator)));
            let mut texts = Vec::new();
            for (info, read) in unknown.iter().zip(&read) {
                let bytes = match read {
                    Ok(object) => &object.bytes,
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(_) => {
                        left_out.unread.push(info.locator.clone());
                        continue;
                    }
                };
                let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
                if let Some(text) = text {
                    left_out.count(text);
                    texts.push((&info.locator, text));
                }
                let settled = info.fingerprint.is_settled(&mark).then_some(info.fingerprint);
                self.keep(info.locator.clone(), settled, text, info.modified);
            }
            look(&texts);
        }
        let is_gone = |locator: &Locator, cached: &CachedText| {
            !cached.seen && locator.is_within(within) && projects.hold(locator)
        };
        self.texts.retain(|locator, cached| !is_gone(locator, cached));
        self.cached_bytes =
            self.texts.values().filter_map(|cached| cached.text.as_ref()).map(|text| text.len()).sum();
        Ok(left_out)
    }

    fn keep(
        &mut self,
        locator: Locator,
        settled: Option<Fingerprint>,
        text: Option<&str>,
        modified: Option<SystemTime>,
    ) {
        let is_room = self.cached_bytes + text.map_or(0, str::len) <= MAX_KEPT_BYTES;
        // A cached text can be asked later.
        let says = text.filter(|_| !is_room).map(fingerprint);
        let text: Option<Box<str>> = text.filter(|_| is_room).map(Box::from);
        self.cached_bytes += text.as_deref().map_or(0, str::len);
        self.texts.insert(locator, CachedText { settled, text, says, modified, seen: true });
    }
}
