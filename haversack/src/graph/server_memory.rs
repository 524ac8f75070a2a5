//! The graph as `@modelcontextprotocol/server-memory` has it: entities with observations, and relations between their names.
//!
//! An entity is a node whose id follows from its name, so that two machines that note the same entity note the same node. Its content is a heading and
//! one line for each observation. A relation is a connection whose id follows from its ends and its type.
//!
//! `server-memory` accepts relations between entities that were never created. Here each such name becomes a node of type [`UNSPECIFIED`] that is shown
//! only as the end of relations, until an entity of that name is created: no connection leads nowhere.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

use super::error::{Code, GraphError};
use super::index::Index;
use super::record::{Connection, ContentFile, NAME, Node, id_of, name_of};
use super::registry::{Change, Decision};
use super::repair::UNSPECIFIED;
use super::{Graph, Properties, Property};
use crate::file_storage::{self, Content, Operation};

/// The most entities or relations that are written in one step, and about the most bytes of their contents.
const CHUNK: usize = 8_192;
const CHUNK_BYTES: usize = 32 * 1024 * 1024;

/// The most times that a change is repeated because another writer changed the same entity.
const MAX_TRIES: usize = 64;

/// The property of a node that only stands for the end of relations.
const PLACEHOLDER: &str = "placeholder";

/// An entity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// Its name.
    #[serde(alias = "entityName", alias = "id")]
    pub name: String,
    /// Its type.
    #[serde(rename = "entityType", alias = "entity_type")]
    pub entity_type: String,
    /// The facts about it.
    #[serde(default, alias = "contents")]
    pub observations: Vec<String>,
}

/// A relation between two entities.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Relation {
    /// The name of the entity where it begins.
    #[serde(alias = "from_id")]
    pub from: String,
    /// The name of the entity where it ends.
    #[serde(alias = "to_id")]
    pub to: String,
    /// Its type.
    #[serde(rename = "relationType", alias = "relation_type")]
    pub relation_type: String,
}

/// Entities, and the relations that belong to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Knowledge {
    /// The entities, the oldest first.
    pub entities: Vec<Entity>,
    /// The relations, the oldest first.
    pub relations: Vec<Relation>,
}

/// Observations to be added to an entity, or taken from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observations {
    /// The entity's name.
    pub entity: String,
    /// The observations.
    pub contents: Vec<String>,
}

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Entities that were created.
    pub entities: usize,
    /// Observations that were added to entities that were there already.
    pub observations: usize,
    /// Relations that were created.
    pub relations: usize,
}

/// A graph with the questions and answers of `server-memory`.
#[derive(Debug)]
pub struct ServerMemory {
    graph: Arc<Graph>,
    cache: Mutex<EntityCache>,
}

/// The entities of every file of the registry, as they were read.
#[derive(Debug, Default)]
struct EntityCache {
    files: HashMap<String, CachedFile>,
}

/// The entities of one file of the registry, sorted by id.
#[derive(Debug)]
struct CachedFile {
    mark: String,
    entities: Vec<Arc<CachedEntity>>,
    /// Everything that a search looks at, in lower case, one entity after the other: one pass over few large texts is many times faster than one over
    /// many small texts.
    text: String,
    /// Where the text of each entity ends.
    ends: Vec<usize>,
}

impl CachedFile {
    fn new(mark: String, entities: Vec<Arc<CachedEntity>>) -> CachedFile {
        let (mut text, mut ends) = (String::new(), Vec::with_capacity(entities.len()));
        for one in &entities {
            let Entity { name, entity_type, observations } = &one.entity;
            for part in [name, entity_type].into_iter().chain(observations) {
                text.push_str(&part.to_lowercase());
                text.push(BETWEEN);
            }
            ends.push(text.len());
        }
        CachedFile { mark, entities, text, ends }
    }

    /// Adds the entities that a search finds.
    fn search(&self, finder: &Finder<'_>, found: &mut Vec<Arc<CachedEntity>>) {
        let mut from = 0;
        while let Some(at) = self.text.as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
            let entity = self.ends.partition_point(|end| *end <= from + at);
            let (Some(one), Some(end)) = (self.entities.get(entity), self.ends.get(entity)) else { return };
            found.push(one.clone());
            from = *end;
        }
    }
}

/// What stands between two texts that are searched; no query has it.
const BETWEEN: char = '\0';

