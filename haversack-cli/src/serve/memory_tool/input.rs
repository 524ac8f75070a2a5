//! Parses a model's input, or says what is wrong with it.

use haversack::memory_tool::Command;
use serde_json::{Map, Value};

/// The commands, in the order the documentation has them.
const COMMANDS: &str = "view, create, str_replace, insert, delete and rename";

/// Parses the command of one line of input; the error is the model's answer.
pub(super) fn parse(line: &[u8]) -> Result<Command, String> {
    let input = serde_json::from_slice(line).map_err(|error| format!("Error: Invalid JSON: {error}"))?;
    let Value::Object(mut parameters) = input else {
        return Err(format!("Error: The input must be a JSON object, not {}", kind(&input)));
    };
    let command = match parameters.remove("command") {
        Some(Value::String(command)) => command,
        Some(other) => return Err(format!("Error: `command` must be a string, not {}", kind(&other))),
        None => return Err(format!("Error: `command` is missing; the commands are {COMMANDS}")),
    };
    self::command(&mut CommandInput { command: &command, parameters })
}

/// Returns the command of a name.
pub(crate) fn command(input: &mut CommandInput<'_>) -> Result<Command, String> {
    match input.command {
        "view" => Ok(Command::View { path: input.text("path")?, view_range: input.range("view_range")? }),
        "create" => Ok(Command::Create { path: input.text("path")?, file_text: input.text("file_text")? }),
        "str_replace" => Ok(Command::StrReplace {
            path: input.text("path")?,
            old_str: input.text("old_str")?,
            new_str: input.optional_text("new_str")?.unwrap_or_default(),
        }),
        "insert" => Ok(Command::Insert {
            path: input.text("path")?,
            insert_line: input.number("insert_line")?,
            insert_text: input.text("insert_text")?,
        }),
        "delete" => Ok(Command::Delete { path: input.text("path")? }),
        "rename" => {
            Ok(Command::Rename { old_path: input.text("old_path")?, new_path: input.text("new_path")? })
        }
        unknown => {
            let shown: String = unknown.chars().take(60).collect();
            Err(format!("Error: Unknown command `{shown}`; the commands are {COMMANDS}"))
        }
    }
}

/// The parameters of a command.
pub(crate) struct CommandInput<'a> {
    pub(crate) command: &'a str,
    pub(crate) parameters: Map<String, Value>,
}

impl CommandInput<'_> {
    /// Takes a parameter out: a text can be large and need not be copied.
    fn value(&mut self, name: &str) -> Option<Value> {
        self.parameters.remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "a string", &other)),
        }
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<String, String> {
        self.optional_text(name)?.ok_or_else(|| self.missing(name))
    }

    pub(crate) fn optional_number(&mut self, name: &str) -> Result<Option<i64>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_i64().map(Some).ok_or_else(|| self.wrong(name, "a whole number", &value))
    }

    pub(crate) fn optional_switch(&mut self, name: &str) -> Result<Option<bool>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(name, "true or false", &value))
    }

    fn number(&mut self, name: &str) -> Result<i64, String> {
        self.optional_number(name)?.ok_or_else(|| self.missing(name))
    }

    /// Returns two line numbers; a list of another length is taken for none, as the reference does.
    fn range(&mut self, name: &str) -> Result<Option<[i64; 2]>, String> {
        let value = match self.value(name) {
            None => return Ok(None),
            Some(value) => value,
        };
        let Value::Array(ends) = &value else {
            return Err(self.wrong(name, "a list of two whole numbers", &value));
        };
        let [first, last] = ends.as_slice() else {
            return Ok(None);
        };
        let end =
            |end: &Value| end.as_i64().ok_or_else(|| self.wrong(name, "a list of two whole numbers", &value));
        Ok(Some([end(first)?, end(last)?]))
    }

    fn missing(&self, name: &str) -> String {
        format!("Error: The parameter `{name}` of `{}` is missing", self.command)
    }

    fn wrong(&self, name: &str, expected: &str, value: &Value) -> String {
        format!("Error: The parameter `{name}` of `{}` must be {expected}, not {}", self.command, kind(value))
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        parse(line.as_bytes()).expect_err(line)
    }

    #[test]
    fn commands() {
        let path = || "/memories/a.md".to_owned();
        for (line, command) in [
            (
                r#"{"command":"view","path":"/memories/a.md"}"#,
                Command::View { path: path(), view_range: None },
            ),
            (
                r#"{"command":"view","path":"/memories/a.md","view_range":[1,-1]}"#,
                Command::View { path: path(), view_range: Some([1, -1]) },
            ),
            (
                r#"{"command":"view","path":"/memories/a.md","view_range":[1]}"#,
                Command::View { path: path(), view_range: None },
            ),
            (
                r#"{"command":"view","path":"/memories/a.md","view_range":null}"#,
                Command::View { path: path(), view_range: None },
            ),
            (
                r#"{"command":"str_replace","path":"/memories/a.md","old_str":"x"}"#,
                Command::StrReplace { path: path(), old_str: "x".to_owned(), new_str: String::new() },
            ),
            (
                r#" {"extra":1,"insert_text":"\u00fc\n","insert_line":0,"path":"/memories/a.md","command":"insert"}"#,
                Command::Insert { path: path(), insert_line: 0, insert_text: "ü\n".to_owned() },
            ),
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(command), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (line, told) in [
            ("", "Error: Invalid JSON: EOF while parsing a value at line 1 column 0"),
            ("{", "Error: Invalid JSON: EOF while parsing an object at line 1 column 1"),
            ("[]", "Error: The input must be a JSON object, not a list"),
            (
                "{}",
                "Error: `command` is missing; the commands are view, create, str_replace, insert, delete and rename",
            ),
            (r#"{"command":5}"#, "Error: `command` must be a string, not a number"),
            (
                r#"{"command":"undo"}"#,
                "Error: Unknown command `undo`; the commands are view, create, str_replace, insert, delete and rename",
            ),
            (r#"{"command":"view"}"#, "Error: The parameter `path` of `view` is missing"),
            (r#"{"command":"delete","path":null}"#, "Error: The parameter `path` of `delete` is missing"),
            (
                r#"{"command":"create","path":["a"],"file_text":""}"#,
                "Error: The parameter `path` of `create` must be a string, not a list",
            ),
            (
                r#"{"command":"insert","path":"a","insert_line":"1","insert_text":""}"#,
                "Error: The parameter `insert_line` of `insert` must be a whole number, not a string",
            ),
            (
                r#"{"command":"insert","path":"a","insert_line":1.5,"insert_text":""}"#,
                "Error: The parameter `insert_line` of `insert` must be a whole number, not a fraction",
            ),
            (
                r#"{"command":"view","path":"a","view_range":[1,"2"]}"#,
                "Error: The parameter `view_range` of `view` must be a list of two whole numbers, not a list",
            ),
            (
                r#"{"command":"str_replace","path":"a","old_str":"x","new_str":5}"#,
                "Error: The parameter `new_str` of `str_replace` must be a string, not a number",
            ),
        ] {
            assert_eq!(refused(line), told, "{line}");
        }
        assert!(parse(b"\"\xff\"").is_err() && parse(br#"{"command":"\ud800"}"#).is_err());
        assert!(refused(&"[".repeat(100_000)).contains("recursion limit"), "deep nesting");
    }
}
