//! The package for Debian and Ubuntu. It needs no other package, because the program is static.
//!
//! `dpkg-deb` packs a directory that is laid out like the root of a system. cargo-deb would do the same after a build of its own dependencies, and would find
//! out the dependencies of a program that has none.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::extras::Extras;
use super::files::{copy, fresh, make_executable, quietly, write};
use super::program::Built;
use super::toolchain::commit_time;
use super::{VERSION, directory};
use crate::run::project;

/// Builds the package with a program.
pub(super) fn make(built: &Built, extras: &Extras) -> Result<PathBuf, String> {
    let architecture = built.target.debian.ok_or_else(|| format!("{} is no Debian", built.target.triple))?;
    let root = fresh(&directory().join("scratch/deb"))?;
    let program = root.join("usr/bin/haversack");
    copy(&built.program, &program)?;
    make_executable(&program)?;
    let scratch = fresh(&directory().join("scratch/deb-man"))?;
    copy(&extras.man, &scratch)?;
    for page in fs::read_dir(&scratch).map_err(|error| error.to_string())?.flatten() {
        quietly("gzip", Command::new("gzip").arg("-9n").arg(page.path()))?;
    }
    copy(&scratch, &root.join("usr/share/man/man1"))?;
    for (from, to) in [
        ("haversack.bash", "usr/share/bash-completion/completions/haversack"),
        ("_haversack", "usr/share/zsh/vendor-completions/_haversack"),
        ("haversack.fish", "usr/share/fish/vendor_completions.d/haversack.fish"),
        ("haversack.ps1", "usr/share/haversack/completions/haversack.ps1"),
    ] {
        copy(&extras.completions.join(from), &root.join(to))?;
    }
    let licence =
        fs::read_to_string(project().join("LICENSE-MIT")).map_err(|error| format!("LICENSE-MIT: {error}"))?;
    write(
        &root.join("usr/share/doc/haversack/copyright"),
        &format!(
            "Haversack may be used under the Apache License 2.0 (/usr/share/common-licenses/Apache-2.0) or under the MIT licence:\n\n{licence}"
        ),
    )?;
    copy(&project().join("CHANGELOG.md"), &root.join("usr/share/doc/haversack/CHANGELOG.md"))?;
    let kilobytes = kilobytes(&root)?;
    write(&root.join("DEBIAN/control"), &control(architecture, kilobytes))?;
    let package = directory().join(name(architecture));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&package);
    quietly("dpkg-deb", build.env("SOURCE_DATE_EPOCH", commit_time()?))?;
    Ok(package)
}

/// Returns the name of the package for a processor.
pub(super) fn name(architecture: &str) -> String {
    format!("haversack_{VERSION}_{architecture}.deb")
}

fn control(architecture: &str, kilobytes: u64) -> String {
    format!(
        "Package: haversack\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: The Haversack authors <haversack@localhost>\n\
         Installed-Size: {kilobytes}\nSection: utils\nPriority: optional\n\
         Description: an AI agent's memory on every machine you work on\n \
         Haversack carries the memory files of coding agents from machine to machine,\n \
         through storage that the user owns, and merges changes of two machines.\n"
    )
}

fn kilobytes(directory: &std::path::Path) -> Result<u64, String> {
    let mut total = 0;
    for entry in fs::read_dir(directory).map_err(|error| error.to_string())?.flatten() {
        let found = entry.metadata().map_err(|error| error.to_string())?;
        total += if found.is_dir() { kilobytes(&entry.path())? } else { found.len().div_ceil(1024) };
    }
    Ok(total)
}
