//! The layers: what each of them says, checked, and where it says it. Nothing here reads or writes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::declarations::{
    DECLARATIONS, Declaration, FOR_PROJECTS, Kind, Nearest, Value, declared, is_table, nearest_key,
    nearest_variable,
};
use super::flags::Flag;
use super::time;
use crate::error::{CommandError, Warning};
use crate::settings::variables;
use crate::ui::paths::shown;

/// The source of a value; a later one wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Compiled in, or the system's.
    Default,
    /// `config.toml` in the home.
    User(Line),
    /// `.haversack.toml` in the current directory or above it.
    Project(Line),
    /// The variable of this name.
    Environment(&'static str),
    /// The flag of this name.
    Flag(&'static str),
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) path: PathBuf,
    pub(crate) number: usize,
}

impl Layer {
    /// Returns the layer's name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Layer::Default => "default",
            Layer::User(_) => "user",
            Layer::Project(_) => "project",
            Layer::Environment(_) => "environment",
            Layer::Flag(_) => "flag",
        }
    }

    /// Returns the place in the layer, where there is more than one.
    pub(crate) fn place(&self) -> Option<String> {
        match self {
            Layer::Default => None,
            Layer::User(line) | Layer::Project(line) => Some(line.to_string()),
            Layer::Environment(name) | Layer::Flag(name) => Some((*name).to_owned()),
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place().unwrap_or_else(|| self.name().to_owned()))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", shown(&self.path), self.number)
    }
}

/// One value as one layer gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LayerValue {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    pub(crate) layer: Layer,
}

/// Returns what the text of the file at `path` says, in the order of its lines.
pub(crate) fn said_in_text(
    path: &Path,
    text: &str,
    layer: fn(Line) -> Layer,
) -> Result<Vec<LayerValue>, CommandError> {
    let line_at = |offset: usize| {
        let number = 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
        Line { path: path.to_owned(), number }
    };
    let table = DeTable::parse(text).map_err(|error| {
        // The parser names no place for a key of too many parts.
        let place = error.span().map_or_else(|| shown(path), |span| line_at(span.start).to_string());
        CommandError {
            source: Some(error.message().into()),
            ..CommandError::user(format!("{place} is not TOML"), "Correct the file, or move it away")
        }
    })?;
    let mut entries = Vec::new();
    flatten(table.get_ref(), "", &mut entries);
    // The parser sorts by key, and the first mistake in the file is the one to report.
    entries.sort_by_key(|entry| entry.offset);
    entries
        .into_iter()
        .map(|Entry { key, offset, value }| {
            let layer = layer(line_at(offset));
            let declaration = declared(&key).ok_or_else(|| unknown_key(&key, &layer))?;
            let is_projects = matches!(layer, Layer::Project(_));
            if is_projects && declaration.kind != Kind::Home && !FOR_PROJECTS.contains(&declaration.key) {
                return Err(not_for_projects(declaration.key, &layer));
            }
            let value = match &declaration.kind {
                Kind::Home => return Err(home_in_file(&layer)),
                Kind::Number(_) => number(declaration, integer(value), &written(value), &layer)?,
                Kind::Switch if is_projects && value.as_bool() == Some(false) => {
                    return Err(only_narrows(declaration.key, &layer));
                }
                Kind::Switch => switch(declaration, value.as_bool(), &written(value), &layer)?,
                Kind::Text => text_value(declaration, value.as_str(), &written(value), &layer)?,
                Kind::Zone => zone(declaration, value.as_str(), &written(value), &layer)?,
            };
            Ok(LayerValue { key: declaration.key, value, layer })
        })
        .collect()
}

/// Returns what the environment says.
pub(crate) fn said_in_environment(
    environment: &BTreeMap<String, OsString>,
) -> Result<Vec<LayerValue>, CommandError> {
    let given = DECLARATIONS.iter().filter_map(|declaration| {
        let text = environment.get(declaration.variable)?;
        let layer = Layer::Environment(declaration.variable);
        let value = from_text(declaration, text, &layer);
        Some(value.map(|value| LayerValue { key: declaration.key, value, layer }))
    });
    given.collect()
}

