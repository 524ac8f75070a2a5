//! Conflicts of merges are found, and resolving one touches nothing else.

use std::collections::BTreeSet;

use haversack::conflict::{Keep, find, settle};
use haversack::merge::Rule;
use haversack::store::Locator;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestCaseResult};

use super::super::super::both;
use super::super::{config, is_in_order};
use super::{CALLBACKS, COMMITMENTS, Edits, Fate, INDEX, Style, fate};

/// Settles everything in a text, and checks that nothing else is touched.
pub(super) fn settled(locator: &Locator, text: &str, keep: Keep) -> Result<String, TestCaseError> {
    let is_note = |line: &&str| line.contains(" [also, from ");
    let notes = |text: &str| text.lines().filter(is_note).count();
    let speaking = |line: &str| Some(line.trim().to_owned()).filter(|line| !line.is_empty());
    let mut now = text.to_owned();
    while let Some(conflict) = find(locator, &now).into_iter().next() {
        let next = settle(&now, &conflict, keep).expect("at least two passages");
        let is_of_it = |line: usize| {
            let mut places = conflict.passages.iter().filter_map(|passage| passage.lines);
            places.any(|lines| (lines.first..=lines.last).contains(&line))
        };
        let others = now.lines().zip(1..).filter(|(line, number)| !is_note(line) && !is_of_it(*number));
        let others: Vec<String> = others.filter_map(|(line, _)| speaking(line)).collect();
        let lines: Vec<String> = next.lines().filter_map(speaking).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        prop_assert!(is_in_order(&others, &lines), "{:?} in\n{}\nbecame\n{}", keep, now, next);
        prop_assert!(notes(&next) < notes(&now), "{:?} in\n{}\nbecame\n{}", keep, now, next);
        now = next;
    }
    Ok(now)
}

/// A style that says nothing about the file.
const PLAIN: Style = Style { crlf: false, below_heading: false, ended: true };

/// Two devices that reword the same, and those that do not: base, laptop, desktop, and each without what the other rewords as well.
fn reworded(write: impl Fn(&[Fate], &str) -> String, fates: &[(Fate, Fate)]) -> [String; 5] {
    let both = |(one, other): &(Fate, Fate)| (*one, *other) == (Fate::Reworded, Fate::Reworded);
    let side = |own: fn(&(Fate, Fate)) -> Fate| -> Vec<Fate> { fates.iter().map(own).collect() };
    let kept = |own: fn(&(Fate, Fate)) -> Fate| -> Vec<Fate> {
        fates.iter().map(|fates| if both(fates) { Fate::Kept } else { own(fates) }).collect()
    };
    [
        write(&vec![Fate::Kept; fates.len()], "b"),
        write(&side(|fates| fates.0), "l"),
        write(&side(|fates| fates.1), "d"),
        write(&kept(|fates| fates.0), "l"),
        write(&kept(|fates| fates.1), "d"),
    ]
}

/// Checks that to keep what one device wrote is to merge as if the other had not.
fn check_keeping(
    name: &str,
    rule: Rule,
    [base, laptop, desktop, laptop_less, desktop_less]: &[String; 5],
) -> TestCaseResult {
    let locator = Locator::parse(name).expect("a locator");
    let merge = |laptop: &str, desktop: &str| {
        let merged = both(rule, Some(base.as_bytes()), laptop.as_bytes(), desktop.as_bytes());
        String::from_utf8(merged.bytes.to_vec()).expect("text")
    };
    for (word, expected) in [("wlb", merge(laptop, desktop_less)), ("wdb", merge(laptop_less, desktop))] {
        let mut text = merge(laptop, desktop);
        while let Some(conflict) = find(&locator, &text).into_iter().next() {
            let number = conflict.passages.iter().position(|passage| passage.text.contains(word));
            let keep = Keep::Passage(number.expect("each has its words") + 1);
            text = settle(&text, &conflict, keep).expect("it is there");
        }
        prop_assert_eq!(text, expected, "{}", word);
    }
    Ok(())
}

/// Checks that each thing which several of three devices reworded is one conflict with a passage of each.
fn check_piles(
    name: &str,
    rule: Rule,
    write: fn(usize, &str) -> String,
    reworded: &[[bool; 3]],
) -> TestCaseResult {
    let locator = Locator::parse(name).expect("a locator");
    let word = |number: usize, device: usize| format!("w{device}b{number}");
    let side = |device: Option<usize>| -> String {
        let word = |number: usize| match device.filter(|device| reworded[number][*device]) {
            Some(device) => word(number, device),
            None => format!("wb{number}"),
        };
        (0..reworded.len()).map(|number| write(number, &word(number))).collect()
    };
    let base = side(None);
    let merge = |one: &[u8], other: &[u8]| both(rule, Some(base.as_bytes()), one, other).bytes;
    let [first, second, third] = [0, 1, 2].map(|device| side(Some(device)));
    let merged = merge(&merge(first.as_bytes(), second.as_bytes()), third.as_bytes());
    let text = std::str::from_utf8(&merged).expect("text");
    let conflicts = find(&locator, text);
    let mut expected =
        reworded.iter().zip(0..).filter(|(devices, _)| devices.iter().filter(|is| **is).count() > 1);
    for conflict in &conflicts {
        let (devices, number) = expected.next().expect("no more than were reworded");
        let words: BTreeSet<String> =
            (0..3).filter(|device| devices[*device]).map(|device| word(number, device)).collect();
        let passages = conflict
            .passages
            .iter()
            .map(|passage| words.iter().filter(|word| passage.text.contains(*word)).collect());
        let passages: Vec<Vec<&String>> = passages.collect();
        prop_assert!(passages.iter().all(|words| words.len() == 1), "{:?} of\n{}", passages, text);
        prop_assert_eq!(
            passages.concat().into_iter().collect::<BTreeSet<_>>(),
            words.iter().collect(),
            "{}",
            text
        );
        for (keep, word) in (1..).zip(passages.concat()) {
            let next = settle(text, conflict, Keep::Passage(keep)).expect("it is there");
            let left = find(&locator, &next).len();
            prop_assert_eq!(left + 1, conflicts.len(), "{}", next);
            prop_assert!(next.contains(&write(number, word)), "{} in\n{}", word, next);
        }
    }
    prop_assert_eq!(expected.next(), None, "{}", text);
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn to_keep_one_passage_is_to_undo_the_other(fates in vec((fate(), fate()), 0..6)) {
        for list in [INDEX, CALLBACKS, COMMITMENTS] {
            let write = |fates: &[Fate], device: &str| {
                let edits = Edits { fates: fates.to_vec(), added: Vec::new(), is_reversed: false, style: PLAIN };
                list.write(&edits.apply(fates.len(), device), PLAIN)
            };
            check_keeping(list.name, list.rule, &reworded(write, &fates))?;
        }
    }

    #[test]
    fn what_three_devices_reword_is_one_conflict(reworded in vec([any::<bool>(), any::<bool>(), any::<bool>()], 0..5)) {
        let text = |number: usize, word: &str| format!("Paragraph {word} stands.\nLine {number} is always there.\n");
        let entry = |number: usize, word: &str| format!("- [Note](n{number}.md) — {word}\n");
        let promise = |number: usize, word: &str| format!("- [c-{number}] Paint {word}\n");
        check_piles("lamp.md", Rule::Prose, text, &reworded)?;
        check_piles("MEMORY.md", Rule::Index, entry, &reworded)?;
        check_piles("running_commitments.md", Rule::Commitments, promise, &reworded)?;
    }
}
