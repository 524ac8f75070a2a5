use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use insta::assert_snapshot;

use crate::environment::TestEnv;
use crate::machines::Machines;

fn with_memory() -> TestEnv {
    let env = TestEnv::new();
    let memory = env.path(".local/share/haversack/memory");
    fs::create_dir_all(&memory).expect("made");
    fs::set_permissions(&memory, fs::Permissions::from_mode(0o700)).expect("changed");
    fs::write(memory.join("notes.md"), "staging listens on 5433\n").expect("written");
    env
}

#[test]
fn before_the_first_write_nothing_is_wrong_and_nothing_is_made() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["doctor"]), @r#"
    exit 0
    --- stdout
    OK    backend   device-local
    OK    home      BASE/user/.local/share/haversack (default): no memory yet; the first write makes it
    --- stderr
    "#);
    assert_eq!(fs::read_dir(env.path("")).expect("listed").count(), 0);
}

#[test]
fn a_sound_memory_is_ok_and_left_as_it_was() {
    let env = with_memory();
    assert_snapshot!(env.run(&["doctor"]), @r#"
    exit 0
    --- stdout
    OK    backend   device-local
    OK    home      BASE/user/.local/share/haversack (default)
    OK    writes    created, replaced, compared and deleted a test object
    OK    files     1 file, 24 bytes
    OK    kept      no text of another program waits to be merged
    --- stderr
    "#);
    let memory = env.path(".local/share/haversack/memory");
    assert_eq!(fs::read_to_string(memory.join("notes.md")).expect("read"), "staging listens on 5433\n");
}

#[test]
fn what_should_be_looked_at_is_a_warning_with_a_cure() {
    let env = with_memory();
    let memory = env.path(".local/share/haversack/memory");
    fs::set_permissions(&memory, fs::Permissions::from_mode(0o755)).expect("changed");
    symlink("/etc/passwd", memory.join("link")).expect("linked");
    fs::write(memory.join("NOTES.md"), "a twin").expect("written");
    fs::create_dir_all(memory.join(".haversack/kept/0123456789abcdef")).expect("made");
    fs::write(memory.join(".haversack/kept/0123456789abcdef/notes.md"), "an editor's text").expect("written");
    assert_snapshot!(env.run(&["doctor"]), @r#"
    exit 0
    --- stdout
    OK    backend   device-local
    WARN  home      BASE/user/.local/share/haversack (default): other users of this machine can look into it (mode 755)
                    → chmod 700 BASE/user/.local/share/haversack/memory
    OK    writes    created, replaced, compared and deleted a test object
    WARN  files     2 files, 30 bytes; odd: link: it is a symbolic link, and links are not followed; notes.md: NOTES.md differs from it only by case, and some disks cannot hold both
                    → Rename or remove these files, or make them readable. Haversack does not touch them
    WARN  kept      1 text was saved by another program while Haversack wrote, kept aside; the first is .haversack/kept/0123456789abcdef/notes.md
                    → Copy the parts that you need from there, then delete it
    --- stderr
    "#);
}

#[test]
fn what_does_not_work_is_a_failure() {
    let env = TestEnv::new();
    fs::create_dir_all(env.path("other")).expect("made");
    fs::write(env.path("other/memory"), "a file in the way").expect("written");
    assert_snapshot!(env.run(&["--home", "other", "doctor"]), @r#"
    exit 1
    --- stdout
    OK    backend   device-local
    FAIL  home      other/memory is not a directory
                    → Move it away, or choose another home with --home
    --- stderr
    "#);
    let mut command = env.command(&["doctor", "--json"]);
    let output = command.env("HAVERSACK_HOME", env.path("other")).output().expect("it ran");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    assert_eq!((output.status.code(), &json["verdict"]), (Some(1), &"FAIL".into()));
}

#[test]
fn the_home_is_chosen_by_flag_then_environment() {
    let env = TestEnv::new();
    let chosen = |command: &mut std::process::Command| {
        let shown = env.shown(command);
        shown.lines().find(|line| line.contains("  home  ")).expect("a home").to_owned()
    };
    let by_environment = chosen(env.command(&["doctor"]).env("HAVERSACK_HOME", "/nowhere/by-environment"));
    assert_snapshot!(by_environment, @r#"OK    home      /nowhere/by-environment (HAVERSACK_HOME): no memory yet; the first write makes it"#);
    let by_flag = ["doctor", "--home", "/nowhere/by-flag"];
    assert_snapshot!(chosen(env.command(&by_flag).env("HAVERSACK_HOME", "/nowhere/x")), @r#"OK    home      /nowhere/by-flag (--home): no memory yet; the first write makes it"#);
    assert_snapshot!(env.shown(env.command(&["doctor"]).env("HAVERSACK_HOME", "")), @r#"
    exit 1
    --- stdout
    FAIL  settings  the home directory given by HAVERSACK_HOME is empty
                    → Name a directory, or leave it out for the default
    --- stderr
    "#);
}

/// Returns the lines of a report that are about one thing.
fn lines_about(shown: &str, subject: &str) -> String {
    let lines: Vec<&str> = shown.lines().collect();
    let is_about = |line: &str| line.get(6..).is_some_and(|rest| rest.starts_with(subject));
    let after = |at: usize| lines.get(at + 1).filter(|line| line.contains("→")).copied();
    let found = (0..lines.len()).filter(|at| is_about(lines[*at]));
    found.flat_map(|at| [Some(lines[at]), after(at)]).flatten().map(|line| format!("{line}\n")).collect()
}

#[test]
fn doctor_looks_at_the_remote() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "5433\n")]);
    let remote = machines.env.path("remote");
    let about = || lines_about(&machines.shown("laptop", &["doctor"]), "remote");
    let well = about();
    fs::rename(&remote, remote.with_extension("away")).expect("moved");
    let gone = about();
    let local = machines
        .env
        .shown(machines.command("laptop", &["doctor"]).env("HAVERSACK_KEEP_MEMORY_LOCAL", "true"));
    fs::create_dir(&remote).expect("made");
    let emptied = about();
    machines.write("tablet", "other.md", "other\n");
    machines.done("tablet", &["remote", "add", &machines.url(), "--device", "tablet"]);
    machines.done("tablet", &["sync"]);
    assert_snapshot!([well, gone, lines_about(&local, "remote"), emptied, about()].concat(), @r#"
    OK    remote    file://BASE/user/remote answers, and is this memory's store
    FAIL  remote    the remote is not there: BASE/user/remote
                    → All you wrote is safe on this machine. Bring the remote back, then: haversack sync. If it is gone for good: haversack remote rebuild
    OK    remote    none is used: memory is kept on this machine (keep-memory-local)
    FAIL  remote    file://BASE/user/remote answers, and this memory's store is gone from it
                    → Nothing is lost on this machine. Put the store back: haversack remote rebuild. Or leave this remote: haversack remote remove
    FAIL  remote    file://BASE/user/remote holds another store than this memory's: that of "tablet"
                    → Rebuild this memory's store at another place: haversack remote rebuild URL
    "#);
    assert!(machines.shown("laptop", &["doctor"]).starts_with("exit 1\n"));
}

#[test]
fn doctor_counts_the_files_that_status_counts() {
    let machines = Machines::laptop_and_desktop(&[("ports.md", "5433\n")]);
    let project = machines.env.path("project");
    fs::create_dir_all(&project).expect("made");
    fs::write(project.join("fact.md"), "one\n").expect("written");
    machines.done("laptop", &["mount", "add", &project.display().to_string(), "claude_memory/lighthouse"]);
    machines.done("laptop", &["sync"]);
    let status = machines.shown("laptop", &["status", "--json"]);
    assert!(status.contains("\"files\": 2") || status.contains("\"files\":2"), "{status}");
    let shown = machines.done("laptop", &["doctor"]);
    assert!(shown.contains("OK    files     2 files, 9 bytes"), "{shown}");
}
