//! Orders the passages and files that have words of a query, or whose meaning is near to it.
//!
//! 1. Only passages in the query's scope take part: its projects, directory, kinds and days. The rarity of a word is counted in these passages alone.
//! 2. A passage gets its BM25 score: rare words count more, and a word in a title counts more than one in the text ([`TITLE_WEIGHT`]).
//! 3. Each passage gives a part of its BM25 score ([`NEIGHBOUR`]) to the passages before and after it in the file, because the answer is often beside the
//!    passage that has the words.
//! 4. The sum of steps 2 and 3 is divided by the highest such sum. The best passage now has the score 1.
//! 5. With vectors, a passage gets up to [`MEANING`] more if its meaning is near to the query's: nothing if it is no nearer than the average passage, all of
//!    it if it is the nearest. The nearest passages take part even if they have no word of the query.
//! 6. The whole text of each file gets a BM25 score too, divided by the highest such score. A query for passages adds a part of it ([`FILE_IN_PASSAGE`]) to
//!    the score of each passage of the file. A query for files adds the scores of the file's three best passages to it; the second and third count less
//!    ([`NEXT_PASSAGE`]).
//! 7. Memories of the time that the query names count more ([`IN_TIME`]). Memories that say they are out of date come last.
//! 8. The answer is relevant if a file has enough of the query's words, rare words counting more ([`FLOOR`]), or if a passage is near enough ([`NEAR`]).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use haversack::store::Locator;

use crate::error::Result;
use crate::index::Reader;
use crate::index::segment::{Record, is_dead};
use crate::index::vectors::FileVectors;
use crate::query::{Query, Unit, Word, Words};
use crate::text::chunks::Occurrences;
use crate::text::dates::days_of;
use crate::vectors::{Vector, entries};

/// Saturation and length normalisation of BM25, for passages and for files.
const K1: f64 = 0.9;
const PASSAGE_B: f64 = 0.75;
const FILE_B: f64 = 0.5;

/// The weight of a word in a title.
const TITLE_WEIGHT: f64 = 2.0;

/// The part of a passage's BM25 score that each neighbour gets.
const NEIGHBOUR: f64 = 0.5;

/// The weight of a file's second-best passage compared with the best, and of the third compared with the second.
const NEXT_PASSAGE: f64 = 0.5;

/// The weight of a passage's file in the score of the passage.
const FILE_IN_PASSAGE: f64 = 0.6;

/// The factor for a memory of the time that the query names.
const IN_TIME: f64 = 1.3;

/// A hit must have at least this part of the best hit's score.
const WORTH: f64 = 0.1;

/// An answer is relevant if a file has words of the query that make up this part of the rarity of all. One word of two is not enough: a memory that
/// mentions a printer does not say how the printer is set up.
const FLOOR: f64 = 0.5;

/// The floor for files that have at least two of the words.
const FLOOR_OF_TWO: f64 = 0.25;

/// The floor for files that have one of the words in a title: they are about it.
const FLOOR_OF_TITLE: f64 = 0.4;

/// For the floor, the rarity of a word is counted as if the memory had this many more passages without it. In a small memory nearly every word is in few
/// passages, so its counts say little about rarity.
const COMMON_PASSAGES: usize = 1000;

/// The weight of a passage's nearness in meaning, compared with its words.
const MEANING: f64 = 0.6;

/// An answer is relevant if a passage is so near to the query, by the cosine of their vectors.
const NEAR: f32 = 0.5;

/// For the average nearness, as if there were so many passages more with the usual nearness of unrelated texts.
const PRIOR_PASSAGES: f32 = 20.0;
const USUAL_NEARNESS: f32 = 0.1;

/// The most passages that are found by their meaning alone.
const MAX_NEAREST: usize = 50;

/// The most hits beyond the limit that are kept because they have the same score as the last one: their names decide which of them are in the answer.
const MAX_TIES: usize = 1000;

/// A file or passage that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) locator: Locator,
    /// Its passage, or the best passage of the file.
    pub(crate) record: Record,
    pub(crate) kind: String,
    pub(crate) score: f64,
    pub(crate) parts: Parts,
    /// The words of the query that it has, by their places in the query.
    pub(crate) words: Vec<usize>,
}

/// The parts of a score.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// The BM25 score of the passage.
    pub passage: f64,
    /// The part of its neighbours' BM25 scores that the passage got.
    pub neighbours: f64,
    /// The BM25 score of the whole file, divided by the highest one.
    pub file: f64,
    /// The nearness of its meaning to the query's, from 0 to 1; 0 without vectors.
    pub meaning: f64,
    /// True if it is of the time that the query names.
    pub is_in_time: bool,
    /// The part of the query's words that it has, rare words counting more.
    pub coverage: f64,
}

