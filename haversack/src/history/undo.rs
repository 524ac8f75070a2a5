//! Takes a change back and keeps what was edited later, pure.

use haversack_store::{Bytes, Locator};

use crate::merge::{Rule, Side, merge};

/// The content of a file after the undo of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// The content before the change; `None` if the file did not exist.
    Before(Option<Bytes>),
    /// The content before the change, merged with later edits.
    Mixed(Bytes),
    /// It stays as it is: nothing of the change is left in it, or what was edited since stands on it.
    Stays,
}

/// Decides the content of a file after the undo of a change from `before` to `after`; the file is `now`.
///
/// Later edits stay. If they touch the undone passage, both stay.
pub fn take_back(
    locator: &Locator,
    before: Option<&Bytes>,
    after: Option<&Bytes>,
    now: Option<&Bytes>,
) -> Undone {
    if before == after || now == before {
        return Undone::Stays;
    }
    if now == after {
        return Undone::Before(before.cloned());
    }
    match (before, after, now) {
        (Some(before), Some(after), Some(now)) => {
            let rule = Rule::of(locator, [&before[..], &after[..], &now[..]]);
            let ours = Side { bytes: now, device: "now" };
            let merged = merge(rule, Some(after), ours, Side { bytes: before, device: "before" });
            // Of what has no parts nothing can be taken back alone.
            if merged.copy.is_some() || merged.bytes == *now {
                Undone::Stays
            } else {
                Undone::Mixed(merged.bytes)
            }
        }
        // It was made by the change and edited since, deleted by it and made anew, or deleted since: later edits win.
        _ => Undone::Stays,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str) -> Option<Bytes> {
        (content != "-").then(|| Bytes::copy_from_slice(content.as_bytes()))
    }

    #[test]
    fn a_change_is_taken_back_and_later_edits_stay() {
        let before = |content: &str| Undone::Before(text(content));
        let mixed = |content: &str| Undone::Mixed(text(content).expect("a text"));
        let cases = [
            // before, after, now
            ("one\n", "two\n", "two\n", before("one\n")),
            ("-", "made\n", "made\n", before("-")),
            ("gone\n", "-", "-", before("gone\n")),
            ("one\n", "two\n", "one\n", Undone::Stays),
            ("one\n", "one\n", "three\n", Undone::Stays),
            ("-", "made\n", "made\n\nand edited\n", Undone::Stays),
            ("gone\n", "-", "new\n", Undone::Stays),
            ("one\n", "two\n", "-", Undone::Stays),
            (
                "# Ports\n\nstaging 1\n\nlive 9\n",
                "# Ports\n\nstaging 2\n\nlive 9\n",
                "# Ports\n\nstaging 2\n\nlive 9\n\nlater\n",
                mixed("# Ports\n\nstaging 1\n\nlive 9\n\nlater\n"),
            ),
        ];
        let locator = Locator::parse("ports.md").expect("valid");
        for (was, became, now, expected) in cases {
            let (was, became, now) = (text(was), text(became), text(now));
            let found = take_back(&locator, was.as_ref(), became.as_ref(), now.as_ref());
            assert_eq!(found, expected, "{was:?} {became:?} {now:?}");
        }
    }
}
