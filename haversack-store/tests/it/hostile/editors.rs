//! Editors that take no lock and save whenever they like.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use haversack_store::{Condition, ErrorKind};

use super::{OverWhenDropped, Scene, at, times};

fn tokens(bytes: &[u8]) -> BTreeSet<usize> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter_map(|line| line.strip_prefix("editor ")?.parse().ok()).collect()
}

/// Saves what is there plus a line, as editors do: another file, renamed over it.
fn save_by_rename(path: &Path, content: &[u8]) {
    let beside = path.with_extension("editor-tmp");
    fs::write(&beside, content).expect("written");
    fs::rename(&beside, path).expect("renamed");
}

/// Lets an editor save often while we replace the same file, and demands that nothing it saved was
/// destroyed unseen: each line was seen by us, or by the editor when it read again, or is there at the end.
#[test]
fn saves_by_rename_are_kept() {
    let saves = times(2_000, 100_000);
    let scene = Scene::new();
    let path = scene.root().join("notes.md");
    let locator = at("notes.md");
    let _ = scene.store.write(&locator, "start\n", Condition::Absent).expect("written");
    let done = AtomicBool::new(false);
    let (mut seen, displaced) = thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let _over = OverWhenDropped(&done);
            let mut seen = BTreeSet::new();
            for number in 0..saves {
                let mut content = fs::read(&path).expect("read");
                seen.extend(tokens(&content));
                // Files stay short: what was seen before may go.
                if content.len() > 2_000 {
                    content.clear();
                }
                content.extend_from_slice(format!("editor {number}\n").as_bytes());
                save_by_rename(&path, &content);
                if number % 16 == 0 {
                    thread::yield_now();
                }
            }
            seen
        });
        let mut seen = BTreeSet::new();
        let mut displaced = 0;
        let mut number = 0;
        while !done.load(Ordering::Relaxed) {
            number += 1;
            let object = scene.store.read(&locator).expect("read");
            seen.extend(tokens(&object.bytes));
            let mut content = if object.bytes.len() > 2_000 { Vec::new() } else { object.bytes.to_vec() };
            content.extend_from_slice(format!("ours {number}\n").as_bytes());
            match scene.store.write(&locator, content, Condition::Matches(object.version)) {
                Ok(written) => {
                    if let Some(theirs) = written.displaced {
                        displaced += 1;
                        seen.extend(tokens(&theirs.bytes));
                        let kept = scene.store.read(&theirs.kept).expect("kept until we delete it");
                        assert_eq!(kept.bytes, theirs.bytes);
                        scene.store.delete(&theirs.kept, Condition::Any).expect("deleted");
                    }
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
            }
        }
        seen.extend(editor.join().expect("the editor does not panic"));
        (seen, displaced)
    });
    seen.extend(tokens(&scene.store.read(&locator).expect("read").bytes));
    let lost: Vec<usize> = (0..saves).filter(|number| !seen.contains(number)).collect();
    assert_eq!(lost, Vec::<usize>::new(), "of {saves} saves, {displaced} were displaced");
}

#[test]
fn what_comes_through_an_open_descriptor_is_kept() {
    let scene = Scene::new();
    let (path, locator) = (scene.root().join("notes.md"), at("notes.md"));
    let _ = scene.store.write(&locator, "start\n", Condition::Absent).expect("written");
    for number in 0..times(100, 2_000) {
        let object = scene.store.read(&locator).expect("read");
        let mut descriptor = fs::OpenOptions::new().append(true).open(&path).expect("opened");
        let line = format!("editor {number}\n");
        descriptor.write_all(line.as_bytes()).expect("written");
        let stale = scene.store.write(&locator, "ours\n", Condition::Matches(object.version));
        assert_eq!(stale.expect_err("it changed").kind(), ErrorKind::Conflict);
        let now = scene.store.read(&locator).expect("read");
        assert!(now.bytes.ends_with(line.as_bytes()));
        let _ = scene.store.write(&locator, "start\n", Condition::Matches(now.version)).expect("unchanged");
    }
}
