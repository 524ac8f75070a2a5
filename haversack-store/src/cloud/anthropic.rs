//! A memory store of Anthropic's (Managed Agents) as a backend: texts at paths.
//!
//! # Differences from a bucket
//! - A memory is found by its path in a listing, and read, changed and deleted by its id. We remember ids; an id that is gone, or has another path by now,
//!   is looked up again.
//! - A version is the SHA-256 of the content, so a condition holds if the content is the same, by any writer.
//! - Only texts fit in: UTF-8, at most [`MAX_TEXT_BYTES`]; a path has at most [`MAX_SEGMENTS`] names. We refuse others before anything is sent.
//!
//! # Invariants
//! 1. A change is sent once. If its answer is lost, a read tells whether the content is there (`lost_answers`).
//! 2. A store that is opened to be read is never written: no such request leaves (`read_only_store_is_never_written`).
//! 3. The key is in no message and in no debug output (`key_is_in_no_message`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use ring::digest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::backend::CAPABILITIES;
use super::local_locks::LocalLocks;
use super::sign::{Kind, Signer};
use super::wire::{Answer, Ask, Repeat, Unanswered, Wire};
use crate::backend::{
    Appended, Backend, Condition, Durability, Entry, EntryKind, Guard, Info, Listing, Object, Odd, Page,
    Pages, Written,
};
use crate::capabilities::{Capabilities, ConflictStrategy};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;
use crate::refuse::{check_rename, condition_failed, is_a_directory, nothing_there, root_refused};
use crate::registry::OpenOptions;
use crate::version::{Fingerprint, TouchMark, Version};

/// The name of the backend, and what its addresses begin with.
pub const ANTHROPIC: &str = "anthropic";

/// The setting with the key.
pub const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";

/// The setting with another server.
pub const ANTHROPIC_SERVER: &str = "ANTHROPIC_BASE_URL";

/// The setting that says that a store is only read: `true` or `false`.
pub const ANTHROPIC_READ_ONLY: &str = "HAVERSACK_ANTHROPIC_READ_ONLY";

/// The largest content of a memory.
const MAX_TEXT_BYTES: usize = 102_400;

/// The most names in a path.
const MAX_SEGMENTS: usize = 20;

const SERVER: &str = "https://api.anthropic.com";

/// The revision of the interface for memory stores.
const BETA: &str = "agent-memory-2026-07-22";

const API_VERSION: &str = "2023-06-01";

/// The most memories on a page of a listing.
const PAGE: usize = 100;

/// The most pages of one listing: a store has at most 2,000 memories, so that a server that never ends is noticed.
const MAX_PAGES: usize = 1000;

/// The most bytes of an answer.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// The time that the server may be silent.
const SILENCE: Duration = Duration::from_secs(30);

/// The most times that an append starts again because another program wrote.
const MAX_APPENDS: u32 = 64;

/// A memory store.
#[derive(Debug)]
pub(crate) struct MemoryStore {
    /// The beginning of every address in the store.
    base: Url,
    store: String,
    key: HeaderValue,
    access: Access,
    wire: Arc<Wire>,
    ids: Mutex<HashMap<Locator, String>>,
    /// Keeps the processes of this machine apart; a memory store has no locks.
    locks: LocalLocks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    ReadAndWrite,
    ReadOnly,
}

/// A memory as the server describes it.
#[derive(Clone, Debug, Deserialize)]
struct Item {
    id: String,
    path: String,
    content_sha256: String,
    content_size_bytes: u64,
    #[serde(default)]
    updated_at: Option<String>,
    #[serde(default)]
    content: Option<String>,
}

/// A page of a listing.
#[derive(Debug, Deserialize)]
struct Items {
    #[serde(default)]
    data: Vec<Value>,
    #[serde(default)]
    next_page: Option<String>,
}

/// The entries of a listing: memories, and the beginnings of deeper paths.
#[derive(Debug, Default)]
struct Listed {
    items: Vec<Item>,
    prefixes: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Children,
    Everything,
}

