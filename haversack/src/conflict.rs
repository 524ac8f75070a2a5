//! What a merge could not make one: found in the files, and settled.
//!
//! A conflict is two passages in one place, or more if further devices met there. Nothing is remembered about it: the [`note`] above
//! the second passage says how far both go, and a file that does not merge has its copy beside it. So a conflict is also settled
//! by whoever just edits the file, and a line that only looks like a note is at worst listed.
//!
//! # Invariants
//! 1. What a merge kept twice is found (`laws/kinds.rs`, for every kind).
//! 2. Settling changes nothing but the passages, their notes and the blank lines between them, and the conflict is gone afterwards
//!    (`laws/kinds.rs`).
//! 3. To keep the passage of one device is to merge as if the other had not touched the place (`laws/kinds.rs`).

mod copy;
mod find;
mod page;
mod settle;
#[cfg(test)]
mod tests;

use std::ops::Range;

use haversack_store::Locator;

pub use self::copy::{of_copy, original_name};
pub use self::find::find;
pub use self::settle::settle;

/// The letters of an id: no digits, so that it is no number, and no vowels, so that it is no word.
const LETTERS: &[u8; 16] = b"bcdfghjklmnpqrst";

/// How many letters an id has.
const ID_LETTERS: usize = 6;

/// Passages of which one is to stay, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// What it is known by as long as its passages are what they are.
    pub id: String,
    /// The file.
    pub locator: Locator,
    /// What each device has there, at least two.
    pub passages: Vec<Passage>,
    /// The file that holds the second passage, if it is one of its own.
    pub copy: Option<Copy>,
    place: Place,
}

/// What one device has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// What the device is called; of the first nobody knows.
    pub device: Option<String>,
    /// Where it stands in the file, counted from 1; nowhere if it is empty.
    pub lines: Option<Lines>,
    /// What it says, without the last line ending; of a file with a copy the lines that the other does not have.
    pub text: String,
}

/// Lines of a file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The first.
    pub first: usize,
    /// The last, which is one of them.
    pub last: usize,
}

/// The file beside another that holds what did not become its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Where it is.
    pub locator: Locator,
    /// Its size.
    pub size_bytes: usize,
    /// The size of the file it is a copy of; `None` if that is not there any more.
    pub original_bytes: Option<usize>,
}

/// What stays of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Everything; only the notes go.
    Both,
    /// One passage, counted from 1.
    Passage(usize),
}

/// Where a conflict is, in lines counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Passages one below the other, and the notes between them.
    Below { leaves: Vec<Leaf>, notes: Vec<usize> },
    /// A field of the frontmatter, and a value of it in the text.
    Field { note: usize, quoted: Range<usize>, field: Option<Range<usize>> },
    /// An item, and its words as others have them, each below a note.
    Words { head: usize, notes: Vec<usize>, others: Vec<usize> },
    /// A file beside.
    Copy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Leaf {
    lines: Range<usize>,
    device: Option<String>,
    /// How many spaces the merge put before its lines.
    indent: usize,
}

fn id(locator: &Locator, said: &[String], nth: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(locator.as_str().as_bytes());
    for text in said {
        hasher.update(&[0]).update(text.as_bytes());
    }
    hasher.update(&[0]).update(nth.to_string().as_bytes());
    let hash = hasher.finalize();
    hash.as_bytes()[..ID_LETTERS].iter().map(|byte| char::from(LETTERS[usize::from(byte % 16)])).collect()
}
