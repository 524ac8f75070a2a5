//! A fake of Anthropic's memory stores: one store in this process, which refuses every request that the real one would refuse.
//!
//! It keeps to the published interface: the header of its revision, paths and sizes, preconditions by the SHA-256 of the content, pages of listings,
//! and ids that stay when a path changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::digest;
use serde_json::{Value, json};

use crate::http::{Answer, Asked};
use crate::responder::Responder;

/// The key that the fake takes.
pub const KEY: &str = "sk-ant-test-only-0123456789";

/// The id of the only store.
pub const STORE: &str = "memstore_01Test";

/// The limits of a store.
const MAX_MEMORIES: usize = 2000;
const MAX_BYTES: usize = 102_400;

/// The fault of the next request, before or instead of an answer.
#[derive(Clone, Debug)]
pub enum Mishap {
    /// It is carried out, and then answered with this.
    DoneThen(Answer),
    /// It is answered with this, and not carried out.
    Instead(Answer),
}

/// A memory store.
pub struct MemoryStores {
    responder: Responder,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    memories: Vec<Memory>,
    made: usize,
    mishap: Option<(&'static str, Mishap)>,
}

#[derive(Clone)]
struct Memory {
    id: String,
    path: String,
    content: String,
}

impl MemoryStores {
    /// Starts one, with an empty store.
    pub fn start() -> MemoryStores {
        let state = Arc::new(Mutex::new(State::default()));
        let here = state.clone();
        let responder = Responder::start(move |asked| answer(&mut locked(&here), asked));
        MemoryStores { responder, state }
    }

    /// Returns where it listens.
    pub fn url(&self) -> &str {
        self.responder.url()
    }

    /// Returns what it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.responder.asked()
    }

    /// Lets something happen to the next request with this method.
    pub fn next(&self, method: &'static str, mishap: Mishap) {
        locked(&self.state).mishap = Some((method, mishap));
    }

    /// Writes a memory as another program would, whatever is there.
    pub fn put(&self, path: &str, content: &str) {
        let mut state = locked(&self.state);
        state.memories.retain(|memory| memory.path != path);
        state.made += 1;
        let id = format!("mem_{:04}", state.made);
        state.memories.push(Memory { id, path: path.to_owned(), content: content.to_owned() });
    }

