//! Answers queries from the index, and goes on without one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use haversack::day::Day;
use haversack::kind::Kinds;
use haversack::store::{
    self, Backend, Changes, DerivedMaintenance, ErrorKind as StoreErrorKind, Locator, Operation, Sightings,
    Tier, look_again,
};
use haversack::tidy::AgeFields;

use crate::error::{Error, ErrorKind, Result};
use crate::index::vectors::VectorCount;
use crate::index::{Index, place};
use crate::passage::{show, spans, written};
use crate::query::{Query, Unit, Word, Words};
use crate::rank::{Meaning, Parts, Ranked, rank, too_large};
use crate::vectors::{Embedder, Vector};

/// The attempts of a recall: with the index as it is, with a new one, and with one in memory.
const MAX_ATTEMPTS: u32 = 3;

/// The part of a query that the model reads, in bytes; a model uses even less.
const MAX_QUERY_BYTES: usize = 2000;

/// The place of a store's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file. Its directory must be there.
    File(PathBuf),
    /// In memory, for as long as the [`MemorySearch`] lives: where a file would be replicated or cannot be written.
    Memory,
}

/// Finds memories by their words.
///
/// The index is made and refreshed by each recall. If its file is damaged, it is made again. If the file cannot be used (locked, read-only, on a
/// full disk, from a newer version), an index in memory takes its place, which costs time and changes no answer.
#[derive(Debug)]
pub struct MemorySearch {
    place: Place,
    index: Mutex<Option<Opened>>,
    /// The model for search by meaning, by its name.
    model: Option<(String, Arc<dyn Embedder>)>,
}

#[derive(Debug)]
struct Opened {
    index: Index,
    /// The reason why the index is not in its file.
    fallback: Option<ErrorKind>,
}

/// The answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recalled {
    /// The best first.
    pub hits: Vec<Hit>,
    /// Hits with too few of the query's words, if there are no relevant ones.
    pub nearly: Vec<Hit>,
    /// The number of files that were looked through.
    pub looked_through: usize,
    /// Files that could not be read, or are too large to be looked through.
    pub unread: Vec<Locator>,
    /// The words of the query that were looked for.
    pub words: Vec<String>,
    /// The reason why the index could not be used, if the answer was found without it.
    pub without_index: Option<ErrorKind>,
    /// The part that meanings had in it.
    pub by_meaning: ByMeaning,
}

/// The part that the meanings of passages had in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ByMeaning {
    /// None: there is no model, or no passage has a vector yet.
    #[default]
    No,
    /// The number of passages that were compared by meaning too. The others were found by their words only.
    Compared(VectorCount),
    /// None: the model could not be used.
    Failed(String),
}

/// A memory or passage that has to do with the query.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The memory.
    pub locator: Locator,
    /// The first and the last line of the passage, from 1.
    pub lines: (usize, usize),
    /// The passage, shortened.
    pub passage: String,
    /// The places of the query's words in the passage, as ranges of bytes.
    pub matches: Vec<std::ops::Range<usize>>,
    /// The way in which it was found.
    pub found_by: FoundBy,
    /// The name of its kind.
    pub kind: String,
    /// The time of its last change, for display.
    pub modified: Option<SystemTime>,
    /// The reason why it is out of date, if it says so.
    pub outdated: Option<String>,
    /// The score; only the order of scores has a meaning.
    pub score: f64,
    /// The parts of the score.
    pub parts: Parts,
}

/// The way in which a hit was found, from the surest to the least sure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// It has all words of the query.
    AllWords,
    /// It has all words of the query, some with another ending or as an equivalent.
    OtherForms,
    /// It lacks these words.
    FewerWords(Vec<String>),
    /// It has none of the words, and its meaning is near.
    Meaning,
}

impl MemorySearch {
    /// Returns a search with its index at a place; opens nothing.
    pub fn new(place: Place) -> MemorySearch {
        MemorySearch { place, index: Mutex::new(None), model: None }
    }

