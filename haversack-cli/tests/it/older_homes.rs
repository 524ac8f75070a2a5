//! Homes and remotes that an earlier program wrote (`tests/fixtures/homes-*`) open and sync with this one, and lose nothing. What a later program
//! wrote is refused, and nothing is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use haversack::ids::{ContentHash, Position};
use haversack::log::{Folded, StoreFile, layout};

use crate::machines::Machines;

/// The earlier programs whose homes are kept.
const BEFORE_HOME_ROUND: &str = "homes-before-home-round";
const VERSION_0_2_0: &str = "homes-of-0.2.0";

/// The directory that the homes lay in when they were written.
const WRITTEN_IN: &str = "/home/me";

const PREFIX: &str = "claude_memory/lighthouse";

/// Unpacks the homes below a test's directory, as if they had been written there.
fn unpacked(written_by: &str) -> Machines {
    let archive =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(written_by).join("homes.tar.gz");
    let machines = Machines::new();
    let base = machines.env.path("").canonicalize().expect("there");
    let tar = machines.env.program("tar").arg("-xzf").arg(archive).output().expect("tar runs");
    assert!(tar.status.success(), "{}", String::from_utf8_lossy(&tar.stderr));
    for meeting in ["directory", "folder"] {
        for machine in ["laptop", "desktop"] {
            let home = base.join(meeting).join(machine);
            for record in ["remote.toml", "mounts.toml", "state/default/joined.toml"] {
                replace_base(&home.join(record), &base);
            }
            // The state of a mount is named by the directory's path.
            let project = format!("{meeting}/{machine}-project");
            let from = mount_state(&home, &format!("{WRITTEN_IN}/{project}"));
            fs::rename(from, mount_state(&home, &base.join(&project).display().to_string()))
                .expect("the state of the mount");
        }
    }
    machines
}

fn replace_base(record: &Path, base: &Path) {
    if let Ok(text) = fs::read_to_string(record) {
        let base = base.display().to_string();
        fs::write(record, text.replace(WRITTEN_IN, base.trim_end_matches('/'))).expect("written");
    }
}

fn mount_state(home: &Path, directory: &str) -> PathBuf {
    let name = ContentHash::of(format!("{directory}\n{PREFIX}").as_bytes()).to_string();
    home.join("state").join(format!("mount-{}", &name[..16]))
}

fn older_home_opens_and_syncs(written_by: &str, meeting: &str) {
    let machines = unpacked(written_by);
    let (laptop, desktop) = (&*format!("{meeting}/laptop"), &*format!("{meeting}/desktop"));
    let project = |machine: &str| machines.env.path(&format!("{machine}-project/people.md"));

    let status = machines.shown(laptop, &["status"]);
    assert!(status.contains("2 changes wait to be sent"), "{status}");
    assert!(status.contains("deploy.md is held back"), "{status}");
    assert!(status.contains("lighthouse/lamp.md has two versions of one passage"), "{status}");
    assert!(status.contains("laptop (this one) · desktop"), "{status}");
    for machine in [laptop, desktop] {
        let log = machines.done(machine, &["log"]);
        for file in ["keys.md", "diary.md", "lighthouse/ports.md", &format!("{PREFIX}/people.md")] {
            assert!(log.contains(file), "{machine}: {log}");
        }
        let mounts = machines.done(machine, &["mount", "list"]);
        assert!(mounts.contains(PREFIX), "{mounts}");
        let conflicts = machines.done(machine, &["conflicts"]);
        assert!(conflicts.contains("every 12 s") && conflicts.contains("every 15 s"), "{conflicts}");
    }

    // The edits that the earlier program had not sent travel first, to both places of the other machine.
    let sent = machines.done(laptop, &["sync"]);
    assert!(sent.contains("Sent 2 files."), "{sent}");
    let received = machines.done(desktop, &["sync"]);
    assert!(received.contains("Received 2 files."), "{received}");
    let keeper = fs::read_to_string(project(desktop)).expect("bound");
    assert_eq!(keeper, "the harbour master is Ada\nthe keeper is Grace\n");
    let diary = "# Diary\n\nfirst day\n\nsecond day\n\nthird day\n";
    assert_eq!(machines.read(desktop, "diary.md").as_deref(), Some(diary));

    // An edit made now reaches the other machine, in both directions.
    machines.write(desktop, "lighthouse/ports.md", "staging listens on 5435\nproduction listens on 443\n");
    fs::write(project(desktop), format!("{keeper}the cook is Alan\n")).expect("written");
    machines.settle(&[desktop, laptop]);
    let ports = machines.read(laptop, "lighthouse/ports.md").expect("there");
    assert_eq!(ports, "staging listens on 5435\nproduction listens on 443\n");
    let people = fs::read_to_string(project(laptop)).expect("bound");
    assert_eq!(people, format!("{keeper}the cook is Alan\n"));

    // Nothing is lost, the deletion stays, and the secret is still on its machine only.
    let (mut here, there) = (machines.files(laptop), machines.files(desktop));
    let secret = here.remove("deploy.md").expect("kept");
    assert!(secret.contains("the token is gh"), "{secret}");
    assert_eq!(here, there);
    assert!(!there.contains_key("keys.md"), "{there:?}");
    assert!(there["lighthouse/lamp.md"].contains("every 12 s"), "{there:?}");
    assert!(there["lighthouse/lamp.md"].contains("every 15 s"), "{there:?}");
    assert!(there.iter().any(|(name, text)| name.starts_with("interactions/") && text.contains("the crane")));
    let nothing = machines.done(laptop, &["sync", "--full"]);
    assert!(nothing.contains("Nothing new."), "{nothing}");
    let checked = machines.shown(laptop, &["check"]);
    assert!(checked.contains("6 files: 1 flaw"), "only the open conflict: {checked}");

    // The earlier program's history still leads back.
    machines.done(desktop, &["restore", "keys.md"]);
    assert_eq!(machines.read(desktop, "keys.md").as_deref(), Some("keys are in the drawer\n"));
}

