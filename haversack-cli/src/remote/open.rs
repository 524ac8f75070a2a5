//! Opens the storage of a remote.

use std::path::PathBuf;
use std::sync::Arc;

use haversack::home::Meeting;
use haversack::store::{Backend, Capabilities, DeviceLocal, ErrorKind, Registry, SplitBackend};

use super::credential::Cloud;
use super::record::{Remote, refuse_local};
use crate::error::CommandError;
use crate::settings::{Settings, shown};

/// Opens a remote that is in use; creates nothing.
///
/// A disk that is not plugged in leaves an empty place behind: a new store in it would be a mistake.
pub(crate) fn open(settings: &Settings, remote: &Remote) -> Result<Arc<dyn Backend>, CommandError> {
    refuse_local(settings)?;
    let safe = "All you wrote is safe on this machine. Bring the remote back, then: haversack sync. If it is gone for good: haversack remote rebuild";
    if let Some(directory) = directory_of(&remote.url)
        && !directory.is_dir()
    {
        let message = format!("the remote is not there: {}", shown(&directory));
        return Err(CommandError::user(message, safe));
    }
    make(settings, remote).map_err(|error| match Cloud::of(&remote.url) {
        None => CommandError { hint: Some(safe.to_owned()), ..error },
        Some(_) => error,
    })
}

/// Opens a remote, making it if need be.
pub(crate) fn make(settings: &Settings, remote: &Remote) -> Result<Arc<dyn Backend>, CommandError> {
    match vault(settings, remote)? {
        Some(vault) => Ok(vault.as_remote()),
        None => plain(settings, remote),
    }
}

/// Opens the place where the devices of a store meet; nothing is made that is not there.
pub(crate) fn meeting(settings: &Settings, remote: &Remote) -> Result<Meeting, CommandError> {
    let backend = open(settings, remote)?;
    meeting_at(settings, remote, backend)
}

/// Opens the place where the devices of a store meet, making it if need be.
pub(crate) fn new_meeting(settings: &Settings, remote: &Remote) -> Result<Meeting, CommandError> {
    let backend = make(settings, remote)?;
    meeting_at(settings, remote, backend)
}

fn meeting_at(
    settings: &Settings,
    remote: &Remote,
    backend: Arc<dyn Backend>,
) -> Result<Meeting, CommandError> {
    Ok(match vault(settings, remote)? {
        Some(vault) => Meeting::folder(vault.folder, vault.home),
        None => Meeting::log(backend),
    })
}

/// A synced folder, and this machine's data for it.
pub(crate) struct Vault {
    pub(crate) folder: Arc<dyn Backend>,
    pub(crate) home: Arc<dyn Backend>,
}

impl Vault {
    /// Returns the backend that the rest of this machine follows: its own log, and the plain files in the folder.
    pub(crate) fn as_remote(&self) -> Arc<dyn Backend> {
        Arc::new(SplitBackend::new(self.home.clone(), self.folder.clone()))
    }
}

/// Returns true if an address names a folder that a sync client replicates.
pub(crate) fn is_vault(url: &str) -> bool {
    url.starts_with("vault://")
}

/// Opens a remote that is a folder which a sync client replicates; `None` if it is something else.
pub(crate) fn vault(settings: &Settings, remote: &Remote) -> Result<Option<Vault>, CommandError> {
    if !is_vault(&remote.url) {
        return Ok(None);
    }
    let folder = plain(settings, remote)?;
    let home = Arc::new(DeviceLocal::open(settings.store().vault(), settings.locks())?);
    Ok(Some(Vault { folder, home }))
}

/// Opens the storage that an address names.
pub(crate) fn plain(settings: &Settings, remote: &Remote) -> Result<Arc<dyn Backend>, CommandError> {
    // The only way to open a remote: each caller would send requests.
    refuse_local(settings)?;
    let url = &remote.url;
    let Some((scheme, _)) = url.split_once("://") else {
        return Err(CommandError::user(
            format!("\"{url}\" is no address of a remote"),
            "A directory is file:///home/me/memory, a bucket s3://BUCKET, az://CONTAINER or gs://BUCKET",
        ));
    };
    let name = Cloud::of(url).map_or(scheme, |cloud| cloud.backend());
    // In a synced folder, each machine writes only its own names.
    let required = Capabilities { create_if_absent: name != "vault", ..Capabilities::default() };
    let opened = Registry::standard().select(name, &remote.options(settings)?, &required);
    opened.map_err(|error| {
        let hint = match (error.kind(), name) {
            (ErrorKind::Unsupported, "file") => {
                "Name the directory by its plain path, and every machine writes only its own log there: haversack remote add PATH"
            }
            (ErrorKind::Unsupported, _) => "List the storages: haversack backends",
            (_, "file") => "Name it as file:///home/me/memory, a directory that you may write to",
            (_, "azure" | "s3" | "gcs") => "Correct it, and add it again: haversack remote add URL",
            _ => "A directory is file:///home/me/memory, a bucket s3://BUCKET, az://CONTAINER or gs://BUCKET",
        };
        CommandError { hint: Some(hint.to_owned()), ..CommandError::from(error) }
    })
}

/// Returns the directory that an address names, if it names one.
pub(super) fn directory_of(url: &str) -> Option<PathBuf> {
    haversack::store::directory_of(url).ok()
}
