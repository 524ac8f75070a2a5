//! Projects: memory belongs to a project, not to the path that it is at.
//!
//! A project is known by a name that somebody gave it, or else by the address of its repository, which is the same on every machine. One that has
//! neither stays on this machine until it is named. Two projects never meet: each has a place of its own, `claude_memory/<id>`.

pub(crate) mod bind;
pub(crate) mod book;
pub(crate) mod git;
pub(crate) mod identity;
pub(crate) mod private;

use std::path::{Path, PathBuf};

use haversack::store::Locator;

use self::book::Book;
use crate::claude_code::private::is_private;
use crate::claude_code::{ChosenBy, ClaudeCode, MemoryDirectory};
use crate::error::CommandError;
use crate::settings::{Settings, shown};

/// The place of all projects in a store.
const PLACE: &str = "claude_memory";

/// The id of the memory that all projects share where somebody set up Claude Code so.
const ALL_PROJECTS: &str = "all-projects";

/// A project on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// Its id, the same on every machine; `None` if nothing tells.
    pub(crate) id: Option<String>,
    /// The normalised address of its repository.
    pub(crate) address: Option<String>,
    /// The directory of the main checkout, or the project's directory if it is no repository.
    pub(crate) root: PathBuf,
    /// The checkout itself, which may be a worktree.
    pub(crate) checkout: PathBuf,
    /// Where its memory is on this machine.
    pub(crate) memory: MemoryDirectory,
    /// Who says what its id is.
    pub(crate) known_by: KnownBy,
    /// Whether its memory stays here.
    pub(crate) is_excluded: bool,
    /// Whether this checkout has memory of its own, which stays here.
    pub(crate) is_private: bool,
}

/// What a project is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownBy {
    /// A name that somebody gave it.
    Name,
    /// Its repository.
    Repository,
    /// Nothing: it stays on this machine.
    Nothing,
}

impl Project {
    /// Returns the project that a directory belongs to, as a session that starts in it would have it.
    pub(crate) fn of(settings: &Settings, claude: &ClaudeCode, book: &Book, directory: &Path) -> Project {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let repository = git::find(&directory);
        let address = repository.as_ref().and_then(git::Repository::remote);
        let address = address.as_deref().and_then(identity::normalise);
        let (root, checkout) = match repository {
            Some(repository) => (repository.root, repository.checkout),
            None => (directory.clone(), directory.clone()),
        };
        let memory = claude.memory_of(&root, &directory);
        let is_private = memory.by == ChosenBy::Project && is_private(&memory.path);
        let named = match memory.by {
            ChosenBy::User => Some(ALL_PROJECTS.to_owned()),
            ChosenBy::Rule | ChosenBy::Project => book.name_of(&root, address.as_deref()),
        };
        let (id, known_by) = match (named.as_deref().and_then(identity::id_of_name), &address) {
            (Some(id), _) => (Some(id), KnownBy::Name),
            (None, Some(address)) => (Some(identity::id_of_repository(address)), KnownBy::Repository),
            (None, None) => (None, KnownBy::Nothing),
        };
        let user = settings.surroundings.user.as_deref();
        let excluded = settings.excluded_projects.split(',').chain(book.exclude.iter().map(String::as_str));
        let is_excluded = excluded
            .map(str::trim)
            .any(|excluded| is_meant(excluded, user, &root, address.as_deref(), id.as_deref()));
        Project { id, address, root, checkout, memory, known_by, is_excluded, is_private }
    }

    /// Returns its place in the store, if it has one and may be carried.
    pub(crate) fn prefix(&self) -> Option<Locator> {
        let id = self.id.as_ref().filter(|_| !self.is_excluded && !self.is_private)?;
        prefix_of(id)
    }

    /// Returns what people call it.
    pub(crate) fn label(&self, settings: &Settings) -> String {
        let label = match (&self.id, &self.address, self.known_by) {
            (Some(id), _, KnownBy::Name) => id.clone(),
            (_, Some(address), _) => address.rsplit('/').next().unwrap_or(address).to_owned(),
            _ => tilde(settings, &self.root),
        };
        match self.checkout.file_name().filter(|_| self.is_private) {
            Some(worktree) => format!("{label} ({})", worktree.to_string_lossy()),
            None => label,
        }
    }