/// Returns a warning for each variable that looks like one of ours and is none.
///
/// No error, unlike an unknown key: the environment belongs to everybody, and one variable of another version must not stop
/// an agent's memory.
pub(crate) fn warn_of_unknown_variables(environment: &BTreeMap<String, OsString>) -> Vec<Warning> {
    let is_known = |name: &str| {
        DECLARATIONS.iter().any(|declaration| declaration.variable == name)
            || variables::NOT_SETTINGS.iter().any(|(other, _)| *other == name)
    };
    let ours = environment.keys().filter(|name| name.starts_with(variables::PREFIX));
    ours.filter(|name| !is_known(name)).map(|name| unknown_variable(name)).collect()
}

/// Returns what the flags say, in their order.
pub(crate) fn said_in_flags(flags: &[Flag]) -> Result<Vec<LayerValue>, CommandError> {
    let each = flags.iter().map(|Flag { name, key, value }| {
        let layer = Layer::Flag(name);
        let declaration = declared(key).ok_or_else(|| unknown_key(&excerpt(key), &layer))?;
        Ok(LayerValue { key: declaration.key, value: from_text(declaration, value, &layer)?, layer })
    });
    each.collect()
}

/// Returns the key of a setting that the user file can have.
pub(crate) fn known_key(key: &str) -> Result<&'static str, CommandError> {
    match declared(key) {
        Some(declaration) if declaration.kind == Kind::Home => Err(CommandError::user(
            "home cannot be set in a file, because the user file is inside the home",
            format!("Choose the home with --home or {}", variables::HOME),
        )),
        Some(declaration) => Ok(declaration.key),
        None => {
            let hint = match nearest_key(key) {
                Nearest::Meant(nearest) => format!("Write {nearest} instead"),
                Nearest::Far(_) => "See the settings: haversack config list".to_owned(),
            };
            Err(CommandError::user(format!("{} is not a setting", excerpt(key)), hint))
        }
    }
}

/// Checks a setting that a command is to write into the user file; `layer` names the command.
pub(crate) fn said_for_file(key: &str, value: &str, layer: &Layer) -> Result<LayerValue, CommandError> {
    let declaration = declared(known_key(key)?).expect("the key is known");
    let value = from_text(declaration, OsStr::new(value), layer)?;
    Ok(LayerValue { key: declaration.key, value, layer: layer.clone() })
}

/// A key of a file, its table's name before it.
struct Entry<'a> {
    key: String,
    offset: usize,
    value: &'a DeValue<'a>,
}

/// Collects every key that has a value, and every table that is empty and should not be there.
///
/// The parser bounds how deep tables go.
fn flatten<'a>(table: &'a DeTable<'a>, prefix: &str, entries: &mut Vec<Entry<'a>>) {
    for (name, value) in table {
        let key = format!("{prefix}{}", segment(name.get_ref()));
        match value.get_ref() {
            DeValue::Table(inner) if !inner.is_empty() => flatten(inner, &format!("{key}."), entries),
            DeValue::Table(_) if is_table(&key) => {}
            value => entries.push(Entry { key, offset: name.span().start, value }),
        }
    }
}

/// Returns one part of a key as it is written; quoted, a dot in it does not pass for one between parts.
fn segment(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(is_bare) { excerpt(name) } else { excerpt(&format!("{name:?}")) }
}

/// Returns a value as its file writes it, more or less.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
        DeValue::String(text) => excerpt(&format!("{text:?}")),
        DeValue::Integer(number) => excerpt(&number.to_string()),
        DeValue::Float(number) => excerpt(&number.to_string()),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(datetime) => datetime.to_string(),
    }
}

/// Checks a value given as text.
fn from_text(declaration: &Declaration, text: &OsStr, layer: &Layer) -> Result<Value, CommandError> {
    match &declaration.kind {
        Kind::Home if text.is_empty() => {
            let message = format!("the home directory given by {layer} is empty");
            Err(CommandError::user(message, "Name a directory, or leave it out for the default"))
        }
        Kind::Home => Ok(Value::Directory(text.into())),
        Kind::Number(_) => {
            let text = text.to_string_lossy();
            // Numbers are written as in a file, so that a line of one can be tried as a flag.
            let parsed = DeValue::parse(text.trim()).ok();
            let integer = parsed.as_ref().and_then(|value| integer(value.get_ref()));
            let is_integer = parsed.as_ref().is_some_and(|value| value.get_ref().is_integer());
            let written = if is_integer { text.trim().to_owned() } else { format!("{text:?}") };
            number(declaration, integer, &excerpt(&written), layer)
        }
        Kind::Switch => {
            let text = text.to_string_lossy();
            let is_on = match text.trim().to_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => Some(true),
                "" | "0" | "false" | "no" | "off" => Some(false),
                _ => None,
            };
            switch(declaration, is_on, &excerpt(&format!("{text:?}")), layer)
        }
        Kind::Text => text_value(declaration, text.to_str(), &excerpt(&format!("{text:?}")), layer),
        Kind::Zone => zone(declaration, text.to_str(), &excerpt(&format!("{text:?}")), layer),
    }
}

