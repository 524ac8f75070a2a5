//! The origin of a plain object whose content differs from the log.

use haversack_store::Locator;

use crate::ids::{ContentHash, Position};

/// The origin of a content that this device's log never had for its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Another device of ours wrote it.
    Ours,
    /// A person wrote it by hand.
    Edit,
    /// Not known yet: one of our devices may have written it, and its log entry may be on the way.
    Unclear,
}

/// Tells where plain objects come from.
pub trait Origins: Send + Sync {
    /// Returns where a content of a file comes from.
    fn of(&self, locator: &Locator, hash: &ContentHash) -> Origin;

    /// Returns true if the user named this very file as an edit to import, in any place.
    fn is_claimed(&self, locator: &Locator) -> bool;

    /// Returns true if another device's version may have overwritten the file that an edit was made from.
    fn is_crossed(&self, locator: &Locator, hash: &ContentHash) -> bool;

    /// Returns which of the files that are there are copies that a sync client made, each with the file it is a copy of.
    fn copies(&self, there: &[Locator]) -> Vec<(Locator, Locator)>;

    /// Returns true if plain objects may be written as of this position. Two conditions: a log contains the content, so that other devices do not take
    /// it for an edit; and we know no newer version, which would be overwritten.
    fn is_told(&self, position: Position) -> bool;
}

/// Every writer of plain objects writes to the one log first: a content that the log never had is an edit.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneLog;

impl Origins for OneLog {
    fn of(&self, _: &Locator, _: &ContentHash) -> Origin {
        Origin::Edit
    }

    fn is_claimed(&self, _: &Locator) -> bool {
        false
    }

    fn is_crossed(&self, _: &Locator, _: &ContentHash) -> bool {
        false
    }

    fn copies(&self, _: &[Locator]) -> Vec<(Locator, Locator)> {
        Vec::new()
    }

    fn is_told(&self, _: Position) -> bool {
        true
    }
}
