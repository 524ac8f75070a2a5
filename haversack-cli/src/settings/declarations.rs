//! Everything that can be set, one row each.
//!
//! A new setting is a row here, its variable in `variables.rs`, its value in `defaults.toml` and a field of
//! [`Settings`].

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::Settings;
use crate::settings::variables;
use crate::ui::paths::shown;

/// One thing that can be set.
#[derive(Debug)]
pub(crate) struct Declaration {
    /// Its name in files and flags; a dot stands between a table and its key.
    pub(crate) key: &'static str,
    /// Its environment variable.
    pub(crate) variable: &'static str,
    /// Its sort of value.
    pub(crate) kind: Kind,
    /// Its purpose, in one line.
    pub(crate) help: &'static str,
    /// Reads the field that the setting ends up in.
    pub(crate) read: fn(&Settings) -> Value,
}

/// The sorts of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The home: a directory that no file can name, since the user file is inside it.
    Home,
    /// A whole number within bounds.
    Number(RangeInclusive<u64>),
    /// A text; empty where there is none.
    Text,
    /// The name of a time zone; empty for the system's.
    Zone,
    /// On or off.
    Switch,
}

/// A checked value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A directory's path, not empty.
    Directory(PathBuf),
    /// A number within its bounds.
    Number(u64),
    /// A text.
    Text(String),
    /// On or off.
    Switch(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Directory(path) => f.write_str(&shown(path)),
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => f.write_str(text),
            Value::Switch(is_on) => is_on.fmt(f),
        }
    }
}

/// The key of the home, which is known before any file is read.
pub(crate) const HOME: &str = "home";

/// The key of [`Settings::lock_wait`].
pub(crate) const LOCK_WAIT_SECONDS: &str = "lock-wait-seconds";

/// The key of [`super::MemoryTool::view_characters`].
pub(crate) const VIEW_CHARACTERS: &str = "memory-tool.view-characters";

/// The key of [`super::MemoryTool::line_bytes`].
pub(crate) const LINE_BYTES: &str = "memory-tool.line-bytes";

/// The key of [`Settings::keep_local`].
pub(crate) const KEEP_MEMORY_LOCAL: &str = "keep-memory-local";

/// The key of [`super::Blob::endpoint`].
pub(crate) const BLOB_ENDPOINT: &str = "blob-endpoint";

/// The key of [`super::Blob::container`].
pub(crate) const BLOB_CONTAINER: &str = "blob-container";

/// The key of [`Settings::cloud_wait`].
pub(crate) const CLOUD_WAIT_SECONDS: &str = "cloud-wait-seconds";

/// The key of [`Settings::excluded_projects`].
pub(crate) const PROJECTS_EXCLUDE: &str = "projects.exclude";

/// The key of [`Settings::budget`]'s files.
pub(crate) const RECEIVE_FILES: &str = "receive.files";

/// The key of [`Settings::budget`]'s bytes.
pub(crate) const RECEIVE_MEGABYTES: &str = "receive.megabytes";

/// The key of [`Settings::zone`].
pub(crate) const TIME_ZONE: &str = "time.zone";

/// The key of [`Settings::context_tokens`].
pub(crate) const CONTEXT_TOKENS: &str = "context.tokens";

/// The key of [`Settings::is_digest_written`].
pub(crate) const DIGEST_AUTO: &str = "digest.auto";

/// The key of [`Settings::hook_wait`].
pub(crate) const RECALL_HOOK_MILLISECONDS: &str = "recall.hook-milliseconds";
/// The key of [`Settings::is_tidied_by_itself`].
pub(crate) const TIDY_AUTO: &str = "tidy.auto";

/// The key of [`Settings::tidy_command`].
pub(crate) const TIDY_COMMAND: &str = "tidy.command";

/// The settings that a project's file may narrow. Other people write that file, so it can only make less happen: a number counts if
/// it is lower than the user's, and `keep-memory-local = true` keeps the memory of that project on this machine.
pub(crate) const FOR_PROJECTS: [&str; 4] =
    [LOCK_WAIT_SECONDS, VIEW_CHARACTERS, LINE_BYTES, KEEP_MEMORY_LOCAL];

