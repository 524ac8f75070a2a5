//! Several changes, all or nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use futures_lite::future::block_on;
use haversack::store::{
    Backend, Bytes, Condition, Entry, ErrorKind, Fault, Info, Locator, Result as StoreResult, Written,
    forward_backend,
};
use haversack::{Change, Depth, Ending, Memory, Reason};

use crate::subjects::{Subject, at, on_every_backend};

on_every_backend!(
    changes_see_those_before_them,
    a_refused_change_undoes_the_batch,
    directories_move_and_go,
    names_are_checked_as_they_will_be,
    nothing_is_left_of_a_batch,
);

fn create(key: &str, text: &str) -> Change {
    Change::Create { locator: at(key), bytes: Bytes::copy_from_slice(text.as_bytes()) }
}

fn replace(key: &str, old: &str, new: &str) -> Change {
    Change::StrReplace { locator: at(key), old: old.to_owned(), new: new.to_owned() }
}

fn insert(key: &str, after_line: usize, text: &str) -> Change {
    Change::Insert { locator: at(key), after_line, text: text.to_owned(), ending: Ending::Kept }
}

fn append(key: &str, text: &str) -> Change {
    Change::Append { locator: at(key), bytes: Bytes::copy_from_slice(text.as_bytes()) }
}

fn delete(key: &str) -> Change {
    Change::Delete { locator: at(key), depth: Depth::Recursive }
}

fn rename(from: &str, to: &str) -> Change {
    Change::Rename { from: at(from), to: at(to) }
}

fn changes_see_those_before_them(subject: &Subject) {
    subject.put("index.md", "- a\n");
    let report = block_on(subject.memory.batch(&[
        create("note.md", "one\n"),
        replace("note.md", "one", "two"),
        insert("index.md", 1, "- note"),
        append("note.md", "three\n"),
        append("log.jsonl", "{}\n"),
        rename("note.md", "notes/note.md"),
        create("note.md", "another\n"),
        create("short.md", "lived"),
        delete("short.md"),
    ]))
    .expect("applied");
    assert_eq!((report.kept.len(), report.stayed.len()), (0, 0));
    assert_eq!(subject.text("index.md").as_deref(), Some("- a\n- note\n"));
    assert_eq!(subject.text("notes/note.md").as_deref(), Some("two\nthree\n"));
    assert_eq!(subject.text("note.md").as_deref(), Some("another\n"));
    assert_eq!(subject.text("log.jsonl").as_deref(), Some("{}\n"));
    assert_eq!(subject.text("short.md"), None);
}

fn a_refused_change_undoes_the_batch(subject: &Subject) {
    subject.put("a.md", "old");
    subject.put("d/b.md", "b");
    let cases: Vec<(Change, Reason)> = vec![
        (create("a.md", "x"), Reason::Exists),
        (create("d", "x"), Reason::Exists),
        (create("new.md", "x"), Reason::Exists),
        (replace("a.md", "", "x"), Reason::EmptyOld),
        (replace("a.md", "none", "x"), Reason::OldNotFound),
        (replace("d", "b", "x"), Reason::IsDirectory),
        (insert("a.md", 9, "x"), Reason::LineOutOfRange { line: 9, lines: 1 }),
        (append("d", "x"), Reason::IsDirectory),
        (delete("none"), Reason::NotFound),
        (delete(""), Reason::IsRoot),
        (Change::Delete { locator: at("d"), depth: Depth::Single }, Reason::NotEmpty),
        (rename("none", "x"), Reason::NotFound),
        (rename("a.md", "new.md"), Reason::Exists),
        (rename("d", "d/e"), Reason::IntoItself),
        (rename("", "x"), Reason::IsRoot),
        (create("a.md/below", "x"), Reason::Storage),
        (create("con.txt", "x"), Reason::Storage),
        (create("NEW.md", "x"), Reason::Storage),
        (create("D/x.md", "x"), Reason::Storage),
    ];
    for (change, reason) in cases {
        let changes =
            [create("new.md", "x"), replace("a.md", "old", "new"), create("d/more.md", "x"), change];
        let error = block_on(subject.memory.batch(&changes)).expect_err("refused");
        assert_eq!(error.reason(), &reason, "{:?}", changes.last());
        assert_eq!(error.change(), Some(3));
        assert_eq!(subject.text("a.md").as_deref(), Some("old"));
        assert_eq!(subject.text("d/b.md").as_deref(), Some("b"));
        assert_eq!(subject.text("new.md"), None);
    }
}

