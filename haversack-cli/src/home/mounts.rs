//! Directories that other programs write, bound to prefixes of the store: `mounts.toml`.
//!
//! A bound directory is named by its real path. If that path leads through a link later, a repository or another program may have put
//! the link there: no face of ours reads or writes through it, and the next sync unbinds the directory and tells the user.

use std::path::{Path, PathBuf};

use haversack::ids::ContentHash;
use haversack::store::Locator;
use serde::{Deserialize, Serialize};

use crate::agents::claude_code::ClaudeCode;
use crate::error::CommandError;
use crate::records;
use crate::settings::{Settings, shown};

/// A directory and its prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The directory, by its real path.
    pub(crate) directory: PathBuf,
    /// The place of its files in the store.
    pub(crate) prefix: Locator,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    #[serde(default)]
    mount: Vec<Line>,
    /// Directories that we unbound because they became links; kept until they are bound again or let go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unbound: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    directory: PathBuf,
    prefix: String,
}

fn place(settings: &Settings) -> PathBuf {
    settings.store().mounts()
}

fn read(settings: &Settings) -> Result<(Vec<Mount>, Vec<Mount>), CommandError> {
    let cure = "Mend it, or remove it and bind the directories again: haversack mount add DIRECTORY PREFIX";
    let lines: Lines = records::read(&place(settings), cure)?.unwrap_or_default();
    let parse = |line: Line| {
        let prefix = Locator::parse(&line.prefix)
            .map_err(|error| CommandError::user(format!("{}: {error}", shown(&place(settings))), cure))?;
        Ok(Mount { directory: line.directory, prefix })
    };
    let mounts = lines.mount.into_iter().map(parse).collect::<Result<_, CommandError>>()?;
    let unbound = lines.unbound.into_iter().map(parse).collect::<Result<_, CommandError>>()?;
    Ok((mounts, unbound))
}

fn write(settings: &Settings, mounts: &[Mount], unbound: &[Mount]) -> Result<(), CommandError> {
    let line = |mount: &Mount| Line { directory: mount.directory.clone(), prefix: mount.prefix.to_string() };
    let lines =
        Lines { mount: mounts.iter().map(line).collect(), unbound: unbound.iter().map(line).collect() };
    records::write(&place(settings), &lines, records::Weight::Durable)
}

/// Returns the mounts of a home, in the order they were added.
pub(crate) fn of(settings: &Settings) -> Result<Vec<Mount>, CommandError> {
    Ok(read(settings)?.0)
}

/// Returns the directories that we unbound because they became links.
pub(crate) fn unbound(settings: &Settings) -> Result<Vec<Mount>, CommandError> {
    Ok(read(settings)?.1)
}

/// Saves the mounts of a home.
pub(crate) fn save(settings: &Settings, mounts: &[Mount]) -> Result<(), CommandError> {
    let unbound = read(settings).map(|(_, unbound)| unbound).unwrap_or_default();
    let is_bound = |other: &Mount| mounts.iter().any(|mount| mount.directory == other.directory);
    let unbound: Vec<Mount> = unbound.into_iter().filter(|mount| !is_bound(mount)).collect();
    write(settings, mounts, &unbound)
}

/// Unbinds every directory that became a link since it was bound; returns them. Their files stay, here and on other machines.
pub(crate) fn unbind_links(settings: &Settings) -> Result<Vec<Mount>, CommandError> {
    let is_link = |mount: &Mount| mount.directory.exists() && !is_real(&mount.directory);
    let (mounts, mut unbound) = read(settings)?;
    let (links, kept): (Vec<Mount>, Vec<Mount>) = mounts.into_iter().partition(is_link);
    if !links.is_empty() {
        unbound.retain(|mount| !links.contains(mount));
        unbound.extend(links.iter().cloned());
        write(settings, &kept, &unbound)?;
    }
    Ok(links)
}

/// Forgets that a directory was unbound; returns true if it was.
pub(crate) fn forget_unbound(settings: &Settings, directory: &Path) -> Result<bool, CommandError> {
    let (mounts, mut unbound) = read(settings)?;
    let before = unbound.len();
    unbound.retain(|mount| mount.directory != directory);
    if unbound.len() == before {
        return Ok(false);
    }
    write(settings, &mounts, &unbound)?;
    Ok(true)
}

