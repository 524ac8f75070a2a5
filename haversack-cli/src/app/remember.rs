//! Keeps one fact, once.

use haversack::Memory;
use haversack::remember::{self, NewFact, RememberOutcome};
use haversack::secrets::{self, Finding};
use haversack::store::{Locator, block_on};
use haversack_recall::KnownFacts;

use crate::error::CommandError;
use crate::home::kinds;
use crate::settings::Settings;

/// The fate of a fact.
pub(crate) enum Remembered {
    /// It is in a new file, and in the index. A secret in it keeps the file on this machine.
    New { file: Locator, secret: Option<Finding> },
    /// A file has it already, so nothing was written.
    Already(Locator),
    /// The file of this name says something else, so nothing was written.
    Taken(Locator),
    /// It cannot be a memory, for this reason.
    Unfit(String),
}

/// Keeps a fact below a place. `facts` knows the facts that are there.
pub(crate) fn remember(
    settings: &Settings,
    memory: &Memory,
    facts: &mut KnownFacts,
    place: &Locator,
    wish: &NewFact<'_>,
) -> Result<Remembered, CommandError> {
    let draft = match remember::draft(&kinds::load(settings)?, place, wish) {
        Ok(draft) => draft,
        Err(why) => return Ok(Remembered::Unfit(why)),
    };
    if let Some(same) = block_on(facts.same(memory.files(), place, &draft.text))? {
        return Ok(Remembered::Already(same));
    }
    Ok(match block_on(remember::keep(memory, &draft))? {
        RememberOutcome::New => {
            let secret = secrets::find(draft.text.as_bytes()).into_iter().next();
            Remembered::New { file: draft.locator, secret }
        }
        RememberOutcome::Same => Remembered::Already(draft.locator),
        RememberOutcome::Taken => Remembered::Taken(draft.locator),
    })
}
