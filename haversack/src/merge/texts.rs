//! Maps and sets by texts of files.
//!
//! A merge spends most of its time on comparing texts: it looks up every line, item and key at least once. The usual hasher
//! resists attacks and takes several times as long on short texts. This one has different keys in every process, too. An attacker who
//! finds colliding texts makes a merge slow, and nothing else: no result depends on the order in a map.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// A map by texts.
pub(super) type TextMap<K, V> = HashMap<K, V, RandomState>;

/// A set of texts.
pub(super) type TextSet<K> = HashSet<K, RandomState>;

/// Returns where two characters of ASCII stand next to each other for the last time. Lines are short, and a search for words costs more to begin.
pub(super) fn last_pair(text: &str, pair: [u8; 2]) -> Option<usize> {
    text.as_bytes().array_windows().rposition(|window| *window == pair)
}

/// Numbers for what texts say, given out one after the other: the same for the same, in one merge.
///
/// Texts that are merged say most of it in the same order. So what came behind something before is compared with what comes behind it now,
/// and most of it is not looked up.
pub(super) struct Numbering<K> {
    keys: Vec<K>,
    /// The numbers of the keys, by hash. Hashes are not kept: in a merge of many short texts most of the time goes into fetching memory.
    numbers: HashTable<u32>,
    hasher: RandomState,
    /// The number that came first, and the number after each key, at the last use.
    behind: Vec<u32>,
    /// The number after the present one.
    at: usize,
}

/// Nothing has that number.
const NOBODY: u32 = u32::MAX;

impl<K> Default for Numbering<K> {
    fn default() -> Numbering<K> {
        Numbering {
            keys: Vec::new(),
            numbers: HashTable::new(),
            hasher: RandomState::default(),
            behind: vec![NOBODY],
            at: 0,
        }
    }
}

impl<K: Eq + Hash> Numbering<K> {
    /// Goes to the beginning of the next text.
    pub(super) fn begin(&mut self) {
        self.at = 0;
    }

    /// Goes to the beginning of the next text, which has so many of them, and makes room for those.
    pub(super) fn begin_with(&mut self, keys: usize) {
        self.begin();
        let more = keys.saturating_sub(self.keys.len());
        let (known, hasher) = (&self.keys, &self.hasher);
        self.numbers.reserve(more, |number| hasher.hash_one(&known[*number as usize]));
        self.keys.reserve(more);
        self.behind.reserve(more);
    }

    /// Returns the number of what comes next.
    pub(super) fn number(&mut self, key: K) -> u32 {
        let guess = self.behind[self.at];
        let number = match self.keys.get(guess as usize) {
            Some(guessed) if *guessed == key => guess,
            _ => self.look_up(key),
        };
        self.behind[self.at] = number;
        self.at = number as usize + 1;
        number
    }

    fn look_up(&mut self, key: K) -> u32 {
        let Numbering { keys, numbers, hasher, behind, .. } = self;
        let is_key = |number: &u32| keys[*number as usize] == key;
        let rehash = |number: &u32| hasher.hash_one(&keys[*number as usize]);
        match numbers.entry(hasher.hash_one(&key), is_key, rehash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let number =
                    u32::try_from(keys.len()).expect("a file says fewer than four thousand million things");
                free.insert(number);
                keys.push(key);
                behind.push(NOBODY);
                number
            }
        }
    }

    /// Returns the numbered texts, in order, without the index.
    pub(super) fn into_keys(self) -> Vec<K> {
        self.keys
    }

    /// Returns how many numbers were given out.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_pairs_is_found() {
        for text in ["", "^", " ^", "a ^b ^c", "^ ^ ", "é ^é", " ^^", "a  b"] {
            assert_eq!(last_pair(text, *b" ^"), text.rfind(" ^"), "{text}");
        }
    }

    #[test]
    fn the_same_has_the_same_number() {
        let mut numbers = Numbering::default();
        let texts = ["a b a c", "a b a c", "x b c c a", "", "c a b a c y"];
        let numbered = texts.map(|text| {
            numbers.begin();
            text.split_whitespace().map(|word| (word, numbers.number(word))).collect::<Vec<_>>()
        });
        let all: HashMap<&str, u32> = numbered.iter().flatten().copied().collect();
        assert_eq!(numbered.iter().flatten().filter(|(word, number)| all[word] != *number).count(), 0);
        let mut given: Vec<u32> = all.into_values().collect();
        given.sort_unstable();
        assert_eq!((given, numbers.len()), ((0..5).collect(), 5));
    }
}
