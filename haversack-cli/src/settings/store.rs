//! The places of one store on this machine.

use std::path::{Path, PathBuf};

use haversack::ids::StoreId;

/// The places of one store on this machine: its files, its state and its records. Everything that belongs to a store is opened from this value.
///
/// A home has a list of stores ([`Settings::stores`](super::Settings::stores)). Today the list has one: the user's personal store, which lies in the
/// home itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StorePaths {
    root: PathBuf,
}

impl StorePaths {
    /// Returns the places of the personal store of a home.
    pub(crate) fn personal(home: &Path) -> StorePaths {
        StorePaths { root: home.to_owned() }
    }

    /// Returns the directory of the files.
    pub(crate) fn memory(&self) -> PathBuf {
        self.root.join("memory")
    }

    /// Returns the directory of the memory directory's state.
    pub(crate) fn state(&self) -> PathBuf {
        self.root.join("state").join("default")
    }

    /// Returns the directory of a bound directory's state.
    pub(crate) fn bound_state(&self, name: &str) -> PathBuf {
        self.root.join("state").join(name)
    }

    /// Returns the directory of the history that the store has without a remote.
    pub(crate) fn local_history(&self) -> PathBuf {
        self.root.join("state").join("local")
    }

    /// Returns the directory of this machine's own log and copies, for a remote that is a synced folder.
    pub(crate) fn vault(&self) -> PathBuf {
        self.root.join("state").join("vault")
    }

    /// Returns the directory of the same for a store that this home left.
    pub(crate) fn left_vault(&self, store: StoreId) -> PathBuf {
        self.root.join("state").join(format!("vault-left-{store}"))
    }

    /// Returns the directory of the files as they were before a join.
    pub(crate) fn before_join(&self) -> PathBuf {
        self.root.join("state").join("before-join")
    }

    /// Returns the directory of the search index.
    pub(crate) fn index(&self) -> PathBuf {
        self.root.join("index")
    }

    /// Returns the record of the remote.
    pub(crate) fn remote(&self) -> PathBuf {
        self.root.join("remote.toml")
    }

    /// Returns the file with the secrets for the remote.
    pub(crate) fn credential(&self) -> PathBuf {
        self.root.join("credential.toml")
    }

    /// Returns the record of the bound directories.
    pub(crate) fn mounts(&self) -> PathBuf {
        self.root.join("mounts.toml")
    }

    /// Returns the record of the lines that may be sent although they look like secrets.
    pub(crate) fn allowlist(&self) -> PathBuf {
        self.root.join("allowed.toml")
    }
}
