//! Our changes in files of other programs, with the text before them. If no other program changed a file since, it is restored byte for byte.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use haversack::ids::ContentHash;
use serde::{Deserialize, Serialize};

use crate::agents::claude_code::wiring::Unfit;
use crate::error::CommandError;
use crate::records;
use crate::settings::{Settings, shown};

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) file: PathBuf,
    /// The text before; `None` if there is no file.
    pub(crate) before: Option<String>,
    /// The text after; `None` to delete the file.
    pub(crate) after: Option<String>,
}

/// The record of our changes: `state/agents/NAME.toml`.
pub(crate) struct Ledger {
    place: PathBuf,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    #[serde(default)]
    file: Vec<Changed>,
}

/// A file that we changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changed {
    path: PathBuf,
    /// The text before; `None` if there was no file.
    before: Option<String>,
    /// The hash of what we wrote.
    after: String,
}

impl Ledger {
    /// Returns the ledger of a name.
    pub(crate) fn of(settings: &Settings, name: &str) -> Ledger {
        Ledger { place: settings.home.join("state").join("agents").join(format!("{name}.toml")) }
    }

    /// Returns the text of a file without our part: the text before our change if it was not changed since, or else the present text without ours.
    pub(crate) fn without(
        &self,
        file: &Path,
        now: &str,
        without_ours: impl FnOnce(&str) -> Result<String, Unfit>,
    ) -> Result<Option<String>, Unfit> {
        let hash = hash(now);
        let record = self.record();
        match record.file.into_iter().find(|changed| changed.path == file && changed.after == hash) {
            Some(changed) => Ok(changed.before),
            None => without_ours(now).map(Some),
        }
    }

    /// Returns true if anything was written down. The ledger is not read for that: it may hold large files.
    pub(crate) fn exists(&self) -> bool {
        self.place.exists()
    }

    /// Returns true if we changed a file, even if another program changed it since.
    pub(crate) fn has_changed(&self, file: &Path) -> bool {
        self.record().file.iter().any(|changed| changed.path == file)
    }

    /// Returns true if a text is the one that we wrote into a file.
    pub(crate) fn has_written(&self, file: &Path, text: &str) -> bool {
        let hash = hash(text);
        self.record().file.iter().any(|changed| changed.path == file && changed.after == hash)
    }

    /// Returns the text of a file before we changed it; `None` if the file was not there.
    pub(crate) fn before(&self, file: &Path) -> Option<String> {
        self.record().file.into_iter().find(|changed| changed.path == file)?.before
    }

    /// Returns our changes, if no other program changed the files since.
    pub(crate) fn changed(&self) -> Result<Vec<Change>, CommandError> {
        let mut changes = Vec::new();
        for Changed { path, before, after } in self.record().file {
            if let Some(now) = read(&path)?.filter(|now| hash(now) == after) {
                changes.push(Change { file: path, before, after: Some(now) });
            }
        }
        Ok(changes)
    }

    /// Makes changes, and writes down what was there.
    pub(crate) fn make(
        &self,
        changes: &[Change],
        without_ours: impl Fn(&Path, &str) -> Result<String, Unfit>,
    ) -> Result<(), CommandError> {
        let mut record = self.record();
        for Change { file, before, after } in changes {
            // The file was not changed since we wrote it, or it becomes again the text that we wrote.
            let hashes = [before.as_deref().map(hash), after.as_deref().map(hash)];
            let earlier = record
                .file
                .iter()
                .find(|changed| changed.path == *file && hashes.contains(&Some(changed.after.clone())));
            let before = match (earlier, before) {
                (Some(earlier), _) => earlier.before.clone(),
                // Our entries were there before, from a setup without a record: the text before it is the text without them.
                (None, Some(before)) => Some(without_ours(file, before).unwrap_or_else(|_| before.clone())),
                (None, None) => None,
            };
            record.file.retain(|changed| changed.path != *file);
            record.file.push(Changed {
                path: file.clone(),
                before,
                after: hash(after.as_deref().unwrap_or_default()),
            });
        }
        // First: if what follows is cut short, it is known what was there.
        self.write(&record)?;
        changes.iter().try_for_each(carry_out)
    }

    /// Takes changes back, and forgets what was there.
    pub(crate) fn take_back(&self, changes: &[Change]) -> Result<(), CommandError> {
        changes.iter().try_for_each(carry_out)?;
        let mut record = self.record();
        record.file.retain(|changed| changes.iter().all(|change| change.file != changed.path));
        match record.file.is_empty() {
            true => self.forget(),
            false => self.write(&record),
        }
    }

    /// Forgets everything that was written down.
    pub(crate) fn forget(&self) -> Result<(), CommandError> {
        records::remove(&self.place)
    }

    fn record(&self) -> Record {
        records::read(&self.place, "").ok().flatten().unwrap_or_default()
    }

    fn write(&self, record: &Record) -> Result<(), CommandError> {
        records::write(&self.place, record, records::Weight::Durable)
    }
}

/// Returns what is in a file; `None` if it is not there.
pub(crate) fn read(file: &Path) -> Result<Option<String>, CommandError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError {
            source: Some(error.into()),
            ..CommandError::user(format!("{} could not be read", shown(file)), "Give this user access to it")
        }),
    }
}

/// Writes a file whole or not at all; what a link leads to is written, and the link stays.
fn carry_out(change: &Change) -> Result<(), CommandError> {
    let file = change.file.canonicalize().unwrap_or_else(|_| change.file.clone());
    let write = || -> io::Result<()> {
        let Some(text) = &change.after else { return fs::remove_file(&change.file) };
        let directory = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let draft = file.with_extension(format!("haversack-{}", std::process::id()));
        let permissions = fs::metadata(&file).map(|metadata| metadata.permissions());
        let mut out = fs::File::create(&draft)?;
        let written = out.write_all(text.as_bytes()).and_then(|()| out.sync_all());
        let written = written.and_then(|()| {
            permissions.map_or(Ok(()), |permissions| fs::set_permissions(&draft, permissions))
        });
        written.and_then(|()| fs::rename(&draft, &file)).inspect_err(|_| drop(fs::remove_file(&draft)))
    };
    write().map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("{} could not be written; it is as it was", shown(&change.file)),
            "Give this user access to it, and run the same command again",
        )
    })
}

fn hash(text: &str) -> String {
    ContentHash::of(text.as_bytes()).to_string()
}
