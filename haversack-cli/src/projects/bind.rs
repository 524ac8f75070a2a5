//! Binds the memory directories of a project to its places in the store.

use std::fs;
use std::path::{Path, PathBuf};

use haversack::store::Locator;

use super::book::{self, Book, Private, Seen};
use super::{KnownBy, Project, id_of_prefix, prefix_of, private};
use crate::claude_code::{ChosenBy, ClaudeCode, discover};
use crate::error::CommandError;
use crate::home;
use crate::mounts::{self, Mount};
use crate::settings::{Settings, shown};

/// The place of what subagents learn in any project.
const AGENTS: &str = "behavioral/agents";

/// What the place of a project's subagents ends with.
const PROJECT_AGENTS: [(&str, &str); 2] =
    [("agent-memory", ".agents"), ("agent-memory-local", ".agents-local")];

/// What binding a project came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// It was bound already.
    Already,
    /// It is bound now.
    New,
    /// It was elsewhere on this machine, and its memory came along.
    Moved {
        /// How many files.
        files: usize,
    },
    /// It stays on this machine.
    Local,
    /// Its directory held another project until now; nothing is sent until somebody says which it is.
    Unclear {
        /// The other one.
        before: String,
    },
}

/// Binds what a project has on this machine.
pub(crate) fn bind(
    settings: &Settings,
    claude: &ClaudeCode,
    project: &Project,
) -> Result<Bound, CommandError> {
    let Some(prefix) = project.prefix() else {
        release(settings, project)?;
        return Ok(Bound::Local);
    };
    let id = project.id.clone().unwrap_or_default();
    fs::create_dir_all(&project.memory.path).map_err(|error| cannot(&project.memory.path, error))?;
    let directory =
        project.memory.path.canonicalize().map_err(|error| cannot(&project.memory.path, error))?;
    let all = mounts::of(settings)?;
    let seen = Seen { id: id.clone(), root: project.root.clone(), memory: directory.clone() };
    let is_bound = all.iter().any(|mount| mount.directory == directory && mount.prefix == prefix);
    if is_bound && Book::of(settings)?.seen.contains(&seen) && agents(claude, project, &id, &all).is_empty() {
        return Ok(Bound::Already);
    }
    let _turn = book::turn(settings)?;
    let mut book = Book::of(settings)?;
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
            // The directory is the same and the repository another: a new address, or a new project? Sent, the two would be one.
            all.retain(|mount| mount.directory != directory);
            mounts::save(settings, &all)?;
            return Ok(Bound::Unclear {
                before: id_of_prefix(&before).unwrap_or(before.as_str()).to_owned(),
            });
        }
        None => {
            if let Some(other) = book.seen.iter().find(|other| other.memory == directory && other.id != id)
                && project.known_by == KnownBy::Repository
            {
                return Ok(Bound::Unclear { before: other.id.clone() });
            }
            refuse(settings, project, &directory)?;
            match move_here(settings, &book, &mut all, &prefix, &directory)? {
                Some(files) => bound = Bound::Moved { files },
                None => all.push(Mount { directory: directory.clone(), prefix: prefix.clone() }),
            }
        }
    }
    for mount in agents(claude, project, &id, &all) {
        all.push(mount);
    }
    mounts::save(settings, &all)?;
    book.see(seen);
    book.save(settings)?;
    home::adopt(settings)?;
    Ok(bound)
}

/// Lets go of a project that is not carried any more, or of a worktree that has memory of its own now.
fn release(settings: &Settings, project: &Project) -> Result<(), CommandError> {
    let own = project.checkout.join(".claude");
    let mut its = vec![project.memory.path.clone()];
    its.extend(PROJECT_AGENTS.map(|(name, _)| own.join(name)));
    let its: Vec<PathBuf> = its.into_iter().filter_map(|directory| directory.canonicalize().ok()).collect();
    let is_its = |mount: &Mount| its.contains(&mount.directory);
    let private = Private { checkout: project.checkout.clone(), memory: project.memory.path.clone() };
    let is_new = project.is_private && !Book::of(settings)?.private.contains(&private);
    if !is_new && !mounts::of(settings)?.iter().any(is_its) {
        return Ok(());
    }
    let _turn = book::turn(settings)?;
    let mut all = mounts::of(settings)?;
    let before = all.len();
    all.retain(|mount| !is_its(mount));
    if all.len() < before {
        mounts::save(settings, &all)?;
    }
    if is_new {
        let mut book = Book::of(settings)?;
        // A worktree that was moved took its setting along.
        book.private.retain(|other| other.memory != private.memory);
        book.private.push(private);
        book.save(settings)?;
    }
    Ok(())
}

/// Binds a directory whose project is gone to another project: its files are merged into it.
pub(crate) fn bind_left_over(settings: &Settings, directory: &Path, id: &str) -> Result<(), CommandError> {
    let directory = directory.canonicalize().map_err(|error| cannot(directory, error))?;
    let Some(prefix) = prefix_of(id) else { return Ok(()) };
    private::refuse_in_use(settings, &directory)?;
    if let Some(why) = mounts::refused(settings, &directory) {
        return Err(refusal(&directory, &why));
    }
    let _turn = book::turn(settings)?;
    let mut all = mounts::of(settings)?;
    if all.iter().any(|mount| mount.directory == directory) {
        return Err(CommandError::user(
            format!("{} is bound already", shown(&directory)),
            "See to what: haversack mount list",
        ));
    }
    let mut book = Book::of(settings)?;
    if book.private.iter().any(|private| private.memory.canonicalize().is_ok_and(|of| of == directory)) {
        book.private.retain(|private| private.memory.canonicalize().map_or(true, |of| of != directory));
        book.save(settings)?;
    }
    all.push(Mount { directory, prefix });
    mounts::save(settings, &all)?;
    home::adopt(settings)
}

/// A link, or a setting, may lead to a directory that must never be carried.
fn refuse(settings: &Settings, project: &Project, directory: &Path) -> Result<(), CommandError> {
    let is_by_rule = project.memory.by == ChosenBy::Rule && directory.ends_with("memory");
    let is_home = mounts::refused(settings, directory).filter(|why| !is_by_rule || why.contains("own home"));
    is_home.map_or(Ok(()), |why| Err(refusal(directory, &why)))
}

/// Takes over the memory of a project whose directory was moved: what was agreed on about it comes along.
fn move_here(
    settings: &Settings,
    book: &Book,
    all: &mut [Mount],
    prefix: &Locator,
    directory: &Path,
) -> Result<Option<usize>, CommandError> {
    let is_left = |mount: &&mut Mount| {
        let seen = book.seen.iter().find(|seen| seen.memory == mount.directory);
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

/// Returns the directories of subagents that are there, or have something to come, and are not bound yet.
fn agents(claude: &ClaudeCode, project: &Project, id: &str, all: &[Mount]) -> Vec<Mount> {
    let mut wanted: Vec<(PathBuf, String)> = vec![(claude.agents(), AGENTS.to_owned())];
    let own = project.checkout.join(".claude");
    wanted
        .extend(PROJECT_AGENTS.map(|(name, ending)| (own.join(name), format!("claude_memory/{id}{ending}"))));
    let mounts = wanted.into_iter().filter_map(|(directory, prefix)| {
        let directory = directory.canonicalize().ok().filter(|directory| directory.is_dir())?;
        Some(Mount { directory, prefix: Locator::parse(&prefix).ok()? })
    });
    mounts.filter(|mount| all.iter().all(|other| other.directory != mount.directory)).collect()
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
        "Keep the memory in a directory of its own",
    )
}
