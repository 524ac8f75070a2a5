//! Names in a log that cannot be names of files here.
//!
//! Anyone who may write to a remote can put any text where a locator belongs, and a later Haversack may allow names that this one refuses. Such
//! a file is reported and never served, but it is accounted for, so that the rest goes on.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use haversack_store::{InvalidLocator, Locator};

use crate::frame::shown;

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// It is no locator, not in its normal form, or a name that Haversack keeps for itself.
    Name(InvalidLocator),
    /// It is the root, which is no file.
    Root,
    /// It differs only by case from one that came before it.
    Twin(Locator),
}

impl Oddity {
    /// Tells which name is refused, and why.
    pub(super) fn tell(&self, key: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Oddity::Name(_) | Oddity::Root => write!(f, "{self}"),
            Oddity::Twin(_) => write!(f, "\"{}\" is refused: {self}", shown(key)),
        }
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Oddity::Name(invalid) => invalid.fmt(f),
            Oddity::Root => f.write_str("\"\" is refused: it is the memory itself"),
            Oddity::Twin(other) => {
                write!(f, "the name differs only by case from \"{}\"", shown(other.as_str()))
            }
        }
    }
}

/// Returns the locator of a file that a log names.
pub(super) fn file(key: &str) -> Result<Locator, Oddity> {
    let locator = Locator::from_stored_key(key).map_err(Oddity::Name)?;
    if locator.is_root() {
        return Err(Oddity::Root);
    }
    match locator.is_reserved() {
        true => Err(Locator::parse(key).err().map_or(Oddity::Root, Oddity::Name)),
        false => Ok(locator),
    }
}

/// Returns true if a log may call a file so.
pub(super) fn is_file(key: &str) -> bool {
    // Nearly all of them can be told at a glance.
    Locator::is_plain_key(key) || file(key).is_ok()
}

/// The files seen so far, to find those that differ only by case.
#[derive(Debug, Default)]
pub(super) struct Twins {
    seen: BTreeMap<String, Locator>,
}

impl Twins {
    /// Takes a file in, unless it is a twin of one that was.
    pub(super) fn admit(&mut self, locator: &Locator) -> Result<(), Oddity> {
        match self.seen.entry(locator.folded()) {
            Entry::Occupied(twin) => Err(Oddity::Twin(twin.get().clone())),
            Entry::Vacant(place) => {
                place.insert(locator.clone());
                Ok(())
            }
        }
    }
}
