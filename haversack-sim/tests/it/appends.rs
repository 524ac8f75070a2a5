//! Appends in place: what goes wrong between the look, the write and the answer.

use std::io;

use haversack_sim::{Crash, SimDisk};
use haversack_store::{Condition, Durability};

use crate::cases::{Case, LINE, LINES, key};
use crate::editor::{Act, effect_of, holds, saved_then_fault};
use crate::world::{ensure, open, prepared, scan, shown, sound};

const TWO_MORE: &[u8] = b"line three\nline four\n";
const ONE_LEFT: &[u8] = b"line one\nline two\nline three\n";

fn has_line(disk: &SimDisk, case: Case) -> bool {
    disk.read(case.target()).is_some_and(|bytes| bytes.windows(LINE.len()).any(|window| window == LINE))
}

/// An append that fails cuts the file back to where it began, and must not cut what came from others.
#[test]
fn a_failed_append_spares_what_another_program_saved() -> Result<(), String> {
    let cases = [Case::AppendExisting, Case::AppendAtBarrier, Case::AppendCreating];
    cases.iter().try_for_each(|case| saved_then_fault(*case))
}

/// The content under the name before the bytes were written is older than they are.
#[test]
fn an_acknowledged_append_is_under_its_name() -> Result<(), String> {
    for case in [Case::AppendExisting, Case::AppendAtBarrier] {
        let start = prepared(case)?;
        let (_, effect) = effect_of(&sound, &start, case)?;
        for act in [Act::Replace, Act::Overwrite, Act::Append, Act::Remove] {
            for call in 1..=effect {
                let disk = start.fork(0);
                let store = open(&sound, &disk)?;
                disk.mark();
                act.plan(&disk, case, call);
                let result = case.run(&store);
                ensure(result.is_err() || has_line(&disk, case), || {
                    format!(
                        "{case:?}, {act:?} before call {call} of {:?}: acknowledged and lost",
                        disk.calls()
                    )
                })?;
            }
        }
    }
    Ok(())
}

/// A process dies after its append and before its answer; the user then removes one of the two new lines.
#[test]
fn what_the_user_left_of_an_append_stays() -> Result<(), String> {
    let start = prepared(Case::AppendExisting)?;
    for calls in 1.. {
        for replace in [true, false] {
            let disk = start.fork(0);
            let store = open(&sound, &disk)?;
            disk.mark();
            disk.crash_after(calls);
            let result = store.append(&key("log.md"), TWO_MORE, Durability::Now);
            let trace = disk.calls();
            if !disk.has_crashed() {
                return result.map(drop).map_err(shown);
            }
            disk.restart(Crash::Kill);
            if disk.read("log.md") != Some([LINES, TWO_MORE].concat()) {
                continue;
            }
            disk.edit(|editor| match replace {
                true => editor.replace("log.md", ONE_LEFT),
                false => editor.overwrite("log.md", ONE_LEFT),
            });
            scan(&open(&sound, &disk)?)?;
            let found = disk.read("log.md").unwrap_or_default();
            ensure(found == ONE_LEFT, || {
                let found = String::from_utf8_lossy(&found);
                format!("killed at {trace:?}, then saved without the last line: now {found:?}")
            })?;
        }
    }
    Ok(())
}

/// Nothing is promised of the note if the machine stops, so it may be one of an append long done.
#[test]
fn an_old_note_cuts_nothing_acknowledged() -> Result<(), String> {
    let start = prepared(Case::AppendExisting)?;
    let store = open(&sound, &start)?;
    let _ = store.append(&key("log.md"), TWO_MORE, Durability::Now).map_err(shown)?;
    let written = store.write(&key("log.md"), ONE_LEFT, Condition::Any).map_err(shown)?;
    assert!(written.displaced.is_none());
    for seed in 0..100 {
        let disk = start.fork(seed);
        disk.restart(Crash::PowerLoss { seed });
        scan(&open(&sound, &disk)?)?;
        let found = disk.read("log.md").unwrap_or_default();
        ensure(found == ONE_LEFT, || {
            format!("seed {seed}: {:?} was acknowledged whole", String::from_utf8_lossy(&found))
        })?;
    }
    Ok(())
}

/// A barrier that fails says so once; the next one must not say that all is well.
#[test]
fn a_barrier_after_a_failed_one_is_true() -> Result<(), String> {
    let start = prepared(Case::AppendAtBarrier)?;
    for seed in 0..24 {
        let disk = start.fork(seed);
        let store = open(&sound, &disk)?;
        let _ = store.append(&key("log.md"), LINE, Durability::AtBarrier).map_err(shown)?;
        disk.mark();
        disk.fail_at(1, io::ErrorKind::Other);
        ensure(store.barrier().is_err(), || "the first barrier hides the fault".to_owned())?;
        let second = store.barrier();
        drop(store);
        disk.restart(Crash::PowerLoss { seed });
        let durable = disk.read("log.md") == Some([LINES, LINE].concat());
        ensure(second.is_err() || durable, || {
            format!("seed {seed}: the second barrier acknowledged {:?}", disk.read("log.md"))
        })?;
    }
    Ok(())
}

/// An append answers with an offset only: what it displaced must be in the file, or it must not happen.
#[test]
fn an_append_to_a_linked_file_hides_nothing() -> Result<(), String> {
    let case = Case::AppendLinked;
    let start = prepared(case)?;
    let (_, effect) = effect_of(&sound, &start, case)?;
    for act in Act::SAVES {
        for call in 1..=effect {
            let disk = start.fork(0);
            let store = open(&sound, &disk)?;
            disk.mark();
            act.plan(&disk, case, call);
            let result = case.run(&store);
            let handed_over = matches!(&result, Ok(Some(displaced)) if holds(&displaced.bytes));
            let told = handed_over || disk.read(case.target()).is_some_and(|bytes| holds(&bytes));
            ensure(result.is_err() || told, || {
                format!("{act:?} before call {call} of {:?}: kept aside and nobody told", disk.calls())
            })?;
        }
    }
    Ok(())
}
