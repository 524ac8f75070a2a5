//! Something that a commit says about the store itself, beside the files (docs/adr/0029, docs/adr/0030).

use crate::ids::Position;

/// The longest address in a notice, in bytes.
pub(super) const MAX_ADDRESS_BYTES: usize = 4_096;

/// Something that a commit says about its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The commit belongs to a rebuild: it puts back files of the store's predecessor.
    Rebuild {
        /// The predecessor's position whose files its author puts back.
        position: Position,
        /// True if the store now has all files of that position: from here on, a file that it lacks was deleted.
        is_complete: bool,
    },
    /// The log ends with this commit, because the store was moved. No device commits after it.
    Moved {
        /// The address of the new place. Anyone who may write to the log can have written it: ask the user before using it.
        url: String,
    },
}
