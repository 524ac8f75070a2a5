//! Python and single programs from Debian's packages, unpacked beside the project instead of installed.
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
    let fetched = fetch(&scratch, &["python3", "python3-venv"], "Python")
        .and_then(|()| unpack(&scratch.join("cache/archives")));
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

/// Unpacks one package of Debian into a directory among the tools; returns the version that Debian has.
///
/// The package must need nothing but the system's C library.
pub(super) fn program(package: &str) -> Result<String, String> {
    let scratch = tools().join(format!("debian-{package}"));
    let unpacked = fetch_one(&scratch, package).and_then(|path| {
        let directory = tools().join(package);
        drop(fs::remove_dir_all(&directory));
        extract(&path, &directory)?;
        version(&path)
    });
    drop(fs::remove_dir_all(&scratch));
    unpacked
}

/// Unpacks packages of Debian, with all that they depend on, into a directory among the tools; returns the version of the first.
pub(super) fn tree(directory: &str, packages: &[&str], title: &str) -> Result<String, String> {
    let scratch = tools().join(format!("debian-{directory}"));
    let unpacked = fetch(&scratch, packages, title).and_then(|()| {
        let target = tools().join(directory);
        drop(fs::remove_dir_all(&target));
        let archives = scratch.join("cache/archives");
        extract_all(&archives, &target)?;
        let is_first = |path: &PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            name.starts_with(&format!("{}_", packages[0]))
        };
        let mut found = fs::read_dir(&archives).into_iter().flatten().flatten().map(|entry| entry.path());
        version(
            &found.find(is_first).ok_or_else(|| format!("apt-get downloaded no package {}", packages[0]))?,
        )
    });
    drop(fs::remove_dir_all(&scratch));
    unpacked
}

/// Downloads one package without anything that it depends on; returns where it is.
fn fetch_one(scratch: &Path, package: &str) -> Result<PathBuf, String> {
    let apt = Apt::new(scratch)?;
    step("asking Debian for its packages", &mut apt.command(&["update"]))?;
    let mut download = apt.command(&["download", package]);
    step(&format!("fetching {package} from Debian"), download.current_dir(scratch))?;
    let found = fs::read_dir(scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let is_package = |path: &PathBuf| path.extension() == Some(OsStr::new("deb"));
    let mut packages = found.flatten().map(|entry| entry.path()).filter(is_package);
    packages.next().ok_or_else(|| format!("apt-get downloaded no package {package}"))
}

/// Returns the version of a package.
fn version(path: &Path) -> Result<String, String> {
    let failed = |why: String| format!("{} does not say its version: {why}", path.display());
    let output = Command::new("dpkg-deb").arg("--field").arg(path).arg("Version").output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// `apt-get` with lists, status and cache in a directory of our own.
struct Apt<'d> {
    scratch: &'d Path,
}

impl Apt<'_> {
    /// Makes the directory. Its status says that nothing is installed.
    fn new(scratch: &Path) -> Result<Apt<'_>, String> {
        let failed = |error: std::io::Error| format!("{} cannot be used: {error}", scratch.display());
        for directory in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(scratch.join(directory)).map_err(failed)?;
        }
        fs::write(scratch.join("status"), "").map_err(failed)?;
        Ok(Apt { scratch })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("apt-get");
        for (option, path) in [("State::Lists", "lists"), ("State::Status", "status"), ("Cache", "cache")] {
            command.arg("-o").arg(format!("Dir::{option}={}", self.scratch.join(path).display()));
        }
        command.args(["-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=", "-qq", "-y"]).args(arguments);
        command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        command
    }
}

/// Downloads packages with all that they depend on, as if nothing were installed.
fn fetch(scratch: &Path, packages: &[&str], title: &str) -> Result<(), String> {
    let apt = Apt::new(scratch)?;
    step("asking Debian for its packages", &mut apt.command(&["update"]))?;
    let mut command = apt.command(&["install", "--download-only", "--no-install-recommends"]);
    step(&format!("fetching {title} from Debian"), command.args(packages))
}

/// Unpacks a package into a directory.
fn extract(package: &Path, directory: &Path) -> Result<(), String> {
    let name = package.display();
    let status = Command::new("dpkg").arg("-x").arg(package).arg(directory).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("dpkg did not unpack {name} ({status})")),
        Err(error) => Err(format!("{name} cannot be unpacked: {error}")),
    }
}

/// Unpacks packages, except those of the system.
fn extract_all(archives: &Path, directory: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("the packages cannot be unpacked: {error}");
    for entry in fs::read_dir(archives).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if !name.ends_with(".deb") || OF_THE_SYSTEM.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        extract(&path, directory)?;
    }
    Ok(())
}

/// Unpacks packages, and gathers their libraries in one directory.
fn unpack(archives: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("the packages cannot be unpacked: {error}");
    extract_all(archives, &root())?;
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
