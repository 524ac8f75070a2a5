//! A memory in one file: `export` writes it, `import` takes it in.
//!
//! The file is a tar archive, compressed by Zstandard. Its first entry is `manifest.json`, which lists every file with its size and hash. The contents
//! follow in the order of the manifest, at `memory/<path>`, or at `long-names/<number>` where tar has no room for the name.
//!
//! An import reads the archive twice. The first time it checks everything and writes nothing:
//! - every entry is the one that the manifest names next, a plain file of the size and hash that the manifest says;
//! - every path is a locator as we write it: no `..`, no absolute path, no name of ours;
//! - the number of files and bytes is within bounds, so that a small archive cannot unpack to a huge one.
//!
//! The second time it writes. A file that is there already with other words is merged by its kind, without a base: the lines of both stay. So a newer file
//! is never overwritten, and importing twice is the same as once.

mod frames;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use haversack::ids::ContentHash;
use haversack::merge::{self, Side};
use haversack::store::{BackendExt, Bytes, ErrorKind, Locator, block_on};
use haversack::{Change, Memory};
use serde::{Deserialize, Serialize};

use self::frames::{FrameReader, FrameWriter};
use crate::error::CommandError;
use crate::home::kinds;
use crate::home::store::{open, open_to_look};
use crate::records::private;
use crate::settings::{Settings, shown};

/// The version of the format.
pub(crate) const FORMAT: u32 = 1;

/// The first bytes of a Zstandard frame.
const ZSTANDARD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

const MANIFEST: &str = "manifest.json";

/// The most files of an archive.
const MAX_FILES: usize = 1_000_000;

/// The largest file of an archive, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024 * 1024;

/// The most bytes of all files together.
const MAX_BYTES: u64 = 64 * 1024 * 1024 * 1024;

/// The largest manifest, in bytes.
const MAX_MANIFEST_BYTES: u64 = 256 * 1024 * 1024;

/// The longest name that a plain tar header holds.
const MAX_NAME_BYTES: usize = 100;

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    files: Vec<Listed>,
}

/// A file of an archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Listed {
    path: String,
    size: u64,
    hash: String,
    /// The name of its entry, where that is not `memory/<path>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
}

impl Listed {
    fn entry(&self) -> String {
        self.entry.clone().unwrap_or_else(|| format!("memory/{}", self.path))
    }
}

/// The result of an export.
pub(crate) struct Exported {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

/// The result of an import.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Imported {
    /// Files that were not there.
    pub(crate) created: Vec<Locator>,
    /// Files that were there with other words: both are in it now.
    pub(crate) merged: Vec<Locator>,
    /// The number of files that were there already.
    pub(crate) same: usize,
    /// Contents that cannot be merged, in a copy beside the file that is here.
    pub(crate) copies: Vec<Locator>,
    /// Files that could not be written, and why.
    pub(crate) refused: Vec<(Locator, String)>,
}

/// Writes all files of the memory below a place into an archive.
pub(crate) fn export(settings: &Settings, place: &Locator, target: &Path) -> Result<Exported, CommandError> {
    if target.try_exists().unwrap_or(true) {
        let message = format!("{} exists already, and was not overwritten", shown(target));
        return Err(CommandError::user(message, "Name another file"));
    }
    let memory = open_to_look(settings)?;
    let mut files = Vec::new();
    let mut bytes = 0;
    for (number, locator) in block_on(memory.files().list_all(place))?.into_iter().enumerate() {
        let content = block_on(memory.files().read(&locator))?.bytes;
        let is_long = format!("memory/{locator}").len() > MAX_NAME_BYTES;
        let entry = is_long.then(|| format!("long-names/{number:06}"));
        bytes += content.len() as u64;
        files.push(Listed {
            path: locator.to_string(),
            size: content.len() as u64,
            hash: ContentHash::of(&content).to_string(),
            entry,
        });
    }
    let manifest = Manifest { format: FORMAT, files };
    let part = target.with_extension("part");
    let written = write(&memory, &manifest, &part).and_then(|()| Ok(std::fs::rename(&part, target)?));
    if written.is_err() {
        drop(std::fs::remove_file(&part));
    }
    written.map(|()| Exported { files: manifest.files.len(), bytes })
}

