//! Finds memories by their words.

use std::collections::BTreeSet;
use std::path::PathBuf;

use haversack::Memory;
use haversack::ids::Timestamp;
use haversack::kind::{Kinds, Load};
use haversack::store::{DerivedMaintenance, Locator, Tier, block_on};
use haversack_recall::{
    ByMeaning, DEFAULT_LIMIT, Duplicate, ErrorKind, FoundBy, Health, Hit, IndexedMemory, MemorySearch,
    PassageOf, Place, Projects, Query, Recalled, Span, Thoroughness, Unit, health,
};
use jiff::civil::Date;

use super::model;
use crate::error::{CommandError, Fault};
use crate::home::kinds;
use crate::home::store::{is_local, open_to_look};
use crate::projects::border;
use crate::records::private;
use crate::settings::Settings;
use crate::ui::moments::{ago, counted, timestamp};

/// The longest answer of a recall, in bytes, unless more memories are asked for.
const RECALL_BYTES: usize = 4000;

/// The number of memories that are listed if none is relevant.
const MAX_NEAREST: usize = 2;

/// The length of a query in an answer.
const QUERY_CHARACTERS: usize = 80;

/// A caller's query, as it was typed.
#[derive(Clone, Debug)]
pub(crate) struct RecallRequest {
    pub(crate) text: String,
    /// The place to search; everywhere if it is the root.
    pub(crate) within: Locator,
    pub(crate) projects: Projects,
    /// The names of kinds; all kinds if there is none.
    pub(crate) kinds: Vec<String>,
    /// The first and the last time that a memory may be about.
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) unit: Unit,
    pub(crate) limit: usize,
}

/// A query and the memories that were found.
pub(crate) struct Recall {
    query: Query,
    pub(crate) recalled: Recalled,
}

/// The reason why a recall has no result.
pub(crate) enum NotRecalled {
    /// The query names the memory of a project that a recall from here does not reach.
    OtherProject(String),
    /// The query names a kind or a time that we do not know.
    Unknown(CommandError),
    /// The files could not be read, which says nothing about the memory.
    CouldNotLook(CommandError),
}

/// Returns a search for the memories of a home. Its index is in `index/`, unless a sync client or another machine could change it there.
pub(crate) fn search(settings: &Settings) -> MemorySearch {
    let file = index_file(settings);
    let is_home = settings.memory().is_dir();
    let is_ready = || file.parent().is_some_and(|directory| private::create_directories(directory).is_ok());
    // Looking makes no home: a mistyped `--home` would leave a new one behind.
    match is_home && is_local(settings) && is_ready() {
        true => model::use_in(settings, MemorySearch::new(Place::File(file))),
        false => MemorySearch::new(Place::Memory),
    }
}

/// Returns the file of the index.
pub(crate) fn index_file(settings: &Settings) -> PathBuf {
    settings.store().index().join("recall.sqlite")
}

/// The state of the index, for people.
pub(crate) struct IndexHealth {
    pub(crate) is_well: bool,
    /// True if the index can be made again ([`rebuild_index`]).
    pub(crate) is_damaged: bool,
    pub(crate) sentence: String,
}

/// Looks at the index and changes nothing; `None` if there is nothing to say, because the home has none yet.
pub(crate) fn index_health(settings: &Settings, thoroughness: Thoroughness) -> Option<IndexHealth> {
    let well = |sentence: String| Some(IndexHealth { is_well: true, is_damaged: false, sentence });
    let unwell = |sentence: &str| {
        Some(IndexHealth { is_well: false, is_damaged: false, sentence: sentence.to_owned() })
    };
    if !settings.memory().is_dir() {
        return None;
    }
    if !is_local(settings) {
        return well(
            "none: the home is in a synced folder or on a network disk, so recall reads the files each time"
                .to_owned(),
        );
    }
    match health(&index_file(settings), thoroughness) {
        Health::Missing => None,
        Health::Healthy { size, bytes, vectors } => {
            let vectors = match model::state(settings) {
                model::State::Ready => {
                    format!("; the model has read {} of {} passages", vectors.done, vectors.all)
                }
                model::State::Without | model::State::NotBuiltIn => String::new(),
            };
            well(format!(
                "{} and {}, {} KB{vectors}",
                counted(size.files, "file"),
                counted(size.passages, "passage"),
                bytes.div_ceil(1024)
            ))
        }
        Health::Damaged => Some(IndexHealth {
            is_well: false,
            is_damaged: true,
            sentence: "damaged or of an earlier version: the next recall makes it again".to_owned(),
        }),
        Health::Newer => unwell(
            "a newer version of haversack wrote it: recall reads the files each time until this one is upgraded",
        ),
        Health::Unusable => unwell("it cannot be opened: recall reads the files each time"),
    }
}

