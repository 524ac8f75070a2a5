//! The output of a benchmark, and its end.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use crate::Outcome;
use crate::machine;
use crate::table::Table;

/// The tables of one run, printed as they become known.
pub struct Report {
    started: Instant,
    score: (usize, usize),
    machine: String,
}

impl Report {
    /// Starts the clock, and looks at the machine before the benchmark keeps to a part of it.
    pub fn start() -> Report {
        Report { started: Instant::now(), score: (0, 0), machine: machine::describe() }
    }

    /// Prints a table.
    pub fn add(&mut self, table: Table) -> Outcome<()> {
        self.score.0 += table.score.0;
        self.score.1 += table.score.1;
        writeln!(io::stdout(), "{table}")?;
        say(&format!("── {:.0} s\n\n", self.started.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Prints how many goals were met, and on what: the machine, and `what` besides.
    pub fn end(&self, what: &[String]) -> Outcome<()> {
        let ((met, goals), machine, day) = (self.score, &self.machine, machine::today());
        let what: String = what.iter().map(|part| format!("; {part}")).collect();
        writeln!(io::stdout(), "{met} of {goals} goals met. {machine}{what}; {day}.")?;
        Ok(())
    }
}

/// Prints to stderr: what is computed goes to stdout.
pub fn say(text: &str) {
    // A terminal that went away is no reason to stop.
    drop(io::stderr().write_all(text.as_bytes()));
}

/// Runs a benchmark that grows with the number of files: up to 100,000, or 10,000 with `--quick`.
pub fn sized(run: fn(usize) -> Outcome<()>) -> ExitCode {
    either(100_000, 10_000, run)
}

/// Runs a benchmark in 15 rounds, or 3 with `--quick`.
pub fn in_rounds(run: fn(usize) -> Outcome<()>) -> ExitCode {
    either(15, 3, run)
}

/// Runs a benchmark with one number, or with another if it is to be quick.
fn either(usual: usize, quick: usize, run: fn(usize) -> Outcome<()>) -> ExitCode {
    let mut number = usual;
    let mut asked = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            // Cargo says so when it benchmarks; when it tests every target there is nothing to do.
            "--bench" => asked = true,
            "--quick" => number = quick,
            other => {
                say(&format!("unknown argument {other}; there is --quick\n"));
                return ExitCode::from(2);
            }
        }
    }
    if asked { exit_code(run(number)) } else { ExitCode::SUCCESS }
}

/// Returns how a benchmark ends, having said why if it failed.
pub fn exit_code(result: Outcome<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    say(&format!("Error: {error}\n"));
    let mut cause = error.source();
    while let Some(error) = cause {
        say(&format!("Caused by: {error}\n"));
        cause = error.source();
    }
    ExitCode::FAILURE
}
