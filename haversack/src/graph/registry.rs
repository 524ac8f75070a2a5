//! The registry: the files that say which nodes and connections there are.
//!
//! `_system/registry.json` takes records until it is [`FULL_BYTES`] large; later ones go to `_system/registry/<two letters>.json`, by a hash of their id.
//! A record never moves, so that two machines that both made the step never disagree about it (docs/adr/0033). The files are JSON that a person
//! can read; those of two machines merge by record and field.
//!
//! # Invariants
//! 1. A change replaces the text that it was decided on, or is decided again: no writer overwrites the record of another one
//!    (`two_handles_keep_every_node`).
//! 2. A change of several files is one [batch](FileStorage::batch), and fails if any record that it depends on has changed
//!    (`connection_to_a_node_that_is_being_deleted`).
//! 3. Parts of a file that are no record of ours stay unchanged (`foreign_fields_stay`).
//! 4. A file that cannot be read stops every change of it, and is never replaced (`damaged_registry_is_never_replaced`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::lock::Mutex;
use haversack_store::Bytes;
use memchr::memmem;
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::{Code, GraphError};
use super::record::{Connection, Node};
use crate::file_storage::{self, Content, FileContent, FileStorage, Operation};

/// The directory of the registry's files.
pub(crate) const SYSTEM: &str = "_system";

/// The version of the registry's files. They name none: a reader keeps fields that it does not know, and another form takes other file names.
pub(crate) const VERSION: u32 = 1;

/// The first file, which takes records until it is full.
pub(crate) const HOME: &str = "_system/registry.json";

/// The size from which on [`HOME`] takes no new record: a change of it must stay cheap, and storages bound the size of a text.
pub(crate) const FULL_BYTES: u64 = 32 * 1024;

/// The letters of shard names: two of them are 1,024 shards, of a hundred records each in a graph of 100,000.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The most ids that are looked for in the text of the first file: to parse it costs less than to look for more.
const MAX_LOOKED_FOR: usize = 16;

/// The most times that a change is decided again because another writer was faster.
const MAX_TRIES: usize = 1000;

/// The map of a file that a record is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Sort {
    Nodes,
    Connections,
}

impl Sort {
    fn key(self) -> &'static str {
        match self {
            Sort::Nodes => "nodes",
            Sort::Connections => "connections",
        }
    }
}

/// A change of one record.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    PutNode(Node),
    PutConnection(Connection),
    Remove(Sort, String),
}

/// The changes of a transaction: records, and the files beside the registry.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    pub(crate) changes: Vec<Change>,
    /// Changes of content files, made together with those of the records.
    pub(crate) contents: Vec<Operation>,
}

/// The registry of a graph.
#[derive(Debug)]
pub(crate) struct Registry {
    storage: Arc<dyn FileStorage>,
    /// Held by the one transaction of this process: others would only be decided again.
    turn: Mutex<()>,
}

/// A file of the registry as it was read.
#[derive(Clone, Debug, Default)]
struct File {
    /// `None` if it is not there.
    text: Option<String>,
    data: Map<String, Value>,
    /// True if `data` was changed since it was read.
    is_changed: bool,
}

/// The records that a transaction asked for.
#[derive(Debug)]
pub(crate) struct Records {
    files: BTreeMap<String, File>,
}

impl Records {
    /// Returns a node, if it is there.
    pub(crate) fn node(&self, id: &str) -> Result<Option<Node>, GraphError> {
        self.get(Sort::Nodes, id)
    }

    /// Returns a connection, if it is there.
    pub(crate) fn connection(&self, id: &str) -> Result<Option<Connection>, GraphError> {
        self.get(Sort::Connections, id)
    }

    fn get<T: serde::de::DeserializeOwned>(&self, sort: Sort, id: &str) -> Result<Option<T>, GraphError> {
        for path in places(id) {
            let Some(record) = self.files.get(&path).and_then(|file| record(&file.data, sort, id)) else {
                continue;
            };
            let mut record = record.clone();
            if let Value::Object(fields) = &mut record {
                fields.insert("id".to_owned(), Value::from(id));
            }
            return serde_json::from_value(record).map(Some).map_err(|error| {
                GraphError::new(
                    Code::ContentReadFailed,
                    format!("the record of {id} in {path} is damaged: {error}"),
                )
            });
        }
        Ok(None)
    }
}

fn record<'a>(data: &'a Map<String, Value>, sort: Sort, id: &str) -> Option<&'a Value> {
    data.get(sort.key())?.as_object()?.get(id)
}

impl Registry {
    pub(crate) fn new(storage: Arc<dyn FileStorage>) -> Registry {
        Registry { storage, turn: Mutex::new(()) }
    }

