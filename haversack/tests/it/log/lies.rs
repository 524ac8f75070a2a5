//! Frames that are whole and lie: about sizes, hashes, lengths and places of contents.

use haversack::frame::BadFrame;
use haversack::ids::ContentHash;
use haversack::log::{Checkpoint, Commit, Segment};
use serde_json::{Value, json};

use super::examples::{changed, checkpoint, segment, two_commits};

/// Changes a heading and its contents; the frame's own hash is made to fit.
type Lie = fn(&mut Value, &mut Vec<u8>);

#[test]
fn about_a_put() {
    let (first, _, _) = two_commits();
    let first = first.encode().expect("fits");
    let lies: &[Lie] = &[
        |heading, _| heading["changes"][0]["put"]["hash"] = json!(ContentHash::of(b"other")),
        |heading, _| heading["changes"][0]["put"]["size"] = json!(17),
        |heading, _| heading["changes"][0]["put"]["size"] = json!(u64::MAX),
        |heading, _| heading["changes"][0]["put"]["inline"] = json!(17),
        |heading, _| heading["changes"][0]["put"]["inline"] = json!(u64::MAX),
        |heading, _| heading["changes"][0]["put"]["inline"] = json!(-1),
        |heading, _| heading["changes"][0]["put"]["object"] = json!(ContentHash::of(b"x")),
        |heading, _| heading["changes"][0]["delete"] = json!({}),
        |heading, _| heading["changes"][3]["put"]["object"] = json!(ContentHash::of(b"other")),
        |heading, _| heading["changes"].as_array_mut().expect("a list").swap(0, 1),
        |_, contents| contents.push(b'x'),
        |_, contents| contents.truncate(contents.len() - 1),
        |_, contents| contents[0] ^= 1,
        |_, contents| contents.clear(),
    ];
    for (index, lie) in lies.iter().enumerate() {
        let bad = Commit::decode(&changed("commit", &first, lie)).expect_err("a lie");
        assert!(matches!(bad, BadFrame::Damaged { .. }), "{index}: {bad}");
    }
}

#[test]
fn about_an_append() {
    let (_, second, _) = two_commits();
    let second = second.encode().expect("fits");
    let lies: &[Lie] = &[
        |heading, _| heading["changes"][0]["append"]["base_size"] = json!(9),
        |heading, _| heading["changes"][0]["append"]["base_size"] = json!(u64::MAX),
        |heading, _| heading["changes"][0]["append"]["size"] = json!(u64::MAX),
        |heading, _| heading["changes"][0]["append"]["size"] = json!(7),
        |heading, _| heading["changes"][0]["append"]["inline"] = json!(7),
        |heading, _| heading["changes"][2]["append"]["size"] = json!(999_999),
        |_, contents| contents.push(b'x'),
        |_, contents| contents.truncate(contents.len() - 1),
    ];
    for (index, lie) in lies.iter().enumerate() {
        let bad = Commit::decode(&changed("commit", &second, lie)).expect_err("a lie");
        assert!(matches!(bad, BadFrame::Damaged { .. }), "{index}: {bad}");
    }
}

#[test]
fn about_a_file_of_a_checkpoint() {
    let lies: &[Lie] = &[
        |heading, _| heading["files"][0]["size"] = json!(17),
        |heading, _| heading["files"][0]["inline"] = json!(17),
        |heading, _| heading["files"][0]["hash"] = json!(ContentHash::of(b"other")),
        |heading, _| heading["files"][0]["pack"] = json!([0, 0]),
        |heading, _| heading["files"][1]["object"] = json!(ContentHash::of(b"other")),
        |heading, _| heading["files"][1]["inline"] = json!(0),
        |heading, _| heading["files"][2]["hash"] = json!(ContentHash::of(b"other")),
        |heading, _| heading["files"][2]["pack"] = json!([1, 0]),
        |heading, _| heading["files"][2]["pack"] = json!([u64::MAX, 0]),
        |heading, _| heading["files"][2]["pack"] = json!([0, u64::MAX]),
        |heading, _| heading["files"][2]["pack"] = json!([0, 8 * 1024 * 1024 - 15]),
        |heading, _| heading["files"][2]["size"] = json!(u64::MAX),
        |heading, _| heading["state"] = json!("0".repeat(64)),
        |_, contents| contents.push(b'x'),
        |_, contents| contents.truncate(contents.len() - 1),
    ];
    let whole = checkpoint().encode().expect("fits");
    for (index, lie) in lies.iter().enumerate() {
        let bad = Checkpoint::decode(&changed("checkpoint", &whole, lie)).expect_err("a lie");
        assert!(matches!(bad, BadFrame::Damaged { .. } | BadFrame::TooLarge { .. }), "{index}: {bad}");
    }
}

#[test]
fn about_a_segment() {
    let lies: &[Lie] = &[
        |heading, _| heading["commits"][0] = json!(1),
        |heading, _| heading["commits"][0] = json!(u64::MAX),
        |heading, _| heading["commits"] = json!([]),
        |heading, _| heading["last"] = json!(3),
        |heading, _| heading["first"] = json!(0),
        |_, contents| contents.push(b'x'),
        |_, contents| contents.truncate(contents.len() - 1),
    ];
    let whole = segment().encode().expect("fits");
    for (index, lie) in lies.iter().enumerate() {
        let bad = Segment::decode(&changed("segment", &whole, lie)).expect_err("a lie");
        assert!(matches!(bad, BadFrame::Damaged { .. } | BadFrame::TooLarge { .. }), "{index}: {bad}");
    }
}
