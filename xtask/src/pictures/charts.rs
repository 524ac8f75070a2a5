//! The charts of `docs/benchmarks.md`, drawn from the tables of the same page: `cargo xtask bench --plot`.
//!
//! 1. Find the table below a chart's heading.
//! 2. Select its rows by the values of some columns.
//! 3. Draw one bar for each row and series, with the figure of the table beside it.
//!
//! Bars are linear within a chart. A missing figure (`–`) has no bar.

use std::fs;

use super::svg::{Picture, SANS};
use super::write;
use crate::run::project;

/// A chart of some columns of a table.
struct Chart {
    /// The name of its file, without `bench-` and `.svg`.
    name: &'static str,
    title: &'static str,
    /// The beginning of the heading above the table.
    heading: &'static str,
    /// Columns and their values in the selected rows.
    rows: &'static [(&'static str, &'static str)],
    /// The columns that name a bar.
    labels: &'static [&'static str],
    /// The columns of the figures, each with its name in the legend.
    series: &'static [(&'static str, &'static str)],
}

const CHARTS: &[Chart] = &[
    Chart {
        name: "mcp",
        title: "One new memory over MCP, in milliseconds, by the number of memories",
        heading: "### One new memory",
        rows: &[],
        labels: &["memories"],
        series: &[
            ("ours ms", "Haversack"),
            ("bare ms", "bare server"),
            ("server-memory ms", "server-memory"),
        ],
    },
    Chart {
        name: "hooks",
        title: "A hook of Claude Code, in milliseconds",
        heading: "## Hooks",
        rows: &[],
        labels: &["hook"],
        series: &[("ms", "Haversack"), ("`/bin/true` ms", "/bin/true")],
    },
    Chart {
        name: "clouds",
        title: "1,000 files and an S3 server 50 ms away, in milliseconds",
        heading: "### Meeting at SeaweedFS (S3), beside rclone",
        rows: &[("files", "1,000"), ("server", "50 ms away")],
        labels: &["what"],
        series: &[("ours p50 ms", "Haversack"), ("rclone p50 ms", "rclone")],
    },
    Chart {
        name: "machines",
        title: "One changed file, in milliseconds, by the number of files",
        heading: "### One changed file on ext4",
        rows: &[],
        labels: &["files"],
        series: &[("send one p50 ms", "haversack sync"), ("`git commit`, `push` p50 ms", "git commit, push")],
    },
    Chart {
        name: "vault",
        title: "A sync with nothing new in a synced folder, in milliseconds, by the number of files",
        heading: "### A sync with nothing new in a folder",
        rows: &[],
        labels: &["files"],
        series: &[("in a folder p50 ms", "synced folder"), ("in one directory p50 ms", "one directory")],
    },
    Chart {
        name: "merge",
        title: "A merge of a file of 1 MB, in milliseconds",
        heading: "## Merging",
        rows: &[],
        labels: &["file of 1 MB, changed on two devices"],
        series: &[("p50 ms", "median")],
    },
    Chart {
        name: "verbs",
        title: "Edits of a file of 10 KB on ext4, in microseconds",
        heading: "### Verbs on one file on ext4",
        rows: &[("size", "10 KB")],
        labels: &["what"],
        series: &[("ours p50 µs", "Haversack"), ("bare C p50 µs", "bare C"), ("SDK p50 µs", "Anthropic SDK")],
    },
    Chart {
        name: "store",
        title: "Durable writes on ext4, in microseconds",
        heading: "### Durable writes of one file on ext4 without",
        rows: &[],
        labels: &["what", "size"],
        series: &[("ours p50 µs", "Haversack"), ("bare C p50 µs", "bare C")],
    },
    Chart {
        name: "page",
        title: "Views of the page with 10,000 memories, in milliseconds",
        heading: "## The page, ",
        rows: &[("memories", "10,000")],
        labels: &["view"],
        series: &[("p50 / p95 ms", "median, and 95 % of all")],
    },
    Chart {
        name: "recall",
        title: "Questions of LoCoMo whose passage is among the first 10, in % (longer is better)",
        heading: "## Recall, ",
        rows: &[],
        labels: &[""],
        series: &[("R@10", "R@10")],
    },
    Chart {
        name: "graph",
        title: "A new entity of the graph, in milliseconds, by the number of entities",
        heading: "## The graph, ",
        rows: &[("question", "create")],
        labels: &["entities"],
        series: &[("ours p50 / p95 ms", "Haversack"), ("server-memory p50 / p95 ms", "server-memory")],
    },
    Chart {
        name: "days",
        title: "A day's commands, process start to end, in milliseconds",
        heading: "### A day's commands, ",
        rows: &[],
        labels: &["command"],
        series: &[("ms", "Haversack"), ("`version` ms", "haversack version")],
    },
    Chart {
        name: "tidy",
        title: "Tidying, in milliseconds",
        heading: "### Tidying, ",
        rows: &[],
        labels: &["what"],
        series: &[("ms", "Haversack"), ("the scan alone ms", "the look at the files alone")],
    },
    Chart {
        name: "sync",
        title: "A sync of one changed file, in milliseconds, by the number of files",
        heading: "### One changed file, with the scan",
        rows: &[],
        labels: &["where", "files"],
        series: &[("p50 ms", "median")],
    },
    Chart {
        name: "secrets",
        title: "Looking for secrets, in MB/s (longer is better)",
        heading: "## Looking for secrets, ",
        rows: &[],
        labels: &["text"],
        series: &[("`secrets::find` MB/s", "Haversack"), ("hash (BLAKE3) MB/s", "BLAKE3")],
    },
];