/// The result of ranking.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ranking {
    /// The best first.
    pub(crate) hits: Vec<Ranked>,
    /// Hits that would have been in the answer if it were relevant.
    pub(crate) nearly: Vec<Ranked>,
    /// The number of files in scope.
    pub(crate) files: usize,
}

/// The passages of a segment, while they are ranked.
struct Scores {
    in_scope: Vec<bool>,
    own: Vec<f64>,
    spread: Vec<f64>,
    words: Vec<u32>,
    /// True for passages with a word in a title.
    in_title: Vec<bool>,
    touched: Vec<usize>,
    /// The BM25 scores of whole files, each at the place of the file's first passage.
    files: Vec<f64>,
    /// The nearness of each passage's meaning to the query's; empty without vectors.
    near: Vec<f32>,
}

/// The passages that have a term: their segment, place and counts.
struct Postings {
    word: usize,
    weight: f64,
    passages: Vec<(usize, u32, Occurrences)>,
    rarity: f64,
    file_rarity: f64,
}

/// The meaning of a query, and those of passages.
pub(crate) struct Meaning {
    pub(crate) asked: Vector,
    pub(crate) vectors: Arc<FileVectors>,
}

/// Returns the best files or passages for a query.
pub(crate) fn rank(
    reader: &Reader<'_>,
    query: &Query,
    words: &Words,
    meaning: Option<&Meaning>,
) -> Result<Ranking> {
    let names = reader.names()?;
    let mut scores = scope(reader, query, &names)?;
    let (mut passages, mut length, mut files) = (0usize, 0.0, 0usize);
    for (scores, (segment, _)) in scores.iter().zip(&reader.segments) {
        for (record, _) in segment.records.iter().zip(&scores.in_scope).filter(|(_, in_scope)| **in_scope) {
            passages += 1;
            length += f64::from(record.length);
            files += usize::from(record.place == 0);
        }
    }
    let passage_length = (length / float(passages)).max(1.0);
    let file_length = (length / float(files)).max(1.0);
    let mut postings = read(reader, &words.words, &scores)?;
    let mut floor_rarities: Vec<f64> = Vec::new();
    for at in 0..words.words.len() {
        // A word is as rare as it and its equivalents together. Passages with several of them are counted several times, which is cheap and nearly the same.
        let (mut with, mut with_files) = (0, 0);
        for Postings { passages, .. } in postings.iter().filter(|postings| postings.word == at) {
            with += passages.len();
            let file = |(segment, passage, _): &(usize, u32, Occurrences)| {
                reader.segments[*segment].0.records[index(*passage)].file
            };
            with_files += usize::from(!passages.is_empty())
                + passages.windows(2).filter(|two| file(&two[0]) != file(&two[1])).count();
        }
        let (rarity, file_rarity) =
            (rarity(passages, with.min(passages)), rarity(files, with_files.min(files)));
        for postings in postings.iter_mut().filter(|postings| postings.word == at) {
            postings.rarity = rarity;
            postings.file_rarity = file_rarity;
        }
        floor_rarities.push(self::rarity(passages + COMMON_PASSAGES, with.min(passages)));
    }
    for Postings { word, weight, passages, rarity, file_rarity } in &postings {
        let mut file: Option<(usize, usize, f64)> = None;
        let close = |file: Option<(usize, usize, f64)>, scores: &mut Vec<Scores>| {
            if let Some((segment, first, count)) = file {
                let length = f64::from(reader.segments[segment].0.file_lengths[first]);
                scores[segment].files[first] +=
                    weight * file_rarity * saturated(count, length / file_length, FILE_B);
            }
        };
        for (segment, passage, occurrences) in passages {
            let at = index(*passage);
            let record = &reader.segments[*segment].0.records[at];
            let count = f64::from(occurrences.text) + TITLE_WEIGHT * f64::from(occurrences.title);
            let of_segment = &mut scores[*segment];
            if of_segment.words[at] == 0 {
                of_segment.touched.push(at);
            }
            of_segment.words[at] |= 1 << word;
            of_segment.in_title[at] |= occurrences.title > 0;
            of_segment.own[at] +=
                weight * rarity * saturated(count, f64::from(record.length) / passage_length, PASSAGE_B);
            let first = at - usize::from(record.place);
            match &mut file {
                Some((of, from, sum)) if (*of, *from) == (*segment, first) => *sum += count,
                _ => {
                    close(file.take(), &mut scores);
                    file = Some((*segment, first, count));
                }
            }
        }
        close(file, &mut scores);
    }
    spread(reader, &mut scores);
    let nearest = meaning.map_or(0.0, |meaning| compare(reader, meaning, &mut scores));
    let candidates = candidates(reader, query, words, &scores, &floor_rarities);
    let mut ranking = Ranking { files, ..Ranking::default() };
    let is_relevant = nearest >= NEAR
        || candidates.iter().any(|Candidate { parts, words_of_file, is_in_title, .. }| {
            parts.coverage >= FLOOR
                || (words_of_file.count_ones() >= 2 && parts.coverage >= FLOOR_OF_TWO)
                || (*is_in_title && parts.coverage >= FLOOR_OF_TITLE)
        });
    let best = best_of(candidates, query.limit);
    let mut hits = Vec::new();
    for Candidate { segment, passage, score, parts, words, .. } in best {
        let record = reader.segments[segment].0.records[passage];
        let kind = names
            .get(&record.kind)
            .and_then(|name| name.strip_prefix("kind "))
            .unwrap_or_default()
            .to_owned();
        let words = (0..32).filter(|word| words & (1 << word) != 0).collect();
        hits.push(Ranked { locator: reader.locator(record.file)?, record, kind, score, parts, words });
    }
    let today = days_of(query.today);
    hits.sort_by(|one, other| {
        let order = |hit: &Ranked| (hit.record.is_outdated(today), std::cmp::Reverse(Total(hit.score)));
        let place = |hit: &Ranked| (hit.locator.clone(), hit.record.first_line);
        order(one).cmp(&order(other)).then_with(|| place(one).cmp(&place(other)))
    });
    hits.truncate(query.limit);
    if is_relevant {
        ranking.hits = hits;
    } else {
        ranking.nearly = hits;
    }
    Ok(ranking)
}

