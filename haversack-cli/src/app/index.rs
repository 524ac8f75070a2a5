//! Reviews and tidies the index of a project's memory.

use std::collections::{BTreeMap, BTreeSet};

use haversack::index::{self, FILE, Review};
use haversack::kind::Load;
use haversack::memory_tool::{Answer, Command, Content, MemoryTool};
use haversack::remember;
use haversack::store::{Backend, BackendExt, EntryKind, Locator, block_on};
use haversack::{Memory, Rewritten, rewrite};

use super::session::uses;
use crate::error::CommandError;
use crate::home::kinds;
use crate::projects::border;
use crate::settings::Settings;

/// An index that was reviewed.
pub(crate) struct Reviewed {
    /// The index.
    pub(crate) file: Locator,
    pub(crate) review: Review,
}

/// Reviews the index below a place.
pub(crate) fn review(
    settings: &Settings,
    memory: &Memory,
    place: &Locator,
) -> Result<Reviewed, CommandError> {
    let file = place.child(FILE).expect("a plain name");
    let text = block_on(memory.files().read_text(&file))?.unwrap_or_default();
    let mut review = index::review(&text, &memories(memory, place)?);
    let kinds = kinds::load(settings)?;
    // Every session starts with these, listed or not.
    review
        .unlisted
        .retain(|name| place.child(name).is_ok_and(|locator| kinds.by_name(&locator).1.load != Load::Start));
    Ok(Reviewed { file, review })
}

/// Puts the index below a place in order; returns true if that changed it.
pub(crate) fn tidy(settings: &Settings, memory: &Memory, place: &Locator) -> Result<bool, CommandError> {
    let Reviewed { file, review } = review(settings, memory, place)?;
    let mut entries = Vec::new();
    for name in &review.unlisted {
        let Ok(locator) = place.child(name) else { continue };
        if let Some(text) = block_on(memory.files().read_text(&locator))? {
            entries.push(remember::written(&locator, &text).entry);
        }
    }
    let uses: BTreeMap<String, u64> = match border::here(settings) {
        Some(project) if project.prefix().as_ref() == Some(place) => {
            uses::read(&uses::file(settings, &project))
        }
        Some(_) | None => BTreeMap::new(),
    };
    let done = block_on(rewrite(memory, &file, |text| {
        let text = text.unwrap_or("# Memory\n\n");
        // An entry that another program added meanwhile is not added twice.
        let listed = |entry: &String| {
            entry
                .split_once("](")
                .and_then(|(_, rest)| rest.split_once(')'))
                .is_some_and(|(name, _)| text.contains(&format!("]({name})")))
        };
        let new: Vec<String> = entries.iter().filter(|entry| !listed(entry)).cloned().collect();
        Some(index::tidied(text, &uses, &new))
    }))?;
    Ok(done == Rewritten::Changed)
}

/// Returns the warning for a writer whose index sessions do not read to its end; `None` if they do.
pub(crate) fn overflow(memory: &Memory, written: &Locator) -> Option<String> {
    let file = match written.name() {
        FILE => written.clone(),
        _ => written.parent()?.child(FILE).ok()?,
    };
    let text = block_on(memory.files().read_text(&file)).ok().flatten()?;
    overflow_of(&file, &text)
}

/// Returns the same warning for an index with this text.
pub(crate) fn overflow_of(file: &Locator, text: &str) -> Option<String> {
    let overflow = index::overflow(text)?;
    Some(format!(
        "{file} has {} lines now, and sessions read the first {}. What is cut: haversack index",
        overflow.lines, overflow.read
    ))
}

/// Runs a command of the memory tool, and adds the warning to its answer if it wrote such an index.
pub(crate) fn answered(memory: &Memory, tool: &MemoryTool, command: Command) -> Answer {
    let index = written_index(&command);
    let mut answer = block_on(tool.answer(command));
    if let Some(told) = index.filter(|_| !answer.is_error).and_then(|index| overflow(memory, &index))
        && let Content::Text(text) = &mut answer.content
    {
        text.push_str(&format!("\n{told}"));
    }
    answer
}

/// Returns the index that a command writes, if it writes one.
fn written_index(command: &Command) -> Option<Locator> {
    let path = match command {
        Command::Create { path, .. } | Command::StrReplace { path, .. } | Command::Insert { path, .. } => {
            path
        }
        Command::View { .. } | Command::Delete { .. } | Command::Rename { .. } => return None,
    };
    let below = path.strip_prefix("/memories/")?;
    Locator::parse(below).ok().filter(|locator| locator.name() == FILE)
}

/// Returns the names of the memory files in a directory, without the index.
fn memories(memory: &Memory, place: &Locator) -> Result<BTreeSet<String>, CommandError> {
    let listing = block_on(Backend::list(memory.files(), place))?;
    let files = listing.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
    let names = files.map(|entry| entry.locator.name().to_owned());
    Ok(names.filter(|name| name.ends_with(".md") && name != FILE && !name.starts_with('.')).collect())
}
