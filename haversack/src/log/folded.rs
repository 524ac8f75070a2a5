//! The object at a position whose commit is in a segment: its name stays taken for ever.
//!
//! An attempt to create the position that arrives years late must not succeed, so a position is never removed. A reader of the position continues in
//! the segment.

use haversack_store::Bytes;
use serde::{Deserialize, Serialize};

use crate::frame::{self, BadFrame, Framed, Unfit};
use crate::ids::{Position, StoreId};

/// The most bytes that stand at a folded position.
pub(super) const MAX_FOLDED_BYTES: usize = 1024;

const KIND: &str = "folded";
pub(crate) const VERSION: u32 = 1;

/// Says which segment has the commit of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folded {
    /// The store it belongs to.
    pub store: StoreId,
    /// The first position of the segment.
    pub first: Position,
    /// The last position of the segment.
    pub last: Position,
}

impl Folded {
    /// Returns true if bytes at a position claim to be this and not a commit.
    pub fn is_at(bytes: &[u8]) -> bool {
        bytes.starts_with(b"haversack-folded ")
    }

    /// Returns the bytes.
    pub fn encode(&self) -> Result<Bytes, Unfit> {
        frame::encode(KIND, VERSION, self, &[], MAX_FOLDED_BYTES)
    }

    /// Reads the bytes.
    pub fn decode(bytes: &Bytes) -> Result<Folded, BadFrame> {
        let Framed { heading, contents, .. } =
            frame::decode::<Folded>(KIND, VERSION, bytes, MAX_FOLDED_BYTES)?;
        match contents.is_empty() && heading.first <= heading.last {
            true => Ok(heading),
            false => Err(BadFrame::damaged("it names no range")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let (first, last) = (Position::FIRST, Position::new(256).expect("a position"));
        let folded = Folded { store: StoreId::from_bytes([7; 16]), first, last };
        let bytes = folded.encode().expect("small");
        assert!(Folded::is_at(&bytes));
        assert_eq!(Folded::decode(&bytes), Ok(folded));
        let turned = Folded { first: last, last: first, ..folded }.encode().expect("small");
        assert!(Folded::decode(&turned).is_err(), "a range that ends before it starts");
    }
}
