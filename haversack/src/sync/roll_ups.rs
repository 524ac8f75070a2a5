//! Keeps the sources of a roll-up in the store until the roll-up is sent. Pure.
//!
//! A tidy adds a file's lines to a roll-up and deletes the file. The roll-up can then stay on this device: the gate holds it back, because somebody typed a secret
//! into it, or another writer's commit has to go first. The deletion must not leave before the roll-up, or the store would have neither.
//!
//! 1. A roll-up or decision log is a file below a directory `compacted`.
//! 2. Its sources have a day, week, month or year in their name and lie below the directory that has this `compacted`.
//! 3. As long as one such roll-up is changed here and not sent, the deletion of every possible source waits. It is derived again by the next sync.
//! 4. So does a change of a possible source that takes lines out of it: a program that made the file again, after the tidy deleted it, overwrites the lines in the store.
//! 5. Roll-ups are sources too, of roll-ups of longer periods alone. So longer ones are sent first ([`rank`]), and no two wait for each other.
//!
//! Example: `compacted/2026-W46.md` is held back. The deletion of `interactions/2026-11-09.jsonl` waits, that of `notes/port.md` leaves.

use std::collections::HashMap;

use haversack_store::Locator;

use super::Hold;
use super::planted::{Planted, has};
use crate::day::Period;

/// The directory of roll-ups, beside their sources.
const COMPACTED: &str = "compacted";

/// Returns the directory whose files are rolled up into this one; `None` if this is no roll-up and no decision log.
pub(super) fn place(locator: &Locator) -> Option<Locator> {
    let mut above = locator.parent();
    let mut place = None;
    while let Some(directory) = above {
        above = directory.parent();
        if directory.name() == COMPACTED && !directory.is_root() {
            place = Some(above.clone().unwrap_or_else(Locator::root));
        }
    }
    place
}

/// Returns true if a file's name has a date, so that a tidy can have rolled it up.
pub(super) fn is_dated(locator: &Locator) -> bool {
    Period::of_name(locator.name()).is_some() || Period::of_plain_week(locator.name()).is_some()
}

/// Returns true if a deletion waits for one of these roll-ups, which are not sent yet.
pub(super) fn is_source_of<'a>(deleted: &Locator, unsent: impl IntoIterator<Item = &'a Locator>) -> bool {
    let is_above = |roll_up: &Locator| place(roll_up).is_some_and(|place| deleted.is_within(&place));
    is_dated(deleted) && !has(Planted::SourcesLeaveFirst) && unsent.into_iter().any(is_above)
}

/// Returns the order in which changed files are sent: decision logs, roll-ups of years, of months, of weeks, all other files.
pub(super) fn rank(locator: &Locator) -> usize {
    match (place(locator), Period::of_name(locator.name())) {
        (None, _) => 4,
        (Some(_), _) if locator.parent().is_some_and(|parent| parent.name() != COMPACTED) => 0,
        (Some(_), Some(Period::Year(_))) => 1,
        (Some(_), Some(Period::Month { .. })) => 2,
        (Some(_), Some(Period::Day(_) | Period::Week { .. }) | None) => 3,
    }
}

/// Returns true if one text has every line of another, as often as that has it.
pub(super) fn has_all_lines(before: &[u8], after: &[u8]) -> bool {
    if after.starts_with(before) {
        return true;
    }
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for line in after.split(|byte| *byte == b'\n') {
        *counts.entry(line).or_default() += 1;
    }
    let mut lines = before.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.all(|line| {
        counts.get_mut(line).and_then(|count| count.checked_sub(1).map(|fewer| *count = fewer)).is_some()
    })
}

/// Returns the hold on a change that takes lines out of a possible source.
pub(super) fn hold_of_source() -> Hold {
    Hold::whole("lines that this change removes can be in a roll-up that stays on this machine")
}

/// Adds to a hold on a roll-up what becomes of its sources.
pub(super) fn with_sources(hold: Hold) -> Hold {
    let why = format!("{}. The files that it was made from stay on other machines until then", hold.why);
    Hold { why, ..hold }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> Locator {
        Locator::parse(name).expect("a locator")
    }

    #[test]
    fn sources_are_dated_files_below_the_directory_of_the_roll_up() {
        let waits = |deleted: &str, unsent: &str| is_source_of(&at(deleted), [&at(unsent)]);
        for source in ["interactions/2026-11-09.jsonl", "compacted/2026-W46.md", "compacted/2026-47.md"] {
            assert!(waits(source, "compacted/2026-11.md"), "{source}");
            assert!(waits(source, "compacted/log/2026-11-18.jsonl"), "{source}");
            assert!(!waits(source, "lighthouse/compacted/2026-11.md"), "{source}");
            assert!(!waits(source, "notes/2026-11.md"), "{source}");
        }
        assert!(waits("lighthouse/session_digest_2026-11-09.md", "lighthouse/compacted/2026-W46.md"));
        assert!(!waits("notes/port.md", "compacted/2026-11.md"));
        assert!(!waits("interactions/2026-11-09.jsonl", "compacted"));
    }

    #[test]
    fn longer_roll_ups_are_sent_first() {
        let order = [
            "compacted/log/2026-11-18.jsonl",
            "compacted/2026.md",
            "compacted/2026-11.md",
            "compacted/2026-W46.md",
            "a.md",
        ];
        assert_eq!(order.map(|name| rank(&at(name))), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn lines_that_left_are_found() {
        for (before, after, all) in [
            ("a\nb\n", "a\nb\nc\n", true),
            ("a\nb\n", "b\nnew\na\n", true),
            ("a\na\n", "a\n", false),
            ("a\n\n", "a", true),
            ("a\n", "", false),
        ] {
            assert_eq!(has_all_lines(before.as_bytes(), after.as_bytes()), all, "{before:?} {after:?}");
        }
    }
}
