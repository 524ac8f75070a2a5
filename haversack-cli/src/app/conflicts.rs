//! Passages that two machines wrote in the same place: finds them, tells where each comes from, and settles them.

use haversack::conflict::{Conflict, Keep, Lines, Passage};
use haversack::display::one_line;
use haversack::ids::Timestamp;
use haversack::store::{Locator, block_on};
use haversack::{Conflicts, Error, Resolved};
use haversack_system::Backoff;

use crate::error::CommandError;
use crate::home::Home;
use crate::home::history::{Enough, HistoryReader, Log, NumberedChange};
use crate::home::store::{open, open_to_look};
use crate::settings::Settings;
use crate::ui::moments::local;

/// The most lines of a passage that are shown.
const MAX_SHOWN_LINES: usize = 40;

/// The most changes of one file that are read for the origin of its passages.
const MAX_CHANGES: usize = 100;

/// Returns the conflicts below a place, and the files that could not be read.
pub(crate) fn conflicts(settings: &Settings, within: &Locator) -> Result<Conflicts, CommandError> {
    Ok(block_on(open_to_look(settings)?.conflicts(within))?)
}

/// A conflict, and the origin of its passages.
pub(crate) struct TracedConflict {
    pub(crate) conflict: Conflict,
    /// The origin of each passage; `None` if no change on this machine has the passage.
    pub(crate) origins: Vec<Option<Origin>>,
}

/// The change that wrote a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) device: String,
    pub(crate) agent: Option<String>,
    pub(crate) time: Timestamp,
}

impl Origin {
    fn of(change: &NumberedChange) -> Origin {
        let agent = change.agent.as_deref().map(|agent| one_line(agent).into_owned());
        Origin { device: one_line(&change.device).into_owned(), agent, time: change.time }
    }
}

/// Returns the conflicts below a place with the origin of their passages, and the files that could not be read.
pub(crate) fn traced(
    settings: &Settings,
    within: &Locator,
) -> Result<(Vec<TracedConflict>, Vec<Error>), CommandError> {
    traced_among(settings, conflicts(settings, within)?)
}

/// Adds the origin of their passages to conflicts.
pub(crate) fn traced_among(
    settings: &Settings,
    conflicts: Conflicts,
) -> Result<(Vec<TracedConflict>, Vec<Error>), CommandError> {
    let Conflicts { found, unread } = conflicts;
    if found.is_empty() {
        return Ok((Vec::new(), unread));
    }
    let patience = Backoff::new();
    // A home without a history has conflicts as well; their origin is not known then.
    let home = Home::open(settings).ok();
    let mut history = home.as_ref().and_then(|home| HistoryReader::at_hand(settings, home, &patience).ok());
    let traced = found.into_iter().map(|conflict| {
        let origins = match &mut history {
            Some(history) => origins(history, &conflict),
            None => vec![None; conflict.passages.len()],
        };
        TracedConflict { conflict, origins }
    });
    Ok((traced.collect(), unread))
}

/// Returns the origin of each passage of a conflict: the oldest of the newest changes in a row that have the passage.
///
/// A note names the device of the second passage. If another device made the change, it merged a folder for that device, and its agent and
/// time say nothing about the passage.
fn origins(history: &mut HistoryReader<'_>, conflict: &Conflict) -> Vec<Option<Origin>> {
    let mut origins = vec![None; conflict.passages.len()];
    let mut is_open: Vec<bool> =
        conflict.passages.iter().map(|passage| !passage.text.trim().is_empty()).collect();
    let names = [Some(&conflict.locator), conflict.copy.as_ref().map(|copy| &copy.locator)];
    let mut changes: Vec<(Locator, NumberedChange)> = Vec::new();
    // A part of the history that cannot be read only leaves origins out.
    drop(history.each(|change| {
        if change.number.log == Log::Local {
            // No other machine took part in it.
            return Enough::No;
        }
        for name in names.into_iter().flatten() {
            if change.changes.iter().any(|file| file.locator == *name) {
                changes.push((name.clone(), change.clone()));
            }
        }
        if changes.len() < MAX_CHANGES { Enough::No } else { Enough::Yes }
    }));
    for (name, change) in &changes {
        if !is_open.contains(&true) {
            break;
        }
        let Ok(held) = history.held_after(name, change) else { break };
        let text = held.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        for (at, passage) in conflict.passages.iter().enumerate() {
            let is_in_copy = conflict.copy.is_some() && at > 0;
            if !is_open[at] || (is_in_copy && *name == conflict.locator && origins[at].is_some()) {
                continue;
            }
            match has_passage(&text, passage) {
                true => origins[at] = Some(Origin::of(change)),
                false if origins[at].is_some() => is_open[at] = false,
                false => {}
            }
        }
    }
    for (origin, passage) in origins.iter_mut().zip(&conflict.passages) {
        let is_other = |origin: &Origin| passage.device.as_ref().is_some_and(|named| *named != origin.device);
        if origin.as_ref().is_some_and(is_other) {
            *origin = None;
        }
    }
    origins
}

/// Returns true if a text has all lines of a passage. Indentation does not count, because a merge changes it.
fn has_passage(text: &str, passage: &Passage) -> bool {
    let said = |line: &&str| !line.is_empty();
    passage
        .text
        .lines()
        .map(str::trim)
        .filter(said)
        .all(|line| text.lines().any(|other| other.trim() == line))
}

impl TracedConflict {
    /// Returns the file and lines of the conflict.
    pub(crate) fn place(&self) -> String {
        let Conflict { locator, copy, .. } = &self.conflict;
        match (copy, self.lines()) {
            (Some(copy), _) => format!("{locator} and {}", copy.locator.name()),
            (None, Some(Lines { first, last })) if first == last => format!("{locator}, line {first}"),
            (None, Some(Lines { first, last })) => format!("{locator}, lines {first} to {last}"),
            (None, None) => locator.to_string(),
        }
    }

