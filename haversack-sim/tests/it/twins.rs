//! Names that differ only by case, in a directory whose names are remembered.

use haversack_sim::{SimDisk, Verb};
use haversack_store::{Blocking, Condition, ErrorKind, Version};

use crate::cases::{LINE, NEW, OLD, key};
use crate::world::{ensure, open, shown, sound};

/// The ways to replace what is there.
fn conditions() -> [Condition; 2] {
    [Condition::Any, Condition::Matches(Version::of_content(OLD))]
}

/// Returns a disk, and a backend that knows all names on it.
fn start() -> Result<(SimDisk, Blocking), String> {
    let disk = SimDisk::new(0);
    let store = open(&sound, &disk)?;
    for name in ["notes.md", "log.md"] {
        let _ = store.write(&key(name), OLD, Condition::Absent).map_err(shown)?;
    }
    disk.mark();
    Ok((disk, store))
}

#[test]
fn names_stay_known_after_our_own_replace() -> Result<(), String> {
    for condition in conditions() {
        let (disk, store) = start()?;
        let _ = store.write(&key("notes.md"), NEW, condition).map_err(shown)?;
        let _ = store.write(&key("new.md"), NEW, Condition::Absent).map_err(shown)?;
        let twin = store.write(&key("New.md"), NEW, Condition::Absent).map_err(|error| error.kind());
        ensure(twin == Err(ErrorKind::Invalid), || format!("a twin of ours: {twin:?}"))?;
        let calls = disk.calls();
        ensure(calls.iter().all(|call| call.verb != Verb::Names), || format!("listed again: {calls:?}"))?;
    }
    Ok(())
}

/// A replace must not hide what another program created before it.
#[test]
fn foreign_names_are_noticed_after_our_own_replace() -> Result<(), String> {
    for condition in conditions() {
        let (disk, store) = start()?;
        disk.edit(|editor| editor.replace("Theirs.md", LINE));
        let _ = store.write(&key("notes.md"), NEW, condition).map_err(shown)?;
        let twin = store.write(&key("theirs.md"), NEW, Condition::Absent).map_err(|error| error.kind());
        ensure(twin == Err(ErrorKind::Invalid), || format!("a twin of theirs: {twin:?}"))?;
    }
    Ok(())
}
