//! A directory in the place of a file and the reverse, while another machine or a program changes the same names (issue 30, point 6).

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program writes past us, on the disk itself"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures_lite::future::{block_on, yield_now};
use haversack::store::{
    Backend, BackendExt, Condition, DeviceLocal, EntryKind, Listing, Locator, Result as StoreResult,
    forward_backend,
};
use haversack::sync::{Author, Context, Replica, Report};
use tempfile::TempDir;

use super::lab::{Forged, Lab};
use super::{Midnight, World};
use crate::subjects::at;

/// The number of looks of a call for the one that it waits for. In another order of calls, that one never comes.
const MAX_LOOKS: usize = 1_000;

impl World {
    /// Syncs a device over another way to its files.
    fn sync_over(&self, device: &str, files: Arc<dyn Backend>) -> Report {
        let author = Author { device: device.to_owned(), agent: None, session: None };
        let state = self.open(&format!("{device}/state"));
        let synced = block_on(async {
            let mut replica = Replica::open(files, state, self.open("remote"), &self.ids).await?;
            replica.sync(Context::new(&Midnight, &self.ids, &author)).await
        });
        synced.expect("synced")
    }
}

/// Working files in which `deep` is listed just before `deep/ideas.md` becomes a file, and the listing is used just after that.
#[derive(Debug)]
struct LateListing {
    inner: Arc<dyn Backend>,
    is_listed: AtomicBool,
}

impl LateListing {
    async fn is_file(&self, locator: &Locator) -> bool {
        self.inner.info(locator).await.is_ok_and(|info| info.kind == EntryKind::File)
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for LateListing {
    async fn list(&self, locator: &Locator) -> StoreResult<Listing> {
        let listing = self.inner.list(locator).await;
        if locator.as_str() == "deep" {
            self.is_listed.store(true, Ordering::SeqCst);
            for _ in 0..MAX_LOOKS {
                if self.is_file(&at("deep/ideas.md")).await {
                    break;
                }
                yield_now().await;
            }
        }
        listing
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> StoreResult<()> {
        for _ in 0..MAX_LOOKS {
            if locator.as_str() != "deep/ideas.md" || self.is_listed.load(Ordering::SeqCst) {
                break;
            }
            drop(self.inner.info(locator).await);
            yield_now().await;
        }
        self.inner.delete(locator, condition).await
    }

    forward_backend!(self => self.inner; read, write, prepare, append, barrier, scan, info, touch_mark, rename, exchange);
    forward_backend!(self => self.inner; mkdir, lock, capabilities, conflict_strategy);
}

/// Working files in which a program puts a file in the place of an empty directory, just before we remove that.
#[derive(Debug)]
struct FileInPlaceOfDirectory {
    inner: Arc<dyn Backend>,
    directory: Locator,
    path: PathBuf,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for FileInPlaceOfDirectory {
    async fn delete(&self, locator: &Locator, condition: Condition) -> StoreResult<()> {
        if *locator == self.directory && self.path.is_dir() {
            std::fs::remove_dir(&self.path).expect("it is empty");
            std::fs::write(&self.path, "by a program\n").expect("written");
        }
        self.inner.delete(locator, condition).await
    }

    forward_backend!(self => self.inner; read, write, prepare, append, barrier, list, scan, info, touch_mark, rename);
    forward_backend!(self => self.inner; exchange, mkdir, lock, capabilities, conflict_strategy);
}

/// Seed 32 of `random_machines::real_use`: the desktop makes `deep` a file, the tablet edits `deep/ideas.md`, and in a folder the log has both
/// names. The laptop had an empty directory `deep/ideas.md`. It put the tablet's file there, removed it again with the directories that are in
/// the way of `deep`, and sent the deletion.
#[test]
fn edit_below_a_directory_that_became_a_file_is_kept() {
    let lab = Lab::new();
    let base = TempDir::new().expect("a temporary directory");
    let disk = DeviceLocal::open(base.path().join("memory"), base.path().join("locks")).expect("it opens");
    let disk: Arc<dyn Backend> = Arc::new(disk);
    let sync_over = |files: Arc<dyn Backend>| {
        let work = async |replica: &mut Replica, context: Context<'_>| replica.sync(context).await;
        lab.with_backends("laptop", files, lab.remote.clone(), work).expect("synced")
    };
    lab.put("desktop", "deep/ideas.md/inner.md", "inner\n");
    lab.put("desktop", "notes.md", "begin\n");
    lab.sync("desktop").expect("synced");
    sync_over(disk.clone());
    for key in ["deep/ideas.md/inner.md", "deep/ideas.md", "deep"] {
        lab.delete("desktop", key);
    }
    lab.put("desktop", "deep", "a file now\n");
    lab.sync("desktop").expect("synced");
    lab.forge(&[Forged::put("deep/ideas.md", "by the tablet\n")]);

    let report = sync_over(Arc::new(LateListing { inner: disk.clone(), is_listed: AtomicBool::new(false) }));
    let text = block_on(disk.read_text(&at("deep/ideas.md"))).expect("text");
    assert_eq!(text.as_deref(), Some("by the tablet\n"), "{report:?}");
    assert_eq!((report.refused, report.published), (vec![at("deep")], 0));
    let report = sync_over(disk);
    assert_eq!((report.refused, report.published), (vec![at("deep")], 0), "it stays refused and named");
}

#[test]
fn file_that_a_program_puts_in_place_of_an_empty_directory_is_kept() {
    let world = World::new();
    world.put("laptop", "deep/inner/ideas.md", "one\n");
    world.put("laptop", "notes.md", "begin\n");
    world.sync("laptop");
    world.sync("desktop");
    for key in ["deep/inner/ideas.md", "deep/inner", "deep"] {
        world.delete("laptop", key);
    }
    world.put("laptop", "deep", "a file now\n");
    world.sync("laptop");
    let path = world.base.path().join("desktop/memory/deep/inner");
    let files = FileInPlaceOfDirectory { inner: world.files("desktop"), directory: at("deep/inner"), path };
    let report = world.sync_over("desktop", Arc::new(files));
    assert_eq!(world.text("desktop", "deep/inner").as_deref(), Some("by a program\n"), "{report:?}");
    assert_eq!(report.refused, [at("deep")]);
}