    /// Returns the paths and contents, sorted.
    pub fn memories(&self) -> Vec<(String, String)> {
        let state = locked(&self.state);
        let mut all: Vec<(String, String)> =
            state.memories.iter().map(|memory| (memory.path.clone(), memory.content.clone())).collect();
        all.sort();
        all
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn error(status: u16, message: &str) -> Answer {
    let body = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": message } });
    Answer::new(status).with_header("content-type", "application/json").with_body(body.to_string())
}

fn good(body: &Value) -> Answer {
    Answer::new(200).with_header("content-type", "application/json").with_body(body.to_string())
}

fn sha256(text: &str) -> String {
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shown(memory: &Memory, view: &str) -> Value {
    json!({
        "type": "memory",
        "id": memory.id,
        "path": memory.path,
        "memory_store_id": STORE,
        "memory_version_id": format!("memver_{}", &sha256(&memory.content)[..8]),
        "content_sha256": sha256(&memory.content),
        "content_size_bytes": memory.content.len(),
        "created_at": "2026-11-16T09:00:00Z",
        "updated_at": "2026-11-16T09:00:00Z",
        "content": (view == "full").then(|| memory.content.clone()),
    })
}

fn answer(state: &mut State, asked: &Asked) -> Answer {
    match state.mishap.take_if(|(method, _)| *method == asked.method) {
        Some((_, Mishap::Instead(answer))) => answer,
        Some((_, Mishap::DoneThen(answer))) => {
            drop(carry_out(state, asked));
            answer
        }
        None => carry_out(state, asked),
    }
}

fn carry_out(state: &mut State, asked: &Asked) -> Answer {
    if asked.headers.get("x-api-key") != Some(KEY) {
        return error(401, "invalid x-api-key");
    }
    if asked.headers.get("anthropic-version") != Some("2023-06-01") {
        return error(400, "anthropic-version: header is required");
    }
    if asked.headers.get("anthropic-beta") != Some("agent-memory-2026-07-22") {
        return error(400, "anthropic-beta: header is required");
    }
    let path = asked.path.split('?').next().unwrap_or_default();
    let Some(rest) = path.strip_prefix("/v1/memory_stores/") else { return error(404, "Not found") };
    let (store, rest) = rest.split_once('/').unwrap_or((rest, ""));
    if store != STORE {
        return error(404, "memory store not found");
    }
    let body: Value = match asked.body.is_empty() {
        true => Value::Null,
        false => match serde_json::from_slice(&asked.body) {
            Ok(body) => body,
            Err(_) => return error(400, "the body is no JSON"),
        },
    };
    match (asked.method.as_str(), rest.strip_prefix("memories").map(|id| id.trim_start_matches('/'))) {
        ("GET", Some("")) => list(state, asked),
        ("POST", Some("")) => create(state, &body),
        ("GET", Some(id)) => match state.memories.iter().find(|memory| memory.id == id) {
            Some(memory) => good(&shown(memory, &asked.query("view").unwrap_or_else(|| "full".to_owned()))),
            None => error(404, "memory not found"),
        },
        ("POST", Some(id)) => update(state, id, &body),
        ("DELETE", Some(id)) => delete(state, id, asked.query("expected_content_sha256")),
        _ => error(405, "method not allowed"),
    }
}

fn create(state: &mut State, body: &Value) -> Answer {
    let (Some(path), Some(content)) = (body["path"].as_str(), body["content"].as_str()) else {
        return error(400, "path and content are required");
    };
    if let Err(why) = check(path, content) {
        return error(400, &why);
    }
    if state.memories.iter().any(|memory| memory.path == path) {
        return error(409, "a memory exists at this path");
    }
    if state.memories.len() >= MAX_MEMORIES {
        return error(400, "the memory store is full: at most 2000 memories");
    }
    state.made += 1;
    let id = format!("mem_{:04}", state.made);
    let memory = Memory { id, path: path.to_owned(), content: content.to_owned() };
    state.memories.push(memory.clone());
    good(&shown(&memory, "basic"))
}

fn update(state: &mut State, id: &str, body: &Value) -> Answer {
    let Some(at) = state.memories.iter().position(|memory| memory.id == id) else {
        return error(404, "memory not found");
    };
    let mut memory = state.memories[at].clone();
    if !body["precondition"].is_null() {
        if body["precondition"]["type"] != "content_sha256" {
            return error(400, "precondition.type: unknown");
        }
        if body["precondition"]["content_sha256"].as_str() != Some(&sha256(&memory.content)) {
            return error(409, "precondition failed");
        }
    }
    if let Some(content) = body["content"].as_str() {
        memory.content = content.to_owned();
    }
    if let Some(path) = body["path"].as_str() {
        if state.memories.iter().any(|other| other.path == path && other.id != id) {
            return error(409, "a memory exists at this path");
        }
        memory.path = path.to_owned();
    }
    if let Err(why) = check(&memory.path, &memory.content) {
        return error(400, &why);
    }
    state.memories[at] = memory.clone();
    good(&shown(&memory, "basic"))
}

fn delete(state: &mut State, id: &str, expected: Option<String>) -> Answer {
    let Some(at) = state.memories.iter().position(|memory| memory.id == id) else {
        return error(404, "memory not found");
    };
    if expected.is_some_and(|expected| expected != sha256(&state.memories[at].content)) {
        return error(409, "precondition failed");
    }
    state.memories.remove(at);
    good(&json!({ "type": "memory_deleted", "id": id }))
}

fn list(state: &State, asked: &Asked) -> Answer {
    let prefix = asked.query("path_prefix").unwrap_or_else(|| "/".to_owned());
    if !prefix.starts_with('/') || !prefix.ends_with('/') {
        return error(400, "path_prefix must begin and end with /");
    }
    let limit = match asked.query("limit").map(|limit| limit.parse::<usize>()) {
        None => 20,
        Some(Ok(limit @ 1..=100)) => limit,
        Some(_) => return error(400, "limit: from 1 to 100"),
    };
    let is_shallow = match asked.query("depth").as_deref() {
        None | Some("0") => false,
        Some("1") => true,
        Some(_) => return error(400, "depth: 0 or 1"),
    };
    let mut items: Vec<(String, Value)> = Vec::new();
    for memory in &state.memories {
        let Some(rest) = memory.path.strip_prefix(&prefix) else { continue };
        match rest.split_once('/').filter(|_| is_shallow) {
            Some((name, _)) => {
                let path = format!("{prefix}{name}/");
                items.push((path.clone(), json!({ "type": "memory_prefix", "path": path })));
            }
            None => items.push((memory.path.clone(), shown(memory, "basic"))),
        }
    }
    items.sort_by(|one, other| one.0.cmp(&other.0));
    items.dedup_by(|one, other| one.0 == other.0);
    let from =
        asked.query("page").and_then(|page| page.strip_prefix("page_")?.parse::<usize>().ok()).unwrap_or(0);
    let data: Vec<Value> = items.iter().skip(from).take(limit).map(|(_, item)| item.clone()).collect();
    let next = (from + limit < items.len()).then(|| format!("page_{}", from + limit));
    good(&json!({ "data": data, "next_page": next }))
}

fn check(path: &str, content: &str) -> Result<(), String> {
    let names: Vec<&str> = path.strip_prefix('/').ok_or("path: must start with /")?.split('/').collect();
    if names.len() > 20 || names.iter().any(|name| name.is_empty() || *name == "." || *name == "..") {
        return Err("path: 1 to 20 segments, none of them empty, . or ..".to_owned());
    }
    if path.len() > 1024 || path.chars().any(char::is_control) {
        return Err("path: at most 1024 bytes, no control characters".to_owned());
    }
    if content.len() > MAX_BYTES {
        return Err(format!("content: at most {MAX_BYTES} bytes"));
    }
    Ok(())
}
