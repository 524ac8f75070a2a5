//! Counts the right memories that are found.

use std::path::Path;

use haversack::kind::Kinds;
use haversack::store::block_on;
use haversack_recall::{MemorySearch, Place, Query, Unit};

use crate::baselines;
use crate::data::{Memory, Question, locomo, longmemeval};
use crate::questions;
use crate::score::{Scores, mean, score};
use crate::vectors::{self, Model};

/// The number of hits that are asked for.
const LIMIT: usize = 50;

/// Returns, for a question, the units that were found, best first.
type Ranker<'a> = Box<dyn FnMut(&Question) -> Vec<String> + 'a>;

/// The step between the questions of LongMemEval that are asked with a model: reading all sessions takes an hour.
const EVERY: usize = 3;

/// Measures on the data sets and prints the tables, with a model if there is one.
pub(crate) fn on_data(data: &Path, model: Option<&Model>) {
    let memories = locomo(&data.join("locomo").join("locomo-dev.json"));
    println!("\nLoCoMo, turns: {} conversations, {} questions; in %", memories.len(), asked(&memories));
    println!("{:22} {:>6} {:>6} {:>6} {:>8} {:>9}", "", "R@5", "R@10", "R@25", "nDCG@10", "answered");
    turns("plain FTS5", &memories, |memory| Box::new(baselines::fts5(baselines::units(memory))));
    turns("scan without index", &memories, |memory| Box::new(baselines::scan(baselines::units(memory))));
    turns("recall --passages", &memories, |memory| Box::new(ours(memory, Unit::Passage)));
    if let Some(model) = model {
        turns("vectors alone", &memories, |memory| Box::new(vectors::turns(memory, model)));
        turns("recall with vectors", &memories, |memory| {
            Box::new(with(vectors::search(memory, model), memory, Unit::Passage))
        });
    }
    let memories = longmemeval(&data.join("longmemeval").join("lme-s-dev.jsonl.gz"));
    println!("\nLongMemEval_S, sessions: {} questions; in %", asked(&memories));
    println!("{:22} {:>6} {:>6} {:>6} {:>9}", "", "any@1", "any@5", "all@5", "answered");
    sessions("plain FTS5", &memories, |memory| Box::new(baselines::fts5(baselines::files(memory))));
    sessions("scan without index", &memories, |memory| Box::new(baselines::scan(baselines::files(memory))));
    sessions("recall", &memories, |memory| Box::new(ours(memory, Unit::Memory)));
    if let Some(model) = model {
        let third: Vec<Memory> = memories.into_iter().step_by(EVERY).collect();
        println!("every third question: {}", asked(&third));
        sessions("recall", &third, |memory| Box::new(ours(memory, Unit::Memory)));
        sessions("vectors alone", &third, |memory| Box::new(vectors::files(memory, model)));
        sessions("recall with vectors", &third, |memory| {
            Box::new(with(vectors::search(memory, model), memory, Unit::Memory))
        });
    }
}

/// Measures on the questions over a memory of ours, and prints the table and every failure.
pub(crate) fn on_questions(model: Option<&Model>) {
    let memory = questions::memory();
    let (answerable, unanswerable): (Vec<_>, Vec<_>) =
        memory.questions.iter().partition(|question| !question.relevant.is_empty());
    println!(
        "\nQuestions over a working memory: {} with an answer, {} without",
        answerable.len(),
        unanswerable.len()
    );
    println!("{:22} {:>12} {:>12} {:>14}", "", "right first", "right in 3", "wrongly found");
    let mut rankers: Vec<(&str, Ranker<'_>)> = vec![
        ("plain FTS5", Box::new(baselines::fts5(baselines::files(&memory)))),
        ("scan without index", Box::new(baselines::scan(baselines::files(&memory)))),
        ("recall", Box::new(ours(&memory, Unit::Memory))),
    ];
    if let Some(model) = model {
        let search = vectors::search(&memory, model);
        rankers.push(("recall with vectors", Box::new(with(search, &memory, Unit::Memory))));
    }
    for (name, mut rank) in rankers {
        let mut failures = Vec::new();
        let (mut first, mut third, mut wrongly) = (0, 0, 0);
        for question in &answerable {
            let found = rank(question);
            let is_right =
                |depth: usize| found.iter().take(depth).any(|file| question.relevant.contains(file));
            first += usize::from(is_right(1));
            third += usize::from(is_right(3));
            if !is_right(3) {
                failures.push(format!(
                    "  not found: {} (found {:?})",
                    question.text,
                    found.iter().take(3).collect::<Vec<_>>()
                ));
            }
        }
        for question in &unanswerable {
            let found = rank(question);
            wrongly += usize::from(!found.is_empty());
            if !found.is_empty() {
                failures.push(format!(
                    "  wrongly found: {} (found {:?})",
                    question.text,
                    found.iter().take(3).collect::<Vec<_>>()
                ));
            }
        }
        println!("{name:22} {first:>12} {third:>12} {wrongly:>14}");
        if name.starts_with("recall") {
            failures.iter().for_each(|failure| println!("{failure}"));
        }
    }
}

