//! The file storage face: the interface's own list of tests, and what it leaves open.

use std::sync::Arc;

use futures_lite::future::block_on;
use haversack::file_storage::{Code, Content, FileContent, FileStorage, Operation, StorageError};
use haversack::store::{BackendExt, Bytes, InMemory, Locator};
use haversack_servers::memory_stores::MemoryStores;

use crate::subjects::{Subject, on_every_storage, on_memory_store};

// A memory store of Anthropic's holds text only: the tests with bytes are left out, and `bytes_are_refused_by_a_memory_store` takes their place.
on_memory_store!(
    create_and_view_file,
    str_replace,
    insert_at_line,
    delete_file,
    rename_file,
    view_directory,
    create_existing_file_is_refused,
    create_all_tells_of_each_file,
    str_replace_with_non_unique_string_is_refused,
    errors_carry_code_message_and_path,
    inserting_a_whole_line,
    a_batch_is_all_or_nothing,
    marks_change_with_contents,
);

on_every_storage!(
    create_and_view_file,
    str_replace,
    insert_at_line,
    delete_file,
    rename_file,
    view_directory,
    create_existing_file_is_refused,
    create_all_tells_of_each_file,
    str_replace_with_non_unique_string_is_refused,
    bytes_come_back_as_bytes,
    every_code,
    errors_carry_code_message_and_path,
    inserting_a_whole_line,
    a_batch_is_all_or_nothing,
    marks_change_with_contents,
);

fn storage(subject: &Subject) -> Arc<dyn FileStorage> {
    subject.storage.clone()
}

fn text(storage: &dyn FileStorage, path: &str) -> String {
    match block_on(storage.view(path)).expect("there") {
        FileContent::File { content: Content::Text(text), size_bytes } => {
            assert_eq!(size_bytes, text.len() as u64);
            text
        }
        other => panic!("not a text: {other:?}"),
    }
}

fn code(result: Result<(), StorageError>) -> &'static str {
    result.expect_err("refused").code.as_str()
}

fn create_and_view_file(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("/test.txt", "hello".into())).expect("created");
    assert_eq!(text(&*storage, "/test.txt"), "hello");
    assert_eq!(text(&*storage, "test.txt"), "hello", "a leading slash is the root");
}

fn str_replace(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("/test.txt", "hello world".into())).expect("created");
    block_on(storage.str_replace("/test.txt", "world", "universe")).expect("replaced");
    assert_eq!(text(&*storage, "/test.txt"), "hello universe");
}

fn insert_at_line(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("/test.txt", "line1\nline3".into())).expect("created");
    block_on(storage.insert("/test.txt", 2, "line2")).expect("inserted");
    assert_eq!(text(&*storage, "/test.txt"), "line1\nline2\nline3");
}

fn delete_file(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("/test.txt", "hello".into())).expect("created");
    block_on(storage.delete("/test.txt")).expect("deleted");
    assert_eq!(code(block_on(storage.view("/test.txt")).map(drop)), "FILE_NOT_FOUND");
}

fn rename_file(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("/old.txt", "hello".into())).expect("created");
    block_on(storage.rename("/old.txt", "/deep/new.txt")).expect("renamed");
    assert_eq!(text(&*storage, "/deep/new.txt"), "hello");
    assert_eq!(code(block_on(storage.view("/old.txt")).map(drop)), "FILE_NOT_FOUND");
}

fn view_directory(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("/dir/file2.txt", "b".into())).expect("created");
    block_on(storage.create("/dir/file1.txt", "a".into())).expect("created");
    block_on(storage.create("/dir/sub/file3.txt", "c".into())).expect("created");
    let entries = ["file1.txt", "file2.txt", "sub"].map(str::to_owned).to_vec();
    assert_eq!(block_on(storage.view("/dir")).expect("there"), FileContent::Directory { entries });
    let root = FileContent::Directory { entries: vec!["dir".to_owned()] };
    assert_eq!(block_on(storage.view("/")).expect("there"), root);
}

fn create_all_tells_of_each_file(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("there.md", Bytes::from("before"))).expect("created");
    let file = |path: &str| (path.to_owned(), Bytes::from("new"));
    let created = block_on(storage.create_all(vec![file("a.md"), file("there.md"), file("deep/b.md")]));
    let codes: Vec<Option<Code>> =
        created.expect("written").into_iter().map(|one| one.err().map(|error| error.code)).collect();
    assert_eq!(codes, [None, Some(Code::FileExists), None]);
    assert_eq!([text(&*storage, "a.md"), text(&*storage, "deep/b.md")], ["new", "new"]);
    assert_eq!(text(&*storage, "there.md"), "before");
    assert!(block_on(storage.create_all(Vec::new())).expect("nothing to do").is_empty());
    block_on(storage.create_all(vec![file("c.md"), file("../out.md")])).expect_err("no path of a file");
    block_on(storage.view("c.md")).expect_err("none was made");
}

