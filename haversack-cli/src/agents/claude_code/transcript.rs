//! Reads the transcript of a session of Claude Code: a file with a line of JSON for each message.
//!
//! The file belongs to another program and may hold anything: it is read line by line within bounds, and a line that is not understood is passed
//! over. Its texts are data; code that shows them makes them harmless first.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use haversack::ids::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// The most bytes of a transcript that are read: its end, because the newest part is what the next session needs.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// The longest line that is looked at.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// The most prompts that are kept.
const MAX_PROMPTS: usize = 5;

/// The most files that are kept.
const MAX_FILES: usize = 1000;

/// The longest prompt that is kept, in characters.
const MAX_PROMPT_CHARACTERS: usize = 2000;

/// The longest summary of a compacted conversation that is kept, in characters.
const MAX_SUMMARY_CHARACTERS: usize = 100_000;

/// The parts of a session's transcript that we use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transcript {
    /// The first prompts of the user.
    pub(crate) prompts: Vec<String>,
    /// The files that tools wrote, in the order of their first write.
    pub(crate) written: Vec<PathBuf>,
    /// The files that tools read.
    pub(crate) read: BTreeSet<PathBuf>,
    /// The tasks that the agent noted last and had not finished.
    pub(crate) unfinished: Vec<String>,
    /// The last summary of a compacted conversation.
    pub(crate) compacted: Option<String>,
    /// The number of compactions.
    pub(crate) compactions: usize,
    /// The time of the first message.
    pub(crate) first: Option<Timestamp>,
    /// The time of the last message.
    pub(crate) last: Option<Timestamp>,
    /// True if the transcript is so long that only its newest part was read.
    pub(crate) is_cut: bool,
}

/// A line; everything else in it is passed over.
#[derive(Deserialize)]
struct Line {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default, rename = "isMeta")]
    is_meta: bool,
    #[serde(default, rename = "isSidechain")]
    is_sidechain: bool,
    #[serde(default, rename = "isCompactSummary")]
    is_compact_summary: bool,
    #[serde(default)]
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Value,
}

/// Reads a transcript. Messages before `since` are passed over: they are in an earlier digest.
pub(crate) fn read(file: &Path, since: Option<Timestamp>) -> io::Result<Transcript> {
    read_newest(file, since, MAX_BYTES)
}

/// Reads the last so many bytes of a transcript, from the first whole line.
fn read_newest(file: &Path, since: Option<Timestamp>, max_bytes: u64) -> io::Result<Transcript> {
    let metadata = std::fs::metadata(file)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    let mut opened = File::open(file)?;
    let skipped = metadata.len().saturating_sub(max_bytes);
    // One byte more: a newline there means that the next line is whole.
    let start = opened.seek(SeekFrom::Start(skipped.saturating_sub(1)))?;
    let mut from = BufReader::new(opened.take(metadata.len() - start));
    if skipped > 0 {
        skip_line(&mut from)?;
    }
    let mut transcript = Transcript { is_cut: skipped > 0, ..Transcript::default() };
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = from.by_ref().take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(transcript);
        }
        if !line.ends_with(b"\n") && read == MAX_LINE_BYTES {
            skip_line(&mut from)?;
            continue;
        }
        if let Ok(line) = serde_json::from_slice::<Line>(&line) {
            transcript.add(line, since);
        }
    }
}

/// Reads to the end of a line without keeping it.
fn skip_line(from: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = from.fill_buf()?;
        let (end, is_found) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (bytes.len(), false),
        };
        from.consume(end);
        if is_found || end == 0 {
            return Ok(());
        }
    }
}

impl Transcript {
    fn add(&mut self, line: Line, since: Option<Timestamp>) {
        let time = line.timestamp.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
        let time = time.map(|time| Timestamp(time.as_millisecond()));
        if let (Some(time), Some(since)) = (time, since)
            && time <= since
        {
            return;
        }
        if let Some(time) = time {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = Some(self.last.map_or(time, |last| last.max(time)));
        }
        let Some(message) = line.message else { return };
        match line.kind.as_str() {
            "user" if line.is_compact_summary => {
                if let Some(text) = text_of(&message.content) {
                    self.compactions += 1;
                    self.compacted = Some(text.chars().take(MAX_SUMMARY_CHARACTERS).collect());
                }
            }
            "user" if !line.is_meta && !line.is_sidechain && self.prompts.len() < MAX_PROMPTS => {
                self.prompts.extend(
                    text_of(&message.content)
                        .filter(|text| is_prompt(text))
                        .map(|text| text.chars().take(MAX_PROMPT_CHARACTERS).collect::<String>()),
                );
            }
            "assistant" => {
                let blocks = message.content.as_array().map(Vec::as_slice).unwrap_or_default();
                blocks.iter().for_each(|block| self.add_use(block));
            }
            _ => {}
        }
    }

    fn add_use(&mut self, block: &Value) {
        if block["type"] != "tool_use" {
            return;
        }
        let input = &block["input"];
        let path = ["file_path", "notebook_path"].iter().find_map(|key| input[*key].as_str());
        let path = path.map(PathBuf::from).filter(|path| path.is_absolute());
        match block["name"].as_str().unwrap_or_default() {
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
                if let Some(path) = path
                    && self.written.len() < MAX_FILES
                    && !self.written.contains(&path)
                {
                    self.written.push(path);
                }
            }
            "Read" if self.read.len() < MAX_FILES => self.read.extend(path),
            "TodoWrite" => {
                let tasks = input["todos"].as_array().map(Vec::as_slice).unwrap_or_default();
                let unfinished = tasks.iter().filter(|task| task["status"] != "completed");
                let texts = unfinished.filter_map(|task| task["content"].as_str());
                self.unfinished = texts.take(MAX_PROMPTS * 4).map(str::to_owned).collect();
            }
            _ => {}
        }
    }
}

