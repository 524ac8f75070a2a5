//! Machines with Claude Code on them, as its hooks see them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::checkouts;
use crate::machines::Machines;

/// The time that a test waits for an event in the background before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Machines that meet at one directory, each with a Claude Code and projects of its own.
pub(crate) struct Agents {
    pub(crate) machines: Machines,
}

impl Drop for Agents {
    fn drop(&mut self) {
        // No process is left behind; each ends when nothing waits.
        self.wait_until("the background processes end", || self.background().is_empty());
    }
}

impl Agents {
    pub(crate) fn new() -> Agents {
        Agents { machines: Machines::new() }
    }

    /// Returns a laptop and a desktop that share a store.
    pub(crate) fn laptop_and_desktop() -> Agents {
        Agents { machines: Machines::laptop_and_desktop(&[("root.md", "root\n")]) }
    }

    /// Makes a directory of a machine that is a clone of a repository. All clones of a repository have the same first commit.
    pub(crate) fn repository(&self, machine: &str, name: &str, url: &str) -> PathBuf {
        let root = self.machines.env.path(&format!("{machine}-code/{name}"));
        checkouts::clone(&root, url);
        root.canonicalize().expect("there")
    }

    /// Makes a directory of a machine that names the address of a repository and has none of its commits, like an unpacked archive.
    pub(crate) fn archive(&self, machine: &str, name: &str, url: &str) -> PathBuf {
        let root = self.machines.env.path(&format!("{machine}-code/{name}"));
        checkouts::checkout(&root, url);
        root.canonicalize().expect("there")
    }

    /// Makes another checkout of a repository, beside it.
    pub(crate) fn worktree(&self, root: &Path, name: &str) -> PathBuf {
        checkouts::worktree(root, name)
    }

    /// Returns where Claude Code keeps its things on a machine.
    pub(crate) fn claude(&self, machine: &str) -> PathBuf {
        self.machines.env.path(&format!("{machine}-claude"))
    }

    /// Returns the memory directory of a project.
    pub(crate) fn memory(&self, machine: &str, root: &Path) -> PathBuf {
        self.claude(machine).join("projects").join(slug(root)).join("memory")
    }

    /// Writes a memory file as Claude Code would.
    pub(crate) fn remember(&self, machine: &str, root: &Path, name: &str, text: &str) -> PathBuf {
        let memory = self.memory(machine, root);
        std::fs::create_dir_all(&memory).expect("made");
        std::fs::write(memory.join(name), text).expect("written");
        memory.join(name)
    }

    /// Returns a command of ours on a machine.
    pub(crate) fn command(&self, machine: &str, arguments: &[&str]) -> Command {
        // In full, as in the settings: a hook runs in any directory.
        let home = self.machines.env.path(machine).display().to_string();
        let mut command = self.machines.env.command(&["--home", &home]);
        command.args(arguments).env("CLAUDE_CONFIG_DIR", self.claude(machine));
        command
    }

    /// Returns the copy of the program that the hooks of a machine run.
    pub(crate) fn program(&self, machine: &str) -> PathBuf {
        let home = self.machines.env.path(machine);
        home.join("bin")
            .join(format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS))
            .join("haversack")
    }

    /// Links the binary under test to where setup would copy it, so that setup finds the running binary there. A debug binary has hundreds of
    /// megabytes; the tests in `program.rs` copy it.
    pub(crate) fn link_program(&self, machine: &str) {
        let program = self.program(machine);
        std::fs::create_dir_all(program.parent().expect("below the home")).expect("made");
        // On another disk there is no link, and setup copies.
        drop(std::fs::hard_link(env!("CARGO_BIN_EXE_haversack"), program));
    }

    pub(crate) fn shown(&self, machine: &str, arguments: &[&str]) -> String {
        let shown = self.machines.env.shown(&mut self.command(machine, arguments));
        // The names that Claude Code makes of paths.
        let base = slug(self.machines.env.path("").canonicalize().expect("there").parent().expect("below"));
        shown.replace(&base, "-BASE")
    }

    pub(crate) fn done(&self, machine: &str, arguments: &[&str]) -> String {
        let shown = self.shown(machine, arguments);
        assert!(shown.starts_with("exit 0\n"), "{machine} {arguments:?}: {shown}");
        shown
    }

    /// Fires a hook with any input; returns what it prints.
    pub(crate) fn fire(&self, command: &mut Command, input: &[u8]) -> String {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut stdin = child.stdin.take().expect("piped");
        // It may have stopped listening.
        drop(stdin.write_all(input));
        drop(stdin);
        let output = child.wait_with_output().expect("ended");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Fires a hook of a session in a directory; returns what the agent is told.
    pub(crate) fn hook(&self, machine: &str, event: &str, directory: &Path, more: Value) -> Value {
        let mut input =
            json!({ "session_id": format!("session-{machine}"), "cwd": directory, "hook_event_name": event });
        for (key, value) in more.as_object().into_iter().flatten() {
            input[key] = value.clone();
        }
        let printed = self.fire(&mut self.command(machine, &["hook", event]), input.to_string().as_bytes());
        if printed.is_empty() { Value::Null } else { serde_json::from_str(&printed).expect("JSON") }
    }

    /// Starts a session; returns what the agent is told.
    pub(crate) fn start(&self, machine: &str, directory: &Path) -> Value {
        self.hook(machine, "SessionStart", directory, json!({ "source": "startup" }))
    }

    /// Tells that a file was written by a tool.
    pub(crate) fn wrote(&self, machine: &str, directory: &Path, file: &Path) {
        let told = self.hook(
            machine,
            "PostToolUse",
            directory,
            json!({ "tool_name": "Write", "tool_input": { "file_path": file } }),
        );
        assert_eq!(told, Value::Null);
    }

    /// Returns the processes of ours that run in the background.
    pub(crate) fn background(&self) -> Vec<u32> {
        let base = self.machines.env.path("").display().to_string();
        let base = base.trim_end_matches('/').to_owned();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
            let directory = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            if words.contains(&&b"background"[..]) && directory.display().to_string().starts_with(&base) {
                found.push(pid);
            }
        }
        found
    }

    pub(crate) fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until nothing is at work.
    pub(crate) fn rest(&self) {
        self.wait_until("the background processes end", || self.background().is_empty());
    }

    /// Returns the lines that hooks left on a machine.
    pub(crate) fn journal(&self, machine: &str) -> String {
        let file = self.machines.env.path(machine).join("state/hooks/hooks.log");
        std::fs::read_to_string(file).unwrap_or_default()
    }
}

/// Returns the name that Claude Code makes of a path.
fn slug(path: &Path) -> String {
    path.display().to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
