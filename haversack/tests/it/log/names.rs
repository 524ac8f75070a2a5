//! Names that others wrote: none leaves the memory, and none stops the rest.

use haversack::frame::BadFrame;
use haversack::ids::ContentHash;
use haversack::log::{Checkpoint, Commit, Oddity, State, StateMark};
use haversack::store::Bytes;
use serde_json::{Value, json};

use super::examples::{at, changed, checkpoint, commit, delete, frame, parts, put};

const BAD: &[&str] = &[
    "../x",
    "a/../../x",
    "a//b.md",
    "./a.md",
    "a.md/",
    "/etc/passwd",
    "",
    ".",
    "..",
    "a\\b.md",
    "C:\\x",
    "a\u{0}b",
    "a\nb",
    "\u{1b}[2J",
    "e\u{301}.md",
    ".haversack/x",
    ".Haversack/log/0000000000000001",
    ".haversack",
    "manifest.json",
    "Manifest.JSON",
    "notes/.haversack-swap-1",
];

/// Returns a commit that puts "one" at each of the names, whatever they are, with the mark that an author who allows them has.
fn forged(names: &[&str]) -> Bytes {
    let content = ContentHash::of(b"one");
    let example = commit(&State::empty(), 1, b"", vec![put("good.md", "one")]);
    changed("commit", &example.encode().expect("fits"), |heading, contents| {
        let mut line = heading["changes"][0].clone();
        let lines = names.iter().map(|name| {
            line["at"] = json!(name);
            contents.extend_from_slice(b"one");
            line.clone()
        });
        let lines: Vec<Value> = lines.collect();
        heading["changes"].as_array_mut().expect("a list").extend(lines);
        heading["state"] = json!(mark(&[&["good.md"], names].concat(), &content));
    })
}

/// Returns the mark by its definition: sums of what the hashes of all files say, as numbers with their lowest byte first.
fn mark(keys: &[&str], content: &ContentHash) -> StateMark {
    let mut sums = [0_u64; 4];
    for key in keys {
        let file = ContentHash::of(&[key.as_bytes(), &[0], &content.to_bytes()].concat()).to_bytes();
        for (sum, number) in sums.iter_mut().zip(file.chunks_exact(8)) {
            *sum = sum.wrapping_add(u64::from_le_bytes(number.try_into().expect("eight bytes")));
        }
    }
    let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    StateMark::from_bytes(bytes.try_into().expect("four numbers"))
}

#[test]
fn one_odd_name_does_not_stop_the_rest() {
    for name in BAD {
        let commit = Commit::decode(&forged(&[name])).expect("the rest is good");
        assert_eq!(commit.changes, [put("good.md", "one")], "{name:?}");
        assert_eq!((commit.odd.len(), commit.odd[0].key.as_str()), (1, *name));
        let report = commit.odd[0].to_string();
        assert!(
            report.contains("refused") && !report.contains('\u{1b}') && !report.contains('\n'),
            "{report}"
        );
        assert!(commit.encode().is_err(), "nobody writes {name:?}");
        let mut state = State::empty();
        state.apply(&commit).expect("its mark accounts for it");
        assert_eq!(state.files().len(), 1);
        assert_eq!(state.odd().keys().collect::<Vec<_>>(), [name]);
        // The log goes on, and the odd file can go.
        let next = super::examples::commit(&state, 2, b"x", vec![put("next.md", "two")]);
        state.apply(&next).expect("fits");
        let gone = super::examples::commit(&state, 3, b"x", vec![delete("next.md")]).encode().expect("fits");
        let gone = changed("commit", &gone, |heading, _| {
            heading["changes"].as_array_mut().expect("a list").push(json!({"at": name, "delete": {}}));
            heading["state"] = json!(mark(&["good.md"], &ContentHash::of(b"one")));
        });
        state.apply(&Commit::decode(&gone).expect("good")).expect("fits");
        assert_eq!((state.files().len(), state.odd().len()), (1, 0), "{name:?}");
    }
    let commit = Commit::decode(&forged(BAD)).expect("the rest is good");
    assert_eq!((commit.changes.len(), commit.odd.len()), (1, BAD.len()));
    State::empty().apply(&commit).expect("its mark accounts for them");
}

