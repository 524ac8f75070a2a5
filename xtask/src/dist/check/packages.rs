//! The packages, installed and used in clean roots. The scripts are in `packaging/check`.

use std::path::PathBuf;
use std::process::Command;

use super::super::files::quietly;
use super::super::target::TARGETS;
use super::super::toolchain::Toolchain;
use super::super::{VERSION, deb};
use super::root::{CleanRoot, MINIMAL, WITH_LANGUAGES};
use super::{Outcome, archive_name, made, native, program, wheel_name};
use crate::run::project;

/// Every Linux program needs no loader and no library, and the one of this machine's processor runs in a system with an old C library.
pub(super) fn programs_are_static() -> Result<Outcome, String> {
    let mut checked = Vec::new();
    for target in TARGETS.iter().filter(|target| target.node.0 == "linux") {
        let Ok(program) = program(target) else { continue };
        let headers = quietly(
            "readelf",
            Command::new("readelf").args(["--program-headers", "--dynamic", "--wide"]).arg(&program),
        )?;
        if headers.contains("INTERP") || headers.contains("(NEEDED)") {
            return Err(format!("{} is not static:\n{headers}", program.display()));
        }
        checked.push(target.triple);
    }
    let native = program(native()?)?;
    let script = "ldd /given/haversack >/tmp/ldd.txt 2>&1 || true\ngrep -E 'statically linked|not a dynamic' /tmp/ldd.txt\n/given/haversack version\n";
    Ok(match MINIMAL.run("static", script, &[native])? {
        Ok(_) => Outcome::Passed(format!("{}; ldd agrees", checked.join(", "))),
        Err(why) => Outcome::Skipped(why),
    })
}

/// The package for Debian: installed, used by two machines, purged, nothing left.
pub(super) fn deb() -> Result<Outcome, String> {
    let package = made(&deb::name(native()?.debian.unwrap_or_default()))?;
    // dpkg's own records of a purged package, and its backups of them.
    check(MINIMAL, "deb", &[package], &["/var/lib/dpkg/", "/etc/ld.so.cache"])
}

/// The installer for every Unix: from loopback, used, upgraded, refusing a forged archive, uninstalled.
pub(super) fn installer() -> Result<Outcome, String> {
    let given = [made("haversack-installer.sh")?, made(&archive_name(native()?))?];
    check(WITH_LANGUAGES, "installer", &given, &[])
}

/// The wheel: in an environment, in a directory, by uvx and by pipx.
pub(super) fn wheel() -> Result<Outcome, String> {
    let uv = Toolchain::ready()?.zig_program("uv");
    let given = [made(&wheel_name(native()?))?, uv];
    check(WITH_LANGUAGES, "wheel", &given, &[])
}

/// The packages for Node: installed, used through npx, and the main package alone.
pub(super) fn npm() -> Result<Outcome, String> {
    let (system, processor) = native()?.node;
    let given = [
        made(&format!("haversack-{VERSION}.tgz"))?,
        made(&format!("haversack-{system}-{processor}-{VERSION}.tgz"))?,
    ];
    check(WITH_LANGUAGES, "npm", &given, &[])
}

/// The Homebrew formula: Ruby reads it, and it names an archive.
pub(super) fn formula() -> Result<Outcome, String> {
    check(WITH_LANGUAGES, "formula", &[made("haversack.rb")?], &[])
}

/// Completions in bash, fish and zsh, and a manual page.
pub(super) fn shells() -> Result<Outcome, String> {
    let package = made(&deb::name(native()?.debian.unwrap_or_default()))?;
    // Nothing is uninstalled here: the part "deb" does that.
    check(WITH_LANGUAGES, "shells", &[package], &["/"])
}

/// Runs the script of a check; nothing may be left but paths that begin with one of those that are permitted.
fn check(root: CleanRoot, name: &str, given: &[PathBuf], permitted: &[&str]) -> Result<Outcome, String> {
    let scripts = project().join("packaging/check");
    let path = scripts.join(format!("{name}.sh"));
    let script = std::fs::read_to_string(&path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let given: Vec<PathBuf> = given.iter().cloned().chain([scripts.join("use.sh")]).collect();
    let ran = match root.run(name, &script, &given)? {
        Ok(ran) => ran,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    let left: Vec<&String> = ran
        .left
        .iter()
        .filter(|path| permitted.iter().all(|permitted| !path.starts_with(permitted)))
        .collect();
    if !left.is_empty() {
        return Err(format!("{name}: these files were left after the removal:\n{left:#?}"));
    }
    let remarks: Vec<&str> =
        ran.printed.lines().filter(|line| line.contains(": passed") || line.contains(": skipped")).collect();
    Ok(Outcome::Passed(if remarks.is_empty() {
        "installed, used by two machines, removed; nothing left".to_owned()
    } else {
        remarks.join(", ")
    }))
}
