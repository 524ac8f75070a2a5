//! Directories that other programs write, bound to places in the memory.

use insta::assert_snapshot;

use crate::machines::{Machines, files_below};

const PREFIX: &str = "claude_memory/lighthouse";

/// Returns a laptop and a desktop, each with a directory bound to the same place.
fn bound() -> Machines {
    let machines = Machines::laptop_and_desktop(&[("root.md", "root\n")]);
    for machine in ["laptop", "desktop"] {
        let directory = machines.env.path(&format!("{machine}-project"));
        std::fs::create_dir_all(&directory).expect("made");
        machines.done(machine, &["mount", "add", &directory.display().to_string(), PREFIX]);
    }
    machines
}

#[test]
fn a_bound_directory_is_carried() {
    let machines = bound();
    let at = |machine: &str, name: &str| machines.env.path(&format!("{machine}-project/{name}"));
    std::fs::write(at("laptop", "fact.md"), "one\n").expect("written");
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["sync"]);
    assert_eq!(std::fs::read_to_string(at("desktop", "fact.md")).expect("carried"), "one\n");
    assert_eq!(machines.files("desktop").len(), 1, "it is only in its directory");
    // The verbs see it in its place.
    machines.fed("desktop", &["append", &format!("{PREFIX}/fact.md")], "two\n");
    assert_eq!(std::fs::read_to_string(at("desktop", "fact.md")).expect("there"), "one\ntwo\n");
    assert_snapshot!(machines.shown("desktop", &["ls", PREFIX]), @r#"
    exit 0
    --- stdout
    8  just now  lighthouse/fact.md
    --- stderr
    "#);
    machines.settle(&["desktop", "laptop"]);
    assert_eq!(std::fs::read_to_string(at("laptop", "fact.md")).expect("there"), "one\ntwo\n");
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 0
    --- stdout
    Nothing new.
    --- stderr
    "#);
}

#[test]
fn push_does_not_count_commits_of_this_home_as_received() {
    let machines = bound();
    let fact = machines.env.path("laptop-project/fact.md");
    std::fs::write(&fact, "one\n").expect("written");
    machines.write("laptop", "root.md", "other root\n");
    let pushed = machines.done("laptop", &["push", &format!("{PREFIX}/fact.md")]);
    assert!(pushed.contains("Sent 1 file."), "{pushed}");
    // The memory itself takes in the commit of the bound directory, which is on the same machine.
    let pushed = machines.done("laptop", &["push", "root.md"]);
    assert!(pushed.contains("Sent 1 file."), "{pushed}");
    // The same while the bound directory is away.
    let (project, away) = (machines.env.path("laptop-project"), machines.env.path("away"));
    std::fs::write(&fact, "two\n").expect("written");
    machines.done("laptop", &["push", &format!("{PREFIX}/fact.md")]);
    std::fs::rename(&project, &away).expect("moved away");
    machines.write("laptop", "root.md", "third root\n");
    let pushed = machines.done("laptop", &["push", "root.md"]);
    assert!(pushed.contains("Sent 1 file."), "{pushed}");
}