#[derive(Debug)]
struct CachedEntity {
    id: String,
    created: String,
    modified: String,
    entity: Entity,
}

impl ServerMemory {
    /// Returns `graph` with these questions and answers.
    pub fn new(graph: Arc<Graph>) -> ServerMemory {
        ServerMemory { graph, cache: Mutex::default() }
    }

    /// Creates the entities whose names are new, and returns those.
    pub async fn create_entities(&self, entities: &[Entity]) -> Result<Vec<Entity>, GraphError> {
        let mut created = Vec::new();
        let mut rest = entities;
        while !rest.is_empty() {
            let (chunk, others) = rest.split_at(first_chunk(rest));
            created.extend(again(|| self.create_chunk(chunk)).await?);
            rest = others;
        }
        Ok(created)
    }

    async fn create_chunk(&self, entities: &[Entity]) -> Result<Vec<Entity>, GraphError> {
        let ids: Vec<String> = entities.iter().map(|entity| id_of(&entity.name)).collect();
        let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
        let records = self.graph.registry.records(&asked).await?;
        let mut new: Vec<(&Entity, Option<Node>, String)> = Vec::new();
        let mut seen = BTreeSet::new();
        for (entity, id) in entities.iter().zip(&ids) {
            let there = records.node(id)?;
            if there.as_ref().is_none_or(is_placeholder) && seen.insert(id) {
                new.push((entity, there, self.graph.now()));
            }
        }
        let contents: Vec<(String, &Entity)> =
            new.iter().map(|(entity, _, _)| (id_of(&entity.name), *entity)).collect();
        self.write_contents(&contents).await?;
        let put = self.graph.registry.transact_on(Some(records), &asked, |records| {
            let mut decision = Decision::default();
            for (entity, before, now) in &new {
                let id = id_of(&entity.name);
                if records.node(&id)? != *before {
                    return Err(outrun(&id));
                }
                decision.changes.push(Change::PutNode(node_of(entity, &id, now)));
            }
            Ok(decision)
        });
        put.await?;
        Ok(new.into_iter().map(|(entity, _, _)| entity.clone()).collect())
    }

    /// Writes the contents of new entities.
    async fn write_contents(&self, entities: &[(String, &Entity)]) -> Result<(), GraphError> {
        let file = |(id, entity): &(String, &Entity)| {
            (path_of(id), content_of(&entity.name, &entity.observations).into())
        };
        let files = entities.iter().map(file).collect();
        let created = self.graph.storage().create_all(files).await;
        let created = created.map_err(|error| super::not_written("_content/nodes", error))?;
        for ((id, entity), result) in entities.iter().zip(created) {
            match result {
                Ok(()) => {}
                Err(error) if error.code == file_storage::Code::FileExists => {
                    self.write_content(id, entity).await?;
                }
                Err(error) => return Err(super::not_written(&path_of(id), error)),
            }
        }
        Ok(())
    }

