//! Opens the file of an index, and replaces it when it is damaged.
//!
//! A damaged index is deleted and made again. Many processes can find the damage at once, so they take turns: each looks again, and deletes only
//! what is still damaged. A process that has the deleted file open goes on with it, and its answers stay true, because it looks at the memory itself.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::vectors::VectorCount;
use super::{Index, Size};
use crate::error::{Error, ErrorKind, Result};

/// The time that a process waits for other writers.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The state of an index, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// There is none yet. The next recall makes it.
    Missing,
    /// It can be used.
    Healthy {
        /// Its files and passages.
        size: Size,
        /// Its size on the disk.
        bytes: u64,
        /// The passages that have vectors.
        vectors: VectorCount,
    },
    /// The next recall makes it again.
    Damaged,
    /// A newer version of the program wrote it, and recall works without it.
    Newer,
    /// It cannot be read or is locked, and recall works without it.
    Unusable,
}

/// Opens an index and makes it if need be. Its directory must be there.
pub(crate) fn open(path: &Path) -> Result<Index> {
    match connect(path).and_then(Index::of) {
        Err(error) if error.kind() == ErrorKind::Damaged => {}
        opened => return opened,
    }
    replace(path)
}

/// Opens an index to search it as it stands, and makes none.
pub(crate) fn open_as_it_stands(path: &Path) -> Result<Index> {
    connect_to_look(path).and_then(Index::of)
}

/// Makes a damaged index again, unless another process has done so.
pub(crate) fn replace(path: &Path) -> Result<Index> {
    let turn = private(&beside(path, "lock"))?;
    turn.lock()?;
    let look = connect(path).and_then(Index::of).and_then(|mut index| index.verify().map(|()| index));
    match look {
        Err(error) if error.kind() == ErrorKind::Damaged => {}
        opened => return opened,
    }
    // The log first: a new file must never meet the log of the old one.
    for file in [beside(path, "wal"), beside(path, "shm"), path.to_owned()] {
        match fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    connect(path).and_then(Index::of)
}

/// Looks at an index without changing it.
pub fn health(path: &Path, thoroughness: Thoroughness) -> Health {
    let Ok(metadata) = fs::metadata(path) else { return Health::Missing };
    let looked = connect_to_look(path).and_then(Index::of).and_then(|mut index| {
        if thoroughness == Thoroughness::Everything {
            index.verify()?;
        }
        Ok((index.size()?, index.vector_count()?))
    });
    match looked {
        Ok((size, vectors)) => Health::Healthy { size, bytes: metadata.len(), vectors },
        Err(error) => match error.kind() {
            ErrorKind::Damaged => Health::Damaged,
            ErrorKind::Newer => Health::Newer,
            ErrorKind::Busy | ErrorKind::Unwritable | ErrorKind::Files | ErrorKind::Model => Health::Unusable,
        },
    }
}

/// The part of an index that is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoroughness {
    /// The header and the tables: the index opens.
    Outside,
    /// All of it.
    Everything,
}

fn connect(path: &Path) -> Result<Connection> {
    drop(private(path)?);
    refuse_cut(path)?;
    let db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(MAX_WAIT)?;
    // Do not wait for the disk: an index that a power cut destroys is made again.
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "normal")?;
    Ok(db)
}

fn connect_to_look(path: &Path) -> Result<Connection> {
    refuse_cut(path)?;
    let db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(Duration::from_secs(1))?;
    Ok(db)
}

/// Fails if the file is shorter than its own head says and the log does not have the missing pages. SQLite reads missing pages as zeros, and takes
/// some of them for tables without rows.
fn refuse_cut(path: &Path) -> Result<()> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut head = [0; 32];
    // A new file is empty.
    if length == 0 {
        return Ok(());
    }
    // SQLite would take the head of a cut file from the log, and the rest for empty.
    file.read_exact(&mut head).map_err(|_| Error::new(ErrorKind::Damaged))?;
    let page_bytes = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    let pages = u32::from_be_bytes([head[28], head[29], head[30], head[31]]);
    if page_bytes == 0 || length >= u64::from(pages) * page_bytes {
        return Ok(());
    }
    // A checkpoint under way writes the head first. Then the log still has the other pages.
    let logged = logged_pages(&beside(path, "wal"), page_bytes)?;
    let whole = u32::try_from(length / page_bytes).unwrap_or(u32::MAX);
    let is_cut = (whole + 1..=pages).any(|page| !logged.contains(&page));
    if is_cut { Err(Error::new(ErrorKind::Damaged)) } else { Ok(()) }
}

/// Returns the numbers of the pages in SQLite's log: a head of 32 bytes, then frames of a head of 24 bytes and a page each.
fn logged_pages(log: &Path, page_bytes: u64) -> Result<HashSet<u32>> {
    let mut pages = HashSet::new();
    let mut file = match fs::File::open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(pages),
        Err(error) => return Err(error.into()),
    };
    let length = file.metadata()?.len();
    let mut at = 32;
    while at + 24 + page_bytes <= length {
        file.seek(SeekFrom::Start(at))?;
        let mut page = [0; 4];
        file.read_exact(&mut page)?;
        let _ = pages.insert(u32::from_be_bytes(page));
        at += 24 + page_bytes;
    }
    Ok(pages)
}

/// Opens a file, and makes it if it is not there, readable by its user only. SQLite gives the files beside it the same mode.
fn private(path: &Path) -> Result<fs::File> {
    let mut options = fs::File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok(options.open(path)?)
}

/// Returns the name of a file beside the index: SQLite's log and its shared memory, and our lock.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-{what}"));
    PathBuf::from(name)
}
