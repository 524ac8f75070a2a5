//! The projects on this machine: lists them, names them, and chooses which of them are synced.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haversack::store::{BackendExt, Locator, block_on};

use crate::agents::claude_code::ClaudeCode;
use crate::agents::claude_code::private::is_private;
use crate::error::CommandError;
use crate::home::mounts;
use crate::home::store::open_to_look;
use crate::projects::bind::{self, AskedBy, Bound};
use crate::projects::discover::{self, Found};
use crate::projects::registry::{self, ProjectRegistry};
use crate::projects::{Project, id_of_prefix, identity, prefix_of};
use crate::remote::Remote;
use crate::settings::{Settings, shown, tilde};
use crate::ui::paths::quoted;

/// A project, or a memory directory whose project is not known.
pub(crate) struct Listed {
    /// Its name for people.
    pub(crate) label: String,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    /// Its place, or the reason why it is not carried.
    pub(crate) remark: String,
    pub(crate) is_carried: bool,
    /// The project; `None` if its directory is gone or unknown.
    pub(crate) project: Option<Project>,
    pub(crate) memory: PathBuf,
}

/// The projects of this machine and of its store.
pub(crate) struct Projects {
    pub(crate) here: Vec<Listed>,
    /// The projects of the store that are not bound here, and their numbers of files.
    pub(crate) elsewhere: Vec<(String, usize)>,
    pub(crate) excluded: Vec<String>,
}

/// Returns the projects of this machine and of its store.
pub(crate) fn projects(settings: &Settings) -> Result<Projects, CommandError> {
    let registry = ProjectRegistry::of(settings)?;
    let here = listed(settings, &ClaudeCode::expected(settings)?, &registry);
    let elsewhere = elsewhere(settings, &here)?;
    Ok(Projects { here, elsewhere, excluded: registry.exclude })
}

/// Returns true for each project that is synced from its next session on: it is to be synced, and is not bound yet.
pub(crate) fn waits_for_session(settings: &Settings, projects: &[Listed]) -> Result<Vec<bool>, CommandError> {
    if Remote::for_looking(settings)?.is_none() {
        return Ok(vec![false; projects.len()]);
    }
    let bound = mounts::of(settings)?;
    let waits = projects.iter().map(|listed| {
        let project = listed.project.as_ref().filter(|_| listed.is_carried);
        project.is_some_and(|project| {
            let prefix = project.prefix();
            bound.iter().all(|mount| Some(&mount.prefix) != prefix.as_ref())
        })
    });
    Ok(waits.collect())
}

/// Returns every project with memory on this machine.
pub(crate) fn listed(settings: &Settings, claude: &ClaudeCode, registry: &ProjectRegistry) -> Vec<Listed> {
    let mut listed = Vec::new();
    let mut memories = BTreeSet::new();
    let found = discover::discover(claude);
    let bound: BTreeSet<PathBuf> =
        mounts::of(settings).unwrap_or_default().into_iter().map(|mount| mount.directory).collect();
    for Found { memory, root, files, bytes } in found {
        let real = memory.canonicalize().unwrap_or_else(|_| memory.clone());
        if is_private(&memory) {
            let is_carried = bound.contains(&real);
            listed.push(of_worktree(settings, claude, registry, memory, (files, bytes), is_carried));
            continue;
        }
        let seen = registry.seen.iter().find(|seen| seen.memory == real).map(|seen| seen.root.clone());
        memories.insert(real);
        match root.filter(|root| root.is_dir()).or(seen).filter(|root| root.is_dir()) {
            Some(root) => listed.push(of_project(
                settings,
                Project::of(settings, claude, registry, &root),
                (files, bytes),
            )),
            None => {
                let name = memory.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
                let is_carried = memory.canonicalize().is_ok_and(|memory| bound.contains(&memory));
                let remark = format!(
                    "its project's directory is unknown: haversack project bind DIRECTORY --from {}",
                    tilde(settings, &memory)
                );
                listed.push(Listed {
                    label: name.into_owned(),
                    files,
                    bytes,
                    remark: if is_carried {
                        "its project's directory is unknown; synced".to_owned()
                    } else {
                        remark
                    },
                    is_carried,
                    project: None,
                    memory,
                });
            }
        }
    }
    for seen in registry.seen.iter().filter(|seen| !memories.contains(&seen.memory) && seen.root.is_dir()) {
        let project = Project::of(settings, claude, registry, &seen.root);
        let is_new = listed.iter().all(|other| other.memory != project.memory.path);
        if is_new && project.memory.path.is_dir() {
            let size = discover::count(&project.memory.path);
            listed.push(of_project(settings, project, size));
        }
    }
    // One that has memory of its own and nothing in it yet.
    for private in &registry.private {
        let project = Project::of(settings, claude, registry, &private.checkout);
        if project.is_private && listed.iter().all(|other| other.memory != project.memory.path) {
            let size = discover::count(&project.memory.path);
            listed.push(of_project(settings, project, size));
        }
    }
    listed
}

