//! From a locator to an opened directory and a name in it, one segment at a time, never through a link.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

use super::fs::{Fs, NodeKind, Stat};
use super::twins::{New, Twins};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;
use crate::refuse::{nothing_there, root_refused};

/// The place of an object, existing or not: an opened directory and the name as the disk spells it.
pub(super) struct EntryHandle<F: Fs> {
    pub(super) dir: Arc<F::Dir>,
    pub(super) name: String,
    pub(super) locator: Locator,
}

impl<F: Fs> EntryHandle<F> {
    /// Returns the error for a failed call on this place.
    pub(super) fn failed(&self, fs: &F, operation: Operation, error: io::Error) -> Error {
        explain(fs, operation, &self.locator, &self.dir, &self.name, error)
    }
}

/// The directories on the way to a place.
pub(super) type Way<F> = Vec<Level<F>>;

/// A directory on the way to a place, and the one it is in.
pub(super) struct Level<F: Fs> {
    pub(super) parent: Arc<F::Dir>,
    pub(super) dir: Arc<F::Dir>,
    /// Its properties a moment ago, if they were read.
    pub(super) stat: Option<Stat>,
}

impl<F: Fs> Clone for Level<F> {
    fn clone(&self) -> Level<F> {
        Level { parent: self.parent.clone(), dir: self.dir.clone(), stat: self.stat }
    }
}

/// Directories that were opened for the places of one batch, each once.
///
/// A directory that gets another name must be forgotten.
pub(super) struct Opened<F: Fs> {
    dirs: HashMap<Locator, Arc<F::Dir>>,
}

impl<F: Fs> Default for Opened<F> {
    fn default() -> Opened<F> {
        Opened { dirs: HashMap::new() }
    }
}

impl<F: Fs> Opened<F> {
    /// Returns the place of `locator` if its directory was opened before.
    pub(super) fn find(
        &self,
        fs: &F,
        operation: Operation,
        locator: &Locator,
    ) -> Option<Result<EntryHandle<F>>> {
        let dir = self.dirs.get(locator.parent_key())?;
        let place = |name| EntryHandle { dir: dir.clone(), name, locator: locator.clone() };
        let explain = |error| explain(fs, operation, locator, dir, locator.name(), error);
        Some(spelling(fs, dir, locator.name()).map(place).map_err(explain))
    }

    /// Remembers the directory of a place.
    pub(super) fn note(&mut self, place: &EntryHandle<F>) {
        if !self.dirs.contains_key(place.locator.parent_key()) {
            let parent = place.locator.parent().unwrap_or_else(Locator::root);
            self.dirs.insert(parent, place.dir.clone());
        }
    }

    /// Forgets all of them.
    pub(super) fn forget(&mut self) {
        self.dirs.clear();
    }
}

/// Returns the place of `locator`; every directory above it must be there.
pub(super) fn find<F: Fs>(fs: &F, operation: Operation, locator: &Locator) -> Result<EntryHandle<F>> {
    find_with_way(fs, operation, locator, &mut Vec::new())
}

/// Returns the place of `locator`, and in `way` the directories that lead to it.
pub(super) fn find_with_way<F: Fs>(
    fs: &F,
    operation: Operation,
    locator: &Locator,
    way: &mut Way<F>,
) -> Result<EntryHandle<F>> {
    way.clear();
    if locator.is_root() {
        return Err(root_refused(operation));
    }
    let mut dir = fs.root();
    let mut segments = locator.segments().peekable();
    while let Some(segment) = segments.next() {
        let name = spelling(fs, &dir, segment)
            .map_err(|error| explain(fs, operation, locator, &dir, segment, error))?;
        if segments.peek().is_none() {
            return Ok(EntryHandle { dir, name, locator: locator.clone() });
        }
        let next = match fs.open_dir(&dir, &name) {
            Ok(next) => next,
            // Nothing can be below a file; a link or a pipe in the way is worth saying.
            Err(error)
                if error.kind() == io::ErrorKind::NotADirectory
                    && fs.stat(&dir, &name).is_ok_and(|stat| stat.kind == NodeKind::File) =>
            {
                return Err(nothing_there(operation, locator));
            }
            Err(error) => return Err(explain(fs, operation, locator, &dir, &name, error)),
        };
        way.push(Level { parent: dir, dir: next.clone(), stat: None });
        dir = next;
    }
    unreachable!("a locator that is not the root has a last segment")
}

