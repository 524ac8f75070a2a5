//! Damaged, cut, forged or oversized bytes: refused, or read as the written value.

use haversack::frame::BadFrame;
use haversack::ids::ContentHash;
use haversack::log::{
    Carried, Checkpoint, Commit, MAX_CHANGES, MAX_CHECKPOINT_FILES, MAX_INLINE_BYTES, MAX_LABEL_BYTES,
    MAX_STORE_FILE_BYTES, Segment, State, StoreFile, What,
};
use haversack::store::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::examples::{
    Same, all, at, changed, checkpoint, commit, frame, framed, length, parts, put, segment, store_file,
    two_commits,
};

#[test]
fn damage_is_never_read_as_something_else() {
    for example in all() {
        let (kind, read) = (example.kind, example.read);
        assert_eq!(read(&example.bytes), Ok(Same::Yes), "{kind}");
        for place in 0..example.bytes.len() {
            let cut = read(&example.bytes.slice(..place));
            assert_ne!(cut, Ok(Same::No), "{kind} cut at {place}");
            for mask in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut flipped = example.bytes.to_vec();
                flipped[place] ^= mask;
                assert_ne!(read(&flipped.into()), Ok(Same::No), "{kind} flipped at {place} by {mask}");
            }
        }
        if kind != "store" {
            assert!(read(&[&example.bytes[..], b"\n"].concat().into()).is_err(), "{kind} with one byte more");
        }
    }
}

