//! One operation at a time beside the bare loop: replace, create, read, append.

use haversack_bench::Outcome;
use haversack_bench::measure::Race;
use haversack_bench::table::{Goal, Table, microseconds, times};
use haversack_store::Condition;

use crate::contenders::{append, bare, read, write, write_matching};
use crate::site::Site;

const KIB: usize = 1024;

/// The size of one append.
const APPEND_BYTES: usize = 60;

const COLUMNS: [&str; 5] = ["what", "size", "ours p50 µs", "bare C p50 µs", "ratio"];

/// Tells if reading is compared too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    Compared,
    LeftOut,
}

/// Compares replacing, creating and reading files of each size, in KB, against its goal.
pub(crate) fn contents(
    site: &Site,
    (rounds, count): (usize, usize),
    reads: Reads,
    sizes: &[(usize, Goal)],
) -> Outcome<Table> {
    let mut table = Table::new(format!("Durable writes of one file on {}", site.filesystem), &COLUMNS);
    site.make_dir("notes")?;
    for &(kilobytes, goal) in sizes {
        let size = kilobytes * KIB;
        let mut add = |what: &str, race: &Race, ours: usize, bare: usize, goal: Goal| {
            add_row(&mut table, what, &format!("{kilobytes} KB"), race, ours, bare, goal);
        };
        site.fill("notes/any.md", size)?;
        site.calm();
        let again = |key: &'static str| move |_| vec![key.to_owned(); count];
        let race = Race::run(
            rounds,
            vec![
                write_matching(site, size, "notes/matching.md", count)?,
                write(site, size, Condition::Any, again("notes/any.md")),
                bare(site, "replace", size, again("notes/any.md")),
            ],
        )?;
        add("replace, `Matches(version)`", &race, 0, 2, goal);
        add("replace, `Any`", &race, 1, 2, goal);

        // A directory of its own for each round: neither side works in one that grows without end.
        for round in 0..=rounds {
            site.make_dir(&format!("new-{kilobytes}/{round}"))?;
        }
        site.calm();
        let fresh = |round: usize| {
            (0..count).map(|number| format!("new-{kilobytes}/{round}/{number}.md")).collect::<Vec<_>>()
        };
        let race = Race::run(
            rounds,
            vec![write(site, size, Condition::Absent, fresh), bare(site, "replace", size, fresh)],
        )?;
        add("create, `Absent`", &race, 0, 1, goal);

        if reads == Reads::Compared {
            let race = Race::run(
                rounds,
                vec![read(site, again("notes/any.md")), bare(site, "read", size, again("notes/any.md"))],
            )?;
            add("read", &race, 0, 1, Goal::Reported);
        }
    }
    Ok(table)
}

/// Compares appending to files of several sizes, and ours at the largest with ours at the smallest.
pub(crate) fn appends(site: &Site, (rounds, count): (usize, usize), goal: Goal) -> Outcome<Table> {
    const FILES: [(&str, usize); 3] = [("1 KB", KIB), ("1 MB", KIB * KIB), ("100 MB", 100 * KIB * KIB)];
    let title = format!("Durable appends of {APPEND_BYTES} bytes on {}", site.filesystem);
    let mut table = Table::new(title, &COLUMNS);
    site.make_dir("logs")?;
    let keys = FILES.map(|(_, size)| format!("logs/{size}.log"));
    let mut contenders = Vec::new();
    for (key, (_, size)) in keys.iter().zip(FILES) {
        site.fill(key, size)?;
        contenders.push(append(site, APPEND_BYTES, key, count)?);
        contenders.push(bare(site, "append", APPEND_BYTES, move |_| vec![key.clone(); count]));
    }
    site.calm();
    let race = Race::run(rounds, contenders)?;
    for (number, (shown, _)) in FILES.into_iter().enumerate() {
        add_row(&mut table, "append, `Now`, to a file of", shown, &race, 2 * number, 2 * number + 1, goal);
    }
    let (flat, bare_flat) = (race.ratio(4, 0), race.ratio(5, 1));
    let cells = ["100 MB beside 1 KB", "", &times(flat), &times(bare_flat), ""];
    table.row(cells.map(str::to_owned).to_vec(), Goal::Reported, flat);
    Ok(table)
}

fn add_row(table: &mut Table, what: &str, size: &str, race: &Race, ours: usize, bare: usize, goal: Goal) {
    let ratio = race.ratio(ours, bare);
    let cells = vec![
        what.to_owned(),
        size.to_owned(),
        microseconds(race.nanoseconds(ours)),
        microseconds(race.nanoseconds(bare)),
        times(ratio),
    ];
    table.row(cells, goal, ratio);
}