fn directories_move_and_go(subject: &Subject) {
    for key in ["d/a.md", "d/e/b.md", "gone/x.md", "gone/deep/y.md"] {
        subject.put(key, "x");
    }
    block_on(subject.memory.batch(&[
        rename("d", "moved/here"),
        delete("gone"),
        create("gone", "a file now"),
        create("d/new.md", "and a directory again"),
    ]))
    .expect("applied");
    assert_eq!(subject.text("moved/here/a.md").as_deref(), Some("x"));
    assert_eq!(subject.text("moved/here/e/b.md").as_deref(), Some("x"));
    assert_eq!(subject.text("gone").as_deref(), Some("a file now"));
    assert_eq!(subject.text("d/new.md").as_deref(), Some("and a directory again"));
    assert!(block_on(subject.files.info(&at("d/e"))).is_err(), "emptied directories go");
}

fn names_are_checked_as_they_will_be(subject: &Subject) {
    subject.put("readme.md", "x");
    subject.put("file", "x");
    block_on(subject.memory.batch(&[
        rename("readme.md", "README.md"),
        delete("file"),
        create("file/below.md", "y"),
    ]))
    .expect("what goes makes way for what comes");
    assert_eq!(subject.text("README.md").as_deref(), Some("x"));
    assert_eq!(subject.text("file/below.md").as_deref(), Some("y"));
    let twins = block_on(subject.memory.batch(&[create("n/A.md", "x"), create("n/a.md", "x")]));
    assert_eq!(twins.expect_err("twins").change(), Some(1));
}

fn nothing_is_left_of_a_batch(subject: &Subject) {
    block_on(subject.memory.batch(&[create("a.md", "x"), create("b.md", "y")])).expect("applied");
    block_on(subject.memory.batch(&[])).expect("nothing to do");
    let left = block_on(subject.state.list(&Locator::root())).expect("listed");
    assert_eq!(left.entries, []);
}

/// The files of the crash tests before and after the batch.
const BEFORE: [(&str, Option<&str>); 4] =
    [("a.md", Some("old a\n")), ("b.md", Some("old b\n")), ("c.md", None), ("d/e.md", Some("old e\n"))];
const AFTER: [(&str, Option<&str>); 4] =
    [("a.md", Some("new a\n")), ("b.md", None), ("c.md", Some("old b\n")), ("d/e.md", None)];

fn crash_changes() -> Vec<Change> {
    vec![replace("a.md", "old", "new"), rename("b.md", "c.md"), delete("d")]
}

fn is(subject: &Subject, wanted: &[(&str, Option<&str>)]) -> bool {
    wanted.iter().all(|(key, text)| subject.text(key).as_deref() == *text)
}

