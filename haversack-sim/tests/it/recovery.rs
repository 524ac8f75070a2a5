//! A new process finds the leftovers of a dead one, in a changed world.

use haversack_sim::{Crash, Flaw, Mutant, Seen, SimDisk};
use haversack_store::device_local::fs::Fs;
use haversack_store::{BackendExt, Blocking, Condition, Locator, Version, block_on};

use crate::cases::{Case, NEW, OLD, key};
use crate::editor::{Act, THEIRS, effect_of, holds};
use crate::world::{ensure, kept, no_working_names, open, prepared, scan, shown, sound};

/// The user's action between the crash and the next start.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Link,
    Directory,
    File,
    Nothing,
}

/// A note names files that have changed since; that must not block anything.
#[test]
fn recovery_goes_on_in_a_changed_tree() -> Result<(), String> {
    for case in Case::ALL {
        let start = prepared(case)?;
        for meanwhile in [Meanwhile::Link, Meanwhile::Directory, Meanwhile::File, Meanwhile::Nothing] {
            for calls in 1.. {
                let disk = start.fork(calls as u64);
                let store = open(&sound, &disk)?;
                disk.mark();
                disk.crash_after(calls);
                drop(case.run(&store));
                drop(store);
                let trace = disk.calls();
                if !disk.has_crashed() {
                    break;
                }
                disk.restart(Crash::Kill);
                let first = case.target().split('/').next().unwrap_or_default();
                disk.edit(|editor| match meanwhile {
                    Meanwhile::Link => editor.replace_by_link(first),
                    Meanwhile::Directory => editor.make_dir(first),
                    Meanwhile::File => editor.replace(first, THEIRS),
                    Meanwhile::Nothing => editor.remove(first),
                });
                let works = open(&sound, &disk).and_then(|store| {
                    scan(&store)?;
                    let written = store.write(&key("elsewhere.md"), NEW, Condition::Any);
                    written.map(drop).map_err(shown)
                });
                works.map_err(|error| {
                    format!("{case:?} killed at {trace:?}, then {meanwhile:?} at {first}: {error}")
                })?;
            }
        }
    }
    Ok(())
}

/// Our own directory is scanned by its own name, and its leftovers are swept like any other.
#[test]
fn leftovers_among_reserved_names_are_swept() -> Result<(), String> {
    let own = Locator::reserved(".haversack").map_err(|error| error.to_string())?;
    let head = Locator::reserved(".haversack/state/head").map_err(|error| error.to_string())?;
    let forgetful = |disk: SimDisk| Mutant::new(disk, Flaw::ForgetNote);
    let start = SimDisk::new(0);
    let written = open(&forgetful, &start)?.write(&head, OLD, Condition::Absent).map_err(shown)?;
    for calls in 1.. {
        let disk = start.fork(calls as u64);
        let store = open(&forgetful, &disk)?;
        disk.mark();
        disk.crash_after(calls);
        let result = store.write(&head, NEW, Condition::Matches(written.version.clone()));
        let trace = disk.calls();
        if !disk.has_crashed() {
            return result.map(drop).map_err(shown);
        }
        disk.restart(Crash::Kill);
        let store = open(&forgetful, &disk)?;
        let swept = block_on(store.backend().scan_all(&own)).map_err(shown);
        swept
            .and_then(|_| no_working_names(&disk))
            .map_err(|error| format!("killed at {trace:?}: {error}"))?;
        let found = store.read(&head).map_err(shown)?.version;
        ensure([OLD, NEW].map(Version::of_content).contains(&found), || {
            format!("killed at {trace:?}: torn")
        })?;
    }
    Ok(())
}

/// An object that a conditional delete must give back returns to its own name.
#[test]
fn what_is_given_back_has_its_name() -> Result<(), String> {
    saved_and_synced_then_power_loss(Case::DeleteMatches)
}

/// A file that another program saved and synced is found after a power loss, although we had moved it.
#[test]
fn what_was_synced_survives_being_kept() -> Result<(), String> {
    saved_and_synced_then_power_loss(Case::WriteMatches)
}

