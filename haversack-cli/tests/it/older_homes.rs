//! Homes and remotes that an earlier program wrote (`tests/fixtures/homes-*`) open and sync with this one, and lose nothing. What a later program
//! wrote is refused, and nothing is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use haversack::ids::ContentHash;

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

/// Runs a command that must refuse a newer format, and checks that it changed neither the home nor the remote.
fn is_refused_and_untouched(machines: &Machines, arguments: &[&str]) {
    let (home, remote) = (machines.env.path("directory/desktop"), machines.env.path("directory/remote"));
    let before = (bytes_below(&home), bytes_below(&remote));
    let said = machines.shown("directory/desktop", arguments);
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
    let log = machines.env.path("directory/remote/.haversack/log");
    let newest =
        fs::read_dir(&log).expect("there").flatten().map(|entry| entry.path()).max().expect("a commit");
    replace_bytes(&newest, "haversack-commit 1", "haversack-commit 9");
    machines.write("directory/desktop", "diary.md", "an edit that waits\n");
    is_refused_and_untouched(&machines, &["sync"]);
}

#[test]
fn newer_state_is_refused_and_untouched() {
    let machines = unpacked(VERSION_0_2_0);
    let identity = machines.env.path("directory/desktop/state/default/identity");
    replace_bytes(&identity, "haversack-identity 1", "haversack-identity 9");
    machines.write("directory/desktop", "diary.md", "an edit that waits\n");
    is_refused_and_untouched(&machines, &["sync"]);
}
