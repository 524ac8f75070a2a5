//! The memory that a session of an agent begins with: the next one, and the ones that were given it.

pub(crate) mod context_record;
pub(crate) mod news;
pub(crate) mod uses;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use haversack::context::{Assembled, Budget, GatheredFrom, Index, Reach, gather};
use haversack::ids::Timestamp;
use haversack::store::{DeviceLocal, Locator, block_on};

use self::context_record::ContextRecord;
use self::news::News;
use crate::agents::claude_code::{ClaudeCode, slug};
use crate::error::CommandError;
use crate::home::{Home, kinds};
use crate::projects::Project;
use crate::projects::registry::ProjectRegistry;
use crate::records::private;
use crate::settings::Settings;
use crate::ui::moments::{ago, local};

/// The index of a project's memory.
pub(crate) const INDEX: &str = "MEMORY.md";

/// The longest text of a hook. Claude Code takes 10,000 characters in one piece.
const MAX_HOOK_CHARACTERS: usize = 9_400;

/// The number of a project's compaction summaries that are kept.
const MAX_SUMMARIES: usize = 50;

/// The longest summary that is kept.
const MAX_SUMMARY_BYTES: usize = 256 * 1024;

/// Returns the contexts that the last sessions were given, the newest first.
pub(crate) fn last(settings: &Settings, count: usize) -> Vec<ContextRecord> {
    context_record::all(settings).into_iter().take(count).collect()
}

/// Returns the project of the current directory.
pub(crate) fn project_here(settings: &Settings) -> Result<Project, CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    let here = std::env::current_dir()?;
    Ok(Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &here))
}

/// Returns the projects whose checkouts were seen on this machine and are there.
pub(crate) fn projects(settings: &Settings) -> Result<Vec<Project>, CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    let registry = ProjectRegistry::of(settings)?;
    let roots = registry.seen.iter().map(|seen| &seen.root).filter(|root| root.is_dir());
    Ok(roots.map(|root| Project::of(settings, &claude, &registry, root)).collect())
}

/// The parameters of a context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) budget: Budget,
    pub(crate) reach: Reach,
    pub(crate) index: Index,
}

impl Wanted {
    /// Returns what a hook gives to a session.
    pub(crate) fn by_hook(settings: &Settings, index: Index) -> Wanted {
        let budget = Budget { tokens: settings.context_tokens, characters: MAX_HOOK_CHARACTERS };
        Wanted { budget, reach: Reach::Start, index }
    }
}

/// Returns the context that the next session in a project would be given.
pub(crate) fn next(
    settings: &Settings,
    project: &Project,
    wanted: Wanted,
) -> Result<Assembled, CommandError> {
    let home = Home::open(settings).ok();
    let news = project.prefix().zip(home);
    let news = news.and_then(|(prefix, home)| News::of(settings, &home, &prefix).ok()).unwrap_or_default();
    assembled(settings, project, &news, wanted)
}

/// Returns the memory that a session begins with. A checkout that only claims to be a project gets none.
pub(crate) fn assembled(
    settings: &Settings,
    project: &Project,
    news: &News,
    wanted: Wanted,
) -> Result<Assembled, CommandError> {
    if project.barrier.is_some() || !project.memory.path.is_dir() {
        return Ok(Assembled::default());
    }
    let files = DeviceLocal::open_real(&project.memory.path, settings.shared_locks())?;
    let (now, label) = (settings.now(), project.label(settings));
    let prefix = project.prefix().unwrap_or_else(Locator::root);
    let below = |locator: &'_ Locator| {
        let name = locator.as_str().strip_prefix(prefix.as_str())?.trim_start_matches('/');
        (!name.is_empty()).then(|| name.to_owned())
    };
    let authors: HashMap<String, &(String, Timestamp)> =
        news.authors.iter().filter_map(|(locator, author)| Some((below(locator)?, author))).collect();
    let from = |name: &str| {
        authors.get(name).map(|(device, time)| format!("{device}, {}", ago(now, *time))).unwrap_or_default()
    };
    let uses = uses::of(settings, project);
    let Wanted { budget, reach, index } = wanted;
    let gathered = GatheredFrom {
        files: &files,
        place: Locator::root(),
        kinds: &kinds::load(settings)?,
        project: &label,
        today: settings.today(),
        reach,
        index,
        uses: &uses,
        from: &from,
    };
    Ok(block_on(gather(&gathered, budget))?)
}

/// Keeps the summary of a compacted conversation. It stays on this machine.
pub(crate) fn keep_summary(
    settings: &Settings,
    project: &Project,
    session: Option<&str>,
    summary: &str,
) -> Result<(), CommandError> {
    let directory = summaries_of(settings, project);
    let session: String = slug::slug(session.unwrap_or("session")).chars().take(40).collect();
    let now = settings.now();
    // Two compactions may be in one minute.
    let stamp = format!("{}-{:05}", local(now).replace([' ', ':'], "-"), now.0.rem_euclid(60_000));
    let mut end = summary.len().min(MAX_SUMMARY_BYTES);
    while !summary.is_char_boundary(end) {
        end -= 1;
    }
    let text = format!("# {} {session}\n\n{}\n", local(now), summary[..end].trim_end());
    let write = || -> std::io::Result<()> {
        private::write(&directory.join(format!("{stamp}-{session}.md")), text.as_bytes())?;
        let names = std::fs::read_dir(&directory)?.flatten().map(|entry| entry.path());
        let mut names: Vec<PathBuf> = names.collect();
        names.sort();
        let old = names.len().saturating_sub(MAX_SUMMARIES);
        names.iter().take(old).try_for_each(std::fs::remove_file)
    };
    write().map_err(CommandError::from)
}

/// Returns the summaries of a project's compacted conversations, the oldest first.
pub(crate) fn summaries(settings: &Settings, project: &Project) -> Result<Vec<Vec<u8>>, CommandError> {
    let entries = std::fs::read_dir(summaries_of(settings, project)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files.into_iter().map(|file| std::fs::read(file).map_err(CommandError::from)).collect()
}

/// Returns the summaries of the compacted conversations of one session, the oldest first.
pub(crate) fn summaries_of_session(directory: &Path, session: &str) -> Vec<String> {
    let end = format!("-{}.md", slug::slug(session).chars().take(40).collect::<String>());
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|file| file.to_string_lossy().ends_with(&end)).collect();
    files.sort();
    let texts = files.into_iter().filter_map(|file| std::fs::read_to_string(file).ok());
    // The first line is our heading.
    texts
        .map(|text| text.split_once("\n\n").map_or(text.clone(), |(_, summary)| summary.to_owned()))
        .collect()
}

/// Returns the directory of the summaries of a project's compacted conversations.
pub(crate) fn summaries_of(settings: &Settings, project: &Project) -> PathBuf {
    settings.home.join("sessions").join(private_name(project))
}

/// Returns the name of what is kept of a project on this machine alone.
fn private_name(project: &Project) -> String {
    let by_path = |path: &Path| slug::slug(&path.to_string_lossy());
    match &project.id {
        _ if project.is_private => format!("{}.private", by_path(&project.checkout)),
        // A checkout that only claims to be a project does not get at the project's summaries.
        _ if project.barrier.is_some() => format!("{}.unproven", by_path(&project.checkout)),
        Some(id) => id.clone(),
        None => by_path(&project.root),
    }
}
