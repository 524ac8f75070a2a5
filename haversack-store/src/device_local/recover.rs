//! Cleaning up after a process that died between two steps.

use std::io;
use std::time::Duration;

use bytes::Bytes;

use super::core::{Core, FILE_MODE, WRITE_LOCK};
use super::fs::{Fs, NodeKind, Target};
use super::note::{self, UnderWay};
use super::temp::{Digest, TargetMark, Temp, Verdict};
use super::walk::{self, EntryHandle};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::{Locator, OWN_DIRECTORY};

/// A working name that was met where it should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leftover {
    /// The directory it is in.
    pub(super) parent: Locator,
    /// Its name.
    pub(super) temp: Temp,
}

impl<F: Fs> Core<F> {
    /// Finishes or undoes what a dead holder of the write lock was doing; the lock is held.
    pub(super) fn recover_noted(&self) -> Result<()> {
        let note = self.fs.note().map_err(|error| Error::from_io(Operation::Recover, "the note", error))?;
        if note.is_empty() {
            return Ok(());
        }
        for entry in note::decode(&note) {
            match entry {
                UnderWay::Temp { name, target } => {
                    if let Some(temp) = Temp::parse(&name) {
                        let parent = target.parent().unwrap_or_else(Locator::root);
                        self.recover_leftover(&Leftover { parent, temp }, Some(&target))?;
                        // It may have become the target, and only the disk not know it yet.
                        self.settle_names(&target)?;
                    }
                }
                UnderWay::Name { at } => self.settle_names(&at)?,
                UnderWay::Extend { target, inode, offset, bytes } => {
                    self.cut_torn_tail(&target, inode, offset, &bytes)?;
                }
            }
        }
        self.fs.set_note(&[]).map_err(|error| Error::from_io(Operation::Recover, "the note", error))
    }

    /// Makes the names in the directory that holds `at`, and in those above it, durable: the process that created or removed one
    /// died before it did so.
    fn settle_names(&self, at: &Locator) -> Result<()> {
        let mut at = at.clone();
        while let Some(parent) = at.parent() {
            match walk::find_dir(&self.fs, Operation::Recover, &parent) {
                Err(error) if no_longer_there(&error) => {}
                found => self
                    .fs
                    .sync_dir(&*found?)
                    .map_err(|error| Error::from_io(Operation::Recover, parent.as_str(), error))?,
            }
            at = parent;
        }
        Ok(())
    }

    /// Cleans up working names that a scan met, if no writer is alive that could own them.
    pub(super) fn recover_met(&self, met: &[Leftover]) -> Result<()> {
        let lock = self.fs.lock(WRITE_LOCK, Duration::ZERO);
        let Some(_lock) = lock.map_err(|error| Error::from_io(Operation::Lock, WRITE_LOCK, error))? else {
            return Ok(());
        };
        self.recover_noted()?;
        met.iter().try_for_each(|leftover| self.recover_leftover(leftover, None))
    }

