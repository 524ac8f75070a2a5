//! Measures our MCP server, compared with `@modelcontextprotocol/server-memory` and a bare server in the same run:
//! `cargo xtask bench mcp [--quick]`.
//!
//! All of them serve the same memories over stdio and are asked by the same client. The bare server makes a file durable for each write (write, fsync,
//! rename, fsync of the directory) and answers constants: it is what a disk allows. server-memory makes nothing durable.

use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use haversack_bench::Outcome;
use haversack_bench::measure::{Contender, Nanoseconds, Race, timed};
use haversack_bench::peer::Peer;
use haversack_bench::report::{Report, exit_code, say};
use haversack_bench::scratch::Scratch;
use haversack_bench::table::{Goal, Table, grouped, milliseconds, times};
use serde_json::{Value, json};

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// The name by which the bench runs itself as a bare server.
const BARE: &str = "--bare-server";

/// The numbers of memories.
const SIZES: [usize; 3] = [100, 1_000, 10_000];

/// The number of calls in a round.
const TIMES: usize = 5;

/// The goal for a write, relative to the bare server, and to the same write in a small memory.
const WRITE_BESIDE_BARE: f64 = 1.5;
const WRITE_BESIDE_SMALL: f64 = 1.2;

/// The goal for a start, relative to server-memory.
const START_BESIDE_THEIRS: f64 = 0.25;

/// The goal for a search, in milliseconds.
const RECALL_MILLISECONDS: f64 = 50.0;

fn main() -> ExitCode {
    let (mut rounds, mut asked, mut theirs) = (9, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo says so when it benchmarks; when it tests every target there is nothing to do here.
            "--bench" => asked = true,
            "--quick" => rounds = 3,
            "--server-memory" => theirs = arguments.next().map(PathBuf::from),
            BARE => {
                return exit_code(
                    serve_bare(Path::new(&arguments.next().unwrap_or_default())).map_err(Into::into),
                );
            }
            other => {
                say(&format!("unknown argument {other}; there are --quick and --server-memory PROGRAM\n"));
                return ExitCode::from(2);
            }
        }
    }
    if asked { exit_code(run(rounds, theirs.as_deref())) } else { ExitCode::SUCCESS }
}

/// A server that is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ours,
    Bare,
    Theirs,
}

/// The first call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Hello,
    Search,
}

/// A server with memories, running or not.
struct Server<'a> {
    kind: Kind,
    directory: PathBuf,
    program: Option<&'a Path>,
}

/// The tables, which grow with each size.
struct Tables {
    start: Table,
    write: Table,
    recall: Table,
    memory: Table,
}

fn run(rounds: usize, theirs: Option<&Path>) -> Outcome<()> {
    let scratch = Scratch::create(Path::new(TARGET_TMP))?;
    let mut report = Report::start();
    let mut tables = Tables {
        start: Table::new(
            "Start to an answer",
            &["memories", "first answer", "ours ms", "server-memory ms", "ratio"],
        ),
        write: Table::new(
            "One new memory",
            &["memories", "ours ms", "bare ms", "server-memory ms", "ours / bare", "ours / ours at 100"],
        ),
        recall: Table::new(
            "A search, in a server that runs",
            &["memories", "words", "ours ms", "answer bytes", "server-memory ms", "answer bytes"],
        ),
        memory: Table::new(
            "Resident after all that, and all tool definitions",
            &["memories", "ours MB", "server-memory MB", "ours bytes", "server-memory bytes"],
        ),
    };
    let mut small = None;
    for size in SIZES {
        say(&format!("{} memories\n", grouped(size)));
        let base = scratch.path().join(size.to_string());
        let kinds = [(Kind::Ours, None), (Kind::Bare, None), (Kind::Theirs, theirs)];
        let kinds = kinds.into_iter().filter(|(kind, program)| *kind != Kind::Theirs || program.is_some());
        let servers: Vec<Server<'_>> = kinds
            .map(|(kind, program)| Server::furnish(kind, program, &base, size))
            .collect::<Outcome<_>>()?;
        start(rounds, size, &servers, &mut tables.start)?;
        let mut running: Vec<Running> = servers.iter().map(Server::run).collect::<Outcome<_>>()?;
        write(rounds, size, &mut running, &mut small, &mut tables.write)?;
        recall(rounds, size, &mut running, &mut tables.recall)?;
        cost(size, &mut running, &mut tables.memory)?;
    }
    for table in [tables.start, tables.write, tables.recall, tables.memory] {
        report.add(table)?;
    }
    let what = if theirs.is_some() {
        "@modelcontextprotocol/server-memory 2026.8.31"
    } else {
        "without server-memory"
    };
    report.end(&[what.to_owned()])
}

/// Returns a cell of theirs, if they take part.
fn theirs(race: &Race, contender: usize, contenders: usize) -> String {
    if contender < contenders { milliseconds(race.nanoseconds(contender)) } else { "–".to_owned() }
}