/// Finds the passages that the query may see.
fn scope(reader: &Reader<'_>, query: &Query, names: &BTreeMap<u16, String>) -> Result<Vec<Scores>> {
    let projects: HashSet<u16> = names
        .iter()
        .filter(|(_, name)| {
            name.strip_prefix("project ").is_some_and(|project| query.projects.hold_project(project))
        })
        .map(|(id, _)| *id)
        .chain([0])
        .collect();
    let kinds: Option<HashSet<u16>> = (!query.kinds.is_empty()).then(|| {
        let is_asked = |name: &str| name.strip_prefix("kind ").is_some_and(|kind| query.kinds.contains(kind));
        names.iter().filter(|(_, name)| is_asked(name)).map(|(id, _)| *id).collect()
    });
    let within = if query.within.is_root() { None } else { Some(reader.within(&query.within)?) };
    let (since, until) = (query.since.map(days_of), query.until.map(days_of));
    let holds = |record: &Record| {
        projects.contains(&record.project)
            && kinds.as_ref().is_none_or(|kinds| kinds.contains(&record.kind))
            && within.as_ref().is_none_or(|within| within.contains(&record.file))
            // A memory that does not say when it is from is not of that time.
            && since.is_none_or(|since| record.day >= since && record.day > 0)
            && until.is_none_or(|until| record.day <= until && record.day > 0)
    };
    let mut all = Vec::new();
    for (segment, dead) in &reader.segments {
        let count = segment.records.len();
        let in_scope = segment
            .records
            .iter()
            .zip(0..)
            .map(|(record, passage)| !is_dead(dead, passage) && holds(record))
            .collect();
        let zeros = vec![0.0; count];
        all.push(Scores {
            in_scope,
            own: zeros.clone(),
            spread: zeros.clone(),
            words: vec![0; count],
            in_title: vec![false; count],
            touched: Vec::new(),
            files: zeros,
            near: Vec::new(),
        });
    }
    Ok(all)
}

fn read(reader: &Reader<'_>, words: &[Word], scores: &[Scores]) -> Result<Vec<Postings>> {
    let mut all = Vec::new();
    for (word, Word { terms, .. }) in words.iter().enumerate() {
        for (term, weight) in terms {
            let mut passages = Vec::new();
            for (segment, scores) in scores.iter().enumerate() {
                reader.postings(segment, term, |passage, occurrences| {
                    if scores.in_scope[index(passage)] {
                        passages.push((segment, passage, occurrences));
                    }
                })?;
            }
            all.push(Postings { word, weight: *weight, passages, rarity: 0.0, file_rarity: 0.0 });
        }
    }
    Ok(all)
}

