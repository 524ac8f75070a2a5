//! Directories that other programs write, bound to prefixes of the store: `mounts.toml`.

use std::path::{Path, PathBuf};

use haversack::ids::ContentHash;
use haversack::store::Locator;
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::records;
use crate::settings::{Settings, shown};

/// A directory and what it is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The directory, by its real path.
    pub(crate) directory: PathBuf,
    /// Where in the store its files are.
    pub(crate) prefix: Locator,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    #[serde(default)]
    mount: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    directory: PathBuf,
    prefix: String,
}

fn place(settings: &Settings) -> PathBuf {
    settings.home.join("mounts.toml")
}

/// Returns the mounts of a home, in the order they were added.
pub(crate) fn of(settings: &Settings) -> Result<Vec<Mount>, CommandError> {
    let cure = "Mend it, or remove it and bind the directories again: haversack mount add DIRECTORY PREFIX";
    let lines: Lines = records::read(&place(settings), cure)?.unwrap_or_default();
    let mounts = lines.mount.into_iter().map(|line| {
        let prefix = Locator::parse(&line.prefix)
            .map_err(|error| CommandError::user(format!("{}: {error}", shown(&place(settings))), cure))?;
        Ok(Mount { directory: line.directory, prefix })
    });
    mounts.collect()
}

/// Writes them down.
pub(crate) fn save(settings: &Settings, mounts: &[Mount]) -> Result<(), CommandError> {
    let line = |mount: &Mount| Line { directory: mount.directory.clone(), prefix: mount.prefix.to_string() };
    records::write(
        &place(settings),
        &Lines { mount: mounts.iter().map(line).collect() },
        records::Weight::Durable,
    )
}

impl Mount {
    /// Returns the directory of what Haversack remembers about it.
    pub(crate) fn state(&self, settings: &Settings) -> PathBuf {
        let name = format!("{}\n{}", self.directory.display(), self.prefix);
        let name = &ContentHash::of(name.as_bytes()).to_string()[..16];
        settings.home.join("state").join(format!("mount-{name}"))
    }

    /// Tells whether the directory is there and may be looked into.
    pub(crate) fn is_there(&self) -> bool {
        self.directory.read_dir().is_ok()
    }
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
    let last = names.last().map(String::as_str).unwrap_or_default();
    if last == ".claude" {
        return Some("it holds settings and transcripts; bind the memory directory in it".to_owned());
    }
    let parent = names.len().checked_sub(2).and_then(|index| names.get(index));
    if last == "projects" && parent.is_some_and(|name| name == ".claude")
        || parent.is_some_and(|name| name == "projects") && names.iter().any(|name| name == ".claude")
    {
        return Some("it holds transcripts; bind the memory directory in it".to_owned());
    }
    if directory.parent().is_none() || std::env::home_dir().is_some_and(|home| home == directory) {
        return Some("it holds everything".to_owned());
    }
    None
}
