//! How much more many threads get done than one, through one store.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use haversack_store::{Condition, Locator};

use crate::Outcome;
use crate::measure::median;
use crate::site::{Site, locators};
use crate::table::{Goal, Table, times};

/// How many threads are compared with one.
const THREADS: usize = 32;

const SIZE_BYTES: usize = 1024;

/// Compares one thread with many that replace different files of one directory.
pub(crate) fn throughput(site: &Site, (rounds, lasting): (usize, Duration), goal: Goal) -> Outcome<Table> {
    let many = format!("{THREADS} threads, writes/s");
    let mut table = Table::new(
        format!("Threads that share a store on {}", site.filesystem),
        &["what", "size", "1 thread, writes/s", &many, "factor"],
    );
    site.make_dir("threads")?;
    let keys: Vec<String> = (0..THREADS).map(|thread| format!("threads/{thread}.md")).collect();
    for key in &keys {
        site.fill(key, SIZE_BYTES)?;
    }
    let keys = locators(&keys)?;
    site.calm();
    let mut pairs = Vec::new();
    for round in 0..=rounds {
        let pair = [writes_per_second(site, &keys[..1], lasting)?, writes_per_second(site, &keys, lasting)?];
        if round > 0 {
            pairs.push(pair);
        }
    }
    let of = |which: usize| median(pairs.iter().map(|pair| pair[which]));
    let factor = median(pairs.iter().map(|[one, many]| many / one));
    let cells = vec![
        "replace, `Any`, different files".to_owned(),
        "1 KB".to_owned(),
        format!("{:.0}", of(0)),
        format!("{:.0}", of(1)),
        times(factor),
    ];
    table.row(cells, goal, factor);
    site.clear("threads")?;
    Ok(table)
}

/// Lets one thread for each key replace it as often as it can.
fn writes_per_second(site: &Site, keys: &[Locator], lasting: Duration) -> Outcome<f64> {
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
