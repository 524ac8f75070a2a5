//! Finding a memory again.
//!
//! [`TextCache::recall`] is the one door: today it looks through every file, kept in memory between two looks; an index will serve it later.
//! All data of this crate is of the [`LocalIndex`](haversack::store::Tier::LocalIndex) tier: never authoritative, never carried to another
//! machine, deletable at any time.
//!
//! "Nothing is relevant" is an answer without [hits](Recalled::hits); "could not look" is an error, and what could not be looked at in between
//! is [told](Recalled::unread).

mod search;
mod text_cache;

pub use self::text_cache::TextCache;

use std::collections::BTreeSet;

use haversack::store::Locator;

/// The default number of memories in an answer.
pub const DEFAULT_LIMIT: usize = 8;

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The words.
    pub text: String,
    /// The directory to search; the root for everything.
    pub within: Locator,
    /// The projects whose memory may be found.
    pub projects: Projects,
    /// The most memories in the answer.
    pub limit: usize,
}

/// The projects whose memory a query may find. Memory that belongs to no project is always found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projects {
    /// All projects but these, by their ids.
    AllBut(BTreeSet<String>),
    /// Only these projects, by their ids.
    Only(BTreeSet<String>),
}

impl Projects {
    /// Returns all projects.
    pub fn all() -> Projects {
        Projects::AllBut(BTreeSet::new())
    }

    /// Tells whether a file may be found.
    pub fn hold(&self, locator: &Locator) -> bool {
        match (self, project_of(locator)) {
            (_, None) => true,
            (Projects::AllBut(excluded), Some(project)) => !excluded.contains(project),
            (Projects::Only(projects), Some(project)) => projects.contains(project),
        }
    }
}

/// Returns the id of the project that a file or directory belongs to; `None` if it belongs to no project.
///
/// The memory of a project's subagents is beside the project's own: `claude_memory/<id>.agents`.
pub fn project_of(locator: &Locator) -> Option<&str> {
    let below = locator.as_str().strip_prefix("claude_memory/")?;
    let name = below.split('/').next()?;
    Some(name.strip_suffix(".agents").or(name.strip_suffix(".agents-local")).unwrap_or(name))
}

/// The result of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recalled {
    /// The best first.
    pub hits: Vec<Hit>,
    /// The number of searched files.
    pub looked_through: usize,
    /// Files that could not be read, or were too many or too large to be looked through whole.
    pub unread: Vec<Locator>,
}

/// A memory that has to do with the query.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The file.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_hold_their_own_memory_and_that_of_nobody() {
        let locator = |text: &str| Locator::parse(text).expect("valid");
        let only = Projects::Only(BTreeSet::from(["lighthouse".to_owned()]));
        let others = Projects::AllBut(BTreeSet::from(["lighthouse".to_owned()]));
        for (path, is_lighthouse) in [
            ("claude_memory/lighthouse/lamp.md", Some(true)),
            ("claude_memory/lighthouse.agents/reviewer/lamp.md", Some(true)),
            ("claude_memory/lighthouse.agents-local/reviewer/lamp.md", Some(true)),
            ("claude_memory/lighthouse-2/lamp.md", Some(false)),
            ("behavioral/lighthouse/lamp.md", None),
            ("claude_memory_old/lighthouse/lamp.md", None),
        ] {
            assert_eq!(only.hold(&locator(path)), is_lighthouse.unwrap_or(true), "{path}");
            assert_eq!(others.hold(&locator(path)), !is_lighthouse.unwrap_or(false), "{path}");
            assert!(Projects::all().hold(&locator(path)), "{path}");
        }
    }
}
