//! Measures what a user's days cost: events, summaries, digests, contexts, tidying: `cargo xtask bench days [--quick]`.
//!
//! Each command is a process from start to end, beside `haversack version`, which does nothing. The planner is measured in process.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use haversack::day::Day;
use haversack::kind::Kinds;
use haversack::store::{BackendExt, Bytes, DeviceLocal, Locator, block_on};
use haversack::tidy;
use haversack_bench::Outcome;
use haversack_bench::measure::{Nanoseconds, median, timed};
use haversack_bench::peer::Peer;
use haversack_bench::report::{Report, in_rounds, say};
use haversack_bench::scratch::Scratch;
use haversack_bench::table::{Goal, Table, grouped, milliseconds, times};
use serde_json::json;

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// The day that counts as today.
const TODAY: &str = "2026-11-18";

const NOW: [&str; 4] = ["--now", "2026-11-18T12:00:00Z", "--time-zone", "UTC"];

/// The goal for an event at 1,000,000 lines, relative to one at none.
const EVENT_BESIDE_NONE: f64 = 1.5;

const CONTEXT_MILLISECONDS: f64 = 150.0;

const SESSION_END_MILLISECONDS: f64 = 20.0;

const SUMMARY_MILLISECONDS: f64 = 200.0;

const PLANNER_MILLISECONDS: f64 = 200.0;

const YEAR_MILLISECONDS: f64 = 5000.0;

/// The goal for a tidy with nothing to do, beside the scan.
const NOTHING_MILLISECONDS: f64 = 20.0;

fn main() -> ExitCode {
    in_rounds(run)
}

fn run(rounds: usize) -> Outcome<()> {
    let scratch = Scratch::create(Path::new(TARGET_TMP))?;
    let mut report = Report::start();
    report.add(events(scratch.path(), rounds)?)?;
    report.add(events_over_mcp(scratch.path(), rounds)?)?;
    report.add(sessions(scratch.path(), rounds)?)?;
    report.add(ageing(scratch.path(), rounds)?)?;
    report.end(&[])
}

/// Returns a line of an interaction log.
fn line(day: &str, number: usize) -> String {
    format!(
        "{{\"id\":\"{number:08x}-0000-4000-8000-000000000000\",\"ts\":\"{day}T10:00:00Z\",\"channel\":\"chat\",\"direction\":\"{}\",\"sender\":\"teammate {}\",\"summary\":\"Message {number} about the lamp of the lighthouse\",\"device\":\"laptop\"}}\n",
        if number.is_multiple_of(3) { "outbound" } else { "inbound" },
        number % 50
    )
}

fn events(base: &Path, rounds: usize) -> Outcome<Table> {
    let title = "haversack event without a remote, process start to end, with the home's own history";
    let mut table = Table::new(title, &["lines in the day's log", "ms", "`version` ms", "beside no lines"]);
    let mut first = None;
    for lines in [0, 100_000, 1_000_000] {
        say(&format!("event, {} lines\n", grouped(lines)));
        let home = Home::new(base, &format!("events-{lines}"))?;
        let log: String = (0..lines).map(|number| line(TODAY, number)).collect();
        home.put(&format!("interactions/{TODAY}.jsonl"), &log)?;
        let event =
            [&["event", "asks for the port", "--sender", "a teammate", "--direction", "inbound"], &NOW[..]];
        let event = event.concat();
        // The sender is known after the first event, and the history has the log after the second.
        for _ in 0..3 {
            home.run(&event)?;
        }
        let (mut samples, mut floor) = (Vec::new(), Vec::new());
        for _ in 0..rounds * 3 {
            timed(&mut samples, || home.run(&event))?;
            timed(&mut floor, || home.run(&["version"]))?;
        }
        let took = middle(&samples);
        let ratio = took / *first.get_or_insert(took);
        let cells = vec![grouped(lines), milliseconds(took), milliseconds(middle(&floor)), times(ratio)];
        let goal = if lines == 1_000_000 { Goal::AtMost(EVENT_BESIDE_NONE) } else { Goal::Reported };
        table.row(cells, goal, ratio);
    }
    Ok(table)
}

