//! Finds and reads the files that settings are in. Only [`write_setting`] and [`remove_setting`] write one.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::declarations::{KEEP_MEMORY_LOCAL, Value};
use super::layers::{Layer, said_in_text};
use crate::error::CommandError;
use crate::records;
use crate::ui::paths::shown;

/// The name of the user file in the home.
const USER_FILE: &str = "config.toml";

/// The name of a project's file.
pub(crate) const PROJECT_FILE: &str = ".haversack.toml";

/// The longest file that is taken for one of settings.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A file that settings can be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    /// Its content, if it exists.
    pub(crate) text: Option<String>,
}

/// Returns where the user file of `home` is.
pub(crate) fn user_file(home: &Path) -> PathBuf {
    home.join(USER_FILE)
}

/// Writes a setting into the user file of `home`; everything else in the file stays as the user wrote it.
pub(crate) fn write_setting(home: &Path, key: &str, value: &Value) -> Result<(), CommandError> {
    let SettingsFile { path, text } = read_user(home)?;
    let mut document = parsed(&path, text.as_deref().unwrap_or_default())?;
    let value: toml_edit::Value = match value {
        Value::Number(number) => i64::try_from(*number).expect("every range ends below 4 GiB").into(),
        Value::Text(text) => text.as_str().into(),
        Value::Switch(is_on) => (*is_on).into(),
        Value::Directory(path) => path.to_string_lossy().into_owned().into(),
    };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let (tables, name) = key.rsplit_once('.').map_or((None, key), |(tables, name)| (Some(tables), name));
    for part in tables.into_iter().flat_map(|tables| tables.split('.')) {
        let inner = table.entry(part).or_insert_with(|| Item::Table(Table::new()));
        table = inner.as_table_like_mut().ok_or_else(|| {
            CommandError::user(
                format!("{part} in {} is no table, so {key} cannot be set there", shown(&path)),
                "Mend it, and run the same command again",
            )
        })?;
    }
    match table.get_mut(name) {
        Some(Item::Value(old)) if old.to_string().trim() == value.to_string() => return Ok(()),
        // The remark behind the old value stays.
        Some(Item::Value(old)) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        _ => drop(table.insert(name, Item::Value(value))),
    }
    write(path, &document.to_string())
}

/// Takes a setting out of the user file of `home`; returns false if it is not there. Remarks above it and everything else stay.
pub(crate) fn remove_setting(home: &Path, key: &str) -> Result<bool, CommandError> {
    let SettingsFile { path, text } = read_user(home)?;
    let text = text.unwrap_or_default();
    let mut without = parsed(&path, &text)?;
    let (tables, name) = key.rsplit_once('.').map_or((None, key), |(tables, name)| (Some(tables), name));
    let mut table: &mut dyn TableLike = without.as_table_mut();
    for part in tables.into_iter().flat_map(|tables| tables.split('.')) {
        match table.get_mut(part).and_then(Item::as_table_like_mut) {
            Some(inner) => table = inner,
            None => return Ok(false),
        }
    }
    if table.remove(name).is_none() {
        return Ok(false);
    }
    let without = without.to_string();
    // The editor of TOML drops the remarks above a key with the key. Without the key's own lines, the text must mean the same.
    let kept = lines_of(&text, key).map(|lines| format!("{}{}", &text[..lines.start], &text[lines.end..]));
    let means_the_same = |kept: &String| {
        let said = |text: &str| said_in_text(&path, text, |_| Layer::Default);
        matches!((said(kept), said(&without)), (Ok(kept), Ok(without)) if kept == without)
    };
    write(path.clone(), &kept.filter(means_the_same).unwrap_or(without))?;
    Ok(true)
}

/// Returns the bytes of the lines in which a file has a setting.
fn lines_of(text: &str, key: &str) -> Option<Range<usize>> {
    let document = toml_edit::Document::parse(text).ok()?;
    let (tables, name) = key.rsplit_once('.').map_or((None, key), |(tables, name)| (Some(tables), name));
    let mut table: &dyn TableLike = document.as_table();
    for part in tables.into_iter().flat_map(|tables| tables.split('.')) {
        table = table.get(part)?.as_table_like()?;
    }
    let start = table.key(name)?.span()?.start;
    let end = table.get(name)?.span()?.end;
    let start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[end..].find('\n').map_or(text.len(), |newline| end + newline + 1);
    Some(start..end)
}

fn parsed(path: &Path, text: &str) -> Result<DocumentMut, CommandError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        CommandError::user(
            format!("{} is not TOML: {}", shown(path), error.message()),
            "Mend it, and run the same command again",
        )
    })
}

fn write(path: PathBuf, text: &str) -> Result<(), CommandError> {
    // A file that is a link, as people keep their settings elsewhere, stays one.
    let path = path.canonicalize().unwrap_or(path);
    if let Some(home) = path.parent() {
        records::private::create_directories(home)?;
    }
    records::write_text(&path, text, records::Weight::Durable)
}

/// Reads the user file of `home`.
pub(crate) fn read_user(home: &Path) -> Result<SettingsFile, CommandError> {
    read(home.join(USER_FILE))
}

