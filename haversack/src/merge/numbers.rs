//! Maps and sets by numbers of our own.
//!
//! The numbers are given out one after the other in a merge, whatever the files say, so nobody can choose them to collide, and
//! hashing them need not be safe against that; the usual way takes longer than everything else that is done to an element.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map by numbers of our own.
pub(super) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A set of numbers of our own.
pub(super) type NumberSet<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// Spreads numbers that follow each other.
#[derive(Clone, Copy, Default)]
pub(super) struct NumberHasher {
    state: u64,
}

impl NumberHasher {
    fn add(&mut self, number: u64) {
        self.state = (self.state.rotate_left(26) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.state ^ (self.state >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.add(number.cast_unsigned() as u64);
    }
}
