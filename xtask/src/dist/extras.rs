//! Completions and manual pages, written by the program itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{fresh, quietly};
use super::program::Built;
use super::{directory, files};
use crate::run::{cargo, project, step};

/// The completion script of each shell, with the name that the shell looks for.
pub(super) const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "haversack.bash"),
    ("zsh", "_haversack"),
    ("fish", "haversack.fish"),
    ("powershell", "haversack.ps1"),
];

/// Files of every package beside the program.
pub(crate) struct Extras {
    /// One script for each shell.
    pub(crate) completions: PathBuf,
    /// One page for each command.
    pub(crate) man: PathBuf,
}

/// Lets a program that runs on this machine write them.
pub(super) fn write_with(program: &Path) -> Result<Extras, String> {
    let extras = Extras {
        completions: fresh(&directory().join("extras/completions"))?,
        man: fresh(&directory().join("extras/man"))?,
    };
    for (shell, name) in COMPLETIONS {
        let script = quietly("completions", Command::new(program).args(["completions", shell]))?;
        files::write(&extras.completions.join(name), &script)?;
    }
    quietly("manual pages", Command::new(program).args(["help", "--man"]).arg(&extras.man))?;
    Ok(extras)
}

/// Writes them with one of the programs, or with one that is built for this machine.
pub(super) fn write(programs: &[Built]) -> Result<Extras, String> {
    match programs.iter().find(|built| built.target.runs_here()) {
        Some(built) => write_with(&built.program),
        None => {
            step("haversack", &mut cargo(&["build", "--quiet", "--package", "haversack-cli"]))?;
            write_with(&project().join("target/debug/haversack"))
        }
    }
}

impl Extras {
    /// Copies the licences and everything else that every package has.
    pub(super) fn copy_into(&self, to: &Path) -> Result<(), String> {
        for name in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
            files::copy(&project().join(name), &to.join(name))?;
        }
        files::copy(&self.completions, &to.join("completions"))?;
        files::copy(&self.man, &to.join("man"))
    }
}