    /// Returns the search with a model: it compares meanings too, where passages have vectors ([`MemorySearch::embed_some`]). Vectors that a model with
    /// another name made are not used.
    pub fn with_model(self, name: impl Into<String>, model: Arc<dyn Embedder>) -> MemorySearch {
        MemorySearch { model: Some((name.into(), model)), ..self }
    }

    /// Makes the vectors of about so many passages that have none, those of the newest memories first. Returns how many passages have vectors now; `None` if
    /// nothing was left to do.
    ///
    /// It looks at the index as it stands: refresh it before.
    pub fn embed_some(&self, files: &dyn Backend, passages: usize) -> Result<Option<VectorCount>> {
        let Some((name, model)) = &self.model else { return Err(Error::new(ErrorKind::Model)) };
        match self.opened()?.as_mut() {
            Some(Opened { index, .. }) => {
                index.use_model(name)?;
                let is_left = index.embed_some(files, model.as_ref(), passages.max(1))?;
                if is_left { index.vector_count().map(Some) } else { Ok(None) }
            }
            None => Err(Error::new(ErrorKind::Damaged)),
        }
    }

    /// Forgets all vectors.
    pub fn forget_vectors(&self) -> Result<()> {
        match self.opened()?.as_mut() {
            Some(Opened { index, .. }) => index.use_model(""),
            None => Err(Error::new(ErrorKind::Damaged)),
        }
    }

    /// Returns the vector of a query, and how many passages it can be compared with.
    fn meaning_of(&self, query: &Query) -> Result<(Option<Vector>, ByMeaning)> {
        let Some((name, model)) = &self.model else { return Ok((None, ByMeaning::No)) };
        let count = match self.opened()?.as_mut() {
            Some(Opened { index, .. }) if index.is_of_model(name)? => index.vector_count()?,
            _ => VectorCount::default(),
        };
        if count.done == 0 {
            return Ok((None, ByMeaning::No));
        }
        let mut end = MAX_QUERY_BYTES.min(query.text.len());
        while !query.text.is_char_boundary(end) {
            end -= 1;
        }
        // The index is not locked meanwhile: the first query reads the model from the disk.
        Ok(match model.embed(&[&query.text[..end]]) {
            Ok(vectors) => (vectors.into_iter().next(), ByMeaning::Compared(count)),
            Err(error) => (None, ByMeaning::Failed(error.to_string())),
        })
    }

    /// Finds the memories that have to do with a query.
    pub async fn recall(&self, files: &dyn Backend, kinds: &Kinds, query: &Query) -> Result<Recalled> {
        for attempt in 0..MAX_ATTEMPTS {
            match self.recall_once(files, kinds, query).await {
                // The next index is empty, so the memory is looked at again.
                Err(error) => self.give_up(error, attempt)?,
                recalled => return recalled,
            }
        }
        Err(Error::new(ErrorKind::Damaged))
    }

    async fn recall_once(&self, files: &dyn Backend, kinds: &Kinds, query: &Query) -> Result<Recalled> {
        let unread = self.refresh_once(files, kinds).await?;
        let (vector, by_meaning) = self.meaning_of(query)?;
        let (mut answered, fallback) = match self.opened()?.as_mut() {
            Some(opened) => (answer(&mut opened.index, query, vector)?, opened.fallback),
            None => return Err(Error::new(ErrorKind::Damaged)),
        };
        let in_scope = |locator: &Locator| locator.is_within(&query.within) && query.projects.hold(locator);
        answered.found.unread.extend(unread.into_iter().filter(in_scope));
        answered.found.without_index = fallback;
        answered.found.by_meaning = by_meaning;
        describe(files, answered, query).await
    }

    /// Finds memories as they were at the last refresh of this search, without looking at the memory. A search whose index was lost has to be
    /// refreshed again.
    pub async fn recall_as_known(&self, files: &dyn Backend, query: &Query) -> Result<Recalled> {
        let (vector, by_meaning) = self.meaning_of(query)?;
        let (answered, fallback) = match self.opened()?.as_mut() {
            Some(opened) => (answer(&mut opened.index, query, vector), opened.fallback),
            None => return Err(Error::new(ErrorKind::Damaged)),
        };
        let mut answered = match answered {
            Ok(answered) => answered,
            Err(error) => {
                self.give_up(error, 0)?;
                return Err(Error::new(ErrorKind::Damaged));
            }
        };
        answered.found.without_index = fallback;
        answered.found.by_meaning = by_meaning;
        describe(files, answered, query).await
    }

