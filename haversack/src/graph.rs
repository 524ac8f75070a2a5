//! A typed graph over files: nodes with content and properties, and connections between them.
//!
//! A [`Graph`] reads and writes only the files of one [`FileStorage`], and it works over every one of them. These are its files:
//!
//! | file | content |
//! |---|---|
//! | `_system/ontology.yaml` | the [`Ontology`]: node types, connection types |
//! | `_system/registry.json`, `_system/registry/*.json` | the records of nodes and connections |
//! | `_content/nodes/{id}.{extension}` | the content of a node |
//! | `_content/connections/{id}.md` | the content of a connection, if it has one |
//!
//! # Invariants
//! 1. A content is written before its record. If the process dies in between, no record names the file, and [`repair`] finds it
//!    (`killed_between_content_and_record`).
//! 2. A deletion removes the record of the node and the records of its connections in one transaction. It removes their contents afterwards
//!    (`delete_node_cascades`).
//! 3. A writer never loses the record of another writer, in this process or in another one (`two_handles_keep_every_node`).
//! 4. A refused operation changed nothing (`refused_operations_change_nothing`).
//! 5. Two machines that have not synced can delete a node and connect it. The graph never shows such a connection as an edge
//!    (`connection_to_nowhere_is_not_shown`).
//!
//! [`Clock`] gives the times. The graph stores and shows them and sorts by them, and never accepts or refuses a change because of a time. [`Ids`] gives
//! the ids.

pub mod draw;
mod error;
mod index;
pub mod links;
pub mod ontology;
mod record;
mod registry;
pub mod repair;
pub mod search;
pub mod server_memory;
mod walk;

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haversack_store::Bytes;

pub use self::error::{Code, GraphError};
use self::index::Index;
pub use self::ontology::{ConnectionType, Ontology};
pub use self::record::{Connection, ContentFile, Node, Properties, Property};
use self::record::{encoding_of, extension, has_properties};
pub(crate) use self::registry::VERSION as NEWEST_REGISTRY;
use self::registry::{Change, Decision, Registry, Sort};
use self::search::ContentSearch;
pub use self::walk::{Step, Traversal};
use crate::clock::Clock;
use crate::file_storage::{self, Content, FileContent, FileStorage, Operation, StorageError};
use crate::ids::{Ids, Timestamp};

/// The file of the ontology.
const ONTOLOGY: &str = "_system/ontology.yaml";

/// The most times that a change is repeated because another writer was faster.
const MAX_TRIES: usize = 64;

/// A graph in a storage of files.
pub struct Graph {
    storage: Arc<dyn FileStorage>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    registry: Registry,
    index: Mutex<Arc<Index>>,
    /// The last time that was written, in milliseconds: no two changes of one handle have the same one, so that they keep their order.
    last_moment: AtomicI64,
}

/// A node to be created.
#[derive(Clone, Debug)]
pub struct NewNode {
    /// The name of its type.
    pub node_type: String,
    /// Its content.
    pub content: Content,
    /// The format of the content, as its author calls it.
    pub format: String,
    /// Its properties.
    pub properties: Properties,
}

/// A connection to be created.
#[derive(Clone, Debug, Default)]
pub struct NewConnection {
    /// The name of its type.
    pub connection_type: String,
    /// The node where it begins.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// Its properties.
    pub properties: Properties,
    /// Its content, if it has one.
    pub content: Option<String>,
    /// The format of the content, as its author calls it.
    pub format: Option<String>,
}

/// A change of a node or connection: properties are added to those that are there, or replace them.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// Properties.
    pub properties: Properties,
    /// The new content, in the place of the old one.
    pub content: Option<Content>,
    /// The new name of the format.
    pub format: Option<String>,
}

/// The direction in which connections are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From where they begin to where they end.
    Out,
    /// From where they end to where they begin.
    In,
    /// Either way.
    #[default]
    Both,
}

/// The conditions for connections; an empty one always holds.
#[derive(Clone, Debug, Default)]
pub struct ConnectionQuery {
    /// The node where it begins.
    pub from: Option<String>,
    /// The node where it ends.
    pub to: Option<String>,
    /// Its type.
    pub connection_type: Option<String>,
    /// Properties that it has, among others.
    pub properties: Properties,
}

