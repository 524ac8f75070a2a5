//! The remote was wiped, restored from an old backup, replaced, emptied or moved: the machines meet again with one command.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use insta::assert_snapshot;

use crate::machines::Machines;

const PORTS: &str = "staging listens on 5433\n";

/// Returns two machines that are in sync, and then each has something that the other one has not seen: the laptop deleted `old.md` and sent
/// it, the desktop added a line and did not send it.
fn machines() -> Machines {
    let machines = Machines::laptop_and_desktop(&[
        ("ports.md", PORTS),
        ("old.md", "to be deleted\n"),
        ("lamp.md", "white\n"),
    ]);
    machines.settle(&["laptop", "desktop"]);
    fs::remove_file(machines.path("laptop", "old.md")).expect("deleted");
    machines.done("laptop", &["sync"]);
    machines.write("desktop", "ports.md", &format!("{PORTS}production listens on 5432\n"));
    machines
}

fn remote(machines: &Machines) -> PathBuf {
    machines.env.path("remote")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("listed").flatten() {
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).expect("copied")),
        }
    }
}

fn wipe(directory: &Path) {
    fs::remove_dir_all(directory).expect("removed");
    fs::create_dir(directory).expect("made");
}

/// Fails unless both machines have every line that was not deleted, once.
#[track_caller]
fn agree(machines: &Machines) {
    machines.settle(&["laptop", "desktop"]);
    let expected: BTreeMap<String, String> = [
        ("lamp.md".to_owned(), "white\n".to_owned()),
        ("ports.md".to_owned(), format!("{PORTS}production listens on 5432\n")),
    ]
    .into();
    assert_eq!(machines.files("laptop"), expected);
    assert_eq!(machines.files("desktop"), expected);
    let status = machines.done("laptop", &["status"]);
    assert!(status.contains("In sync."), "{status}");
}

