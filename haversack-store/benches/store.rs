//! How fast the local store is, beside bare C loops in the same run: `cargo xtask bench store [--quick]`.
//!
//! Prints Markdown to stdout, ready for `docs/benchmarks.md`, and what it is doing to stderr.

// The root of a bench looks for its modules beside itself, where each would be a bench of its own.
#[path = "store/contenders.rs"]
mod contenders;
#[path = "store/effort.rs"]
mod effort;
#[path = "store/many.rs"]
mod many;
#[path = "store/single.rs"]
mod single;
#[path = "store/site.rs"]
mod site;
#[path = "store/throughput.rs"]
mod throughput;

use std::path::Path;
use std::process::ExitCode;

use haversack_bench::report::{Report, exit_code, say};
use haversack_bench::scratch::{MEMORY, Scratch};
use haversack_bench::table::Goal;
use haversack_bench::{Outcome, bare, machine};

use crate::effort::Effort;
use crate::many::Creates;
use crate::single::Reads;
use crate::site::Site;

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

#[expect(clippy::disallowed_methods, reason = "a benchmark is its own program")]
fn main() -> ExitCode {
    let mut effort = &Effort::FULL;
    let mut asked = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            // Cargo says so when it benchmarks; when it tests every target there is nothing to do here.
            "--bench" => asked = true,
            "--quick" => effort = &Effort::QUICK,
            other => {
                say(&format!("unknown argument {other}; there is only --quick\n"));
                return ExitCode::from(2);
            }
        }
    }
    if !asked {
        return ExitCode::SUCCESS;
    }
    exit_code(run(effort))
}

fn run(effort: &Effort) -> Outcome<()> {
    let target = Path::new(TARGET_TMP).parent().ok_or("target/tmp is in target")?;
    // Both sides of a site stay in one directory and thus together: only sites are spread.
    let scratch = Scratch::create(target)?.spread();
    let bare = bare::compile(scratch.path())?;
    let on_disk = machine::filesystem(target).unwrap_or_else(|| "an unknown filesystem".to_owned());
    let mut report = Report::start();
    let mut places = Vec::new();

    if matches!(on_disk.as_str(), "tmpfs" | "ramfs") {
        say(&format!("target is on {on_disk}, which is no disk: what needs one is left out.\n"));
    } else {
        let disk = Site::open(Scratch::create(scratch.path())?, on_disk.clone(), &bare)?;
        places.push(on_disk);
        let sizes = [1, 10, 100].map(|size| (size, Goal::AtMost(1.25)));
        report.add(single::contents(&disk, effort.disk, Reads::LeftOut, &sizes)?)?;
        report.add(single::appends(&disk, effort.disk, Goal::AtMost(1.3))?)?;
        report.add(throughput::throughput(&disk, effort.throughput, Goal::AtLeast(4.0))?)?;
        report.add(many::crowded(&disk, effort.disk, effort.files, Creates::LeftOut)?)?;
        report.add(many::scans(&disk, effort)?)?;
    }

    if machine::filesystem(Path::new(MEMORY)).as_deref() == Some("tmpfs") {
        // From here on nothing waits for a disk or uses threads, and a busier core would look like slower code.
        machine::stay_on_one_core();
        let memory = Site::open(Scratch::create(Path::new(MEMORY))?, "tmpfs".to_owned(), &bare)?;
        places.push("tmpfs".to_owned());
        let goal = Goal::AtMost(3.0);
        let sizes = [(1, goal), (10, goal), (100, Goal::Reported)];
        report.add(single::contents(&memory, effort.memory, Reads::Compared, &sizes)?)?;
        report.add(many::crowded(&memory, effort.memory, effort.files, Creates::Measured)?)?;
    } else {
        say(&format!("There is no tmpfs at {MEMORY}: what needs one is left out.\n"));
    }
    report.end(&[places.join(" and ")])
}