/// Makes an index again that is damaged or of an earlier version. Returns true if it is well now.
pub(crate) fn rebuild_index(settings: &Settings) -> Result<bool, CommandError> {
    let examined = || index_health(settings, Thoroughness::Everything);
    if !examined().is_some_and(|health| health.is_damaged) {
        return Ok(false);
    }
    let (memory, kinds, search) = (open_to_look(settings)?, kinds::load(settings)?, search(settings));
    let index = IndexedMemory { search: &search, files: memory.files(), kinds: &kinds };
    block_on(index.reindex(Tier::LocalIndex))?;
    Ok(examined().is_some_and(|health| health.is_well))
}

/// Returns how much of the memory the model for search by meaning has read; `None` without a model.
pub(crate) fn model_progress(settings: &Settings) -> Option<String> {
    if model::state(settings) != model::State::Ready {
        return None;
    }
    match health(&index_file(settings), Thoroughness::Outside) {
        Health::Healthy { vectors, .. } => {
            Some(format!("the model has read {} of {} passages", vectors.done, vectors.all))
        }
        Health::Missing | Health::Damaged | Health::Newer | Health::Unusable => None,
    }
}

/// Looks for memories. The search keeps its index between two recalls.
pub(crate) fn recall(
    settings: &Settings,
    memory: &Memory,
    search: &MemorySearch,
    wanted: RecallRequest,
) -> Result<Recall, NotRecalled> {
    recall_with(settings, wanted, |kinds, query| block_on(search.recall(memory.files(), kinds, query)))
}

/// Looks for memories as the search knew them when it was refreshed last, for a process that refreshes it by itself.
pub(crate) fn recall_as_known(
    settings: &Settings,
    memory: &Memory,
    search: &MemorySearch,
    wanted: RecallRequest,
) -> Result<Recall, NotRecalled> {
    recall_with(settings, wanted, |_, query| block_on(search.recall_as_known(memory.files(), query)))
}

fn recall_with(
    settings: &Settings,
    wanted: RecallRequest,
    find: impl FnOnce(&Kinds, &Query) -> haversack_recall::Result<Recalled>,
) -> Result<Recall, NotRecalled> {
    if let Some(why) = border::outside(&wanted.projects, &wanted.within) {
        return Err(NotRecalled::OtherProject(why));
    }
    let kinds = kinds::load(settings).map_err(NotRecalled::CouldNotLook)?;
    let mut named = BTreeSet::new();
    for kind in &wanted.kinds {
        named.insert(kinds::named(&kinds, kind).map_err(NotRecalled::Unknown)?.name.clone());
    }
    let today = today(settings);
    let span = |text: &Option<String>| text.as_deref().map(|text| understood(text, today)).transpose();
    let query = Query {
        within: wanted.within,
        projects: wanted.projects,
        kinds: named,
        since: span(&wanted.since).map_err(NotRecalled::Unknown)?.map(|span| span.first),
        until: span(&wanted.until).map_err(NotRecalled::Unknown)?.map(|span| span.last),
        unit: wanted.unit,
        limit: wanted.limit,
        ..Query::new(wanted.text, today)
    };
    match find(&kinds, &query) {
        Ok(recalled) => Ok(Recall { query, recalled }),
        Err(error) => Err(NotRecalled::CouldNotLook(failed(error))),
    }
}

/// Takes the changes of the memory into the index.
pub(crate) fn refresh(settings: &Settings) -> Result<(), CommandError> {
    refresh_search(settings, &search(settings))
}

