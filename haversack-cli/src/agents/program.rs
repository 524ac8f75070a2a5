//! The home's own copy of this program: agents' hooks and MCP entries run it.
//!
//! The binary that ran `setup` may be in a build directory, a virtual environment or a package cache, and be removed with it. So hooks never name it:
//!
//! 1. `setup` and `init` copy the running binary to `bin/<target>/haversack` in the home. Settings of agents name that copy.
//! 2. The copy is written to a staging file beside it, synced, and renamed. A lock lets one process at a time do that, so a staging file that is
//!    there when the lock was taken was left by a process that died.
//! 3. `bin/<target>/version` is written after the copy. If we are killed in between, the recorded version is too low, and the next command of
//!    this release records it.
//! 4. Every command reads that one file. If its own version is higher, it replaces the copy. `setup` replaces any copy that differs.
//!
//! Windows does not replace a program that runs. There the old copy is renamed to `haversack.exe.old-<n>` first, and removed by a later replacement.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use haversack::store::{Backend, DeviceLocal, ErrorKind, block_on};

use crate::error::CommandError;
use crate::records::private;
use crate::records::{self, Weight};
use crate::settings::{Settings, shown};

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The name of the copy.
const NAME: &str = if cfg!(windows) { "haversack.exe" } else { "haversack" };

/// The file beside the copy that holds its version.
const RECORD: &str = "version";

/// The end of the staging file's name.
const STAGING: &str = ".new";

/// The text between the copy's name and a number in an old copy's name.
const OLD: &str = ".old-";

/// The lock that lets one process at a time replace the copy.
const LOCK: &str = "program";

/// The advice for a copy that could not be written.
const TO_WRITE: &str =
    "Give this user access to it and make space on its disk, then run: haversack setup claude-code";

/// The advice for a copy that could not be removed: Windows keeps a program that runs.
const TO_REMOVE: &str = "Close your agents, then run: haversack uninstall";

/// The most old copies that wait for their removal.
const MAX_OLD: usize = 100;

/// The number of bytes of two files that are compared at once.
const COMPARED_BYTES: usize = 256 * 1024;

/// Tells if a path names a program that can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usability {
    Usable,
    Missing,
    NotExecutable,
}

/// Returns the directory of all copies in a home: one for each target, because machines with different processors may share a home.
pub(crate) fn directory_of_all(home: &Path) -> PathBuf {
    home.join("bin")
}

/// Returns the path of this target's copy in a home.
pub(crate) fn place(home: &Path) -> PathBuf {
    directory(home).join(NAME)
}

/// Returns the path of the copy, in full, as settings of agents name it.
pub(crate) fn copy_of(settings: &Settings) -> Result<PathBuf, CommandError> {
    Ok(place(&std::path::absolute(&settings.home).map_err(CommandError::from)?))
}

/// Returns true if a copy was made in this home.
pub(crate) fn is_recorded(settings: &Settings) -> bool {
    directory(&settings.home).join(RECORD).exists()
}

/// Returns the program to start for work in the background: the running one, or the copy if the running one was replaced or removed.
pub(crate) fn to_start(settings: &Settings) -> io::Result<PathBuf> {
    let running = std::env::current_exe()?;
    Ok(if running.is_file() { running } else { place(&settings.home) })
}

/// Returns true if a path names a program that can be started.
pub(crate) fn usability(program: &Path) -> Usability {
    match fs::metadata(program) {
        Ok(found) if found.is_file() && is_executable(&found) => Usability::Usable,
        Ok(_) => Usability::NotExecutable,
        Err(_) => Usability::Missing,
    }
}

/// Makes the running binary the copy, whatever version the copy has.
pub(crate) fn install(settings: &Settings) -> Result<(), CommandError> {
    let guard = lock(settings, settings.lock_wait)?;
    let done = replace_locked(settings);
    drop(guard);
    done
}

/// Replaces the copy if this release is higher than the copy's. Costs the reading of one small file otherwise.
pub(crate) fn upgrade(settings: &Settings) -> Result<(), CommandError> {
    let recorded = match fs::read_to_string(directory(&settings.home).join(RECORD)) {
        Ok(text) => text,
        // A process was killed after it made the first copy.
        Err(_) if place(&settings.home).exists() => String::new(),
        Err(_) => return Ok(()),
    };
    if !is_higher(VERSION, recorded.trim()) {
        return Ok(());
    }
    match lock(settings, Duration::ZERO) {
        Ok(_guard) => replace_locked(settings),
        // Another process replaces it at this moment.
        Err(error) if error.kind() == ErrorKind::Busy => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes every copy in a home. Returns false if there was none.
///
/// Only files that we made are removed: a home may be a directory that has another `bin`.
pub(crate) fn remove_all(settings: &Settings) -> Result<bool, CommandError> {
    let all = directory_of_all(&settings.home);
    let mut had_any = false;
    for target in fs::read_dir(&all).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if target != directory(&settings.home) && !target.join(RECORD).is_file() {
            continue;
        }
        had_any = true;
        for entry in fs::read_dir(&target).into_iter().flatten().flatten() {
            if is_name_of_ours(&entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())
                    .map_err(|error| could_not("remove", &entry.path(), error, TO_REMOVE))?;
            }
        }
        // A directory in which something else is stays.
        drop(fs::remove_dir(&target));
    }
    drop(fs::remove_dir(&all));
    Ok(had_any)
}