/// Returns the directory at `locator`, which may be the root.
pub(super) fn find_dir<F: Fs>(fs: &F, operation: Operation, locator: &Locator) -> Result<Arc<F::Dir>> {
    if locator.is_root() {
        return Ok(fs.root());
    }
    let place = find(fs, operation, locator)?;
    fs.open_dir(&place.dir, &place.name).map_err(|error| place.failed(fs, operation, error))
}

/// Returns the place of `locator`, making the directories above it, and in `way` those directories.
pub(super) fn find_or_make<F: Fs>(
    fs: &F,
    twins: &Twins,
    operation: Operation,
    locator: &Locator,
    way: &mut Way<F>,
) -> Result<EntryHandle<F>> {
    match find_with_way(fs, operation, locator, way) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return found,
    }
    let parent = locator.parent().unwrap_or_else(Locator::root);
    make_dirs(fs, twins, operation, &parent, &mut Vec::new())?;
    find_with_way(fs, operation, locator, way)
}

/// Makes the directory at `locator` and those above it, and returns all of them in `way`.
pub(super) fn make_dirs<F: Fs>(
    fs: &F,
    twins: &Twins,
    operation: Operation,
    locator: &Locator,
    way: &mut Way<F>,
) -> Result<()> {
    let mut dir = fs.root();
    let mut at = Locator::root();
    for segment in locator.segments() {
        at = at.join(&single(segment)).map_err(|reason| Error::invalid(operation, locator, reason))?;
        let failed = |dir: &F::Dir, error| explain(fs, operation, locator, dir, segment, error);
        let name = spelling(fs, &dir, segment).map_err(|error| failed(&dir, error))?;
        let next = match fs.open_dir(&dir, &name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !at.is_reserved() {
                    at.check_portable().map_err(|reason| Error::invalid(operation, locator, reason))?;
                    let now = fs.stat_dir(&dir).map_err(|error| failed(&dir, error))?;
                    let new: New<'_, F> = New { locator: &at, dir: &dir, now: &now, name: &name };
                    twins.check(fs, operation, &new, None)?;
                }
                match fs.make_dir(&dir, &name) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(failed(&dir, error));
                    }
                    _ => twins.created(&at, fs.stat_dir(&dir).ok().as_ref(), &name),
                }
                fs.open_dir(&dir, &name).map_err(|error| failed(&dir, error))?
            }
            opened => opened.map_err(|error| failed(&dir, error))?,
        };
        way.push(Level { parent: dir, dir: next.clone(), stat: None });
        dir = next;
    }
    Ok(())
}

/// Returns one segment of a locator as a locator.
pub(super) fn single(segment: &str) -> Locator {
    Locator::from_stored_key(segment).expect("a segment of a locator is a locator")
}

/// Returns the disk's spelling of `segment`: as it is, or decomposed if it was created that way.
fn spelling<F: Fs>(fs: &F, dir: &F::Dir, segment: &str) -> io::Result<String> {
    if segment.is_ascii() {
        return Ok(segment.to_owned());
    }
    match fs.stat(dir, segment) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(_) => return Ok(segment.to_owned()),
    }
    let names = fs.names(dir, usize::MAX)?.into_iter().filter_map(|name| name.text.ok());
    let spelled = names.into_iter().find(|name| name.nfc().eq(segment.chars()));
    Ok(spelled.unwrap_or_else(|| segment.to_owned()))
}

/// Returns the error for a failed call, saying what is in the way if that is what it is.
pub(super) fn explain<F: Fs>(
    fs: &F,
    operation: Operation,
    locator: &Locator,
    dir: &F::Dir,
    name: &str,
    error: io::Error,
) -> Error {
    let plain = |error| Error::from_io(operation, locator.as_str(), error);
    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StorageFull) {
        return plain(error);
    }
    let message = match fs.stat(dir, name).map(|stat| stat.kind) {
        Ok(NodeKind::Link) => "a symbolic link is in the way, and links are not followed",
        Ok(NodeKind::Other) => "a pipe, socket or device is in the way",
        Ok(NodeKind::File | NodeKind::Directory) | Err(_) => return plain(error),
    };
    Error::new(ErrorKind::Invalid, operation, locator, message).with_source(error)
}

/// Refuses what is not a regular file.
pub(super) fn expect_file(operation: Operation, locator: &Locator, kind: NodeKind) -> Result<()> {
    let message = match kind {
        NodeKind::File => return Ok(()),
        NodeKind::Directory => "it is a directory, not a file",
        NodeKind::Link => "it is a symbolic link, and links are not followed",
        NodeKind::Other => "it is a pipe, socket or device, not a file",
    };
    Err(Error::new(ErrorKind::Invalid, operation, locator, message))
}
