//! Programs that `cargo xtask tools` installed into the project's tool directory.

use std::io::Write;
use std::path::{Path, PathBuf};

/// The variable that makes a missing program a failure instead of a skipped test: `cargo xtask test` sets it.
pub const REQUIRED: &str = "HAVERSACK_TOOLS_REQUIRED";

/// Returns where a program is, if it was installed.
///
/// The file is a small script that starts the program with its environment, and becomes it.
pub fn program(name: &str) -> Option<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let path = project.join(".tools").join("bin").join(name);
    (cfg!(unix) && path.is_file()).then_some(path)
}

/// Returns whether a missing program is a failure.
pub fn required() -> bool {
    std::env::var_os(REQUIRED).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Returns where a program is, or says that what needs it is skipped and how to install it.
///
/// # Panics
///
/// If it is missing and [`required`].
pub fn program_or_skip(name: &str, install: &str) -> Option<PathBuf> {
    let found = program(name);
    if found.is_none() {
        let line = format!("{name} is not in .tools (install it: {install})");
        assert!(!required(), "{line}");
        skip(&line);
    }
    found
}

/// Says that a test was skipped and why, also where the output of tests is captured.
pub fn skip(why: &str) {
    say(&format!("skipped: {why}\n"));
}

/// Writes to stderr past the test harness, which hides what a passing test prints.
pub(crate) fn say(text: &str) {
    // A terminal that went away is no reason to fail.
    drop(std::io::stderr().write_all(text.as_bytes()));
}
