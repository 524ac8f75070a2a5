//! The pictures of the README, made by a command so that they cannot drift from the program.
//!
//! 1. `demo.svg`: a terminal with the real output of `haversack demo`.
//! 2. `two-machines.svg`: a diagram of two machines and the storage between them.
//!
//! The charts of the benchmarks have a command of their own ([`charts`]).

pub(crate) mod charts;
pub(crate) mod svg;
mod terminal;
mod two_machines;

use std::fs;

use crate::run::{cargo, project, say};

/// Makes all pictures in `docs/pictures`.
pub(crate) fn run() -> Result<(), String> {
    write("demo.svg", &terminal::picture("haversack demo", &demo_output()?))?;
    write("two-machines.svg", &two_machines::picture())
}

/// Writes one picture into `docs/pictures`.
pub(crate) fn write(name: &str, picture: &str) -> Result<(), String> {
    let path = project().join("docs/pictures").join(name);
    fs::write(&path, picture).map_err(|error| format!("{} could not be written: {error}", path.display()))?;
    say(&format!("Wrote docs/pictures/{name}\n"));
    Ok(())
}

/// Runs the demo and returns its output, without the parts that differ from run to run.
fn demo_output() -> Result<String, String> {
    let mut command = cargo(&["run", "--quiet", "--package", "haversack-cli", "--", "demo"]);
    let output = command.output().map_err(|error| format!("the demo did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("the demo failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text =
        String::from_utf8(output.stdout).map_err(|error| format!("the demo printed no text: {error}"))?;
    Ok(text.lines().map(without_chance).collect::<Vec<_>>().join("\n"))
}

/// Returns a line without the random end of the sandbox's name.
fn without_chance(line: &str) -> String {
    match line.split_once("haversack-demo-") {
        Some((before, after)) => {
            format!("{before}haversack-demo{}", after.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
        }
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandbox_name_loses_its_random_end() {
        assert_eq!(without_chance("in /tmp/haversack-demo-c62a. Done"), "in /tmp/haversack-demo. Done");
        assert_eq!(without_chance("laptop = desktop"), "laptop = desktop");
    }
}
