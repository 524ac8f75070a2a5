//! The shortest sequences of commands behind schedules of `random_machines::real_use` and `syncthing` that broke a promise (issue 30).

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::machines::Machines;
use crate::random_machines::Chance;
use crate::vault::{Client, folder, make_folder};

const HOMES: [&str; 2] = ["laptop", "desktop"];

fn rename(machines: &Machines, home: &str, from: &str, to: &str) {
    fs::rename(machines.path(home, from), machines.path(home, to)).expect("renamed");
}

/// E1, seed 6: a file that could not be written is renamed by case only, and no sync of that home ends any more.
#[test]
fn case_rename_after_a_refused_write_stops_no_sync() {
    let machines = Machines::laptop_and_desktop(&[("lamp.md", "white\n\nred\n"), ("oil.md", "low\n")]);
    machines.write("desktop", "lamp.md", "white\n");
    machines.done("desktop", &["sync"]);
    let aside = machines.env.path("aside.md");
    fs::rename(machines.path("laptop", "lamp.md"), &aside).expect("moved");
    let pipe = machines.path("laptop", "lamp.md");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    machines.shown("laptop", &["sync"]);
    fs::remove_file(&pipe).expect("removed");
    fs::rename(&aside, machines.path("laptop", "LAMP.md")).expect("put back under another case");
    machines.write("laptop", "oil.md", "low\n\nbarrels: 3\n");
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.read("desktop", "oil.md").as_deref(), Some("low\n\nbarrels: 3\n"));
    machines.settle(&HOMES);
    for home in HOMES {
        let names: Vec<String> = machines.files(home).into_keys().collect();
        assert_eq!(names, ["LAMP.md", "oil.md"], "{home}");
        assert_eq!(machines.read(home, "LAMP.md").as_deref(), Some("white\n"));
        assert!(machines.done(home, &["status"]).contains("In sync"));
    }
}

/// E7, seed 9: another home renames a file by case only while something else is in its place here.
#[test]
fn case_rename_that_could_not_be_written_arrives_later() {
    let machines = Machines::laptop_and_desktop(&[("log.jsonl", "{\"id\":1}\n"), ("oil.md", "low\n")]);
    rename(&machines, "laptop", "log.jsonl", "LOG.jsonl");
    machines.done("laptop", &["sync"]);
    let (aside, pipe) = (machines.env.path("aside"), machines.path("desktop", "log.jsonl"));
    fs::rename(&pipe, &aside).expect("moved");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    let told = machines.done("desktop", &["sync"]);
    assert!(told.contains("could not be written here"), "{told}");
    fs::remove_file(&pipe).expect("removed");
    fs::rename(&aside, &pipe).expect("put back");
    machines.settle(&HOMES);
    for home in HOMES {
        let names: Vec<String> = machines.files(home).into_keys().collect();
        assert_eq!(names, ["LOG.jsonl", "oil.md"], "{home}");
        assert!(machines.done(home, &["status"]).contains("In sync"));
    }
}

/// E2, seed 2: a user renames a file by case only while another edits it.
#[test]
fn case_rename_against_an_edit_leaves_one_file() {
    let machines = Machines::laptop_and_desktop(&[("notes.md", "begin\n")]);
    rename(&machines, "laptop", "notes.md", "NOTES.md");
    machines.write("desktop", "notes.md", "begin\n\nby the desktop\n");
    machines.settle(&HOMES);
    let merged = [("NOTES.md".to_owned(), "begin\n\nby the desktop\n".to_owned())].into();
    assert_eq!(machines.files("laptop"), merged);
    assert_eq!(machines.files("desktop"), merged);
}