/// Opens the store of an address `anthropic:memstore_…`; asks it nothing.
pub(crate) fn open(options: &OpenOptions) -> Result<Arc<dyn Backend>> {
    let invalid =
        |message: String| Error::at(ErrorKind::Invalid, Operation::Open, options.address.as_str(), message);
    let store = options.address.strip_prefix("anthropic:").unwrap_or(&options.address).trim_matches('/');
    let is_id = !store.is_empty()
        && store.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if !is_id {
        return Err(invalid("it is no memory store: name one as anthropic:memstore_…".to_owned()));
    }
    let server = options.settings.get(&[ANTHROPIC_SERVER]).unwrap_or(SERVER);
    let base =
        Url::parse(server).map_err(|error| invalid(format!("{ANTHROPIC_SERVER} is no address: {error}")))?;
    let is_here = matches!(base.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
    if base.scheme() != "https" && !is_here {
        return Err(invalid(format!(
            "{ANTHROPIC_SERVER} is not encrypted; the key would be readable on the way"
        )));
    }
    let Some(key) = options.settings.get(&[ANTHROPIC_KEY]) else {
        let message = format!("there is no key: set {ANTHROPIC_KEY}");
        return Err(Error::at(ErrorKind::Denied, Operation::Open, options.address.as_str(), message));
    };
    let mut key = HeaderValue::from_str(key)
        .map_err(|_| invalid(format!("{ANTHROPIC_KEY} has characters that no key has")))?;
    key.set_sensitive(true);
    let access = match options.settings.get(&[ANTHROPIC_READ_ONLY]) {
        None | Some("false" | "0") => Access::ReadAndWrite,
        Some("true" | "1") => Access::ReadOnly,
        Some(_) => return Err(invalid(format!("{ANTHROPIC_READ_ONLY} is true or false"))),
    };
    let locks = LocalLocks::new(&options.locks, &format!("{base} {store}"));
    Ok(Arc::new(MemoryStore {
        base,
        store: store.to_owned(),
        key,
        access,
        wire: Arc::new(Wire::new(Signer::new(Kind::Nobody, ANTHROPIC_KEY), SILENCE, Vec::new())),
        ids: Mutex::default(),
        locks,
    }))
}

impl MemoryStore {
    fn ids(&self) -> MutexGuard<'_, HashMap<Locator, String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn url(&self, id: Option<&str>, query: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        let mut path =
            format!("{}/v1/memory_stores/{}/memories", url.path().trim_end_matches('/'), self.store);
        if let Some(id) = id {
            path.push('/');
            path.push_str(
                &utf8_percent_encode(id, NON_ALPHANUMERIC)
                    .to_string()
                    .replace("%5F", "_")
                    .replace("%2D", "-"),
            );
        }
        url.set_path(&path);
        url.query_pairs_mut().extend_pairs(query).append_pair("beta", "true");
        url
    }

    async fn ask(
        &self,
        method: Method,
        url: Url,
        body: Option<Value>,
    ) -> std::result::Result<Answer, Unanswered> {
        let repeat = if method == Method::GET { Repeat::Freely } else { Repeat::Never };
        let mut headers = vec![
            (HeaderName::from_static("x-api-key"), self.key.clone()),
            (HeaderName::from_static("anthropic-version"), HeaderValue::from_static(API_VERSION)),
            (HeaderName::from_static("anthropic-beta"), HeaderValue::from_static(BETA)),
        ];
        if body.is_some() {
            headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
        }
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        self.wire.ask(Ask { method, url, headers, body, repeat, limit: MAX_ANSWER_BYTES }).await
    }

    async fn get(&self, operation: Operation, locator: &Locator, url: Url) -> Result<Answer> {
        self.ask(Method::GET, url, None).await.map_err(|none| unanswered(operation, locator, none))
    }

    /// Refuses every change of a store that is only read.
    fn check_writable(&self, operation: Operation, locator: &Locator) -> Result<()> {
        match self.access {
            Access::ReadAndWrite => Ok(()),
            Access::ReadOnly => {
                let message = "the memory store is opened to be read only";
                Err(Error::new(ErrorKind::Denied, operation, locator, message))
            }
        }
    }

    /// Lists what is below a place.
    async fn listed(&self, operation: Operation, locator: &Locator, reach: Reach) -> Result<Listed> {
        let prefix = if locator.is_root() { "/".to_owned() } else { format!("/{locator}/") };
        let (limit, depth) = (PAGE.to_string(), if reach == Reach::Children { "1" } else { "0" });
        let mut listed = Listed::default();
        let mut page: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut query =
                vec![("path_prefix", prefix.as_str()), ("depth", depth), ("limit", limit.as_str())];
            query.extend(page.as_deref().map(|page| ("page", page)));
            let answer = self.get(operation, locator, self.url(None, &query)).await?;
            if !answer.status.is_success() {
                return Err(self.refused(operation, locator, &answer));
            }
            let items: Items = parsed(operation, locator, &answer)?;
            for value in items.data {
                match value.get("type").and_then(Value::as_str) {
                    Some("memory_prefix") => {
                        listed.prefixes.extend(value.get("path").and_then(Value::as_str).map(str::to_owned));
                    }
                    _ => listed.items.push(
                        serde_json::from_value(value).map_err(|error| garbled(operation, locator, &error))?,
                    ),
                }
            }
            page = items.next_page.filter(|next| !next.is_empty());
            if page.is_none() {
                let mut ids = self.ids();
                for item in &listed.items {
                    if let Ok(place) = place(&item.path) {
                        ids.insert(place, item.id.clone());
                    }
                }
                return Ok(listed);
            }
        }
        let message = "the server's listing does not end";
        Err(Error::new(ErrorKind::Internal, operation, locator, message))
    }

    /// Finds the memory at a place, without its content.
    async fn find(&self, operation: Operation, locator: &Locator) -> Result<Option<Item>> {
        let known = self.ids().get(locator).cloned();
        if let Some(id) = known
            && let Some(item) = self.retrieve(operation, locator, &id, "basic").await?
        {
            return Ok(Some(item));
        }
        let parent = locator.parent().unwrap_or_else(Locator::root);
        let listed = self.listed(operation, &parent, Reach::Children).await?;
        Ok(listed.items.into_iter().find(|item| place(&item.path).is_ok_and(|place| place == *locator)))
    }

    /// Returns the memory of an id if it is still the one at a place.
    async fn retrieve(
        &self,
        operation: Operation,
        locator: &Locator,
        id: &str,
        view: &str,
    ) -> Result<Option<Item>> {
        let answer = self.get(operation, locator, self.url(Some(id), &[("view", view)])).await?;
        if answer.status == StatusCode::NOT_FOUND {
            self.ids().remove(locator);
            return Ok(None);
        }
        if !answer.status.is_success() {
            return Err(self.refused(operation, locator, &answer));
        }
        let item: Item = parsed(operation, locator, &answer)?;
        if place(&item.path).is_ok_and(|place| place == *locator) {
            return Ok(Some(item));
        }
        self.ids().remove(locator);
        Ok(None)
    }

    async fn put(
        &self,
        operation: Operation,
        locator: &Locator,
        bytes: Bytes,
        condition: &Condition,
    ) -> Result<Version> {
        self.check_writable(operation, locator)?;
        let text = check_text(operation, locator, &bytes)?;
        let version = version_of(&bytes);
        for _ in 0..MAX_APPENDS {
            let there = match condition {
                Condition::Absent => None,
                Condition::Any | Condition::Matches(_) => self.find(operation, locator).await?,
            };
            let asked = match (&there, condition) {
                (None, Condition::Matches(_)) => return Err(condition_failed(operation, locator, condition)),
                (None, _) => {
                    let body = json!({ "path": format!("/{locator}"), "content": text });
                    self.ask(Method::POST, self.url(None, &[]), Some(body)).await
                }
                (Some(item), Condition::Matches(expected)) if item.content_sha256 != expected.as_str() => {
                    return Err(condition_failed(operation, locator, condition));
                }
                (Some(item), _) => {
                    let mut body = json!({ "content": text });
                    if let Condition::Matches(expected) = condition {
                        body["precondition"] =
                            json!({ "type": "content_sha256", "content_sha256": expected.as_str() });
                    }
                    self.ask(Method::POST, self.url(Some(&item.id), &[]), Some(body)).await
                }
            };
            let lost = match asked {
                Ok(answer) if answer.status.is_server_error() => {
                    Err(self.refused(operation, locator, &answer))
                }
                Ok(answer) => Ok(answer),
                Err(none) if none.why.is_before_sending() => {
                    return Err(unanswered(operation, locator, none));
                }
                Err(none) => Err(unanswered(operation, locator, none)),
            };
            let answer = match lost {
                Ok(answer) => answer,
                // The content tells if the write was done.
                Err(error) => {
                    return match self.find(operation, locator).await {
                        Ok(Some(item)) if item.content_sha256 == version.as_str() => Ok(version),
                        _ => Err(error),
                    };
                }
            };
            if answer.status.is_success() {
                let item: Item = parsed(operation, locator, &answer)?;
                self.ids().insert(locator.clone(), item.id);
                return Ok(version);
            }
            match (answer.status, condition) {
                (StatusCode::CONFLICT, Condition::Absent | Condition::Matches(_)) => {
                    return Err(condition_failed(operation, locator, condition));
                }
                (StatusCode::NOT_FOUND, Condition::Matches(_)) if there.is_some() => {
                    self.ids().remove(locator);
                    return Err(condition_failed(operation, locator, condition));
                }
                // Another program created or deleted it since we looked: look again.
                (StatusCode::CONFLICT, Condition::Any) => {}
                (StatusCode::NOT_FOUND, Condition::Any) if there.is_some() => {
                    drop(self.ids().remove(locator))
                }
                _ => return Err(self.refused(operation, locator, &answer)),
            }
        }
        Err(busy(operation, locator))
    }

    async fn remove(&self, operation: Operation, locator: &Locator, condition: &Condition) -> Result<()> {
        self.check_writable(operation, locator)?;
        let Some(item) = self.find(operation, locator).await? else {
            return match condition {
                Condition::Any => Ok(()),
                Condition::Absent | Condition::Matches(_) => {
                    Err(condition_failed(operation, locator, condition))
                }
            };
        };
        let url = match condition {
            Condition::Matches(expected) => {
                self.url(Some(&item.id), &[("expected_content_sha256", expected.as_str())])
            }
            Condition::Any | Condition::Absent => self.url(Some(&item.id), &[]),
        };
        self.ids().remove(locator);
        let answer = match self.ask(Method::DELETE, url, None).await {
            Ok(answer) => answer,
            Err(none) => {
                let error = unanswered(operation, locator, none);
                return match self.find(operation, locator).await {
                    Ok(None) => Ok(()),
                    _ => Err(error),
                };
            }
        };
        match answer.status {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND if *condition == Condition::Any => Ok(()),
            StatusCode::NOT_FOUND | StatusCode::CONFLICT => {
                Err(condition_failed(operation, locator, condition))
            }
            _ => Err(self.refused(operation, locator, &answer)),
        }
    }

    async fn has_children(&self, operation: Operation, locator: &Locator) -> Result<bool> {
        let listed = self.listed(operation, locator, Reach::Children).await?;
        Ok(!listed.items.is_empty() || !listed.prefixes.is_empty())
    }

    async fn move_memory(&self, from: &Locator, to: &Locator) -> Result<()> {
        let Some(item) = self.find(Operation::Rename, from).await? else {
            return Err(nothing_there(Operation::Rename, from));
        };
        let body = json!({ "path": format!("/{to}") });
        self.ids().remove(from);
        let answer = match self.ask(Method::POST, self.url(Some(&item.id), &[]), Some(body)).await {
            Ok(answer) => answer,
            Err(none) => {
                let error = unanswered(Operation::Rename, from, none);
                return match self.retrieve(Operation::Rename, to, &item.id, "basic").await {
                    Ok(Some(_)) => Ok(()),
                    _ => Err(error),
                };
            }
        };
        match answer.status {
            status if status.is_success() => {
                self.ids().insert(to.clone(), item.id);
                Ok(())
            }
            StatusCode::CONFLICT => Err(condition_failed(Operation::Rename, to, &Condition::Absent)),
            StatusCode::NOT_FOUND => Err(nothing_there(Operation::Rename, from)),
            _ => Err(self.refused(Operation::Rename, from, &answer)),
        }
    }

    /// Returns the error for an answer that is a refusal.
    fn refused(&self, operation: Operation, locator: &Locator, answer: &Answer) -> Error {
        let said: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let said = said.as_ref().and_then(|said| said.get("error")?.get("message")?.as_str());
        let said = said.map(|said| {
            format!(": {}", said.chars().filter(|c| !c.is_control()).take(300).collect::<String>())
        });
        let said = said.unwrap_or_default();
        let (kind, why) = match answer.status {
            StatusCode::UNAUTHORIZED => {
                (ErrorKind::Denied, format!("the server does not take the key in {ANTHROPIC_KEY}"))
            }
            StatusCode::FORBIDDEN => {
                (ErrorKind::Denied, "the key has no access to this memory store".to_owned())
            }
            StatusCode::NOT_FOUND => (ErrorKind::Invalid, format!("there is no memory store {}", self.store)),
            StatusCode::CONFLICT => (ErrorKind::Conflict, "somebody else changed it".to_owned()),
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                (ErrorKind::Invalid, "the server refuses the request".to_owned())
            }
            StatusCode::TOO_MANY_REQUESTS => (ErrorKind::Unavailable, "the server asks to wait".to_owned()),
            status if status.is_server_error() => {
                (ErrorKind::Unavailable, format!("the server failed ({status})"))
            }
            status => (ErrorKind::Internal, format!("the server answers {status}")),
        };
        Error::new(kind, operation, locator, format!("{why}{said}")).with_tries(answer.tries)
    }

    fn info_of(&self, locator: Locator, item: &Item) -> Info {
        let version = Version::new(&item.content_sha256);
        let modified = item.updated_at.as_ref().and_then(|at| at.parse::<jiff::Timestamp>().ok());
        Info {
            locator,
            kind: EntryKind::File,
            size_bytes: item.content_size_bytes,
            modified: modified.map(SystemTime::from),
            fingerprint: Fingerprint::of_version(&version),
            version: Some(version),
        }
    }
}

