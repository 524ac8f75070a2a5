//! Every written value can be read.

use std::collections::BTreeMap;

use haversack::frame;
use haversack::ids::{CommitId, ContentHash, Position, ReplicaId, StoreId, Timestamp};
use haversack::log::{
    Carried, Checkpoint, Commit, ContentLocation, FileChange, FileState, MAX_PACK_BYTES, Segment, State,
    StateMark, StoreFile, What,
};
use haversack::store::{Bytes, Locator};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::examples::{at, length, mark_of};

/// Names without capitals: no two differ only by case.
const NAMES: &str = "[a-z0-9é日 ._-]{0,8}[a-z日](/[a-zü]{1,5}){0,2}";
const LABELS: &str =
    "[^\\p{C}\\p{Zl}\\p{Zp}\u{34f}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{e0100}-\u{e01ef}]{0,40}";

fn hash() -> impl Strategy<Value = ContentHash> {
    any::<[u8; 32]>().prop_map(ContentHash::from_bytes)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..50).prop_map(Bytes::from)
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        bytes().prop_map(|bytes| What::Put {
            hash: ContentHash::of(&bytes),
            size: length(&bytes),
            content: Carried::Inline(bytes),
            from: None,
        }),
        (hash(), any::<u64>(), hash()).prop_map(|(hash, size, from)| What::Put {
            hash,
            size,
            content: Carried::Object(hash),
            from: Some(from),
        }),
        (hash(), 0..u64::MAX - 50, hash(), bytes()).prop_map(|(base, base_size, hash, bytes)| What::Append {
            base,
            base_size,
            hash,
            size: base_size + length(&bytes),
            added: Carried::Inline(bytes)
        }),
        (hash(), any::<[u64; 2]>(), hash(), hash()).prop_map(|(base, sizes, hash, object)| What::Append {
            base,
            base_size: sizes[0].min(sizes[1]),
            hash,
            size: sizes[0].max(sizes[1]),
            added: Carried::Object(object)
        }),
        option::of(hash()).prop_map(|before| What::Delete { before }),
    ]
}

fn files<T: std::fmt::Debug>(
    what: impl Strategy<Value = T>,
    most: usize,
) -> impl Strategy<Value = BTreeMap<Locator, T>> {
    btree_map(NAMES, what, 0..most).prop_map(|files| {
        files
            .into_iter()
            .filter_map(|(name, what)| Some((Locator::from_stored_key(&name).ok()?, what)))
            .collect()
    })
}

fn commit() -> impl Strategy<Value = Commit> {
    let ids = (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<[u8; 16]>(), any::<[u8; 32]>());
    let labels = (LABELS, option::of(LABELS), option::of(LABELS), LABELS);
    let place = (1..=Position::LAST.number(), hash(), any::<i64>());
    (ids, labels, place, files(what(), 6)).prop_map(|(ids, labels, (number, previous, time), changes)| {
        Commit {
            store: StoreId::from_bytes(ids.0),
            position: Position::new(number).expect("in range"),
            id: CommitId::from_bytes(ids.1),
            previous: if number == 1 { ContentHash::of(b"") } else { previous },
            replica: ReplicaId::from_bytes(ids.2),
            device: labels.0,
            agent: labels.1,
            session: labels.2,
            time: Timestamp(time),
            cause: labels.3,
            state: StateMark::from_bytes(ids.3),
            changes: changes.into_iter().map(|(locator, what)| FileChange { locator, what }).collect(),
            odd: Vec::new(),
            notice: None,
        }
    })
}

fn file() -> impl Strategy<Value = FileState> {
    let most = u64::try_from(MAX_PACK_BYTES).expect("small");
    prop_oneof![
        bytes().prop_map(|bytes| FileState {
            hash: ContentHash::of(&bytes),
            size: length(&bytes),
            place: ContentLocation::Inline(bytes)
        }),
        (hash(), any::<u64>()).prop_map(|(hash, size)| FileState {
            hash,
            size,
            place: ContentLocation::Object(hash)
        }),
        (hash(), 0..=most, 0..3_u8, any::<prop::sample::Index>()).prop_map(
            move |(hash, size, pack, offset)| {
                let room = usize::try_from(most - size).expect("small");
                let offset = u64::try_from(offset.index(room + 1)).expect("small");
                FileState {
                    hash,
                    size,
                    place: ContentLocation::Pack { object: ContentHash::of(&[pack]), offset },
                }
            }
        ),
    ]
}

