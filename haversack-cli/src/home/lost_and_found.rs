//! Files of a replicated folder that its client could not upload and put aside: Google Drive's lost-and-found.
//!
//! What was plainly made from a file of this memory is put into the folder once more, as a conflict copy, and taken in like any other; what
//! may be one is told. Nothing is ever changed where the client put it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use haversack::ids::ContentHash;
use haversack::store::{
    Backend, Bytes, Condition, ErrorKind, Locator, Place, block_on, put_aside, recognise,
};
use haversack::sync::Gate;
use haversack::vault::copies::copy_name;
use haversack::vault::lost::{Named, is_made_from};
use haversack::vault::{Bridge, Mine};

use crate::error::CommandError;
use crate::home::gate::NothingPrivate;
use crate::remote::{Remote, Vault};
use crate::settings::Settings;

/// How many files are looked at.
const MAX_FILES: usize = 10_000;

/// How deep they may be.
const MAX_DEPTH: usize = 16;

/// The largest file that is looked at: it is held in memory.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// How many copies of one file there may be in the folder at once.
const MAX_COPIES: usize = 32;

/// What a client could not upload, as far as it has to do with this memory and no log has it.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// What was plainly made from a file of this memory.
    pub(crate) edits: Vec<Edit>,
    /// What may be a file of this memory, by its name.
    pub(crate) doubtful: Vec<(PathBuf, Locator)>,
    /// What could not be looked at.
    pub(crate) unread: Vec<PathBuf>,
}

/// An edit that was not uploaded.
#[derive(Debug)]
pub(crate) struct Edit {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// The file that was edited.
    pub(crate) of: Locator,
    bytes: Bytes,
}

/// Looks at what the client of a folder could not upload.
pub(crate) fn look(
    settings: &Settings,
    remote: &Remote,
    vault: &Vault,
    bridge: &mut Bridge,
) -> Result<Lost, CommandError> {
    let mut lost = Lost::default();
    let surroundings = &settings.surroundings;
    let folder = haversack::store::directory_of(&remote.url)?;
    let Place::Synced { by, .. } = recognise(&folder, surroundings.user.as_deref()) else { return Ok(lost) };
    let aside = put_aside(&by, surroundings.user.as_deref(), surroundings.local_data.as_deref());
    if aside.is_empty() {
        return Ok(lost);
    }
    let heads = bridge.heads().clone();
    let named = Named::of(block_on(bridge.logs())?.contents(&heads));
    let gate = NothingPrivate::of(settings)?;
    for root in aside {
        for path in files_below(&root, &mut lost.unread) {
            let below = path.strip_prefix(&root).unwrap_or(&path);
            let names: Vec<&str> = below.iter().filter_map(|name| name.to_str()).collect();
            let candidates = named.candidates(&names);
            let Some(first) = candidates.first() else { continue };
            let bytes = match std::fs::metadata(&path).map(|about| about.len()) {
                Ok(size) if size <= MAX_BYTES => std::fs::read(&path).map(Bytes::from),
                Ok(_) => continue,
                Err(error) => Err(error),
            };
            match bytes {
                Err(_) => lost.unread.push(path),
                Ok(bytes) if named.has(&bytes) => {}
                Ok(bytes) if candidates.len() == 1 && is_edit(&*vault.folder, &gate, first, &bytes)? => {
                    lost.edits.push(Edit { path, of: first.clone(), bytes });
                }
                Ok(_) => lost.doubtful.push((path, first.clone())),
            }
        }
    }
    Ok(lost)
}

/// Puts the edits that were not uploaded into the folder as conflict copies; returns what they are called there, and what is in them.
pub(crate) fn bring_back(
    vault: &Vault,
    lost: &Lost,
) -> Result<BTreeSet<(Locator, ContentHash)>, CommandError> {
    let mut copies = BTreeSet::new();
    for edit in &lost.edits {
        for number in 1..=MAX_COPIES {
            let Some(copy) = copy_name(&edit.of, number) else { break };
            match block_on(vault.folder.write(&copy, edit.bytes.clone(), Condition::Absent)) {
                Ok(_) => {}
                // It was put there before, or is another one.
                Err(error) if error.kind() == ErrorKind::Conflict => match block_on(vault.folder.read(&copy))
                {
                    Ok(there) if there.bytes == edit.bytes => {}
                    _ => continue,
                },
                // This folder cannot hold the name.
                Err(error) if error.kind() == ErrorKind::Invalid => break,
                Err(error) => return Err(error.into()),
            }
            copies.insert((copy, ContentHash::of(&edit.bytes)));
            break;
        }
    }
    Ok(copies)
}

/// Returns what somebody here wrote, with some files more.
pub(crate) fn with_these(mine: &Mine, more: BTreeSet<(Locator, ContentHash)>) -> Mine {
    match mine {
        Mine::Everything => Mine::Everything,
        Mine::Nothing => Mine::These(more),
        Mine::These(these) => Mine::These(these.union(&more).cloned().collect()),
    }
}

/// Tells whether a content is an edit of a file that is in the folder, and may be there.
fn is_edit(
    folder: &dyn Backend,
    gate: &NothingPrivate,
    locator: &Locator,
    bytes: &Bytes,
) -> Result<bool, CommandError> {
    let ours = match block_on(folder.read(locator)) {
        Ok(ours) => ours.bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unavailable) => {
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    let (Ok(text), Ok(ours)) = (std::str::from_utf8(bytes), std::str::from_utf8(&ours)) else {
        return Ok(false);
    };
    Ok(is_made_from(text, ours) && gate.holds(locator, bytes).is_none())
}

/// Returns the files below a directory, without following links, and notes what cannot be read.
fn files_below(root: &Path, unread: &mut Vec<PathBuf>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            unread.push(directory);
            continue;
        };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => directories.push((entry.path(), depth + 1)),
                Ok(kind) if kind.is_file() && files.len() < MAX_FILES => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort_unstable();
    files
}
