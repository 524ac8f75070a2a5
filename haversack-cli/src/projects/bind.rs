//! Binds the memory directories of a project to its places in the store.
//!
//! Bound without a question: the directory that Claude Code itself uses for the project, below Claude Code's own directory, and the
//! directory of the user's subagents there. Everything that a repository names (a directory in its settings, directories inside the
//! checkout, a checkout without proof) is bound only after the user's yes: `haversack project bind`.

use std::fs;
use std::path::{Path, PathBuf};

use haversack::store::Locator;

use super::proof::{self, Proof};
use super::registry::{self, Consent, Private, ProjectRegistry, Seen};
use super::{Barrier, KnownBy, Project, discover, git, id_of_prefix, identity, prefix_of};
use crate::agents::claude_code::{ChosenBy, ClaudeCode};
use crate::error::CommandError;
use crate::home::Home;
use crate::home::mounts::{self, Mount};
use crate::settings::{Settings, shown};
use crate::ui::paths::quoted;

/// The place of what subagents learn in any project.
const AGENTS: &str = "behavioral/agents";

/// The end of the directories of a project's subagents.
const PROJECT_AGENTS: [(&str, &str); 2] =
    [("agent-memory", ".agents"), ("agent-memory-local", ".agents-local")];

/// The outcome of binding a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// It was bound before.
    Already,
    /// It is bound now.
    New,
    /// Its checkout was moved on this machine, and we moved its memory along.
    Moved {
        /// The number of files.
        files: usize,
    },
    /// It stays on this machine.
    Local,
    /// It stays on this machine until the user agrees to something that the repository names.
    NeedsConsent(Barrier),
    /// Its directory held another project until now. We send nothing until the user says which project it is.
    Unclear {
        /// The other project.
        before: String,
    },
}

/// The party that asks for a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedBy {
    /// No user: a session started, or settings changed.
    Nobody,
    /// The user, by `haversack project bind`. This also agrees to directories that the repository names.
    User,
}

/// Returns the things in a checkout that are bound only after the user's yes, and were not agreed to yet.
pub(crate) fn unagreed(settings: &Settings, project: &Project) -> Result<Vec<PathBuf>, CommandError> {
    let Some(id) = project.id.as_deref().filter(|_| project.prefix().is_some()) else {
        return Ok(Vec::new());
    };
    if ProjectRegistry::of(settings)?.agrees(id, &Consent::Agents) {
        return Ok(Vec::new());
    }
    Ok(agents_in_checkout(project).map(|(directory, _)| directory).collect())
}

/// Notes the user's yes to everything that a repository names; returns the directories that it covers.
fn agree(settings: &Settings, project: &Project) -> Result<Vec<PathBuf>, CommandError> {
    let Some(id) = &project.id else { return Ok(Vec::new()) };
    let _turn = registry::turn(settings)?;
    let mut registry = ProjectRegistry::of(settings)?;
    let mut directories = Vec::new();
    match &project.barrier {
        Some(Barrier::Unproven(_)) => registry.agree(id, Consent::Checkout(project.checkout.clone())),
        Some(Barrier::NamedByProject(memory)) => {
            fs::create_dir_all(memory).map_err(|error| cannot(memory, error))?;
            let real = memory.canonicalize().map_err(|error| cannot(memory, error))?;
            if let Some(why) = mounts::refused(settings, &real) {
                return Err(refusal(&real, &why));
            }
            let is_others = |mount: &Mount| {
                let is_near = mount.directory.starts_with(&real) || real.starts_with(&mount.directory);
                is_near && Some(&mount.prefix) != prefix_of(id).as_ref()
            };
            if let Some(other) = mounts::of(settings)?.iter().find(|mount| is_others(mount)) {
                return Err(refusal(&real, &format!("it holds memory of {}", other.prefix)));
            }
            directories.push(real.clone());
            registry.agree(id, Consent::Memory(real));
        }
        Some(Barrier::PrivateElsewhere) => {
            return Err(CommandError::user(
                format!(
                    "the settings of {} point to the private memory of another worktree",
                    shown(&project.checkout)
                ),
                format!("Take autoMemoryDirectory out of {}/.claude", shown(&project.checkout)),
            ));
        }
        None => {}
    }
    let agents: Vec<PathBuf> = agents_in_checkout(project).map(|(directory, _)| directory).collect();
    if !agents.is_empty() {
        registry.agree(id, Consent::Agents);
        directories.extend(agents);
    }
    registry.save(settings)?;
    Ok(directories)
}

