//! The real disk, reached through a directory handle that cannot be climbed out of.

#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use cap_std::fs::{Dir, File};

#[cfg(not(unix))]
use self::portable as system;
#[cfg(unix)]
use self::unix as system;
use super::fs::{Fs, Name, Stat, Target};

/// The most files that are synced at the same time.
const MAX_PARALLEL_SYNCS: usize = 4;

/// From how many files or directories on their filesystem is asked to write all that it has: one wait instead of one for each.
///
/// That writes what other programs have left to it too, so a few are not worth it.
const MANY: usize = 16;

/// The number of files for which another thread is worth its cost.
const NAMES_PER_LANE: usize = 256;

/// The most threads that look at files at the same time.
const MAX_LANES: usize = 4;

/// The most unused lock files that are kept open.
const MAX_IDLE_LOCKS: usize = 16;

/// The mode of a new directory: only its owner can use it.
const DIRECTORY_MODE: u32 = 0o700;

/// The length and the check of a note, before it.
const NOTE_HEADER_BYTES: usize = 16;

/// The most that the file for the note may measure while there is none.
const MAX_IDLE_NOTE_BYTES: usize = 64 * 1024;

/// A directory of this machine, with its locks in another one.
#[derive(Debug)]
pub struct Disk {
    root: Arc<Dir>,
    locks: PathBuf,
    key: String,
    note: Mutex<Note>,
    idle: Arc<Mutex<Idle>>,
    exchanges: AtomicBool,
}

/// The file for the note, and how much of it this process has written.
#[derive(Debug)]
struct Note {
    file: fs::File,
    written: usize,
}

impl Disk {
    /// Opens the directory at `root`, making it if need be, with its lock files in `locks`.
    pub fn open(root: &Path, locks: &Path) -> io::Result<Disk> {
        make_private_dirs(root)?;
        make_private_dirs(locks)?;
        let (real_root, real_locks) = (root.canonicalize()?, locks.canonicalize()?);
        if real_locks.starts_with(&real_root) {
            let message = "the directory for lock files must not be inside the root";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let key = blake3::hash(real_root.as_os_str().as_encoded_bytes()).to_hex()[..16].to_owned();
        let note = open_private(&real_locks.join(format!("{key}.note")))?;
        Ok(Disk {
            root: Arc::new(system::readable(Dir::open_ambient_dir(
                &real_root,
                cap_std::ambient_authority(),
            )?)?),
            locks: real_locks,
            key,
            note: Mutex::new(Note { file: note, written: 0 }),
            idle: Arc::default(),
            exchanges: AtomicBool::new(cfg!(any(
                target_os = "linux",
                target_os = "android",
                target_vendor = "apple"
            ))),
        })
    }

    /// Opens the directory at `root` if it exists and its path leads through no link, with its lock files in `locks`.
    ///
    /// Another program may put a link there while we open it. So we compare the directory that we opened with the one that the path
    /// names afterwards.
    pub fn open_real(root: &Path, locks: &Path) -> io::Result<Disk> {
        let refuse_links = || match is_same_path(&root.canonicalize()?, root) {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "the path leads through a link")),
        };
        refuse_links()?;
        let disk = Disk::open(root, locks)?;
        refuse_links()?;
        let named = Dir::open_ambient_dir(root, cap_std::ambient_authority())?;
        let (opened, named) = (system::stat_dir(&disk.root)?, system::stat_dir(&named)?);
        if (opened.device, opened.inode) != (named.device, named.inode) {
            let message = "the path led through a link for a moment";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(disk)
    }

    /// Forgets that this disk can exchange two names, as if its filesystem could not.
    pub fn forget_exchange(&self) {
        self.exchanges.store(false, Ordering::Relaxed);
    }

    fn lock_path(&self, name: &str) -> PathBuf {
        self.locks.join(format!("{}.{name}.lock", self.key))
    }

    fn take_idle(&self, name: &str) -> Option<fs::File> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().position(|(other, _)| other == name)?;
        let (_, file) = idle.swap_remove(at);
        drop(idle);
        // A deleted lock file does not exclude a process that opens a new one.
        system::has_name(&file).then_some(file)
    }
}

/// Returns true if a resolved path is the one that was resolved. Windows puts a prefix before it, and spells it as the disk does.
fn is_same_path(resolved: &Path, path: &Path) -> bool {
    resolved == path
        || (cfg!(windows) && is_same_windows_path(&resolved.to_string_lossy(), &path.to_string_lossy()))
}

