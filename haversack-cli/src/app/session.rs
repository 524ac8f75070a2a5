//! The memory that a session of an agent begins with: the next one, and the ones that were given it.

pub(crate) mod context;
pub(crate) mod context_record;
pub(crate) mod news;

use std::path::{Path, PathBuf};

use haversack::clock::Clock;
use haversack::document::Document;
use haversack::ids::Timestamp;
use haversack_system::SystemClock;

use self::context::{Assembled, Part};
use self::context_record::ContextRecord;
use self::news::News;
use crate::agents::claude_code::{ClaudeCode, slug};
use crate::error::CommandError;
use crate::home::Home;
use crate::projects::Project;
use crate::projects::registry::ProjectRegistry;
use crate::records::private;
use crate::settings::Settings;
use crate::ui::moments::{ago, local};

/// The index of a project's memory.
pub(crate) const INDEX: &str = "MEMORY.md";

/// The files that every session begins with besides the latest digest, in this order.
const ALWAYS: [&str; 2] = ["carry_forward.md", "self_observations.md"];

/// The beginning of the name of a digest; the day follows.
const DIGEST: &str = "session_digest_";

/// The longest file that is looked at for the start of a session.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

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

/// Returns the context that the next session in a project would be given; `None` if there is nothing to say.
pub(crate) fn next(settings: &Settings, project: &Project) -> Option<Assembled> {
    let home = Home::open(settings).ok();
    let news = project.prefix().zip(home);
    let news = news.and_then(|(prefix, home)| News::of(settings, &home, &prefix).ok()).unwrap_or_default();
    let parts = parts(project, &news, SystemClock.now(), false);
    context::assemble(&project.label(settings), &parts)
}

/// Returns the memory that a session begins with. A checkout that only claims to be a project gets none.
pub(crate) fn parts(project: &Project, news: &News, now: Timestamp, is_index_wanted: bool) -> Vec<Part> {
    if project.barrier.is_some() {
        return Vec::new();
    }
    let memory = &project.memory.path;
    let mut names: Vec<String> = latest_digest(memory, now).into_iter().collect();
    names.extend(ALWAYS.map(str::to_owned));
    if is_index_wanted {
        names.push(INDEX.to_owned());
    }
    let parts = names.into_iter().filter_map(|name| {
        let path = memory.join(&name);
        let metadata = path.symlink_metadata().ok()?;
        let text = if metadata.is_file() && metadata.len() <= MAX_FILE_BYTES {
            std::fs::read(&path).ok()?
        } else {
            return None;
        };
        let text = String::from_utf8_lossy(&text);
        let author = news.authors.iter().find(|(locator, _)| locator.as_str().ends_with(&format!("/{name}")));
        let from =
            author.map(|(_, (device, time))| format!("{device}, {}", ago(now, *time))).unwrap_or_default();
        Some(Part { text: Document::read(&text).body.to_owned(), name, from })
    });
    parts.collect()
}

/// Returns the name of today's digest, or else of the latest.
fn latest_digest(memory: &Path, now: Timestamp) -> Option<String> {
    let entries = std::fs::read_dir(memory).ok()?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let digests: Vec<String> =
        names.filter(|name| name.starts_with(DIGEST) && name.ends_with(".md")).collect();
    let today = format!("{DIGEST}{}.md", &local(now)[..10]);
    match digests.contains(&today) {
        true => Some(today),
        false => digests.into_iter().max(),
    }
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
    let now = SystemClock.now();
    let stamp = local(now).replace([' ', ':'], "-");
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

/// Returns the directory of the summaries of a project's compacted conversations.
fn summaries_of(settings: &Settings, project: &Project) -> PathBuf {
    let by_path = |path: &Path| slug::slug(&path.to_string_lossy());
    let name = match &project.id {
        _ if project.is_private => format!("{}.private", by_path(&project.checkout)),
        // A checkout that only claims to be a project does not get at the project's summaries.
        _ if project.barrier.is_some() => format!("{}.unproven", by_path(&project.checkout)),
        Some(id) => id.clone(),
        None => by_path(&project.root),
    };
    settings.home.join("sessions").join(name)
}
