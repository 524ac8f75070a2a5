//! Small files of the home that its user may read: written whole or not at all.

pub(crate) mod private;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::CommandError;
use crate::ui::paths::shown;

/// Reads a record; `None` if there is none.
pub(crate) fn read<T: DeserializeOwned>(place: &Path, cure: &str) -> Result<Option<T>, CommandError> {
    let text = match fs::read_to_string(place) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot("read", place, error)),
    };
    match toml::from_str(&text) {
        Ok(record) => Ok(Some(record)),
        Err(error) => Err(CommandError {
            source: Some(error.message().to_owned().into()),
            ..CommandError::user(
                format!("{} was not written by Haversack, or was changed since", shown(place)),
                cure,
            )
        }),
    }
}

/// Tells if a record must survive a power failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It must.
    Durable,
    /// Losing it costs nothing that matters.
    Light,
}

/// Writes a record; a reader sees the old one or the new one.
pub(crate) fn write(place: &Path, record: &impl Serialize, weight: Weight) -> Result<(), CommandError> {
    let text = toml::to_string(record)
        .map_err(|error| CommandError::ours(format!("a record cannot be written: {error}")))?;
    write_text(place, &text, weight)
}

/// Writes a text; a reader sees the old one or the new one.
pub(crate) fn write_text(place: &Path, text: &str, weight: Weight) -> Result<(), CommandError> {
    let directory = place.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        // Two processes may write at once.
        let draft = place.with_extension(format!("{}.new", std::process::id()));
        let mut out = private::create(&draft)?;
        out.write_all(text.as_bytes())?;
        if weight == Weight::Durable {
            out.sync_all()?;
        }
        fs::rename(&draft, place)?;
        if cfg!(unix) && weight == Weight::Durable { fs::File::open(directory)?.sync_all() } else { Ok(()) }
    };
    write().map_err(|error| cannot("write", place, error))
}

/// Removes a record; one that is not there is fine.
pub(crate) fn remove(place: &Path) -> Result<(), CommandError> {
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("remove", place, error)),
        _ => Ok(()),
    }
}

fn cannot(what: &str, place: &Path, error: io::Error) -> CommandError {
    CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("could not {what} {}", shown(place)),
            "Check the permissions of the home: haversack doctor",
        )
    }
}
