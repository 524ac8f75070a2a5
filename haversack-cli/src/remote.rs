//! The storage where the devices of a store meet, as this home knows it: `remote.toml`.

use std::path::PathBuf;
use std::sync::Arc;

use haversack::store::{Backend, Capabilities, OpenOptions, Registry};
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::records;
use crate::settings::Settings;

/// What a home knows about its remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remote {
    /// Where it is.
    pub(crate) url: String,
    /// What this device is called there.
    pub(crate) device: String,
    /// Whether the files are also kept there as plain objects.
    #[serde(default = "yes")]
    pub(crate) mirror: bool,
}

fn yes() -> bool {
    true
}

fn place(settings: &Settings) -> PathBuf {
    settings.home.join("remote.toml")
}

impl Remote {
    /// Returns the remote of a home, if it has one.
    pub(crate) fn of(settings: &Settings) -> Result<Option<Remote>, CommandError> {
        records::read(&place(settings), "Remove it, and add the remote again: haversack remote add URL")
    }

    /// Returns the remote of a home that must have one.
    pub(crate) fn expected(settings: &Settings) -> Result<Remote, CommandError> {
        Remote::of(settings)?.ok_or_else(|| {
            CommandError::user(
                "this memory has no remote, so there is nothing to sync with",
                "Name one: haversack remote add file:///a/directory, or join one: haversack join URL",
            )
        })
    }

    /// Writes it down.
    pub(crate) fn save(&self, settings: &Settings) -> Result<(), CommandError> {
        records::write(&place(settings), self, records::Weight::Durable)
    }

    /// Forgets it; the memory stays, here and there.
    pub(crate) fn forget(settings: &Settings) -> Result<(), CommandError> {
        records::remove(&place(settings))
    }
}

/// Opens the storage at an address that is in use; what is not there is not made.
///
/// A disk that is not plugged in leaves an empty place behind: a new store in it would be a mistake.
pub(crate) fn open(settings: &Settings, url: &str) -> Result<Arc<dyn Backend>, CommandError> {
    let safe = "All you wrote is safe on this machine. Bring the remote back, then: haversack sync";
    if let Some(directory) = directory_of(url)
        && !directory.is_dir()
    {
        let message = format!("the remote is not there: {}", crate::settings::shown(&directory));
        return Err(CommandError::user(message, safe));
    }
    make(settings, url).map_err(|error| CommandError { hint: Some(safe.to_owned()), ..error })
}

/// Opens the storage at an address, making it if need be.
pub(crate) fn make(settings: &Settings, url: &str) -> Result<Arc<dyn Backend>, CommandError> {
    let Some((scheme, _)) = url.split_once("://") else {
        return Err(CommandError::user(
            format!("\"{url}\" is no address of a remote"),
            "A directory is file:///home/me/memory",
        ));
    };
    let name = match scheme {
        "az" => "azure",
        "gs" => "gcs",
        other => other,
    };
    let locks = settings.shared_locks().display().to_string();
    let options = OpenOptions { address: url.to_owned(), locks };
    let required = Capabilities { create_if_absent: true, ..Capabilities::default() };
    Registry::standard().select(name, &options, &required).map_err(|error| {
        let hint = match error.kind() {
            haversack::store::ErrorKind::Unsupported if name == "file" => {
                "Name a directory on a disk of this machine, or one that is carried"
            }
            haversack::store::ErrorKind::Unsupported => "See what there is: haversack backends",
            _ => "Name it as file:///home/me/memory, a directory that you may write to",
        };
        CommandError { hint: Some(hint.to_owned()), ..CommandError::from(error) }
    })
}

/// Returns the directory that an address names, if it names one.
fn directory_of(url: &str) -> Option<PathBuf> {
    haversack::store::directory_of(url).ok()
}

/// Returns what this machine calls itself.
pub(crate) fn device_name() -> String {
    let name = gethostname::gethostname().to_string_lossy().into_owned();
    let name = name.split('.').next().unwrap_or_default().to_owned();
    if name.is_empty() { "this machine".to_owned() } else { name }
}
