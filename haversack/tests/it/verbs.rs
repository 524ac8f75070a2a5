//! The verbs of the memory itself.

use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::block_on;
use haversack::store::{Backend, ErrorKind, Fault, Locator};
use haversack::{Depth, Ending, MAX_TEXT_BYTES, Memory, Reason, View};

use crate::subjects::{Subject, at, on_every_backend};

on_every_backend!(
    create_view_and_edit,
    refused_verb_changes_nothing,
    deleting_a_directory,
    renaming,
    appending,
    what_is_not_text,
);

fn create_view_and_edit(subject: &Subject) {
    let memory = &subject.memory;
    block_on(async {
        memory.create(&at("lighthouse/ports.md"), "staging 5433\n").await.expect("created");
        let edited = memory.str_replace(&at("lighthouse/ports.md"), "5433", "5434").await.expect("edited");
        assert_eq!((edited.text(), edited.line), ("staging 5434\n", 1));
        let inserted = memory.insert(&at("lighthouse/ports.md"), 1, "production 443", Ending::Kept).await;
        assert_eq!(inserted.expect("inserted").text(), "staging 5434\nproduction 443\n");
        let Ok(View::File(object)) = memory.view(&at("lighthouse/ports.md")).await else { panic!("a file") };
        assert_eq!(&object.bytes[..], b"staging 5434\nproduction 443\n");
        let Ok(View::Directory(listing)) = memory.view(&Locator::root()).await else { panic!("a directory") };
        assert_eq!(listing.entries.len(), 1);
        assert_eq!(listing.entries[0].locator, at("lighthouse"));
    });
}

fn refused_verb_changes_nothing(subject: &Subject) {
    let memory = &subject.memory;
    subject.put("a.md", "one\none\n");
    subject.put("d/b.md", "b");
    let reason = |result: haversack::Result<()>| result.expect_err("refused").reason().clone();
    block_on(async {
        assert_eq!(reason(memory.create(&at("a.md"), "x").await.map(drop)), Reason::Exists);
        assert_eq!(reason(memory.create(&at("d"), "x").await.map(drop)), Reason::Exists);
        assert_eq!(reason(memory.create(&Locator::root(), "x").await.map(drop)), Reason::Exists);
        let replaced = async |key: &str, old: &str| memory.str_replace(&at(key), old, "x").await.map(drop);
        assert_eq!(reason(replaced("a.md", "").await), Reason::EmptyOld);
        assert_eq!(reason(replaced("a.md", "two").await), Reason::OldNotFound);
        assert!(matches!(reason(replaced("a.md", "one").await), Reason::OldNotUnique(_)));
        assert_eq!(reason(replaced("d", "b").await), Reason::IsDirectory);
        assert_eq!(reason(replaced("none", "b").await), Reason::NotFound);
        assert_eq!(reason(replaced("d/b.md/c", "b").await.map(drop)), Reason::NotFound);
        let inserted = memory.insert(&at("a.md"), 3, "x", Ending::Newline).await.map(drop);
        assert_eq!(reason(inserted), Reason::LineOutOfRange { line: 3, lines: 2 });
        assert_eq!(reason(memory.append(&at("d"), "x").await.map(drop)), Reason::IsDirectory);
        assert_eq!(reason(memory.view(&at("none")).await.map(drop)), Reason::NotFound);
        assert_eq!(reason(memory.delete(&at("none"), Depth::Recursive).await), Reason::NotFound);
        assert_eq!(reason(memory.delete(&Locator::root(), Depth::Recursive).await), Reason::IsRoot);
        assert_eq!(reason(memory.delete(&at("d"), Depth::Single).await), Reason::NotEmpty);
        assert_eq!(reason(memory.rename(&at("none"), &at("new/x")).await), Reason::NotFound);
        assert_eq!(reason(memory.rename(&at("a.md"), &at("d/b.md")).await), Reason::Exists);
        assert_eq!(reason(memory.rename(&at("a.md"), &at("a.md")).await), Reason::Exists);
        assert_eq!(reason(memory.rename(&at("d"), &at("d/e")).await), Reason::IntoItself);
        assert_eq!(reason(memory.rename(&Locator::root(), &at("x")).await), Reason::IsRoot);
        assert_eq!(reason(memory.rename(&at("a.md"), &Locator::root()).await), Reason::Exists);
        assert_eq!(reason(memory.create(&at("a.md/x"), "x").await.map(drop)), Reason::Storage);
        assert_eq!(reason(memory.create(&at("A.md"), "x").await.map(drop)), Reason::Storage, "a case twin");
    });
    assert_eq!(subject.text("a.md").as_deref(), Some("one\none\n"));
    assert_eq!(subject.text("d/b.md").as_deref(), Some("b"));
    assert!(block_on(subject.files.info(&at("new"))).is_err(), "a refused rename makes no directory");
}

fn deleting_a_directory(subject: &Subject) {
    for key in ["d/a.md", "d/e/b.md", "d/e/f/c.md", "d/.hidden", "dd/stays.md"] {
        subject.put(key, "x");
    }
    block_on(subject.memory.delete(&at("d"), Depth::Recursive)).expect("deleted");
    assert!(block_on(subject.files.info(&at("d"))).is_err());
    assert_eq!(subject.text("dd/stays.md").as_deref(), Some("x"));
    block_on(subject.files.mkdir(&at("empty"))).expect("made");
    block_on(subject.memory.delete(&at("empty"), Depth::Single)).expect("deleted");
}

