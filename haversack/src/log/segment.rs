//! The commits of a range in one file, byte for byte: a long log is read in few requests, and a folded position is still proven.
//!
//! A segment whose commits are old can hold them [without their contents](super::abridged). Such a segment has version 2.

use haversack_store::Bytes;
use serde::{Deserialize, Serialize};

use super::abridged::{Form, StoredCommit, abridge, is_abridged};
use super::bounded;
use super::commit::MAX_COMMIT_BYTES;
use crate::frame::{self, BadFrame, Framed, Parts, Unfit, as_number};
use crate::ids::{Position, StoreId};

/// The largest segment.
pub const MAX_SEGMENT_BYTES: usize = 64 * 1024 * 1024;

/// The most commits of one segment.
pub(super) const MAX_SEGMENT_COMMITS: usize = 10_000;

const KIND: &str = "segment";
/// The version of a segment whose commits are whole.
const WHOLE: u32 = 1;

/// The version of a segment with abridged commits, and the newest: a Haversack that does not know them must stop there.
pub(crate) const VERSION: u32 = 2;

/// The commits of a range of positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The store they belong to.
    pub store: StoreId,
    /// The first position.
    pub first: Position,
    /// The last position.
    pub last: Position,
    /// The bytes at each of them.
    pub commits: Vec<Bytes>,
}

impl Segment {
    /// Returns the bytes of the segment.
    pub fn encode(&self) -> Result<Bytes, Unfit> {
        if self.commits.len() > MAX_SEGMENT_COMMITS {
            return Err(Unfit::TooLarge { what: "commits", limit: as_number(MAX_SEGMENT_COMMITS) });
        }
        let form = self.verify().map_err(|bad| Unfit::wrong(bad.to_string()))?;
        let version = version_of(form);
        let lengths = self.commits.iter().map(|commit| as_number(commit.len())).collect();
        let heading = Heading { store: self.store, first: self.first, last: self.last, commits: lengths };
        let contents: Vec<&[u8]> = self.commits.iter().map(|commit| &commit[..]).collect();
        frame::encode(KIND, version, &heading, &contents, MAX_SEGMENT_BYTES)
    }

    /// Reads the bytes of a segment: every commit in it is whole and follows the one before it.
    ///
    /// The caller compares the first one with its predecessor, with [`Commit::belongs`].
    pub fn decode(bytes: &Bytes) -> Result<Segment, BadFrame> {
        let Framed { version, heading, contents } =
            frame::decode::<Heading>(KIND, VERSION, bytes, MAX_SEGMENT_BYTES)?;
        if heading.commits.len() > MAX_SEGMENT_COMMITS {
            return Err(BadFrame::TooLarge { what: "commits", limit: as_number(MAX_SEGMENT_COMMITS) });
        }
        let mut parts = Parts::of(contents);
        let mut commits = Vec::with_capacity(heading.commits.len());
        for length in heading.commits {
            if length > as_number(MAX_COMMIT_BYTES) {
                return Err(BadFrame::TooLarge {
                    what: "bytes of a commit",
                    limit: as_number(MAX_COMMIT_BYTES),
                });
            }
            commits.push(parts.take(length)?);
        }
        parts.end()?;
        let segment = Segment { store: heading.store, first: heading.first, last: heading.last, commits };
        match (version, segment.verify()?) {
            (VERSION, Form::Whole) => Err(BadFrame::Newer { version }),
            (WHOLE, Form::Abridged) => {
                Err(BadFrame::damaged("a segment of version 1 has whole commits only"))
            }
            _ => Ok(segment),
        }
    }

    /// Returns the same segment with every commit abridged.
    pub fn abridged(&self) -> Result<Segment, Unfit> {
        let abridge = |bytes: &Bytes| match is_abridged(bytes) {
            true => Ok(bytes.clone()),
            false => abridge(bytes),
        };
        let commits = self.commits.iter().map(abridge).collect::<Result<_, _>>()?;
        Ok(Segment { commits, ..*self })
    }

    /// Returns true if its commits have their contents.
    pub fn is_whole(&self) -> bool {
        !self.commits.iter().any(|bytes| is_abridged(bytes))
    }

    /// Returns the bytes at a position of the range.
    pub fn get(&self, position: Position) -> Option<&Bytes> {
        let index = position.number().checked_sub(self.first.number())?;
        self.commits.get(usize::try_from(index).ok()?)
    }

    /// Refuses commits that are not those of the range; tells if all are whole.
    fn verify(&self) -> Result<Form, BadFrame> {
        let mut form = Form::Whole;
        let mut next = Some(self.first);
        let mut before = None;
        for bytes in &self.commits {
            let Some(position) = next.filter(|position| *position <= self.last) else {
                return Err(BadFrame::damaged("it has more commits than positions"));
            };
            let within =
                |what: String| BadFrame::damaged(format!("the commit of position {position}: {what}"));
            let stored = StoredCommit::decode(bytes).map_err(|bad| match bad.is_newer() {
                true => bad,
                false => within(bad.to_string()),
            })?;
            let previous = before.unwrap_or(stored.commit.previous);
            let belongs = stored.commit.belongs(self.store, position, previous);
            belongs.map_err(|misplaced| within(misplaced.to_string()))?;
            if stored.form == Form::Abridged {
                form = Form::Abridged;
            }
            before = Some(stored.hash);
            next = position.next();
        }
        match before.is_some() && next == self.last.next() {
            true => Ok(form),
            false => Err(BadFrame::damaged("it has fewer commits than positions")),
        }
    }
}

fn version_of(form: Form) -> u32 {
    match form {
        Form::Whole => WHOLE,
        Form::Abridged => VERSION,
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Heading {
    store: StoreId,
    first: Position,
    last: Position,
    /// The length of each commit.
    #[serde(deserialize_with = "bounded::list::<_, _, MAX_SEGMENT_COMMITS>")]
    commits: Vec<u64>,
}
