//! `haversack demo`: the promises of the local store, tried before your eyes.
//!
//! Every line is counted in this run and checked before it is printed; a promise that does not hold ends
//! the demo with exit code 1.

pub(crate) mod writer;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use haversack::store::{Blocking, Condition, DeviceLocal, Locator};

use crate::error::CommandError;
use crate::settings::shown;
use crate::ui::Ui;
use writer::How;

/// How many edits each of the two writers makes.
const EDITS: usize = 100;

/// How often a writer is killed.
const KILLS: usize = 20;

/// Names that have led other tools out of their directory.
const HOSTILE: [&str; 12] = [
    "../outside.md",
    "/etc/../../outside.md",
    "notes/../../outside.md",
    "..\\outside.md",
    "link/outside.md",
    "link",
    "notes.md\0.txt",
    "con.md",
    "~/outside.md",
    "%2e%2e/outside.md",
    ".haversack/store.json",
    "C:\\outside.md",
];

/// See it work, in a sandbox
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {}

pub(crate) fn cmd_demo(ui: &mut Ui, _args: &DemoArgs) -> Result<ExitCode, CommandError> {
    let started = Instant::now();
    let sandbox = Sandbox::new()?;
    ui.line(format!(
        "One memory, several writers, in {}. Your own memory is not touched.",
        shown(&sandbox.base)
    ))?;
    ui.line("")?;

    let shared = race(&sandbox, How::CompareAndSwap)?;
    ui.line(step(1, "Two processes edit one file at once", &shared.to_string()))?;
    demand(shared.acknowledged == 2 * EDITS && shared.found == shared.acknowledged, "an edit was lost")?;
    let usual = race(&sandbox, How::ReplaceWholeFile)?;
    ui.line(step(2, "The same, replacing the whole file, as is usual", &usual.to_string()))?;

    let killed = kill(&sandbox)?;
    ui.line(step(3, "A writer is killed in the middle (kill -9)", &format!("{KILLS} times, {killed}")))?;
    demand(killed.found >= killed.acknowledged, "an acknowledged line was lost")?;

    let confined = attack(&sandbox)?;
    let outcome = format!("{confined} refused or confined, nothing outside touched");
    ui.line(step(4, &format!("{} hostile names and links", HOSTILE.len()), &outcome))?;
    demand(confined == HOSTILE.len(), "a name led out of the memory")?;

    let left = sandbox.working_names();
    ui.line(step(5, "What is left behind in the directory", &format!("{left} stray files")))?;
    demand(left == 0, "a working file was left behind")?;

    ui.line("")?;
    let acknowledged = shared.acknowledged + killed.acknowledged;
    let lost = shared.lost() + killed.lost();
    ui.line(format!(
        "  acknowledged {acknowledged} · lost {lost} · with the usual way lost {}",
        usual.lost()
    ))?;
    ui.line("")?;
    ui.line(format!(
        "Done in {:.1} s. The files are plain: ls {}",
        started.elapsed().as_secs_f64(),
        shown(&sandbox.root)
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn step(number: usize, what: &str, outcome: &str) -> String {
    format!("  {number}  {what:<50}{outcome}")
}

fn demand(holds: bool, otherwise: &str) -> Result<(), CommandError> {
    if holds { Ok(()) } else { Err(CommandError::ours(otherwise)) }
}

/// A directory of its own for the demo.
struct Sandbox {
    base: PathBuf,
    root: PathBuf,
    locks: PathBuf,
}

impl Sandbox {
    fn new() -> Result<Sandbox, CommandError> {
        let failed = |error: std::io::Error| {
            CommandError::user(
                format!("the sandbox could not be made: {error}"),
                "Set TMPDIR to a writable directory",
            )
        };
        let number = std::process::id();
        let base = (0..1000)
            .map(|attempt| std::env::temp_dir().join(format!("haversack-demo-{number}-{attempt}")))
            .find_map(|base| match std::fs::create_dir(&base) {
                Ok(()) => Some(Ok(base)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
                Err(error) => Some(Err(error)),
            })
            .unwrap_or_else(|| Err(std::io::ErrorKind::AlreadyExists.into()))
            .map_err(failed)?;
        Ok(Sandbox { root: base.join("memory"), locks: base.join("locks"), base })
    }

    fn store(&self) -> Result<Blocking, CommandError> {
        Ok(Blocking::new(Arc::new(DeviceLocal::open(&self.root, &self.locks)?)))
    }

    fn writer(&self, key: &str, name: &str, edits: usize, how: How) -> Result<Child, CommandError> {
        let program = std::env::current_exe()
            .map_err(|error| CommandError::ours(format!("the program cannot find itself: {error}")))?;
        Command::new(program)
            .arg("demo-writer")
            // The writers are to work whatever the settings in the user's own home are.
            .args([Path::new("--home"), &self.base])
            .args([&self.root, &self.locks])
            .args([key, name, &edits.to_string(), how.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| CommandError::ours(format!("a writer could not be started: {error}")))
    }

    fn working_names(&self) -> usize {
        fn count(directory: &Path) -> usize {
            let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
            let each = entries.filter_map(Result::ok).map(|entry| match entry.file_type() {
                Ok(kind) if kind.is_dir() => count(&entry.path()),
                _ => usize::from(entry.file_name().to_string_lossy().starts_with(".haversack-")),
            });
            each.sum()
        }
        count(&self.root)
    }
}

/// What became of the lines that were acknowledged.
struct Tally {
    acknowledged: usize,
    found: usize,
}

impl Tally {
    fn lost(&self) -> usize {
        self.acknowledged.saturating_sub(self.found)
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} acknowledged, {} lost", self.acknowledged, self.lost())
    }
}

fn tally(store: &Blocking, locator: &Locator, acknowledged: &[String]) -> Result<Tally, CommandError> {
    let text = store.read_text(locator)?.unwrap_or_default();
    let lines: BTreeSet<&str> = text.lines().collect();
    let found = acknowledged.iter().filter(|line| lines.contains(line.as_str())).count();
    Ok(Tally { acknowledged: acknowledged.len(), found })
}

/// Reads what a writer acknowledges, at most `limit` lines, then lets `end` end it.
fn acknowledged(mut writer: Child, limit: usize, end: impl FnOnce(&mut Child)) -> Vec<String> {
    let output = writer.stdout.take().map(BufReader::new);
    let mut lines = Vec::new();
    let mut stream = output.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
    lines.extend(stream.by_ref().take(limit));
    end(&mut writer);
    lines.extend(stream);
    // It has ended: its output is at its end. How it ended is shown by what it wrote.
    drop(writer.wait());
    lines
}

fn race(sandbox: &Sandbox, how: How) -> Result<Tally, CommandError> {
    let key = format!("{}.md", how.as_str());
    let locator = Locator::parse(&key).expect("a plain name");
    let store = sandbox.store()?;
    let _ = store.write(&locator, "", Condition::Absent)?;
    let writers = [sandbox.writer(&key, "laptop", EDITS, how)?, sandbox.writer(&key, "desktop", EDITS, how)?];
    let readers = writers.map(|writer| std::thread::spawn(move || acknowledged(writer, usize::MAX, |_| ())));
    let mut lines = Vec::new();
    for reader in readers {
        lines.extend(reader.join().map_err(|_| CommandError::ours("a reader panicked"))?);
    }
    tally(&store, &locator, &lines)
}

fn kill(sandbox: &Sandbox) -> Result<Tally, CommandError> {
    let locator = Locator::parse("killed.md").expect("a plain name");
    let mut lines = Vec::new();
    for round in 0..KILLS {
        let writer =
            sandbox.writer("killed.md", &format!("round-{round}"), usize::MAX, How::CompareAndSwap)?;
        lines.extend(acknowledged(writer, 1 + round % 7, |writer| drop(writer.kill())));
    }
    let store = sandbox.store()?;
    tally(&store, &locator, &lines)
}

/// Tries every hostile name and returns how many did no harm.
fn attack(sandbox: &Sandbox) -> Result<usize, CommandError> {
    let store = sandbox.store()?;
    let outside = sandbox.base.join("outside");
    std::fs::create_dir(&outside)
        .map_err(|error| CommandError::ours(format!("the sandbox could not be prepared: {error}")))?;
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, sandbox.root.join("link"))
        .map_err(|error| CommandError::ours(format!("the sandbox could not be prepared: {error}")))?;
    let before = everything_but(&sandbox.base, &sandbox.root);
    let mut harmless = 0;
    for name in HOSTILE {
        if let Ok(locator) = Locator::parse(name) {
            // Refused or written below the root: what counts is what is outside afterwards.
            drop(store.write(&locator, "x", Condition::Any));
        }
        harmless += usize::from(everything_but(&sandbox.base, &sandbox.root) == before);
    }
    Ok(harmless)
}

/// Returns the paths below `base` that are not below `root`, lock files aside.
fn everything_but(base: &Path, root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut directories = vec![base.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            if path == root || path == base.join("locks") {
                continue;
            }
            if path.is_dir() {
                directories.push(path.clone());
            }
            found.insert(path);
        }
    }
    found
}