/// Everything that can be set, in the order it is shown in.
pub(crate) static DECLARATIONS: &[Declaration] = &[
    Declaration {
        key: HOME,
        variable: variables::HOME,
        kind: Kind::Home,
        help: "The directory that Haversack keeps everything in",
        read: |settings| Value::Directory(settings.home.clone()),
    },
    Declaration {
        key: LOCK_WAIT_SECONDS,
        variable: variables::LOCK_WAIT_SECONDS,
        kind: Kind::Number(0..=3600),
        help: "How long a write waits for another process",
        read: |settings| Value::Number(settings.lock_wait.as_secs()),
    },
    Declaration {
        key: VIEW_CHARACTERS,
        variable: variables::MEMORY_TOOL_VIEW_CHARACTERS,
        kind: Kind::Number(1_000..=1_000_000),
        help: "How much of a text one view shows",
        read: |settings| Value::Number(settings.memory_tool.view_characters as u64),
    },
    Declaration {
        key: LINE_BYTES,
        variable: variables::MEMORY_TOOL_LINE_BYTES,
        kind: Kind::Number(65_536..=1_073_741_824),
        help: "The longest input line that `haversack memory-tool` takes",
        read: |settings| Value::Number(settings.memory_tool.line_bytes as u64),
    },
    Declaration {
        key: KEEP_MEMORY_LOCAL,
        variable: variables::KEEP_MEMORY_LOCAL,
        kind: Kind::Switch,
        help: "Keeps memory on this machine, even if there is a remote: sends nothing and contacts nothing",
        read: |settings| Value::Switch(settings.keep_local),
    },
    Declaration {
        key: BLOB_ENDPOINT,
        variable: variables::BLOB_ENDPOINT,
        kind: Kind::Text,
        help: "The address of an Azure account, `https://ACCOUNT.blob.core.windows.net`: with a container, the remote of a memory that has no other",
        read: |settings| Value::Text(settings.blob.endpoint.clone()),
    },
    Declaration {
        key: BLOB_CONTAINER,
        variable: variables::BLOB_CONTAINER,
        kind: Kind::Text,
        help: "The container in that account",
        read: |settings| Value::Text(settings.blob.container.clone()),
    },
    Declaration {
        key: CLOUD_WAIT_SECONDS,
        variable: variables::CLOUD_WAIT_SECONDS,
        kind: Kind::Number(1..=3600),
        help: "How long a cloud may be silent before it counts as not answering",
        read: |settings| Value::Number(settings.cloud_wait.as_secs()),
    },
    Declaration {
        key: PROJECTS_EXCLUDE,
        variable: variables::PROJECTS_EXCLUDE,
        kind: Kind::Text,
        help: "Projects that keep their memory on this machine, separated by commas: directories (and all below), repositories as `github.com/acme` (and all below), or names",
        read: |settings| Value::Text(settings.excluded_projects.clone()),
    },
    Declaration {
        key: RECEIVE_FILES,
        variable: variables::RECEIVE_FILES,
        kind: Kind::Number(1..=4_000_000_000),
        help: "The most new or changed files of other machines that one sync accepts; more are probably an attack or a mistake",
        read: |settings| Value::Number(settings.budget.files),
    },
    Declaration {
        key: RECEIVE_MEGABYTES,
        variable: variables::RECEIVE_MEGABYTES,
        kind: Kind::Number(1..=4_000_000),
        help: "How many megabytes of them",
        read: |settings| Value::Number(settings.budget.bytes / 1_000_000),
    },
    Declaration {
        key: TIME_ZONE,
        variable: variables::TIME_ZONE,
        kind: Kind::Zone,
        help: "The time zone in which a day begins and ends, as `Europe/Lisbon`; by default the system's. Stored moments are UTC",
        read: |settings| Value::Text(settings.time_zone.clone()),
    },
    Declaration {
        key: CONTEXT_TOKENS,
        variable: variables::CONTEXT_TOKENS,
        kind: Kind::Number(100..=1_000_000),
        help: "How many tokens of memory a session starts with at most, besides those that the agent reads by itself",
        read: |settings| Value::Number(settings.context_tokens as u64),
    },
    Declaration {
        key: DIGEST_AUTO,
        variable: variables::DIGEST_AUTO,
        kind: Kind::Switch,
        help: "Writes a digest of each session when it ends, into the memory of its project. It quotes the session's first prompts, and it is sent to your other machines",
        read: |settings| Value::Switch(settings.is_digest_written),
    },
    Declaration {
        key: RECALL_HOOK_MILLISECONDS,
        variable: variables::RECALL_HOOK_MILLISECONDS,
        kind: Kind::Number(1..=60_000),
        help: "How long a hook may look for passages that an agent is given (`setup claude-code --recall`); a later answer is dropped",
        read: |settings| Value::Number(u64::try_from(settings.hook_wait.as_millis()).unwrap_or(u64::MAX)),
    },
    Declaration {
        key: TIDY_AUTO,
        variable: variables::TIDY_AUTO,
        kind: Kind::Switch,
        help: "Rolls old memory up once a day, in the background, after the first `haversack tidy --dry-run`",
        read: |settings| Value::Switch(settings.is_tidied_by_itself),
    },
    Declaration {
        key: TIDY_COMMAND,
        variable: variables::TIDY_COMMAND,
        kind: Kind::Text,
        help: "A command that proposes memories in place of the built-in extractor: it reads events as lines of JSON and prints proposals as lines of JSON",
        read: |settings| Value::Text(settings.tidy_command.clone()),
    },
];

