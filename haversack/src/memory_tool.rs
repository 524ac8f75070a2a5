//! The memory tool face: what a model with Anthropic's `memory_20250818` tool is told.
//!
//! The strings are those of the tool's documentation, and where it is silent those of the Python SDK, because models have learnt
//! them. `/memories` is the root of the memory. A refused command is an answer too, with [`Answer::is_error`] set: a model
//! can do something about it.

mod listing;
mod show;

use std::fmt;

use haversack_store::{Bytes, ErrorKind, InvalidLocator, Locator};

use self::listing::listing;
use self::show::{LineRange, lines_of, shortened, snippet};
use crate::error::{Error, Reason, Verb, with_causes};
use crate::memory::{Depth, Memory, View, as_text};
use crate::text::{Ending, Occurrences};

/// The beginning of every path.
const ROOT: &str = "/memories";

/// The default number of characters in one view.
const VIEW_CHARACTERS: usize = 16_000;

/// The most lines that a file may have to be viewed.
const MAX_LINES: usize = 999_999;

/// The largest image that the model's API takes.
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;

/// A command of the memory tool, with the parameters that a model gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Shows a file or a directory.
    View {
        /// The path.
        path: String,
        /// The first and the last line, from 1; the last may be -1 for the end.
        view_range: Option<[i64; 2]>,
    },
    /// Makes a new file.
    Create {
        /// The path.
        path: String,
        /// Its text.
        file_text: String,
    },
    /// Replaces the only occurrence of a text.
    StrReplace {
        /// The path.
        path: String,
        /// The old text.
        old_str: String,
        /// The new text; empty to remove the old text.
        new_str: String,
    },
    /// Inserts lines.
    Insert {
        /// The path.
        path: String,
        /// The line after which; 0 is the top.
        insert_line: i64,
        /// The lines.
        insert_text: String,
    },
    /// Removes a file, or a directory with everything in it.
    Delete {
        /// The path.
        path: String,
    },
    /// Moves a file or a directory.
    Rename {
        /// From where.
        old_path: String,
        /// To where.
        new_path: String,
    },
}

/// The answer to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its content.
    pub content: Content,
    /// True if the command was refused or failed.
    pub is_error: bool,
}

/// Something that a model can be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A text.
    Text(String),
    /// An image.
    Image {
        /// The type of the image, for example `image/png`.
        media_type: &'static str,
        /// Its bytes.
        bytes: Bytes,
    },
}

impl Answer {
    fn text(text: String) -> Answer {
        Answer { content: Content::Text(text), is_error: false }
    }

    /// Returns the answer to what could not be done.
    pub fn error(text: impl Into<String>) -> Answer {
        Answer { content: Content::Text(text.into()), is_error: true }
    }
}

/// A command that was not carried out: what the model is told.
struct Refused(String);

impl From<String> for Refused {
    fn from(text: String) -> Refused {
        Refused(text)
    }
}

/// A memory that answers the commands of the memory tool.
#[derive(Clone, Debug)]
pub struct MemoryTool {
    memory: Memory,
    view_characters: usize,
}

impl MemoryTool {
    /// Returns the face of `memory`.
    pub fn new(memory: Memory) -> MemoryTool {
        MemoryTool { memory, view_characters: VIEW_CHARACTERS }
    }

    /// Sets how many characters of a text one view shows.
    pub fn with_view_characters(mut self, view_characters: usize) -> MemoryTool {
        self.view_characters = view_characters;
        self
    }

    /// Carries out a command.
    pub async fn answer(&self, command: Command) -> Answer {
        let result = match command {
            Command::View { path, view_range } => return self.view(&path, view_range).await,
            Command::Create { path, file_text } => self.create(&path, file_text).await,
            Command::StrReplace { path, old_str, new_str } => {
                self.str_replace(&path, &old_str, &new_str).await
            }
            Command::Insert { path, insert_line, insert_text } => {
                self.insert(&path, insert_line, &insert_text).await
            }
            Command::Delete { path } => self.delete(&path).await,
            Command::Rename { old_path, new_path } => self.rename(&old_path, &new_path).await,
        };
        match result {
            Ok(text) => Answer::text(text),
            Err(Refused(text)) => Answer::error(text),
        }
    }

