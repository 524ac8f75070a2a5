//! Our hooks in an agent's settings file. Pure: text in, text out.
//!
//! The file belongs to its owner: comments, order, spacing and other tools' hooks stay. What is not understood is not touched.

use std::fmt;
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};

/// A mark that some editors put first.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A hook that is to be in a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hook {
    /// When it fires.
    pub(crate) event: &'static str,
    /// For which tools; for everything if empty.
    pub(crate) matcher: &'static str,
    /// The command.
    pub(crate) command: String,
    /// Its time limit in seconds.
    pub(crate) timeout_seconds: u32,
}

/// Why a settings file is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    /// Its problem.
    pub(crate) why: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

pub(crate) fn unfit<T>(why: impl Into<String>) -> Result<T, Unfit> {
    Err(Unfit { why: why.into() })
}

/// Returns a settings file with exactly these hooks of ours in it.
pub(crate) fn with_hooks(text: &str, hooks: &[Hook]) -> Result<String, Unfit> {
    let is_there = |hook: &Hook| (hook.event.to_owned(), hook.command.clone());
    if ours_in(text)? == hooks.iter().map(is_there).collect::<Vec<_>>() {
        return Ok(text.to_owned());
    }
    let without = without_hooks(text)?;
    let (mark, body) = split_mark(&without);
    let is_empty = body.trim().is_empty();
    let root = parse(if is_empty { "{}\n" } else { body })?;
    let settings = root.object_value().ok_or_else(no_object)?;
    let Some(table) = settings.object_value_or_create("hooks") else {
        return unfit("\"hooks\" in it is no object");
    };
    for hook in hooks {
        let Some(entries) = table.array_value_or_create(hook.event) else {
            return unfit(format!("\"{}\" below \"hooks\" in it is no list", hook.event));
        };
        entries.ensure_multiline();
        entries.append(entry(hook));
    }
    Ok(format!("{mark}{root}"))
}

/// Returns a settings file without any hook of ours, and with everything else.
pub(crate) fn without_hooks(text: &str) -> Result<String, Unfit> {
    if ours_in(text)?.is_empty() {
        return Ok(text.to_owned());
    }
    let (mark, body) = split_mark(text);
    let root = parse(body)?;
    let Some(table) = root.object_value().and_then(|settings| settings.object_value("hooks")) else {
        return Ok(text.to_owned());
    };
    for property in table.properties() {
        let (Some(event), Some(entries)) = (property.decoded_name(), property.array_value()) else {
            continue;
        };
        let mut took_any = false;
        for entry in entries.elements() {
            let Some(handlers) = entry.as_object().and_then(|entry| entry.array_value("hooks")) else {
                continue;
            };
            let ours = handlers.elements().into_iter().filter(|handler| is_handler_of_ours(&event, handler));
            let ours: Vec<CstNode> = ours.collect();
            took_any |= !ours.is_empty();
            let is_all = !ours.is_empty() && ours.len() == handlers.elements().len();
            match is_all {
                true => entry.remove(),
                false => ours.into_iter().for_each(CstNode::remove),
            }
        }
        if took_any && entries.elements().is_empty() {
            property.remove();
        }
    }
    if table.properties().is_empty()
        && let Some(property) = root.object_value().and_then(|settings| settings.get("hooks"))
    {
        property.remove();
    }
    Ok(format!("{mark}{root}"))
}

