//! The disk under a sync client's eyes: [`Disk`], with working names that clients leave alone, drafts that have no name at all, and
//! files that are not here yet.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cap_std::fs::{Dir, File};

use super::away::{is_away, is_hollow, stands_for, stub_of};
use crate::device_local::Disk;
use crate::device_local::fs::{Fs, Name, NodeKind, Stat, Target};
use crate::error::NotHere;
use crate::locator::{Locator, OWN_PREFIX, SHY_PREFIX, SHY_SUFFIX, is_own_name};

/// The beginning of a draft's working name.
const DRAFT: &str = ".haversack-draft-";

/// A directory that a sync client replicates.
#[derive(Debug)]
pub(super) struct Folder {
    disk: Disk,
    /// Drafts that have no name yet, by the directory and the name that they would have.
    drafts: Mutex<HashMap<(usize, String), File>>,
    /// True if the system can make files without a name here; the first attempt tells.
    can_be_unnamed: AtomicBool,
}

impl Folder {
    pub(super) fn on(disk: Disk) -> Folder {
        Folder { disk, drafts: Mutex::default(), can_be_unnamed: AtomicBool::new(unnamed::may_work()) }
    }

    fn drafts(&self) -> MutexGuard<'_, HashMap<(usize, String), File>> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with a name: as clients leave it alone, or, if nothing is there, as device-local would have spelled it.
    fn spelled<T>(&self, name: &str, mut work: impl FnMut(&str) -> io::Result<T>) -> io::Result<T> {
        match shy(name) {
            Cow::Borrowed(name) => work(name),
            Cow::Owned(shy) => match work(&shy) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => work(name),
                result => result,
            },
        }
    }

    /// Returns what is known about the stub in the place of `name`, if there is one.
    fn stub(&self, parent: &Dir, name: &str) -> Option<Stat> {
        if is_own_name(name) {
            return None;
        }
        self.disk.stat(parent, &stub_of(name)).ok().filter(|stat| stat.kind == NodeKind::File)
    }

    /// Returns the error for a call on `name` that failed: nothing there may be something that is not here.
    fn explained(&self, parent: &Dir, name: &str, error: io::Error) -> io::Error {
        match error.kind() {
            io::ErrorKind::NotFound if self.stub(parent, name).is_some() => NotHere.into(),
            _ => error,
        }
    }

    /// Refuses a file whose content has never been here.
    fn refuse_away(&self, parent: &Dir, name: &str) -> io::Result<()> {
        match is_away(parent, name) {
            Ok(true) => Err(NotHere.into()),
            Ok(false) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match self.stub(parent, name) {
                Some(_) => Err(NotHere.into()),
                None => Ok(()),
            },
            Err(error) => Err(error),
        }
    }

    fn opened(&self, parent: &Dir, name: &str, open: impl Fn(&str) -> io::Result<File>) -> io::Result<File> {
        // If opening may already fetch the content, look at the name first.
        if cfg!(target_vendor = "apple") {
            self.refuse_away(parent, name)?;
        }
        let file = self.spelled(name, open).map_err(|error| self.explained(parent, name, error))?;
        if is_hollow(&file)? { Err(NotHere.into()) } else { Ok(file) }
    }

    /// Gives a draft that has none its name, if `from` is one; tells whether that was all there is to do.
    fn name_draft(
        &self,
        from_dir: &Dir,
        from: &str,
        to_dir: &Dir,
        to: &str,
        target: Target,
    ) -> io::Result<bool> {
        let mut drafts = self.drafts();
        let key = key(from_dir, from);
        let Some(file) = drafts.get(&key) else { return Ok(false) };
        // If any of this fails the draft is still there to be tried again.
        if target == Target::Free {
            unnamed::link(file, to_dir, &shy(to))?;
        } else {
            match unnamed::link(file, from_dir, &shy(from)) {
                // A writer of drafts holds the lock, so the writer of that one is dead.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.disk.unlink(from_dir, &shy(from))?;
                    unnamed::link(file, from_dir, &shy(from))?;
                }
                linked => linked?,
            }
        }
        drafts.remove(&key);
        Ok(target == Target::Free)
    }

    /// Returns every file whose content is not on this machine.
    pub(super) fn online_only(&self) -> io::Result<Vec<Locator>> {
        let mut found = Vec::new();
        let mut directories = vec![(self.root(), Locator::root())];
        while let Some((dir, at)) = directories.pop() {
            for name in self.names(&dir, usize::MAX)? {
                let Some(text) = name.text.ok().filter(|text| !is_own_name(text)) else { continue };
                let key = if at.is_root() { text.clone() } else { format!("{at}/{text}") };
                // A name that is no locator is reported as odd by every scan.
                let Ok(locator) = Locator::from_stored_key(&key) else { continue };
                match name.kind {
                    NodeKind::Directory => match self.open_dir(&dir, &text) {
                        Ok(child) => directories.push((child, locator)),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                    },
                    NodeKind::File => match self.refuse_away(&dir, &text) {
                        Err(error) if error.get_ref().is_some_and(|inner| inner.is::<NotHere>()) => {
                            found.push(locator);
                        }
                        checked => checked?,
                    },
                    NodeKind::Link | NodeKind::Other => {}
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Returns how a name is spelled under a sync client's eyes.
fn shy(name: &str) -> Cow<'_, str> {
    match name.strip_prefix(OWN_PREFIX) {
        Some(rest) => format!("{SHY_PREFIX}{rest}{SHY_SUFFIX}").into(),
        None => name.into(),
    }
}

/// Returns what a name in the folder is to the rest of us.
fn bold(name: String) -> String {
    match name.strip_prefix(SHY_PREFIX).and_then(|rest| rest.strip_suffix(SHY_SUFFIX)) {
        Some(rest) => format!("{OWN_PREFIX}{rest}"),
        None => name,
    }
}

/// Returns what a draft without a name is known by while its directory is open.
fn key(dir: &Dir, name: &str) -> (usize, String) {
    (std::ptr::from_ref(dir).addr(), name.to_owned())
}

impl Fs for Folder {
    type Dir = Dir;
    type File = File;
    type Lock = <Disk as Fs>::Lock;

    fn root(&self) -> Arc<Dir> {
        self.disk.root()
    }

    fn open_dir(&self, parent: &Dir, name: &str) -> io::Result<Arc<Dir>> {
        self.disk.open_dir(parent, name)
    }

    fn make_dir(&self, parent: &Dir, name: &str) -> io::Result<()> {
        self.disk.make_dir(parent, name)
    }

    fn open(&self, parent: &Dir, name: &str) -> io::Result<File> {
        self.opened(parent, name, |name| self.disk.open(parent, name))
    }

    fn open_append(&self, parent: &Dir, name: &str) -> io::Result<File> {
        self.opened(parent, name, |name| self.disk.open_append(parent, name))
    }

    fn create(&self, parent: &Dir, name: &str, mode: u32) -> io::Result<File> {
        if name.starts_with(DRAFT) && self.can_be_unnamed.load(Ordering::Relaxed) {
            match unnamed::create(parent, mode) {
                Ok(file) => {
                    self.drafts().insert(key(parent, name), file.try_clone()?);
                    return Ok(file);
                }
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    self.can_be_unnamed.store(false, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        self.disk.create(parent, &shy(name), mode)
    }

    fn stat(&self, parent: &Dir, name: &str) -> io::Result<Stat> {
        match self.spelled(name, |name| self.disk.stat(parent, name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.stub(parent, name).ok_or(error),
            stat => stat,
        }
    }

    fn stat_file(&self, file: &File) -> io::Result<Stat> {
        self.disk.stat_file(file)
    }

    fn stat_dir(&self, dir: &Dir) -> io::Result<Stat> {
        self.disk.stat_dir(dir)
    }

    fn read(&self, file: &File, size_hint: u64) -> io::Result<Vec<u8>> {
        self.disk.read(file, size_hint)
    }

    fn read_at(&self, file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.read_at(file, buffer, offset)
    }

    fn append(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        self.disk.append(file, bytes)
    }

    fn truncate(&self, file: &File, size: u64) -> io::Result<()> {
        self.disk.truncate(file, size)
    }

    fn sync_files(&self, files: &[&File]) -> Vec<io::Result<()>> {
        self.disk.sync_files(files)
    }

    fn sync_dir(&self, dir: &Dir) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn sync_dirs(&self, dirs: &[&Dir]) -> io::Result<()> {
        self.disk.sync_dirs(dirs)
    }

    fn rename(&self, from_dir: &Dir, from: &str, to_dir: &Dir, to: &str, target: Target) -> io::Result<()> {
        match target {
            Target::Free if self.stub(to_dir, to).is_some() => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            Target::Replaced => self.refuse_away(to_dir, to)?,
            // An exchange has opened the existing file.
            Target::Free | Target::Exchanged => {}
        }
        if self.name_draft(from_dir, from, to_dir, to, target)? {
            return Ok(());
        }
        self.spelled(from, |from| self.disk.rename(from_dir, from, to_dir, &shy(to), target))
            .map_err(|error| self.explained(from_dir, from, error))
            .map_err(|error| self.explained(to_dir, to, error))
    }

    fn unlink(&self, parent: &Dir, name: &str) -> io::Result<()> {
        if self.drafts().remove(&key(parent, name)).is_some() {
            return Ok(());
        }
        if !is_own_name(name) {
            self.refuse_away(parent, name)?;
        }
        self.spelled(name, |name| self.disk.unlink(parent, name))
    }

    fn remove_dir(&self, parent: &Dir, name: &str) -> io::Result<()> {
        self.disk.remove_dir(parent, name)
    }

    fn names(&self, dir: &Dir, limit: usize) -> io::Result<Vec<Name>> {
        let mut names = self.disk.names(dir, limit)?;
        names.retain(|name| !name.text.as_deref().is_ok_and(is_temporary));
        let stub_for = |name: &Name| match (&name.text, name.kind) {
            (Ok(text), NodeKind::File) => stands_for(text).map(str::to_owned),
            _ => None,
        };
        if names.iter().any(|name| stub_for(name).is_some()) {
            let here: HashSet<String> = names.iter().filter_map(|name| name.text.clone().ok()).collect();
            // A stub whose file is here again is about to go.
            names.retain(|name| stub_for(name).is_none_or(|file| !here.contains(&file)));
            for name in &mut names {
                if let Some(file) = stub_for(name) {
                    name.text = Ok(file);
                }
            }
        }
        for name in &mut names {
            name.text = std::mem::replace(&mut name.text, Err(String::new())).map(bold);
        }
        Ok(names)
    }

    fn lock(&self, name: &str, wait: Duration) -> io::Result<Option<Self::Lock>> {
        self.disk.lock(name, wait)
    }

    fn note(&self) -> io::Result<Vec<u8>> {
        self.disk.note()
    }

    fn set_note(&self, note: &[u8]) -> io::Result<()> {
        self.disk.set_note(note)
    }

    fn can_exchange(&self) -> bool {
        self.disk.can_exchange()
    }

    fn grows_in_place(&self) -> bool {
        false
    }
}

/// Returns true if a name is that of a sync client's own temporary file or directory: a file that is still being transferred.
///
/// The client may leave it behind when it is killed, in full length and without content. It never becomes a memory.
fn is_temporary(name: &str) -> bool {
    let is_between = |start: &str, end: &str| {
        name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end)).is_some_and(|rest| !rest.is_empty())
    };
    let is_nextclouds = || {
        let (file, number) = name.rsplit_once(".~").unwrap_or_default();
        file.starts_with('.') && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    is_between(".syncthing.", ".tmp")
        || is_between("~syncthing~", ".tmp")
        || matches!(name, ".tmp.drivedownload" | ".tmp.driveupload" | ".dropbox.cache")
        || is_nextclouds()
}

/// Files that have content before they have a name.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod unnamed {
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use cap_std::fs::{Dir, File};
    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use rustix::io::Errno;

    /// The directory where a process finds its open files by name, to give one a name.
    const OPEN_FILES: &str = "/proc/self/fd";

    /// Returns true if it is worth trying.
    pub(super) fn may_work() -> bool {
        Path::new(OPEN_FILES).is_dir()
    }

    /// Makes a file in `parent` without a name.
    pub(super) fn create(parent: &Dir, mode: u32) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let file = rustix::fs::openat(parent, ".", flags, mode).map_err(|errno| match errno {
            // How a filesystem says that it cannot, and how a kernel does.
            Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT => {
                io::ErrorKind::Unsupported.into()
            }
            errno => io::Error::from(errno),
        })?;
        // Restore the mode that the umask removed.
        rustix::fs::fchmod(&file, mode)?;
        Ok(File::from_std(file.into()))
    }

    /// Gives it a name that must be free.
    pub(super) fn link(file: &File, parent: &Dir, name: &str) -> io::Result<()> {
        let open = format!("{OPEN_FILES}/{}", file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, open, parent, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

/// Files that have content before they have a name: not on this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod unnamed {
    use std::io;

    use cap_std::fs::{Dir, File};

    pub(super) fn may_work() -> bool {
        false
    }

    pub(super) fn create(_: &Dir, _: u32) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn link(_: &File, _: &Dir, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_names_are_spelled_for_clients_and_back() {
        for name in [".haversack-draft-7", ".haversack-gone-00-notes.md.tmp", ".haversack-"] {
            let shy = shy(name).into_owned();
            assert!(shy.starts_with(".~") && shy.ends_with(".tmp") && is_own_name(&shy), "{shy}");
            assert_eq!(bold(shy), name);
        }
        for name in ["notes.md", ".haversack", ".~lock.notes#", "x.tmp"] {
            assert_eq!(shy(name), name);
            assert_eq!(bold(name.to_owned()), name);
        }
    }

    #[test]
    fn temporary_files_of_clients_are_known_by_name() {
        for name in [
            ".syncthing.notes.md.tmp",
            "~syncthing~notes.md.tmp",
            ".notes.md.~1a2b3c",
            ".tmp.drivedownload",
            ".tmp.driveupload",
            ".dropbox.cache",
        ] {
            assert!(is_temporary(name), "{name}");
        }
        for name in
            ["notes.md", ".syncthing.tmp", "notes.md.tmp", ".~lock.notes#", ".hidden", ".notes.~draft"]
        {
            assert!(!is_temporary(name), "{name}");
        }
    }
}
