//! `cargo xtask dist --check [PART...]`: installs what `dist/` holds and uses it as a user would.
//!
//! Each part runs in a clean root: a minimal Debian without Rust, without this project and without a network other than loopback. A part that needs
//! something that this machine lacks is skipped with the reason.

mod machines;
mod packages;
mod root;

use std::path::PathBuf;
use std::process::Command;

use super::files::{fresh, quietly};
use super::{TARGETS, Target, VERSION, archive, directory};
use crate::run::{project, say};

/// The result of a part that did not fail.
enum Outcome {
    Passed(String),
    Skipped(String),
}

/// A part: its name, and the function that checks it.
type Part = (&'static str, fn() -> Result<Outcome, String>);

/// The parts, those that take long at the end.
const PARTS: [Part; 11] = [
    ("static", packages::programs_are_static),
    ("deb", packages::deb),
    ("installer", packages::installer),
    ("wheel", packages::wheel),
    ("npm", packages::npm),
    ("formula", packages::formula),
    ("shells", packages::shells),
    ("emulated", machines::emulated),
    ("reproducible", machines::reproducible),
    ("windows", machines::windows),
    ("macos", machines::macos),
];

/// Runs the named parts, or all of them.
pub(super) fn run(names: &[&str]) -> Result<(), String> {
    if let Some(unknown) = names.iter().find(|name| PARTS.iter().all(|(known, _)| known != *name)) {
        let known: Vec<_> = PARTS.iter().map(|(name, _)| *name).collect();
        return Err(format!("dist --check: there is no part {unknown}; the parts are {}", known.join(", ")));
    }
    let mut failed = Vec::new();
    let mut table = String::new();
    for (name, check) in PARTS.iter().filter(|(name, _)| names.is_empty() || names.contains(name)) {
        say(&format!("── dist --check {name}\n"));
        let line = match check() {
            Ok(Outcome::Passed(what)) => format!("{name:<13} passed   {what}\n"),
            Ok(Outcome::Skipped(why)) => format!("{name:<13} skipped  {why}\n"),
            Err(why) => {
                say(&format!("{why}\n"));
                failed.push(*name);
                format!("{name:<13} failed\n")
            }
        };
        table.push_str(&line);
    }
    say(&table);
    if failed.is_empty() { Ok(()) } else { Err(format!("dist --check: {} failed", failed.join(", "))) }
}

/// Returns the target whose program runs on this machine.
fn native() -> Result<&'static Target, String> {
    TARGETS
        .iter()
        .find(|target| target.runs_here())
        .ok_or_else(|| "no program that we ship runs on this machine".to_owned())
}

/// Returns a file of `dist/`; the error says how to make it.
fn made(name: &str) -> Result<PathBuf, String> {
    let path = directory().join(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("dist/{name} is not there: cargo xtask release --dry-run"))
    }
}

/// Returns the program of a target, from the archive that users download.
fn program(target: &Target) -> Result<PathBuf, String> {
    let archive = made(&archive_name(target))?;
    let into = fresh(&project().join("target/dist-check/programs").join(target.triple))?;
    quietly("tar", Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&into))?;
    Ok(into.join(archive::stem(target.triple)).join(target.program()))
}

/// Returns the name of a target's archive.
fn archive_name(target: &Target) -> String {
    format!("{}.tar.gz", archive::stem(target.triple))
}

/// Returns the name of a target's wheel.
fn wheel_name(target: &Target) -> String {
    format!("haversack-{VERSION}-py3-none-{}.whl", target.wheel)
}