#[test]
fn wiped_remote_is_rebuilt_by_one_machine_and_followed_by_the_other() {
    let machines = machines();
    wipe(&remote(&machines));
    // Nothing waits on the laptop, and it notices all the same.
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote is empty: the store that was there is gone
    Hint: Nothing was written there, and everything is on this machine. Put it back: haversack remote rebuild
    "#);
    let refused = machines.shown("laptop", &["remote", "rebuild"]);
    assert!(
        refused.contains("this needs your yes") && !remote(&machines).join(".haversack").exists(),
        "{refused}"
    );
    assert_snapshot!(machines.done("laptop", &["remote", "rebuild", "--yes"]), @r#"
    exit 0
    --- stdout
    Began a new store at file://BASE/user/remote that continues this one, with 2 files.
    On your other machines:  haversack remote rebuild
    Nothing new.
    --- stderr
    "#);
    assert_snapshot!(machines.shown("desktop", &["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote was lost, and "laptop" rebuilt the store there
    Hint: Follow it, and merge this machine's files with it: haversack remote rebuild
    "#);
    assert_snapshot!(machines.done("desktop", &["remote", "rebuild"]), @r#"
    exit 0
    --- stdout
    Followed the store that continues this one.
    Sent 1 file.
    --- stderr
    "laptop" rebuilt the store there. This machine follows.
    "#);
    agree(&machines);
    assert_eq!(machines.read("desktop", "old.md"), None, "what was deleted is not resurrected");
}

/// The machine that rebuilds has not seen the deletion.
#[test]
fn rebuild_by_machine_that_was_behind_resurrects_nothing() {
    let machines = machines();
    wipe(&remote(&machines));
    machines.done("desktop", &["remote", "rebuild", "--yes"]);
    machines.done("laptop", &["remote", "rebuild"]);
    agree(&machines);
}

#[test]
fn rebuild_works_for_bound_directories() {
    let machines = machines();
    let project = machines.env.path("project");
    fs::create_dir_all(&project).expect("made");
    fs::write(project.join("fact.md"), "one\n").expect("written");
    machines.done("laptop", &["mount", "add", &project.display().to_string(), "claude_memory/lighthouse"]);
    machines.done("laptop", &["sync"]);
    fs::write(project.join("fact.md"), "one\ntwo\n").expect("written");
    wipe(&remote(&machines));
    let shown = machines.done("laptop", &["remote", "rebuild", "--yes"]);
    assert!(shown.contains("with 3 files") && shown.contains("Sent 1 file"), "{shown}");
    machines.done("desktop", &["remote", "rebuild"]);
    machines.settle(&["laptop", "desktop"]);
    let fact = machines.read("desktop", "claude_memory/lighthouse/fact.md");
    assert_eq!(fact.as_deref(), Some("one\ntwo\n"));
    assert_eq!(fs::read_to_string(project.join("fact.md")).expect("read"), "one\ntwo\n");
}

#[test]
fn restored_backup_gets_its_changes_back() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS)]);
    machines.settle(&["laptop", "desktop"]);
    let backup = machines.env.path("backup");
    copy(&remote(&machines), &backup);
    machines.write("laptop", "lamp.md", "white\n");
    machines.done("laptop", &["sync"]);
    machines.write("laptop", "ports.md", &format!("{PORTS}production listens on 5432\n"));
    machines.done("laptop", &["sync"]);
    let before = logs(&remote(&machines));
    fs::remove_dir_all(remote(&machines)).expect("removed");
    copy(&backup, &remote(&machines));
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: the remote's history has changed: its change 3 is missing or different
    Hint: We wrote nothing there. Restore it from this machine: haversack remote rebuild
    "#);
    assert_snapshot!(machines.done("laptop", &["remote", "rebuild"]), @r#"
    exit 0
    --- stdout
    Put 2 changes back that the remote had lost.
    Nothing new.
    --- stderr
    "#);
    assert_eq!(logs(&remote(&machines)), before, "byte for byte");
    // The desktop never noticed.
    agree(&machines);
}

#[test]
fn restored_backup_with_other_changes_is_merged() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", PORTS), ("old.md", "to be deleted\n")]);
    machines.settle(&["laptop", "desktop"]);
    let backup = machines.env.path("backup");
    copy(&remote(&machines), &backup);
    machines.write("laptop", "lamp.md", "white\n");
    fs::remove_file(machines.path("laptop", "old.md")).expect("deleted");
    machines.done("laptop", &["sync"]);
    fs::remove_dir_all(remote(&machines)).expect("removed");
    copy(&backup, &remote(&machines));
    machines.write("desktop", "ports.md", &format!("{PORTS}production listens on 5432\n"));
    machines.done("desktop", &["sync"]);
    let shown = machines.shown("laptop", &["sync"]);
    assert!(shown.contains("haversack remote rebuild"), "{shown}");
    assert_snapshot!(machines.done("laptop", &["remote", "rebuild"]), @r#"
    exit 0
    --- stdout
    The remote has other changes since change 1: we merged them with this machine's.
    Sent 2 files, received 1 file.
    --- stderr
    "#);
    agree(&machines);
    let log = machines.done("laptop", &["log"]);
    assert!(log.contains("desktop: sync") && log.contains("deleted old.md"), "{log}");
}

#[test]
fn another_store_is_named_and_left_alone() {
    let machines = machines();
    wipe(&remote(&machines));
    machines.write("tablet", "theirs.md", "somebody else's\n");
    machines.done("tablet", &["remote", "add", &machines.url(), "--device", "tablet"]);
    machines.done("tablet", &["sync"]);
    let before = logs(&remote(&machines));
    for command in [["sync"].as_slice(), &["sync", "--full"], &["remote", "rebuild", "--yes"]] {
        let shown = machines.shown("laptop", command);
        assert!(shown.starts_with("exit 1\n") && shown.contains("another store"), "{shown}");
        assert!(shown.contains("haversack remote rebuild URL"), "{shown}");
    }
    assert!(machines.shown("laptop", &["remote", "rebuild", "--yes"]).contains("that of \"tablet\""));
    assert_eq!(logs(&remote(&machines)), before);
    // Both machines go elsewhere, with one command each.
    let elsewhere = format!("file://{}", machines.env.path("elsewhere").display());
    machines.done("laptop", &["remote", "rebuild", &elsewhere, "--yes"]);
    machines.done("desktop", &["remote", "rebuild", &elsewhere]);
    agree(&machines);
    assert_eq!(logs(&remote(&machines)), before);
}

/// Returns the log and the name of a store, byte for byte.
fn logs(remote: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(remote.join(".haversack/log")).expect("listed").flatten();
    let mut files: BTreeMap<String, Vec<u8>> = entries
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("read"))
        })
        .collect();
    files.insert("store.json".to_owned(), fs::read(remote.join(".haversack/store.json")).expect("read"));
    files
}

