//! A machine of its own for each test.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// An empty home and a scrubbed environment.
pub(crate) struct TestEnv {
    base: TempDir,
}

impl TestEnv {
    pub(crate) fn new() -> TestEnv {
        let env = TestEnv { base: TempDir::new().expect("a temporary directory") };
        std::fs::create_dir(env.base.path().join("user")).expect("made");
        env
    }

    /// Returns a path in the user's home directory.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.base.path().join("user").join(relative)
    }

    /// Returns the command with nothing of the surrounding environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_haversack"));
        command.args(arguments);
        command
    }

    /// Returns any program with nothing of the surrounding environment.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.path("")).env("COLUMNS", "100").env("TMPDIR", self.base.path());
        command.current_dir(self.path(""));
        command
    }

    /// Runs the binary and returns exit code, stdout and stderr in one text, paths made the same everywhere.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.shown(&mut self.command(arguments))
    }

    /// Runs the binary on a terminal that a person types into; returns everything that the terminal shows.
    pub(crate) fn on_terminal(&self, arguments: &[&str], keys: &str) -> String {
        self.on_terminal_with("-echo cols 100", "", arguments, keys)
    }

    /// Runs the binary on a terminal of 3 rows whose pager marks each line; returns everything that the terminal shows.
    pub(crate) fn in_pager(&self, arguments: &[&str]) -> String {
        self.on_terminal_with("cols 100 rows 3", "sed 's/^/paged: /'", arguments, "")
    }

    fn on_terminal_with(&self, terminal: &str, pager: &str, arguments: &[&str], keys: &str) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        let mut line = format!("stty {terminal}; exec {}", quoted(env!("CARGO_BIN_EXE_haversack")));
        arguments.iter().for_each(|argument| line.push_str(&format!(" {}", quoted(argument))));
        let mut command = self.program("script");
        command.args(["-qec", &line, "/dev/null"]).env("PATH", "/usr/bin:/bin").env("TERM", "xterm");
        if !pager.is_empty() {
            command.env("PAGER", pager);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
        child.stdin.take().expect("piped").write_all(keys.as_bytes()).expect("typed");
        let output = child.wait_with_output().expect("ended");
        String::from_utf8_lossy(&output.stdout).replace('\r', "")
    }

    pub(crate) fn shown(&self, command: &mut Command) -> String {
        let output = command.output().expect("it ran");
        let text = format!(
            "exit {}\n--- stdout\n{}--- stderr\n{}",
            output.status.code().map_or("by signal".to_owned(), |code| code.to_string()),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        text.replace(&self.base.path().display().to_string(), "BASE")
    }
}
