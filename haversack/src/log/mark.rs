//! A mark of a whole state that moves with every change and does not depend on their order.

use std::error::Error as StdError;
use std::fmt;

use haversack_store::Locator;

use super::files::Content;
use crate::ids::{ContentHash, spelled_in_hex};

/// The mark of a state: equal states have equal marks, and different ones do not by accident.
///
/// For each file the BLAKE3 hash of its key, a zero byte and its content's hash is taken as four numbers, and these are added up, so a file is
/// added or removed in constant time. The mark detects mistakes and damage. It is no protection against an attacker who may write to the
/// log: such an attacker could forge sums with effort, but could also simply write another state.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateMark([u64; 4]);

impl StateMark {
    /// The number of bytes.
    pub const BYTES: usize = 32;

    /// Returns the mark of no files.
    pub const fn empty() -> StateMark {
        StateMark([0; 4])
    }

    /// Adds a file.
    pub fn add(&mut self, locator: &Locator, content: &ContentHash) {
        self.add_key(locator.as_str(), content);
    }

    /// Takes a file away that was added.
    pub fn remove(&mut self, locator: &Locator, content: &ContentHash) {
        self.remove_key(locator.as_str(), content);
    }

    /// Adds a file whose name may be odd.
    pub(super) fn add_key(&mut self, key: &str, content: &ContentHash) {
        self.combine(key, content, u64::wrapping_add);
    }

    /// Takes a file away whose name may be odd.
    pub(super) fn remove_key(&mut self, key: &str, content: &ContentHash) {
        self.combine(key, content, u64::wrapping_sub);
    }

    fn combine(&mut self, key: &str, content: &ContentHash, how: fn(u64, u64) -> u64) {
        let file = [key.as_bytes(), &[0], &content.to_bytes()].concat();
        let file = StateMark::from_bytes(*blake3::hash(&file).as_bytes());
        for (lane, number) in self.0.iter_mut().zip(file.0) {
            *lane = how(*lane, number);
        }
    }

    /// Returns the mark with these bytes.
    pub fn from_bytes(bytes: [u8; StateMark::BYTES]) -> StateMark {
        let mut lanes = [0; 4];
        for (lane, bytes) in lanes.iter_mut().zip(bytes.chunks_exact(8)) {
            *lane = bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte));
        }
        StateMark(lanes)
    }

    /// Returns its bytes: each number with its lowest byte first.
    pub fn to_bytes(self) -> [u8; StateMark::BYTES] {
        let mut bytes = [0; StateMark::BYTES];
        for (bytes, lane) in bytes.chunks_exact_mut(8).zip(self.0) {
            bytes.copy_from_slice(&lane.to_le_bytes());
        }
        bytes
    }
}

spelled_in_hex!(StateMark, StateMark::BYTES);

/// The reason why a commit or a checkpoint does not fit the log: its author had another state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// An append extends something else than what is there.
    Base {
        /// The file, as it can be shown.
        key: String,
        /// The content that the append extends.
        base: Content,
        /// The present content.
        found: Option<Content>,
    },
    /// The state is another one than the author had.
    Mark {
        /// The author's.
        expected: StateMark,
        /// The found mark.
        found: StateMark,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Base { key, base, found } => {
                write!(f, "an append to \"{key}\" extends {}, and there is ", base.hash)?;
                match found {
                    Some(found) => write!(f, "{}", found.hash),
                    None => f.write_str("nothing"),
                }
            }
            Mismatch::Mark { expected, found } => {
                write!(f, "the state is {found}, and its author had {expected}")
            }
        }
    }
}

impl StdError for Mismatch {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(number: u8) -> (Locator, ContentHash) {
        // Few names and few contents, so that they meet.
        let locator = Locator::parse(&format!("{}.md", number % 5)).expect("valid");
        (locator, ContentHash::of(&[number / 5 % 3]))
    }

    #[test]
    fn the_mark_of_one_file_is_the_hash_of_its_name_and_content() {
        let (locator, content) = file(0);
        let mut mark = StateMark::empty();
        assert_eq!(mark.to_string(), "0".repeat(64));
        mark.add(&locator, &content);
        let hash = ContentHash::of(&[b"0.md\0", &content.to_bytes()[..]].concat());
        assert_eq!(mark.to_string(), hash.to_string());
        mark.remove(&locator, &content);
        assert_eq!(mark, StateMark::empty());
    }

    proptest! {
        #[test]
        fn order_does_not_matter(numbers in proptest::collection::vec(0_u8..15, 0..12), split in 0_usize..12) {
            let mark = |numbers: &[u8]| {
                let mut mark = StateMark::empty();
                for (locator, content) in numbers.iter().map(|number| file(*number)) {
                    mark.add(&locator, &content);
                }
                mark
            };
            let split = split.min(numbers.len());
            let turned = [&numbers[split..], &numbers[..split]].concat();
            prop_assert_eq!(mark(&numbers), mark(&turned));
            let mut rest = mark(&numbers);
            for (locator, content) in numbers[..split].iter().map(|number| file(*number)) {
                rest.remove(&locator, &content);
            }
            prop_assert_eq!(rest, mark(&numbers[split..]));
            let (mut one, mut two) = (numbers.clone(), turned);
            one.sort_unstable();
            two.truncate(split);
            two.sort_unstable();
            prop_assert_eq!(one == two, mark(&one) == mark(&two));
        }

        #[test]
        fn a_mark_survives_storing(bytes: [u8; 32]) {
            let mark = StateMark::from_bytes(bytes);
            prop_assert_eq!(mark.to_bytes(), bytes);
            prop_assert_eq!(mark.to_string().parse(), Ok(mark));
            let json = serde_json::to_string(&mark).expect("prints");
            prop_assert_eq!(serde_json::from_str::<StateMark>(&json).expect("reads"), mark);
        }
    }
}
