//! Measures the throughput of many threads compared with one, through one store.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use haversack_bench::Outcome;
use haversack_bench::measure::median;
use haversack_bench::table::{Goal, Table, times};
use haversack_store::{Condition, Locator};

use crate::site::{Site, locators};

/// The number of threads.
const THREADS: usize = 32;

const SIZE_BYTES: usize = 1024;

/// Compares one thread with many that replace different files of one directory.
pub(crate) fn throughput(site: &Site, (rounds, lasting): (usize, Duration), goal: Goal) -> Outcome<Table> {
    let many = format!("{THREADS} threads, writes/s");
    let mut table = Table::new(
        format!("Threads that replace different files of one directory on {}", site.filesystem),
        &["what", "size", "1 thread, writes/s", &many, "factor"],
    );
    site.make_dir("threads")?;
    let names: Vec<String> = (0..THREADS).map(|thread| format!("threads/{thread}.md")).collect();
    for name in &names {
        site.fill(name, SIZE_BYTES)?;
    }
    let keys = locators(&names)?;
    site.calm();
    let mut laps = Vec::new();
    for round in 0..=rounds {
        let ours = [1, THREADS].map(|threads| ours_per_second(site, &keys[..threads], lasting));
        let bare = [1, THREADS].map(|threads| bare_per_second(site, &names[..threads], lasting));
        let ([ours_one, ours_many], [bare_one, bare_many]) = (ours, bare);
        let lap = [[ours_one?, ours_many?], [bare_one?, bare_many?]];
        if round > 0 {
            laps.push(lap);
        }
    }
    for (side, (what, goal)) in
        [("one shared store, `Any`", goal), ("bare C, each for itself", Goal::Reported)]
            .into_iter()
            .enumerate()
    {
        let of = |which: usize| median(laps.iter().map(|lap| lap[side][which]));
        let factor = median(laps.iter().map(|lap| lap[side][1] / lap[side][0]));
        let rates = [of(0), of(1)].map(|rate| format!("{rate:.0}"));
        let cells = [what.to_owned(), "1 KB".to_owned()].into_iter().chain(rates).chain([times(factor)]);
        table.row(cells.collect(), goal, factor);
    }
    Ok(table)
}

/// Lets one thread for each name replace it as often as it can, without the store.
fn bare_per_second(site: &Site, names: &[String], lasting: Duration) -> Outcome<f64> {
    let milliseconds = usize::try_from(lasting.as_millis())?;
    let started = Instant::now();
    let counts = site.bare.run("threads", milliseconds, names)?;
    Ok(counts.into_iter().sum::<u64>() as f64 / started.elapsed().as_secs_f64())
}

/// Lets one thread for each key replace it as often as it can, through the store.
fn ours_per_second(site: &Site, keys: &[Locator], lasting: Duration) -> Outcome<f64> {
    let start = Barrier::new(keys.len() + 1);
    let content = site.content(SIZE_BYTES);
    let store = &site.store;
    let work = |key: &Locator| -> haversack_store::Result<u32> {
        start.wait();
        let until = Instant::now() + lasting;
        let mut count = 0;
        while Instant::now() < until {
            drop(store.write(key, content.clone(), Condition::Any)?);
            count += 1;
        }
        Ok(count)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = keys.iter().map(|key| scope.spawn(|| work(key))).collect();
        start.wait();
        let started = Instant::now();
        let mut total = 0;
        for thread in threads {
            total += thread.join().map_err(|_| "a writing thread panicked")??;
        }
        Ok(f64::from(total) / started.elapsed().as_secs_f64())
    })
}
