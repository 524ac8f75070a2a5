//! The working names beside a user's file, and what to do with one that a crash left behind.
//!
//! A name says which step it belongs to, so that what is found under it can be judged by its content
//! alone, at any later time, whatever the user did meanwhile:
//!
//! | name | holds | found after a crash |
//! |---|---|---|
//! | `.haversack-draft-<n>` | new content being written | never took effect: discard |
//! | `.haversack-swap-<wrote>-<read>-<target>` | new content, complete; after the exchange what it displaced | equal to what we wrote or had read: discard; else it is the user's: keep |
//! | `.haversack-gone-<read>-<name>` | what a conditional delete took away | equal to what we had read: discard; else it is the user's: put back |
//!
//! `<wrote>` and `<read>` are the first 128 bits of the contents' hashes. `<target>` is the first 64 bits of the
//! hash of the target's name: its bearer is there to be compared. What a delete took away has no such
//! bearer, so `<name>` is the name itself, or the beginning of one that is too long.
//!
//! In a folder that a sync client replicates the disk spells them so that the client leaves them alone, a little longer
//! ([`vault`](crate::vault)).

use std::fmt;

use crate::locator::{MAX_SEGMENT_BYTES, OWN_PREFIX, SHY_PREFIX, SHY_SUFFIX};
use crate::version::Version;

/// The short hash of a content, as working names carry it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digest(u128);

impl Digest {
    /// Returns the digest of `content`.
    pub(super) fn of(content: &[u8]) -> Digest {
        Digest::from_hash(&blake3::hash(content))
    }

    /// Returns the digest of the content with this hash.
    pub(super) fn from_hash(hash: &blake3::Hash) -> Digest {
        Digest(u128::from_be_bytes(hash.as_bytes()[..16].try_into().expect("16 bytes")))
    }

    /// Returns the digest of the content called `version`; `None` if that is not a hash.
    pub(super) fn from_version(version: &Version) -> Option<Digest> {
        u128::from_str_radix(version.as_str().get(..32)?, 16).ok().map(Digest)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A name as a working name refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TargetMark(u64);

impl TargetMark {
    /// Returns the mark of the on-disk name `target`.
    pub(super) fn of(target: &str) -> TargetMark {
        let hash = blake3::hash(target.as_bytes());
        TargetMark(u64::from_be_bytes(hash.as_bytes()[..8].try_into().expect("8 bytes")))
    }
}

/// A working name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Temp {
    /// New content that is being written.
    Draft(usize),
    /// New content that is complete, or what it displaced.
    Swap { wrote: Digest, read: Digest, target: TargetMark },
    /// An object that a conditional delete took away.
    Gone { read: Digest, name: String },
}

impl fmt::Display for Temp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Temp::Draft(number) => write!(f, "{OWN_PREFIX}draft-{number}"),
            Temp::Swap { wrote, read, target } => {
                write!(f, "{OWN_PREFIX}swap-{wrote:?}-{read:?}-{:016x}", target.0)
            }
            Temp::Gone { read, name } => write!(f, "{OWN_PREFIX}gone-{read:?}-{name}"),
        }
    }
}

impl Temp {
    /// Returns the working name for what a conditional delete takes away from `name`.
    pub(super) fn gone(read: Digest, name: &str) -> Temp {
        let taken = Temp::Gone { read, name: String::new() }.to_string().len();
        // Room for the longer spelling too.
        let longer = SHY_PREFIX.len() - OWN_PREFIX.len() + SHY_SUFFIX.len();
        let mut end = name.len().min(MAX_SEGMENT_BYTES - taken - longer);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        Temp::Gone { read, name: name[..end].to_owned() }
    }

    /// Returns what the on-disk name stands for; `None` if it is not a working name.
    pub(super) fn parse(name: &str) -> Option<Temp> {
        let rest = name.strip_prefix(OWN_PREFIX)?;
        let (step, rest) = rest.split_once('-')?;
        let digest = |part: &str| {
            (part.len() == 32).then(|| u128::from_str_radix(part, 16).ok().map(Digest)).flatten()
        };
        match step {
            "draft" => Some(Temp::Draft(rest.parse().ok()?)),
            "swap" => {
                let mut parts = rest.split('-');
                let (wrote, read) = (digest(parts.next()?)?, digest(parts.next()?)?);
                let target = parts.next().filter(|part| part.len() == 16 && parts.next().is_none())?;
                let target = TargetMark(u64::from_str_radix(target, 16).ok()?);
                Some(Temp::Swap { wrote, read, target })
            }
            "gone" => {
                let (read, name) = rest.split_once('-')?;
                let read = digest(read)?;
                (!name.is_empty()).then(|| Temp::Gone { read, name: name.to_owned() })
            }
            _ => None,
        }
    }

    /// Decides what to do with `content` found under this name.
    pub(super) fn judge(&self, content: Digest) -> Verdict {
        match self {
            Temp::Draft(_) => Verdict::Discard,
            Temp::Swap { wrote, read, .. } if content == *wrote || content == *read => Verdict::Discard,
            Temp::Swap { .. } => Verdict::Keep,
            Temp::Gone { read, .. } if content == *read => Verdict::Discard,
            Temp::Gone { .. } => Verdict::PutBack,
        }
    }
}

/// The treatment of a file under a working name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is ours and has no further use.
    Discard,
    /// It is the user's and its name is taken: keep it aside.
    Keep,
    /// It is the user's and its name is free: give it back.
    PutBack,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let (wrote, read, target) = (Digest::of(b"new"), Digest::of(b"old"), TargetMark::of("notes.md"));
        let long = "é-".repeat(80);
        let gone = [Temp::gone(read, "a-b.md"), Temp::gone(read, &long)];
        for temp in [Temp::Draft(7), Temp::Swap { wrote, read, target }].into_iter().chain(gone) {
            let name = temp.to_string();
            assert!(name.len() <= 255);
            assert_eq!(Temp::parse(&name), Some(temp), "{name}");
        }
        for odd in ["notes.md", ".haversack", ".haversack-", ".haversack-draft-x", ".haversack-swap-1-2-3"] {
            assert_eq!(Temp::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn content_decides() {
        let (new, old, users) = (Digest::of(b"new"), Digest::of(b"old"), Digest::of(b"users"));
        let target = TargetMark::of("notes.md");
        let swap = Temp::Swap { wrote: new, read: old, target };
        let gone = Temp::gone(old, "notes.md");
        assert_eq!(swap.judge(new), Verdict::Discard);
        assert_eq!(swap.judge(old), Verdict::Discard);
        assert_eq!(swap.judge(users), Verdict::Keep);
        assert_eq!(gone.judge(old), Verdict::Discard);
        assert_eq!(gone.judge(users), Verdict::PutBack);
        assert_eq!(Temp::Draft(0).judge(users), Verdict::Discard);
    }
}
