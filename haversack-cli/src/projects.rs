//! Projects: memory belongs to a project, not to the path of a checkout.
//!
//! A project is known by a name that the user gave it, or else by the address of its repository, which is the same on every machine. A
//! project that has neither stays on this machine until the user names it. Two projects never meet: each has its own place in the
//! store, `claude_memory/<id>`.
//!
//! A repository is written by other people. So a checkout must [prove](proof) that it is the project it names, and a directory that
//! the repository names is used only after the user agreed ([`Barrier`]).

pub(crate) mod bind;
pub(crate) mod border;
pub(crate) mod discover;
pub(crate) mod git;
pub(crate) mod identity;
pub(crate) mod left_out;
pub(crate) mod names;
pub(crate) mod private;
pub(crate) mod proof;
pub(crate) mod registry;

use std::path::{Path, PathBuf};

use haversack::store::Locator;

use self::proof::{Missing, Proof};
use self::registry::{Consent, ProjectRegistry};
use crate::agents::claude_code::private::{directory as private_directory, is_private};
use crate::agents::claude_code::{ChosenBy, ClaudeCode, MemoryDirectory};
use crate::settings::{Settings, files, tilde};
use crate::ui::paths::quoted;

/// The place of memory that belongs to no project.
pub(crate) const NO_PROJECT: &str = "behavioral";

/// The place of all projects in a store.
const PLACE: &str = "claude_memory";

/// The id of the memory that all projects share, if the user configured Claude Code so.
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
    /// Its memory directory on this machine.
    pub(crate) memory: MemoryDirectory,
    /// The source of its id.
    pub(crate) known_by: KnownBy,
    /// True if its memory stays on this machine.
    pub(crate) is_excluded: bool,
    /// True if this checkout has memory of its own, which stays on this machine.
    pub(crate) is_private: bool,
    /// The proof that the checkout is this project.
    pub(crate) proof: Proof,
    /// The reason why its memory is not used here before the user agrees.
    pub(crate) barrier: Option<Barrier>,
}

/// A reason why the memory of a project is neither carried nor shown in a checkout until the user agrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// The checkout does not prove that it is the project.
    Unproven(Missing),
    /// The project's own settings name this directory for its memory.
    NamedByProject(PathBuf),
    /// The project's own settings name the private memory of another worktree.
    PrivateElsewhere,
}

/// The identity of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownBy {
    /// A name that the user gave it.
    Name,
    /// Its repository.
    Repository,
    /// Nothing: it stays on this machine.
    Nothing,
}

