//! The records about projects: `projects.toml` on this machine, and the names in the store, which all machines share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haversack::store::{Backend, DeviceLocal, Guard, Locator, block_on};
use serde::{Deserialize, Serialize};

use crate::agents::claude_code::private::{LOCAL_SETTINGS, named_in};
use crate::error::CommandError;
use crate::home::store::open;
use crate::records;
use crate::settings::{Settings, shown, tilde};
use crate::ui::paths::quoted;

/// The file of the store that names repositories; it syncs and merges like every set.
const NAMES: &str = "state/project_names.set";

/// The lock of the process that changes the registry.
const LOCK: &str = "projects";

/// The time that we wait for another process that changes it.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The projects that this machine knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectRegistry {
    /// Projects whose memory stays here.
    #[serde(default)]
    pub(crate) exclude: Vec<String>,
    /// Directories that were named.
    #[serde(default)]
    pub(crate) named: Vec<Named>,
    /// Directories that projects were seen in.
    #[serde(default)]
    pub(crate) seen: Vec<Seen>,
    /// Worktrees that have memory of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) private: Vec<Private>,
    /// The user's yes to things that a repository names by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    agreed: Vec<Agreed>,
    /// The names that the store has for repositories.
    #[serde(skip)]
    names: BTreeMap<String, String>,
}

/// A directory that the user named, since no repository identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    pub(crate) root: PathBuf,
    pub(crate) name: String,
}

/// A directory that a project was seen in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    pub(crate) id: String,
    pub(crate) root: PathBuf,
    /// Its memory directory, by its real path.
    pub(crate) memory: PathBuf,
}

/// A worktree with private memory. The worktree's setting decides; this entry only helps to find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Private {
    pub(crate) checkout: PathBuf,
    pub(crate) memory: PathBuf,
}

/// The present use of a worktree's private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrivateUse {
    /// Its sessions use it.
    InUse,
    /// Someone took the setting out: its sessions use the memory that all checkouts share.
    Unused,
    /// The worktree is not there any more.
    Gone,
}

impl Private {
    /// Returns the use: checks that the worktree exists, and that its sessions use the memory.
    pub(crate) fn usage(&self) -> PrivateUse {
        if !self.checkout.is_dir() {
            return PrivateUse::Gone;
        }
        let text = std::fs::read_to_string(self.checkout.join(LOCAL_SETTINGS)).unwrap_or_default();
        match named_in(&text).is_some_and(|memory| memory == self.memory) {
            true => PrivateUse::InUse,
            false => PrivateUse::Unused,
        }
    }
}

/// Refuses a directory, given by its real path, that is the private memory of a worktree: the user has to take that back first.
pub(crate) fn refuse_private(settings: &Settings, directory: &Path) -> Result<(), CommandError> {
    let is_it = |private: &Private| private.memory.canonicalize().is_ok_and(|memory| memory == directory);
    let mut all = ProjectRegistry::of(settings)?.private.into_iter();
    match all.find(|private| is_it(private) && private.usage() == PrivateUse::InUse) {
        Some(private) => {
            let worktree = tilde(settings, &private.checkout);
            Err(CommandError::user(
                format!("{} is the private memory of {worktree}", shown(directory)),
                format!("Take that back first: haversack project private --undo {}", quoted(&worktree)),
            ))
        }
        None => Ok(()),
    }
}

/// The user's yes to one thing of one project, on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Agreed {
    /// The project's id.
    project: String,
    to: Consent,
}

/// Something that a repository names by itself, and that the user must agree to once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Consent {
    /// This checkout is the project, although it has no commit that proves it.
    Checkout(PathBuf),
    /// The settings of the project may keep its memory in this directory.
    Memory(PathBuf),
    /// The memory of subagents inside the project's checkouts is carried.
    Agents,
}

fn place(settings: &Settings) -> PathBuf {
    settings.home.join("projects.toml")
}

