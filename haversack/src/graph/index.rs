//! The records of the whole graph in this process's memory: for questions that do not name an id.
//!
//! Before each question, we compare the fingerprints of the registry's files and read changed files again, changed by any writer. No change
//! is decided on what is here alone: it is read again when the change is made.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::error::{Code, GraphError};
use super::record::{self, Connection, Node};
use super::registry::{self, SYSTEM};
use crate::file_storage::FileStorage;

/// The records of the graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    files: HashMap<String, Loaded>,
    pub(crate) nodes: HashMap<String, Arc<Node>>,
    pub(crate) connections: HashMap<String, Arc<Connection>>,
    /// The ids of connections by the nodes where they begin and end.
    pub(crate) of_node: HashMap<String, BTreeSet<String>>,
    /// The ids of nodes by their names, where the id does not follow from the name.
    pub(crate) others_by_name: HashMap<String, BTreeSet<String>>,
    /// The number of changes.
    pub(crate) generation: u64,
}

/// The loaded content of one file.
#[derive(Clone, Debug)]
struct Loaded {
    mark: String,
    nodes: Vec<String>,
    connections: Vec<String>,
}

#[derive(serde::Deserialize)]
struct FileOfRecords {
    #[serde(default)]
    nodes: BTreeMap<String, Node>,
    #[serde(default)]
    connections: BTreeMap<String, Connection>,
}

/// Files that changed since the index was made: each with its new mark and, if it is still there, its text.
pub(crate) type News = Vec<(String, Option<(String, String)>)>;

impl Index {
    /// Returns the marks of the files that this index was made from.
    pub(crate) fn marks(&self) -> HashMap<String, String> {
        self.files.iter().map(|(path, loaded)| (path.clone(), loaded.mark.clone())).collect()
    }

    /// Takes in what changed.
    pub(crate) fn take_in(&mut self, news: News) -> Result<(), GraphError> {
        // The first file last: where two files have a record, which can only come from two machines that made one at once, it counts.
        let (home, shards): (News, News) = news.into_iter().partition(|(path, _)| path == registry::HOME);
        for (path, content) in shards.into_iter().chain(home) {
            self.generation += 1;
            self.forget(&path);
            let Some((mark, text)) = content else { continue };
            let damaged = |why: &str| {
                let message = format!("{path} is damaged ({why}). Repair it: haversack doctor --fix");
                GraphError::new(Code::ContentReadFailed, message)
            };
            // A list would be taken for the fields of an object in their order.
            if !text.trim_start().starts_with('{') {
                return Err(damaged("it is no object"));
            }
            let read: FileOfRecords =
                serde_json::from_str(&text).map_err(|error| damaged(&error.to_string()))?;
            let loaded = Loaded {
                mark,
                nodes: read.nodes.keys().cloned().collect(),
                connections: read.connections.keys().cloned().collect(),
            };
            self.files.insert(path, loaded);
            // The key of a record counts: a person may have changed the id in it.
            for (id, node) in read.nodes {
                let node = Node { id: id.clone(), ..node };
                let name = record::name_of(&node);
                if name != id && record::id_of(&name) != id {
                    self.others_by_name.entry(name).or_default().insert(id.clone());
                }
                self.nodes.insert(id, Arc::new(node));
            }
            for (id, connection) in read.connections {
                let connection = Connection { id: id.clone(), ..connection };
                for end in [&connection.from, &connection.to] {
                    self.of_node.entry(end.clone()).or_default().insert(id.clone());
                }
                self.connections.insert(id, Arc::new(connection));
            }
        }
        Ok(())
    }

    /// Returns the files with their marks and the ids of their nodes.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str, &[String])> {
        self.files.iter().map(|(path, loaded)| (path.as_str(), loaded.mark.as_str(), loaded.nodes.as_slice()))
    }

    /// Returns the ids of the nodes of a file; `None` if the file is not there.
    pub(crate) fn nodes_of(&self, path: &str) -> Option<&[String]> {
        self.files.get(path).map(|loaded| loaded.nodes.as_slice())
    }

    fn forget(&mut self, path: &str) {
        let Some(loaded) = self.files.remove(path) else { return };
        for id in loaded.nodes {
            let Some(node) = self.nodes.remove(&id) else { continue };
            let name = record::name_of(&node);
            if let Some(ids) = self.others_by_name.get_mut(&name) {
                ids.remove(&id);
            }
        }
        for id in loaded.connections {
            let Some(connection) = self.connections.remove(&id) else { continue };
            for end in [&connection.from, &connection.to] {
                if let Some(ids) = self.of_node.get_mut(end) {
                    ids.remove(&id);
                }
            }
        }
    }

    /// Returns the connections of a node whose both ends are there.
    pub(crate) fn connections_of<'a>(&'a self, id: &str) -> impl Iterator<Item = &'a Arc<Connection>> {
        let ids = self.of_node.get(id).into_iter().flatten();
        ids.filter_map(|id| self.connections.get(id)).filter(|connection| self.is_whole(connection))
    }

    /// Tells whether both ends of a connection are there.
    pub(crate) fn is_whole(&self, connection: &Connection) -> bool {
        self.nodes.contains_key(&connection.from) && self.nodes.contains_key(&connection.to)
    }
}

/// Looks for files that changed since the index with these marks was made.
pub(crate) async fn news(
    storage: &dyn FileStorage,
    before: &HashMap<String, String>,
) -> Result<News, GraphError> {
    let marks = storage.marks(SYSTEM).await.map_err(|error| {
        let message = format!("the registry could not be looked at: {}", error.message);
        GraphError::caused(Code::ContentReadFailed, message, error)
    })?;
    let mut news = News::new();
    let mut there = BTreeSet::new();
    for (name, mark) in marks {
        let path = format!("{SYSTEM}/{name}");
        if !registry::is_registry(&path) {
            continue;
        }
        if before.get(&path) != Some(&mark) {
            let text = registry::text_of(storage, &path).await?;
            news.push((path.clone(), text.map(|text| (mark, text))));
        }
        there.insert(path);
    }
    news.extend(before.keys().filter(|path| !there.contains(*path)).map(|path| (path.clone(), None)));
    Ok(news)
}
