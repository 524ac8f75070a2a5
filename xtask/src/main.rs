//! What developers of Haversack run: `cargo xtask test`.

mod run;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  test          Everything that must be green: format, lints, tests, docs, dependencies
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => test::run(),
        ["help" | "--help" | "-h"] => {
            run::say(USAGE);
            Ok(())
        }
        _ => {
            run::say(USAGE);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            run::say(&format!("\n{why}\n"));
            ExitCode::FAILURE
        }
    }
}
