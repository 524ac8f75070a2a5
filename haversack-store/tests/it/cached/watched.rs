//! A backend that counts, lets things happen in between, and shows less than it knows.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use haversack_store::{
    Appended, Backend, Bytes, Condition, Durability, EntryKind, Fingerprint, Info, Locator, Object, Result,
    TouchMark, Version, Written, forward_backend,
};

/// The properties that the backend shows of its objects without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// The true ones.
    Truth,
    /// One settled fingerprint for every object and for ever: a caller that trusts it sees no change at all.
    AlwaysTheSame,
    /// No version, but a fingerprint from size, file and time, as disks do, on a clock that only goes on when
    /// it is told to. Needs a backend with versions behind, and one writer at a time.
    Ticks,
}

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    BeforeRead,
    AfterRead,
    BeforeWrite,
    AfterWrite,
    BeforeMark,
}

type Event = Box<dyn FnOnce() + Send>;

pub(super) struct Watched {
    inner: Arc<dyn Backend>,
    shows: Shows,
    reads: AtomicUsize,
    marks: AtomicUsize,
    planned: Mutex<Vec<(Moment, Event)>>,
    clock: AtomicI64,
    /// The file and the time of everything that was ever written.
    written: Mutex<HashMap<Version, File>>,
}

#[derive(Clone, Copy)]
struct File {
    number: u64,
    changed: i64,
}

impl Watched {
    pub(super) fn new(inner: Arc<dyn Backend>, shows: Shows) -> Watched {
        Watched {
            inner,
            shows,
            reads: AtomicUsize::new(0),
            marks: AtomicUsize::new(0),
            planned: Mutex::default(),
            clock: AtomicI64::new(0),
            written: Mutex::default(),
        }
    }

    /// Returns how often content was read.
    pub(super) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// Returns how often a mark was taken.
    pub(super) fn marks(&self) -> usize {
        self.marks.load(Ordering::Relaxed)
    }

    /// Lets the clock go on.
    pub(super) fn tick(&self) {
        self.clock.fetch_add(1, Ordering::Relaxed);
    }

    /// Plans something for the next time that it is this moment.
    pub(super) fn at(&self, moment: Moment, event: impl FnOnce() + Send + 'static) {
        self.planned.lock().expect("not poisoned").push((moment, Box::new(event)));
    }

    /// Drops what was planned for a moment that did not come.
    pub(super) fn forget_plans(&self) {
        self.planned.lock().expect("not poisoned").clear();
    }

    fn now_is(&self, moment: Moment) {
        let mut planned = self.planned.lock().expect("not poisoned");
        let next = planned.iter().position(|(when, _)| *when == moment).map(|next| planned.remove(next).1);
        drop(planned);
        if let Some(event) = next {
            event();
        }
    }

    /// Returns the state at `locator`; `None` if there is none or it is not needed.
    async fn version(&self, locator: &Locator) -> Option<Version> {
        if self.shows != Shows::Ticks {
            return None;
        }
        self.inner.info(locator).await.ok()?.version
    }

    /// Notes that what was `before` has been written to.
    async fn note_written(&self, locator: &Locator, before: Option<Version>) {
        let after = self.version(locator).await;
        let mut written = self.written.lock().expect("not poisoned");
        let new = File { number: written.len() as u64, changed: 0 };
        let file = before.and_then(|before| written.get(&before).copied()).unwrap_or(new);
        if let Some(after) = after
            && !written.contains_key(&after)
        {
            written.insert(after, File { changed: self.clock.load(Ordering::Relaxed), ..file });
        }
    }

    fn file(&self, info: &Info) -> Option<File> {
        self.written.lock().expect("not poisoned").get(info.version.as_ref()?).copied()
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("shows", &self.shows).finish_non_exhaustive()
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for Watched {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.now_is(Moment::BeforeRead);
        let result = self.inner.read(locator).await;
        self.now_is(Moment::AfterRead);
        result
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        self.now_is(Moment::BeforeWrite);
        let before = self.version(locator).await;
        let result = self.inner.write(locator, bytes, condition).await;
        self.note_written(locator, before).await;
        self.now_is(Moment::AfterWrite);
        // It is done but not answered: here it can be abandoned.
        futures_lite::future::yield_now().await;
        result
    }

    async fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        for (locator, bytes) in objects {
            let _ = self.write(&locator, bytes, Condition::Any).await?;
        }
        Ok(())
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        let before = self.version(locator).await;
        let result = self.inner.append(locator, bytes, durability).await;
        self.note_written(locator, before).await;
        result
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        match self.shows {
            Shows::Truth => self.inner.info(locator).await,
            Shows::AlwaysTheSame => Ok(Info {
                locator: locator.clone(),
                kind: EntryKind::File,
                size_bytes: 0,
                modified: None,
                version: None,
                fingerprint: Fingerprint::new(&[], i64::MIN),
            }),
            Shows::Ticks => {
                let info = self.inner.info(locator).await?;
                let Some(File { number, changed }) = self.file(&info) else {
                    return Ok(info);
                };
                let fingerprint =
                    Fingerprint::new(&[info.size_bytes, number, changed.cast_unsigned()], changed);
                Ok(Info { version: None, fingerprint, ..info })
            }
        }
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        self.marks.fetch_add(1, Ordering::Relaxed);
        self.now_is(Moment::BeforeMark);
        match self.shows {
            Shows::Ticks => Ok(TouchMark::new(self.clock.load(Ordering::Relaxed))),
            Shows::Truth | Shows::AlwaysTheSame => self.inner.touch_mark().await,
        }
    }

    forward_backend!(self => self.inner; barrier, list, scan, delete, rename, exchange, mkdir, lock, capabilities);
    forward_backend!(self => self.inner; conflict_strategy);
}
