//! Blank lines, which part what stands around them and say nothing.
//!
//! One is like another, so merged as lines they are taken for each other: where one side removed the last paragraph and the other
//! wrote one behind it, theirs would add up. In the texts of memories they are left out of the merge and put back afterwards, as many as
//! a side has between the same two lines; between lines that were no neighbours, one if either was the end of a paragraph.

use std::borrow::Cow;

use super::note;
use super::numbers::NumberMap;
use super::texts::Numbering;

/// Returns a text without its blank lines, borrowed if it has none.
pub(super) fn left_out(text: &str) -> Cow<'_, str> {
    let is_blank = |line: &str| line.trim().is_empty();
    match text.split_inclusive('\n').any(is_blank) {
        true => Cow::Owned(text.split_inclusive('\n').filter(|line| !is_blank(line)).collect()),
        false => Cow::Borrowed(text),
    }
}

/// Puts blank lines back into a merged text that has none.
pub(super) fn put_back(merged: &str, base: &str, sides: [&str; 2]) -> String {
    let mut lines = Numbering::default();
    assert_eq!(lines.number(""), NOTHING, "the first number");
    let [base, first, second] = [base, sides[0], sides[1]].map(|text| Gaps::of(text, &mut lines));
    let mut text = String::with_capacity(merged.len() + merged.len() / 8);
    let mut above = ("", NOTHING);
    lines.begin();
    for line in merged.split_inclusive('\n').chain([""]) {
        let content = line.trim_end();
        let number = lines.number(content);
        let pair = (above.1, number);
        let gap = match (first.between(pair), second.between(pair)) {
            (Some(one), Some(other)) if base.between(pair) == Some(one) => other,
            (Some(one), Some(other)) if base.between(pair) == Some(other) => one,
            (Some(one), Some(other)) => one.max(other),
            (Some(gap), None) | (None, Some(gap)) => gap,
            (None, None) if line.is_empty() || above.0.is_empty() => 0,
            // A note belongs to the text above and below it.
            (None, None) if [above.0, content].iter().any(|line| note::read(line).is_some()) => 0,
            (None, None) => {
                let parts = |side: &Gaps| side.is_end(above.1) || side.is_start(number);
                u32::from(parts(&first) || parts(&second))
            }
        };
        text.extend(std::iter::repeat_n('\n', gap as usize));
        text.push_str(line);
        above = (content, number);
    }
    text
}

/// Stands for the space above the first line and below the last.
const NOTHING: u32 = 0;

/// The blank lines of a text.
#[derive(Default)]
struct Gaps {
    /// The number between a line and the next line that is not blank; nothing is above the first and below the last.
    below: Vec<Option<(u32, u32)>>,
    /// The number between a line that occurs more than once and its other next lines.
    also_below: NumberMap<(u32, u32), u32>,
    /// Tells for each line if it ends a paragraph, and if it begins one.
    parts: Vec<(bool, bool)>,
}

impl Gaps {
    fn of<'a>(text: &'a str, lines: &mut Numbering<&'a str>) -> Gaps {
        let mut gaps = Gaps::default();
        let (mut above, mut gap) = (NOTHING, 0);
        lines.begin();
        for line in text.lines().map(str::trim_end) {
            if line.is_empty() {
                gap += 1;
                continue;
            }
            let number = lines.number(line);
            gaps.add(above, gap, number);
            (above, gap) = (number, 0);
        }
        gaps.add(above, gap, NOTHING);
        gaps
    }

    fn add(&mut self, above: u32, gap: u32, below: u32) {
        let most = above.max(below) as usize + 1;
        if self.below.len() < most {
            self.below.resize(most, None);
            self.parts.resize(most, (false, false));
        }
        let widest = match &mut self.below[above as usize] {
            Some((other, widest)) if *other == below => widest,
            Some(_) => self.also_below.entry((above, below)).or_default(),
            free @ None => &mut free.insert((below, 0)).1,
        };
        *widest = gap.max(*widest);
        if gap > 0 {
            self.parts[above as usize].0 = true;
            self.parts[below as usize].1 = true;
        }
    }

    /// Returns how many are between two lines, if they are neighbours without them.
    fn between(&self, (above, below): (u32, u32)) -> Option<u32> {
        match self.below.get(above as usize).copied().flatten()? {
            (other, gap) if other == below => Some(gap),
            _ => self.also_below.get(&(above, below)).copied(),
        }
    }

    fn is_end(&self, line: u32) -> bool {
        self.parts.get(line as usize).is_some_and(|(is_end, _)| *is_end)
    }

    fn is_start(&self, line: u32) -> bool {
        self.parts.get(line as usize).is_some_and(|(_, is_start)| *is_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_come_back_where_they_were() {
        let text = "a\n\n\nb\nc\n\n";
        assert_eq!(left_out(text), "a\nb\nc\n");
        assert_eq!(put_back("a\nb\nc\n", text, [text, text]), text);
        assert_eq!(put_back("a\nb\nc\n", text, ["a\nb\nc\n", text]), "a\nb\nc\n", "a side took them out");
        assert_eq!(
            put_back("a\nx\ny\nb\n", "a\n\nb\n", ["a\n\nx\n\nb\n", "a\n\ny\n\nb\n"]),
            "a\n\nx\n\ny\n\nb\n"
        );
        assert_eq!(put_back("a\nx\ny\nb\n", "a\nb\n", ["a\nx\nb\n", "a\ny\nb\n"]), "a\nx\ny\nb\n");
        assert_eq!(
            put_back("a\n> [also, from laptop:]\nb", "x\n", ["\na\n\nc\n", "\nb"]),
            "\na\n> [also, from laptop:]\nb"
        );
    }
}
