//! The program itself, for one target.

use std::fs;
use std::path::{Path, PathBuf};

use super::target::Target;
use super::toolchain::Toolchain;
use crate::run::{project, step};

/// The largest program that we ship, in bytes.
pub(crate) const MAX_BYTES: u64 = 25_000_000;

/// A program that was built.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) target: &'static Target,
    pub(crate) program: PathBuf,
}

/// Returns the program of an earlier run; the error says that there is none.
pub(super) fn reuse(target: &'static Target, place: &Path) -> Result<Built, String> {
    let program = place.join(target.triple).join(target.program());
    match program.is_file() {
        true => Ok(Built { target, program }),
        false => Err(format!("{}: dist/bin has no program for it", target.triple)),
    }
}

/// Builds the program for a target into `<into>/<triple>/`. The inner error says why the target is skipped.
pub(super) fn build(
    toolchain: &Toolchain,
    target: &'static Target,
    into: &Path,
) -> Result<Result<Built, String>, String> {
    if let Err(why) = toolchain.add(target.triple) {
        return Ok(Err(why));
    }
    let mut zig = toolchain.zig("zigbuild", project())?;
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
    zig.env("CARGO_TARGET_DIR", project().join("target"));
    step(&format!("building haversack for {}", target.triple), &mut zig)?;
    let built = project().join("target").join(target.triple).join("dist").join(target.program());
    let directory = into.join(target.triple);
    let program = directory.join(target.program());
    let copied = fs::create_dir_all(&directory).and_then(|()| fs::copy(&built, &program));
    let bytes = copied.map_err(|error| format!("{} was not made: {error}", program.display()))?;
    if bytes > MAX_BYTES {
        return Err(format!("{} has {bytes} bytes, more than {MAX_BYTES}", program.display()));
    }
    Ok(Ok(Built { target, program }))
}