#[test]
fn older_home_with_a_directory_opens_and_syncs() {
    older_home_opens_and_syncs(BEFORE_HOME_ROUND, "directory");
}

#[test]
fn older_home_with_a_folder_opens_and_syncs() {
    older_home_opens_and_syncs(BEFORE_HOME_ROUND, "folder");
}

#[test]
fn home_of_0_2_0_with_a_directory_opens_and_syncs() {
    older_home_opens_and_syncs(VERSION_0_2_0, "directory");
}

#[test]
fn home_of_0_2_0_with_a_folder_opens_and_syncs() {
    older_home_opens_and_syncs(VERSION_0_2_0, "folder");
}

/// Returns every file below a directory with its bytes, without lock files and the record of the last contact.
fn bytes_below(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("it can be listed").flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("locks") {
                directories.push(path);
            } else if path.is_file() && !path.ends_with("contact.toml") {
                found.insert(path.clone(), fs::read(&path).expect("it can be read"));
            }
        }
    }
    found
}

/// Replaces a text in a file whose other bytes need not be text.
fn replace_bytes(path: &Path, from: &str, to: &str) {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes());
    let at = at.unwrap_or_else(|| panic!("{} holds no {from:?}", path.display()));
    fs::write(path, [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()).expect("written");
}

/// Syncs the desktop, which must refuse a newer format, and checks that it changed neither its home nor the remote.
///
/// At a folder it may note its own edit in the log that only this machine has, so only its memory must stay as it is.
fn is_refused_and_untouched(machines: &Machines, meeting: &str) {
    let home = if meeting == "folder" { "folder/desktop/memory" } else { "directory/desktop" };
    let (home, remote) = (machines.env.path(home), remote_of(machines, meeting));
    machines.write(&format!("{meeting}/desktop"), "diary.md", "an edit that waits\n");
    let before = (bytes_below(&home), bytes_below(&remote));
    let said = machines.shown(&format!("{meeting}/desktop"), &["sync"]);
    assert!(!said.starts_with("exit 0\n"), "{said}");
    assert!(said.contains("newer") && said.contains("Update Haversack on this machine"), "{said}");
    let after = (bytes_below(&home), bytes_below(&remote));
    let changed = |before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>| {
        let names: BTreeSet<PathBuf> = before.keys().chain(after.keys()).cloned().collect();
        names.into_iter().filter(|name| before.get(name) != after.get(name)).collect::<Vec<_>>()
    };
    assert_eq!(changed(&before.0, &after.0), Vec::<PathBuf>::new(), "the home");
    assert_eq!(changed(&before.1, &after.1), Vec::<PathBuf>::new(), "the remote");
}

fn remote_of(machines: &Machines, meeting: &str) -> PathBuf {
    machines.env.path(if meeting == "folder" { "folder/sync/haversack" } else { "directory/remote" })
}

/// Returns the file with the greatest name in a directory.
fn newest_in(directory: &Path) -> PathBuf {
    fs::read_dir(directory).expect("there").flatten().map(|entry| entry.path()).max().expect("a file")
}

/// A machine that has read the log already reads `store.json` only in a full sync: the log itself says that it ends or that a later format follows.
#[test]
fn newer_store_is_refused_and_untouched() {
    let machines = unpacked(VERSION_0_2_0);
    let remote = machines.env.path("directory/remote");
    replace_bytes(&remote.join(".haversack/store.json"), "\"format\": 1", "\"format\": 2");
    let before = bytes_below(&remote);
    let url = format!("file://{}", remote.display());
    let said = machines.shown("late", &["join", &url, "--device", "late", "--yes"]);
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert!(said.contains("newer") && said.contains("Update Haversack on this machine"), "{said}");
    assert_eq!(bytes_below(&remote), before, "the remote");
    assert!(machines.files("late").is_empty(), "nothing was taken from a store that cannot be read");
}

#[test]
fn newer_commit_is_refused_and_untouched() {
    let machines = unpacked(VERSION_0_2_0);
    // The laptop's last edits are a commit that the desktop has not read.
    machines.done("directory/laptop", &["sync"]);
    let newest = newest_in(&remote_of(&machines, "directory").join(".haversack/log"));
    replace_bytes(&newest, "haversack-commit 1", "haversack-commit 9");
    is_refused_and_untouched(&machines, "directory");
}

