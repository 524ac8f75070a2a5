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
