//! Parses a hook's input. A hook works without any part of it that is wrong.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The longest input that is looked at; a longer one is read to its end, so that its writer is not stopped, and not understood.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// The used fields of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Input {
    pub(crate) session_id: Option<String>,
    pub(crate) transcript_path: Option<PathBuf>,
    pub(crate) cwd: Option<PathBuf>,
    /// The way in which a session began.
    pub(crate) source: Option<String>,
    /// The summary of a compaction.
    pub(crate) compact_summary: Option<String>,
    /// The user's prompt.
    pub(crate) prompt: Option<String>,
    /// The error of a tool that failed.
    pub(crate) error: Option<String>,
    /// The file that changed.
    pub(crate) file_path: Option<PathBuf>,
    /// The input of a tool.
    pub(crate) tool_input: Option<ToolInput>,
}

/// The input of a tool that writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ToolInput {
    file_path: Option<PathBuf>,
    notebook_path: Option<PathBuf>,
    command: Option<String>,
}

/// An input, and its problem.
pub(crate) struct Understood {
    pub(crate) input: Input,
    pub(crate) trouble: Option<String>,
}

impl Input {
    /// Reads an input to its end.
    pub(crate) fn read(mut from: impl Read) -> Understood {
        let mut bytes = Vec::new();
        let trouble = match from.by_ref().take(MAX_BYTES + 1).read_to_end(&mut bytes) {
            Err(error) => Some(format!("the input could not be read: {error}")),
            Ok(_) if bytes.len() as u64 > MAX_BYTES => {
                drop(io::copy(&mut from, &mut io::sink()));
                Some("the input is too long".to_owned())
            }
            Ok(_) => None,
        };
        match trouble {
            Some(trouble) => Understood { input: Input::default(), trouble: Some(trouble) },
            None => Input::parse(&bytes),
        }
    }

    fn parse(bytes: &[u8]) -> Understood {
        match serde_json::from_slice(bytes) {
            Ok(input) => Understood { input, trouble: None },
            Err(error) => {
                let trouble = Some(format!("the input is not understood: {error}"));
                Understood { input: Input::default(), trouble }
            }
        }
    }

    /// Returns the directory of the session; our own directory if the input has none.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        let here = || std::env::current_dir().ok();
        self.cwd.clone().filter(|directory| directory.is_absolute()).or_else(here)
    }

    /// Returns the command that is to be run.
    pub(crate) fn command(&self) -> Option<&str> {
        self.tool_input.as_ref()?.command.as_deref()
    }

    /// Returns the file that was written.
    pub(crate) fn written(&self) -> Option<&Path> {
        let tool = self.tool_input.as_ref();
        let by_tool = tool.and_then(|tool| tool.file_path.as_deref().or(tool.notebook_path.as_deref()));
        self.file_path.as_deref().or(by_tool).filter(|path| path.is_absolute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_and_nothing_else_happens() {
        let text = r#"{"session_id":"7f3a","cwd":"/w","tool_name":"Write","tool_input":{"file_path":"/w/a.md","content":"x"},"new":[1,{}]}"#;
        let Understood { input, trouble } = Input::read(text.as_bytes());
        assert_eq!(
            (input.session_id.as_deref(), input.written(), trouble),
            (Some("7f3a"), Some(Path::new("/w/a.md")), None)
        );
        let long = format!("{{\"x\":\"{}\"}}", "a".repeat(50 * 1024 * 1024));
        for bad in ["", "{", &text[..40], "not JSON", "7", "{\"session_id\":7}", "\0\0", &long] {
            let Understood { input, trouble } = Input::read(bad.as_bytes());
            assert!(input == Input::default() && trouble.is_some(), "{}", &bad[..bad.len().min(50)]);
        }
        let Understood { input, .. } = Input::read(r#"{"file_path":"relative.md","cwd":"x"}"#.as_bytes());
        assert_eq!(input.written(), None);
        assert_eq!(input.directory(), std::env::current_dir().ok());
    }
}
