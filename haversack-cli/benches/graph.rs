//! Measures our graph, compared with `@modelcontextprotocol/server-memory` in the same run: `cargo xtask bench graph [--quick]`.
//!
//! Both serve the same entities over stdio, are asked the same questions by the same client, and give the same answers. Ours makes every write durable;
//! server-memory makes nothing durable. A plain write and fsync of one file is the floor.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use haversack::Memory;
use haversack::file_storage::{FileContent, FileStorage, MemoryStorage};
use haversack::graph::server_memory::ServerMemory;
use haversack::graph::{Graph, Properties};
use haversack::store::{Bytes, DeviceLocal, InMemory, block_on};
use haversack_bench::Outcome;
use haversack_bench::peer::Peer;
use haversack_bench::report::{Report, exit_code, say};
use haversack_bench::scratch::Scratch;
use haversack_bench::table::{Goal, Table, grouped, milliseconds, times};
use haversack_system::{RandomIds, SystemClock};
use serde_json::{Value, json};

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// The numbers of entities.
const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

/// The goal for a write at 10,000 entities, relative to server-memory.
const WRITE_BESIDE_THEIRS: f64 = 0.1;

/// The goal for a write at 100,000 entities, relative to one at 100.
const WRITE_BESIDE_SMALL: f64 = 1.5;

/// The entities that each process creates while others write, and those that one process is asked to create at once.
const CREATED_AT_ONCE: usize = 200;

/// The goal for 95 % of searches at 100,000 entities, in milliseconds.
const SEARCH_MILLISECONDS: f64 = 20.0;

fn main() -> ExitCode {
    let (mut rounds, mut asked, mut theirs) = (60, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => asked = true,
            "--quick" => rounds = 20,
            "--server-memory" => theirs = arguments.next().map(PathBuf::from),
            other => {
                say(&format!("unknown argument {other}; there are --quick and --server-memory PROGRAM\n"));
                return ExitCode::from(2);
            }
        }
    }
    if asked { exit_code(run(rounds, theirs.as_deref())) } else { ExitCode::SUCCESS }
}

/// Times of one question, in nanoseconds, sorted.
struct Times(Vec<f64>);

impl Times {
    fn at(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }

    fn shown(&self) -> String {
        format!("{} / {}", milliseconds(self.at(0.5)), milliseconds(self.at(0.95)))
    }
}