    /// Returns the lines of the file that the conflict is in.
    pub(crate) fn lines(&self) -> Option<Lines> {
        let all = || self.conflict.passages.iter().filter_map(|passage| passage.lines);
        let (first, last) = (all().map(|lines| lines.first).min()?, all().map(|lines| lines.last).max()?);
        Some(Lines { first, last })
    }

    /// Returns the heading of each passage: its number, machine, agent and time.
    pub(crate) fn titles(&self) -> Vec<String> {
        let passages = self.conflict.passages.iter().zip(&self.origins);
        let title = |((passage, origin), keep): ((&Passage, &Option<Origin>), usize)| match origin {
            Some(Origin { device, agent, time }) => {
                let agent = agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
                format!("{keep}, from {device}{agent}, {}", local(*time))
            }
            None => match &passage.device {
                Some(device) => format!("{keep}, from {device}"),
                None => keep.to_string(),
            },
        };
        passages.zip(1..).map(title).collect()
    }

    /// Returns the text of each passage, shortened.
    pub(crate) fn bodies(&self) -> Vec<String> {
        (0..self.conflict.passages.len()).map(|at| self.body(at)).collect()
    }

    fn body(&self, at: usize) -> String {
        let passage = &self.conflict.passages[at];
        let lines = passage.text.lines().count();
        // Characters that are not text could be orders to a terminal.
        let plain = |line: &str| line.replace('\t', "    ").replace(char::is_control, " ");
        let shown: Vec<String> = passage.text.lines().take(MAX_SHOWN_LINES).map(plain).collect();
        let mut text = shown.join("\n");
        if lines > MAX_SHOWN_LINES {
            text.push_str(&format!("\n(and {} more lines)", lines - MAX_SHOWN_LINES));
        }
        match &self.conflict.copy {
            Some(copy) => {
                let size = if at == 0 { copy.original_bytes } else { Some(copy.size_bytes) };
                let size = size.map_or("not there any more".to_owned(), |bytes| format!("{bytes} bytes"));
                if text.is_empty() { size } else { format!("{size}, and only here:\n{text}") }
            }
            None if text.is_empty() => "(nothing)".to_owned(),
            None => text,
        }
    }

    /// Returns the conflict with its passages one below the other.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}  {}\n", self.conflict.id, self.place());
        for (title, body) in self.titles().iter().zip(self.bodies()) {
            text.push_str(&format!("   {title}:\n"));
            for line in body.lines() {
                text.push_str(format!("      {line}").trim_end());
                text.push('\n');
            }
        }
        text
    }
}

/// A conflict that was settled.
pub(crate) struct Settled {
    pub(crate) conflict: Conflict,
    /// The changes that settling it made.
    pub(crate) resolved: Resolved,
    /// The number of remaining conflicts.
    pub(crate) left: usize,
}

impl Settled {
    /// Returns the outcome in a line.
    pub(crate) fn text(&self, keep: Keep) -> String {
        let locator = &self.conflict.locator;
        match (keep, &self.resolved.renamed) {
            (Keep::Passage(number), _) => format!("Kept {number} in {locator}"),
            (Keep::Both, None) => format!("Kept both in {locator}"),
            (Keep::Both, Some(renamed)) => format!("Kept both: {locator} and {renamed}"),
        }
    }
}

/// Returns the passages to keep that a text names.
pub(crate) fn parse_keep(text: &str) -> Result<Keep, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(Keep::Passage(number)),
        _ if text == "both" => Ok(Keep::Both),
        _ => Err("it is neither the number of a passage nor \"both\"".to_owned()),
    }
}

/// Settles the conflict that the user names by its id or number.
pub(crate) fn resolve(settings: &Settings, name: &str, keep: Keep) -> Result<Settled, CommandError> {
    settle(settings, find(settings, name)?, keep)
}

/// Returns the conflict that the user names by its id or number.
pub(crate) fn find(settings: &Settings, name: &str) -> Result<Conflict, CommandError> {
    let Conflicts { mut found, unread } = conflicts(settings, &Locator::root())?;
    let index = match (index_of(&found, name), unread.into_iter().next()) {
        // The conflict may be in a file that could not be read.
        (Err(_), Some(unread)) => return Err(unread.into()),
        (index, _) => index?,
    };
    Ok(found.swap_remove(index))
}

/// Settles a conflict. If its passages changed since it was found, nothing is done.
pub(crate) fn settle(settings: &Settings, conflict: Conflict, keep: Keep) -> Result<Settled, CommandError> {
    let memory = open(settings)?;
    let resolved = block_on(memory.resolve(&conflict, keep))?;
    let left = block_on(memory.conflicts(&Locator::root()))?.found.len();
    Ok(Settled { conflict, resolved, left })
}

/// Returns the place in the list of the conflict that a user names.
fn index_of(conflicts: &[Conflict], name: &str) -> Result<usize, CommandError> {
    let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let by_number = number.filter(|index| *index < conflicts.len());
    let mut by_id = (0..conflicts.len()).filter(|index| conflicts[*index].id == name);
    match (by_number.or(by_id.next()), by_id.next()) {
        (Some(index), None) => Ok(index),
        (_, Some(_)) => Err(CommandError::user(
            format!("there are two conflicts {name}"),
            "Name it by its number: haversack conflicts",
        )),
        (None, None) => Err(CommandError::user(
            format!("conflict {name} does not exist, or changed since you listed it"),
            "List the conflicts again: haversack conflicts",
        )),
    }
}
