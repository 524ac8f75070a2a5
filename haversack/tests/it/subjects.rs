//! The memories that the tests run on.

use std::any::Any;
use std::sync::Arc;

use futures_lite::future::block_on;
use haversack::Memory;
use haversack::file_storage::{AnthropicMemoryStorage, FileStorage, MemoryStorage};
use haversack::store::{
    Backend, Bytes, Cached, Capabilities, Condition, DeviceLocal, Faulty, InMemory, Locator, OpenOptions,
    Prefixed, Registry, Settings,
};
use haversack_servers::Gcs;
use haversack_servers::memory_stores::{KEY, MemoryStores, STORE};
use tempfile::TempDir;

/// A memory, the same as a storage of files, and what both live on for as long as the test runs.
pub(crate) struct Subject {
    pub(crate) memory: Memory,
    pub(crate) storage: Arc<dyn FileStorage>,
    pub(crate) files: Arc<dyn Backend>,
    pub(crate) state: Arc<dyn Backend>,
    _base: Option<TempDir>,
    /// The server behind the storage; it ends with the test.
    _server: Option<Arc<dyn Any + Send + Sync>>,
}

impl Subject {
    pub(crate) fn over(files: Arc<dyn Backend>, state: Arc<dyn Backend>, base: Option<TempDir>) -> Subject {
        let memory = Memory::new(files.clone(), state.clone());
        let storage = Arc::new(MemoryStorage::new(memory.clone()));
        Subject { memory, storage, files, state, _base: base, _server: None }
    }

    /// Returns files whose state is in the same backend, because no home keeps it.
    pub(crate) fn alone(backend: Arc<dyn Backend>, base: Option<TempDir>) -> Subject {
        let storage = MemoryStorage::over(backend.clone());
        let memory = storage.memory().clone();
        let alone = Subject::over(backend.clone(), backend, base);
        Subject { memory, storage: Arc::new(storage), ..alone }
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

    /// Returns a memory store of Anthropic's, in a fake.
    pub(crate) fn memory_store() -> Subject {
        Subject::memory_store_of(MemoryStores::start())
    }

    pub(crate) fn memory_store_of(server: MemoryStores) -> Subject {
        let settings = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", server.url())];
        let (options, base) = options(format!("anthropic:{STORE}"), settings.into_iter().collect());
        let storage = AnthropicMemoryStorage::open(&options).expect("it opens");
        let alone = Subject::alone(selected("anthropic", &options), Some(base));
        Subject { storage: Arc::new(storage), _server: Some(Arc::new(server)), ..alone }
    }

    /// Returns a bucket of Google's, in a fake that is asked over HTTP; reads of it are cached.
    pub(crate) fn bucket() -> Subject {
        let server = Gcs::start();
        let settings =
            [("GOOGLE_BEARER_TOKEN", server.token()), ("GOOGLE_BASE_URL", server.endpoint().into())];
        let address = format!("gs://{}/some/where", server.new_bucket());
        let (options, base) = options(address, settings.into_iter().collect());
        let alone = Subject::alone(selected("gcs", &options), Some(base));
        Subject { _server: Some(Arc::new(server)), ..alone }
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

fn options(address: String, settings: Settings) -> (OpenOptions, TempDir) {
    let base = TempDir::new().expect("a temporary directory");
    let locks = base.path().join("locks").to_string_lossy().into_owned();
    (OpenOptions { address, locks, settings }, base)
}

fn selected(backend: &str, options: &OpenOptions) -> Arc<dyn Backend> {
    Registry::standard().select(backend, options, &Capabilities::default()).expect("it opens")
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

/// Makes each function of a module a test on every backend with a state beside it, and on backends that stand by themselves.
macro_rules! on_every_storage {
    ($($test:ident),* $(,)?) => {
        $crate::subjects::on_every_backend!($($test),*);
        mod alone_in_memory {
            $(#[test] fn $test() {
                let backend = std::sync::Arc::new(haversack::store::InMemory::new());
                super::$test(&$crate::subjects::Subject::alone(backend, None));
            })*
        }
        mod alone_on_disk {
            $(#[test] fn $test() {
                let subject = $crate::subjects::Subject::device_local();
                super::$test(&$crate::subjects::Subject::alone(subject.files.clone(), None));
            })*
        }
        mod bucket {
            $(#[test] fn $test() { super::$test(&$crate::subjects::Subject::bucket()); })*
        }
    };
}
pub(crate) use on_every_storage;

/// Makes each function of a module a test on a memory store of Anthropic's.
macro_rules! on_memory_store {
    ($($test:ident),* $(,)?) => {
        mod memory_store {
            $(#[test] fn $test() { super::$test(&$crate::subjects::Subject::memory_store()); })*
        }
    };
}
pub(crate) use on_memory_store;
