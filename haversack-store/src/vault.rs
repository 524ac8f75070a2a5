//! The `vault` backend: a folder that Dropbox, OneDrive, iCloud, Google Drive, Syncthing or Obsidian replicates, or a network share.
//!
//! It is [`DeviceLocal`] on another kind of disk: one that a sync client looks at all the time, uploads whatever it sees, and changes
//! whenever something arrives. What is different:
//!
//! 1. Nothing in the folder is ever half-written. What is appended to is written anew; new content is complete and
//!    synced before it has any name where the system can do that (Linux), else under a working name
//!    (`working_names_are_hidden`, `append_is_never_seen_half_done`).
//! 2. Working names are spelled `.~haversack-….tmp`, which clients take for an editor's temporary files:
//!
//!    | client | leaves alone |
//!    |---|---|
//!    | Dropbox | what begins with `.~` |
//!    | OneDrive | what ends in `.tmp` |
//!    | Google Drive | nothing that was verified: that it leaves out what ends in `.tmp` is only said |
//!    | iCloud Drive | both |
//!    | Nextcloud, ownCloud | what contains `.~` |
//!    | Obsidian Sync | what begins with a dot, **all of `.haversack/` too** |
//!    | Syncthing | nothing but its own: there a working name can travel for a moment, and is ours on the other side too |
//!
//! 3. Reading, replacing or deleting a file whose name is here and whose content is not gives [`Unavailable`](crate::ErrorKind::Unavailable).
//!    It is listed, so that it does not count as deleted, and never read, because reading makes the client fetch it
//!    (`hostile::placeholders`).
//! 4. There are no lock files in it. Locks are files of this machine outside of the folder, one for each real path, held through
//!    the operating system: they end with their process, so that no heartbeat and no takeover of stale ones is needed.
//!
//! Locks and conditions hold between the processes of this machine. What other machines write arrives whenever the client brings it, so
//! create-if-absent is not promised: a device that syncs through a vault writes only names of its own.

mod away;
mod folder;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use self::folder::Folder;
use crate::backend::Backend;
use crate::capabilities::{Capabilities, ConflictStrategy};
use crate::device_local::{self, DeviceLocal};
use crate::error::{Error, Operation, Result};
use crate::forward_backend;
use crate::locator::Locator;
use crate::shared_directory::directory_of;

/// The name of this backend.
pub const PROTOCOL: &str = "vault";

/// The guarantees of this backend; conditions hold between the processes of one machine.
pub const CAPABILITIES: Capabilities = Capabilities {
    conflict_files: true,
    sync: true,
    create_if_absent: false,
    flat_append: false,
    ..device_local::CAPABILITIES
};

/// Plain files in a folder that something outside replicates.
pub struct Vault {
    files: DeviceLocal<Folder>,
}

impl Vault {
    /// Opens the folder `root`, making it if need be, with its lock files in the directory `locks`.
    ///
    /// `locks` must be on a disk of this machine that nothing replicates. A folder that was there before and is
    /// missing now may be unmounted: a caller that knows it asks the user before opening it.
    pub fn open(root: impl AsRef<Path>, locks: impl AsRef<Path>) -> Result<Vault> {
        let disk = device_local::open_disk(root.as_ref(), locks.as_ref())?;
        Ok(Vault { files: DeviceLocal::on(Folder::on(disk))? })
    }

    /// Returns the files whose content is not on this machine, Haversack's own among them, without fetching any.
    pub async fn online_only(&self) -> Result<Vec<Locator>> {
        let found = self.files.on_disk(Folder::online_only).await;
        found.map_err(|error| Error::from_io(Operation::Scan, "", error))
    }
}

/// Opens the folder of a `vault://` address.
pub(crate) fn open(address: &str, locks: &str) -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(Vault::open(directory_of(address)?, locks)?))
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("files", &self.files).finish()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Vault {
    fn capabilities(&self) -> Capabilities {
        Capabilities { exchange: self.files.capabilities().exchange, ..CAPABILITIES }
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::Merge
    }

    forward_backend!(self => self.files; read, write, prepare, append, barrier, list, scan, info);
    forward_backend!(self => self.files; touch_mark, delete, rename, exchange, mkdir, lock);
}
