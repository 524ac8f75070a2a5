//! Small things that programs remember: sets, one member to a line, and marks that only move forward.

use super::keyed::three_way_set;
use super::{Outcome, Part, moment};

/// Merges two sets.
pub(super) fn set(base: Option<&str>, sides: [Part<'_>; 2]) -> Outcome {
    let [base, first, second] = [base.unwrap_or_default(), sides[0].text, sides[1].text].map(members);
    let mut text = three_way_set(&base, [&first, &second]).join("\n");
    let is_ended = sides.iter().any(|side| side.text.is_empty() || side.text.ends_with('\n'));
    if is_ended && !text.is_empty() {
        text.push('\n');
    }
    Outcome { text, both_kept: false }
}

/// Returns the further of two marks.
pub(super) fn cursor(sides: [Part<'_>; 2]) -> Outcome {
    let [first, second] = sides.map(|side| side.text);
    let further = moment::compare(first, second).then_with(|| first.cmp(second));
    Outcome { text: if further.is_lt() { second } else { first }.to_owned(), both_kept: false }
}

fn members(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}
