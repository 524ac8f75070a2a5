//! Links, pipes, sockets and devices in the place of files.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use haversack_store::{Condition, Durability, ErrorKind, Locator};
use rustix::fs::{CWD, FileType, Mode};

use super::{SECRET, Scene, at};

/// Tries every verb on `key`; each must refuse.
fn expect_refusals(scene: &Scene, key: &str) {
    let (store, locator) = (&scene.store, at(key));
    let _ = store.write(&at("source.md"), "x", Condition::Any).expect("written");
    let results = [
        ("read", store.read(&locator).map(drop)),
        ("write", store.write(&locator, "x", Condition::Any).map(drop)),
        ("create", store.write(&locator, "x", Condition::Absent).map(drop)),
        ("append", store.append(&locator, "x", Durability::Now).map(drop)),
        ("rename from", store.rename(&locator, &at("moved.md"))),
        ("rename to", store.rename(&at("source.md"), &locator)),
        ("delete", store.delete(&locator, Condition::Any)),
        ("info", store.info(&locator).map(drop)),
        ("mkdir", store.mkdir(&locator)),
    ];
    for (verb, result) in results {
        let error = result.expect_err(verb);
        let expected = [ErrorKind::Invalid, ErrorKind::Conflict];
        assert!(expected.contains(&error.kind()), "{verb} {key}: {error:?}");
    }
}

#[test]
fn links_are_never_followed() {
    let scene = Scene::new();
    let root = scene.root();
    let outside = scene.outside();
    fs::write(root.join("inside.md"), "inside").expect("written");
    fs::create_dir(root.join("dir")).expect("made");
    symlink(outside.join("secret.md"), root.join("to-file")).expect("linked");
    symlink("../outside/secret.md", root.join("to-file-relative")).expect("linked");
    symlink(outside.join("new.md"), root.join("dangling")).expect("linked");
    symlink("inside.md", root.join("to-inside")).expect("linked");
    symlink("loop", root.join("loop")).expect("linked");
    symlink("to-file", root.join("chain")).expect("linked");
    symlink("/proc/self/root/etc/passwd", root.join("magic")).expect("linked");
    symlink(&outside, root.join("to-dir")).expect("linked");
    symlink("..", root.join("up")).expect("linked");
    symlink("dir", root.join("to-inside-dir")).expect("linked");
    let before = scene.neighbourhood();
    for key in [
        "to-file",
        "to-file-relative",
        "dangling",
        "to-inside",
        "loop",
        "chain",
        "magic",
        "to-dir/secret.md",
        "to-dir/new.md",
        "up/outside/secret.md",
        "up/x",
        "to-inside-dir/new.md",
        "to-dir/deep/new.md",
    ] {
        expect_refusals(&scene, key);
    }
    for key in ["to-dir", "up", "to-inside-dir"] {
        assert_eq!(scene.store.list(&at(key)).expect_err(key).kind(), ErrorKind::Invalid);
        assert_eq!(scene.store.list_all(&at(key)).expect_err(key).kind(), ErrorKind::Invalid);
        expect_refusals(&scene, key);
    }
    assert_eq!(scene.neighbourhood(), before);
    assert_eq!(scene.store.list_all(&Locator::root()).expect("scanned"), [at("inside.md"), at("source.md")]);
    let odd = scene.store.list(&Locator::root()).expect("listed").odd;
    assert_eq!(odd.len(), 10, "{odd:?}");
}

#[test]
fn pipes_sockets_and_devices_are_refused_without_waiting() {
    let scene = Scene::new();
    let mut keys = vec!["pipe", "socket"];
    rustix::fs::mknodat(CWD, scene.root().join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0)
        .expect("a pipe");
    let _listener = UnixListener::bind(scene.root().join("socket")).expect("a socket");
    // Making a device takes privileges that not every test has.
    let null = rustix::fs::makedev(1, 3);
    let device = scene.root().join("device");
    if rustix::fs::mknodat(CWD, device, FileType::CharacterDevice, Mode::from_raw_mode(0o600), null).is_ok() {
        keys.push("device");
    }
    for key in keys {
        expect_refusals(&scene, key);
    }
    assert_eq!(scene.store.list_all(&Locator::root()).expect("scanned"), [at("source.md")]);
}

#[test]
fn a_second_name_of_a_file_outside_is_not_written_through() {
    let scene = Scene::new();
    let secret = scene.outside().join("secret.md");
    let before = scene.neighbourhood();
    for name in ["appended", "replaced", "swapped"] {
        fs::hard_link(&secret, scene.root().join(name)).expect("linked");
    }
    let appended = scene.store.append(&at("appended"), " and more", Durability::Now).expect("appended");
    assert_eq!(appended.offset, SECRET.len() as u64);
    let _ = scene.store.write(&at("replaced"), "new", Condition::Any).expect("written");
    let version = scene.store.read(&at("swapped")).expect("read").version;
    let _ = scene.store.write(&at("swapped"), "new", Condition::Matches(version)).expect("written");
    assert_eq!(scene.store.read_text(&at("appended")).expect("read"), Some(format!("{SECRET} and more")));
    assert_eq!(scene.neighbourhood(), before);
}

