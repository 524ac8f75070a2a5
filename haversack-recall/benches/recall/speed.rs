//! Measures the speed of recall beside plain FTS5 over the same texts in the same run.

use std::path::Path;
use std::time::{Duration, Instant};

use haversack::kind::Kinds;
use haversack::store::{Backend, Bytes, Condition, DeviceLocal, Locator, block_on};
use haversack_recall::{MemorySearch, Place, Query};
use rusqlite::Connection;

use crate::scan::EMPTY_WORDS;

/// The number of words of a memory.
const WORDS: usize = 60;

/// The number of queries.
const QUERIES: usize = 200;

/// A source of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Returns a word: few words are common, many are rare.
    fn word(&mut self) -> String {
        let rank = 1 << (self.next() % 15);
        let number = rank + self.next() % rank;
        let syllables = ["ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu"];
        number.to_string().bytes().map(|digit| syllables[usize::from(digit - b'0')]).collect()
    }
}

/// Measures with so many memories and prints the table.
pub(crate) fn run(memories: usize) {
    let directory = tempfile::tempdir().expect("made");
    let files =
        DeviceLocal::open(directory.path().join("memory"), directory.path().join("locks")).expect("opened");
    let mut numbers = Numbers(7);
    let mut texts = Vec::new();
    let mut size = 0;
    for number in 0..memories {
        let words: Vec<String> = (0..WORDS).map(|_| numbers.word()).collect();
        let text = format!(
            "---\nname: {} {}\ntype: project\n---\n\n{}\n\n{}\n",
            words[0],
            words[1],
            words[..WORDS / 2].join(" "),
            words[WORDS / 2..].join(" ")
        );
        size += text.len();
        let name = format!("notes/{:02}/{number}.md", number % 100);
        std::fs::create_dir_all(directory.path().join("memory/notes").join(format!("{:02}", number % 100)))
            .expect("made");
        std::fs::write(directory.path().join("memory").join(&name), &text).expect("written");
        texts.push((name, words.join(" ")));
    }
    let queries: Vec<String> = (0..QUERIES)
        .map(|number| {
            let (_, text) = &texts[usize::try_from(numbers.next()).unwrap_or(0) % texts.len()];
            let words: Vec<&str> = text.split(' ').filter(|word| !EMPTY_WORDS.contains(word)).collect();
            (0..=number % 8).map(|at| words[(at * 7 + number) % words.len()]).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let place = directory.path().join("recall.sqlite");
    let today = jiff::civil::date(2026, 11, 18);
    let search = MemorySearch::new(Place::File(place.clone()));
    let kinds = Kinds::built_in();
    let refresh = || drop(block_on(search.refresh(&files, kinds)).expect("refreshed"));
    let rebuilt = timed(refresh);
    // Fresh files are read twice, because their times cannot be trusted yet.
    let second = timed(refresh);
    let look = median((0..5).map(|_| timed(refresh)).collect());
    let recall = |query: &String| {
        let asked = Query::new(query, today);
        timed(|| drop(block_on(search.recall(&files, kinds, &asked)).expect("recalled"))).saturating_sub(look)
    };
    let first = recall(&queries[0]);
    let warm: Vec<Duration> = queries.iter().map(recall).collect();
    let as_indexed = |query: &String| {
        let asked = Query::new(query, today);
        timed(|| drop(block_on(MemorySearch::recall_as_indexed(&place, &files, &asked)).expect("recalled")))
    };
    let cold: Vec<Duration> = queries.iter().take(50).map(as_indexed).collect();
    let name = Locator::parse("notes/00/0.md").expect("valid");
    let changed: Vec<Duration> = (0..5)
        .map(|number| {
            let text = Bytes::from(format!("Changed {number} submarine.\n"));
            drop(block_on(files.write(&name, text, Condition::Any)).expect("written"));
            timed(refresh).saturating_sub(look)
        })
        .collect();
    drop(search);
    let bytes = std::fs::metadata(&place).expect("there").len();
    let (fts5_built, fts5_bytes, fts5) = fts5(&directory.path().join("fts5.sqlite"), &texts, &queries);
    println!("\n{memories} memories, {} MB of text", size / 1_000_000);
    println!("{:34} {:>10} {:>10}", "", "recall", "FTS5");
    let row = |name: &str, ours: String, theirs: String| println!("{name:34} {ours:>10} {theirs:>10}");
    let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
    row("index made", ms(rebuilt), ms(fts5_built));
    row("second look", ms(second), "-".to_owned());
    row("look at unchanged files", ms(look), "-".to_owned());
    row("first query beyond the look", ms(first), "-".to_owned());
    row("query beyond the look, p50", ms(percentile(&warm, 50)), ms(percentile(&fts5, 50)));
    row("query beyond the look, p95", ms(percentile(&warm, 95)), ms(percentile(&fts5, 95)));
    row("opened and asked as it stands, p50", ms(percentile(&cold, 50)), "-".to_owned());
    row("one changed file beyond the look", ms(median(changed)), "-".to_owned());
    let ratio = |bytes: u64| format!("{:.2}", bytes as f64 / size as f64);
    row("size, as a part of the text", ratio(bytes), ratio(fts5_bytes));
}

fn fts5(place: &Path, texts: &[(String, String)], queries: &[String]) -> (Duration, u64, Vec<Duration>) {
    let mut db = Connection::open(place).expect("opened");
    db.execute_batch(
        "CREATE VIRTUAL TABLE memory USING fts5(name UNINDEXED, text, tokenize = 'porter unicode61')",
    )
    .expect("made");
    let built = timed(|| {
        let transaction = db.transaction().expect("begun");
        for (name, text) in texts {
            let _ = transaction.execute("INSERT INTO memory VALUES (?1, ?2)", [name, text]).expect("written");
        }
        transaction.commit().expect("committed");
    });
    let ask = |query: &String| {
        let query = query.split(' ').map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
        timed(|| {
            let mut statement = db
                .prepare_cached("SELECT name FROM memory WHERE memory MATCH ?1 ORDER BY rank LIMIT 8")
                .expect("prepared");
            let rows = statement.query_map([query], |row| row.get::<_, String>(0)).expect("asked");
            assert!(rows.count() > 0);
        })
    };
    let times = queries.iter().map(ask).collect();
    (built, std::fs::metadata(place).expect("there").len(), times)
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median(times: Vec<Duration>) -> Duration {
    percentile(&times, 50)
}

fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}
