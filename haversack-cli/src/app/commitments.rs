//! Lists, adds and delivers commitments.

use haversack::commitments::{self, Commitment, FILE, Refusal};
use haversack::ids::Ids;
use haversack::store::{BackendExt, Locator, block_on};
use haversack::{Memory, rewrite};
use haversack_system::RandomIds;

use crate::error::CommandError;
use crate::home::kinds;
use crate::settings::Settings;

/// The result of a change of a list.
pub(crate) enum Listed<T> {
    /// It is made, in this file.
    Done { what: T, file: Locator },
    /// It is not, for this reason.
    Refused(String),
}

/// Returns every commitment below a place, the open ones first.
pub(crate) fn list(memory: &Memory, place: &Locator) -> Result<Vec<Commitment>, CommandError> {
    let text = block_on(memory.files().read_text(&file(place)))?;
    Ok(text.map(|text| commitments::list(&text)).unwrap_or_default())
}

/// Adds a commitment, and returns its id.
pub(crate) fn add(
    settings: &Settings,
    memory: &Memory,
    place: &Locator,
    promise: &str,
) -> Result<Listed<String>, CommandError> {
    let (id, today) = (commitments::mint(RandomIds.next()), settings.today());
    let template = template(settings, "commitments", "Commitments")?;
    changed(memory, &file(place), |text| {
        commitments::add(text, &template, promise, today, &id).map(|text| (text, id.clone()))
    })
}

/// Delivers a commitment that is named by its id or its words.
pub(crate) fn deliver(
    settings: &Settings,
    memory: &Memory,
    place: &Locator,
    wanted: &str,
) -> Result<Listed<Commitment>, CommandError> {
    let today = settings.today();
    changed(memory, &file(place), |text| commitments::deliver(text.unwrap_or_default(), wanted, today))
}

/// Changes a list of items in its file.
pub(super) fn changed<T>(
    memory: &Memory,
    file: &Locator,
    mut edit: impl FnMut(Option<&str>) -> Result<(String, T), Refusal>,
) -> Result<Listed<T>, CommandError> {
    let mut done = None;
    block_on(rewrite(memory, file, |text| match edit(text) {
        Ok((text, what)) => {
            done = Some(Ok(what));
            Some(text)
        }
        Err(refusal) => {
            done = Some(Err(refusal));
            None
        }
    }))?;
    Ok(match done {
        Some(Ok(what)) => Listed::Done { what, file: file.clone() },
        Some(Err(refusal)) => Listed::Refused(reason(refusal)),
        None => Listed::Refused("Nothing was changed".to_owned()),
    })
}

fn reason(refusal: Refusal) -> String {
    match refusal {
        Refusal::Unfit(why) => why,
        Refusal::NotFound => "no item of the list has this id or these words".to_owned(),
        Refusal::Several => "several items of the list have these words: say more of them".to_owned(),
        Refusal::Already => "that was done already".to_owned(),
    }
}

/// Returns what a new file of a kind begins with.
pub(super) fn template(settings: &Settings, kind: &str, title: &str) -> Result<String, CommandError> {
    let kinds = kinds::load(settings)?;
    let template = kinds.get(kind).and_then(|kind| kind.template.as_deref()).unwrap_or_default();
    Ok(template.trim_start_matches('\n').replace("{name}", title))
}

fn file(place: &Locator) -> Locator {
    place.child(FILE).expect("a plain name")
}
