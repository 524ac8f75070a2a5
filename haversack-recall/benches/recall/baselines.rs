//! The baselines of recall: a plain FTS5 table, and the scan that came before the index.

use rusqlite::Connection;

use crate::data::{Memory, Question};
use crate::scan::{EMPTY_WORDS, Words, rank};

/// Returns the whole files of a memory.
pub(crate) fn files(memory: &Memory) -> Vec<(String, String)> {
    memory.texts.iter().map(|(name, text)| (name.clone(), text.clone())).collect()
}

/// Returns the turns with the date of their session.
pub(crate) fn units(memory: &Memory) -> Vec<(String, String)> {
    let text = |(file, line): &(String, usize)| {
        let lines: Vec<&str> = memory.texts[file].lines().collect();
        format!("({}) {}", lines[0].trim_start_matches("# "), lines[line - 1])
    };
    memory.units.iter().map(|(place, unit)| (unit.clone(), text(place))).collect()
}

/// Returns a plain FTS5 program.
pub(crate) fn fts5(texts: Vec<(String, String)>) -> impl FnMut(&Question) -> Vec<String> {
    let db = Connection::open_in_memory().expect("opened");
    db.execute_batch(
        "CREATE VIRTUAL TABLE memory USING fts5(name UNINDEXED, text, tokenize = 'porter unicode61')",
    )
    .expect("made");
    for (name, text) in texts {
        let _ = db.execute("INSERT INTO memory VALUES (?1, ?2)", [name, text]).expect("written");
    }
    move |question| {
        let words = question.text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
        let words = words.filter(|word| !word.is_empty() && !EMPTY_WORDS.contains(&word.as_str()));
        let query = words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
        let mut statement = db
            .prepare_cached("SELECT name FROM memory WHERE memory MATCH ?1 ORDER BY rank LIMIT 50")
            .expect("prepared");
        let rows = statement.query_map([query], |row| row.get(0)).expect("asked");
        rows.collect::<Result<_, _>>().unwrap_or_default()
    }
}

/// Returns the scan that came before the index.
pub(crate) fn scan(texts: Vec<(String, String)>) -> impl FnMut(&Question) -> Vec<String> {
    move |question| {
        let words = Words::of(&question.text);
        let counted = texts.iter().filter_map(|(name, text)| Some((name.clone(), words.count(name, text)?)));
        rank(&words, counted.collect(), texts.len()).into_iter().map(|(name, _)| name).take(50).collect()
    }
}
