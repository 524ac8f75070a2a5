//! Directories whose own name is known to be durable.
//!
//! A file is as durable as the names that lead to it. A directory of another program, or of one of our
//! processes that was killed, may not have its name on the disk yet: the first time this process changes
//! something in it, the directories above are synced too.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fs::{Fs, Stat};
use super::walk::{Level, Way};

/// The most directories that are remembered.
const MAX_TRUSTED: usize = 10_000;

/// The identity of a directory: device and inode.
type Identity = (u64, u64);

/// Directories whose own name is known to be durable.
#[derive(Debug, Default)]
pub(super) struct Trust {
    durable: Mutex<HashSet<Identity>>,
}

/// Directories that must be synced, and what is known once they are.
pub(super) struct Owed<F: Fs> {
    dirs: Vec<(Identity, Arc<F::Dir>)>,
    then_durable: Vec<Identity>,
}

impl<F: Fs> Default for Owed<F> {
    fn default() -> Owed<F> {
        Owed { dirs: Vec::new(), then_durable: Vec::new() }
    }
}

impl<F: Fs> Owed<F> {
    /// Adds a directory in which a name changed, and returns how it is now.
    pub(super) fn add(&mut self, fs: &F, dir: &Arc<F::Dir>) -> io::Result<Stat> {
        let stat = fs.stat_dir(dir)?;
        let identity = identity(&stat);
        if self.dirs.iter().all(|(other, _)| *other != identity) {
            self.dirs.push((identity, dir.clone()));
        }
        Ok(stat)
    }
}

fn identity(stat: &Stat) -> Identity {
    (stat.device, stat.inode)
}

impl Trust {
    fn durable(&self) -> MutexGuard<'_, HashSet<Identity>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to `owed` what must be synced for the directories on `way` to be durable.
    ///
    /// Returns how the last of them is; `None` if there are none.
    pub(super) fn question<F: Fs>(
        &self,
        fs: &F,
        way: &Way<F>,
        owed: &mut Owed<F>,
    ) -> io::Result<Option<Stat>> {
        let mut last = None;
        for Level { parent, dir, stat } in way {
            let stat = last.insert(stat.map_or_else(|| fs.stat_dir(dir), Ok)?);
            let identity = identity(stat);
            if !self.durable().contains(&identity) {
                owed.add(fs, parent)?;
                owed.then_durable.push(identity);
            }
        }
        Ok(last)
    }

    /// Syncs what is owed, innermost last as it was added.
    pub(super) fn settle<F: Fs>(&self, fs: &F, owed: Owed<F>) -> io::Result<()> {
        let dirs: Vec<&F::Dir> = owed.dirs.iter().map(|(_, dir)| &**dir).collect();
        fs.sync_dirs(&dirs)?;
        let mut durable = self.durable();
        if durable.len() + owed.then_durable.len() > MAX_TRUSTED {
            durable.clear();
        }
        durable.extend(owed.then_durable);
        Ok(())
    }
}
