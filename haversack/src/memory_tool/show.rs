//! How a text is shown to a model: numbered lines, as many as it can take at once.

use std::borrow::Cow;

use memchr::memchr_iter;

use crate::text::nth_newline;

/// The width of a line number: no text has more lines than these digits can count.
const NUMBER_WIDTH: usize = 6;

/// Room for a note about what is not shown.
const NOTE_BYTES: usize = 256;

/// The number of lines shown before and after a changed line.
const CONTEXT_LINES: usize = 2;

/// The lines that a model asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineRange {
    first: i64,
    last: i64,
}

impl LineRange {
    /// Returns the range from `first` to `last`, both counted from 1; -1 is the last line.
    pub(super) fn new([first, last]: [i64; 2]) -> LineRange {
        LineRange { first, last }
    }

    /// Returns the part of `count` lines that is asked for: the index of the first, and of the one after the last.
    pub(super) fn within(range: Option<LineRange>, count: usize) -> (usize, usize) {
        let Some(LineRange { first, last }) = range else {
            return (0, count);
        };
        let start = usize::try_from(first.max(1) - 1).unwrap_or(usize::MAX);
        let end = match last {
            -1 => count,
            // Counted from the end, as the reference does.
            before_end if before_end < 0 => {
                count.saturating_sub(usize::try_from(before_end.unsigned_abs()).unwrap_or(usize::MAX))
            }
            last => usize::try_from(last).unwrap_or(usize::MAX).min(count),
        };
        (start, end)
    }
}

/// Numbered lines, and what was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    text: String,
    cut: Option<Cut>,
}

/// The place where a text was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cut {
    /// After whole lines: those shown, and how many there are.
    AfterLine { first: usize, last: usize, lines: usize },
    /// Within the first line shown.
    InLine { line: usize, shown: usize, characters: usize, lines: usize },
}

impl Shown {
    /// Returns the lines and, if some are left out, how to see them.
    pub(super) fn with_note(self, path: &str) -> String {
        let Shown { mut text, cut } = self;
        let (what, next, lines) = match cut {
            None => return text,
            Some(Cut::AfterLine { first, last, lines }) => {
                (format!("Lines {first}-{last} of {lines} are shown"), last + 1, lines)
            }
            Some(Cut::InLine { line, shown, characters, lines }) => {
                let what = format!("The first {shown} of {characters} characters of line {line} are shown");
                (what, line + 1, lines)
            }
        };
        text.push_str(&format!("\n\n[{what}."));
        if next <= lines {
            text.push_str(&format!(" To see the following lines, view {path} with view_range [{next}, -1]."));
        }
        text.push(']');
        text
    }
}

/// Returns the lines of a text after a heading, numbered; `None` if there are more than `max_lines`.
///
/// Lines end at a newline and nowhere else; a final newline is followed by an empty line, as the reference shows it.
pub(super) fn lines_of(
    heading: String,
    text: &str,
    range: Option<LineRange>,
    max_lines: usize,
    max_characters: usize,
) -> Option<Shown> {
    let count = memchr_iter(b'\n', text.as_bytes()).count() + 1;
    if count > max_lines {
        return None;
    }
    let (start, end) = LineRange::within(range, count);
    let mut shown = heading;
    // A character has up to four bytes, but text that long is rare: more is made room for as it comes.
    let shown_lines = end.saturating_sub(start).min(max_characters);
    shown.reserve(text.len().min(max_characters) + (NUMBER_WIDTH + 2) * shown_lines + NOTE_BYTES);
    let mut left = max_characters;
    for (at, line) in lines(text).enumerate().take(end).skip(start) {
        let number = at + 1;
        // A text within the limit is shown whole: its newlines count as it has them, not the numbers.
        let newline = usize::from(number < count);
        if line.len() + newline > left {
            let characters = line.chars().count();
            if characters + newline > left {
                if at == start && characters > max_characters {
                    write_line(&mut shown, number, &shortened(line, max_characters));
                    let (line, shown_now) = (number, max_characters);
                    let cut = Cut::InLine { line, shown: shown_now, characters, lines: count };
                    return Some(Shown { text: shown, cut: Some(cut) });
                } else if at > start {
                    // The last newline led to a line that is not shown.
                    shown.pop();
                    let cut = Cut::AfterLine { first: start + 1, last: at, lines: count };
                    return Some(Shown { text: shown, cut: Some(cut) });
                }
            }
            left = left.saturating_sub(characters + newline);
        } else {
            left -= line.len() + newline;
        }
        write_line(&mut shown, number, line);
        if number < end {
            shown.push('\n');
        }
    }
    Some(Shown { text: shown, cut: None })
}

/// Returns the parts of a text between its newlines.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut from = 0;
    let ends = memchr_iter(b'\n', text.as_bytes()).chain(std::iter::once(text.len()));
    ends.map(move |end| {
        let line = &text[from..end];
        from = end + 1;
        line
    })
}

