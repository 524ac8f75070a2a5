//! Messages of the Model Context Protocol as lines of JSON, over stdin and stdout.
//!
//! `rmcp` skips a line that is no JSON without a word, so a client that sent half a message waits for an answer for ever. This transport answers
//! every line that is no message, as JSON-RPC requires, and continues with the next:
//!
//! | line | answer |
//! |---|---|
//! | no JSON, no UTF-8, too long, or cut off at the end of the input | -32700, id null |
//! | JSON that is no message: a list, a number, an object without a method | -32600, with its id if it has one |
//! | blank | none |
//! | a notification that is not understood, or that comes before the client's hello | none: a notification never gets an answer |

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, GetMeta, ProtocolVersion, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

/// The longest line that is read.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// The mark that may stand before the first message.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

type Writing = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// A connection whose messages are lines.
pub(crate) struct Lines<R, W> {
    reader: BufReader<R>,
    /// As much of the current line as has been read. A cancelled `receive` leaves it here for the next.
    line: Vec<u8>,
    /// True while the rest of a line is skipped that is too long.
    is_skipping: bool,
    writer: Arc<Mutex<W>>,
    /// True after the request that begins a connection. `rmcp` ends the connection if anything but a request comes before it.
    is_begun: bool,
    /// The answer to the last line, until it is written.
    answering: Option<Writing>,
}

/// The sort of a line.
#[derive(Debug)]
enum Line {
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that gets an answer.
    Ignored,
    /// Nothing that we understand: this is the answer.
    Refused(Value),
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Returns a connection that reads from one stream and writes to another.
    pub(crate) fn new(reader: R, writer: W) -> Lines<R, W> {
        Lines {
            reader: BufReader::new(reader),
            line: Vec::new(),
            is_skipping: false,
            writer: Arc::new(Mutex::new(writer)),
            is_begun: false,
            answering: None,
        }
    }

    /// Writes a whole line, even if the returned future is dropped.
    fn write(&self, mut line: Vec<u8>) -> impl Future<Output = io::Result<()>> + Send + 'static + use<R, W> {
        line.push(b'\n');
        let writer = self.writer.clone();
        let written = tokio::spawn(async move {
            let mut writer = writer.lock().await;
            writer.write_all(&line).await?;
            writer.flush().await
        });
        async move { written.await.map_err(io::Error::other)? }
    }

    /// Reads until a line is whole; `None` at the end of the input, with the rest in `self.line`.
    async fn read_line(&mut self) -> io::Result<Option<Read>> {
        loop {
            // Nothing is awaited between here and `consume`, so a cancelled read loses nothing.
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(available.len(), |end| end + 1);
            let was_skipping = self.is_skipping;
            if !was_skipping {
                self.line.extend_from_slice(&available[..length]);
            }
            self.reader.consume(length);
            self.is_skipping = end.is_none() && (was_skipping || self.line.len() > MAX_LINE_BYTES);
            match end {
                Some(_) if was_skipping => {}
                _ if self.line.len() > MAX_LINE_BYTES => return Ok(Some(Read::TooLong)),
                Some(_) => return Ok(Some(Read::Line)),
                None => {}
            }
        }
    }
}

/// The result of reading.
enum Read {
    Line,
    TooLong,
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let writing = serde_json::to_vec(&message).map(|line| self.write(line));
        async move {
            match writing {
                Ok(writing) => writing.await,
                Err(error) => Err(error.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(answering) = &mut self.answering {
                let answered = answering.await;
                self.answering = None;
                // The client does not read our answers any more.
                answered.ok()?;
            }
            let read = self.read_line().await.ok()?;
            let (line, is_last) = match read {
                Some(Read::TooLong) => (too_long(), false),
                Some(Read::Line) => (understood(&self.line), false),
                None => (understood(&self.line), true),
            };
            self.line = Vec::new();
            match line {
                Line::Message(message) => {
                    self.is_begun |= begins(&message);
                    if self.is_begun || matches!(*message, ClientJsonRpcMessage::Request(_)) {
                        return Some(*message);
                    }
                }
                Line::Ignored => {}
                Line::Refused(answer) => {
                    self.answering = Some(Box::pin(self.write(answer.to_string().into_bytes())));
                    continue;
                }
            }
            if is_last {
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // Lines that are on their way come first.
        self.writer.lock().await.flush().await
    }
}

/// Returns true if a message begins a connection: the hello of an older revision, or a request that says all that a hello says.
fn begins(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let version = request.get_meta().protocol_version();
            request.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && version.is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        }
    }
}

/// Reads a line.
fn understood(line: &[u8]) -> Line {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Line::Ignored;
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return Line::Message(Box::new(message));
    }
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            return refused(ErrorCode::PARSE_ERROR, Value::Null, &format!("the line is no JSON: {error}"));
        }
    };
    let id = value.get("id");
    let is_call = value.get("jsonrpc").is_some_and(|version| version == "2.0")
        && value.get("method").is_some_and(Value::is_string);
    if is_call && id.is_none() {
        return Line::Ignored;
    }
    let id = id.filter(|id| id.is_string() || id.is_i64() || id.is_u64()).cloned().unwrap_or(Value::Null);
    refused(ErrorCode::INVALID_REQUEST, id, "the line is JSON, but no JSON-RPC 2.0 message")
}

fn too_long() -> Line {
    refused(ErrorCode::PARSE_ERROR, Value::Null, &format!("a line has at most {MAX_LINE_BYTES} bytes"))
}

fn refused(code: ErrorCode, id: Value, message: &str) -> Line {
    // Not `ServerJsonRpcMessage`: it leaves out an id that is null, which JSON-RPC wants to see.
    Line::Refused(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code.0, "message": message } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &[u8]) -> Option<i64> {
        match understood(line) {
            Line::Refused(answer) => answer["error"]["code"].as_i64(),
            Line::Message(_) | Line::Ignored => None,
        }
    }

    #[test]
    fn lines_are_told_apart() {
        for message in [
            &br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#[..],
            b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n",
            br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        ] {
            assert!(matches!(understood(message), Line::Message(_)), "{}", String::from_utf8_lossy(message));
        }
        for ignored in [&b""[..], b"\n", b" \t\r\n"] {
            assert!(matches!(understood(ignored), Line::Ignored), "{ignored:?}");
        }
        assert_eq!(code(b"nonsense"), Some(-32700));
        assert_eq!(code(b"{\"id\":1"), Some(-32700));
        assert_eq!(code(b"[]"), Some(-32600));
        assert_eq!(code(b"null"), Some(-32600));
    }
}
