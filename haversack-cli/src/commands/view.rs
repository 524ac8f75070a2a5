//! `haversack view`: the content of a file.

use std::process::ExitCode;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use haversack::View;
use haversack::store::block_on;
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::home::store::open_to_look;
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::paths::quoted;

/// Print a file as it is
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// The file
    path: String,

    /// Print only these lines, counted from 1; either end can be left out
    #[arg(long, value_name = "FIRST:LAST", value_parser = parse_lines)]
    lines: Option<Lines>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A range of lines, both ends included.
#[derive(Clone, Copy, Debug)]
struct Lines {
    first: usize,
    last: usize,
}

fn parse_lines(text: &str) -> Result<Lines, String> {
    let number = |text: &str, left_out| match text {
        "" => Ok(left_out),
        text => match text.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{text:?} is not a line number, which are 1, 2, 3 and so on")),
        },
    };
    let (first, last) = text.split_once(':').unwrap_or((text, text));
    let (first, last) = (number(first, 1)?, number(last, usize::MAX)?);
    match first <= last {
        true => Ok(Lines { first, last }),
        false => Err(format!("line {first} comes after line {last}")),
    }
}

pub(crate) fn cmd_view(ui: &mut Ui, settings: &Settings, args: &ViewArgs) -> Result<ExitCode, CommandError> {
    let locator = locate(settings, &args.path)?;
    let memory = open_to_look(settings)?;
    let object = match block_on(memory.view(&locator))? {
        View::File(object) => object,
        View::Directory(_) => {
            let message = format!("{} is a directory", args.path);
            return Err(CommandError::user(message, format!("List it: haversack ls {}", quoted(&args.path))));
        }
    };
    let shown: &[u8] = match args.lines {
        None => &object.bytes,
        Some(lines) => part(&object.bytes, lines),
    };
    if args.json {
        let content = match std::str::from_utf8(shown) {
            Ok(text) => ("text", Value::from(text)),
            Err(_) => ("base64", Value::from(STANDARD.encode(shown))),
        };
        let mut answer = json!({
            "path": locator.as_str(),
            "size_bytes": object.bytes.len(),
            "version": object.version.as_str(),
        });
        answer[content.0] = content.1;
        ui.json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    if ui.is_watched() && std::str::from_utf8(shown).is_err() {
        let message = format!("{} is not text", args.path);
        let hint = format!("Write it to a file: haversack view {} > FILE", quoted(&args.path));
        return Err(CommandError::user(message, hint));
    }
    ui.page();
    ui.bytes(shown)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the lines of a range, the newline of the last one included.
fn part(bytes: &[u8], Lines { first, last }: Lines) -> &[u8] {
    let mut ends = bytes.split_inclusive(|byte| *byte == b'\n').scan(0, |end, line| {
        *end += line.len();
        Some(*end)
    });
    let start = match first - 1 {
        0 => 0,
        skipped => match ends.by_ref().nth(skipped - 1) {
            Some(end) => end,
            None => return &[],
        },
    };
    let Some(count) = last.checked_sub(first) else { return &[] };
    let end = ends.nth(count).unwrap_or(bytes.len());
    &bytes[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_out_with_their_newlines() {
        let cut = |range: &str| {
            let shown = part(b"1\n2\n3", parse_lines(range).expect("a range"));
            String::from_utf8(shown.to_vec()).expect("text")
        };
        for (range, expected) in [
            ("1:1", "1\n"),
            ("2", "2\n"),
            ("2:", "2\n3"),
            (":2", "1\n2\n"),
            ("3:9", "3"),
            ("4:9", ""),
            (":", "1\n2\n3"),
        ] {
            assert_eq!(cut(range), expected, "{range}");
        }
        assert!(
            parse_lines("0:1").is_err()
                && parse_lines("a").is_err()
                && parse_lines("-1").is_err()
                && parse_lines("9:2").is_err()
        );
    }
}