/// The node that counts if there are several where there should be one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMultiple {
    /// The one that was created first.
    #[default]
    Oldest,
    /// The one that was created last.
    Newest,
}

impl Graph {
    /// Returns the graph in `storage`.
    pub fn new(storage: Arc<dyn FileStorage>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Graph {
        let registry = Registry::new(storage.clone());
        Graph {
            storage,
            clock,
            ids,
            registry,
            index: Mutex::default(),
            last_moment: AtomicI64::new(i64::MIN),
        }
    }

    /// Returns the storage under the graph.
    pub fn storage(&self) -> &Arc<dyn FileStorage> {
        &self.storage
    }

    /// Creates a node and returns its id.
    pub async fn create_node(&self, new: NewNode) -> Result<String, GraphError> {
        self.ontology().await?.check_node(&new.node_type)?;
        check_properties(&new.properties)?;
        let id = self.new_id("mem");
        let path = format!("_content/nodes/{id}.{}", extension(&new.format, &new.content));
        let now = self.now();
        let encoding = Some(encoding_of(&new.content).to_owned());
        self.create_content(&path, new.content.into()).await?;
        let node = Node {
            id: id.clone(),
            node_type: new.node_type,
            created: now.clone(),
            modified: now,
            properties: new.properties,
            content: ContentFile { path: path.clone(), format: new.format, encoding },
        };
        let ids = [id.as_str()];
        let put = self.registry.transact(&ids, |records| match records.node(&id)? {
            None => Ok(Decision { changes: vec![Change::PutNode(node.clone())], contents: Vec::new() }),
            Some(_) => Err(exists(&id)),
        });
        if let Err(error) = put.await {
            // A storage that did not answer may have done it all the same.
            if self.get_node(&id).await.is_err_and(|error| error.code == Code::NodeNotFound) {
                self.take_back(&path).await;
            }
            return Err(error);
        }
        Ok(id)
    }

    /// Returns a node without its content.
    pub async fn get_node(&self, id: &str) -> Result<Node, GraphError> {
        self.registry.records(&[id]).await?.node(id)?.ok_or_else(|| no_node(id))
    }

    /// Returns the content of a node.
    pub async fn get_node_content(&self, id: &str) -> Result<Content, GraphError> {
        let node = self.get_node(id).await?;
        self.content(&node.content.path).await
    }

    /// Adds to the properties of a node, or replaces its content.
    pub async fn update_node(&self, id: &str, update: Update) -> Result<(), GraphError> {
        check_properties(&update.properties)?;
        if update.properties.is_empty() && update.content.is_none() && update.format.is_none() {
            let message = format!("nothing was said to change of {id}");
            return Err(GraphError::new(Code::InvalidArgument, message));
        }
        let old = match &update.content {
            Some(_) => self.content_if_there(&self.get_node(id).await?.content.path).await?,
            None => None,
        };
        let now = self.now();
        let decide = |records: &registry::Records| {
            let mut node = records.node(id)?.ok_or_else(|| no_node(id))?;
            let mut decision = Decision::default();
            node.properties.extend(update.properties.clone());
            node.modified = later(&node.modified, &now);
            if let Some(format) = &update.format {
                node.content.format = format.clone();
            }
            if let Some(content) = &update.content {
                let old_path = node.content.path.clone();
                node.content.path =
                    format!("_content/nodes/{id}.{}", extension(&node.content.format, content));
                node.content.encoding = Some(encoding_of(content).to_owned());
                decision.contents = replacing(old_path, old.as_ref(), &node.content.path, content);
            }
            decision.changes.push(Change::PutNode(node));
            Ok(decision)
        };
        self.registry.transact(&[id], decide).await
    }

    /// Deletes a node with all of its connections, and returns how many connections there were.
    pub async fn delete_node(&self, id: &str) -> Result<usize, GraphError> {
        let mut deleted = 0;
        let mut is_first = true;
        // A connection that another writer makes before the node's record is gone shows in the second look. Later ones are refused.
        loop {
            let index = self.fresh().await?;
            let connections: Vec<Arc<Connection>> = index
                .of_node
                .get(id)
                .into_iter()
                .flatten()
                .filter_map(|id| index.connections.get(id).cloned())
                .collect();
            if connections.is_empty() && !is_first {
                return Ok(deleted);
            }
            let ids: Vec<&str> =
                std::iter::once(id).chain(connections.iter().map(|c| c.id.as_str())).collect();
            let node = self.registry.records(&[id]).await?.node(id)?;
            if is_first && node.is_none() {
                return Err(no_node(id));
            }
            let remove = self.registry.transact(&ids, |records| {
                let mut changes = Vec::new();
                if records.node(id)?.is_some() {
                    changes.push(Change::Remove(Sort::Nodes, id.to_owned()));
                }
                for connection in &connections {
                    if records.connection(&connection.id)?.is_some() {
                        changes.push(Change::Remove(Sort::Connections, connection.id.clone()));
                    }
                }
                Ok(Decision { changes, contents: Vec::new() })
            });
            remove.await?;
            if let Some(node) = node {
                self.take_back(&node.content.path).await;
            }
            for place in connections.iter().filter_map(|connection| connection.content.as_ref()) {
                self.take_back(&place.path).await;
            }
            deleted += connections.len();
            is_first = false;
        }
    }

    /// Creates a connection and returns its id.
    pub async fn create_connection(&self, new: NewConnection) -> Result<String, GraphError> {
        check_properties(&new.properties)?;
        let id = self.new_id("conn");
        let ontology = self.ontology().await?;
        // Before the content is written: a connection that is refused leaves nothing behind.
        let check = |records: &registry::Records| {
            let from = records.node(&new.from)?.ok_or_else(|| no_node(&new.from))?;
            let to = records.node(&new.to)?.ok_or_else(|| no_node(&new.to))?;
            if records.connection(&id)?.is_some() {
                return Err(exists(&id));
            }
            ontology.check_connection(&new.connection_type, &from.node_type, &to.node_type, &new.properties)
        };
        let ids = [id.as_str(), &new.from, &new.to];
        check(&self.registry.records(&ids).await?)?;
        let content = match &new.content {
            Some(text) => {
                let path = format!("_content/connections/{id}.md");
                self.create_content(&path, text.clone().into()).await?;
                let format = new.format.clone().unwrap_or_else(|| "markdown".to_owned());
                Some(ContentFile { path, format, encoding: None })
            }
            None => None,
        };
        let now = self.now();
        let connection = Connection {
            id: id.clone(),
            connection_type: new.connection_type.clone(),
            from: new.from.clone(),
            to: new.to.clone(),
            created: now.clone(),
            modified: now,
            properties: new.properties.clone(),
            content: content.clone(),
        };
        let put = self.registry.transact(&ids, |records| {
            check(records)?;
            let changes = vec![Change::PutConnection(connection.clone())];
            Ok(Decision { changes, contents: Vec::new() })
        });
        if let Err(error) = put.await {
            let is_gone =
                self.get_connection(&id).await.is_err_and(|error| error.code == Code::ConnectionNotFound);
            if let Some(place) = content.filter(|_| is_gone) {
                self.take_back(&place.path).await;
            }
            return Err(error);
        }
        Ok(id)
    }

    /// Returns a connection without its content.
    pub async fn get_connection(&self, id: &str) -> Result<Connection, GraphError> {
        self.registry.records(&[id]).await?.connection(id)?.ok_or_else(|| no_connection(id))
    }

    /// Returns the content of a connection; `None` if it has none.
    pub async fn get_connection_content(&self, id: &str) -> Result<Option<Content>, GraphError> {
        match self.get_connection(id).await?.content {
            Some(place) => self.content(&place.path).await.map(Some),
            None => Ok(None),
        }
    }

    /// Adds to the properties of a connection, or replaces its content, which is always text.
    pub async fn update_connection(&self, id: &str, update: Update) -> Result<(), GraphError> {
        check_properties(&update.properties)?;
        let text = match &update.content {
            Some(Content::Text(text)) => Some(text.clone()),
            Some(Content::Bytes(_)) => {
                let message = format!("the content of the connection {id} must be text");
                return Err(GraphError::new(Code::InvalidEncoding, message));
            }
            None => None,
        };
        let old = match self.get_connection(id).await?.content {
            Some(place) if text.is_some() => self.content_if_there(&place.path).await?,
            _ => None,
        };
        let now = self.now();
        let decide = |records: &registry::Records| {
            let mut connection = records.connection(id)?.ok_or_else(|| no_connection(id))?;
            let mut decision = Decision::default();
            connection.properties.extend(update.properties.clone());
            connection.modified = later(&connection.modified, &now);
            if let Some(text) = &text {
                let path = format!("_content/connections/{id}.md");
                let before = connection.content.take();
                let old_path = before.as_ref().map_or_else(|| path.clone(), |before| before.path.clone());
                decision.contents = replacing(old_path, old.as_ref(), &path, &Content::Text(text.clone()));
                let format = before.map_or_else(|| "markdown".to_owned(), |before| before.format);
                connection.content = Some(ContentFile { path, format, encoding: None });
            }
            if let (Some(format), Some(place)) = (&update.format, &mut connection.content) {
                place.format = format.clone();
            }
            decision.changes.push(Change::PutConnection(connection));
            Ok(decision)
        };
        self.registry.transact(&[id], decide).await
    }

    /// Deletes a connection.
    pub async fn delete_connection(&self, id: &str) -> Result<(), GraphError> {
        let connection = self.get_connection(id).await?;
        let ids = [id];
        let remove = self.registry.transact(&ids, |records| {
            records.connection(id)?.ok_or_else(|| no_connection(id))?;
            let changes = vec![Change::Remove(Sort::Connections, id.to_owned())];
            Ok(Decision { changes, contents: Vec::new() })
        });
        remove.await?;
        if let Some(place) = connection.content {
            self.take_back(&place.path).await;
        }
        Ok(())
    }

    /// Returns the ids of nodes of a type that have these properties, among others; the oldest first.
    pub async fn query_nodes(
        &self,
        node_type: Option<&str>,
        properties: &Properties,
    ) -> Result<Vec<String>, GraphError> {
        let index = self.fresh().await?;
        let fits = |node: &&Arc<Node>| {
            node_type.is_none_or(|wanted| node.node_type == wanted)
                && has_properties(&node.properties, properties)
        };
        let mut found: Vec<&Arc<Node>> = index.nodes.values().filter(fits).collect();
        found.sort_by(|one, other| (&one.created, &one.id).cmp(&(&other.created, &other.id)));
        Ok(found.into_iter().map(|node| node.id.clone()).collect())
    }

    /// Returns the ids of connections; the oldest first.
    pub async fn query_connections(&self, query: &ConnectionQuery) -> Result<Vec<String>, GraphError> {
        let index = self.fresh().await?;
        let is = |wanted: &Option<String>, there: &str| wanted.as_ref().is_none_or(|wanted| wanted == there);
        let fits = |connection: &&Arc<Connection>| {
            is(&query.from, &connection.from)
                && is(&query.to, &connection.to)
                && is(&query.connection_type, &connection.connection_type)
                && has_properties(&connection.properties, &query.properties)
        };
        let mut found: Vec<&Arc<Connection>> = match query.from.as_ref().or(query.to.as_ref()) {
            Some(end) => index.connections_of(end).filter(fits).collect(),
            None => index.connections.values().filter(|one| index.is_whole(one)).filter(fits).collect(),
        };
        found.sort_by(|one, other| (&one.created, &one.id).cmp(&(&other.created, &other.id)));
        Ok(found.into_iter().map(|connection| connection.id.clone()).collect())
    }

    /// Returns the ids of nodes at the other ends of a node's connections, each once.
    pub async fn get_connected_nodes(
        &self,
        id: &str,
        connection_type: Option<&str>,
        direction: Direction,
    ) -> Result<Vec<String>, GraphError> {
        let index = self.fresh().await?;
        if !index.nodes.contains_key(id) {
            return Err(no_node(id));
        }
        let mut seen = HashSet::new();
        let others =
            walk::neighbours(&index, id, connection_type, direction).map(|(_, other)| other.to_owned());
        Ok(others.filter(|other| seen.insert(other.clone())).collect())
    }

    /// Returns the nodes within `max_steps` steps of a node, nearest first, at most `max_nodes`.
    pub async fn traverse(&self, id: &str, traversal: &Traversal) -> Result<Vec<Step>, GraphError> {
        let index = self.fresh().await?;
        if !index.nodes.contains_key(id) {
            return Err(no_node(id));
        }
        Ok(walk::traverse(&index, id, traversal))
    }

    /// Returns the nodes of a shortest path, both ends included; `None` if there is no path.
    pub async fn shortest_path(
        &self,
        from: &str,
        to: &str,
        connection_type: Option<&str>,
        direction: Direction,
    ) -> Result<Option<Vec<String>>, GraphError> {
        let index = self.fresh().await?;
        for id in [from, to] {
            if !index.nodes.contains_key(id) {
                return Err(no_node(id));
            }
        }
        Ok(walk::shortest_path(&index, from, to, connection_type, direction))
    }

    /// Returns the ids of nodes whose content `search` finds, in its order.
    pub async fn search_content(
        &self,
        search: &dyn ContentSearch,
        query: &str,
        node_type: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, GraphError> {
        let index = self.fresh().await?;
        let fits = |node: &&Arc<Node>| node_type.is_none_or(|wanted| node.node_type == wanted);
        let mut nodes: Vec<Arc<Node>> = index.nodes.values().filter(fits).cloned().collect();
        nodes.sort_by(|one, other| (&one.created, &one.id).cmp(&(&other.created, &other.id)));
        if limit == 0 || nodes.is_empty() {
            return Ok(Vec::new());
        }
        search.find(query, &nodes, limit).await
    }

    /// Refuses a connection that could not be created; changes nothing.
    pub async fn validate_connection(&self, new: &NewConnection) -> Result<(), GraphError> {
        let ontology = self.ontology().await?;
        let records = self.registry.records(&[&new.from, &new.to]).await?;
        let from = records.node(&new.from)?.ok_or_else(|| no_node(&new.from))?;
        let to = records.node(&new.to)?.ok_or_else(|| no_node(&new.to))?;
        ontology.check_connection(&new.connection_type, &from.node_type, &to.node_type, &new.properties)
    }

    /// Creates the ontology.
    pub async fn create_ontology(&self, ontology: &Ontology) -> Result<(), GraphError> {
        ontology.check()?;
        match self.storage.create(ONTOLOGY, ontology.to_yaml().into()).await {
            Ok(()) => Ok(()),
            Err(error) if error.code == file_storage::Code::FileExists => Err(GraphError::caused(
                Code::OntologyAlreadyExists,
                "the graph has an ontology already",
                error,
            )),
            Err(error) => Err(not_written(ONTOLOGY, error)),
        }
    }

    /// Adds a node type to the ontology.
    pub async fn add_node_type(&self, name: &str) -> Result<(), GraphError> {
        self.change_ontology(|ontology| ontology.add_node_type(name)).await
    }

    /// Adds a connection type to the ontology.
    pub async fn add_connection_type(&self, added: ConnectionType) -> Result<(), GraphError> {
        self.change_ontology(|ontology| ontology.add_connection_type(added.clone())).await
    }

    /// Returns the ontology.
    pub async fn ontology(&self) -> Result<Ontology, GraphError> {
        match registry::text_of(&*self.storage, ONTOLOGY).await? {
            Some(text) => Ontology::from_yaml(&text),
            None => {
                let message = "the graph has no ontology yet; the first type makes it: haversack ontology add-node-type NAME";
                Err(GraphError::new(Code::OntologyNotFound, message))
            }
        }
    }

    /// Returns the only node of a type, having created it if there is none, and whether it was created.
    pub async fn ensure_singleton_node(
        &self,
        new: NewNode,
        on_multiple: OnMultiple,
    ) -> Result<(String, bool), GraphError> {
        self.ontology().await?.check_node(&new.node_type)?;
        let there = self.query_nodes(Some(&new.node_type), &Properties::new()).await?;
        let kept = match on_multiple {
            OnMultiple::Oldest => there.first(),
            OnMultiple::Newest => there.last(),
        };
        if let Some(id) = kept {
            return Ok((id.clone(), false));
        }
        // Named after its type: of two writers that both find none, the second finds the first one's.
        let id = format!("mem_only_{}", &blake3::hash(new.node_type.as_bytes()).to_hex()[..16]);
        check_properties(&new.properties)?;
        let path = format!("_content/nodes/{id}.{}", extension(&new.format, &new.content));
        let now = self.now();
        for _ in 0..MAX_TRIES {
            let is_file = self.content_if_there(&path).await?.is_some();
            let encoding = Some(encoding_of(&new.content).to_owned());
            let node = Node {
                id: id.clone(),
                node_type: new.node_type.clone(),
                created: now.clone(),
                modified: now.clone(),
                properties: new.properties.clone(),
                content: ContentFile { path: path.clone(), format: new.format.clone(), encoding },
            };
            let ids = [id.as_str()];
            let put = self.registry.transact(&ids, |records| {
                if records.node(&id)?.is_some() {
                    return Err(exists(&id));
                }
                let mut contents = Vec::new();
                if is_file {
                    contents.push(Operation::Delete { path: path.clone() });
                }
                contents.push(Operation::Create { path: path.clone(), content: new.content.clone().into() });
                Ok(Decision { changes: vec![Change::PutNode(node.clone())], contents })
            });
            match put.await {
                Ok(()) => return Ok((id, true)),
                Err(error)
                    if error.code == Code::InvalidArgument
                        || error.storage_code().is_some_and(registry::is_outrun) =>
                {
                    if self.get_node(&id).await.is_ok() {
                        return Ok((id, false));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(GraphError::new(Code::FileCreationFailed, format!("another writer kept changing {id}")))
    }

    /// Lists what breaks the rules of the ontology: each as a sentence.
    pub async fn violations(&self) -> Result<Vec<String>, GraphError> {
        let ontology = self.ontology().await?;
        let index = self.fresh().await?;
        let mut found = Vec::new();
        for node in index.nodes.values() {
            if let Err(error) = ontology.check_node(&node.node_type) {
                found.push(format!("{}: {error}", node.id));
            }
        }
        for connection in index.connections.values() {
            let (Some(from), Some(to)) = (index.nodes.get(&connection.from), index.nodes.get(&connection.to))
            else {
                found.push(format!("{}: a node of it is gone", connection.id));
                continue;
            };
            let (from, to) = (&from.node_type, &to.node_type);
            let checked =
                ontology.check_connection(&connection.connection_type, from, to, &connection.properties);
            if let Err(error) = checked {
                found.push(format!("{}: {error}", connection.id));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Returns every node and every connection between nodes that are there, the oldest first.
    pub async fn everything(&self) -> Result<(Vec<Arc<Node>>, Vec<Arc<Connection>>), GraphError> {
        let index = self.fresh().await?;
        let mut nodes: Vec<Arc<Node>> = index.nodes.values().cloned().collect();
        nodes.sort_by(|one, other| (&one.created, &one.id).cmp(&(&other.created, &other.id)));
        let mut connections: Vec<Arc<Connection>> =
            index.connections.values().filter(|one| index.is_whole(one)).cloned().collect();
        connections.sort_by(|one, other| (&one.created, &one.id).cmp(&(&other.created, &other.id)));
        Ok((nodes, connections))
    }

    async fn change_ontology(
        &self,
        change: impl Fn(&mut Ontology) -> Result<(), GraphError>,
    ) -> Result<(), GraphError> {
        loop {
            let mut ontology = self.ontology().await?;
            let Some(before) = registry::text_of(&*self.storage, ONTOLOGY).await? else { continue };
            if Ontology::from_yaml(&before)? != ontology {
                continue;
            }
            change(&mut ontology)?;
            match self.storage.str_replace(ONTOLOGY, &before, &ontology.to_yaml()).await {
                Ok(()) => return Ok(()),
                Err(error) if registry::is_outrun(error.code) => {}
                Err(error) => return Err(not_written(ONTOLOGY, error)),
            }
        }
    }

    /// Returns the records as they are now.
    async fn fresh(&self) -> Result<Arc<Index>, GraphError> {
        let before = self.index().clone();
        let news = index::news(&*self.storage, &before.marks()).await?;
        if news.is_empty() {
            return Ok(before);
        }
        drop(before);
        let mut index = self.index();
        Arc::make_mut(&mut index).take_in(news)?;
        Ok(index.clone())
    }

    fn index(&self) -> MutexGuard<'_, Arc<Index>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn create_content(&self, path: &str, content: Bytes) -> Result<(), GraphError> {
        self.storage.create(path, content).await.map_err(|error| not_written(path, error))
    }

    async fn content(&self, path: &str) -> Result<Content, GraphError> {
        match self.storage.view(path).await {
            Ok(FileContent::File { content, .. }) => Ok(content),
            Ok(FileContent::Directory { .. }) => {
                Err(GraphError::new(Code::ContentReadFailed, format!("{path} is a directory")))
            }
            Err(error) => {
                let message = format!("the content in {path} could not be read: {}", error.message);
                Err(GraphError::caused(Code::ContentReadFailed, message, error))
            }
        }
    }

    /// Returns a content; `None` if its file is not there.
    async fn content_if_there(&self, path: &str) -> Result<Option<Content>, GraphError> {
        match self.content(path).await {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a content that no record names. One that stays is found by [`repair`], so a failure is none of the operation.
    ///
    /// A record that names another file, by whatever hand, takes nothing but itself away.
    async fn take_back(&self, path: &str) {
        if path.starts_with("_content/") {
            drop(self.storage.delete(path).await);
        }
    }

    fn now(&self) -> String {
        let now = self.clock.now().0;
        let after = |last: i64| now.max(last.saturating_add(1));
        let last =
            self.last_moment.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        moment(Timestamp(after(last.unwrap_or(now))))
    }

    /// Returns a new id: letters and digits that every disk can hold.
    fn new_id(&self, prefix: &str) -> String {
        let mut moment = u64::try_from(self.clock.now().0).unwrap_or_default();
        let mut digits = Vec::new();
        while moment > 0 {
            digits.push(char::from(
                b"0123456789abcdefghijklmnopqrstuvwxyz"[usize::try_from(moment % 36).unwrap_or(0)],
            ));
            moment /= 36;
        }
        let moment: String = digits.iter().rev().collect();
        let random: String = self.ids.next()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{prefix}_{moment}_{random}")
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("storage", &self.storage).finish_non_exhaustive()
    }
}

/// Returns the operations that put a content in the place of another one.
fn replacing(old_path: String, old: Option<&Content>, path: &str, content: &Content) -> Vec<Operation> {
    match (old, content) {
        // A new text in the same file is an edit. To create a file costs a look at all names in its directory.
        (Some(Content::Text(old)), Content::Text(new)) if old_path == path && !old.is_empty() => {
            match old == new {
                true => Vec::new(),
                false => {
                    vec![Operation::StrReplace { path: old_path, old_str: old.clone(), new_str: new.clone() }]
                }
            }
        }
        _ => {
            let delete = old.map(|_| Operation::Delete { path: old_path });
            let create = Operation::Create { path: path.to_owned(), content: content.clone().into() };
            delete.into_iter().chain([create]).collect()
        }
    }
}

/// Returns a time as records have it: always with milliseconds, so that times sort as texts.
fn moment(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// Returns a time for a change: now, or just after the last change if the clock of its author was ahead. A reader that caches a content by its time sees
/// that it changed.
fn later(before: &str, now: &str) -> String {
    match (before.parse::<jiff::Timestamp>(), now.parse::<jiff::Timestamp>()) {
        (Ok(before), Ok(now)) if before >= now => {
            moment(Timestamp(before.as_millisecond().saturating_add(1)))
        }
        _ => now.to_owned(),
    }
}

fn check_properties(properties: &Properties) -> Result<(), GraphError> {
    match properties.keys().find(|name| name.is_empty()) {
        None => Ok(()),
        Some(_) => Err(GraphError::new(Code::InvalidArgument, "a property has no name")),
    }
}

fn no_node(id: &str) -> GraphError {
    GraphError::new(Code::NodeNotFound, format!("there is no node {id:?}"))
}

fn no_connection(id: &str) -> GraphError {
    GraphError::new(Code::ConnectionNotFound, format!("there is no connection {id:?}"))
}

fn exists(id: &str) -> GraphError {
    GraphError::new(Code::InvalidArgument, format!("{id} is there already"))
}

fn not_written(path: &str, error: StorageError) -> GraphError {
    let message = format!("{path} could not be written: {}", error.message);
    GraphError::caused(Code::FileCreationFailed, message, error)
}
