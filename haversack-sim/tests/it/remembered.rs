//! A backend that remembers what it read or wrote must not take it for what is there now.

use std::time::Duration;

use haversack_sim::{Editor, Seen, SimDisk};
use haversack_store::{Blocking, Condition, Displaced, Error, ErrorKind, Guard, Version};

use crate::cases::{NEW, key};
use crate::editor::Act;
use crate::world::{ensure, kept, no_working_names, open, scan, shown, sound};

const TARGET: &str = "notes.md";

/// How the backend came to know what the caller names.
#[derive(Clone, Copy, Debug)]
enum Known {
    FromReading,
    /// By reading it under a lock, which keeps the file open.
    FromReadingLocked,
    FromWriting,
    /// By its version only, as in a process that has just begun.
    NotAtAll,
}

/// The caller's next action.
#[derive(Clone, Copy, Debug)]
enum Change {
    Write,
    Delete,
}

impl Change {
    fn run(self, store: &Blocking, old: &[u8]) -> Result<Option<Displaced>, Error> {
        let condition = Condition::Matches(Version::of_content(old));
        match self {
            Change::Write => Ok(store.write(&key(TARGET), NEW, condition)?.displaced),
            Change::Delete => store.delete(&key(TARGET), condition).map(|()| None),
        }
    }
}

/// Returns a disk on which `old` is at the target, and a backend that knows it in that way, with the lock that takes.
fn start(known: Known, old: &[u8]) -> Result<(SimDisk, Blocking, Option<Guard>), String> {
    let disk = SimDisk::new(0);
    let mut store = open(&sound, &disk)?;
    let _ = store.write(&key(TARGET), old.to_vec(), Condition::Any).map_err(shown)?;
    if !matches!(known, Known::FromWriting) {
        store = open(&sound, &disk)?;
    }
    let lock = match known {
        Known::FromReadingLocked => Some(store.lock("store", Duration::ZERO).map_err(shown)?),
        Known::FromReading | Known::FromWriting | Known::NotAtAll => None,
    };
    if matches!(known, Known::FromReading | Known::FromReadingLocked) {
        store.read(&key(TARGET)).map_err(shown)?;
    }
    disk.mark();
    Ok((disk, store, lock))
}

/// Returns contents that are easily taken for `old`.
fn lookalikes(old: &[u8]) -> Vec<Vec<u8>> {
    let with = |at: usize| {
        let mut other = old.to_vec();
        other[at] ^= 1;
        other
    };
    vec![
        with(0),
        with(old.len() / 2),
        with(old.len() - 1),
        old[..old.len() - 1].to_vec(),
        [old, b"!"].concat(),
        Vec::new(),
    ]
}

fn save(act: Act, editor: &mut Editor<'_>, theirs: &[u8]) {
    match act {
        Act::Replace => editor.replace(TARGET, theirs),
        _ => editor.overwrite(TARGET, theirs),
    }
}

/// Lets another program save something alike before every call, and looks for it.
fn sweep(known: Known, change: Change, old: &[u8]) -> Result<(), String> {
    for theirs in lookalikes(old) {
        for act in [Act::Replace, Act::Overwrite] {
            for call in 1.. {
                let (disk, store, _lock) = start(known, old)?;
                let saved = theirs.clone();
                disk.at_call(call, move |editor| save(act, editor, &saved));
                let result = change.run(&store, old);
                let trace = disk.calls();
                if trace.len() < call {
                    break;
                }
                // A file from before the first call is seen; after that, nothing may change.
                let told = call > 1 || result.is_err();
                let judged = scan(&store)
                    .and_then(|_| is_found(&disk, &theirs, &result))
                    .and_then(|()| ensure(told, || format!("not told of the conflict: {result:?}")));
                judged.map_err(|error| {
                    let size = theirs.len();
                    format!("{known:?}, {change:?}, {act:?} of {size} bytes before call {call} of {trace:?}: {error}")
                })?;
            }
        }
    }
    Ok(())
}

/// Fails unless what the other program saved is at its place, and the caller told, or was handed over.
fn is_found(disk: &SimDisk, theirs: &[u8], result: &Result<Option<Displaced>, Error>) -> Result<(), String> {
    no_working_names(disk)?;
    let at_target = disk.look(TARGET) == Some(Seen::File(theirs.to_vec()));
    let found = match result {
        Ok(Some(displaced)) => displaced.bytes == theirs && kept(disk).values().any(|bytes| bytes == theirs),
        // It was saved over what we wrote, or in the place of what we deleted.
        Ok(None) => at_target,
        Err(error) => error.kind() == ErrorKind::Conflict && at_target,
    };
    ensure(found, || format!("{result:?} and {:?} at the target", disk.look(TARGET)))
}

#[test]
fn similar_content_is_not_the_same() -> Result<(), String> {
    // The second is looked at in several goes.
    for old in [b"what was acknowledged\n".to_vec(), vec![b'o'; 40_000]] {
        for known in [Known::FromReading, Known::FromReadingLocked, Known::FromWriting, Known::NotAtAll] {
            for change in [Change::Write, Change::Delete] {
                sweep(known, change, &old)?;
            }
        }
    }
    Ok(())
}

/// A repeated read returns the content only if it is still there.
#[test]
fn reading_again_shows_what_is_there() -> Result<(), String> {
    for old in [b"what was acknowledged\n".to_vec(), vec![b'o'; 40_000]] {
        for theirs in lookalikes(&old) {
            let (disk, store, _lock) = start(Known::FromReading, &old)?;
            disk.edit(|editor| editor.overwrite(TARGET, &theirs));
            let object = store.read(&key(TARGET)).map_err(shown)?;
            let right = object.bytes == theirs && object.version == Version::of_content(&theirs);
            ensure(right, || format!("{object:?} instead of {theirs:?}"))?;
        }
    }
    Ok(())
}