/// Checks a switch; `written` is how the layer writes it.
fn switch(
    declaration: &Declaration,
    is_on: Option<bool>,
    written: &str,
    layer: &Layer,
) -> Result<Value, CommandError> {
    is_on.map(Value::Switch).ok_or_else(|| {
        let message = format!("{layer} sets {} to {written}, but it is on or off", declaration.key);
        CommandError::user(message, "Write true or false, or leave it out for the default")
    })
}

/// Checks a text; `written` is how the layer writes it.
fn text_value(
    declaration: &Declaration,
    text: Option<&str>,
    written: &str,
    layer: &Layer,
) -> Result<Value, CommandError> {
    text.map(|text| Value::Text(text.trim().to_owned())).ok_or_else(|| {
        let message = format!("{layer} sets {} to {written}, but it is a text", declaration.key);
        CommandError::user(message, "Write it in quotes, or leave it out")
    })
}

/// Checks the name of a time zone; `written` is how the layer writes it.
fn zone(
    declaration: &Declaration,
    name: Option<&str>,
    written: &str,
    layer: &Layer,
) -> Result<Value, CommandError> {
    let name = name.map(str::trim).filter(|name| time::zone_of(name).is_some());
    name.map(|name| Value::Text(name.to_owned())).ok_or_else(|| {
        let message =
            format!("{layer} sets {} to {written}, but there is no such time zone", declaration.key);
        CommandError::user(message, "Write a name as Europe/Lisbon or UTC, or leave it out for the system's")
    })
}

