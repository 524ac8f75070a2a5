//! Finds memories by their words.

use std::time::UNIX_EPOCH;

use haversack::Memory;
use haversack::ids::Timestamp;
use haversack::store::block_on;
use haversack_recall::{DEFAULT_LIMIT, Hit, Query, Recalled, Shelf};

use crate::error::CommandError;
use crate::projects::border;
use crate::ui::moments::{ago, counted};

/// The longest answer of a recall, in bytes, unless more memories are asked for.
const RECALL_BYTES: usize = 4000;

/// How much of a query is repeated in an answer.
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
pub(crate) fn recall(memory: &Memory, shelf: &mut Shelf, query: Query) -> Result<Recall, NotRecalled> {
    if let Some(why) = border::outside(&query.projects, &query.within) {
        return Err(NotRecalled::OtherProject(why));
    }
    match block_on(shelf.recall(memory.files(), &query)) {
        Ok(recalled) => Ok(Recall { query, recalled }),
        Err(error) => Err(NotRecalled::CouldNotLook(error.into())),
    }
}

impl Recall {
    /// Returns the memories, best first, with their passages.
    pub(crate) fn text(&self, now: Timestamp) -> String {
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
            let shown = in_line(hit, now);
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
                "\n{unread} could not be looked through ({first} …), so there may be more.\n"
            ));
        }
        lines
    }
}

fn in_line(hit: &Hit, now: Timestamp) -> String {
    let (first, last) = hit.lines;
    let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
    let since = hit.modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    let age = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    let age = age.map(|millis| format!(", {}", ago(now, Timestamp(millis)))).unwrap_or_default();
    let passage = hit.passage.replace('\n', "\n  ");
    format!("\n/memories/{}:{lines} ({}{age})\n  {passage}\n", hit.locator, hit.kind)
}
