//! Cuts a Markdown text into sections and list items. Each part is a slice: put together again, the parts are the text.

use crate::day::Day;

/// A section: a heading of the second level and the lines below it. The first part of a text has no heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section<'a> {
    /// The text of the heading; `None` for the lines above the first heading.
    pub(super) title: Option<&'a str>,
    /// The heading's line.
    pub(super) heading: &'a str,
    /// The lines below it.
    pub(super) body: &'a str,
}

impl Section<'_> {
    /// Returns true if the heading begins with a name, in small or capital letters.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let start = self.title.and_then(|title| title.get(..name.len()));
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    }

    /// Returns the day with which the heading begins.
    pub(super) fn day(&self) -> Option<Day> {
        self.title?.get(..10)?.parse().ok()
    }
}

/// Cuts a text into its sections. Headings inside of code fences are text.
pub(super) fn sections(text: &str) -> Vec<Section<'_>> {
    let mut starts = vec![0];
    let mut at = 0;
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let mark = line.trim_start().get(..3).filter(|mark| *mark == "```" || *mark == "~~~");
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) if line.starts_with("## ") && at > 0 => starts.push(at),
            _ => {}
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| section(&text[*start..end])).collect()
}

fn section(text: &str) -> Section<'_> {
    if !text.starts_with("## ") {
        return Section { title: None, heading: "", body: text };
    }
    let (heading, body) = text.split_at(text.find('\n').map_or(text.len(), |end| end + 1));
    Section { title: Some(heading[3..].trim()), heading, body }
}

/// A list item with the indented lines below it, or a line that belongs to no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    pub(super) text: &'a str,
    pub(super) is_item: bool,
}

impl<'a> Chunk<'a> {
    /// Returns the first line of an item without its bullet.
    pub(super) fn words(&self) -> &'a str {
        without_bullet(self.text.lines().next().unwrap_or_default())
    }

    /// Returns true for an item that stands for nothing, as `- (none)`.
    pub(super) fn is_placeholder(&self) -> bool {
        let words = self.words().trim();
        words.is_empty() || words.starts_with('(') && words.ends_with(')')
    }
}

/// Cuts the lines below a heading into items and other lines.
pub(super) fn chunks(body: &str) -> Vec<Chunk<'_>> {
    let mut chunks: Vec<Chunk<'_>> = Vec::new();
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        let start = at;
        at += line.len();
        match chunks.last_mut() {
            Some(last) if last.is_item && line.starts_with([' ', '\t', '>']) && !line.trim().is_empty() => {
                let start = start - last.text.len();
                last.text = &body[start..at];
            }
            _ => chunks.push(Chunk { text: &body[start..at], is_item: is_bullet(line) }),
        }
    }
    chunks
}

fn is_bullet(line: &str) -> bool {
    without_bullet(line).len() != line.len()
}

fn without_bullet(line: &str) -> &str {
    let bullet = ["- ", "* ", "+ "].iter().find_map(|bullet| line.strip_prefix(bullet));
    let number = || {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        line[digits..].strip_prefix(". ").filter(|_| (1..=4).contains(&digits))
    };
    bullet.or_else(number).unwrap_or(line)
}

/// Returns the latest day that a text names, up to the day after `today`. Later days are plans or mistakes, and say nothing about the past.
pub(super) fn latest_day(text: &str, today: Day) -> Option<Day> {
    let bytes = text.as_bytes();
    let days = (0..bytes.len().saturating_sub(9)).filter_map(|at| {
        let is_start = bytes[at].is_ascii_digit() && (at == 0 || !bytes[at - 1].is_ascii_digit());
        if !is_start || bytes[at + 4] != b'-' { None } else { text.get(at..at + 10)?.parse::<Day>().ok() }
    });
    days.filter(|day| *day <= today.plus(1)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_put_together_are_the_text() {
        for text in [
            "",
            "## A\n",
            "top\n## A\n- a\n  more\n\n- b\ntext\n```\n## no heading\n```\n## B",
            "## 2026-11-18\r\n- a\r\n",
        ] {
            let again: String =
                sections(text).iter().map(|part| [part.heading, part.body].concat()).collect();
            assert_eq!(again, text);
            for section in sections(text) {
                let again: String = chunks(section.body).iter().map(|chunk| chunk.text).collect();
                assert_eq!(again, section.body);
            }
        }
        let text = "top\n## Retired / done\n- a\n  more\n1. b\n## 2026-11-18\n";
        let parts = sections(text);
        assert!(parts[1].is_named("retired") && !parts[1].is_named("active"));
        assert_eq!(parts[2].day(), "2026-11-18".parse().ok());
        let words: Vec<&str> = chunks(parts[1].body).iter().map(Chunk::words).collect();
        assert_eq!(words, ["a", "b"]);
    }

    #[test]
    fn latest_day_ignores_days_to_come() {
        let today: Day = "2026-11-18".parse().expect("a day");
        let latest = |text: &str| latest_day(text, today).map(|day| day.to_string());
        assert_eq!(latest("(2026-04-17, again 2026-05-01; due 2027-01-01)").as_deref(), Some("2026-05-01"));
        assert_eq!(latest("12026-04-17 2026-02-30 ü2026-0"), None);
    }
}
