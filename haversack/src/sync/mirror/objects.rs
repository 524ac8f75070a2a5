//! Brings single objects of the mirror up to date, unless another program has changed them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use haversack_store::{Bytes, Condition, Error as StoreError, ErrorKind, Locator, Version};

use super::MAX_ROUNDS;
use crate::ids::{ContentHash, Position, Timestamp};
use crate::manifest::{Entry, Manifest};
use crate::many::{self, MAX_AT_ONCE, many};
use crate::merge::conflict_name;
use crate::sync::planted::{Planted, has};
use crate::sync::progress::Stage;
use crate::sync::remote::{At, MAX_TRIES};
use crate::sync::{Context, Origin, Replica, SyncError};

/// A file to write to the mirror.
struct PlainFile<'a> {
    locator: &'a Locator,
    bytes: Bytes,
    /// The time of the commit that gave the file this content, if we know it.
    mtime: Option<Timestamp>,
}

/// Counts the attempts at one request that got no answer, including the tries of the backend.
#[derive(Default)]
pub(super) struct Unanswered {
    tries: u32,
    last: Option<StoreError>,
}

impl Unanswered {
    /// Notes a failed write. Returns the error if the remote refused the write for good.
    pub(super) fn note(&mut self, error: StoreError) -> Result<(), SyncError> {
        match error.kind() {
            // Another device was faster. The next write names another version, so it is a new request.
            ErrorKind::Conflict => {
                *self = Unanswered::default();
                Ok(())
            }
            ErrorKind::Busy | ErrorKind::Unavailable => {
                self.tries += error.tries();
                self.last = Some(error);
                Ok(())
            }
            _ => Err(SyncError::Remote(error)),
        }
    }

    /// Returns the last error once the request had [`MAX_TRIES`] attempts.
    pub(super) fn give_up(&mut self) -> Result<(), SyncError> {
        match self.last.take() {
            Some(error) if self.tries >= MAX_TRIES => Err(SyncError::Remote(error)),
            _ => Ok(()),
        }
    }
}

/// The result of updating one object.
pub(super) enum Outcome {
    /// The object is up to date. Its entry is in the manifest; `None` if the object is removed.
    Done(Option<Entry>),
    /// Another program wrote the object.
    Foreign,
    /// The remote cannot hold the name, or a directory has it.
    Refused,
}

impl Replica {
    /// Brings objects up to date, several at a time.
    pub(super) async fn write_objects(
        &self,
        context: Context<'_>,
        locators: &[&Locator],
        manifest: &Manifest,
        times: &BTreeMap<Locator, Timestamp>,
    ) -> Result<Vec<Option<Outcome>>, SyncError> {
        let done = &AtomicUsize::new(0);
        let mut work: Vec<many::Work<'_, Option<Outcome>, SyncError>> = Vec::with_capacity(locators.len());
        for locator in locators {
            work.push(Box::pin(async move {
                let outcome = self.write_object(context, locator, manifest, times).await;
                let number = done.fetch_add(1, Ordering::Relaxed) + 1;
                context.progress.at(Stage::Mirroring, number, Some(locators.len()));
                outcome
            }));
        }
        many(MAX_AT_ONCE, work).await
    }

    /// Brings one object up to date; `None` if its content is not on this device.
    async fn write_object(
        &self,
        context: Context<'_>,
        locator: &Locator,
        manifest: &Manifest,
        times: &BTreeMap<Locator, Timestamp>,
    ) -> Result<Option<Outcome>, SyncError> {
        let (entry, since) = (manifest.entries.get(locator), manifest.position);
        let outcome = match self.state.known.log.files().get(locator) {
            Some(content) => {
                let Some(bytes) = self.state.kept(&content.hash).await.map_err(SyncError::Local)? else {
                    return Ok(None);
                };
                let file = PlainFile { locator, bytes, mtime: times.get(locator).copied() };
                self.put_object(context, &file, entry, since).await
            }
            None => self.remove_object(context, locator, entry, since).await,
        };
        match outcome {
            Err(SyncError::Remote(error)) if error.kind() == ErrorKind::Invalid => Ok(Some(Outcome::Refused)),
            outcome => outcome.map(Some),
        }
    }

