//! A backend whose objects are remembered in this process's memory.
//!
//! # Invariants
//! 1. A read served from memory returns the content that the backend had when this read asked
//!    about it, also if other programs write in between (`nothing_stale_in_any_order`, `racing_threads`).
//! 2. A mutation through this layer forgets the place and everything below it, before and after, however
//!    it ends (`every_mutation_forgets`, `failed_mutation_clears_the_cache`,
//!    `failed_write_clears_concurrent_reads`, `abandoned_write_clears_the_cache`).
//! 3. A read that began before a mutation remembers nothing after it (`read_overtaken_by_a_write`).
//! 4. The cached bytes never exceed the limit (`the_bound_holds`).
//!
//! # Why the first one holds
//! Every read asks for [`Backend::info`] first. Where that gives a version, it must be the one that was
//! read: equal versions of one object are equal contents.
//!
//! If the backend gives a fingerprint only, content is cached under a fingerprint *F* that the object had
//! before and after it was read and that had settled by a [`TouchMark`] taken **before it was read**.
//! A change of the object after the mark has a last-change time that is not before the mark, even
//! in the same tick of the clock as the read; the last change in *F* is before the mark. So a place that
//! shows *F* has not changed since the mark, and the read came after the mark. The order is everything: a
//! mark taken after the read would vouch for what was written between the two
//! (`mark_vouches_only_for_later_reads`). And it is *F* on both sides of the read, so that content which
//! was moved in meanwhile is not taken for what *F* describes (`object_swapped_during_a_read`).
//!
//! One window remains: a program that moves a directory away, another one into its place and both back,
//! all within one read, shows *F* on both sides of content that is not *F*'s.
//!
//! The second and third invariant are not needed for the first where a backend keeps the promises of its
//! versions and fingerprints; they make this layer's own writes safe where it does not.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::backend::{Appended, Backend, Condition, Durability, EntryKind, Info, Object, Written};
use crate::error::Result;
use crate::forward_backend;
use crate::locator::Locator;
use crate::version::{Fingerprint, TouchMark};

/// An object is remembered if this many of its size could be: one alone must not push out all others.
const LEAST_OBJECTS: usize = 4;

/// The cost of an entry besides content and name, estimated generously: many small objects are bounded too.
const ENTRY_BYTES: usize = 256;

/// A backend that serves an object from memory as long as it is certain that it has not changed.
///
/// A read of a remembered object costs one [`Backend::info`] of the inner backend. We do not remember that an object is
/// absent, and always ask for listings and scans. Writes of other handles, processes and programs are seen at once, as
/// far as the versions and fingerprints of the backend show them.
///
/// The engine's storage of files puts it before an object store: the graph reads the same few objects again and again.
pub struct Cached {
    inner: Arc<dyn Backend>,
    max_object_bytes: usize,
    remembered: Mutex<Remembered>,
}

impl Cached {
    /// Returns `inner` with a memory that holds at most `max_bytes`.
    ///
    /// Objects larger than a quarter of it are not remembered; what was not read for the longest time is
    /// forgotten first.
    pub fn new(inner: Arc<dyn Backend>, max_bytes: usize) -> Cached {
        let remembered = Remembered::new(max_bytes);
        Cached { inner, max_object_bytes: remembered.max_object_bytes(), remembered: Mutex::new(remembered) }
    }

    /// Returns what is remembered; never held while the backend is asked.
    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forgetting<'a>(&'a self, place: &'a Locator) -> Forgetting<'a> {
        self.remembered().forget(place);
        Forgetting { cached: self, place }
    }

