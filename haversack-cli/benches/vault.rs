//! Measures the cost of a synced folder, compared with one directory as a remote: `cargo xtask bench vault [--quick]`.
//!
//! Three machines share one copy of the folder, as if its client took no time. Prints Markdown to stdout, ready for `docs/benchmarks.md`, and
//! what it is doing to stderr.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use haversack_bench::measure::{Contender, Nanoseconds, Race, timed};
use haversack_bench::report::{Report, say, sized};
use haversack_bench::scratch::{Scratch, fill};
use haversack_bench::table::{Goal, Table, grouped, milliseconds, times};
use haversack_bench::{Outcome, machine};

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// The machines that meet.
const MACHINES: [&str; 3] = ["one", "two", "three"];

/// The numbers of commits at which the size of a log is measured: few, and enough to fold it.
const COMMITS: [usize; 2] = [100, 400];

fn main() -> ExitCode {
    sized(run)
}

fn run(most_files: usize) -> Outcome<()> {
    let target = Path::new(TARGET_TMP).parent().ok_or("target/tmp is in target")?;
    let scratch = Scratch::create(target)?;
    let filesystem = machine::filesystem(target).unwrap_or_else(|| "an unknown filesystem".to_owned());
    let mut report = Report::start();
    report.add(nothing_new(scratch.path(), &filesystem, most_files)?)?;
    report.add(growth(&scratch.path().join("growth"), &filesystem)?)?;
    report.end(&[filesystem])
}

/// A sync that finds nothing.
fn nothing_new(scratch: &Path, filesystem: &str, most_files: usize) -> Outcome<Table> {
    let title = format!(
        "A sync with nothing new in a folder of three machines on {filesystem}, warm, beside the same sync with one directory as a remote and a bare look at the names in the other machines' logs"
    );
    let columns = [
        "files",
        "in a folder p50 ms",
        "in one directory p50 ms",
        "names of logs p50 ms",
        "folder / (directory + names)",
    ];
    let mut table = Table::new(title, &columns);
    for files in [100, 10_000, 100_000].into_iter().filter(|files| *files <= most_files) {
        say(&format!("three machines with {} files\n", grouped(files)));
        let folder = Machines::meet(&scratch.join(format!("folder-{files}")), Meeting::Folder, files)?;
        let directory =
            Machines::meet(&scratch.join(format!("directory-{files}")), Meeting::Directory, files)?;
        let logs = folder.logs();
        let contenders: Vec<Contender<'_>> = vec![
            Box::new(|_| Ok(vec![folder.run("one", &["sync"])?])),
            Box::new(|_| Ok(vec![directory.run("one", &["sync"])?])),
            Box::new(|_| {
                let mut samples = Vec::new();
                match timed(&mut samples, || names_below(&logs))? {
                    0 => Err("there are no logs".into()),
                    _ => Ok(samples),
                }
            }),
        ];
        let race = Race::run(15, contenders)?;
        let [folder, directory, names] = [0, 1, 2].map(|contender| race.nanoseconds(contender));
        let ratio = folder / (directory + names);
        let cells = vec![
            grouped(files),
            milliseconds(folder),
            milliseconds(directory),
            milliseconds(names),
            times(ratio),
        ];
        table.row(cells, Goal::AtMost(1.5), ratio);
    }
    Ok(table)
}

/// How large a log gets of one machine that adds a line again and again.
fn growth(base: &Path, filesystem: &str) -> Outcome<Table> {
    let title = format!("The log of one machine that adds a line of 60 bytes and syncs on {filesystem}");
    let columns = ["commits", "files in the log", "KB in the log", "bytes for a commit", "a sync p50 ms"];
    let mut table = Table::new(title, &columns);
    let machines = Machines::meet(base, Meeting::Folder, 100)?;
    let journal = base.join("one/memory/journal.md");
    let mut done = 0;
    for commits in COMMITS {
        say(&format!("{} commits\n", grouped(commits)));
        let mut samples = Vec::new();
        while done < commits {
            done += 1;
            let text = std::fs::read_to_string(&journal).unwrap_or_default();
            std::fs::write(
                &journal,
                format!("{text}{:<59}\n", format!("- {done}: the lamp was lit at dusk")),
            )?;
            samples.push(machines.run("one", &["sync"])? as f64);
        }
        let (files, bytes) = machines.largest_log()?;
        let cells = vec![
            grouped(commits),
            grouped(files),
            grouped(usize::try_from(bytes)? / 1024),
            grouped(usize::try_from(bytes)? / commits),
            milliseconds(haversack_bench::measure::median(samples.into_iter())),
        ];
        table.row(cells, Goal::Reported, 0.0);
    }
    Ok(table)
}

/// The storage where machines meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meeting {
    Folder,
    Directory,
}

/// Homes that have the same files, and between them a folder or a directory.
struct Machines {
    base: PathBuf,
}

impl Machines {
    /// Lets machines meet, each of which has sent something.
    fn meet(base: &Path, meeting: Meeting, files: usize) -> Outcome<Machines> {
        let machines = Machines { base: base.to_owned() };
        fill(&base.join("one/memory"), files)?;
        std::fs::create_dir_all(base.join("cloud/.stfolder"))?;
        let place = match meeting {
            Meeting::Folder => base.join("cloud/haversack").display().to_string(),
            Meeting::Directory => format!("file://{}", base.join("directory").display()),
        };
        machines.run("one", &["remote", "add", &place, "--device", "one", "--no-mirror"])?;
        machines.run("one", &["sync"])?;
        for machine in &MACHINES[1..] {
            machines.run(machine, &["join", &place, "--device", machine, "--yes", "--no-mirror"])?;
            std::fs::write(base.join(machine).join("memory").join(format!("{machine}.md")), "- new\n")?;
            machines.run(machine, &["sync"])?;
        }
        // Fingerprints are believed once they have settled.
        for _ in 0..2 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            for machine in MACHINES {
                machines.run(machine, &["sync"])?;
            }
        }
        Ok(machines)
    }

    fn logs(&self) -> PathBuf {
        self.base.join("cloud/haversack/.haversack/log")
    }

    /// Returns how many files the largest log has, and how many bytes.
    fn largest_log(&self) -> Outcome<(usize, u64)> {
        let mut largest = (0, 0);
        for log in std::fs::read_dir(self.logs())? {
            let (mut files, mut bytes) = (0, 0);
            for file in std::fs::read_dir(log?.path())? {
                files += 1;
                bytes += file?.metadata()?.len();
            }
            largest = largest.max((files, bytes));
        }
        Ok(largest)
    }

    fn run(&self, machine: &str, arguments: &[&str]) -> Outcome<Nanoseconds> {
        let mut command = Command::new(haversack_bench::program(env!("CARGO_BIN_EXE_haversack")));
        command.arg("--home").arg(self.base.join(machine)).args(arguments);
        let started = Instant::now();
        let output = command.env_clear().env("HOME", &self.base).stdin(Stdio::null()).output()?;
        let elapsed = started.elapsed().as_nanos();
        match output.status.success() {
            true => Ok(Nanoseconds::try_from(elapsed)?),
            false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
        }
    }
}

/// Returns how many names there are in all logs.
fn names_below(logs: &Path) -> Outcome<usize> {
    let mut names = 0;
    for log in std::fs::read_dir(logs)? {
        names += std::fs::read_dir(log?.path())?.count();
    }
    Ok(names)
}
