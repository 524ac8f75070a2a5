//! A home with a damaged state recovers, or it is refused with a cure that works; no file suffers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::machines::Machines;

/// The new bytes of a file; `None` to delete it.
type Damage = fn(&[u8]) -> Option<Vec<u8>>;

/// The damages of a file.
const DAMAGES: [(&str, Damage); 6] = [
    ("gone", |_| None),
    ("empty", |_| Some(Vec::new())),
    ("cut", |bytes| Some(bytes[..bytes.len() / 2].to_vec())),
    ("flipped", |bytes| {
        let mut bytes = bytes.to_vec();
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 0x15;
        }
        Some(bytes)
    }),
    ("garbage", |_| Some(b"\xff\xfe not what it was \0".to_vec())),
    ("of a newer version", |bytes| {
        let text = String::from_utf8_lossy(bytes);
        Some(text.replacen(" 1\n", " 99\n", 1).into_bytes())
    }),
];

/// Returns every kind of file in a directory: one each of those that have numbers or hashes for names.
fn kinds(directory: &Path) -> Vec<PathBuf> {
    let mut kinds: BTreeMap<String, PathBuf> = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("listed").flatten() {
        let path = entry.path();
        if path.is_dir() {
            let first = first_file(&path);
            kinds.extend(first.map(|first| (entry.file_name().to_string_lossy().into_owned(), first)));
        } else {
            kinds.insert(entry.file_name().to_string_lossy().into_owned(), path);
        }
    }
    kinds.into_values().collect()
}

/// Returns a file below a directory, at any depth; `None` if there is none.
fn first_file(directory: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(directory).expect("listed").flatten().map(|entry| entry.path());
    entries.find_map(|path| if path.is_dir() { first_file(&path) } else { Some(path) })
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("listed").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

#[test]
fn a_damaged_state_recovers_or_is_refused_with_its_cure() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "one\n"), ("lamp.md", "white\n")]);
    machines.write("laptop", "ports.md", "one\n\ntwo\n");
    machines.done("laptop", &["sync"]);
    machines.write("desktop", "lamp.md", "white\n\nand red\n");
    machines.done("desktop", &["undo", "--yes"]);
    machines.write("desktop", "lamp.md", "white\n\nand red\n");
    let home = machines.env.path("desktop");
    let all = ["desktop", "laptop", "remote"].map(|name| machines.env.path(name));
    let saved = |place: &Path| place.with_extension("saved");
    for place in &all {
        copy(place, &saved(place));
    }
    let mut refused = 0;
    let mut tried = 0;
    let state = home.join("state/default");
    let mut files = kinds(&state);
    files.extend([home.join("remote.toml"), home.join("state/default/snapshot")]);
    for file in files {
        for (how, damage) in DAMAGES {
            let case = format!("{} {how}", file.strip_prefix(&home).expect("below").display());
            for place in &all {
                std::fs::remove_dir_all(place).expect("removed");
                copy(&saved(place), place);
            }
            let before = machines.files("desktop");
            match damage(&std::fs::read(&file).unwrap_or_default()) {
                Some(bytes) => std::fs::write(&file, bytes).expect("damaged"),
                None => drop(std::fs::remove_file(&file)),
            }
            tried += 1;
            let shown = machines.shown("desktop", &["sync"]);
            if shown.starts_with("exit 1\n") {
                refused += 1;
                assert!(shown.contains("Hint: "), "{case}: {shown}");
                assert_eq!(machines.files("desktop"), before, "{case}: nothing was touched");
                if file.ends_with("remote.toml") {
                    drop(std::fs::remove_file(&file));
                    machines.done("desktop", &["remote", "add", &machines.url(), "--device", "desktop"]);
                } else {
                    assert!(
                        shown.contains("Move ") && shown.contains("state/default away"),
                        "{case}: {shown}"
                    );
                    std::fs::rename(&state, home.join("state/away")).expect("moved");
                }
            }
            assert!(!shown.contains("panicked"), "{case}: {shown}");
            machines.settle(&["desktop", "laptop"]);
            assert_eq!(machines.files("laptop"), machines.files("desktop"), "{case}");
            let all: String = machines.files("laptop").into_values().collect();
            for line in ["one", "two", "white", "and red"] {
                assert!(all.contains(line), "{case}: {line} was lost: {all}");
            }
            machines.shown("desktop", &["status"]);
        }
    }
    assert!(tried > 40 && refused > 4, "{refused} of {tried} were refused");
}