/// Returns the directory of this target's copy.
fn directory(home: &Path) -> PathBuf {
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    directory_of_all(home).join(target)
}

fn lock(settings: &Settings, wait: Duration) -> haversack::store::Result<haversack::store::Guard> {
    let state = DeviceLocal::open(settings.state(), settings.locks())?;
    block_on(Backend::lock(&state, LOCK, wait))
}

fn replace_locked(settings: &Settings) -> Result<(), CommandError> {
    let directory = directory(&settings.home);
    replace(&directory).map_err(|error| could_not("write", &directory.join(NAME), error, TO_WRITE))?;
    let record = directory.join(RECORD);
    match fs::read_to_string(&record) {
        Ok(recorded) if recorded.trim() == VERSION => Ok(()),
        _ => records::write_text(&record, &format!("{VERSION}\n"), Weight::Durable),
    }
}

/// Makes the running binary the copy in a directory, unless it is that already.
fn replace(directory: &Path) -> io::Result<()> {
    let copy = directory.join(NAME);
    let mut running = running_binary()?;
    remove_old(directory);
    if is_running_binary(&running, &copy) {
        return Ok(());
    }
    if usability(&copy) == Usability::Usable && has_same_content(&mut running, &mut File::open(&copy)?)? {
        return Ok(());
    }
    let staging = directory.join(format!("{NAME}{STAGING}"));
    let mut running = running_binary()?;
    let mut out = private::create(&staging)?;
    io::copy(&mut running, &mut out)?;
    make_executable(&out)?;
    out.sync_all()?;
    // A program that is open for writing cannot be started.
    drop(out);
    move_into_place(directory, &staging)?;
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Opens the binary of this process: on Linux the very file that runs, even if another one has its path by now.
fn running_binary() -> io::Result<File> {
    match File::open("/proc/self/exe") {
        Ok(file) if cfg!(target_os = "linux") => Ok(file),
        _ => File::open(std::env::current_exe()?),
    }
}

/// Puts the staging file in the place of the copy.
fn move_into_place(directory: &Path, staging: &Path) -> io::Result<()> {
    match fs::rename(staging, directory.join(NAME)) {
        Err(_) if cfg!(windows) => move_into_place_of_running(directory, staging),
        renamed => renamed,
    }
}

/// Puts the staging file in the place of a copy that runs, on a system that does not replace running programs: the old copy gets another name.
fn move_into_place_of_running(directory: &Path, staging: &Path) -> io::Result<()> {
    let copy = directory.join(NAME);
    let names = (1..=MAX_OLD).map(|number| directory.join(format!("{NAME}{OLD}{number}")));
    let Some(old) = names.into_iter().find(|old| !old.exists()) else {
        return Err(io::Error::other(format!("{MAX_OLD} old copies are still running")));
    };
    fs::rename(&copy, &old)?;
    // Without the new one, the old one is better than none.
    fs::rename(staging, &copy).inspect_err(|_| drop(fs::rename(&old, &copy)))
}

/// Removes old copies. Those that still run stay until the next time.
fn remove_old(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{NAME}{OLD}")) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn is_name_of_ours(name: &str) -> bool {
    let rest = name.strip_prefix("haversack").map(|rest| rest.strip_prefix(".exe").unwrap_or(rest));
    name == RECORD || rest.is_some_and(|rest| rest.is_empty() || rest == STAGING || rest.starts_with(OLD))
}

#[cfg(unix)]
fn is_running_binary(running: &File, copy: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let [running, copy] = [running.metadata(), fs::metadata(copy)].map(|found| found.ok());
    let known_by = |found: fs::Metadata| (found.dev(), found.ino());
    running.is_some() && running.map(known_by) == copy.map(known_by)
}

#[cfg(not(unix))]
fn is_running_binary(_running: &File, copy: &Path) -> bool {
    let running = std::env::current_exe().and_then(|running| running.canonicalize());
    running.is_ok_and(|running| copy.canonicalize().is_ok_and(|copy| copy == running))
}

#[cfg(unix)]
fn is_executable(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_found: &fs::Metadata) -> bool {
    true
}

/// Lets the user run a file. Others get nothing: no file of the home is open to them.
#[cfg(unix)]
fn make_executable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_executable(_file: &File) -> io::Result<()> {
    Ok(())
}

fn has_same_content(one: &mut File, other: &mut File) -> io::Result<bool> {
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let [mut left, mut right] = [vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]];
    loop {
        let read = one.read(&mut left)?;
        if read == 0 {
            return Ok(true);
        }
        match other.read_exact(&mut right[..read]) {
            Ok(()) if left[..read] == right[..read] => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => return Ok(false),
        }
    }
}

