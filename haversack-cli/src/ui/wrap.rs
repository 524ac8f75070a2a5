//! Text in columns.

/// Breaks lines that are longer than a column, between words where that is possible.
pub(crate) fn wrapped(text: &str, column: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let mut rest: Vec<char> = line.chars().collect();
        while rest.len() > column {
            let space = rest[..=column].iter().rposition(|c| *c == ' ').filter(|at| *at >= column / 2);
            let tail = rest.split_off(space.unwrap_or(column));
            rows.push(rest.into_iter().collect());
            rest = tail.into_iter().skip_while(|c| space.is_some() && *c == ' ').collect();
        }
        rows.push(rest.into_iter().collect());
    }
    rows
}

/// The narrowest that a column of a table becomes.
const MIN_COLUMN: usize = 10;

/// The gap between two columns of a table.
const GAP: usize = 2;

/// Returns the widths of a table's columns: as wide as their cells, or narrower so that a row fits into a line.
pub(super) fn widths(rows: &[Vec<String>], line: Option<usize>) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let natural =
        |column: usize| rows.iter().filter_map(move |row| row.get(column)).map(|cell| cell.chars().count());
    let mut widths: Vec<usize> = (0..columns).map(|column| natural(column).max().unwrap_or(0)).collect();
    let Some(line) = line else { return widths };
    let room = line.saturating_sub(GAP * columns.saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        // The widest gives way first.
        match widths.iter_mut().max() {
            Some(widest) if *widest > MIN_COLUMN => *widest -= 1,
            _ => break,
        }
    }
    widths
}

/// Returns the lines of a row whose cells are wrapped in their columns.
pub(super) fn row(cells: &[String], widths: &[usize]) -> Vec<String> {
    let cells: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|(cell, width)| wrapped(cell, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let line = |at: usize| {
        let parts = cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{:<width$}", cell.get(at).map_or("", String::as_str)));
        parts.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = "the lamp turns every 12 s\n\nabcdefghijklmnop\n  in";
        let rows = ["the lamp", "turns", "every 12 s", "", "abcdefghij", "klmnop", "  in"];
        assert_eq!(wrapped(text, 10), rows);
        assert_eq!(wrapped("ä ö ü", 3), ["ä ö", "ü"]);
    }

    #[test]
    fn table_wraps_its_widest_column() {
        let rows = [["project", "where it is"], ["lighthouse", "github.com/me/lighthouse and a long remark"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(widths(&rows, None), [10, 42]);
        let narrow = widths(&rows, Some(36));
        assert_eq!(narrow, [10, 24]);
        assert_eq!(
            row(&rows[1], &narrow),
            ["lighthouse  github.com/me/lighthouse", "            and a long remark"]
        );
        assert_eq!(row(&[String::new(), String::new()], &narrow), [""]);
    }
}
