//! Files of a memory store of Anthropic's.

use std::collections::BTreeMap;

use async_trait::async_trait;
use haversack_store::cloud::ANTHROPIC;
use haversack_store::{Bytes, Capabilities, OpenOptions, Registry, Result as StoreResult};

use super::{FileContent, FileStorage, MemoryStorage, Operation, StorageError};

/// A memory store of Anthropic's as a storage of files.
///
/// It holds texts of at most 102,400 bytes. A batch is made whole by this machine's next command if this process dies in between; programs on other
/// machines may see a part of it.
#[derive(Clone, Debug)]
pub struct AnthropicMemoryStorage {
    files: MemoryStorage,
}

impl AnthropicMemoryStorage {
    /// Opens the store of an address `anthropic:memstore_…`; asks it nothing. The key is the setting `ANTHROPIC_API_KEY`.
    pub fn open(options: &OpenOptions) -> StoreResult<AnthropicMemoryStorage> {
        let backend = Registry::standard().select(ANTHROPIC, options, &Capabilities::default())?;
        Ok(AnthropicMemoryStorage { files: MemoryStorage::over(backend) })
    }
}

#[async_trait]
impl FileStorage for AnthropicMemoryStorage {
    async fn view(&self, path: &str) -> Result<FileContent, StorageError> {
        self.files.view(path).await
    }

    async fn create(&self, path: &str, content: Bytes) -> Result<(), StorageError> {
        self.files.create(path, content).await
    }

    async fn create_all(
        &self,
        files: Vec<(String, Bytes)>,
    ) -> Result<Vec<Result<(), StorageError>>, StorageError> {
        self.files.create_all(files).await
    }

    async fn str_replace(&self, path: &str, old_str: &str, new_str: &str) -> Result<(), StorageError> {
        self.files.str_replace(path, old_str, new_str).await
    }

    async fn insert(&self, path: &str, insert_line: usize, new_str: &str) -> Result<(), StorageError> {
        self.files.insert(path, insert_line, new_str).await
    }

    async fn delete(&self, path: &str) -> Result<(), StorageError> {
        self.files.delete(path).await
    }

    async fn rename(&self, old_path: &str, new_path: &str) -> Result<(), StorageError> {
        self.files.rename(old_path, new_path).await
    }

    async fn batch(&self, operations: &[Operation]) -> Result<(), StorageError> {
        self.files.batch(operations).await
    }

    async fn marks(&self, directory: &str) -> Result<BTreeMap<String, String>, StorageError> {
        self.files.marks(directory).await
    }
}