const COLORS: [&str; 3] = ["#0969da", "#8c959f", "#bf8700"];
const WIDTH: f64 = 860.0;
const LABEL_WIDTH: f64 = 300.0;
const FIGURE_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 14.0;
const TOP: f64 = 76.0;

/// Draws all charts of `docs/benchmarks.md` into `docs/pictures`.
pub(crate) fn run() -> Result<(), String> {
    let page = page()?;
    CHARTS.iter().try_for_each(|chart| write(&file_name(chart), &draw(chart, &page)?))
}

fn page() -> Result<String, String> {
    let path = project().join("docs/benchmarks.md");
    fs::read_to_string(&path).map_err(|error| format!("{} could not be read: {error}", path.display()))
}

fn file_name(chart: &Chart) -> String {
    format!("bench-{}.svg", chart.name)
}

/// A row of a chart: its label, and for each series the figure as text and as a number.
struct Row {
    label: String,
    figures: Vec<(String, Option<f64>)>,
}

fn draw(chart: &Chart, page: &str) -> Result<String, String> {
    let rows = rows(chart, page)?;
    let figures = rows.iter().flat_map(|row| &row.figures).filter_map(|(_, figure)| *figure);
    let longest = figures.fold(f64::MIN_POSITIVE, f64::max);
    let row_height = BAR_HEIGHT.mul_add(bar_count(chart), 12.0);
    let height = row_height.mul_add(f64::from(u32::try_from(rows.len()).unwrap_or(u32::MAX)), TOP + 10.0);
    let mut picture = Picture::new(WIDTH, height, chart.title);
    picture.rectangle((0.0, 0.0), (WIDTH, height), r##"rx="8" fill="#ffffff" stroke="#d1d9e0""##);
    picture.text((20.0, 30.0), chart.title, &style(16, "bold", "#1f2328", "start"));
    let mut x = 20.0;
    for ((_, name), color) in chart.series.iter().zip(COLORS) {
        picture.rectangle((x, 44.0), (12.0, 12.0), &format!(r#"fill="{color}""#));
        picture.text((x + 18.0, 55.0), name, &style(12, "normal", "#59636e", "start"));
        x += 150.0;
    }
    let mut y = TOP;
    for row in rows {
        let middle = BAR_HEIGHT.mul_add(bar_count(chart) / 2.0, y + 4.0);
        picture.text((LABEL_WIDTH - 10.0, middle), &row.label, &style(12, "normal", "#1f2328", "end"));
        for ((text, figure), color) in row.figures.iter().zip(COLORS) {
            let space = WIDTH - LABEL_WIDTH - FIGURE_WIDTH;
            let width = figure.map_or(0.0, |figure| (figure / longest * space * 10.0).round() / 10.0);
            let fill = format!(r#"fill="{color}""#);
            picture.rectangle((LABEL_WIDTH, y), (width, BAR_HEIGHT - 2.0), &fill);
            let at = (LABEL_WIDTH + width + 6.0, y + 10.0);
            picture.text(at, text, &style(11, "normal", "#59636e", "start"));
            y += BAR_HEIGHT;
        }
        y += 12.0;
    }
    Ok(picture.finish())
}

fn bar_count(chart: &Chart) -> f64 {
    f64::from(u32::try_from(chart.series.len()).unwrap_or(u32::MAX))
}

fn style(size: u32, weight: &str, color: &str, anchor: &str) -> String {
    format!(
        r#"font-family="{SANS}" font-size="{size}" font-weight="{weight}" fill="{color}" text-anchor="{anchor}""#
    )
}

/// Returns the selected rows of the table below a chart's heading.
fn rows(chart: &Chart, page: &str) -> Result<Vec<Row>, String> {
    let missing = |what: &str| format!("docs/benchmarks.md has no {what} for the chart {}", chart.name);
    let mut lines = page.lines().skip_while(|line| !line.starts_with(chart.heading)).skip(1).peekable();
    lines.peek().ok_or_else(|| missing("heading"))?;
    let table = lines.take_while(|line| !line.starts_with('#')).skip_while(|line| !line.starts_with('|'));
    let mut cells = table
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>());
    let head = cells.next().ok_or_else(|| missing("table"))?;
    let column = |name: &str| {
        head.iter().position(|cell| cell == name).ok_or_else(|| missing(&format!("column {name}")))
    };
    let filters = chart.rows.iter().map(|(name, value)| Ok((column(name)?, *value)));
    let filters = filters.collect::<Result<Vec<_>, String>>()?;
    let labels = chart.labels.iter().map(|name| column(name)).collect::<Result<Vec<_>, String>>()?;
    let series = chart.series.iter().map(|(name, _)| column(name)).collect::<Result<Vec<_>, String>>()?;
    let cell = |row: &[String], at: usize| row.get(at).cloned().unwrap_or_default();
    let selected = cells.skip(1).filter(|row| filters.iter().all(|(at, value)| cell(row, *at) == *value));
    let rows: Vec<Row> = selected
        .map(|row| Row {
            label: labels.iter().map(|at| cell(&row, *at).replace('`', "")).collect::<Vec<_>>().join(", "),
            figures: series
                .iter()
                .map(|at| {
                    let text = cell(&row, *at);
                    // Of two figures in one cell, the bar shows the first.
                    let first = text.split(" / ").next().unwrap_or_default().replace(',', "");
                    (text, first.parse().ok())
                })
                .collect(),
        })
        .collect();
    if rows.is_empty() { Err(missing("row")) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_have_the_figures_of_the_page() {
        let page = page().expect("the page is there");
        for chart in CHARTS {
            let name = file_name(chart);
            let drawn = draw(chart, &page).expect("the table is there");
            let there = fs::read_to_string(project().join("docs/pictures").join(&name)).unwrap_or_default();
            assert!(
                drawn == there,
                "docs/pictures/{name} is out of date; draw it again: cargo xtask bench --plot"
            );
            assert!(page.contains(&format!("pictures/{name}")), "docs/benchmarks.md does not show {name}");
        }
    }

    #[test]
    fn longest_bar_is_the_largest_figure() {
        let page = "## Merging\n\n| file of 1 MB, changed on two devices | p50 ms |\n|---|---:|\n| prose | 5.0 |\n| log | 10.0 |\n";
        let chart = CHARTS.iter().find(|chart| chart.name == "merge").expect("there is one");
        let drawn = draw(chart, page).expect("drawn");
        assert!(drawn.contains(r#"width="470""#) && drawn.contains(r#"width="235""#), "{drawn}");
    }
}
