//! Files in a synced folder of which only the name has arrived.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use haversack_store::{
    Blocking, Condition, Durability, ErrorKind, Locator, OpenOptions, Registry, Vault, Version, block_on,
};
use tempfile::TempDir;

use super::at;

/// A folder with a note that is here and two that are not: one that iCloud evicted, one that a client made room for.
struct Folder {
    base: TempDir,
    vault: Arc<Vault>,
    store: Blocking,
}

/// Those that are not here.
const AWAY: [&str; 2] = ["notes/evicted.md", "notes/hollow.md"];

impl Folder {
    fn new() -> Folder {
        let base = TempDir::new().expect("a temporary directory");
        let vault =
            Arc::new(Vault::open(base.path().join("vault"), base.path().join("locks")).expect("opened"));
        let folder = Folder { store: Blocking::new(vault.clone()), base, vault };
        fs::create_dir(folder.path("notes")).expect("made");
        fs::write(folder.path("notes/here.md"), "here").expect("written");
        fs::write(folder.path("notes/.evicted.md.icloud"), "bplist00 whatever").expect("written");
        let hollow = fs::File::create(folder.path("notes/hollow.md")).expect("created");
        hollow.set_len(1000).expect("sized");
        folder
    }

    fn path(&self, key: &str) -> PathBuf {
        self.base.path().join("vault").join(key)
    }
}

#[test]
fn what_is_not_here_is_neither_absent_nor_empty() {
    let Folder { store, vault, .. } = &Folder::new();
    let all = [at("notes/evicted.md"), at("notes/here.md"), at("notes/hollow.md")];
    let listed: Vec<Locator> =
        store.list(&at("notes")).expect("listed").entries.into_iter().map(|entry| entry.locator).collect();
    assert_eq!(listed, all);
    assert_eq!(store.list_all(&Locator::root()).expect("scanned"), all);
    for key in AWAY {
        let locator = at(key);
        assert!(store.exists(&locator).expect("looked"), "{key}");
        assert!(store.info(&locator).expect("known").size_bytes > 0, "{key}");
        let error = store.read(&locator).expect_err("not here");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert_eq!(
            error.to_string(),
            format!("could not read {key}: its content is not on this machine yet")
        );
    }
    assert_eq!(block_on(vault.online_only()).expect("looked"), AWAY.map(at));
}

#[test]
fn what_nobody_has_seen_is_not_replaced_or_deleted() {
    let folder = Folder::new();
    let store = &folder.store;
    let version = Version::of_content(b"");
    for key in AWAY {
        let locator = at(key);
        let results = [
            ("write", store.write(&locator, "x", Condition::Any).map(drop)),
            ("update", store.write(&locator, "x", Condition::Matches(version.clone())).map(drop)),
            ("append", store.append(&locator, "x", Durability::Now).map(drop)),
            ("delete", store.delete(&locator, Condition::Any)),
            ("delete this", store.delete(&locator, Condition::Matches(version.clone()))),
        ];
        for (verb, result) in results {
            let error = result.expect_err(verb);
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{verb} {key}: {error:?}");
        }
        for result in [
            store.write(&locator, "x", Condition::Absent).map(drop),
            store.rename(&at("notes/here.md"), &locator),
        ] {
            assert_eq!(result.expect_err("taken").kind(), ErrorKind::Conflict, "{key}");
        }
    }
    assert_eq!(
        store.rename(&at("notes/evicted.md"), &at("moved.md")).expect_err("refused").kind(),
        ErrorKind::Unavailable
    );
    assert_eq!(
        fs::read_to_string(folder.path("notes/.evicted.md.icloud")).expect("still there"),
        "bplist00 whatever"
    );
    assert_eq!(fs::read(folder.path("notes/hollow.md")).expect("still there"), [0; 1000]);
    assert_eq!(fs::read_dir(folder.path("notes")).expect("listed").count(), 3, "nothing is left over");
}

#[test]
fn what_has_arrived_is_served() {
    let folder = Folder::new();
    let store = &folder.store;
    fs::rename(folder.path("notes/.evicted.md.icloud"), folder.path("notes/evicted.md")).expect("arrived");
    fs::write(folder.path("notes/hollow.md"), "filled").expect("arrived");
    assert_eq!(store.read_text(&at("notes/hollow.md")).expect("read").as_deref(), Some("filled"));
    let _ = store.write(&at("notes/evicted.md"), "new", Condition::Any).expect("written");
    // A stub that its client has not tidied up yet is not a second file.
    fs::write(folder.path("notes/.evicted.md.icloud"), "bplist00 late").expect("written");
    assert_eq!(store.read_text(&at("notes/evicted.md")).expect("read").as_deref(), Some("new"));
    assert_eq!(store.list_all(&Locator::root()).expect("scanned").len(), 3);
    assert_eq!(block_on(folder.vault.online_only()).expect("looked"), []);
}

/// A file without blocks of its own on some filesystem still has its data: an empty file, and the smallest.
#[test]
fn what_is_small_is_here() {
    let folder = Folder::new();
    for (key, content) in [("empty.md", ""), ("small.md", "x"), ("zeros.bin", "\0\0\0\0")] {
        fs::write(folder.path(key), content).expect("written");
        assert_eq!(folder.store.read_text(&at(key)).expect("read").as_deref(), Some(content), "{key}");
    }
    assert_eq!(block_on(folder.vault.online_only()).expect("looked"), AWAY.map(at));
}

/// A log of ours that is on its way is found missing too.
#[test]
fn our_own_files_can_be_away() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path(".haversack/log/a")).expect("made");
    fs::write(folder.path(".haversack/log/a/.0001.icloud"), "bplist00").expect("written");
    let position = Locator::reserved(".haversack/log/a/0001").expect("ours");
    assert_eq!(folder.store.read(&position).expect_err("not here").kind(), ErrorKind::Unavailable);
    let away = block_on(folder.vault.online_only()).expect("looked");
    assert_eq!(away.first(), Some(&position), "{away:?}");
}

/// Opened by name as a remote is: the same folder, the same answers.
#[test]
fn by_its_address() {
    let folder = Folder::new();
    let options = OpenOptions {
        address: haversack_store::vault_address(&folder.base.path().join("vault")).expect("absolute"),
        locks: folder.base.path().join("locks").display().to_string(),
        ..OpenOptions::default()
    };
    let wanted = haversack_store::Capabilities { sync: true, conflict_files: true, ..Default::default() };
    let store = Blocking::new(Registry::standard().select("vault", &options, &wanted).expect("opened"));
    assert_eq!(store.read_text(&at("notes/here.md")).expect("read").as_deref(), Some("here"));
    assert_eq!(store.read(&at("notes/evicted.md")).expect_err("not here").kind(), ErrorKind::Unavailable);
}