    /// Writes the content of a new entity. If the file is there already, another process is creating the same entity, or one died while it did: its
    /// observations stay.
    async fn write_content(&self, id: &str, entity: &Entity) -> Result<(), GraphError> {
        let path = path_of(id);
        let storage = self.graph.storage();
        for _ in 0..MAX_TRIES {
            let content = content_of(&entity.name, &entity.observations);
            match storage.create(&path, content.clone().into()).await {
                Ok(()) => return Ok(()),
                Err(error) if error.code == file_storage::Code::FileExists => {}
                Err(error) => return Err(super::not_written(&path, error)),
            }
            let before = match self.graph.content(&path).await {
                Ok(Content::Text(before)) => before,
                Ok(Content::Bytes(_)) => String::new(),
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            let mut observations = observations_in(&before);
            let added = entity.observations.iter().filter(|one| !observations.contains(one)).cloned();
            let added: Vec<String> = added.collect();
            observations.extend(added);
            let after = content_of(&entity.name, &observations);
            let written = match before.is_empty() {
                _ if after == before => return Ok(()),
                true => {
                    let again = Operation::Create { path: path.clone(), content: after.into() };
                    storage.batch(&[Operation::Delete { path: path.clone() }, again]).await
                }
                false => storage.str_replace(&path, &before, &after).await,
            };
            match written {
                Ok(()) => return Ok(()),
                Err(error) if super::registry::is_outrun(error.code) => {}
                Err(error) => return Err(super::not_written(&path, error)),
            }
        }
        Err(outrun(id))
    }

    /// Creates the relations that are new, and returns those.
    pub async fn create_relations(&self, relations: &[Relation]) -> Result<Vec<Relation>, GraphError> {
        let mut created = Vec::new();
        for chunk in relations.chunks(CHUNK) {
            created.extend(again(|| self.relate_chunk(chunk)).await?);
        }
        Ok(created)
    }

    async fn relate_chunk(&self, relations: &[Relation]) -> Result<Vec<Relation>, GraphError> {
        let names = relations.iter().flat_map(|relation| [&relation.from, &relation.to]);
        let mut ends: BTreeMap<String, String> = names.map(|name| (name.clone(), id_of(name))).collect();
        let likely: Vec<String> = ends.values().cloned().collect();
        let likely: Vec<&str> = likely.iter().map(String::as_str).collect();
        let records = self.graph.registry.records(&likely).await?;
        for (name, id) in &mut ends {
            if records.node(id)?.is_none()
                && let Some(other) = self.resolve_other(name).await?
            {
                *id = other;
            }
        }
        let mut new: BTreeMap<String, &Relation> = BTreeMap::new();
        let mut order = Vec::new();
        for relation in relations {
            let id = id_of_relation(&ends[&relation.from], &relation.relation_type, &ends[&relation.to]);
            if new.insert(id.clone(), relation).is_none() {
                order.push(id);
            }
        }
        let asked: Vec<&str> = ends.values().chain(&order).map(String::as_str).collect();
        let records = self.graph.registry.records(&asked).await?;
        let mut created = Vec::new();
        for id in &order {
            if records.connection(id)?.is_none() {
                created.push((id.clone(), new[id], self.graph.now()));
            }
        }
        if created.is_empty() {
            return Ok(Vec::new());
        }
        let mut missing: Vec<(&String, Entity)> = Vec::new();
        for (name, id) in &ends {
            if records.node(id)?.is_none() {
                let entity = Entity {
                    name: name.clone(),
                    entity_type: UNSPECIFIED.to_owned(),
                    observations: Vec::new(),
                };
                missing.push((id, entity));
            }
        }
        if !missing.is_empty() {
            let contents: Vec<(String, &Entity)> =
                missing.iter().map(|(id, entity)| ((*id).clone(), entity)).collect();
            self.write_contents(&contents).await?;
        }
        let made: HashSet<&String> = missing.iter().map(|(id, _)| *id).collect();
        let put = self.graph.registry.transact(&asked, |records| {
            let mut decision = Decision::default();
            for (id, entity) in &missing {
                if records.node(id)?.is_some() {
                    return Err(outrun(id));
                }
                let mut node = node_of(entity, id, &created[0].2);
                node.properties.insert(PLACEHOLDER.to_owned(), Property::Bool(true));
                decision.changes.push(Change::PutNode(node));
            }
            for (id, relation, now) in &created {
                let (from, to) = (ends[&relation.from].clone(), ends[&relation.to].clone());
                for end in [&from, &to] {
                    if records.node(end)?.is_none() && !made.contains(end) {
                        return Err(outrun(end));
                    }
                }
                if records.connection(id)?.is_some() {
                    return Err(outrun(id));
                }
                decision.changes.push(Change::PutConnection(Connection {
                    id: id.clone(),
                    connection_type: relation.relation_type.clone(),
                    from,
                    to,
                    created: now.clone(),
                    modified: now.clone(),
                    properties: Properties::new(),
                    content: None,
                }));
            }
            Ok(decision)
        });
        put.await?;
        Ok(created.into_iter().map(|(_, relation, _)| relation.clone()).collect())
    }

    /// Adds observations to entities, and returns those that were new for each; if one of the entities is not there, nothing is added.
    pub async fn add_observations(&self, added: &[Observations]) -> Result<Vec<Observations>, GraphError> {
        for Observations { entity, .. } in added {
            if self.entity_id(entity).await?.is_none() {
                return Err(GraphError::new(
                    Code::NodeNotFound,
                    format!("Entity with name {entity} not found"),
                ));
            }
        }
        let mut results = Vec::new();
        for Observations { entity, contents } in added {
            let new = self.change_observations(entity, |observations| {
                let mut new = Vec::new();
                for content in contents {
                    if !observations.contains(content) {
                        new.push(content.clone());
                    }
                }
                observations.extend(new.iter().cloned());
                new
            });
            let contents = new.await?.unwrap_or_default();
            results.push(Observations { entity: entity.clone(), contents });
        }
        Ok(results)
    }

    /// Deletes entities with their relations; names that are not there are left out.
    pub async fn delete_entities(&self, names: &[String]) -> Result<(), GraphError> {
        for name in names {
            let Some(id) = self.resolve(name).await? else { continue };
            match self.graph.delete_node(&id).await {
                Ok(_) => {}
                Err(error) if error.code == Code::NodeNotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes observations from entities; those that are not there are left out.
    pub async fn delete_observations(&self, deleted: &[Observations]) -> Result<(), GraphError> {
        for Observations { entity, contents } in deleted {
            let change = self.change_observations(entity, |observations| {
                let (gone, stay) =
                    observations.drain(..).partition(|observation| contents.contains(observation));
                *observations = stay;
                gone
            });
            change.await?;
        }
        Ok(())
    }

    /// Deletes relations; those that are not there are left out.
    pub async fn delete_relations(&self, relations: &[Relation]) -> Result<(), GraphError> {
        for relation in relations {
            let (Some(from), Some(to)) =
                (self.resolve(&relation.from).await?, self.resolve(&relation.to).await?)
            else {
                continue;
            };
            let id = id_of_relation(&from, &relation.relation_type, &to);
            let query = super::ConnectionQuery {
                from: Some(from),
                to: Some(to),
                connection_type: Some(relation.relation_type.clone()),
                properties: Properties::new(),
            };
            let ids = match self.graph.registry.records(&[&id]).await?.connection(&id)? {
                Some(_) => vec![id],
                None => self.graph.query_connections(&query).await?,
            };
            for id in ids {
                match self.graph.delete_connection(&id).await {
                    Ok(()) => {}
                    Err(error) if error.code == Code::ConnectionNotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Returns everything.
    pub async fn read_graph(&self) -> Result<Knowledge, GraphError> {
        let index = self.look().await?;
        let cache = self.cache();
        let all = cache.files.values().flat_map(|file| &file.entities);
        let entities = in_order(all.filter(|one| !is_hidden(&index, &one.id)).collect());
        let mut relations: Vec<&Arc<Connection>> = index.connections.values().collect();
        relations.retain(|one| index.is_whole(one));
        Ok(Knowledge { entities, relations: named(&index, relations) })
    }

    /// Returns the entities in whose name, type or observations `query` occurs, whatever the case, with every relation of theirs.
    pub async fn search_nodes(&self, query: &str) -> Result<Knowledge, GraphError> {
        let query = query.to_lowercase();
        let index = self.look().await?;
        let finder = Finder::new(&query);
        let mut found = Vec::new();
        if query.is_empty() {
            self.cache().files.values().for_each(|file| found.extend(file.entities.iter().cloned()));
        } else if !query.contains(BETWEEN) {
            self.cache().files.values().for_each(|file| file.search(&finder, &mut found));
        }
        found.retain(|one| !is_hidden(&index, &one.id));
        Ok(with_relations(&index, found.iter().collect()))
    }

    /// Returns the entities of these names, with every relation of theirs.
    pub async fn open_nodes(&self, names: &[String]) -> Result<Knowledge, GraphError> {
        let index = self.look().await?;
        let mut ids = BTreeSet::new();
        for name in names {
            ids.extend([id_of(name), name.clone()]);
            ids.extend(index.others_by_name.get(name).into_iter().flatten().cloned());
        }
        let cache = self.cache();
        let mut found = Vec::new();
        for id in ids.iter().filter(|id| !is_hidden(&index, id)) {
            let file = super::registry::places(id).into_iter().find_map(|path| {
                let file = cache.files.get(&path)?;
                let at = file.entities.binary_search_by(|one| one.id.as_str().cmp(id)).ok()?;
                file.entities.get(at)
            });
            found.extend(file.filter(|one| names.contains(&one.entity.name)));
        }
        Ok(with_relations(&index, found))
    }

    /// Takes in a file of `server-memory`: one JSON object in each line. The error names the line; nothing was written then.
    pub async fn import(&self, text: &str) -> Result<Imported, GraphError> {
        let Knowledge { entities, relations } = parse(text)?;
        let created = self.create_entities(&entities).await?;
        let new: BTreeSet<&String> = created.iter().map(|entity| &entity.name).collect();
        let mut imported = Imported { entities: created.len(), ..Imported::default() };
        for entity in entities.iter().filter(|entity| !new.contains(&entity.name)) {
            let added = Observations { entity: entity.name.clone(), contents: entity.observations.clone() };
            let results = self.add_observations(&[added]).await?;
            imported.observations += results.iter().map(|result| result.contents.len()).sum::<usize>();
        }
        imported.relations = self.create_relations(&relations).await?.len();
        Ok(imported)
    }

    /// Returns everything as a file of `server-memory`: entities first, no newline at the end.
    pub async fn export(&self) -> Result<String, GraphError> {
        let knowledge = self.read_graph().await?;
        let entities = knowledge.entities.into_iter().map(Line::Entity);
        let lines = entities.chain(knowledge.relations.into_iter().map(Line::Relation));
        let lines: Result<Vec<String>, serde_json::Error> =
            lines.map(|line| serde_json::to_string(&line)).collect();
        Ok(lines.map_err(|error| GraphError::new(Code::InvalidArgument, error.to_string()))?.join("\n"))
    }

    /// Changes the observations of an entity; `None` if it is not there.
    async fn change_observations(
        &self,
        name: &str,
        change: impl Fn(&mut Vec<String>) -> Vec<String>,
    ) -> Result<Option<Vec<String>>, GraphError> {
        let Some(id) = self.entity_id(name).await? else { return Ok(None) };
        for _ in 0..MAX_TRIES {
            let node = self.graph.get_node(&id).await?;
            let Content::Text(before) = self.graph.content(&node.content.path).await? else {
                let message = format!("the content of {name} is no text, so it has no observations");
                return Err(GraphError::new(Code::InvalidEncoding, message));
            };
            let mut observations = observations_in(&before);
            let changed = change(&mut observations);
            if changed.is_empty() {
                return Ok(Some(changed));
            }
            let now = self.graph.now();
            let after = content_of(name, &observations);
            let (storage, path) = (self.graph.storage(), node.content.path.clone());
            let written = match before.is_empty() {
                true => {
                    let create = Operation::Create { path: path.clone(), content: after.into() };
                    storage.batch(&[Operation::Delete { path: path.clone() }, create]).await
                }
                false => storage.str_replace(&path, &before, &after).await,
            };
            match written {
                Ok(()) => {}
                // Another writer changed the observations since they were read.
                Err(error) if super::registry::is_outrun(error.code) => continue,
                Err(error) => return Err(super::not_written(&path, error)),
            }
            let ids = [id.as_str()];
            let put = self.graph.registry.transact(&ids, |records| {
                let mut node = records.node(&id)?.ok_or_else(|| super::no_node(&id))?;
                node.modified = super::later(&node.modified, &now);
                Ok(Decision { changes: vec![Change::PutNode(node)], contents: Vec::new() })
            });
            put.await?;
            return Ok(Some(changed));
        }
        Err(outrun(&id))
    }

    /// Returns the id of an entity that was created, not only named.
    async fn entity_id(&self, name: &str) -> Result<Option<String>, GraphError> {
        let Some(id) = self.resolve(name).await? else { return Ok(None) };
        let node = self.graph.registry.records(&[&id]).await?.node(&id)?;
        Ok(node.filter(|node| !is_placeholder(node)).map(|_| id))
    }

    /// Returns the id of the node of this name: the one that follows from it, else that of a node made by other means.
    async fn resolve(&self, name: &str) -> Result<Option<String>, GraphError> {
        let id = id_of(name);
        if self.graph.registry.records(&[&id]).await?.node(&id)?.is_some() {
            return Ok(Some(id));
        }
        self.resolve_other(name).await
    }

    /// Returns the id of the node of this name that was made by other means.
    async fn resolve_other(&self, name: &str) -> Result<Option<String>, GraphError> {
        let index = self.graph.index().clone();
        let index = if index.generation == 0 { self.graph.fresh().await? } else { index };
        let others = index.others_by_name.get(name).and_then(|ids| ids.first());
        Ok(others.cloned().or_else(|| index.nodes.contains_key(name).then(|| name.to_owned())))
    }

    fn cache(&self) -> MutexGuard<'_, EntityCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what changed, so that the cache has all entities, and returns the records.
    async fn look(&self) -> Result<Arc<Index>, GraphError> {
        let index = self.graph.fresh().await?;
        let mut stale = Vec::new();
        {
            let mut cache = self.cache();
            cache.files.retain(|path, _| index.nodes_of(path).is_some());
            for (path, mark, ids) in index.files() {
                let before = cache.files.get(path);
                if before.is_none_or(|before| before.mark != mark) {
                    let kept = before.map(|before| before.entities.clone()).unwrap_or_default();
                    stale.push((path.to_owned(), mark.to_owned(), ids.to_vec(), kept));
                }
            }
        }
        for (path, mark, ids, kept) in stale {
            let kept: HashMap<&str, &Arc<CachedEntity>> =
                kept.iter().map(|one| (one.id.as_str(), one)).collect();
            let mut cached = Vec::with_capacity(ids.len());
            for id in &ids {
                let Some(node) = index.nodes.get(id) else { continue };
                match kept.get(id.as_str()) {
                    Some(one) if one.modified == node.modified => cached.push((*one).clone()),
                    _ => cached.push(Arc::new(self.read_entity(node).await?)),
                }
            }
            self.cache().files.insert(path, CachedFile::new(mark, cached));
        }
        Ok(index)
    }

    async fn read_entity(&self, node: &Node) -> Result<CachedEntity, GraphError> {
        let observations = match self.graph.content(&node.content.path).await {
            Ok(Content::Text(text)) => observations_in(&text),
            Ok(Content::Bytes(_)) => Vec::new(),
            // It is being replaced or gone; the doctor tells.
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(error),
        };
        let name = name_of(node);
        Ok(CachedEntity {
            id: node.id.clone(),
            created: node.created.clone(),
            modified: node.modified.clone(),
            entity: Entity { name, entity_type: node.node_type.clone(), observations },
        })
    }
}

/// A line of a file of `server-memory`.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Entity(Entity),
    Relation(Relation),
}

/// Reads a file of `server-memory`. Lines of other types are left out, as it does itself.
fn parse(text: &str) -> Result<Knowledge, GraphError> {
    let mut knowledge = Knowledge::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = |error: serde_json::Error| {
            let why = match error.is_data() {
                true => error.to_string(),
                false => format!("not JSON from column {} on", error.column()),
            };
            GraphError::new(Code::InvalidArgument, format!("line {}: {why}", number + 1))
        };
        let value: serde_json::Value = serde_json::from_str(line).map_err(bad)?;
        let is_ours = matches!(value.get("type").and_then(|name| name.as_str()), Some("entity" | "relation"));
        if !is_ours {
            continue;
        }
        match serde_json::from_value(value).map_err(bad)? {
            Line::Entity(entity) => knowledge.entities.push(entity),
            Line::Relation(relation) => knowledge.relations.push(relation),
        }
    }
    Ok(knowledge)
}

/// Does a change again as long as other writers are faster.
async fn again<T, F: Future<Output = Result<T, GraphError>>>(
    change: impl Fn() -> F,
) -> Result<T, GraphError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match change().await {
            Err(error) if tries < MAX_TRIES && is_outrun(&error) => {}
            done => return done,
        }
    }
}

/// Returns how many of these entities are written in one step.
fn first_chunk(entities: &[Entity]) -> usize {
    let mut bytes = 0;
    let fits = |entity: &&Entity| {
        bytes += entity.observations.iter().map(String::len).sum::<usize>();
        bytes <= CHUNK_BYTES
    };
    entities.iter().take(CHUNK).take_while(fits).count().max(1)
}

fn outrun(id: &str) -> GraphError {
    let message = format!("another writer changed {id}");
    let error = file_storage::StorageError::new(file_storage::Code::StringNotFound, message.clone(), id);
    GraphError::caused(Code::FileCreationFailed, message, error)
}

fn is_outrun(error: &GraphError) -> bool {
    error.storage_code().is_some_and(super::registry::is_outrun)
}

fn is_placeholder(node: &Node) -> bool {
    node.properties.get(PLACEHOLDER) == Some(&Property::Bool(true))
}

fn is_hidden(index: &Index, id: &str) -> bool {
    index.nodes.get(id).is_none_or(|node| is_placeholder(node))
}

fn id_of_relation(from: &str, relation_type: &str, to: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [from, relation_type, to] {
        hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    format!("conn_{}", &hasher.finalize().to_hex()[..24])
}

fn path_of(id: &str) -> String {
    format!("_content/nodes/{id}.md")
}

fn node_of(entity: &Entity, id: &str, now: &str) -> Node {
    Node {
        id: id.to_owned(),
        node_type: entity.entity_type.clone(),
        created: now.to_owned(),
        modified: now.to_owned(),
        properties: Properties::from([(NAME.to_owned(), Property::Text(entity.name.clone()))]),
        content: ContentFile {
            path: path_of(id),
            format: "markdown".to_owned(),
            encoding: Some("utf-8".to_owned()),
        },
    }
}

/// Returns the content of an entity: a heading, and one item for each observation. Further lines of an observation are indented.
fn content_of(name: &str, observations: &[String]) -> String {
    let title: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut text = format!("# {title}\n\n");
    for observation in observations {
        text.push_str("- ");
        text.push_str(&observation.replace('\n', "\n  "));
        text.push('\n');
    }
    text
}

/// Returns the observations of a content. A line of another hand, the note of a merge among them, is an observation too.
fn observations_in(text: &str) -> Vec<String> {
    let mut observations: Vec<String> = Vec::new();
    let mut is_item = false;
    for (number, line) in text.split('\n').enumerate() {
        if let Some(item) = line.strip_prefix("- ") {
            observations.push(item.to_owned());
            is_item = true;
        } else if let Some(more) = line.strip_prefix("  ").filter(|_| is_item) {
            if let Some(last) = observations.last_mut() {
                last.push('\n');
                last.push_str(more);
            }
        } else if !(line.is_empty() || number == 0 && line.starts_with("# ")) {
            observations.push(line.to_owned());
            is_item = false;
        } else {
            is_item = false;
        }
    }
    observations
}

fn in_order(mut found: Vec<&Arc<CachedEntity>>) -> Vec<Entity> {
    found.sort_by(|one, other| (&one.created, &one.id).cmp(&(&other.created, &other.id)));
    found.into_iter().map(|one| one.entity.clone()).collect()
}

fn with_relations(index: &Index, found: Vec<&Arc<CachedEntity>>) -> Knowledge {
    let mut seen = BTreeSet::new();
    let relations =
        found.iter().flat_map(|one| index.connections_of(&one.id)).filter(|one| seen.insert(one.id.clone()));
    let relations = relations.collect();
    Knowledge { entities: in_order(found), relations: named(index, relations) }
}

fn named(index: &Index, mut connections: Vec<&Arc<Connection>>) -> Vec<Relation> {
    connections.sort_by(|one, other| (&one.created, &one.id).cmp(&(&other.created, &other.id)));
    let name = |id: &str| index.nodes.get(id).map_or_else(|| id.to_owned(), |node| name_of(node));
    let relation = |one: &Arc<Connection>| Relation {
        from: name(&one.from),
        to: name(&one.to),
        relation_type: one.connection_type.clone(),
    };
    connections.into_iter().map(relation).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_spellings_of_lines_are_read() {
        let text = "{\"type\":\"entity\",\"entityName\":\"lighthouse\",\"entityType\":\"project\",\"observations\":[\"port 5433\"]}\n\n\
                    {\"type\":\"entity\",\"id\":\"keeper\",\"entity_type\":\"role\"}\n{\"type\":\"other\"}\n\
                    {\"type\":\"relation\",\"from_id\":\"keeper\",\"to_id\":\"lighthouse\",\"relation_type\":\"keeps\"}";
        let knowledge = parse(text).expect("valid");
        assert_eq!(knowledge.entities.len(), 2);
        assert_eq!(knowledge.entities[0].observations, ["port 5433"]);
        assert_eq!(knowledge.relations[0].relation_type, "keeps");
        let error = parse("{\"type\":\"entity\",\"name\":1}").expect_err("no name");
        assert!(error.message.starts_with("line 1: "), "{error}");
    }

    proptest! {
        #[test]
        fn observations_survive_their_file(name in ".{0,8}", observations in prop::collection::vec("[-# a\\r\\n]{0,9}", 0..5)) {
            let text = content_of(&name, &observations);
            prop_assert_eq!(observations_in(&text), observations);
        }
    }
}