fn saved_and_synced_then_power_loss(case: Case) -> Result<(), String> {
    let start = prepared(case)?;
    let (_, effect) = effect_of(&sound, &start, case)?;
    for act in [Act::Replace, Act::Overwrite] {
        for call in 1..=effect {
            for crash in call.. {
                let mut crashed = true;
                for seed in 0..12 {
                    let disk = start.fork(seed);
                    let store = open(&sound, &disk)?;
                    disk.mark();
                    act.plan(&disk, case, call);
                    disk.at_call(call, |editor| editor.sync());
                    disk.crash_after(crash);
                    drop(case.run(&store));
                    drop(store);
                    crashed = disk.has_crashed();
                    let trace = disk.calls();
                    disk.restart(Crash::PowerLoss { seed });
                    let found = is_found(&disk, case);
                    found.map_err(|error| {
                        format!("{act:?} before call {call}, power lost at {trace:?}, seed {seed}: {error}")
                    })?;
                }
                if !crashed {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Fails unless what the other program saved is at its name, or kept aside under it.
fn is_found(disk: &SimDisk, case: Case) -> Result<(), String> {
    scan(&open(&sound, disk)?)?;
    let at_target = disk.read(case.target()).is_some_and(|bytes| holds(&bytes));
    let aside = kept(disk).iter().any(|(path, bytes)| path.ends_with(case.target()) && holds(bytes));
    let place =
        || disk.tree().into_iter().find(|(_, seen)| matches!(seen, Seen::File(bytes) if holds(bytes)));
    ensure(at_target || aside, || match place() {
        Some((path, _)) => format!("it is called {path} now"),
        None => "it is lost".to_owned(),
    })
}

/// A link was displaced and goes back; a program's save over our content at that time must not be lost.
#[test]
fn what_was_saved_while_a_link_went_back_stays() -> Result<(), String> {
    let case = Case::WriteMatches;
    let start = prepared(case)?;
    let (calls, effect) = effect_of(&sound, &start, case)?;
    for first in 1..=effect {
        for second in first..calls + 10 {
            let disk = start.fork(0);
            let store = open(&sound, &disk)?;
            disk.mark();
            Act::Link.plan(&disk, case, first);
            Act::Replace.plan(&disk, case, second);
            drop(case.run(&store));
            let trace = disk.calls();
            if trace.len() < second {
                break;
            }
            scan(&store)?;
            let found = disk.tree().values().any(|seen| matches!(seen, Seen::File(bytes) if holds(bytes)));
            ensure(found, || {
                format!("a link before call {first}, saved before {second} of {trace:?}: lost")
            })?;
        }
    }
    Ok(())
}

/// An object on another disk is copied; a crash in the middle of that must be repairable.
#[test]
fn keeping_on_another_device_can_be_repeated() -> Result<(), String> {
    let apart = |disk: SimDisk| Mutant::new(disk, Flaw::CrossesDevices);
    let case = Case::WriteMatches;
    let start = prepared(case)?;
    let (_, effect) = effect_of(&apart, &start, case)?;
    for calls in effect.. {
        let disk = start.fork(calls as u64);
        let store = open(&apart, &disk)?;
        disk.mark();
        Act::Replace.plan(&disk, case, effect);
        disk.crash_after(calls);
        drop(case.run(&store));
        drop(store);
        let (crashed, trace) = (disk.has_crashed(), disk.calls());
        disk.restart(Crash::Kill);
        let found = reopened(&apart, &disk).and_then(|store| {
            scan(&store)?;
            let aside = kept(&disk).values().any(|bytes| bytes == THEIRS);
            let at_target = disk.read(case.target()).is_some_and(|bytes| holds(&bytes));
            ensure(aside || at_target, || format!("lost; kept is {:?}", kept(&disk)))
        });
        found.map_err(|error| format!("killed at {trace:?}: {error}"))?;
        if !crashed {
            break;
        }
    }
    Ok(())
}

fn reopened<F: Fs>(wrap: &impl Fn(SimDisk) -> F, disk: &SimDisk) -> Result<Blocking, String> {
    open(wrap, disk).map_err(|error| format!("cannot open again: {error}"))
}
