//! A stand-in for the model: says what a script says, turn by turn, and remembers what it was told.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haversack_servers::{Answer, Asked, Responder};
use serde_json::{Value, json};

/// The time that a test waits for the client's request.
const PATIENCE: Duration = Duration::from_secs(60);

/// The conversation itself has many tools; what the client asks on the side, as for a title, has few.
const FEW_TOOLS: usize = 3;

/// One thing that the model says or wants.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    Text(&'static str),
    Use(&'static str, Value),
}

/// The model's answer in one turn.
pub(crate) type Turn = Vec<Say>;

/// Returns the wish to write a file.
pub(crate) fn write(file: &Path, text: &str) -> Say {
    Say::Use("Write", json!({ "file_path": file, "content": text }))
}

/// Returns the wish to run a command.
pub(crate) fn bash(command: String) -> Say {
    Say::Use("Bash", json!({ "command": command, "description": "as the user asked" }))
}

/// A model that listens on loopback.
pub(crate) struct Api {
    responder: Responder,
    told: Arc<Mutex<Vec<String>>>,
}

impl Api {
    /// Starts one; when its turns are over it only says so.
    pub(crate) fn start(turns: Vec<Turn>) -> Api {
        let told = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&told);
        let responder = Responder::start(move |asked| answer(asked, &turns, &noted));
        Api { responder, told }
    }

    /// Returns where it listens.
    pub(crate) fn url(&self) -> &str {
        self.responder.url()
    }

    /// Returns what the model was told so far, request by request.
    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().expect("nobody panics with it").clone()
    }

    /// Waits until the model was told something so many times; returns the last of it.
    pub(crate) fn wait_for(&self, times: usize) -> String {
        let deadline = Instant::now() + PATIENCE;
        while self.told().len() < times {
            assert!(Instant::now() < deadline, "asked {} times, not {times}", self.told().len());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.told()[times - 1].clone()
    }

    /// Returns the requests for other hosts: this is the client's proxy too.
    pub(crate) fn strayed(&self) -> Vec<String> {
        let is_elsewhere = |asked: &Asked| asked.method == "CONNECT" || asked.path.starts_with("http");
        let asked = self.responder.asked().into_iter().filter(is_elsewhere);
        asked.map(|asked| format!("{} {}", asked.method, asked.path)).collect()
    }
}

fn answer(asked: &Asked, turns: &[Turn], told: &Mutex<Vec<String>>) -> Answer {
    let path = asked.path.split('?').next().unwrap_or_default();
    if path.ends_with("/count_tokens") {
        return as_json(&json!({ "input_tokens": 1000 }));
    }
    if !path.ends_with("/v1/messages") {
        return Answer::new(404);
    }
    let request: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
    let is_conversation = request["tools"].as_array().is_some_and(|tools| tools.len() > FEW_TOOLS);
    let turn = match is_conversation {
        true => {
            let mut told = told.lock().expect("nobody panics with it");
            told.push(spoken(&request));
            turns.get(told.len() - 1).cloned().unwrap_or(vec![Say::Text("There is nothing left to say.")])
        }
        false => vec![Say::Text("{\"title\": \"lamps\"}")],
    };
    let blocks: Vec<Value> = turn.iter().enumerate().map(|(number, say)| block(number, say)).collect();
    match request["stream"].as_bool() {
        Some(true) => Answer::new(200)
            .with_header("content-type", "text/event-stream")
            .with_body(events(&request["model"], &blocks)),
        _ => as_json(&message(&request["model"], blocks.clone(), stop(&blocks))),
    }
}

/// Returns all text of a request: the instructions and what was said since.
fn spoken(request: &Value) -> String {
    fn collect(value: &Value, into: &mut String) {
        match value {
            Value::String(text) => {
                into.push_str(text);
                into.push('\n');
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, into)),
            Value::Object(fields) => fields.values().for_each(|value| collect(value, into)),
            _ => {}
        }
    }
    let mut text = String::new();
    collect(&request["system"], &mut text);
    collect(&request["messages"], &mut text);
    text
}

fn block(number: usize, say: &Say) -> Value {
    match say {
        Say::Text(text) => json!({ "type": "text", "text": text }),
        Say::Use(name, input) => {
            // Unique in a conversation that goes on.
            let chance = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let id = format!("toolu_{:x}_{number}", chance.expect("after 1970").as_nanos());
            json!({ "type": "tool_use", "id": id, "name": name, "input": input })
        }
    }
}

fn stop(blocks: &[Value]) -> &'static str {
    match blocks.iter().any(|block| block["type"] == "tool_use") {
        true => "tool_use",
        false => "end_turn",
    }
}

fn message(model: &Value, blocks: Vec<Value>, stop: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": blocks,
        "stop_reason": stop, "stop_sequence": null,
        "usage": { "input_tokens": 100, "output_tokens": 20 },
    })
}

/// Returns the same as a stream of events.
fn events(model: &Value, blocks: &[Value]) -> String {
    let mut start = message(model, Vec::new(), "");
    start["stop_reason"] = Value::Null;
    let mut events = vec![json!({ "type": "message_start", "message": start })];
    for (index, block) in blocks.iter().enumerate() {
        let (begun, delta) = match block["type"] == "text" {
            true => (
                json!({ "type": "text", "text": "" }),
                json!({ "type": "text_delta", "text": block["text"] }),
            ),
            false => {
                let mut begun = block.clone();
                begun["input"] = json!({});
                let text = block["input"].to_string();
                (begun, json!({ "type": "input_json_delta", "partial_json": text }))
            }
        };
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": begun }));
        events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({
        "type": "message_delta", "delta": { "stop_reason": stop(blocks), "stop_sequence": null },
        "usage": { "output_tokens": 20 },
    }));
    events.push(json!({ "type": "message_stop" }));
    let lines = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("each has one")));
    lines.collect()
}

fn as_json(value: &Value) -> Answer {
    Answer::new(200).with_header("content-type", "application/json").with_body(value.to_string())
}