    /// Returns by what it is excluded: what it is known by on every machine, or where it is.
    pub(crate) fn known_as(&self, settings: &Settings) -> String {
        let id = self.id.as_ref().filter(|_| self.known_by == KnownBy::Name);
        id.or(self.address.as_ref()).cloned().unwrap_or_else(|| tilde(settings, &self.root))
    }

    /// Returns why it is not carried, with what to do about it; `None` if it is.
    pub(crate) fn why_not(&self, settings: &Settings) -> Option<String> {
        let root = tilde(settings, &self.root);
        if self.is_private {
            let checkout = tilde(settings, &self.checkout);
            return Some(format!(
                "private: stays on this machine (to share again: haversack project private --undo {checkout})"
            ));
        }
        if self.is_excluded {
            return Some("not carried (excluded)".to_owned());
        }
        self.id.is_none().then(|| {
            format!(
                "no git remote: stays on this machine until you name it (haversack project name {root} NAME)"
            )
        })
    }
}

/// Returns the place of a project in the store.
pub(crate) fn prefix_of(id: &str) -> Option<Locator> {
    Locator::parse(&format!("{PLACE}/{id}")).ok()
}

/// Returns the id of the project whose place this is.
pub(crate) fn id_of_prefix(prefix: &Locator) -> Option<&str> {
    prefix.as_str().strip_prefix(PLACE)?.strip_prefix('/').filter(|id| !id.contains('/'))
}

/// Returns a path as people write it, their own directory as `~`.
pub(crate) fn tilde(settings: &Settings, path: &Path) -> String {
    let user = settings.surroundings.user.as_ref().and_then(|user| user.canonicalize().ok());
    match user.as_ref().and_then(|user| path.strip_prefix(user).ok()) {
        Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
        _ => shown(path),
    }
}

/// Tells whether somebody who says `pattern` means a project: its directory or one above, its repository or all of a group, or its name.
fn is_meant(
    pattern: &str,
    user: Option<&Path>,
    root: &Path,
    address: Option<&str>,
    id: Option<&str>,
) -> bool {
    if pattern.is_empty() {
        return false;
    }
    let directory = match (pattern.strip_prefix("~/"), user) {
        (Some(rest), Some(user)) => user.join(rest),
        _ if pattern == "~" => user.map(Path::to_owned).unwrap_or_default(),
        _ => PathBuf::from(pattern),
    };
    let directory = directory.canonicalize().unwrap_or(directory);
    if directory.is_absolute() && root.starts_with(&directory) {
        return true;
    }
    let pattern = identity::normalise(pattern).unwrap_or_else(|| pattern.trim_end_matches('/').to_owned());
    let is_group = |address: &str| {
        address.strip_prefix(&pattern).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    id == Some(&pattern) || address.is_some_and(is_group)
}

/// Returns the settings of Claude Code, which whoever asks for projects needs.
pub(crate) fn claude_code(settings: &Settings) -> Result<ClaudeCode, CommandError> {
    ClaudeCode::of(settings, None).ok_or_else(|| {
        CommandError::user(
            "this user has no home directory",
            "Set HOME, or CLAUDE_CONFIG_DIR where Claude Code is",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_meant() {
        let user = Some(Path::new("/home/me"));
        let root = Path::new("/home/me/clients/acme/gateway");
        let address = Some("github.com/acme/gateway");
        for (pattern, expected) in [
            ("~/clients", true),
            ("~/clients/acme/gateway", true),
            ("~/client", false),
            ("~", true),
            ("/home/me/clients/", true),
            ("github.com/acme", true),
            ("github.com/acme/gateway", true),
            ("git@github.com:acme/gateway.git", true),
            ("github.com/ac", false),
            ("gateway-12345678", true),
            ("gateway", false),
            ("", false),
            ("clients", false),
        ] {
            assert_eq!(
                is_meant(pattern, user, root, address, Some("gateway-12345678")),
                expected,
                "{pattern}"
            );
        }
    }

    #[test]
    fn places_and_ids() {
        let prefix = prefix_of("lighthouse-d004b9e9").expect("a place");
        assert_eq!(prefix.as_str(), "claude_memory/lighthouse-d004b9e9");
        assert_eq!(id_of_prefix(&prefix), Some("lighthouse-d004b9e9"));
        for other in ["claude_memory", "claude_memory/a/b", "claude_memoryx/a", "behavioral/a"] {
            assert_eq!(id_of_prefix(&Locator::parse(other).expect("valid")), None, "{other}");
        }
    }
}