    /// Returns what can be said about `object`, read after `info` was taken; `None` if it is nothing certain.
    async fn judge(
        &self,
        locator: &Locator,
        info: &Info,
        object: &Object,
        began: &Began,
    ) -> Option<CachedObject> {
        let fingerprint = info.fingerprint;
        if info.version.is_some() {
            return Some(CachedObject::Content { object: object.clone(), settled: None });
        }
        if !began.settles(&fingerprint) {
            return Some(CachedObject::Unsettled { fingerprint, reads: 1 });
        }
        match self.inner.info(locator).await {
            Ok(after) if after.fingerprint == fingerprint => {
                Some(CachedObject::Content { object: object.clone(), settled: Some(fingerprint) })
            }
            // Something happened while it was read: the next read finds out what.
            Ok(_) | Err(_) => None,
        }
    }
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").field("inner", &self.inner).finish_non_exhaustive()
    }
}

/// A mutation under way; its place is forgotten once more when this is dropped.
///
/// By being dropped, not by being called: a future that is abandoned half-way may have changed something.
struct Forgetting<'a> {
    cached: &'a Cached,
    place: &'a Locator,
}

impl Drop for Forgetting<'_> {
    fn drop(&mut self) {
        self.cached.remembered().forget(self.place);
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for Cached {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        let mut began = self.remembered().begin();
        // If the backend cannot give information, it should answer the read itself: it knows how a read fails.
        let Ok(info) = self.inner.info(locator).await else {
            return self.inner.read(locator).await;
        };
        if info.kind != EntryKind::File || info.size_bytes > self.max_object_bytes as u64 {
            return self.inner.read(locator).await;
        }
        let recalled = self.remembered().recall(locator, &info, &began);
        match recalled {
            Recalled::Certain(object) => return Ok(object),
            Recalled::WorthAMark => {
                // A mark that cannot be had costs speed, not truth: then this is read as if for the first time.
                if let Ok(mark) = self.touch_mark().await {
                    began.mark = Some(mark);
                }
            }
            Recalled::Nothing => {}
        }
        let object = self.inner.read(locator).await?;
        let known = self.judge(locator, &info, &object, &began).await;
        self.remembered().remember(locator, known, &began);
        Ok(object)
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        let _forgetting = self.forgetting(locator);
        self.inner.write(locator, bytes, condition).await
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        let places: Vec<Locator> = objects.iter().map(|(locator, _)| locator.clone()).collect();
        let _forgetting: Vec<Forgetting<'_>> = places.iter().map(|place| self.forgetting(place)).collect();
        self.inner.prepare(objects).await
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        let _forgetting = self.forgetting(locator);
        self.inner.append(locator, bytes, durability).await
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        let mark = self.inner.touch_mark().await?;
        self.remembered().mark = Some(mark);
        Ok(mark)
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        let _forgetting = self.forgetting(locator);
        self.inner.delete(locator, condition).await
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        let _forgetting = (self.forgetting(from), self.forgetting(to));
        self.inner.rename(from, to).await
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        let _forgetting = (self.forgetting(one), self.forgetting(other));
        self.inner.exchange(one, other).await
    }

    forward_backend!(self => self.inner; barrier, list, scan, info, mkdir, lock, capabilities, conflict_strategy);
}

/// The state at the beginning of a read.
struct Began {
    generation: u64,
    mark: Option<TouchMark>,
}

impl Began {
    fn settles(&self, fingerprint: &Fingerprint) -> bool {
        self.mark.as_ref().is_some_and(|mark| fingerprint.is_settled(mark))
    }
}

/// The cached state of one object.
enum CachedObject {
    /// Its content, and the fingerprint it goes with if that had settled before it was read.
    Content { object: Object, settled: Option<Fingerprint> },
    /// Only that it was read so often while its fingerprint had not settled by any mark.
    Unsettled { fingerprint: Fingerprint, reads: u32 },
}

/// The cache's answer to a read.
enum Recalled {
    /// This is what the place holds.
    Certain(Object),
    /// It was read before, and with a newer mark it could be remembered.
    WorthAMark,
    /// Nothing of use.
    Nothing,
}

struct Remembered {
    max_bytes: usize,
    held_bytes: usize,
    /// Counts mutations: a read compares it to notice one that it overlapped.
    generation: u64,
    /// The mark taken last.
    mark: Option<TouchMark>,
    entries: BTreeMap<Locator, Entry>,
    /// The entries by when they were last of use, the oldest first.
    by_use: BTreeMap<u64, Locator>,
    /// Counts uses; its values are the keys of `by_use`.
    uses: u64,
}

