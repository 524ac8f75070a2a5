//! Finding a memory again.
//!
//! [`Shelf::recall`] is the one door: today it looks through every file, kept in memory between two looks; an index will serve it later.
//! Whatever this crate keeps is of the [`LocalIndex`](haversack::store::Tier::LocalIndex) tier: never authoritative, never carried to another
//! machine, deletable at any time.
//!
//! "Nothing is relevant" is an answer without [hits](Recalled::hits); "could not look" is an error, and what could not be looked at in between
//! is [told](Recalled::unread).

mod search;
mod shelf;

pub use self::shelf::Shelf;

use haversack::store::Locator;

/// How many memories an answer has, unless told otherwise.
pub const DEFAULT_LIMIT: usize = 8;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The words.
    pub text: String,
    /// Where; everywhere if it is the root.
    pub within: Locator,
    /// How many memories at most.
    pub limit: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recalled {
    /// The best first.
    pub hits: Vec<Hit>,
    /// How many files were looked through.
    pub looked_through: usize,
    /// Files that could not be read, or were too many or too large to be looked through whole.
    pub unread: Vec<Locator>,
}

/// A memory that has to do with the query.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Which.
    pub locator: Locator,
    /// The first and the last line of the passage, from 1.
    pub lines: (usize, usize),
    /// The passage, shortened.
    pub passage: String,
    /// The name of its kind.
    pub kind: String,
    /// When it was last changed, for display.
    pub modified: Option<std::time::SystemTime>,
    /// How well it fits; only the order means something.
    pub score: f64,
}
