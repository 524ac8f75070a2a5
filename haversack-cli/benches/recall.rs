//! Measures recall as users meet it, process by process, beside `@modelcontextprotocol/server-memory` and a bare FTS5 program in the same run:
//! `cargo xtask bench recall [--quick]`.
//!
//! All of them search the same texts. The bare program opens an FTS5 table that is there, asks it one query and ends: it looks at no file, so it never
//! sees a change. server-memory reads its one file for each search.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use haversack_bench::Outcome;
use haversack_bench::measure::{Contender, Nanoseconds, Race, timed};
use haversack_bench::peer::Peer;
use haversack_bench::report::{Report, exit_code, say};
use haversack_bench::scratch::Scratch;
use haversack_bench::table::{Goal, Table, grouped, milliseconds};
use rusqlite::Connection;
use serde_json::{Value, json};

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// The name by which the bench runs itself as a bare FTS5 program.
const BARE: &str = "--bare-fts5";

/// The numbers of memories. The goals are for the first.
const SIZES: [usize; 2] = [10_000, 100_000];

/// The number of rounds of a run that is not quick.
const FULL_ROUNDS: usize = 7;

/// The number of operations in a round.
const TIMES: usize = 3;

/// The goals at the smaller size, in milliseconds and megabytes. Searches are measured beyond the look at the files.
const COLD_MILLISECONDS: f64 = 25.0;
const FIRST_CALL_MILLISECONDS: f64 = 30.0;
const HOOK_MILLISECONDS: f64 = 20.0;
const IDLE_MEGABYTES: f64 = 30.0;

/// The interval at which we look if the background process has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// A query with a rare word.
const QUERY: &str = "checked beacon77 lens";

fn main() -> ExitCode {
    let (mut rounds, mut asked, mut theirs) = (FULL_ROUNDS, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo says so when it benchmarks; when it tests every target there is nothing to do here.
            "--bench" => asked = true,
            "--quick" => rounds = 3,
            "--server-memory" => theirs = arguments.next().map(PathBuf::from),
            BARE => return exit_code(ask_bare(Path::new(&arguments.next().unwrap_or_default()))),
            other => {
                say(&format!("unknown argument {other}; there are --quick and --server-memory PROGRAM\n"));
                return ExitCode::from(2);
            }
        }
    }
    if asked { exit_code(run(rounds, theirs.as_deref())) } else { ExitCode::SUCCESS }
}

fn run(rounds: usize, theirs: Option<&Path>) -> Outcome<()> {
    let scratch = Scratch::create(Path::new(TARGET_TMP))?;
    let mut report = Report::start();
    let mut processes = Table::new(
        "Process start to the first hits",
        &["memories", "ours ms", "the look at the files alone ms", "bare FTS5 ms", "`/bin/true` ms"],
    );
    let mut calls = Table::new(
        "First search of a new MCP server",
        &["memories", "ours ms", "of it the start ms", "of it the start and the look ms", "server-memory ms"],
    );
    let mut resident = Table::new("Memory of an idle server after a search", &["memories", "ours MB"]);
    let mut hooks = Table::new(
        "A hook that gives passages, process start to end",
        &["memories", "event", "with passages ms", "hook without recall ms", "`/bin/true` ms"],
    );
    for size in if rounds < FULL_ROUNDS { &SIZES[..1] } else { &SIZES[..] } {
        say(&format!("{} memories\n", grouped(*size)));
        let base = scratch.path().join(size.to_string());
        let machine = Machine::furnish(&base, *size, theirs)?;
        machine.processes(rounds, &mut processes)?;
        machine.calls(rounds, &mut calls, &mut resident)?;
        machine.hooks(rounds, &mut hooks)?;
    }
    for table in [processes, calls, resident, hooks] {
        report.add(table)?;
    }
    let what = if theirs.is_some() {
        "@modelcontextprotocol/server-memory 2026.8.31"
    } else {
        "without server-memory"
    };
    report.end(&[what.to_owned()])
}

