//! One verb at a time, all sides taking turns.

use haversack::store::{Bytes, Locator, block_on};
use haversack_bench::Outcome;
use haversack_bench::measure::{Contender, Race, timed};
use haversack_bench::table::{Goal, Table, microseconds, times};

use crate::site::{BARE, BRIDGE, OURS, SDK, Site};
use crate::steps::{create, insert, str_replace, text, view};

/// The sizes of the files, in KB.
const SIZES: [usize; 3] = [1, 10, 100];

/// The size of one append.
const APPEND_BYTES: usize = 60;

/// The goals, which depend on the storage.
#[derive(Clone, Copy)]
pub(crate) enum Goals {
    /// On a disk, our time must be close to the bare loop.
    Disk,
    /// In memory, we must be far ahead of the SDK.
    Memory,
}

#[derive(Clone, Copy)]
enum Verb {
    Write,
    View,
}

#[derive(Clone, Copy)]
enum Way {
    InProcess,
    Bridge,
}

#[derive(Clone, Copy)]
enum Rival {
    Bare,
    Sdk,
}

impl Goals {
    fn of(self, verb: Verb, way: Way) -> (Rival, Goal) {
        match (self, way, verb) {
            (Goals::Disk, Way::InProcess, Verb::Write) => (Rival::Bare, Goal::AtMost(1.25)),
            (Goals::Disk, ..) => (Rival::Bare, Goal::Reported),
            (Goals::Memory, Way::InProcess, Verb::Write) => (Rival::Sdk, Goal::AtLeast(5.0)),
            (Goals::Memory, Way::InProcess, Verb::View) => (Rival::Sdk, Goal::AtLeast(10.0)),
            (Goals::Memory, Way::Bridge, Verb::Write | Verb::View) => (Rival::Sdk, Goal::AtLeast(2.0)),
        }
    }
}

/// Compares every verb at every size.
pub(crate) fn verbs(site: &Site, (rounds, count): (usize, usize), goals: Goals) -> Outcome<Table> {
    let mut columns = vec!["what", "size", "ours p50 µs", "bare C p50 µs", "ours / C"];
    if site.sdk.is_some() {
        columns.extend(["SDK p50 µs", "SDK / ours"]);
    }
    let title = format!("Verbs on one file on {}", site.filesystem);
    let mut rows = Rows { table: Table::new(title, &columns), with_sdk: site.sdk.is_some(), goals };
    site.make_dir("notes")?;
    for kilobytes in SIZES {
        let size = kilobytes * 1024;
        let shown = format!("{kilobytes} KB");
        let key = format!("notes/{kilobytes}.md");
        site.fill(&key, &text(size))?;
        let new = format!("new-{kilobytes}");
        for round in 0..=rounds {
            site.make_dir(&format!("{new}/{round}"))?;
        }
        site.calm();

        let fresh = |round| (0..count).map(|number| format!("{new}/{round}/{number}.md")).collect();
        let race = site.race(rounds, || create(&new, size, count), bare(site, "replace", size, fresh))?;
        rows.add("`create`", &shown, &race, Verb::Write);

        let again = |_| vec![key.clone(); count];
        let race = site.race(rounds, || str_replace(&key, count), bare(site, "replace", size, again))?;
        rows.add("`str_replace`", &shown, &race, Verb::Write);

        let race = site.race(rounds, || insert(&key, size, count), bare(site, "replace", size, again))?;
        rows.add("`insert`", &shown, &race, Verb::Write);

        let race =
            Race::run(rounds, vec![append(site, &key, count)?, bare(site, "append", APPEND_BYTES, again)])?;
        rows.add_append(&shown, &race);

        // Two have appended: all are to look at the same text again.
        site.fill(&key, &text(size))?;
        site.calm();
        let race = site.race(rounds, || view(&key, count), bare(site, "read", size, again))?;
        rows.add("`view`", &shown, &race, Verb::View);
    }
    Ok(rows.table)
}

/// Adds to the end of a file again and again, which the memory tool has no command for.
fn append<'a>(site: &'a Site, key: &str, count: usize) -> Outcome<Contender<'a>> {
    let locator = Locator::parse(key)?;
    let bytes = Bytes::from(vec![b'a'; APPEND_BYTES]);
    Ok(Box::new(move |_| {
        let mut samples = Vec::new();
        for _ in 0..count {
            timed(&mut samples, || block_on(site.memory.append(&locator, bytes.clone())))?;
        }
        Ok(samples)
    }))
}

/// Lets the bare loop do `command` at the keys that `keys` names for a round.
pub(crate) fn bare<'a>(
    site: &'a Site,
    command: &'a str,
    size: usize,
    keys: impl Fn(usize) -> Vec<String> + 'a,
) -> Contender<'a> {
    Box::new(move |round| site.bare.run(command, size, &keys(round)))
}

struct Rows {
    table: Table,
    with_sdk: bool,
    goals: Goals,
}

impl Rows {
    /// Adds a row for each way to ours.
    fn add(&mut self, what: &str, size: &str, race: &Race, verb: Verb) {
        self.row(what.to_owned(), size, race, OURS, verb, Way::InProcess);
        self.row(format!("{what} through `memory-tool`"), size, race, BRIDGE, verb, Way::Bridge);
    }

    fn row(&mut self, what: String, size: &str, race: &Race, ours: usize, verb: Verb, way: Way) {
        let beside_bare = race.ratio(ours, BARE);
        let mut cells = vec![what, size.to_owned()];
        cells.extend([ours, BARE].map(|contender| microseconds(race.nanoseconds(contender))));
        cells.push(times(beside_bare));
        let mut judged = match self.goals.of(verb, way) {
            (Rival::Bare, goal) => (goal, beside_bare),
            (Rival::Sdk, _) => (Goal::Reported, f64::NAN),
        };
        if self.with_sdk {
            let beside_sdk = race.ratio(SDK, ours);
            cells.extend([microseconds(race.nanoseconds(SDK)), times(beside_sdk)]);
            if let (Rival::Sdk, goal) = self.goals.of(verb, way) {
                judged = (goal, beside_sdk);
            }
        }
        self.table.row(cells, judged.0, judged.1);
    }

    /// Adds a row for what only ours and the bare loop can do.
    fn add_append(&mut self, size: &str, race: &Race) {
        let ratio = race.ratio(0, 1);
        let mut cells = vec![format!("append {APPEND_BYTES} bytes"), size.to_owned()];
        cells.extend([0, 1].map(|contender| microseconds(race.nanoseconds(contender))));
        cells.push(times(ratio));
        if self.with_sdk {
            cells.extend(["–", "–"].map(str::to_owned));
        }
        match self.goals.of(Verb::Write, Way::InProcess) {
            (Rival::Bare, goal) => self.table.row(cells, goal, ratio),
            (Rival::Sdk, _) => self.table.row(cells, Goal::Reported, ratio),
        }
    }
}
