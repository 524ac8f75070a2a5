//! Files of packages: copying, packing with fixed times, hashing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::toolchain::commit_time;

/// Makes a directory anew, without the files of an earlier run.
pub(crate) fn fresh(directory: &Path) -> Result<PathBuf, String> {
    let made = match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir_all(directory),
    };
    made.map_err(|error| format!("{} cannot be made: {error}", directory.display()))?;
    Ok(directory.to_owned())
}

/// Copies a file or a directory with everything in it; the directory of the copy is made if need be.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{} was not copied to {}: {error}", from.display(), to.display());
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

/// Packs one directory of a directory as `<name>.tar.gz`. The bytes depend on the time of the commit, and on names, contents and the permission to execute.
///
/// The archive is written here, because the `tar` of a Mac cannot sort names or fix times.
pub(crate) fn pack(parent: &Path, directory: &str, archive: &Path) -> Result<(), String> {
    let time = commit_time()?;
    let time = time.parse().map_err(|_| format!("{time:?} is no time of a commit"))?;
    let mut builder = tar::Builder::new(Vec::new());
    let packed = add(&mut builder, &parent.join(directory), Path::new(directory), time)
        .and_then(|()| builder.into_inner())
        .map_err(|error| format!("{directory} was not packed: {error}"))?;
    // gzip would write the time of a file, but has none of its standard input.
    let unpacked = archive.with_extension("unpacked");
    let files =
        fs::write(&unpacked, packed).and_then(|()| Ok((File::open(&unpacked)?, File::create(archive)?)));
    let (from, to) = files.map_err(|error| format!("{} was not written: {error}", archive.display()))?;
    let compressed = quietly("gzip", Command::new("gzip").arg("-9n").stdin(from).stdout(to));
    drop(fs::remove_file(&unpacked));
    compressed.map(drop)
}

/// Adds a file, or a directory with everything in it, in the order of names.
fn add(builder: &mut tar::Builder<Vec<u8>>, from: &Path, name: &Path, time: u64) -> io::Result<()> {
    let found = fs::metadata(from)?;
    let mut header = tar::Header::new_ustar();
    header.set_mtime(time);
    if found.is_dir() {
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        builder.append_data(&mut header, name, io::empty())?;
        let mut names: Vec<_> =
            fs::read_dir(from)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
        names.sort();
        return names
            .iter()
            .try_for_each(|inside| add(builder, &from.join(inside), &name.join(inside), time));
    }
    header.set_mode(if is_executable(&found) { 0o755 } else { 0o644 });
    header.set_size(found.len());
    builder.append_data(&mut header, name, File::open(from)?)
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
fn is_executable(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_found: &fs::Metadata) -> bool {
    true
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_depends_on_names_and_contents_only() {
        let scratch = fresh(&crate::run::project().join("target/xtask-archive")).expect("made");
        let packed = |turn: &str, names: [&str; 3]| {
            let parent = scratch.join(turn);
            for name in names {
                write(&parent.join("package").join(name), name).expect("written");
            }
            make_executable(&parent.join("package/bin/haversack")).expect("made executable");
            let archive = scratch.join(format!("{turn}.tar.gz"));
            pack(&parent, "package", &archive).expect("packed");
            archive
        };
        let one = packed("one", ["bin/haversack", "README.md", "man/haversack.1"]);
        let other = packed("other", ["man/haversack.1", "bin/haversack", "README.md"]);
        assert_eq!(fs::read(&one).expect("there"), fs::read(other).expect("there"));
        let listed = quietly("tar", Command::new("tar").arg("-tzvf").arg(&one)).expect("tar reads it");
        let line = |mode: &str, name: &str| {
            listed.lines().any(|line| line.starts_with(mode) && line.ends_with(name))
        };
        assert!(line("-rwxr-xr-x", "package/bin/haversack"), "{listed}");
        assert!(line("-rw-r--r--", "package/README.md"), "{listed}");
    }
}
