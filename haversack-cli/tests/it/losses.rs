//! Memories that disappear, move or cannot be written: nothing is lost on the other machine.

use insta::assert_snapshot;

use crate::machines::Machines;

/// Returns two machines with so many memories of one project.
fn with_memories(count: usize) -> Machines {
    let files: Vec<(String, String)> = (0..count)
        .map(|number| (format!("claude_memory/lighthouse/{number:02}.md"), format!("memory {number}\n")))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    Machines::laptop_and_desktop(&files)
}

fn memory(number: usize) -> String {
    format!("claude_memory/lighthouse/{number:02}.md")
}

#[test]
fn lost_directory_with_one_new_file_deletes_nothing_elsewhere() {
    let machines = with_memories(8);
    std::fs::remove_dir_all(machines.path("laptop", "claude_memory")).expect("removed");
    machines.write("laptop", "claude_memory/lighthouse/new.md", "the session's\n");
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 0
    --- stdout
    Sent 1 file.
      8 files disappeared here. We did not delete them on your other machines
      → to bring them back: haversack restore --deleted; if you meant to delete them: haversack sync --allow-deletes
    --- stderr
    "#);
    for number in 0..9 {
        machines.write("laptop", &format!("claude_memory/lighthouse/more-{number}.md"), "more\n");
        machines.done("laptop", &["sync"]);
    }
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.files("desktop").len(), 8 + 10);
    machines.done("laptop", &["restore", "--deleted"]);
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert_eq!(machines.files("laptop").len(), 18);
}

#[test]
fn eight_deletions_at_a_time_do_not_empty_a_memory() {
    let machines = with_memories(40);
    for batch in 0..5 {
        for number in batch * 8..batch * 8 + 8 {
            std::fs::remove_file(machines.path("laptop", &memory(number))).expect("removed");
        }
        machines.write("laptop", &format!("notes-{batch}.md"), "a note\n");
        machines.done("laptop", &["sync"]);
        machines.done("desktop", &["sync"]);
    }
    let left = machines.files("desktop").keys().filter(|name| name.contains("lighthouse")).count();
    assert_eq!(left, 32);
}

#[test]
fn deletions_by_our_own_verbs_are_meant() {
    let machines = with_memories(6);
    for number in 0..5 {
        machines.done("laptop", &["delete", &memory(number)]);
    }
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.files("desktop").len(), 1);
    // A file that comes back and disappears then was not deleted by the verb.
    for number in 0..5 {
        machines.write("desktop", &memory(number), "again\n");
    }
    machines.settle(&["desktop", "laptop"]);
    for number in 0..5 {
        std::fs::remove_file(machines.path("laptop", &memory(number))).expect("removed");
    }
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.files("desktop").len(), 6);
}

#[test]
fn renamed_memories_are_no_deletions() {
    let machines = with_memories(8);
    let from = machines.path("laptop", "claude_memory/lighthouse");
    std::fs::rename(&from, machines.path("laptop", "claude_memory/beacon")).expect("renamed");
    machines.settle(&["laptop", "desktop"]);
    let names: Vec<String> = machines.files("desktop").into_keys().collect();
    assert_eq!(names.len(), 8);
    assert!(names.iter().all(|name| name.starts_with("claude_memory/beacon/")), "{names:?}");
}

#[test]
fn renamed_memory_with_a_secret_stays_on_the_other_machine() {
    let machines = Machines::laptop_and_desktop(&[
        ("ports.md", "staging listens on 5433\nproduction on 5434\n"),
        ("other.md", "x\n"),
    ]);
    std::fs::remove_file(machines.path("laptop", "ports.md")).expect("removed");
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    machines.write(
        "laptop",
        "services.md",
        &format!("staging listens on 5433\nproduction on 5434\ntoken {secret}\n"),
    );
    let told = machines.done("laptop", &["sync"]);
    assert!(told.contains("services.md stays on this machine"), "{told}");
    machines.done("desktop", &["sync"]);
    assert!(machines.read("desktop", "ports.md").is_some(), "the old name stays until the new one is sent");
    machines.write("laptop", "services.md", "staging listens on 5433\nproduction on 5434\n");
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert_eq!(machines.files("desktop").len(), 2);
}

#[cfg(unix)]
#[test]
fn link_in_place_of_a_memory_is_named_and_the_rest_is_synced() {
    let machines = Machines::laptop_and_desktop(&[("MEMORY.md", "- one\n"), ("other.md", "x\n")]);
    std::fs::remove_file(machines.path("laptop", "MEMORY.md")).expect("removed");
    std::os::unix::fs::symlink("/dev/null", machines.path("laptop", "MEMORY.md")).expect("linked");
    machines.write("desktop", "MEMORY.md", "- one\n- two\n");
    machines.write("desktop", "other.md", "x\ny\n");
    machines.done("desktop", &["sync"]);
    machines.write("laptop", "mine.md", "mine\n");
    let told = machines.done("laptop", &["sync"]);
    assert!(told.contains("MEMORY.md could not be written here"), "{told}");
    assert_eq!(machines.read("laptop", "other.md").as_deref(), Some("x\ny\n"));
    let told = machines.shown("laptop", &["status"]);
    assert!(told.starts_with("exit 1") && told.contains("MEMORY.md could not be written here"), "{told}");
    std::fs::remove_file(machines.path("laptop", "MEMORY.md")).expect("removed");
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.read("laptop", "MEMORY.md").as_deref(), Some("- one\n- two\n"));
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
}

#[test]
fn case_rename_arrives_as_a_rename() {
    let machines = Machines::laptop_and_desktop(&[("notes.md", "one\n"), ("other.md", "x\n")]);
    std::fs::rename(machines.path("laptop", "notes.md"), machines.path("laptop", "NOTES.md"))
        .expect("renamed");
    machines.write("desktop", "notes.md", "one\ntwo\n");
    machines.settle(&["desktop", "laptop"]);
    for machine in ["laptop", "desktop"] {
        let names: Vec<String> = machines.files(machine).into_keys().collect();
        assert_eq!(names, ["NOTES.md", "other.md"], "{machine}");
        assert_eq!(machines.read(machine, "NOTES.md").as_deref(), Some("one\ntwo\n"));
        assert!(machines.done(machine, &["status"]).contains("In sync"));
    }
}

#[test]
fn unicode_spelling_of_a_name_is_no_change() {
    let machines = Machines::laptop_and_desktop(&[("caf\u{e9}.md", "one\n"), ("other.md", "x\n")]);
    let decomposed = machines.path("laptop", "cafe\u{301}.md");
    std::fs::rename(machines.path("laptop", "caf\u{e9}.md"), &decomposed).expect("renamed");
    assert!(machines.done("laptop", &["sync"]).contains("Nothing new."));
    machines.write("desktop", "caf\u{e9}.md", "one\ntwo\n");
    machines.settle(&["desktop", "laptop"]);
    assert_eq!(std::fs::read_to_string(&decomposed).expect("the laptop keeps its spelling"), "one\ntwo\n");
    assert_eq!(machines.files("laptop").len(), 2);
    assert_eq!(machines.files("desktop").len(), 2);
}

#[test]
fn second_spelling_of_a_name_is_named() {
    let machines = Machines::laptop_and_desktop(&[("caf\u{e9}.md", "one\n"), ("other.md", "x\n")]);
    machines.write("laptop", "cafe\u{301}.md", "another text\n");
    machines.done("laptop", &["sync"]);
    let told = machines.shown("laptop", &["status"]);
    assert!(
        told.starts_with("exit 1") && told.contains("is not synced: its name is another spelling"),
        "{told}"
    );
}
