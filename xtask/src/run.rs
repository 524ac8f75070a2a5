//! Running other programs from the project's directory.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::durations;

/// The project's directory.
pub(crate) fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the project")
}

/// Returns the directory of tools that the project builds for itself.
pub(crate) fn tools() -> PathBuf {
    project().join(".tools")
}

/// Prints to stderr: what these commands compute goes to stdout.
pub(crate) fn say(text: &str) {
    // A terminal that went away is no reason to stop.
    drop(std::io::stderr().write_all(text.as_bytes()));
}

/// Returns `cargo` as this one was started, in the project's directory.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(project()).args(arguments);
    // Remove cargo's variables about this package: some packages are rebuilt whenever they change.
    let names = std::env::vars_os().map(|(name, _)| name);
    let is_ours = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for name in names.filter(|name| name.to_str().is_some_and(is_ours)) {
        command.env_remove(name);
    }
    command
}

/// Runs one step. Says its usual duration before and its real one after; the error says what failed.
pub(crate) fn step(what: &str, command: &mut Command) -> Result<(), String> {
    match durations::usual(what) {
        Some(usual) => say(&format!("── {what} (usually {usual})\n")),
        None => say(&format!("── {what}\n")),
    }
    let started = Instant::now();
    let status = command.status().map_err(|error| format!("{what}: {command:?} did not start: {error}"))?;
    if !status.success() {
        return Err(format!("{what}: failed ({status})"));
    }
    say(&format!("── {what}: done in {:.0} s\n", started.elapsed().as_secs_f64()));
    Ok(())
}
