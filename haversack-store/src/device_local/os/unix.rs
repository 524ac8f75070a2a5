//! Calls that cap-std does not have, on Unix: metadata in one call, exchange of names, sync of directories.

use std::ffi::CStr;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use cap_std::fs::{Dir, File};
use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::device_local::fs::{Name, NodeKind, Stat};

/// The number of bytes of names in one request to the system.
#[cfg(any(target_os = "linux", target_os = "android"))]
const NAMES_BUFFER_BYTES: usize = 32 * 1024;

/// Opens a file for reading; pipes and devices without waiting for their other end, they are refused afterwards.
pub(super) fn open(parent: &Dir, name: &str) -> io::Result<File> {
    open_with(parent, name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())
}

pub(super) fn open_append(parent: &Dir, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
    open_with(parent, name, flags, Mode::empty())
}

/// Writes at the end of the file.
pub(super) fn append(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    file.write(bytes)
}

/// Creates a file with exactly `mode`, whatever the umask takes away.
pub(super) fn create(parent: &Dir, name: &str, mode: u32) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
    let file = open_with(parent, name, flags, permissions(mode))?;
    if stat_file(&file)?.mode & 0o777 != mode {
        rustix::fs::fchmod(&file, permissions(mode))?;
    }
    Ok(file)
}

/// Opens one name of `parent`, no link followed.
fn open_with(parent: &Dir, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(parent, single(name)?, flags, mode)?;
    Ok(File::from_std(handle.into()))
}

/// Returns `name`, which must lead no further than into its directory.
fn single(name: &str) -> io::Result<&str> {
    match name {
        "" | "." | ".." => Err(io::ErrorKind::InvalidInput.into()),
        name if name.contains('/') => Err(io::ErrorKind::InvalidInput.into()),
        name => Ok(name),
    }
}

