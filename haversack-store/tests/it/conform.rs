//! Every backend × every case is one named test.

use std::sync::Arc;

use haversack_store::conformance::Subject;
use haversack_store::{Backend, Cached, DeviceLocal, Faulty, InMemory, Locator, Overlay, Prefixed, Vault};
use tempfile::TempDir;

/// An empty directory with its locks beside it.
pub(crate) struct Directory {
    pub(crate) base: TempDir,
    exchange: bool,
}

impl Directory {
    pub(crate) fn new() -> Directory {
        Directory { base: TempDir::new().expect("a temporary directory"), exchange: true }
    }

    fn without_exchange() -> Directory {
        Directory { exchange: false, ..Directory::new() }
    }

    pub(crate) fn root(&self) -> std::path::PathBuf {
        self.base.path().join("memory")
    }

    pub(crate) fn backend(&self) -> DeviceLocal {
        let backend = DeviceLocal::open(self.root(), self.base.path().join("locks")).expect("it opens");
        if self.exchange { backend } else { backend.without_exchange() }
    }
}

impl Subject for Directory {
    fn open(&self) -> Arc<dyn Backend> {
        Arc::new(self.backend())
    }
}

haversack_store::conformance!(device_local, Directory::new());

haversack_store::conformance!(device_local_without_exchange, Directory::without_exchange());

haversack_store::conformance!(vault, {
    let directory = Directory::new();
    move || {
        let vault = Vault::open(directory.root(), directory.base.path().join("locks")).expect("it opens");
        Arc::new(vault) as Arc<dyn Backend>
    }
});

haversack_store::conformance!(memory, {
    let backend = Arc::new(InMemory::new());
    move || backend.clone() as Arc<dyn Backend>
});

haversack_store::conformance!(prefixed_memory, {
    let backend: Arc<dyn Backend> = Arc::new(InMemory::new());
    move || {
        let prefix = Locator::parse("some/where").expect("valid");
        haversack_store::block_on(backend.mkdir(&prefix)).expect("made");
        Arc::new(Prefixed::new(backend.clone(), prefix)) as Arc<dyn Backend>
    }
});

haversack_store::conformance!(overlay_beside_a_mount, {
    let base: Arc<dyn Backend> = Arc::new(InMemory::new());
    let mount: Arc<dyn Backend> = Arc::new(InMemory::new());
    move || {
        let at = |key| Locator::parse(key).expect("valid");
        haversack_store::block_on(base.mkdir(&at("beside"))).expect("made");
        let overlay = Overlay::new(base.clone(), vec![(at("some/where"), mount.clone())]);
        Arc::new(Prefixed::new(Arc::new(overlay), at("beside"))) as Arc<dyn Backend>
    }
});

haversack_store::conformance!(overlay_in_a_mount, {
    let mount: Arc<dyn Backend> = Arc::new(InMemory::new());
    // The same again, since both have to go by one clock.
    let base = mount.clone();
    move || {
        let prefix = Locator::parse("some/where").expect("valid");
        let overlay = Overlay::new(base.clone(), vec![(prefix.clone(), mount.clone())]);
        Arc::new(Prefixed::new(Arc::new(overlay), prefix)) as Arc<dyn Backend>
    }
});

haversack_store::conformance!(faulty_without_faults, {
    let backend: Arc<dyn Backend> = Arc::new(InMemory::new());
    move || Arc::new(Faulty::new(backend.clone())) as Arc<dyn Backend>
});

haversack_store::conformance!(cached_device_local, {
    // Small, so that objects are forgotten all the time.
    const MAX_BYTES: usize = 64 << 10;
    let directory = Directory::new();
    move || Arc::new(Cached::new(directory.open(), MAX_BYTES)) as Arc<dyn Backend>
});

haversack_store::conformance!(cached_memory, {
    // The largest object of the suite is just remembered.
    const MAX_BYTES: usize = 256 << 20;
    let backend: Arc<dyn Backend> = Arc::new(InMemory::new());
    move || Arc::new(Cached::new(backend.clone(), MAX_BYTES)) as Arc<dyn Backend>
});
