//! Measures the merge of a large file, by rule: `cargo xtask bench merge [--quick]`.
//!
//! Prints Markdown to stdout, ready for `docs/benchmarks.md`, and what it is doing to stderr.

#[path = "merge/files.rs"]
mod files;

use std::process::ExitCode;

use haversack::merge::{Rule, Side, merge};
use haversack_bench::Outcome;
use haversack_bench::measure::{median, timed};
use haversack_bench::report::{Report, in_rounds, say};
use haversack_bench::table::{Goal, Table, milliseconds};

use self::files::Meeting;

/// The goal for a merge of 1 MB, in milliseconds.
const GOAL: Goal = Goal::Within(50.0);

fn main() -> ExitCode {
    in_rounds(run)
}

fn run(rounds: usize) -> Outcome<()> {
    let mut report = Report::start();
    let columns = ["file of 1 MB, changed on two devices", "rule", "p50 ms", "worst ms", "there twice"];
    let mut table = Table::new("Merging", &columns);
    for meeting in files::meetings() {
        say(&format!("{}\n", meeting.what));
        row(&mut table, &meeting, rounds)?;
    }
    report.add(table)?;
    report.end(&[])
}

/// Times what a device does that takes in another's change: it finds the rule of the file, and merges.
fn row(table: &mut Table, meeting: &Meeting, rounds: usize) -> Outcome<()> {
    let Meeting { what, locator, rule, base, laptop, desktop } = meeting;
    let found = Rule::of(locator, base.iter().chain([laptop, desktop]).map(Vec::as_slice));
    if found != *rule {
        return Err(format!("{what} merges as {}, not as {}", found.name(), rule.name()).into());
    }
    let mut samples = Vec::new();
    let mut both_kept = false;
    for _ in 0..=rounds {
        let merged = timed(&mut samples, || {
            let rule = Rule::of(locator, base.iter().chain([laptop, desktop]).map(Vec::as_slice));
            let [ours, theirs] = [(laptop, "laptop"), (desktop, "desktop")]
                .map(|(bytes, device)| Side { bytes: bytes.as_slice(), device });
            merge(rule, base.as_deref(), ours, theirs)
        });
        both_kept = merged.both_kept;
    }
    // The first warms caches and is forgotten.
    let samples: Vec<f64> = samples.iter().skip(1).map(|sample| *sample as f64).collect();
    let middle = median(samples.iter().copied());
    let worst = samples.iter().copied().fold(0.0, f64::max);
    let cells = vec![
        (*what).to_owned(),
        rule.name().to_owned(),
        milliseconds(middle),
        milliseconds(worst),
        if both_kept { "some" } else { "" }.to_owned(),
    ];
    table.row(cells, GOAL, middle / 1e6);
    Ok(())
}
