//! Writes a text that a person edited elsewhere, or deletes a file, if the file is still what that person saw.
//!
//! An edit that lost the race changes nothing. The caller gets the text that is there now, and shows both.

use haversack::document::Document;
use haversack::ids::ContentHash;
use haversack::store::{Bytes, Locator, block_on};
use haversack::{Change, Memory, Reason, View, tidy};

use super::session::INDEX;
use crate::error::CommandError;
use crate::home::store::open;
use crate::home::{Work, local_history};
use crate::settings::Settings;

/// The result of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Revised {
    /// The file has the new content, or is deleted.
    Written,
    /// The new content is what the file holds already.
    Same,
    /// Another program changed the file meanwhile, so nothing was written. `None` if the file was deleted.
    Lost(Option<Bytes>),
}

/// Replaces the content of a file, or deletes it, if its content has the hash `seen`.
pub(crate) fn revise(
    settings: &Settings,
    locator: &Locator,
    seen: ContentHash,
    new: Option<Bytes>,
) -> Result<Revised, CommandError> {
    let memory = open(settings)?;
    let now = content(&memory, locator)?;
    if now == new {
        return Ok(Revised::Same);
    }
    if now.as_ref().is_none_or(|now| ContentHash::of(now) != seen) {
        return Ok(Revised::Lost(now));
    }
    let cause = if new.is_some() { "edit" } else { "delete" };
    match block_on(memory.batch(&[Change::Put { locator: locator.clone(), expected: now, bytes: new }])) {
        Ok(_) => {}
        Err(error) if *error.reason() == Reason::Changed => {
            return Ok(Revised::Lost(content(&memory, locator)?));
        }
        Err(error) => return Err(error.into()),
    }
    // The file is written. A history that cannot be recorded now is recorded at the next look.
    drop(local_history::record(settings, Work::Sync, cause));
    Ok(Revised::Written)
}

/// Whether tidying leaves a memory alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    Set,
    Removed,
}

/// Pins a memory or removes its pin, if its content has the hash `seen`.
pub(crate) fn pin(
    settings: &Settings,
    locator: &Locator,
    seen: ContentHash,
    pin: Pin,
) -> Result<Revised, CommandError> {
    let Some(now) = content(&open(settings)?, locator)? else { return Ok(Revised::Lost(None)) };
    if ContentHash::of(&now) != seen {
        return Ok(Revised::Lost(Some(now)));
    }
    let text = std::str::from_utf8(&now).ok().and_then(|text| pinned_text(locator, text, pin));
    let text = text.ok_or_else(|| {
        CommandError::user(
            format!("{locator} cannot be pinned: it has no frontmatter that we can read"),
            "Write pinned: true into its frontmatter: haversack edit",
        )
    })?;
    revise(settings, locator, seen, Some(Bytes::from(text)))
}

/// Returns the text of a memory with or without a pin; `None` if its form has no place for one.
pub(crate) fn pinned_text(locator: &Locator, text: &str, pin: Pin) -> Option<String> {
    // Agents read the beginning of an index. Frontmatter would take its place.
    let can_begin = locator.name().ends_with(".md") && locator.name() != INDEX;
    match pin {
        Pin::Set if can_begin || Document::read(text).frontmatter.is_some() => tidy::pinned(text),
        Pin::Set => None,
        Pin::Removed => tidy::unpinned(text),
    }
}

/// Creates a file again that was deleted while a person edited it.
pub(crate) fn bring_back(
    settings: &Settings,
    locator: &Locator,
    new: Bytes,
) -> Result<Revised, CommandError> {
    let memory = open(settings)?;
    match block_on(memory.batch(&[Change::Put {
        locator: locator.clone(),
        expected: None,
        bytes: Some(new),
    }])) {
        Ok(_) => {}
        Err(error) if *error.reason() == Reason::Changed => {
            return Ok(Revised::Lost(content(&memory, locator)?));
        }
        Err(error) => return Err(error.into()),
    }
    drop(local_history::record(settings, Work::Sync, "edit"));
    Ok(Revised::Written)
}

/// Returns the content of a file; `None` if there is none.
fn content(memory: &Memory, locator: &Locator) -> Result<Option<Bytes>, CommandError> {
    match block_on(memory.view(locator)) {
        Ok(View::File(object)) => Ok(Some(object.bytes)),
        Ok(View::Directory(_)) => {
            Err(CommandError::user(format!("{locator} is a directory"), "Name a file: haversack ls"))
        }
        Err(error) if *error.reason() == Reason::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
