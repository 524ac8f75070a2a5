//! Measures the waiting time of a user with two machines, compared with git on the same files: `cargo xtask bench machines [--quick]`.
//!
//! Prints Markdown to stdout, ready for `docs/benchmarks.md`, and what it is doing to stderr.

// The root of a bench looks for its modules beside itself, where each would be a bench of its own.
#[path = "machines/memory.rs"]
mod memory;
#[path = "machines/rivals.rs"]
mod rivals;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use haversack::ids::Timestamp;
use haversack::store::{DeviceLocal, block_on};
use haversack::sync::{Open, Scope, look};
use haversack_bench::bare::{self, Bare};
use haversack_bench::measure::{Contender, Race, timed};
use haversack_bench::report::{Report, say, sized};
use haversack_bench::scratch::{Scratch, fill};
use haversack_bench::table::{Goal, Table, grouped, milliseconds, times};
use haversack_bench::{Outcome, machine};

use crate::rivals::{Git, Ours, Rival};

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

fn main() -> ExitCode {
    sized(run)
}

fn run(most_files: usize) -> Outcome<()> {
    let target = Path::new(TARGET_TMP).parent().ok_or("target/tmp is in target")?;
    let scratch = Scratch::create(target)?;
    let filesystem = machine::filesystem(target).unwrap_or_else(|| "an unknown filesystem".to_owned());
    let mut report = Report::start();
    report.add(nothing_new(scratch.path(), &filesystem)?)?;
    report.add(first_sync(scratch.path(), &filesystem)?)?;
    for table in one_change(scratch.path(), &filesystem, most_files)? {
        report.add(table)?;
    }
    report.add(memory::joining(scratch.path(), most_files)?)?;
    report.add(memory::merging(scratch.path(), most_files)?)?;
    report.end(&[filesystem])
}

/// A sync that finds nothing, beside `git pull`, which looks at no file, and beside what looking at all of them takes a bare C loop.
fn nothing_new(scratch: &Path, filesystem: &str) -> Outcome<Table> {
    let title = format!("A sync with nothing new on {filesystem}, warm");
    let columns = [
        "files",
        "`haversack sync` p50 ms",
        "`git pull` p50 ms",
        "bare C look p50 ms",
        "bare C start p50 ms",
        "bare C / git",
        "ours / git",
    ];
    let mut table = Table::new(title, &columns);
    let program = bare::compile(scratch)?;
    for files in [50, 5_000] {
        say(&format!("two machines with {} files\n", grouped(files)));
        let ours = Ours::with(&scratch.join(format!("idle-ours-{files}")), files)?;
        let git = Git::with(&scratch.join(format!("idle-git-{files}")), files)?;
        let bare = Bare::start(&program, &ours.received_files())?;
        let contenders: Vec<Contender<'_>> = vec![
            Box::new(|_| Ok(vec![ours.receive()?])),
            Box::new(|_| Ok(vec![git.receive()?])),
            Box::new(|_| bare.run("scan", files, &["notes"])),
            Box::new(|_| Ok(vec![bare.spawn(&["/bin/true"])?.elapsed])),
        ];
        let race = Race::run(41, contenders)?;
        let ratio = race.ratio(0, 1);
        let [synced, pulled, looked, started] = [0, 1, 2, 3].map(|contender| race.nanoseconds(contender));
        let cells = vec![
            grouped(files),
            milliseconds(synced),
            milliseconds(pulled),
            milliseconds(looked),
            milliseconds(started),
            times((looked + started) / pulled),
            times(ratio),
        ];
        table.row(cells, Goal::AtMost(0.33), ratio);
    }
    Ok(table)
}

