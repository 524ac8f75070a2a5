//! A synced folder: what its client may see, and what it may put there.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use haversack_store::{
    Blocking, Condition, ConflictStrategy, DeviceLocal, Durability, ErrorKind, Locator, Vault,
};
use tempfile::TempDir;

use super::{OverWhenDropped, at, working_names};
use crate::times;

struct Scene {
    base: TempDir,
    store: Blocking,
}

impl Scene {
    fn new() -> Scene {
        let base = TempDir::new().expect("a temporary directory");
        let store = open(base.path());
        Scene { base, store }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.base.path().join("vault").join(key)
    }
}

fn open(base: &Path) -> Blocking {
    Blocking::new(Arc::new(Vault::open(base.join("vault"), base.join("locks")).expect("it opens")))
}

/// Returns every name in a folder, as a client sees it.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("listed").filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Does `work` while a client looks at the folder, and returns every name it saw.
fn watched(folder: &Path, work: impl FnOnce()) -> BTreeSet<String> {
    let over = AtomicBool::new(false);
    let seen = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                seen.lock().expect("not poisoned").append(&mut names(folder));
            }
        });
        let _over = OverWhenDropped(&over);
        work();
    });
    seen.into_inner().expect("not poisoned")
}

#[test]
fn working_names_are_hidden() {
    let scene = Scene::new();
    let seen = watched(&scene.path(""), || {
        for number in 0..times(300, 20_000) {
            let key = at(&format!("{}.md", number % 7));
            let _ = scene.store.write(&key, format!("{number}"), Condition::Any).expect("written");
            let version = scene.store.read(&key).expect("read").version;
            let written = scene.store.write(&key, format!("{number}!"), Condition::Matches(version));
            let _ = written.expect("written");
            let _ = scene.store.append(&key, "more", Durability::AtBarrier).expect("appended");
            scene.store.delete(&key, Condition::Any).expect("deleted");
            let _ = scene.store.write(&at("new.md"), "x", Condition::Absent).expect("written");
            let version = scene.store.read(&at("new.md")).expect("read").version;
            scene.store.delete(&at("new.md"), Condition::Matches(version)).expect("deleted");
        }
    });
    for name in &seen {
        let is_plain = name.ends_with(".md") && !name.starts_with('.');
        let is_left_alone = name.starts_with(".~haversack-") && name.ends_with(".tmp");
        assert!(is_plain || is_left_alone, "{name}");
    }
    assert_eq!(names(&scene.path("")), BTreeSet::new(), "nothing is left over");
}

/// A file that only its own device writes, and once, never has a second name.
#[cfg(target_os = "linux")]
#[test]
fn what_is_created_has_one_name_from_its_first_moment() {
    use rustix::fs::{CWD, Mode, OFlags};
    let scene = Scene::new();
    let flags = OFlags::TMPFILE | OFlags::RDWR;
    // Not every filesystem has files without a name.
    if rustix::fs::openat(CWD, scene.path(""), flags, Mode::RUSR).is_err() {
        return;
    }
    let seen = watched(&scene.path(""), || {
        for number in 0..times(500, 20_000) {
            let key = at(&format!("{number}"));
            let _ = scene.store.write(&key, "x".repeat(5000), Condition::Absent).expect("written");
        }
    });
    assert!(seen.iter().all(|name| name.parse::<usize>().is_ok()), "{seen:?}");
}

#[test]
fn append_is_never_seen_half_done() {
    const LINE: &str = "one line that is rather long, and always the same\n";
    let scene = Scene::new();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let text = fs::read_to_string(scene.path("log.md")).unwrap_or_default();
                assert_eq!(text.len() % LINE.len(), 0, "half a line was there");
            }
        });
        let _over = OverWhenDropped(&over);
        for _ in 0..times(300, 5_000) {
            let _ = scene.store.append(&at("log.md"), LINE, Durability::AtBarrier).expect("appended");
        }
    });
    let inode = || fs::metadata(scene.path("log.md")).expect("there").ino();
    let before = inode();
    let _ = scene.store.append(&at("log.md"), LINE, Durability::Now).expect("appended");
    assert_ne!(before, inode(), "it was written anew");
}

