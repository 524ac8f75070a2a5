//! A device's position in a synced folder: the entries that it has read, and the part of its folder log that is in the folder already.

use haversack_store::{Backend, Condition, ErrorKind, Locator};
use serde::{Deserialize, Serialize};

use super::heads::Heads;
use crate::frame;
use crate::ids::{ContentHash, Position, ReplicaId, StoreId};
use crate::sync::SyncError;

const KIND: &str = "standing";
pub(crate) const VERSION: u32 = 1;
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A device's position in a synced folder. If it is lost, the device rebuilds it from its copies of the logs, under a new name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FolderCursor {
    /// The store that was met in the folder.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) store: Option<StoreId>,
    /// The heads that the home log has at `position`.
    pub(super) heads: Heads,
    /// The last position of the home log that was processed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) position: Option<Position>,
    /// Up to which position every content in its own order is named by a log: until then it may be shown as a plain file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) announced: Option<Position>,
    /// True if one of our logs was ever found in the folder: then we know which files must be there.
    #[serde(default)]
    pub(super) is_known: bool,
    /// The entries of every log that this device has copied, without a gap.
    pub(super) kept: Heads,
    /// The outside of the file that has the name of its log.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) name_mark: Option<String>,
    /// Former names of its log; entries stored under them and missing in the folder still have to be written.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) former: Vec<ReplicaId>,
    /// Entries that move to its new name, if it died while renaming its log.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) moving: Option<Moving>,
    /// The fingerprints of this device's log files in the folder, at the last comparison.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) own_mark: Option<ContentHash>,
}

/// Entries that get another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moving {
    /// The log they were in.
    pub(super) from: ReplicaId,
    /// The number of the first of them.
    pub(super) first: u64,
    /// The log they are in from now on.
    pub(super) to: ReplicaId,
}

fn place() -> Locator {
    Locator::parse("standing").expect("a plain name")
}

fn name_place() -> Locator {
    Locator::parse("replica").expect("a plain name")
}

impl FolderCursor {
    /// Returns the cursor; if it is lost or damaged, the device starts from the beginning, which costs time only.
    pub(super) async fn load(home: &dyn Backend) -> Result<FolderCursor, SyncError> {
        let bytes = match home.read(&place()).await {
            Ok(object) => object.bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FolderCursor::default()),
            Err(error) => return Err(SyncError::Local(error)),
        };
        let framed = frame::decode::<FolderCursor>(KIND, VERSION, &bytes, MAX_BYTES);
        Ok(framed.map(|framed| framed.heading).unwrap_or_default())
    }

    pub(super) async fn save(&self, home: &dyn Backend) -> Result<(), SyncError> {
        let bytes = frame::encode(KIND, VERSION, self, &[], MAX_BYTES).map_err(|why| SyncError::Unfit {
            position: self.position.unwrap_or(Position::FIRST),
            why: why.to_string(),
        })?;
        home.write(&place(), bytes, Condition::Any).await.map(drop).map_err(SyncError::Local)
    }
}

/// The name of a device's folder log, as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogName {
    /// It has none yet.
    Missing,
    /// The log continues under it.
    Current(ReplicaId),
    /// This home was copied, moved or restored from a backup: another home may write under this name.
    Stale(ReplicaId),
}

/// Returns the name of the device's folder log.
///
/// The fingerprint of the name's file tells if the home is a copy: a copy has another fingerprint.
pub(super) async fn name(home: &dyn Backend, cursor: &FolderCursor) -> Result<LogName, SyncError> {
    let name = match home.read(&name_place()).await {
        Ok(object) => str::from_utf8(&object.bytes).ok().and_then(|name| name.trim().parse().ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(SyncError::Local(error)),
    };
    let Some(name) = name else { return Ok(LogName::Missing) };
    let is_kept = cursor.name_mark.is_some() && cursor.name_mark == mark(home).await?;
    Ok(if is_kept { LogName::Current(name) } else { LogName::Stale(name) })
}

/// Gives the device's folder log another name, and writes that down.
pub(super) async fn rename(
    home: &dyn Backend,
    cursor: &mut FolderCursor,
    old: Option<ReplicaId>,
    new: ReplicaId,
) -> Result<ReplicaId, SyncError> {
    write_name(home, cursor, old, new).await?;
    cursor.name_mark = mark(home).await?;
    cursor.save(home).await?;
    Ok(new)
}

/// Stores another name as a stale one: the next process that opens the home treats the home as a copy.
pub(super) async fn write_name(
    home: &dyn Backend,
    cursor: &mut FolderCursor,
    old: Option<ReplicaId>,
    new: ReplicaId,
) -> Result<(), SyncError> {
    // The old one is written down before it is gone.
    cursor.former.extend(old.filter(|old| *old != new && !cursor.former.contains(old)));
    cursor.name_mark = None;
    cursor.save(home).await?;
    let written = home.write(&name_place(), format!("{new}\n").into(), Condition::Any).await;
    written.map(drop).map_err(SyncError::Local)
}

/// Returns the fingerprint of the file with the name.
async fn mark(home: &dyn Backend) -> Result<Option<String>, SyncError> {
    match home.info(&name_place()).await {
        Ok(info) => Ok(Some(info.fingerprint.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SyncError::Local(error)),
    }
}