    /// Finds memories in the index as it stands, by their words only, without looking at the memory. It fails if there is no index.
    pub async fn recall_as_indexed(place: &Path, files: &dyn Backend, query: &Query) -> Result<Recalled> {
        let mut index = place::open_as_it_stands(place)?;
        let found = answer(&mut index, query, None)?;
        describe(files, found, query).await
    }

    /// Takes in the changes of the memory, and returns the files that could not be read.
    pub async fn refresh(&self, files: &dyn Backend, kinds: &Kinds) -> Result<Vec<Locator>> {
        for attempt in 0..MAX_ATTEMPTS {
            match self.refresh_once(files, kinds).await {
                Err(error) => self.give_up(error, attempt)?,
                refreshed => return refreshed,
            }
        }
        Err(Error::new(ErrorKind::Damaged))
    }

    async fn refresh_once(&self, files: &dyn Backend, kinds: &Kinds) -> Result<Vec<Locator>> {
        let tier = IndexedMemory { search: self, files, kinds };
        let known = match self.opened()?.as_mut() {
            Some(Opened { index, .. }) => {
                if !index.knows(kinds)? {
                    index.clear(kinds)?;
                }
                index.seen()?
            }
            None => return Err(Error::new(ErrorKind::Damaged)),
        };
        let changes = tier.changed_since(&known).await?;
        match self.opened()?.as_mut() {
            Some(opened) => opened.index.apply(files, kinds, &known, changes),
            None => Err(Error::new(ErrorKind::Damaged)),
        }
    }

    fn opened(&self) -> Result<MutexGuard<'_, Option<Opened>>> {
        let mut guard = lock(&self.index);
        if guard.is_none() {
            let index = match &self.place {
                Place::File(path) => place::open(path)?,
                Place::Memory => Index::in_memory()?,
            };
            *guard = Some(Opened { index, fallback: None });
        }
        Ok(guard)
    }

    /// Empties the index.
    fn forget(&self) -> Result<()> {
        match self.opened()?.as_mut() {
            Some(opened) => opened.index.forget(),
            None => Err(Error::new(ErrorKind::Damaged)),
        }
    }

    /// Replaces an index that failed: a damaged one by a new one, any other by one in memory. An index in memory is not replaced, so that a
    /// recall ends after three attempts at most.
    fn give_up(&self, error: Error, attempt: u32) -> Result<()> {
        let mut guard = lock(&self.index);
        let was_in_memory =
            guard.as_ref().is_some_and(|opened| opened.fallback.is_some()) || self.place == Place::Memory;
        // The file must be closed before it is deleted.
        *guard = None;
        let kind = error.kind();
        if was_in_memory || kind == ErrorKind::Files {
            return Err(error);
        }
        let replaced = match (&self.place, kind) {
            (Place::File(path), ErrorKind::Damaged) if attempt == 0 => place::replace(path),
            _ => Err(error),
        };
        *guard = Some(match replaced {
            Ok(index) => Opened { index, fallback: None },
            Err(error) => Opened { index: Index::in_memory()?, fallback: Some(error.kind()) },
        });
        Ok(())
    }
}

/// The memory with its index: the local-index tier.
pub struct IndexedMemory<'a> {
    /// The search that keeps the index.
    pub search: &'a MemorySearch,
    /// The memory.
    pub files: &'a dyn Backend,
    /// The kinds of the home.
    pub kinds: &'a Kinds,
}

