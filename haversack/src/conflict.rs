//! Conflicts: places where a merge kept the text of two or more devices.
//!
//! 1. A merge keeps both passages, one below the other. The [`note`](crate::merge::note) above the second passage says how many lines each
//!    has. A file that cannot be merged gets a copy beside it instead.
//! 2. [`find`] reads the notes of a text; [`of_copy`] compares a file with its copy. We keep no other record of a conflict, so a user can
//!    also settle it by editing the file.
//! 3. [`settle`] writes the text with the chosen passage, or with all passages and without the notes.
//!
//! A line that only looks like a note is listed as a conflict, at worst.
//!
//! # Invariants
//! 1. `find` finds every passage that a merge kept twice (`laws/kinds.rs`, for every kind).
//! 2. `settle` changes only the passages, their notes and the blank lines between them. The conflict is gone afterwards (`laws/kinds.rs`).
//! 3. Keeping one device's passage gives the text of a merge in which the other device had not changed the place (`laws/kinds.rs`).

mod copy;
mod find;
mod noted_text;
mod settle;
#[cfg(test)]
mod tests;

use std::ops::Range;

use haversack_store::Locator;

pub use self::copy::{of_copy, original_name};
pub use self::find::find;
pub use self::settle::settle;

/// The letters of an id. An id has no digits, so it is not a number, and no vowels, so it is not a word.
const LETTERS: &[u8; 16] = b"bcdfghjklmnpqrst";

/// The number of letters in an id.
const ID_LETTERS: usize = 6;

/// Passages of two or more devices in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The id. It changes when a passage changes.
    pub id: String,
    /// The file.
    pub locator: Locator,
    /// The passage of each device, at least two.
    pub passages: Vec<Passage>,
    /// The file that holds the second passage, if that is a copy.
    pub copy: Option<Copy>,
    place: ConflictLines,
}

/// The text of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The name of the device; `None` for the first passage, because no note names it.
    pub device: Option<String>,
    /// Its lines in the file; `None` if the passage is empty.
    pub lines: Option<Lines>,
    /// The text without the last line ending. For a file with a copy: the lines that the other file lacks.
    pub text: String,
}

/// Lines of a file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The first line.
    pub first: usize,
    /// The last line, included.
    pub last: usize,
}

/// A copy beside a file, with the content that could not be merged into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The locator of the copy.
    pub locator: Locator,
    /// The size of the copy.
    pub size_bytes: usize,
    /// The size of the original; `None` if the original does not exist any more.
    pub original_bytes: Option<usize>,
}

/// The passages to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All passages; we remove only the notes.
    Both,
    /// One passage, counted from 1.
    Passage(usize),
}

/// The place of a conflict, in lines counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ConflictLines {
    /// Passages one below the other, and the notes between them.
    Below { leaves: Vec<PassageLines>, notes: Vec<usize> },
    /// A field of the frontmatter, and a value of it in the text.
    Field { note: usize, quoted: Range<usize>, field: Option<Range<usize>> },
    /// An item, and the wording of other devices, each below a note.
    Words { head: usize, notes: Vec<usize>, others: Vec<usize> },
    /// A copy beside the file.
    Copy,
}

/// The lines of one passage in a pile.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PassageLines {
    lines: Range<usize>,
    device: Option<String>,
    /// The number of spaces that the merge put before each line.
    indent: usize,
}

/// Returns an id that depends on the file and on the texts, and on `nth` among equal conflicts.
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
