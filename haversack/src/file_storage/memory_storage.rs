//! Files of a memory, or of any backend by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures_lite::StreamExt;
use haversack_store::{Backend, Bytes, Cached, ErrorKind, Locator, Prefixed};

use super::{Content, FileContent, FileStorage, Operation, StorageError, locate, translate};
use crate::error::{Error, Verb};
use crate::memory::{Change, Depth, Memory, View};
use crate::text::Ending;

/// The most bytes of a remote backend's content that are cached.
const CACHED_BYTES: usize = 64 * 1024 * 1024;

/// The directory in which a backend without a home records a batch under way.
const OWN_STATE: &str = ".haversack/file-storage";

/// A memory as a storage of files.
#[derive(Clone, Debug)]
pub struct MemoryStorage {
    memory: Memory,
}

impl MemoryStorage {
    /// Returns `memory` as a storage of files.
    pub fn new(memory: Memory) -> MemoryStorage {
        MemoryStorage { memory }
    }

    /// Returns the files of a backend that stands by itself: no home keeps its state, so a batch under way is recorded beside the files.
    ///
    /// Reads of a storage without real directories (an object store) are served from a cache, if the content has not changed.
    pub fn over(backend: Arc<dyn Backend>) -> MemoryStorage {
        let own = Locator::reserved(OWN_STATE).expect("a name of our own");
        let state = Arc::new(Prefixed::new(backend.clone(), own));
        let is_remote = !backend.capabilities().tree;
        let files = if is_remote { Arc::new(Cached::new(backend, CACHED_BYTES)) } else { backend };
        MemoryStorage::new(Memory::new(files, state).without_signatures())
    }

    /// Returns the memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

#[async_trait]
impl FileStorage for MemoryStorage {
    async fn view(&self, path: &str) -> Result<FileContent, StorageError> {
        let locator = locate(path)?;
        match self.memory.view(&locator).await.map_err(|error| translate(path, error))? {
            View::Directory(listing) => {
                let entries = listing.entries.iter().map(|entry| entry.locator.name().to_owned()).collect();
                Ok(FileContent::Directory { entries })
            }
            View::File(object) => {
                let size_bytes = object.bytes.len() as u64;
                Ok(FileContent::File { content: Content::from(object.bytes), size_bytes })
            }
        }
    }

    async fn create(&self, path: &str, content: Bytes) -> Result<(), StorageError> {
        let locator = locate(path)?;
        self.memory.create(&locator, content).await.map_err(|error| translate(path, error))?;
        Ok(())
    }

    async fn create_all(
        &self,
        files: Vec<(String, Bytes)>,
    ) -> Result<Vec<Result<(), StorageError>>, StorageError> {
        let mut located = Vec::with_capacity(files.len());
        for (path, content) in &files {
            located.push((locate(path)?, content.clone()));
        }
        let created = self.memory.create_all(located).await.map_err(|error| translate("", error))?;
        let translated = created
            .into_iter()
            .zip(&files)
            .map(|(result, (path, _))| result.map_err(|error| translate(path, error)));
        Ok(translated.collect())
    }

    async fn str_replace(&self, path: &str, old_str: &str, new_str: &str) -> Result<(), StorageError> {
        let locator = locate(path)?;
        let edited = self.memory.str_replace(&locator, old_str, new_str).await;
        edited.map_err(|error| translate(path, error))?;
        Ok(())
    }

    async fn insert(&self, path: &str, insert_line: usize, new_str: &str) -> Result<(), StorageError> {
        let locator = locate(path)?;
        let inserted = self.memory.insert(&locator, line_before(insert_line), new_str, Ending::Kept).await;
        inserted.map_err(|error| translate(path, error))?;
        Ok(())
    }

    async fn delete(&self, path: &str) -> Result<(), StorageError> {
        let locator = locate(path)?;
        self.memory.delete(&locator, Depth::Single).await.map_err(|error| translate(path, error))
    }

    async fn rename(&self, old_path: &str, new_path: &str) -> Result<(), StorageError> {
        let (from, to) = (locate(old_path)?, locate(new_path)?);
        self.memory.rename(&from, &to).await.map_err(|error| {
            let path = if error.locator() == &to { new_path } else { old_path };
            translate(path, error)
        })
    }

    async fn batch(&self, operations: &[Operation]) -> Result<(), StorageError> {
        let changes: Result<Vec<Change>, StorageError> = operations.iter().map(change).collect();
        let report = self.memory.batch(&changes?).await.map_err(|error| {
            let path = error.locator().to_string();
            translate(&path, error)
        })?;
        // Texts of other programs that saved in that very moment are kept aside, and `haversack doctor` lists them.
        drop(report);
        Ok(())
    }

    async fn marks(&self, directory: &str) -> Result<BTreeMap<String, String>, StorageError> {
        let locator = locate(directory)?;
        let failed = |error| translate(directory, Error::storage(Verb::View, &locator, error));
        let mut marks = BTreeMap::new();
        let mut pages = self.memory.files().scan(&locator, None);
        while let Some(page) = pages.next().await {
            let page = match page {
                Ok(page) => page,
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(failed(error)),
            };
            for info in page.infos {
                let mark = match &info.version {
                    Some(version) => version.to_string(),
                    None => info.fingerprint.to_string(),
                };
                let key = info.locator.as_str();
                let below = key.strip_prefix(locator.as_str()).unwrap_or(key).trim_start_matches('/');
                marks.insert(below.to_owned(), mark);
            }
        }
        Ok(marks)
    }
}

impl From<Memory> for MemoryStorage {
    fn from(memory: Memory) -> MemoryStorage {
        MemoryStorage::new(memory)
    }
}

fn change(operation: &Operation) -> Result<Change, StorageError> {
    Ok(match operation {
        Operation::Create { path, content } => {
            Change::Create { locator: locate(path)?, bytes: content.clone() }
        }
        Operation::StrReplace { path, old_str, new_str } => {
            Change::StrReplace { locator: locate(path)?, old: old_str.clone(), new: new_str.clone() }
        }
        Operation::Insert { path, insert_line, new_str } => Change::Insert {
            locator: locate(path)?,
            after_line: line_before(*insert_line),
            text: new_str.clone(),
            ending: Ending::Kept,
        },
        Operation::Delete { path } => Change::Delete { locator: locate(path)?, depth: Depth::Single },
        Operation::Rename { old_path, new_path } => {
            Change::Rename { from: locate(old_path)?, to: locate(new_path)? }
        }
    })
}

/// Returns the line after which to insert; there is none before line 0, and no file has that many lines.
fn line_before(insert_line: usize) -> usize {
    insert_line.checked_sub(1).unwrap_or(usize::MAX)
}