    /// Returns the records of these ids.
    pub(crate) async fn records(&self, ids: &[&str]) -> Result<Records, GraphError> {
        let wanted: BTreeSet<String> = ids.iter().flat_map(|id| places(id)).collect();
        let mut files = BTreeMap::new();
        for path in wanted {
            let file = self.file(&path, ids).await?;
            files.insert(path, file);
        }
        Ok(Records { files })
    }

    /// Decides on the records of these ids, and carries it out; decides again if another writer was faster.
    pub(crate) async fn transact(
        &self,
        ids: &[&str],
        decide: impl Fn(&Records) -> Result<Decision, GraphError>,
    ) -> Result<(), GraphError> {
        self.transact_on(None, ids, decide).await
    }

    /// As [`transact`](Self::transact), beginning with records that were just read: large files are not read and parsed twice.
    pub(crate) async fn transact_on(
        &self,
        mut read: Option<Records>,
        ids: &[&str],
        decide: impl Fn(&Records) -> Result<Decision, GraphError>,
    ) -> Result<(), GraphError> {
        let _turn = self.turn.lock().await;
        let mut last = None;
        for _ in 0..MAX_TRIES {
            let records = match read.take() {
                Some(records) => records,
                None => self.records(ids).await?,
            };
            let decision = decide(&records)?;
            if decision.changes.is_empty() && decision.contents.is_empty() {
                return Ok(());
            }
            let operations = operations(records, ids, decision)?;
            // One change is whole by itself, and needs no record of a batch.
            let done = match operations.as_slice() {
                [Operation::Create { path, content }] => self.storage.create(path, content.clone()).await,
                [Operation::StrReplace { path, old_str, new_str }] => {
                    self.storage.str_replace(path, old_str, new_str).await
                }
                several => self.storage.batch(several).await,
            };
            match done {
                Ok(()) => return Ok(()),
                Err(error) if is_outrun(error.code) && is_registry(&error.path) => last = Some(error),
                Err(error) => {
                    let message = format!("the registry could not be changed: {}", error.message);
                    return Err(GraphError::caused(Code::FileCreationFailed, message, error));
                }
            }
        }
        let error = last.expect("it was tried");
        let message = format!("the registry kept changing: {}", error.message);
        Err(GraphError::caused(Code::FileCreationFailed, message, error))
    }

    /// Reads a file. One in which none of the ids occurs is not parsed: most changes of a large graph do not concern the first file.
    async fn file(&self, path: &str, ids: &[&str]) -> Result<File, GraphError> {
        let Some(text) = text_of(&*self.storage, path).await? else { return Ok(File::default()) };
        let is_full_and_foreign = path == HOME
            && text.len() as u64 >= FULL_BYTES
            && ids.len() <= MAX_LOOKED_FOR
            && !ids.iter().any(|id| memmem::find(text.as_bytes(), format!("\"{id}\"").as_bytes()).is_some());
        let data = if is_full_and_foreign { Map::new() } else { parse(path, &text)? };
        Ok(File { text: Some(text), data, is_changed: false })
    }
}

/// Returns the text of a file of the registry; `None` if it is not there.
pub(crate) async fn text_of(storage: &dyn FileStorage, path: &str) -> Result<Option<String>, GraphError> {
    match storage.view(path).await {
        Ok(FileContent::File { content: Content::Text(text), .. }) => Ok(Some(text)),
        Ok(_) => Err(damaged(path, "it is no text")),
        Err(error) if error.code == file_storage::Code::FileNotFound => Ok(None),
        Err(error) => {
            let message = format!("{path} could not be read: {}", error.message);
            Err(GraphError::caused(Code::ContentReadFailed, message, error))
        }
    }
}

/// Parses a file of the registry.
pub(crate) fn parse(path: &str, text: &str) -> Result<Map<String, Value>, GraphError> {
    let value: Value = serde_json::from_str(text).map_err(|error| damaged(path, &error.to_string()))?;
    let Value::Object(data) = value else { return Err(damaged(path, "it is no object")) };
    for sort in [Sort::Nodes, Sort::Connections] {
        if data.get(sort.key()).is_some_and(|map| !map.is_object()) {
            return Err(damaged(path, &format!("{:?} is no object", sort.key())));
        }
    }
    Ok(data)
}

fn damaged(path: &str, why: &str) -> GraphError {
    let message =
        format!("{path} is damaged ({why}); nothing was changed. Repair it: haversack doctor --fix");
    GraphError::new(Code::ContentReadFailed, message)
}

/// Tells whether a path is a file of the registry, seen from the root of the storage.
pub(crate) fn is_registry(path: &str) -> bool {
    path == HOME
        || path
            .strip_prefix("_system/registry/")
            .and_then(|name| name.strip_suffix(".json"))
            .is_some_and(|name| name.len() == 2 && name.bytes().all(|letter| LETTERS.contains(&letter)))
}

