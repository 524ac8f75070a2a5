//! Locks between the processes of this machine, for storages that have none.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use crate::backend::{Backend, Guard};
use crate::device_local::DeviceLocal;
use crate::error::Result;
use crate::refuse::check_lock_name;

/// The locks of one storage. The directory is made when the first lock is asked for.
#[derive(Debug)]
pub(crate) struct LocalLocks {
    /// The directory with the locks of all storages.
    locks: String,
    /// Names the storage.
    key: String,
    opened: OnceLock<DeviceLocal>,
}

impl LocalLocks {
    /// Returns the locks of the storage with this address.
    pub(crate) fn new(locks: &str, address: &str) -> LocalLocks {
        let key = blake3::hash(address.as_bytes()).to_hex()[..16].to_owned();
        LocalLocks { locks: locks.to_owned(), key, opened: OnceLock::new() }
    }

    /// Takes a lock.
    pub(crate) async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        check_lock_name(name)?;
        let local = match self.opened.get() {
            Some(local) => local,
            None => {
                let place = PathBuf::from(&self.locks).join("clouds").join(&self.key);
                let opened = DeviceLocal::open(place, &self.locks)?;
                self.opened.get_or_init(|| opened)
            }
        };
        local.lock(name, wait).await
    }
}
