//! Real files that other handles and other programs change.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use haversack_store::{Backend, Blocking, Condition, DeviceLocal, Fault, Faulty, block_on};

use super::{Cached, MAX_BYTES, Scene, Shows, at, put, text};
use crate::conform::Directory;

/// Waits until the clock behind the files' times has gone on.
fn settle(backend: &DeviceLocal, keys: &[&str]) {
    for _ in 0..2_000 {
        let mark = block_on(backend.touch_mark()).expect("marked");
        let settled =
            |key: &&str| block_on(backend.info(&at(key))).expect("there").fingerprint.is_settled(&mark);
        if keys.iter().all(settled) {
            return;
        }
        thread::sleep(Duration::from_millis(3));
    }
    panic!("the files never settle");
}

/// Writes into the file and gives it back the time it had.
fn restore(path: &Path, text: &str) {
    let time = fs::metadata(path).and_then(|metadata| metadata.modified()).expect("a time");
    fs::write(path, text).expect("written");
    set_modified(path, time);
}

fn set_modified(path: &Path, time: SystemTime) {
    let file = fs::File::options().append(true).open(path).expect("opened");
    file.set_modified(time).expect("set");
}

fn save_by_rename(path: &Path, text: &str) {
    let beside = path.with_extension("editor-tmp");
    fs::write(&beside, text).expect("written");
    fs::rename(&beside, path).expect("renamed");
}

#[test]
fn a_settled_file_is_read_twice_and_then_remembered() {
    let directory = Directory::new();
    let scene = Scene::new(Arc::new(directory.backend()), Shows::Truth);
    for key in ["a", "b"] {
        put(&scene.ours(), key, "one");
    }
    settle(&directory.backend(), &["a", "b"]);
    // The first read takes no mark; the second read takes one, which serves for every other file.
    for (key, reads, marks) in
        [("a", 1, 0), ("a", 2, 1), ("a", 2, 1), ("b", 3, 1), ("b", 3, 1), ("a", 3, 1), ("b", 3, 1)]
    {
        assert_eq!(scene.read(key), "one");
        assert_eq!((scene.watched.reads(), scene.watched.marks()), (reads, marks), "{key}");
    }
}

#[test]
fn a_mark_that_cannot_be_taken_fails_no_read() {
    let directory = Directory::new();
    put(&Blocking::new(Arc::new(directory.backend())), "a", "one");
    let faulty = Arc::new(Faulty::new(Arc::new(directory.backend())));
    let store = Blocking::new(Arc::new(Cached::new(faulty.clone(), MAX_BYTES)));
    assert_eq!(text(&store, "a"), "one");
    // Asked about, marked in vain, read.
    faulty.plan([Fault::None, Fault::Refused(haversack_store::ErrorKind::Busy)]);
    let before = faulty.operations();
    assert_eq!(text(&store, "a"), "one");
    assert_eq!(faulty.operations() - before, 3);
}

#[test]
fn a_time_in_the_future_is_never_trusted() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let directory = Directory::new();
    let scene = Scene::new(Arc::new(directory.backend()), Shows::Truth);
    put(&scene.ours(), "a", "one");
    let path = directory.root().join("a");
    let tomorrow = fs::metadata(&path).and_then(|metadata| metadata.modified()).expect("a time") + DAY;
    set_modified(&path, tomorrow);
    block_on(scene.cached.touch_mark()).expect("marked");
    for _ in 0..5 {
        assert_eq!(scene.read_counted("a"), ("one".to_owned(), 1));
    }
}

#[test]
fn whatever_others_do_is_seen_at_once() {
    let directory = Directory::new();
    let scene = Scene::new(Arc::new(directory.backend()), Shows::Truth);
    let other = Blocking::new(Arc::new(directory.backend()));
    let path = directory.root().join("a");
    let doors: [&dyn Fn(&str); 4] = [
        &|text| put(&other, "a", text),
        &|text| fs::write(&path, text).expect("written"),
        &|text| restore(&path, text),
        &|text| save_by_rename(&path, text),
    ];
    put(&scene.ours(), "a", "00000000");
    // First as fast as possible, so that writes and reads share a tick; then what is remembered.
    for (round, door) in (1..=200).zip(doors.iter().cycle()) {
        let text = format!("{round:08}");
        door(&text);
        for _ in 0..round % 5 {
            assert_eq!(scene.read("a"), text);
        }
    }
    for (round, door) in (1..=8).zip(doors.iter().cycle()) {
        settle(&directory.backend(), &["a"]);
        scene.remember(&["a"]);
        let text = format!("settled{round}");
        door(&text);
        assert_eq!(scene.read("a"), text);
    }
    settle(&directory.backend(), &["a"]);
    scene.remember(&["a"]);
    other.delete(&at("a"), Condition::Any).expect("deleted");
    assert_eq!(scene.read("a"), "nothing");
}

#[test]
fn directories_that_others_move_are_seen_at_once() {
    let directory = Directory::new();
    let scene = Scene::new(Arc::new(directory.backend()), Shows::Truth);
    put(&scene.ours(), "d/x", "one");
    put(&scene.ours(), "e/x", "two");
    settle(&directory.backend(), &["d/x", "e/x"]);
    scene.remember(&["d/x", "e/x"]);
    let name = |key: &str| directory.root().join(key);
    for (from, to) in [("d", "aside"), ("e", "d"), ("aside", "e")] {
        fs::rename(name(from), name(to)).expect("renamed");
    }
    assert_eq!((scene.read("d/x"), scene.read("e/x")), ("two".to_owned(), "one".to_owned()));
}
