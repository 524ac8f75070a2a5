//! Calls that cap-std does not have, for systems without better ones: no exchange of names, no sync of directories.
//!
//! Windows grants less to a handle than Unix does. A handle for reading cannot be flushed, and one that only appends cannot cut the file. So files are
//! opened for writing wherever the user may write them, and an append looks for the end itself; it runs under the write lock.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_fs_ext::{DirExt, FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use crate::device_local::fs::{Name, NodeKind, Stat};

pub(super) fn open(parent: &Dir, name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match parent.open_with(name, options.read(true).write(true).follow(FollowSymlinks::No)) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        // A read-only file, or one that another program keeps open: the process that must flush it gets the error.
        Err(_) => parent.open_with(name, options.write(false)),
    }
}

pub(super) fn open_append(parent: &Dir, name: &str) -> io::Result<File> {
    parent.open_with(name, OpenOptions::new().read(true).write(true).follow(FollowSymlinks::No))
}

pub(super) fn create(parent: &Dir, name: &str, _mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    parent.open_with(name, options.read(true).write(true).create_new(true).follow(FollowSymlinks::No))
}

/// Writes at the end of the file.
pub(super) fn append(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    file.seek(SeekFrom::End(0))?;
    file.write(bytes)
}

pub(super) fn stat(parent: &Dir, name: &str) -> io::Result<Stat> {
    Ok(convert(&parent.symlink_metadata(name)?))
}

pub(super) fn stat_file(file: &File) -> io::Result<Stat> {
    Ok(convert(&file.metadata()?))
}

pub(super) fn stat_dir(dir: &Dir) -> io::Result<Stat> {
    Ok(convert(&dir.dir_metadata()?))
}

fn convert(metadata: &Metadata) -> Stat {
    let kind = match metadata.file_type() {
        kind if kind.is_file() => NodeKind::File,
        kind if kind.is_dir() => NodeKind::Directory,
        kind if kind.is_symlink() => NodeKind::Link,
        _ => NodeKind::Other,
    };
    let modified = metadata.modified().map(|time| time.into_std()).unwrap_or(SystemTime::UNIX_EPOCH);
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified_ns = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
    Stat {
        kind,
        size: metadata.len(),
        mode: 0o600,
        links: metadata.nlink(),
        inode: metadata.ino(),
        device: metadata.dev(),
        modified_ns,
        changed_ns: modified_ns,
    }
}

pub(super) fn fix_mode(_parent: &Dir, _name: &str, _mode: u32) -> io::Result<()> {
    Ok(())
}

pub(super) fn names(dir: &Dir, limit: usize) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    for entry in dir.entries()?.take(limit) {
        let entry = entry?;
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_file() => NodeKind::File,
            Ok(kind) if kind.is_dir() => NodeKind::Directory,
            Ok(kind) if kind.is_symlink() => NodeKind::Link,
            Ok(_) => NodeKind::Other,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let text = entry.file_name().into_string().map_err(|name| name.to_string_lossy().into_owned());
        names.push(Name { text, kind });
    }
    Ok(names)
}

pub(super) fn enter(parent: &Dir, name: &str) -> io::Result<(Dir, Vec<Name>)> {
    let dir = readable_child(parent, name)?;
    let names = names(&dir, usize::MAX)?;
    Ok((dir, names))
}

/// Nothing here tells.
pub(super) fn has_name(_file: &std::fs::File) -> bool {
    true
}

pub(super) fn sync_ambient_dir(_path: &std::path::Path) -> io::Result<()> {
    Ok(())
}

/// Many handles are synced one by one.
pub(super) fn sync_together<T>(_handles: &[&T]) -> Option<io::Result<()>> {
    None
}

pub(super) fn sync_file(file: &File) -> io::Result<()> {
    file.sync_data()
}

pub(super) fn sync_dir(_dir: &Dir) -> io::Result<()> {
    // A directory has no handle that can be flushed; its names are as durable as the system makes them.
    Ok(())
}

pub(super) fn start_writing(_file: &File) {}

pub(super) fn readable(dir: Dir) -> io::Result<Dir> {
    Ok(dir)
}

pub(super) fn readable_child(parent: &Dir, name: &str) -> io::Result<Dir> {
    parent.open_dir_nofollow(name)
}

pub(super) fn read_at(mut file: impl Read + Seek, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek(SeekFrom::Start(offset))?;
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read(&mut bytes[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

pub(super) fn write_at(mut file: &std::fs::File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

pub(super) fn read_all(file: &File, expected: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(expected + 1);
    let mut reader = file;
    reader.seek(SeekFrom::Start(0))?;
    reader.read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn exchange(_from_dir: &Dir, _from: &str, _to_dir: &Dir, _to: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn rename_to_free(from_dir: &Dir, from: &str, to_dir: &Dir, to: &str) -> io::Result<()> {
    match stat(to_dir, to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => from_dir.rename(from, to_dir, to),
        Err(error) => Err(error),
    }
}
