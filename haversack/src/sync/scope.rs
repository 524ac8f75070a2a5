//! The part of a store that a working directory holds.

use haversack_store::{Locator, is_fenced};

/// The part of a store that a working directory holds; the rest of it is in other directories, or nowhere on this device.
///
/// Files outside of a replica's scope move along the log like all others, but are never written, searched or deleted here
/// (`sync::scope`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    within: Locator,
    except: Vec<Locator>,
    /// True if another program reads the directory: names that are fenced are in no such scope.
    is_bound: bool,
}

impl Default for Scope {
    /// Returns the scope of everything.
    fn default() -> Scope {
        Scope::within(Locator::root())
    }
}

impl Scope {
    /// Returns the scope of everything below `prefix`.
    pub fn within(prefix: Locator) -> Scope {
        Scope { within: prefix, except: Vec::new(), is_bound: false }
    }

    /// Leaves out the [names](is_fenced) that are never written into a directory that another program reads.
    pub fn bound(self) -> Scope {
        Scope { is_bound: true, ..self }
    }

    /// Returns true if a file is left out only because of its name.
    pub(crate) fn fences(&self, locator: &Locator) -> bool {
        self.is_bound && self.below(locator.as_str()).is_some_and(is_fenced)
    }

    fn below<'a>(&self, key: &'a str) -> Option<&'a str> {
        key.strip_prefix(self.within.as_str()).map(|rest| rest.trim_start_matches('/'))
    }

    /// Returns a scope without files, for a device that follows a log without storing its files.
    pub fn nothing() -> Scope {
        Scope::default().except([Locator::root()])
    }

    /// Leaves out everything below each of `prefixes`.
    pub fn except(self, prefixes: impl IntoIterator<Item = Locator>) -> Scope {
        Scope { except: self.except.into_iter().chain(prefixes).collect(), ..self }
    }

    /// Returns true if a file is in it.
    pub fn contains(&self, locator: &Locator) -> bool {
        self.holds(locator.as_str())
    }

    /// Returns true if a file of this name is in it.
    pub(crate) fn holds(&self, key: &str) -> bool {
        let is_inside = self.within.holds(key) && !self.except.iter().any(|prefix| prefix.holds(key));
        is_inside && !(self.is_bound && self.below(key).is_some_and(is_fenced))
    }

    /// Returns true if everything is in it.
    pub(crate) fn is_everything(&self) -> bool {
        self.within.is_root() && self.except.is_empty()
    }

    /// Returns true if a name is in it. A name that no file can have is only in the scope of everything.
    pub(crate) fn contains_name(&self, name: &str) -> bool {
        match Locator::parse(name) {
            Ok(locator) => self.contains(&locator),
            Err(_) => self.within.is_root(),
        }
    }
}
