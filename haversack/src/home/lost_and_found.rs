//! Edits that the client of a synced folder could not upload and put aside, as Google Drive does.

use std::collections::BTreeSet;

use haversack_store::{Backend, Bytes, Condition, ErrorKind, Locator, Result as StoreResult};

use crate::ids::ContentHash;
use crate::vault::copies::copy_name;
use crate::vault::lost::Named;

/// The most copies of one file that are put into a folder at once.
const MAX_COPIES: usize = 32;

/// Finds the edits.
pub trait LostAndFound: Send + Sync {
    /// Returns the edits that no log has: the edited file, and the content of the edit.
    fn edits(&self, named: &Named) -> StoreResult<Vec<(Locator, Bytes)>>;
}

/// Puts edits into a folder as conflict copies of the files they were made from; returns the names and contents of the copies.
///
/// A copy that is there already is not written twice. An edit whose copy the folder cannot hold is left out.
pub(super) async fn put_copies(
    folder: &dyn Backend,
    edits: Vec<(Locator, Bytes)>,
) -> StoreResult<BTreeSet<(Locator, ContentHash)>> {
    let mut copies = BTreeSet::new();
    for (original, bytes) in edits {
        for number in 1..=MAX_COPIES {
            let Some(copy) = copy_name(&original, number) else { break };
            match folder.write(&copy, bytes.clone(), Condition::Absent).await {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Conflict => match folder.read(&copy).await {
                    Ok(there) if there.bytes == bytes => {}
                    _ => continue,
                },
                // This folder cannot hold the name.
                Err(error) if error.kind() == ErrorKind::Invalid => break,
                Err(error) => return Err(error),
            }
            copies.insert((copy, ContentHash::of(&bytes)));
            break;
        }
    }
    Ok(copies)
}