#[async_trait]
impl DerivedMaintenance for IndexedMemory<'_> {
    async fn reindex(&self, tier: Tier) -> store::Result<()> {
        if tier != Tier::LocalIndex {
            return Err(store::Error::at(
                StoreErrorKind::Unsupported,
                Operation::Write,
                "index",
                format!("the search index is of the tier {}, not {tier}", Tier::LocalIndex),
            ));
        }
        let kinds = self.kinds;
        let failed = |error: Error| match error.into_files() {
            Ok(error) => error,
            Err(error) => {
                store::Error::at(StoreErrorKind::Unavailable, Operation::Write, "index", error.to_string())
            }
        };
        self.search.forget().map_err(failed)?;
        self.search.refresh(self.files, kinds).await.map(drop).map_err(failed)
    }

    async fn changed_since(&self, known: &Sightings) -> store::Result<Changes> {
        look_again(self.files, &Locator::root(), known).await
    }
}

/// An answer of the index, without the passages.
struct Answered {
    found: Recalled,
    hits: Vec<Ranked>,
    nearly: Vec<Ranked>,
    words: Vec<Word>,
}

fn answer(index: &mut Index, query: &Query, vector: Option<Vector>) -> Result<Answered> {
    let words = Words::of(&query.text, query.today);
    let meaning = match vector {
        Some(asked) => Some(Meaning { asked, vectors: index.vectors()? }),
        None => None,
    };
    let reader = index.read()?;
    let ranking = rank(&reader, query, &words, meaning.as_ref())?;
    let found = Recalled {
        looked_through: ranking.files,
        unread: too_large(&reader, query)?,
        words: words.words.iter().map(|word| word.word.clone()).collect(),
        ..Recalled::default()
    };
    Ok(Answered { found, hits: ranking.hits, nearly: ranking.nearly, words: words.words })
}

/// Adds the passages, from the files themselves.
async fn describe(files: &dyn Backend, answered: Answered, query: &Query) -> Result<Recalled> {
    let Answered { mut found, hits, nearly, words } = answered;
    for ranked in hits {
        let hit = hit(files, ranked, query, &words, &mut found.unread).await?;
        found.hits.extend(hit);
    }
    for ranked in nearly {
        let hit = hit(files, ranked, query, &words, &mut found.unread).await?;
        found.nearly.extend(hit);
    }
    let mut seen = BTreeSet::new();
    found.unread.retain(|locator| seen.insert(locator.clone()));
    Ok(found)
}

/// Returns a hit with its passage; `None` if the file is gone, or if we may not read it any more, which is noted.
async fn hit(
    files: &dyn Backend,
    ranked: Ranked,
    query: &Query,
    words: &[Word],
    unread: &mut Vec<Locator>,
) -> Result<Option<Hit>> {
    let Ranked { locator, record, kind, score, parts, words: has } = ranked;
    let object = match files.read(&locator).await {
        Ok(object) => object,
        Err(error) if error.kind() == StoreErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == StoreErrorKind::Denied => {
            unread.push(locator);
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let modified = files.info(&locator).await.ok().and_then(|info| info.modified);
    let text = String::from_utf8_lossy(&object.bytes);
    let line = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let whole =
        (line(record.first_line), line(record.first_line.saturating_add(u32::from(record.more_lines))));
    let shown = show(&text, whole, words);
    let lines = match query.unit {
        Unit::Memory => shown.lines,
        Unit::Passage => whole,
    };
    let missing: Vec<String> = words
        .iter()
        .enumerate()
        .filter(|(at, _)| !has.contains(at))
        .map(|(_, word)| word.word.clone())
        .collect();
    let found_by = if has.is_empty() && parts.meaning > 0.0 {
        FoundBy::Meaning
    } else if !missing.is_empty() {
        FoundBy::FewerWords(missing)
    } else if written(&format!("{locator} {text}"), words).len() == words.len() {
        FoundBy::AllWords
    } else {
        FoundBy::OtherForms
    };
    let matches = spans(&shown.text, words);
    let today: Option<Day> = query.today.to_string().parse().ok();
    let age = AgeFields::of(&text);
    let outdated = today.and_then(|today| age.outdated(today)).map(|outdated| outdated.to_string());
    Ok(Some(Hit {
        locator,
        lines,
        passage: shown.text,
        matches,
        found_by,
        kind,
        modified,
        outdated,
        score,
        parts,
    }))
}

impl Query {
    /// Returns where the words of the query are in a text, as ranges of bytes.
    pub fn matches(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        spans(text, &Words::of(&self.text, self.today).words)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
