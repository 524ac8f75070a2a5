//! A commit without its contents. Old commits are stored like this after the store's history was shortened (docs/adr/0040).
//!
//! Everything else stays: who wrote, when and why, the names of the files, the hashes and sizes of their contents, and the hash of the whole
//! commit. So the chain of commits, the plain copies and a device that was away can still be checked.
//!
//! A content that was inside the commit is named like an object of its own. No such object is in the remote, so a reader finds the content
//! missing, as it finds an object that the remote has lost.

use haversack_store::Bytes;
use serde::{Deserialize, Serialize};

use super::commit::{Commit, Heading, MAX_COMMIT_BYTES};
use crate::frame::{self, BadFrame, Framed, Unfit};
use crate::ids::ContentHash;

const KIND: &str = "abridged";
const VERSION: u32 = 1;

/// A commit as a segment has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCommit {
    /// The commit. If it is abridged, it names contents that are nowhere.
    pub commit: Commit,
    /// The hash of the whole commit, by which the next one names it.
    pub hash: ContentHash,
    /// Tells if it has its contents.
    pub form: Form,
}

/// Tells if a stored commit has its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It has.
    Whole,
    /// They were dropped.
    Abridged,
}

impl StoredCommit {
    /// Reads a commit of either form.
    pub fn decode(bytes: &Bytes) -> Result<StoredCommit, BadFrame> {
        if !is_abridged(bytes) {
            let commit = Commit::decode(bytes)?;
            return Ok(StoredCommit { commit, hash: ContentHash::of(bytes), form: Form::Whole });
        }
        let Framed { heading, contents, .. } =
            frame::decode::<AbridgedHeading>(KIND, VERSION, bytes, MAX_COMMIT_BYTES)?;
        let commit = Commit::from_heading(heading.commit, contents)?;
        if commit.changes.iter().any(|change| change.what.inline().is_some()) {
            return Err(BadFrame::damaged("an abridged commit has a content"));
        }
        Ok(StoredCommit { commit, hash: heading.hash, form: Form::Abridged })
    }
}

/// Returns true if bytes claim to be an abridged commit.
pub(crate) fn is_abridged(bytes: &[u8]) -> bool {
    bytes.starts_with(b"haversack-abridged ")
}

/// Returns the hash of the whole commit that stored bytes stand for.
pub(crate) fn hash_of(bytes: &Bytes) -> ContentHash {
    let stored = is_abridged(bytes).then(|| StoredCommit::decode(bytes).ok()).flatten();
    stored.map_or_else(|| ContentHash::of(bytes), |stored| stored.hash)
}

/// Returns the abridged form of a whole commit.
pub fn abridge(bytes: &Bytes) -> Result<Bytes, Unfit> {
    let commit = Heading::without_contents(bytes).map_err(|bad| Unfit::wrong(bad.to_string()))?;
    let heading = AbridgedHeading { hash: ContentHash::of(bytes), commit };
    frame::encode(KIND, VERSION, &heading, &[], MAX_COMMIT_BYTES)
}

#[derive(Debug, Serialize, Deserialize)]
struct AbridgedHeading {
    hash: ContentHash,
    commit: Heading,
}
