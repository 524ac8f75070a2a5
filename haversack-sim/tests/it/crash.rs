//! Crashes before, in and after every call.

use haversack_sim::{Crash, Exchange, SimDisk};
use haversack_store::device_local::fs::Fs;

use crate::cases::Case;
use crate::world::{Ending, Tails, check, open, prepared, scan, sound};

/// More calls than any operation makes.
const MAX_CALLS: usize = 200;

/// How a process can end, and the seed that decides how its last write tore.
fn endings(kills: u64, losses: u64) -> impl Iterator<Item = (u64, Crash)> {
    let killed = (0..kills).map(|seed| (seed, Crash::Kill));
    killed.chain((0..losses).map(|seed| (seed, Crash::PowerLoss { seed })))
}

/// Lets every case die at every call in every way, and checks what the next process finds.
pub(crate) fn crash_sweep<F: Fs>(
    wrap: &impl Fn(SimDisk) -> F,
    cases: &[Case],
    adjust: impl Fn(&SimDisk),
    tails: Tails,
) -> Result<(), String> {
    for case in cases {
        let start = prepared(*case)?;
        adjust(&start);
        for (seed, crash) in endings(4, 24) {
            sweep_calls(|calls| {
                let disk = start.fork(seed);
                let ended = run_and_crash(wrap, &disk, *case, calls, crash, tails)?;
                check(wrap, &disk, ended.ending)
                    .map_err(|error| format!("{case:?}, {crash:?}, {}: {error}", ended.trace))?;
                Ok(!ended.completed)
            })?;
        }
    }
    Ok(())
}

/// Tries with 1, 2, 3 … calls before the crash until there is none.
fn sweep_calls(mut attempt: impl FnMut(usize) -> Result<bool, String>) -> Result<(), String> {
    for calls in 1..MAX_CALLS {
        if !attempt(calls)? {
            return Ok(());
        }
    }
    Err(format!("the operation did not end within {MAX_CALLS} calls"))
}

struct Ended {
    ending: Ending,
    completed: bool,
    trace: String,
}

fn run_and_crash<F: Fs>(
    wrap: &impl Fn(SimDisk) -> F,
    disk: &SimDisk,
    case: Case,
    calls: usize,
    crash: Crash,
    tails: Tails,
) -> Result<Ended, String> {
    let store = open(wrap, disk)?;
    disk.mark();
    disk.crash_after(calls);
    let result = case.run(&store);
    drop(store);
    let completed = !disk.has_crashed();
    let trace = format!("crash at {calls} of {:?}", disk.calls());
    match &result {
        Err(error) if completed => return Err(format!("{case:?} failed without a crash: {error:?}")),
        Ok(Some(displaced)) => {
            return Err(format!("{case:?} displaced something: {displaced:?}"));
        }
        _ => {}
    }
    disk.restart(crash);
    let ending = Ending { case, acknowledged: result.is_ok(), crash, tails };
    Ok(Ended { ending, completed, trace })
}

/// Lets a case die at every call, and the recovery after it too.
fn crash_twice(case: Case, crash: Crash) -> Result<(), String> {
    let start = prepared(case)?;
    for second in [Crash::Kill, Crash::PowerLoss { seed: 1000 }] {
        sweep_calls(|calls| {
            let first = start.fork(calls as u64);
            let ended = run_and_crash(&sound, &first, case, calls, crash, Tails::Repaired)?;
            sweep_calls(|recovery_calls| {
                let disk = first.fork(recovery_calls as u64);
                disk.crash_after(recovery_calls);
                // It may die; the next process is judged.
                drop(open(&sound, &disk).map(|store| scan(&store)));
                let (crashed, trace) = (disk.has_crashed(), disk.calls());
                disk.restart(second);
                let worse = if crash == Crash::Kill { second } else { crash };
                check(&sound, &disk, Ending { crash: worse, ..ended.ending }).map_err(|error| {
                    format!("{case:?}, {crash:?}, {}, then {second:?} at {trace:?}: {error}", ended.trace)
                })?;
                Ok(crashed)
            })?;
            Ok(!ended.completed)
        })?;
    }
    Ok(())
}

#[test]
fn crash_at_every_call() -> Result<(), String> {
    crash_sweep(&sound, &Case::ALL, |_| {}, Tails::Repaired)
}

#[test]
fn crash_at_every_call_of_short_writes() -> Result<(), String> {
    let cases = [Case::WriteMatches, Case::AppendExisting, Case::AppendAtBarrier];
    crash_sweep(&sound, &cases, |disk| disk.write_at_most(5), Tails::Repaired)
}

#[test]
fn crash_at_every_call_without_exchange() -> Result<(), String> {
    let cases = [Case::WriteMatches, Case::AppendLinked];
    for exchange in [Exchange::Refused, Exchange::Unknown] {
        crash_sweep(&sound, &cases, |disk| disk.set_exchange(exchange), Tails::Repaired)?;
    }
    Ok(())
}

#[test]
fn crash_again_during_recovery_from_a_kill() -> Result<(), String> {
    Case::ALL.iter().try_for_each(|case| crash_twice(*case, Crash::Kill))
}

#[test]
fn crash_again_during_recovery_from_a_power_loss() -> Result<(), String> {
    Case::ALL.iter().try_for_each(|case| crash_twice(*case, Crash::PowerLoss { seed: 5 }))
}

#[test]
fn short_writes() -> Result<(), String> {
    for case in Case::ALL {
        for bytes in 1..=3 {
            let disk = SimDisk::new(0);
            disk.write_at_most(bytes);
            let store = open(&sound, &disk)?;
            case.prepare(&disk, &store).map_err(|error| format!("{error:?}"))?;
            case.run(&store).map_err(|error| format!("{error:?}"))?;
            drop(store);
            let ending = Ending { case, acknowledged: true, crash: Crash::Kill, tails: Tails::Repaired };
            check(&sound, &disk, ending).map_err(|error| format!("{case:?}, {bytes} bytes: {error}"))?;
        }
    }
    Ok(())
}