fn renaming(subject: &Subject) {
    subject.put("d/a.md", "x");
    block_on(async {
        subject.memory.rename(&at("d/a.md"), &at("new/way/b.md")).await.expect("renamed");
        subject.memory.rename(&at("new"), &at("old")).await.expect("renamed");
    });
    assert_eq!(subject.text("old/way/b.md").as_deref(), Some("x"));
    assert_eq!(subject.text("d/a.md"), None);
}

fn appending(subject: &Subject) {
    block_on(async {
        assert_eq!(subject.memory.append(&at("log/a.jsonl"), "1\n").await.expect("appended"), 0);
        assert_eq!(subject.memory.append(&at("log/a.jsonl"), "2\n").await.expect("appended"), 2);
    });
    assert_eq!(subject.text("log/a.jsonl").as_deref(), Some("1\n2\n"));
}

fn what_is_not_text(subject: &Subject) {
    subject.put("a.bin", &b"ab\xff\xfe"[..]);
    block_on(async {
        let replaced = subject.memory.str_replace(&at("a.bin"), "a", "x").await.expect_err("not text");
        assert_eq!(*replaced.reason(), Reason::NotText { valid_bytes: 2 });
        let inserted = subject.memory.insert(&at("a.bin"), 0, "x", Ending::Kept).await.expect_err("not text");
        assert_eq!(inserted.kind(), ErrorKind::Invalid);
        let Ok(View::File(object)) = subject.memory.view(&at("a.bin")).await else { panic!("a file") };
        assert_eq!(&object.bytes[..], b"ab\xff\xfe");
        subject.memory.append(&at("a.bin"), &b"\x00"[..]).await.expect("bytes can be added");
    });
    assert_eq!(&block_on(subject.files.read(&at("a.bin"))).expect("read").bytes[..], b"ab\xff\xfe\x00");
}

#[test]
fn a_file_too_large_for_text_is_refused() {
    let subject = Subject::in_memory();
    let bytes = vec![b'x'; usize::try_from(MAX_TEXT_BYTES).expect("fits") + 1];
    subject.put("large.md", bytes);
    let error = block_on(subject.memory.str_replace(&at("large.md"), "x", "y")).expect_err("too large");
    assert_eq!(*error.reason(), Reason::TooLarge { size_bytes: MAX_TEXT_BYTES + 1 });
}

#[test]
fn a_storage_that_fails_is_told_and_loses_nothing() {
    let (subject, files, state) = Subject::faulty();
    subject.put("a.md", "old");
    for kind in [ErrorKind::Full, ErrorKind::Denied, ErrorKind::Unavailable, ErrorKind::Busy] {
        for at_operation in 0..3 {
            let faults = std::iter::repeat_n(Fault::None, at_operation).chain([Fault::Refused(kind)]);
            files.plan(faults);
            let error = block_on(subject.memory.str_replace(&at("a.md"), "old", "new")).expect_err("refused");
            assert_eq!(error.kind(), kind, "operation {at_operation}");
            files.plan([]);
            assert_eq!(subject.text("a.md").as_deref(), Some("old"));
        }
        state.plan([Fault::Refused(kind)]);
        assert!(block_on(subject.memory.append(&at("a.md"), "x")).is_err(), "the state cannot be read");
        assert_eq!(subject.text("a.md").as_deref(), Some("old"));
    }
    // The answer to a write is lost: it may have happened, and here it did.
    files.plan([Fault::None, Fault::None, Fault::AnswerLost]);
    let error = block_on(subject.memory.str_replace(&at("a.md"), "old", "new")).expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(subject.text("a.md").as_deref(), Some("new"));
}

#[test]
fn a_lock_that_stays_taken_is_busy() {
    let subject = Subject::device_local();
    subject.put("a.md", "old");
    let _held = block_on(subject.files.lock("store", Duration::ZERO)).expect("free");
    let impatient = subject.memory.clone().with_lock_wait(Duration::ZERO);
    let error = block_on(impatient.str_replace(&at("a.md"), "old", "new")).expect_err("taken");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(block_on(impatient.view(&at("a.md"))).is_ok(), "looking needs no lock");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the engine starts no threads, those who use it do")]
fn threads_keep_every_edit() {
    let subject = Subject::device_local();
    subject.put("count.md", "");
    let (threads, rounds) = (8, 25);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let memory = subject.memory.clone();
            scope.spawn(move || {
                for round in 0..rounds {
                    let line = format!("{thread} {round}");
                    block_on(memory.insert(&at("count.md"), 0, &line, Ending::Newline)).expect("inserted");
                }
            });
        }
    });
    let text = subject.text("count.md").expect("there");
    assert_eq!(text.lines().count(), threads * rounds);
    for thread in 0..threads {
        let own: Vec<&str> = text.lines().filter(|line| line.starts_with(&format!("{thread} "))).collect();
        let expected: Vec<String> = (0..rounds).rev().map(|round| format!("{thread} {round}")).collect();
        assert_eq!(own, expected);
    }
}

#[test]
fn a_memory_is_shared_by_threads_and_tasks() {
    fn check<T: Send + Sync + Clone>(_: &T) {}
    fn check_future<T: Send>(_: &T) {}
    let memory: Memory = Subject::in_memory().memory;
    check(&memory);
    check_future(&memory.str_replace(&at("a"), "b", "c"));
    check_future(&memory.batch(&[]));
    let _: Arc<dyn Backend> = Subject::in_memory().files;
}
