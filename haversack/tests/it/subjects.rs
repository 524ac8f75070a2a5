//! The memories that the tests run on.

use std::sync::Arc;

use futures_lite::future::block_on;
use haversack::Memory;
use haversack::file_storage::MemoryStorage;
use haversack::store::{
    Backend, Bytes, Cached, Capabilities, Condition, DeviceLocal, Faulty, InMemory, Locator, OpenOptions,
    Prefixed, Registry,
};
use haversack_servers::memory_stores::{KEY, MemoryStores, STORE};
use tempfile::TempDir;

/// A memory, and what it lives on for as long as the test runs.
pub(crate) struct Subject {
    pub(crate) memory: Memory,
    pub(crate) files: Arc<dyn Backend>,
    pub(crate) state: Arc<dyn Backend>,
    _base: Option<TempDir>,
}

impl Subject {
    pub(crate) fn over(files: Arc<dyn Backend>, state: Arc<dyn Backend>, base: Option<TempDir>) -> Subject {
        Subject { memory: Memory::new(files.clone(), state.clone()), files, state, _base: base }
    }

    pub(crate) fn in_memory() -> Subject {
        Subject::over(Arc::new(InMemory::new()), Arc::new(InMemory::new()), None)
    }

    pub(crate) fn device_local() -> Subject {
        let base = TempDir::new().expect("a temporary directory");
        let open = |name: &str| {
            let opened = DeviceLocal::open(base.path().join(name), base.path().join("locks"));
            Arc::new(opened.expect("it opens")) as Arc<dyn Backend>
        };
        let (files, state) = (open("memory"), open("state"));
        Subject::over(files, state, Some(base))
    }

    pub(crate) fn prefixed() -> Subject {
        let inner: Arc<dyn Backend> = Arc::new(InMemory::new());
        let files = at("some/where");
        block_on(inner.mkdir(&files)).expect("made");
        let files = Arc::new(Prefixed::new(inner.clone(), files));
        Subject::over(files, Arc::new(Prefixed::new(inner, at("state"))), None)
    }

    pub(crate) fn cached() -> Subject {
        let Subject { files, state, _base, .. } = Subject::device_local();
        Subject::over(Arc::new(Cached::new(files, 1 << 20)), state, _base)
    }

    /// Returns a memory store of Anthropic's, in a fake that ends with the test's process.
    pub(crate) fn memory_store() -> Subject {
        let server: &MemoryStores = Box::leak(Box::new(MemoryStores::start()));
        let base = TempDir::new().expect("a temporary directory");
        let settings =
            [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", server.url())].into_iter().collect();
        let locks = base.path().join("locks").to_string_lossy().into_owned();
        let options = OpenOptions { address: format!("anthropic:{STORE}"), locks, settings };
        let backend =
            Registry::standard().select("anthropic", &options, &Capabilities::default()).expect("it opens");
        let mut subject = Subject::over(backend.clone(), backend.clone(), Some(base));
        subject.memory = MemoryStorage::over(backend).memory().clone();
        subject
    }

    pub(crate) fn faulty() -> (Subject, Arc<Faulty>, Arc<Faulty>) {
        let files = Arc::new(Faulty::new(Arc::new(InMemory::new())));
        let state = Arc::new(Faulty::new(Arc::new(InMemory::new())));
        (Subject::over(files.clone(), state.clone(), None), files, state)
    }

    pub(crate) fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        let _ = block_on(self.files.write(&at(key), bytes.into(), Condition::Any)).expect("written");
    }

    /// Returns the text at a place; `None` if nothing is there.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let object = block_on(self.files.read(&at(key))).ok()?;
        Some(String::from_utf8(object.bytes.into()).expect("text"))
    }
}

pub(crate) fn at(key: &str) -> Locator {
    Locator::parse(key).expect("valid")
}

/// Makes each function of a module a test on every backend.
macro_rules! on_every_backend {
    ($($test:ident),* $(,)?) => {
        mod in_memory {
            $(#[test] fn $test() { super::$test(&$crate::subjects::Subject::in_memory()); })*
        }
        mod device_local {
            $(#[test] fn $test() { super::$test(&$crate::subjects::Subject::device_local()); })*
        }
        mod prefixed {
            $(#[test] fn $test() { super::$test(&$crate::subjects::Subject::prefixed()); })*
        }
        mod cached {
            $(#[test] fn $test() { super::$test(&$crate::subjects::Subject::cached()); })*
        }
        mod faulty_without_faults {
            $(#[test] fn $test() { super::$test(&$crate::subjects::Subject::faulty().0); })*
        }
    };
}
pub(crate) use on_every_backend;

/// Makes each function of a module a test on a memory store of Anthropic's.
macro_rules! on_memory_store {
    ($($test:ident),* $(,)?) => {
        mod memory_store {
            $(#[test] fn $test() { super::$test(&$crate::subjects::Subject::memory_store()); })*
        }
    };
}
pub(crate) use on_memory_store;
