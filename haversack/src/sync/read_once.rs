//! A remote that remembers objects which never change.
//!
//! A join looks at the log before it applies it, and every bound directory of a home follows the same log. Commits, segments, checkpoints and
//! contents are created once and never change, so we read each of them once per run. We ask for a missing object every time, because another
//! device may create it at any moment. We list the checkpoints once: a replica that starts from an older checkpoint reads more of the log, and
//! reaches the same state.
//!
//! In a full round every replica of a home needs a listing of all objects, after it has read the manifest. We list them once for all replicas,
//! as long as the manifest stays the same and we change no object beside the log: the listing then shows every object that the manifest names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::{TryStreamExt, stream};
use haversack_store::{
    Appended, Backend, Bytes, Condition, Durability, Locator, Object, Page, Pages, Result, Version, Written,
    forward_backend,
};

use super::mirror::manifest_locator;
use crate::log::layout::{self, Item};

/// The most cached bytes; other objects are requested again.
const MAX_REMEMBERED_BYTES: usize = 32 * 1024 * 1024;

/// A remote whose commits, segments, checkpoints and contents are read once.
#[derive(Debug)]
pub(crate) struct ReadOnce {
    inner: Arc<dyn Backend>,
    remembered: Mutex<Remembered>,
}

#[derive(Debug, Default)]
struct Remembered {
    objects: HashMap<Locator, Object>,
    bytes: usize,
    checkpoints: Option<Page>,
    /// The version of the manifest that was read last; `None` if there was none.
    manifest: Option<Version>,
    /// All objects, listed after that manifest was read.
    all: Option<Page>,
}

impl Remembered {
    fn keep(&mut self, locator: &Locator, object: &Object) {
        if self.bytes + object.bytes.len() <= MAX_REMEMBERED_BYTES {
            self.forget(locator);
            self.bytes += object.bytes.len();
            self.objects.insert(locator.clone(), object.clone());
        }
    }

    fn forget(&mut self, locator: &Locator) {
        if let Some(object) = self.objects.remove(locator) {
            self.bytes -= object.bytes.len();
        }
    }

    fn forget_changed(&mut self, locator: &Locator) {
        self.forget(locator);
        match Item::at(locator) {
            Some(Item::Checkpoint(_)) => self.checkpoints = None,
            Some(_) => {}
            None => self.all = None,
        }
    }

    fn note_manifest(&mut self, read: &Result<Object>) {
        let version = read.as_ref().ok().map(|object| object.version.clone());
        if version != self.manifest {
            (self.manifest, self.all) = (version, None);
        }
    }
}

impl ReadOnce {
    /// Returns `inner`, with a memory for as long as this value is there.
    pub(crate) fn new(inner: Arc<dyn Backend>) -> ReadOnce {
        ReadOnce { inner, remembered: Mutex::default() }
    }

