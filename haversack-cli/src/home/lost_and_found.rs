//! Files of a replicated folder that its client could not upload and put aside: Google Drive's lost-and-found.
//!
//! A file that was clearly made from a file of this memory is copied into the folder as a conflict copy, and imported like any other. A
//! doubtful one is reported. We never change the files where the client put them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haversack::home;
use haversack::store::{
    Backend, Bytes, DirectoryKind, Error as StoreError, ErrorKind, Locator, Operation, block_on, put_aside,
    recognise,
};
use haversack::sync::Gate;
use haversack::vault::lost::{Named, is_made_from};

use super::gate::NothingPrivate;
use crate::error::CommandError;
use crate::remote::Remote;
use crate::settings::Settings;

/// The most files that are read.
const MAX_FILES: usize = 10_000;

/// How deep they may be.
const MAX_DEPTH: usize = 16;

/// The largest file that is looked at: it is held in memory.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Files that a client could not upload, that belong to this memory, and that no log has.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// Files that were clearly made from a file of this memory.
    pub(crate) edits: Vec<Edit>,
    /// Files that may be of this memory, by their names.
    pub(crate) doubtful: Vec<(PathBuf, Locator)>,
    /// Files that could not be read.
    pub(crate) unread: Vec<PathBuf>,
}

/// An edit that was not uploaded.
#[derive(Debug)]
pub(crate) struct Edit {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The file that was edited.
    pub(crate) of: Locator,
    bytes: Bytes,
}

/// The directories in which the client of a folder puts files that it could not upload.
pub(crate) struct LostAndFound<'a> {
    settings: &'a Settings,
    folder: Arc<dyn Backend>,
    directories: Vec<PathBuf>,
    /// The edits that a round imported: each with its path and the file it was made from.
    rescued: Mutex<Vec<(PathBuf, Locator)>>,
}

impl<'a> LostAndFound<'a> {
    /// Returns the directories of a remote's client; `None` if it has none.
    pub(crate) fn of(
        settings: &'a Settings,
        remote: &Remote,
        folder: Arc<dyn Backend>,
    ) -> Result<Option<LostAndFound<'a>>, CommandError> {
        let surroundings = &settings.surroundings;
        let directory = haversack::store::directory_of(&remote.url)?;
        let DirectoryKind::Synced { by, .. } = recognise(&directory, surroundings.user.as_deref()) else {
            return Ok(None);
        };
        let directories = put_aside(&by, surroundings.user.as_deref(), surroundings.local_data.as_deref());
        let found = LostAndFound { settings, folder, directories, rescued: Mutex::default() };
        Ok(Some(found).filter(|found| !found.directories.is_empty()))
    }

    /// Looks at the files that the client put aside. `named` are the names and contents that the logs know.
    pub(crate) fn look(&self, named: &Named) -> Result<Lost, CommandError> {
        let mut lost = Lost::default();
        let gate = NothingPrivate::of(self.settings)?;
        for root in &self.directories {
            for path in files_below(root, &mut lost.unread) {
                let below = path.strip_prefix(root).unwrap_or(&path);
                let names: Vec<&str> = below.iter().filter_map(|name| name.to_str()).collect();
                let candidates = named.candidates(&names);
                let Some(first) = candidates.first() else { continue };
                let bytes = match std::fs::metadata(&path).map(|about| about.len()) {
                    Ok(size) if size <= MAX_BYTES => std::fs::read(&path).map(Bytes::from),
                    Ok(_) => continue,
                    Err(error) => Err(error),
                };
                match bytes {
                    Err(_) => lost.unread.push(path),
                    Ok(bytes) if named.has(&bytes) => {}
                    Ok(bytes) if candidates.len() == 1 && is_edit(&*self.folder, &gate, first, &bytes)? => {
                        lost.edits.push(Edit { path, of: first.clone(), bytes });
                    }
                    Ok(_) => lost.doubtful.push((path, first.clone())),
                }
            }
        }
        Ok(lost)
    }

    /// Returns the edits that a round imported: each with its path and the file it was made from.
    pub(crate) fn rescued(self) -> Vec<(PathBuf, Locator)> {
        self.rescued.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl home::LostAndFound for LostAndFound<'_> {
    fn edits(&self, named: &Named) -> Result<Vec<(Locator, Bytes)>, StoreError> {
        let lost = self.look(named).map_err(|error| {
            let text = error.in_one_line();
            StoreError::at(ErrorKind::Unavailable, Operation::Read, "", text)
        })?;
        let mut rescued = self.rescued.lock().unwrap_or_else(PoisonError::into_inner);
        rescued.extend(lost.edits.iter().map(|edit| (edit.path.clone(), edit.of.clone())));
        Ok(lost.edits.into_iter().map(|edit| (edit.of, edit.bytes)).collect())
    }
}

/// Returns true if a content is an edit of a file that is in the folder, and may be there.
fn is_edit(
    folder: &dyn Backend,
    gate: &NothingPrivate,
    locator: &Locator,
    bytes: &Bytes,
) -> Result<bool, CommandError> {
    let ours = match block_on(folder.read(locator)) {
        Ok(ours) => ours.bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unavailable) => {
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    let (Ok(text), Ok(ours)) = (std::str::from_utf8(bytes), std::str::from_utf8(&ours)) else {
        return Ok(false);
    };
    Ok(is_made_from(text, ours) && gate.holds(locator, bytes).is_none())
}

/// Returns the files below a directory, without following links, and notes what cannot be read.
fn files_below(root: &Path, unread: &mut Vec<PathBuf>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            unread.push(directory);
            continue;
        };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => directories.push((entry.path(), depth + 1)),
                Ok(kind) if kind.is_file() && files.len() < MAX_FILES => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort_unstable();
    files
}
