//! How fast contents are looked at for secrets, beside the hash that every content gets anyway: `cargo xtask bench secrets [--quick]`.
//!
//! Prints Markdown to stdout, ready for `docs/benchmarks.md`, and what it is doing to stderr.

use std::fmt::Write;
use std::process::ExitCode;

use haversack::ids::ContentHash;
use haversack::secrets::find;
use haversack_bench::Outcome;
use haversack_bench::measure::{Contender, Picks, Race, timed};
use haversack_bench::report::{Report, in_rounds, say};
use haversack_bench::table::{Goal, Table};

/// The size of each text.
const BYTES: usize = 10_000_000;

/// The goal for an ordinary text, in megabytes per second.
const ORDINARY: f64 = 50.0;

fn main() -> ExitCode {
    in_rounds(run)
}

fn run(rounds: usize) -> Outcome<()> {
    let mut report = Report::start();
    let mut table =
        Table::new("Looking for secrets in 10 MB", &["text", "`secrets::find` MB/s", "hash (BLAKE3) MB/s"]);
    let goal = Goal::AtLeastPerSecond(ORDINARY);
    let line = ordinary(&mut Picks::start()).replace('\n', " ");
    let texts = [
        ("memory files: prose, code, hashes, logs", ordinary(&mut Picks::start()), goal),
        ("one line of 10 MB", line, goal),
        ("dense with words that secrets come with", repeated(DENSE), Goal::Reported),
        ("made to be slow: `token=token=…`", repeated("token="), Goal::Reported),
        ("made to be slow: `-eyJ-eyJ…`", repeated("-eyJ"), Goal::Reported),
        ("made to be slow: `glpat-glpat-…`", repeated("glpat-"), Goal::Reported),
        ("bytes without a pattern", noise(), Goal::Reported),
    ];
    for (what, text, goal) in &texts {
        say(&format!("{what}\n"));
        let found = find(text.as_bytes()).len();
        if found > 0 {
            return Err(format!("{found} secrets in a text that has none: {what}").into());
        }
        let contenders: Vec<Contender<'_>> = vec![
            Box::new(|_| {
                let mut samples = Vec::new();
                timed(&mut samples, || find(text.as_bytes()));
                Ok(samples)
            }),
            Box::new(|_| {
                let mut samples = Vec::new();
                timed(&mut samples, || ContentHash::of(text.as_bytes()));
                Ok(samples)
            }),
        ];
        let race = Race::run(rounds, contenders)?;
        let speed = |contender: usize| text.len() as f64 * 1e3 / race.nanoseconds(contender);
        let cells = vec![(*what).to_owned(), format!("{:.0}", speed(0)), format!("{:.0}", speed(1))];
        table.row(cells, *goal, speed(0));
    }
    report.add(table)?;
    report.end(&[])
}

/// Texts about secrets without a secret.
const DENSE: &str =
    "token: ask the keeper; api_key = settings.api_key; password: ${DB_PASSWORD}, secret = none\n";

fn repeated(text: &str) -> String {
    text.repeat(BYTES / text.len())
}

/// Returns text as memory has it.
fn ordinary(picks: &mut Picks) -> String {
    let sentences = [
        "The user prefers short answers, and wants to be asked before anything is deployed.",
        "Staging listens on 5433; the lamp is white, and the fog horn is tested on Mondays.",
        "A teammate keeps the password of the database in the keychain, not in the repository.",
        "See lamp/src/rotation.rs and https://lighthouse.internal:8443/dashboards/7?from=now-6h.",
        "`cargo test -p lamp --features tls` takes four minutes; `--quick` takes one.",
    ];
    let mut text = String::with_capacity(BYTES + 1_000);
    while text.len() < BYTES {
        let hash = ContentHash::of(&picks.below(usize::MAX).to_le_bytes()).to_string();
        let sentence = sentences[picks.below(sentences.len())];
        let written = match picks.below(10) {
            0 => writeln!(text, "\n## {}\n", &sentence[..20]),
            1 => writeln!(text, "- merged {} into main ({})", &hash[..40], &hash[..7]),
            2 => writeln!(
                text,
                "{{\"id\":\"{}-{}\",\"time\":\"2026-11-16T09:23:04Z\",\"text\":\"{sentence}\"}}",
                &hash[..8],
                &hash[8..12]
            ),
            3 => writeln!(text, "checksum = \"{hash}\""),
            _ => writeln!(text, "{sentence}"),
        };
        written.expect("a string takes all");
    }
    text
}

/// Returns characters without a pattern, as packed data has them.
fn noise() -> String {
    let mut picks = Picks::start();
    (0..BYTES).map(|_| char::from(33 + u8::try_from(picks.below(90)).expect("below 90"))).collect()
}
