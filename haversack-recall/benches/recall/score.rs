//! Scores another program's ranking: `cargo xtask recall score QRELS.jsonl RUN.jsonl`.
//!
//! Each line of QRELS is `{"qid": "q1", "relevant": ["a.md", "b.md"]}`, each line of RUN `{"qid": "q1", "ids": ["b.md", "c.md"]}` with the best
//! first. A query without a line in RUN scores 0.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

/// The scores of one ranking.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Scores {
    pub(crate) recall: [f64; 3],
    pub(crate) ndcg: f64,
    pub(crate) any: f64,
    pub(crate) all: f64,
}

/// The depths at which recall is measured.
pub(crate) const DEPTHS: [usize; 3] = [5, 10, 25];

/// Reads both files and returns the mean scores in %, as a table, or the reason why it could not.
pub(crate) fn run(qrels: &Path, run: &Path) -> Result<String, String> {
    let relevant = read(qrels, "relevant")?;
    let ranked = read(run, "ids")?;
    if relevant.is_empty() {
        return Err(format!("{} has no queries", qrels.display()));
    }
    let strangers = ranked.keys().filter(|query| !relevant.contains_key(*query)).count();
    let none = Vec::new();
    let scores: Vec<Scores> = relevant
        .iter()
        .map(|(query, relevant)| score(ranked.get(query).unwrap_or(&none), relevant))
        .collect();
    let missing = relevant.keys().filter(|query| !ranked.contains_key(*query)).count();
    let mean = mean(&scores);
    let [five, ten, twenty_five] = mean.recall;
    Ok(format!(
        "{} queries, {missing} without a ranking, {strangers} rankings of unknown queries; in %\n{:>6} {:>6} {:>6} {:>8} {:>7} {:>7}\n{five:>6.1} {ten:>6.1} {twenty_five:>6.1} {:>8.1} {:>7.1} {:>7.1}",
        relevant.len(),
        "R@5",
        "R@10",
        "R@25",
        "nDCG@10",
        "any@5",
        "all@5",
        mean.ndcg,
        mean.any,
        mean.all
    ))
}

fn read(path: &Path, field: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lists = BTreeMap::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let wrong = || {
            format!("{}, line {number}: it is not {{\"qid\": \"…\", \"{field}\": [\"…\"]}}", path.display())
        };
        let value: Value = serde_json::from_str(line).map_err(|_| wrong())?;
        let query = value["qid"].as_str().ok_or_else(wrong)?;
        let ids = value[field].as_array().ok_or_else(wrong)?;
        let ids: Option<Vec<String>> = ids.iter().map(|id| id.as_str().map(str::to_owned)).collect();
        if lists.insert(query.to_owned(), ids.ok_or_else(wrong)?).is_some() {
            return Err(format!("{}, line {number}: the query {query} is there twice", path.display()));
        }
    }
    Ok(lists)
}

/// Scores one ranking. An id that is ranked twice counts once, at its first place.
pub(crate) fn score(ranked: &[String], relevant: &[String]) -> Scores {
    let mut seen = BTreeSet::new();
    let ranked: Vec<&String> = ranked.iter().filter(|id| seen.insert(id.as_str())).collect();
    let hits = |depth: usize| float(ranked.iter().take(depth).filter(|id| relevant.contains(id)).count());
    let gain = |place: usize| 1.0 / (float(place) + 2.0).log2();
    let gained: f64 = ranked
        .iter()
        .take(10)
        .enumerate()
        .filter(|(_, id)| relevant.contains(id))
        .map(|(place, _)| gain(place))
        .sum();
    let best: f64 = (0..relevant.len().min(10)).map(gain).sum();
    let all = float(relevant.len().max(1));
    let one = |holds: bool| if holds { 1.0 } else { 0.0 };
    Scores {
        recall: DEPTHS.map(|depth| hits(depth) / all),
        ndcg: if best > 0.0 { gained / best } else { 0.0 },
        any: one(hits(5) > 0.0),
        all: one(!relevant.is_empty() && hits(5) >= all),
    }
}

/// Returns the means of scores, in %.
pub(crate) fn mean(scores: &[Scores]) -> Scores {
    let mean = |value: fn(&Scores) -> f64| {
        100.0 * scores.iter().map(value).sum::<f64>() / float(scores.len().max(1))
    };
    Scores {
        recall: [mean(|one| one.recall[0]), mean(|one| one.recall[1]), mean(|one| one.recall[2])],
        ndcg: mean(|one| one.ndcg),
        any: mean(|one| one.any),
        all: mean(|one| one.all),
    }
}

pub(crate) fn float(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::MAX, f64::from)
}
