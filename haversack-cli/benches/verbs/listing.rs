//! Measures the listing of a large directory.

use std::cell::RefCell;

use haversack::memory_tool::{Command, Content, MemoryTool};
use haversack::store::{Locator, block_on};
use haversack_bench::Outcome;
use haversack_bench::measure::{Contender, Race, timed};
use haversack_bench::table::{Goal, Table, grouped, milliseconds, times};

use crate::cold::HAVERSACK;
use crate::sides::contender;
use crate::single::bare;
use crate::site::Site;
use crate::steps::{path, view};

/// The number of files.
const FILES: usize = 10_000;

/// The content of each.
const TEXT: &str = "a short note\n";

const DIRECTORY: &str = "many";

/// The order of the contenders; the SDK is not always there.
const WHOLE: usize = 0;
const AS_SET: usize = 1;
const LIST: usize = 2;
const LS: usize = 3;
const BARE_SCAN: usize = 4;
const BARE_LIST: usize = 5;
const SDK: usize = 6;

/// Lists one directory in every way there is.
pub(crate) fn listings(site: &Site, rounds: usize) -> Outcome<Table> {
    let mut columns = vec!["what", "files", "ours p50 ms", "bare C p50 ms", "ours / C"];
    if site.sdk.is_some() {
        columns.extend(["SDK p50 ms", "SDK / ours"]);
    }
    let title = format!("Listing a directory on {}, warm", site.filesystem);
    let mut table = Table::new(title, &columns);
    site.make_dir(DIRECTORY)?;
    for file in 0..FILES {
        site.fill(&format!("{DIRECTORY}/note-{file:06}.md"), TEXT)?;
    }
    site.calm();

    let as_set = RefCell::new(MemoryTool::new(site.memory.clone()));
    let locator = Locator::parse(DIRECTORY)?;
    let ls = [HAVERSACK.as_slice(), &["ls", DIRECTORY]].concat();
    let same = |_| vec![DIRECTORY.to_owned()];
    let mut contenders: Vec<Contender<'_>> = vec![
        contender(&site.tool, view(DIRECTORY, 1)),
        contender(&as_set, view(DIRECTORY, 1)),
        Box::new(|_| {
            let mut samples = Vec::new();
            let listing = timed(&mut samples, || block_on(site.memory.files().list(&locator)))?;
            expect_files(listing.entries.len())?;
            Ok(samples)
        }),
        Box::new(|_| Ok(vec![site.bare.spawn(&ls)?.elapsed])),
        bare(site, "scan", FILES, same),
        bare(site, "list", FILES, same),
    ];
    if let Some(sdk) = &site.sdk {
        contenders.push(contender(sdk, view(DIRECTORY, 1)));
    }
    let race = Race::run(rounds, contenders)?;
    // Showing everything needs 10,000 sizes, for which the bare loop takes longer than the goal.
    for (what, ours, bare, sdk, goal) in [
        ("`view`, everything shown", WHOLE, BARE_SCAN, Some(SDK), Goal::Reported),
        ("`view`, cut as it is set", AS_SET, BARE_LIST, Some(SDK), Goal::Within(20.0)),
        ("`Backend::list`", LIST, BARE_LIST, None, Goal::Within(20.0)),
        ("`haversack ls`, a process", LS, BARE_SCAN, None, Goal::Reported),
    ] {
        let mut cells = vec![what.to_owned(), grouped(FILES)];
        cells.extend([ours, bare].map(|contender| milliseconds(race.nanoseconds(contender))));
        cells.push(times(race.ratio(ours, bare)));
        if site.sdk.is_some() {
            cells.extend(match sdk {
                Some(sdk) => [milliseconds(race.nanoseconds(sdk)), times(race.ratio(sdk, ours))],
                None => ["–", "–"].map(str::to_owned),
            });
        }
        table.row(cells, goal, race.nanoseconds(ours) / 1e6);
    }
    check_whole(site)?;
    Ok(table)
}

/// Makes sure that what is said to show everything does.
fn check_whole(site: &Site) -> Outcome<()> {
    let command = Command::View { path: path(DIRECTORY), view_range: None };
    match block_on(site.tool.borrow().answer(command)).content {
        // The heading and the directory itself come first.
        Content::Text(text) => expect_files(text.lines().count() - 2),
        Content::Image { .. } => Err("a directory is no image".into()),
    }
}

fn expect_files(seen: usize) -> Outcome<()> {
    if seen == FILES { Ok(()) } else { Err(format!("saw {seen} files instead of {FILES}").into()) }
}
