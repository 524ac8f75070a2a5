//! Blank lines, which part what stands around them and say nothing.
//!
//! One is like another, so merged as lines they are taken for each other: where one side removed the last paragraph and the other
//! wrote one behind it, theirs would add up. In the texts of memories they are left out of the merge and put back afterwards, as many as
//! a side has between the same two lines; between lines that were no neighbours, one if either was the end of a paragraph.

use super::note;
use super::numbers::NumberMap;
use super::texts::TextMap;

/// Returns a text without its blank lines.
pub(super) fn left_out(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.trim().is_empty()).collect()
}

/// Puts blank lines back into a merged text that has none.
pub(super) fn put_back(merged: &str, base: &str, sides: [&str; 2]) -> String {
    let mut lines = Lines::default();
    let [base, first, second] = [base, sides[0], sides[1]].map(|text| Gaps::of(text, &mut lines));
    let mut text = String::with_capacity(merged.len() + merged.len() / 8);
    let mut above = ("", NOTHING);
    for line in merged.split_inclusive('\n').chain([""]) {
        let content = line.trim_end();
        let number = lines.number(content);
        let pair = (above.1, number);
        let gap = match (first.between.get(&pair), second.between.get(&pair)) {
            (Some(one), Some(other)) if base.between.get(&pair) == Some(one) => *other,
            (Some(one), Some(other)) if base.between.get(&pair) == Some(other) => *one,
            (Some(one), Some(other)) => *one.max(other),
            (Some(gap), None) | (None, Some(gap)) => *gap,
            (None, None) if line.is_empty() || above.0.is_empty() => 0,
            // A note belongs to what is above and below.
            (None, None) if [above.0, content].iter().any(|line| note::read(line).is_some()) => 0,
            (None, None) => {
                let parts = |side: &Gaps| side.is_end(above.1) || side.is_start(number);
                usize::from(parts(&first) || parts(&second))
            }
        };
        text.extend(std::iter::repeat_n('\n', gap));
        text.push_str(line);
        above = (content, number);
    }
    text
}

/// What is above the first line, and below the last.
const NOTHING: u32 = 0;

/// The lines of some texts, numbered.
struct Lines<'a> {
    numbers: TextMap<&'a str, u32>,
}

impl Default for Lines<'_> {
    fn default() -> Self {
        let mut numbers = TextMap::default();
        numbers.insert("", NOTHING);
        Lines { numbers }
    }
}

impl<'a> Lines<'a> {
    fn number(&mut self, line: &'a str) -> u32 {
        let next =
            u32::try_from(self.numbers.len()).expect("a file has fewer than four thousand million lines");
        *self.numbers.entry(line).or_insert(next)
    }
}

/// Where the blank lines of a text are.
#[derive(Default)]
struct Gaps {
    /// How many are between two lines that are neighbours without them; nothing is above the first and below the last.
    between: NumberMap<(u32, u32), usize>,
    /// Which lines end a paragraph, and which begin one.
    parts: Vec<(bool, bool)>,
}

impl Gaps {
    fn of<'a>(text: &'a str, lines: &mut Lines<'a>) -> Gaps {
        let mut gaps = Gaps::default();
        let (mut above, mut gap) = (NOTHING, 0);
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

    fn add(&mut self, above: u32, gap: usize, below: u32) {
        let widest = self.between.entry((above, below)).or_default();
        *widest = gap.max(*widest);
        if gap > 0 {
            let most = above.max(below) as usize + 1;
            if self.parts.len() < most {
                self.parts.resize(most, (false, false));
            }
            self.parts[above as usize].0 = true;
            self.parts[below as usize].1 = true;
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