/// Deletes a directory and those below it, as far as they are empty. Links are not followed.
fn remove_empty(directory: &Path) {
    if !directory.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return;
    }
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        remove_empty(&entry.path());
    }
    // A directory with files is not deleted: this call refuses it.
    drop(std::fs::remove_dir(directory));
}

/// Returns true if a path names a directory without leading through a link.
pub(crate) fn is_real(directory: &Path) -> bool {
    directory.is_dir() && directory.canonicalize().is_ok_and(|real| real == directory)
}

/// The rest of our own directory in a bound directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// The directory is gone.
    Nothing,
    /// The directory holds files, so it stays.
    Files(PathBuf),
}

impl Mount {
    /// Deletes our own directory `.haversack` in the bound directory, unless it holds files.
    pub(crate) fn remove_staging(&self) -> Leftover {
        let own = self.directory.join(".haversack");
        remove_empty(&own);
        if own.symlink_metadata().is_ok() { Leftover::Files(own) } else { Leftover::Nothing }
    }

    /// Returns the directory of what Haversack remembers about it.
    pub(crate) fn state(&self, settings: &Settings) -> PathBuf {
        settings.store().bound_state(&self.state_name())
    }

    /// Returns the name of that directory.
    pub(crate) fn state_name(&self) -> String {
        let name = format!("{}\n{}", self.directory.display(), self.prefix);
        let name = &ContentHash::of(name.as_bytes()).to_string()[..16];
        format!("mount-{name}")
    }

    /// Returns true if the directory is there, may be read, and is not reached through a link.
    pub(crate) fn is_there(&self) -> bool {
        self.directory.read_dir().is_ok() && is_real(&self.directory)
    }
}

/// The names of directories in which agents keep their settings, tools and transcripts.
const AGENT_DIRECTORIES: [&str; 4] = [".claude", ".codex", ".cursor", ".gemini"];

/// Returns true if a path below an agent's directory is one that holds memory and nothing else.
fn is_agent_memory(below: &[&str]) -> bool {
    matches!(below, ["projects", _, "memory", ..] | ["agent-memory" | "agent-memory-local" | "memories", ..])
}

/// Returns why a directory is never bound; `None` if it may be.
///
/// Keys, settings and transcripts do not leave this machine, nor what Haversack itself keeps.
pub(crate) fn refused(settings: &Settings, directory: &Path) -> Option<String> {
    let home = settings.home.canonicalize().unwrap_or_else(|_| settings.home.clone());
    if directory.starts_with(&home) || home.starts_with(directory) {
        return Some("it is Haversack's own home, or around it".to_owned());
    }
    let names: Vec<String> = directory.iter().map(|name| name.to_string_lossy().to_lowercase()).collect();
    let private =
        [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".config", ".git"];
    if let Some(name) = names.iter().find(|name| private.contains(&name.as_str())) {
        return Some(format!("{name} holds keys or settings"));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // Claude Code's own directory may have another name.
    let own = ClaudeCode::of(settings, None).and_then(|claude| claude.directory.canonicalize().ok());
    let inside_own = own.filter(|own| directory.starts_with(own)).map(|own| own.iter().count());
    let inside = names.iter().rposition(|name| AGENT_DIRECTORIES.contains(name)).map(|at| at + 1);
    if inside_own.or(inside).is_some_and(|from| !is_agent_memory(&names[from..])) {
        return Some(
            "an agent keeps settings, tools or transcripts there; bind the memory directory in it".to_owned(),
        );
    }
    if directory.parent().is_none() || std::env::home_dir().is_some_and(|home| home.starts_with(directory)) {
        return Some("it holds everything".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staging_directories_are_deleted_and_texts_put_aside_stay() {
        let directory = tempfile::TempDir::new().expect("made");
        let mount = Mount { directory: directory.path().to_owned(), prefix: Locator::root() };
        let own = directory.path().join(".haversack");
        std::fs::create_dir_all(own.join("incoming")).expect("made");
        assert_eq!(mount.remove_staging(), Leftover::Nothing);
        assert!(!own.exists());
        std::fs::create_dir_all(own.join("incoming")).expect("made");
        std::fs::create_dir_all(own.join("kept")).expect("made");
        std::fs::write(own.join("kept/1.md"), "theirs").expect("written");
        assert_eq!(mount.remove_staging(), Leftover::Files(own.clone()));
        assert!(own.join("kept/1.md").exists() && !own.join("incoming").exists());
    }
}