/// A directory that was opened for one verb must not be used by the next if its name leads elsewhere now.
#[test]
fn swapped_directory_is_left_alone() {
    for depth in ["notes", "deep/down/notes"] {
        let scene = Scene::new();
        let (root, store, key) = (scene.root(), &scene.store, at(&format!("{depth}/today.md")));
        let _ = store.write(&key, "first", Condition::Any).expect("written");
        let lock = store.lock("store", std::time::Duration::ZERO).expect("free");

        let seen = store.read(&key).expect("read");
        let (top, _) = depth.split_once('/').unwrap_or((depth, ""));
        fs::rename(root.join(top), root.join("away")).expect("moved");
        fs::create_dir_all(root.join(depth)).expect("made");
        fs::write(root.join(depth).join("today.md"), "first").expect("written");
        let _ =
            store.write(&key, "second", Condition::Matches(seen.version)).expect("the same content is there");
        assert_eq!(fs::read(root.join(depth).join("today.md")).expect("there"), b"second");
        let away =
            root.join("away").join(depth.strip_prefix(top).expect("it begins so").trim_start_matches('/'));
        assert_eq!(fs::read(away.join("today.md")).expect("there"), b"first");

        let seen = store.read(&key).expect("read");
        let before = scene.neighbourhood();
        fs::rename(root.join(top), root.join("away-too")).expect("moved");
        fs::create_dir_all(root.join(depth).parent().expect("below the root")).expect("made");
        symlink(scene.outside(), root.join(depth)).expect("linked");
        let results = [
            store.read(&key).map(drop),
            store.write(&key, "third", Condition::Matches(seen.version)).map(drop),
            store.write(&at(&format!("{depth}/secret.md")), "third", Condition::Any).map(drop),
            store.append(&key, "third", Durability::Now).map(drop),
        ];
        for result in results {
            assert_eq!(result.expect_err("a link is in the way").kind(), ErrorKind::Invalid);
        }
        assert_eq!(scene.neighbourhood(), before);
        drop(lock);
    }
}

/// A reader with a lock keeps the file open until it is replaced: a change of it at that time must be seen.
#[test]
fn a_file_that_was_replaced_while_it_was_open_is_a_conflict() {
    let scene = Scene::new();
    let (path, store, key) = (scene.root().join("today.md"), &scene.store, at("today.md"));
    let lock = store.lock("store", std::time::Duration::ZERO).expect("free");
    let changes: [(&str, &dyn Fn()); 5] = [
        ("overwritten", &|| fs::write(&path, "other").expect("written")),
        ("saved by rename", &|| {
            fs::write(path.with_extension("new"), "other").expect("written");
            fs::rename(path.with_extension("new"), &path).expect("moved");
        }),
        ("deleted", &|| fs::remove_file(&path).expect("deleted")),
        ("appended to", &|| drop(store.append(&key, "!", Durability::Now).expect("appended"))),
        ("written", &|| drop(store.write(&key, "other", Condition::Any).expect("written"))),
    ];
    for (what, change) in changes {
        let _ = store.write(&key, "first", Condition::Any).expect("written");
        let seen = store.read(&key).expect("read");
        change();
        let left = fs::read(&path).ok();
        let result = store.write(&key, "second", Condition::Matches(seen.version));
        assert_eq!(result.expect_err(what).kind(), ErrorKind::Conflict, "{what}");
        assert_eq!(fs::read(&path).ok(), left, "{what}");
    }
    drop(lock);
}

/// An open file would keep its space and, on some network disks, its directory.
#[cfg(target_os = "linux")]
#[test]
fn no_file_stays_open_when_no_lock_is_held() {
    let scene = Scene::new();
    let (path, store, key) = (scene.root().join("today.md"), &scene.store, at("today.md"));
    let is_open = || {
        let handles = fs::read_dir("/proc/self/fd").expect("listed").flatten();
        handles.filter_map(|handle| fs::read_link(handle.path()).ok()).any(|target| target == path)
    };
    let _ = store.write(&key, "first", Condition::Any).expect("written");
    store.read(&key).expect("read");
    assert!(!is_open());
    let lock = store.lock("store", std::time::Duration::ZERO).expect("free");
    store.read(&key).expect("read");
    assert!(is_open());
    drop(lock);
    assert!(!is_open());
}