#[test]
fn newer_state_is_refused_and_untouched() {
    let machines = unpacked(VERSION_0_2_0);
    let identity = machines.env.path("directory/desktop/state/default/identity");
    replace_bytes(&identity, "haversack-identity 1", "haversack-identity 9");
    is_refused_and_untouched(&machines, "directory");
}

/// Lets the laptop put its last edits into the folder, and returns that entry of its log. The desktop has not read it.
fn entry_that_the_desktop_has_not_read(machines: &Machines) -> PathBuf {
    let entries = |found: &BTreeMap<PathBuf, Vec<u8>>| -> BTreeSet<PathBuf> {
        found
            .iter()
            .filter(|(_, bytes)| bytes.starts_with(b"haversack-entry "))
            .map(|(path, _)| path.clone())
            .collect()
    };
    let folder = remote_of(machines, "folder");
    // The fixture was moved, so the desktop's log in the folder gets a new name first.
    machines.done("folder/desktop", &["sync"]);
    let before = entries(&bytes_below(&folder));
    machines.done("folder/laptop", &["sync"]);
    let after = entries(&bytes_below(&folder));
    after.difference(&before).last().expect("a new entry").clone()
}

#[test]
fn newer_entry_of_a_folder_is_refused_and_untouched() {
    let machines = unpacked(VERSION_0_2_0);
    let entry = entry_that_the_desktop_has_not_read(&machines);
    replace_bytes(&entry, "haversack-entry 1", "haversack-entry 9");
    is_refused_and_untouched(&machines, "folder");
}

#[test]
fn newer_commit_in_an_entry_of_a_folder_is_refused_and_untouched() {
    let machines = unpacked(VERSION_0_2_0);
    let entry = entry_that_the_desktop_has_not_read(&machines);
    replace_bytes(&entry, "haversack-commit 1", "haversack-commit 9");
    // The second line is a hash of everything after it.
    let bytes = fs::read(&entry).expect("there");
    let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
    let (first, _, rest) = (lines.next().expect("one"), lines.next(), lines.next().expect("the rest"));
    let hash = ContentHash::of(rest).to_string();
    fs::write(&entry, [first, hash.as_bytes(), rest].join(&b'\n')).expect("written");
    is_refused_and_untouched(&machines, "folder");
}

/// Returns a file of a later version: only its first line can be understood.
fn of_a_later_version(kind: &str) -> String {
    format!("haversack-{kind} 9\n{}\n{{}}\n", ContentHash::of(b"{}\n"))
}

/// Joins the directory's store, and returns what the program said. The remote may gain files, and keeps those that it has.
fn late_machine_joins(machines: &Machines) -> String {
    let remote = remote_of(machines, "directory");
    let before = bytes_below(&remote);
    let said = machines
        .shown("late", &["join", &format!("file://{}", remote.display()), "--device", "late", "--yes"]);
    let after = bytes_below(&remote);
    for (path, bytes) in before {
        let is_derived = path.ends_with("manifest.json");
        assert!(is_derived || after.get(&path) == Some(&bytes), "{} changed", path.display());
    }
    said
}

/// A checkpoint is a shortcut: the log says the same.
#[test]
fn newer_checkpoint_is_left_alone_and_the_log_is_read() {
    let machines = unpacked(VERSION_0_2_0);
    let newest = newest_in(&remote_of(&machines, "directory").join(".haversack/log"));
    let checkpoints = remote_of(&machines, "directory").join(".haversack/checkpoints");
    fs::create_dir_all(&checkpoints).expect("made");
    let checkpoint = checkpoints.join(newest.file_name().expect("a position"));
    fs::write(checkpoint, of_a_later_version("checkpoint")).expect("written");
    let said = late_machine_joins(&machines);
    assert!(said.starts_with("exit 0\n"), "{said}");
    assert!(machines.files("late").contains_key("lighthouse/ports.md"), "{said}");
}

/// Positions whose commits are in a segment have no other copy.
#[test]
fn newer_segment_is_refused_and_untouched() {
    let machines = unpacked(VERSION_0_2_0);
    let remote = remote_of(&machines, "directory");
    let store = fs::read(remote.join(".haversack/store.json")).expect("there");
    let store = StoreFile::decode(&store.into()).expect("readable").store;
    let (first, last) = (Position::FIRST, Position::new(4).expect("a position"));
    let folded = Folded { store, first, last }.encode().expect("small");
    for position in (1..=4).filter_map(Position::new) {
        fs::write(remote.join(layout::commit(position).as_str()), &folded).expect("written");
    }
    let segment = remote.join(layout::segment(first, last).as_str());
    fs::create_dir_all(segment.parent().expect("in a directory")).expect("made");
    fs::write(segment, of_a_later_version("segment")).expect("written");
    let said = late_machine_joins(&machines);
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert!(said.contains("newer") && said.contains("Update Haversack on this machine"), "{said}");
    assert!(machines.files("late").is_empty(), "nothing was taken from a log that cannot be read");
}