struct Entry {
    known: CachedObject,
    last_use: u64,
}

impl Remembered {
    fn new(max_bytes: usize) -> Remembered {
        Remembered {
            max_bytes,
            held_bytes: 0,
            generation: 0,
            mark: None,
            entries: BTreeMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
        }
    }

    fn max_object_bytes(&self) -> usize {
        self.max_bytes / LEAST_OBJECTS
    }

    fn begin(&self) -> Began {
        Began { generation: self.generation, mark: self.mark }
    }

    /// Returns what is remembered of a place that shows `info` now.
    fn recall(&mut self, locator: &Locator, info: &Info, began: &Began) -> Recalled {
        let Some(entry) = self.entries.get_mut(locator) else {
            return Recalled::Nothing;
        };
        let object = match (&entry.known, &info.version) {
            (CachedObject::Content { object, .. }, Some(version)) if object.version == *version => {
                object.clone()
            }
            (CachedObject::Content { object, settled }, None) if *settled == Some(info.fingerprint) => {
                object.clone()
            }
            // A mark is expensive, and in vain while the clock stands: with every one in vain, twice as many
            // reads pass until the next.
            (CachedObject::Unsettled { fingerprint, reads }, None)
                if *fingerprint == info.fingerprint
                    && !began.settles(fingerprint)
                    && reads.is_power_of_two() =>
            {
                return Recalled::WorthAMark;
            }
            (CachedObject::Content { .. } | CachedObject::Unsettled { .. }, _) => return Recalled::Nothing,
        };
        self.uses += 1;
        self.by_use.remove(&entry.last_use);
        self.by_use.insert(self.uses, locator.clone());
        entry.last_use = self.uses;
        Recalled::Certain(object)
    }

    /// Takes in what a read found out, unless something was changed since it began.
    fn remember(&mut self, locator: &Locator, known: Option<CachedObject>, began: &Began) {
        if began.generation != self.generation {
            return;
        }
        let before = self.remove(locator);
        let known = match (known, before) {
            (None, _) => return,
            (
                Some(CachedObject::Unsettled { fingerprint, .. }),
                Some(CachedObject::Unsettled { fingerprint: same, reads }),
            ) if fingerprint == same => {
                CachedObject::Unsettled { fingerprint, reads: reads.saturating_add(1) }
            }
            (Some(known), _) => known,
        };
        if content_bytes(&known) > self.max_object_bytes() {
            return;
        }
        self.held_bytes += weight(locator, &known);
        self.uses += 1;
        self.by_use.insert(self.uses, locator.clone());
        self.entries.insert(locator.clone(), Entry { known, last_use: self.uses });
        while self.held_bytes > self.max_bytes
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.remove(&oldest);
        }
    }

    /// Forgets `place` and everything below it, and keeps reads that are under way from remembering.
    fn forget(&mut self, place: &Locator) {
        self.generation += 1;
        self.remove(place);
        let start = if place.is_root() { String::new() } else { format!("{place}/") };
        let from_start = (Bound::Included(start.as_str()), Bound::Unbounded);
        let below = self.entries.range::<str, _>(from_start).map(|(locator, _)| locator);
        let below: Vec<Locator> =
            below.take_while(|locator| locator.as_str().starts_with(&start)).cloned().collect();
        for locator in below {
            self.remove(&locator);
        }
    }

    fn remove(&mut self, locator: &Locator) -> Option<CachedObject> {
        let Entry { known, last_use } = self.entries.remove(locator)?;
        self.by_use.remove(&last_use);
        self.held_bytes -= weight(locator, &known);
        Some(known)
    }
}

fn content_bytes(known: &CachedObject) -> usize {
    match known {
        CachedObject::Content { object, .. } => object.bytes.len(),
        CachedObject::Unsettled { .. } => 0,
    }
}