/// E3, seed 27: a user puts a file in the place of a directory.
#[test]
fn file_in_place_of_a_directory_arrives() {
    let machines = Machines::laptop_and_desktop(&[("deep/ideas.md", "one\n"), ("notes.md", "begin\n")]);
    fs::remove_dir_all(machines.path("laptop", "deep")).expect("removed");
    machines.write("laptop", "deep", "a file now\n");
    machines.settle(&HOMES);
    assert_eq!(machines.read("desktop", "deep").as_deref(), Some("a file now\n"));
    machines.done("desktop", &["status"]);
}

/// E4, seed 9: two files whose names differ by Unicode form only. One of them is on one machine only.
#[test]
fn unicode_twin_is_named_by_status() {
    let machines = Machines::laptop_and_desktop(&[("caf\u{e9}.md", "composed\n")]);
    machines.write("laptop", "cafe\u{301}.md", "decomposed\n");
    machines.settle(&HOMES);
    assert_eq!(machines.files("desktop").len(), 1);
    let status = machines.shown("laptop", &["status"]);
    assert!(status.starts_with("exit 1\n"), "{status}");
    assert!(status.contains("is not synced: its name is another spelling of a name beside it"), "{status}");
}

/// Returns a laptop whose remote is a folder that Syncthing replicates, and that folder.
fn laptop_with_a_folder() -> (Machines, PathBuf) {
    let machines = Machines::new();
    let shared = make_folder(&machines, "laptop");
    machines.write("laptop", "notes.md", "the lamp is lit\n");
    machines.done("laptop", &["remote", "add", &shared, "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    let folder = folder(&machines, "laptop");
    (machines, folder)
}

/// E5: Syncthing makes a temporary file as long as it will be before it writes it, and leaves it there when it is killed.
#[test]
fn temporary_file_of_a_client_stops_no_sync() {
    let (machines, folder) = laptop_with_a_folder();
    let hollow = fs::File::create(folder.join(".syncthing.notes.md.tmp")).expect("made");
    hollow.set_len(100_000).expect("grown");
    machines.write("laptop", "oil.md", "three barrels\n");
    let shown = machines.done("laptop", &["sync", "--full"]);
    assert!(shown.contains("Sent 1 file."), "{shown}");
}

#[test]
fn status_names_a_file_of_the_folder_that_is_waited_for() {
    let (machines, folder) = laptop_with_a_folder();
    fs::write(folder.join("notes.md"), "the lamp is lit\nby hand\n").expect("written");
    machines.done("laptop", &["sync", "--full"]);
    let shown = machines.done("laptop", &["status"]);
    assert!(shown.contains("In sync. 1 plain file in the folder is not imported yet.\n"), "{shown}");
    assert!(shown.contains("  waits      notes.md in the folder: we wait until "), "{shown}");
    assert!(shown.contains("; if you wrote it here: haversack sync --mine notes.md\n"), "{shown}");
    let line = machines.done("laptop", &["status", "--line"]);
    assert!(line.contains("haversack: 1 in the folder not imported\n"), "{line}");
    machines.done("laptop", &["sync", "--mine", "notes.md"]);
    assert!(!machines.done("laptop", &["status"]).contains("waits"), "it was taken in");
}

#[test]
fn mine_names_a_path_that_does_not_exist() {
    let (machines, folder) = laptop_with_a_folder();
    fs::write(folder.join("oil.md"), "three barrels\n").expect("written");
    let shown = machines.shown("laptop", &["sync", "--mine", "oil.md", "nowhere.md"]);
    assert!(shown.starts_with("exit 1\n"), "{shown}");
    assert!(
        shown.contains("there is no nowhere.md, neither in the memory nor in the synced folder"),
        "{shown}"
    );
    assert!(!machines.path("laptop", "oil.md").exists(), "nothing is imported");
    machines.write("laptop", "wick.md", "new\n");
    machines.done("laptop", &["sync", "--mine", "oil.md", "wick.md"]);
    assert!(machines.path("laptop", "oil.md").exists() && folder.join("wick.md").exists());
}

#[test]
fn doctor_does_not_fail_while_a_sync_runs() {
    let (machines, _) = laptop_with_a_folder();
    let locks = machines.env.path("laptop/state/locks");
    let is_lock = |path: &PathBuf| path.to_string_lossy().ends_with(".vault.lock");
    let held: Vec<fs::File> = fs::read_dir(locks)
        .expect("there")
        .map(|entry| entry.expect("readable").path())
        .filter(is_lock)
        .map(|path| fs::File::open(path).expect("there"))
        .collect();
    assert!(!held.is_empty());
    held.iter().for_each(|file| file.lock().expect("free"));
    let busy = machines.shown("laptop", &["--config", "lock-wait-seconds=0", "doctor"]);
    assert!(!busy.contains("another process is syncing"), "{busy}");
    assert!(busy.contains("OK    logs      a sync is running, so we did not check them"), "{busy}");
    drop(held);
    let free = machines.shown("laptop", &["doctor"]);
    assert!(free.contains("arrived whole, and no conflict copy waits"), "{free}");
}

/// The names of several problems and an unreachable remote fit into one line for a status bar.
#[test]
fn status_line_is_one_clean_line() {
    let line = |machines: &Machines| {
        let output = machines.command("laptop", &["status", "--line"]).output().expect("ran");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        String::from_utf8(output.stdout).expect("text")
    };
    let machines = Machines::new();
    assert_eq!(line(&machines), "haversack: on this machine only\n");
    let (machines, _) = laptop_with_a_folder();
    assert_eq!(line(&machines), "haversack: in sync\n");
    for number in 1..=3 {
        machines.write(
            "laptop",
            &format!("key {number}.md"),
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzQ4rT8vLpN\n",
        );
    }
    machines.write("laptop", "new.md", "oil\n");
    assert_eq!(line(&machines), "haversack: 1 waiting, files held back\n");
    fs::rename(machines.env.path("laptop-sync"), machines.env.path("away")).expect("moved");
    drop(machines.shown("laptop", &["sync"]));
    assert_eq!(line(&machines), "haversack: 1 waiting, remote fails, files held back\n");
}

#[test]
fn join_of_an_empty_store_says_so() {
    let machines = Machines::new();
    machines.done("laptop", &["remote", "add", &machines.url(), "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    machines.write("desktop", "oil.md", "three barrels\n");
    let shown = machines.done("desktop", &["join", &machines.url(), "--device", "desktop", "--yes"]);
    assert!(
        shown.contains(
            "is empty: no machine has sent anything yet. The memory of this machine is sent there: 1 file.\n"
        ),
        "{shown}"
    );
    assert!(shown.contains("Sent 1 file.\n"), "{shown}");
}

/// E5: half of a file, under the name that Syncthing gives it while it arrives.
#[test]
fn temporary_file_of_a_client_becomes_no_memory() {
    let (machines, folder) = laptop_with_a_folder();
    fs::write(folder.join(".syncthing.notes.md.tmp"), "the lamp is l").expect("written");
    machines.done("laptop", &["sync", "--mine"]);
    assert_eq!(machines.files("laptop").keys().collect::<Vec<_>>(), ["notes.md"]);
}

/// E6, seed 31: two homes in a folder. One deletes a file and makes one whose name differs by case only; the other edits the file meanwhile.
#[test]
fn case_twins_made_apart_in_a_folder_stop_no_sync() {
    let machines = Machines::new();
    let mut client = Client::default();
    let mut chance = Chance::new(1);
    let homes = ["laptop", "desktop"];
    machines.write("laptop", "notes.md", "begin\n");
    machines.write("laptop", "oil.md", "low\n");
    machines.done("laptop", &["remote", "add", &make_folder(&machines, "laptop"), "--device", "laptop"]);
    machines.done("laptop", &["sync"]);
    let joined = make_folder(&machines, "desktop");
    client.carry_all(&machines, &homes, &mut chance);
    machines.done("desktop", &["join", &joined, "--device", "desktop", "--yes"]);
    client.carry_all(&machines, &homes, &mut chance);
    machines.done("laptop", &["sync"]);

    machines.done("laptop", &["delete", "notes.md"]);
    machines.done("laptop", &["sync"]);
    machines.write("laptop", "NOTES.md", "another text by the laptop\n");
    machines.done("laptop", &["sync"]);
    machines.write("desktop", "notes.md", "begin\n\nby the desktop\n");
    machines.done("desktop", &["sync"]);
    for _ in 0..3 {
        for home in homes {
            client.carry_all(&machines, &homes, &mut chance);
            machines.done(home, &["sync", "--full"]);
        }
    }
    machines.write("desktop", "oil.md", "low\n\nbarrels: 3\n");
    machines.done("desktop", &["sync"]);
    client.carry_all(&machines, &homes, &mut chance);
    machines.done("laptop", &["sync"]);
    assert_eq!(machines.read("laptop", "oil.md").as_deref(), Some("low\n\nbarrels: 3\n"));
}

/// E8, seed 8: a bound directory is lost, and a session makes a directory in it whose name differs by case only from a lost file.
#[test]
fn restore_of_deleted_files_goes_on_after_one_that_has_no_place() {
    let texts = [("lamp/oil.md", "a\n"), ("lamp/keeper", "b\n"), ("lamp/log.md", "c\n"), ("notes.md", "d\n")];
    let machines = Machines::laptop_and_desktop(&texts);
    let directory = machines.env.path("lamp");
    fs::create_dir_all(&directory).expect("made");
    machines.done("laptop", &["mount", "add", &directory.display().to_string(), "lamp"]);
    machines.done("laptop", &["sync"]);
    fs::remove_dir_all(&directory).expect("lost");
    fs::create_dir_all(directory.join("KEEPER")).expect("made");
    fs::write(directory.join("KEEPER/inner.md"), "new\n").expect("written");
    machines.shown("laptop", &["sync"]);
    let shown = machines.shown("laptop", &["restore", "--deleted"]);
    assert!(shown.starts_with("exit 1\n") && shown.contains("differs only by case"), "{shown}");
    assert!(shown.contains("Restored lamp/oil.md") && shown.contains("Not restored"), "{shown}");
    assert!(directory.join("oil.md").exists() && directory.join("log.md").exists());
}

/// E9, seed 73: a user puts a file in the place of a directory, so its lost files cannot come back.
#[test]
fn files_that_disappeared_are_named() {
    let texts = [
        ("lamp/deep/oil.md", "a\n"),
        ("lamp/deep/wick.md", "b\n"),
        ("lamp/log.md", "c\n"),
        ("notes.md", "d\n"),
    ];
    let machines = Machines::laptop_and_desktop(&texts);
    let directory = machines.env.path("lamp");
    fs::create_dir_all(&directory).expect("made");
    machines.done("laptop", &["mount", "add", &directory.display().to_string(), "lamp"]);
    machines.done("laptop", &["sync"]);
    fs::remove_dir_all(&directory).expect("lost");
    fs::create_dir_all(&directory).expect("made");
    fs::write(directory.join("deep"), "a file now\n").expect("written");
    machines.shown("laptop", &["sync"]);
    let status = machines.shown("laptop", &["status"]);
    let names = "(lamp/deep/oil.md, lamp/deep/wick.md, lamp/log.md)";
    assert!(status.contains("3 files disappeared from") && status.contains(names), "{status}");
    fs::write(directory.join("log.md"), "c\n").expect("put back by the user");
    let shown = machines.shown("laptop", &["restore", "--deleted"]);
    for name in ["lamp/deep/oil.md", "lamp/deep/wick.md"] {
        let line = shown.lines().find(|line| line.starts_with("Not restored") && line.contains(name));
        assert!(line.is_some_and(|line| line.contains("lamp/deep is a file, not a directory")), "{shown}");
    }
}