/// Returns the hooks of ours in a settings file, each as its event and what is run.
pub(crate) fn ours_in(text: &str) -> Result<Vec<(String, String)>, Unfit> {
    let (_, body) = split_mark(text);
    if body.trim().is_empty() {
        return Ok(Vec::new());
    }
    let root = parse(body)?;
    let settings = root.object_value().ok_or_else(no_object)?;
    if count(&settings, "hooks") > 1 {
        return unfit("it has \"hooks\" twice");
    }
    let Some(property) = settings.get("hooks") else { return Ok(Vec::new()) };
    let Some(table) = property.object_value() else { return unfit("\"hooks\" in it is no object") };
    let mut ours = Vec::new();
    for property in table.properties() {
        let Some(event) = property.decoded_name() else { continue };
        if count(&table, &event) > 1 {
            return unfit(format!("it has \"{event}\" twice below \"hooks\""));
        }
        let entries = property.array_value().map(|entries| entries.elements()).unwrap_or_default();
        for entry in entries {
            let handlers = entry.as_object().and_then(|entry| entry.array_value("hooks"));
            let handlers = handlers.map(|handlers| handlers.elements()).unwrap_or_default();
            let commands = handlers.iter().filter_map(command_of);
            let commands = commands.filter(|command| is_ours(&event, command));
            ours.extend(commands.map(|command| (event.clone(), command)));
        }
    }
    Ok(ours)
}

/// Returns a settings file in which hooks of ours run another command: `change` returns the new command, or `None` for a hook that stays.
///
/// Everything else stays byte for byte.
pub(crate) fn with_commands(text: &str, change: impl Fn(&str) -> Option<String>) -> Result<String, Unfit> {
    if ours_in(text)?.iter().all(|(_, command)| change(command).is_none()) {
        return Ok(text.to_owned());
    }
    let (mark, body) = split_mark(text);
    let root = parse(body)?;
    let table = root.object_value().and_then(|settings| settings.object_value("hooks"));
    for property in table.iter().flat_map(CstObject::properties) {
        let (Some(event), Some(entries)) = (property.decoded_name(), property.array_value()) else {
            continue;
        };
        let entries =
            entries.elements().into_iter().filter_map(|entry| entry.as_object()?.array_value("hooks"));
        for handler in entries.flat_map(|handlers| handlers.elements()) {
            let command = command_of(&handler).filter(|command| is_ours(&event, command));
            if let Some(new) = command.and_then(|command| change(&command)) {
                set_text(handler.as_object().as_ref(), "command", &new);
            }
        }
    }
    Ok(format!("{mark}{root}"))
}

/// Replaces the text that an object has for a key.
pub(super) fn set_text(object: Option<&CstObject>, key: &str, text: &str) {
    let literal = object.and_then(|object| object.get(key)?.value()?.as_string_lit());
    if let Some(literal) = literal {
        literal.set_raw_value(serde_json::Value::from(text).to_string());
    }
}

/// Returns what a settings file says for a key at its top, if that is a text.
pub(crate) fn text_in(text: &str, key: &str) -> Option<String> {
    let root = parse(split_mark(text).1).ok()?;
    root.object_value()?.get(key)?.value()?.as_string_lit()?.decoded_value().ok()
}

/// Returns true if a settings file switches something on at its top.
pub(crate) fn is_on(text: &str, key: &str) -> Option<bool> {
    let root = parse(split_mark(text).1).ok()?;
    Some(root.object_value()?.get(key)?.value()?.as_boolean_lit()?.value())
}

/// Returns our hooks alone, for those who paste them.
pub(crate) fn to_paste(hooks: &[Hook]) -> String {
    with_hooks("", hooks).unwrap_or_default()
}

/// Returns the command line that runs us for an event.
///
/// Hooks may run without PATH and HOME: both are named in full.
pub(crate) fn command(program: &Path, home: &Path, option: &str, event: &str) -> String {
    let [program, home] = [program, home].map(|path| quoted(&path.display().to_string()));
    format!("{program} --home {home} hook {option}{event}")
}

/// A command line of a hook, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine<'a> {
    /// The program that is run.
    pub(crate) program: PathBuf,
    /// The home that it is run for, if the command line names one.
    pub(crate) home: Option<PathBuf>,
    /// Everything after the program, as it is written.
    after_program: &'a str,
}