fn write_line(shown: &mut String, number: usize, line: &str) {
    // By hand: formatting would be most of the cost of a view.
    let mut digits = [b' '; NUMBER_WIDTH];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).expect("one digit");
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    shown.push_str(std::str::from_utf8(&digits).expect("digits and spaces"));
    shown.push('\t');
    shown.push_str(line);
}

/// Returns the lines around the one that changed, numbered; the others are only counted.
pub(super) fn snippet(text: &[u8], line: usize, max_characters: usize) -> String {
    let first = line.saturating_sub(CONTEXT_LINES).max(1);
    let start = match first {
        1 => Some(0),
        first => nth_newline(text, first - 1).map(|newline| newline + 1),
    };
    let mut shown = String::new();
    let Some(rest) = start.and_then(|start| text.get(start..)) else { return shown };
    let end = nth_newline(rest, line + CONTEXT_LINES + 1 - first).unwrap_or(rest.len());
    for (at, line) in String::from_utf8_lossy(&rest[..end]).split('\n').enumerate() {
        if at > 0 {
            shown.push('\n');
        }
        write_line(&mut shown, first + at, &shortened(line, max_characters / (2 * CONTEXT_LINES + 1)));
    }
    shown
}

/// Returns the beginning of a text that is too long to be shown, marked as such.
pub(super) fn shortened(text: &str, max_characters: usize) -> Cow<'_, str> {
    // A character has at least one byte.
    if text.len() <= max_characters {
        return Cow::Borrowed(text);
    }
    match text.char_indices().nth(max_characters) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, range: Option<[i64; 2]>) -> String {
        lines_of(String::new(), text, range.map(LineRange::new), 999, 100).expect("few lines").with_note("P")
    }

    #[test]
    fn lines_are_split_and_numbered_as_the_reference_does() {
        assert_eq!(shown("a\n", None), "     1\ta\n     2\t");
        assert_eq!(shown("", None), "     1\t");
        assert_eq!(
            shown("a\r\nb\u{2028}c\u{85}d\u{c}e", None),
            "     1\ta\r\n     2\tb\u{2028}c\u{85}d\u{c}e"
        );
    }

    #[test]
    fn ranges_are_clamped_as_the_reference_does() {
        let text = "1\n2\n3";
        for (range, expected) in [
            ([1, 2], "     1\t1\n     2\t2"),
            ([2, -1], "     2\t2\n     3\t3"),
            ([-5, 1], "     1\t1"),
            ([0, 99], "     1\t1\n     2\t2\n     3\t3"),
            ([3, 2], ""),
            ([9, -1], ""),
            ([1, -2], "     1\t1"),
            ([1, -9], ""),
            ([i64::MIN, i64::MAX], "     1\t1\n     2\t2\n     3\t3"),
            ([i64::MAX, i64::MIN], ""),
        ] {
            assert_eq!(shown(text, Some(range)), expected, "{range:?}");
        }
    }

    #[test]
    fn a_text_at_the_limit_is_whole_and_one_beyond_is_cut_with_a_note() {
        let line = "x".repeat(9);
        let fits = [line.as_str(); 10].join("\n");
        assert_eq!(fits.len(), 99);
        assert!(!shown(&fits, None).contains('['));
        assert!(!shown(&format!("{fits}\n"), None).contains('['), "exactly the limit");
        let long = [line.as_str(); 12].join("\n");
        let cut = shown(&long, None);
        assert!(
            cut.ends_with(
                "    10\txxxxxxxxx\n\n[Lines 1-10 of 12 are shown. To see the following lines, view P with view_range [11, -1].]"
            ),
            "{cut}"
        );
        assert_eq!(shown(&long, Some([11, -1])), "    11\txxxxxxxxx\n    12\txxxxxxxxx");
    }

    #[test]
    fn the_limit_counts_characters_not_bytes() {
        assert!(!shown(&"ü".repeat(100), None).contains('['));
        assert!(
            shown(&"ü".repeat(101), None).contains("The first 100 of 101 characters of line 1 are shown.")
        );
        let long = format!("{}\nshort", "y".repeat(300));
        let cut = shown(&long, None);
        assert!(
            cut.ends_with("line 1 are shown. To see the following lines, view P with view_range [2, -1].]"),
            "{cut}"
        );
    }

    #[test]
    fn numbers_are_aligned() {
        for (number, expected) in
            [(1, "     1\t"), (10, "    10\t"), (204_050, "204050\t"), (999_999, "999999\t")]
        {
            let mut shown = String::new();
            write_line(&mut shown, number, "");
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn too_many_lines_are_refused() {
        assert_eq!(lines_of(String::new(), "1\n2\n3", None, 2, 100), None);
    }

    #[test]
    fn a_snippet_has_two_lines_on_each_side() {
        assert_eq!(
            snippet(b"1\n2\n3\n4\n5\n6\n7", 4, 100),
            "     2\t2\n     3\t3\n     4\t4\n     5\t5\n     6\t6"
        );
        assert_eq!(snippet(b"1\n2", 1, 100), "     1\t1\n     2\t2");
        assert_eq!(snippet(b"", 1, 100), "     1\t");
    }
}