/// Returns the place of a path, or why it has none.
fn place(path: &str) -> std::result::Result<Locator, Odd> {
    let odd = |why: String| Odd { at: None, shown: path.escape_debug().to_string(), why };
    let key = path.strip_prefix('/').ok_or_else(|| odd("it does not begin with a slash".to_owned()))?;
    let locator = Locator::from_stored_key(key).map_err(|reason| odd(reason.to_string()))?;
    if locator.is_root() { Err(odd("it has no name".to_owned())) } else { Ok(locator) }
}

/// Returns the version of a content: its SHA-256, in hexadecimal digits.
fn version_of(bytes: &[u8]) -> Version {
    let hash = digest::digest(&digest::SHA256, bytes);
    Version::new(hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// Returns a content as the text that a memory store can hold.
fn check_text<'a>(operation: Operation, locator: &Locator, bytes: &'a [u8]) -> Result<&'a str> {
    let refuse = |message: String| Error::new(ErrorKind::Invalid, operation, locator, message);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let byte = error.valid_up_to() + 1;
        refuse(format!("a memory store of Anthropic's holds text only, and byte {byte} of this is not UTF-8"))
    })?;
    if bytes.len() > MAX_TEXT_BYTES {
        let size = bytes.len();
        return Err(refuse(format!(
            "a memory store of Anthropic's holds texts of at most {MAX_TEXT_BYTES} bytes, and this has {size}"
        )));
    }
    Ok(text)
}