/// Returns true if a version is higher than a recorded one. A record that is no version is lower than any.
fn is_higher(version: &str, recorded: &str) -> bool {
    match (Version::parse(version), Version::parse(recorded)) {
        (Some(version), Some(recorded)) => version > recorded,
        (version, None) => version.is_some(),
        (None, Some(_)) => false,
    }
}

/// A version, ordered by precedence as Semantic Versioning says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    numbers: [u64; 3],
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    PreRelease(Vec<Identifier>),
    Release,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Version {
    fn parse(text: &str) -> Option<Version> {
        let text = text.split('+').next()?;
        let (numbers, stage) = match text.split_once('-') {
            Some((numbers, stage)) => (numbers, Some(stage)),
            None => (text, None),
        };
        let numbers: Vec<u64> = numbers.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let identifier = |part: &str| match part.parse() {
            Ok(number) => Identifier::Number(number),
            Err(_) => Identifier::Text(part.to_owned()),
        };
        let stage = stage
            .map_or(Stage::Release, |stage| Stage::PreRelease(stage.split('.').map(identifier).collect()));
        Some(Version { numbers: numbers.try_into().ok()?, stage })
    }
}

fn could_not(what: &str, place: &Path, error: io::Error, cure: &str) -> CommandError {
    CommandError {
        source: Some(error.into()),
        ..CommandError::user(format!("could not {what} {}, the program that hooks run", shown(place)), cure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_precedence() {
        let ascending =
            ["0.1.0", "0.2.0-alpha.2", "0.2.0-alpha.10", "0.2.0-beta", "0.2.0", "0.10.0", "1.0.0"];
        for (at, version) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                assert_eq!(is_higher(version, other), at > other_at, "{version} {other}");
            }
            assert!(is_higher(version, "") && is_higher(version, "1.0") && is_higher(version, "one"));
        }
        assert!(!is_higher("1.0.0+build.2", "1.0.0+build.1"));
    }

    #[test]
    fn running_copy_is_moved_aside_and_removed_later() {
        let base = tempfile::tempdir().expect("made");
        let directory = base.path();
        let [copy, staging] = [NAME.to_owned(), format!("{NAME}{STAGING}")].map(|name| directory.join(name));
        let old = |number: u32| directory.join(format!("{NAME}{OLD}{number}"));
        fs::write(&copy, "1").expect("written");
        for version in ["2", "3"] {
            fs::write(&staging, version).expect("written");
            move_into_place_of_running(directory, &staging).expect("moved");
            assert_eq!(fs::read_to_string(&copy).expect("there"), version);
            assert!(!staging.exists());
        }
        assert_eq!(fs::read_to_string(old(1)).expect("there"), "1");
        assert_eq!(fs::read_to_string(old(2)).expect("there"), "2");
        // Without a new copy the old one stays.
        assert!(move_into_place_of_running(directory, &staging).is_err());
        assert_eq!(fs::read_to_string(&copy).expect("there"), "3");
        fs::write(directory.join(RECORD), "0.1.0\n").expect("written");
        remove_old(directory);
        let mut left: Vec<_> =
            fs::read_dir(directory).expect("listed").flatten().map(|e| e.file_name()).collect();
        left.sort();
        assert_eq!(left, [NAME, RECORD]);
    }

    #[test]
    fn files_of_equal_length_are_compared() {
        let base = tempfile::tempdir().expect("made");
        let long = vec![7; COMPARED_BYTES + 3];
        let mut other = long.clone();
        other[COMPARED_BYTES + 2] = 8;
        let open = |name: &str, bytes: &[u8]| {
            fs::write(base.path().join(name), bytes).expect("written");
            File::open(base.path().join(name)).expect("opened")
        };
        for (name, bytes, expected) in [("a", &long, true), ("b", &other, false), ("c", &vec![7], false)] {
            let same = has_same_content(&mut open("one", &long), &mut open(name, bytes)).expect("read");
            assert_eq!(same, expected, "{name}");
        }
    }
}
