//! Finds every project that Claude Code has memory for.
//!
//! The name of a directory does not tell which project it is for: the notes and transcripts beside it do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::git;
use crate::agents::claude_code::ClaudeCode;
use crate::agents::claude_code::slug::slug;

/// The bytes of a transcript that are searched for its directory.
const MAX_TRANSCRIPT_BYTES: u64 = 256 * 1024;

/// The most transcripts of a project that are read.
const MAX_TRANSCRIPTS: usize = 5;

/// The longest file of notes that is read.
const MAX_NOTES_BYTES: u64 = 64 * 1024 * 1024;

/// A memory directory, and the project it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The memory directory.
    pub(crate) memory: PathBuf,
    /// The directory of the project, existing or not; `None` if it is unknown.
    pub(crate) root: Option<PathBuf>,
    /// The number of its files.
    pub(crate) files: usize,
    /// How large they are together.
    pub(crate) bytes: u64,
}

/// Returns every memory directory that has something in it, by name.
pub(crate) fn discover(claude: &ClaudeCode) -> Vec<Found> {
    let mut directories = noted_directories(claude);
    // Claude Code's notes may be new or gone. A user who begins with us does so in the project, most often.
    directories.extend(std::env::current_dir());
    let noted = roots_by_slug(directories);
    let mut found = Vec::new();
    for project in directories_in(&claude.projects()) {
        let memory = project.join("memory");
        let (files, bytes) = count(&memory);
        if files == 0 {
            continue;
        }
        let name = project.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let root = noted
            .get(&name)
            .cloned()
            .or_else(|| roots_by_slug(directories_of_transcripts(&project)).remove(&name));
        found.push(Found { memory, root, files, bytes });
    }
    found
}

/// Counts the files below a directory, and their bytes; links are not followed.
pub(crate) fn count(directory: &Path) -> (usize, u64) {
    let mut sum = (0, 0);
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            // Our own directory is not a memory.
            if entry.file_name() == ".haversack" {
                continue;
            }
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => directories.push(entry.path()),
                Ok(metadata) if metadata.is_file() => sum = (sum.0 + 1, sum.1 + metadata.len()),
                _ => {}
            }
        }
    }
    sum
}

/// Returns for each name the directory that it is made of: the main checkout where there is one.
fn roots_by_slug(directories: BTreeSet<PathBuf>) -> BTreeMap<String, PathBuf> {
    let mut roots = BTreeMap::new();
    for directory in directories {
        let root = git::find(&directory).map_or(directory, |repository| repository.root);
        roots.insert(slug(&root.to_string_lossy()), root);
    }
    roots
}

/// Returns the main checkouts, or the plain directories, of all projects in Claude Code's notes.
pub(crate) fn noted(claude: &ClaudeCode) -> impl Iterator<Item = PathBuf> {
    roots_by_slug(noted_directories(claude)).into_values()
}

fn noted_directories(claude: &ClaudeCode) -> BTreeSet<PathBuf> {
    let is_read =
        claude.notes.metadata().is_ok_and(|notes| notes.is_file() && notes.len() <= MAX_NOTES_BYTES);
    let text = if is_read { fs::read(&claude.notes).unwrap_or_default() } else { Vec::new() };
    let notes: Value = serde_json::from_slice(&text).unwrap_or_default();
    let projects = notes.get("projects").and_then(Value::as_object);
    projects.into_iter().flatten().map(|(directory, _)| PathBuf::from(directory)).collect()
}

/// Returns the directories that sessions of a project were in, the first each transcript names.
fn directories_of_transcripts(project: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(project).into_iter().flatten().flatten().map(|entry| entry.path());
    let transcripts = entries.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    transcripts.take(MAX_TRANSCRIPTS).filter_map(|path| directory_in(&path)).collect()
}

fn directory_in(transcript: &Path) -> Option<PathBuf> {
    let start = BufReader::new(fs::File::open(transcript).ok()?.take(MAX_TRANSCRIPT_BYTES));
    start.lines().map_while(Result::ok).find_map(|line| {
        let line: Value = serde_json::from_str(&line).ok()?;
        Some(PathBuf::from(line.get("cwd")?.as_str()?))
    })
}

fn directories_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut directories: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    directories.sort();
    directories
}