/// Binds the memory directories of a project on this machine.
pub(crate) fn bind(
    settings: &Settings,
    claude: &ClaudeCode,
    project: &Project,
    asked_by: AskedBy,
) -> Result<Bound, CommandError> {
    let renewed;
    let project = match asked_by {
        AskedBy::User => {
            agree(settings, project)?;
            renewed = Project::of(settings, claude, &ProjectRegistry::of(settings)?, &project.checkout);
            &renewed
        }
        AskedBy::Nobody => project,
    };
    if let Some(barrier) = project.barrier.clone() {
        // Another checkout took the place of the one that was bound. A directory that the repository names is not the repository's to
        // unbind: it may be the memory of another project.
        if project.checkout == project.root && project.memory.by == ChosenBy::Rule {
            release(settings, project)?;
        }
        return Ok(Bound::NeedsConsent(barrier));
    }
    let Some(prefix) = project.prefix() else {
        release(settings, project)?;
        return Ok(Bound::Local);
    };
    refuse_old_id(settings, project)?;
    let id = project.id.clone().unwrap_or_default();
    let directory = own_directory(&project.memory.path)?;
    let all = mounts::of(settings)?;
    let seen = Seen { id: id.clone(), root: project.root.clone(), memory: directory.clone() };
    let is_bound = all.iter().any(|mount| mount.directory == directory && mount.prefix == prefix);
    let registry = ProjectRegistry::of(settings)?;
    if is_bound && registry.seen.contains(&seen) && agents(claude, &registry, project, &id, &all).is_empty() {
        if project.proof == Proof::SeenHere {
            record_tips(settings, project, &id)?;
        }
        return Ok(Bound::Already);
    }
    let _turn = registry::turn(settings)?;
    let mut registry = ProjectRegistry::of(settings)?;
    let mut all = mounts::of(settings)?;
    forget_gone(&mut all);
    let before = all.iter().position(|mount| mount.directory == directory);
    let mut bound = Bound::New;
    match before.map(|index| all[index].prefix.clone()) {
        Some(before) if before == prefix => bound = Bound::Already,
        Some(before) if project.known_by == KnownBy::Name => {
            all.retain(|mount| mount.directory != directory || mount.prefix != before);
            all.push(Mount { directory: directory.clone(), prefix: prefix.clone() });
        }
        Some(before) => {
            // The directory is the same and the repository is another: it has a new address, or it is a new project. If we sent its
            // memory now, two projects could become one.
            all.retain(|mount| mount.directory != directory);
            mounts::save(settings, &all)?;
            return Ok(Bound::Unclear {
                before: id_of_prefix(&before).unwrap_or(before.as_str()).to_owned(),
            });
        }
        None => {
            if let Some(other) =
                registry.seen.iter().find(|other| other.memory == directory && other.id != id)
                && project.known_by == KnownBy::Repository
            {
                return Ok(Bound::Unclear { before: other.id.clone() });
            }
            refuse(settings, project, &directory)?;
            match move_here(settings, &registry, &mut all, &prefix, &directory)? {
                Some(files) => bound = Bound::Moved { files },
                None => all.push(Mount { directory: directory.clone(), prefix: prefix.clone() }),
            }
        }
    }
    for mount in agents(claude, &registry, project, &id, &all) {
        all.push(mount);
    }
    mounts::save(settings, &all)?;
    registry.see(seen);
    registry.save(settings)?;
    Home::open(settings)?.tidy(settings)?;
    record_tips(settings, project, &id)?;
    Ok(bound)
}

/// Adds the commits of a checkout that was just bound to the record of its project.
fn record_tips(settings: &Settings, project: &Project, id: &str) -> Result<(), CommandError> {
    match git::find(&project.checkout).filter(|repository| repository.is_own && project.address.is_some()) {
        Some(repository) => proof::record_tips(settings, &repository, id),
        None => Ok(()),
    }
}

