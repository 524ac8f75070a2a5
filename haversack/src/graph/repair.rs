//! Finds problems of a graph's files, and repairs them.
//!
//! Nothing is dropped: a registry that cannot be read is put aside whole, after the records that can still be read in it were copied. A content
//! that no record names becomes a node of type [`UNSPECIFIED`], so that it can be found and given its type again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use haversack_store::Bytes;
use serde_json::{Map, Value};

use super::error::{Code, GraphError};
use super::record::{Connection, ContentFile, Node};
use super::registry::{self, Change, Decision, SYSTEM};
use super::{Graph, Properties, Property};
use crate::file_storage::{self, Content, FileContent, FileStorage, Operation};
use crate::ids::ContentHash;

/// The type of nodes of which only the content is left, or only the name.
pub const UNSPECIFIED: &str = "UNSPECIFIED";

/// Something wrong with the files of a graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// A file of the registry cannot be read.
    Damaged {
        /// The file.
        path: String,
        /// Why.
        why: String,
        /// The number of records that can still be read in it.
        readable: usize,
    },
    /// A content has no record.
    OrphanContent {
        /// The file.
        path: String,
    },
    /// The content of a node or connection is gone.
    LostContent {
        /// The node or connection.
        id: String,
        /// The place where its content should be.
        path: String,
    },
    /// A connection leads to a node, or comes from one, that is not there.
    Dangling {
        /// The connection.
        id: String,
        /// The node that is not there.
        missing: String,
    },
    /// The ontology cannot be read.
    OntologyDamaged {
        /// Why.
        why: String,
    },
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defect::Damaged { path, why, readable } => {
                write!(f, "{path} is damaged ({why}); {readable} of its records can still be read")
            }
            Defect::OrphanContent { path } => write!(f, "{path} belongs to no node or connection"),
            Defect::LostContent { id, path } => write!(f, "the content of {id} is gone: {path}"),
            Defect::Dangling { id, missing } => {
                write!(f, "the connection {id} has an end at {missing}, which is not there")
            }
            Defect::OntologyDamaged { why } => write!(f, "the ontology cannot be read: {why}"),
        }
    }
}

/// Tells whether a storage has a graph at all.
pub async fn is_there(storage: &dyn FileStorage) -> Result<bool, GraphError> {
    let marks = storage.marks(SYSTEM).await.map_err(|error| looked(SYSTEM, error))?;
    Ok(marks.keys().any(|name| is_ours(&format!("{SYSTEM}/{name}"))))
}

fn is_ours(path: &str) -> bool {
    registry::is_registry(path) || path == super::ONTOLOGY
}

/// Looks for everything that is wrong; changes nothing.
pub async fn examine(storage: &dyn FileStorage) -> Result<Vec<Defect>, GraphError> {
    let mut defects = Vec::new();
    let found = read_all(storage, &mut defects).await?;
    if let Some(text) = registry::text_of(storage, super::ONTOLOGY).await?
        && let Err(error) = super::Ontology::from_yaml(&text)
    {
        defects.push(Defect::OntologyDamaged { why: error.message });
    }
    let nodes = files(storage, "_content/nodes").await?;
    let connections = files(storage, "_content/connections").await?;
    let contents: BTreeSet<&String> = nodes.iter().chain(&connections).collect();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for node in found.nodes.values() {
        named.insert(&node.content.path);
        if !contents.contains(&node.content.path) {
            defects.push(Defect::LostContent { id: node.id.clone(), path: node.content.path.clone() });
        }
    }
    for connection in found.connections.values() {
        if let Some(place) = &connection.content {
            named.insert(&place.path);
            if !contents.contains(&place.path) {
                defects.push(Defect::LostContent { id: connection.id.clone(), path: place.path.clone() });
            }
        }
        if let Some(missing) =
            [&connection.from, &connection.to].into_iter().find(|id| !found.nodes.contains_key(*id))
        {
            defects.push(Defect::Dangling { id: connection.id.clone(), missing: missing.clone() });
        }
    }
    // A damaged registry hides records: whether a content has none shows only after the repair.
    if !defects.iter().any(|defect| matches!(defect, Defect::Damaged { .. })) {
        let orphans = contents.iter().filter(|path| !named.contains(path.as_str()) && !is_copy(path));
        defects.extend(orphans.map(|path| Defect::OrphanContent { path: (*path).clone() }));
    }
    defects.sort();
    Ok(defects)
}

/// Tells whether a file is a copy that a merge put beside the content; `haversack conflicts` lists those.
fn is_copy(path: &str) -> bool {
    path.contains(".conflict-")
}

