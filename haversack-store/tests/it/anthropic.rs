//! Anthropic's memory stores as a backend, against a fake that refuses what the real one refuses.

use std::sync::Arc;

use futures_lite::StreamExt;
use futures_lite::future::block_on;
use haversack_servers::Answer;
use haversack_servers::memory_stores::{KEY, MemoryStores, Mishap, STORE};
use haversack_store::cloud::{ANTHROPIC, ANTHROPIC_KEY, ANTHROPIC_READ_ONLY, ANTHROPIC_SERVER};
use haversack_store::{
    Backend, BackendExt, Bytes, Capabilities, Condition, Durability, EntryKind, Error, ErrorKind, Locator,
    OpenOptions, Registry, Settings,
};
use tempfile::TempDir;

struct Store {
    server: MemoryStores,
    backend: Arc<dyn Backend>,
    locks: TempDir,
}

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("valid")
}

fn open(server: &MemoryStores, locks: &TempDir, more: &[(&str, &str)]) -> Result<Arc<dyn Backend>, Error> {
    let mut settings: Settings =
        [(ANTHROPIC_KEY, KEY), (ANTHROPIC_SERVER, server.url())].into_iter().collect();
    more.iter().for_each(|(name, value)| settings.set(*name, *value));
    let address = format!("anthropic:{STORE}");
    let options = OpenOptions { address, locks: locks.path().to_string_lossy().into_owned(), settings };
    Registry::standard().select(ANTHROPIC, &options, &Capabilities::default())
}

impl Store {
    fn new() -> Store {
        let (server, locks) = (MemoryStores::start(), TempDir::new().expect("made"));
        let backend = open(&server, &locks, &[]).expect("opens");
        Store { server, backend, locks }
    }

    fn write(&self, key: &str, text: &str, condition: Condition) -> Result<haversack_store::Version, Error> {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        block_on(self.backend.write(&at(key), bytes, condition)).map(|written| written.version)
    }

    fn text(&self, key: &str) -> Result<String, Error> {
        let object = block_on(self.backend.read(&at(key)))?;
        Ok(String::from_utf8(object.bytes.into()).expect("text"))
    }
}

#[test]
fn memories_are_files() {
    let store = Store::new();
    let first = store.write("notes/a.md", "one", Condition::Absent).expect("created");
    assert_eq!(
        store.write("notes/a.md", "x", Condition::Absent).expect_err("taken").kind(),
        ErrorKind::Conflict
    );
    let second = store.write("notes/a.md", "two", Condition::Matches(first.clone())).expect("written");
    assert_eq!(
        store.write("notes/a.md", "x", Condition::Matches(first)).expect_err("old").kind(),
        ErrorKind::Conflict
    );
    assert_eq!(store.text("notes/a.md").expect("there"), "two");
    store.write("notes/deep/b.md", "", Condition::Any).expect("an empty memory");
    store.write("top.md", "three", Condition::Any).expect("written");
    let listing = block_on(store.backend.list(&at("notes"))).expect("listed");
    let shown: Vec<(&str, EntryKind)> =
        listing.entries.iter().map(|entry| (entry.locator.as_str(), entry.kind)).collect();
    assert_eq!(shown, [("notes/a.md", EntryKind::File), ("notes/deep", EntryKind::Directory)]);
    let all = block_on(store.backend.list_all(&Locator::root())).expect("listed");
    assert_eq!(
        all.iter().map(Locator::as_str).collect::<Vec<_>>(),
        ["notes/a.md", "notes/deep/b.md", "top.md"]
    );
    let info = block_on(store.backend.info(&at("notes/a.md"))).expect("there");
    assert_eq!((info.size_bytes, info.version.as_ref()), (3, Some(&second)));
    assert_eq!(block_on(store.backend.info(&at("notes"))).expect("there").kind, EntryKind::Directory);
    assert_eq!(block_on(store.backend.info(&at("none"))).expect_err("nothing").kind(), ErrorKind::NotFound);
    let appended =
        block_on(store.backend.append(&at("notes/a.md"), Bytes::from_static(b"!"), Durability::Now))
            .expect("appended");
    assert_eq!((appended.offset, store.text("notes/a.md").expect("there").as_str()), (3, "two!"));
    block_on(store.backend.rename(&at("notes"), &at("moved"))).expect("renamed");
    assert_eq!(store.text("moved/deep/b.md").expect("there"), "");
    assert_eq!(store.text("notes/a.md").expect_err("moved").kind(), ErrorKind::NotFound);
    let taken = block_on(store.backend.rename(&at("top.md"), &at("moved/a.md"))).expect_err("taken");
    assert_eq!(taken.kind(), ErrorKind::Conflict);
    let full = block_on(store.backend.delete(&at("moved"), Condition::Any)).expect_err("not empty");
    assert_eq!(full.kind(), ErrorKind::Invalid);
    let old = block_on(store.backend.delete(&at("moved/a.md"), Condition::Matches(second)))
        .expect_err("changed since");
    assert_eq!(old.kind(), ErrorKind::Conflict);
    block_on(store.backend.delete(&at("moved/a.md"), Condition::Any)).expect("deleted");
    block_on(store.backend.delete(&at("moved/a.md"), Condition::Any)).expect("gone already");
}