pub(super) fn stat(parent: &Dir, name: &str) -> io::Result<Stat> {
    Ok(convert(rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

pub(super) fn stat_file(file: &File) -> io::Result<Stat> {
    Ok(convert(rustix::fs::fstat(file)?))
}

pub(super) fn stat_dir(dir: &Dir) -> io::Result<Stat> {
    Ok(convert(rustix::fs::fstat(dir)?))
}

fn convert(stat: rustix::fs::Stat) -> Stat {
    let kind = kind_of(FileType::from_raw_mode(stat.st_mode));
    let nanoseconds =
        |seconds: i64, nanoseconds: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
    Stat {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: u32::try_from(widen(stat.st_mode)).unwrap_or(0) & 0o7777,
        links: widen(stat.st_nlink),
        inode: stat.st_ino,
        device: widen(stat.st_dev),
        modified_ns: nanoseconds(stat.st_mtime, narrow(stat.st_mtime_nsec)),
        changed_ns: nanoseconds(stat.st_ctime, narrow(stat.st_ctime_nsec)),
    }
}

fn kind_of(kind: FileType) -> NodeKind {
    match kind {
        FileType::RegularFile => NodeKind::File,
        FileType::Directory => NodeKind::Directory,
        FileType::Symlink => NodeKind::Link,
        _ => NodeKind::Other,
    }
}

/// Widens a field whose type differs between systems.
fn widen(value: impl TryInto<u64>) -> u64 {
    value.try_into().unwrap_or(0)
}

fn narrow(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(0)
}

/// Returns permission bits as the system counts them.
fn permissions(mode: u32) -> Mode {
    fn fitting<T: TryFrom<u32> + Default>(bits: u32) -> T {
        T::try_from(bits).unwrap_or_default()
    }
    Mode::from_raw_mode(fitting(mode & 0o7777))
}

/// Gives a directory just made exactly `mode`, whatever the umask took away.
pub(super) fn fix_mode(parent: &Dir, name: &str, mode: u32) -> io::Result<()> {
    if stat(parent, name)?.mode & 0o777 == mode {
        return Ok(());
    }
    set_dir_mode(parent, name, permissions(mode))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_dir_mode(parent: &Dir, name: &str, mode: Mode) -> io::Result<()> {
    // By handle, not by name: a link swapped in meanwhile must not be followed. An O_PATH handle
    // cannot be changed itself, and a directory without permissions cannot be opened otherwise.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let through = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle));
    Ok(rustix::fs::chmod(through, mode)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_dir_mode(parent: &Dir, name: &str, mode: Mode) -> io::Result<()> {
    Ok(rustix::fs::chmodat(parent, name, mode, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Returns the same directory with a handle that can be read and synced; cap-std's own cannot.
pub(super) fn readable(dir: Dir) -> io::Result<Dir> {
    open_dir(&dir, ".")
}

/// Opens a directory of `parent`; one name, no link followed.
pub(super) fn readable_child(parent: &Dir, name: &str) -> io::Result<Dir> {
    open_dir(parent, single(name)?)
}

fn open_dir(parent: &Dir, name: &str) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    Ok(Dir::from_std_file(std::fs::File::from(handle)))
}

/// Returns the names in a directory, at most `limit` of them.
pub(super) fn names(dir: &Dir, limit: usize) -> io::Result<Vec<Name>> {
    // Others may be reading through the same handle.
    names_to_come(&open_dir(dir, ".")?, limit)
}

/// Opens a directory of `parent` and returns it with the names in it, which costs one opening less than asking for them afterwards.
pub(super) fn enter(parent: &Dir, name: &str) -> io::Result<(Dir, Vec<Name>)> {
    let dir = readable_child(parent, name)?;
    let names = names_to_come(&dir, usize::MAX)?;
    Ok((dir, names))
}

/// Returns the names that were not read yet from a handle; no other reader may use the handle.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn names_to_come(dir: &Dir, limit: usize) -> io::Result<Vec<Name>> {
    let mut buffer = Vec::with_capacity(NAMES_BUFFER_BYTES);
    let mut entries = rustix::fs::RawDir::new(dir, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if names.len() == limit {
            break;
        }
        names.extend(named(dir, entry.file_name(), entry.file_type())?);
    }
    Ok(names)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn names_to_come(dir: &Dir, limit: usize) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        if names.len() == limit {
            break;
        }
        names.extend(named(dir, entry.file_name(), entry.file_type())?);
    }
    Ok(names)
}

/// Returns a name in a directory; none for the directory itself, the one above, and what went away meanwhile.
fn named(dir: &Dir, name: &CStr, kind: FileType) -> io::Result<Option<Name>> {
    if matches!(name.to_bytes(), b"." | b"..") {
        return Ok(None);
    }
    let kind = match kind {
        // Not every filesystem says it here.
        FileType::Unknown => match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            stat => kind_of(FileType::from_raw_mode(stat?.st_mode)),
        },
        kind => kind_of(kind),
    };
    let text = name.to_str().map(str::to_owned).map_err(|_| name.to_string_lossy().into_owned());
    Ok(Some(Name { text, kind }))
}

/// Makes the names in a directory outside of the root durable.
pub(super) fn sync_ambient_dir(path: &Path) -> io::Result<()> {
    std::fs::File::open(path)?.sync_all()
}

/// Makes a file's content durable.
#[cfg(not(target_vendor = "apple"))]
pub(super) fn sync_file(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Makes the names in a directory durable.
#[cfg(not(target_vendor = "apple"))]
pub(super) fn sync_dir(dir: &Dir) -> io::Result<()> {
    Ok(rustix::fs::fsync(dir)?)
}

#[cfg(target_vendor = "apple")]
pub(super) fn sync_file(file: &File) -> io::Result<()> {
    flush_drive(file)
}

#[cfg(target_vendor = "apple")]
pub(super) fn sync_dir(dir: &Dir) -> io::Result<()> {
    flush_drive(dir)
}

/// Flushes a file or directory down to the medium. On Apple's systems `fsync` ends at the drive, whose cache a power cut empties.
#[cfg(target_vendor = "apple")]
fn flush_drive(handle: impl AsFd) -> io::Result<()> {
    Ok(full_or_plain(rustix::fs::fcntl_fullfsync(&handle), || rustix::fs::fsync(&handle))?)
}

/// Returns the result of a full flush, or that of a plain one where the filesystem knows no full one: network shares, some external disks.
#[cfg(any(target_vendor = "apple", test))]
fn full_or_plain(
    full: rustix::io::Result<()>,
    plain: impl FnOnce() -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    match full {
        Err(Errno::NOTSUP | Errno::INVAL | Errno::NOTTY | Errno::NOSYS) => plain(),
        result => result,
    }
}

/// Makes everything on the filesystem of some handles durable in one call, theirs with it.
///
/// `None` where that cannot be relied on: systems that do not report what could not be written, and filesystems that keep their data
/// elsewhere and answer at once.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn sync_together<T: AsFd>(handles: &[&T]) -> Option<io::Result<()>> {
    let (first, others) = handles.split_first()?;
    if !reports_failed_writes() || !is_on_a_disk_of_this_machine(first) {
        return None;
    }
    let device = |handle: &T| rustix::fs::fstat(handle).map(|stat| stat.st_dev);
    let together = device(first).ok()?;
    if others.iter().any(|other| device(other) != Ok(together)) {
        return None;
    }
    Some(rustix::fs::syncfs(first).map_err(io::Error::from))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn sync_together<T: AsFd>(_handles: &[&T]) -> Option<io::Result<()>> {
    None
}

/// Returns true if syncing a filesystem fails if something of it could not be written, as it does since Linux 5.8.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn reports_failed_writes() -> bool {
    rustix::system::uname().release().to_str().is_ok_and(|release| version(release) >= Some((5, 8)))
}

/// Returns the first two numbers of a system's release.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Returns true if a handle is on a filesystem that is known to write everything when it is told to.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_on_a_disk_of_this_machine(handle: impl AsFd) -> bool {
    const EXT: u64 = 0xEF53;
    const XFS: u64 = 0x5846_5342;
    const BTRFS: u64 = 0x9123_683E;
    const F2FS: u64 = 0xF2F5_2010;
    const TMPFS: u64 = 0x0102_1994;
    let found = rustix::fs::fstatfs(handle).map(|filesystem| widen(filesystem.f_type));
    found.is_ok_and(|found| [EXT, XFS, BTRFS, F2FS, TMPFS].contains(&found))
}

/// Lets the system begin to write a file that is going to be synced.
///
/// Then the first sync commits what all of them need, and the others find it done.
pub(super) fn start_writing(file: &File) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // A hint: the sync that follows does and reports whatever this did not.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = file;
}

/// Returns true if a file still has a name, as far as that can be told.
pub(super) fn has_name(file: &std::fs::File) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink > 0)
}

/// Reads what there is from `offset` on, perhaps less than fits.
pub(super) fn read_at(file: impl AsFd, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::pread(&file, &mut *bytes, offset))?)
}

