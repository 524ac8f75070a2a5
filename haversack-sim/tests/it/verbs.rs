//! The engine's verbs on a simulated disk: editors at every call, crashes at every call.

use std::sync::Arc;

use haversack::store::{Backend, BackendExt, Bytes, Condition, DeviceLocal, Locator, Prefixed, block_on};
use haversack::{BatchReport, Change, Depth, Memory, Reason};
use haversack_sim::{Crash, Flaw, Mutant, SimDisk, Verb};
use haversack_store::device_local::fs::Fs;

use crate::world::{kept, no_working_names};

/// The directory of the state on the one disk.
const STATE: &str = "state";

fn at(key: &str) -> Locator {
    Locator::parse(key).expect("valid")
}

/// Opens a memory whose files and state are on `disk`.
fn open(disk: &SimDisk) -> Result<Memory, haversack::store::Error> {
    open_on(disk.clone())
}

fn open_on(disk: impl Fs) -> Result<Memory, haversack::store::Error> {
    let files: Arc<dyn Backend> = Arc::new(DeviceLocal::on(disk)?);
    let state = Arc::new(Prefixed::new(files.clone(), at(STATE)));
    Ok(Memory::new(files, state))
}

/// Returns a disk with these files, all durable.
fn disk_with(files: &[(&str, &str)]) -> SimDisk {
    let disk = SimDisk::new(0);
    let memory = open(&disk).expect("it opens");
    for (key, text) in files {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let _ = block_on(memory.files().write(&at(key), bytes, Condition::Any)).expect("written");
    }
    disk
}

fn text(disk: &SimDisk, key: &str) -> Option<String> {
    disk.read(key).map(|bytes| String::from_utf8(bytes).expect("text"))
}

const NOTE: &str = "note.md";

/// Lets an editor save `theirs` before every call of a replacement; `judge` gets whether that was before the replacement took
/// effect, its result, and what is in the file.
fn with_editor_at_every_call<F: Fs>(
    wrap: impl Fn(SimDisk) -> F,
    theirs: &'static str,
    mut judge: impl FnMut(bool, Result<String, Reason>, String),
) {
    let start = disk_with(&[(NOTE, "port 5433\n")]);
    let replace = |memory: &Memory| {
        let edited = block_on(memory.str_replace(&at(NOTE), "5433", "5434"));
        edited.map(|edited| edited.text().to_owned()).map_err(|error| error.reason().clone())
    };
    let undisturbed = start.fork(0);
    let memory = open_on(wrap(undisturbed.clone())).expect("it opens");
    undisturbed.mark();
    assert_eq!(replace(&memory), Ok("port 5434\n".to_owned()));
    let calls = undisturbed.calls();
    let effect = calls.iter().position(|call| call.verb == Verb::Exchange).expect("it exchanges") + 1;
    for how in 0..3 {
        for call in 1..=calls.len() {
            let disk = start.fork(0);
            let memory = open_on(wrap(disk.clone())).expect("it opens");
            let descriptor = disk.edit(|editor| editor.open(NOTE));
            disk.mark();
            disk.at_call(call, move |editor| match how {
                0 => editor.replace(NOTE, theirs.as_bytes()),
                1 => editor.overwrite(NOTE, theirs.as_bytes()),
                _ => editor.write(descriptor, theirs.as_bytes()),
            });
            let result = replace(&memory);
            no_working_names(&disk).expect("nothing is left over");
            // A write through an old descriptor after our replace goes to the replaced file.
            if how == 2 && call > effect {
                continue;
            }
            assert_eq!(
                kept(&disk).len(),
                0,
                "nothing waits to be merged: how {how}, call {call} of {calls:?}"
            );
            judge(call <= effect, result, text(&disk, NOTE).expect("it is there"));
        }
    }
}

#[test]
fn editor_save_in_between_counts_first() {
    let theirs = "saved by an editor\nport 5433\n";
    with_editor_at_every_call(
        |disk| disk,
        theirs,
        |before, result, now| {
            if before {
                assert_eq!(result, Ok("saved by an editor\nport 5434\n".to_owned()));
                assert_eq!(now, "saved by an editor\nport 5434\n", "both changes are there");
            } else {
                assert_eq!((result, now.as_str()), (Ok("port 5434\n".to_owned()), theirs), "it saved later");
            }
        },
    );
}

/// The saved text is as long as the old one, and the clock stands still: the file looks untouched.
#[test]
fn editor_save_within_one_clock_tick_counts_first() {
    let stopped = |disk| Mutant::new(disk, Flaw::StoppedClock);
    with_editor_at_every_call(stopped, "PORT 5433\n", |before, result, now| {
        let (ours, now_expected) = match before {
            true => ("PORT 5434\n", "PORT 5434\n"),
            false => ("port 5434\n", "PORT 5433\n"),
        };
        assert_eq!((result, now.as_str()), (Ok(ours.to_owned()), now_expected));
    });
}

#[test]
fn an_edit_that_no_longer_applies_leaves_the_editors_text() {
    let theirs = "rewritten\n";
    with_editor_at_every_call(
        |disk| disk,
        theirs,
        |before, result, now| {
            let expected = if before { Err(Reason::OldNotFound) } else { Ok("port 5434\n".to_owned()) };
            assert_eq!((result, now.as_str()), (expected, theirs));
        },
    );
}

