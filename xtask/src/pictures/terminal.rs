//! A terminal window with the output of a command.

use super::svg::{MONOSPACE, Picture};

const CHARACTER_WIDTH: f64 = 7.8;
const LINE_HEIGHT: f64 = 19.0;
const MARGIN: f64 = 20.0;
const BAR_HEIGHT: f64 = 34.0;

const BACKGROUND: &str = "#0d1117";
const BAR: &str = "#161b22";
const TEXT: &str = "#c9d1d9";
const FAINT: &str = "#8b949e";
const STRONG: &str = "#f0f6fc";
const GOOD: &str = "#7ee787";
const BAD: &str = "#ffa198";
const PROMPT: &str = "#79c0ff";

/// Returns a picture of a terminal in which `command` printed `output`.
pub(super) fn picture(command: &str, output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let columns = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0).max(60);
    let width = (as_f64(columns) * CHARACTER_WIDTH + 2.0 * MARGIN).ceil();
    let height = BAR_HEIGHT + 2.0 * MARGIN + as_f64(lines.len() + 1) * LINE_HEIGHT;
    let mut picture = Picture::new(width, height, &format!("A terminal: {command}"));
    picture.rectangle((0.0, 0.0), (width, height), &format!(r#"rx="10" fill="{BACKGROUND}""#));
    picture.path(
        &format!("M0 {BAR_HEIGHT} V10 Q0 0 10 0 H{} Q{width} 0 {width} 10 V{BAR_HEIGHT} Z", width - 10.0),
        &format!(r#"fill="{BAR}""#),
    );
    for (number, color) in ["#ff5f57", "#febc2e", "#28c840"].iter().enumerate() {
        picture.circle((20.0 + 20.0 * as_f64(number), BAR_HEIGHT / 2.0), 6.0, &format!(r#"fill="{color}""#));
    }
    let mut baseline = BAR_HEIGHT + MARGIN + 12.0;
    draw(&mut picture, baseline, 0, "$", PROMPT, false);
    draw(&mut picture, baseline, 2, command, STRONG, true);
    for line in lines {
        baseline += LINE_HEIGHT;
        for Piece { column, text, color, is_bold } in pieces(line) {
            draw(&mut picture, baseline, column, &text, color, is_bold);
        }
    }
    picture.finish()
}

/// Draws a piece of a line. Its length is fixed, so that columns stay aligned in any font.
fn draw(picture: &mut Picture, baseline: f64, column: usize, text: &str, color: &str, is_bold: bool) {
    let length = as_f64(text.chars().count()) * CHARACTER_WIDTH;
    let weight = if is_bold { r#" font-weight="bold""# } else { "" };
    let style = format!(
        r#"font-family="{MONOSPACE}" font-size="13" fill="{color}"{weight} textLength="{length:.1}" lengthAdjust="spacingAndGlyphs" xml:space="preserve""#
    );
    picture.text((MARGIN + as_f64(column) * CHARACTER_WIDTH, baseline), text, &style);
}

/// A part of a line in one color.
struct Piece {
    column: usize,
    text: String,
    color: &'static str,
    is_bold: bool,
}

/// Cuts a line into columns and colors each. Two spaces separate columns.
fn pieces(line: &str) -> Vec<Piece> {
    let is_step = line.starts_with("  ") && line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let mut pieces = Vec::new();
    let mut column = 0;
    for word in line.split("  ") {
        let text = word.trim_start();
        let indent = word.chars().count() - text.chars().count();
        if !text.is_empty() {
            let color = color(line, text, is_step);
            pieces.push(Piece { column: column + indent, text: text.to_owned(), color, is_bold: is_step });
        }
        column += word.chars().count() + 2;
    }
    pieces
}

fn color(line: &str, text: &str, is_step: bool) -> &'static str {
    match text {
        _ if text.contains("lost 0") => GOOD,
        _ if text.contains("newest file wins") => BAD,
        "merged" | "kept both" | "deleted" => GOOD,
        "kill -9" => BAD,
        _ if is_step => STRONG,
        _ if !line.starts_with(' ') => FAINT,
        _ => TEXT,
    }
}

#[expect(clippy::cast_precision_loss, reason = "columns and lines of a terminal are few")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_keeps_every_column_at_its_place() {
        let pieces = pieces("       MEMORY.md     merged     3 added");
        let found: Vec<(usize, &str)> =
            pieces.iter().map(|piece| (piece.column, piece.text.as_str())).collect();
        assert_eq!(found, [(7, "MEMORY.md"), (21, "merged"), (32, "3 added")]);
    }

    #[test]
    fn terminal_escapes_text() {
        assert!(picture("x", "a < b & c").contains("a &lt; b &amp; c"));
    }
}