fn start(rounds: usize, size: usize, servers: &[Server<'_>], table: &mut Table) -> Outcome<()> {
    for (what, answer) in [("who it is", First::Hello), ("a search, cold", First::Search)] {
        let race = Race::run(rounds, servers.iter().map(|server| server.starts(answer)).collect())?;
        let (goal, ratio) = match servers.len() {
            3 => (Goal::AtMost(START_BESIDE_THEIRS), race.ratio(0, 2)),
            _ => (Goal::Reported, f64::NAN),
        };
        let (ours, theirs) = (milliseconds(race.nanoseconds(0)), theirs(&race, 2, servers.len()));
        table.row(vec![grouped(size), what.to_owned(), ours, theirs, times(ratio)], goal, ratio);
    }
    Ok(())
}

fn write(
    rounds: usize,
    size: usize,
    running: &mut [Running],
    small: &mut Option<f64>,
    table: &mut Table,
) -> Outcome<()> {
    let contenders = running.len();
    let race = Race::run(
        rounds,
        running
            .iter_mut()
            .map(|server| -> Contender<'_> { Box::new(|round| server.writes(round)) })
            .collect(),
    )?;
    let ours = race.nanoseconds(0);
    let growth = ours / *small.get_or_insert(ours);
    let cells = |what: &str| {
        vec![
            format!("{}{what}", grouped(size)),
            milliseconds(ours),
            milliseconds(race.nanoseconds(1)),
            theirs(&race, 2, contenders),
            times(race.ratio(0, 1)),
            times(growth),
        ]
    };
    let is_large = size == SIZES[SIZES.len() - 1];
    let goal = if is_large { Goal::AtMost(WRITE_BESIDE_BARE) } else { Goal::Reported };
    table.row(cells(""), goal, race.ratio(0, 1));
    if is_large {
        table.row(cells(", beside 100"), Goal::AtMost(WRITE_BESIDE_SMALL), growth);
    }
    Ok(())
}

fn recall(rounds: usize, size: usize, running: &mut [Running], table: &mut Table) -> Outcome<()> {
    for (words, query) in
        [("rare", format!("beacon{}", size / 2)), ("common", "lighthouse keeper".to_owned())]
    {
        let asked = running.iter_mut().filter(|server| server.kind != Kind::Bare);
        let contenders: Vec<Contender<'_>> =
            asked.map(|server| -> Contender<'_> { Box::new(|_| server.searches(&query)) }).collect();
        let count = contenders.len();
        let race = Race::run(rounds, contenders)?;
        let ours = race.nanoseconds(0);
        let bytes = |kind: Kind| {
            let server = running.iter().find(|server| server.kind == kind);
            server.map_or("–".to_owned(), |server| grouped(server.answer_bytes))
        };
        let cells = vec![
            grouped(size),
            words.to_owned(),
            milliseconds(ours),
            bytes(Kind::Ours),
            theirs(&race, 1, count),
            bytes(Kind::Theirs),
        ];
        table.row(cells, Goal::Within(RECALL_MILLISECONDS), ours / 1e6);
    }
    Ok(())
}

fn cost(size: usize, running: &mut [Running], table: &mut Table) -> Outcome<()> {
    let mut cells = vec![grouped(size)];
    let mut definitions = Vec::new();
    for kind in [Kind::Ours, Kind::Theirs] {
        match running.iter_mut().find(|server| server.kind == kind) {
            Some(server) => {
                cells.push(format!("{:.1}", server.resident()?));
                definitions.push(grouped(server.definitions()?));
            }
            None => {
                cells.push("–".to_owned());
                definitions.push("–".to_owned());
            }
        }
    }
    cells.extend(definitions);
    table.row(cells, Goal::Reported, 0.0);
    Ok(())
}

fn text(number: usize) -> String {
    format!(
        "Note {number} of the lighthouse keeper: beacon{number} was checked at {:02}:{:02}, the lens is clean, the oil lasts {} days, and the log says nothing else about the sea.",
        number % 24,
        number % 60,
        number % 90
    )
}

impl<'a> Server<'a> {
    /// Puts the memories where a server expects them.
    fn furnish(kind: Kind, program: Option<&'a Path>, base: &Path, size: usize) -> Outcome<Server<'a>> {
        let directory = base.join(match kind {
            Kind::Ours => "ours",
            Kind::Bare => "bare",
            Kind::Theirs => "theirs",
        });
        fs::create_dir_all(&directory)?;
        match kind {
            Kind::Ours | Kind::Bare => {
                let notes =
                    if kind == Kind::Ours { directory.join("memory/notes") } else { directory.clone() };
                fs::create_dir_all(&notes)?;
                for number in 0..size {
                    fs::write(notes.join(format!("{number}.md")), text(number))?;
                }
            }
            Kind::Theirs => {
                let line = |number: usize| {
                    json!({ "type": "entity", "name": format!("note-{number}"), "entityType": "note", "observations": [text(number)] }).to_string()
                };
                fs::write(
                    directory.join("memory.jsonl"),
                    (0..size).map(line).collect::<Vec<_>>().join("\n"),
                )?;
            }
        }
        Ok(Server { kind, directory, program })
    }

    /// Starts it and says hello.
    fn run(&self) -> Outcome<Running> {
        let mut command = match self.kind {
            Kind::Ours => {
                let mut command = Command::new(haversack_bench::program(env!("CARGO_BIN_EXE_haversack")));
                command.arg("--home").arg(&self.directory).arg("mcp");
                command
            }
            Kind::Bare => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg(BARE).arg(&self.directory);
                command
            }
            Kind::Theirs => Command::new(self.program.ok_or("it was given")?),
        };
        command
            .env_clear()
            .env("HOME", &self.directory)
            .env("MEMORY_FILE_PATH", self.directory.join("memory.jsonl"));
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.current_dir(&self.directory).stderr(std::process::Stdio::null());
        let peer = Peer::start("a server", &mut command)?;
        let mut running = Running { kind: self.kind, peer, next: 0, made: 0, answer_bytes: 0 };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
        running.ask("initialize", hello)?;
        Ok(running)
    }

    /// Starts it again and again until it has answered something.
    fn starts(&self, first: First) -> Contender<'_> {
        Box::new(move |_| {
            let mut samples = Vec::new();
            let started = timed(&mut samples, || -> Outcome<Running> {
                let mut running = self.run()?;
                if first == First::Search {
                    running.search("beacon7")?;
                }
                Ok(running)
            });
            drop(started?);
            Ok(samples)
        })
    }
}

/// A server that runs.
struct Running {
    kind: Kind,
    peer: Peer,
    next: u64,
    made: usize,
    answer_bytes: usize,
}

impl Running {
    /// Makes a request and returns the answer's bytes.
    fn ask(&mut self, method: &str, params: Value) -> Outcome<Vec<u8>> {
        self.next += 1;
        let line =
            format!("{}\n", json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        let mut answer = Vec::new();
        self.peer.ask(line.as_bytes(), &mut answer)?;
        match is_error(&answer) {
            true => Err(String::from_utf8_lossy(&answer).into_owned().into()),
            false => Ok(answer),
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Outcome<Vec<u8>> {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    fn writes(&mut self, round: usize) -> Outcome<Vec<Nanoseconds>> {
        let mut samples = Vec::new();
        for _ in 0..TIMES {
            self.made += 1;
            let (name, text) = (format!("new-{round}-{}", self.made), text(self.made));
            let (tool, arguments) = match self.kind {
                Kind::Ours | Kind::Bare => {
                    ("create", json!({ "path": format!("/memories/notes/{name}.md"), "file_text": text }))
                }
                Kind::Theirs => (
                    "create_entities",
                    json!({ "entities": [{ "name": name, "entityType": "note", "observations": [text] }] }),
                ),
            };
            timed(&mut samples, || self.call(tool, arguments))?;
        }
        Ok(samples)
    }

    fn search(&mut self, query: &str) -> Outcome<Vec<u8>> {
        match self.kind {
            Kind::Ours | Kind::Bare => self.call("recall", json!({ "query": query })),
            Kind::Theirs => self.call("search_nodes", json!({ "query": query })),
        }
    }

    /// Searches some times, and remembers how long the answer is.
    fn searches(&mut self, query: &str) -> Outcome<Vec<Nanoseconds>> {
        let mut samples = Vec::new();
        for _ in 0..TIMES {
            let answer = timed(&mut samples, || self.search(query))?;
            let answer: Value = serde_json::from_slice(&answer)?;
            let text = answer["result"]["content"][0]["text"].as_str().ok_or("no text")?;
            self.answer_bytes = text.len();
        }
        Ok(samples)
    }

    fn definitions(&mut self) -> Outcome<usize> {
        let answer: Value = serde_json::from_slice(&self.ask("tools/list", json!({}))?)?;
        Ok(answer["result"]["tools"].to_string().len())
    }

    /// Returns how much memory it holds, in megabytes.
    fn resident(&self) -> Outcome<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.peer.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1024.0)
    }
}

/// Returns true if an answer is an error, without reading all of it.
fn is_error(answer: &[u8]) -> bool {
    let start = &answer[..answer.len().min(200)];
    start.windows(8).any(|window| window == b"\"error\":")
        || answer.windows(14).rev().take(40).any(|window| window == b"\"isError\":true")
}

/// Is the bare server: one durable file for each write, and constants.
fn serve_bare(directory: &Path) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let parent = File::open(directory)?;
    let mut line = String::new();
    let mut number = 0;
    while input.read_line(&mut line)? > 0 {
        let request: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
        if request["params"]["name"] == "create" {
            number += 1;
            let draft = directory.join(format!(".draft-{number}"));
            let mut file = File::create(&draft)?;
            file.write_all(
                request["params"]["arguments"]["file_text"].as_str().unwrap_or_default().as_bytes(),
            )?;
            file.sync_all()?;
            fs::rename(&draft, directory.join(format!("new-{number}.md")))?;
            parent.sync_all()?;
        }
        writeln!(
            output,
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"done\"}}]}}}}",
            request["id"]
        )?;
        output.flush()?;
        line.clear();
    }
    Ok(())
}
