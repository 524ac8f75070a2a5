//! A directory of a memory and a storage without a log, brought together.

use futures_lite::future::block_on;
use haversack::carried::{Access, Carried, CarryReport, carry};
use haversack::kind::Kinds;
use haversack::store::{Backend, BackendExt, Bytes, Condition, InMemory, Locator};
use haversack::sync::{Gate, Hold};

use crate::subjects::{Subject, at};

/// Holds back every content with the word "secret".
struct NoSecrets;

impl Gate for NoSecrets {
    fn holds(&self, _: &Locator, content: &[u8]) -> Option<Hold> {
        let text = String::from_utf8_lossy(content);
        text.contains("secret").then(|| Hold::whole("it says secret"))
    }
}

struct Sides {
    memory: Subject,
    storage: InMemory,
    agreement: InMemory,
}

impl Sides {
    fn new() -> Sides {
        Sides { memory: Subject::in_memory(), storage: InMemory::new(), agreement: InMemory::new() }
    }

    fn carry(&self, access: Access) -> CarryReport {
        let carried = Carried {
            memory: &self.memory.memory,
            prefix: &at("team"),
            storage: &self.storage,
            agreement: &self.agreement,
            kinds: Kinds::built_in(),
            gate: &NoSecrets,
            access,
            names: ["laptop", "the store"],
        };
        block_on(carry(carried)).expect("carried")
    }

    fn there(&self, path: &str, text: &str) {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let _ = block_on(self.storage.write(&at(path), bytes, Condition::Any)).expect("written");
    }

    fn text_there(&self, path: &str) -> Option<String> {
        block_on(self.storage.read_text(&at(path))).expect("read")
    }

    fn here(&self, path: &str) -> Option<String> {
        self.memory.text(&format!("team/{path}"))
    }
}

#[test]
fn both_sides_edits_are_merged() {
    let sides = Sides::new();
    sides.memory.put("team/a.md", "one\n\ntwo\n\nthree\n");
    sides.memory.put("other.md", "not of this directory");
    sides.there("b.md", "theirs\n");
    let report = sides.carry(Access::ReadAndWrite);
    assert_eq!((report.sent, report.received), (vec![at("team/a.md")], vec![at("team/b.md")]));
    assert_eq!(sides.text_there("other.md"), None);
    sides.memory.put("team/a.md", "one here\n\ntwo\n\nthree\n");
    sides.there("a.md", "one\n\ntwo\n\nthree there\n");
    sides.carry(Access::ReadAndWrite);
    let merged = Some("one here\n\ntwo\n\nthree there\n".to_owned());
    assert_eq!((sides.here("a.md"), sides.text_there("a.md")), (merged.clone(), merged));
    assert_eq!(sides.carry(Access::ReadAndWrite), CarryReport::default(), "once more does nothing");
}

#[test]
fn deletions_are_carried_and_changes_win_over_them() {
    let sides = Sides::new();
    for name in ["a.md", "b.md", "c.md", "d.md"] {
        sides.memory.put(&format!("team/{name}"), "x\n");
    }
    sides.carry(Access::ReadAndWrite);
    block_on(sides.memory.files.delete(&at("team/a.md"), Condition::Any)).expect("deleted");
    block_on(sides.storage.delete(&at("b.md"), Condition::Any)).expect("deleted");
    block_on(sides.memory.files.delete(&at("team/c.md"), Condition::Any)).expect("deleted");
    sides.there("c.md", "changed\n");
    let report = sides.carry(Access::ReadAndWrite);
    assert_eq!(report.deleted, [at("team/a.md"), at("team/b.md")]);
    assert_eq!((sides.text_there("a.md"), sides.here("b.md")), (None, None));
    assert_eq!(sides.here("c.md").as_deref(), Some("changed\n"));
    assert_eq!(sides.carry(Access::ReadAndWrite), CarryReport::default());
}

#[test]
fn secrets_stay_here() {
    let sides = Sides::new();
    sides.memory.put("team/a.md", "a secret\n");
    let report = sides.carry(Access::ReadAndWrite);
    assert_eq!(report.held, [(at("team/a.md"), "it says secret".to_owned())]);
    assert_eq!(sides.text_there("a.md"), None);
}

#[test]
fn read_only_storage_is_never_written() {
    let sides = Sides::new();
    sides.there("a.md", "one\n\ntwo\n");
    sides.carry(Access::ReadOnly);
    sides.memory.put("team/a.md", "one here\n\ntwo\n");
    sides.memory.put("team/new.md", "ours\n");
    let report = sides.carry(Access::ReadOnly);
    assert_eq!(report.held.len(), 2);
    sides.there("a.md", "one\n\ntwo there\n");
    sides.carry(Access::ReadOnly);
    assert_eq!(sides.here("a.md").as_deref(), Some("one here\n\ntwo there\n"));
    assert_eq!(
        (sides.text_there("a.md").as_deref(), sides.text_there("new.md")),
        (Some("one\n\ntwo there\n"), None)
    );
}

#[test]
fn emptied_storage_deletes_nothing() {
    let sides = Sides::new();
    for number in 0..12 {
        sides.memory.put(&format!("team/{number}.md"), "x\n");
    }
    sides.carry(Access::ReadAndWrite);
    for number in 0..12 {
        block_on(sides.storage.delete(&at(&format!("{number}.md")), Condition::Any)).expect("deleted");
    }
    let report = sides.carry(Access::ReadAndWrite);
    assert_eq!((report.held.len(), report.deleted.len()), (12, 0));
    assert_eq!(sides.here("7.md").as_deref(), Some("x\n"));
}

#[test]
fn killed_carry_goes_on_where_it_was() {
    let sides = Sides::new();
    sides.memory.put("team/a.md", "one\n");
    // It died after it sent the file and before it remembered that.
    sides.there("a.md", "one\n");
    assert_eq!(sides.carry(Access::ReadAndWrite), CarryReport::default());
    sides.memory.put("team/a.md", "two\n");
    sides.carry(Access::ReadAndWrite);
    assert_eq!(sides.text_there("a.md").as_deref(), Some("two\n"));
}