impl CommandLine<'_> {
    /// Takes a command line apart. Returns `None` for an empty one.
    pub(crate) fn parse(command: &str) -> Option<CommandLine<'_>> {
        let (program, after_program) = next_word(command)?;
        let (mut rest, mut home) = (after_program, None);
        while let Some((word, after)) = next_word(rest) {
            rest = after;
            if word == "--home" {
                home = next_word(after).map(|(home, _)| PathBuf::from(home));
            }
        }
        Some(CommandLine { program: program.into(), home, after_program })
    }

    /// Returns the command line with another program.
    pub(crate) fn with_program(&self, program: &Path) -> String {
        format!("{}{}", quoted(&program.display().to_string()), self.after_program)
    }
}

/// Returns the first word of a command line as a shell reads it, and the text after that word.
fn next_word(line: &str) -> Option<(String, &str)> {
    let line = line.trim_start();
    let mut word = String::new();
    let mut quote = None;
    let mut letters = line.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '\\') if cfg!(not(windows)) => word.extend(letters.next().map(|(_, escaped)| escaped)),
            (None, _) if letter.is_whitespace() => return Some((word, &line[at..])),
            _ => word.push(letter),
        }
    }
    (!line.is_empty()).then_some((word, ""))
}

/// Returns true if a command line runs us for an event.
fn is_ours(event: &str, command: &str) -> bool {
    let mut words = command.split_whitespace().rev();
    let is_event = words.next() == Some(event);
    let verb = words.find(|word| !word.starts_with("--"));
    is_event && verb == Some("hook") && words.any(|word| word.contains("haversack"))
}

/// Returns a path as a shell takes it: the system's own, or the one that comes with git on Windows.
fn quoted(path: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@' | ':' | ',');
    if !path.is_empty() && path.chars().all(is_plain) {
        return path.to_owned();
    }
    if cfg!(windows) {
        return format!("\"{path}\"");
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

fn is_handler_of_ours(event: &str, handler: &CstNode) -> bool {
    command_of(handler).is_some_and(|command| is_ours(event, &command))
}

fn command_of(handler: &CstNode) -> Option<String> {
    handler.as_object()?.get("command")?.value()?.as_string_lit()?.decoded_value().ok()
}

pub(super) fn count(object: &CstObject, name: &str) -> usize {
    object.properties().iter().filter(|property| property.decoded_name().as_deref() == Some(name)).count()
}

fn entry(hook: &Hook) -> CstInputValue {
    let text = |text: &str| CstInputValue::String(text.to_owned());
    let handler = CstInputValue::Object(vec![
        ("type".to_owned(), text("command")),
        ("command".to_owned(), text(&hook.command)),
        ("timeout".to_owned(), CstInputValue::Number(hook.timeout_seconds.to_string())),
    ]);
    let mut entry = Vec::new();
    if !hook.matcher.is_empty() {
        entry.push(("matcher".to_owned(), text(hook.matcher)));
    }
    entry.push(("hooks".to_owned(), CstInputValue::Array(vec![handler])));
    CstInputValue::Object(entry)
}

/// Comments and a comma too many are in many such files; everything else that is not JSON is a mistake, and not ours to mend.
pub(super) fn parse(text: &str) -> Result<CstRootNode, Unfit> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).or_else(|error| unfit(format!("it is not JSON: {error}")))
}

pub(super) fn no_object() -> Unfit {
    Unfit { why: "its content is not a JSON object".to_owned() }
}

pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    (&text[..text.len() - body.len()], body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn hooks() -> Vec<Hook> {
        let command = |event| command(Path::new("/opt/haversack"), Path::new("/home/me/a home"), "", event);
        vec![
            Hook {
                event: "SessionStart",
                matcher: "",
                command: command("SessionStart"),
                timeout_seconds: 10,
            },
            Hook {
                event: "PostToolUse",
                matcher: "Write|Edit",
                command: command("PostToolUse"),
                timeout_seconds: 5,
            },
        ]
    }

    /// A file made by hand, with hooks of another tool.
    const FOREIGN: &str = r#"{
  // what the model may do
  "permissions": { "allow": ["Write", "Edit"] },

  "hooks": {
    "PostToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "audit hook PostToolUse" }] }, /* theirs */
    ],
    "Stop": []
  },
  "model": "opus"   // last
}
"#;

    /// Returns what a text says, comments and commas aside.
    fn meaning(text: &str) -> Value {
        fn of(node: &CstNode) -> Value {
            match (node.as_object(), node.as_array()) {
                (Some(object), _) => {
                    let each = object.properties().into_iter();
                    each.map(|p| (p.decoded_name().expect("a name"), of(&p.value().expect("a value"))))
                        .collect()
                }
                (_, Some(array)) => array.elements().iter().map(of).collect(),
                _ => serde_json::from_str(&node.to_string()).expect("a value"),
            }
        }
        let root = parse(split_mark(text).1).expect("JSON");
        of(&root.value().expect("a value"))
    }

    #[test]
    fn hooks_are_added_and_everything_else_stays() {
        insta::assert_snapshot!(with_hooks(FOREIGN, &hooks()).expect("added"), @r#"
        {
          // what the model may do
          "permissions": { "allow": ["Write", "Edit"] },

          "hooks": {
            "PostToolUse": [
              { "matcher": "Bash", "hooks": [{ "type": "command", "command": "audit hook PostToolUse" }] }, /* theirs */
              {
                "matcher": "Write|Edit",
                "hooks": [
                  {
                    "type": "command",
                    "command": "/opt/haversack --home '/home/me/a home' hook PostToolUse",
                    "timeout": 5,
                  },
                ],
              },
            ],
            "Stop": [],
            "SessionStart": [
              {
                "hooks": [
                  {
                    "type": "command",
                    "command": "/opt/haversack --home '/home/me/a home' hook SessionStart",
                    "timeout": 10
                  }
                ]
              }
            ]
          },
          "model": "opus"   // last
        }
        "#);
    }

    #[test]
    fn hooks_alone() {
        insta::assert_snapshot!(to_paste(&hooks()), @r#"
        {
          "hooks": {
            "SessionStart": [
              {
                "hooks": [
                  {
                    "type": "command",
                    "command": "/opt/haversack --home '/home/me/a home' hook SessionStart",
                    "timeout": 10
                  }
                ]
              }
            ],
            "PostToolUse": [
              {
                "matcher": "Write|Edit",
                "hooks": [
                  {
                    "type": "command",
                    "command": "/opt/haversack --home '/home/me/a home' hook PostToolUse",
                    "timeout": 5
                  }
                ]
              }
            ]
          }
        }
        "#);
    }

    const FILES: [&str; 12] = [
        "",
        "\n",
        "{}",
        "{\n}\n",
        "\u{feff}{\"a\": 1}",
        "{\"hooks\": {}}",
        "{\r\n\t\"a\": 1,\r\n\t\"hooks\": {\r\n\t\t\"SessionStart\": []\r\n\t}\r\n}\r\n",
        "// a remark\n{\"model\":\"opus\"}\n// another",
        "{\"hooks\":{\"SessionStart\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}]}}",
        "{\"hooks\":{\"SessionStart\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"},],},],},}",
        "{\"hooks\":{\"SessionStart\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"/old/haversack hook SessionStart\"},{\"type\":\"command\",\"command\":\"y\"}]}]}}",
        FOREIGN,
    ];

    #[test]
    fn adding_twice_is_adding_once_and_taking_out_leaves_what_was_there() {
        for file in FILES {
            let added = with_hooks(file, &hooks()).expect("added");
            assert_eq!(with_hooks(&added, &hooks()).expect("added"), added, "{file}");
            let expected: Vec<_> =
                hooks().into_iter().map(|hook| (hook.event.to_owned(), hook.command)).collect();
            let mut found = ours_in(&added).expect("read");
            found.sort_by_key(|(event, _)| event != "SessionStart");
            assert_eq!(found, expected, "{file}");
            let removed = without_hooks(&added).expect("taken out");
            assert_eq!(ours_in(&removed).expect("read"), [], "{file}");
            let bare = without_hooks(if file.trim().is_empty() { "{}" } else { file }).expect("taken out");
            let normal = |text: &str| {
                let mut value = meaning(text);
                if let Some(table) = value.get_mut("hooks").and_then(Value::as_object_mut) {
                    table.retain(|_, entries| entries != &Value::Array(Vec::new()));
                    if table.is_empty() {
                        value.as_object_mut().expect("an object").remove("hooks");
                    }
                }
                value
            };
            assert_eq!(normal(&removed), normal(&bare), "{file}\n{removed}");
            for remark in ["// what the model may do", "/* theirs */", "// last", "// a remark", "// another"]
            {
                assert_eq!(added.contains(remark), file.contains(remark), "{added}");
                assert_eq!(removed.contains(remark), file.contains(remark), "{removed}");
            }
            assert_eq!(added.starts_with(BYTE_ORDER_MARK), file.starts_with(BYTE_ORDER_MARK));
            assert_eq!(added.contains("\r\n"), file.contains("\r\n"), "{added:?}");
        }
    }

    #[test]
    fn command_changes_and_everything_else_stays() {
        let home = Path::new("/home/it's me/a home");
        let old = command(Path::new("/old tools/haversack"), home, "", "SessionStart");
        let new = command(Path::new("/home/it's me/bin/haversack"), home, "", "SessionStart");
        let foreign = "/old tools/haversack sync";
        let entry = |command: &str| {
            let command = Value::from(command);
            format!("{{ \"type\":\"command\",/* mine */ \"command\" : {command},\"timeout\":99,}}")
        };
        let file = |command: &str| {
            format!(
                "\u{feff}// top\r\n{{\"hooks\": {{\"SessionStart\": [{{\"hooks\": [{},\t{}]}}], \"Stop\": []}}, }}",
                entry(foreign),
                entry(command)
            )
        };
        let change = |command: &str| {
            let line = CommandLine::parse(command)?;
            assert_eq!(
                (line.program.as_path(), line.home.as_deref()),
                (Path::new("/old tools/haversack"), Some(home))
            );
            Some(line.with_program(Path::new("/home/it's me/bin/haversack")))
        };
        assert_eq!(with_commands(&file(&old), change).expect("changed"), file(&new));
        assert_eq!(with_commands(&file(&old), |_| None).expect("read"), file(&old));
        let line = CommandLine::parse(" haversack  hook SessionStart").expect("a command");
        assert_eq!(
            (line.program, line.home, line.after_program),
            ("haversack".into(), None, "  hook SessionStart")
        );
        assert_eq!(CommandLine::parse("  "), None);
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for file in [
            "{",
            "[]",
            "7",
            "{\"hooks\": []}",
            "{\"hooks\": {}, \"hooks\": {}}",
            "{'a': 1}",
            "{\"a\": 1 \"b\": 2}",
            "{\"hooks\": {\"SessionStart\": {}}}",
            "{\"hooks\": {\"Stop\": [], \"Stop\": []}}",
            "not JSON",
            "{}}",
            "\0",
        ] {
            assert!(with_hooks(file, &hooks()).is_err(), "{file}");
        }
    }

    #[test]
    fn ours_are_told_from_others() {
        for (command, expected) in [
            ("/opt/haversack --home /h hook SessionStart", true),
            ("'/opt/my tools/haversack' --home '/h' hook SessionStart ", true),
            ("haversack hook SessionStart", true),
            ("haversack --home /h hook --codex SessionStart", true),
            ("haversack hook PostToolUse", false),
            ("audit hook SessionStart", false),
            ("haversack sync", false),
            ("haversack-webhook SessionStart", false),
        ] {
            assert_eq!(is_ours("SessionStart", command), expected, "{command}");
        }
        assert_eq!(quoted("/home/it's me/x"), r"'/home/it'\''s me/x'");
    }
}