/// Returns what is listed of a private memory directory: its worktree, unless that is gone or shares again.
fn of_worktree(
    settings: &Settings,
    claude: &ClaudeCode,
    registry: &ProjectRegistry,
    memory: PathBuf,
    size: (usize, u64),
    is_carried: bool,
) -> Listed {
    let checkout =
        registry.private.iter().find(|private| private.memory == memory).map(|found| &found.checkout);
    let project = checkout.map(|checkout| Project::of(settings, claude, registry, checkout));
    if let Some(project) = project.filter(|project| project.is_private && project.memory.path == memory) {
        return of_project(settings, project, size);
    }
    let name = memory.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let from = tilde(settings, &memory);
    Listed {
        label: name.into_owned(),
        files: size.0,
        bytes: size.1,
        remark: match is_carried {
            true => "was private to a worktree; synced".to_owned(),
            false => format!(
                "was private to a worktree, stays on this machine: haversack project bind DIRECTORY --from {from}"
            ),
        },
        is_carried,
        project: None,
        memory,
    }
}

fn of_project(settings: &Settings, project: Project, (files, bytes): (usize, u64)) -> Listed {
    let why_not = project.why_not(settings);
    Listed {
        label: project.label(settings),
        files,
        bytes,
        is_carried: why_not.is_none(),
        remark: why_not
            .unwrap_or_else(|| project.address.clone().unwrap_or_else(|| tilde(settings, &project.root))),
        memory: project.memory.path.clone(),
        project: Some(project),
    }
}

/// Returns the locator of a project's memory, which messages show as the short name of the project.
pub(crate) fn shown_id(id: &str) -> String {
    prefix_of(id).map_or_else(|| id.to_owned(), |prefix| prefix.to_string())
}

/// Returns the projects of the store that are not bound here, and how many files they have.
pub(crate) fn elsewhere(
    settings: &Settings,
    listed: &[Listed],
) -> Result<Vec<(String, usize)>, CommandError> {
    let projects = listed.iter().filter_map(|listed| listed.project.as_ref());
    let here: BTreeSet<&str> =
        projects.filter(|project| !project.is_private).filter_map(|project| project.id.as_deref()).collect();
    let bound = mounts::of(settings)?;
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    let place = Locator::parse("claude_memory").expect("a plain name");
    let memory = open_to_look(settings)?;
    for locator in block_on(memory.files().list_all(&place))? {
        let id = locator.as_str().split('/').nth(1).unwrap_or_default();
        let is_bound = bound.iter().any(|mount| id_of_prefix(&mount.prefix) == Some(id));
        if !is_bound && !here.contains(id) && !id.ends_with(".agents") && !id.ends_with(".agents-local") {
            *ids.entry(id.to_owned()).or_default() += 1;
        }
    }
    Ok(ids.into_iter().collect())
}

/// A project that was given a name.
pub(crate) struct NamedProject {
    pub(crate) id: String,
    /// The id that it had before.
    pub(crate) before: Option<String>,
    /// The address of its repository, which has the name on all machines.
    pub(crate) address: Option<String>,
    pub(crate) root: PathBuf,
    /// The directory whose memory the name is for.
    pub(crate) directory: PathBuf,
}

/// Gives a project a name.
pub(crate) fn name(settings: &Settings, directory: &Path, name: &str) -> Result<NamedProject, CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    let directory = existing(directory)?;
    let Some(id) =
        identity::id_of_name(name).filter(|id| !id.ends_with(".agents") && !id.ends_with(".agents-local"))
    else {
        return Err(CommandError::user(
            format!("\"{name}\" is no name for a project"),
            "Take a word of letters and digits",
        ));
    };
    let project = Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &directory);
    match &project.address {
        Some(address) => registry::name_everywhere(settings, address, &id)?,
        None => {
            let _turn = registry::turn(settings)?;
            let mut registry = ProjectRegistry::of(settings)?;
            registry.name(&project.root, &id);
            registry.save(settings)?;
        }
    }
    Ok(NamedProject {
        before: project.id.clone().filter(|before| *before != id),
        id,
        address: project.address.clone(),
        // Private memory stays private; the name is the repository's.
        directory: if project.is_private { project.root.clone() } else { directory },
        root: project.root,
    })
}