    async fn view(&self, path: &str, view_range: Option<[i64; 2]>) -> Answer {
        match self.try_view(path, view_range.map(LineRange::new)).await {
            Ok(content) => Answer { content, is_error: false },
            Err(Refused(text)) => Answer::error(text),
        }
    }

    async fn try_view(&self, path: &str, range: Option<LineRange>) -> Result<Content, Refused> {
        let locator = locate(path)?;
        let view = self.memory.view(&locator).await.map_err(|error| match error.reason() {
            Reason::NotFound => missing(path, Verb::View),
            Reason::Storage if error.kind() == ErrorKind::Invalid => {
                format!("Unsupported file type for {path}")
            }
            _ => failed(path, &error),
        })?;
        let object = match view {
            View::Directory(level) => {
                let text = listing(&self.memory, path, level, range, self.view_characters).await;
                return text.map(Content::Text).map_err(|error| failed(path, &error).into());
            }
            View::File(object) => object,
        };
        if let Some(media_type) = image_type(&locator, &object.bytes) {
            if object.bytes.len() > MAX_IMAGE_BYTES {
                let size = object.bytes.len();
                return Err(Refused(format!(
                    "The image {path} is too large to be viewed: {size} bytes of at most {MAX_IMAGE_BYTES}."
                )));
            }
            return Ok(Content::Image { media_type, bytes: object.bytes });
        }
        let text = as_text(&object.bytes).map_err(|_| not_text(path))?;
        let heading = format!("Here's the content of {path} with line numbers:\n");
        let Some(shown) = lines_of(heading, text, range, MAX_LINES, self.view_characters) else {
            return Err(Refused(format!("File {path} exceeds maximum line limit of 999,999 lines.")));
        };
        Ok(Content::Text(shown.with_note(path)))
    }

    async fn create(&self, path: &str, file_text: String) -> Result<String, Refused> {
        let locator = locate(path)?;
        let created = self.memory.create(&locator, file_text).await;
        created.map_err(|error| match error.reason() {
            Reason::Exists => format!("Error: File {path} already exists"),
            _ => failed(path, &error),
        })?;
        Ok(format!("File created successfully at: {path}"))
    }

    async fn str_replace(&self, path: &str, old: &str, new: &str) -> Result<String, Refused> {
        let locator = locate(path)?;
        let edited = self.memory.str_replace(&locator, old, new).await;
        let edited = edited.map_err(|error| {
            let old = shortened(old, self.view_characters);
            match error.reason() {
                Reason::NotFound | Reason::IsDirectory => missing(path, Verb::StrReplace),
                Reason::EmptyOld => {
                    format!(
                        "No replacement was performed, old_str is empty: name the text to replace in {path}."
                    )
                }
                Reason::OldNotFound => format!(
                    "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
                ),
                Reason::OldNotUnique(Occurrences { lines, more }) => {
                    let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
                    let (lines, more) = (lines.join(", "), if *more { " and more" } else { "" });
                    format!(
                        "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: \
                         {lines}{more}. Please ensure it is unique"
                    )
                }
                Reason::NotText { .. } => not_text(path),
                _ => failed(path, &error),
            }
        })?;
        let snippet = snippet(edited.bytes(), edited.line, self.view_characters);
        Ok(format!(
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        ))
    }

    async fn insert(&self, path: &str, insert_line: i64, insert_text: &str) -> Result<String, Refused> {
        let locator = locate(path)?;
        // No file has that many lines: a line before the first is refused as one after the last is.
        let after_line = usize::try_from(insert_line).unwrap_or(usize::MAX);
        let text = insert_text.trim_end_matches('\n');
        let inserted = self.memory.insert(&locator, after_line, text, Ending::Newline).await;
        inserted.map_err(|error| match error.reason() {
            Reason::NotFound | Reason::IsDirectory => missing(path, Verb::Insert),
            Reason::LineOutOfRange { lines, .. } => format!(
                "Error: Invalid `insert_line` parameter: {insert_line}. It should be within the range of lines of \
                 the file: [0, {lines}]"
            ),
            Reason::NotText { .. } => not_text(path),
            _ => failed(path, &error),
        })?;
        Ok(format!("The file {path} has been edited."))
    }

