//! The wheels for `pip install haversack`: one for each program, and one without a program for all other systems.

use std::fs;
use std::path::{Path, PathBuf};

use super::extras::Extras;
use super::files::{copy, fresh, quietly};
use super::program::Built;
use super::toolchain::{Toolchain, commit_time};
use super::{VERSION, directory};
use crate::run::project;

/// The sources of the package. Tests and caches of the checkout stay out.
const SOURCES: [&str; 6] = ["pyproject.toml", "hatch_build.py", "README.md", "src", "examples", "tests"];

/// Builds the wheel with a program, or the one without any.
pub(super) fn make(toolchain: &Toolchain, built: Option<&Built>, extras: &Extras) -> Result<PathBuf, String> {
    let scratch = fresh(&directory().join("scratch/wheel"))?;
    let (package, into) = (scratch.join("package"), scratch.join("built"));
    for name in SOURCES {
        copy(&project().join("python").join(name), &package.join(name))?;
    }
    let mut python = toolchain.python();
    python.current_dir(&package).env("SOURCE_DATE_EPOCH", commit_time()?).env("PYTHONDONTWRITEBYTECODE", "1");
    python.args(["-m", "hatchling", "build", "--target", "wheel", "--directory"]).arg(&into);
    if let Some(built) = built {
        let shared = scratch.join("shared");
        share(extras, &shared)?;
        python.env("HAVERSACK_WHEEL_PROGRAM", &built.program).env("HAVERSACK_WHEEL_TAG", built.target.wheel);
        python.env("HAVERSACK_WHEEL_SHARED", &shared);
    }
    quietly("hatchling", &mut python)?;
    let tag =
        built.map_or_else(|| "py3-none-any".to_owned(), |built| format!("py3-none-{}", built.target.wheel));
    let name = format!("haversack-{VERSION}-{tag}.whl");
    let wheel = directory().join(&name);
    fs::rename(into.join(&name), &wheel).map_err(|error| format!("hatchling built no {name}: {error}"))?;
    Ok(wheel)
}

/// Lays out manual pages and completions as they lie below an environment's directory, which is where shells and `man` look. PowerShell looks nowhere: its
/// script is read by the user's profile.
pub(super) fn share(extras: &Extras, to: &Path) -> Result<(), String> {
    copy(&extras.man, &to.join("share/man/man1"))?;
    for (from, to_name) in [
        ("haversack.bash", "share/bash-completion/completions/haversack"),
        ("_haversack", "share/zsh/site-functions/_haversack"),
        ("haversack.fish", "share/fish/vendor_completions.d/haversack.fish"),
        ("haversack.ps1", "share/haversack/completions/haversack.ps1"),
    ] {
        copy(&extras.completions.join(from), &to.join(to_name))?;
    }
    Ok(())
}
