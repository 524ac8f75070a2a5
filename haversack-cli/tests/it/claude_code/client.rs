//! The real Claude Code on a machine of a test, with nothing of the surrounding environment.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::api::Api;
use crate::agents::Agents;

/// The time limit of a session on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A key that opens nothing. The client remembers the end of those it may use.
const KEY: &str = "dummy-not-a-key-000000000000";

/// The permissions of the client.
const SETTINGS: &str = "{\n  \"permissions\": { \"allow\": [\"Write\", \"Edit\", \"Read\", \"Bash\"] }\n}\n";

/// A Claude Code that was installed, and machines to run it on.
pub(crate) struct Client {
    program: PathBuf,
    pub(crate) agents: Agents,
}

impl Client {
    /// Returns it with a laptop and a desktop that share a store; `None` if it is not installed, having said so.
    pub(crate) fn on_laptop_and_desktop() -> Option<Client> {
        let program = find()?;
        let client = Client { program, agents: Agents::laptop_and_desktop() };
        for machine in ["laptop", "desktop"] {
            client.prepare(machine);
            client.agents.done(machine, &["setup", "claude-code"]);
        }
        Some(client)
    }

    /// Returns it with machines that have nothing yet.
    pub(crate) fn on_new_machines() -> Option<Client> {
        Some(Client { program: find()?, agents: Agents::new() })
    }

    /// Makes a machine's Claude Code one that was used before.
    pub(crate) fn prepare(&self, machine: &str) {
        self.agents.link_program(machine);
        let directory = self.agents.claude(machine);
        fs::create_dir_all(&directory).expect("made");
        fs::write(directory.join("settings.json"), SETTINGS).expect("written");
        let notes = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "customApiKeyResponses": { "approved": [KEY[KEY.len() - 20..]], "rejected": [] },
        });
        fs::write(directory.join(".claude.json"), notes.to_string()).expect("written");
    }

    /// Says that the user trusts a directory.
    pub(crate) fn trust(&self, machine: &str, directory: &Path) {
        let file = self.agents.claude(machine).join(".claude.json");
        let text = fs::read_to_string(&file).expect("prepared");
        let mut notes: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        notes["projects"][directory.display().to_string()] =
            json!({ "hasTrustDialogAccepted": true, "projectOnboardingSeenCount": 5 });
        fs::write(file, notes.to_string()).expect("written");
    }

    /// Returns a command in which the client runs, or a shell with the client in `$CLAUDE`.
    pub(crate) fn command(&self, program: &str, machine: &str, directory: &Path, api: &Api) -> Command {
        let mut command = self.agents.machines.env.program(program);
        let ours = Path::new(env!("CARGO_BIN_EXE_haversack")).parent().expect("in a directory");
        command
            .current_dir(directory)
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", ours.display()))
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .env("CLAUDE", &self.program)
            .env("CLAUDE_CONFIG_DIR", self.agents.claude(machine))
            .env("HAVERSACK_HOME", self.agents.machines.env.path(machine))
            .env("ANTHROPIC_BASE_URL", api.url())
            .env("ANTHROPIC_API_KEY", KEY)
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1");
        // Requests for other hosts end up here, and are noticed.
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            command.env(name, api.url());
        }
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// Returns the command of a session without a user.
    pub(crate) fn session(&self, machine: &str, directory: &Path, api: &Api, arguments: &[&str]) -> Command {
        let program = self.program.display().to_string();
        let mut command = self.command(&program, machine, directory, api);
        command.env("TERM", "dumb").args(arguments);
        command
    }

    /// Starts such a session.
    pub(crate) fn start(&self, mut command: Command, api: &Api) -> Session {
        let output = self.output(api);
        let to = fs::File::create(&output).expect("made");
        let errors = to.try_clone().expect("cloned");
        command.stdin(Stdio::null()).stdout(to).stderr(errors);
        Session { child: command.spawn().expect("started"), output }
    }

    /// Returns and starts it.
    pub(crate) fn begin(&self, machine: &str, directory: &Path, api: &Api, arguments: &[&str]) -> Session {
        self.start(self.session(machine, directory, api, arguments), api)
    }

    /// Returns where to what a session prints goes.
    fn output(&self, api: &Api) -> PathBuf {
        let name: String = api.url().chars().filter(char::is_ascii_digit).collect();
        self.agents.machines.env.path(&format!("output-{name}"))
    }

    /// Runs a session without a user; returns its output.
    pub(crate) fn run(&self, machine: &str, directory: &Path, api: &Api, arguments: &[&str]) -> String {
        let printed = self.begin(machine, directory, api, arguments).end();
        assert_eq!(api.strayed(), [] as [String; 0]);
        printed
    }

    /// Starts a session in a terminal.
    pub(crate) fn open(&self, machine: &str, directory: &Path, api: &Api) -> Terminal {
        self.trust(machine, directory);
        let mut command = self.command("script", machine, directory, api);
        let output = self.output(api);
        command
            .args(["-qfec", "stty rows 40 cols 140; exec \"$CLAUDE\" --permission-mode default"])
            .arg(&output);
        command.env("TERM", "xterm-256color").stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::null()).spawn().expect("started");
        let keys = child.stdin.take().expect("piped");
        let terminal = Terminal { session: Session { child, output }, keys };
        terminal.wait_for("❯");
        terminal
    }
}

fn find() -> Option<PathBuf> {
    let found = haversack_servers::tools::program("claude");
    if found.is_none() {
        haversack_servers::tools::skip("claude is not in .tools (install it: cargo xtask tools)");
    }
    found
}

/// A session that runs; it is ended when this is dropped.
pub(crate) struct Session {
    child: Child,
    output: PathBuf,
}

impl Session {
    /// Waits until it ends; returns what it printed.
    pub(crate) fn end(self) -> String {
        self.end_while(|| {})
    }

    /// The same, and looks at something meanwhile.
    pub(crate) fn end_while(mut self, mut look: impl FnMut()) -> String {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                break status;
            }
            assert!(Instant::now() < deadline, "the session goes on: {}", self.printed());
            look();
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{status}: {}", self.printed());
        self.printed()
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap_or_default()).into_owned()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A session with a user.
pub(crate) struct Terminal {
    session: Session,
    keys: std::process::ChildStdin,
}

impl Terminal {
    /// Waits until something is on the screen.
    pub(crate) fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.has_shown(text) {
            assert!(Instant::now() < deadline, "{text} is not shown: {}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns true if a text was on the screen; gaps do not count, since the client jumps over them.
    pub(crate) fn has_shown(&self, text: &str) -> bool {
        self.screen().contains(&text.split_whitespace().collect::<String>())
    }

    /// Returns what was shown so far, without colours and gaps.
    fn screen(&self) -> String {
        let printed = self.session.printed();
        let mut text = String::new();
        let mut rest = printed.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\u{1b}' if rest.peek() == Some(&'[') => {
                    let _ = rest.by_ref().skip(1).find(|c| ('@'..='~').contains(c));
                }
                '\u{1b}' => drop(rest.next()),
                c if c.is_control() || c.is_whitespace() => {}
                c => text.push(c),
            }
        }
        text
    }

    /// Types a line.
    pub(crate) fn say(&mut self, line: &str) {
        self.type_in(line);
        // Keys in one piece with it would be a pasted line break.
        self.wait_for(line);
        std::thread::sleep(Duration::from_millis(300));
        self.type_in("\r");
    }

    fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("it listens");
    }

    /// Leaves, and waits until it has ended.
    pub(crate) fn leave(mut self) {
        self.say("/exit");
        self.session.end();
    }
}
