//! How fast the verbs are, beside the Anthropic SDK's local memory tool and bare C loops in the same run:
//! `cargo xtask bench verbs [--quick]`.
//!
//! Prints Markdown to stdout, ready for `docs/benchmarks.md`, and what it is doing to stderr.
//!
//! The time of each side: ours in process is a call of the library; ours through `haversack memory-tool` is a line of
//! JSON into the pipe and the answer out of it, without the making and reading of the JSON on this side; the SDK's a call
//! of its tool, measured inside Python. Ours and the bare loop sync the file and the directory, the SDK only the file.

// The root of a bench looks for its modules beside itself, where each would be a bench of its own.
#[path = "verbs/cold.rs"]
mod cold;
#[path = "verbs/contention.rs"]
mod contention;
#[path = "verbs/crowded.rs"]
mod crowded;
#[path = "verbs/effort.rs"]
mod effort;
#[path = "verbs/listing.rs"]
mod listing;
#[path = "verbs/sdk.rs"]
mod sdk;
#[path = "verbs/sides.rs"]
mod sides;
#[path = "verbs/single.rs"]
mod single;
#[path = "verbs/site.rs"]
mod site;
#[path = "verbs/steps.rs"]
mod steps;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use haversack_bench::report::{Report, exit_code, say};
use haversack_bench::scratch::{MEMORY, Scratch};
use haversack_bench::{Outcome, bare, machine};

use crate::effort::Effort;
use crate::single::Goals;
use crate::site::{Programs, Site};

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

fn main() -> ExitCode {
    let mut effort = &Effort::FULL;
    let mut python = None;
    let mut asked = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo says so when it benchmarks; when it tests every target there is nothing to do here.
            "--bench" => asked = true,
            "--quick" => effort = &Effort::QUICK,
            "--python" => python = arguments.next().map(PathBuf::from),
            other => {
                say(&format!("unknown argument {other}; there are --quick and --python PROGRAM\n"));
                return ExitCode::from(2);
            }
        }
    }
    if !asked {
        return ExitCode::SUCCESS;
    }
    exit_code(run(effort, python))
}

fn run(effort: &Effort, python: Option<PathBuf>) -> Outcome<()> {
    let target = Path::new(TARGET_TMP).parent().ok_or("target/tmp is in target")?;
    // All sides of a site stay in one directory and thus together: only sites are spread.
    let scratch = Scratch::create(target)?.spread();
    let bare = bare::compile(scratch.path())?;
    let programs =
        Programs { haversack: haversack_bench::program(env!("CARGO_BIN_EXE_haversack")), bare, python };
    let filesystem = machine::filesystem(target).unwrap_or_else(|| "an unknown filesystem".to_owned());
    let mut places = vec![filesystem.clone()];
    let mut report = Report::start();

    let disk = Site::open(Scratch::create(scratch.path())?, filesystem.clone(), &programs)?;
    if matches!(filesystem.as_str(), "tmpfs" | "ramfs") {
        say(&format!("target is on {filesystem}, which is no disk: what needs one is left out.\n"));
    } else {
        report.add(single::verbs(&disk, effort.disk, Goals::Disk)?)?;
    }
    report.add(cold::processes(&disk)?)?;
    report.add(listing::listings(&disk, effort.listings)?)?;
    report.add(contention::contention(&disk, &programs, effort.contests)?)?;

    if machine::filesystem(Path::new(MEMORY)).as_deref() == Some("tmpfs") {
        // From here on nothing waits for a disk or works side by side, and a busier core would look like slower code.
        machine::stay_on_one_core();
        let memory = Site::open(Scratch::create(Path::new(MEMORY))?, "tmpfs".to_owned(), &programs)?;
        places.push("tmpfs".to_owned());
        report.add(single::verbs(&memory, effort.memory, Goals::Memory)?)?;
        report.add(crowded::crowded(&memory, effort.memory, effort.files)?)?;
    } else {
        say(&format!("There is no tmpfs at {MEMORY}: what needs one is left out.\n"));
        report.add(crowded::crowded(&disk, effort.disk, effort.files)?)?;
    }
    let mut what = vec![places.join(" and ")];
    what.extend(disk.sdk_version.clone());
    report.end(&what)
}