#[test]
fn of_names_that_differ_only_by_case_the_first_stands() {
    let commit = Commit::decode(&forged(&["GOOD.md", "É.md", "é.md"])).expect("the rest is good");
    let names: Vec<&str> = commit.changes.iter().map(|change| change.locator.as_str()).collect();
    assert_eq!(names, ["good.md", "É.md"]);
    assert_eq!(commit.odd[0].why, Oddity::Twin(at("good.md")));
    let report = "\"GOOD.md\" is refused: the name differs only by case from \"good.md\"";
    assert_eq!(commit.odd[0].to_string(), report);
    assert_eq!(commit.odd[1].key, "é.md");
    State::empty().apply(&commit).expect("its mark accounts for them");
    let twins = super::examples::commit(&State::empty(), 1, b"", vec![put("a.md", "x"), put("A.md", "y")]);
    assert!(twins.encode().is_err(), "nobody writes them");
}

#[test]
fn a_renaming_by_case_is_no_pair_of_twins() {
    let mut state = State::empty();
    state.apply(&commit(&state, 1, b"", vec![put("readme.md", "x")])).expect("fits");
    for changes in
        [vec![delete("readme.md"), put("README.md", "x")], vec![put("README.md", "x"), delete("readme.md")]]
    {
        let renaming = commit(&state, 2, b"x", changes);
        let read = Commit::decode(&renaming.encode().expect("fits")).expect("whole");
        assert_eq!(read, renaming);
        let mut state = state.clone();
        state.apply(&read).expect("fits");
        assert_eq!(state.files().keys().collect::<Vec<_>>(), [at("README.md")]);
    }
}

#[test]
fn one_file_has_one_change() {
    let refused = Err(BadFrame::Damaged { what: "one file has two changes".to_owned() });
    assert_eq!(Commit::decode(&forged(&["good.md"])), refused);
    assert_eq!(Commit::decode(&forged(&["../x", "../x"])), refused);
    let both = commit(&State::empty(), 1, b"", vec![put("a.md", "x"), delete("a.md")]);
    assert!(both.encode().is_err());
}

#[test]
fn an_odd_name_in_a_checkpoint_does_not_stop_the_rest() {
    let (heading, contents) = parts(&checkpoint().encode().expect("fits"));
    for name in BAD.iter().chain(&["LOG.jsonl"]) {
        let mut heading = heading.clone();
        let mut line = heading["files"][2].clone();
        line["at"] = json!(name);
        let hash: ContentHash = serde_json::from_value(line["hash"].clone()).expect("a hash");
        let lines = heading["files"].as_array_mut().expect("a list");
        lines.push(line);
        lines.sort_by(|one, other| one["at"].as_str().cmp(&other["at"].as_str()));
        let without = Checkpoint::decode(&frame("checkpoint", &heading.to_string(), &contents));
        assert!(matches!(without, Err(BadFrame::Damaged { .. })), "the mark has to account for {name:?}");
        let good: StateMark = serde_json::from_value(heading["state"].clone()).expect("a mark");
        heading["state"] = json!(sum(good, mark(&[name], &hash)));
        let read = Checkpoint::decode(&frame("checkpoint", &heading.to_string(), &contents))
            .expect("the rest is good");
        assert_eq!((read.files.len(), read.odd.len()), (3, 1), "{name:?}");
        assert!(read.encode().is_err(), "nobody writes {name:?}");
        let state = State::from(&read);
        assert_eq!((state.files().len(), state.odd().len()), (3, 1), "{name:?}");
    }
}

fn sum(one: StateMark, other: StateMark) -> StateMark {
    let mut bytes = one.to_bytes();
    for (one, other) in bytes.chunks_exact_mut(8).zip(other.to_bytes().chunks_exact(8)) {
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let sum = number(one).wrapping_add(number(other));
        one.copy_from_slice(&sum.to_le_bytes());
    }
    StateMark::from_bytes(bytes)
}

#[test]
fn files_of_a_checkpoint_are_in_order_and_there_once() {
    let bytes = checkpoint().encode().expect("fits");
    for change in [(|lines: &mut Vec<Value>| lines.swap(0, 2)) as fn(&mut Vec<Value>), |lines| {
        lines.push(lines[2].clone())
    }] {
        let forged = changed("checkpoint", &bytes, |heading, _| {
            change(heading["files"].as_array_mut().expect("a list"))
        });
        let bad = Checkpoint::decode(&forged).expect_err("wrong order").to_string();
        assert_eq!(bad, "it is damaged: its files are not in order, or one is there twice");
    }
}
