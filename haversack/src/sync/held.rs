//! Decides which changes stay on this device: contents that the gate refuses, and names that other devices could not hold.

use haversack_store::{Backend, ErrorKind, Locator, Result as StoreResult};

use super::plan::{self, Pending};
use super::planted::{Planted, has};
use super::renames::Rename;
use super::state::State;
use super::{Gate, Hold};
use crate::ids::ContentHash;

/// Returns why a content may not be sent.
///
/// `sent` is the remote's content of the same file: under this name or, if the file was renamed, under its old one. A secret that is
/// new in the file is held back all the same.
pub(super) async fn hold(
    state: &State,
    gate: &dyn Gate,
    locator: &Locator,
    bytes: &[u8],
    sent: Option<ContentHash>,
) -> StoreResult<Option<Hold>> {
    let Some(hold) = gate.holds(locator, bytes) else { return Ok(None) };
    if has(Planted::GateAsksAboutNewFilesOnly) && sent.is_some() {
        return Ok(None);
    }
    let sent = match sent {
        Some(sent) => state.kept(&sent).await?,
        None => None,
    };
    Ok(match sent {
        Some(sent) if has(Planted::GateIgnoresAppends) && bytes.starts_with(&sent) => None,
        Some(sent) => gate.still_holds(locator, bytes, &sent),
        None => Some(hold),
    })
}

/// Takes out of the pending changes the names that other devices could not hold, and every rename of which the new name is held back;
/// returns the held files. The contents of other files are left for [`hold`].
///
/// A rename that stays here leaves its old name in the log, and another new file may have needed that name. So the names are checked again
/// until no more rename is held.
pub(super) async fn keep_here(
    files: &dyn Backend,
    state: &State,
    gate: &dyn Gate,
    pending: &mut Pending,
) -> StoreResult<Vec<(Locator, Hold)>> {
    let mut all = Vec::new();
    for rename in pending.renames.clone() {
        let bytes = match files.read(&rename.to).await {
            Ok(object) => object.bytes,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => continue,
            Err(error) => return Err(error),
        };
        if let Some(hold) = hold(state, gate, &rename.to, &bytes, Some(rename.before)).await? {
            pending.keep_rename(&rename);
            all.push((rename.to.clone(), with_old_name(hold, &rename)));
        }
    }
    loop {
        let unfit = plan::unfit_names(state.known.bases(), pending);
        pending.changed.retain(|locator| unfit.iter().all(|(held, _)| held != locator));
        let is_held = |rename: &&Rename| unfit.iter().any(|(held, _)| *held == rename.to);
        let held: Vec<Rename> = pending.renames.iter().filter(is_held).cloned().collect();
        held.iter().for_each(|rename| pending.keep_rename(rename));
        all.extend(unfit.into_iter().map(|(locator, hold)| {
            match held.iter().find(|rename| rename.to == locator) {
                Some(rename) => (locator, with_old_name(hold, rename)),
                None => (locator, hold),
            }
        }));
        if held.is_empty() {
            return Ok(all);
        }
    }
}

/// Adds to a hold on a renamed file what becomes of its old name.
fn with_old_name(hold: Hold, rename: &Rename) -> Hold {
    let why = format!("{}. Other machines keep it as {} until then", hold.why, rename.from);
    Hold { why, ..hold }
}
