//! The seam: every call is counted, may be disturbed, and then does its work on the image.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use haversack_store::device_local::fs::{Fs, Name, Stat, Target};

use super::{Exchange, SimDisk};
use crate::image::{InodeId, ROOT};
use crate::schedule::{Stop, Verb};

/// An opened directory of a [`SimDisk`].
#[derive(Debug)]
pub struct SimDir(InodeId);

/// An opened file of a [`SimDisk`].
#[derive(Debug)]
pub struct SimFile(InodeId);

/// A lock of a [`SimDisk`]; a restart releases it.
#[derive(Debug)]
pub struct SimLock {
    disk: SimDisk,
    name: String,
    number: u64,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locks.get(&self.name) == Some(&self.number) {
            state.locks.remove(&self.name);
        }
    }
}

impl Fs for SimDisk {
    type Dir = SimDir;
    type File = SimFile;
    type Lock = SimLock;

    fn root(&self) -> Arc<SimDir> {
        Arc::new(SimDir(ROOT))
    }

    fn open_dir(&self, parent: &SimDir, name: &str) -> io::Result<Arc<SimDir>> {
        let mut state = self.state();
        state.enter(Verb::OpenDir, name)?;
        let name = &*state.spelled(parent.0, name);
        state.image.find_dir(parent.0, name).map(|inode| Arc::new(SimDir(inode)))
    }

    fn make_dir(&self, parent: &SimDir, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.enter(Verb::MakeDir, name)?;
        let name = &*state.spelled(parent.0, name);
        state.image.expect_free(parent.0, name)?;
        let made = state.image.new_directory();
        state.image.change(vec![(parent.0, name.to_owned(), Some(made))]);
        Ok(())
    }

    fn open(&self, parent: &SimDir, name: &str) -> io::Result<SimFile> {
        let mut state = self.state();
        state.enter(Verb::Open, name)?;
        let name = &*state.spelled(parent.0, name);
        state.image.find_readable(parent.0, name).map(SimFile)
    }

    fn open_append(&self, parent: &SimDir, name: &str) -> io::Result<SimFile> {
        let mut state = self.state();
        state.enter(Verb::OpenAppend, name)?;
        let name = &*state.spelled(parent.0, name);
        state.image.find_writable(parent.0, name).map(SimFile)
    }

    fn create(&self, parent: &SimDir, name: &str, mode: u32) -> io::Result<SimFile> {
        let mut state = self.state();
        state.enter(Verb::Create, name)?;
        let name = &*state.spelled(parent.0, name);
        state.image.expect_free(parent.0, name)?;
        let file = state.image.new_file(mode);
        state.image.change(vec![(parent.0, name.to_owned(), Some(file))]);
        Ok(SimFile(file))
    }

    fn stat(&self, parent: &SimDir, name: &str) -> io::Result<Stat> {
        let mut state = self.state();
        state.enter(Verb::Stat, name)?;
        let name = &*state.spelled(parent.0, name);
        let inode = state.image.find(parent.0, name)?;
        state.image.stat(inode)
    }

    fn stat_file(&self, file: &SimFile) -> io::Result<Stat> {
        let mut state = self.state();
        state.enter(Verb::StatFile, "")?;
        state.image.stat(file.0)
    }

    fn stat_dir(&self, dir: &SimDir) -> io::Result<Stat> {
        let mut state = self.state();
        state.enter(Verb::StatDir, "")?;
        state.image.stat(dir.0)
    }

    fn read(&self, file: &SimFile, _size_hint: u64) -> io::Result<Vec<u8>> {
        let mut state = self.state();
        state.enter(Verb::Read, "")?;
        state.image.read(file.0)
    }