/// A project that is synced.
pub(crate) struct BoundProject {
    pub(crate) label: String,
    pub(crate) bound: Bound,
    /// The directories to which the user agreed just now.
    pub(crate) agreed: Vec<PathBuf>,
    pub(crate) id: Option<String>,
}

/// Syncs the memory of a project from now on.
pub(crate) fn bind(settings: &Settings, directory: &Path) -> Result<BoundProject, CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    let directory = existing(directory)?;
    let project = Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &directory);
    let label = project.label(settings);
    let agreed = bind::unagreed(settings, &project)?;
    let bound = bind::bind(settings, &claude, &project, AskedBy::User)?;
    let project = Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &directory);
    match &bound {
        Bound::NeedsConsent(_) => {
            return Err(CommandError::user(
                format!("{label} stays on this machine"),
                project.why_not(settings).unwrap_or_default(),
            ));
        }
        Bound::Local => {
            let why = project.why_not(settings).unwrap_or_default();
            return Err(CommandError::user(
                format!("{label} stays on this machine"),
                if project.is_excluded && !project.is_private {
                    "It was excluded: haversack project exclude --undo".to_owned()
                } else {
                    why
                },
            ));
        }
        Bound::Unclear { before } => {
            let root = quoted(&tilde(settings, &project.root));
            return Err(CommandError::user(
                format!("the directory of {label} held another project until now: {before}"),
                format!(
                    "If it is the same project at a new address: haversack project name {root} {before}. If not, give it a name: haversack project name {root} NAME"
                ),
            ));
        }
        Bound::Already | Bound::New | Bound::Moved { .. } => {}
    }
    Ok(BoundProject { label, bound, agreed, id: project.id })
}

/// Keeps the memory of projects on this machine; returns their name, and the projects that are not synced any more.
pub(crate) fn exclude(settings: &Settings, what: &str) -> Result<(String, Vec<String>), CommandError> {
    let what = named(what);
    {
        let _turn = registry::turn(settings)?;
        let mut registry = ProjectRegistry::of(settings)?;
        if !registry.exclude.contains(&what) {
            registry.exclude.push(what.clone());
        }
        registry.save(settings)?;
    }
    let let_go = rebind(settings)?;
    Ok((what, let_go))
}

/// Syncs projects again that were excluded; returns their name.
pub(crate) fn include(settings: &Settings, what: &str) -> Result<String, CommandError> {
    let what = named(what);
    let is_known = {
        let _turn = registry::turn(settings)?;
        let mut registry = ProjectRegistry::of(settings)?;
        let before = registry.exclude.len();
        registry.exclude.retain(|other| *other != what);
        registry.save(settings)?;
        registry.exclude.len() < before
    };
    if !is_known {
        return Err(CommandError::user(
            format!("{what} was not excluded by this command"),
            "List the projects: haversack project list --json. Settings can exclude a project too: haversack config list",
        ));
    }
    rebind(settings)?;
    Ok(what)
}

/// Binds or lets go every project that was seen here; returns what those are called that were let go.
fn rebind(settings: &Settings) -> Result<Vec<String>, CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    let registry = ProjectRegistry::of(settings)?;
    let mut let_go = Vec::new();
    for seen in registry.seen.iter().filter(|seen| seen.root.is_dir()) {
        let project = Project::of(settings, &claude, &registry, &seen.root);
        let before = mounts::of(settings)?.len();
        bind::bind(settings, &claude, &project, AskedBy::Nobody)?;
        if mounts::of(settings)?.len() < before {
            let_go.push(project.label(settings));
        }
    }
    Ok(let_go)
}

/// Returns a directory by its full path; anything else as it was said.
fn named(what: &str) -> String {
    match Path::new(what).canonicalize() {
        Ok(directory) => shown(&directory),
        Err(_) => what.to_owned(),
    }
}

/// Returns the real path of a directory that must be there.
pub(crate) fn existing(directory: &Path) -> Result<PathBuf, CommandError> {
    directory.canonicalize().ok().filter(|directory| directory.is_dir()).ok_or_else(|| {
        CommandError::user(
            format!("there is no directory {}", shown(directory)),
            "Give the directory of the project",
        )
    })
}
