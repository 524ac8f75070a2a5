//! Measures the memory of large syncs.

use std::fs;
use std::path::Path;

use haversack_bench::Outcome;
use haversack_bench::report::say;
use haversack_bench::scratch::fill;
use haversack_bench::table::{Goal, Table, grouped, times};

use crate::rivals::{Ours, Rival};

/// The goal for a sync of 100,000 files, in megabytes.
const MOST_MEGABYTES: f64 = 200.0;

/// The goal for a merge, as a multiple of the file. The base, both sides and the result are four files already.
const MOST_TIMES: f64 = 4.0;

/// The first sync of many small files, and another machine that joins.
pub(crate) fn joining(scratch: &Path, files: usize) -> Outcome<Table> {
    say(&format!("the memory of a join of {} files\n", grouped(files)));
    let title = format!("The most memory at once, {} files of 1 KB", grouped(files));
    let mut table = Table::new(title, &["what", "MB"]);
    let ours = Ours::begin(&scratch.join("memory-join"))?;
    fill(&ours.files(), files)?;
    let mut row = |what: &str, bytes: u64| {
        let megabytes = bytes as f64 / 1e6;
        table.row(
            vec![what.to_owned(), format!("{megabytes:.0}")],
            Goal::Megabytes(MOST_MEGABYTES),
            megabytes,
        );
    };
    row("the first `haversack sync`", ours.peak("one", &["sync"])?);
    row("`haversack join` on another machine", ours.join()?);
    row("`haversack sync` with nothing new", ours.peak("two", &["sync"])?);
    Ok(table)
}

/// A file to merge: its description, its name and its lines by number.
type Shape = (&'static str, &'static str, fn(usize) -> String);

/// A sync that merges a large file which two machines have changed.
pub(crate) fn merging(scratch: &Path, most_files: usize) -> Outcome<Table> {
    // 50 MB in a full run, less with `--quick`.
    let bytes = most_files * 500;
    let title = format!("The most memory at once, merging a file of {} MB", bytes / 1_000_000);
    let mut table = Table::new(title, &["file", "MB", "times the file"]);
    let shapes: [Shape; 3] = [
        ("notes, 60 bytes a line", "notes.md", |number| {
            format!("- the lamp was lit at dusk, and the oil stood at mark {number:>7}\n")
        }),
        ("notes, 25 bytes a line", "short.md", |number| format!("- lamp and oil: {number:>8}\n")),
        ("events, 100 bytes a line", "events.jsonl", |number| {
            format!(
                "{{\"ts\":\"2026-11-18T00:00:00Z\",\"id\":\"e{number:>8}\",\"said\":\"the lamp was lit at dusk, and all is well\"}}\n"
            )
        }),
    ];
    for (what, name, line) in shapes {
        say(&format!("the memory of a merge: {what}\n"));
        let ours = Ours::begin(&scratch.join(format!("memory-{name}")))?;
        let [one, two] = [ours.files(), ours.received_files()].map(|files| files.join(name));
        let text: String = (0..).map(line).scan(0, |length, line| within(bytes, length, line)).collect();
        fs::write(&one, &text)?;
        ours.send()?;
        ours.join()?;
        // Each machine changes a line of its own here and there.
        let changed = |first: usize, every: usize| -> String {
            let lines = text.split_inclusive('\n').enumerate();
            let changed = |(number, line): (usize, &str)| match number % every == first {
                true => line.replace("lamp", "beacon"),
                false => line.to_owned(),
            };
            lines.map(changed).collect()
        };
        fs::write(&one, changed(500, 997))?;
        fs::write(&two, changed(700, 1009))?;
        ours.send()?;
        let peak = ours.peak("two", &["sync"])?;
        let ratio = peak as f64 / bytes as f64;
        table.row(
            vec![what.to_owned(), format!("{:.0}", peak as f64 / 1e6), times(ratio)],
            Goal::AtMost(MOST_TIMES),
            ratio,
        );
    }
    Ok(table)
}

/// Returns the next line of a text; `None` once the text would become longer than `bytes`.
fn within(bytes: usize, length: &mut usize, line: String) -> Option<String> {
    *length += line.len();
    (*length <= bytes).then_some(line)
}
