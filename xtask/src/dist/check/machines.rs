//! Programs of other systems, and the same program built twice.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::files::{fresh, quietly, sha256};
use super::super::target::{TARGETS, Target};
use super::super::toolchain::Toolchain;
use super::root::{CleanRoot, MINIMAL, WITH_WINE};
use super::{Outcome, native, program};
use crate::run::{project, step, tools};

/// Debian's package with an emulator for each processor. The emulators need no library.
const EMULATORS: &str = "qemu-user-static";

/// A second build, of a clone in another directory and with an empty target directory, has the same hash.
pub(super) fn reproducible() -> Result<Outcome, String> {
    let target = native()?;
    let first = program(target)?;
    let toolchain = Toolchain::ready()?;
    let clone = fresh(&project().join("target/dist-check/clone"))?;
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--depth", "1"])
        .arg(format!("file://{}", project().display()))
        .arg(clone.join("haversack"));
    quietly("git clone", &mut git)?;
    let source = clone.join("haversack");
    let mut zig = toolchain.zig("zigbuild", &source)?;
    zig.args([
        "--locked",
        "--quiet",
        "--package",
        "haversack-cli",
        "--profile",
        "dist",
        "--target",
        target.triple,
    ]);
    step("building haversack again", zig.env("CARGO_TARGET_DIR", clone.join("target")))?;
    let second = clone.join("target").join(target.triple).join("dist").join(target.program());
    let (one, two) = (sha256(&first)?, sha256(&second)?);
    if one != two {
        return Err(format!(
            "{} has the hash {one}, and the second build, of the last commit, has {two}: {}",
            first.display(),
            second.display()
        ));
    }
    drop(std::fs::remove_dir_all(&clone));
    Ok(Outcome::Passed(format!("two builds in different directories have the hash {one}")))
}

/// The Linux program of the other processor, under emulation: verbs, sync of two homes, memory tool, MCP.
pub(super) fn emulated() -> Result<Outcome, String> {
    let is_foreign = |target: &&Target| target.node.0 == "linux" && !target.runs_here();
    let Some(target) = TARGETS.iter().find(is_foreign) else {
        return Ok(Outcome::Skipped("every Linux program runs on this machine".to_owned()));
    };
    let program = program(target)?;
    let processor = target.triple.split('-').next().unwrap_or_default();
    let emulator = tools().join(EMULATORS).join("usr/bin").join(format!("qemu-{processor}-static"));
    if !emulator.is_file()
        && let Err(why) = crate::tools::debian_program(EMULATORS)
    {
        return Ok(Outcome::Skipped(why));
    }
    used(MINIMAL, "emulated", &[program, emulator])
}

/// The program for Windows under wine: demo, verbs, time zones, sync of two homes, memory tool, MCP, hooks, a file held open. Without an archive in `dist/`,
/// a program is built for it.
pub(super) fn windows() -> Result<Outcome, String> {
    let target = target("x86_64-pc-windows-gnu")?;
    let program = match program(target).map_or_else(|_| debug_build(target), |program| Ok(Ok(program)))? {
        Ok(program) => program,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    used(WITH_WINE, "windows", &[program])
}

/// Runs the script of a check in a root. The lines that end with "passed" are its result.
fn used(root: CleanRoot, name: &str, given: &[PathBuf]) -> Result<Outcome, String> {
    let path = project().join(format!("packaging/check/{name}.sh"));
    let script = std::fs::read_to_string(&path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    Ok(match root.run(name, &script, given)? {
        Ok(ran) => Outcome::Passed(
            ran.printed.lines().filter(|line| line.ends_with(": passed")).collect::<Vec<_>>().join(", "),
        ),
        Err(why) => Outcome::Skipped(why),
    })
}

/// The programs for macOS: compiled and linked for both processors. Nothing here can run them.
pub(super) fn macos() -> Result<Outcome, String> {
    let mut linked = Vec::new();
    for triple in ["aarch64-apple-darwin", "x86_64-apple-darwin"] {
        match debug_build(target(triple)?)? {
            Ok(_) => linked.push(triple),
            Err(why) => return Ok(Outcome::Skipped(why)),
        }
    }
    Ok(Outcome::Passed(format!("{} compile and link; nothing was run", linked.join(" and "))))
}

fn target(triple: &str) -> Result<&'static Target, String> {
    TARGETS.iter().find(|target| target.triple == triple).ok_or_else(|| format!("{triple} is no target"))
}

/// Builds a program without optimisation. The inner error says why the target is skipped.
fn debug_build(target: &Target) -> Result<Result<PathBuf, String>, String> {
    let toolchain = Toolchain::ready()?;
    if let Err(why) = toolchain.add(target.triple) {
        return Ok(Err(why));
    }
    let directory = project().join("target");
    let mut zig = toolchain.zig("zigbuild", project())?;
    zig.args(["--locked", "--quiet", "--package", "haversack-cli", "--target", target.triple]);
    step(&format!("building haversack for {}", target.triple), zig.env("CARGO_TARGET_DIR", &directory))?;
    let built: &Path = &directory.join(target.triple).join("debug").join(target.program());
    Ok(Ok(built.to_owned()))
}