/// Returns true if two paths of Windows differ only by case, slashes and the prefix of resolved paths.
fn is_same_windows_path(one: &str, other: &str) -> bool {
    let plain = |path: &str| {
        let path = path.replace('/', "\\");
        let path = match path.strip_prefix(r"\\?\UNC\") {
            Some(share) => format!(r"\\{share}"),
            None => path.strip_prefix(r"\\?\").unwrap_or(&path).to_owned(),
        };
        path.to_lowercase()
    };
    plain(one) == plain(other)
}

/// Returns how many threads it pays to look at files with.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, |found| found.get().min(MAX_LANES)))
}

/// Unused lock files, by the name of their lock; kept open, so that the common case opens nothing.
type Idle = Vec<(String, fs::File)>;

/// A lock file that is locked.
#[derive(Debug)]
pub struct DiskLock {
    name: String,
    file: Option<fs::File>,
    /// The list for the file after unlocking, to be used again.
    idle: Arc<Mutex<Idle>>,
}

impl Drop for DiskLock {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        // A file that cannot be unlocked is closed, which unlocks it.
        if file.unlock().is_ok() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MAX_IDLE_LOCKS {
                idle.push((std::mem::take(&mut self.name), file));
            }
        }
    }
}

impl Fs for Disk {
    type Dir = Dir;
    type File = File;
    type Lock = DiskLock;

    fn root(&self) -> Arc<Dir> {
        self.root.clone()
    }

    fn open_dir(&self, parent: &Dir, name: &str) -> io::Result<Arc<Dir>> {
        system::readable_child(parent, name).map(Arc::new)
    }

    fn make_dir(&self, parent: &Dir, name: &str) -> io::Result<()> {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
        let mut builder = cap_std::fs::DirBuilder::new();
        #[cfg(unix)]
        cap_std::fs::DirBuilderExt::mode(&mut builder, DIRECTORY_MODE);
        parent.create_dir_with(name, &builder)?;
        system::fix_mode(parent, name, DIRECTORY_MODE)
    }

    fn open(&self, parent: &Dir, name: &str) -> io::Result<File> {
        system::open(parent, name)
    }

    fn open_append(&self, parent: &Dir, name: &str) -> io::Result<File> {
        system::open_append(parent, name)
    }

    fn create(&self, parent: &Dir, name: &str, mode: u32) -> io::Result<File> {
        system::create(parent, name, mode)
    }

    fn stat(&self, parent: &Dir, name: &str) -> io::Result<Stat> {
        system::stat(parent, name)
    }

    fn stats(&self, names: &[(&Dir, &str)]) -> Vec<io::Result<Stat>> {
        let lanes = match names.len() / NAMES_PER_LANE {
            0 | 1 => 1,
            lanes => lanes.min(processors()),
        };
        let stat = |(parent, name): &(&Dir, &str)| system::stat(parent, name);
        let per_lane = names.len().div_ceil(lanes).max(1);
        let (first, others) = names.split_at(per_lane.min(names.len()));
        thread::scope(|scope| {
            let lanes: Vec<_> = others
                .chunks(per_lane)
                .map(|names| scope.spawn(move || names.iter().map(stat).collect::<Vec<_>>()))
                .collect();
            let mut stats: Vec<io::Result<Stat>> = Vec::with_capacity(names.len());
            stats.extend(first.iter().map(stat));
            for (lane, names) in lanes.into_iter().zip(others.chunks(per_lane)) {
                // A lane that could not finish is walked again.
                stats.extend(lane.join().unwrap_or_else(|_| names.iter().map(stat).collect()));
            }
            stats
        })
    }

    fn stat_file(&self, file: &File) -> io::Result<Stat> {
        system::stat_file(file)
    }

    fn stat_dir(&self, dir: &Dir) -> io::Result<Stat> {
        system::stat_dir(dir)
    }

    fn read(&self, file: &File, size_hint: u64) -> io::Result<Vec<u8>> {
        system::read_all(file, usize::try_from(size_hint).unwrap_or(0))
    }

    fn read_at(&self, file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        system::read_at(file, buffer, offset)
    }

    fn append(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        system::append(file, bytes)
    }

    fn truncate(&self, file: &File, size: u64) -> io::Result<()> {
        file.set_len(size)
    }

    fn sync_files(&self, files: &[&File]) -> Vec<io::Result<()>> {
        if let [file] = files {
            return vec![system::sync_file(file)];
        }
        if files.len() >= MANY
            && let Some(synced) = system::sync_together(files)
        {
            let again = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
            return files.iter().map(|_| synced.as_ref().map_err(again).copied()).collect();
        }
        files.iter().for_each(|file| system::start_writing(file));
        let lanes = files.len().clamp(1, MAX_PARALLEL_SYNCS);
        let mut results: Vec<io::Result<()>> = files.iter().map(|_| Ok(())).collect();
        thread::scope(|scope| {
            let per_lane = files.len().div_ceil(lanes).max(1);
            for (files, results) in files.chunks(per_lane).zip(results.chunks_mut(per_lane)) {
                scope.spawn(|| {
                    for (file, result) in files.iter().zip(results) {
                        *result = system::sync_file(file);
                    }
                });
            }
        });
        results
    }