/// Returns where the record of an id may be: in the first file, else in its shard.
pub(crate) fn places(id: &str) -> [String; 2] {
    [HOME.to_owned(), shard(id)]
}

fn shard(id: &str) -> String {
    let hash = blake3::hash(id.as_bytes());
    let letter = |at: usize| char::from(LETTERS[usize::from(hash.as_bytes()[at]) % LETTERS.len()]);
    format!("{SYSTEM}/registry/{}{}.json", letter(0), letter(1))
}

/// Returns a file with its records, as it is written.
pub(crate) fn written(data: &Map<String, Value>) -> String {
    let mut text = serde_json::to_string_pretty(data).expect("data of JSON are JSON");
    text.push('\n');
    text
}

fn operations(records: Records, ids: &[&str], decision: Decision) -> Result<Vec<Operation>, GraphError> {
    let Records { mut files } = records;
    let mut holding = BTreeSet::new();
    for id in ids {
        holding.extend(places(id).into_iter().filter(|path| holds(&files, path, id)));
    }
    for change in decision.changes {
        let (sort, id, record) = match change {
            Change::PutNode(node) => (Sort::Nodes, node.id.clone(), Some(to_value(&node)?)),
            Change::PutConnection(connection) => {
                (Sort::Connections, connection.id.clone(), Some(to_value(&connection)?))
            }
            Change::Remove(sort, id) => (sort, id, None),
        };
        let [home, shard] = places(&id);
        let has =
            |path: &String| files.get(path).is_some_and(|file| self::record(&file.data, sort, &id).is_some());
        let is_full = || {
            let text = files.get(&home).and_then(|file| file.text.as_ref());
            text.is_some_and(|text| text.len() as u64 >= FULL_BYTES)
        };
        let path = if !has(&home) && (has(&shard) || is_full()) { shard } else { home };
        let Some(file) = files.get_mut(&path) else {
            return Err(GraphError::new(Code::InvalidArgument, format!("{id} was not asked for")));
        };
        match record {
            Some(record) => {
                put(&mut file.data, sort, id, record);
                file.is_changed = true;
            }
            None => {
                let map = file.data.get_mut(sort.key()).and_then(Value::as_object_mut);
                file.is_changed |= map.is_some_and(|map| map.remove(&id).is_some());
            }
        }
    }
    let mut operations = decision.contents;
    for (path, File { text, data, is_changed }) in files {
        match text {
            None if is_changed => {
                operations.push(Operation::Create { path, content: Bytes::from(written(&data)) });
            }
            Some(old_str) if is_changed => {
                operations.push(Operation::StrReplace { path, old_str, new_str: written(&data) });
            }
            // The records that the decision depends on must still be what they were when the changes are made.
            Some(text) if holding.contains(&path) => {
                operations.push(Operation::StrReplace { path, old_str: text.clone(), new_str: text });
            }
            None | Some(_) => {}
        }
    }
    Ok(operations)
}

/// Tells whether a file has a record of an id.
fn holds(files: &BTreeMap<String, File>, path: &str, id: &str) -> bool {
    let data = files.get(path).map(|file| &file.data);
    [Sort::Nodes, Sort::Connections]
        .into_iter()
        .any(|sort| data.and_then(|data| record(data, sort, id)).is_some())
}

/// Puts a record in the place of the one that is there. Fields that are not ours stay.
fn put(data: &mut Map<String, Value>, sort: Sort, id: String, record: Value) {
    for sort in [Sort::Nodes, Sort::Connections] {
        data.entry(sort.key()).or_insert_with(|| Value::Object(Map::new()));
    }
    let Some(map) = data.get_mut(sort.key()).and_then(Value::as_object_mut) else { return };
    match (map.get_mut(&id), record) {
        (Some(Value::Object(there)), Value::Object(new)) => {
            there.retain(|name, _| new.contains_key(name) || !OURS.contains(&name.as_str()));
            there.extend(new);
        }
        (_, record) => drop(map.insert(id, record)),
    }
}

/// The fields of records.
const OURS: [&str; 8] = ["id", "type", "from", "to", "created", "modified", "properties", "content"];

fn to_value(record: &impl Serialize) -> Result<Value, GraphError> {
    serde_json::to_value(record).map_err(|error| GraphError::new(Code::InvalidArgument, error.to_string()))
}

/// Tells whether a code says that another writer was faster.
pub(crate) fn is_outrun(code: file_storage::Code) -> bool {
    use file_storage::Code as Storage;
    matches!(
        code,
        Storage::FileExists | Storage::FileNotFound | Storage::StringNotFound | Storage::StringNotUnique
    )
}
