//! Calls that fail once, each in turn.

use std::io;

use haversack_sim::{Crash, SimDisk, Verb};
use haversack_store::ErrorKind;

use crate::cases::Case;
use crate::editor::effect_of;
use crate::world::{Ending, Tails, check_opened, difference, ensure, open, prepared, scanned, sound};

/// The result of one fault at `call`.
fn fail_once(start: &SimDisk, case: Case, call: usize, kind: io::ErrorKind) -> Result<bool, String> {
    let disk = start.fork(0);
    let store = open(&sound, &disk)?;
    disk.mark();
    disk.fail_at(call, kind);
    let result = case.run(&store);
    let trace = disk.calls();
    let Some(failed) = trace.get(call - 1) else {
        return result.map(|_| false).map_err(|error| format!("{case:?} failed without a fault: {error:?}"));
    };
    let context = |error: String| format!("{case:?}, {kind:?} at call {call} of {trace:?}: {error}");
    if let Err(error) = &result {
        let in_draft = failed.verb == Verb::Append
            || failed.verb == Verb::Create && failed.subject.starts_with(".haversack-draft-");
        if kind == io::ErrorKind::StorageFull && in_draft && error.kind() != ErrorKind::Full {
            return Err(context(format!("a full disk is told as {error:?}")));
        }
    }
    // No crash: the same process goes on, with whatever it remembers.
    disk.mark();
    let ending = Ending { case, acknowledged: result.is_ok(), crash: Crash::Kill, tails: Tails::Repaired };
    check_opened(&store, &disk, ending).map_err(context)?;
    Ok(true)
}

fn fault_sweep(cases: &[Case], kind: io::ErrorKind, adjust: impl Fn(&SimDisk)) -> Result<(), String> {
    for case in cases {
        let start = prepared(*case)?;
        adjust(&start);
        let mut call = 1;
        while fail_once(&start, *case, call, kind)? {
            call += 1;
        }
    }
    Ok(())
}

#[test]
fn faults_leave_old_content() -> Result<(), String> {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        fault_sweep(&Case::ALL, kind, |_| {})?;
        fault_sweep(&Case::ALL, kind, |disk| disk.write_at_most(5))?;
    }
    Ok(())
}

/// A call that failed before its effect changed nothing, as the same process sees at once.
#[test]
fn faults_before_the_effect_change_nothing() -> Result<(), String> {
    let one_step = |case: &Case| !matches!(case, Case::MkdirNested | Case::TouchMark | Case::DeleteAny);
    for case in Case::ALL.into_iter().filter(one_step) {
        let start = prepared(case)?;
        let (_, effect) = effect_of(&sound, &start, case)?;
        for call in 1..=effect {
            let disk = start.fork(0);
            let store = open(&sound, &disk)?;
            disk.mark();
            disk.fail_at(call, io::ErrorKind::Other);
            let result = case.run(&store);
            let (found, trace) = (scanned(&store)?, disk.calls());
            let wanted = if result.is_ok() { case.after() } else { case.before() };
            ensure(found == wanted.files, || {
                let differing = difference(&found, &wanted.files);
                format!("{case:?}, fault at call {call} of {trace:?}: {result:?} but {differing}")
            })?;
        }
    }
    Ok(())
}