/// Returns what remembering `known` costs.
fn weight(locator: &Locator, known: &CachedObject) -> usize {
    ENTRY_BYTES + locator.as_str().len() + content_bytes(known)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::version::Version;

    const MAX_BYTES: usize = 10_000;

    fn at(key: &str) -> Locator {
        Locator::parse(key).expect("a plain key")
    }

    fn content(size: usize) -> CachedObject {
        let object = Object { bytes: vec![0; size].into(), version: Version::new("1") };
        CachedObject::Content { object, settled: None }
    }

    fn remember(remembered: &mut Remembered, key: &str, size: usize) {
        let began = remembered.begin();
        remembered.remember(&at(key), Some(content(size)), &began);
    }

    fn keys(remembered: &Remembered) -> Vec<&str> {
        remembered.entries.keys().map(Locator::as_str).collect()
    }

    fn info(key: &str) -> Info {
        Info {
            locator: at(key),
            kind: EntryKind::File,
            size_bytes: 0,
            modified: None,
            version: Some(Version::new("1")),
            fingerprint: Fingerprint::new(&[], 0),
        }
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut remembered = Remembered::new(MAX_BYTES);
        for key in ["a", "b", "c", "d"] {
            remember(&mut remembered, key, 2_000);
        }
        let began = remembered.begin();
        assert!(matches!(remembered.recall(&at("a"), &info("a"), &began), Recalled::Certain(_)));
        remember(&mut remembered, "e", 2_000);
        assert_eq!(keys(&remembered), ["a", "c", "d", "e"]);
    }

    #[test]
    fn what_takes_more_than_its_share_is_not_remembered() {
        let mut remembered = Remembered::new(MAX_BYTES);
        remember(&mut remembered, "a", MAX_BYTES / LEAST_OBJECTS);
        remember(&mut remembered, "b", MAX_BYTES / LEAST_OBJECTS + 1);
        assert_eq!(keys(&remembered), ["a"]);
        // An earlier, smaller content is removed too.
        remember(&mut remembered, "a", MAX_BYTES / LEAST_OBJECTS + 1);
        assert_eq!((keys(&remembered), remembered.held_bytes), (vec![], 0));
    }

    #[test]
    fn a_directory_is_forgotten_with_what_is_below_it_and_nothing_else() {
        let mut remembered = Remembered::new(MAX_BYTES);
        for key in ["a", "a-b/x", "a/b/x", "a/b-c", "a/bc/x", "a/b", "a0"] {
            remember(&mut remembered, key, 1);
        }
        remembered.forget(&at("a/b"));
        assert_eq!(keys(&remembered), ["a", "a-b/x", "a/b-c", "a/bc/x", "a0"]);
        remembered.forget(&Locator::root());
        assert_eq!((keys(&remembered), remembered.held_bytes), (vec![], 0));
    }

    proptest! {
        /// For every order of remembering and forgetting, the bound and the accounts hold.
        #[test]
        fn the_bound_holds(steps in prop::collection::vec((0..30_usize, 0..5_000_usize), 0..200)) {
            let mut remembered = Remembered::new(MAX_BYTES);
            for (number, size) in steps {
                let key = format!("{}/{number}", number % 5);
                match size % 7 {
                    0 => remembered.forget(&at(&key)),
                    1 => remembered.forget(&at(&format!("{}", number % 5))),
                    2 => {
                        let began = remembered.begin();
                        remembered.recall(&at(&key), &info(&key), &began);
                    }
                    _ => remember(&mut remembered, &key, size),
                }
                let held: usize = remembered.entries.iter().map(|(at, entry)| weight(at, &entry.known)).sum();
                prop_assert_eq!(held, remembered.held_bytes);
                prop_assert!(held <= MAX_BYTES);
                let by_entry: BTreeMap<u64, Locator> =
                    remembered.entries.iter().map(|(at, entry)| (entry.last_use, at.clone())).collect();
                prop_assert_eq!(&by_entry, &remembered.by_use);
            }
        }
    }
}
