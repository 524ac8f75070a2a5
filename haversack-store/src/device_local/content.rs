//! Telling what a file holds without holding it in memory.

use std::io;

use super::core::Core;
use super::fs::Fs;
use super::memo::HashedContent;
use super::temp::Digest;
use crate::version::Version;

/// The number of bytes that are compared in one step: few enough to stay in the processor's cache.
const CHUNK_BYTES: usize = 16 * 1024;

/// The content that a file was seen to have.
pub(super) enum SeenContent {
    /// A content whose bytes are at hand.
    Known(HashedContent),
    /// A content of which only the hash is.
    Hashed(Digest),
}

impl SeenContent {
    pub(super) fn digest(&self) -> Digest {
        match self {
            SeenContent::Known(known) => known.digest,
            SeenContent::Hashed(digest) => *digest,
        }
    }
}

impl<F: Fs> Core<F> {
    /// Returns what a file holds if that is `version`; `expected` is what it probably measures.
    pub(super) fn holds(
        &self,
        file: &F::File,
        expected: u64,
        version: &Version,
    ) -> io::Result<Option<SeenContent>> {
        if let Some(known) = self.memo.called(version) {
            return Ok(self.holds_bytes(file, expected, &known.bytes)?.then_some(SeenContent::Known(known)));
        }
        let hash = self.hash(file, expected)?;
        let is_it = hash.to_hex().as_str() == version.as_str();
        Ok(is_it.then(|| SeenContent::Hashed(Digest::from_hash(&hash))))
    }

    /// Returns true if a file holds what it, or another one, was seen to hold.
    pub(super) fn still_holds(&self, file: &F::File, expected: u64, held: &SeenContent) -> io::Result<bool> {
        match held {
            SeenContent::Known(known) => self.holds_bytes(file, expected, &known.bytes),
            SeenContent::Hashed(digest) => Ok(Digest::from_hash(&self.hash(file, expected)?) == *digest),
        }
    }

    fn holds_bytes(&self, file: &F::File, expected: u64, bytes: &[u8]) -> io::Result<bool> {
        let mut rest = bytes;
        let all = self.visit(file, expected, |chunk| match rest.split_at_checked(chunk.len()) {
            Some((start, after)) if start == chunk => {
                rest = after;
                true
            }
            _ => false,
        })?;
        Ok(all && rest.is_empty())
    }

    fn hash(&self, file: &F::File, expected: u64) -> io::Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new();
        self.visit(file, expected, |chunk| {
            hasher.update(chunk);
            true
        })?;
        Ok(hasher.finalize())
    }

    /// Shows all of a file to `look`, until that returns false; tells whether it saw everything.
    fn visit(&self, file: &F::File, expected: u64, mut look: impl FnMut(&[u8]) -> bool) -> io::Result<bool> {
        // One more than is expected, so that a file that measures that much ends in the same call.
        let size = usize::try_from(expected).unwrap_or(CHUNK_BYTES).saturating_add(1).min(CHUNK_BYTES);
        let mut buffer = vec![0; size];
        let mut offset = 0;
        loop {
            let read = self.fs.read_at(file, &mut buffer, offset)?;
            if !look(&buffer[..read]) {
                return Ok(false);
            }
            offset += read as u64;
            if read == 0 || (read < buffer.len() && offset == expected) {
                return Ok(true);
            }
        }
    }
}
