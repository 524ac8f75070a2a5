//! The manual pages for `man`: one for the program and one for each command, made from the command line itself.

use std::path::Path;

use clap::CommandFactory;

use crate::Arguments;
use crate::error::CommandError;
use crate::settings::shown;

/// Writes every page into a directory, which is made if it is not there: `haversack.1`, `haversack-sync.1`, ….
pub(super) fn write(directory: &Path) -> Result<(), CommandError> {
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), directory));
    written.map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("the manual pages could not be written into {}", shown(directory)),
            "Name a directory that you can write to",
        )
    })
}
