//! Contents that were read or written a moment ago, with their hashes.
//!
//! A caller that replaces an object has nearly always just read or written it, and comparing a file with bytes
//! at hand costs a fraction of hashing it. This is a shortcut and nothing else: a content is known by all
//! of its bytes, never by its size or times, so every answer is the one that hashing would give.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::temp::Digest;
use crate::version::Version;

/// The most contents that are remembered.
const MAX_CONTENTS: usize = 16;

/// The most bytes that are remembered, of all contents together.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The largest content that is remembered: one large file must not drive out all small ones.
const MAX_CONTENT_BYTES: usize = 1024 * 1024;

/// A content and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HashedContent {
    pub(super) bytes: Bytes,
    pub(super) digest: Digest,
    pub(super) version: Version,
}

impl HashedContent {
    /// Returns what `bytes` are called.
    pub(super) fn by_hashing(bytes: Bytes) -> HashedContent {
        let hash = blake3::hash(&bytes);
        HashedContent { bytes, digest: Digest::from_hash(&hash), version: Version::new(hash.to_hex()) }
    }
}

/// The remembered contents.
///
/// Contents are shared with their readers and writers: one that is a part of a larger buffer keeps all
/// of that alive.
#[derive(Debug, Default)]
pub(super) struct Memo {
    recent: Mutex<RecentContents>,
}

/// Contents, last used last.
#[derive(Debug, Default)]
struct RecentContents {
    contents: VecDeque<(Outline, HashedContent)>,
    /// The size of all of them.
    bytes: usize,
}

/// A short key that tells most contents apart without reading their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outline {
    size: usize,
    start: [u8; OUTLINE_BYTES],
    end: [u8; OUTLINE_BYTES],
}

/// The number of bytes of each end in an outline.
const OUTLINE_BYTES: usize = 8;

impl Outline {
    fn of(bytes: &[u8]) -> Outline {
        Outline {
            size: bytes.len(),
            start: bytes.first_chunk().copied().unwrap_or_default(),
            end: bytes.last_chunk().copied().unwrap_or_default(),
        }
    }
}

impl Memo {
    fn recent(&self) -> MutexGuard<'_, RecentContents> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what `bytes` that were read are called, hashing them only if they are not remembered.
    ///
    /// Of those that look alike the one used last is compared: most often they are states of one file, and comparing
    /// with all of them costs more than hashing.
    pub(super) fn know(&self, bytes: Bytes) -> HashedContent {
        let outline = Outline::of(&bytes);
        // Others must not wait while contents are compared: only a reference is taken under the lock.
        let alike = {
            let recent = self.recent();
            recent.contents.iter().rev().find(|(other, _)| *other == outline).map(|(_, known)| known.clone())
        };
        alike.filter(|known| known.bytes == bytes).unwrap_or_else(|| HashedContent::by_hashing(bytes))
    }

    /// Returns the content called `version`, if it is remembered.
    pub(super) fn called(&self, version: &Version) -> Option<HashedContent> {
        let digest = Digest::from_version(version)?;
        let recent = self.recent();
        let mut contents = recent.contents.iter().rev().map(|(_, known)| known);
        contents.find(|known| known.digest == digest && known.version == *version).cloned()
    }

    /// Remembers a content that was just read or written, forgetting those that were not used for longest.
    pub(super) fn remember(&self, known: HashedContent) {
        if known.bytes.len() > MAX_CONTENT_BYTES {
            return;
        }
        let mut forgotten = Vec::new();
        let mut recent = self.recent();
        let there = recent.contents.iter().rposition(|(_, other)| other.digest == known.digest);
        forgotten.extend(there.and_then(|at| recent.take(at)));
        while recent.contents.len() >= MAX_CONTENTS || recent.bytes + known.bytes.len() > MAX_BYTES {
            forgotten.extend(recent.take(0));
        }
        recent.bytes += known.bytes.len();
        recent.contents.push_back((Outline::of(&known.bytes), known));
        drop(recent);
        // Last, because others must not wait while memory is given back.
        drop(forgotten);
    }
}

impl RecentContents {
    fn take(&mut self, at: usize) -> Option<HashedContent> {
        let (_, known) = self.contents.remove(at)?;
        self.bytes -= known.bytes.len();
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn remembered(memo: &Memo) -> (usize, usize) {
        let recent = memo.recent();
        assert_eq!(recent.bytes, recent.contents.iter().map(|(_, known)| known.bytes.len()).sum::<usize>());
        (recent.contents.len(), recent.bytes)
    }

    fn content(number: usize, size: usize) -> Bytes {
        let mut bytes = vec![b'.'; size];
        bytes[0] = u8::try_from(number).expect("few contents");
        bytes.into()
    }

    proptest! {
        /// Contents of few sizes and few letters, so that many are alike and some the same.
        #[test]
        fn every_answer_is_that_of_hashing(contents in proptest::collection::vec("[ab]{0,6}", 1..80)) {
            let memo = Memo::default();
            for text in contents {
                let bytes = Bytes::from(text);
                let known = memo.know(bytes.clone());
                prop_assert_eq!(&known, &HashedContent::by_hashing(bytes));
                memo.remember(known.clone());
                prop_assert_eq!(memo.called(&known.version), Some(known));
            }
        }
    }

    #[test]
    fn any_byte_tells_contents_apart() {
        const SIZE: usize = 100;
        let memo = Memo::default();
        let plain = Bytes::from(vec![b'.'; SIZE]);
        memo.remember(memo.know(plain.clone()));
        for at in 0..SIZE {
            let mut other = plain.to_vec();
            other[at] = b'!';
            assert_eq!(memo.know(other.clone().into()).version, Version::of_content(&other), "byte {at}");
        }
        assert_eq!(memo.know(plain.clone()).version, Version::of_content(&plain));
    }

    #[test]
    fn what_is_remembered_is_not_hashed_again() {
        let memo = Memo::default();
        let renamed = HashedContent { version: Version::new("another name"), ..memo.know(content(1, 1000)) };
        memo.remember(renamed.clone());
        assert_eq!(memo.know(content(1, 1000)), renamed);
    }

    #[test]
    fn what_was_not_used_for_longest_is_forgotten() {
        let memo = Memo::default();
        let known: Vec<HashedContent> =
            (0..=MAX_CONTENTS).map(|number| HashedContent::by_hashing(content(number, 10))).collect();
        known[..MAX_CONTENTS].iter().for_each(|known| memo.remember(known.clone()));
        memo.remember(known[0].clone());
        memo.remember(known[MAX_CONTENTS].clone());
        assert_eq!(remembered(&memo).0, MAX_CONTENTS);
        assert_eq!(memo.called(&known[1].version), None);
        for still in [0, 2, MAX_CONTENTS] {
            assert_eq!(memo.called(&known[still].version).as_ref(), Some(&known[still]));
        }
    }

    #[test]
    fn memory_is_bounded() {
        let memo = Memo::default();
        memo.remember(memo.know(content(0, MAX_CONTENT_BYTES + 1)));
        assert_eq!(remembered(&memo), (0, 0));
        for number in 0..20 {
            memo.remember(memo.know(content(number, MAX_CONTENT_BYTES)));
            let (count, bytes) = remembered(&memo);
            assert!(count >= 1 && bytes <= MAX_BYTES, "{count} contents of {bytes} bytes");
        }
        // The same content again takes no more space.
        let same = memo.know(content(19, MAX_CONTENT_BYTES));
        let before = remembered(&memo);
        memo.remember(same);
        assert_eq!(remembered(&memo), before);
    }
}