fn create_existing_file_is_refused(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("/test.txt", "hello".into())).expect("created");
    assert_eq!(code(block_on(storage.create("/test.txt", "world".into()))), "FILE_EXISTS");
    assert_eq!(text(&*storage, "/test.txt"), "hello");
}

fn str_replace_with_non_unique_string_is_refused(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("/test.txt", "hello hello".into())).expect("created");
    assert_eq!(code(block_on(storage.str_replace("/test.txt", "hello", "hi"))), "STRING_NOT_UNIQUE");
    assert_eq!(text(&*storage, "/test.txt"), "hello hello");
}

fn bytes_come_back_as_bytes(subject: &Subject) {
    let storage = storage(subject);
    let pdf = Bytes::from_static(b"%PDF-1.7\n\xff\xfe\x00");
    block_on(storage.create("_content/nodes/doc.pdf", pdf.clone())).expect("created");
    let expected = FileContent::File { size_bytes: pdf.len() as u64, content: Content::Bytes(pdf) };
    assert_eq!(block_on(storage.view("_content/nodes/doc.pdf")).expect("there"), expected);
}

fn every_code(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("dir/a.md", "one\ntwo\n".into())).expect("created");
    block_on(storage.create("b.bin", Bytes::from_static(b"\xff"))).expect("created");
    assert_eq!(code(block_on(storage.create("../x", "x".into()))), "INVALID_PATH");
    assert_eq!(code(block_on(storage.create("nul", "x".into()))), "INVALID_PATH");
    assert_eq!(code(block_on(storage.str_replace("dir", "a", "b"))), "INVALID_PATH");
    assert_eq!(code(block_on(storage.delete("/"))), "INVALID_PATH");
    assert_eq!(code(block_on(storage.delete("dir"))), "DIRECTORY_NOT_EMPTY");
    assert_eq!(code(block_on(storage.delete("none"))), "FILE_NOT_FOUND");
    assert_eq!(code(block_on(storage.str_replace("dir/a.md", "three", "x"))), "STRING_NOT_FOUND");
    assert_eq!(code(block_on(storage.str_replace("dir/a.md", "", "x"))), "STRING_NOT_FOUND");
    assert_eq!(code(block_on(storage.insert("dir/a.md", 0, "x"))), "INVALID_LINE_NUMBER");
    assert_eq!(code(block_on(storage.insert("dir/a.md", 4, "x"))), "INVALID_LINE_NUMBER");
    assert_eq!(code(block_on(storage.insert("b.bin", 1, "x"))), "OPERATION_FAILED");
    assert_eq!(code(block_on(storage.rename("none", "x"))), "FILE_NOT_FOUND");
    assert_eq!(code(block_on(storage.rename("b.bin", "dir/a.md"))), "FILE_EXISTS");
    assert_eq!(text(&*storage, "dir/a.md"), "one\ntwo\n");
}

fn errors_carry_code_message_and_path(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("taken.md", "x".into())).expect("created");
    block_on(storage.create("a.md", "x".into())).expect("created");
    let error = block_on(storage.rename("/a.md", "/taken.md")).expect_err("taken");
    assert_eq!((error.code, error.path.as_str()), (Code::FileExists, "/taken.md"));
    assert_eq!(error.to_string(), "FILE_EXISTS: could not rename taken.md: something is there already");
    let error = block_on(storage.view("/none.md")).expect_err("nothing there");
    assert_eq!((error.code, error.path.as_str()), (Code::FileNotFound, "/none.md"));
}

fn inserting_a_whole_line(subject: &Subject) {
    let storage = storage(subject);
    block_on(storage.create("a.md", "one\n".into())).expect("created");
    block_on(storage.insert("a.md", 2, "two\n")).expect("inserted");
    block_on(storage.insert("a.md", 1, "zero")).expect("inserted");
    assert_eq!(text(&*storage, "a.md"), "zero\none\ntwo\n");
}