fn run(rounds: usize, program: Option<&Path>) -> Outcome<()> {
    let scratch = Scratch::create(Path::new(TARGET_TMP))?;
    let mut report = Report::start();
    let columns = [
        "entities",
        "question",
        "ours p50 / p95 ms",
        "server-memory p50 / p95 ms",
        "floor p50 ms",
        "ours / theirs",
        "ours / ours at 100",
    ];
    let mut table = Table::new("A graph of entities", &columns);
    let mut small: Vec<(&str, f64)> = Vec::new();
    for size in SIZES {
        say(&format!("{} entities\n", grouped(size)));
        let base = scratch.path().join(size.to_string());
        let mut ours = furnish(&base, size)?;
        let mut theirs = program.map(|program| theirs(program, &base)).transpose()?;
        for (question, is_write) in [
            ("create", true),
            ("open", false),
            ("search, rare", false),
            ("search, ten hits", false),
            ("add an observation", true),
        ] {
            let here = measured(&mut ours, question, rounds, size)?;
            // A question to a large server-memory takes a second.
            let few = if size > 10_000 { rounds.min(10) } else { rounds };
            let there = theirs.as_mut().map(|server| measured(server, question, few, size)).transpose()?;
            let floor = if is_write { Some(floor(&base, rounds)?) } else { None };
            let median = here.at(0.5);
            let first = small.iter().find(|(known, _)| *known == question).map(|(_, first)| *first);
            let growth = median / first.unwrap_or(median);
            if first.is_none() {
                small.push((question, median));
            }
            let ratio = there.as_ref().map_or(f64::NAN, |there| median / there.at(0.5));
            let (goal, value) = match (question, size) {
                ("create", 10_000) if theirs.is_some() => (Goal::AtMost(WRITE_BESIDE_THEIRS), ratio),
                ("create", 100_000) => (Goal::AtMost(WRITE_BESIDE_SMALL), growth),
                ("search, rare" | "search, ten hits", 100_000) => {
                    (Goal::Within(SEARCH_MILLISECONDS), here.at(0.95) / 1e6)
                }
                _ => (Goal::Reported, growth),
            };
            let cells = vec![
                grouped(size),
                question.to_owned(),
                here.shown(),
                there.as_ref().map_or("–".to_owned(), Times::shown),
                floor.as_ref().map_or("–".to_owned(), |floor| milliseconds(floor.at(0.5))),
                times(ratio),
                times(growth),
            ];
            table.row(cells, goal, value);
        }
        drop(ours);
        let here = queried(&base, rounds, size)?;
        let median = here.at(0.5);
        let first = small.iter().find(|(known, _)| *known == "query").map(|(_, first)| *first);
        if first.is_none() {
            small.push(("query", median));
        }
        let growth = median / first.unwrap_or(median);
        let dash = || "–".to_owned();
        let cells =
            vec![grouped(size), "query".to_owned(), here.shown(), dash(), dash(), dash(), times(growth)];
        table.row(cells, Goal::Reported, growth);
    }
    report.add(table)?;
    report.add(at_once(scratch.path(), program)?)?;
    let what = match program {
        Some(_) => "@modelcontextprotocol/server-memory 2026.8.31",
        None => "without server-memory",
    };
    report.end(&[what.to_owned()])
}

fn text(number: usize) -> String {
    format!(
        "Note {number} of the lighthouse: beacon{number}x was checked, the lens is clean, group{}g keeps it, and the log says nothing else about the sea.",
        number / 10
    )
}

/// Writes the same entities for both servers, and starts ours.
fn furnish(base: &Path, size: usize) -> Outcome<Server> {
    fs::create_dir_all(base)?;
    let line = |number: usize| {
        json!({ "type": "entity", "name": format!("note-{number}"), "entityType": "note", "observations": [text(number)] }).to_string()
    };
    let relation = |number: usize| {
        let (from, to) = (format!("note-{number}"), format!("note-{}", number / 2));
        json!({ "type": "relation", "from": from, "to": to, "relationType": "follows" }).to_string()
    };
    let relations = (1..size / 2).map(relation);
    let lines: Vec<String> = (0..size).map(line).chain(relations).collect();
    let jsonl = lines.join("\n");
    fs::write(base.join("memory.jsonl"), &jsonl)?;
    // The engine makes the files in memory; nothing has to be durable before the measurement.
    let storage: Arc<dyn FileStorage> = Arc::new(MemoryStorage::over(Arc::new(InMemory::new())));
    let graph = Graph::new(storage.clone(), Arc::new(SystemClock), Arc::new(RandomIds));
    block_on(ServerMemory::new(Arc::new(graph)).import(&jsonl))?;
    let memory = base.join("home/memory");
    for path in block_on(storage.marks(""))?.into_keys() {
        let FileContent::File { content, .. } = block_on(storage.view(&path))? else { continue };
        let file = memory.join(&path);
        fs::create_dir_all(file.parent().ok_or("it is in a directory")?)?;
        fs::write(file, Bytes::from(content))?;
    }
    ours(base)
}

fn ours(base: &Path) -> Outcome<Server> {
    let mut command = Command::new(haversack_bench::program(env!("CARGO_BIN_EXE_haversack")));
    command.arg("--home").arg(base.join("home")).args(["mcp", "--tools", "server-memory"]);
    Server::start(command, base)
}

