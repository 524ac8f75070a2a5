//! Maps and sets by texts of files.
//!
//! What a merge spends most of its time on is telling texts apart: every line, item and key is looked up at least once. The usual hasher
//! is made to withstand anybody and takes several times as long on short texts. This one multiplies, sixteen bytes at a
//! time, with keys that are other ones in every map and that nobody outside of the process knows. Who would find texts that collide all the
//! same makes a merge slow, and nothing else: no outcome depends on the order in a map.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map by texts.
pub(super) type TextMap<K, V> = HashMap<K, V, TextHashing>;

/// A set of texts.
pub(super) type TextSet<K> = HashSet<K, TextHashing>;

/// The keys of one map.
#[derive(Clone, Copy)]
pub(super) struct TextHashing {
    start: u64,
    key: u64,
}

impl Default for TextHashing {
    fn default() -> TextHashing {
        let random = RandomState::new();
        TextHashing { start: random.hash_one(0_u8), key: random.hash_one(1_u8) }
    }
}

impl BuildHasher for TextHashing {
    type Hasher = TextHasher;

    fn build_hasher(&self) -> TextHasher {
        TextHasher { state: self.start, key: self.key }
    }
}

/// A text that is being hashed.
pub(super) struct TextHasher {
    state: u64,
    key: u64,
}

impl TextHasher {
    fn add(&mut self, one: u64, other: u64) {
        let product = u128::from(one ^ self.state) * u128::from(other ^ self.key);
        // Both halves count: the upper one depends on all bits, the lower one on few.
        self.state = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for TextHasher {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((one, after)) = rest.split_first_chunk::<8>() {
            let Some((other, after)) = after.split_first_chunk::<8>() else { break };
            self.add(u64::from_le_bytes(*one), u64::from_le_bytes(*other));
            rest = after;
        }
        // What is left overlaps itself, so that it can be read in two pieces; its length tells what is meant.
        let (one, other) = match (rest.first_chunk::<8>(), rest.last_chunk::<8>()) {
            (Some(one), Some(other)) => (u64::from_le_bytes(*one), u64::from_le_bytes(*other)),
            _ => match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
                (Some(one), Some(other)) => {
                    (u64::from(u32::from_le_bytes(*one)), u64::from(u32::from_le_bytes(*other)))
                }
                _ => (rest.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)), 0),
            },
        };
        self.add(one, other ^ (bytes.len() as u64).rotate_left(32));
    }

    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number), 0);
    }

    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number), 0);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart() {
        let hashing = TextHashing::default();
        let mut hashes = HashSet::new();
        let letters = |letter: u8| (0..100).map(move |length| vec![letter; length]).skip(1);
        for text in letters(b'a').chain(letters(b'b')).chain(letters(0)).chain([Vec::new()]) {
            assert!(hashes.insert(hashing.hash_one(&text[..])), "{text:?}");
            assert_eq!(hashing.hash_one(&text[..]), hashing.hash_one(text));
        }
        let mut low_bits = HashSet::new();
        for number in 0..10_000 {
            assert!(hashes.insert(hashing.hash_one(format!("line {number}"))), "{number}");
            low_bits.insert(hashing.hash_one(format!("line {number}")) % 16_384);
        }
        assert!(low_bits.len() > 6_500, "they are spread: {}", low_bits.len());
    }
}
