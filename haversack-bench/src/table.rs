//! Results as Markdown tables, with goals.

use std::fmt;

/// The goal of a result.
#[derive(Clone, Copy)]
pub enum Goal {
    /// At most so many times as long.
    AtMost(f64),
    /// At least so many times as much.
    AtLeast(f64),
    /// Less than so many milliseconds.
    Within(f64),
    /// At most so many megabytes.
    Megabytes(f64),
    /// At least so many megabytes per second.
    AtLeastPerSecond(f64),
    /// All of them: nothing less than 1.
    Every,
    /// Nothing: it is reported to be watched.
    Reported,
}

impl Goal {
    fn is_met(self, value: f64) -> Option<bool> {
        match self {
            Goal::AtMost(limit) | Goal::Megabytes(limit) => Some(value <= limit),
            Goal::AtLeast(limit) | Goal::AtLeastPerSecond(limit) => Some(value >= limit),
            Goal::Within(limit) => Some(value < limit),
            Goal::Every => Some(value >= 1.0),
            Goal::Reported => None,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::AtMost(limit) => write!(f, "≤ {limit}×"),
            Goal::AtLeast(limit) => write!(f, "≥ {limit}×"),
            Goal::Within(limit) => write!(f, "< {limit} ms"),
            Goal::Megabytes(limit) => write!(f, "≤ {limit} MB"),
            Goal::AtLeastPerSecond(limit) => write!(f, "≥ {limit} MB/s"),
            Goal::Every => f.write_str("all"),
            Goal::Reported => f.write_str("–"),
        }
    }
}

/// A table that grows row by row.
pub struct Table {
    title: String,
    rows: Vec<Vec<String>>,
    /// The number of goals that were met, and of all goals.
    pub score: (usize, usize),
}

impl Table {
    /// Starts a table; the columns for the goal follow the named ones.
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Table {
        let columns = columns.iter().chain(&["goal", "met"]).map(|&column| column.to_owned());
        Table { title: title.into(), rows: vec![columns.collect()], score: (0, 0) }
    }

    /// Adds a row whose result `value` is judged by `goal`.
    pub fn row(&mut self, mut cells: Vec<String>, goal: Goal, value: f64) {
        let met = match goal.is_met(value) {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        self.score.0 += usize::from(goal.is_met(value) == Some(true));
        self.score.1 += usize::from(goal.is_met(value).is_some());
        cells.extend([goal.to_string(), met.to_owned()]);
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        writeln!(f, "### {}\n", self.title)?;
        for (number, row) in self.rows.iter().enumerate() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(f, "| {cell:<width$} ")?,
                    _ => write!(f, "| {cell:>width$} ")?,
                }
            }
            writeln!(f, "|")?;
            if number == 0 {
                for (column, width) in widths.iter().enumerate() {
                    match column {
                        0 => write!(f, "|{:-<1$}", "", width + 2)?,
                        _ => write!(f, "|{:-<1$}:", "", width + 1)?,
                    }
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// Returns a time in microseconds.
pub fn microseconds(nanoseconds: f64) -> String {
    format!("{:.1}", nanoseconds / 1e3)
}

/// Returns a time in milliseconds.
pub fn milliseconds(nanoseconds: f64) -> String {
    format!("{:.1}", nanoseconds / 1e6)
}

/// Returns how many times.
pub fn times(ratio: f64) -> String {
    format!("{ratio:.2}×")
}

/// Returns a number with commas between thousands.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