#[test]
fn its_plain_copies_are_in_the_remote() {
    let machines = bound();
    let at = |name: &str| machines.env.path(&format!("laptop-project/{name}"));
    let plain = || files_below(&machines.env.path("remote").join(PREFIX));
    std::fs::write(at("fact.md"), "one\n").expect("written");
    machines.done("laptop", &["sync"]);
    assert_eq!(plain(), [("fact.md".to_owned(), "one\n".to_owned())].into());
    // Beside a file of the memory itself, changed in the same sync.
    std::fs::write(at("fact.md"), "two\n").expect("written");
    machines.write("laptop", "root.md", "other root\n");
    machines.done("laptop", &["sync"]);
    assert_eq!(plain()["fact.md"], "two\n");
    let root = machines.env.path("remote/root.md");
    assert_eq!(std::fs::read_to_string(root).expect("mirrored"), "other root\n");
    // So many that they are written in the background.
    for number in 0..260 {
        std::fs::write(at(&format!("{number:03}.md")), "x\n").expect("written");
        machines.write("laptop", &format!("{number:03}.md"), "y\n");
    }
    machines.done("laptop", &["sync"]);
    machines.done("laptop", &["mirror", "--at-once"]);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while plain().len() < 261 {
        // The sync started one, and there is never a second.
        assert!(std::time::Instant::now() < deadline, "{}", plain().len());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // Another machine has nothing to add.
    machines.done("desktop", &["sync"]);
    machines.done("desktop", &["sync", "--full"]);
    assert_eq!(machines.shown("laptop", &["sync"]).lines().nth(2), Some("Nothing new."));
}

#[test]
fn two_directories_at_one_place_are_like_two_machines() {
    let machines = bound();
    let second = machines.env.path("second");
    std::fs::create_dir_all(&second).expect("made");
    std::fs::write(second.join("other.md"), "other\n").expect("written");
    std::fs::write(machines.env.path("laptop-project/fact.md"), "one\n").expect("written");
    machines.done("laptop", &["mount", "add", &second.display().to_string(), PREFIX]);
    machines.done("laptop", &["sync"]);
    let first = machines.env.path("laptop-project");
    assert_eq!(files_below(&first), files_below(&second));
    assert_eq!(files_below(&first).len(), 2);
    std::fs::write(first.join("fact.md"), "one\n\nfirst\n").expect("written");
    std::fs::write(second.join("fact.md"), "zero\n\none\n").expect("written");
    machines.settle(&["laptop", "desktop"]);
    let merged = "zero\n\none\n\nfirst\n";
    for directory in [&first, &second, &machines.env.path("desktop-project")] {
        assert_eq!(std::fs::read_to_string(directory.join("fact.md")).expect("there"), merged);
    }
}

/// A user names a file by the path that an editor or agent shows.
#[test]
fn push_takes_real_paths() {
    let machines = bound();
    let project = machines.env.path("laptop-project");
    let push = |directory: &std::path::Path, path: &str| {
        let mut command =
            machines.env.command(&["--home", &machines.env.path("laptop").display().to_string()]);
        machines.env.shown(command.args(["push", path]).current_dir(directory))
    };
    std::fs::write(project.join("fact.md"), "fact\n").expect("written");
    machines.done("laptop", &["sync"]);
    let sent = "exit 0\n--- stdout\nSent 1 file.\n--- stderr\n";
    let at = |name: &str| project.join(name).display().to_string();
    for (number, (directory, path)) in [
        (machines.env.path(""), at("fact.md")),
        (project.clone(), "fact.md".to_owned()),
        (project.clone(), "./fact.md".to_owned()),
        (machines.env.path(""), "laptop-project/fact.md".to_owned()),
        (machines.env.path(""), "~/laptop-project/fact.md".to_owned()),
        (machines.env.path(""), format!("{PREFIX}/fact.md")),
        (machines.env.path(""), format!("/memories/{PREFIX}/fact.md")),
    ]
    .into_iter()
    .enumerate()
    {
        std::fs::write(project.join("fact.md"), format!("{number}\n")).expect("written");
        assert_eq!(push(&directory, &path), sent, "{path}");
    }
    machines.done("laptop", &["sync"]);
    machines.write("laptop", "root.md", "changed\n");
    assert_eq!(push(&project, &machines.path("laptop", "root.md").display().to_string()), sent);
    machines.done("laptop", &["sync"]);
    std::fs::remove_file(project.join("fact.md")).expect("removed");
    assert_eq!(push(&machines.env.path(""), &at("fact.md")), sent, "a deletion");
}

#[test]
fn push_refuses_what_is_no_file_of_the_memory() {
    let machines = bound();
    let project = machines.env.path("laptop-project");
    std::fs::create_dir_all(project.join("notes")).expect("made");
    std::fs::write(project.join("notes/fact.md"), "one\n").expect("written");
    std::fs::write(project.join("root.md"), "another\n").expect("written");
    std::fs::write(machines.env.path("other.md"), "no memory\n").expect("written");
    let home = machines.env.path("laptop").display().to_string();
    let push = |path: &str| {
        machines.env.shown(machines.env.command(&["--home", &home, "push", path]).current_dir(&project))
    };
    let project = project.display().to_string();
    let shown: Vec<String> = [
        "../other.md".to_owned(),
        machines.env.path("other.md").display().to_string(),
        "/etc/hosts".to_owned(),
        format!("{project}/typo.md"),
        "typo.md".to_owned(),
        "notes".to_owned(),
        format!("{PREFIX}/notes"),
        "root.md".to_owned(),
    ]
    .iter()
    .map(|path| push(path).replace("--- stdout\n--- stderr\n", ""))
    .collect();
    assert_snapshot!(shown.concat(), @r#"
    exit 1
    Error: ../other.md is not in the memory: it is in no bound directory, and not in ~/laptop/memory
    Hint: See the files of the memory: haversack ls. See the bound directories: haversack mount list
    exit 1
    Error: BASE/user/other.md is not in the memory: it is in no bound directory, and not in ~/laptop/memory
    Hint: See the files of the memory: haversack ls. See the bound directories: haversack mount list
    exit 1
    Error: /etc/hosts is not in the memory: it is in no bound directory, and not in ~/laptop/memory
    Hint: See the files of the memory: haversack ls. See the bound directories: haversack mount list
    exit 1
    Error: the memory has no file BASE/user/laptop-project/typo.md
    Hint: See the files of the memory: haversack ls
    exit 1
    Error: the memory has no file typo.md
    Hint: See the files of the memory: haversack ls
    exit 1
    Error: notes is a directory, and one file is needed
    Hint: Name a file in it: haversack ls
    exit 1
    Error: lighthouse/notes is a directory, and one file is needed
    Hint: Name a file in it: haversack ls
    exit 1
    Error: root.md could mean 2 files
    Hint: Name one: lighthouse/root.md or /memories/root.md
    "#);
}

/// A link in place of a file in a bound directory does not keep the rest from being carried.
#[cfg(unix)]
#[test]
fn link_in_a_bound_directory_stops_only_its_file() {
    let machines = bound();
    let fact = machines.env.path("laptop-project/fact.md");
    std::fs::write(&fact, "one\n").expect("written");
    machines.settle(&["laptop", "desktop"]);
    std::fs::remove_file(&fact).expect("removed");
    std::os::unix::fs::symlink("/nowhere", &fact).expect("linked");
    std::fs::write(machines.env.path("desktop-project/fact.md"), "one\ntwo\n").expect("written");
    machines.write("desktop", "notes.md", "from the desktop\n");
    machines.done("desktop", &["sync"]);
    machines.write("laptop", "here.md", "from the laptop\n");
    let shown = machines.done("laptop", &["sync"]);
    assert_eq!(shown.matches("fact.md could not be").count(), 1, "{shown}");
    assert_eq!(machines.read("laptop", "notes.md").as_deref(), Some("from the desktop\n"));
    machines.done("desktop", &["sync"]);
    assert_eq!(machines.read("desktop", "here.md").as_deref(), Some("from the laptop\n"));
    std::fs::remove_file(&fact).expect("removed");
    machines.done("laptop", &["sync"]);
    assert_eq!(std::fs::read_to_string(&fact).expect("there"), "one\ntwo\n");
}

#[test]
fn a_directory_that_vanished_deletes_nothing() {
    let machines = bound();
    let directory = machines.env.path("laptop-project");
    for name in ["one.md", "two.md", "three.md"] {
        std::fs::write(directory.join(name), name).expect("written");
    }
    machines.settle(&["laptop", "desktop"]);
    std::fs::rename(&directory, machines.env.path("moved")).expect("moved");
    assert_snapshot!(machines.shown("laptop", &["sync"]), @r#"
    exit 0
    --- stdout
    Nothing new.
      BASE/user/laptop-project is not there, may not be read, or was emptied: nothing was deleted anywhere
      → put it back, or: haversack mount remove BASE/user/laptop-project
    --- stderr
    "#);
    assert_snapshot!(machines.shown("laptop", &["status"]), @r#"
    exit 1
    --- stdout
    1 thing needs you. All you wrote is safe on this machine.

      1  BASE/user/laptop-project is missing or cannot be read. Its memory (lighthouse) is kept, and nothing was deleted
         → put it back, or: haversack mount remove BASE/user/laptop-project

      files      1
      machines   laptop (this one)
    --- stderr
    "#);
    machines.done("desktop", &["sync"]);
    assert_eq!(files_below(&machines.env.path("desktop-project")).len(), 3);
    // Emptied is the same.
    std::fs::create_dir(&directory).expect("made");
    machines.done("laptop", &["sync"]);
    machines.done("desktop", &["sync"]);
    assert_eq!(files_below(&machines.env.path("desktop-project")).len(), 3);
    // Let go, its place is in the memory itself again.
    machines.done("laptop", &["mount", "remove", &directory.display().to_string()]);
    machines.done("laptop", &["sync"]);
    assert_eq!(machines.files("laptop").len(), 4);
}

#[test]
fn what_was_in_the_memory_before_moves_into_the_directory() {
    let machines = Machines::new();
    machines.write("laptop", &format!("{PREFIX}/old.md"), "old\n");
    machines.write("laptop", &format!("{PREFIX}/both.md"), "# Both\n\nhere\n");
    let directory = machines.env.path("project");
    std::fs::create_dir(&directory).expect("made");
    std::fs::write(directory.join("both.md"), "# Both\n\nthere\n").expect("written");
    machines.done("laptop", &["mount", "add", &directory.display().to_string(), PREFIX]);
    assert_eq!(machines.files("laptop").len(), 0);
    let files = files_below(&directory);
    assert_eq!(files["old.md"], "old\n");
    assert!(files["both.md"].contains("here") && files["both.md"].contains("there"), "{files:?}");
    // Without a remote, letting go brings everything back.
    machines.done("laptop", &["mount", "remove", &directory.display().to_string()]);
    assert_eq!(machines.files("laptop").len(), 2);
    assert_eq!(files_below(&directory).len(), 2);
}

#[test]
fn directories_that_are_never_bound() {
    let machines = Machines::new();
    for name in [
        ".ssh",
        ".aws/deep",
        ".claude",
        ".claude/projects",
        ".claude/projects/-work",
        "laptop",
        "laptop/memory",
    ] {
        let directory = machines.env.path(name);
        std::fs::create_dir_all(&directory).expect("made");
        let shown = machines.shown("laptop", &["mount", "add", &directory.display().to_string(), "x"]);
        assert!(shown.starts_with("exit 1\n") && shown.contains("is not bound: "), "{name}: {shown}");
    }
    let memory = machines.env.path(".claude/projects/-work/memory");
    std::fs::create_dir_all(&memory).expect("made");
    machines.done("laptop", &["mount", "add", &memory.display().to_string(), "x"]);
    let base = machines.env.path("");
    assert_snapshot!(machines.shown("laptop", &["mount", "add", &base.display().to_string(), "y"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: BASE/user is not bound: it is Haversack's own home, or around it
    Hint: Bind the directory with the memory files alone
    "#);
    assert_snapshot!(machines.shown("laptop", &["mount", "add", "nowhere", "y"]), @r#"
    exit 1
    --- stdout
    --- stderr
    Error: there is no directory nowhere
    Hint: Make it first, or choose another one
    "#);
    assert_snapshot!(machines.shown("laptop", &["mount", "list"]), @r#"
    exit 0
    --- stdout
    x  ~/.claude/projects/-work/memory
    --- stderr
    "#);
}

#[test]
fn write_below_an_absent_directory_reaches_it_later() {
    let machines = bound();
    let deep = machines.env.path("laptop-deep");
    std::fs::create_dir_all(&deep).expect("made");
    machines.done("laptop", &["mount", "add", &deep.display().to_string(), &format!("{PREFIX}/deep")]);
    std::fs::write(deep.join("lamp.md"), "red\n").expect("written");
    machines.settle(&["laptop", "desktop"]);
    // The inner directory is away. The verb must not write into the directory around it.
    let away = machines.env.path("away");
    std::fs::rename(&deep, &away).expect("moved");
    machines.done("laptop", &["create", &format!("{PREFIX}/deep/tide.md"), "high\n"]);
    assert!(!machines.env.path("laptop-project/deep").exists(), "it is not in the directory around");
    machines.done("laptop", &["sync"]);
    std::fs::rename(&away, &deep).expect("moved");
    machines.settle(&["laptop", "desktop"]);
    assert_eq!(std::fs::read_to_string(deep.join("tide.md")).expect("there"), "high\n");
    let other = machines.env.path("desktop-project/deep/tide.md");
    assert_eq!(std::fs::read_to_string(other).expect("carried"), "high\n");
}