    /// Judges one leftover by its content and acts on it; the write lock is held.
    pub(super) fn recover_leftover(&self, leftover: &Leftover, target: Option<&Locator>) -> Result<()> {
        let Leftover { parent, temp } = leftover;
        let name = temp.to_string();
        let dir = match walk::find_dir(&self.fs, Operation::Recover, parent) {
            Err(error) if no_longer_there(&error) => return Ok(()),
            found => found?,
        };
        let failed = |error| Error::from_io(Operation::Recover, format!("{parent}/{name}"), error);
        let Some(content) = self.content_of(&dir, &name).map_err(failed)? else {
            return Ok(());
        };
        let verdict = match &content {
            Content::File(bytes) => temp.judge(Digest::of(bytes)),
            // Something that is not a file was put in our target's place and displaced by the exchange.
            Content::Thing => Verdict::Keep,
        };
        let target = || match target {
            Some(target) => Ok(target.clone()),
            None => self.target_of(parent, &dir, temp),
        };
        match verdict {
            Verdict::Discard => self.fs.unlink(&dir, &name).map_err(failed)?,
            Verdict::PutBack => {
                let target = target().map_err(failed)?;
                match self.fs.rename(&dir, &name, &dir, target.name(), Target::Free) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        self.keep(&dir, &name, &target, &content).map_err(failed)?;
                    }
                    result => result.map_err(failed)?,
                }
            }
            Verdict::Keep => {
                let target = target().map_err(failed)?;
                self.keep(&dir, &name, &target, &content).map_err(failed)?;
            }
        }
        self.fs.sync_dir(&dir).map_err(failed)
    }

    /// Moves what is another program's aside, to `.haversack/kept/<hash>/<its own name>`; returns where.
    pub(super) fn keep(
        &self,
        dir: &F::Dir,
        name: &str,
        target: &Locator,
        content: &Content,
    ) -> io::Result<Locator> {
        let digest = match content {
            Content::File(bytes) => Digest::of(bytes),
            Content::Thing => Digest::of(name.as_bytes()),
        };
        if let Content::File(_) = content {
            let file = self.fs.open(dir, name)?;
            self.fs.sync_files(&[&file]).into_iter().collect::<io::Result<()>>()?;
        }
        for number in 0..MAX_SHELVES {
            let kept = shelf(digest, number, target);
            let mut way = Vec::new();
            let place: EntryHandle<F> =
                walk::find_or_make(&self.fs, &self.twins, Operation::Recover, &kept, &mut way)
                    .map_err(io::Error::other)?;
            // Before its old name goes, the directories that lead to the new one must be there to stay.
            self.settle(Operation::Recover, &kept, &way, None).map_err(io::Error::other)?;
            match self.content_of(&place.dir, &place.name)? {
                None => self.move_to_shelf(dir, name, &place, content)?,
                Some(Content::File(there)) if matches!(content, Content::File(bytes) if *bytes == there) => {
                    // The same content from the same place is on the shelf already.
                    self.fs.unlink(dir, name)?;
                }
                // A copy that was cut short, or another thing.
                Some(_) => continue,
            }
            self.fs.sync_dir(&place.dir)?;
            return Ok(kept);
        }
        Err(io::Error::other("there is no place left on the shelf"))
    }

    fn move_to_shelf(
        &self,
        dir: &F::Dir,
        name: &str,
        to: &EntryHandle<F>,
        content: &Content,
    ) -> io::Result<()> {
        match (self.fs.rename(dir, name, &to.dir, &to.name, Target::Free), content) {
            (Err(error), Content::File(bytes)) if error.kind() == io::ErrorKind::CrossesDevices => {
                let copy = self.fs.create(&to.dir, &to.name, FILE_MODE)?;
                self.append_all(&copy, bytes)?;
                self.fs.sync_files(&[&copy]).into_iter().collect::<io::Result<()>>()?;
                self.fs.sync_dir(&to.dir)?;
                self.fs.unlink(dir, name)
            }
            (result, _) => result,
        }
    }

    /// Cuts off what a killed append left of its bytes; the write lock is held.
    fn cut_torn_tail(&self, target: &Locator, inode: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let place: EntryHandle<F> = match walk::find(&self.fs, Operation::Recover, target) {
            Err(error) if no_longer_there(&error) => return Ok(()),
            found => found?,
        };
        let failed = |error| place.failed(&self.fs, Operation::Recover, error);
        let file = match self.fs.open_append(&place.dir, &place.name).map_err(failed) {
            Err(error) if no_longer_there(&error) => return Ok(()),
            opened => opened?,
        };
        let stat = self.fs.stat_file(&file).map_err(failed)?;
        let is_torn = stat.size > offset && stat.size - offset < bytes.len() as u64;
        if stat.kind != NodeKind::File || stat.inode != inode || !is_torn {
            return Ok(());
        }
        if self.cut_if_ours(&file, offset, bytes).map_err(failed)? {
            self.fs.sync_files(&[&file]).into_iter().collect::<io::Result<()>>().map_err(failed)?;
        }
        Ok(())
    }

    /// Cuts the file back to `offset` if all that follows is a beginning of `bytes`; tells whether it did.
    pub(super) fn cut_if_ours(&self, file: &F::File, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        let size = self.fs.stat_file(file)?.size;
        let content = self.fs.read(file, size)?;
        let tail = usize::try_from(offset).ok().and_then(|offset| content.get(offset..));
        let ours = tail.is_some_and(|tail| !tail.is_empty() && bytes.starts_with(tail));
        if ours {
            self.fs.truncate(file, offset)?;
        }
        Ok(ours)
    }

    /// Returns the name that a working name was made for, as far as it can still be told.
    fn target_of(&self, parent: &Locator, dir: &F::Dir, temp: &Temp) -> io::Result<Locator> {
        let name = match temp {
            Temp::Gone { name, .. } => Some(name.clone()),
            Temp::Swap { target, .. } => {
                let names = self.fs.names(dir, usize::MAX)?.into_iter().filter_map(|name| name.text.ok());
                names.into_iter().find(|name| TargetMark::of(name) == *target)
            }
            Temp::Draft(_) => None,
        };
        let below = |name: &str| {
            let name = Locator::from_stored_key(name).ok()?;
            parent.join(&name).ok()
        };
        name.as_deref()
            .and_then(below)
            .or_else(|| below("unnamed"))
            .ok_or_else(|| io::Error::other("its directory's name is too long"))
    }

    /// Returns what is under a working name; `None` if nothing is.
    pub(super) fn content_of(&self, dir: &F::Dir, name: &str) -> io::Result<Option<Content>> {
        match self.fs.stat(dir, name) {
            Ok(stat) if stat.kind == NodeKind::File => {
                let file = self.fs.open(dir, name)?;
                Ok(Some(Content::File(self.fs.read(&file, stat.size)?.into())))
            }
            Ok(_) => Ok(Some(Content::Thing)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The most different things of one name that are kept.
const MAX_SHELVES: usize = 100;

/// Returns the place on the shelf for content from `target`.
fn shelf(digest: Digest, number: usize, target: &Locator) -> Locator {
    let digest = format!("{digest:?}");
    let shelf = match number {
        0 => format!("{OWN_DIRECTORY}/kept/{}", &digest[..16]),
        _ => format!("{OWN_DIRECTORY}/kept/{}-{number}", &digest[..16]),
    };
    // The whole locator if it fits, else its last segment, which always does.
    [format!("{shelf}/{target}"), format!("{shelf}/{}", target.name())]
        .iter()
        .find_map(|key| Locator::reserved(key).ok())
        .expect("a shelf and one segment are short enough")
}

/// Returns true if an error means that the tree has changed and nothing of ours can be at that place.
fn no_longer_there(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid)
}

/// The content under a working name.
#[derive(Debug)]
pub(super) enum Content {
    /// A file with these bytes.
    File(Bytes),
    /// A link, directory, pipe or the like.
    Thing,
}
