//! Measures the page of `haversack open` with few and with many memories: `cargo xtask bench page [--quick]`.
//!
//! The server is asked over plain connections, as a browser asks it. The floor is a server that answers every request with constant bytes of the same length.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use haversack_bench::Outcome;
use haversack_bench::report::{Report, in_rounds, say};
use haversack_bench::scratch::Scratch;
use haversack_bench::table::{Goal, Table, grouped, milliseconds};

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// The numbers of memories.
const SIZES: [usize; 2] = [50, 10_000];

/// The number of changes in the history of each home.
const CHANGES: usize = 40;

/// The goal for the first view, in milliseconds.
const FIRST_VIEW: f64 = 100.0;

/// The goal for an answer to a keystroke, in milliseconds.
const KEYSTROKE: f64 = 50.0;

/// The goal for the bytes of a view with its style and its script, in megabytes.
const WEIGHT: f64 = 0.15;

/// Longer than any view keeps what it knows.
const REST: Duration = Duration::from_secs(6);

fn main() -> ExitCode {
    in_rounds(run)
}

/// How a question is asked.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// Once, right after the server started: the browser comes at once.
    First,
    /// Again and again.
    Steady,
    /// After a rest in which everything that the server knew became old.
    Rested,
}

fn run(rounds: usize) -> Outcome<()> {
    let scratch = Scratch::create(Path::new(TARGET_TMP))?;
    let mut report = Report::start();
    let columns = ["memories", "view", "p50 / p95 ms", "floor p50 ms", "KB with style and script"];
    let mut table = Table::new("The page", &columns);
    for size in SIZES {
        say(&format!("{} memories\n", grouped(size)));
        let base = scratch.path().join(size.to_string());
        furnish(&base, size)?;
        let questions: [(&str, Pace, Goal); 11] = [
            ("now, the first view", Pace::First, Goal::Within(FIRST_VIEW)),
            ("now", Pace::Steady, Goal::Within(FIRST_VIEW)),
            ("now, after a rest", Pace::Rested, Goal::Within(FIRST_VIEW)),
            ("keystroke", Pace::Steady, Goal::Within(KEYSTROKE)),
            ("keystroke, after a rest", Pace::Rested, Goal::Within(KEYSTROKE)),
            ("memories", Pace::Steady, Goal::Within(FIRST_VIEW)),
            ("a memory", Pace::Steady, Goal::Within(FIRST_VIEW)),
            ("conflicts", Pace::Steady, Goal::Within(FIRST_VIEW)),
            ("tidy", Pace::Steady, Goal::Within(FIRST_VIEW)),
            ("time", Pace::Steady, Goal::Within(FIRST_VIEW)),
            ("graph", Pace::Steady, Goal::Within(FIRST_VIEW)),
        ];
        let mut page = Page::open(&base)?;
        for (question, pace, goal) in questions {
            let mut samples = Vec::new();
            let mut bytes = 0;
            let (times, warm) = match pace {
                Pace::First => (rounds.min(5), 0),
                Pace::Steady => (rounds * 3, 1),
                Pace::Rested => (rounds.min(3), 0),
            };
            for round in 0..times + warm {
                match pace {
                    Pace::First => page = Page::open(&base)?,
                    Pace::Rested => std::thread::sleep(REST),
                    Pace::Steady => {}
                }
                let view = address(question, round, size);
                let began = Instant::now();
                let answer = page.get(&view)?;
                if round >= warm {
                    samples.push(began.elapsed().as_nanos() as f64);
                }
                bytes = bytes.max(answer);
            }
            samples.sort_by(f64::total_cmp);
            let at = |share: f64| samples[((samples.len() - 1) as f64 * share).round() as usize];
            let weight = bytes + if question.starts_with("keystroke") { 0 } else { page.assets()? };
            let cells = vec![
                grouped(size),
                question.to_owned(),
                format!("{} / {}", milliseconds(at(0.5)), milliseconds(at(0.95))),
                milliseconds(floor(bytes, rounds)?),
                format!("{:.0}", weight as f64 / 1024.0),
            ];
            table.row(cells, goal, at(0.95) / 1e6);
            if (weight as f64) / 1_048_576.0 > WEIGHT {
                say(&format!("{question} weighs more than {WEIGHT} MB\n"));
            }
        }
    }
    report.add(table)?;
    report.end(&[format!("{CHANGES} changes in the history")])
}