/// Reads the project file in `directory` or in the nearest directory above it that has one.
///
/// If there is none, returns the absent file in `directory` itself.
pub(crate) fn read_project(directory: &Path) -> Result<SettingsFile, CommandError> {
    for directory in directory.ancestors() {
        let file = read(directory.join(PROJECT_FILE))?;
        if file.text.is_some() {
            return Ok(file);
        }
    }
    Ok(SettingsFile { path: directory.join(PROJECT_FILE), text: None })
}

/// Returns true if the file of a project keeps the project's memory on this machine. A broken file says nothing.
pub(crate) fn keeps_memory_local(directory: &Path) -> bool {
    let file = read(directory.join(PROJECT_FILE)).ok().and_then(|file| Some((file.path, file.text?)));
    let said = file.and_then(|(path, text)| said_in_text(&path, &text, Layer::Project).ok());
    said.is_some_and(|said| said.iter().any(|said| said.key == KEEP_MEMORY_LOCAL))
}

fn read(path: PathBuf) -> Result<SettingsFile, CommandError> {
    let unreadable = |error: std::io::Error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("{} could not be read", shown(&path)),
            "Give this user access to it, or move it away",
        )
    };
    let odd = |what: &str, hint: &str| CommandError::user(format!("{} {what}", shown(&path)), hint);
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => {}
        // A pipe or a device could keep its reader forever.
        Ok(_) => return Err(odd("is not a file", "Move it away")),
        // A home that is a file has no files in it; what reads or writes the home says what is wrong.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            // The user meant to have settings there: do not guess them.
            if path.is_symlink() {
                return Err(odd(
                    "is a link to a file that is not there",
                    "Make that file, or remove the link",
                ));
            }
            return Ok(SettingsFile { path, text: None });
        }
        Err(error) => return Err(unreadable(error)),
    }
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let what = format!("is longer than {MAX_FILE_BYTES} bytes, which no file of settings is");
        return Err(odd(&what, "Move it away"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SettingsFile { path, text: Some(text) }),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
            Err(CommandError {
                source: Some(error.utf8_error().into()),
                ..CommandError::user(
                    format!("{}:{line} is not UTF-8", shown(&path)),
                    "Save the file as UTF-8, or move it away",
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_switch_leaves_the_rest_of_the_file() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let file = home.path().join(USER_FILE);
        let cases = [
            (None, "keep-memory-local = true\n"),
            (
                Some("# mine\nlock-wait-seconds = 5 # long\n"),
                "# mine\nlock-wait-seconds = 5 # long\nkeep-memory-local = true\n",
            ),
            (
                Some("keep-memory-local = false # for now\n\n[memory-tool]\nline-bytes = 65536\n"),
                "keep-memory-local = true # for now\n\n[memory-tool]\nline-bytes = 65536\n",
            ),
            (
                Some("[memory-tool]\nline-bytes = 65536\n"),
                "keep-memory-local = true\n[memory-tool]\nline-bytes = 65536\n",
            ),
        ];
        for (before, after) in cases {
            match before {
                Some(text) => std::fs::write(&file, text).expect("written"),
                None => drop(std::fs::remove_file(&file)),
            }
            for _ in 0..2 {
                write_setting(home.path(), KEEP_MEMORY_LOCAL, &Value::Switch(true)).expect("written");
                assert_eq!(std::fs::read_to_string(&file).expect("there"), after);
            }
        }
        std::fs::write(&file, "keep-memory-local = ").expect("written");
        assert!(write_setting(home.path(), KEEP_MEMORY_LOCAL, &Value::Switch(true)).is_err());
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "keep-memory-local = ");
    }

    #[test]
    fn setting_in_a_table_is_written_and_removed_with_all_remarks_kept() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let file = home.path().join(USER_FILE);
        let there = || std::fs::read_to_string(&file).expect("there");
        let key = "memory-tool.line-bytes";
        write_setting(home.path(), key, &Value::Number(70_000)).expect("written");
        assert_eq!(there(), "[memory-tool]\nline-bytes = 70000\n");
        for (before, after) in [
            (
                "# mine\n\n[memory-tool] # theirs\n# large lines\nline-bytes = 65536 # bytes\n\n# shown\nview-characters = 9000\n",
                "# mine\n\n[memory-tool] # theirs\n# large lines\n\n# shown\nview-characters = 9000\n",
            ),
            ("# large lines\nmemory-tool.line-bytes = 65536\n", "# large lines\n"),
            (
                "memory-tool = { line-bytes = 65536, view-characters = 9000 }\n",
                "memory-tool = { view-characters = 9000 }\n",
            ),
        ] {
            std::fs::write(&file, before).expect("written");
            write_setting(home.path(), key, &Value::Number(70_000)).expect("written");
            assert_eq!(there(), before.replace("65536", "70000"));
            assert!(remove_setting(home.path(), key).expect("removed"));
            assert_eq!(there(), after);
            assert!(!remove_setting(home.path(), key).expect("nothing to remove"));
        }
        let several = "projects.exclude = \"\"\"a,\nb\"\"\" # two\n# end\n";
        std::fs::write(&file, several).expect("written");
        assert!(remove_setting(home.path(), "projects.exclude").expect("removed"));
        assert_eq!(there(), "# end\n");
    }
}
