//! A disk that is broken in one way, so that tests can show that they would notice.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use haversack_store::device_local::fs::{Fs, Name, NodeKind, Stat, Target};

/// The planted flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Content is never made durable.
    SkipFileSync,
    /// Names are never made durable.
    SkipDirSync,
    /// An exchange destroys the displaced object.
    ExchangeAsReplace,
    /// A rename to a free name replaces what is there.
    FreeAsReplace,
    /// The note is always empty; nothing may depend on it but the tail of an append.
    ForgetNote,
    /// No file can be moved to another directory, as if each were a disk of its own.
    CrossesDevices,
    /// No change of a file shows in its times, as if all happened within one tick of the clock; nothing may depend on them.
    StoppedClock,
}

/// A disk with one flaw.
#[derive(Debug)]
pub struct Mutant<F> {
    inner: F,
    flaw: Flaw,
}

impl<F: Fs> Mutant<F> {
    /// Returns `inner` with a flaw.
    pub fn new(inner: F, flaw: Flaw) -> Mutant<F> {
        Mutant { inner, flaw }
    }

    fn shown(&self, stat: Stat) -> Stat {
        match self.flaw {
            Flaw::StoppedClock if stat.kind == NodeKind::File => {
                Stat { modified_ns: 0, changed_ns: 0, ..stat }
            }
            _ => stat,
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl<F: Fs> Fs for Mutant<F> {
    type Dir = F::Dir;
    type File = F::File;
    type Lock = F::Lock;

    fn root(&self) -> Arc<F::Dir> {
        self.inner.root()
    }

    fn open_dir(&self, parent: &F::Dir, name: &str) -> io::Result<Arc<F::Dir>> {
        self.inner.open_dir(parent, name)
    }

    fn make_dir(&self, parent: &F::Dir, name: &str) -> io::Result<()> {
        self.inner.make_dir(parent, name)
    }

    fn open(&self, parent: &F::Dir, name: &str) -> io::Result<F::File> {
        self.inner.open(parent, name)
    }

    fn open_append(&self, parent: &F::Dir, name: &str) -> io::Result<F::File> {
        self.inner.open_append(parent, name)
    }

    fn create(&self, parent: &F::Dir, name: &str, mode: u32) -> io::Result<F::File> {
        self.inner.create(parent, name, mode)
    }

    fn stat(&self, parent: &F::Dir, name: &str) -> io::Result<Stat> {
        self.inner.stat(parent, name).map(|stat| self.shown(stat))
    }

    fn stats(&self, names: &[(&F::Dir, &str)]) -> Vec<io::Result<Stat>> {
        self.inner.stats(names).into_iter().map(|stat| stat.map(|stat| self.shown(stat))).collect()
    }

    fn stat_file(&self, file: &F::File) -> io::Result<Stat> {
        self.inner.stat_file(file).map(|stat| self.shown(stat))
    }

    fn stat_dir(&self, dir: &F::Dir) -> io::Result<Stat> {
        self.inner.stat_dir(dir)
    }

    fn read(&self, file: &F::File, size_hint: u64) -> io::Result<Vec<u8>> {
        self.inner.read(file, size_hint)
    }

    fn read_at(&self, file: &F::File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(file, buffer, offset)
    }

    fn append(&self, file: &F::File, bytes: &[u8]) -> io::Result<usize> {
        self.inner.append(file, bytes)
    }

    fn truncate(&self, file: &F::File, size: u64) -> io::Result<()> {
        self.inner.truncate(file, size)
    }

    fn sync_files(&self, files: &[&F::File]) -> Vec<io::Result<()>> {
        match self.flaw {
            Flaw::SkipFileSync => files.iter().map(|_| Ok(())).collect(),
            _ => self.inner.sync_files(files),
        }
    }

    fn sync_dir(&self, dir: &F::Dir) -> io::Result<()> {
        match self.flaw {
            Flaw::SkipDirSync => Ok(()),
            _ => self.inner.sync_dir(dir),
        }
    }

    fn sync_dirs(&self, dirs: &[&F::Dir]) -> io::Result<()> {
        dirs.iter().try_for_each(|dir| self.sync_dir(dir))
    }

    fn rename(
        &self,
        from_dir: &F::Dir,
        from: &str,
        to_dir: &F::Dir,
        to: &str,
        target: Target,
    ) -> io::Result<()> {
        let target = match (self.flaw, target) {
            (Flaw::ExchangeAsReplace, Target::Exchanged) => Target::Replaced,
            (Flaw::FreeAsReplace, Target::Free) => Target::Replaced,
            (_, target) => target,
        };
        if self.flaw == Flaw::CrossesDevices
            && self.inner.stat_dir(from_dir)?.inode != self.inner.stat_dir(to_dir)?.inode
        {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        self.inner.rename(from_dir, from, to_dir, to, target)
    }

    fn unlink(&self, parent: &F::Dir, name: &str) -> io::Result<()> {
        self.inner.unlink(parent, name)
    }

    fn remove_dir(&self, parent: &F::Dir, name: &str) -> io::Result<()> {
        self.inner.remove_dir(parent, name)
    }

    fn names(&self, dir: &F::Dir, limit: usize) -> io::Result<Vec<Name>> {
        self.inner.names(dir, limit)
    }

    fn enter(&self, parent: &F::Dir, name: &str) -> io::Result<(Arc<F::Dir>, Vec<Name>)> {
        self.inner.enter(parent, name)
    }

    fn lock(&self, name: &str, wait: Duration) -> io::Result<Option<F::Lock>> {
        self.inner.lock(name, wait)
    }

    fn note(&self) -> io::Result<Vec<u8>> {
        match self.flaw {
            Flaw::ForgetNote => Ok(Vec::new()),
            _ => self.inner.note(),
        }
    }

    fn set_note(&self, note: &[u8]) -> io::Result<()> {
        self.inner.set_note(note)
    }

    fn can_exchange(&self) -> bool {
        self.inner.can_exchange()
    }

    fn grows_in_place(&self) -> bool {
        self.inner.grows_in_place()
    }
}