fn address(question: &str, round: usize, size: usize) -> String {
    let number = (round * 7919) % size;
    match question.split(',').next().unwrap_or_default() {
        // A word as it is typed, letter by letter, then the next one.
        "keystroke" => {
            let typed: String = format!("beacon{number}x").chars().take(3 + round % 8).collect();
            format!("memories?part=list&q={typed}")
        }
        "a memory" => format!("memory?path=claude_memory/lighthouse/memory_{number}.md"),
        view => view.to_owned(),
    }
}

fn haversack(base: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(haversack_bench::program(env!("CARGO_BIN_EXE_haversack")));
    command.env_clear().env("HOME", base).env("PATH", "/usr/bin:/bin").env("HAVERSACK_SYNC", "off");
    command.arg("--home").arg(base.join("home")).args(arguments).current_dir(base);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Makes a home with memories, a remote and a history.
fn furnish(base: &Path, size: usize) -> Outcome<()> {
    let directory = base.join("home/memory/claude_memory/lighthouse");
    fs::create_dir_all(&directory)?;
    fs::create_dir_all(base.join("remote"))?;
    for number in 0..size {
        let text = format!(
            "---\nname: Memory {number}\ndescription: what beacon{number}x is for\ntype: {}\n---\nThe lamp number {number} of the coast, beside [[memory_{}]] and [[memory_{}]]. Its name is beacon{number}x, and its group{} keeps it.\n",
            ["project", "feedback", "reference"][number % 3],
            (number + 1) % size,
            number / 7,
            number / 10
        );
        fs::write(directory.join(format!("memory_{number}.md")), text)?;
    }
    let remote = format!("file://{}", base.join("remote").display());
    let done = |arguments: &[&str]| -> Outcome<()> {
        let status = haversack(base, arguments).status()?;
        if status.success() { Ok(()) } else { Err(format!("{arguments:?} failed").into()) }
    };
    done(&["remote", "add", &remote, "--device", "desktop"])?;
    done(&["sync"])?;
    for change in 0..CHANGES {
        let number = (change * 7919) % size;
        done(&["append", &format!("claude_memory/lighthouse/memory_{number}.md"), "One more line.\n"])?;
        done(&["sync"])?;
    }
    done(&["recall", "--everywhere", "beacon7x"])
}

/// A server of the page that runs.
struct Page {
    process: Child,
    address: String,
    prefix: String,
    cookie: String,
}

impl Page {
    fn open(base: &Path) -> Outcome<Page> {
        let mut command = haversack(base, &["open", "--no-browser"]);
        let mut process = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("its output is piped")?).read_line(&mut line)?;
        let rest = line.trim().strip_prefix("http://").ok_or("it prints an address")?;
        let (address, rest) = rest.split_once('/').ok_or("the address has a path")?;
        let (prefix, _) = rest.split_once("/enter").ok_or("the path has a code")?;
        let mut page =
            Page { process, address: address.to_owned(), prefix: prefix.to_owned(), cookie: String::new() };
        let (head, _) = ask(&page.address, &format!("/{rest}"), "")?;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).ok_or("a cookie")?;
        page.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(page)
    }

    /// Gets a view and returns its length.
    fn get(&self, view: &str) -> Outcome<usize> {
        let (head, length) = ask(&self.address, &format!("/{}/{view}", self.prefix), &self.cookie)?;
        if head.starts_with("HTTP/1.1 200") { Ok(length) } else { Err(format!("{view}: {head}").into()) }
    }

    /// Returns the length of the style and the script.
    fn assets(&self) -> Outcome<usize> {
        Ok(self.get("style.css")? + self.get("script.js")?)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Makes a request, and returns the head of the answer and the length of its body.
fn ask(address: &str, path: &str, cookie: &str) -> Outcome<(String, usize)> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n")
            .as_bytes(),
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").ok_or("it is an answer")?;
    Ok((head.to_owned(), body.len()))
}

/// Returns the median time of a server that answers constant bytes.
fn floor(length: usize, rounds: usize) -> Outcome<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let times = rounds * 3;
    let server = std::thread::spawn(move || {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length));
        for stream in listener.incoming().take(times) {
            let Ok(mut stream) = stream else { break };
            let mut request = [0u8; 1024];
            drop(stream.read(&mut request));
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    let mut samples = Vec::new();
    for _ in 0..times {
        let began = Instant::now();
        ask(&address, "/", "")?;
        samples.push(began.elapsed().as_nanos() as f64);
    }
    drop(server.join());
    samples.sort_by(f64::total_cmp);
    Ok(samples[samples.len() / 2])
}
