//! One small example of each format, and frames made by hand.

use std::collections::BTreeMap;

use haversack::frame::BadFrame;
use haversack::ids::{CommitId, ContentHash, Position, ReplicaId, StoreId, Timestamp};
use haversack::log::{
    Carried, Checkpoint, Commit, ContentLocation, FileChange, FileState, Segment, State, StateMark,
    StoreFile, What,
};
use haversack::store::{Bytes, Locator};
use serde_json::Value;

pub(super) const STORE: StoreId = StoreId::from_bytes([0x5e; 16]);

pub(super) fn at(key: &str) -> Locator {
    Locator::parse(key).expect("valid")
}

pub(super) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).expect("short")
}

pub(super) fn position(number: u64) -> Position {
    Position::new(number).expect("in range")
}

pub(super) fn put(key: &str, content: &str) -> FileChange {
    let bytes = Bytes::copy_from_slice(content.as_bytes());
    let (hash, size) = (ContentHash::of(&bytes), length(&bytes));
    FileChange {
        locator: at(key),
        what: What::Put { hash, size, content: Carried::Inline(bytes), from: None },
    }
}

pub(super) fn append(key: &str, base: &str, added: &str) -> FileChange {
    let whole = format!("{base}{added}");
    let what = What::Append {
        base: ContentHash::of(base.as_bytes()),
        base_size: length(base.as_bytes()),
        hash: ContentHash::of(whole.as_bytes()),
        size: length(whole.as_bytes()),
        added: Carried::Inline(Bytes::copy_from_slice(added.as_bytes())),
    };
    FileChange { locator: at(key), what }
}

pub(super) fn delete(key: &str) -> FileChange {
    FileChange { locator: at(key), what: What::Delete { before: None } }
}

/// Returns a commit of these changes with the mark that belongs to it.
pub(super) fn commit(state: &State, number: u64, previous: &[u8], changes: Vec<FileChange>) -> Commit {
    Commit {
        store: STORE,
        position: position(number),
        id: CommitId::from_bytes([u8::try_from(number).expect("small"); 16]),
        previous: ContentHash::of(previous),
        replica: ReplicaId::from_bytes([0x4e; 16]),
        device: "laptop".to_owned(),
        agent: Some("claude-code".to_owned()),
        session: None,
        time: Timestamp(1_790_000_000_000),
        cause: "a session ended".to_owned(),
        state: state.mark_after(&changes).expect("fits"),
        changes,
        odd: Vec::new(),
        notice: None,
    }
}

/// Returns the first two commits of a log, and the state after them.
pub(super) fn two_commits() -> (Commit, Commit, State) {
    let mut state = State::empty();
    let mut changes = vec![
        put("MEMORY.md", "- [port](port.md)\n"),
        put("port.md", "5433\n"),
        put("log.jsonl", "{\"n\":1}\n"),
    ];
    let hash = ContentHash::of(b"a picture");
    let what = What::Put { hash, size: 1_000_000, content: Carried::Object(hash), from: None };
    changes.push(FileChange { locator: at("images/é.png"), what });
    let first = commit(&state, 1, b"", changes);
    state.apply(&first).expect("fits");
    let mut changes = vec![append("log.jsonl", "{\"n\":1}\n", "{\"n\":2}\n"), delete("port.md")];
    changes.push(FileChange {
        locator: at("images/é.png"),
        what: What::Append {
            base: hash,
            base_size: 1_000_000,
            hash: ContentHash::of(b"a larger picture"),
            size: 1_500_000,
            added: Carried::Object(ContentHash::of(b"more of it")),
        },
    });
    let second = commit(&state, 2, &first.encode().expect("fits"), changes);
    state.apply(&second).expect("fits");
    (first, second, state)
}