/// Repairs everything that can be repaired, and returns what was repaired and what is left.
pub async fn repair(graph: &Graph) -> Result<(Vec<Defect>, Vec<Defect>), GraphError> {
    let storage = graph.storage().clone();
    // A batch that a dead process left is completed first: a change that is half done is no damage. An empty batch does that.
    storage.batch(&[]).await.map_err(|error| super::not_written(SYSTEM, error))?;
    let mut repaired = Vec::new();
    // In this order: contents without a record show only when the registry can be read, and a connection may get back the node that it lacks.
    for phase in [Phase::Registry, Phase::LostContents, Phase::Orphans, Phase::Connections] {
        let defects = examine(&*storage).await?;
        for defect in &defects {
            match (phase, defect) {
                (Phase::Registry, Defect::Damaged { path, .. }) => salvage(&*storage, path).await?,
                (Phase::LostContents, Defect::LostContent { id, path }) => {
                    restore_content(graph, id, path, &defects).await?;
                }
                (Phase::Orphans, Defect::OrphanContent { path }) => adopt(graph, path).await?,
                (Phase::Connections, Defect::Dangling { id, .. }) => graph.delete_connection(id).await?,
                _ => continue,
            }
            repaired.push(defect.clone());
        }
    }
    Ok((repaired, examine(&*storage).await?))
}

/// The phases of a repair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Registry,
    LostContents,
    Orphans,
    Connections,
}

/// Gives a record its content again: the file that has the record's id as its name and no other record, else a note in the place of the content.
async fn restore_content(graph: &Graph, id: &str, path: &str, defects: &[Defect]) -> Result<(), GraphError> {
    let orphan = defects.iter().find_map(|defect| match defect {
        Defect::OrphanContent { path } if id_of_content(path) == id => Some(path.clone()),
        _ => None,
    });
    if let Some(orphan) = orphan {
        return point_at(graph, id, &orphan).await;
    }
    let note = |path: &str| {
        format!("The content of {id} was lost. Its history may have it: haversack log {path}\n").into()
    };
    let storage = &**graph.storage();
    if let Ok(FileContent::File { .. }) = storage.view(path).await {
        // A person keeps it in another directory.
        return Ok(());
    }
    if path.starts_with("_content/") {
        match create(storage, path, note(path)).await {
            Err(error) if error.storage_code() == Some(file_storage::Code::InvalidPath) => {}
            created => return created,
        }
    }
    // The record names a place where no content can be: a person edited it.
    let is_node = graph.registry.records(&[id]).await?.node(id)?.is_some();
    let directory = if is_node { "nodes" } else { "connections" };
    let place = format!("_content/{directory}/{id}.md");
    create(storage, &place, note(&place)).await?;
    point_at(graph, id, &place).await
}

/// Changes the place of a record's content.
async fn point_at(graph: &Graph, id: &str, path: &str) -> Result<(), GraphError> {
    let decide = |records: &registry::Records| {
        let mut changes = Vec::new();
        if let Some(mut node) = records.node(id)? {
            node.content.path = path.to_owned();
            changes.push(Change::PutNode(node));
        } else if let Some(mut connection) = records.connection(id)? {
            if let Some(content) = &mut connection.content {
                content.path = path.to_owned();
            }
            changes.push(Change::PutConnection(connection));
        }
        Ok(Decision { changes, contents: Vec::new() })
    };
    graph.registry.transact(&[id], decide).await
}