/// Gives a part of each passage's BM25 score to its neighbours.
fn spread(reader: &Reader<'_>, scores: &mut [Scores]) {
    for (scores, (segment, _)) in scores.iter_mut().zip(&reader.segments) {
        let records = &segment.records;
        for at in scores.touched.clone() {
            let gift = scores.own[at] * NEIGHBOUR;
            let is_neighbour =
                |other: usize| records.get(other).is_some_and(|record| record.file == records[at].file);
            for other in
                [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter(|other| is_neighbour(*other))
            {
                if !scores.in_scope[other] {
                    continue;
                }
                if scores.words[other] == 0 && scores.spread[other] == 0.0 {
                    scores.touched.push(other);
                }
                scores.spread[other] += gift;
            }
        }
    }
}

/// Compares the meanings of all passages in scope with the query's, and returns the cosine of the nearest.
fn compare(reader: &Reader<'_>, meaning: &Meaning, scores: &mut [Scores]) -> f32 {
    let (mut count, mut sum, mut nearest) = (0.0f32, 0.0f32, f32::MIN);
    for (scores, (segment, _)) in scores.iter_mut().zip(&reader.segments) {
        // A passage without a vector is far from every query.
        scores.near = vec![f32::NEG_INFINITY; segment.records.len()];
        let mut file: (u32, &[_]) = (u32::MAX, &[]);
        for (at, record) in segment.records.iter().enumerate() {
            if !scores.in_scope[at] {
                continue;
            }
            if file.0 != record.file {
                let of_file = meaning.vectors.get(&record.file).and_then(|bytes| entries(bytes));
                file = (record.file, of_file.unwrap_or_default());
            }
            let Some(entry) = file.1.get(usize::from(record.place)) else { continue };
            let near = meaning.asked.nearness(entry);
            scores.near[at] = near;
            (count, sum, nearest) = (count + 1.0, sum + near, nearest.max(near));
        }
    }
    if count == 0.0 {
        return 0.0;
    }
    // Few passages say little about the usual nearness.
    let average = (sum + PRIOR_PASSAGES * USUAL_NEARNESS) / (count + PRIOR_PASSAGES);
    let span = (nearest - average).max(f32::MIN_POSITIVE);
    let mut all: Vec<(f32, usize, usize)> = Vec::new();
    for (segment, scores) in scores.iter_mut().enumerate() {
        for (at, near) in scores.near.iter_mut().enumerate() {
            *near = ((*near - average) / span).max(0.0);
            if *near > 0.0 {
                all.push((*near, segment, at));
            }
        }
    }
    let order = |one: &(f32, usize, usize), other: &(f32, usize, usize)| {
        other.0.total_cmp(&one.0).then((one.1, one.2).cmp(&(other.1, other.2)))
    };
    if all.len() > MAX_NEAREST {
        let _ = all.select_nth_unstable_by(MAX_NEAREST, order);
        all.truncate(MAX_NEAREST);
    }
    for (_, segment, at) in all {
        let scores = &mut scores[segment];
        if scores.words[at] == 0 && scores.spread[at] == 0.0 {
            scores.touched.push(at);
        }
    }
    nearest
}

/// A file or passage with its score.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    segment: usize,
    passage: usize,
    score: f64,
    parts: Parts,
    words: u32,
    words_of_file: u32,
    /// True if a title in the file has one of the words.
    is_in_title: bool,
    is_outdated: bool,
}

