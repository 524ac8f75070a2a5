//! Files of the home that only its user may read: every file that we write beside the memory goes through here.
//!
//! Records, logs of hooks and summaries tell what the user works on, and some hold addresses and keys. So files get the mode 0600 and directories
//! that we make get 0700, whatever the umask is. A file that is wider, from an older version or a restored backup, is narrowed when it is written
//! again. The memory itself is written by the store, and so are the objects and the history in `state/`, with the same modes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The most files that are looked at for their modes.
#[cfg(unix)]
const MAX_LOOKED_AT: usize = 20_000;

/// Makes a directory and those above it; one that is there stays as it is.
pub(crate) fn create_directories(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Opens a file to write it anew; what was in it is gone.
pub(crate) fn create(file: &Path) -> io::Result<File> {
    open(file, OpenOptions::new().write(true).create(true).truncate(true))
}

/// Makes a file that must not be there yet.
pub(crate) fn create_new(file: &Path) -> io::Result<File> {
    open(file, OpenOptions::new().write(true).create_new(true))
}

/// Opens a file to add to its end.
pub(crate) fn append(file: &Path) -> io::Result<File> {
    open(file, OpenOptions::new().append(true).create(true))
}

/// Writes a file.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    create(file)?.write_all(bytes)
}

fn open(file: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if let Some(directory) = file.parent() {
        create_directories(directory)?;
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    let opened = options.open(file)?;
    narrow(&opened);
    Ok(opened)
}

/// Takes a file away from everybody else.
#[cfg(unix)]
pub(crate) fn narrow(file: &File) {
    use std::os::unix::fs::PermissionsExt;
    let is_wide = file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0);
    if is_wide {
        // Some file systems have no modes. Writing goes on, and `doctor` reports the file.
        drop(file.set_permissions(fs::Permissions::from_mode(0o600)));
    }
}

#[cfg(not(unix))]
pub(crate) fn narrow(_file: &File) {}

/// Names in a home that are the user's own to open to others.
#[cfg(unix)]
const USERS: [&str; 2] = ["memory", "config.toml"];

/// Returns the files and directories that we wrote into a home and that others can read.
#[cfg(unix)]
pub(crate) fn open_to_others(home: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let mut open = Vec::new();
    let mut looked_at = 0;
    let mut left = vec![home.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > MAX_LOOKED_AT {
                return open;
            }
            // A link has no mode of its own.
            let Ok(found) = entry.path().symlink_metadata() else { continue };
            if found.is_symlink() || USERS.iter().any(|name| entry.path() == home.join(name)) {
                continue;
            }
            if found.permissions().mode() & 0o077 != 0 {
                open.push(entry.path());
            }
            if found.is_dir() {
                left.push(entry.path());
            }
        }
    }
    open.sort();
    open
}

#[cfg(not(unix))]
pub(crate) fn open_to_others(_home: &Path) -> Vec<PathBuf> {
    Vec::new()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn files_are_private_and_wide_ones_are_narrowed() {
        let base = tempfile::tempdir().expect("made");
        let file = base.path().join("state/hooks/hooks.log");
        append(&file).expect("opened").write_all(b"one\n").expect("written");
        assert_eq!((mode(&file), mode(&base.path().join("state"))), (0o600, 0o700));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).expect("changed");
        assert_eq!(open_to_others(base.path()), std::slice::from_ref(&file));
        append(&file).expect("opened").write_all(b"two\n").expect("written");
        assert_eq!((mode(&file), fs::read(&file).expect("read")), (0o600, b"one\ntwo\n".to_vec()));
        write(&file, b"three\n").expect("written");
        assert_eq!(fs::read(&file).expect("read"), b"three\n");
        assert!(create_new(&file).is_err());
        assert_eq!(open_to_others(base.path()), [""; 0].map(PathBuf::from));
    }
}
