//! Existing files are copied into a cloud and out of it again.

use std::fs;

use super::{Place, in_each_cloud};
use crate::machines::Machines;

in_each_cloud!(a_directory_goes_there_once_and_comes_back);

fn a_directory_goes_there_once_and_comes_back(place: &Place) {
    let machines = Machines::new();
    let notes = [
        ("notes/ports.md", "# Ports\n\nstaging listens on 1\n"),
        ("notes/team/ünïcode 日本.md", "the team meets on Monday\r\n"),
        ("notes/empty.md", ""),
    ];
    for (path, text) in notes {
        let path = machines.env.path(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("made");
        fs::write(path, text).expect("written");
    }
    // A value that looks like a credential and is none.
    let secret = format!("aws_access_key_id = AKIA{}\n", "Q3EGRXRTZ7PLVWMN");
    fs::write(machines.env.path("notes/keys.md"), secret).expect("written");
    let run = |arguments: &[&str]| {
        let all = [&["migrate"][..], arguments].concat();
        place.shown(&machines, &mut place.in_shell(&machines, "laptop", &all))
    };
    let shown = run(&["notes=behavioral", &place.url, "--dry-run"]);
    assert!(shown.starts_with("exit 0\n") && place.objects().is_empty(), "{shown}");
    let shown = run(&["notes=behavioral", &place.url, "--yes"]);
    assert!(shown.contains("Copied 3 files") && shown.contains("INCOMPLETE"), "{shown}");
    assert!(shown.starts_with("exit 2\n") && shown.contains("keys.md"), "{shown}");
    let objects = place.objects();
    assert!(objects.contains_key("manifest.json"), "{:?}", objects.keys());
    assert_eq!(objects.len(), notes.len() + 1, "{:?}", objects.keys());
    for (path, text) in notes {
        let there = path.replacen("notes", "behavioral", 1);
        assert_eq!(objects.get(&there).map(|bytes| &bytes[..]), Some(text.as_bytes()), "{there}");
    }
    fs::remove_file(machines.env.path("notes/keys.md")).expect("removed");
    let shown = run(&["notes=behavioral", &place.url, "--yes"]);
    assert!(shown.contains("Copied 0 files (0 KB), skipped 3 that are there already"), "{shown}");
    assert_eq!(place.objects(), objects);
    let shown = run(&[&place.url, "back", "--yes"]);
    assert!(shown.starts_with("exit 0\n") && shown.contains("Copied 3 files"), "{shown}");
    for (path, text) in notes {
        let back = machines.env.path(&path.replacen("notes", "back/behavioral", 1));
        assert_eq!(fs::read(&back).expect("there"), text.as_bytes(), "{}", back.display());
    }
}