fn candidates(
    reader: &Reader<'_>,
    query: &Query,
    words: &Words,
    scores: &[Scores],
    rarities: &[f64],
) -> Vec<Candidate> {
    let asked: f64 = rarities.iter().sum();
    let coverage = |words: u32| {
        let has = rarities
            .iter()
            .enumerate()
            .filter(|(word, _)| words & (1 << word) != 0)
            .map(|(_, rarity)| rarity)
            .sum::<f64>();
        if asked > 0.0 { has / asked } else { 0.0 }
    };
    let worth = |segment: usize, at: usize| scores[segment].own[at] + scores[segment].spread[at];
    let best_passage = scores
        .iter()
        .enumerate()
        .flat_map(|(segment, of)| of.touched.iter().map(move |at| worth(segment, *at)))
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let meaning =
        |segment: usize, at: usize| f64::from(scores[segment].near.get(at).copied().unwrap_or_default());
    let value =
        |segment: usize, at: usize| worth(segment, at) / best_passage + MEANING * meaning(segment, at);
    let best_file =
        scores.iter().flat_map(|of| &of.files).copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    // Files by the place of their first passage, with their touched passages.
    let mut files: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    for (segment, of) in scores.iter().enumerate() {
        for at in &of.touched {
            let first = at - usize::from(reader.segments[segment].0.records[*at].place);
            files.entry((segment, first)).or_default().push(*at);
        }
    }
    let in_time = |segment: usize, at: usize| {
        let day = reader.segments[segment].0.records[at].day;
        words.span.is_some_and(|span| day > 0 && span.holds(day))
    };
    let today = days_of(query.today);
    let mut candidates = Vec::new();
    for ((segment, first), mut passages) in files {
        let of = &scores[segment];
        passages.sort_by(|one, other| {
            value(segment, *other).total_cmp(&value(segment, *one)).then(one.cmp(other))
        });
        let file = of.files[first] / best_file;
        let is_outdated = reader.segments[segment].0.records[first].is_outdated(today);
        let is_in_title = passages.iter().any(|at| of.in_title[*at]);
        let words_of_file = passages.iter().fold(0, |words, at| words | of.words[*at]);
        match query.unit {
            Unit::Memory => {
                let Some(best) = passages.first().copied() else { continue };
                let mut decay = 1.0;
                let mut sum = 0.0;
                for at in passages.iter().take(3) {
                    sum += decay * value(segment, *at);
                    decay *= NEXT_PASSAGE;
                }
                let is_in_time = passages.iter().any(|at| of.words[*at] != 0 && in_time(segment, *at));
                let score = (file + sum) * if is_in_time { IN_TIME } else { 1.0 };
                let parts = Parts {
                    passage: of.own[best],
                    neighbours: of.spread[best],
                    file,
                    meaning: meaning(segment, best),
                    is_in_time,
                    coverage: coverage(words_of_file),
                };
                candidates.push(Candidate {
                    segment,
                    passage: best,
                    score,
                    parts,
                    words: words_of_file,
                    words_of_file,
                    is_in_title,
                    is_outdated,
                });
            }
            Unit::Passage => candidates.extend(passages.iter().map(|at| {
                let is_in_time = in_time(segment, *at);
                let score =
                    (value(segment, *at) + FILE_IN_PASSAGE * file) * if is_in_time { IN_TIME } else { 1.0 };
                let parts = Parts {
                    passage: of.own[*at],
                    neighbours: of.spread[*at],
                    file,
                    meaning: meaning(segment, *at),
                    is_in_time,
                    coverage: coverage(words_of_file),
                };
                Candidate {
                    segment,
                    passage: *at,
                    score,
                    parts,
                    words: of.words[*at],
                    words_of_file,
                    is_in_title,
                    is_outdated,
                }
            })),
        }
    }
    candidates
}

/// Returns the best candidates, with those that are as good as the last of them.
fn best_of(mut candidates: Vec<Candidate>, limit: usize) -> Vec<Candidate> {
    let best = candidates.iter().map(|candidate| candidate.score).fold(0.0, f64::max);
    candidates.retain(|candidate| candidate.score >= best * WORTH && candidate.score > 0.0);
    candidates.sort_by(|one, other| {
        one.is_outdated.cmp(&other.is_outdated).then(other.score.total_cmp(&one.score))
    });
    let last = candidates.get(limit.saturating_sub(1)).map_or(0.0, |candidate| candidate.score);
    let ties = candidates
        .iter()
        .skip(limit)
        .take_while(|candidate| candidate.score.total_cmp(&last).is_eq())
        .count();
    candidates.truncate(limit.saturating_add(ties.min(MAX_TIES)));
    candidates
}

/// Returns how rare a word is: the weight that BM25 gives to it.
fn rarity(all: usize, with: usize) -> f64 {
    (1.0 + (float(all) - float(with) + 0.5) / (float(with) + 0.5)).ln()
}

/// Returns the BM25 score of a word that occurs `count` times, without its rarity. `length` is that of the text, divided by the average.
fn saturated(count: f64, length: f64, b: f64) -> f64 {
    count * (K1 + 1.0) / (count + K1 * (1.0 - b + b * length))
}

/// A number with an order.
#[derive(Clone, Copy, PartialEq)]
struct Total(f64);

impl Eq for Total {}

impl PartialOrd for Total {
    fn partial_cmp(&self, other: &Total) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Total {
    fn cmp(&self, other: &Total) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

fn index(passage: u32) -> usize {
    usize::try_from(passage).unwrap_or(usize::MAX)
}

fn float(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::MAX, f64::from)
}

/// Returns the files in the scope of a query that are too large to be found.
pub(crate) fn too_large(reader: &Reader<'_>, query: &Query) -> Result<Vec<Locator>> {
    let files = reader.too_large()?;
    Ok(files
        .into_iter()
        .filter(|locator| locator.is_within(&query.within) && query.projects.hold(locator))
        .collect())
}