    async fn delete(&self, path: &str) -> Result<String, Refused> {
        let locator = locate(path)?;
        let deleted = self.memory.delete(&locator, Depth::Recursive).await;
        deleted.map_err(|error| match error.reason() {
            Reason::IsRoot => format!("Cannot delete the {ROOT} directory itself"),
            Reason::NotFound => missing(path, Verb::Delete),
            _ => failed(path, &error),
        })?;
        Ok(format!("Successfully deleted {path}"))
    }

    async fn rename(&self, old_path: &str, new_path: &str) -> Result<String, Refused> {
        let (from, to) = (locate(old_path)?, locate(new_path)?);
        if let Err(error) = self.memory.rename(&from, &to).await {
            // Of two mistakes the reference names the target first.
            let is_taken = match error.reason() {
                Reason::Exists => true,
                Reason::NotFound | Reason::IntoItself => self.memory.info(Verb::Rename, &to).await.is_ok(),
                _ => false,
            };
            return Err(Refused(match error.reason() {
                _ if is_taken => format!("Error: The destination {new_path} already exists"),
                Reason::IsRoot => format!("Cannot rename the {ROOT} directory itself"),
                Reason::NotFound => missing(old_path, Verb::Rename),
                Reason::IntoItself => format!(
                    "Error: Cannot rename {old_path} to {new_path}: a directory cannot be moved into itself"
                ),
                _ => failed(old_path, &error),
            }));
        }
        Ok(format!("Successfully renamed {old_path} to {new_path}"))
    }
}

/// Returns the place that a model calls `path`.
fn locate(path: &str) -> Result<Locator, Refused> {
    /// The longest part of a path that an answer repeats: the length of the longest valid path.
    const SHOWN: usize = haversack_store::MAX_KEY_BYTES;
    let shown = shortened(path, SHOWN);
    let below = path.strip_prefix(ROOT).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let Some(below) = below else {
        return Err(Refused(format!("Path must start with {ROOT}, got: {shown}")));
    };
    Locator::parse(below).map_err(|error: InvalidLocator| match error.reason() {
        haversack_store::Reason::Climbs => Refused(format!("Path {shown} would escape {ROOT} directory")),
        _ => Refused(format!("Error: The path {error}")),
    })
}

fn missing(path: &str, verb: Verb) -> String {
    match verb {
        Verb::View => format!("The path {path} does not exist. Please provide a valid path."),
        Verb::StrReplace => format!("Error: The path {path} does not exist. Please provide a valid path."),
        Verb::Create
        | Verb::Insert
        | Verb::Append
        | Verb::Delete
        | Verb::Rename
        | Verb::Batch
        | Verb::Resolve => format!("Error: The path {path} does not exist"),
    }
}

fn not_text(path: &str) -> String {
    format!("Error: The file {path} is not a text file (it is not valid UTF-8) and was left as it is")
}

fn failed(path: &str, error: &Error) -> String {
    format!("Error: {path}: {}", with_causes(error))
}

/// Returns what kind of image a file is; its name and its first bytes must agree that it is one.
fn image_type(locator: &Locator, bytes: &[u8]) -> Option<&'static str> {
    let (_, extension) = locator.name().rsplit_once('.')?;
    if !["jpg", "jpeg", "png"].iter().any(|known| extension.eq_ignore_ascii_case(known)) {
        return None;
    }
    // An image with the wrong one of these names is still that image.
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else {
        None
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Text(text) => f.write_str(text),
            Content::Image { media_type, bytes } => write!(f, "[{media_type}, {} bytes]", bytes.len()),
        }
    }
}