/// Takes the changes of the memory into the index of a search.
pub(crate) fn refresh_search(settings: &Settings, search: &MemorySearch) -> Result<(), CommandError> {
    let kinds = kinds::load(settings)?;
    let memory = open_to_look(settings)?;
    block_on(search.refresh(memory.files(), &kinds)).map(drop).map_err(failed)
}

/// Takes the changes of the memory into the index if there is one: a home in which nobody recalls needs none.
pub(crate) fn refresh_if_used(settings: &Settings) -> Result<(), CommandError> {
    if index_file(settings).is_file() { refresh(settings) } else { Ok(()) }
}

/// Returns the passages that say nearly the same, below a place, in the memory that a recall from here could find.
pub(crate) fn duplicates(settings: &Settings, below: &Locator) -> Result<Vec<Duplicate>, CommandError> {
    let memory = open_to_look(settings)?;
    let projects = border::reach(settings, border::Breadth::ThisProject);
    if let Some(why) = border::outside(&projects, below) {
        return Err(CommandError::user(why, "Run the command in a checkout of that project"));
    }
    let mut found = block_on(haversack_recall::duplicates(memory.files(), below, &projects))?;
    // Logs, proposals and other data repeat what memories say.
    let kinds = kinds::load(settings)?;
    let is_memory = |passage: &PassageOf| kinds.by_name(&passage.locator).1.load != Load::Never;
    found.retain(|pair| is_memory(&pair.one) && is_memory(&pair.other));
    Ok(found)
}

/// Returns the present day in the user's time zone.
pub(crate) fn today(settings: &Settings) -> Date {
    // Both write a day in the same form.
    settings.today().to_string().parse().unwrap_or(Date::MAX)
}

fn understood(text: &str, today: Date) -> Result<Span, CommandError> {
    Span::parse(text, today).map_err(|error| {
        CommandError::user(
            error.to_string(),
            "For example: --since 2026-11-01, --since \"last week\" or --until March",
        )
    })
}

pub(super) fn failed(error: haversack_recall::Error) -> CommandError {
    match error.into_files() {
        Ok(error) => error.into(),
        Err(error) => CommandError::caused(Fault::Ours, &error, None),
    }
}

impl Recall {
    /// Returns the memories, best first, with their passages. `show` returns the name of a file.
    pub(crate) fn text(&self, show: impl Fn(&Locator) -> String, now: Timestamp) -> String {
        let Recall { query, recalled } = self;
        let asked: String = query.text.chars().take(QUERY_CHARACTERS).collect();
        let through = counted(recalled.looked_through, "file");
        let mut lines = match (recalled.hits.len(), query.unit) {
            (0, _) => format!("Nothing relevant to \"{asked}\" in {through}.{}\n", self.nearest(&show)),
            (hits, Unit::Memory) => format!(
                "{} for \"{asked}\", best first, of {through}:\n",
                counted(hits, "memory").replace("memorys", "memories")
            ),
            (hits, Unit::Passage) => {
                format!("{} for \"{asked}\", best first, of {through}:\n", counted(hits, "passage"))
            }
        };
        let most = if query.limit > DEFAULT_LIMIT { usize::MAX } else { RECALL_BYTES };
        for (number, hit) in recalled.hits.iter().enumerate() {
            let shown = in_line(&show(&hit.locator), hit, now);
            if lines.len() + shown.len() > most {
                lines.push_str(&format!(
                    "\n{} more: ask for them by narrower words.\n",
                    recalled.hits.len() - number
                ));
                break;
            }
            lines.push_str(&shown);
        }
        if let ByMeaning::Failed(why) = &recalled.by_meaning {
            lines.push_str(&format!("\nOnly words were searched, because the model cannot be used: {why}\n"));
        }
        if let Some(first) = recalled.unread.first() {
            let unread = counted(recalled.unread.len(), "file");
            lines.push_str(&format!(
                "\n{unread} could not be looked through ({} …), so there may be more.\n",
                show(first)
            ));
        }
        lines
    }

    /// Returns the names of memories that have too few of the words to be relevant, as a sentence.
    fn nearest(&self, show: impl Fn(&Locator) -> String) -> String {
        let nearest = self.recalled.nearly.iter().take(MAX_NEAREST);
        let shown: Vec<String> = nearest
            .map(|hit| format!("{} ({}{})", show(&hit.locator), found_by(&hit.found_by), label(hit)))
            .collect();
        if shown.is_empty() { String::new() } else { format!(" Nearest: {}.", shown.join("; ")) }
    }

