//! The archive with the program that installers, Homebrew and `cargo binstall` fetch.

use std::path::PathBuf;

use super::extras::Extras;
use super::files::{copy, fresh, pack};
use super::program::Built;
use super::{VERSION, directory};

/// Returns the name of a target's archive, without its ending.
pub(crate) fn stem(triple: &str) -> String {
    format!("haversack-{VERSION}-{triple}")
}

/// Makes the archive of a program.
pub(super) fn make(built: &Built, extras: &Extras) -> Result<PathBuf, String> {
    let stem = stem(built.target.triple);
    let scratch = directory().join("scratch");
    let contents = fresh(&scratch.join(&stem))?;
    copy(&built.program, &contents.join(built.target.program()))?;
    extras.copy_into(&contents)?;
    let archive = directory().join(format!("{stem}.tar.gz"));
    pack(&scratch, &stem, &archive)?;
    Ok(archive)
}