/// Measures the tool `event` of a running server, in a home with a remote, which sends meanwhile.
fn events_over_mcp(base: &Path, rounds: usize) -> Outcome<Table> {
    let title = "The tool `event` of a running MCP server, with a remote";
    let mut table = Table::new(title, &["lines in the day's log", "ms", "beside no lines"]);
    let mut first = None;
    for lines in [0, 100_000, 1_000_000] {
        say(&format!("event over MCP, {} lines\n", grouped(lines)));
        let home = Home::new(base, &format!("events-mcp-{lines}"))?;
        let log: String = (0..lines).map(|number| line(TODAY, number)).collect();
        home.put(&format!("interactions/{TODAY}.jsonl"), &log)?;
        home.run(&[
            "remote",
            "add",
            &format!("file://{}", home.base.join("remote").display()),
            "--device",
            "laptop",
        ])?;
        home.run(&["sync"])?;
        let mut command = home.command();
        command.args(NOW).arg("mcp").stderr(Stdio::null());
        let mut server = Peer::start("a server", &mut command)?;
        let mut ask = |method: &str, params: serde_json::Value| -> Outcome<()> {
            let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let mut answer = Vec::new();
            server.ask(format!("{asked}\n").as_bytes(), &mut answer)?;
            let answer: serde_json::Value = serde_json::from_slice(&answer)?;
            let is_done = !answer["result"].is_null() && answer["result"]["isError"] != true;
            if is_done { Ok(()) } else { Err(answer.to_string().into()) }
        };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
        ask("initialize", hello)?;
        let event = json!({ "name": "event", "arguments": { "summary": "asks for the port", "sender": "a teammate", "direction": "inbound" } });
        // The sender is known after the first event.
        for _ in 0..3 {
            ask("tools/call", event.clone())?;
        }
        let mut samples = Vec::new();
        for _ in 0..rounds * 3 {
            timed(&mut samples, || ask("tools/call", event.clone()))?;
        }
        drop(server);
        home.rest();
        let took = middle(&samples);
        let ratio = took / *first.get_or_insert(took);
        let goal = if lines == 1_000_000 { Goal::AtMost(EVENT_BESIDE_NONE) } else { Goal::Reported };
        table.row(vec![grouped(lines), milliseconds(took), times(ratio)], goal, ratio);
    }
    Ok(table)
}

fn sessions(base: &Path, rounds: usize) -> Outcome<Table> {
    let mut table =
        Table::new("A day's commands, process start to end, warm", &["command", "ms", "`version` ms"]);
    let home = Home::new(base, "sessions")?;
    let mut add =
        |what: &str, goal: f64, work: &mut dyn FnMut(usize) -> Outcome<Nanoseconds>| -> Outcome<()> {
            say(&format!("{what}\n"));
            let (mut samples, mut floor) = (Vec::new(), Vec::new());
            for round in 0..=rounds {
                let took = work(round)?;
                if round > 0 {
                    samples.push(took);
                    timed(&mut floor, || home.run(&["version"]))?;
                }
            }
            let cells = vec![what.to_owned(), milliseconds(middle(&samples)), milliseconds(middle(&floor))];
            table.row(cells, Goal::Within(goal), middle(&samples) / 1e6);
            Ok(())
        };
    home.furnish_project()?;
    home.hook("SessionStart", &json!({ "source": "startup" }))?;
    home.rest();
    add("context over 10,000 files", CONTEXT_MILLISECONDS, &mut |_| {
        let mut sample = Vec::new();
        timed(&mut sample, || home.run(&[&["context"], &NOW[..]].concat()))?;
        Ok(sample[0])
    })?;
    let transcript = home.transcript()?;
    add("the hook SessionEnd with a digest", SESSION_END_MILLISECONDS, &mut |round| {
        let input = json!({ "reason": "other", "transcript_path": transcript, "session_id": format!("session-{round}") });
        let mut sample = Vec::new();
        timed(&mut sample, || home.hook("SessionEnd", &input))?;
        home.rest();
        Ok(sample[0])
    })?;
    let day: String = (0..10_000).map(|number| line("2026-11-17", number)).collect();
    home.put("interactions/2026-11-17.jsonl", &day)?;
    home.run(&["summary", "--day", "2026-11-17", "--time-zone", "UTC"])?;
    add("summary of a day of 10,000 events", SUMMARY_MILLISECONDS, &mut |round| {
        // A day that went on is summed up again.
        let mut log =
            fs::OpenOptions::new().append(true).open(home.memory().join("interactions/2026-11-17.jsonl"))?;
        log.write_all(line("2026-11-17", 20_000 + round).as_bytes())?;
        let mut sample = Vec::new();
        timed(&mut sample, || home.run(&["summary", "--day", "2026-11-17", "--time-zone", "UTC"]))?;
        Ok(sample[0])
    })?;
    Ok(table)
}

