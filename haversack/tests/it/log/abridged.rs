//! Commits without their contents, in segments.

use haversack::ids::ContentHash;
use haversack::log::{Carried, Commit, Form, Segment, StoredCommit, What, abridge};
use haversack::store::Bytes;

use super::examples::{self, changed};

const SEGMENT: &[u8] = include_bytes!("../../fixtures/log/segment-2");

fn abridged_segment() -> Segment {
    examples::segment().abridged().expect("whole commits")
}

#[test]
fn abridged_segment_is_written_as_before() {
    let bytes = abridged_segment().encode().expect("fits");
    assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(SEGMENT));
    assert_eq!(Segment::decode(&Bytes::from_static(SEGMENT)), Ok(abridged_segment()));
}

#[test]
fn abridged_commit_keeps_all_but_its_contents() {
    let whole = examples::segment();
    for bytes in &whole.commits {
        let commit = Commit::decode(bytes).expect("whole");
        let stored = StoredCommit::decode(&abridge(bytes).expect("whole")).expect("abridged");
        assert_eq!((stored.hash, stored.form), (ContentHash::of(bytes), Form::Abridged));
        assert_eq!(stored.commit.state, commit.state);
        assert_eq!((stored.commit.id, stored.commit.previous), (commit.id, commit.previous));
        for (change, before) in stored.commit.changes.iter().zip(&commit.changes) {
            assert_eq!(change.locator, before.locator);
            assert_eq!(change.what.after(), before.what.after());
            let is_named = |what: &What| match what {
                What::Put { content, .. } | What::Append { added: content, .. } => {
                    matches!(content, Carried::Object(_))
                }
                What::Delete { .. } => true,
            };
            assert!(is_named(&change.what), "{:?}", change.what);
        }
    }
    assert_eq!(abridged_segment().abridged(), Ok(abridged_segment()), "twice is the same as once");
    assert!(whole.is_whole() && !abridged_segment().is_whole());
}

/// A segment of version 1 with abridged commits, or one of version 2 without, was made by no Haversack.
#[test]
fn version_of_a_segment_fits_its_commits() {
    let bytes = abridged_segment().encode().expect("fits");
    let older = String::from_utf8_lossy(&bytes).replacen("haversack-segment 2", "haversack-segment 1", 1);
    assert!(Segment::decode(&Bytes::from(older.into_bytes())).is_err());
    let bytes = examples::segment().encode().expect("fits");
    let newer = String::from_utf8_lossy(&bytes).replacen("haversack-segment 1", "haversack-segment 2", 1);
    assert!(Segment::decode(&Bytes::from(newer.into_bytes())).is_err());
}

#[test]
fn damaged_abridged_commit_is_refused() {
    let whole = examples::segment().commits[0].clone();
    let bytes = abridge(&whole).expect("whole");
    for end in 0..bytes.len() {
        let cut = bytes.slice(..end);
        assert!(StoredCommit::decode(&cut).is_err(), "cut at {end}");
    }
    // A content inside of it would count as known though nothing proves it.
    let with_content = changed("abridged", &bytes, |heading, contents| {
        let put = &mut heading["commit"]["changes"][0]["put"];
        put.as_object_mut().expect("a put").remove("object");
        put["inline"] = put["size"].clone();
        let (original, inline) = examples::parts(&whole);
        let length = original["changes"][0]["put"]["inline"].as_u64().expect("inside");
        contents.extend_from_slice(&inline[..usize::try_from(length).expect("short")]);
    });
    assert!(StoredCommit::decode(&with_content).is_err());
}
