//! Finds memories by their words.

use haversack::Memory;
use haversack::ids::Timestamp;
use haversack::store::{Locator, block_on};
use haversack_recall::{DEFAULT_LIMIT, Hit, Query, Recalled, TextCache};

use crate::error::CommandError;
use crate::projects::border;
use crate::ui::moments::{ago, counted, timestamp};

/// The longest answer of a recall, in bytes, unless more memories are asked for.
const RECALL_BYTES: usize = 4000;

/// The length of a query in an answer.
const QUERY_CHARACTERS: usize = 80;

/// A query and the memories that were found.
pub(crate) struct Recall {
    query: Query,
    pub(crate) recalled: Recalled,
}

/// The reason why a recall has no result.
pub(crate) enum NotRecalled {
    /// The query names the memory of a project that a recall from here does not reach.
    OtherProject(String),
    /// The files could not be read, which says nothing about the memory.
    CouldNotLook(CommandError),
}

/// Looks for memories. The shelf keeps texts between two recalls.
pub(crate) fn recall(memory: &Memory, cache: &mut TextCache, query: Query) -> Result<Recall, NotRecalled> {
    if let Some(why) = border::outside(&query.projects, &query.within) {
        return Err(NotRecalled::OtherProject(why));
    }
    match block_on(cache.recall(memory.files(), &query)) {
        Ok(recalled) => Ok(Recall { query, recalled }),
        Err(error) => Err(NotRecalled::CouldNotLook(error.into())),
    }
}

impl Recall {
    /// Returns the memories, best first, with their passages. `show` returns the name of a file.
    pub(crate) fn text(&self, show: impl Fn(&Locator) -> String, now: Timestamp) -> String {
        let Recall { query, recalled } = self;
        let asked: String = query.text.chars().take(QUERY_CHARACTERS).collect();
        let through = counted(recalled.looked_through, "file");
        let mut lines = match recalled.hits.len() {
            0 => format!("Nothing relevant to \"{asked}\" in {through}.\n"),
            hits => format!(
                "{} for \"{asked}\", best first, of {through}:\n",
                counted(hits, "memory").replace("memorys", "memories")
            ),
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
        if let Some(first) = recalled.unread.first() {
            let unread = counted(recalled.unread.len(), "file");
            lines.push_str(&format!(
                "\n{unread} could not be looked through ({} …), so there may be more.\n",
                show(first)
            ));
        }
        lines
    }
}

fn in_line(name: &str, hit: &Hit, now: Timestamp) -> String {
    let (first, last) = hit.lines;
    let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
    let age = hit.modified.map(|modified| format!(", {}", ago(now, timestamp(modified)))).unwrap_or_default();
    let passage = hit.passage.replace('\n', "\n  ");
    format!("\n{name}:{lines} ({}{age})\n  {passage}\n", hit.kind)
}
