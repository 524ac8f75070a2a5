//! Measures the cost of a sync.

use std::sync::Arc;
use std::time::Instant;

use haversack::merge::{Rule, Side, merge};
use haversack::store::{Backend, Condition, Locator, block_on};
use haversack::sync::Intervals;
use haversack_bench::Outcome;
use haversack_bench::measure::median;
use haversack_bench::report::say;
use haversack_bench::table::{Goal, Table, grouped, milliseconds, times as as_times};

use crate::places::{Device, Places};

/// The number of measurements of each.
const ROUNDS: usize = 3;

/// The number of files in a store that is joined.
const JOINED: usize = 10_000;

/// The number of commits that a device catches up over.
const COMMITS: usize = 1_000;

fn fill(files: &Arc<dyn Backend>, count: usize, size: usize) -> Outcome<()> {
    for number in 0..count {
        put(files, &format!("notes/{:02}/{number:06}.md", number % 100), &text(number, size))?;
    }
    Ok(())
}

fn put(files: &Arc<dyn Backend>, key: &str, text: &str) -> Outcome<()> {
    let locator = Locator::parse(key)?;
    let _ = block_on(files.write(&locator, text.to_owned().into(), Condition::Any))?;
    Ok(())
}

/// Returns a text that no other number has.
fn text(number: usize, size: usize) -> String {
    let line = format!("note {number}: staging listens on port {}\n", number % 65_536);
    line.repeat(size / line.len() + 1)[..size].to_owned()
}

fn elapsed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<f64> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed().as_nanos() as f64)
}

fn rounds(mut work: impl FnMut() -> Outcome<f64>) -> Outcome<f64> {
    let samples: Vec<f64> = (0..ROUNDS).map(|_| work()).collect::<Outcome<_>>()?;
    Ok(median(samples.into_iter()))
}

/// Measures what has a limit in milliseconds.
pub(crate) fn times(all: &[Places]) -> Outcome<Table> {
    let mut table = Table::new("Long ways", &["what", "where", "p50 ms"]);
    for places in all {
        say(&format!("a store of {} files on {}\n", grouped(JOINED), places.name));
        let remote = places.remote()?;
        let laptop = places.quick_device(&remote);
        fill(&laptop.files, JOINED, 1000)?;
        laptop.sync_folding(Intervals { checkpoint_commits: 1, ..Intervals::default() })?;
        let joined = rounds(|| {
            let desktop = places.device(&remote)?;
            elapsed(|| desktop.sync())
        })?;
        let what = format!("taking in a checkpoint of {} files of 1 KB", grouped(JOINED));
        table.row(vec![what, places.name.clone(), milliseconds(joined)], Goal::Within(1000.0), joined / 1e6);

        say(&format!("{} commits on {}\n", grouped(COMMITS), places.name));
        let remote = places.remote()?;
        let laptop = places.quick_device(&remote);
        fill(&laptop.files, 20, 1000)?;
        laptop.sync()?;
        let desktops: Vec<Device> = (0..ROUNDS).map(|_| places.device(&remote)).collect::<Outcome<_>>()?;
        for desktop in &desktops {
            desktop.sync()?;
        }
        for number in 0..COMMITS {
            put(&laptop.files, &format!("notes/{}.md", number % 20), &text(number, 200))?;
            laptop.sync()?;
        }
        let mut desktops = desktops.iter();
        let caught_up = rounds(|| elapsed(|| desktops.next().ok_or("a desktop for every round")?.sync()))?;
        let what = format!("catching up over {} small commits", grouped(COMMITS));
        table.row(
            vec![what, places.name.clone(), milliseconds(caught_up)],
            Goal::Within(1000.0),
            caught_up / 1e6,
        );
    }
    let merged = rounds(|| {
        let base: Vec<String> = (0..20_000)
            .map(|line| format!("line {line} of a long file of notes {:>16}\n", line * 7))
            .collect();
        let change = |every: usize, what: &str| -> String {
            let lines = base.iter().enumerate();
            lines
                .map(|(at, line)| if at % every == 1 { format!("{what} {line}") } else { line.clone() })
                .collect()
        };
        let (ours, theirs, base) = (change(50, "ours"), change(70, "theirs"), base.concat());
        let side = |text: &'static str, bytes| Side { bytes, device: text };
        elapsed(|| {
            let (ours, theirs) = (side("laptop", ours.as_bytes()), side("desktop", theirs.as_bytes()));
            let merged = merge(Rule::Prose, Some(base.as_bytes()), ours, theirs);
            if merged.bytes.len() > base.len() { Ok(()) } else { Err("nothing was merged".into()) }
        })
    })?;
    let what = "merging two changes of a file of 1 MB".to_owned();
    table.row(vec![what, "–".to_owned(), milliseconds(merged)], Goal::Within(50.0), merged / 1e6);
    Ok(table)
}

