//! The scores of `cargo xtask recall score`, on rankings whose scores are known.

use std::fs;

#[path = "../../benches/recall/score.rs"]
mod score;

/// Scores a ranking that is given as lines.
fn scored(qrels: &str, run: &str) -> Result<String, String> {
    let directory = tempfile::tempdir().expect("made");
    let (qrels_file, run_file) = (directory.path().join("qrels.jsonl"), directory.path().join("run.jsonl"));
    fs::write(&qrels_file, qrels).expect("written");
    fs::write(&run_file, run).expect("written");
    let base = format!("{}/", directory.path().display());
    score::run(&qrels_file, &run_file).map_err(|why| why.replace(&base, ""))
}

const QRELS: &str = r#"
{"qid": "both", "relevant": ["a.md", "b.md"]}
{"qid": "unranked", "relevant": ["x.md"]}
{"qid": "late", "relevant": ["d.md"]}
"#;

#[test]
fn scores_of_a_known_ranking_are_right() {
    // nDCG: (1 + 1/log2(4)) / (1 + 1/log2(3)) = 0.9197; nothing; 1/log2(8) = 0.3333. The second b.md does not count.
    let run = r#"
{"qid": "both", "ids": ["b.md", "b.md", "c.md", "a.md"]}
{"qid": "late", "ids": ["1", "2", "3", "4", "5", "6", "d.md"]}
{"qid": "stranger", "ids": ["a.md"]}
"#;
    let expected = "\
3 queries, 1 without a ranking, 1 rankings of unknown queries; in %
   R@5   R@10   R@25  nDCG@10   any@5   all@5
  33.3   66.7   66.7     41.8    33.3    33.3";
    assert_eq!(scored(QRELS, run).as_deref(), Ok(expected));
    // A perfect ranking has all points.
    let perfect = QRELS.replace("relevant", "ids");
    assert!(scored(QRELS, &perfect).is_ok_and(|table| table.ends_with(" 100.0   100.0   100.0")));
}

#[test]
fn wrong_files_are_told_by_line() {
    let twice = "{\"qid\": \"both\", \"ids\": []}\n".repeat(2);
    for (qrels, run, why) in [
        (QRELS, "{\"qid\": \"both\"}\n", "run.jsonl, line 1: it is not {\"qid\": \"…\", \"ids\": [\"…\"]}"),
        (QRELS, &twice, "run.jsonl, line 2: the query both is there twice"),
        ("", "", "qrels.jsonl has no queries"),
    ] {
        assert_eq!(scored(qrels, run).as_ref().map_err(String::as_str), Err(why));
    }
}