fn theirs(program: &Path, base: &Path) -> Outcome<Server> {
    Server::start(Command::new(program), base)
}

/// Asks a question again and again.
fn measured(server: &mut Server, question: &str, rounds: usize, size: usize) -> Outcome<Times> {
    let mut samples = Vec::new();
    // The first question of its sort reads what the others find in memory.
    for round in 0..=rounds {
        let number = (round * 7919) % size;
        let (tool, arguments) = match question {
            "create" => {
                server.made += 1;
                let name = format!("new-{}", server.made);
                (
                    "create_entities",
                    json!({ "entities": [{ "name": name, "entityType": "note", "observations": [text(size + round)] }] }),
                )
            }
            "open" => ("open_nodes", json!({ "names": [format!("note-{number}")] })),
            "search, rare" => ("search_nodes", json!({ "query": format!("BEACON{number}x") })),
            "search, ten hits" => ("search_nodes", json!({ "query": format!("group{}g", number / 10) })),
            _ => {
                let added = json!({ "entityName": format!("note-{number}"), "contents": [format!("seen in round {round}")] });
                ("add_observations", json!({ "observations": [added] }))
            }
        };
        let began = Instant::now();
        server.call(tool, arguments)?;
        if round > 0 {
            samples.push(began.elapsed().as_nanos() as f64);
        }
    }
    samples.sort_by(f64::total_cmp);
    Ok(Times(samples))
}

/// Asks the engine for the nodes of a type with a property; server-memory has no such question.
fn queried(base: &Path, rounds: usize, size: usize) -> Outcome<Times> {
    let at = |name: &str| base.join("home").join(name).display().to_string();
    let files = DeviceLocal::open(at("memory"), at("bench-locks"))?;
    let state = DeviceLocal::open(at("bench-state"), at("bench-locks"))?;
    let storage = MemoryStorage::new(Memory::new(Arc::new(files), Arc::new(state)));
    let graph = Graph::new(Arc::new(storage), Arc::new(SystemClock), Arc::new(RandomIds));
    let mut samples = Vec::new();
    for round in 0..=rounds {
        let name = format!("note-{}", (round * 7919) % size);
        let properties = Properties::from([("name".to_owned(), name.as_str().into())]);
        let began = Instant::now();
        let found = block_on(graph.query_nodes(Some("note"), &properties))?;
        if round > 0 {
            samples.push(began.elapsed().as_nanos() as f64);
        }
        if found.len() != 1 {
            return Err(format!("{} nodes are called {name}", found.len()).into());
        }
    }
    samples.sort_by(f64::total_cmp);
    Ok(Times(samples))
}

/// Lets two processes create entities at the same time, and one process many at once, and counts the entities that are there afterwards.
fn at_once(scratch: &Path, program: Option<&Path>) -> Outcome<Table> {
    let columns = ["writers", "created", "ours kept", "ours ms", "server-memory kept", "server-memory ms"];
    let mut table = Table::new("Entities created at the same time", &columns);
    for (writers, processes) in [("2 processes, one after the other each", 2), ("1 process, all at once", 1)]
    {
        let base = |name: &str| scratch.join(format!("{name}-{processes}"));
        let created = processes * CREATED_AT_ONCE;
        say(&format!("{writers}\n"));
        let (kept, time) = create_at_once(processes, &base("ours"), &ours)?;
        let mut cells = vec![writers.to_owned(), created.to_string(), kept.to_string(), milliseconds(time)];
        match program {
            Some(program) => {
                let start = |base: &Path| theirs(program, base);
                let (kept, time) = create_at_once(processes, &base("theirs"), &start)?;
                cells.extend([kept.to_string(), milliseconds(time)]);
            }
            None => cells.extend(["–".to_owned(), "–".to_owned()]),
        }
        table.row(cells, Goal::Every, kept as f64 / created as f64);
    }
    Ok(table)
}

