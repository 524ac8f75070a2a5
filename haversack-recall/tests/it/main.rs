//! Tests of recall, over real directories and over memory.

use haversack::store::{
    Backend, BackendExt, Bytes, Condition, DeviceLocal, ErrorKind, InMemory, Locator, block_on,
};
use haversack_recall::{DEFAULT_LIMIT, Projects, Query, Recalled, TextCache};

fn at(name: &str) -> Locator {
    Locator::parse(name).expect("valid")
}

fn write(files: &dyn Backend, name: &str, bytes: &[u8]) {
    let _ = block_on(files.write(&at(name), Bytes::copy_from_slice(bytes), Condition::Any)).expect("written");
}

fn query(text: &str) -> Query {
    Query { text: text.to_owned(), within: Locator::root(), projects: Projects::all(), limit: DEFAULT_LIMIT }
}

fn names(recalled: &Recalled) -> Vec<&str> {
    recalled.hits.iter().map(|hit| hit.locator.as_str()).collect()
}

#[test]
fn what_changed_is_seen_by_the_next_look() {
    let directory = tempfile::tempdir().expect("made");
    let locks = tempfile::tempdir().expect("made");
    let files = DeviceLocal::open(directory.path(), locks.path()).expect("opened");
    let mut cache = TextCache::new();
    let mut found = |text: &str| {
        let recalled = block_on(cache.recall(&files, &query(text))).expect("looked");
        names(&recalled).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(found("lamp").is_empty());
    write(&files, "a.md", b"the lamp\n");
    assert_eq!(found("lamp"), ["a.md"]);
    // In place, of the same size, by a program that knows nothing of us.
    std::fs::write(directory.path().join("a.md"), "the lens\n").expect("written");
    assert!(found("lamp").is_empty());
    assert_eq!(found("lens"), ["a.md"]);
    std::fs::rename(directory.path().join("a.md"), directory.path().join("b.md")).expect("renamed");
    assert_eq!(found("lens"), ["b.md"]);
    std::fs::remove_file(directory.path().join("b.md")).expect("removed");
    assert!(found("lens").is_empty());
}

#[test]
fn a_hit_says_where_and_of_what_kind() {
    let files = InMemory::new();
    write(
        &files,
        "claude_memory/lighthouse/project_lamp.md",
        b"---\nname: lamp\ntype: project\n---\n\nOne.\nThe lamp turns.\n",
    );
    write(&files, "notes/other.md", b"Nothing of it.\n");
    write(&files, "image.png", b"\x89PNG lamp \xff\x00");
    let recalled = block_on(TextCache::new().recall(&files, &query("lamp turns"))).expect("looked");
    assert_eq!(names(&recalled), ["claude_memory/lighthouse/project_lamp.md"]);
    let hit = &recalled.hits[0];
    assert_eq!((hit.lines, hit.passage.as_str(), hit.kind.as_str()), ((7, 7), "The lamp turns.", "project"));
    assert_eq!((recalled.looked_through, recalled.unread.len()), (2, 0));
    let below = Query { within: at("notes"), ..query("lamp") };
    let recalled = block_on(TextCache::new().recall(&files, &below)).expect("looked");
    assert_eq!((names(&recalled).len(), recalled.looked_through), (0, 1));
}

#[test]
fn the_same_fact_in_other_words_spaces_is_found() {
    let files = InMemory::new();
    write(&files, "behavioral/feedback_short.md", b"---\nname: short\n---\n\nAnswer in five lines.\n");
    let mut cache = TextCache::new();
    let mut same =
        |within: &str, text: &str| block_on(cache.same(&files, &at(within), text)).expect("looked");
    assert_eq!(same("behavioral", "answer in\nFIVE lines."), Some(at("behavioral/feedback_short.md")));
    assert_eq!(same("behavioral", "answer in six lines."), None);
    assert_eq!(same("elsewhere", "answer in five lines."), None);
}

#[test]
fn what_could_not_be_read_is_told() {
    let files = InMemory::new();
    write(&files, "huge.md", "lamp ".repeat(300_000).as_bytes());
    write(&files, "small.md", b"lamp");
    let recalled = block_on(TextCache::new().recall(&files, &query("lamp"))).expect("looked");
    assert_eq!((names(&recalled), recalled.unread.as_slice()), (vec!["small.md"], &[at("huge.md")][..]));
    let gone = tempfile::tempdir().expect("made");
    let locks = tempfile::tempdir().expect("made");
    let files = DeviceLocal::open(gone.path().join("memory"), locks.path()).expect("opened");
    assert!(block_on(files.read_text(&at("x.md"))).expect("looked").is_none());
    std::fs::remove_dir_all(gone.path()).expect("removed");
    let error = block_on(TextCache::new().recall(&files, &query("lamp"))).expect_err("it is not there");
    assert!(error.kind() != ErrorKind::Conflict, "{error}");
}