#[test]
fn emptied_folder_gets_its_logs_back() {
    let machines = Machines::new();
    let folder = machines.env.path("sync");
    fs::create_dir_all(&folder).expect("made");
    let url = format!("vault://{}", folder.display());
    machines.write("laptop", "ports.md", PORTS);
    machines.done("laptop", &["remote", "add", &url, "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["join", &url, "--device", "desktop", "--yes"]);
    machines.write("desktop", "lamp.md", "white\n");
    machines.settle(&["desktop", "laptop"]);
    wipe(&folder);
    let shown = machines.shown("laptop", &["sync"]);
    assert!(shown.contains("haversack remote rebuild"), "{shown}");
    let shown = machines.done("laptop", &["remote", "rebuild"]);
    assert!(shown.contains("of logs back into the folder"), "{shown}");
    machines.write("desktop", "ports.md", &format!("{PORTS}production listens on 5432\n"));
    agree(&machines);
    // A machine that joins now finds everything.
    machines.done("tablet", &["join", &url, "--device", "tablet", "--yes"]);
    assert_eq!(machines.files("tablet"), machines.files("laptop"));
}

#[test]
fn moved_store_is_followed_after_a_yes_only() {
    let machines = machines();
    let new = machines.env.path("new");
    let url = format!("file://{}", new.display());
    assert_snapshot!(machines.done("laptop", &["remote", "move", &url, "--yes"]), @r#"
    exit 0
    --- stdout
    Nothing new.
    Moved the store to file://BASE/user/new: 2 objects copied and read back.
    On your other machines:  haversack remote move --follow
    --- stderr
    We send nothing to file://BASE/user/remote any more. The files there stay until you remove them.
    "#);
    let before = logs(&new);
    for _ in 0..2 {
        let shown = machines.shown("desktop", &["sync"]);
        assert!(shown.contains("\"laptop\" moved the store to file://BASE/user/new"), "{shown}");
        assert!(shown.contains("haversack remote move --follow"), "{shown}");
    }
    let shown = machines.shown("desktop", &["remote", "move", "--follow"]);
    assert!(shown.starts_with("exit 1\n") && shown.contains("this needs your yes"), "{shown}");
    assert_eq!(logs(&new), before, "nothing was sent there");
    assert!(machines.done("desktop", &["remote", "list"]).contains("/remote"));
    machines.done("desktop", &["remote", "move", "--follow", "--yes"]);
    assert!(machines.done("desktop", &["remote", "list"]).contains("/new"));
    agree(&machines);
    // A machine that joins at the new place has all of it.
    machines.done("tablet", &["join", &url, "--device", "tablet", "--yes"]);
    assert_eq!(machines.files("tablet"), machines.files("laptop"));
}

/// Starts a command and kills it after a while; returns whether it was done before.
fn kill(machines: &Machines, machine: &str, arguments: &[&str], after: Duration) -> bool {
    let mut command = machines.command(machine, arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    std::thread::sleep(after);
    let is_done = child.try_wait().expect("asked").is_some();
    child.kill().expect("killed");
    let _ = child.wait().expect("ended");
    is_done
}

#[test]
fn rebuild_that_was_killed_goes_on() {
    let mut kills = 0;
    for round in 0..4_u64 {
        let machines = machines();
        wipe(&remote(&machines));
        for step in 0..6 {
            let after = Duration::from_millis(2 + 3 * step + round);
            kills += usize::from(!kill(&machines, "laptop", &["remote", "rebuild", "--yes"], after));
            kills += usize::from(!kill(&machines, "desktop", &["remote", "rebuild", "--yes"], after));
        }
        machines.done("laptop", &["remote", "rebuild", "--yes"]);
        machines.done("desktop", &["remote", "rebuild", "--yes"]);
        agree(&machines);
    }
    assert!(kills > 4, "{kills}");
}

#[test]
fn move_that_was_killed_goes_on() {
    let mut kills = 0;
    for round in 0..4_u64 {
        let machines = machines();
        let url = format!("file://{}", machines.env.path("new").display());
        for step in 0..6 {
            let after = Duration::from_millis(2 + 4 * step + round);
            kills += usize::from(!kill(&machines, "laptop", &["remote", "move", &url, "--yes"], after));
        }
        let shown = machines.shown("laptop", &["remote", "move", &url, "--yes"]);
        let is_there = shown.contains("the store is there already") || shown.starts_with("exit 0\n");
        assert!(is_there, "{shown}");
        drop(machines.shown("desktop", &["sync"]));
        machines.done("desktop", &["remote", "move", "--follow", "--yes"]);
        agree(&machines);
    }
    assert!(kills > 4, "{kills}");
}

#[test]
fn rebuild_by_two_machines_at_once_converges() {
    for _ in 0..4 {
        let machines = machines();
        wipe(&remote(&machines));
        let start = |machine| {
            let mut command = machines.command(machine, &["remote", "rebuild", "--yes"]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
        };
        let mut both = [start("laptop"), start("desktop")];
        for child in &mut both {
            assert!(child.wait().expect("ended").success());
        }
        agree(&machines);
    }
}
