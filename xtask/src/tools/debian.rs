//! Python from Debian's packages, unpacked beside the project instead of installed.
//!
//! `apt-get` is given directories of its own, so neither its lists nor its cache are touched, and it need not be root.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{step, tools};

/// The libraries as a launcher finds them; it knows the tool directory as `$tools`.
pub(super) const LIBRARIES_IN_SCRIPTS: &str = "\"$tools/debian/libraries\"";

/// Packages that are not unpacked: their libraries must be the ones that the system runs on.
const OF_THE_SYSTEM: [&str; 3] = ["libc6_", "libgcc-s1_", "libstdc++6_"];

/// An unpacked Python.
pub(super) struct Unpacked {
    pub(super) executable: PathBuf,
    /// pip, as a wheel.
    pub(super) pip: PathBuf,
}

/// Returns where the unpacked libraries are, if there are any.
pub(super) fn libraries() -> Option<String> {
    let path = root().join("libraries");
    path.is_dir().then(|| path.display().to_string())
}

/// Returns the unpacked Python, having fetched it if need be.
pub(super) fn python() -> Result<Unpacked, String> {
    if let Some(found) = find() {
        return Ok(found);
    }
    drop(fs::remove_dir_all(root()));
    let scratch = tools().join("debian-packages");
    let fetched = fetch(&scratch).and_then(|()| unpack(&scratch.join("cache/archives")));
    // The packages themselves are of no further use.
    drop(fs::remove_dir_all(&scratch));
    fetched?;
    find().ok_or_else(|| "Debian's packages have no python3 where it is expected".to_owned())
}

fn root() -> PathBuf {
    tools().join("debian")
}

fn find() -> Option<Unpacked> {
    let executable = root().join("usr/bin/python3");
    let wheels = fs::read_dir(root().join("usr/share/python-wheels")).ok()?;
    let is_pip = |path: &PathBuf| {
        path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("pip-"))
    };
    let pip = wheels.flatten().map(|entry| entry.path()).find(is_pip)?;
    executable.exists().then_some(Unpacked { executable, pip })
}

/// Downloads Python with all that it depends on, as if nothing were installed.
fn fetch(scratch: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{} cannot be used: {error}", scratch.display());
    for directory in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(scratch.join(directory)).map_err(failed)?;
    }
    fs::write(scratch.join("status"), "").map_err(failed)?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        for (option, path) in [("State::Lists", "lists"), ("State::Status", "status"), ("Cache", "cache")] {
            command.arg("-o").arg(format!("Dir::{option}={}", scratch.join(path).display()));
        }
        command.args(["-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=", "-qq", "-y"]).args(arguments);
        command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        command
    };
    step("asking Debian for its packages", &mut apt(&["update"]))?;
    let wanted = ["install", "--download-only", "--no-install-recommends", "python3", "python3-venv"];
    step("fetching Python from Debian", &mut apt(&wanted))
}

/// Unpacks packages, and gathers their libraries in one directory.
fn unpack(archives: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("the packages cannot be unpacked: {error}");
    for entry in fs::read_dir(archives).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if !name.ends_with(".deb") || OF_THE_SYSTEM.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let status = Command::new("dpkg").arg("-x").arg(&path).arg(root()).status().map_err(failed)?;
        if !status.success() {
            return Err(format!("dpkg did not unpack {name} ({status})"));
        }
    }
    let libraries = root().join("libraries");
    fs::create_dir_all(&libraries).map_err(failed)?;
    for parent in ["lib", "usr/lib"] {
        let Ok(systems) = fs::read_dir(root().join(parent)) else { continue };
        // Named after the machine, as in x86_64-linux-gnu.
        let is_system = |path: &PathBuf| path.to_string_lossy().contains("-linux-");
        for system in systems.flatten().map(|entry| entry.path()).filter(is_system) {
            for library in fs::read_dir(&system).map_err(failed)?.flatten() {
                if library.file_name().to_string_lossy().contains(".so") && library.path().is_file() {
                    fs::copy(library.path(), libraries.join(library.file_name())).map_err(failed)?;
                }
            }
        }
    }
    Ok(())
}