/// Refuses a name that a memory store cannot hold.
fn check_path(operation: Operation, locator: &Locator) -> Result<()> {
    if locator.is_root() {
        return Err(root_refused(operation));
    }
    locator.check_portable().map_err(|reason| Error::invalid(operation, locator, reason))?;
    if locator.segments().count() > MAX_SEGMENTS {
        let message = format!("a path in a memory store of Anthropic's has at most {MAX_SEGMENTS} names");
        return Err(Error::new(ErrorKind::Invalid, operation, locator, message));
    }
    Ok(())
}

fn unanswered(operation: Operation, locator: &Locator, none: Unanswered) -> Error {
    let message = format!("the server did not answer: {}", none.why);
    Error::new(ErrorKind::Unavailable, operation, locator, message)
        .with_tries(none.tries)
        .with_source(none.why)
}

fn parsed<T: for<'a> Deserialize<'a>>(operation: Operation, locator: &Locator, answer: &Answer) -> Result<T> {
    serde_json::from_slice(&answer.body).map_err(|error| garbled(operation, locator, &error))
}

fn garbled(operation: Operation, locator: &Locator, error: &serde_json::Error) -> Error {
    let message = format!("the server's answer is none of a memory store: {error}");
    Error::new(ErrorKind::Internal, operation, locator, message)
}

