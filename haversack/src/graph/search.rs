//! Search through the contents of nodes, by a function that is handed in.
//!
//! [`Scan`] is the plain one: a substring, whatever the case. An index can take its place.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use memchr::memmem::Finder;

use super::error::{Code, GraphError};
use super::record::Node;
use crate::file_storage::{self, Content, FileContent, FileStorage};

/// The most text that a [`Scan`] keeps between two searches.
const MAX_KEPT_BYTES: usize = 512 * 1024 * 1024;

/// Finds nodes by their content.
#[async_trait]
pub trait ContentSearch: Send + Sync {
    /// Returns the ids of at most `limit` of `nodes`, best first.
    async fn find(&self, query: &str, nodes: &[Arc<Node>], limit: usize) -> Result<Vec<String>, GraphError>;
}

/// Looks for a text in the contents, whatever its case; contents that are no text do not count.
///
/// A content is cached as long as the node's record says that it did not change.
pub struct Scan {
    storage: Arc<dyn FileStorage>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    texts: HashMap<String, (String, Arc<str>)>,
    bytes: usize,
}

impl Scan {
    /// Returns a scan of contents in `storage`.
    pub fn new(storage: Arc<dyn FileStorage>) -> Scan {
        Scan { storage, kept: Mutex::default() }
    }

    fn kept(&self, node: &Node) -> Option<Arc<str>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (modified, text) = kept.texts.get(&node.id)?;
        (*modified == node.modified).then(|| text.clone())
    }

    async fn lower_case(&self, node: &Node) -> Result<Arc<str>, GraphError> {
        if let Some(text) = self.kept(node) {
            return Ok(text);
        }
        let text: Arc<str> = match self.storage.view(&node.content.path).await {
            Ok(FileContent::File { content: Content::Text(text), .. }) => text.to_lowercase().into(),
            Ok(_) => Arc::from(""),
            Err(error) if error.code == file_storage::Code::FileNotFound => Arc::from(""),
            Err(error) => {
                let message = format!("{} could not be read: {}", node.content.path, error.message);
                return Err(GraphError::caused(Code::ContentReadFailed, message, error));
            }
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + text.len() > MAX_KEPT_BYTES {
            *kept = Kept::default();
        }
        kept.bytes += text.len();
        if let Some((_, before)) = kept.texts.insert(node.id.clone(), (node.modified.clone(), text.clone())) {
            kept.bytes = kept.bytes.saturating_sub(before.len());
        }
        Ok(text)
    }
}

#[async_trait]
impl ContentSearch for Scan {
    async fn find(&self, query: &str, nodes: &[Arc<Node>], limit: usize) -> Result<Vec<String>, GraphError> {
        let query = query.to_lowercase();
        let finder = Finder::new(&query);
        let mut found = Vec::new();
        for node in nodes {
            if found.len() == limit {
                break;
            }
            if finder.find(self.lower_case(node).await?.as_bytes()).is_some() {
                found.push(node.id.clone());
            }
        }
        Ok(found)
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").finish_non_exhaustive()
    }
}
