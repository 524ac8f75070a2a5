//! Items to bring up in a later session: `carry_forward.md`. Pure.
//!
//! ```text
//! ## Pending
//! - 2026-11-18: ask how the release went
//!
//! ## Consumed
//! - 2026-11-17: thank the user for the review
//! ```
//!
//! The date below Pending is the day on which the item was added, the date below Consumed the day on which it was raised.

use crate::checklist::{Checklist, Found, find};
use crate::commitments::{Refusal, edited, fit};
use crate::day::Day;
use crate::document::Document;
use crate::merge::ItemParts;

/// The file in the directory of the memory.
pub const FILE: &str = "carry_forward.md";

const PENDING: &str = "Pending";
const CONSUMED: &str = "Consumed";

/// Something to bring up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedItem {
    /// Its words.
    pub text: String,
    /// When it was added, if the file says so.
    pub day: Option<Day>,
}

/// Returns what is pending.
pub fn pending(text: &str) -> Vec<CarriedItem> {
    let items = Checklist::of(Document::read(text).body).items(PENDING);
    let read = |parts: ItemParts<'_>| CarriedItem {
        text: format!("{}{}", parts.text.trim(), parts.below),
        day: parts.date.get(..10).and_then(|day| day.parse().ok()),
    };
    items.iter().map(|item| read(ItemParts::of(&item.text))).collect()
}

/// Returns the file with a new item; `template` is what a new file begins with.
pub fn add(text: Option<&str>, template: &str, thought: &str, day: Day) -> Result<String, Refusal> {
    let words = fit(thought)?;
    edited(text.unwrap_or(template), |checklist| {
        let is_there = matches!(find(&checklist.items(PENDING), &words, |_| None), Found::One(item)
            if ItemParts::of(&item.text).text.trim().eq_ignore_ascii_case(&words));
        if is_there {
            return Err(Refusal::Already);
        }
        checklist.add_last(PENDING, &format!("- {day}: {words}"));
        Ok(())
    })
}

/// Returns the file in which an item was raised, and its words. It is named by its words, some of them, or its number among the pending items.
pub fn consume(text: &str, wanted: &str, day: Day) -> Result<(String, String), Refusal> {
    let mut words = String::new();
    let text = edited(text, |checklist| {
        let items = checklist.items(PENDING);
        let by_number = wanted.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let item = match by_number
            .and_then(|at| items.get(at))
            .map_or_else(|| find(&items, wanted, |_| None), Found::One)
        {
            Found::One(item) => item.clone(),
            Found::Several => return Err(Refusal::Several),
            Found::Nothing => {
                let before = checklist.items(CONSUMED);
                let is_before = matches!(find(&before, wanted, |_| None), Found::One(_));
                return Err(if is_before { Refusal::Already } else { Refusal::NotFound });
            }
        };
        checklist.remove(&item);
        let ItemParts { bullet, checkbox, date: _, text, mark, id, below } = ItemParts::of(&item.text);
        let checkbox = if checkbox.is_empty() { "" } else { "[x] " };
        checklist.add_first(CONSUMED, &format!("{bullet}{checkbox}{day}: {text}{mark}{id}{below}"));
        words = text.trim().to_owned();
        Ok(())
    })?;
    Ok((text, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kinds;

    fn day(text: &str) -> Day {
        text.parse().expect("a day")
    }

    #[test]
    fn items_wait_and_are_consumed_once() {
        let template = Kinds::built_in().get("carry_forward").and_then(|kind| kind.template.clone());
        let template = template.expect("a template");
        let text = add(None, &template, "ask how the release went", day("2026-11-18")).expect("fits");
        let text =
            add(Some(&text), &template, "finish the talk about tides", day("2026-11-18")).expect("fits");
        assert_eq!(
            add(Some(&text), "", "Ask how the release went", day("2026-11-19")),
            Err(Refusal::Already)
        );
        let words: Vec<String> = pending(&text).into_iter().map(|item| item.text).collect();
        assert_eq!(words, ["ask how the release went", "finish the talk about tides"]);
        for wanted in ["1", "ask how the release went", "release"] {
            let (after, said) = consume(&text, wanted, day("2026-11-19")).expect(wanted);
            assert_eq!(said, "ask how the release went");
            let expected = "## Pending\n- 2026-11-18: finish the talk about tides\n\n## Consumed\n- 2026-11-19: ask how the release went\n";
            assert!(after.ends_with(expected), "{after}");
            assert_eq!(consume(&after, "the release went", day("2026-11-20")), Err(Refusal::Already));
        }
        assert_eq!(consume(&text, "9", day("2026-11-19")), Err(Refusal::NotFound));
    }
}