fn write(memory: &Memory, manifest: &Manifest, part: &Path) -> Result<(), CommandError> {
    let mut archive = tar::Builder::new(FrameWriter::new(private::create_new(part)?));
    let mut add = |name: &str, content: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_entry_type(tar::EntryType::Regular);
        archive.append_data(&mut header, name, content)
    };
    let text = serde_json::to_vec(manifest).map_err(|error| CommandError::ours(error.to_string()))?;
    add(MANIFEST, &text)?;
    for listed in &manifest.files {
        let locator = Locator::parse(&listed.path).map_err(|error| CommandError::ours(error.to_string()))?;
        let content = block_on(memory.files().read(&locator))?.bytes;
        if ContentHash::of(&content).to_string() != listed.hash {
            return Err(CommandError::user(
                format!("{locator} changed while it was exported"),
                "Run the same command again",
            ));
        }
        add(&listed.entry(), &content)?;
    }
    archive.into_inner()?.finish()?.sync_all()?;
    Ok(())
}

/// Takes an archive in.
pub(crate) fn import(settings: &Settings, source: &Path) -> Result<Imported, CommandError> {
    check(source)?;
    let memory = open(settings)?;
    let kinds = kinds::load(settings)?;
    let mut imported = Imported::default();
    each(source, &mut |locator, theirs| {
        let done = take_in(&memory, &kinds, &locator, theirs, &mut imported);
        if let Err(error) = done {
            imported.refused.push((locator, error.in_one_line()));
        }
        Ok(())
    })?;
    Ok(imported)
}

