//! Colours of the output, one function for each sort of text: it gets a line and returns its style.
//!
//! The text is escaped before it is coloured, and means the same without colours.

use std::ops::Range;

use clap::builder::styling::{AnsiColor, Style};

/// The user's wish for colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colors {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

const RED: Style = AnsiColor::Red.on_default();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Returns the style of a line of a unified diff.
pub(crate) fn diff(line: &str) -> Style {
    match line {
        _ if line.starts_with("--- ") || line.starts_with("+++ ") => BOLD,
        _ if line.starts_with("@@") => CYAN,
        _ if line.starts_with('+') => GREEN,
        _ if line.starts_with('-') => RED,
        _ => Style::new(),
    }
}

/// Returns the style of a line of the history: a change, its files, or the commands for it.
pub(crate) fn log(line: &str) -> Style {
    match line.trim_start().split(' ').next().unwrap_or_default() {
        _ if line == "not sent yet" => YELLOW,
        "deleted" => RED,
        "new" => GREEN,
        "See" => CYAN,
        _ if line.starts_with("      ") => Style::new(),
        _ => BOLD,
    }
}

/// Returns the style of a line of the state. Cures begin with an arrow.
pub(crate) fn status(line: &str, verdict: &str, is_well: bool) -> Style {
    match line {
        _ if line.starts_with(verdict) && is_well => GREEN,
        _ if line.starts_with(verdict) => RED,
        _ if line.trim_start().starts_with('→') => CYAN,
        _ => Style::new(),
    }
}

/// Returns the style of a line of recalled memories: their places stand out. Passages are indented, and only a place ends with its kind and
/// age in parentheses.
fn recall(line: &str) -> Style {
    if line.ends_with(')') && !line.starts_with(' ') { CYAN } else { Style::new() }
}

/// Returns recalled memories with their places and the words of the query in colours. `matches` returns where those words are in a line.
pub(super) fn painted_recall(text: &str, matches: impl Fn(&str) -> Vec<Range<usize>>) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if !line.starts_with("  ") {
            shown.push_str(&painted(line, recall));
            continue;
        }
        let mut end = 0;
        for span in matches(line) {
            shown.push_str(&line[end..span.start]);
            shown.push_str(&format!("{BOLD}{}{BOLD:#}", &line[span.clone()]));
            end = span.end;
        }
        shown.push_str(&line[end..]);
    }
    shown
}

/// Returns the style of the first line of a conflict, and of the bar between passages.
pub(crate) fn conflict(line: &str) -> Style {
    if line.starts_with(|c: char| c.is_ascii_digit()) { BOLD } else { Style::new() }
}

/// Returns the style of a note that is a hint, a warning or an error.
pub(super) fn note(line: &str) -> Style {
    match line.split(' ').next().unwrap_or_default() {
        "Error:" => RED,
        "Warning:" => YELLOW,
        "Hint:" => CYAN,
        "Caused" => DIM,
        _ => Style::new(),
    }
}

/// Returns whole lines, each in its style.
pub(super) fn painted(text: &str, style: impl Fn(&str) -> Style) -> String {
    let mut painted = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        match style(line) {
            plain if plain == Style::new() => painted.push_str(line),
            style => painted.push_str(&format!("{style}{line}{style:#}")),
        }
        painted.push_str(end);
    }
    painted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn painted_text_is_the_text_with_styles_around_its_lines() {
        let text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same\n";
        let painted = painted(text, diff);
        assert_eq!(painted.lines().nth(3), Some("\u{1b}[31m-old\u{1b}[0m"));
        assert_eq!(painted.lines().nth(4), Some("\u{1b}[32m+new\u{1b}[0m"));
        assert_eq!(painted.lines().nth(5), Some(" same"));
        let plain = ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[36m", "\u{1b}[1m", "\u{1b}[0m"]
            .iter()
            .fold(painted, |text, code| text.replace(code, ""));
        assert_eq!(plain, text);
    }

    #[test]
    fn recall_paints_words_of_the_query_in_passages() {
        let painted = painted_recall("a.md:1 (note)\n  the lamp turns\n", |line| {
            line.find("lamp").map(|at| at..at + 4).into_iter().collect()
        });
        assert_eq!(painted, "\u{1b}[36ma.md:1 (note)\u{1b}[0m\n  the \u{1b}[1mlamp\u{1b}[0m turns\n");
    }

    #[test]
    fn recall_paints_places_and_no_passages() {
        let text = "1 memory for \"lamp (old)\", best first, of 2 files:\n\nlighthouse/lamp.md:1 (note, today)\n  every 12 s (really)\n";
        let painted = painted(text, recall);
        let colored: Vec<&str> = painted.lines().filter(|line| line.contains('\u{1b}')).collect();
        assert_eq!(colored, ["\u{1b}[36mlighthouse/lamp.md:1 (note, today)\u{1b}[0m"]);
    }
}
