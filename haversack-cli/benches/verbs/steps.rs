//! The steps of all sides: the same commands on the same texts.

use haversack::memory_tool::Command;
use serde_json::{Value, json};

/// The length of a line, including its newline: about as in notes.
const LINE_BYTES: usize = 64;

/// One command, and whether it is measured.
pub(crate) struct Step {
    pub(crate) command: Command,
    pub(crate) is_timed: bool,
}

impl Step {
    /// Returns a step that is measured.
    pub(crate) fn timed(command: Command) -> Step {
        Step { command, is_timed: true }
    }

    /// Returns a step that only prepares the next one.
    pub(crate) fn between(command: Command) -> Step {
        Step { command, is_timed: false }
    }
}

/// Returns a text of `size` whose lines are all alike but for one in the middle, which says `state(0)`.
pub(crate) fn text(size: usize) -> String {
    let mut text = String::with_capacity(size);
    let lines = size / LINE_BYTES;
    for line in 0..lines {
        let start = if line == lines / 2 { state(0) } else { format!("note {line:06}") };
        text.push_str(&format!("{start:.<width$}\n", width = LINE_BYTES - 1));
    }
    text
}

/// Returns the line after which to insert: the one in the middle.
pub(crate) fn middle(size: usize) -> i64 {
    i64::try_from(size / LINE_BYTES / 2).expect("texts here are small")
}

/// Returns what a text says after so many edits.
pub(crate) fn state(edits: usize) -> String {
    format!("state {edits:08}")
}

/// Returns the place that a model calls `key`.
pub(crate) fn path(key: &str) -> String {
    format!("/memories/{key}")
}

/// Looks at `key` so many times.
pub(crate) fn view(key: &str, count: usize) -> impl Fn(usize) -> Vec<Step> + use<> {
    let path = path(key);
    move |_| {
        let view = || Step::timed(Command::View { path: path.clone(), view_range: None });
        (0..count).map(|_| view()).collect()
    }
}

/// Makes new files of `size` in the directory `key`, each round in a directory of its own.
pub(crate) fn create(key: &str, size: usize, count: usize) -> impl Fn(usize) -> Vec<Step> + use<> {
    let (path, text) = (path(key), text(size));
    move |round| {
        let create = |number| Command::Create {
            path: format!("{path}/{round}/{number}.md"),
            file_text: text.replace(&state(0), &state(round * count + number)),
        };
        (0..count).map(|number| Step::timed(create(number))).collect()
    }
}

/// Changes the state that the text at `key` says.
pub(crate) fn str_replace(key: &str, count: usize) -> impl Fn(usize) -> Vec<Step> + use<> {
    let path = path(key);
    move |round| {
        let edit = |edits| Command::StrReplace {
            path: path.clone(),
            old_str: state(edits),
            new_str: state(edits + 1),
        };
        (0..count).map(|number| Step::timed(edit(round * count + number))).collect()
    }
}

/// Inserts a line in the middle of the text at `key`, and takes it out again before the next.
pub(crate) fn insert(key: &str, size: usize, count: usize) -> impl Fn(usize) -> Vec<Step> + use<> {
    let (path, insert_line) = (path(key), middle(size));
    move |round| {
        let pair = |number| {
            let line = format!("insert {:08}\n", round * count + number);
            let insert = Command::Insert { path: path.clone(), insert_line, insert_text: line.clone() };
            let undo = Command::StrReplace { path: path.clone(), old_str: line, new_str: String::new() };
            [Step::timed(insert), Step::between(undo)]
        };
        (0..count).flat_map(pair).collect()
    }
}

/// Returns a command as a model gives it.
pub(crate) fn to_json(command: &Command) -> Value {
    match command {
        Command::View { path, view_range: None } => json!({ "command": "view", "path": path }),
        Command::View { path, view_range: Some(range) } => {
            json!({ "command": "view", "path": path, "view_range": range })
        }
        Command::Create { path, file_text } => {
            json!({ "command": "create", "path": path, "file_text": file_text })
        }
        Command::StrReplace { path, old_str, new_str } => {
            json!({ "command": "str_replace", "path": path, "old_str": old_str, "new_str": new_str })
        }
        Command::Insert { path, insert_line, insert_text } => {
            json!({ "command": "insert", "path": path, "insert_line": insert_line, "insert_text": insert_text })
        }
        Command::Delete { path } => json!({ "command": "delete", "path": path }),
        Command::Rename { old_path, new_path } => {
            json!({ "command": "rename", "old_path": old_path, "new_path": new_path })
        }
    }
}
