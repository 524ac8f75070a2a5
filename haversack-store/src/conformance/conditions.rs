//! Cases: conditions are honoured.

use super::{Bench, Checked, at, ensure_eq, ensure_refused};
use crate::{Condition, ErrorKind, Locator, Version};

pub(super) fn create_if_absent(bench: &Bench<'_>) -> Checked {
    let locator = at("new/a.md");
    let first = bench.store.write(&locator, "first", Condition::Absent)?;
    let second = bench.store.write(&locator, "second", Condition::Absent);
    ensure_refused(second, ErrorKind::Conflict, "a second create")?;
    let object = bench.store.read(&locator)?;
    ensure_eq(&object.bytes[..], b"first", "content after a refused create")?;
    ensure_eq(object.version, first.version, "version after a refused create")
}

pub(super) fn update_if_match(bench: &Bench<'_>) -> Checked {
    let locator = at("a.md");
    let matches = |version: &Version| Condition::Matches(version.clone());
    let first = bench.store.write(&locator, "first", Condition::Any)?.version;
    let second = bench.store.write(&locator, "second", matches(&first))?.version;
    ensure_eq(&bench.store.read(&locator)?.bytes[..], b"second", "content after an update")?;
    let stale = bench.store.write(&locator, "third", matches(&first));
    ensure_refused(stale, ErrorKind::Conflict, "an update with a stale version")?;
    ensure_eq(&bench.store.read(&locator)?.bytes[..], b"second", "content after a refused update")?;
    let nonsense = bench.store.write(&locator, "third", matches(&Version::new("no such version")));
    ensure_refused(nonsense, ErrorKind::Conflict, "an update with a version nobody gave")?;
    let _ = bench.store.write(&locator, "third", matches(&second))?;
    let absent = bench.store.write(&at("nothing.md"), "x", matches(&second));
    ensure_refused(absent, ErrorKind::Conflict, "an update of nothing")?;
    ensure_eq(bench.store.exists(&at("nothing.md"))?, false, "a refused update created something")?;
    let nowhere = bench.store.write(&at("no/dir/nothing.md"), "x", matches(&second));
    ensure_refused(nowhere, ErrorKind::Conflict, "an update of nothing in no directory")?;
    ensure_eq(bench.store.exists(&at("no"))?, false, "a refused update made a directory")
}

pub(super) fn conditional_delete(bench: &Bench<'_>) -> Checked {
    let locator = at("a.md");
    let first = bench.store.write(&locator, "first", Condition::Any)?.version;
    let second = bench.store.write(&locator, "second", Condition::Any)?.version;
    let stale = bench.store.delete(&locator, Condition::Matches(first.clone()));
    ensure_refused(stale, ErrorKind::Conflict, "a delete with a stale version")?;
    ensure_eq(&bench.store.read(&locator)?.bytes[..], b"second", "content after a refused delete")?;
    bench.store.delete(&locator, Condition::Matches(second.clone()))?;
    ensure_refused(bench.store.read(&locator), ErrorKind::NotFound, "reading what was deleted")?;
    let again = bench.store.delete(&locator, Condition::Matches(second));
    ensure_refused(again, ErrorKind::Conflict, "a conditional delete of nothing")
}

pub(super) fn deleting(bench: &Bench<'_>) -> Checked {
    let locator = at("dir/a.md");
    let _ = bench.store.write(&locator, "x", Condition::Any)?;
    let _ = bench.store.write(&at("dir/b.md"), "y", Condition::Any)?;
    bench.store.delete(&locator, Condition::Any)?;
    ensure_refused(bench.store.read(&locator), ErrorKind::NotFound, "reading what was deleted")?;
    bench.store.delete(&locator, Condition::Any)?;
    bench.store.delete(&at("never/was"), Condition::Any)?;
    ensure_eq(&bench.store.read(&at("dir/b.md"))?.bytes[..], b"y", "its neighbour")?;
    let _ = bench.store.write(&locator, "again", Condition::Absent)?;
    ensure_eq(&bench.store.read(&locator)?.bytes[..], b"again", "created again")
}

pub(super) fn deleting_only_directories(bench: &Bench<'_>) -> Checked {
    let _ = bench.store.write(&at("a.md"), "x", Condition::Any)?;
    let _ = bench.store.write(&at("full/b.md"), "y", Condition::Any)?;
    let object = bench.store.delete(&at("a.md"), Condition::Absent);
    ensure_refused(object, ErrorKind::Conflict, "an object that is to be an empty directory")?;
    let full = bench.store.delete(&at("full"), Condition::Absent);
    ensure_refused(full, ErrorKind::Invalid, "a full directory")?;
    bench.store.mkdir(&at("empty"))?;
    bench.store.delete(&at("empty"), Condition::Absent)?;
    ensure_eq(bench.store.exists(&at("empty"))?, false, "a directory that was deleted")?;
    bench.store.delete(&at("never/was"), Condition::Absent)?;
    ensure_eq(&bench.store.read(&at("full/b.md"))?.bytes[..], b"y", "what is in the full directory")?;
    let root = bench.store.delete(&Locator::root(), Condition::Any);
    ensure_refused(root, ErrorKind::Invalid, "deleting the root")?;
    ensure_eq(&bench.store.read(&at("a.md"))?.bytes[..], b"x", "what was there")
}
