//! Restores log files that a folder has lost.
//!
//! A sync client can damage a file, and a person can delete one. The owner of a log writes it again at its next sync. But the owner may be a machine that
//! is gone, and then new machines would wait for ever. Every device keeps a copy of all entries that it has read, and can restore them (docs/adr/0024).

use std::collections::BTreeSet;

use haversack_store::{Bytes, Condition, ErrorKind, Object};

use super::bridge::{Bridge, TransferStats, local};
use super::entries::Entries;
use super::folder::{FolderListing, object_of};
use super::layout::{self, Range};
use crate::frame::BadFrame;
use crate::ids::{ContentHash, ReplicaId};
use crate::log::StoreFile;
use crate::log::layout::store_file;
use crate::names;
use crate::sync::{Context, Impatient, SyncError};

impl Bridge {
    /// Puts all logs that this device keeps into a folder that was emptied, byte for byte; returns how many files that are.
    ///
    /// A folder that holds another store is left alone.
    pub async fn put_back(&mut self, context: Context<'_>) -> Result<usize, SyncError> {
        let Some(store) = self.cursor.store else { return Ok(0) };
        let place = store_file();
        match self.folder.read(&place).await {
            Ok(object) => match StoreFile::decode(&object.bytes) {
                Ok(file) if file.store != store => {
                    return Err(SyncError::OtherStore { expected: store, found: file.store });
                }
                Ok(_) => {}
                Err(why) => {
                    return Err(SyncError::Damaged { what: "the file that names the store".to_owned(), why });
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let name = names::harmless(&context.author.device);
                let file = StoreFile { store, created: context.clock.now(), name, predecessor: None };
                let written = self.folder.write(&place, file.encode(), Condition::Absent).await;
                let _ = written.map_err(SyncError::Remote)?;
            }
            Err(error) => return Err(SyncError::Remote(error)),
        }
        self.mend().await
    }

    /// Restores lost files of all logs from this device's copies; returns their number.
    ///
    /// A valid file with other content than our copy stays as it is: another device wrote it.
    pub async fn mend(&mut self) -> Result<usize, SyncError> {
        let there = self.look().await?;
        let mut mended = 0;
        for replica in self.read().await?.kept.replicas() {
            mended += self.mend_log(replica, &there).await?;
        }
        self.tidy(&there).await?;
        Ok(mended)
    }

    async fn mend_log(&mut self, replica: ReplicaId, there: &FolderListing) -> Result<usize, SyncError> {
        let last = self.cursor.kept.of(replica);
        let mut mended = 0;
        for range in there.logs.get(&replica).into_iter().flatten().filter(|range| range.last <= last) {
            if let Some(damaged) = self.damaged(replica, *range).await?
                && let Some(bytes) = self.kept_file(replica, *range).await?
            {
                let condition = Condition::Matches(damaged.version);
                match self.folder.write(&layout::entries(replica, *range), bytes, condition).await {
                    Ok(_) => mended += 1,
                    // The client has delivered another file since.
                    Err(error) if error.kind() == ErrorKind::Conflict => {}
                    Err(error) => return Err(SyncError::Remote(error)),
                }
            }
        }
        let mut sent = TransferStats::default();
        for number in there.missing(replica, last) {
            self.send_one((replica, number), &mut sent).await?;
        }
        Ok(mended + sent.sent + self.mend_objects(replica, last).await?)
    }

    /// Returns a file of a log if its content does not fit its name. A file whose content has not arrived, or that is of a newer version, is not damaged.
    async fn damaged(&self, replica: ReplicaId, range: Range) -> Result<Option<Object>, SyncError> {
        let Ok(object) = self.folder.read(&layout::entries(replica, range)).await else { return Ok(None) };
        match Entries::decode(replica, range, &object.bytes) {
            Ok(_) | Err(BadFrame::Newer { .. } | BadFrame::NewerPart { .. }) => Ok(None),
            Err(_) => Ok(Some(object)),
        }
    }

    /// Returns the content of a log file, if this device has all of it.
    async fn kept_file(&mut self, replica: ReplicaId, range: Range) -> Result<Option<Bytes>, SyncError> {
        let mut entries = Vec::new();
        for number in range.first..=range.last {
            let Some(bytes) = self.read().await?.kept.bytes((replica, number)).await? else {
                return Ok(None);
            };
            entries.push(bytes);
        }
        match range.first == range.last {
            true => Ok(entries.pop()),
            false => Ok(Entries { replica, range, entries }.encode().ok()),
        }
    }

    /// Puts back the large contents that entries of a log need.
    async fn mend_objects(&mut self, replica: ReplicaId, last: u64) -> Result<usize, SyncError> {
        let mut named: BTreeSet<ContentHash> = BTreeSet::new();
        for number in 1..=last {
            let Some(entry) = self.read().await?.kept.entry((replica, number)).await? else { continue };
            let changes = entry.commit.iter().flat_map(|commit| &commit.changes);
            named.extend(changes.filter_map(|change| object_of(&change.what)));
        }
        let mut mended = 0;
        for hash in named {
            let place = layout::object(replica, &hash);
            match self.folder.info(&place).await {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                _ => continue,
            }
            if let Some(object) = self.log.object(&Impatient, &hash).await.map_err(local)? {
                let _ = self.folder.write(&place, object, Condition::Any).await.map_err(SyncError::Remote)?;
                mended += 1;
            }
        }
        Ok(mended)
    }

    /// Removes single entries of this device's folder log that are also in a range: another device restored them before the range had arrived there.
    async fn tidy(&mut self, there: &FolderListing) -> Result<(), SyncError> {
        let ranges = there.logs.get(&self.replica).map(Vec::as_slice).unwrap_or_default();
        for whole in ranges.iter().filter(|range| range.first < range.last) {
            if self.damaged(self.replica, *whole).await?.is_some() {
                continue;
            }
            let is_within = |range: &&Range| {
                range.first == range.last && (whole.first..=whole.last).contains(&range.first)
            };
            for single in ranges.iter().filter(is_within) {
                let place = layout::entries(self.replica, *single);
                self.folder.delete(&place, Condition::Any).await.map_err(SyncError::Remote)?;
            }
        }
        Ok(())
    }
}