// Each in a directory of its own: syncing one makes nothing else durable.
const BEFORE: [(&str, Option<&str>); 4] =
    [("x/a.md", Some("old a\n")), ("y/b.md", Some("old b\n")), ("z/c.md", None), ("d/e.md", Some("old e\n"))];
const AFTER: [(&str, Option<&str>); 4] =
    [("x/a.md", Some("new a\n")), ("y/b.md", None), ("z/c.md", Some("old b\n")), ("d/e.md", None)];

fn batch(memory: &Memory) -> haversack::Result<BatchReport> {
    block_on(memory.batch(&[
        Change::StrReplace { locator: at("x/a.md"), old: "old".to_owned(), new: "new".to_owned() },
        Change::Rename { from: at("y/b.md"), to: at("z/c.md") },
        Change::Delete { locator: at("d"), depth: Depth::Recursive },
    ]))
}

/// How a disk is found after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Before,
    After,
    Half,
}

fn found(disk: &SimDisk) -> Found {
    let is = |wanted: &[(&str, Option<&str>)]| {
        wanted.iter().all(|(key, expected)| text(disk, key).as_deref() == *expected)
    };
    if is(&BEFORE) {
        Found::Before
    } else if is(&AFTER) {
        Found::After
    } else {
        Found::Half
    }
}

fn start_of_batch() -> SimDisk {
    let files: Vec<(&str, &str)> = BEFORE.iter().filter_map(|(key, text)| Some((*key, (*text)?))).collect();
    disk_with(&files)
}

/// Lets the next process write something, and returns how it leaves the files.
fn next_verb(disk: &SimDisk) -> Result<Found, String> {
    let memory = open(disk).map_err(|error| format!("it does not open: {error:?}"))?;
    block_on(memory.append(&at("log"), "x")).map_err(|error| format!("it cannot write: {error:?}"))?;
    // After a power failure what is left over is found by a scan.
    block_on(memory.files().scan_all(&Locator::root())).map_err(|error| format!("no scan: {error:?}"))?;
    no_working_names(disk)?;
    let kept = kept(disk);
    if !kept.is_empty() {
        return Err(format!("kept although nobody else wrote: {kept:?}"));
    }
    // Deletions are signed, for the sync to come.
    let is_left = |path: &&String| path.starts_with("state/") && *path != "state/signed";
    match disk.tree().keys().find(is_left) {
        Some(left) => Err(format!("{left} is left")),
        None => Ok(found(disk)),
    }
}

#[test]
fn a_batch_is_whole_after_any_crash() {
    let start = start_of_batch();
    let mut seen = Vec::new();
    let crashes = std::iter::once(Crash::Kill).chain((0..12).map(|seed| Crash::PowerLoss { seed }));
    for crash in crashes {
        for calls in 1.. {
            let disk = start.fork(calls as u64);
            let memory = open(&disk).expect("it opens");
            disk.mark();
            disk.crash_after(calls);
            let result = batch(&memory);
            drop(memory);
            let (crashed, trace) = (disk.has_crashed(), disk.calls());
            disk.restart(crash);
            let outcome =
                next_verb(&disk).unwrap_or_else(|why| panic!("{crash:?} at {calls} of {trace:?}: {why}"));
            assert_ne!(outcome, Found::Half, "{crash:?} at {calls} of {trace:?}");
            assert!(
                result.is_err() || outcome == Found::After,
                "lost after it was acknowledged: {crash:?} at {calls} of {trace:?}"
            );
            seen.push(outcome);
            if !crashed {
                assert!(result.is_ok());
                break;
            }
        }
    }
    let count = |outcome| seen.iter().filter(|found| **found == outcome).count();
    assert!(count(Found::Before) > 50 && count(Found::After) > 50, "both outcomes were seen");
}

#[test]
fn completing_a_batch_can_be_interrupted_too() {
    let start = start_of_batch();
    for calls in 1.. {
        let first = start.fork(0);
        let memory = open(&first).expect("it opens");
        first.mark();
        first.crash_after(calls);
        let result = batch(&memory);
        drop(memory);
        let crashed = first.has_crashed();
        first.restart(Crash::Kill);
        if crashed && first.look("state/batch").is_none() {
            // There is nothing to complete.
            continue;
        }
        let losses = (0..2).map(|seed| Crash::PowerLoss { seed });
        for crash in std::iter::once(Crash::Kill).chain(losses) {
            for again in 1.. {
                let disk = first.fork(again as u64);
                disk.crash_after(again);
                drop(open(&disk).map(|memory| block_on(memory.append(&at("log"), "x"))));
                let crashed_again = disk.has_crashed();
                disk.restart(crash);
                let what = format!("{calls}, then {crash:?} at {again}");
                let outcome = next_verb(&disk).unwrap_or_else(|why| panic!("{what}: {why}"));
                assert_ne!(outcome, Found::Half, "{what}");
                assert!(result.is_err() || outcome == Found::After, "{what}");
                if !crashed_again {
                    break;
                }
            }
        }
        if !crashed {
            break;
        }
    }
}