/// Refuses a project whose memory is in the store under an id of the old form.
fn refuse_old_id(settings: &Settings, project: &Project) -> Result<(), CommandError> {
    let address = project.address.as_ref().filter(|_| project.known_by == KnownBy::Repository);
    let (Some(address), Some(new)) = (address, project.prefix()) else { return Ok(()) };
    let Some(old) = prefix_of(&identity::old_id_of_repository(address)) else { return Ok(()) };
    let bound = mounts::of(settings)?.into_iter().find(|mount| mount.prefix == old);
    if bound.is_none() && !settings.memory().join(old.as_str()).exists() {
        return Ok(());
    }
    let first = bound.map_or(String::new(), |mount| {
        format!("haversack mount remove {} && ", quoted(&shown(&mount.directory)))
    });
    Err(CommandError::user(
        format!("the memory of {address} is in {old}: such a short id can be forged by another repository"),
        format!("Give it the new id, on one machine: {first}haversack rename {old} {new} && haversack sync"),
    ))
}

/// Returns the real path of a memory directory, made if need be. The directory itself must not be a link; links above it are the user's.
fn own_directory(memory: &Path) -> Result<PathBuf, CommandError> {
    if memory.is_symlink() {
        let target = memory.canonicalize().unwrap_or_else(|_| memory.to_owned());
        return Err(CommandError::user(
            format!("{} is a link to {}, so we do not sync it", shown(memory), shown(&target)),
            format!(
                "Put a directory in its place. If you want to sync {0}: haversack mount add {0} PREFIX",
                quoted(&shown(&target))
            ),
        ));
    }
    fs::create_dir_all(memory).map_err(|error| cannot(memory, error))?;
    memory.canonicalize().map_err(|error| cannot(memory, error))
}

/// Unbinds a project that is not carried any more, or a worktree that has private memory now.
fn release(settings: &Settings, project: &Project) -> Result<(), CommandError> {
    let own = project.checkout.join(".claude");
    let mut its = vec![project.memory.path.clone()];
    its.extend(PROJECT_AGENTS.map(|(name, _)| own.join(name)));
    let its: Vec<PathBuf> = its.into_iter().filter_map(|directory| directory.canonicalize().ok()).collect();
    let is_its = |mount: &Mount| its.contains(&mount.directory);
    let private = Private { checkout: project.checkout.clone(), memory: project.memory.path.clone() };
    let is_new = project.is_private && !ProjectRegistry::of(settings)?.private.contains(&private);
    if !is_new && !mounts::of(settings)?.iter().any(is_its) {
        return Ok(());
    }
    let _turn = registry::turn(settings)?;
    let mut all = mounts::of(settings)?;
    let before = all.len();
    all.retain(|mount| !is_its(mount));
    if all.len() < before {
        mounts::save(settings, &all)?;
    }
    if is_new {
        let mut registry = ProjectRegistry::of(settings)?;
        // A worktree that was moved took its setting along.
        registry.private.retain(|other| other.memory != private.memory);
        registry.private.push(private);
        registry.save(settings)?;
    }
    Ok(())
}

/// Binds a directory whose project is gone to another project: its files are merged into it.
pub(crate) fn bind_left_over(settings: &Settings, directory: &Path, id: &str) -> Result<(), CommandError> {
    let directory = own_directory(directory)?;
    let Some(prefix) = prefix_of(id) else { return Ok(()) };
    registry::refuse_private(settings, &directory)?;
    if let Some(why) = mounts::refused(settings, &directory) {
        return Err(refusal(&directory, &why));
    }
    let _turn = registry::turn(settings)?;
    let mut all = mounts::of(settings)?;
    match all.iter().find(|mount| mount.directory == directory) {
        // The project's own memory directory, which was just bound, or one that was imported before.
        Some(mount) if mount.prefix == prefix => return Ok(()),
        Some(mount) => {
            let name = quoted(&shown(&directory));
            return Err(CommandError::user(
                format!("{} belongs to {} already", shown(&directory), mount.prefix),
                format!("If that is wrong: haversack mount remove {name}, then the same command again"),
            ));
        }
        None => {}
    }
    let mut registry = ProjectRegistry::of(settings)?;
    if registry.private.iter().any(|private| private.memory.canonicalize().is_ok_and(|of| of == directory)) {
        registry.private.retain(|private| private.memory.canonicalize().map_or(true, |of| of != directory));
        registry.save(settings)?;
    }
    all.push(Mount { directory, prefix });
    mounts::save(settings, &all)?;
    Home::open(settings)?.tidy(settings)
}

