//! Claude Code as it is on this machine: where it keeps settings, projects and their memory.

pub(crate) mod private;
pub(crate) mod servers;
pub(crate) mod slug;
pub(crate) mod transcript;
pub(crate) mod wiring;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::CommandError;
use crate::settings::Settings;
use crate::settings::environment::Surroundings;

/// The directories of Claude Code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaudeCode {
    /// Its directory, by default `~/.claude`.
    pub(crate) directory: PathBuf,
    /// The file in which it notes the projects that it was in.
    pub(crate) notes: PathBuf,
    /// Its name for the project's directory, if it is not derived from the path.
    project_name: Option<String>,
    /// The user's own directory.
    user: Option<PathBuf>,
}

/// A directory for memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryDirectory {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The source of the choice.
    pub(crate) by: ChosenBy,
}

/// The source that chose a project's memory directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChosenBy {
    /// Claude Code's own rule.
    Rule,
    /// A setting of this project.
    Project,
    /// A setting for all projects: they share one memory.
    User,
}

impl ClaudeCode {
    /// Returns where it is; an error if this user has no home directory and nothing else names the place.
    pub(crate) fn expected(settings: &Settings) -> Result<ClaudeCode, CommandError> {
        ClaudeCode::of(settings, None).ok_or_else(|| {
            CommandError::user(
                "this user has no home directory",
                "Set HOME, or CLAUDE_CONFIG_DIR where Claude Code is",
            )
        })
    }

    /// Returns where it is, as the environment says; a transcript of its own is in it too.
    pub(crate) fn of(settings: &Settings, transcript: Option<&Path>) -> Option<ClaudeCode> {
        let Surroundings { user, claude_directory, claude_project, .. } = &settings.surroundings;
        let by_default = user.as_ref().map(|user| user.join(".claude"));
        // `<directory>/projects/<project>/<session>.jsonl`: the client itself says where it is.
        let projects = transcript.and_then(|file| file.ancestors().nth(2));
        let projects = projects.filter(|path| path.is_absolute() && path.ends_with("projects"));
        let by_transcript = projects.and_then(Path::parent).map(Path::to_owned);
        let directory = claude_directory.clone().or(by_transcript).or(by_default)?;
        let notes = match (claude_directory, user) {
            (None, Some(user)) => user.join(".claude.json"),
            _ => directory.join(".claude.json"),
        };
        Some(ClaudeCode { directory, notes, project_name: claude_project.clone(), user: user.clone() })
    }

    /// Returns true if it was ever here.
    pub(crate) fn is_here(&self) -> bool {
        self.directory.is_dir() || self.notes.is_file()
    }

    /// Returns the file with the user's settings for it.
    pub(crate) fn settings_file(&self) -> PathBuf {
        self.directory.join("settings.json")
    }

    /// Returns the directories of all projects it was in.
    pub(crate) fn projects(&self) -> PathBuf {
        self.directory.join("projects")
    }

    /// Returns where the memory of a session is that starts in a directory: by the main checkout, so that all worktrees share it, unless
    /// settings say otherwise.
    ///
    /// As the client does (seen with 2.1.325): the local settings of the main checkout count first, and for every worktree; those of
    /// the directory itself count too, those between the two do not.
    pub(crate) fn memory_of(&self, root: &Path, start: &Path) -> MemoryDirectory {
        let of_project = [
            root.join(private::LOCAL_SETTINGS),
            start.join(private::LOCAL_SETTINGS),
            start.join(".claude/settings.json"),
        ];
        let chosen = |file: &Path| {
            let named = wiring::text_in(&fs::read_to_string(file).ok()?, private::SETTING)?;
            match named.strip_prefix("~/") {
                Some(rest) => Some(self.user.as_ref()?.join(rest)),
                None => Some(PathBuf::from(named)).filter(|path| path.is_absolute()),
            }
        };
        if let Some(path) = of_project.iter().find_map(|file| chosen(file)) {
            return MemoryDirectory { path, by: ChosenBy::Project };
        }
        if let Some(path) = chosen(&self.settings_file()) {
            return MemoryDirectory { path, by: ChosenBy::User };
        }
        let name = self.project_name.clone().unwrap_or_else(|| slug::slug(&root.to_string_lossy()));
        MemoryDirectory { path: self.projects().join(name).join("memory"), by: ChosenBy::Rule }
    }

    /// Returns the directory in which subagents keep what they learn in any project.
    pub(crate) fn agents(&self) -> PathBuf {
        self.directory.join("agent-memory")
    }
}