/// Returns the text of a message of the user; `None` if it is the result of a tool.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter(|block| block["type"] == "text")
                .filter_map(|block| block["text"].as_str())
                .collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}

/// Tells whether a text is a prompt of a person: what the client itself says is in tags.
fn is_prompt(text: &str) -> bool {
    let text = text.trim_start();
    !text.is_empty()
        && !text.starts_with('<')
        && !text.starts_with("Caveat:")
        && !text.starts_with("[Request interrupted")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_lines(lines: &[String], since: Option<Timestamp>) -> Transcript {
        let directory = tempfile::tempdir().expect("made");
        let file = directory.path().join("t.jsonl");
        std::fs::write(&file, lines.join("\n")).expect("written");
        read(&file, since).expect("read")
    }

    fn line(kind: &str, minute: u32, content: &Value) -> Value {
        json!({ "type": kind, "timestamp": format!("2026-11-18T09:{minute:02}:00.000Z"), "message": { "content": content } })
    }

    #[test]
    fn prompts_files_tasks_and_summaries_are_found() {
        let uses = |name: &str, input: Value| json!([{ "type": "tool_use", "name": name, "input": input }]);
        let mut summary = line("user", 6, &json!("We moved the ports."));
        summary["isCompactSummary"] = json!(true);
        let mut aside = line("user", 7, &json!("of a subagent"));
        aside["isSidechain"] = json!(true);
        let lines: Vec<String> = [
            json!({ "type": "summary", "summary": "x" }),
            line("user", 1, &json!("Move the ports")),
            line("user", 2, &json!([{ "type": "tool_result", "content": "ok" }])),
            line("user", 2, &json!("<command-name>/compact</command-name>")),
            line("assistant", 3, &uses("Write", json!({ "file_path": "/w/ports.rs", "content": "x" }))),
            line("assistant", 3, &uses("Edit", json!({ "file_path": "/w/ports.rs" }))),
            line("assistant", 4, &uses("Read", json!({ "file_path": "/m/lamp.md" }))),
            line("assistant", 5, &uses("TodoWrite", json!({ "todos": [
                { "content": "tell the teammate", "status": "pending" }, { "content": "test", "status": "completed" }] }))),
            summary,
            aside,
            line("user", 9, &json!([{ "type": "text", "text": "And the docs" }])),
        ]
        .iter()
        .map(Value::to_string)
        .collect();
        let found = read_lines(&lines, None);
        assert_eq!(found.prompts, ["Move the ports", "And the docs"]);
        assert_eq!(found.written, [PathBuf::from("/w/ports.rs")]);
        assert_eq!(found.read.len(), 1);
        assert_eq!(found.unfinished, ["tell the teammate"]);
        assert_eq!((found.compacted.as_deref(), found.compactions), (Some("We moved the ports."), 1));
        let minutes = (found.last.expect("a time").0 - found.first.expect("a time").0) / 60_000;
        assert_eq!(minutes, 8);
        let later = read_lines(&lines, found.first.map(|first| Timestamp(first.0 + 7 * 60_000)));
        assert_eq!((later.prompts, later.compactions), (vec!["And the docs".to_owned()], 0));
    }

    #[test]
    fn long_transcript_is_read_from_its_end() {
        let directory = tempfile::tempdir().expect("made");
        let file = directory.path().join("t.jsonl");
        let lines: Vec<String> = (1..=9)
            .map(|minute| line("user", minute, &json!(format!("prompt {minute}"))).to_string())
            .collect();
        let bytes = lines.join("\n").len() as u64;
        std::fs::write(&file, lines.join("\n")).expect("written");
        let prompts = |max_bytes| {
            let found = read_newest(&file, None, max_bytes).expect("read");
            (found.prompts, found.is_cut)
        };
        let line_bytes = lines[8].len() as u64;
        assert_eq!(prompts(bytes).0.len(), MAX_PROMPTS);
        assert!(!prompts(bytes).1);
        for (max_bytes, expected) in [
            (line_bytes, vec!["prompt 9"]),
            (line_bytes + 1, vec!["prompt 9"]),
            (2 * line_bytes, vec!["prompt 9"]),
            (2 * line_bytes + 1, vec!["prompt 8", "prompt 9"]),
            (3, vec![]),
        ] {
            assert_eq!(prompts(max_bytes), (expected.into_iter().map(str::to_owned).collect(), true));
        }
    }

    #[test]
    fn hostile_transcripts_are_read_within_bounds() {
        let mut lines: Vec<String> =
            ["not JSON", "[]", "7", "{\"type\":7}", "{\"message\":{\"content\":{}}}", "\0"]
                .map(str::to_owned)
                .into();
        lines.push("x".repeat(MAX_LINE_BYTES + 10));
        lines.push(json!({ "type": "assistant", "message": { "content": [{ "type": "tool_use", "name": "Write", "input": { "file_path": "relative.rs" } }, 7] } }).to_string());
        lines.extend((0..50).map(|number| {
            line("user", 1, &json!(format!("prompt {number} {}", "y".repeat(5000)))).to_string()
        }));
        let found = read_lines(&lines, None);
        assert_eq!(found.prompts.len(), MAX_PROMPTS);
        assert!(found.prompts.iter().all(|prompt| prompt.chars().count() <= MAX_PROMPT_CHARACTERS));
        assert!(found.written.is_empty());
        assert!(read(Path::new("/nowhere/t.jsonl"), None).is_err());
        assert!(read(Path::new("/"), None).is_err());
    }
}
