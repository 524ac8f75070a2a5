//! Other users of the machine cannot read what Haversack keeps beside the memory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::agents::Agents;

const LIGHTHOUSE: &str = "git@github.com:me/lighthouse.git";

/// Returns a command that runs with the umask that most systems have.
fn with_common_umask(command: &Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "umask 022; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    shell.env_clear();
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

/// Returns everything below a home but the memory, with the modes that others may use.
fn open_to_others(home: &Path) -> Vec<(PathBuf, u32)> {
    let mut open = Vec::new();
    let mut left = vec![home.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = path.symlink_metadata().expect("there");
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            open.push((path.strip_prefix(home).expect("below").to_owned(), mode));
        }
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).expect("listed").flatten().map(|entry| entry.path());
            left.extend(entries.filter(|path| *path != home.join("memory")));
        }
    }
    open.sort();
    open
}

/// Runs init, hooks and a sync on a new machine, all with the umask 022.
fn used_home() -> (Agents, PathBuf) {
    let agents = Agents::new();
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    let file = agents.remember("laptop", &root, "lamp.md", "white\n");
    let run = |arguments: &[&str], input: &str| {
        let mut command = with_common_umask(&agents.command("laptop", arguments));
        agents.fire(&mut command, input.as_bytes());
    };
    run(&["init", &agents.machines.url(), "--yes", "--device", "laptop"], "");
    let hook = |event: &str, more: serde_json::Value| {
        let mut input = json!({ "session_id": "s1", "cwd": root, "hook_event_name": event });
        for (key, value) in more.as_object().into_iter().flatten() {
            input[key] = value.clone();
        }
        run(&["hook", event], &input.to_string());
    };
    hook("SessionStart", json!({ "source": "startup" }));
    hook("PostToolUse", json!({ "tool_name": "Write", "tool_input": { "file_path": file } }));
    hook("PostCompact", json!({ "compact_summary": "We spoke about the lamp.", "trigger": "auto" }));
    hook("SessionEnd", json!({}));
    agents.rest();
    run(&["create", "notes.md", "a note\n"], "");
    run(&["sync"], "");
    run(&["create", "keys.md", concat!("The key is AKIA", "Z7QK3XN5PLVT2RWD.\n")], "");
    run(&["allow", "keys.md:1"], "");
    let home = agents.machines.env.path("laptop");
    (agents, home)
}

#[test]
fn home_is_private_after_init_hooks_and_sync() {
    let (_agents, home) = used_home();
    for there in ["remote.toml", "mounts.toml", "state/hooks/hooks.log", "allowed.toml", "sessions"] {
        assert!(home.join(there).exists(), "{there} was made");
    }
    assert_eq!(open_to_others(&home), []);
}

#[test]
fn wide_files_are_reported_and_narrowed_when_written_again() {
    let (agents, home) = used_home();
    for (name, mode) in [("remote.toml", 0o644), ("state/hooks/hooks.log", 0o664), ("state", 0o755)] {
        fs::set_permissions(home.join(name), fs::Permissions::from_mode(mode)).expect("changed");
    }
    let shown = agents.shown("laptop", &["doctor"]);
    let line =
        shown.lines().find(|line| line.starts_with("WARN  private")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("3 files and directories") && line.contains("remote.toml"), "{line}");
    let root = agents.repository("laptop", "lighthouse", LIGHTHOUSE);
    agents.start("laptop", &root);
    agents.rest();
    let mode = |name: &str| fs::metadata(home.join(name)).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode("state/hooks/hooks.log"), 0o600, "a line was added");
    let cure = format!("chmod -R go= {}", home.display());
    assert!(agents.shown("laptop", &["doctor"]).contains("→ chmod -R go= "), "{shown}");
    assert!(Command::new("/bin/sh").args(["-c", &cure]).status().expect("it ran").success());
    assert_eq!(open_to_others(&home), []);
    let shown = agents.shown("laptop", &["doctor"]);
    assert!(!shown.contains("WARN  private"), "{shown}");
}
