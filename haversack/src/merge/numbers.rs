//! Maps and sets by numbers of our own.
//!
//! A merge gives the numbers out in sequence, independent of the files' content. So an attacker cannot choose them to collide, and
//! the hasher need not protect against that. The standard hasher takes longer than all other work on an element.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map by numbers of our own.
pub(super) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A set of numbers of our own.
pub(super) type NumberSet<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// Numbers by numbers of our own: a list where most of them are used, a map where few are.
pub(super) enum Table {
    List(Vec<Option<u32>>),
    Map(NumberMap<u32, u32>),
}

impl Table {
    /// Returns an empty table for some numbers.
    pub(super) fn of(keys: impl Iterator<Item = u32>) -> Table {
        let (mut count, mut length) = (0, 0);
        for key in keys {
            count += 1;
            length = length.max(key as usize + 1);
        }
        match length / 4 <= count {
            true => Table::List(vec![None; length]),
            false => Table::Map(NumberMap::with_capacity_and_hasher(count, BuildHasherDefault::new())),
        }
    }

    pub(super) fn get(&self, key: u32) -> Option<u32> {
        match self {
            Table::List(list) => list.get(key as usize).copied().flatten(),
            Table::Map(map) => map.get(&key).copied(),
        }
    }

    /// Sets the number of one of those that the table was made for.
    pub(super) fn set(&mut self, key: u32, number: u32) {
        match self {
            Table::List(list) => list[key as usize] = Some(number),
            Table::Map(map) => drop(map.insert(key, number)),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Table::List(list) => list.fill(None),
            Table::Map(map) => map.clear(),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_and_a_map_say_the_same() {
        let mut tables = [Table::of([0, 2, 3].into_iter()), Table::of([0, 2, 3, 9_000].into_iter())];
        assert!(matches!(tables, [Table::List(_), Table::Map(_)]));
        for table in &mut tables {
            table.set(2, 7);
            table.set(3, 1);
            table.set(2, 8);
            assert_eq!([0, 2, 3, 4, 10_000].map(|key| table.get(key)), [None, Some(8), Some(1), None, None]);
            table.clear();
            assert_eq!(table.get(2), None);
        }
    }
}
