//! The bridge for any program with Anthropic's memory tool.
//!
//! One command as JSON per line comes in, one answer as JSON per line goes out at once, until the input ends. Every line gets
//! exactly one answer; no input ends the process.

pub(crate) mod input;

use std::io::{BufRead, BufReader, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haversack::memory_tool::{Answer, Command, Content, MemoryTool};
use serde::Serialize;

use crate::app::index::answered;
use crate::error::CommandError;
use crate::home::store::open;
use crate::projects::border::{Face, Guard};
use crate::settings::Settings;
use crate::ui::Ui;

/// The size of a read from the system.
const BUFFER_BYTES: usize = 64 * 1024;

/// Answers the commands that stdin holds, until it ends.
pub(crate) fn serve(ui: &mut Ui, settings: &Settings) -> Result<(), CommandError> {
    let memory = open(settings)?;
    let tool = MemoryTool::new(memory.clone()).with_view_characters(settings.memory_tool.view_characters);
    let mut input = BufReader::with_capacity(BUFFER_BYTES, std::io::stdin().lock());
    let mut guard = Guard::new(settings, Face::Agent);
    let mut line = Vec::new();
    let mut out = Vec::new();
    loop {
        let answer = match read_line(&mut input, &mut line, settings.memory_tool.line_bytes)? {
            Line::End => return Ok(()),
            Line::Whole => match input::parse(&line) {
                Ok(command) => match guard.refusal().filter(|_| !matches!(command, Command::View { .. })) {
                    Some(refusal) => Answer::error(refusal.for_model()),
                    None => answered(&memory, &tool, command),
                },
                Err(why) => Answer::error(why),
            },
            Line::TooLong => Answer::error(format!(
                "Error: The command is longer than {} bytes and was not carried out",
                settings.memory_tool.line_bytes
            )),
        };
        out.clear();
        out.shrink_to(BUFFER_BYTES);
        serde_json::to_writer(&mut out, &ToolResponse::from(answer)).expect("texts and booleans print");
        out.push(b'\n');
        ui.bytes(&out)?;
    }
}

/// An answer as it goes out.
#[derive(Serialize)]
struct ToolResponse {
    content: ToldContent,
    is_error: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ToldContent {
    Text(String),
    Blocks([Block; 1]),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Block {
    Image { source: Source },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Source {
    Base64 { media_type: &'static str, data: String },
}

impl From<Answer> for ToolResponse {
    fn from(answer: Answer) -> ToolResponse {
        let content = match answer.content {
            Content::Text(text) => ToldContent::Text(text),
            Content::Image { media_type, bytes } => {
                let source = Source::Base64 { media_type, data: STANDARD.encode(&bytes) };
                ToldContent::Blocks([Block::Image { source }])
            }
        };
        ToolResponse { content, is_error: answer.is_error }
    }
}

/// The next line of the input.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads the next line into `line`, without its newline; one that is too long is skipped without being held.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>, max_bytes: usize) -> std::io::Result<Line> {
    line.clear();
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    input.by_ref().take(limit).read_until(b'\n', line)?;
    match line.last() {
        None => return Ok(Line::End),
        Some(b'\n') => drop(line.pop()),
        Some(_) if line.len() <= max_bytes => {}
        Some(_) => {
            line.clear();
            line.shrink_to(BUFFER_BYTES);
            input.skip_until(b'\n')?;
            return Ok(Line::TooLong);
        }
    }
    Ok(Line::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whole_or_skipped_whole() {
        let mut input: &[u8] = b"1234\n12345\n123456789\n\n12\n1234";
        let mut seen = Vec::new();
        let mut line = Vec::new();
        loop {
            match read_line(&mut input, &mut line, 4).expect("a slice") {
                Line::End => break,
                Line::Whole => seen.push(Some(String::from_utf8(line.clone()).expect("text"))),
                Line::TooLong => seen.push(None),
            }
        }
        let whole = |text: &str| Some(text.to_owned());
        assert_eq!(seen, [whole("1234"), None, None, whole(""), whole("12"), whole("1234")]);
        let mut last: &[u8] = b"12345";
        assert_eq!(read_line(&mut last, &mut line, 4).expect("a slice"), Line::TooLong);
        assert_eq!(read_line(&mut last, &mut line, 4).expect("a slice"), Line::End);
    }
}
