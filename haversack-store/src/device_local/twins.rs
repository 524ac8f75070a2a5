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

/// The cached names of directories.
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

/// A name that is about to be created.
pub(super) struct New<'a, F: Fs> {
    pub(super) locator: &'a Locator,
    pub(super) dir: &'a F::Dir,
    /// How the directory is.
    pub(super) now: &'a Stat,
    /// The name as the disk spells it.
    pub(super) name: &'a str,
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

    /// Refuses a new name if one in its directory differs only by case.
    ///
    /// `moving` is a name that is about to go away and therefore does not count.
    pub(super) fn check<F: Fs>(
        &self,
        fs: &F,
        operation: Operation,
        new: &New<'_, F>,
        moving: Option<&str>,
    ) -> Result<()> {
        let New { locator, dir, now, name } = *new;
        let failed = |error| Error::from_io(operation, locator.as_str(), error);
        let now = stamp(now);
        let mut directories = self.directories();
        let fresh = match directories.get(locator.parent_key()) {
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
                let by_fold =
                    names.filter(|name| !is_own_name(name)).map(|name| (fold(&name).into_owned(), name));
                Remembered::Names { stamp: now, by_fold: by_fold.collect() }
            };
            if directories.len() >= MAX_DIRECTORIES {
                directories.clear();
            }
            directories.insert(locator.parent().unwrap_or_else(Locator::root), remembered);
        }
        let Some(Remembered::Names { by_fold, .. }) = directories.get(locator.parent_key()) else {
            return Ok(());
        };
        match by_fold.get(fold(name).as_ref()) {
            // Still there? What is remembered may be a moment old, and a refusal must be true.
            Some(twin) if twin != name && Some(twin.as_str()) != moving && fs.stat(dir, twin).is_ok() => {
                let parent = locator.parent().unwrap_or_else(Locator::root);
                let twin = parent.child(twin).unwrap_or_else(|_| parent.clone());
                Err(twin_refused(operation, locator, &twin))
            }
            _ => Ok(()),
        }
    }

    /// Remembers that `name` was created after [`Twins::check`] allowed it, under the same lock.
    ///
    /// `now` is how its directory is since.
    pub(super) fn created(&self, locator: &Locator, now: Option<&Stat>, name: &str) {
        let mut directories = self.directories();
        if let Some(Remembered::Names { stamp: known, by_fold }) = directories.get_mut(locator.parent_key()) {
            match now {
                Some(now) if by_fold.len() < MAX_WATCHED => {
                    by_fold.insert(fold(name).into_owned(), name.to_owned());
                    *known = stamp(now);
                }
                _ => {
                    directories.remove(locator.parent_key());
                }
            }
        }
    }

    /// Returns true if all names beside `locator` are remembered, `now` being how their directory is.
    pub(super) fn knows(&self, locator: &Locator, now: &Stat) -> bool {
        let directories = self.directories();
        let remembered = directories.get(locator.parent_key());
        matches!(remembered, Some(Remembered::Names { stamp: known, .. }) if *known == stamp(now))
    }

    /// Remembers that the directory changed to `now` without a new name, since [`Twins::knows`] was told
    /// how it was, under the same lock.
    pub(super) fn replaced(&self, locator: &Locator, now: &Stat) {
        let mut directories = self.directories();
        if let Some(Remembered::Names { stamp: known, .. }) = directories.get_mut(locator.parent_key()) {
            *known = stamp(now);
        }
    }
}
