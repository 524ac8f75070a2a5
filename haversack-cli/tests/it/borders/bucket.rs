//! A writer in the remote that is hostile: it has the access of one machine and follows no rule.

use std::fs;

use crate::agents::Agents;
use crate::machines::{Machines, files_below};

const LIGHTHOUSE: &str = "git@github.com:me/lighthouse.git";
const ID: &str = "lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb";

/// A laptop with 43 files, and a desktop that deletes all but one and says that it means it.
fn with_mass_deletion() -> Machines {
    let names: Vec<String> = (0..43).map(|number| format!("notes/{number:02}.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "memory\n")).collect();
    let machines = Machines::laptop_and_desktop(&files);
    for name in &names[1..] {
        fs::remove_file(machines.path("desktop", name)).expect("there");
    }
    machines.done("desktop", &["sync", "--allow-deletes"]);
    machines
}

#[test]
fn mass_deletion_of_another_machine_is_held() {
    let machines = with_mass_deletion();
    for _ in 0..2 {
        let told = machines.done("laptop", &["sync"]);
        assert!(told.contains("42 files were deleted on another machine, very many at once"), "{told}");
        assert_eq!(machines.files("laptop").len(), 43);
    }
    let status = machines.shown("laptop", &["status"]);
    assert!(status.starts_with("exit 1\n") && status.contains("haversack restore --deleted"), "{status}");
    // They are not sent as new.
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.files("desktop").len(), 1);
    // An edit wins over the deletion.
    machines.write("laptop", "notes/07.md", "memory\nedited\n");
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.files("desktop").len(), 2);
    machines.done("laptop", &["sync", "--allow-deletes"]);
    assert_eq!(machines.files("laptop"), machines.files("desktop"));
    assert!(machines.done("laptop", &["status"]).contains("In sync"));
}

#[test]
fn held_files_are_sent_again_if_the_user_says_so() {
    let machines = with_mass_deletion();
    machines.done("laptop", &["sync"]);
    let told = machines.done("laptop", &["restore", "--deleted"]);
    assert!(told.contains("Kept notes/01.md: the next sync sends it again"), "{told}");
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(machines.files("desktop").len(), 43);
    assert!(machines.done("laptop", &["status"]).contains("In sync"));
}

#[test]
fn settings_of_agents_are_never_written_into_a_bound_directory() {
    let agents = Agents::laptop_and_desktop();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.remember("laptop", &root, "lamp.md", "white\n");
    agents.start("laptop", &root);
    agents.rest();
    agents.machines.settle(&["laptop", "desktop"]);
    // The desktop has no checkout: these are plain files of its memory.
    let names = [
        "CLAUDE.md",
        "AGENTS.md",
        ".mcp.json",
        ".claude/settings.json",
        ".claude/commands/x.md",
        ".git/hooks/pre-commit",
        "hooks/hooks.json",
        "skills/x/SKILL.md",
        "commands/x.md",
        "manifest.json",
        ".haversack/incoming/x",
        ".haversack/kept/0123456789abcdef/lamp.md",
    ];
    for name in names {
        agents.machines.write("desktop", &format!("claude_memory/{ID}/{name}"), "canary-petrel\n");
    }
    agents.machines.write("desktop", &format!("claude_memory/{ID}/tide.md"), "high\n");
    agents.machines.settle(&["desktop", "laptop"]);
    let memory = agents.memory("laptop", &root);
    let found = files_below(&memory);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["lamp.md", "tide.md"], "{found:?}");
    let hidden = fs::read_dir(&memory).expect("there").flatten().map(|entry| entry.file_name());
    for name in hidden.map(|name| name.to_string_lossy().into_owned()) {
        assert!(["lamp.md", "tide.md", ".haversack"].contains(&name.as_str()), "{name}");
    }
    // No face writes them either.
    let place = format!("claude_memory/{ID}/CLAUDE.md");
    let told = agents.shown("laptop", &["create", &place]);
    assert!(told.starts_with("exit 1\n"), "{told}");
    assert!(!memory.join("CLAUDE.md").exists());
    // A checkout that is bound later does not get them from the memory of its machine.
    let clone = agents.repository("desktop", "lighthouse", LIGHTHOUSE);
    agents.start("desktop", &clone);
    agents.rest();
    let found = files_below(&agents.memory("desktop", &clone));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["lamp.md", "tide.md"], "{found:?}");
}

#[test]
fn flood_of_files_stops_before_it_is_written() {
    let machines = Machines::laptop_and_desktop(&[("root.md", "root\n")]);
    for number in 0..30 {
        machines.write("desktop", &format!("flood/{number}.md"), &"x".repeat(100_000));
    }
    machines.done("desktop", &["sync"]);
    for limit in ["receive.files=20", "receive.megabytes=1"] {
        let told = machines.shown("laptop", &["sync", "--config", limit]);
        assert!(told.starts_with("exit 1\n") && told.contains("the sync stopped before"), "{told}");
        assert!(told.contains("--config receive.files=NUMBER"), "{told}");
        assert_eq!(machines.files("laptop").len(), 1);
    }
    machines.done("laptop", &["sync"]);
    assert_eq!(machines.files("laptop").len(), 31);
    // A machine that joins is bound by it too.
    let url = machines.url();
    let told = machines.shown("third", &["join", &url, "--yes", "--config", "receive.files=20"]);
    assert!(told.starts_with("exit 1\n") && told.contains("the sync stopped before"), "{told}");
}

#[test]
fn unreadable_commit_is_named_with_its_cure() {
    let machines = Machines::laptop_and_desktop(&[("root.md", "root\n")]);
    machines.write("desktop", "tide.md", "high\n");
    machines.done("desktop", &["sync"]);
    let log = machines.env.path("remote/.haversack/log");
    let newest = fs::read_dir(&log).expect("there").flatten().map(|entry| entry.path()).max().expect("one");
    fs::write(&newest, "nonsense").expect("written");
    machines.write("laptop", "own.md", "own\n");
    let told = machines.shown("laptop", &["sync"]);
    let name = newest.file_name().expect("named").to_string_lossy().into_owned();
    assert!(
        told.starts_with("exit 1\n")
            && told.contains(&format!(".haversack/log/{name}) cannot be read"))
            && told.contains("Put that file back from a backup"),
        "{told}"
    );
    assert_eq!(machines.read("laptop", "own.md").as_deref(), Some("own\n"));
}
