//! The borders of a process's directory: decides if its writes may be carried, and which projects its recall reaches.
//!
//! Every face that writes for an agent asks [`Guard`]; every face that recalls asks [`reach`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haversack::store::Locator;
use haversack_recall::Projects;

use super::registry::ProjectRegistry;
use super::{KnownBy, NO_PROJECT, Project, git, identity, is_meant, proof};
use crate::agents::claude_code::{ClaudeCode, slug};
use crate::error::CommandError;
use crate::home::mounts;
use crate::remote::Remote;
use crate::settings::{Settings, files};

/// The time that an answer of the guard is cached: a long-lived process must notice that its project was excluded.
const FRESH: Duration = Duration::from_secs(1);

/// The party that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    /// An agent, or a program that serves one.
    Agent,
    /// A command that a person may have typed.
    Command,
}

/// Refuses writes from a project whose memory stays on this machine. What our faces write is carried.
pub(crate) struct Guard {
    settings: Settings,
    face: Face,
    last: Option<(Instant, Option<Refusal>)>,
}

/// Why a write is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    why: String,
    /// The directory of the project's own memory.
    memory: PathBuf,
}

impl Guard {
    pub(crate) fn new(settings: &Settings, face: Face) -> Guard {
        Guard { settings: settings.clone(), face, last: None }
    }

    /// Returns why nothing may be written from the current directory; `None` if it may.
    pub(crate) fn refusal(&mut self) -> Option<Refusal> {
        let is_fresh = |(then, _): &&(Instant, Option<Refusal>)| then.elapsed() < FRESH;
        if let Some((_, answer)) = self.last.as_ref().filter(is_fresh) {
            return answer.clone();
        }
        let answer = here(&self.settings).and_then(|project| refusal(&self.settings, &project, self.face));
        self.last = Some((Instant::now(), answer.clone()));
        answer
    }
}

impl Refusal {
    /// Returns the refusal as a model reads it.
    pub(crate) fn for_model(&self) -> String {
        format!(
            "Error: {}, and this tool writes memory that is sent to other machines. Nothing was written. Write the fact as a file into {} with your own tools, and its line into MEMORY.md there",
            self.why,
            self.memory.display()
        )
    }

    /// Returns the refusal as a person reads it.
    pub(crate) fn for_user(&self) -> CommandError {
        CommandError::user(
            format!("{}, so nothing was written", self.why),
            "If the text may be sent to your other machines, run the same command in another directory",
        )
    }
}

/// Returns the project of the current directory.
pub(crate) fn here(settings: &Settings) -> Option<Project> {
    let here = std::env::current_dir().ok()?;
    let claude = ClaudeCode::of(settings, None)?;
    Some(Project::of(settings, &claude, &ProjectRegistry::of(settings).ok()?, &here))
}

/// Returns the place of the current directory's project, if its memory is carried.
pub(crate) fn place_here(settings: &Settings) -> Option<Locator> {
    let prefix = here(settings)?.prefix()?;
    let mounts = mounts::of(settings).ok()?;
    mounts.iter().any(|mount| mount.prefix == prefix && mount.is_there()).then_some(prefix)
}

/// Returns the place of the current directory's project if its memory is carried, and otherwise the place of memory that belongs to no project.
pub(crate) fn place_of_facts(settings: &Settings) -> Locator {
    let nobodys = || Locator::parse(NO_PROJECT).expect("a plain name");
    place_here(settings).unwrap_or_else(nobodys)
}

fn refusal(settings: &Settings, project: &Project, face: Face) -> Option<Refusal> {
    let why = if project.is_private {
        "this worktree has private memory, which stays on this machine"
    } else if project.is_excluded {
        "the memory of this project stays on this machine: the user excluded it"
    } else if project.barrier.is_some() {
        "this checkout is not known to be the project that it names, so its memory stays on this machine"
    } else if is_unnamed(settings, project, face) {
        "the memory of this project stays on this machine until the user gives it a name (haversack project name)"
    } else {
        return None;
    };
    Some(Refusal { why: why.to_owned(), memory: project.memory.path.clone() })
}

/// Returns true if an agent works in a project of Claude Code's that has no name and no repository address. A directory that Claude
/// Code never saw is no project, and without a remote nothing is carried.
fn is_unnamed(settings: &Settings, project: &Project, face: Face) -> bool {
    let is_agent = face == Face::Agent || settings.writer.agent.is_some();
    let is_known_to_agent = || {
        let claude = ClaudeCode::of(settings, None);
        let name = slug::slug(&project.root.to_string_lossy());
        claude.is_some_and(|claude| claude.projects().join(name).is_dir())
    };
    project.known_by == KnownBy::Nothing
        && is_agent
        && is_known_to_agent()
        && !matches!(Remote::recorded(settings), Ok(None))
}

/// The reach of a recall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breadth {
    /// The project of the current directory, and memory of no project.
    ThisProject,
    /// All projects that are not excluded.
    Everywhere,
}

/// Returns the projects that a recall from the current directory reaches.
///
/// Outside of a checkout there is no project to stay in. Excluded projects are reached only from their own checkouts.
pub(crate) fn reach(settings: &Settings, breadth: Breadth) -> Projects {
    let project = here(settings);
    let own = project.as_ref().filter(|project| project.barrier.is_none()).and_then(|own| own.id.clone());
    let is_checkout = project.as_ref().is_some_and(|project| {
        project.known_by != KnownBy::Nothing || git::find(&project.checkout).is_some()
    });
    if breadth == Breadth::ThisProject && is_checkout {
        return Projects::Only(own.into_iter().collect());
    }
    reach_from_anywhere(settings, own.as_deref())
}

/// Returns all projects that are not excluded, for a caller without a directory.
pub(crate) fn reach_from_anywhere(settings: &Settings, own: Option<&str>) -> Projects {
    let mut excluded = excluded(settings);
    if let Some(own) = own {
        excluded.remove(own);
    }
    Projects::AllBut(excluded)
}

/// Returns the ids of excluded projects that the store may still have memory of.
fn excluded(settings: &Settings) -> BTreeSet<String> {
    let registry = ProjectRegistry::of(settings).unwrap_or_default();
    let user = settings.surroundings.user.as_deref();
    let patterns = settings.excluded_projects.split(',').chain(registry.exclude.iter().map(String::as_str));
    let patterns: Vec<&str> = patterns.map(str::trim).filter(|pattern| !pattern.is_empty()).collect();
    let is_excluded = |root: &Path, address: Option<&str>, id: &str| {
        patterns.iter().any(|pattern| is_meant(pattern, user, root, address, Some(id)))
    };
    let mut ids: BTreeSet<String> = patterns
        .iter()
        .filter_map(|pattern| identity::normalise(pattern))
        .map(|address| identity::id_of_repository(&address))
        .collect();
    for seen in &registry.seen {
        let address = git::find(&seen.root).and_then(|repository| repository.remote());
        let address = address.as_deref().and_then(identity::normalise);
        if is_excluded(&seen.root, address.as_deref(), &seen.id) || files::keeps_memory_local(&seen.root) {
            ids.insert(seen.id.clone());
        }
    }
    for (id, address) in proof::addresses(settings) {
        if is_excluded(Path::new(""), Some(&address), &id) {
            ids.insert(id);
        }
    }
    ids
}

/// Returns why a recall below a directory finds nothing, if that is the memory of a project that it does not reach.
pub(crate) fn outside(projects: &Projects, within: &Locator) -> Option<String> {
    let project = haversack_recall::project_of(within)?;
    let is_outside = !projects.hold(within);
    is_outside.then(|| format!("{project} is another project, which a recall from here does not reach"))
}