    fn sync_dir(&self, dir: &Dir) -> io::Result<()> {
        system::sync_dir(dir)
    }

    fn sync_dirs(&self, dirs: &[&Dir]) -> io::Result<()> {
        if dirs.len() >= MANY
            && let Some(synced) = system::sync_together(dirs)
        {
            return synced;
        }
        dirs.iter().try_for_each(|dir| self.sync_dir(dir))
    }

    fn rename(&self, from_dir: &Dir, from: &str, to_dir: &Dir, to: &str, target: Target) -> io::Result<()> {
        match target {
            Target::Replaced => from_dir.rename(from, to_dir, to),
            Target::Free => system::rename_to_free(from_dir, from, to_dir, to),
            Target::Exchanged if !self.can_exchange() => Err(io::ErrorKind::Unsupported.into()),
            Target::Exchanged => {
                let result = system::exchange(from_dir, from, to_dir, to);
                if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Unsupported) {
                    self.forget_exchange();
                }
                result
            }
        }
    }

    fn unlink(&self, parent: &Dir, name: &str) -> io::Result<()> {
        parent.remove_file(name)
    }

    fn remove_dir(&self, parent: &Dir, name: &str) -> io::Result<()> {
        parent.remove_dir(name)
    }

    fn names(&self, dir: &Dir, limit: usize) -> io::Result<Vec<Name>> {
        system::names(dir, limit)
    }

    fn enter(&self, parent: &Dir, name: &str) -> io::Result<(Arc<Dir>, Vec<Name>)> {
        system::enter(parent, name).map(|(dir, names)| (Arc::new(dir), names))
    }

    fn lock(&self, name: &str, wait: Duration) -> io::Result<Option<DiskLock>> {
        let file = match self.take_idle(name) {
            Some(file) => file,
            None => open_private(&self.lock_path(name))?,
        };
        let (name, idle) = (name.to_owned(), self.idle.clone());
        match file.try_lock() {
            Ok(()) => return Ok(Some(DiskLock { name, file: Some(file), idle })),
            Err(TryLockError::WouldBlock) if wait.is_zero() => return Ok(None),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The system queues those who block in `lock`, which is what keeps a writer from starving; it has
        // no deadline, so another thread blocks and this one waits for it. If this one gives up first, the
        // lock is released as soon as it arrives.
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let locked = file.lock().map(|()| DiskLock { name, file: Some(file), idle });
            drop(sender.send(locked));
        });
        match receiver.recv_timeout(wait) {
            Ok(locked) => locked.map(Some),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(io::Error::other("the waiting thread ended")),
        }
    }

    fn note(&self) -> io::Result<Vec<u8>> {
        let note = self.note.lock().unwrap_or_else(PoisonError::into_inner);
        let mut header = [0; NOTE_HEADER_BYTES];
        if system::read_at(&note.file, &mut header, 0)? < header.len() || header == [0; NOTE_HEADER_BYTES] {
            return Ok(Vec::new());
        }
        let length = u64::from_le_bytes(header[..8].try_into().expect("eight bytes"));
        let size = note.file.metadata()?.len().saturating_sub(NOTE_HEADER_BYTES as u64);
        let mut text = vec![0; usize::try_from(length.min(size)).unwrap_or(0)];
        let read = system::read_at(&note.file, &mut text, NOTE_HEADER_BYTES as u64)?;
        text.truncate(read);
        // A note whose writing was cut short announces nothing: it is complete before anything is touched.
        // One from before the machine was started again may be old: a scan finds what it would have told.
        let believed = note_header(&text) == header;
        Ok(if believed { text } else { Vec::new() })
    }

    fn set_note(&self, text: &[u8]) -> io::Result<()> {
        let mut note = self.note.lock().unwrap_or_else(PoisonError::into_inner);
        if text.is_empty() {
            // Overwritten and not cut off: its space stays ours, so that a full disk can still be tidied.
            system::write_at(&note.file, &[0; NOTE_HEADER_BYTES], 0)?;
            if std::mem::take(&mut note.written) > MAX_IDLE_NOTE_BYTES {
                note.file.set_len(NOTE_HEADER_BYTES as u64)?;
            }
            return Ok(());
        }
        let mut framed = Vec::with_capacity(NOTE_HEADER_BYTES + text.len());
        framed.extend_from_slice(&note_header(text));
        framed.extend_from_slice(text);
        note.written = framed.len();
        system::write_at(&note.file, &framed, 0)
    }

    fn can_exchange(&self) -> bool {
        self.exchanges.load(Ordering::Relaxed)
    }
}

