//! Blank lines, which part what stands around them and say nothing.
//!
//! One is like another, so merged as lines they are taken for each other: where one side removed the last paragraph and the other
//! wrote one behind it, theirs would add up. In the texts of memories they are left out of the merge and put back afterwards, as many as
//! a side has between the same two lines; between lines that were no neighbours, one if either was the end of a paragraph.

use std::collections::{HashMap, HashSet};

use super::note;

/// Returns a text without its blank lines.
pub(super) fn left_out(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.trim().is_empty()).collect()
}

/// Puts blank lines back into a merged text that has none.
pub(super) fn put_back(merged: &str, base: &str, sides: [&str; 2]) -> String {
    let [base, first, second] = [base, sides[0], sides[1]].map(Gaps::of);
    let mut text = String::with_capacity(merged.len() + merged.len() / 8);
    let mut above = "";
    for line in merged.split_inclusive('\n').chain([""]) {
        let content = line.trim_end();
        let pair = (above, content);
        let gap = match (first.between.get(&pair), second.between.get(&pair)) {
            (Some(one), Some(other)) if base.between.get(&pair) == Some(one) => *other,
            (Some(one), Some(other)) if base.between.get(&pair) == Some(other) => *one,
            (Some(one), Some(other)) => *one.max(other),
            (Some(gap), None) | (None, Some(gap)) => *gap,
            (None, None) if line.is_empty() || above.is_empty() => 0,
            // A note belongs to what is above and below.
            (None, None) if [above, content].iter().any(|line| note::read(line).is_some()) => 0,
            (None, None) => {
                let parts = |side: &Gaps<'_>| side.ends.contains(above) || side.starts.contains(content);
                usize::from(parts(&first) || parts(&second))
            }
        };
        text.extend(std::iter::repeat_n('\n', gap));
        text.push_str(line);
        above = content;
    }
    text
}

/// Where the blank lines of a text are.
struct Gaps<'a> {
    /// How many are between two lines that are neighbours without them; nothing is above the first and below the last.
    between: HashMap<(&'a str, &'a str), usize>,
    /// The lines that end a paragraph.
    ends: HashSet<&'a str>,
    /// The lines that begin one.
    starts: HashSet<&'a str>,
}

impl<'a> Gaps<'a> {
    fn of(text: &'a str) -> Gaps<'a> {
        let mut gaps = Gaps { between: HashMap::new(), ends: HashSet::new(), starts: HashSet::new() };
        let (mut above, mut gap) = ("", 0);
        for line in text.lines().map(str::trim_end) {
            if line.is_empty() {
                gap += 1;
                continue;
            }
            gaps.add(above, gap, line);
            (above, gap) = (line, 0);
        }
        gaps.add(above, gap, "");
        gaps
    }

    fn add(&mut self, above: &'a str, gap: usize, below: &'a str) {
        let widest = self.between.entry((above, below)).or_default();
        *widest = gap.max(*widest);
        if gap > 0 {
            self.ends.insert(above);
            self.starts.insert(below);
        }
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