pub(super) fn checkpoint() -> Checkpoint {
    let (_, second, state) = two_commits();
    let index = "- [port](port.md)\n";
    let pack = ContentHash::of(b"a pack");
    let place = |key: &str| match key {
        "MEMORY.md" => ContentLocation::Inline(Bytes::from_static(index.as_bytes())),
        "log.jsonl" => ContentLocation::Pack { object: pack, offset: 4711 },
        _ => ContentLocation::Object(ContentHash::of(b"a larger picture")),
    };
    let files = state.files().iter().map(|(locator, content)| {
        let place = place(locator.as_str());
        (locator.clone(), FileState { hash: content.hash, size: content.size, place })
    });
    Checkpoint {
        store: STORE,
        position: position(2),
        commit: ContentHash::of(&second.encode().expect("fits")),
        state: state.mark(),
        files: files.collect::<BTreeMap<_, _>>(),
        odd: Vec::new(),
    }
}

/// Returns the mark of these files, added up anew.
pub(super) fn mark_of(files: impl IntoIterator<Item = (Locator, ContentHash)>) -> StateMark {
    files.into_iter().fold(StateMark::empty(), |mut mark, (locator, hash)| {
        mark.add(&locator, &hash);
        mark
    })
}

pub(super) fn segment() -> Segment {
    let (first, second, _) = two_commits();
    let commits = [first, second].map(|commit| commit.encode().expect("fits")).to_vec();
    Segment { store: STORE, first: position(1), last: position(2), commits }
}

pub(super) fn store_file() -> StoreFile {
    StoreFile {
        store: STORE,
        created: Timestamp(1_790_000_000_000),
        name: "notes of ü".to_owned(),
        predecessor: None,
    }
}

/// An example of a format: its bytes, and whether other bytes are refused or read as the same value.
pub(super) struct Example {
    pub(super) kind: &'static str,
    pub(super) bytes: Bytes,
    /// Reads other bytes: the same value, another one, or a refusal.
    pub(super) read: fn(&Bytes) -> Result<Same, BadFrame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Same {
    Yes,
    No,
}

fn same<T: PartialEq>(one: &T, other: &T) -> Same {
    if one == other { Same::Yes } else { Same::No }
}

/// Returns the example of every format with a frame.
pub(super) fn framed() -> Vec<Example> {
    let (_, second, _) = two_commits();
    vec![
        Example {
            kind: "commit",
            bytes: second.encode().expect("fits"),
            read: |bytes| Commit::decode(bytes).map(|commit| same(&commit, &two_commits().1)),
        },
        Example {
            kind: "checkpoint",
            bytes: checkpoint().encode().expect("fits"),
            read: |bytes| Checkpoint::decode(bytes).map(|read| same(&read, &checkpoint())),
        },
        Example {
            kind: "segment",
            bytes: segment().encode().expect("fits"),
            read: |bytes| Segment::decode(bytes).map(|read| same(&read, &segment())),
        },
    ]
}

/// Returns the example of every format.
pub(super) fn all() -> Vec<Example> {
    let mut all = framed();
    all.push(Example {
        kind: "store",
        bytes: store_file().encode(),
        read: |bytes| StoreFile::decode(bytes).map(|read| same(&read, &store_file())),
    });
    all
}

/// Returns a frame as another program would make it.
pub(super) fn frame(kind: &str, heading: &str, contents: &[u8]) -> Bytes {
    let body = [heading.as_bytes(), b"\n", contents].concat();
    [format!("haversack-{kind} 1\n{}\n", ContentHash::of(&body)).as_bytes(), &body].concat().into()
}

/// Returns the heading and the contents of a frame.
pub(super) fn parts(bytes: &[u8]) -> (Value, Vec<u8>) {
    let mut lines = bytes.splitn(4, |byte| *byte == b'\n').skip(2);
    let heading = serde_json::from_slice(lines.next().expect("a heading")).expect("JSON");
    (heading, lines.next().expect("contents").to_vec())
}

/// Returns a frame with something in it changed, and a hash that fits.
pub(super) fn changed(kind: &str, bytes: &[u8], change: impl FnOnce(&mut Value, &mut Vec<u8>)) -> Bytes {
    let (mut heading, mut contents) = parts(bytes);
    change(&mut heading, &mut contents);
    frame(kind, &heading.to_string(), &contents)
}