/// Measures what one changed file costs in stores of more and more files.
pub(crate) fn one_change(all: &[Places], most_files: usize) -> Outcome<Table> {
    let columns = [
        "where",
        "files",
        "requests",
        "writes",
        "bytes written",
        "bytes, as times of the smallest",
        "p50 ms",
    ];
    let mut table = Table::new("One changed file, with the scan", &columns);
    for places in all {
        let mut smallest = None;
        for files in [100, 1_000, 10_000, 100_000].into_iter().filter(|files| *files <= most_files) {
            say(&format!("{} files on {}\n", grouped(files), places.name));
            let remote = places.remote()?;
            let laptop = places.quick_device(&remote);
            fill(&laptop.files, files, 100)?;
            laptop.sync()?;
            let mut asked = None;
            let mut number = 0;
            let time = rounds(|| {
                number += 1;
                put(&laptop.files, "notes/00/000000.md", &text(number, 100))?;
                remote.asked();
                let time = elapsed(|| laptop.sync())?;
                asked = Some(remote.asked());
                Ok(time)
            })?;
            let asked = asked.ok_or("nothing was measured")?;
            let smallest = *smallest.get_or_insert(asked.written_bytes);
            let ratio = asked.written_bytes as f64 / smallest as f64;
            let requests = asked.reads + asked.lists + asked.writes;
            let cells = vec![
                places.name.clone(),
                grouped(files),
                requests.to_string(),
                asked.writes.to_string(),
                asked.written_bytes.to_string(),
                as_times(ratio),
                milliseconds(time),
            ];
            table.row(cells, Goal::AtMost(1.1), ratio);
        }
    }
    Ok(table)
}

/// Counts the requests of the common ways.
pub(crate) fn requests(all: &[Places]) -> Outcome<Table> {
    let mut table = Table::new("Requests", &["what", "where", "reads", "lists", "writes", "p50 ms"]);
    for places in all {
        let remote = places.remote()?;
        let (laptop, desktop) = (places.device(&remote)?, places.device(&remote)?);
        fill(&laptop.files, 1_000, 1000)?;
        laptop.sync()?;
        desktop.sync()?;
        remote.asked();
        let mut row = |what: &str, most: u64, work: &mut dyn FnMut() -> Outcome<f64>| -> Outcome<()> {
            let time = rounds(&mut *work)?;
            remote.asked();
            work()?;
            let asked = remote.asked();
            let cells = vec![
                what.to_owned(),
                places.name.clone(),
                asked.reads.to_string(),
                asked.lists.to_string(),
                asked.writes.to_string(),
                milliseconds(time),
            ];
            let requests = asked.reads + asked.lists + asked.writes;
            table.row(cells, Goal::AtMost(1.0), requests as f64 / most as f64);
            Ok(())
        };
        row("nothing changed", 1, &mut || elapsed(|| desktop.sync()))?;
        let mut number = 0;
        let reading = !places.name.starts_with("memory");
        row("one file sent", 2 + u64::from(reading), &mut || {
            number += 1;
            put(&laptop.files, "log.md", &text(number, 100))?;
            elapsed(|| laptop.sync())
        })?;
        row("one commit of another device", 2, &mut || {
            number += 1;
            put(&laptop.files, "log.md", &text(number, 100))?;
            laptop.sync()?;
            remote.asked();
            elapsed(|| desktop.sync())
        })?;
    }
    Ok(table)
}