fn take_in(
    memory: &Memory,
    kinds: &haversack::kind::Kinds,
    locator: &Locator,
    theirs: Bytes,
    imported: &mut Imported,
) -> Result<(), CommandError> {
    let put = |locator: &Locator, expected: Option<Bytes>, bytes: Bytes| {
        block_on(memory.batch(&[Change::Put { locator: locator.clone(), expected, bytes: Some(bytes) }]))
    };
    let ours = match block_on(memory.files().read(locator)) {
        Ok(object) => object.bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let _ = put(locator, None, theirs)?;
            imported.created.push(locator.clone());
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    if ours == theirs {
        imported.same += 1;
        return Ok(());
    }
    let rule = kinds.rule(locator, [&ours[..], &theirs[..]]);
    let side = |bytes| Side { bytes, device: "the archive" };
    let merged = merge::merge(rule, None, Side { bytes: &ours, device: "this machine" }, side(&theirs));
    if merged.copy.is_some() {
        // It cannot be merged: the file that is here stays.
        let copy =
            merge::conflict_name(locator, &theirs).map_err(|error| CommandError::ours(error.to_string()))?;
        if block_on(memory.files().exists(&copy))? {
            imported.same += 1;
        } else {
            let _ = put(&copy, None, theirs)?;
            imported.copies.push(copy);
        }
    } else if merged.bytes == ours {
        imported.same += 1;
    } else {
        let _ = put(locator, Some(ours), merged.bytes)?;
        imported.merged.push(locator.clone());
    }
    Ok(())
}

/// Checks an archive, and writes nothing.
fn check(source: &Path) -> Result<(), CommandError> {
    each(source, &mut |_, _| Ok(()))
}

fn refused(source: &Path, why: impl std::fmt::Display) -> CommandError {
    CommandError::user(
        format!("{} was not imported: {why}", shown(source)),
        "Export it again on the machine it comes from: haversack export FILE.tar.zst",
    )
}

/// Calls a function with every file of an archive, in order. Stops at the first thing that is not as the manifest says.
fn each(
    source: &Path,
    take: &mut dyn FnMut(Locator, Bytes) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let file = File::open(source).map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("{} could not be read", shown(source)),
            "Name a file that haversack export wrote",
        )
    })?;
    let mut file = BufReader::new(file);
    if !file.fill_buf().map_err(|error| refused(source, error))?.starts_with(&ZSTANDARD) {
        return Err(refused(source, "it is not a .tar.zst file"));
    }
    let mut archive = tar::Archive::new(FrameReader::new(file));
    // Raw entries: extended headers, links and devices are entries that the manifest does not name.
    let entries = archive.entries().map_err(|error| refused(source, error))?.raw(true);
    let mut expected: Option<std::vec::IntoIter<Listed>> = None;
    for entry in entries {
        let mut entry = entry.map_err(|error| refused(source, error))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type() != tar::EntryType::Regular {
            let shown = haversack::display::one_line(&name);
            return Err(refused(source, format!("its entry {shown} is not a plain file")));
        }
        match &mut expected {
            None => {
                let text = content(&mut entry, &name, MANIFEST, MAX_MANIFEST_BYTES)
                    .map_err(|why| refused(source, why))?;
                expected = Some(manifest(&text).map_err(|why| refused(source, why))?.into_iter());
            }
            Some(listed) => {
                let Some(listed) = listed.next() else {
                    return Err(refused(source, "it has an entry that its manifest does not list"));
                };
                let bytes = content(&mut entry, &name, &listed.entry(), listed.size)
                    .map_err(|why| refused(source, why))?;
                if bytes.len() as u64 != listed.size || ContentHash::of(&bytes).to_string() != listed.hash {
                    return Err(refused(source, format!("the content of {} is damaged", listed.path)));
                }
                let locator = Locator::parse(&listed.path).map_err(|why| refused(source, why))?;
                take(locator, Bytes::from(bytes))?;
            }
        }
    }
    match expected {
        None => Err(refused(source, "it is empty")),
        Some(mut left) => match left.next() {
            Some(missing) => Err(refused(source, format!("{} is missing at its end", missing.path))),
            None => Ok(()),
        },
    }
}

/// Reads an entry that must have a name, and be no longer than so many bytes.
fn content(entry: &mut impl Read, name: &str, expected: &str, most: u64) -> Result<Vec<u8>, String> {
    if name != expected {
        return Err(format!(
            "it has {} where {} is expected",
            haversack::display::one_line(name),
            haversack::display::one_line(expected)
        ));
    }
    let mut bytes = Vec::new();
    let read = entry.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if read as u64 > most { Err(format!("{expected} is longer than its manifest says")) } else { Ok(bytes) }
}

/// Reads and checks the list of files.
fn manifest(text: &[u8]) -> Result<Vec<Listed>, String> {
    let manifest: Manifest =
        serde_json::from_slice(text).map_err(|error| format!("its manifest cannot be read: {error}"))?;
    if manifest.format != FORMAT {
        return Err(format!("it has format {}, and this program reads format {FORMAT}", manifest.format));
    }
    if manifest.files.len() > MAX_FILES {
        return Err("it has too many files".to_owned());
    }
    let mut seen = BTreeSet::new();
    let mut total: u64 = 0;
    for listed in &manifest.files {
        let shown = haversack::display::one_line(&listed.path);
        let locator = Locator::parse(&listed.path)
            .map_err(|error| format!("it has a file that is none of a memory: {error}"))?;
        if locator.as_str() != listed.path || locator.is_root() {
            return Err(format!("it has a file with the name {shown}, which no memory has"));
        }
        if !seen.insert(locator) {
            return Err(format!("it has {shown} twice"));
        }
        total = total.saturating_add(listed.size);
        if listed.size > MAX_FILE_BYTES || total > MAX_BYTES {
            return Err(format!("it is too large, at {shown}"));
        }
    }
    Ok(manifest.files)
}