/// Lets every operation of a batch fail from a certain one on, on either backend, and looks after the next verb.
#[test]
fn a_batch_that_dies_anywhere_is_whole_after_the_next_verb() {
    let (mut before, mut after) = (0, 0);
    for fault in [Fault::Refused(ErrorKind::Unavailable), Fault::AnswerLost] {
        for dies_in_files in 0..40 {
            for dies_in_state in 0..4 {
                let (subject, files, state) = Subject::faulty();
                for (key, text) in BEFORE {
                    if let Some(text) = text {
                        subject.put(key, text);
                    }
                }
                let dead = |from: usize| {
                    let dies = std::iter::once(fault)
                        .chain(std::iter::repeat_n(Fault::Refused(ErrorKind::Unavailable), 1000));
                    std::iter::repeat_n(Fault::None, from).chain(dies)
                };
                files.plan(dead(dies_in_files));
                state.plan(dead(dies_in_state));
                let result = block_on(subject.memory.batch(&crash_changes()));
                files.plan([]);
                state.plan([]);
                // Another process, which found the lock free.
                let next = Memory::new(subject.files.clone(), subject.state.clone());
                block_on(next.append(&at("log"), "x")).expect("whoever writes next completes the batch");
                let (is_before, is_after) = (is(&subject, &BEFORE), is(&subject, &AFTER));
                let what = format!("{fault:?} {dies_in_files} {dies_in_state}: {result:?}");
                assert!(is_before || is_after, "half a batch: {what}");
                assert!(result.is_err() || is_after, "lost after it was acknowledged: {what}");
                before += usize::from(is_before);
                after += usize::from(is_after);
                let left = block_on(subject.state.list(&Locator::root())).expect("listed");
                // Deletions are signed.
                let is_left = |entry: &&Entry| entry.locator.as_str() != "signed";
                assert_eq!(left.entries.iter().find(is_left), None, "{what}");
            }
        }
    }
    assert!(before > 20 && after > 20, "both outcomes were seen: {before}, {after}");
}

/// A program changes a file after the batch wrote it and before another process completes the batch.
#[test]
fn completing_a_batch_does_not_undo_what_came_after_it() {
    let (subject, _files, state) = Subject::faulty();
    subject.put("a.md", "old a\n");
    subject.put("b.md", "old b\n");
    // The record is written and everything applied, but the process dies before the record is deleted.
    state.plan([Fault::None, Fault::None, Fault::Refused(ErrorKind::Unavailable)]);
    let changes = [replace("a.md", "old", "new"), replace("b.md", "old", "new")];
    block_on(subject.memory.batch(&changes)).expect_err("it died");
    subject.put("a.md", "new a\nand more\n");
    block_on(subject.memory.append(&at("log"), "x")).expect("completed");
    assert_eq!(subject.text("a.md").as_deref(), Some("new a\nand more\n"));
    assert_eq!(subject.text("b.md").as_deref(), Some("new b\n"));
}

/// A batch writes before it removes: whenever it dies, what the removed file held is in one of the two files.
#[test]
fn batch_writes_before_it_removes() {
    let mut seen = BTreeSet::new();
    for dies_in_files in 0..12 {
        let (subject, files, _state) = Subject::faulty();
        subject.put("z.md", "a line\n");
        let dead = std::iter::repeat_n(Fault::Refused(ErrorKind::Unavailable), 1000);
        files.plan(std::iter::repeat_n(Fault::None, dies_in_files).chain(dead));
        let changes = [create("a.md", "a line\n"), delete("z.md")];
        let result = block_on(subject.memory.batch(&changes));
        files.plan([]);
        let now = (subject.text("a.md").is_some(), subject.text("z.md").is_some());
        assert!(now.0 || now.1, "{dies_in_files}: the line is nowhere");
        seen.insert(now);
        if now == (true, true) {
            // A user changes the new file before the batch is completed: the old file stays.
            subject.put("a.md", "another line\n");
            block_on(subject.memory.append(&at("log"), "x")).expect("completed");
            assert_eq!(subject.text("z.md").as_deref(), Some("a line\n"), "{result:?}");
        }
    }
    assert!(seen.contains(&(true, true)) && seen.contains(&(true, false)), "{seen:?}");
}

/// Files in which a user saves `a.md`, just before a program writes it.
#[derive(Debug)]
struct SavedBefore {
    inner: Arc<dyn Backend>,
    saved: &'static str,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for SavedBefore {
    async fn write(&self, locator: &Locator, bytes: Bytes, condition: Condition) -> StoreResult<Written> {
        if locator.as_str() == "a.md" {
            let _ = self.inner.write(locator, self.saved.into(), Condition::Any).await?;
        }
        self.inner.write(locator, bytes, condition).await
    }

    forward_backend!(self => self.inner; read, prepare, append, barrier, list, scan, info, touch_mark, delete);
    forward_backend!(self => self.inner; rename, exchange, mkdir, lock, capabilities, conflict_strategy);
}

