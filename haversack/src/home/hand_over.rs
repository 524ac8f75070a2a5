//! Moves files from the memory directory into the bound directories where they belong.
//!
//! There is no base for such a file, so a file that both directories have is merged without one: no line of either side is lost.
//!
//! 1. Let the memory directory's replica let go of the files, so that their absence there is never taken for a deletion.
//! 2. Write the file (or the merge of both) into the bound directory.
//! 3. Delete it from the memory directory, if it is still the file of step 2; otherwise start over.
//!
//! A process that is killed between the last two steps leaves both files. The next run merges them again, and a merge with one's own result
//! changes nothing.

use std::sync::Arc;
use std::time::Duration;

use haversack_store::{
    Backend, BackendExt, Condition, ErrorKind, InMemory, Locator, Prefixed, Result as StoreResult, is_fenced,
};

use super::{BoundDirectory, Directory, Home};
use crate::ids::{ContentHash, Ids};
use crate::merge::{Rule, Side, conflict_name, merge};
use crate::signed;
use crate::sync::planted::{Planted, has};
use crate::sync::{Replica, SyncError, base_of};

/// The lock of those who write through the verbs.
const STORE_LOCK: &str = "store";

/// The most times that one file is tried again because another program wrote it.
const MAX_TRIES: usize = 100;

/// A bound directory that is there.
#[derive(Clone, Copy)]
struct Target<'a> {
    files: &'a Arc<dyn Backend>,
    prefix: &'a Locator,
    /// The state of the directory's replica.
    state: Option<&'a Arc<dyn Backend>>,
}

pub(super) async fn move_to_bound_directories(
    home: &Home,
    ids: &dyn Ids,
    lock_wait: Duration,
) -> Result<(), SyncError> {
    if files_to_move(home).await.map_err(SyncError::Local)?.is_empty() {
        return Ok(());
    }
    let Directory { files, state, scope, .. } = home.memory();
    // Letting go of files asks nothing of a remote.
    let nowhere = Arc::new(InMemory::new());
    let opened = Replica::open_within(files.clone(), state.clone(), nowhere, ids, lock_wait).await?;
    // No other process syncs the memory directory until the files are moved.
    let mut memory = opened.with_scope(scope.clone());
    if !has(Planted::MovedIsDeleted) && !memory.let_go().await? {
        return Ok(());
    }
    let moved = async {
        let _turn = home.memory_files.lock(STORE_LOCK, lock_wait).await?;
        for (target, file) in files_to_move(home).await? {
            let here = Prefixed::new(home.memory_files.clone(), target.prefix.clone());
            hand_over(home, &here, target, &file).await?;
        }
        Ok(())
    };
    moved.await.map_err(SyncError::Local)
}

/// Returns the files in the memory directory that belong in a bound directory that is there: the directory, its prefix, and the name there.
async fn files_to_move(home: &Home) -> StoreResult<Vec<(Target<'_>, Locator)>> {
    let mut all = Vec::new();
    for BoundDirectory { prefix, files, state, .. } in &home.bound {
        let Some(there) = files else { continue };
        let target = Target { files: there, prefix, state: state.as_ref() };
        let here = Prefixed::new(home.memory_files.clone(), prefix.clone());
        for file in here.list_all(&Locator::root()).await? {
            let is_deeper = |other: &BoundDirectory| {
                other.prefix != *prefix
                    && other.prefix.is_within(prefix)
                    && prefix.child(file.as_str()).is_ok_and(|path| path.is_within(&other.prefix))
            };
            // The file of a deeper directory that is not there waits for it.
            if !is_fenced(file.as_str()) && !home.bound.iter().any(is_deeper) {
                all.push((target, file));
            }
        }
    }
    Ok(all)
}

/// Moves one file; where both sides have it, they are merged.
async fn hand_over(
    home: &Home,
    from: &dyn Backend,
    target: Target<'_>,
    locator: &Locator,
) -> StoreResult<()> {
    for _ in 0..MAX_TRIES {
        let ours = match from.read(locator).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            ours => ours?,
        };
        if has(Planted::HandOverDeletesFirst) {
            from.delete(locator, Condition::Any).await?;
        }
        if !put(home, target, locator, &ours.bytes).await? {
            continue;
        }
        match from.delete(locator, Condition::Matches(ours.version)).await {
            // Another program wrote the file meanwhile.
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            deleted => return deleted,
        }
    }
    // The file stays where it is, and the next round moves it.
    Ok(())
}

/// Puts a content in its place, merged with the content that is there. Returns false if another program wrote there meanwhile.
async fn put(
    home: &Home,
    target: Target<'_>,
    locator: &Locator,
    ours: &haversack_store::Bytes,
) -> StoreResult<bool> {
    let to = target.files;
    match to.write(locator, ours.clone(), Condition::Absent).await {
        Ok(_) => return Ok(true),
        Err(error) if error.kind() == ErrorKind::Conflict => {}
        Err(error) => return Err(error),
    }
    let theirs = match to.read(locator).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        theirs => theirs?,
    };
    if theirs.bytes == *ours {
        return Ok(true);
    }
    let rule = Rule::of(locator, [&ours[..], &theirs.bytes[..]]);
    let sides = [ours, &theirs.bytes].map(|bytes| Side { bytes, device: "this machine" });
    let merged = merge(rule, None, sides[0], sides[1]);
    if let Some(copy) = merged.copy
        && let Ok(name) = conflict_name(locator, &copy)
    {
        let _ = to.write(&name, copy, Condition::Any).await?;
    }
    if merged.bytes == theirs.bytes {
        return Ok(true);
    }
    // The merge is in the history under the writer of either side. A side that the store has already has its writer in the history.
    if let Ok(whole) = target.prefix.child(locator.as_str()) {
        let base = match target.state {
            Some(state) => base_of(state.clone(), &whole).await?,
            None => None,
        };
        let mut sides = vec![&ours[..]];
        if base != Some(ContentHash::of(&theirs.bytes)) {
            sides.push(&theirs.bytes);
        }
        signed::sign_merged(&*home.verb_state, &whole, &sides, &[(&whole, &merged.bytes)]).await?;
    }
    match to.write(locator, merged.bytes, Condition::Matches(theirs.version)).await {
        // A text that this write displaced was saved by an editor in the same moment. The backend keeps it, and the next sync merges it.
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
        Err(error) => Err(error),
    }
}
