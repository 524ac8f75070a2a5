//! A shell in a terminal that a test types into.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use haversack_servers::tools;

use crate::agents::Agents;

/// How long a command may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Returns where a program of the tools is. If it is missing, another program takes its place, unless the tools are required.
pub(super) fn program_or_required(name: &str) -> Option<PathBuf> {
    let found = tools::program(name);
    assert!(found.is_some() || !tools::required(), "{name} is not in .tools (install it: cargo xtask tools)");
    found
}

/// Returns tmux: that of the tools, or the system's.
fn tmux_program() -> PathBuf {
    program_or_required("tmux").unwrap_or_else(|| "tmux".into())
}

/// A shell on a machine. It ends when this is dropped.
pub(super) struct Terminal {
    screen: Screen,
    /// The number of the command that was typed last.
    number: usize,
}

/// What shows the shell.
enum Screen {
    /// A pane of a tmux server of its own, by its socket.
    Tmux(PathBuf),
    /// A pty, with everything that it showed in a file.
    Pty { child: Child, keys: ChildStdin, shown: PathBuf },
}

impl Terminal {
    /// Opens a terminal of 100 columns on a machine.
    pub(super) fn open(agents: &Agents, machine: &str, directory: &Path) -> Terminal {
        let env = &agents.machines.env;
        let prepare = |mut command: Command| {
            let ours = Path::new(env!("CARGO_BIN_EXE_haversack")).parent().expect("in a directory");
            command
                .current_dir(directory)
                .env_remove("COLUMNS")
                .env("HOME", env.path("").parent().expect("below").join("user"))
                .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", ours.display()))
                .env("LANG", "C.UTF-8")
                .env("TERM", "xterm")
                .env("PAGER", "cat")
                .env("HAVERSACK_HOME", env.path(machine))
                .env("CLAUDE_CONFIG_DIR", agents.claude(machine));
            command
        };
        let socket = env.path(&format!("{machine}.tmux"));
        let mut tmux = prepare(env.program(&tmux_program().display().to_string()));
        tmux.args(["-u", "-f", "/dev/null", "-S"]).arg(&socket);
        tmux.args(["new-session", "-d", "-x", "100", "-y", "50", "sh"]).stderr(Stdio::null());
        let screen = match tmux.status() {
            Ok(status) if status.success() => Screen::Tmux(socket),
            _ => {
                assert!(!tools::required(), "tmux does not start");
                let shown = env.path(&format!("{machine}.shown"));
                let mut script = prepare(env.program("script"));
                script.args(["-qfec", "stty cols 100 rows 50; exec sh"]).arg(&shown);
                script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
                let mut child = script.spawn().expect("tmux or script");
                let keys = child.stdin.take().expect("piped");
                Screen::Pty { child, keys, shown }
            }
        };
        let terminal = Terminal { screen, number: 0 };
        terminal.wait_until("the shell's prompt", |shown| !shown.trim().is_empty());
        terminal
    }

    /// Types a command that ends by itself with 0; returns what it showed.
    pub(super) fn run(&mut self, line: &str) -> String {
        self.start(line);
        self.end(0)
    }

    /// Types a command.
    pub(super) fn start(&mut self, line: &str) {
        self.number += 1;
        let number = self.number;
        self.answer(&format!("{line}; echo \"ended-{number} $?\""));
    }

    /// Types an answer.
    pub(super) fn answer(&mut self, text: &str) {
        match &mut self.screen {
            Screen::Tmux(socket) => {
                tmux(socket, &["send-keys", "-l", "--", text]);
                tmux(socket, &["send-keys", "Enter"]);
            }
            Screen::Pty { keys, .. } => {
                let typed = keys.write_all(format!("{text}\r").as_bytes()).and_then(|()| keys.flush());
                typed.expect("it listens");
            }
        }
    }

    /// Waits until the command that was typed last has ended with this code; returns what it showed.
    pub(super) fn end(&mut self, code: i32) -> String {
        // The typed line has a variable in the place of the code, and does not begin with the marker.
        let marker = format!("\nended-{} ", self.number);
        self.wait_until(&marker, |shown| {
            shown.split_once(&marker).is_some_and(|(_, after)| after.contains('\n'))
        });
        let shown = self.since_last_command();
        assert!(shown.contains(&format!("{marker}{code}\n")), "it did not end with {code}: {shown}");
        shown
    }

    /// Waits until the command that was typed last has shown a text.
    pub(super) fn wait_for(&self, text: &str) {
        self.wait_until(text, |shown| shown.contains(text));
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(&self.since_last_command()) {
            assert!(Instant::now() < deadline, "{what} is not shown: {}", self.since_last_command());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns everything that was shown since the command before the last one ended.
    fn since_last_command(&self) -> String {
        let shown = match &self.screen {
            Screen::Tmux(socket) => tmux(socket, &["capture-pane", "-p", "-J", "-S", "-"]),
            Screen::Pty { shown, .. } => {
                plain(&String::from_utf8_lossy(&fs::read(shown).unwrap_or_default()))
            }
        };
        let before = format!("\nended-{} ", self.number.saturating_sub(1));
        shown.rsplit(before.as_str()).next().unwrap_or_default().to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        match &mut self.screen {
            Screen::Tmux(socket) => drop(tmux(socket, &["kill-server"])),
            Screen::Pty { child, .. } => {
                drop(child.kill());
                drop(child.wait());
            }
        }
    }
}

/// Asks the tmux server of a socket.
fn tmux(socket: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(tmux_program());
    command.arg("-u").arg("-S").arg(socket).args(arguments).stdin(Stdio::null());
    let output = command.output().expect("tmux is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns a text without escape sequences and carriage returns.
fn plain(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => drop(rest.by_ref().find(|c| c.is_ascii_alphabetic())),
            '\r' => {}
            c => text.push(c),
        }
    }
    text
}