fn a_batch_is_all_or_nothing(subject: &Subject) {
    let storage = storage(subject);
    let registry = |path: &str, content: &str| Operation::Create {
        path: path.to_owned(),
        content: Bytes::copy_from_slice(content.as_bytes()),
    };
    let operations = [
        registry("_system/registry.json", "{}"),
        registry("_content/nodes/mem_1.md", "# Lighthouse\n"),
        Operation::StrReplace {
            path: "_system/registry.json".to_owned(),
            old_str: "{}".to_owned(),
            new_str: "{\"nodes\":1}".to_owned(),
        },
        Operation::Insert {
            path: "_content/nodes/mem_1.md".to_owned(),
            insert_line: 2,
            new_str: "keeper".to_owned(),
        },
        Operation::Rename {
            old_path: "_content/nodes/mem_1.md".to_owned(),
            new_path: "_content/nodes/mem_2.md".to_owned(),
        },
    ];
    block_on(storage.batch(&operations)).expect("applied");
    assert_eq!(text(&*storage, "_system/registry.json"), "{\"nodes\":1}");
    assert_eq!(text(&*storage, "_content/nodes/mem_2.md"), "# Lighthouse\nkeeper\n");
    let refused = [
        Operation::Delete { path: "_system/registry.json".to_owned() },
        Operation::Delete { path: "none".to_owned() },
    ];
    assert_eq!(code(block_on(storage.batch(&refused))), "FILE_NOT_FOUND");
    assert_eq!(text(&*storage, "_system/registry.json"), "{\"nodes\":1}");
}

fn marks_change_with_contents(subject: &Subject) {
    let storage = storage(subject);
    assert!(block_on(storage.marks("dir")).expect("none").is_empty());
    block_on(storage.create("dir/a.md", "one".into())).expect("created");
    block_on(storage.create("dir/b.md", "two".into())).expect("created");
    block_on(storage.create("dir/below/c.md", "three".into())).expect("created");
    let before = block_on(storage.marks("dir")).expect("marks");
    assert_eq!(before.keys().map(String::as_str).collect::<Vec<_>>(), ["a.md", "b.md", "below/c.md"]);
    assert_eq!(block_on(storage.marks("dir")).expect("marks"), before);
    block_on(storage.str_replace("dir/b.md", "two", "2")).expect("replaced");
    let after = block_on(storage.marks("dir")).expect("marks");
    assert_eq!(after["a.md"], before["a.md"]);
    assert_ne!(after["b.md"], before["b.md"]);
}

#[test]
fn bytes_are_refused_by_a_memory_store() {
    let subject = Subject::memory_store();
    let storage = storage(&subject);
    let error = block_on(storage.create("a.bin", Bytes::from_static(b"ab\xff"))).expect_err("refused");
    assert_eq!(error.code, Code::InvalidPath);
    assert!(error.message.contains("holds text only, and byte 3 of this is not UTF-8"), "{error}");
    let error = block_on(storage.create("a.md", vec![b'x'; 102_401].into())).expect_err("refused");
    assert!(error.message.contains("at most 102400 bytes, and this has 102401"), "{error}");
}

#[test]
fn storage_by_itself_holds_only_its_files() {
    for subject in
        [Subject::memory_store(), Subject::bucket(), Subject::alone(Arc::new(InMemory::new()), None)]
    {
        let storage = storage(&subject);
        block_on(storage.create("a.md", "x".into())).expect("created");
        block_on(storage.create("b.md", "x".into())).expect("created");
        let again = Operation::Create { path: "c.md".to_owned(), content: "x".into() };
        block_on(storage.batch(&[Operation::Delete { path: "b.md".to_owned() }, again])).expect("applied");
        block_on(storage.rename("c.md", "d.md")).expect("renamed");
        block_on(storage.delete("d.md")).expect("deleted");
        let own = Locator::reserved(".haversack").expect("a name of ours");
        for at in [Locator::root(), own] {
            let there = block_on(subject.files.list_all(&at)).unwrap_or_default();
            let keys: Vec<&str> = there.iter().map(Locator::as_str).collect();
            assert!(keys.is_empty() || keys == ["a.md"], "{keys:?}");
        }
    }
}

#[test]
fn full_memory_store_takes_edits_and_refuses_new_files() {
    let server = MemoryStores::start();
    for number in 0..2000 {
        server.put(&format!("/notes/{number}.md"), "x");
    }
    let subject = Subject::memory_store_of(server);
    let storage = storage(&subject);
    let error = block_on(storage.create("new.md", "x".into())).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "INVALID_PATH: could not create new.md: the storage refused: could not write new.md: the server refuses the request: the memory store is full: at most 2000 memories"
    );
    block_on(storage.str_replace("notes/7.md", "x", "y")).expect("edited");
    block_on(storage.delete("notes/8.md")).expect("deleted");
    block_on(storage.create("new.md", "x".into())).expect("there is room again");
}