/// Returns how many entities were kept, and the time until all of them were acknowledged.
fn create_at_once(
    processes: usize,
    base: &Path,
    start: &dyn Fn(&Path) -> Outcome<Server>,
) -> Outcome<(usize, f64)> {
    fs::create_dir_all(base)?;
    let mut servers = Vec::new();
    for _ in 0..processes {
        servers.push(start(base)?);
    }
    let began = Instant::now();
    std::thread::scope(|scope| {
        for (number, server) in servers.iter_mut().enumerate() {
            let calls = (0..CREATED_AT_ONCE).map(move |made| {
                let name = format!("new-{number}-{made}");
                json!({ "entities": [{ "name": name, "entityType": "note", "observations": [text(made)] }] })
            });
            // An error keeps nothing, and the count shows it.
            scope.spawn(move || match processes {
                1 => drop(server.call_at_once("create_entities", calls)),
                _ => calls.for_each(|call| drop(server.call("create_entities", call))),
            });
        }
    });
    let time = began.elapsed().as_nanos() as f64;
    drop(servers);
    let answer: Value = serde_json::from_slice(&start(base)?.call("read_graph", json!({}))?)?;
    let entities = answer["result"]["structuredContent"]["entities"].as_array();
    Ok((entities.map_or(0, Vec::len), time))
}

/// Returns the cost of one file made durable.
fn floor(base: &Path, rounds: usize) -> Outcome<Times> {
    let directory = base.join("floor");
    fs::create_dir_all(&directory)?;
    let parent = File::open(&directory)?;
    let mut samples = Vec::new();
    for round in 0..rounds {
        let began = Instant::now();
        let draft = directory.join(format!(".draft-{round}"));
        let mut file = File::create(&draft)?;
        file.write_all(text(round).as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, directory.join(format!("{round}.md")))?;
        parent.sync_all()?;
        samples.push(began.elapsed().as_nanos() as f64);
    }
    samples.sort_by(f64::total_cmp);
    Ok(Times(samples))
}

/// A server that runs.
struct Server {
    peer: Peer,
    next: u64,
    made: usize,
}

impl Server {
    fn start(mut command: Command, base: &Path) -> Outcome<Server> {
        command.env_clear().env("HOME", base).env("MEMORY_FILE_PATH", base.join("memory.jsonl"));
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.current_dir(base).stderr(Stdio::null());
        let mut server = Server { peer: Peer::start("a server", &mut command)?, next: 0, made: 0 };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
        server.ask("initialize", hello)?;
        Ok(server)
    }

    fn ask(&mut self, method: &str, params: Value) -> Outcome<Vec<u8>> {
        let line = self.line(method, params);
        let mut answer = Vec::new();
        self.peer.ask(line.as_bytes(), &mut answer)?;
        checked(answer)
    }

    /// Makes several calls before the first one is answered.
    fn call_at_once(&mut self, tool: &str, calls: impl Iterator<Item = Value>) -> Outcome<()> {
        let call =
            |arguments: Value| self.line("tools/call", json!({ "name": tool, "arguments": arguments }));
        let lines: Vec<String> = calls.map(call).collect();
        let mut answer = Vec::new();
        self.peer.ask(lines.concat().as_bytes(), &mut answer)?;
        for _ in 1..lines.len() {
            self.peer.hear(&mut answer)?;
        }
        Ok(())
    }

    fn line(&mut self, method: &str, params: Value) -> String {
        self.next += 1;
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }))
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Outcome<Vec<u8>> {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }
}

/// Returns an answer that is no error.
fn checked(answer: Vec<u8>) -> Outcome<Vec<u8>> {
    let start = &answer[..answer.len().min(200)];
    let is_error = start.windows(8).any(|window| window == b"\"error\":")
        || answer.windows(14).rev().take(40).any(|window| window == b"\"isError\":true");
    if is_error { Err(String::from_utf8_lossy(&answer).into_owned().into()) } else { Ok(answer) }
}
