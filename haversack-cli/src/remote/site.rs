//! Looks at the place where a store would begin: empty, a store, a store that is still arriving, or a place with other files.
//!
//! A store must have its place to itself. Beside other files its plain copies would meet files of the same name, and a full sync would
//! have to tell memory from documents. So a place with other files is refused, and a separate directory is offered.

use std::path::Path;

use futures_lite::StreamExt;
use haversack::log::StoreFile;
use haversack::store::{Backend, BackendExt, ErrorKind, Locator, block_on};
use haversack::sync::{SyncError, store_at};
use haversack_system::Backoff;

use super::open::{directory_of, is_vault, plain};
use super::record::Remote;
use crate::error::CommandError;
use crate::settings::Settings;
use crate::ui::paths::quoted;

/// The content of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// Nothing that counts: a store can begin there.
    Empty,
    /// A store.
    Store(StoreFile),
    /// A part of a store: the folder's sync client has not brought the rest yet.
    Arriving,
    /// Files that are not ours; the names of the first few.
    Occupied(Vec<String>),
}

/// A command that wants to use a place, for hints that name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The command without the address: `haversack init`.
    pub(crate) command: &'a str,
    /// The address as the user wrote it.
    pub(crate) typed: &'a str,
}

/// The most names of other files in a message.
const MAX_NAMED: usize = 3;

/// The directory that a store is offered among other files.
const OWN_NAME: &str = "haversack";

/// Files and directories that systems and sync clients leave in a folder by themselves, in lower case.
const LEFT_BY_SYSTEMS: [&str; 29] = [
    "$recycle.bin",
    ".849c9593-d756-4e56-8d6e-42412f2a707b",
    ".directory",
    ".documentrevisions-v100",
    ".dropbox",
    ".dropbox.attr",
    ".dropbox.cache",
    ".ds_store",
    ".fseventsd",
    ".localized",
    ".megaignore",
    ".nextcloudsync.log",
    ".obsidian",
    ".owncloudsync.log",
    ".shortcut-targets-by-id",
    ".spotlight-v100",
    ".stfolder",
    ".stignore",
    ".stversions",
    ".sync",
    ".temporaryitems",
    ".tmp.drivedownload",
    ".tmp.driveupload",
    ".trashes",
    "desktop.ini",
    "icon\r",
    "lost+found",
    "system volume information",
    "thumbs.db",
];

/// The beginnings of such names.
const BEGINNINGS: [&str; 7] = ["._", ".sync_", ".sync.ffs", ".trash-", ".~", ".haversack-", ".nfs"];

/// Looks at the place of a remote, and leaves nothing there.
pub(crate) fn look(settings: &Settings, remote: &Remote) -> Result<Site, CommandError> {
    let directory = directory_of(&remote.url);
    if directory.as_ref().is_some_and(|directory| !directory.exists()) {
        return Ok(Site::Empty);
    }
    let backend = plain(settings, remote)?;
    let is_replicated = is_vault(&remote.url);
    match block_on(store_at(backend.clone(), &Backoff::new())) {
        Ok(Some(store)) => return Ok(Site::Store(store)),
        Ok(None) => {}
        // In a replicated folder a file arrives in parts, or its name arrives before its content.
        Err(SyncError::Damaged { why, .. }) if is_replicated && !why.is_newer() => return Ok(Site::Arriving),
        Err(SyncError::Remote(error)) if is_replicated && error.kind() == ErrorKind::Unavailable => {
            return Ok(Site::Arriving);
        }
        Err(trouble) => return Err(trouble.into()),
    }
    if let Some(directory) = directory.filter(|_| is_replicated)
        && directory.join(".haversack").exists()
    {
        return Ok(Site::Arriving);
    }
    let log = Locator::reserved(".haversack/log").expect("one of our own names");
    if !block_on(backend.list(&log))?.entries.is_empty() {
        // The engine writes the file that names a store again, from the log.
        return Ok(Site::Empty);
    }
    let others = match directory_of(&remote.url) {
        Some(directory) => names_in(&directory)?,
        None => block_on(names_at(&*backend))?,
    };
    Ok(if others.is_empty() { Site::Empty } else { Site::Occupied(others) })
}

