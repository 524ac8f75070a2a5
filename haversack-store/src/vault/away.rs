//! Files of which a sync client has brought the name and not the content.
//!
//! | how | told by |
//! |---|---|
//! | iCloud Drive before macOS 14 | `.name.icloud` in the place of `name` |
//! | every client on macOS that uses the system's file provider | the flag `SF_DATALESS` |
//! | a client that made room for what it is about to fetch | a size, no blocks on the disk, and no data to be found |
//!
//! None of these reads a byte of content. A filesystem that keeps small files without blocks (in the inode, or over a network)
//! still finds data in them, so that the third is not mistaken. A file of nothing but a hole is taken for one that is on its way.

use std::io;

use cap_std::fs::{Dir, File};

/// The beginning and the end of a stub's name.
const STUB: (&str, &str) = (".", ".icloud");

/// Returns the name of the stub that iCloud leaves in the place of `name`.
pub(super) fn stub_of(name: &str) -> String {
    format!("{}{name}{}", STUB.0, STUB.1)
}

/// Returns the name that a stub stands for.
pub(super) fn stands_for(stub: &str) -> Option<&str> {
    let name = stub.strip_prefix(STUB.0)?.strip_suffix(STUB.1)?;
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}

/// Returns true if the content of what is called `name` is somewhere else.
#[cfg(target_vendor = "apple")]
pub(super) fn is_away(parent: &Dir, name: &str) -> io::Result<bool> {
    /// The system's flag on a file whose content it has to fetch.
    const SF_DATALESS: u32 = 0x4000_0000;
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    Ok(rustix::fs::statat(parent, name, flags)?.st_flags & SF_DATALESS != 0)
}

/// Returns true if the content of what is called `name` is somewhere else.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn is_away(parent: &Dir, name: &str) -> io::Result<bool> {
    use rustix::fs::{AtFlags, FileType, Mode, OFlags};
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !is_suspicious(&stat) {
        return Ok(false);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(has_no_data(&rustix::fs::openat(parent, name, flags, Mode::empty())?))
}

/// Returns true if the content of an opened file is somewhere else, as far as an opened file can tell.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn is_hollow(file: &File) -> io::Result<bool> {
    Ok(is_suspicious(&rustix::fs::fstat(file)?) && has_no_data(file))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_suspicious(stat: &rustix::fs::Stat) -> bool {
    stat.st_size > 0 && stat.st_blocks == 0
}

/// Returns true if nothing in a file was ever written.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn has_no_data(file: impl std::os::fd::AsFd) -> bool {
    // The only answer that says so; one that cannot say anything says something else.
    matches!(rustix::fs::seek(file, rustix::fs::SeekFrom::Data(0)), Err(rustix::io::Errno::NXIO))
}

/// Returns true if the content of what is called `name` is somewhere else: not known on this system.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(super) fn is_away(_: &Dir, _: &str) -> io::Result<bool> {
    Ok(false)
}

/// Returns true if the content of an opened file is somewhere else: known by its name, or not at all.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn is_hollow(_: &File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs() {
        for (stub, name) in [
            (".notes.md.icloud", Some("notes.md")),
            (".a.icloud", Some("a")),
            ("..hidden.icloud", Some(".hidden")),
            (".日記.md.icloud", Some("日記.md")),
            (".icloud", None),
            ("..icloud", None),
            ("...icloud", None),
            ("notes.icloud", None),
            (".notes.md", None),
        ] {
            assert_eq!(stands_for(stub), name, "{stub}");
            assert!(name.is_none_or(|name| stub_of(name) == stub), "{stub}");
        }
    }
}