impl ProjectRegistry {
    /// Reads the registry.
    pub(crate) fn of(settings: &Settings) -> Result<ProjectRegistry, CommandError> {
        let cure = "Mend it, or remove it: projects with a repository are found again by themselves";
        let registry: ProjectRegistry = records::read(&place(settings), cure)?.unwrap_or_default();
        Ok(ProjectRegistry { names: names(settings), ..registry })
    }

    pub(crate) fn save(&self, settings: &Settings) -> Result<(), CommandError> {
        records::write(&place(settings), self, records::Weight::Durable)
    }

    /// Returns the name that the user gave to a project, by its directory or its repository.
    pub(crate) fn name_of(&self, root: &Path, address: Option<&str>) -> Option<String> {
        let here = self.named.iter().find(|named| named.root == root).map(|named| &named.name);
        here.or_else(|| self.names.get(address?)).cloned()
    }

    /// Returns true if an id is a name that the user gave.
    pub(crate) fn is_name(&self, id: &str) -> bool {
        self.named.iter().map(|named| &named.name).chain(self.names.values()).any(|name| name == id)
    }

    /// Returns true if the user named a directory of this machine.
    pub(crate) fn is_named_here(&self, root: &Path) -> bool {
        self.named.iter().any(|named| named.root == root)
    }

    /// Names a directory of this machine.
    pub(crate) fn name(&mut self, root: &Path, name: &str) {
        self.named.retain(|named| named.root != root);
        self.named.push(Named { root: root.to_owned(), name: name.to_owned() });
    }

    /// Returns true if the user agreed to something of a project.
    pub(crate) fn agrees(&self, project: &str, to: &Consent) -> bool {
        self.agreed.iter().any(|agreed| agreed.project == project && agreed.to == *to)
    }

    /// Notes that the user agrees to something of a project.
    pub(crate) fn agree(&mut self, project: &str, to: Consent) {
        if !self.agrees(project, &to) {
            self.agreed.push(Agreed { project: project.to_owned(), to });
        }
    }

    /// Notes the directory of a project; returns true if it is new.
    pub(crate) fn see(&mut self, seen: Seen) -> bool {
        if self.seen.contains(&seen) {
            return false;
        }
        self.seen.retain(|other| other.memory != seen.memory);
        self.seen.push(seen);
        true
    }
}

/// Locks the registry, so that one process after the other changes it.
pub(crate) fn turn(settings: &Settings) -> Result<Guard, CommandError> {
    let state = DeviceLocal::open(settings.state(), settings.locks())?;
    Ok(block_on(Backend::lock(&state, LOCK, LOCK_WAIT))?)
}

/// Names a repository on every machine.
pub(crate) fn name_everywhere(settings: &Settings, address: &str, name: &str) -> Result<(), CommandError> {
    let place = Locator::parse(NAMES).expect("a plain name");
    let line = format!("{address} = {name}");
    let memory = open(settings)?;
    let known = text(settings);
    let old = known.lines().find(|line| parse(line).is_some_and(|(other, _)| other == address));
    match old {
        Some(old) if old == line => {}
        Some(old) => drop(block_on(memory.str_replace(&place, old, &line))?),
        None => drop(block_on(memory.append(&place, format!("{line}\n")))?),
    }
    Ok(())
}

/// Returns the names of repositories. An unreadable file names none: hooks continue without it.
fn names(settings: &Settings) -> BTreeMap<String, String> {
    let text = text(settings);
    let mut names = BTreeMap::new();
    let mut lines: Vec<&str> = text.lines().collect();
    // Two machines may have named one repository: all of them take the same name.
    lines.sort_unstable();
    for (address, name) in lines.into_iter().filter_map(parse) {
        names.entry(address.to_owned()).or_insert(name.to_owned());
    }
    names
}

fn text(settings: &Settings) -> String {
    std::fs::read_to_string(settings.memory().join(NAMES)).unwrap_or_default()
}

fn parse(line: &str) -> Option<(&str, &str)> {
    let (address, name) = line.split_once(" = ")?;
    Some((address.trim(), name.trim())).filter(|(address, name)| !address.is_empty() && !name.is_empty())
}
