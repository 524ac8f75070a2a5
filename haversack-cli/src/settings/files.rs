//! Finds and reads the files that settings are in. Nothing here makes a file or a directory.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::declarations::KEEP_MEMORY_LOCAL;
use super::layers::{Layer, said_in_text};
use super::shown;
use crate::error::CommandError;

/// The name of the user file in the home.
const USER_FILE: &str = "config.toml";

/// The name of a project's file.
pub(crate) const PROJECT_FILE: &str = ".haversack.toml";

/// The longest file that is taken for one of settings.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A file that settings can be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    /// What is in it, if it is there.
    pub(crate) text: Option<String>,
}

/// Reads the user file of `home`.
pub(crate) fn read_user(home: &Path) -> Result<SettingsFile, CommandError> {
    read(home.join(USER_FILE))
}

/// Reads the project file in `directory` or in the nearest directory above it that has one.
///
/// Where there is none, the answer is the absent file in `directory` itself.
pub(crate) fn read_project(directory: &Path) -> Result<SettingsFile, CommandError> {
    for directory in directory.ancestors() {
        let file = read(directory.join(PROJECT_FILE))?;
        if file.text.is_some() {
            return Ok(file);
        }
    }
    Ok(SettingsFile { path: directory.join(PROJECT_FILE), text: None })
}

/// Tells whether the file of a project keeps the project's memory on this machine. A broken file says nothing.
pub(crate) fn keeps_memory_local(directory: &Path) -> bool {
    let file = read(directory.join(PROJECT_FILE)).ok().and_then(|file| Some((file.path, file.text?)));
    let said = file.and_then(|(path, text)| said_in_text(&path, &text, Layer::Project).ok());
    said.is_some_and(|said| said.iter().any(|said| said.key == KEEP_MEMORY_LOCAL))
}

fn read(path: PathBuf) -> Result<SettingsFile, CommandError> {
    let unreadable = |error: std::io::Error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("{} could not be read", shown(&path)),
            "Give this user access to it, or move it away",
        )
    };
    let odd = |what: &str, hint: &str| CommandError::user(format!("{} {what}", shown(&path)), hint);
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => {}
        // A pipe or a device could keep its reader forever.
        Ok(_) => return Err(odd("is not a file", "Move it away")),
        // A home that is a file has no files in it; what reads or writes the home says what is wrong.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            // Somebody meant to have settings there: they are not to be guessed.
            if path.is_symlink() {
                return Err(odd(
                    "is a link to a file that is not there",
                    "Make that file, or remove the link",
                ));
            }
            return Ok(SettingsFile { path, text: None });
        }
        Err(error) => return Err(unreadable(error)),
    }
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let what = format!("is longer than {MAX_FILE_BYTES} bytes, which no file of settings is");
        return Err(odd(&what, "Move it away"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SettingsFile { path, text: Some(text) }),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
            Err(CommandError {
                source: Some(error.utf8_error().into()),
                ..CommandError::user(
                    format!("{}:{line} is not UTF-8", shown(&path)),
                    "Save the file as UTF-8, or move it away",
                )
            })
        }
    }
}