fn busy(operation: Operation, locator: &Locator) -> Error {
    Error::new(ErrorKind::Busy, operation, locator, "other writers were in the way again and again")
}

#[async_trait]
impl Backend for MemoryStore {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        if locator.is_root() {
            return Err(is_a_directory(Operation::Read, locator));
        }
        let known = self.ids().get(locator).cloned();
        let mut item = match known {
            Some(id) => self.retrieve(Operation::Read, locator, &id, "full").await?,
            None => None,
        };
        if item.is_none()
            && let Some(found) = self.find(Operation::Read, locator).await?
        {
            item = self.retrieve(Operation::Read, locator, &found.id, "full").await?;
        }
        let Some(item) = item else { return Err(nothing_there(Operation::Read, locator)) };
        let Some(content) = item.content else {
            let message = "the server sent no content";
            return Err(Error::new(ErrorKind::Internal, Operation::Read, locator, message));
        };
        let bytes = Bytes::from(content);
        let version = version_of(&bytes);
        if version.as_str() != item.content_sha256 {
            let message = "the content that the server sent is not the one that it describes";
            return Err(Error::new(ErrorKind::Internal, Operation::Read, locator, message));
        }
        Ok(Object { bytes, version })
    }

    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> Result<Written> {
        check_path(Operation::Write, locator)?;
        let version = self.put(Operation::Write, locator, bytes, &condition).await?;
        Ok(Written { version, displaced: None })
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, _durability: Durability) -> Result<Appended> {
        check_path(Operation::Append, locator)?;
        for _ in 0..MAX_APPENDS {
            let (before, condition) = match self.read(locator).await {
                Ok(object) => (object.bytes, Condition::Matches(object.version)),
                Err(error) if error.kind() == ErrorKind::NotFound => (Bytes::new(), Condition::Absent),
                Err(error) => return Err(error),
            };
            let mut whole = BytesMut::from(&before[..]);
            whole.extend_from_slice(&bytes);
            match self.put(Operation::Append, locator, whole.freeze(), &condition).await {
                Ok(_) => return Ok(Appended { offset: before.len() as u64, displaced: None }),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        Err(busy(Operation::Append, locator))
    }

    async fn barrier(&self) -> Result<()> {
        Ok(())
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        let listed = self.listed(Operation::List, locator, Reach::Children).await?;
        let mut listing = Listing::default();
        let files = listed.items.iter().map(|item| (item.path.as_str(), EntryKind::File));
        let directories =
            listed.prefixes.iter().map(|path| (path.trim_end_matches('/'), EntryKind::Directory));
        for (path, kind) in files.chain(directories) {
            match place(path) {
                Ok(place) if place.is_reserved() && !locator.is_reserved() => {}
                Ok(locator) => listing.entries.push(Entry { locator, kind }),
                Err(odd) => listing.odd.push(odd),
            }
        }
        listing.entries.sort();
        Ok(listing)
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        let (prefix, after) = (prefix.clone(), after.cloned());
        // The server does not say in which order it lists, so that the whole of it is one page.
        let page = async move {
            let mut listed = self.listed(Operation::Scan, &prefix, Reach::Everything).await?;
            if !prefix.is_root() {
                listed.items.extend(self.find(Operation::Scan, &prefix).await?);
            }
            let mut page = Page::default();
            for item in &listed.items {
                match place(&item.path) {
                    Ok(place) if place.is_reserved() && !prefix.is_reserved() => {}
                    Ok(place) if after.as_ref().is_some_and(|after| place <= *after) => {}
                    Ok(place) => page.infos.push(self.info_of(place, item)),
                    Err(odd) => page.odd.push(odd),
                }
            }
            page.infos.sort_by(|one, other| one.locator.cmp(&other.locator));
            page.infos.dedup_by(|one, other| one.locator == other.locator);
            Ok(page)
        };
        Box::pin(futures_lite::stream::once_future(page))
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        let directory = || Info {
            locator: locator.clone(),
            kind: EntryKind::Directory,
            size_bytes: 0,
            modified: None,
            version: None,
            fingerprint: Fingerprint::new(&[], i64::MIN),
        };
        if locator.is_root() {
            return Ok(directory());
        }
        if let Some(item) = self.find(Operation::Info, locator).await? {
            return Ok(self.info_of(locator.clone(), &item));
        }
        match self.has_children(Operation::Info, locator).await? {
            true => Ok(directory()),
            false => Err(nothing_there(Operation::Info, locator)),
        }
    }

    async fn touch_mark(&self) -> Result<TouchMark> {
        // Every state has a name of its own: nothing is too fresh to trust.
        Ok(TouchMark::new(i64::MAX))
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        if locator.is_root() {
            return Err(root_refused(Operation::Delete));
        }
        self.check_writable(Operation::Delete, locator)?;
        if !matches!(condition, Condition::Matches(_))
            && !locator.is_reserved()
            && self.has_children(Operation::Delete, locator).await?
        {
            return Err(Error::new(
                ErrorKind::Invalid,
                Operation::Delete,
                locator,
                "the directory is not empty",
            ));
        }
        if condition == Condition::Absent {
            // There are no empty directories here, so nothing is to be removed.
            return match self.find(Operation::Delete, locator).await? {
                Some(_) => Err(condition_failed(Operation::Delete, locator, &condition)),
                None => Ok(()),
            };
        }
        self.remove(Operation::Delete, locator, &condition).await
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        check_rename(from, to)?;
        check_path(Operation::Rename, to)?;
        self.check_writable(Operation::Rename, from)?;
        let is_taken = self.find(Operation::Rename, to).await?.is_some()
            || self.has_children(Operation::Rename, to).await?;
        let is_file = self.find(Operation::Rename, from).await?.is_some();
        if !is_file && !self.has_children(Operation::Rename, from).await? {
            return Err(nothing_there(Operation::Rename, from));
        }
        if is_taken {
            return Err(condition_failed(Operation::Rename, to, &Condition::Absent));
        }
        if is_file {
            return self.move_memory(from, to).await;
        }
        for item in self.listed(Operation::Rename, from, Reach::Everything).await?.items {
            let Ok(old) = place(&item.path) else { continue };
            let Some(rest) = old.below(from) else { continue };
            let new = to.join(&rest).map_err(|reason| Error::invalid(Operation::Rename, from, reason))?;
            self.move_memory(&old, &new).await?;
        }
        Ok(())
    }

    async fn exchange(&self, one: &Locator, _: &Locator) -> Result<()> {
        let message = "a memory store cannot let two memories change places";
        Err(Error::new(ErrorKind::Unsupported, Operation::Exchange, one, message))
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        // A directory is there as soon as something is in it.
        if locator.is_root() { Ok(()) } else { check_path(Operation::Mkdir, locator) }
    }

    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        self.locks.lock(name, wait).await
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::None
    }
}
