//! What a benchmark says, and how it ends.

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
