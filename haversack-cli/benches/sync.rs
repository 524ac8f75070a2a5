//! Measures the cost of a sync, in time and in requests, over memory and over directories: `cargo xtask bench sync [--quick]`.
//!
//! Prints Markdown to stdout, ready for `docs/benchmarks.md`, and what it is doing to stderr.

// The root of a bench looks for its modules beside itself, where each would be a bench of its own.
#[path = "sync/costs.rs"]
mod costs;
#[path = "sync/counted.rs"]
mod counted;
#[path = "sync/places.rs"]
mod places;

use std::path::Path;
use std::process::ExitCode;

use haversack_bench::report::{Report, sized};
use haversack_bench::scratch::{MEMORY, Scratch};
use haversack_bench::{Outcome, machine};

use crate::places::Places;

/// The directory where Cargo lets benches keep files: `target/tmp`.
const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

fn main() -> ExitCode {
    sized(run)
}

fn run(most_files: usize) -> Outcome<()> {
    let target = Path::new(TARGET_TMP).parent().ok_or("target/tmp is in target")?;
    let scratch = Scratch::create(target)?.spread();
    let filesystem = machine::filesystem(target).unwrap_or_else(|| "an unknown filesystem".to_owned());
    let mut report = Report::start();
    let mut all = vec![Places::in_memory()];
    let memory = Scratch::create(Path::new(MEMORY));
    if let Ok(memory) = &memory {
        all.push(Places::directories(memory.path(), "directories on tmpfs"));
    }
    all.push(Places::directories(scratch.path(), &format!("directories on {filesystem}")));
    report.add(costs::times(&all)?)?;
    report.add(costs::one_change(&all, most_files)?)?;
    report.add(costs::requests(&all)?)?;
    report.end(&[filesystem])
}
