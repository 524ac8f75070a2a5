//! Lists, adds and consumes items to bring up in a later session.

use haversack::Memory;
use haversack::carry_forward::{self, CarriedItem, FILE};
use haversack::store::{BackendExt, Locator, block_on};

use super::commitments::{Listed, changed, template};
use crate::error::CommandError;
use crate::settings::Settings;

/// Returns what is pending below a place.
pub(crate) fn list(memory: &Memory, place: &Locator) -> Result<Vec<CarriedItem>, CommandError> {
    let text = block_on(memory.files().read_text(&file(place)))?;
    Ok(text.map(|text| carry_forward::pending(&text)).unwrap_or_default())
}

/// Adds an item.
pub(crate) fn add(
    settings: &Settings,
    memory: &Memory,
    place: &Locator,
    thought: &str,
) -> Result<Listed<()>, CommandError> {
    let template = template(settings, "carry_forward", "Carry-forward")?;
    let today = settings.today();
    changed(memory, &file(place), |text| {
        carry_forward::add(text, &template, thought, today).map(|text| (text, ()))
    })
}

/// Consumes an item that is named by its number or its words; returns its words.
pub(crate) fn consume(
    settings: &Settings,
    memory: &Memory,
    place: &Locator,
    wanted: &str,
) -> Result<Listed<String>, CommandError> {
    let today = settings.today();
    changed(memory, &file(place), |text| carry_forward::consume(text.unwrap_or_default(), wanted, today))
}

fn file(place: &Locator) -> Locator {
    place.child(FILE).expect("a plain name")
}