fn asked(memories: &[Memory]) -> usize {
    memories.iter().map(|memory| memory.questions.len()).sum()
}

/// Returns what the program finds.
fn ours(memory: &Memory, unit: Unit) -> impl FnMut(&Question) -> Vec<String> + '_ {
    with(MemorySearch::new(Place::Memory), memory, unit)
}

/// Returns what a search finds.
fn with(search: MemorySearch, memory: &Memory, unit: Unit) -> impl FnMut(&Question) -> Vec<String> + '_ {
    move |question| {
        let query = Query { unit, limit: LIMIT, ..Query::new(&question.text, question.today) };
        let recalled =
            block_on(search.recall(&memory.files, Kinds::built_in(), &query)).expect("memory does not fail");
        let mut found: Vec<String> = Vec::new();
        for hit in recalled.hits {
            let file = hit.locator.to_string();
            let (first, last) = hit.lines;
            match unit {
                Unit::Memory => found.push(file),
                Unit::Passage => found.extend(
                    (first..=last).filter_map(|line| memory.units.get(&(file.clone(), line)).cloned()),
                ),
            }
        }
        found
    }
}

fn scores<'m>(
    memories: &'m [Memory],
    ranker: impl Fn(&'m Memory) -> Ranker<'m>,
) -> (Vec<(&'m str, Scores)>, Scores, f64, f64) {
    let mut each = Vec::new();
    let mut all = Vec::new();
    let (mut firsts, mut answered) = (0.0, 0.0);
    for memory in memories {
        let mut rank = ranker(memory);
        let mut of_memory = Vec::new();
        for question in &memory.questions {
            let found = rank(question);
            firsts +=
                if found.first().is_some_and(|first| question.relevant.contains(first)) { 1.0 } else { 0.0 };
            answered += if found.is_empty() { 0.0 } else { 1.0 };
            of_memory.push(score(&found, &question.relevant));
        }
        each.push((memory.name.as_str(), mean(&of_memory)));
        all.extend(of_memory);
    }
    let percent = |sum: f64| 100.0 * sum / crate::score::float(all.len());
    let (firsts, answered) = (percent(firsts), percent(answered));
    (each, mean(&all), firsts, answered)
}

fn turns<'m>(name: &str, memories: &'m [Memory], ranker: impl Fn(&'m Memory) -> Ranker<'m>) {
    let (each, all, _, answered) = scores(memories, ranker);
    let line = |name: &str, Scores { recall: [five, ten, twenty_five], ndcg, .. }: Scores, rest: String| {
        println!("{name:22} {five:>6.1} {ten:>6.1} {twenty_five:>6.1} {ndcg:>8.1} {rest:>9}");
    };
    line(name, all, format!("{answered:.1}"));
    if name.starts_with("recall") {
        each.into_iter().for_each(|(name, scores)| line(&format!("  {name}"), scores, String::new()));
    }
}

fn sessions<'m>(name: &str, memories: &'m [Memory], ranker: impl Fn(&'m Memory) -> Ranker<'m>) {
    let (_, all, firsts, answered) = scores(memories, ranker);
    println!("{name:22} {firsts:>6.1} {:>6.1} {:>6.1} {answered:>9.1}", all.any, all.all);
}