fn ageing(base: &Path, rounds: usize) -> Outcome<Table> {
    let mut table = Table::new("Tidying, warm", &["what", "ms", "the scan alone ms", "`version` ms"]);
    let today: Day = TODAY.parse().map_err(|error: haversack::day::InvalidDay| error.to_string())?;

    say("planner\n");
    let kinds = Kinds::built_in();
    let entries = entries()?;
    let mut samples = Vec::new();
    for _ in 0..rounds {
        let plan = timed(&mut samples, || {
            let selected = tidy::select(kinds, entries.keys(), today);
            let read: BTreeMap<Locator, Bytes> = selected
                .into_iter()
                .filter_map(|name| entries.get(&name).map(|bytes| (name.clone(), bytes.clone())))
                .collect();
            tidy::plan(kinds, &read, today, &|_, _| None)
        });
        if plan.actions.is_empty() {
            return Err("the planner found nothing to do".into());
        }
    }
    let took = middle(&samples);
    let cells = vec![
        "planner, 100,000 entries (1,000 old)".to_owned(),
        milliseconds(took),
        "–".to_owned(),
        "–".to_owned(),
    ];
    table.row(cells, Goal::Within(PLANNER_MILLISECONDS), took / 1e6);

    say("a year of logs\n");
    let mut samples = Vec::new();
    for round in 0..rounds.min(3) {
        let home = Home::new(base, &format!("year-{round}"))?;
        home.furnish_year(today)?;
        home.run(&["log"])?;
        timed(&mut samples, || home.run(&[&["tidy"], &NOW[..]].concat()))?;
        fs::remove_dir_all(&home.base)?;
    }
    let took = middle(&samples);
    let cells = vec![
        "tidy of a year of daily logs, 50 MB".to_owned(),
        milliseconds(took),
        "–".to_owned(),
        "–".to_owned(),
    ];
    table.row(cells, Goal::Within(YEAR_MILLISECONDS), took / 1e6);

    say("nothing to do\n");
    let home = Home::new(base, "nothing")?;
    for number in 0..10_000 {
        let text = format!(
            "---\nname: {number}\ntype: feedback\n---\n\n{}",
            "The lamp is white. ".repeat(number % 40)
        );
        home.put(&format!("notes/feedback_{number}.md"), &text)?;
    }
    let tidy = [&["tidy"], &NOW[..]].concat();
    home.run(&tidy)?;
    home.run(&tidy)?;
    let files = DeviceLocal::open(home.memory(), home.base.join("locks"))?;
    let (mut samples, mut scans, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        timed(&mut samples, || home.run(&tidy))?;
        timed(&mut scans, || block_on(files.scan_all(&Locator::root())))?;
        timed(&mut floor, || home.run(&["version"]))?;
    }
    let (took, scan, version) = (middle(&samples), middle(&scans), middle(&floor));
    let cells = vec![
        "tidy with nothing to do, 10,000 files".to_owned(),
        milliseconds(took),
        milliseconds(scan),
        milliseconds(version),
    ];
    table.row(cells, Goal::Within(NOTHING_MILLISECONDS), (took - scan) / 1e6);
    Ok(table)
}

/// Returns the files of a large store: 99,000 memories, and 1,000 old logs and digests.
fn entries() -> Outcome<BTreeMap<Locator, Bytes>> {
    let first: Day = "2024-01-01".parse().map_err(|error: haversack::day::InvalidDay| error.to_string())?;
    let mut entries = BTreeMap::new();
    let mut put = |name: String, text: String| -> Outcome<()> {
        entries.insert(Locator::parse(&name)?, Bytes::from(text));
        Ok(())
    };
    for number in 0..99_000 {
        put(format!("claude_memory/p{}/feedback_{number}.md", number % 50), format!("Rule {number}.\n"))?;
    }
    for number in 0..500 {
        let day = first.plus(number);
        let log = (0..10).map(|line_number| {
            line(&day.to_string(), usize::try_from(number).unwrap_or_default() * 10 + line_number)
        });
        put(format!("interactions/{day}.jsonl"), log.collect())?;
        let digest = format!("---\nname: d\ntype: session_digest\n---\n\n## Arcs\n- Did {number}\n");
        put(format!("claude_memory/p1/session_digest_{day}.md"), digest)?;
    }
    Ok(entries)
}

fn middle(samples: &[Nanoseconds]) -> f64 {
    median(samples.iter().map(|sample| *sample as f64))
}

/// A home without a remote, and a project.
struct Home {
    base: PathBuf,
    root: PathBuf,
}

