//! Bad input and bad days: names, links, races, full disks, editors and dead processes.
//!
//! Everything is counted in operations, not in time. `cargo xtask soak` runs the long versions.

mod disks;
mod editors;
mod folders;
mod links;
mod names;
mod placeholders;
mod processes;
mod races;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haversack_store::{Blocking, DeviceLocal, Locator};
use tempfile::TempDir;

use crate::times;

/// Says that it is over when it goes away, so that a failed test does not leave others waiting.
struct OverWhenDropped<'a>(&'a AtomicBool);

impl Drop for OverWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("a plain key")
}

/// A memory, with a secret beside it that must not be read or changed.
struct Scene {
    base: TempDir,
    store: Blocking,
}

const SECRET: &str = "the neighbour's secret";

impl Scene {
    fn new() -> Scene {
        let base = TempDir::new().expect("a temporary directory");
        fs::create_dir(base.path().join("outside")).expect("made");
        fs::write(base.path().join("outside/secret.md"), SECRET).expect("written");
        fs::write(base.path().join("x"), SECRET).expect("written");
        let store = open(base.path());
        Scene { base, store }
    }

    fn root(&self) -> PathBuf {
        self.base.path().join("memory")
    }

    fn outside(&self) -> PathBuf {
        self.base.path().join("outside")
    }

    /// Returns everything that is not in the memory, with its content.
    fn neighbourhood(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut directories = vec![self.base.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).expect("listed") {
                let path = entry.expect("an entry").path();
                if path == self.root() || path == self.base.path().join("locks") {
                    continue;
                }
                if path.is_dir() {
                    directories.push(path.clone());
                }
                found.insert(path.clone(), fs::read(&path).unwrap_or_default());
            }
        }
        found
    }
}

fn open(base: &Path) -> Blocking {
    let backend = DeviceLocal::open(base.join("memory"), base.join("locks")).expect("it opens");
    Blocking::new(Arc::new(backend))
}

/// Returns the working names that are left anywhere below `directory`.
fn working_names(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("listed") {
        let entry = entry.expect("an entry");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(working_names(&entry.path()));
        } else if entry.file_name().to_string_lossy().starts_with(".haversack-") {
            found.push(entry.path());
        }
    }
    found
}