fn text(number: usize) -> String {
    format!(
        "Note {number} of the lighthouse keeper: beacon{number} was checked at {:02}:{:02}, the lens is clean, the oil lasts {} days, and the log says nothing else about the sea.",
        number % 24,
        number % 60,
        number % 90
    )
}

/// A machine with a project whose memory has an index, a file of server-memory and a bare FTS5 table, all with the same texts.
struct Machine<'a> {
    base: PathBuf,
    root: PathBuf,
    size: usize,
    theirs: Option<&'a Path>,
}

impl<'a> Machine<'a> {
    fn furnish(base: &Path, size: usize, theirs: Option<&'a Path>) -> Outcome<Machine<'a>> {
        let root = base.join("lighthouse");
        fs::create_dir_all(root.join(".git"))?;
        fs::write(root.join(".git/config"), "[remote \"origin\"]\n\turl = https://example.org/lighthouse\n")?;
        let name: String = root.display().to_string();
        let name = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
        let memory = base.join("claude/projects").join(name).join("memory");
        fs::create_dir_all(&memory)?;
        let table = Connection::open(base.join("bare.sqlite"))?;
        table.execute_batch(
            "CREATE VIRTUAL TABLE memory USING fts5(name UNINDEXED, text, tokenize = 'porter unicode61'); BEGIN",
        )?;
        let mut lines = String::new();
        for number in 0..size {
            fs::write(memory.join(format!("{number}.md")), text(number))?;
            let _ = table
                .execute("INSERT INTO memory VALUES (?1, ?2)", (format!("{number}.md"), text(number)))?;
            let entity = json!({ "type": "entity", "name": format!("note-{number}"), "entityType": "note", "observations": [text(number)] });
            lines.push_str(&format!("{entity}\n"));
        }
        // What the hooks before an action and after a failure look for.
        fs::write(
            memory.join("feedback_push.md"),
            "---\nname: push\ntype: feedback\n---\n\nNever use git push --force on the branch beacon77.\n",
        )?;
        table.execute_batch("COMMIT")?;
        fs::write(base.join("memory.jsonl"), lines)?;
        let machine = Machine { base: base.to_owned(), root, size, theirs };
        let url = format!("file://{}", base.join("remote").display());
        for arguments in [&["remote", "add", &url, "--device", "laptop"][..], &["sync"]] {
            let output = machine.command().args(arguments).output()?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            }
        }
        let _ = machine.hook("SessionStart", &json!({ "source": "startup" }))?;
        machine.rest();
        // Files become older than the finest step of the filesystem's clock, so that their times can be trusted.
        for _ in 0..3 {
            drop(machine.command().args(["recall", QUERY]).output()?);
        }
        Ok(machine)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(haversack_bench::program(env!("CARGO_BIN_EXE_haversack")));
        command.env_clear().env("HOME", &self.base).env("CLAUDE_CONFIG_DIR", self.base.join("claude"));
        // A bench waits for the answer that a user would not wait for, to tell how late it is.
        command.env("HAVERSACK_RECALL_HOOK_MILLISECONDS", "60000");
        command.current_dir(&self.root).arg("--home").arg(self.base.join("home"));
        command
    }