/// Returns the id in the name of a content's file.
fn id_of_content(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[derive(Default)]
struct Found {
    nodes: BTreeMap<String, Node>,
    connections: BTreeMap<String, Connection>,
}

impl Found {
    fn count(&self) -> usize {
        self.nodes.len() + self.connections.len()
    }
}

async fn read_all(storage: &dyn FileStorage, defects: &mut Vec<Defect>) -> Result<Found, GraphError> {
    let mut all = Found::default();
    for path in files(storage, SYSTEM).await?.into_iter().filter(|path| registry::is_registry(path)) {
        let bytes = match storage.view(&path).await {
            Ok(FileContent::File { content, .. }) => Bytes::from(content),
            Ok(FileContent::Directory { .. }) => continue,
            Err(error) if error.code == file_storage::Code::FileNotFound => continue,
            Err(error) => return Err(looked(&path, error)),
        };
        let text = String::from_utf8_lossy(&bytes);
        let found = match whole(&path, &text) {
            Ok(found) => found,
            Err(why) => {
                let found = salvaged(&text);
                defects.push(Defect::Damaged { path, why, readable: found.count() });
                found
            }
        };
        all.nodes.extend(found.nodes);
        all.connections.extend(found.connections);
    }
    Ok(all)
}

/// Reads a file that is as we write it.
fn whole(path: &str, text: &str) -> Result<Found, String> {
    let data = registry::parse(path, text).map_err(|error| match error.message.split_once('(') {
        Some((_, why)) => why.split(");").next().unwrap_or(why).to_owned(),
        None => error.message,
    })?;
    let mut found = Found::default();
    let records = |sort: &str| data.get(sort).and_then(Value::as_object).cloned().unwrap_or_default();
    for (id, record) in records("nodes") {
        let node: Node = serde_json::from_value(record).map_err(|error| format!("{id}: {error}"))?;
        // The key counts, as in the index.
        found.nodes.insert(id.clone(), Node { id, ..node });
    }
    for (id, record) in records("connections") {
        let connection: Connection =
            serde_json::from_value(record).map_err(|error| format!("{id}: {error}"))?;
        found.connections.insert(id.clone(), Connection { id, ..connection });
    }
    Ok(found)
}

/// Finds the records that are still whole in a damaged text, wherever they are.
fn salvaged(text: &str) -> Found {
    let mut found = Found::default();
    let mut at = 0;
    while let Some(brace) = text.get(at..).and_then(|rest| rest.find('{')) {
        at += brace;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else {
            at += 1;
            continue;
        };
        // A connection has everything that a node has, but the place of its content.
        if let Ok(connection) = serde_json::from_value::<Connection>(value.clone()) {
            found.connections.insert(connection.id.clone(), connection);
        } else if let Ok(node) = serde_json::from_value::<Node>(value) {
            found.nodes.insert(node.id.clone(), node);
        } else {
            at += 1;
            continue;
        }
        at += values.byte_offset();
    }
    found
}

/// Puts a damaged file aside and writes a new one with the records that can still be read.
async fn salvage(storage: &dyn FileStorage, path: &str) -> Result<(), GraphError> {
    let bytes = match storage.view(path).await {
        Ok(FileContent::File { content, .. }) => Bytes::from(content),
        Ok(FileContent::Directory { .. }) => return Ok(()),
        Err(error) => return Err(looked(path, error)),
    };
    let found = salvaged(&String::from_utf8_lossy(&bytes));
    let mut data = Map::new();
    let to_map = |pairs: Vec<(String, Value)>| Value::Object(pairs.into_iter().collect());
    let value = |record: Result<Value, serde_json::Error>| record.unwrap_or(Value::Null);
    let nodes = found.nodes.into_iter().map(|(id, node)| (id, value(serde_json::to_value(node)))).collect();
    let connections =
        found.connections.into_iter().map(|(id, one)| (id, value(serde_json::to_value(one)))).collect();
    data.insert("nodes".to_owned(), to_map(nodes));
    data.insert("connections".to_owned(), to_map(connections));
    let hash = ContentHash::of(&bytes).to_string();
    let aside = format!("{}.damaged-{}", path, &hash[..8]);
    let mut operations = vec![Operation::Delete { path: path.to_owned() }];
    if matches!(storage.view(&aside).await, Err(error) if error.code == file_storage::Code::FileNotFound) {
        operations.push(Operation::Create { path: aside, content: bytes });
    }
    operations.push(Operation::Create { path: path.to_owned(), content: registry::written(&data).into() });
    storage.batch(&operations).await.map_err(|error| super::not_written(path, error))
}

/// Makes a node of a content that has no record. The content of a connection that is gone becomes a node too: which nodes it connected is lost.
async fn adopt(graph: &Graph, path: &str) -> Result<(), GraphError> {
    let id = id_of_content(path).to_owned();
    let (format, encoding) = match graph.content(path).await? {
        Content::Text(_) => ("text", "utf-8"),
        Content::Bytes(_) => ("bytes", "base64"),
    };
    let now = graph.now();
    let node = Node {
        id: id.clone(),
        node_type: UNSPECIFIED.to_owned(),
        created: now.clone(),
        modified: now,
        properties: Properties::from([("recovered".to_owned(), Property::Bool(true))]),
        content: ContentFile {
            path: path.to_owned(),
            format: format.to_owned(),
            encoding: Some(encoding.to_owned()),
        },
    };
    let ids = [id.as_str()];
    let put = graph.registry.transact(&ids, |records| {
        let changes = match records.node(&id)? {
            None => vec![Change::PutNode(node.clone())],
            // The node has another content: this one is of an earlier format.
            Some(_) => Vec::new(),
        };
        Ok(Decision { changes, contents: Vec::new() })
    });
    put.await
}

async fn create(storage: &dyn FileStorage, path: &str, content: Bytes) -> Result<(), GraphError> {
    match storage.create(path, content).await {
        Ok(()) => Ok(()),
        Err(error) if error.code == file_storage::Code::FileExists => Ok(()),
        Err(error) => Err(super::not_written(path, error)),
    }
}

async fn files(storage: &dyn FileStorage, directory: &str) -> Result<Vec<String>, GraphError> {
    let marks = storage.marks(directory).await.map_err(|error| looked(directory, error))?;
    Ok(marks.into_keys().map(|name| format!("{directory}/{name}")).collect())
}

fn looked(path: &str, error: file_storage::StorageError) -> GraphError {
    let message = format!("{path} could not be looked at: {}", error.message);
    GraphError::caused(Code::ContentReadFailed, message, error)
}
