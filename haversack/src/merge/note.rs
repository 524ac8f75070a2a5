//! The line above the second of two passages, which names its device and the passage that it replaces.
//!
//! A note is all that a merge leaves behind of a conflict, and [`conflict`](crate::conflict) finds passages by it. So it says how far
//! they go, in lines that are not blank: of one line each if it says nothing.
//!
//! ```text
//! > [also, from desktop:]
//! > [also, from desktop, 2 lines for the 3 above:]
//! > [also, from desktop, as a field:]
//! > [also, from desktop, in other words:]
//! ```

use crate::display::one_line;

/// The beginning of every note.
pub(crate) const ALSO: &str = "[also, from ";
const END: &str = ":]";

/// A line above a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note<'a> {
    /// The indentation in spaces.
    pub(crate) indent: usize,
    pub(crate) mark: Mark,
    /// The device's name.
    pub(crate) device: &'a str,
    pub(crate) about: About,
}

/// The mark that keeps the line out of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// In Markdown: a quoted line, which ends a paragraph and is no heading.
    Quote,
    /// In front matter.
    Comment,
}

/// The thing that the passage replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The lines right above; blank ones do not count.
    Lines { above: usize, below: usize },
    /// A field of the frontmatter, quoted below in so many lines.
    Field { lines: usize },
    /// The words of the item it is in.
    Words,
}

impl About {
    /// Returns the note's description of two passages of lines.
    pub(super) fn lines<'a>(
        above: impl IntoIterator<Item = &'a [u8]>,
        below: impl IntoIterator<Item = &'a [u8]>,
    ) -> About {
        About::Lines {
            above: above.into_iter().filter(|line| !is_blank(line)).count(),
            below: below.into_iter().filter(|line| !is_blank(line)).count(),
        }
    }

    /// Returns the note's description of two texts.
    pub(super) fn texts(above: &str, below: &str) -> About {
        About::lines(above.lines().map(str::as_bytes), below.lines().map(str::as_bytes))
    }
}

/// Returns true if a line does not count.
fn is_blank(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| line.trim().is_empty())
}

/// Returns a note as it is written, without indentation and ending.
pub(crate) fn write(mark: Mark, device: &str, about: About) -> String {
    let name = one_line(device);
    let name = match name.trim() {
        "" => "another device",
        name => name,
    };
    let lines = |count: usize| format!("{count} {}", if count == 1 { "line" } else { "lines" });
    let in_full = |above: usize, below: usize| format!(", {} for the {above} above", lines(below));
    let tail = match about {
        // A device's name can look like the end of a note.
        About::Lines { above: 1, below: 1 } if split(name).0 != name => in_full(1, 1),
        About::Lines { above: 1, below: 1 } => String::new(),
        About::Lines { above, below } => in_full(above, below),
        About::Field { lines: 1 } => ", as a field".to_owned(),
        About::Field { lines: count } => format!(", {} as a field", lines(count)),
        About::Words => ", in other words".to_owned(),
    };
    let mark = match mark {
        Mark::Quote => '>',
        Mark::Comment => '#',
    };
    format!("{mark} {ALSO}{name}{tail}{END}")
}

/// Reads a line; `None` if it is no note.
pub(crate) fn read(line: &str) -> Option<Note<'_>> {
    let line = line.trim_end();
    let content = line.trim_start_matches(' ');
    let (mark, rest) = match content.split_at_checked(2)? {
        ("> ", rest) => (Mark::Quote, rest),
        ("# ", rest) => (Mark::Comment, rest),
        _ => return None,
    };
    let (device, about) = split(rest.strip_prefix(ALSO)?.strip_suffix(END)?);
    (!device.is_empty()).then_some(Note { indent: line.len() - content.len(), mark, device, about })
}

/// Splits the name of a device from the end of a note.
fn split(text: &str) -> (&str, About) {
    let parts = || {
        let (device, tail) = text.rsplit_once(", ")?;
        let count = |text: &str| {
            let (number, unit) = text.split_once(' ')?;
            let number: usize = number.parse().ok()?;
            (unit == if number == 1 { "line" } else { "lines" }).then_some(number)
        };
        let about = match tail {
            "as a field" => About::Field { lines: 1 },
            "in other words" => About::Words,
            _ => match tail.strip_suffix(" as a field") {
                Some(lines) => About::Field { lines: count(lines)? },
                None => {
                    let (below, above) = tail.strip_suffix(" above")?.split_once(" for the ")?;
                    About::Lines { above: above.parse().ok()?, below: count(below)? }
                }
            },
        };
        Some((device, about))
    };
    parts().unwrap_or((text, About::Lines { above: 1, below: 1 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let abouts = [
            About::Lines { above: 1, below: 1 },
            About::Lines { above: 0, below: 2 },
            About::Lines { above: 12, below: 1 },
            About::Field { lines: 1 },
            About::Field { lines: 4 },
            About::Words,
        ];
        let names = [
            "laptop",
            "the desk, at home",
            "x, as a field",
            "x, in other words",
            "x, 2 lines for the 3 above",
            ":]",
            ", 1 line as a field",
            "[",
        ];
        for about in abouts {
            for name in names {
                for mark in [Mark::Quote, Mark::Comment] {
                    let line = format!("  {}\r\n", write(mark, name, about));
                    assert_eq!(read(&line), Some(Note { indent: 2, mark, device: name, about }), "{line}");
                }
            }
        }
        assert_eq!(
            write(Mark::Quote, "laptop", About::Lines { above: 3, below: 2 }),
            "> [also, from laptop, 2 lines for the 3 above:]"
        );
        for no in [
            "",
            ">",
            "é",
            "> [also, from :]",
            "> [also, from laptop]",
            "- [also, from laptop:]",
            "> also, from laptop:",
            "> > [also, from laptop:]",
            "text > [also, from laptop:]",
        ] {
            assert_eq!(read(no), None, "{no}");
        }
    }
}