    fn processes(&self, rounds: usize, table: &mut Table) -> Outcome<()> {
        let times = |make: &dyn Fn() -> Outcome<Command>| -> Outcome<Vec<Nanoseconds>> {
            let mut samples = Vec::new();
            for _ in 0..TIMES {
                let mut command = make()?;
                command.stdout(Stdio::null());
                let ended = timed(&mut samples, || command.status())?;
                if !ended.success() {
                    return Err("a search found nothing".into());
                }
            }
            Ok(samples)
        };
        let contenders: Vec<Contender<'_>> = vec![
            Box::new(|_| {
                times(&|| {
                    let mut command = self.command();
                    command.args(["recall", QUERY]);
                    Ok(command)
                })
            }),
            // The same look, and nothing to search: a kind that no file has.
            Box::new(|_| {
                let mut samples = Vec::new();
                for _ in 0..TIMES {
                    let mut command = self.command();
                    command.args(["recall", "--kind", "philosophical_threads", QUERY]).stdout(Stdio::null());
                    let _ = timed(&mut samples, || command.status())?;
                }
                Ok(samples)
            }),
            Box::new(|_| {
                times(&|| {
                    let mut command = Command::new(std::env::current_exe()?);
                    command.arg(BARE).arg(self.base.join("bare.sqlite"));
                    Ok(command)
                })
            }),
            Box::new(|_| times(&|| Ok(Command::new("/bin/true")))),
        ];
        let race = Race::run(rounds, contenders)?;
        let [ours, look, bare, floor] = [0, 1, 2, 3].map(|contender| race.nanoseconds(contender));
        let cells = vec![
            grouped(self.size),
            milliseconds(ours),
            milliseconds(look),
            milliseconds(bare),
            milliseconds(floor),
        ];
        table.row(cells, self.goal(Goal::Within(COLD_MILLISECONDS)), (ours - look) / 1e6);
        Ok(())
    }

    /// Returns a goal at the size that it is for.
    fn goal(&self, goal: Goal) -> Goal {
        if self.size == SIZES[0] { goal } else { Goal::Reported }
    }

    fn calls(&self, rounds: usize, table: &mut Table, resident: &mut Table) -> Outcome<()> {
        let search = json!({ "name": "recall", "arguments": { "query": QUERY } });
        // The same look, and nothing to search: a kind that no file has. The answer repeats the query.
        let look =
            json!({ "name": "recall", "arguments": { "query": QUERY, "kind": "philosophical_threads" } });
        let mut contenders: Vec<Contender<'_>> = vec![
            Box::new(|_| self.first_call(self.ours(), Some(search.clone()))),
            Box::new(|_| self.first_call(self.ours(), None)),
            Box::new(|_| self.first_call(self.ours(), Some(look.clone()))),
        ];
        if let Some(theirs) = self.theirs {
            contenders.push(Box::new(move |_| {
                let mut command = Command::new(theirs);
                command.env_clear().env("MEMORY_FILE_PATH", self.base.join("memory.jsonl"));
                if let Some(path) = std::env::var_os("PATH") {
                    command.env("PATH", path);
                }
                let asked = json!({ "name": "search_nodes", "arguments": { "query": "beacon77" } });
                self.first_call(command, Some(asked))
            }));
        }
        let count = contenders.len();
        let race = Race::run(rounds, contenders)?;
        let mut server = Server::start(self.ours())?;
        server.ask("tools/call", &search)?;
        let megabytes = server.resident()?;
        let [ours, start, look] = [0, 1, 2].map(|contender| race.nanoseconds(contender));
        let theirs = if count > 3 { milliseconds(race.nanoseconds(3)) } else { "–".to_owned() };
        let cells =
            vec![grouped(self.size), milliseconds(ours), milliseconds(start), milliseconds(look), theirs];
        // Beyond the look, as in the other rows.
        table.row(cells, self.goal(Goal::Within(FIRST_CALL_MILLISECONDS)), (ours - (look - start)) / 1e6);
        let cells = vec![grouped(self.size), format!("{megabytes:.1}")];
        resident.row(cells, self.goal(Goal::Megabytes(IDLE_MEGABYTES)), megabytes);
        Ok(())
    }

    /// Starts a server, says hello and asks one question.
    fn first_call(&self, mut command: Command, asked: Option<Value>) -> Outcome<Vec<Nanoseconds>> {
        let mut samples = Vec::new();
        for _ in 0..TIMES {
            let mut next = Command::new(command.get_program());
            next.args(command.get_args()).env_clear();
            for (name, value) in command.get_envs() {
                if let Some(value) = value {
                    next.env(name, value);
                }
            }
            next.current_dir(&self.root);
            let done = timed(&mut samples, || -> Outcome<Server> {
                let mut server = Server::start(std::mem::replace(&mut command, next))?;
                if let Some(asked) = &asked {
                    server.ask("tools/call", asked)?;
                }
                Ok(server)
            });
            drop(done?);
        }
        Ok(samples)
    }

    fn ours(&self) -> Command {
        let mut command = self.command();
        command.arg("mcp");
        command
    }

    fn hooks(&self, rounds: usize, table: &mut Table) -> Outcome<()> {
        let command = json!({ "command": "cd web && git push --force origin beacon77" });
        let error = "remote: counting\n".repeat(200) + "error: failed to push some refs to beacon77\n";
        let inputs = [
            ("UserPromptSubmit", json!({ "prompt": "When was beacon77 checked, and is its lens clean?" })),
            ("PreToolUse", json!({ "tool_name": "Bash", "tool_input": command })),
            ("PostToolUseFailure", json!({ "tool_name": "Bash", "tool_input": command, "error": error })),
        ];
        for (event, input) in &inputs {
            let contenders: Vec<Contender<'_>> = vec![
                Box::new(|_| self.hook(event, input)),
                // A hook that ends at once: no prompt.
                Box::new(|_| self.hook("UserPromptSubmit", &json!({ "prompt": "" }))),
                Box::new(|_| {
                    let mut samples = Vec::new();
                    for _ in 0..TIMES {
                        let _ = timed(&mut samples, || Command::new("/bin/true").status())?;
                    }
                    Ok(samples)
                }),
            ];
            let race = Race::run(rounds, contenders)?;
            let [with, without, floor] = [0, 1, 2].map(|contender| race.nanoseconds(contender));
            let cells = vec![
                grouped(self.size),
                (*event).to_owned(),
                milliseconds(with),
                milliseconds(without),
                milliseconds(floor),
            ];
            table.row(cells, self.goal(Goal::Within(HOOK_MILLISECONDS)), (with - floor) / 1e6);
        }
        Ok(())
    }

    /// Fires a hook some times, each in a session of its own.
    fn hook(&self, event: &str, input: &Value) -> Outcome<Vec<Nanoseconds>> {
        let mut samples = Vec::new();
        for number in 0..TIMES {
            let mut input = input.clone();
            input["session_id"] = format!("bench-{number}-{}", std::process::id()).into();
            input["cwd"] = self.root.display().to_string().into();
            let input = input.to_string();
            // Each session would get a memory once.
            drop(fs::remove_file(self.base.join("home/state/hooks/recalled.jsonl")));
            let ended = timed(&mut samples, || -> Outcome<bool> {
                let mut command = self.command();
                command.args(["hook", event]).stdin(Stdio::piped()).stdout(Stdio::null());
                let mut child = command.spawn()?;
                child.stdin.take().ok_or("piped")?.write_all(input.as_bytes())?;
                Ok(child.wait()?.success())
            });
            if !ended? {
                return Err(format!("the hook {event} failed").into());
            }
        }
        Ok(samples)
    }

    /// Waits until the background process has ended.
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

