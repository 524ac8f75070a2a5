//! Searches the log for past contents and names of files.

use std::collections::BTreeSet;

use haversack_store::{Info, Locator};

use crate::ids::{ContentHash, Position};
use crate::sync::{Context, Replica, SyncError};

/// The number of positions that a search reads at a time.
pub(in crate::sync) const SEARCHED_AT_ONCE: u64 = 64;

impl Replica {
    /// Returns the suspects that the log had as a file's content at any position after `from`.
    pub(super) async fn contents_in_log(
        &self,
        context: Context<'_>,
        suspects: BTreeSet<(Locator, ContentHash)>,
        from: Position,
    ) -> Result<BTreeSet<(Locator, ContentHash)>, SyncError> {
        let mut known = BTreeSet::new();
        let Some(head) = &self.state.known.head else { return Ok(known) };
        let mut next = from.number();
        while next <= head.position.number() && known.len() < suspects.len() {
            let end = head.position.number().min(next + SEARCHED_AT_ONCE - 1);
            let positions = (next..=end).filter_map(Position::new).collect();
            for at in self.read_positions(context, positions).await?.into_iter().flatten() {
                let Ok(commit) = at.commit() else { continue };
                let contents = commit.changes.into_iter().filter_map(|change| {
                    let content = change.what.after()?;
                    Some((change.locator, content.hash))
                });
                known.extend(contents.filter(|content| suspects.contains(content)));
            }
            next = end + 1;
        }
        Ok(known)
    }

    /// Splits objects into those whose names the log had at any position, and the others.
    pub(super) async fn split_by_log<'i>(
        &self,
        context: Context<'_>,
        objects: Vec<&'i Info>,
    ) -> Result<(Vec<&'i Info>, Vec<&'i Info>), SyncError> {
        let Some(head) = self.state.known.head.as_ref().filter(|_| !objects.is_empty()) else {
            return Ok((Vec::new(), objects));
        };
        let mut names = BTreeSet::new();
        let mut next = Position::FIRST.number();
        while next <= head.position.number() {
            let end = head.position.number().min(next + SEARCHED_AT_ONCE - 1);
            let positions = (next..=end).filter_map(Position::new).collect();
            let read = match self.read_positions(context, positions).await {
                // The log is damaged. Objects that we cannot judge count as unrelated and stay.
                Err(SyncError::Damaged { .. }) => break,
                read => read?,
            };
            let commits = read.into_iter().flatten().filter_map(|at| at.commit().ok());
            names.extend(commits.flat_map(|commit| commit.changes).map(|change| change.locator));
            next = end + 1;
        }
        Ok(objects.into_iter().partition(|info| names.contains(&info.locator)))
    }
}