    /// Returns how each score came about, and what was nearly found.
    pub(crate) fn explanation(&self, show: impl Fn(&Locator) -> String) -> String {
        let Recall { recalled, .. } = self;
        let mut lines = format!("Looked for: {}\n", recalled.words.join(", "));
        match &recalled.by_meaning {
            ByMeaning::No => {}
            ByMeaning::Compared(count) => {
                lines.push_str(&format!("By meaning too: {} of {} passages\n", count.done, count.all));
            }
            ByMeaning::Failed(why) => lines.push_str(&format!("By words only: {why}\n")),
        }
        if let Some(kind) = recalled.without_index {
            lines.push_str(&format!("Without the index in the home: {}\n", without_index(kind)));
        }
        let explained = |hit: &Hit| {
            let parts = &hit.parts;
            let meaning =
                if parts.meaning > 0.0 { format!(", meaning {:.2}", parts.meaning) } else { String::new() };
            let in_time = if parts.is_in_time { ", of the time that the query names" } else { "" };
            format!(
                "{}:{}  score {:.3}: passage {:.2}, neighbours {:.2}, file {:.2}{meaning}{in_time}; {:.0} % of the query, {}{}\n",
                show(&hit.locator),
                hit.lines.0,
                hit.score,
                parts.passage,
                parts.neighbours,
                parts.file,
                100.0 * parts.coverage,
                found_by(&hit.found_by),
                label(hit)
            )
        };
        recalled.hits.iter().for_each(|hit| lines.push_str(&explained(hit)));
        if !recalled.nearly.is_empty() {
            lines.push_str("Too far from the query to be relevant:\n");
            recalled.nearly.iter().for_each(|hit| lines.push_str(&explained(hit)));
        }
        lines
    }

    /// Returns where the words of the query are in a text, as ranges of bytes.
    pub(crate) fn matches(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        self.query.matches(text)
    }
}

/// Returns true if some passages still lack the vectors that the model makes.
pub(crate) fn is_model_behind(recalled: &Recalled, settings: &Settings) -> bool {
    match &recalled.by_meaning {
        ByMeaning::No => model::state(settings) == model::State::Ready && is_local(settings),
        ByMeaning::Compared(count) => count.done < count.all,
        ByMeaning::Failed(_) => false,
    }
}

/// Returns the reason why the index in the home could not be used.
pub(crate) fn without_index(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Newer => "a newer version of haversack wrote it",
        ErrorKind::Busy => "other processes kept it locked",
        ErrorKind::Unwritable => "it cannot be written",
        ErrorKind::Damaged => "it is damaged and cannot be made again",
        _ => "it cannot be used",
    }
}

/// Returns how a hit was found, in words.
pub(crate) fn found_by(found_by: &FoundBy) -> String {
    match found_by {
        FoundBy::AllWords => "all words".to_owned(),
        FoundBy::OtherForms => "all words, some in other forms".to_owned(),
        FoundBy::FewerWords(missing) => format!("without {}", missing.join(", ")),
        FoundBy::Meaning => "by meaning".to_owned(),
    }
}

/// Returns why a hit is out of date, as the end of a list; empty if it is not.
fn label(hit: &Hit) -> String {
    hit.outdated.as_ref().map(|outdated| format!(", {outdated}")).unwrap_or_default()
}

fn in_line(name: &str, hit: &Hit, now: Timestamp) -> String {
    let (first, last) = hit.lines;
    let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
    let age = hit.modified.map(|modified| format!(", {}", ago(now, timestamp(modified)))).unwrap_or_default();
    let outdated = label(hit);
    let missing = match &hit.found_by {
        FoundBy::FewerWords(_) | FoundBy::Meaning => format!(", {}", found_by(&hit.found_by)),
        FoundBy::AllWords | FoundBy::OtherForms => String::new(),
    };
    let passage = hit.passage.replace('\n', "\n  ");
    format!("\n{name}:{lines} ({}{age}{outdated}{missing})\n  {passage}\n", hit.kind)
}