#[test]
fn batch_that_can_be_decided_anew_leaves_the_text_of_another_writer() {
    let Subject { files, state, .. } = Subject::in_memory();
    for (key, text) in [("a.md", "a line\n"), ("z.md", "a second line\n")] {
        let _ = block_on(files.write(&at(key), text.into(), Condition::Any)).expect("written");
    }
    let saved = "a line\nof the user\n";
    let over = Arc::new(SavedBefore { inner: files, saved });
    let subject = Subject::over(over, state, None);
    let batch = [
        Change::Put {
            locator: at("a.md"),
            expected: Some("a line\n".into()),
            bytes: Some("a line\na second line\n".into()),
        },
        delete("z.md"),
    ];
    let refused = block_on(subject.memory.batch_unless_changed(&batch)).expect_err("it changed");
    assert_eq!(refused.reason(), &Reason::Changed);
    assert_eq!(subject.text("a.md").as_deref(), Some(saved));
    assert_eq!(subject.text("z.md").as_deref(), Some("a second line\n"));
}

/// Files in which another program saves or deletes `a.md`, just after a program looked at it.
#[derive(Debug)]
struct ChangedAfterLook {
    inner: Arc<dyn Backend>,
    saved: Option<&'static str>,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Backend for ChangedAfterLook {
    async fn info(&self, locator: &Locator) -> StoreResult<Info> {
        let info = self.inner.info(locator).await;
        if locator.as_str() == "a.md" {
            match self.saved {
                Some(text) => drop(self.inner.write(locator, text.into(), Condition::Any).await?),
                None => self.inner.delete(locator, Condition::Any).await?,
            }
        }
        info
    }

    forward_backend!(self => self.inner; read, write, prepare, append, barrier, list, scan, touch_mark, delete);
    forward_backend!(self => self.inner; rename, exchange, mkdir, lock, capabilities, conflict_strategy);
}

/// Another program saves a new file between the batch's look at the name and its read: the batch does not replace that text.
#[test]
fn save_in_the_moment_of_a_creation_stays() {
    let put = Change::Put { locator: at("a.md"), expected: None, bytes: Some("a line\n".into()) };
    let cases = [
        (vec![create("a.md", "a line\n"), delete("z.md")], "of the user\n"),
        (vec![put, delete("z.md")], "of the user\n"),
        (vec![rename("z.md", "a.md")], "of the user\n"),
        (vec![append("a.md", "a line\n"), delete("z.md")], "of the user\na line\n"),
    ];
    for (batch, there) in cases {
        let Subject { files, state, .. } = Subject::in_memory();
        let _ = block_on(files.write(&at("z.md"), "a line\n".into(), Condition::Any)).expect("written");
        let changed = Arc::new(ChangedAfterLook { inner: files, saved: Some("of the user\n") });
        let subject = Subject::over(changed, state, None);
        let refused = block_on(subject.memory.batch(&batch)).err().map(|error| error.reason().clone());
        assert_eq!(subject.text("a.md").as_deref(), Some(there), "{batch:?}");
        assert_eq!(refused == Some(Reason::Exists), subject.text("z.md").is_some(), "{batch:?}: {refused:?}");
    }
}

/// Another program deletes the file after the batch found it: no empty file comes in its place, under either name.
#[test]
fn changed_file_may_disappear_in_the_same_moment() {
    for change in [rename("a.md", "b.md"), insert("a.md", 0, "a second line")] {
        let Subject { files, state, .. } = Subject::in_memory();
        let _ = block_on(files.write(&at("a.md"), "a line\n".into(), Condition::Any)).expect("written");
        let subject = Subject::over(Arc::new(ChangedAfterLook { inner: files, saved: None }), state, None);
        let refused = block_on(subject.memory.batch(std::slice::from_ref(&change))).expect_err("it is gone");
        assert_eq!(refused.reason(), &Reason::NotFound, "{change:?}");
        assert_eq!((subject.text("a.md"), subject.text("b.md")), (None, None), "{change:?}");
    }
}