fn integer(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Checks a number; `written` is how the layer writes it.
fn number(
    declaration: &Declaration,
    number: Option<u64>,
    written: &str,
    layer: &Layer,
) -> Result<Value, CommandError> {
    let Kind::Number(range) = &declaration.kind else { unreachable!("only numbers are checked as numbers") };
    match number.filter(|number| range.contains(number)) {
        Some(number) => Ok(Value::Number(number)),
        None => {
            let (key, from, to) = (declaration.key, range.start(), range.end());
            let message =
                format!("{layer} sets {key} to {written}, but it must be a whole number from {from} to {to}");
            Err(CommandError::user(message, "Write such a number, or leave it out for the default"))
        }
    }
}

fn unknown_key(key: &str, layer: &Layer) -> CommandError {
    let hint = match nearest_key(key) {
        Nearest::Meant(nearest) => format!("Write {nearest} instead"),
        Nearest::Far(nearest) => format!("Remove it; the nearest setting is {nearest}"),
    };
    CommandError::user(format!("{layer} sets {key}, which is not a setting"), hint)
}

fn unknown_variable(name: &str) -> Warning {
    let name = excerpt(name);
    let cure = match nearest_variable(&name) {
        Nearest::Meant(nearest) => format!("Set {nearest} instead, and unset {name}"),
        Nearest::Far(nearest) => format!("Unset it; the nearest variable is {nearest}"),
    };
    Warning { message: format!("the variable {name} is not one of Haversack's and does nothing"), cure }
}

fn home_in_file(layer: &Layer) -> CommandError {
    let message = format!("{layer} sets home, which no file can set: the user file is inside the home");
    let hint = format!("Remove it there, and choose the home with --home or {}", variables::HOME);
    CommandError::user(message, hint)
}

fn not_for_projects(key: &str, layer: &Layer) -> CommandError {
    let message = format!(
        "{layer} sets {key}, which a project cannot set: the project's author would decide where your memory is sent"
    );
    CommandError::user(message, "Remove it there; if you want it, set it in config.toml of the home")
}

fn only_narrows(key: &str, layer: &Layer) -> CommandError {
    CommandError::user(
        format!("{layer} sets {key} to false, but a project can only keep memory here, not send it"),
        "Remove it there; if you want it, set it in config.toml of the home",
    )
}

/// The length of a foreign text in a message.
const EXCERPT_CHARACTERS: usize = 60;

/// Returns the beginning of a text, harmless to a terminal.
fn excerpt(text: &str) -> String {
    let mut characters = text.chars();
    let mut excerpt = String::new();
    for c in characters.by_ref().take(EXCERPT_CHARACTERS) {
        if c.is_control() { excerpt.extend(c.escape_default()) } else { excerpt.push(c) }
    }
    if characters.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a user sees of an error.
    fn told<T: fmt::Debug>(result: Result<T, CommandError>) -> String {
        let CommandError { message, source, hint, .. } = result.expect_err("it is wrong");
        let cause = source.map(|source| format!(" | {source}")).unwrap_or_default();
        format!("{message}{cause} | {}", hint.expect("a hint"))
    }

    fn in_file(text: &str) -> Result<Vec<LayerValue>, CommandError> {
        said_in_text(Path::new("a.toml"), text, Layer::User)
    }

    fn in_environment(name: &str, value: &str) -> Result<Vec<LayerValue>, CommandError> {
        said_in_environment(&BTreeMap::from([(name.to_owned(), value.into())]))
    }

    fn in_flag(key: &str, value: &str) -> Result<Vec<LayerValue>, CommandError> {
        said_in_flags(&[Flag { name: "--config", key: key.to_owned(), value: value.into() }])
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest_known_one() {
        let not = "which is not a setting";
        for (text, expected) in [
            ("lock-wait = 5", format!("a.toml:1 sets lock-wait, {not} | Write lock-wait-seconds instead")),
            (
                "# ours\n\n[memroy-tool]\nview-characters = 5",
                format!(
                    "a.toml:4 sets memroy-tool.view-characters, {not} | Write memory-tool.view-characters instead"
                ),
            ),
            (
                "[memory]",
                format!("a.toml:1 sets memory, {not} | Remove it; the nearest setting is keep-memory-local"),
            ),
            (
                "memory-tool = 5",
                format!("a.toml:1 sets memory-tool, {not} | Write memory-tool.line-bytes instead"),
            ),
            (
                "[[memory-tool]]\nline-bytes = 70000",
                format!("a.toml:1 sets memory-tool, {not} | Write memory-tool.line-bytes instead"),
            ),
            (
                "lock-wait-seconds.x = 5",
                format!("a.toml:1 sets lock-wait-seconds.x, {not} | Write lock-wait-seconds instead"),
            ),
            (
                "\"memory-tool.line-bytes\" = 70000",
                format!(
                    "a.toml:1 sets \"memory-tool.line-bytes\", {not} | Write memory-tool.line-bytes instead"
                ),
            ),
            (
                "\"\\u001b[2Jhome\" = 1",
                format!("a.toml:1 sets \"\\u{{1b}}[2Jhome\", {not} | Remove it; the nearest setting is home"),
            ),
            ("z = 1\na = 1", format!("a.toml:1 sets z, {not} | Remove it; the nearest setting is time.zone")),
        ] {
            assert_eq!(told(in_file(text)), expected);
        }
        assert_eq!(
            told(in_flag("lock-wait", "5")),
            format!("--config sets lock-wait, {not} | Write lock-wait-seconds instead")
        );
    }

    #[test]
    fn variables_that_look_like_ours_are_warned_of() {
        let warned = |name: &str| {
            let environment = BTreeMap::from([(name.to_owned(), "1".into())]);
            assert_eq!(said_in_environment(&environment).expect("sound"), []);
            warn_of_unknown_variables(&environment).pop().map(|warning| (warning.message, warning.cure))
        };
        assert_eq!(
            warned("HAVERSACK_HOEM"),
            Some((
                "the variable HAVERSACK_HOEM is not one of Haversack's and does nothing".to_owned(),
                "Set HAVERSACK_HOME instead, and unset HAVERSACK_HOEM".to_owned()
            ))
        );
        let (_, cure) = warned("HAVERSACK_QUIET").expect("a warning");
        assert!(cure.starts_with("Unset it; the nearest variable is "), "{cure}");
        for other in ["PATH", "HAVERSACKS", variables::SOAK] {
            assert_eq!(warned(other), None);
        }
    }

    #[test]
    fn values_of_the_wrong_kind_or_size_are_refused_with_the_range() {
        let must = "but it must be a whole number from 0 to 3600 \
                    | Write such a number, or leave it out for the default";
        for (written, repeated) in [
            ("3601", "3601"),
            ("-1", "-1"),
            ("99999999999999999999", "99999999999999999999"),
            ("0xFFFF", "0xFFFF"),
            ("60.0", "60.0"),
            ("true", "true"),
            ("1979-05-27", "1979-05-27"),
            ("\"60\"", "\"60\""),
            ("'soon\u{80}'", "\"soon\\u{80}\""),
            ("[60]", "an array"),
            ("{}", "a table"),
        ] {
            let text = format!("\nlock-wait-seconds = {written}");
            let expected = format!("a.toml:2 sets lock-wait-seconds to {repeated}, {must}");
            assert_eq!(told(in_file(&text)), expected);
        }
        for (given, repeated) in [("3601", "3601"), ("-1", "-1"), ("", "\"\""), ("soon", "\"soon\"")] {
            let rest = format!("sets lock-wait-seconds to {repeated}, {must}");
            assert_eq!(told(in_flag("lock-wait-seconds", given)), format!("--config {rest}"));
            let variable = variables::LOCK_WAIT_SECONDS;
            assert_eq!(told(in_environment(variable, given)), format!("{variable} {rest}"));
        }
        let long = "9".repeat(100_000);
        assert!(told(in_flag("lock-wait-seconds", &long)).len() < 300, "a message stays readable");
    }

    #[test]
    fn numbers_are_read_as_in_a_file_wherever_they_are_given() {
        for written in ["3600", "3_600", "0xE10", "+3600"] {
            let from_file = in_file(&format!("lock-wait-seconds = {written}")).expect("a number");
            let from_flag = in_flag("lock-wait-seconds", written).expect("a number");
            let from_variable =
                in_environment(variables::LOCK_WAIT_SECONDS, &format!(" {written} ")).expect("a number");
            for said in [from_file, from_flag, from_variable] {
                assert_eq!(said[0].value, Value::Number(3600), "{written}");
            }
        }
    }

    #[test]
    fn tables_can_be_written_in_any_way_and_be_empty() {
        for text in [
            "[memory-tool]\nline-bytes = 70000",
            "memory-tool.line-bytes = 70000",
            "memory-tool = { line-bytes = 70000 }",
            "\u{feff}memory-tool.line-bytes = 70000\r\n",
        ] {
            let said = in_file(text).expect("sound");
            assert_eq!((said[0].key, &said[0].value), ("memory-tool.line-bytes", &Value::Number(70_000)));
        }
        for text in ["", "# nothing\n", "[memory-tool]\n"] {
            assert_eq!(in_file(text).expect("sound"), []);
        }
    }

    #[test]
    fn no_file_sets_the_home() {
        for text in ["home = '/x'", "home = 5", "home = {}"] {
            assert_eq!(
                told(in_file(text)),
                "a.toml:1 sets home, which no file can set: the user file is inside the home \
                 | Remove it there, and choose the home with --home or HAVERSACK_HOME"
            );
        }
    }

    #[test]
    fn what_is_not_toml_is_refused_with_the_line_and_the_reason() {
        for (text, expected) in [
            ("a = 1\nlock-wait-seconds = \n", "a.toml:2 is not TOML | string values must be quoted"),
            ("lock-wait-seconds = 1\nlock-wait-seconds = 2", "a.toml:2 is not TOML | duplicate key"),
            ("\n\n[memory-tool\n", "a.toml:3 is not TOML | "),
        ] {
            let told = told(in_file(text));
            assert!(told.starts_with(expected), "{told}");
            assert!(told.ends_with(" | Correct the file, or move it away"), "{told}");
        }
        let deep = format!("{}a = 1", "a.".repeat(100_000));
        assert_eq!(
            told(in_file(&deep)),
            "a.toml is not TOML | recursion limit | Correct the file, or move it away"
        );
    }
}
