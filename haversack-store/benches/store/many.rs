//! Many files: does an operation get slower, and how long does it take to see them all?

use haversack_bench::Outcome;
use haversack_bench::growth::{self, add_rows};
use haversack_bench::measure::{Contender, Picks, Race, timed};
use haversack_bench::table::{Goal, Table, grouped, milliseconds, times};
use haversack_store::{Blocking, Condition, Locator};

use crate::contenders::{bare, read, write};
use crate::effort::Effort;
use crate::site::{Site, locators};

/// The content of each of many files.
const SIZE_BYTES: usize = 100;

/// The number of directories of the scanned files.
const DIRECTORIES: usize = 100;

/// The number of new names in a round: few, so that the directory keeps its size.
const CREATED: usize = 20;

/// Tells if creating is measured too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Creates {
    Measured,
    LeftOut,
}

/// Measures operations in directories of more and more files.
pub(crate) fn crowded(
    site: &Site,
    (rounds, count): (usize, usize),
    files: usize,
    creates: Creates,
) -> Outcome<Table> {
    let sizes: Vec<usize> = [100, 1_000, 10_000, 100_000].into_iter().filter(|size| *size <= files).collect();
    let title = format!("More and more files in one directory on {}", site.filesystem);
    let mut table = growth::table(title, &sizes);
    for size in &sizes {
        fill_directory(site, *size)?;
    }
    site.calm();

    let ours = |size: &usize| read(site, existing(*size, count));
    let peer = |size: &usize| bare(site, "read", SIZE_BYTES, theirs(existing(*size, count)));
    let contenders = sizes.iter().map(ours).chain(sizes.iter().map(peer)).collect();
    add_rows(&mut table, &["read", "read, bare C"], rounds, contenders)?;

    let ours = |size: &usize| write(site, SIZE_BYTES, Condition::Any, existing(*size, count));
    let peer = |size: &usize| bare(site, "replace", SIZE_BYTES, theirs(existing(*size, count)));
    let contenders = sizes.iter().map(ours).chain(sizes.iter().map(peer)).collect();
    add_rows(&mut table, &["replace, `Any`", "replace, bare C"], rounds, contenders)?;

    if creates == Creates::Measured {
        let ours = |size: &usize| write(site, SIZE_BYTES, Condition::Absent, fresh(*size));
        let mixed = |size: &usize| create_after_replace(site, *size);
        let peer = |size: &usize| bare(site, "replace", SIZE_BYTES, theirs(fresh(*size)));
        let contenders = (sizes.iter().map(ours))
            .chain(sizes.iter().map(mixed))
            .chain(sizes.iter().map(peer))
            .zip(sizes.iter().cycle())
            .map(|(contender, size)| forgetting(site, *size, contender));
        let rows = ["create, `Absent`", "create right after a replace", "create, bare C"];
        add_rows(&mut table, &rows, rounds, contenders.collect())?;
    }
    Ok(table)
}

/// Measures a scan of many files in a hundred directories, and a listing of one directory.
pub(crate) fn scans(site: &Site, effort: &Effort) -> Outcome<Table> {
    const LISTED: usize = 10_000;
    let title = format!("Seeing all files on {}, warm", site.filesystem);
    let mut table = Table::new(title, &["what", "files", "ours p50 ms", "bare C p50 ms", "ratio"]);
    let per_directory = effort.files / DIRECTORIES;
    for number in 0..DIRECTORIES {
        let directory = format!("tree/{number:02}");
        site.make_dir(&directory)?;
        for file in 0..per_directory {
            site.fill_ours(&format!("{directory}/note-{file:06}.md"), 0)?;
        }
    }
    fill_directory(site, LISTED)?;
    site.calm();
    let everything = |name: &str| theirs(move |_| vec![name.to_owned()])(0);

    let tree = Locator::parse("tree")?;
    let race = Race::run(
        effort.scans,
        vec![
            Box::new(|_| {
                let mut samples = Vec::new();
                let seen = timed(&mut samples, || count_scanned(&site.store, &tree))?;
                expect_count(seen, effort.files)?;
                Ok(samples)
            }),
            bare(site, "scan", effort.files, |_| everything("tree")),
        ],
    )?;
    // The goal is for 100,000 files; fewer must be quicker in proportion.
    let goal = Goal::Within(500.0 * effort.files as f64 / 100_000.0);
    add_scan(&mut table, "`scan`, 100 directories", effort.files, &race, goal);

    let listed = Locator::parse(&directory(LISTED))?;
    let race = Race::run(
        effort.scans,
        vec![
            Box::new(|_| {
                let mut samples = Vec::new();
                let listing = timed(&mut samples, || site.store.list(&listed))?;
                expect_count(listing.entries.len(), LISTED)?;
                Ok(samples)
            }),
            bare(site, "list", LISTED, |_| everything(&directory(LISTED))),
        ],
    )?;
    add_scan(&mut table, "`list`, one directory", LISTED, &race, Goal::Reported);
    Ok(table)
}