impl Project {
    /// Returns the project that a directory belongs to, as a session that starts in it would have it.
    pub(crate) fn of(
        settings: &Settings,
        claude: &ClaudeCode,
        registry: &ProjectRegistry,
        directory: &Path,
    ) -> Project {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let repository = git::find(&directory);
        let address = repository.as_ref().and_then(git::Repository::remote);
        let address = address.as_deref().and_then(identity::normalise);
        let (root, checkout) = match &repository {
            Some(repository) => (repository.root.clone(), repository.checkout.clone()),
            None => (directory.clone(), directory.clone()),
        };
        let memory = claude.memory_of(&root, &directory);
        let is_private = memory.by == ChosenBy::Project && is_private(&memory.path);
        let is_named_here = registry.is_named_here(&root);
        let named = match memory.by {
            ChosenBy::User => Some(ALL_PROJECTS.to_owned()),
            ChosenBy::Rule | ChosenBy::Project => registry.name_of(&root, address.as_deref()),
        };
        let (id, known_by) = match (named.as_deref().and_then(identity::id_of_name), &address) {
            (Some(id), _) => (Some(id), KnownBy::Name),
            (None, Some(address)) => (Some(identity::id_of_repository(address)), KnownBy::Repository),
            (None, None) => (None, KnownBy::Nothing),
        };
        let proof = match (&repository, &id) {
            _ if memory.by == ChosenBy::User => Proof::NotNeeded,
            // Another checkout's repository says nothing about this one, whatever the user named that checkout.
            (Some(repository), Some(id)) if !is_named_here || !repository.is_own => {
                proof::of(settings, registry, repository, id)
            }
            (Some(repository), None) if !repository.is_own => Proof::Missing(Missing::NotListed),
            _ => Proof::NotNeeded,
        };
        let user = settings.surroundings.user.as_deref();
        let excluded =
            settings.excluded_projects.split(',').chain(registry.exclude.iter().map(String::as_str));
        let is_excluded = excluded
            .map(str::trim)
            .any(|excluded| is_meant(excluded, user, &root, address.as_deref(), id.as_deref()))
            || [&root, &checkout].into_iter().any(|directory| files::keeps_memory_local(directory));
        let barrier = match proof {
            Proof::Missing(missing) => Some(Barrier::Unproven(missing)),
            _ if memory.by != ChosenBy::Project => None,
            _ if is_private => {
                let is_ours = memory.path == private_directory(&claude.projects(), &checkout);
                // A worktree that was moved took its setting along.
                let is_kept = registry.private.iter().any(|private| {
                    private.memory == memory.path
                        && (private.checkout == checkout || !private.checkout.exists())
                });
                (!is_ours && !is_kept).then_some(Barrier::PrivateElsewhere)
            }
            _ => {
                let real = memory.path.canonicalize().unwrap_or_else(|_| memory.path.clone());
                let is_agreed = registry.agrees(id.as_deref().unwrap_or_default(), &Consent::Memory(real));
                (!is_agreed).then(|| Barrier::NamedByProject(memory.path.clone()))
            }
        };
        Project { id, address, root, checkout, memory, known_by, is_excluded, is_private, proof, barrier }
    }

    /// Returns its place in the store, if it has one and may be carried.
    pub(crate) fn prefix(&self) -> Option<Locator> {
        let may = !self.is_excluded && !self.is_private && self.barrier.is_none();
        prefix_of(self.id.as_ref().filter(|_| may)?)
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
        let root = quoted(&tilde(settings, &self.root));
        if self.is_private {
            let checkout = quoted(&tilde(settings, &self.checkout));
            return Some(format!(
                "private: stays on this machine (to share again: haversack project private --undo {checkout})"
            ));
        }
        if self.is_excluded {
            return Some("not synced (excluded)".to_owned());
        }
        let checkout = quoted(&tilde(settings, &self.checkout));
        match &self.barrier {
            Some(Barrier::Unproven(missing)) => {
                return Some(format!(
                    "not synced: {} (if it is yours: haversack project bind {checkout})",
                    missing.reason()
                ));
            }
            Some(Barrier::NamedByProject(memory)) => {
                return Some(format!(
                    "not synced: the project's own settings keep its memory in {} (if you agree: haversack project bind {checkout})",
                    tilde(settings, memory)
                ));
            }
            Some(Barrier::PrivateElsewhere) => {
                return Some(
                    "not synced: its settings point to the private memory of another worktree".to_owned(),
                );
            }
            None => {}
        }
        self.id.is_none().then(|| {
            format!(
                "no git remote: stays on this machine until you give it a name (haversack project name {root} NAME)"
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

/// Returns true if `pattern` names a project: its directory or one above, its repository or its group, or its name.
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
        let prefix = prefix_of("lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb").expect("a place");
        assert_eq!(prefix.as_str(), "claude_memory/lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb");
        assert_eq!(id_of_prefix(&prefix), Some("lighthouse-d004b9e97997fdd4babbdf89bdc1bbdb"));
        for other in ["claude_memory", "claude_memory/a/b", "claude_memoryx/a", "behavioral/a"] {
            assert_eq!(id_of_prefix(&Locator::parse(other).expect("valid")), None, "{other}");
        }
    }
}