/// Refuses a directory that must never be carried: a setting or a link above it may lead there.
fn refuse(settings: &Settings, project: &Project, directory: &Path) -> Result<(), CommandError> {
    let is_by_rule = project.memory.by == ChosenBy::Rule && directory.ends_with("memory");
    let is_home = mounts::refused(settings, directory).filter(|why| !is_by_rule || why.contains("own home"));
    is_home.map_or(Ok(()), |why| Err(refusal(directory, &why)))
}

/// Takes over the memory of a project whose directory moved, with its settings.
fn move_here(
    settings: &Settings,
    registry: &ProjectRegistry,
    all: &mut [Mount],
    prefix: &Locator,
    directory: &Path,
) -> Result<Option<usize>, CommandError> {
    let is_left = |mount: &&mut Mount| {
        let seen = registry.seen.iter().find(|seen| seen.memory == mount.directory);
        mount.prefix == *prefix && mount.is_there() && seen.is_some_and(|seen| !seen.root.exists())
    };
    if discover::count(directory).0 > 0 {
        return Ok(None);
    }
    let Some(mount) = all.iter_mut().find(is_left) else { return Ok(None) };
    let old_state = mount.state(settings);
    let moved = Mount { directory: directory.to_owned(), prefix: prefix.clone() };
    let new_state = moved.state(settings);
    if new_state.exists() && fs::rename(&new_state, new_state.with_extension("old")).is_err() {
        return Ok(None);
    }
    // An empty directory may be there: the client makes it.
    if fs::remove_dir(directory).is_err() || fs::rename(&mount.directory, directory).is_err() {
        fs::create_dir_all(directory).map_err(|error| cannot(directory, error))?;
        return Ok(None);
    }
    // Without it the directory is merged like a new one; nothing is lost.
    drop(fs::rename(old_state, new_state));
    *mount = moved;
    Ok(Some(discover::count(directory).0))
}

/// Returns the directories of subagents that exist and are not bound yet. Those inside a checkout count only after the user's yes.
fn agents(
    claude: &ClaudeCode,
    registry: &ProjectRegistry,
    project: &Project,
    id: &str,
    all: &[Mount],
) -> Vec<Mount> {
    let of_user = claude.agents();
    let is_directory = of_user.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let of_user = of_user.canonicalize().ok().filter(|_| is_directory);
    let mut wanted: Vec<(PathBuf, String)> =
        of_user.map(|directory| (directory, AGENTS.to_owned())).into_iter().collect();
    if registry.agrees(id, &Consent::Agents) {
        let own = agents_in_checkout(project);
        wanted.extend(own.map(|(directory, ending)| (directory, format!("claude_memory/{id}{ending}"))));
    }
    let mounts = wanted
        .into_iter()
        .filter_map(|(directory, prefix)| Some(Mount { directory, prefix: Locator::parse(&prefix).ok()? }));
    mounts.filter(|mount| all.iter().all(|other| other.directory != mount.directory)).collect()
}

/// Returns the directories of subagents inside a checkout, and the ending of each one's place in the store. A repository can contain
/// links, so a directory that is reached through one does not count.
fn agents_in_checkout(project: &Project) -> impl Iterator<Item = (PathBuf, &'static str)> {
    let own = project.checkout.canonicalize().unwrap_or_else(|_| project.checkout.clone()).join(".claude");
    PROJECT_AGENTS.into_iter().filter_map(move |(name, ending)| {
        let directory = own.join(name);
        mounts::is_real(&directory).then_some((directory, ending))
    })
}

/// Drops the directories of subagents in worktrees that are gone.
fn forget_gone(all: &mut Vec<Mount>) {
    let is_of_agents =
        |mount: &Mount| PROJECT_AGENTS.iter().any(|(_, ending)| mount.prefix.as_str().ends_with(ending));
    let checkout = |mount: &Mount| mount.directory.ancestors().nth(2).is_some_and(Path::exists);
    all.retain(|mount| mount.is_there() || !is_of_agents(mount) || checkout(mount));
}

fn cannot(directory: &Path, error: std::io::Error) -> CommandError {
    CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("the memory directory {} cannot be used", shown(directory)),
            "Give this user access to it",
        )
    }
}

fn refusal(directory: &Path, why: &str) -> CommandError {
    CommandError::user(
        format!("{} is not bound: {why}", shown(directory)),
        "Keep the memory in a separate directory",
    )
}
