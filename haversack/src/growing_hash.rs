//! The hash of a content that grows: it takes in more bytes without the earlier ones.
//!
//! BLAKE3 hashes a tree of chunks. We keep the values of the complete subtrees, the largest first, and the bytes of the last chunk.
//!
//! Example: of a content of 3,500 bytes we keep the value of the first two chunks (2,048 bytes), the value of the third chunk (1,024 bytes), and the
//! last 428 bytes.

use blake3::Hasher;
use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, max_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};
use serde::{Deserialize, Serialize};

use crate::ids::ContentHash;

const CHUNK: usize = blake3::CHUNK_LEN;

/// The hash of a content that grows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrowingHash {
    /// The complete subtrees: the number of bytes of each, a power of two, and its value.
    subtrees: Vec<(u64, ChainingValue)>,
    /// The bytes after them. The last chunk is never complete in the tree, because it may be the root.
    rest: Vec<u8>,
}

impl GrowingHash {
    /// Returns the hash of a content.
    pub(crate) fn of(bytes: &[u8]) -> GrowingHash {
        let mut hash = GrowingHash::default();
        hash.extend(bytes);
        hash
    }

    /// Takes in more bytes.
    pub(crate) fn extend(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.rest.len() == CHUNK {
                let chunk = std::mem::take(&mut self.rest);
                self.push(&chunk);
            }
            if self.rest.is_empty() && bytes.len() > CHUNK {
                let (subtree, more) = bytes.split_at(self.next_subtree(bytes.len()));
                self.push(subtree);
                bytes = more;
                continue;
            }
            let (taken, more) = bytes.split_at(bytes.len().min(CHUNK - self.rest.len()));
            self.rest.extend_from_slice(taken);
            bytes = more;
        }
    }

    /// Returns the content's hash so far.
    pub(crate) fn content_hash(&self) -> ContentHash {
        let Some(((_, first), later)) = self.subtrees.split_first() else {
            return ContentHash::of(&self.rest);
        };
        let mut value = self.value_of(&self.rest);
        for (_, left) in later.iter().rev() {
            value = merge_subtrees_non_root(left, &value, Mode::Hash);
        }
        ContentHash::from_bytes(*merge_subtrees_root(first, &value, Mode::Hash).as_bytes())
    }

    fn complete_bytes(&self) -> u64 {
        self.subtrees.iter().map(|(length, _)| length).sum()
    }

    /// Returns the length of the largest subtree that may come next and leaves a byte over: only then it cannot be the root.
    fn next_subtree(&self, available: usize) -> usize {
        let fits = (available - 1).checked_ilog2().map_or(CHUNK, |log| 1 << log);
        let may = max_subtree_len(self.complete_bytes()).and_then(|length| usize::try_from(length).ok());
        may.map_or(fits, |length| length.min(fits))
    }

    fn value_of(&self, bytes: &[u8]) -> ChainingValue {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(self.complete_bytes());
        hasher.update(bytes);
        hasher.finalize_non_root()
    }

    fn push(&mut self, bytes: &[u8]) {
        let mut subtree = (bytes.len() as u64, self.value_of(bytes));
        while let Some((_, left)) = self.subtrees.pop_if(|(length, _)| *length == subtree.0) {
            subtree = (subtree.0 * 2, merge_subtrees_non_root(&left, &subtree.1, Mode::Hash));
        }
        self.subtrees.push(subtree);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_hash_is_the_hash_of_all_bytes() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|number| (number * 7 % 251) as u8).collect();
        for size in [0, 1, 1023, 1024, 1025, 2048, 2049, 3500, 4096, 5000, 65_536, 65_537, 70_000] {
            assert_eq!(
                GrowingHash::of(&bytes[..size]).content_hash(),
                ContentHash::of(&bytes[..size]),
                "{size}"
            );
            for step in [1, 100, 1024, 3000, 40_000] {
                let mut hash = GrowingHash::of(&bytes[..size]);
                let end = (size + 3 * step).min(bytes.len());
                for part in bytes[size..end].chunks(step) {
                    hash.extend(part);
                }
                assert_eq!(hash.content_hash(), ContentHash::of(&bytes[..end]), "{size} and steps of {step}");
                let text = serde_json::to_string(&hash).expect("it prints");
                assert_eq!(serde_json::from_str::<GrowingHash>(&text).expect("it reads"), hash);
            }
        }
    }
}
