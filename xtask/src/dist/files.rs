//! Files of packages: copying, packing with fixed times, hashing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::toolchain::commit_time;

/// Makes a directory anew, without the files of an earlier run.
pub(crate) fn fresh(directory: &Path) -> Result<PathBuf, String> {
    let made = match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir_all(directory),
    };
    made.map_err(|error| format!("{} cannot be made: {error}", directory.display()))?;
    Ok(directory.to_owned())
}

/// Copies a file or a directory with everything in it; the directory of the copy is made if need be.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed =
        |error: std::io::Error| format!("{} was not copied to {}: {error}", from.display(), to.display());
    if from.is_dir() {
        fs::create_dir_all(to).map_err(failed)?;
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() != "__pycache__" {
                copy(&entry.path(), &to.join(entry.file_name()))?;
            }
        }
        return Ok(());
    }
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).and_then(|()| fs::copy(from, to)).map(drop).map_err(failed)
}

/// Writes a text; the directory is made if need be.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{} was not written: {error}", path.display()))
}

/// Packs one directory of a directory as `<name>.tar.gz`. The bytes depend on names, contents and modes only.
pub(crate) fn tar(parent: &Path, directory: &str, archive: &Path) -> Result<(), String> {
    let mut tar = Command::new("tar");
    tar.current_dir(parent)
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"])
        .arg(format!("--mtime=@{}", commit_time()?))
        .args(["--use-compress-program=gzip -9n", "-cf"])
        .arg(archive)
        .arg(directory);
    quietly("tar", &mut tar).map(drop)
}

/// Runs a program and returns what it printed; the error has what it said.
pub(crate) fn quietly(what: &str, command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{what}: {command:?} did not start: {error}"))?;
    if !output.status.success() {
        let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        return Err(format!("{what}: failed ({})\n{}{}", output.status, said[0], said[1]));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the SHA-256 hash of a file.
pub(crate) fn sha256(path: &Path) -> Result<String, String> {
    let (program, arguments): (_, &[&str]) =
        if cfg!(target_os = "macos") { ("shasum", &["-a", "256"]) } else { ("sha256sum", &[]) };
    let printed = quietly(program, Command::new(program).args(arguments).arg(path))?;
    let hash = printed.split_whitespace().next().unwrap_or_default().trim_start_matches('\\');
    Ok(hash.to_owned())
}

/// Returns the name of a file, its size and the beginning of its hash, as one line.
pub(crate) fn described(path: &Path) -> Result<String, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.len();
    Ok(format!("{name:<72} {bytes:>10} bytes  sha256 {}", &sha256(path)?[..16]))
}

#[cfg(unix)]
pub(crate) fn make_executable(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("{} cannot be made executable: {error}", path.display()))
}

#[cfg(not(unix))]
pub(crate) fn make_executable(_path: &Path) -> Result<(), String> {
    Ok(())
}