fn directory(files: usize) -> String {
    format!("many-{files}")
}

fn fill_directory(site: &Site, files: usize) -> Outcome<()> {
    let directory = directory(files);
    site.make_dir(&directory)?;
    (0..files).try_for_each(|file| site.fill_ours(&format!("{directory}/note-{file:06}.md"), SIZE_BYTES))
}

/// Names files that are there, in no order.
fn existing(files: usize, count: usize) -> impl FnMut(usize) -> Vec<String> {
    let mut picks = Picks::start();
    move |_| (0..count).map(|_| format!("{}/note-{:06}.md", directory(files), picks.below(files))).collect()
}

/// Names files that are not there.
fn fresh(files: usize) -> impl FnMut(usize) -> Vec<String> {
    move |_| (0..CREATED).map(|number| format!("{}/new-{number}.md", directory(files))).collect()
}

/// Names our files for the bare loop: so many need not be there twice.
fn theirs(mut keys: impl FnMut(usize) -> Vec<String>) -> impl FnMut(usize) -> Vec<String> {
    move |round| keys(round).into_iter().map(|key| format!("../ours/{key}")).collect()
}

/// Removes what each round of `contender` created.
fn forgetting<'a>(site: &'a Site, files: usize, mut contender: Contender<'a>) -> Contender<'a> {
    Box::new(move |round| {
        let samples = contender(round)?;
        fresh(files)(round).iter().try_for_each(|key| site.forget_ours(key))?;
        Ok(samples)
    })
}

/// Creates names in a directory that has changed since the last one was created.
fn create_after_replace(site: &Site, files: usize) -> Contender<'_> {
    let mut existing = existing(files, CREATED);
    Box::new(move |round| {
        let mut samples = Vec::new();
        for (new, old) in locators(&fresh(files)(round))?.iter().zip(locators(&existing(round))?) {
            drop(site.store.write(&old, site.content(SIZE_BYTES), Condition::Any)?);
            let bytes = site.content(SIZE_BYTES);
            drop(timed(&mut samples, || site.store.write(new, bytes, Condition::Absent))?);
        }
        Ok(samples)
    })
}

fn count_scanned(store: &Blocking, prefix: &Locator) -> haversack_store::Result<usize> {
    let mut seen = 0;
    store.scan(prefix, None, |page| {
        seen += page.infos.len();
        Ok(())
    })?;
    Ok(seen)
}

fn expect_count(seen: usize, expected: usize) -> Outcome<()> {
    if seen == expected { Ok(()) } else { Err(format!("saw {seen} files instead of {expected}").into()) }
}

fn add_scan(table: &mut Table, what: &str, files: usize, race: &Race, goal: Goal) {
    let cells = vec![
        what.to_owned(),
        grouped(files),
        milliseconds(race.nanoseconds(0)),
        milliseconds(race.nanoseconds(1)),
        times(race.ratio(0, 1)),
    ];
    table.row(cells, goal, race.nanoseconds(0) / 1e6);
}
