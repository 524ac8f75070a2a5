//! The same operation among more and more files, smallest directory first.

use crate::Outcome;
use crate::measure::{Contender, Race};
use crate::table::{Goal, Table, grouped, microseconds, times};

/// Starts a table with a column for each number of files.
pub fn table(title: impl Into<String>, sizes: &[usize]) -> Table {
    let shown: Vec<String> = sizes.iter().map(|size| format!("{} files", grouped(*size))).collect();
    let mut columns = vec!["p50 µs in a directory of"];
    columns.extend(shown.iter().map(String::as_str));
    columns.push("last / first");
    Table::new(title, &columns)
}

/// Lets all contenders race and adds a row for each equal share of them.
pub fn add_rows(
    table: &mut Table,
    rows: &[&str],
    rounds: usize,
    contenders: Vec<Contender<'_>>,
) -> Outcome<()> {
    let share = contenders.len() / rows.len();
    let race = Race::run(rounds, contenders)?;
    for (row, what) in rows.iter().enumerate() {
        let (first, last) = (row * share, (row + 1) * share - 1);
        let mut cells = vec![(*what).to_owned()];
        cells.extend((first..=last).map(|contender| microseconds(race.nanoseconds(contender))));
        let factor = race.ratio(last, first);
        cells.push(times(factor));
        table.row(cells, Goal::Reported, factor);
    }
    Ok(())
}