    /// Writes an object, unless another program has changed it.
    async fn put_object(
        &self,
        context: Context<'_>,
        file: &PlainFile<'_>,
        entry: Option<&Entry>,
        since: Option<Position>,
    ) -> Result<Outcome, SyncError> {
        let PlainFile { locator, bytes, mtime } = file;
        let hash = ContentHash::of(bytes);
        let entry_of = |version: &Version| Entry {
            size: bytes.len() as u64,
            mtime: *mtime,
            hash: Some(hash),
            version: Some(version.to_string()),
        };
        let known = entry.and_then(|entry| entry.version.as_deref()).map(Version::new);
        let mut condition = known.map_or(Condition::Absent, Condition::Matches);
        let mut unanswered = Unanswered::default();
        for _ in 0..MAX_ROUNDS {
            let written = self.remote.backend().write(locator, bytes.clone(), condition.clone()).await;
            match written {
                Ok(written) => return Ok(Outcome::Done(Some(entry_of(&written.version)))),
                Err(error) => unanswered.note(error)?,
            }
            match self.remote.read(context.patience, locator).await? {
                None => condition = Condition::Absent,
                Some(At { bytes: there, version }) => {
                    let Some(version) = version else { return Ok(Outcome::Foreign) };
                    if ContentHash::of(&there) == hash {
                        return Ok(Outcome::Done(Some(entry_of(&version))));
                    }
                    if !self.is_ours(context, locator, &there, entry, since).await? {
                        return Ok(Outcome::Foreign);
                    }
                    condition = Condition::Matches(version);
                }
            }
            unanswered.give_up()?;
        }
        Ok(Outcome::Foreign)
    }

    /// Removes an object, unless another program has changed it.
    async fn remove_object(
        &self,
        context: Context<'_>,
        locator: &Locator,
        entry: Option<&Entry>,
        since: Option<Position>,
    ) -> Result<Outcome, SyncError> {
        let mut unanswered = Unanswered::default();
        for _ in 0..MAX_ROUNDS {
            let Some(At { bytes, version: Some(version) }) =
                self.remote.read(context.patience, locator).await?
            else {
                return Ok(Outcome::Done(None));
            };
            if !self.is_ours(context, locator, &bytes, entry, since).await? {
                return Ok(Outcome::Foreign);
            }
            match self.remote.backend().delete(locator, Condition::Matches(version)).await {
                Ok(()) => return Ok(Outcome::Done(None)),
                Err(error) => unanswered.note(error)?,
            }
            unanswered.give_up()?;
        }
        Ok(Outcome::Foreign)
    }

    /// Returns true if a device of ours wrote the object: the manifest or any later commit has its content, or it is an imported edit.
    async fn is_ours(
        &self,
        context: Context<'_>,
        locator: &Locator,
        there: &[u8],
        entry: Option<&Entry>,
        since: Option<Position>,
    ) -> Result<bool, SyncError> {
        let hash = ContentHash::of(there);
        // We may replace an imported edit once the log has it.
        let is_imported = self.state.known.foreign.get(locator) == Some(&hash);
        let was_taken_in = is_imported && self.has_log_of_edit(locator, there).await?;
        if has(Planted::ForeignOverwritten)
            || was_taken_in
            || entry.is_some_and(|entry| entry.hash == Some(hash))
        {
            return Ok(true);
        }
        if context.origins.of(locator, &hash) == Origin::Ours {
            return Ok(true);
        }
        // Most likely a device wrote the object after the manifest. But the manifest may also lag behind, so we search the whole log last.
        for from in since.into_iter().chain([Position::FIRST]) {
            let suspects = [(locator.clone(), hash)].into();
            match self.contents_in_log(context, suspects, from).await {
                Ok(known) if known.is_empty() => {}
                Ok(_) => return Ok(true),
                // The log is damaged, so we cannot tell. The object stays.
                Err(SyncError::Damaged { .. }) => return Ok(false),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(false)
    }

    /// Returns true if the log has everything that an imported edit brought: the file as it is here, and the conflict copy that holds the
    /// edit if the two could not be merged.
    async fn has_log_of_edit(&self, locator: &Locator, edit: &[u8]) -> Result<bool, SyncError> {
        if !self.is_in_log(locator).await? {
            return Ok(false);
        }
        match conflict_name(locator, edit) {
            Ok(copy) if self.local(&copy).await?.is_some() => self.is_in_log(&copy).await,
            Ok(_) | Err(_) => Ok(true),
        }
    }

    /// Returns true if the log has the present content of a working file.
    async fn is_in_log(&self, locator: &Locator) -> Result<bool, SyncError> {
        let here = self.local(locator).await?.map(|bytes| ContentHash::of(&bytes));
        Ok(here == self.state.known.log.files().get(locator).map(|content| content.hash))
    }
}
