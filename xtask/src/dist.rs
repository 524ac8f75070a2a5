//! `cargo xtask dist`: the packages that users install, built into `dist/`.
//!
//! 1. [`toolchain`] installs Rust's standard libraries, zig and cargo-zigbuild into `.tools/dist`, and nothing outside of it.
//! 2. [`program`] builds one program for each [`Target`]. The Linux programs are static.
//! 3. [`extras`] lets the program of this machine write its completions and manual pages.
//! 4. [`archive`], [`wheel`], [`npm`] and [`deb`] put those into packages. No package compiles anything.
//!
//! Two runs of the same commit write the same bytes: paths are replaced by fixed names, times by that of the commit.
//!
//! `cargo xtask dist --check` ([`check`]) installs each package in a clean root and uses it.

pub(crate) mod archive;
mod check;
mod deb;
mod extras;
pub(crate) mod files;
mod npm;
pub(crate) mod program;
mod target;
mod toolchain;
mod wheel;

use std::path::PathBuf;

use crate::run::{project, say};
use program::Built;
pub(crate) use target::{TARGETS, Target};
use toolchain::Toolchain;

/// The parts of a distribution, in the order in which they are made.
const PARTS: [&str; 5] = ["programs", "archives", "wheels", "npm", "deb"];

/// The programs and packages that were made.
#[derive(Debug, Default)]
pub(crate) struct Made {
    pub(crate) programs: Vec<Built>,
    pub(crate) packages: Vec<PathBuf>,
    /// The targets that were skipped, each with the reason.
    pub(crate) skipped: Vec<String>,
}

/// Returns the directory of everything that is made.
pub(crate) fn directory() -> PathBuf {
    project().join("dist")
}

/// The address of the project. `packaging/`, `typescript/package.json` and the manifest of `haversack-cli` use it, too.
pub(crate) const REPOSITORY: &str = "https://github.com/haversack/haversack";

/// The version of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The source of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programs {
    Built,
    /// As `Built`, but a target whose build fails is skipped.
    BuiltIfPossible,
    /// From an earlier run, or from another machine: they are in `dist/bin`.
    Reused,
}

/// `cargo xtask dist [--reuse] [--target TRIPLE]... [PART...]` and `cargo xtask dist --check [PART...]`.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    if let Some((&"--check", parts)) = options.split_first() {
        return check::run(parts);
    }
    let (programs, targets, parts) = read(options)?;
    let made = make(programs, &targets, &parts)?;
    for package in &made.packages {
        say(&format!("{}\n", files::described(package)?));
    }
    for skipped in &made.skipped {
        say(&format!("Skipped: {skipped}\n"));
    }
    Ok(())
}

/// Makes the parts for the targets.
pub(crate) fn make(programs: Programs, targets: &[&'static Target], parts: &[&str]) -> Result<Made, String> {
    let toolchain = Toolchain::ready()?;
    let mut made = Made::default();
    for target in targets {
        let place = directory().join("bin");
        let result = match programs {
            Programs::Built => program::build(&toolchain, target, &place)?,
            Programs::BuiltIfPossible => program::build(&toolchain, target, &place).unwrap_or_else(Err),
            Programs::Reused => program::reuse(target, &place),
        };
        match result {
            Ok(built) => made.programs.push(built),
            Err(why) => made.skipped.push(why),
        }
    }
    if made.programs.is_empty() {
        return Err(format!("no program could be built:\n{}", made.skipped.join("\n")));
    }
    let wants = |part: &str| parts.is_empty() || parts.contains(&part);
    if wants("archives") || wants("wheels") || wants("npm") || wants("deb") {
        let extras = extras::write(&made.programs)?;
        for built in &made.programs {
            if wants("archives") {
                made.packages.push(archive::make(built, &extras)?);
            }
            if wants("wheels") {
                made.packages.push(wheel::make(&toolchain, Some(built), &extras)?);
            }
            if wants("deb") && built.target.debian.is_some() {
                made.packages.push(deb::make(built, &extras)?);
            }
        }
        if wants("wheels") {
            made.packages.push(wheel::make(&toolchain, None, &extras)?);
        }
        if wants("npm") {
            made.packages.extend(npm::make(&made.programs, &extras)?);
        }
    }
    Ok(made)
}

fn read<'o>(options: &[&'o str]) -> Result<(Programs, Vec<&'static Target>, Vec<&'o str>), String> {
    let (mut programs, mut targets, mut parts) = (Programs::Built, Vec::new(), Vec::new());
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--reuse" => programs = Programs::Reused,
            "--target" => {
                let triple = options.next().ok_or("dist: --target needs a name")?;
                targets.push(target::named(triple)?);
            }
            part if PARTS.contains(&part) => parts.push(part),
            unknown => {
                return Err(format!("dist: there is no part {unknown}; the parts are {}", PARTS.join(", ")));
            }
        }
    }
    if targets.is_empty() {
        targets = TARGETS.iter().filter(|target| target.is_default).collect();
    }
    Ok((programs, targets, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_name_targets_and_parts() {
        let (programs, targets, parts) =
            read(&["--reuse", "--target", "aarch64-unknown-linux-musl", "deb", "npm"]).expect("known");
        assert_eq!(
            targets.iter().map(|target| target.triple).collect::<Vec<_>>(),
            ["aarch64-unknown-linux-musl"]
        );
        assert_eq!(parts, ["deb", "npm"]);
        assert_eq!(programs, Programs::Reused);
        let (programs, targets, parts) = read(&[]).expect("all");
        assert!(programs == Programs::Built && targets.len() > 1 && parts.is_empty());
        assert!(
            read(&["rpm"]).is_err() && read(&["--target"]).is_err() && read(&["--target", "pdp11"]).is_err()
        );
    }
}