#[test]
fn changes_of_others_are_seen() {
    let store = Store::new();
    store.server.put("/a.md", "theirs");
    let version = block_on(store.backend.read(&at("a.md"))).expect("there").version;
    // Another program deletes the memory and creates one with another id in its place.
    store.server.put("/a.md", "anew");
    assert_eq!(store.text("a.md").expect("there"), "anew");
    assert_eq!(
        store.write("a.md", "ours", Condition::Matches(version)).expect_err("old").kind(),
        ErrorKind::Conflict
    );
    store.write("a.md", "ours", Condition::Any).expect("written");
    assert_eq!(store.server.memories(), [("/a.md".to_owned(), "ours".to_owned())]);
}

#[test]
fn all_pages_are_read() {
    let store = Store::new();
    for number in 0..250 {
        store.server.put(&format!("/notes/{number:03}.md"), "x");
    }
    store.server.put("/odd\\name.md", "x");
    assert_eq!(block_on(store.backend.list(&at("notes"))).expect("listed").entries.len(), 250);
    assert_eq!(store.text("notes/249.md").expect("on the last page"), "x");
    let after = at("notes/200.md");
    let root = Locator::root();
    let mut pages = store.backend.scan(&root, Some(&after));
    let page = block_on(pages.next()).expect("a page").expect("listed");
    assert_eq!((page.infos.len(), page.odd.len()), (49, 1));
}

#[test]
fn limits_are_exact_errors_and_send_nothing() {
    let store = Store::new();
    let refused = |bytes: Bytes, key: &str| {
        let error = block_on(store.backend.write(&at(key), bytes, Condition::Any)).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    let binary = refused(Bytes::from_static(b"ab\xff"), "a.bin");
    assert_eq!(
        binary,
        "could not write a.bin: a memory store of Anthropic's holds text only, and byte 3 of this is not UTF-8"
    );
    let large = refused(Bytes::from(vec![b'x'; 102_401]), "a.md");
    assert!(large.ends_with("at most 102400 bytes, and this has 102401"), "{large}");
    let deep = refused(Bytes::new(), &vec!["d"; 21].join("/"));
    assert!(deep.ends_with("has at most 20 names"), "{deep}");
    assert!(store.server.asked().is_empty());
    store.write("a.md", &"x".repeat(102_400), Condition::Any).expect("just fits");
}

#[test]
fn lost_answers() {
    let store = Store::new();
    let lost = || Answer::new(502);
    store.server.next("POST", Mishap::Instead(lost()));
    let error = store.write("a.md", "one", Condition::Absent).expect_err("not done");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let version = store.write("a.md", "one", Condition::Absent).expect("created");
    store.server.next("POST", Mishap::DoneThen(lost()));
    let second = store
        .write("a.md", "two", Condition::Matches(version.clone()))
        .expect("the content tells that it was done");
    // Once each: a change is never sent again by itself.
    let posts = store.server.asked().iter().filter(|asked| asked.method == "POST").count();
    assert_eq!(posts, 3, "{:?}", store.server.asked());
    assert_eq!(
        store.write("a.md", "x", Condition::Matches(version)).expect_err("it was done").kind(),
        ErrorKind::Conflict
    );
    store.write("a.md", "two", Condition::Matches(second)).expect("the same again");
    store.server.next("GET", Mishap::Instead(Answer::throttled(0)));
    assert_eq!(store.text("a.md").expect("asked again"), "two");
}

#[test]
fn read_only_store_is_never_written() {
    let store = Store::new();
    store.server.put("/a.md", "one");
    let backend = open(&store.server, &store.locks, &[(ANTHROPIC_READ_ONLY, "true")]).expect("opens");
    let denied = [
        block_on(backend.write(&at("a.md"), Bytes::from_static(b"x"), Condition::Any)).map(drop),
        block_on(backend.append(&at("b.md"), Bytes::from_static(b"x"), Durability::Now)).map(drop),
        block_on(backend.delete(&at("a.md"), Condition::Any)),
        block_on(backend.rename(&at("a.md"), &at("b.md"))),
    ];
    for result in denied {
        assert_eq!(result.expect_err("denied").kind(), ErrorKind::Denied);
    }
    assert!(store.server.asked().iter().all(|asked| asked.method == "GET"));
    assert_eq!(block_on(backend.read(&at("a.md"))).expect("there").bytes, "one");
}

#[test]
fn key_is_in_no_message() {
    let store = Store::new();
    let wrong = open(&store.server, &store.locks, &[(ANTHROPIC_KEY, "sk-ant-wrong")]).expect("opens");
    let error = block_on(wrong.read(&at("a.md"))).expect_err("denied");
    assert_eq!(error.kind(), ErrorKind::Denied);
    for text in [format!("{error:?}"), format!("{wrong:?}"), format!("{:?}", store.backend)] {
        assert!(!text.contains("sk-ant"), "{text}");
    }
    let none = open(&store.server, &store.locks, &[(ANTHROPIC_KEY, "")]).expect_err("no key");
    assert_eq!(none.kind(), ErrorKind::Denied);
    let plain = open(&store.server, &store.locks, &[(ANTHROPIC_SERVER, "http://example.org")])
        .expect_err("not encrypted");
    assert_eq!(plain.kind(), ErrorKind::Invalid);
}
