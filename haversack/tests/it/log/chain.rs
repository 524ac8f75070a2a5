//! Commits follow one another, and a commit that does not fit is noticed.

use haversack::frame::BadFrame;
use haversack::ids::{ContentHash, StoreId};
use haversack::log::{Checkpoint, Commit, Mismatch, Misplaced, Segment, State};

use super::examples::{
    STORE, append, at, checkpoint, commit, delete, mark_of, position, put, segment, two_commits,
};

#[test]
fn commit_belongs_to_one_position() {
    let (first, second, _) = two_commits();
    let previous = ContentHash::of(&first.encode().expect("fits"));
    let nothing = ContentHash::of(b"");
    let other = StoreId::from_bytes([1; 16]);
    assert_eq!(first.belongs(STORE, position(1), nothing), Ok(()));
    assert_eq!(second.belongs(STORE, position(2), previous), Ok(()));
    assert_eq!(second.belongs(other, position(2), previous), Err(Misplaced::Store { found: STORE }));
    assert_eq!(
        second.belongs(STORE, position(3), previous),
        Err(Misplaced::Position { found: position(2), expected: position(3) })
    );
    assert_eq!(second.belongs(STORE, position(2), nothing), Err(Misplaced::Past { position: position(2) }));
}

#[test]
fn only_the_first_commit_has_nothing_before_it() {
    let (mut first, mut second, _) = two_commits();
    first.previous = ContentHash::of(b"something");
    second.previous = ContentHash::of(b"");
    for commit in [first, second] {
        let unfit = commit.encode().expect_err("no such commit");
        assert_eq!(unfit.to_string(), "it would not be read: only the first commit has nothing before it");
    }
}

#[test]
fn a_log_is_folded_into_a_state() {
    let (_, _, state) = two_commits();
    let names: Vec<String> = state.files().keys().map(|locator| locator.to_string()).collect();
    assert_eq!(names, ["MEMORY.md", "images/é.png", "log.jsonl"]);
    let log = state.files().get("log.jsonl").expect("there");
    assert_eq!((log.hash, log.size), (ContentHash::of(b"{\"n\":1}\n{\"n\":2}\n"), 16));
    assert_eq!(state.mark(), mark_of(state.files().iter().map(|(locator, content)| (locator, content.hash))));
    assert!(state.odd().is_empty());
}

#[test]
fn different_state_is_noticed() {
    let (first, second, _) = two_commits();
    let mut state = State::empty();
    assert!(matches!(state.apply(&second), Err(Mismatch::Base { base: _, found: None, .. })));
    assert_eq!(state, State::empty(), "what does not fit changes nothing");
    state.apply(&first).expect("fits");

    // A device's state lacks a file that the next commit does not even name.
    let mut lacking = first.clone();
    lacking.changes.remove(0);
    lacking.state = State::empty().mark_after(&lacking.changes).expect("fits");
    let mut other = State::empty();
    other.apply(&lacking).expect("fits");
    let before = other.clone();
    let mismatch = other.apply(&second).expect_err("another state");
    assert!(matches!(mismatch, Mismatch::Mark { expected, .. } if expected == second.state));
    assert_eq!(other, before, "what does not fit changes nothing");

    let wrong = commit(&state, 2, b"x", vec![put("new.md", "new")]);
    let wrong = Commit { changes: vec![put("new.md", "other")], ..wrong };
    assert!(matches!(state.apply(&wrong), Err(Mismatch::Mark { .. })));
    state.apply(&second).expect("fits");
}

#[test]
fn an_append_extends_exactly_what_it_was_made_for() {
    let mut state = State::empty();
    state.apply(&commit(&state, 1, b"", vec![put("a.md", "one\n")])).expect("fits");
    for change in [append("a.md", "two\n", "x"), append("b.md", "one\n", "x"), append("a.md", "", "x")] {
        let mismatch = state.mark_after(&[change]).expect_err("another base");
        assert!(matches!(mismatch, Mismatch::Base { .. }), "{mismatch}");
    }
    let appended = commit(&state, 2, b"x", vec![append("a.md", "one\n", "two\n")]);
    state.apply(&appended).expect("fits");
    assert!(state.apply(&appended).is_err(), "not twice");
    state.apply(&commit(&state, 3, b"x", vec![delete("a.md"), delete("never.md")])).expect("fits");
    assert_eq!(state, State::empty());
    let text = state.apply(&appended).expect_err("gone").to_string();
    let base = ContentHash::of(b"one\n");
    assert_eq!(text, format!("an append to \"a.md\" extends {base}, and there is nothing"));
}

#[test]
fn a_checkpoint_stands_for_the_log_up_to_it() {
    let (_, _, state) = two_commits();
    let read = Checkpoint::decode(&checkpoint().encode().expect("fits")).expect("whole");
    assert_eq!(State::from(&read), state);
    assert_eq!(read.verify(), Ok(()));
    let mut other = checkpoint();
    other.files.remove(&at("log.jsonl"));
    assert!(matches!(other.verify(), Err(Mismatch::Mark { .. })));
    assert!(other.encode().is_err());
}

#[test]
fn a_segment_is_an_unbroken_range() {
    let whole = segment();
    assert_eq!(whole.get(position(2)), whole.commits.last());
    assert_eq!(whole.get(position(3)), None);
    let (_, second, _) = two_commits();
    let rebased = Commit { previous: ContentHash::of(b"another past"), ..second.clone() };
    let stranger = Commit { store: StoreId::from_bytes([1; 16]), ..second };
    let bytes = |commit: &Commit| commit.encode().expect("fits");
    let (one, two) = (whole.commits[0].clone(), whole.commits[1].clone());
    let cases = [
        (1, 2, vec![one.clone(), bytes(&rebased)], "was built on another past"),
        (1, 2, vec![one.clone(), bytes(&stranger)], "belongs to another store"),
        (1, 2, vec![two.clone(), one.clone()], "belongs at 2"),
        (1, 2, vec![one.clone(), one.clone()], "belongs at 1"),
        (2, 3, vec![one.clone(), two.clone()], "belongs at 1"),
        (1, 3, vec![one.clone(), two.clone()], "fewer commits"),
        (1, 1, vec![one.clone(), two.clone()], "more commits"),
        (1, 2, vec![], "fewer commits"),
        (2, 1, vec![], "fewer commits"),
        (1, 1, vec![one.slice(..one.len() - 1)], "its hash does not match"),
    ];
    for (first, last, commits, expected) in cases {
        let segment = Segment { first: position(first), last: position(last), commits, ..whole.clone() };
        let unfit = segment.encode().expect_err(expected).to_string();
        assert!(unfit.contains(expected), "{unfit}");
        // Another program's encoder may not check.
        let lengths: Vec<usize> = segment.commits.iter().map(|commit| commit.len()).collect();
        let heading = serde_json::json!({"store": STORE, "first": first, "last": last, "commits": lengths});
        let forged = super::examples::frame("segment", &heading.to_string(), &segment.commits.concat());
        let bad = Segment::decode(&forged).expect_err(expected);
        assert!(matches!(&bad, BadFrame::Damaged { what } if what.contains(expected)), "{bad}");
    }
    let later = Segment { first: position(2), last: position(2), commits: vec![two], ..whole };
    assert_eq!(Segment::decode(&later.encode().expect("fits")), Ok(later));
}