pub(super) fn write_at(file: &std::fs::File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Reads the whole file, in one call if it measures what is expected.
pub(super) fn read_all(file: &File, expected: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(expected + 1);
    loop {
        let asked = bytes.capacity() - bytes.len();
        let offset = bytes.len() as u64;
        let read = rustix::io::retry_on_intr(|| rustix::io::pread(file, spare_capacity(&mut bytes), offset))?;
        // Some filesystems give less than there is: only nothing, or all that was expected, is the end.
        if read == 0 || (read < asked && bytes.len() == expected) {
            return Ok(bytes);
        }
        bytes.reserve(1);
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_with(from_dir: &Dir, from: &str, to_dir: &Dir, to: &str, flags: RenameFlags) -> io::Result<()> {
    rustix::fs::renameat_with(from_dir, from, to_dir, to, flags).map_err(|errno| match errno {
        // How a filesystem says that it does not know the flag, and how a kernel does.
        Errno::INVAL | Errno::NOSYS | Errno::NOTSUP => io::ErrorKind::Unsupported.into(),
        errno => errno.into(),
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_with(_: &Dir, _: &str, _: &Dir, _: &str, _: RenameFlags) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn exchange(from_dir: &Dir, from: &str, to_dir: &Dir, to: &str) -> io::Result<()> {
    rename_with(from_dir, from, to_dir, to, RenameFlags::EXCHANGE)
}

pub(super) fn rename_to_free(from_dir: &Dir, from: &str, to_dir: &Dir, to: &str) -> io::Result<()> {
    match rename_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        result => return result,
    }
    // A second name that must be new, then away with the first: never in between without a name.
    match from_dir.hard_link(from, to_dir, to) {
        Ok(()) => return from_dir.remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // A directory, or a filesystem without hard links: look, then rename. A name created in
        // between by a program that takes no lock would be replaced.
        Err(_) => {}
    }
    match stat(to_dir, to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => from_dir.rename(from, to_dir, to),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn systems_that_hide_failed_writes_are_told_apart() {
        let cases = [
            ("6.18.3-amd64", true),
            ("5.8.0", true),
            ("5.7.19", false),
            ("4.19", false),
            ("6", false),
            ("", false),
        ];
        for (release, reports) in cases {
            assert_eq!(version(release) >= Some((5, 8)), reports, "{release}");
        }
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn only_what_is_on_one_filesystem_is_synced_together() {
        let base = tempfile::tempdir().expect("a temporary directory");
        let open = |path: &Path| std::fs::File::open(path).expect("a directory");
        let (here, elsewhere) = (open(base.path()), open(Path::new("/proc")));
        assert!(sync_together(&[&here, &elsewhere]).is_none());
        // An answer at once without writing is not believed.
        assert!(sync_together(&[&elsewhere]).is_none());
        assert!(sync_together::<std::fs::File>(&[]).is_none());
    }

    #[test]
    fn plain_flush_replaces_only_an_unknown_full_flush() {
        for unknown in [Errno::NOTSUP, Errno::INVAL, Errno::NOTTY, Errno::NOSYS] {
            assert_eq!(full_or_plain(Err(unknown), || Ok(())), Ok(()), "{unknown}");
            assert_eq!(full_or_plain(Err(unknown), || Err(Errno::IO)), Err(Errno::IO), "{unknown}");
        }
        // A drive that could not write is an error, whatever a plain flush would say.
        for failed in [Errno::IO, Errno::NOSPC, Errno::BADF] {
            assert_eq!(full_or_plain(Err(failed), || Ok(())), Err(failed));
        }
        assert_eq!(full_or_plain(Ok(()), || Err(Errno::IO)), Ok(()));
    }

    #[test]
    fn a_name_leads_no_further_than_into_its_directory() {
        let base = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(base.path().join("inside")).expect("made");
        std::fs::write(base.path().join("secret"), "outside").expect("written");
        let dir = Dir::open_ambient_dir(base.path().join("inside"), cap_std::ambient_authority());
        let dir = readable(dir.expect("it is there")).expect("it opens");
        let secret = base.path().join("secret");
        for name in ["../secret", "..", ".", "", "./../secret", &secret.to_string_lossy()] {
            for opened in [open(&dir, name), open_append(&dir, name), create(&dir, name, 0o600)] {
                let refused = opened.expect_err("it leads outside").kind();
                assert_eq!(refused, io::ErrorKind::InvalidInput, "{name}");
            }
            assert!(readable_child(&dir, name).is_err(), "{name}");
        }
        assert_eq!(std::fs::read(&secret).expect("it is there"), b"outside");
    }
}