/// Returns the declaration of `key`.
pub(crate) fn declared(key: &str) -> Option<&'static Declaration> {
    DECLARATIONS.iter().find(|declaration| declaration.key == key)
}

/// Returns true if a key is inside the table `name`.
pub(crate) fn is_table(name: &str) -> bool {
    DECLARATIONS
        .iter()
        .any(|declaration| declaration.key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// The known name that is nearest to an unknown one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nearest {
    /// Near enough to be what was meant.
    Meant(&'static str),
    /// Only the least far.
    Far(&'static str),
}

/// Returns the key that is nearest to `key`.
pub(crate) fn nearest_key(key: &str) -> Nearest {
    nearest(key, DECLARATIONS.iter().map(|declaration| declaration.key))
}

/// Returns the variable of a setting that is nearest to `variable`.
pub(crate) fn nearest_variable(variable: &str) -> Nearest {
    nearest(variable, DECLARATIONS.iter().map(|declaration| declaration.variable))
}

/// How alike two names are, from 0 to 1, if one is to be meant by the other: half the letters.
const ALIKE: f64 = 0.5;

fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Nearest {
    // The prefix that all variables have in common would make any two of them alike.
    let telling = |name: &str| name.strip_prefix(variables::PREFIX).unwrap_or(name).to_lowercase();
    let alike = |other: &str| {
        // The name of a table stands for its keys.
        let is_in_it = other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        f64::from(u8::from(is_in_it)) + strsim::normalized_levenshtein(&telling(name), &telling(other))
    };
    let (likeness, nearest) = known
        .map(|known| (alike(known), known))
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .expect("there are settings");
    if likeness >= ALIKE { Nearest::Meant(nearest) } else { Nearest::Far(nearest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_named_after_its_key() {
        for Declaration { key, variable, .. } in DECLARATIONS {
            let name = key.to_uppercase().replace(['.', '-'], "_");
            assert_eq!(*variable, format!("{}{name}", variables::PREFIX));
            assert!(!variables::NOT_SETTINGS.iter().any(|(other, _)| other == variable), "{variable}");
        }
    }

    #[test]
    fn every_number_fits_the_smallest_machine() {
        for Declaration { key, kind, .. } in DECLARATIONS {
            if let Kind::Number(range) = kind {
                assert!(range.start() <= range.end() && *range.end() <= u64::from(u32::MAX), "{key}");
            }
        }
    }

    #[test]
    fn no_key_is_a_table_too() {
        for Declaration { key, .. } in DECLARATIONS {
            assert!(!is_table(key), "{key}");
        }
    }

    #[test]
    fn the_nearest_name() {
        use Nearest::{Far, Meant};
        for (name, expected) in [
            ("hoem", Meant(HOME)),
            ("lock_wait_seconds", Meant(LOCK_WAIT_SECONDS)),
            ("lock-wait", Meant(LOCK_WAIT_SECONDS)),
            ("view-characters", Meant(VIEW_CHARACTERS)),
            ("memroy-tool.line-bytes", Meant(LINE_BYTES)),
            ("memory_tool.LINE_BYTES", Meant(LINE_BYTES)),
            ("z", Far(TIME_ZONE)),
        ] {
            assert_eq!(nearest_key(name), expected, "{name}");
        }
        assert_eq!(nearest_variable("HAVERSACK_HOEM"), Meant(variables::HOME));
        assert_eq!(nearest_variable("HAVERSACK_LOCK_WAIT"), Meant(variables::LOCK_WAIT_SECONDS));
        assert!(matches!(nearest_variable("HAVERSACK_QUIET"), Far(_)), "the prefix makes nothing alike");
    }
}