/// The first sync of many files, beside `git add`, `commit` and `push`.
fn first_sync(scratch: &Path, filesystem: &str) -> Outcome<Table> {
    let title = format!("The first sync on {filesystem}");
    let columns = ["files of 1 KB", "`haversack sync` ms", "`git add`, `commit`, `push` ms", "ours / git"];
    let mut table = Table::new(title, &columns);
    let files = 10_000;
    let mut round = 0;
    let mut samples = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        round += 1;
        say(&format!("a first sync of {} files, {round} of 3\n", grouped(files)));
        let ours = Ours::begin(&scratch.join(format!("first-ours-{round}")))?;
        fill(&ours.files(), files)?;
        samples[0].push(ours.send()? as f64);
        let git = Git::begin(&scratch.join(format!("first-git-{round}")))?;
        fill(&git.files(), files)?;
        samples[1].push(git.send()? as f64);
    }
    let [ours, git] = samples.map(|samples| haversack_bench::measure::median(samples.into_iter()));
    let cells = vec![grouped(files), milliseconds(ours), milliseconds(git), times(ours / git)];
    table.row(cells, Goal::AtMost(1.0), ours / git);
    Ok(table)
}

/// A look at all files, and a sync that sends one of them.
fn one_change(scratch: &Path, filesystem: &str, most_files: usize) -> Outcome<[Table; 2]> {
    let title = format!("A look at all files, none of which changed, on {filesystem}, warm");
    let mut looks = Table::new(title, &["files", "look at all p50 ms"]);
    let title = format!("One changed file on {filesystem}, warm");
    let columns = [
        "files",
        "send one p50 ms",
        "beyond the look ms",
        "beside 100 files",
        "`git commit`, `push` p50 ms",
        "ours / git",
    ];
    let mut changes = Table::new(title, &columns);
    let mut least = None;
    for files in [100, 10_000, 100_000].into_iter().filter(|files| *files <= most_files) {
        say(&format!("one change among {} files\n", grouped(files)));
        let race = race_one_change(scratch, files)?;
        let [looked, sent, git] = [0, 1, 2].map(|contender| race.nanoseconds(contender));
        let goal = match files {
            10_000 => Goal::Within(50.0),
            100_000 => Goal::Within(500.0),
            _ => Goal::Reported,
        };
        looks.row(vec![grouped(files), milliseconds(looked)], goal, looked / 1e6);
        let beyond = sent - looked;
        let ratio = beyond / *least.get_or_insert(beyond);
        let cells = vec![
            grouped(files),
            milliseconds(sent),
            milliseconds(beyond),
            times(ratio),
            milliseconds(git),
            times(race.ratio(1, 2)),
        ];
        let goal = if files == 100 { Goal::Reported } else { Goal::AtMost(1.5) };
        changes.row(cells, goal, ratio);
    }
    Ok([looks, changes])
}

/// Lets a look, our sync of one change and git's take turns.
fn race_one_change(scratch: &Path, files: usize) -> Outcome<Race> {
    let ours = Ours::begin(&scratch.join(format!("one-ours-{files}")))?;
    fill(&ours.files(), files)?;
    ours.send()?;
    let git = Git::begin(&scratch.join(format!("one-git-{files}")))?;
    fill(&git.files(), files)?;
    git.send()?;
    // Fingerprints are believed once they have settled.
    std::thread::sleep(std::time::Duration::from_millis(50));
    ours.send()?;
    let locks = ours.home().join("state/locks");
    let backend = DeviceLocal::open(ours.files(), &locks)?;
    let state = Arc::new(DeviceLocal::open(ours.home().join("state/default"), &locks)?);
    let contenders: Vec<Contender<'_>> = vec![
        Box::new(|_| {
            let mut samples = Vec::new();
            let looked = timed(&mut samples, || {
                block_on(look(&backend, state.clone(), &Scope::default(), &Open, Timestamp(0), None))
            })?;
            if looked.files < files {
                return Err("files are missing".into());
            }
            Ok(samples)
        }),
        Box::new(|round| {
            std::fs::write(ours.files().join("changed.md"), format!("round {round}\n"))?;
            Ok(vec![ours.send()?])
        }),
        Box::new(|round| {
            std::fs::write(git.files().join("changed.md"), format!("round {round}\n"))?;
            Ok(vec![git.send()?])
        }),
    ];
    Race::run(9, contenders)
}