    fn read_at(&self, file: &SimFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state();
        state.enter(Verb::Read, "")?;
        let content = state.image.read(file.0)?;
        let rest = usize::try_from(offset).ok().and_then(|offset| content.get(offset..)).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn append(&self, file: &SimFile, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        let entered = state.enter(Verb::Append, format!("{} bytes", bytes.len()));
        let most = bytes.len().min(state.most_bytes);
        let written = match &entered {
            Ok(()) => most,
            // Dying in the middle of it: some of the bytes are there.
            Err(Stop::DiesNow) => state.random.between(0, most),
            Err(Stop::Dead | Stop::Fails(_)) => 0,
        };
        if written > 0 {
            state.image.append(file.0, &bytes[..written])?;
        }
        entered?;
        Ok(written)
    }

    fn truncate(&self, file: &SimFile, size: u64) -> io::Result<()> {
        let mut state = self.state();
        state.enter(Verb::Truncate, size.to_string())?;
        state.image.truncate(file.0, size)
    }

    fn sync_files(&self, files: &[&SimFile]) -> Vec<io::Result<()>> {
        let mut state = self.state();
        match state.enter(Verb::SyncFiles, format!("{} files", files.len())) {
            Ok(()) => files.iter().map(|file| state.image.sync_file(file.0)).collect(),
            Err(Stop::DiesNow) => {
                for file in files {
                    if state.random.coin() {
                        // The caller is told of the crash, whatever this says.
                        drop(state.image.sync_file(file.0));
                    }
                }
                files.iter().map(|_| Err(Stop::Dead.into())).collect()
            }
            Err(Stop::Dead) => files.iter().map(|_| Err(Stop::Dead.into())).collect(),
            Err(Stop::Fails(kind)) => files.iter().map(|_| Err(Stop::Fails(kind).into())).collect(),
        }
    }

    fn sync_dir(&self, dir: &SimDir) -> io::Result<()> {
        let mut state = self.state();
        state.enter(Verb::SyncDir, "")?;
        state.image.sync_dir(dir.0)
    }

    fn rename(
        &self,
        from_dir: &SimDir,
        from: &str,
        to_dir: &SimDir,
        to: &str,
        target: Target,
    ) -> io::Result<()> {
        let verb = match target {
            Target::Replaced => Verb::RenameReplaced,
            Target::Free => Verb::RenameFree,
            Target::Exchanged => Verb::Exchange,
        };
        let mut state = self.state();
        state.enter(verb, format!("{from} -> {to}"))?;
        if target == Target::Exchanged && state.exchange != Exchange::Works {
            state.exchange = Exchange::Unknown;
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (from, to) = (state.spelled(from_dir.0, from), state.spelled(to_dir.0, to));
        state.image.rename((from_dir.0, &from), (to_dir.0, &to), target)
    }

    fn unlink(&self, parent: &SimDir, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.enter(Verb::Unlink, name)?;
        let name = &*state.spelled(parent.0, name);
        state.image.unlink(parent.0, name)
    }

    fn remove_dir(&self, parent: &SimDir, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.enter(Verb::RemoveDir, name)?;
        let name = &*state.spelled(parent.0, name);
        state.image.remove_dir(parent.0, name)
    }

    fn names(&self, dir: &SimDir, limit: usize) -> io::Result<Vec<Name>> {
        let mut state = self.state();
        state.enter(Verb::Names, "")?;
        state.image.names(dir.0, limit)
    }

    /// No other code runs while this waits, so a taken lock stays taken.
    fn lock(&self, name: &str, _wait: Duration) -> io::Result<Option<SimLock>> {
        let mut state = self.state();
        state.enter(Verb::Lock, name)?;
        if state.locks.contains_key(name) {
            return Ok(None);
        }
        state.last_lock += 1;
        let number = state.last_lock;
        state.locks.insert(name.to_owned(), number);
        Ok(Some(SimLock { disk: self.clone(), name: name.to_owned(), number }))
    }

    fn note(&self) -> io::Result<Vec<u8>> {
        let mut state = self.state();
        state.enter(Verb::Note, "")?;
        Ok(state.note.clone())
    }

    fn set_note(&self, note: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let entered = state.enter(Verb::SetNote, format!("{} bytes", note.len()));
        let becomes = match &entered {
            Ok(()) => Some(note),
            // Dying in the middle of it: the old one, the new one, or one that was cut short and is void.
            Err(Stop::DiesNow) => [None, Some(note), Some(&[][..])][state.random.between(0, 2)],
            Err(Stop::Dead | Stop::Fails(_)) => None,
        };
        if let Some(note) = becomes {
            state.set_note(note.to_vec());
        }
        Ok(entered?)
    }

    fn can_exchange(&self) -> bool {
        self.state().exchange != Exchange::Unknown
    }
}