/// A server that runs.
struct Server {
    peer: Peer,
}

impl Server {
    /// Starts it and says hello.
    fn start(mut command: Command) -> Outcome<Server> {
        command.stderr(Stdio::null());
        let mut server = Server { peer: Peer::start("a server", &mut command)? };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
        server.ask("initialize", &hello)?;
        Ok(server)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Outcome<()> {
        let line = format!("{}\n", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
        let mut answer = Vec::new();
        self.peer.ask(line.as_bytes(), &mut answer)?;
        let answer: Value = serde_json::from_slice(&answer)?;
        let is_found = method != "tools/call" || answer.to_string().contains("beacon77");
        if answer["result"].is_null() || !is_found {
            return Err(answer.to_string().into());
        }
        Ok(())
    }

    /// Returns how much memory it holds, in megabytes.
    fn resident(&self) -> Outcome<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.peer.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1024.0)
    }
}

/// Is the bare program: one query to an FTS5 table.
fn ask_bare(table: &Path) -> Outcome<()> {
    let table = Connection::open(table)?;
    let mut statement =
        table.prepare("SELECT name, text FROM memory WHERE memory MATCH ?1 ORDER BY rank LIMIT 8")?;
    let query = QUERY.split(' ').map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
    let found = statement.query_map([query], |row| row.get::<_, String>(0))?.count();
    if found == 0 { Err("nothing was found".into()) } else { Ok(()) }
}
