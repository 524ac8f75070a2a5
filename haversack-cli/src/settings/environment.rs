//! Environment variables about the agent that started this process, and about the user.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::settings::variables;

/// Variables about agents and their directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The user's own directory.
    pub(crate) user: Option<PathBuf>,
    /// Windows' directory for programs' local data.
    pub(crate) local_data: Option<PathBuf>,
    /// Claude Code's directory, if it is not the default.
    pub(crate) claude_directory: Option<PathBuf>,
    /// Claude Code's name for the project's directory, if it is not derived from the path.
    pub(crate) claude_project: Option<String>,
    /// The directory that the session of Claude Code started in, whose hook this is.
    pub(crate) claude_start: Option<PathBuf>,
    /// Codex's directory, if it is not the default.
    pub(crate) codex_directory: Option<PathBuf>,
    /// True if the agent runs without a user.
    pub(crate) is_headless: bool,
    /// True if hooks must not use the remote.
    pub(crate) is_quiet: bool,
}

impl Surroundings {
    /// Reads what the environment says.
    pub(crate) fn of(environment: &BTreeMap<String, OsString>) -> Surroundings {
        let said = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        let path = |name: &str| said(name).map(PathBuf::from);
        let text = |name: &str| said(name).map(|value| value.to_string_lossy().into_owned());
        let is = |name: &str, expected: &[&str]| {
            text(name).is_some_and(|value| expected.contains(&value.to_lowercase().as_str()))
        };
        let claude_directory = path(variables::CLAUDE_CONFIG_DIR);
        Surroundings {
            user: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            local_data: path(variables::LOCALAPPDATA),
            // It counts only together with the directory.
            claude_project: text(variables::CLAUDE_CODE_PROJECT_DIR_NAME)
                .filter(|_| claude_directory.is_some()),
            claude_directory,
            claude_start: path(variables::CLAUDE_PROJECT_DIR).filter(|start| start.is_absolute()),
            codex_directory: path(variables::CODEX_HOME),
            is_headless: is(variables::CLAUDE_CODE_ENTRYPOINT, &["sdk-cli", "sdk-ts", "sdk-py"]),
            is_quiet: is(variables::SYNC, &["off", "false", "no", "0"]),
        }
    }
}

/// Returns the number of characters in a line of the terminal, if the user set it.
pub(crate) fn columns() -> Option<usize> {
    std::env::var(variables::COLUMNS).ok()?.parse().ok()
}

/// Returns the command of the user's pager, if the user named one.
pub(crate) fn pager() -> Option<String> {
    std::env::var(variables::PAGER).ok()
}

/// Returns true if the environment asks for no colours.
pub(crate) fn is_colorless() -> bool {
    let is_dumb = std::env::var(variables::TERM).is_ok_and(|terminal| terminal == "dumb");
    is_dumb || std::env::var_os(variables::NO_COLOR).is_some_and(|value| !value.is_empty())
}

/// Returns true if the environment names the time zone of the system.
pub(crate) fn names_time_zone() -> bool {
    std::env::var_os(variables::TZ).is_some()
}

/// Returns the name of the shell that asks for completions, if one does.
pub(crate) fn completing_shell() -> Option<String> {
    std::env::var(variables::COMPLETE).ok()
}

/// Returns the command that starts the user's editor, if the user named one.
pub(crate) fn editor() -> Option<String> {
    let named = [variables::VISUAL, variables::EDITOR].map(|name| std::env::var(name).ok());
    named.into_iter().flatten().find(|editor| !editor.trim().is_empty())
}

/// Returns the variables that a process needs on any account: Windows does not work without some. A process that we start without the user's
/// variables gets these.
pub(crate) fn of_the_system() -> Vec<(&'static str, OsString)> {
    let needed: &[&str] = if cfg!(windows) { &["SystemRoot", "SystemDrive", "TEMP", "TMP"] } else { &[] };
    needed.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_directory_counts_only_with_the_directory() {
        let said = |pairs: &[(&str, &str)]| {
            let environment = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.into()));
            Surroundings::of(&environment.collect())
        };
        assert_eq!(said(&[("CLAUDE_CODE_PROJECT_DIR_NAME", "x")]).claude_project, None);
        let both = said(&[("CLAUDE_CODE_PROJECT_DIR_NAME", "x"), ("CLAUDE_CONFIG_DIR", "/c")]);
        assert_eq!(both.claude_project.as_deref(), Some("x"));
        assert!(said(&[("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")]).is_headless);
        assert!(!said(&[("CLAUDE_CODE_ENTRYPOINT", "cli")]).is_headless);
        for (value, expected) in [("off", true), ("OFF", true), ("0", true), ("on", false), ("", false)] {
            assert_eq!(said(&[("HAVERSACK_SYNC", value)]).is_quiet, expected, "{value}");
        }
    }
}
