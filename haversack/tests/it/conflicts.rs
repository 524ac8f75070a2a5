//! Conflicts in the files of a memory.

use std::sync::Arc;

use futures_lite::future::block_on;
use haversack::conflict::{Conflict, Keep};
use haversack::merge::conflict_name;
use haversack::store::{BackendExt, ErrorKind, Fault, Faulty, InMemory, Locator};
use haversack::{Memory, Reason};

use crate::subjects::{Subject, at, on_every_backend};

on_every_backend!(
    passages_are_found_and_settled,
    what_changed_meanwhile_is_not_settled,
    a_copy_goes_replaces_or_stays,
    a_copy_without_its_file,
);

const TEXT: &str = "The lamp turns every 12 s.\n> [also, from desktop:]\nThe lamp turns every 15 s.\n";

fn all(subject: &Subject) -> Vec<Conflict> {
    let conflicts = block_on(subject.memory.conflicts(&Locator::root())).expect("listed");
    assert!(conflicts.unread.is_empty(), "{conflicts:?}");
    conflicts.found
}

fn refused(subject: &Subject, conflict: &Conflict, keep: Keep) -> Reason {
    block_on(subject.memory.resolve(conflict, keep)).expect_err("refused").reason().clone()
}

fn passages_are_found_and_settled(subject: &Subject) {
    subject.put("lighthouse/z.md", TEXT);
    subject.put("lighthouse/a.md", format!("{TEXT}\n{}", TEXT.replace("1", "2")));
    subject.put("lighthouse/sketch.png", &b"\xff\0"[..]);
    subject.put("other.md", "> [also, from desktop]\n");
    let conflicts = all(subject);
    let places: Vec<(&str, Option<usize>)> = conflicts
        .iter()
        .map(|conflict| (conflict.locator.name(), conflict.passages[0].lines.map(|lines| lines.first)))
        .collect();
    assert_eq!(places, [("a.md", Some(1)), ("a.md", Some(5)), ("z.md", Some(1))]);
    let below = |key: &str| block_on(subject.memory.conflicts(&at(key)));
    assert_eq!(below("lighthouse/z.md").expect("listed").found, conflicts[2..]);
    assert_eq!(below("other.md").expect("listed").found, []);
    assert_eq!(below("absent.md").expect_err("nothing there").kind(), ErrorKind::NotFound);

    // The rest of the file may have changed.
    block_on(subject.memory.insert(&at("lighthouse/a.md"), 0, "Above.", haversack::Ending::Kept))
        .expect("inserted");
    block_on(subject.memory.resolve(&conflicts[1], Keep::Passage(2))).expect("settled");
    let text = subject.text("lighthouse/a.md").expect("there");
    assert_eq!(text, format!("Above.\n{TEXT}\nThe lamp turns every 25 s.\n"));
    assert_eq!(all(subject).len(), 2);
}

fn what_changed_meanwhile_is_not_settled(subject: &Subject) {
    subject.put("lamp.md", TEXT);
    let conflict = &all(subject)[0];
    assert_eq!(refused(subject, conflict, Keep::Passage(3)), Reason::NoPassage { passages: 2 });
    subject.put("lamp.md", TEXT.replace("15", "16"));
    assert_eq!(refused(subject, conflict, Keep::Passage(1)), Reason::NoConflict);
    assert_eq!(subject.text("lamp.md"), Some(TEXT.replace("15", "16")));
    subject.put("lamp.md", TEXT);
    block_on(subject.memory.resolve(conflict, Keep::Both)).expect("settled");
    assert_eq!(refused(subject, conflict, Keep::Both), Reason::NoConflict, "once is enough");
}

fn a_copy_goes_replaces_or_stays(subject: &Subject) {
    let copy = conflict_name(&at("a/sketch.png"), b"\0new").expect("a name");
    for keep in [Keep::Passage(1), Keep::Passage(2), Keep::Both] {
        subject.put("a/sketch.png", &b"\0old"[..]);
        subject.put("a/sketch-2.png", &b"taken"[..]);
        subject.put(copy.as_str(), &b"\0new"[..]);
        let conflicts = all(subject);
        let [conflict] = &conflicts[..] else { panic!("one: {conflicts:?}") };
        assert_eq!(conflict.locator, at("a/sketch.png"));
        assert_eq!(refused(subject, conflict, Keep::Passage(3)), Reason::NoPassage { passages: 2 });
        subject.put("a/sketch.png", &b"\0changed"[..]);
        assert_eq!(refused(subject, conflict, keep), Reason::NoConflict, "the file was changed");
        subject.put("a/sketch.png", &b"\0old"[..]);
        let resolved = block_on(subject.memory.resolve(conflict, keep)).expect("settled");
        let stays = if keep == Keep::Passage(2) { "\0new" } else { "\0old" };
        assert_eq!(subject.text("a/sketch.png").as_deref(), Some(stays));
        assert_eq!(subject.text(copy.as_str()), None);
        let renamed = (keep == Keep::Both).then(|| at("a/sketch-3.png"));
        assert_eq!(resolved.renamed, renamed);
        assert_eq!(subject.text("a/sketch-3.png").as_deref(), renamed.map(|_| "\0new"));
        assert_eq!(all(subject), []);
    }
}

fn a_copy_without_its_file(subject: &Subject) {
    let long = format!("{}.png", "ä".repeat(125));
    for (name, keep) in
        [("sketch.png", Keep::Passage(2)), ("lens.png", Keep::Passage(1)), (&long, Keep::Passage(2))]
    {
        let copy = conflict_name(&at(name), b"\0new").expect("a name");
        subject.put(copy.as_str(), &b"\0new"[..]);
        if name == long {
            // Its copy has a shorter name.
            subject.put(name, "\0old");
        }
        let conflicts = all(subject);
        assert_eq!(conflicts[0].locator, at(name));
        block_on(subject.memory.resolve(&conflicts[0], keep)).expect("settled");
        assert_eq!(subject.text(name).as_deref(), (keep == Keep::Passage(2)).then_some("\0new"));
        assert_eq!(all(subject), []);
    }
    // A copy that a user edits is a file of its own.
    let copy = conflict_name(&at("x.png"), b"\0new").expect("a name");
    subject.put(copy.as_str(), &b"\0newer"[..]);
    assert_eq!(all(subject), []);
}

/// An unreadable file is named, and hides no other.
#[test]
fn a_file_that_cannot_be_read_is_named() {
    let files = Arc::new(Faulty::new(Arc::new(InMemory::new())));
    for key in ["a.md", "b.md", "c.md"] {
        let _ = block_on(files.write_text(&at(key), TEXT)).expect("written");
    }
    let memory = Memory::new(files.clone(), Arc::new(InMemory::new()));
    // One scan, then one read for each.
    files.plan([Fault::None, Fault::None, Fault::Refused(ErrorKind::Denied)]);
    let conflicts = block_on(memory.conflicts(&Locator::root())).expect("listed");
    let found: Vec<&Locator> = conflicts.found.iter().map(|conflict| &conflict.locator).collect();
    assert_eq!(found, [&at("a.md"), &at("c.md")]);
    let unread: Vec<&Locator> = conflicts.unread.iter().map(|error| error.locator()).collect();
    assert_eq!(unread, [&at("b.md")]);
}