fn note_header(note: &[u8]) -> [u8; NOTE_HEADER_BYTES] {
    let mut header = [0; NOTE_HEADER_BYTES];
    header[..8].copy_from_slice(&(note.len() as u64).to_le_bytes());
    let check = blake3::Hasher::new().update(boot().as_bytes()).update(note).finalize();
    header[8..].copy_from_slice(&check.as_bytes()[..8]);
    header
}

/// Returns what tells this run of the machine from others, where the system says.
///
/// The note is not synced: one from before a power failure may be old, and must not be believed.
fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default())
}

/// Makes a directory and those above it, and their names durable.
fn make_private_dirs(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, DIRECTORY_MODE);
    let made: Vec<&Path> = path.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    builder.create(path)?;
    for parent in made.iter().filter_map(|made| made.parent()) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        system::sync_ambient_dir(parent)?;
    }
    Ok(())
}

fn open_private(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(base: &Path) -> Disk {
        Disk::open(&base.join("memory"), &base.join("locks")).expect("it opens")
    }

    fn take(disk: &Disk, name: &str) -> Option<DiskLock> {
        disk.lock(name, Duration::ZERO).expect("the lock file can be opened")
    }

    #[test]
    fn resolved_windows_path_is_the_same_path() {
        for (resolved, path, is_same) in [
            (r"\\?\C:\Users\me\memory", r"C:\Users\me\memory", true),
            (r"\\?\C:\Users\me\memory", "c:/users/me/memory", true),
            (r"\\?\UNC\server\share\memory", r"\\server\share\memory", true),
            // The path led through a link.
            (r"\\?\D:\elsewhere", r"C:\Users\me\memory", false),
        ] {
            assert_eq!(is_same_windows_path(resolved, path), is_same, "{path}");
        }
    }

    #[test]
    fn a_directory_that_was_entered_can_be_listed_again() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let disk = disk(base.path());
        disk.make_dir(&disk.root, "notes").expect("a directory");
        let parent = disk.open_dir(&disk.root, "notes").expect("it is there");
        // More than the system tells at a time.
        let expected: Vec<String> =
            (0..1_000).map(|number| format!("{number:03}-{}", "n".repeat(60))).collect();
        for name in &expected {
            drop(disk.create(&parent, name, 0o600).expect("a new file"));
        }
        let sorted = |names: Vec<Name>| {
            let mut names: Vec<String> = names.into_iter().filter_map(|name| name.text.ok()).collect();
            names.sort_unstable();
            names
        };
        let (dir, names) = disk.enter(&disk.root, "notes").expect("it is there");
        assert_eq!(sorted(names), expected);
        for _ in 0..2 {
            assert_eq!(sorted(disk.names(&dir, usize::MAX).expect("names")), expected);
        }
        assert_eq!(disk.names(&dir, 7).expect("names").len(), 7);
    }

    #[test]
    fn many_files_get_an_answer_each() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let disk = disk(base.path());
        let make = |number| disk.create(&disk.root, &format!("{number}"), 0o600).expect("a new file");
        let files: Vec<File> = (0..MANY + 1).map(make).collect();
        let files: Vec<&File> = files.iter().collect();
        for count in [0, 1, 2, MANY, MANY + 1] {
            let synced = disk.sync_files(&files[..count]);
            assert!(synced.len() == count && synced.iter().all(Result::is_ok), "{count}");
        }
        assert!(disk.sync_dirs(&[&*disk.root; MANY]).is_ok() && disk.sync_dirs(&[]).is_ok());
    }

    #[test]
    fn few_lock_files_stay_open() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let disk = disk(base.path());
        let held: Vec<_> = (0..3 * MAX_IDLE_LOCKS).map(|number| take(&disk, &number.to_string())).collect();
        assert!(held.iter().all(Option::is_some));
        drop(held);
        assert_eq!(disk.idle.lock().expect("not poisoned").len(), MAX_IDLE_LOCKS);
        assert!(take(&disk, "0").is_some());
    }

    #[test]
    fn a_lock_that_was_used_before_still_excludes() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let (ours, theirs) = (disk(base.path()), disk(base.path()));
        for _ in 0..3 {
            let held = take(&ours, "store");
            assert!(held.is_some() && take(&theirs, "store").is_none() && take(&ours, "store").is_none());
            drop(held);
            let held = take(&theirs, "store");
            assert!(held.is_some() && take(&ours, "store").is_none());
        }
    }

    /// A tidy user must not split those who use one lock into two camps.
    #[cfg(unix)]
    #[test]
    fn a_lock_file_that_was_deleted_is_not_used_again() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let (ours, theirs) = (disk(base.path()), disk(base.path()));
        drop(take(&ours, "store"));
        fs::remove_file(ours.lock_path("store")).expect("deleted");
        let held = take(&theirs, "store");
        assert!(held.is_some() && take(&ours, "store").is_none());
    }
}
