//! The history of one file, and the author of each of its passages.
//!
//! 1. We take the newest changes of the file that are on this machine, with the content after each.
//! 2. From the oldest on, each version is compared with the one before. A line that stays keeps its author; a new line belongs to the change.
//! 3. Lines that were there before the oldest change, and lines that are not in the history yet, have no author.

use haversack::ids::Timestamp;
use haversack::store::{Bytes, Locator};
use haversack_system::Backoff;
use similar::{ChangeTag, TextDiff};

use super::history::counts;
use crate::error::CommandError;
use crate::home::history::{AtHand, ChangeNumber, Enough, HistoryReader, NumberedChange, open_home};
use crate::settings::Settings;

/// The most changes of a file that are read.
const MAX_CHANGES: usize = 60;

/// The longest text whose lines get authors.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// A change of the file.
pub(crate) struct Revision {
    pub(crate) change: NumberedChange,
    /// The lines that it removed and added; `None` if a content is not on this machine, or too long.
    pub(crate) lines: Option<(usize, usize)>,
}

/// The change that wrote a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) number: ChangeNumber,
    pub(crate) device: String,
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) time: Timestamp,
}

/// Lines in a row with one author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedLines {
    /// `None` if no change on this machine wrote them.
    pub(crate) author: Option<Author>,
    pub(crate) text: String,
}

/// The history of a file.
pub(crate) struct FileHistory {
    /// True if the file has changes that were not sent yet.
    pub(crate) is_waiting: bool,
    /// The newest change first.
    pub(crate) revisions: Vec<Revision>,
    /// The current text by author; empty if the file is no text, or too long.
    pub(crate) passages: Vec<SignedLines>,
    /// True if older changes are not on this machine.
    pub(crate) is_cut: bool,
}

/// Returns the history of a file as far as it is on this machine; asks the remote nothing.
pub(crate) fn file_history(
    settings: &Settings,
    locator: &Locator,
    text: Option<&str>,
) -> Result<FileHistory, CommandError> {
    let patience = Backoff::new();
    let home = open_home(settings)?;
    let mut history = HistoryReader::at_hand(settings, &home, &patience)?;
    let mut changes: Vec<NumberedChange> = Vec::new();
    let at_hand = history.each(|change| {
        if change.changes.iter().any(|file| file.locator == *locator) {
            changes.push(change.clone());
        }
        if changes.len() < MAX_CHANGES { Enough::No } else { Enough::Yes }
    })?;
    let is_cut = at_hand == AtHand::Some || changes.len() == MAX_CHANGES;
    let mut revisions = Vec::new();
    let mut versions: Vec<(Option<Author>, String)> = Vec::new();
    let as_text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let is_short = |bytes: Option<&Bytes>| bytes.is_none_or(|bytes| bytes.len() <= MAX_TEXT_BYTES);
    for change in changes {
        let around = history.around(locator, &change).ok();
        // To compare long contents takes too long for a look.
        let around = around.filter(|(before, after)| is_short(before.as_ref()) && is_short(after.as_ref()));
        if let Some((before, after)) = &around {
            versions.push((Some(Author::of(&change)), as_text(after.as_deref())));
            versions.push((None, as_text(before.as_deref())));
        }
        let lines = around.map(|(before, after)| counts(before.as_ref(), after.as_ref()));
        revisions.push(Revision { change, lines });
    }
    let mut is_waiting = false;
    for place in home.places().filter(|place| place.scope.contains(locator)) {
        let look = place.look()?;
        is_waiting |= [look.created, look.changed].concat().contains(locator);
    }
    versions.reverse();
    let text = text.filter(|text| text.len() <= MAX_TEXT_BYTES);
    let passages = text.map(|text| sign(&versions, text)).unwrap_or_default();
    Ok(FileHistory { is_waiting, revisions, passages, is_cut })
}

impl Author {
    fn of(change: &NumberedChange) -> Author {
        Author {
            number: change.number,
            device: change.device.clone(),
            agent: change.agent.clone(),
            session: change.session.clone(),
            time: change.time,
        }
    }
}

/// Gives the lines of a text their authors. `versions` are the earlier texts, the oldest first, with the author of what is new in each.
fn sign(versions: &[(Option<Author>, String)], text: &str) -> Vec<SignedLines> {
    let mut known: Vec<Option<Author>> = Vec::new();
    let mut before = "";
    for (author, version) in
        versions.iter().map(|(author, text)| (author.clone(), text.as_str())).chain([(None, text)])
    {
        known = carried(&known, before, version, author.as_ref());
        before = version;
    }
    let mut signed: Vec<SignedLines> = Vec::new();
    for (line, author) in text.split_inclusive('\n').zip(known) {
        match signed.last_mut() {
            Some(last) if last.author == author => last.text.push_str(line),
            _ => signed.push(SignedLines { author, text: line.to_owned() }),
        }
    }
    signed
}

/// Returns the authors of the lines of a version: a line of the version before keeps its author.
fn carried(
    known: &[Option<Author>],
    before: &str,
    after: &str,
    author: Option<&Author>,
) -> Vec<Option<Author>> {
    let diff = TextDiff::from_lines(before, after);
    let lines = diff.iter_all_changes().filter_map(|change| match change.tag() {
        ChangeTag::Equal => Some(change.old_index().and_then(|at| known.get(at).cloned()).flatten()),
        ChangeTag::Insert => Some(author.cloned()),
        ChangeTag::Delete => None,
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::history::Log;

    fn author(device: &str) -> Option<Author> {
        Some(Author {
            number: ChangeNumber { log: Log::Store, number: 1 },
            device: device.to_owned(),
            agent: None,
            session: None,
            time: Timestamp(0),
        })
    }

    #[test]
    fn line_keeps_its_author_through_later_edits() {
        let versions = [
            (None, "imported\n".to_owned()),
            (author("laptop"), "imported\nport 5433\n".to_owned()),
            (author("desktop"), "# Ports\nimported\nport 5433\n".to_owned()),
        ];
        let signed = sign(&versions, "# Ports\nimported\nport 5433\nport 5434\n");
        let told: Vec<(Option<&str>, &str)> = signed
            .iter()
            .map(|lines| (lines.author.as_ref().map(|author| author.device.as_str()), lines.text.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (Some("desktop"), "# Ports\n"),
                (None, "imported\n"),
                (Some("laptop"), "port 5433\n"),
                (None, "port 5434\n"),
            ]
        );
    }
}
