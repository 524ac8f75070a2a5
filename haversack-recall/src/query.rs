//! A query and its words.

use std::collections::BTreeSet;

use haversack::store::Locator;
use jiff::civil::Date;

use crate::text::dates::Span;
use crate::text::tokens::{Side, Token, is_stop_word, term, tokens};

/// The number of memories in an answer if the query names no other.
pub const DEFAULT_LIMIT: usize = 8;

/// The most words of a query that are looked at.
const MAX_WORDS: usize = 32;

/// The longest query that is looked at, in bytes.
const MAX_QUERY_BYTES: usize = 8 * 1024;

/// A search request: words, scope and form of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The words.
    pub text: String,
    /// The directory to search; the root searches everywhere.
    pub within: Locator,
    /// The projects whose memory may be found.
    pub projects: Projects,
    /// The kinds that may be found, by name; all if there are none.
    pub kinds: BTreeSet<String>,
    /// The first day that a memory may be about.
    pub since: Option<Date>,
    /// The last day that a memory may be about.
    pub until: Option<Date>,
    /// The day on which the query is asked, for words such as "yesterday".
    pub today: Date,
    /// The unit of a hit: a memory or a passage.
    pub unit: Unit,
    /// The most hits.
    pub limit: usize,
}

/// The unit of a hit: a memory or a passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A memory, with its best passage.
    Memory,
    /// A passage.
    Passage,
}

/// The projects whose memory a query may find. Memory that belongs to no project is always found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projects {
    /// All projects but these, by their ids.
    AllBut(BTreeSet<String>),
    /// Only these projects, by their ids.
    Only(BTreeSet<String>),
}

impl Query {
    /// Returns a query for these words in all memories.
    pub fn new(text: impl Into<String>, today: Date) -> Query {
        Query {
            text: text.into(),
            within: Locator::root(),
            projects: Projects::all(),
            kinds: BTreeSet::new(),
            since: None,
            until: None,
            today,
            unit: Unit::Memory,
            limit: DEFAULT_LIMIT,
        }
    }
}

impl Projects {
    /// Returns all projects.
    pub fn all() -> Projects {
        Projects::AllBut(BTreeSet::new())
    }

    /// Returns true if a file may be found.
    pub fn hold(&self, locator: &Locator) -> bool {
        project_of(locator).is_none_or(|project| self.hold_project(project))
    }

    /// Returns true if the memory of a project may be found.
    pub(crate) fn hold_project(&self, project: &str) -> bool {
        match self {
            Projects::AllBut(excluded) => !excluded.contains(project),
            Projects::Only(projects) => projects.contains(project),
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

/// A word of a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Word {
    /// The folded word.
    pub(crate) word: String,
    /// The terms by which it is found, with how much each counts. The first is its own.
    pub(crate) terms: Vec<(String, f64)>,
}

/// The words of a query, and the time that it names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Words {
    pub(crate) words: Vec<Word>,
    pub(crate) span: Option<Span>,
}

impl Words {
    /// Reads a query.
    pub(crate) fn of(text: &str, today: Date) -> Words {
        let mut end = MAX_QUERY_BYTES.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &text[..end];
        let all = tokens(text, Side::Query);
        let (span, time) =
            Span::in_query(text, today).map_or((None, Vec::new()), |(span, time)| (Some(span), time));
        let tells = |token: &Token| !is_stop_word(&token.word) && !time.contains(&token.word);
        // A query of nothing but stop words means them.
        let is_telling = all.iter().any(tells);
        let telling = all.iter().enumerate().filter(|(_, token)| !is_telling || tells(token));
        let mut words: Vec<Word> = Vec::new();
        for (at, token) in telling {
            // "log in" and "roll back" are written as one word too.
            let pair = |one: Option<&Token>, other: Option<&Token>| {
                Some(term(&format!("{}{}", one?.word, other?.word)))
            };
            let before = at.checked_sub(1).and_then(|before| all.get(before));
            let pairs = [pair(before, Some(token)), pair(Some(token), all.get(at + 1))].into_iter().flatten();
            let is_new = words.iter().all(|word| word.terms[0].0 != token.term);
            if is_new && words.len() < MAX_WORDS {
                let mut terms = vec![(token.term.clone(), 1.0)];
                terms.extend(pairs.map(|term| (term, 1.0)));
                terms.extend(equivalents(&token.term).map(|term| (term.to_owned(), EQUIVALENT_WEIGHT)));
                words.push(Word { word: token.word.clone(), terms });
            }
        }
        Words { words, span }
    }
}

/// The weight of a word's equivalent, compared with the word.
const EQUIVALENT_WEIGHT: f64 = 0.4;

/// Words of working memory that people use for one another, as terms.
const EQUIVALENTS: &[&[&str]] = &[
    &["prefer", "like", "want", "favorit", "favourit"],
    &["stage", "staging"],
    &["environ", "env"],
    &["databas", "db", "postgr", "postgresql"],
    &["deploy", "releas", "ship", "rollout"],
    &["config", "configur"],
    &["repo", "repositori"],
    &["auth", "authent", "login", "signin"],
    &["doc", "document"],
    &["test", "spec"],
    &["bug", "defect", "issu"],
    &["fix", "repair", "mend"],
    &["delet", "remov", "drop"],
    &["error", "failur", "fail"],
    &["directori", "folder", "dir"],
    &["password", "credenti", "secret"],
    &["meet", "call", "appoint"],
    &["birthday", "born"],
    &["job", "work", "role"],
    &["indent", "tab"],
    &["colour", "color"],
    &["manag", "boss", "lead"],
    &["price", "cost"],
    &["compani", "employ"],
];

fn equivalents(term: &str) -> impl Iterator<Item = &'static str> {
    let groups = EQUIVALENTS.iter().filter(move |group| group.contains(&term));
    let term = term.to_owned();
    groups.flat_map(|group| group.iter().copied()).filter(move |other| *other != term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn words(text: &str) -> Vec<String> {
        Words::of(text, date(2026, 11, 18)).words.into_iter().map(|word| word.word).collect()
    }

    #[test]
    fn stop_words_are_dropped_unless_there_is_nothing_else() {
        assert_eq!(words("When do we deploy the lamp?"), ["deploy", "lamp"]);
        assert_eq!(words("who are you"), ["who", "are", "you"]);
        assert_eq!(words("deploys deploy deployed"), ["deploys"]);
        assert!(words("?! …").is_empty());
    }

    #[test]
    fn words_that_are_written_apart_are_found_together() {
        let read = Words::of("how do users log in?", date(2026, 11, 18));
        let terms: Vec<&str> = read.words[0].terms.iter().map(|(term, _)| term.as_str()).collect();
        assert_eq!(terms, ["log", "userslog", "login"]);
    }

    #[test]
    fn long_queries_are_bounded() {
        let long: String = (0..50_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(words(&long).len(), MAX_WORDS);
        assert_eq!(words(&"灯".repeat(40_000)).len(), 1);
    }

    #[test]
    fn equivalents_are_terms() {
        for known in EQUIVALENTS.iter().flat_map(|group| group.iter()) {
            // Terms of terms can differ, so only words that are whole are compared.
            assert!(known.bytes().all(|byte| byte.is_ascii_lowercase()), "{known}");
        }
        assert!(equivalents(&term("preferences")).any(|other| other == term("likes")));
        assert!(equivalents(&term("database")).any(|other| other == "db"));
        assert_eq!(equivalents("lighthous").count(), 0);
    }

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