proptest! {
    #[test]
    fn commits(commit in commit()) {
        let bytes = commit.encode().expect("fits");
        prop_assert_eq!(Commit::decode(&bytes), Ok(commit.clone()));
        prop_assert_eq!(commit.encode(), Ok(bytes), "the same bytes every time");
    }

    #[test]
    fn checkpoints(store: [u8; 16], number in 1..=Position::LAST.number(), commit in hash(), files in files(file(), 12)) {
        let state = mark_of(files.iter().map(|(locator, file)| (locator.clone(), file.hash)));
        let position = Position::new(number).expect("in range");
        let checkpoint = Checkpoint { store: StoreId::from_bytes(store), position, commit, state, files, odd: vec![] };
        prop_assert_eq!(Checkpoint::decode(&checkpoint.encode().expect("fits")), Ok(checkpoint));
    }

    #[test]
    fn segments(commits in vec(commit(), 1..5), first in 1_u64..1000) {
        let mut chain: Vec<Bytes> = Vec::new();
        for (mut commit, number) in commits.into_iter().zip(first..) {
            commit.store = StoreId::from_bytes([7; 16]);
            commit.position = Position::new(number).expect("in range");
            let before = chain.last().map(|bytes| ContentHash::of(bytes));
            let some = ContentHash::of(if number == 1 { b"" } else { b"some" });
            commit.previous = before.unwrap_or(some);
            chain.push(commit.encode().expect("fits"));
        }
        let last = first + length(&vec![0; chain.len()]) - 1;
        let [first, last] = [first, last].map(|number| Position::new(number).expect("in range"));
        let segment = Segment { store: StoreId::from_bytes([7; 16]), first, last, commits: chain };
        prop_assert_eq!(Segment::decode(&segment.encode().expect("fits")), Ok(segment));
    }

    #[test]
    fn store_files(store: [u8; 16], created: i64, name in LABELS) {
        let file = StoreFile { store: StoreId::from_bytes(store), created: Timestamp(created), name, predecessor: None };
        prop_assert_eq!(StoreFile::decode(&file.encode()), Ok(file));
    }

    #[test]
    fn frames(heading: Vec<String>, contents in vec(vec(any::<u8>(), 0..50), 0..4)) {
        let parts: Vec<&[u8]> = contents.iter().map(|part| &part[..]).collect();
        let bytes = frame::encode("test", 3, &heading, &parts, 1_000_000).expect("fits");
        let read: frame::Framed<Vec<String>> = frame::decode("test", 4, &bytes, bytes.len()).expect("whole");
        prop_assert_eq!((read.version, read.heading, read.contents), (3, heading, Bytes::from(contents.concat())));
    }

    /// However a state came about, its mark is that of its files.
    #[test]
    fn folding_and_adding_up_agree(batches in vec(btree_map("[a-c]", option::of("[x-z]"), 1..3), 0..8)) {
        let mut state = State::empty();
        for batch in batches {
            let changes = batch.into_iter().map(|(name, text)| match text {
                Some(text) => super::examples::put(&name, &text),
                None => FileChange { locator: at(&name), what: What::Delete { before: None } },
            });
            let commit = super::examples::commit(&state, 1, b"", changes.collect());
            state.apply(&commit).expect("fits");
            prop_assert_eq!(state.mark(), mark_of(state.files().iter().map(|(locator, content)| (locator, content.hash))));
        }
    }
}

#[test]
fn notices_and_predecessors_survive_storing() {
    let (_, example, state) = super::examples::two_commits();
    let position = Position::new(41).expect("a position");
    for is_complete in [false, true] {
        let notice = Some(haversack::log::Notice::Rebuild { position, is_complete });
        let commit = Commit { notice, ..example.clone() };
        assert_eq!(Commit::decode(&commit.encode().expect("fits")), Ok(commit));
    }
    let notice = Some(haversack::log::Notice::Moved { url: "s3://lighthouse/memory".to_owned() });
    let end = Commit { notice, changes: Vec::new(), state: state.mark(), ..example.clone() };
    let bytes = end.encode().expect("fits");
    assert_eq!(Commit::decode(&bytes), Ok(end.clone()));
    assert!(
        Commit { changes: example.changes.clone(), ..end.clone() }.encode().is_err(),
        "an end changes nothing"
    );
    // A reader of version 1 must not read past it, and no device ends a log in version 1.
    assert!(bytes.starts_with(b"haversack-commit 2\n"));
    let older = [b"haversack-commit 1\n", &bytes[b"haversack-commit 2\n".len()..]].concat();
    assert!(Commit::decode(&older.into()).is_err());
    let predecessor = haversack::log::Predecessor {
        store: StoreId::from_bytes([9; 16]),
        position,
        commits: vec![(position, ContentHash::of(b"a commit"))],
    };
    let file = StoreFile { predecessor: Some(predecessor), ..super::examples::store_file() };
    assert_eq!(StoreFile::decode(&file.encode()), Ok(file.clone()));
    let text = String::from_utf8(file.encode().to_vec()).expect("text").replace("41", "40");
    assert!(StoreFile::decode(&text.into()).is_err(), "a changed position is noticed");
}