impl Home {
    fn new(base: &Path, name: &str) -> Outcome<Home> {
        let base = base.join(name);
        let root = base.join("lighthouse");
        fs::create_dir_all(root.join(".git"))?;
        fs::write(root.join(".git/config"), "[remote \"origin\"]\n\turl = https://example.org/lighthouse\n")?;
        Ok(Home { base, root })
    }

    fn memory(&self) -> PathBuf {
        self.base.join("home/memory")
    }

    fn put(&self, name: &str, text: &str) -> Outcome<()> {
        let place = self.memory().join(name);
        fs::create_dir_all(place.parent().ok_or("a parent")?)?;
        fs::write(place, text)?;
        Ok(())
    }

    /// Returns the directory in which Claude Code keeps the project's memory.
    fn project(&self) -> PathBuf {
        let name = self.root.display().to_string();
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        self.base.join("claude/projects").join(name).join("memory")
    }

    /// Writes 10,000 memories of the project, an index, and what a session starts with.
    fn furnish_project(&self) -> Outcome<()> {
        let place = self.project();
        fs::create_dir_all(&place)?;
        let mut index = "# Memory\n\n".to_owned();
        for number in 0..10_000 {
            let kind = ["user", "feedback", "project", "reference"][number % 4];
            let name = format!("{kind}_{number}.md");
            let text = format!(
                "---\nname: {number}\ndescription: memory {number}\ntype: {kind}\n---\n\n{}",
                "The lamp is white. ".repeat(number % 40)
            );
            fs::write(place.join(&name), text)?;
            if number < 150 {
                writeln!(index, "- [{number}]({name}) — memory {number}")?;
            }
        }
        fs::write(place.join("MEMORY.md"), index)?;
        fs::write(place.join("carry_forward.md"), "## Pending\n- 2026-11-17: ask about the tide\n")?;
        let digest =
            "---\nname: d\ndescription: d\ntype: session_digest\n---\n\n## Arcs\n- Mended the lamp\n";
        fs::write(place.join("session_digest_2026-11-17.md"), digest)?;
        Ok(())
    }

    /// Writes daily logs of a year, 50 MB.
    fn furnish_year(&self, today: Day) -> Outcome<()> {
        const BYTES_A_DAY: usize = 50_000_000 / 365;
        let mut number = 0;
        for ago in 10..375 {
            let day = today.plus(-ago).to_string();
            let mut log = String::new();
            while log.len() < BYTES_A_DAY {
                log.push_str(&line(&day, number));
                number += 1;
            }
            self.put(&format!("interactions/{day}.jsonl"), &log)?;
        }
        Ok(())
    }

    /// Writes a transcript of 5 MB.
    fn transcript(&self) -> Outcome<PathBuf> {
        let place = self.base.join("claude/projects/x/session.jsonl");
        fs::create_dir_all(place.parent().ok_or("a parent")?)?;
        let mut text =
            json!({ "type": "user", "message": { "content": "Paint the lamp" } }).to_string() + "\n";
        while text.len() < 5_000_000 {
            let said = json!({ "type": "assistant", "timestamp": "2026-11-18T09:00:00Z", "message": { "content": "The lamp is white. ".repeat(50) } });
            writeln!(text, "{said}")?;
        }
        fs::write(&place, text)?;
        Ok(place)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(haversack_bench::program(env!("CARGO_BIN_EXE_haversack")));
        command.env_clear().env("HOME", &self.base).env("CLAUDE_CONFIG_DIR", self.base.join("claude"));
        command.env("HAVERSACK_DIGEST_AUTO", "true");
        command.current_dir(&self.root).arg("--home").arg(self.base.join("home"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Outcome<()> {
        let output = self.command().args(arguments).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
        }
    }

    fn hook(&self, event: &str, more: &serde_json::Value) -> Outcome<()> {
        let mut input = json!({ "session_id": "bench", "cwd": self.root, "hook_event_name": event });
        for (key, value) in more.as_object().into_iter().flatten() {
            input[key] = value.clone();
        }
        let mut command = self.command();
        command.args(NOW).args(["hook", event]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn()?;
        child.stdin.take().ok_or("piped")?.write_all(input.to_string().as_bytes())?;
        match child.wait()?.success() {
            true => Ok(()),
            false => Err(format!("the hook {event} failed").into()),
        }
    }

    /// Waits until the background process of this home has ended.
    fn rest(&self) {
        let home = self.base.join("home");
        let is_at_work = || {
            let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
            let mut homes = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
            homes.any(|directory| directory == home)
        };
        while is_at_work() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