/// Returns the store at the place of a remote, or `None` if one can begin there.
///
/// Refuses a place that has other files, and one whose store is still arriving.
pub(crate) fn store_or_empty(
    settings: &Settings,
    remote: &Remote,
    asked: Asked<'_>,
) -> Result<Option<StoreFile>, CommandError> {
    match look(settings, remote)? {
        Site::Empty => Ok(None),
        Site::Store(store) => Ok(Some(store)),
        Site::Arriving => Err(arriving(asked)),
        Site::Occupied(names) => Err(occupied(asked, &names, is_vault(&remote.url))),
    }
}

/// Returns the error for a place whose store is still arriving.
pub(crate) fn arriving(Asked { command, typed }: Asked<'_>) -> CommandError {
    let again = format!("{command} {}", quoted(typed));
    CommandError::user(
        format!(
            "{typed} holds a part of a store: its sync client has not brought the rest yet. Nothing was changed"
        ),
        format!(
            "Wait until the client is done, then run it again: {again} (if no other machine keeps a store there: remove {} first)",
            quoted(&below(typed, ".haversack"))
        ),
    )
}

fn occupied(Asked { command, typed }: Asked<'_>, names: &[String], is_replicated: bool) -> CommandError {
    let offered = quoted(&below(typed, OWN_NAME));
    let late = match is_replicated {
        true => {
            ". If another machine keeps a store there: wait until the sync client has brought its .haversack, then run the same command again"
        }
        false => "",
    };
    CommandError::user(
        format!(
            "{typed} holds other files ({}) and no store of Haversack. Nothing was changed",
            names.join(", ")
        ),
        format!("Use a separate directory for the memory: {command} {offered}{late}"),
    )
}

fn below(typed: &str, name: &str) -> String {
    format!("{}/{name}", typed.trim_end_matches('/'))
}

/// Returns true if a file was left by a system, not by the user or a program of theirs.
fn is_left_by_a_system(name: &str) -> bool {
    let name = name.to_lowercase();
    LEFT_BY_SYSTEMS.contains(&name.as_str())
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || name == ".haversack"
}

/// Returns the first few names in a directory that count.
fn names_in(directory: &Path) -> Result<Vec<String>, CommandError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !is_left_by_a_system(&name) {
            names.push(name.escape_debug().to_string());
        }
    }
    Ok(first_few(names))
}

/// Returns the first few names at the top of a bucket that count.
async fn names_at(backend: &dyn Backend) -> Result<Vec<String>, haversack::store::Error> {
    let manifest = Locator::reserved("manifest.json").expect("one of our own names");
    if backend.exists(&manifest).await? {
        return Ok(vec![manifest.to_string()]);
    }
    let mut pages = backend.scan(&Locator::root(), None);
    while let Some(page) = pages.next().await {
        let page = page?;
        let found = page.infos.iter().map(|info| info.locator.to_string());
        let found = found.chain(page.odd.into_iter().map(|odd| odd.shown));
        let top = found.map(|key| key.split('/').next().unwrap_or_default().to_owned());
        let names: Vec<String> = top.filter(|name| !is_left_by_a_system(name)).collect();
        if !names.is_empty() {
            return Ok(first_few(names));
        }
    }
    Ok(Vec::new())
}

fn first_few(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_left_by_systems_do_not_count() {
        for name in [
            ".DS_Store",
            "desktop.ini",
            "Icon\r",
            ".dropbox",
            ".stfolder",
            ".stignore",
            ".obsidian",
            "._notes.md",
            ".sync_0a1b.db-wal",
            ".Trash-1000",
            ".~haversack-draft-0.tmp",
            "System Volume Information",
        ] {
            assert!(is_left_by_a_system(name), "{name}");
        }
        for name in ["manifest.json", "notes.md", ".git", ".env", "MEMORY.md", "sync", "icon"] {
            assert!(!is_left_by_a_system(name), "{name}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (text, expected) in [
            ("/home/me/Dropbox/haversack", "/home/me/Dropbox/haversack"),
            ("~/My Drive/haversack", "~/'My Drive/haversack'"),
            ("it's", r"'it'\''s'"),
            ("s3://bucket/x", "s3://bucket/x"),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
