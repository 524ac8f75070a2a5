//! Writes that are acknowledged on top of writes that an earlier process did not sync.

use haversack_sim::{Crash, SimDisk};
use haversack_store::{Bytes, Condition, Locator};

use crate::cases::{Case, NEW, OLD, key};
use crate::crash::crash_sweep;
use crate::world::{Ending, Tails, check, ensure, open, prepared, shown, sound};

/// Kills a process in `case`, lets the next one do it again, and stops the machine after the answer.
fn again_after_a_kill(case: Case) -> Result<(), String> {
    let start = prepared(case)?;
    for calls in 1.. {
        for seed in 0..16 {
            let disk = start.fork(seed);
            let store = open(&sound, &disk)?;
            disk.mark();
            disk.crash_after(calls);
            drop(case.run(&store));
            let (crashed, first) = (disk.has_crashed(), disk.calls());
            drop(store);
            if !crashed {
                return Ok(());
            }
            disk.restart(Crash::Kill);
            let store = open(&sound, &disk)?;
            disk.mark();
            let again = case.run(&store);
            drop(store);
            let second = disk.calls();
            let crash = Crash::PowerLoss { seed };
            disk.restart(crash);
            // A condition that its own first try broke is refused, and nothing is acknowledged.
            if again.is_ok() {
                let ending = Ending { case, acknowledged: true, crash, tails: Tails::Repaired };
                check(&sound, &disk, ending).map_err(|error| {
                    format!("{case:?} killed at {first:?}, then {second:?}, power lost, {seed}: {error}")
                })?;
            }
        }
    }
    Ok(())
}

#[test]
fn files_done_again_after_a_kill_are_durable() -> Result<(), String> {
    let cases =
        [Case::CreateAbsent, Case::WriteAny, Case::WriteMatches, Case::DeleteMatches, Case::RenameFile];
    cases.into_iter().try_for_each(again_after_a_kill)
}

/// A delete that finds nothing acknowledges that nothing is there, and so it must stay.
#[test]
fn a_delete_done_again_after_a_kill_is_durable() -> Result<(), String> {
    again_after_a_kill(Case::DeleteAny)
}

/// A directory that is there may not be durable.
#[test]
fn directories_made_again_after_a_kill_are_durable() -> Result<(), String> {
    again_after_a_kill(Case::MkdirNested)
}

/// A directory that is there may not be durable, and neither is then what is written into it.
#[test]
fn files_in_directories_of_a_killed_process_are_durable() -> Result<(), String> {
    again_after_a_kill(Case::WriteNested)
}

/// The same for a directory that a user has just made.
#[test]
fn files_in_directories_of_other_programs_are_durable() -> Result<(), String> {
    let start = SimDisk::new(0);
    let store = open(&sound, &start)?;
    start.edit(|editor| editor.make_dir("theirs"));
    let written = store.write(&key("theirs/new.md"), NEW, Condition::Absent).map_err(shown)?;
    assert!(written.displaced.is_none());
    for seed in 0..24 {
        let disk = start.fork(seed);
        disk.restart(Crash::PowerLoss { seed });
        ensure(disk.read("theirs/new.md").is_some(), || format!("seed {seed}: acknowledged and lost"))?;
    }
    Ok(())
}

/// The new directories must be durable before the only name of a file goes there.
#[test]
fn a_rename_into_a_new_directory_loses_nothing() -> Result<(), String> {
    crash_sweep(&sound, &[Case::RenameToNewDirectory], |_| {}, Tails::Repaired)
}

/// Prepared objects are all there once they are acknowledged, and nothing else is touched at any crash.
#[test]
fn what_was_prepared_is_durable() -> Result<(), String> {
    let own = |number: usize| Locator::reserved(&format!(".haversack/incoming/{number}")).expect("ours");
    let start = SimDisk::new(0);
    let store = open(&sound, &start)?;
    for (locator, text) in [(key("notes.md"), OLD), (own(1), b"left by somebody who died")] {
        assert!(store.write(&locator, text, Condition::Absent).map_err(shown)?.displaced.is_none());
    }
    drop(store);
    for calls in 1.. {
        let mut has_crashed = true;
        for seed in 0..24 {
            let disk = start.fork(seed);
            let store = open(&sound, &disk)?;
            disk.crash_after(calls);
            let prepared = store.prepare((0..3).map(|number| (own(number), Bytes::from(NEW))).collect());
            has_crashed = disk.has_crashed();
            drop(store);
            disk.restart(Crash::PowerLoss { seed });
            let context = || format!("seed {seed}, {calls} calls");
            ensure(disk.read("notes.md").as_deref() == Some(OLD), context)?;
            let is_whole = |number| disk.read(own(number).as_str()).as_deref() == Some(NEW);
            ensure(prepared.is_err() || (0..3).all(is_whole), context)?;
        }
        if !has_crashed {
            return Ok(());
        }
    }
    Ok(())
}
