//! The memory for clients of the Model Context Protocol, spoken by hand: every byte of it is ours to bend.
//!
//! `mcp/clients.rs` has the real clients, `mcp/conformance.rs` the protocol's own suite; `mcp/README.md` says how both work.

#[cfg(unix)]
mod clients;
#[cfg(unix)]
mod conformance;
mod http;
mod stdio;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The newest revision, which has no session: every request says who makes it.
const NEWEST: &str = "2026-07-28";

/// Returns what a request of the newest revision carries.
fn meta(client: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientInfo": { "name": client, "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Returns a request.
fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Returns the text of a result of a tool, and whether it is an error.
fn said(result: &Value) -> (String, bool) {
    assert!(result.get("structuredContent").is_none(), "{result}");
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"));
    (text.to_owned(), result["isError"].as_bool().unwrap_or(false))
}

/// A client that started `haversack mcp`.
pub(crate) struct Client {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    /// Starts a server and says hello, as clients of the older revisions do.
    pub(crate) fn start(command: &mut Command, name: &str) -> Client {
        let mut client = Client::silent(command);
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": name, "version": "1" },
        });
        let answer = client.ask("initialize", hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "haversack", "{answer}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    /// Starts a server and says nothing.
    fn silent(command: &mut Command) -> Client {
        command.env("HAVERSACK_SYNC", "off").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let (input, output) = (process.stdin.take(), process.stdout.take());
        Client { process, input, output: BufReader::new(output.expect("piped")), next: 1 }
    }

    fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends bytes that need not be a message.
    fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().expect("still open").write_all(bytes).expect("it reads");
    }

    /// Ends the input.
    fn close_input(&mut self) {
        drop(self.input.take());
    }

    /// Returns the next message.
    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Makes a request and returns what comes back.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&request(id, method, params));
        loop {
            let answer = self.receive();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// Calls a tool and returns what a model is told, and whether it is an error.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        said(&answer["result"])
    }

    /// Calls a tool that must succeed.
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        text
    }

    /// Ends the input and returns the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("it ends");
        self.process.wait().expect("it ended").code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