#[test]
fn links_in_the_folder_lead_nowhere() {
    let scene = Scene::new();
    fs::write(scene.base.path().join("secret.md"), "secret").expect("written");
    symlink(scene.base.path().join("secret.md"), scene.path("link.md")).expect("linked");
    symlink(scene.base.path(), scene.path("up")).expect("linked");
    // A stub that is a link stands for nothing.
    symlink(scene.base.path().join("secret.md"), scene.path(".evicted.md.icloud")).expect("linked");
    for key in ["link.md", "up/secret.md"] {
        assert_eq!(scene.store.read(&at(key)).expect_err(key).kind(), ErrorKind::Invalid);
        let written = scene.store.write(&at(key), "x", Condition::Any);
        assert_eq!(written.expect_err(key).kind(), ErrorKind::Invalid);
    }
    assert_eq!(scene.store.read_text(&at("evicted.md")).expect("looked"), None);
    assert_eq!(scene.store.list_all(&Locator::root()).expect("scanned"), []);
    assert_eq!(fs::read_to_string(scene.base.path().join("secret.md")).expect("read"), "secret");
}

#[test]
fn names_that_some_client_cannot_hold_are_refused() {
    let scene = Scene::new();
    for key in ["a:b.md", "what?.md", "con.md", "dot.", "space ", "star*.md"] {
        let error = scene.store.write(&at(key), "x", Condition::Any).expect_err(key);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    }
    let _ = scene.store.write(&at("Notes.md"), "x", Condition::Any).expect("written");
    let twin = scene.store.write(&at("notes.md"), "x", Condition::Any).expect_err("a twin");
    assert_eq!(twin.kind(), ErrorKind::Invalid);
    assert!(Locator::parse(".~haversack-draft-0.tmp").is_err(), "a working name is nobody's");
    assert_eq!(names(&scene.path("")), BTreeSet::from(["Notes.md".to_owned()]));
}

/// A writer that died, in this version or before the folder became a vault, and one whose temporary file travelled.
#[test]
fn what_a_dead_writer_left_is_found() {
    let scene = Scene::new();
    let hash = |text: &str| haversack_store::Version::of_content(text.as_bytes()).as_str()[..32].to_owned();
    for (name, content) in [
        (".~haversack-draft-3.tmp".to_owned(), "half"),
        (".haversack-draft-4".to_owned(), "half"),
        (format!(".~haversack-gone-{}-lost.md.tmp", hash("read")), "the user's"),
        (format!(".haversack-gone-{}-older.md", hash("read")), "the user's"),
    ] {
        fs::write(scene.path(&name), content).expect("written");
    }
    assert_eq!(scene.store.list_all(&Locator::root()).expect("scanned"), [], "none of them is an object");
    let found = scene.store.list_all(&Locator::root()).expect("scanned");
    assert_eq!(found, [at("lost.md"), at("older.md")], "the user's came back");
    assert_eq!(names(&scene.path("")), BTreeSet::from(["lost.md".to_owned(), "older.md".to_owned()]));
}

/// A process that opens the folder as a plain directory takes the same locks, and sees no working names.
#[test]
fn a_vault_and_a_plain_directory_exclude_each_other() {
    let scene = Scene::new();
    let plain = DeviceLocal::open(scene.path(""), scene.base.path().join("locks")).expect("it opens");
    let plain = Blocking::new(Arc::new(plain));
    let key = at("counter");
    let _ = scene.store.write(&key, "0", Condition::Absent).expect("written");
    let rounds = times(50, 1000);
    thread::scope(|scope| {
        for store in [&scene.store, &plain] {
            scope.spawn(|| {
                for _ in 0..rounds {
                    loop {
                        let object = store.read(&key).expect("read");
                        let count: usize = String::from_utf8_lossy(&object.bytes).parse().expect("a number");
                        let next = (count + 1).to_string();
                        match store.write(&key, next, Condition::Matches(object.version)) {
                            Ok(written) => break assert_eq!(written.displaced, None),
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
                        }
                    }
                }
            });
        }
    });
    let count = scene.store.read_text(&key).expect("read").expect("there");
    assert_eq!(count, (2 * rounds).to_string());
    fs::write(scene.path(".~haversack-draft-0.tmp"), "half").expect("written");
    assert_eq!(plain.list_all(&Locator::root()).expect("scanned"), [key]);
}

#[test]
fn it_declares_what_it_is() {
    let scene = Scene::new();
    let (capabilities, backend) = (scene.store.capabilities(), scene.store.backend());
    assert!(capabilities.sync && capabilities.conflict_files && capabilities.concurrent_writers);
    assert!(!capabilities.create_if_absent && !capabilities.flat_append && !capabilities.encryption);
    assert_eq!(backend.conflict_strategy(), ConflictStrategy::Merge);
    // Between the processes of this machine a create is one all the same.
    let _ = scene.store.write(&at("a"), "x", Condition::Absent).expect("written");
    let again = scene.store.write(&at("a"), "y", Condition::Absent);
    assert_eq!(again.expect_err("taken").kind(), ErrorKind::Conflict);
    assert!(working_names(&scene.path("")).is_empty());
    assert_eq!(names(&scene.path("")), BTreeSet::from(["a".to_owned()]), "no lock is in the folder");
}
