//! Writes `manifest.json` into a plain storage after a migration, so that readers know what is there without listing it.

use haversack_store::{Backend, BackendExt, Condition, ErrorKind, Info, Locator, Result as StoreResult};

use super::Context;
use crate::ids::Timestamp;
use crate::manifest::{Entry, Manifest};
use crate::sync::patiently;

/// The result for the manifest of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Indexed {
    /// It was written.
    Written,
    /// It named everything already.
    Current,
    /// `manifest.json` is another program's file, of a newer version or of a store: it was left alone.
    NotOurs,
}

/// Writes the manifest of everything that a plain storage holds.
///
/// A manifest that is there keeps its entries for objects that have the same version. A manifest that changes meanwhile is an error
/// of kind [`ErrorKind::Conflict`]: running the migration again writes it.
pub async fn write_manifest(
    target: &dyn Backend,
    now: Timestamp,
    context: Context<'_>,
) -> StoreResult<Indexed> {
    let place = Locator::reserved("manifest.json").expect("one of our own names");
    let (before, condition) = match patiently(context.patience, || target.read(&place)).await {
        Ok(object) => match Manifest::decode(&object.bytes) {
            Ok(manifest) if manifest.store.is_none() => (manifest, Condition::Matches(object.version)),
            Err(why) if !why.is_newer() && Manifest::is_remnant(&object.bytes, None) => {
                (Manifest::default(), Condition::Matches(object.version))
            }
            Ok(_) | Err(_) => return Ok(Indexed::NotOurs),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => (Manifest::default(), Condition::Absent),
        // A directory of that name is not ours either.
        Err(error) if error.kind() == ErrorKind::Invalid => return Ok(Indexed::NotOurs),
        Err(error) => return Err(error),
    };
    let root = Locator::root();
    let page = patiently(context.patience, || target.scan_all(&root)).await?;
    let entry = |info: Info| {
        let version = info.version.as_ref().map(|version| version.as_str().to_owned());
        let known = before.entries.get(&info.locator);
        let is_known = |known: &&Entry| known.size == info.size_bytes && known.version == version;
        let entry = known.filter(is_known).cloned().unwrap_or_else(|| Entry {
            size: info.size_bytes,
            mtime: modified(&info),
            hash: None,
            version,
        });
        (info.locator, entry)
    };
    let entries = page.infos.into_iter().map(entry).collect();
    if before.entries == entries && condition != Condition::Absent {
        return Ok(Indexed::Current);
    }
    let manifest = Manifest { updated_at: Some(now), entries, ..Manifest::default() };
    let _ = target.write(&place, manifest.encode(), condition).await?;
    Ok(Indexed::Written)
}

fn modified(info: &Info) -> Option<Timestamp> {
    let since = info.modified?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp)
}
