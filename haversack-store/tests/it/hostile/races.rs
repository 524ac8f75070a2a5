//! Directories and links that change places while we look.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use haversack_store::{Condition, Durability, ErrorKind};
use rustix::fs::{CWD, RenameFlags};

use super::{OverWhenDropped, SECRET, Scene, at, times};

#[test]
fn swapped_directories_never_leak() {
    let operations = times(10_000, 100_000);
    let scene = Scene::new();
    let (dir, link) = (scene.root().join("d"), scene.root().join("l"));
    fs::create_dir(&dir).expect("made");
    symlink(scene.outside(), &link).expect("linked");
    let before = scene.neighbourhood();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // `d` is by turns a directory and a link to the outside.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).expect("swapped");
            }
        });
        let _over = OverWhenDropped(&done);
        let mut reached = 0;
        for number in 0..operations {
            let locator = at(&format!("d/{}.md", number % 50));
            let result = match number % 6 {
                0 => scene.store.write(&locator, "ours", Condition::Any).map(drop),
                1 => scene.store.append(&locator, "ours", Durability::AtBarrier).map(drop),
                2 => scene.store.read(&at("d/secret.md")).map(|object| {
                    assert_ne!(object.bytes, SECRET.as_bytes(), "read through a link");
                }),
                3 => scene.store.rename(&locator, &at(&format!("d/moved-{number}.md"))),
                4 => scene.store.mkdir(&at(&format!("d/dir-{}", number % 50))),
                _ => scene.store.delete(&locator, Condition::Any),
            };
            match result {
                Ok(()) => reached += 1,
                Err(error) => {
                    let expected = [ErrorKind::Invalid, ErrorKind::NotFound, ErrorKind::Conflict];
                    assert!(expected.contains(&error.kind()), "{error:?}");
                }
            }
        }
        assert!(reached > 0, "the directory was never met as one");
    });
    assert_eq!(scene.neighbourhood(), before, "something reached outside");
}

#[test]
fn a_file_that_comes_and_goes_is_there_or_not() {
    let scene = Scene::new();
    let path = scene.root().join("blinks.md");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::write(&path, "there").expect("written");
                // Ours may have been faster.
                drop(fs::remove_file(&path));
            }
        });
        let _over = OverWhenDropped(&done);
        let locator = at("blinks.md");
        for number in 0..times(1_000, 20_000) {
            let result = match number % 5 {
                0 => scene.store.read(&locator).map(drop),
                1 => scene.store.info(&locator).map(drop),
                2 => scene.store.append(&locator, "x", Durability::AtBarrier).map(drop),
                3 => scene.store.delete(&locator, Condition::Any),
                _ => match scene.store.read(&locator) {
                    Ok(object) => {
                        scene.store.write(&locator, "ours", Condition::Matches(object.version)).map(drop)
                    }
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = result {
                let expected = [ErrorKind::NotFound, ErrorKind::Conflict];
                assert!(expected.contains(&error.kind()), "{error:?}");
            }
        }
    });
}
