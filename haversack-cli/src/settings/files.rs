//! Finds and reads the files that settings are in. Only [`remember`] writes one.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::declarations::KEEP_MEMORY_LOCAL;
use super::layers::{Layer, said_in_text};
use crate::error::CommandError;
use crate::records;
use crate::ui::paths::shown;

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

/// Returns where the user file of `home` is.
pub(crate) fn user_file(home: &Path) -> PathBuf {
    home.join(USER_FILE)
}

/// Writes a switch into the user file of `home`; everything else in the file stays as the user wrote it.
pub(crate) fn remember(home: &Path, key: &str, value: bool) -> Result<(), CommandError> {
    let SettingsFile { path, text } = read_user(home)?;
    let mut document: toml_edit::DocumentMut =
        text.as_deref().unwrap_or_default().parse().map_err(|error: toml_edit::TomlError| {
            CommandError::user(
                format!("{} is not TOML: {}", shown(&path), error.message()),
                "Mend it, and run the same command again",
            )
        })?;
    if document.get(key).and_then(toml_edit::Item::as_bool) == Some(value) {
        return Ok(());
    }
    match document.get_mut(key) {
        // The remark behind the old value stays.
        Some(toml_edit::Item::Value(old)) => {
            let decor = old.decor().clone();
            *old = value.into();
            *old.decor_mut() = decor;
        }
        _ => drop(document.insert(key, toml_edit::value(value))),
    }
    // A file that is a link, as people keep their settings elsewhere, stays one.
    let path = path.canonicalize().unwrap_or(path);
    records::write_text(&path, &document.to_string(), records::Weight::Durable)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switch_is_remembered_and_the_rest_of_the_file_stays() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let file = home.path().join(USER_FILE);
        let cases = [
            (None, "keep-memory-local = true\n"),
            (
                Some("# mine\nlock-wait-seconds = 5 # long\n"),
                "# mine\nlock-wait-seconds = 5 # long\nkeep-memory-local = true\n",
            ),
            (
                Some("keep-memory-local = false # for now\n\n[memory-tool]\nline-bytes = 65536\n"),
                "keep-memory-local = true # for now\n\n[memory-tool]\nline-bytes = 65536\n",
            ),
            (
                Some("[memory-tool]\nline-bytes = 65536\n"),
                "keep-memory-local = true\n[memory-tool]\nline-bytes = 65536\n",
            ),
        ];
        for (before, after) in cases {
            match before {
                Some(text) => std::fs::write(&file, text).expect("written"),
                None => drop(std::fs::remove_file(&file)),
            }
            for _ in 0..2 {
                remember(home.path(), "keep-memory-local", true).expect("remembered");
                assert_eq!(std::fs::read_to_string(&file).expect("there"), after);
            }
        }
        std::fs::write(&file, "keep-memory-local = ").expect("written");
        assert!(remember(home.path(), "keep-memory-local", true).is_err());
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "keep-memory-local = ");
    }
}
