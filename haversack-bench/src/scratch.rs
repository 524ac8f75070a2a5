//! A place for what a benchmark writes, gone when it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;

/// Linux' filesystem in memory.
pub const MEMORY: &str = "/dev/shm";

/// A directory that is removed when this is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new directory below `parent`.
    pub fn create(parent: &Path) -> Outcome<Scratch> {
        let path = parent.join(format!("bench-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("no directory for the benchmark: {error}"))?;
        Ok(Scratch(path.canonicalize()?))
    }

    /// Asks for each directory made in here to be put far from all others.
    ///
    /// On an ext4 without a journal a new file is the slower the more were deleted near it a moment ago, by
    /// the run before for example. Where it means nothing it does nothing.
    pub fn spread(self) -> Scratch {
        drop(Command::new("chattr").arg("+T").arg(self.path()).stderr(Stdio::null()).status());
        self
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The rest is in a place for temporary files.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Writes files of 1 KB, a hundredth of them in each directory.
pub fn fill(directory: &Path, files: usize) -> Outcome<()> {
    for number in 0..files {
        let place = directory.join(format!("notes/{:02}", number % 100));
        fs::create_dir_all(&place)?;
        let line = format!("note {number}: staging listens on port {}\n", number % 65_536);
        fs::write(place.join(format!("{number:06}.md")), &line.repeat(1024 / line.len() + 1)[..1024])?;
    }
    Ok(())
}
