//! Measures the time that an agent waits for a hook, from start to end of the process, compared with a program that does nothing: `cargo xtask bench hooks [--quick]`.
//!
//! Prints Markdown to stdout, ready for `docs/benchmarks.md`, and what it is doing to stderr.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use haversack_bench::Outcome;
use haversack_bench::measure::{Contender, Nanoseconds, Race, timed};
use haversack_bench::report::{Report, in_rounds, say};
use haversack_bench::scratch::Scratch;
use haversack_bench::table::{Goal, Table};
use serde_json::{Value, json};

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// The number of the project's memories.
const FILES: usize = 50;

/// The goal for a hook after a write, in milliseconds.
const WRITE_MILLISECONDS: f64 = 20.0;

/// The number of hooks in a round.
const TIMES: usize = 5;

/// The interval at which we look if the background process has ended.
const PAUSE: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    in_rounds(run)
}

fn run(rounds: usize) -> Outcome<()> {
    let scratch = Scratch::create(Path::new(TARGET_TMP))?;
    let machine = Machine::furnish(scratch.path())?;
    let mut report = Report::start();
    let title = format!("Hooks in a project of {FILES} memories, process start to end");
    let mut table = Table::new(title, &["hook", "ms", "`/bin/true` ms"]);
    let (memory, code) = (machine.memory.join("0.md"), machine.root.join("main.rs"));
    let wrote = |file: &Path| json!({ "tool_name": "Write", "tool_input": { "file_path": file } });
    let within = Goal::Within(WRITE_MILLISECONDS);
    let cases = [
        ("PostToolUse, a memory", "PostToolUse", wrote(&memory), within),
        ("PostToolUse, any other file", "PostToolUse", wrote(&code), within),
        ("FileChanged, a memory", "FileChanged", json!({ "file_path": memory, "event": "change" }), within),
        ("SessionStart", "SessionStart", json!({ "source": "startup" }), Goal::Reported),
        ("SessionEnd", "SessionEnd", json!({ "reason": "other" }), Goal::Reported),
    ];
    for (what, event, input, goal) in &cases {
        say(&format!("{what}\n"));
        let contenders: Vec<Contender<'_>> = vec![
            Box::new(|round| {
                // So that there is something to send, as after a real write.
                fs::write(&memory, format!("written in round {round}\n"))?;
                let samples = machine.fire(event, input);
                machine.rest();
                samples
            }),
            Box::new(|_| {
                let mut samples = Vec::new();
                for _ in 0..TIMES {
                    timed(&mut samples, || Command::new("/bin/true").status())?;
                }
                Ok(samples)
            }),
        ];
        let race = Race::run(rounds, contenders)?;
        let milliseconds = |contender: usize| race.nanoseconds(contender) / 1e6;
        let cells =
            vec![(*what).to_owned(), format!("{:.1}", milliseconds(0)), format!("{:.1}", milliseconds(1))];
        table.row(cells, *goal, milliseconds(0));
    }
    report.add(table)?;
    report.end(&[])
}

/// A machine with a home, a remote that is a directory, and a project with memory.
struct Machine {
    base: PathBuf,
    root: PathBuf,
    memory: PathBuf,
}

impl Machine {
    fn furnish(base: &Path) -> Outcome<Machine> {
        let root = base.join("lighthouse");
        fs::create_dir_all(root.join(".git"))?;
        fs::write(root.join(".git/config"), "[remote \"origin\"]\n\turl = https://example.org/lighthouse\n")?;
        let name: String = root.display().to_string();
        let name = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
        let memory = base.join("claude/projects").join(name).join("memory");
        fs::create_dir_all(&memory)?;
        for number in 0..FILES {
            fs::write(memory.join(format!("{number}.md")), format!("memory {number}\n"))?;
        }
        let machine = Machine { base: base.to_owned(), root, memory };
        let url = format!("file://{}", base.join("remote").display());
        for arguments in [&["remote", "add", &url, "--device", "laptop"][..], &["sync"]] {
            let output = machine.command().args(arguments).output()?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            }
        }
        machine.fire("SessionStart", &json!({ "source": "startup" }))?;
        machine.rest();
        Ok(machine)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(haversack_bench::program(env!("CARGO_BIN_EXE_haversack")));
        command.env_clear().env("HOME", &self.base).env("CLAUDE_CONFIG_DIR", self.base.join("claude"));
        command.current_dir(&self.root).arg("--home").arg(self.base.join("home"));
        command
    }

    /// Fires a hook some times, one after the other as a session does.
    fn fire(&self, event: &str, input: &Value) -> Outcome<Vec<Nanoseconds>> {
        let mut input = input.clone();
        input["session_id"] = "bench".into();
        input["cwd"] = self.root.display().to_string().into();
        let input = input.to_string();
        let mut samples = Vec::new();
        for _ in 0..TIMES {
            let ended = timed(&mut samples, || -> Outcome<bool> {
                let mut child = self
                    .command()
                    .args(["hook", event])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .spawn()?;
                child.stdin.take().ok_or("piped")?.write_all(input.as_bytes())?;
                Ok(child.wait()?.success())
            });
            if !ended? {
                return Err(format!("the hook {event} failed").into());
            }
        }
        Ok(samples)
    }

    /// Waits until the background process has ended: while it is there its lock is taken, and a wish of it may be.
    fn rest(&self) {
        let is_at_work = || {
            let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
            let mut homes = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
            homes.any(|directory| directory == self.base.join("home"))
        };
        while is_at_work() {
            std::thread::sleep(PAUSE);
        }
    }
}
