//! Names that a case-insensitive disk would confuse.
//!
//! Checking a new name means knowing all others in its directory. They are remembered as long as the
//! directory's times stand still; a directory with more names than [`MAX_WATCHED`] is not watched at all,
//! and its twins come to light in the next scan.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fs::{Fs, Stat};
use crate::error::{Error, Operation, Result};
use crate::locator::{Locator, fold, is_own_name};
use crate::refuse::twin_refused;

/// The largest directory whose new names are checked when they are created.
const MAX_WATCHED: usize = 1000;

/// The most directories remembered at a time.
const MAX_DIRECTORIES: usize = 64;

/// What is remembered of the names in directories.
#[derive(Debug, Default)]
pub(super) struct Twins {
    directories: Mutex<HashMap<Locator, Remembered>>,
}

#[derive(Debug)]
enum Remembered {
    /// All names, by what a case-insensitive disk makes of them, as of the directory's times.
    Names { stamp: Stamp, by_fold: HashMap<String, String> },
    /// Too many to watch.
    Crowded,
}

/// When a directory changed last.
type Stamp = (i64, i64);

fn stamp(stat: &Stat) -> Stamp {
    (stat.modified_ns, stat.changed_ns)
}

impl Twins {
    fn directories(&self) -> MutexGuard<'_, HashMap<Locator, Remembered>> {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses `name` as a new name in `dir` if one there differs only by case.
    ///
    /// `moving` is a name that is about to go away and therefore does not count.
    pub(super) fn check<F: Fs>(
        &self,
        fs: &F,
        operation: Operation,
        locator: &Locator,
        dir: &F::Dir,
        name: &str,
        moving: Option<&str>,
    ) -> Result<()> {
        let failed = |error| Error::from_io(operation, locator.as_str(), error);
        let parent = locator.parent().unwrap_or_else(Locator::root);
        let now = stamp(&fs.stat_dir(dir).map_err(failed)?);
        let mut directories = self.directories();
        let fresh = match directories.get(&parent) {
            Some(Remembered::Crowded) => return Ok(()),
            Some(Remembered::Names { stamp, .. }) => *stamp == now,
            None => false,
        };
        if !fresh {
            let names = fs.names(dir, MAX_WATCHED + 1).map_err(failed)?;
            let remembered = if names.len() > MAX_WATCHED {
                Remembered::Crowded
            } else {
                let names = names.into_iter().filter_map(|name| name.text.ok());
                let by_fold = names.filter(|name| !is_own_name(name)).map(|name| (fold(&name), name));
                Remembered::Names { stamp: now, by_fold: by_fold.collect() }
            };
            if directories.len() >= MAX_DIRECTORIES {
                directories.clear();
            }
            directories.insert(parent.clone(), remembered);
        }
        let Some(Remembered::Names { by_fold, .. }) = directories.get(&parent) else {
            return Ok(());
        };
        match by_fold.get(&fold(name)) {
            // Still there? What is remembered may be a moment old, and a refusal must be true.
            Some(twin) if twin != name && Some(twin.as_str()) != moving && fs.stat(dir, twin).is_ok() => {
                let twin = parent.child(twin).unwrap_or_else(|_| parent.clone());
                Err(twin_refused(operation, locator, &twin))
            }
            _ => Ok(()),
        }
    }

    /// Remembers that `name` was created after [`Twins::check`] allowed it, under the same lock.
    pub(super) fn created<F: Fs>(&self, fs: &F, parent: &Locator, dir: &F::Dir, name: &str) {
        let mut directories = self.directories();
        if let Some(Remembered::Names { stamp: known, by_fold }) = directories.get_mut(parent) {
            match fs.stat_dir(dir) {
                Ok(stat) if by_fold.len() < MAX_WATCHED => {
                    by_fold.insert(fold(name), name.to_owned());
                    *known = stamp(&stat);
                }
                _ => {
                    directories.remove(parent);
                }
            }
        }
    }
}
