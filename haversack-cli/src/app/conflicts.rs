//! Passages that two machines wrote in the same place: finds them and settles them.

use haversack::conflict::{Conflict, Keep};
use haversack::store::{Locator, block_on};
use haversack::{Conflicts, Resolved};

use crate::error::CommandError;
use crate::home::store::{open, open_to_look};
use crate::settings::Settings;

/// Returns the conflicts below a place, and the files that could not be read.
pub(crate) fn conflicts(settings: &Settings, within: &Locator) -> Result<Conflicts, CommandError> {
    Ok(block_on(open_to_look(settings)?.conflicts(within))?)
}

/// A conflict that was settled.
pub(crate) struct Settled {
    pub(crate) conflict: Conflict,
    /// The changes that settling it made.
    pub(crate) resolved: Resolved,
    /// How many conflicts are left.
    pub(crate) left: usize,
}

/// Settles the conflict that the user names by its id or number.
pub(crate) fn resolve(settings: &Settings, name: &str, keep: Keep) -> Result<Settled, CommandError> {
    let root = Locator::root();
    let Conflicts { mut found, unread } = conflicts(settings, &root)?;
    let index = match (index_of(&found, name), unread.into_iter().next()) {
        // The conflict may be in a file that could not be read.
        (Err(_), Some(unread)) => return Err(unread.into()),
        (index, _) => index?,
    };
    let conflict = found.swap_remove(index);
    let memory = open(settings)?;
    let resolved = block_on(memory.resolve(&conflict, keep))?;
    let left = block_on(memory.conflicts(&root))?.found.len();
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
            format!("there is no conflict {name}, or its passages are not what they were"),
            "See what there is now: haversack conflicts",
        )),
    }
}
