//! The trait of a disk, for device-local.
//!
//! The protocols above this trait decide; an implementation only does. [`Disk`](super::os::Disk) is the
//! real one; a simulator supplies another that tears writes, forgets what was not synced and crashes at
//! every call.
//!
//! Every name is a single segment on an opened directory and no call follows a link, so nothing here
//! can leave the root.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A disk with one root directory, and beside it a place for locks and a note.
pub trait Fs: fmt::Debug + Send + Sync + 'static {
    /// An opened directory.
    type Dir: Send + Sync + 'static;
    /// An opened regular file.
    type File: Send + Sync + 'static;
    /// A lock that is held until it is dropped.
    type Lock: Send + Sync + 'static;

    /// Returns the root.
    fn root(&self) -> Arc<Self::Dir>;

    /// Opens a directory of `parent`; anything else there is [`io::ErrorKind::NotADirectory`].
    fn open_dir(&self, parent: &Self::Dir, name: &str) -> io::Result<Arc<Self::Dir>>;

    /// Makes a directory that only its owner can use.
    fn make_dir(&self, parent: &Self::Dir, name: &str) -> io::Result<()>;

    /// Opens a file for reading without waiting, whatever it is; see [`Fs::stat_file`].
    fn open(&self, parent: &Self::Dir, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading and for writing at its end.
    fn open_append(&self, parent: &Self::Dir, name: &str) -> io::Result<Self::File>;

    /// Creates a file that was not there, with exactly these permissions.
    fn create(&self, parent: &Self::Dir, name: &str, mode: u32) -> io::Result<Self::File>;

    /// Returns what is known about a name, of a link about the link itself.
    fn stat(&self, parent: &Self::Dir, name: &str) -> io::Result<Stat>;

    /// Returns the same about many names, each in its directory; one result for each.
    fn stats(&self, names: &[(&Self::Dir, &str)]) -> Vec<io::Result<Stat>> {
        names.iter().map(|(parent, name)| self.stat(parent, name)).collect()
    }

    /// Returns what is known about an opened file.
    fn stat_file(&self, file: &Self::File) -> io::Result<Stat>;

    /// Returns what is known about an opened directory.
    fn stat_dir(&self, dir: &Self::Dir) -> io::Result<Stat>;

    /// Returns the whole content from the start; `size_hint` is what it probably measures.
    fn read(&self, file: &Self::File, size_hint: u64) -> io::Result<Vec<u8>>;

    /// Reads into `buffer` from `offset` on; returns how much, which is nothing only at the end.
    fn read_at(&self, file: &Self::File, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at the end of the file; returns how many of `bytes`, which may be fewer than all.
    fn append(&self, file: &Self::File, bytes: &[u8]) -> io::Result<usize>;

    /// Cuts the file to `size` bytes.
    fn truncate(&self, file: &Self::File, size: u64) -> io::Result<()>;

    /// Makes the content of each file durable, all at once; one result for each.
    fn sync_files(&self, files: &[&Self::File]) -> Vec<io::Result<()>>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Self::Dir) -> io::Result<()>;

    /// Makes the names in some directories durable, in their order or all at once.
    fn sync_dirs(&self, dirs: &[&Self::Dir]) -> io::Result<()> {
        dirs.iter().try_for_each(|dir| self.sync_dir(dir))
    }

    /// Renames in one step.
    fn rename(
        &self,
        from_dir: &Self::Dir,
        from: &str,
        to_dir: &Self::Dir,
        to: &str,
        target: Target,
    ) -> io::Result<()>;

    /// Removes a name that is not a directory.
    fn unlink(&self, parent: &Self::Dir, name: &str) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, parent: &Self::Dir, name: &str) -> io::Result<()>;

    /// Returns the names in a directory in any order, at most `limit` of them.
    fn names(&self, dir: &Self::Dir, limit: usize) -> io::Result<Vec<Name>>;

    /// Opens a directory of `parent`, and returns it with all names in it.
    fn enter(&self, parent: &Self::Dir, name: &str) -> io::Result<(Arc<Self::Dir>, Vec<Name>)> {
        let dir = self.open_dir(parent, name)?;
        let names = self.names(&dir, usize::MAX)?;
        Ok((dir, names))
    }

    /// Takes the lock called `name`, waiting at most `wait`; `None` if it stayed taken.
    fn lock(&self, name: &str, wait: Duration) -> io::Result<Option<Self::Lock>>;

    /// Returns the note of what the last holder of the write lock was about to do.
    ///
    /// The note survives the process; nothing is promised if the machine stops.
    fn note(&self) -> io::Result<Vec<u8>>;

    /// Replaces the note; an empty one takes no space.
    fn set_note(&self, note: &[u8]) -> io::Result<()>;

    /// Returns true if [`Target::Exchanged`] works here.
    fn can_exchange(&self) -> bool;

    /// Returns true if a file may grow in place. Otherwise an append writes the file again.
    ///
    /// Programs that take no lock can see a growing file half-grown.
    fn grows_in_place(&self) -> bool {
        true
    }
}

/// The thing that may be at the new name of a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Anything: a file there is replaced.
    Replaced,
    /// Nothing, else [`io::ErrorKind::AlreadyExists`].
    Free,
    /// Something: the two change places.
    Exchanged,
}

/// The properties of a name that are known without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its kind.
    pub kind: NodeKind,
    /// The size in bytes.
    pub size: u64,
    /// The permission bits.
    pub mode: u32,
    /// The number of names.
    pub links: u64,
    /// The file's number.
    pub inode: u64,
    /// The disk's number.
    pub device: u64,
    /// When the content changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// When anything changed, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// The thing at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, socket, device or whatever else.
    Other,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name as stored; `Err` with a printable form if it is not Unicode.
    pub text: Result<String, String>,
    /// The thing that it leads to.
    pub kind: NodeKind,
}