    /// Forgets the listing of all objects: other devices may have changed some.
    pub(crate) fn forget_listing(&self) {
        self.remembered().all = None;
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to a place, of which nothing is known afterwards.
    async fn change<T>(&self, locator: &Locator, change: impl Future<Output = T>) -> T {
        let changed = change.await;
        self.remembered().forget_changed(locator);
        changed
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for ReadOnce {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        if Item::at(locator).is_none() {
            let read = self.inner.read(locator).await;
            if *locator == manifest_locator() {
                self.remembered().note_manifest(&read);
            }
            return read;
        }
        if let Some(object) = self.remembered().objects.get(locator) {
            return Ok(object.clone());
        }
        let object = self.inner.read(locator).await?;
        self.remembered().keep(locator, &object);
        Ok(object)
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        self.change(locator, self.inner.write(locator, bytes, condition)).await
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        let places: Vec<Locator> = objects.iter().map(|(locator, _)| locator.clone()).collect();
        let prepared = self.inner.prepare(objects).await;
        places.iter().for_each(|place| self.remembered().forget_changed(place));
        prepared
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        self.change(locator, self.inner.append(locator, bytes, durability)).await
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        let list: fn(&mut Remembered) -> &mut Option<Page> = match after {
            None if *prefix == layout::checkpoints() => |remembered| &mut remembered.checkpoints,
            None if prefix.is_root() => |remembered| &mut remembered.all,
            _ => return self.inner.scan(prefix, after),
        };
        let prefix = prefix.clone();
        Box::pin(stream::once(async move {
            if let Some(known) = list(&mut self.remembered()).clone() {
                return Ok(known);
            }
            let mut all = Page::default();
            let mut pages = self.inner.scan(&prefix, None);
            while let Some(page) = pages.try_next().await? {
                all.infos.extend(page.infos);
                all.odd.extend(page.odd);
            }
            *list(&mut self.remembered()) = Some(all.clone());
            Ok(all)
        }))
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        self.change(locator, self.inner.delete(locator, condition)).await
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        self.change(to, self.change(from, self.inner.rename(from, to))).await
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        self.change(other, self.change(one, self.inner.exchange(one, other))).await
    }

    forward_backend!(self => self.inner; barrier, list, info, touch_mark, mkdir, lock, capabilities, conflict_strategy);
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may wait")]
mod tests {
    use haversack_store::{ErrorKind, InMemory, block_on};

    use super::*;
    use crate::ids::Position;

    #[test]
    fn what_never_changes_is_read_once() {
        let inner = Arc::new(InMemory::new());
        let remote = ReadOnce::new(inner.clone());
        let (first, plain) = (layout::commit(Position::FIRST), Locator::parse("note.md").expect("a name"));
        let put = |locator: &Locator, bytes: &'static str| {
            let _ = block_on(inner.write(locator, bytes.into(), Condition::Any)).expect("written");
        };
        let read = |locator: &Locator| block_on(remote.read(locator)).map(|object| object.bytes);
        assert_eq!(read(&first).map_err(|error| error.kind()), Err(ErrorKind::NotFound));
        for locator in [&first, &plain] {
            put(locator, "one");
            assert_eq!(read(locator).as_deref().ok(), Some(&b"one"[..]));
            put(locator, "two");
        }
        // It was not there at first, and cannot become another; what people write can.
        assert_eq!(read(&first).as_deref().ok(), Some(&b"one"[..]));
        assert_eq!(read(&plain).as_deref().ok(), Some(&b"two"[..]));
        // After a repair, the new content is read.
        let _ = block_on(remote.write(&first, "three".into(), Condition::Any)).expect("written");
        assert_eq!(read(&first).as_deref().ok(), Some(&b"three"[..]));
        block_on(remote.delete(&first, Condition::Any)).expect("deleted");
        assert_eq!(read(&first).map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    }

    #[test]
    fn which_checkpoints_there_are_is_asked_for_once() {
        let inner = Arc::new(InMemory::new());
        let remote = ReadOnce::new(inner.clone());
        let at = |number| layout::checkpoint(Position::new(number).expect("a position"));
        let put = |backend: &dyn Backend, number| {
            let _ = block_on(backend.write(&at(number), "state".into(), Condition::Any)).expect("written");
        };
        let listed = |after: Option<&Locator>| -> Vec<Locator> {
            let pages = remote.scan(&layout::checkpoints(), after).try_collect::<Vec<Page>>();
            let pages = block_on(pages).expect("listed");
            pages.into_iter().flat_map(|page| page.infos).map(|info| info.locator).collect()
        };
        put(&*inner, 1);
        assert_eq!(listed(None), [at(1)]);
        put(&*inner, 2);
        assert_eq!((listed(None), listed(Some(&at(1)))), (vec![at(1)], vec![at(2)]));
        // Our own are known.
        put(&remote, 3);
        assert_eq!(listed(None), [at(1), at(2), at(3)]);
    }

    #[test]
    fn listing_of_all_objects_is_remembered_until_one_changes() {
        let inner = Arc::new(InMemory::new());
        let remote = ReadOnce::new(inner.clone());
        let at = |name: &str| match name {
            "manifest" => manifest_locator(),
            name => Locator::parse(name).expect("a name"),
        };
        let put = |backend: &dyn Backend, name: &str| {
            let _ = block_on(backend.write(&at(name), "x".into(), Condition::Any)).expect("written");
        };
        let listed = || {
            let _ = block_on(remote.read(&manifest_locator()));
            let pages = block_on(remote.scan(&Locator::root(), None).try_collect::<Vec<Page>>());
            pages.expect("listed").into_iter().map(|page| page.infos.len()).sum::<usize>()
        };
        put(&*inner, "a.md");
        assert_eq!(listed(), 1);
        put(&*inner, "b.md");
        assert_eq!(listed(), 1);
        // Another device may have added objects before it wrote the manifest.
        put(&*inner, "manifest");
        assert_eq!(listed(), 2);
        put(&remote, "c.md");
        assert_eq!(listed(), 3);
        put(&*inner, "d.md");
        remote.forget_listing();
        assert_eq!(listed(), 4);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut remembered = Remembered::default();
        let object = |size| Object { bytes: vec![0; size].into(), version: Version::new("v") };
        let at = |number| layout::commit(Position::new(number).expect("a position"));
        remembered.keep(&at(1), &object(MAX_REMEMBERED_BYTES));
        remembered.keep(&at(2), &object(1));
        assert!(remembered.objects.contains_key(&at(1)) && remembered.objects.len() == 1);
        remembered.forget(&at(1));
        remembered.keep(&at(2), &object(1));
        remembered.keep(&at(2), &object(3));
        assert_eq!(remembered.bytes, 3);
    }
}