proptest! {
    #[test]
    fn damage_of_a_large_commit_is_noticed(
        sizes in proptest::collection::vec(0_usize..40_000, 1..5),
        place: prop::sample::Index,
        byte: u8,
        cut: bool,
    ) {
        let changes: Vec<_> = sizes.iter().enumerate()
            .map(|(index, size)| put(&format!("{index}.md"), &"x\n".repeat(*size))).collect();
        let whole = commit(&State::empty(), 1, b"", changes);
        let bytes = whole.encode().expect("fits");
        let mut damaged = bytes.to_vec();
        let place = place.index(damaged.len());
        if cut {
            damaged.truncate(place);
        } else {
            damaged[place] = byte;
        }
        match Commit::decode(&damaged.clone().into()) {
            Ok(read) => prop_assert!(damaged == bytes && read == whole),
            Err(bad) => prop_assert!(damaged != bytes, "{}", bad),
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(heading in "\\PC{0,60}|[\\[{\":,0-9a-z}\\]]{0,80}", contents: Vec<u8>) {
        for example in all() {
            let _refused = (example.read)(&Bytes::from(contents.clone())).expect_err("garbage");
            let _refused = (example.read)(&frame(example.kind, &heading, &contents)).expect_err("garbage");
        }
    }
}

#[test]
fn garbage_is_refused() {
    const MANY: usize = 100_000_000;
    for example in all() {
        let kind = example.kind;
        let mut garbage = vec![b'x'; MANY];
        assert!((example.read)(&garbage.clone().into()).is_err(), "{kind}");
        let start = format!("haversack-{kind} 1\n{}\n", "0".repeat(64));
        garbage[..start.len()].copy_from_slice(start.as_bytes());
        assert!((example.read)(&garbage.into()).is_err(), "{kind}");
    }
    // If the limit lets it in, a heading without an end is refused before it is parsed.
    let endless = frame("checkpoint", &"[".repeat(MANY), b"");
    let refused = Checkpoint::decode(&endless).map(|_| ());
    assert_eq!(refused, Err(BadFrame::TooLarge { what: "bytes of heading", limit: 64 * 1024 * 1024 }));
    let large = Bytes::from(vec![b' '; MAX_STORE_FILE_BYTES + 1]);
    let refused = StoreFile::decode(&large).map(|_| ());
    assert_eq!(refused, Err(BadFrame::TooLarge { what: "bytes", limit: 65_536 }));
}

#[test]
fn deep_nesting_is_refused_or_passed_over() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    for example in framed() {
        let (heading, contents) = parts(&example.bytes);
        assert!((example.read)(&frame(example.kind, &deep, &contents)).is_err(), "{}", example.kind);
        let heading = heading.to_string();
        let unknown = format!("{{\"unknown\":{deep},{}", &heading[1..]);
        assert_ne!(
            (example.read)(&frame(example.kind, &unknown, &contents)),
            Ok(Same::No),
            "{}",
            example.kind
        );
        let known = heading.replacen("\"store\":", &format!("\"store\":{deep},\"x\":"), 1);
        assert!((example.read)(&frame(example.kind, &known, &contents)).is_err(), "{}", example.kind);
    }
}

#[test]
fn a_newer_version_is_named() {
    for example in framed() {
        let text = format!("haversack-{} 1\n", example.kind);
        let newer =
            [format!("haversack-{} 2\n", example.kind).as_bytes(), &example.bytes[text.len()..]].concat();
        assert_eq!((example.read)(&newer.into()), Err(BadFrame::Newer { version: 2 }), "{}", example.kind);
        let other = frame("other", "{}", b"");
        assert_eq!((example.read)(&other), Err(BadFrame::NotOurs), "{}", example.kind);
    }
    let newer = Bytes::from_static(b"{\"format\": 2, \"store\": [1, 2]}");
    assert_eq!(StoreFile::decode(&newer), Err(BadFrame::Newer { version: 2 }));
}

#[test]
fn what_a_later_writer_adds_is_passed_over() {
    for example in framed() {
        let more = changed(example.kind, &example.bytes, |heading, _| {
            heading["added"] = json!({"later": [1, 2.5, null]});
            for list in ["changes", "files"] {
                if let Some(lines) = heading.get_mut(list).and_then(Value::as_array_mut) {
                    lines.iter_mut().for_each(|line| line["mode"] = json!(420));
                }
            }
        });
        assert_eq!((example.read)(&more), Ok(Same::Yes), "{}", example.kind);
    }
    let mut store: Value = serde_json::from_slice(&store_file().encode()).expect("JSON");
    store["encrypted"] = json!(null);
    assert_eq!(StoreFile::decode(&store.to_string().into()), Ok(store_file()));
}

#[test]
fn unknown_change_is_refused() {
    let (_, second, _) = two_commits();
    let bytes = second.encode().expect("fits");
    let kind = changed("commit", &bytes, |heading, _| {
        heading["changes"][1] = json!({"at": "port.md", "link": {"to": ["x"], "hash": 7}});
    });
    assert_eq!(Commit::decode(&kind), Err(BadFrame::NewerPart { what: "a kind of change" }));
    let way = changed("commit", &bytes, |heading, _| {
        let put = heading["changes"][2]["append"].as_object_mut().expect("an append");
        put.remove("object");
        put.insert("delta".to_owned(), json!("x"));
    });
    assert_eq!(Commit::decode(&way), Err(BadFrame::NewerPart { what: "a way to carry contents" }));
    let place = changed("checkpoint", &checkpoint().encode().expect("fits"), |heading, _| {
        heading["files"][2].as_object_mut().expect("a line").remove("pack");
    });
    assert!(Checkpoint::decode(&place).expect_err("unknown place").is_newer());
    let segment = segment();
    let heading = json!({"store": segment.store, "first": 1, "last": 2, "commits": [segment.commits[0].len(), kind.len()]});
    let forged = frame("segment", &heading.to_string(), &[&segment.commits[0][..], &kind].concat());
    assert!(Segment::decode(&forged).expect_err("unknown change").is_newer());
}

#[test]
fn too_many_are_refused() {
    let too_many = |what, limit| BadFrame::TooLarge { what, limit };
    let (first, _, _) = two_commits();
    let first = first.encode().expect("fits");
    let deletes = |count: usize| {
        let line = |number| format!("{{\"at\":\"{number}\",\"delete\":{{}}}}");
        Commit::decode(&with_list("commit", &first, "changes", (0..count).map(line)))
    };
    assert_eq!(deletes(MAX_CHANGES).expect("just so many").changes.len(), MAX_CHANGES);
    assert_eq!(deletes(MAX_CHANGES + 1).expect_err("one more"), too_many("changes", 10_000));
    assert_eq!(deletes(700_000).expect_err("many more"), too_many("bytes", 16 * 1024 * 1024));

    let whole = checkpoint().encode().expect("fits");
    let hash = ContentHash::of(b"");
    let files = |count: usize| {
        let line = |number| format!("{{\"at\":\"{number:07}\",\"hash\":\"{hash}\",\"size\":0,\"inline\":0}}");
        Checkpoint::decode(&with_list("checkpoint", &whole, "files", (0..count).map(line)))
    };
    assert_eq!(files(MAX_CHECKPOINT_FILES + 1).expect_err("one more"), too_many("files", 200_000));
    assert_eq!(files(700_000).expect_err("many more"), too_many("bytes of heading", 64 * 1024 * 1024));

    let lengths = (0..20_000).map(|_| "1".to_owned());
    let lengths = with_list("segment", &segment().encode().expect("fits"), "commits", lengths);
    assert_eq!(Segment::decode(&lengths).expect_err("many more"), too_many("commits", 10_000));
}

/// Returns a frame without contents and with another list in its heading.
fn with_list(kind: &str, bytes: &[u8], name: &str, lines: impl Iterator<Item = String>) -> Bytes {
    let (mut heading, _) = parts(bytes);
    heading[name] = json!("the list");
    let lines = lines.collect::<Vec<_>>().join(",");
    frame(kind, &heading.to_string().replacen("\"the list\"", &format!("[{lines}]"), 1), b"")
}

#[test]
fn labels_are_cut_when_they_are_written_and_refused_when_they_are_read() {
    let (mut first, _, _) = two_commits();
    first.device = "é".repeat(MAX_LABEL_BYTES);
    first.cause = format!("x{}", "é".repeat(MAX_LABEL_BYTES));
    first.agent = Some("a".repeat(MAX_LABEL_BYTES));
    first.session = Some("s".repeat(MAX_LABEL_BYTES + 1));
    let bytes = first.encode().expect("fits");
    let read = Commit::decode(&bytes).expect("whole");
    assert_eq!(read.device, "é".repeat(MAX_LABEL_BYTES / 2));
    assert_eq!(read.cause, format!("x{}", "é".repeat(MAX_LABEL_BYTES / 2 - 1)));
    assert_eq!(read.agent, first.agent);
    assert_eq!(read.session, Some("s".repeat(MAX_LABEL_BYTES)));
    let long = "x".repeat(MAX_LABEL_BYTES + 1);
    for label in ["device", "agent", "session", "cause"] {
        let refused = Commit::decode(&changed("commit", &bytes, |heading, _| heading[label] = json!(long)));
        assert_eq!(refused, Err(BadFrame::TooLarge { what: "bytes of a label", limit: 200 }), "{label}");
    }
    let file = StoreFile { name: long.clone(), ..store_file() };
    let read = StoreFile::decode(&file.encode()).expect("cut");
    assert_eq!(read.name.len(), MAX_LABEL_BYTES);
    let mut lines: Value = serde_json::from_slice(&store_file().encode()).expect("JSON");
    lines["name"] = json!(long);
    assert!(matches!(StoreFile::decode(&lines.to_string().into()), Err(BadFrame::TooLarge { .. })));
}

#[test]
fn names_of_a_forged_commit_are_escaped_when_it_is_read() {
    let (first, _, _) = two_commits();
    let bytes = first.encode().expect("fits");
    let forged = "lap\u{1b}[2J\ntop\u{202e}";
    let escaped = "lap\\u{1b}[2J\\ntop\\u{202e}";
    let bytes = changed("commit", &bytes, |heading, _| {
        for label in ["device", "agent", "session", "cause"] {
            heading[label] = json!(forged);
        }
    });
    let read = Commit::decode(&bytes).expect("whole");
    let names =
        [Some(read.device.as_str()), read.agent.as_deref(), read.session.as_deref(), Some(&read.cause)];
    assert_eq!(names, [Some(escaped); 4]);
    // Our own text is escaped before others read it.
    let own = Commit { device: forged.to_owned(), ..first };
    assert!(!String::from_utf8_lossy(&own.encode().expect("fits")).contains("\u{202e}"));
    let file = StoreFile { name: forged.to_owned(), ..store_file() };
    assert_eq!(StoreFile::decode(&file.encode()).expect("whole").name, escaped);
}

#[test]
fn what_cannot_be_read_is_not_written() {
    let state = State::empty();
    let text = "x".repeat(MAX_INLINE_BYTES);
    assert!(commit(&state, 1, b"", vec![put("a.md", &text)]).encode().is_ok());
    let too_large = commit(&state, 1, b"", vec![put("a.md", &format!("{text}x"))]).encode();
    assert_eq!(
        too_large.expect_err("too large").to_string(),
        "it would have more than 262144 bytes of one content"
    );
    let many: Vec<_> = (0..65).map(|number| put(&format!("{number}.md"), &text)).collect();
    let too_large = commit(&state, 1, b"", many).encode();
    assert_eq!(too_large.expect_err("too large").to_string(), "it would have more than 16777216 bytes");
    let many: Vec<_> = (0..=MAX_CHANGES).map(|number| put(&number.to_string(), "")).collect();
    let too_many = commit(&state, 1, b"", many).encode();
    assert_eq!(too_many.expect_err("too many").to_string(), "it would have more than 10000 changes");
    let content = Carried::Inline(Bytes::from_static(b"one"));
    for (hash, size) in [(ContentHash::of(b"one"), 4), (ContentHash::of(b"two"), length(b"one"))] {
        let mut wrong = commit(&state, 1, b"", vec![put("a.md", "one")]);
        wrong.changes[0].what = What::Put { hash, size, content: content.clone(), from: None };
        assert!(wrong.encode().is_err());
    }
    let mut reserved = commit(&state, 1, b"", vec![put("a.md", "one")]);
    for locator in [haversack::store::Locator::root(), haversack::log::layout::store_file()] {
        reserved.changes[0].locator = locator;
        assert!(reserved.encode().is_err());
    }
    reserved.changes[0].locator = at("a.md");
    assert!(reserved.encode().is_ok());
}
