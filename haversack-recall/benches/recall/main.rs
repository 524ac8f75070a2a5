//! Measures the quality and the speed of recall: `cargo xtask bench recall [--data DIR] [--quick]`.
//!
//! Quality is measured beside plain FTS5 and the scan that came before the index, speed beside plain FTS5, all in one run.
//! With `--model DIR` (or the model that `cargo xtask tools` fetched) the same with vectors.
//! `score QRELS.jsonl RUN.jsonl` scores another program's ranking.

#![expect(clippy::disallowed_macros, clippy::print_stdout, reason = "a benchmark prints")]

mod baselines;
mod data;
mod quality;
mod questions;
mod scan;
mod score;
mod speed;
#[cfg(feature = "semantic")]
mod vectors;
#[cfg(not(feature = "semantic"))]
#[path = "without_vectors.rs"]
mod vectors;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["score", rest @ ..] = words.as_slice() {
        let [qrels, run] = rest else {
            println!("Usage: cargo xtask recall score QRELS.jsonl RUN.jsonl");
            return ExitCode::from(2);
        };
        return match score::run(Path::new(qrels), Path::new(run)) {
            Ok(table) => {
                println!("{table}");
                ExitCode::SUCCESS
            }
            Err(why) => {
                println!("{why}");
                ExitCode::FAILURE
            }
        };
    }
    let value = |option: &str| {
        let at = words.iter().position(|word| *word == option)?;
        words.get(at + 1).map(PathBuf::from)
    };
    let model = vectors::Model::find(value("--model"));
    if words.contains(&"--no-quality") {
        println!("Quality is left out.");
    } else {
        quality::on_questions(model.as_ref());
        if let Some(data) = value("--data") {
            quality::on_data(&data, model.as_ref());
        }
    }
    if words.contains(&"--no-speed") {
        return ExitCode::SUCCESS;
    }
    speed::run(10_000);
    if !words.contains(&"--quick") {
        speed::run(100_000);
    }
    ExitCode::SUCCESS
}
