//! Several writers at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::{Bench, Broken, Checked, at, ensure, ensure_eq, ensure_refused};
use crate::{Blocking, Condition, Durability, ErrorKind};

/// Runs `work` in `count` threads, each with its own handle on the place, and returns what they return.
fn together<T: Send>(
    bench: &Bench<'_>,
    count: usize,
    work: impl Fn(usize, &Blocking) -> Result<T, Broken> + Sync,
) -> Result<Vec<T>, Broken> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count)
            .map(|number| {
                // Half of them share a handle, as in one process; half have their own, as in several.
                let store = match number % 2 {
                    0 => bench.store.clone(),
                    _ => Blocking::new(bench.subject.open()),
                };
                scope.spawn(move || work(number, &store))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(Broken("a writer panicked".to_owned()))))
            .collect()
    })
}

pub(super) fn counter_of_sixteen(bench: &Bench<'_>) -> Checked {
    const WRITERS: usize = 16;
    const ROUNDS: usize = 10;
    let locator = at("counter");
    let _ = bench.store.write(&locator, "0", Condition::Absent)?;
    together(bench, WRITERS, |_, store| {
        for _ in 0..ROUNDS {
            for attempt in 0.. {
                ensure(attempt < 100_000, "a writer never gets its turn")?;
                let object = store.read(&locator)?;
                let count: usize = std::str::from_utf8(&object.bytes)
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .ok_or_else(|| Broken(format!("the counter reads {:?}", object.bytes)))?;
                match store.write(&locator, (count + 1).to_string(), Condition::Matches(object.version)) {
                    Ok(written) => {
                        ensure_eq(written.displaced, None, "only counters write")?;
                        break;
                    }
                    Err(error) if error.kind() == ErrorKind::Conflict => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    })?;
    let total = (WRITERS * ROUNDS).to_string();
    ensure_eq(&bench.store.read(&locator)?.bytes[..], total.as_bytes(), "the count")
}

pub(super) fn racing_creates(bench: &Bench<'_>) -> Checked {
    const WRITERS: usize = 16;
    const ROUNDS: usize = 20;
    let wins = together(bench, WRITERS, |number, store| {
        let mut wins = HashMap::new();
        for round in 0..ROUNDS {
            match store.write(&at(&format!("race/{round}")), number.to_string(), Condition::Absent) {
                Ok(_) => drop(wins.insert(round, number)),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(wins)
    })?;
    for round in 0..ROUNDS {
        let winners: Vec<usize> = wins.iter().filter_map(|wins| wins.get(&round).copied()).collect();
        ensure_eq(winners.len(), 1, format_args!("winners of round {round}"))?;
        let content = bench.store.read(&at(&format!("race/{round}")))?.bytes;
        ensure_eq(&content[..], winners[0].to_string().as_bytes(), "the winner's content")?;
    }
    Ok(())
}

pub(super) fn racing_appends(bench: &Bench<'_>) -> Checked {
    const WRITERS: usize = 8;
    const LINES: usize = 25;
    let locator = at("log");
    let line = |writer: usize, number: usize| format!("{writer}:{number}:{}\n", "x".repeat(number * 40));
    together(bench, WRITERS, |writer, store| {
        for number in 0..LINES {
            let _ = store.append(&locator, line(writer, number), Durability::Now)?;
        }
        Ok(())
    })?;
    let content = bench.store.read_text(&locator)?.unwrap_or_default();
    let mut found: Vec<&str> = content.split_inclusive('\n').collect();
    found.sort_unstable();
    let mut expected: Vec<String> =
        (0..WRITERS).flat_map(|writer| (0..LINES).map(move |number| line(writer, number))).collect();
    expected.sort_unstable();
    ensure_eq(found.len(), expected.len(), "lines")?;
    ensure(found == expected, "lines are mixed or wrong")
}

pub(super) fn readers_never_see_half(bench: &Bench<'_>) -> Checked {
    const WRITES: usize = 60;
    let locator = at("page.md");
    // Contents of different sizes, each made of one letter.
    let content = |number: usize| vec![b'a' + (number % 26) as u8; 1 + (number * 7919) % 200_000];
    let _ = bench.store.write(&locator, content(0), Condition::Absent)?;
    let done = AtomicBool::new(false);
    let reads = together(bench, 4, |role, store| {
        let mut reads = 0;
        if role == 0 {
            for number in 1..=WRITES {
                if let Err(error) = store.write(&locator, content(number), Condition::Any) {
                    done.store(true, Ordering::Relaxed);
                    return Err(error.into());
                }
            }
            done.store(true, Ordering::Relaxed);
            return Ok(reads);
        }
        while !done.load(Ordering::Relaxed) || reads == 0 {
            let bytes = store.read(&locator)?.bytes;
            let whole = (0..=WRITES).any(|number| content(number) == bytes[..]);
            ensure(whole, format_args!("a reader saw {} bytes that nobody wrote", bytes.len()))?;
            reads += 1;
        }
        Ok(reads)
    })?;
    ensure(reads[1..].iter().all(|reads| *reads > 0), "a reader never read")
}

pub(super) fn locks_exclude(bench: &Bench<'_>) -> Checked {
    let other = Blocking::new(bench.subject.open());
    let held = bench.store.lock("sync", Duration::ZERO)?;
    ensure_refused(bench.store.lock("sync", Duration::ZERO), ErrorKind::Busy, "a lock that is held")?;
    ensure_refused(other.lock("sync", Duration::from_millis(20)), ErrorKind::Busy, "waiting in vain")?;
    let independent = other.lock("store", Duration::ZERO)?;
    let _ = other.write(&at("while/locked"), "x", Condition::Any)?;
    drop(held);
    let again = other.lock("sync", Duration::from_secs(60))?;
    drop((again, independent));
    for name in ["", "No", "a/b", "../x", "a.b"] {
        ensure_refused(other.lock(name, Duration::ZERO), ErrorKind::Invalid, format_args!("{name:?}"))?;
    }
    // The critical section holds: a counter that is read and written without a condition ends exact.
    let locator = at("locked-counter");
    let _ = bench.store.write(&locator, "0", Condition::Any)?;
    together(bench, 4, |_, store| {
        for _ in 0..10 {
            let _held = store.lock("counter", Duration::from_secs(60))?;
            let text = store.read_text(&locator)?.unwrap_or_default();
            let count: usize = text.parse().map_err(|_| Broken(format!("the counter reads {text:?}")))?;
            let _ = store.write(&locator, (count + 1).to_string(), Condition::Any)?;
        }
        Ok(())
    })?;
    ensure_eq(bench.store.read_text(&locator)?.as_deref(), Some("40"), "the count under the lock")
}
