//! The folder's side of a [`Bridge`]: reads the logs of others, and writes this device's own.

use std::collections::{BTreeMap, BTreeSet};

use futures_lite::StreamExt;
use haversack_store::{Bytes, Condition, EntryKind, ErrorKind, Locator};

use super::bridge::{Bridge, TransferStats, local};
use super::cursor::{self, Moving};
use super::entries::{Entries, MAX_ENTRIES_BYTES};
use super::entry::Entry;
use super::heads::Heads;
use super::layout::{self, Range};
use super::logs::{Logs, Numbered};
use crate::frame::BadFrame;
use crate::ids::{ContentHash, Position, ReplicaId};
use crate::log::{Carried, What};
use crate::sync::planted::{Planted, has};
use crate::sync::{Context, Impatient, SyncError};

/// The log files in the folder.
pub(super) struct FolderListing {
    pub(super) logs: BTreeMap<ReplicaId, Vec<Range>>,
}

impl FolderListing {
    /// Returns the numbers up to `last` that no file of a log has.
    pub(super) fn missing(&self, replica: ReplicaId, last: u64) -> Vec<u64> {
        let mut ranges = self.logs.get(&replica).cloned().unwrap_or_default();
        ranges.sort_unstable();
        let mut missing = Vec::new();
        let mut next = 1;
        for range in ranges {
            missing.extend(next..range.first.min(last + 1));
            next = next.max(range.last + 1);
        }
        missing.extend(next..=last);
        missing
    }
}

/// Whose bytes are at a place in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    Theirs,
}

impl Bridge {
    /// Returns which files of logs are in the folder.
    pub(super) async fn look(&self) -> Result<FolderListing, SyncError> {
        let mut logs = BTreeMap::new();
        let listing = self.folder.list(&layout::logs()).await.map_err(SyncError::Remote)?;
        for entry in listing.entries.iter().filter(|entry| entry.kind == EntryKind::Directory) {
            let Some(replica) = layout::replica_at(&entry.locator) else { continue };
            let files = self.folder.list(&entry.locator).await.map_err(SyncError::Remote)?.entries;
            logs.insert(replica, files.iter().filter_map(|file| layout::range_at(&file.locator)).collect());
        }
        Ok(FolderListing { logs })
    }

    /// Takes another name if another home writes under this device's name: a copy of this home, or this home before a backup was restored.
    pub(super) async fn notice_twin(
        &mut self,
        context: Context<'_>,
        there: &FolderListing,
    ) -> Result<(), SyncError> {
        let ranges = there.logs.get(&self.replica).map(Vec::as_slice).unwrap_or_default();
        let last = ranges.iter().map(|range| range.last).max().unwrap_or(0);
        if last > self.own_last() {
            // The copies may contain more than the saved cursor.
            self.read().await?;
        }
        let ours = self.own_last();
        let mark = self.own_mark().await?;
        let mut first = last.min(ours) + 1;
        if self.cursor.own_mark != mark {
            for range in ranges.iter().filter(|range| range.first == range.last && range.first <= ours) {
                if range.first < first && self.whose(range.first).await? == Whose::Theirs {
                    first = range.first;
                }
            }
            self.cursor.own_mark = mark;
        }
        if last > ours || first <= last.min(ours) {
            self.step_aside(context, first).await?;
        }
        Ok(())
    }

    /// Returns the fingerprints of the files of this device's folder log.
    async fn own_mark(&self) -> Result<Option<ContentHash>, SyncError> {
        let mut seen = String::new();
        let directory = layout::log(self.replica);
        let mut pages = self.folder.scan(&directory, None);
        while let Some(page) = pages.next().await {
            for info in page.map_err(SyncError::Remote)?.infos {
                seen.push_str(&format!("{} {}\n", info.locator, info.fingerprint));
            }
        }
        Ok((!seen.is_empty()).then(|| ContentHash::of(seen.as_bytes())))
    }

    /// Tells whose entry is in the folder under this device's name; what cannot be read is written again.
    async fn whose(&mut self, number: u64) -> Result<Whose, SyncError> {
        let locator = layout::entries(self.replica, Range::one(number));
        let Ok(there) = self.folder.read(&locator).await else { return Ok(Whose::Ours) };
        let at = (self.replica, number);
        let Some(ours) = self.read().await?.kept.bytes(at).await? else {
            return Ok(Whose::Theirs);
        };
        if there.bytes == ours {
            return Ok(Whose::Ours);
        }
        match Entry::decode(&there.bytes) {
            Ok(_) => Ok(Whose::Theirs),
            Err(_) => {
                let written = self.folder.write(&locator, ours, Condition::Matches(there.version)).await;
                written.map(|_| Whose::Ours).map_err(SyncError::Remote)
            }
        }
    }

    /// Continues under another name. Entries from a number on, which no device has read, move to it.
    async fn step_aside(&mut self, context: Context<'_>, first: u64) -> Result<(), SyncError> {
        let (old, new) = (self.replica, ReplicaId::from_bytes(context.ids.next()));
        self.cursor.moving = Some(Moving { from: old, first, to: new });
        self.replica = cursor::rename(&*self.home, &mut self.cursor, Some(old), new).await?;
        self.finish_moving().await
    }

    /// Gives entries their new name, if that was begun.
    pub(super) async fn finish_moving(&mut self) -> Result<(), SyncError> {
        let Some(Moving { from, first, to }) = self.cursor.moving else { return Ok(()) };
        let seen = |heads: &Heads| {
            let before = heads.of(from).min(first - 1);
            let after = heads.of(from).saturating_sub(first - 1);
            let others = heads.each().filter(|(replica, _)| *replica != from);
            let heads = others.fold(Heads::default(), |heads, (replica, number)| heads.with(replica, number));
            heads.with(from, before).with(to, after)
        };
        let last = self.read().await?.logs.last(from);
        for number in first..=last {
            let Some(entry) = self.read().await?.kept.entry((from, number)).await? else { continue };
            let number = entry.number - (first - 1);
            let entry = Entry { replica: to, number, seen: seen(&entry.seen), ..Entry::clone(&entry) };
            let bytes = entry
                .encode()
                .map_err(|why| SyncError::Unfit { position: Position::FIRST, why: why.to_string() })?;
            self.read().await?.kept.add(to, Range::one(number), bytes).await?;
        }
        self.read().await?.kept.forget(from, first).await?;
        self.cursor.heads = seen(&self.cursor.heads);
        self.cursor.moving = None;
        self.read = None;
        self.read().await?;
        self.save().await
    }

    /// Copies the log files that have arrived.
    pub(super) async fn fetch(
        &mut self,
        there: &FolderListing,
        transfers: &mut TransferStats,
    ) -> Result<(), SyncError> {
        let own = self.replica;
        for (replica, ranges) in there.logs.iter().filter(|(replica, _)| **replica != own) {
            for range in ranges {
                if range.last <= self.cursor.kept.of(*replica) {
                    continue;
                }
                let all = range.first..=range.last;
                let read = self.read().await?;
                if all.clone().all(|number| read.logs.has((*replica, number))) {
                    continue;
                }
                let locator = layout::entries(*replica, *range);
                let Some((bytes, entries)) = self.arrived(*replica, *range, &locator).await? else {
                    transfers.waiting.push(locator);
                    continue;
                };
                let read = self.read().await?;
                read.kept.add(*replica, *range, bytes).await?;
                for entry in &entries {
                    read.logs.add(entry);
                }
                let last = without_gap(&read.logs, *replica);
                self.cursor.kept = std::mem::take(&mut self.cursor.kept).with(*replica, last);
            }
        }
        Ok(())
    }

    /// Returns a file of a log, if it and everything it names is there, whole.
    async fn arrived(
        &self,
        replica: ReplicaId,
        range: Range,
        locator: &Locator,
    ) -> Result<Option<(Bytes, Vec<Entry>)>, SyncError> {
        let too_large = |size: u64| size > MAX_ENTRIES_BYTES as u64;
        if self.folder.info(locator).await.is_ok_and(|info| too_large(info.size_bytes)) {
            return Ok(None);
        }
        // A problem with one file does not stop the others.
        let Ok(object) = self.folder.read(locator).await else { return Ok(None) };
        let entries = match Entries::decode(replica, range, &object.bytes) {
            Ok(entries) => entries,
            Err(why @ (BadFrame::Newer { .. } | BadFrame::NewerPart { .. })) => {
                return Err(SyncError::Damaged { what: format!("{locator} in the folder"), why });
            }
            Err(_) if has(Planted::HalfIsRead) => {
                let seen = Heads::default().with(replica, range.first - 1);
                let nothing = Entry { replica, number: range.first, seen, commit: None, shown: Vec::new() };
                return Ok(nothing.encode().ok().map(|bytes| (bytes, vec![nothing])));
            }
            Err(_) => return Ok(None),
        };
        let changes =
            entries.iter().filter_map(|entry| entry.commit.as_ref()).flat_map(|commit| &commit.changes);
        let objects: BTreeSet<ContentHash> = changes.filter_map(|change| object_of(&change.what)).collect();
        for hash in objects {
            if self.log.object(&Impatient, &hash).await.map_err(local)?.is_some() {
                continue;
            }
            let found = self.folder.read(&layout::object(replica, &hash)).await.ok();
            let Some(object) = found.filter(|object| ContentHash::of(&object.bytes) == hash) else {
                return Ok(None);
            };
            self.log.put_object(&Impatient, &object.bytes).await.map_err(local)?;
        }
        Ok(Some((object.bytes, entries)))
    }

    /// Writes the entries of this device's folder log that the folder does not have yet.
    pub(super) async fn send(
        &mut self,
        context: Context<'_>,
        there: &FolderListing,
        transfers: &mut TransferStats,
    ) -> Result<(), SyncError> {
        for former in self.cursor.former.clone() {
            for number in there.missing(former, self.cursor.kept.of(former)) {
                self.send_one((former, number), transfers).await?;
            }
        }
        let mut missing = there.missing(self.replica, self.own_last());
        missing.reverse();
        while let Some(number) = missing.pop() {
            let sent = self.send_one((self.replica, number), transfers).await?;
            if sent == Whose::Theirs && self.whose(number).await? == Whose::Theirs {
                self.step_aside(context, number).await?;
                missing = (1..=self.own_last()).rev().collect();
            }
        }
        Ok(())
    }

    /// Writes one entry to the folder, after the objects that it needs; another file may be there.
    pub(super) async fn send_one(
        &mut self,
        at: Numbered,
        transfers: &mut TransferStats,
    ) -> Result<Whose, SyncError> {
        let (replica, number) = at;
        let Some(bytes) = self.read().await?.kept.bytes(at).await? else { return Ok(Whose::Ours) };
        let entry = Entry::decode(&bytes)
            .map_err(|why| SyncError::Damaged { what: "an entry that is kept here".to_owned(), why })?;
        let changes = entry.commit.iter().flat_map(|commit| &commit.changes);
        for hash in changes.filter_map(|change| object_of(&change.what)) {
            if let Some(object) = self.log.object(&Impatient, &hash).await.map_err(local)? {
                // An object under this hash is this content, or it is damaged.
                let place = layout::object(replica, &hash);
                let _ = self.folder.write(&place, object, Condition::Any).await.map_err(SyncError::Remote)?;
            }
        }
        let place = layout::entries(replica, Range::one(number));
        match self.folder.write(&place, bytes, Condition::Absent).await {
            Ok(_) => {
                transfers.sent += 1;
                Ok(Whose::Ours)
            }
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Whose::Theirs),
            Err(error) => Err(SyncError::Remote(error)),
        }
    }

    /// Puts many small files of logs into few: here those of every device, in the folder our own.
    pub(super) async fn fold(&mut self, there: &FolderListing) -> Result<(), SyncError> {
        let Some(read) = &mut self.read else { return Ok(()) };
        for replica in read.kept.replicas() {
            // A log with gaps in the folder cannot be folded there.
            if replica == self.replica && there.missing(replica, read.logs.last(replica)).len() > 1 {
                continue;
            }
            while let Some((range, bytes)) = read.kept.fold(replica).await? {
                if replica != self.replica {
                    continue;
                }
                let whole = layout::entries(replica, range);
                let written = self.folder.write(&whole, bytes, Condition::Any).await;
                let _ = written.map_err(SyncError::Remote)?;
                for number in range.first..=range.last {
                    let single = layout::entries(replica, Range::one(number));
                    self.folder.delete(&single, Condition::Any).await.map_err(SyncError::Remote)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns how far a log is kept without a gap.
pub(super) fn without_gap(logs: &Logs, replica: ReplicaId) -> u64 {
    (1..).take_while(|number| logs.has((replica, *number))).last().unwrap_or(0)
}

/// Returns the object that a change needs.
pub(super) fn object_of(what: &What) -> Option<ContentHash> {
    match what {
        What::Put { content: Carried::Object(hash), .. }
        | What::Append { added: Carried::Object(hash), .. } => Some(*hash),
        What::Put { .. } | What::Append { .. } | What::Delete { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_file_of_a_log_has_is_missing() {
        let missing = |ranges: &[(u64, u64)], last| {
            let replica = ReplicaId::from_bytes([7; 16]);
            let ranges = ranges.iter().map(|(first, last)| Range { first: *first, last: *last }).collect();
            FolderListing { logs: BTreeMap::from([(replica, ranges)]) }.missing(replica, last)
        };
        assert_eq!(missing(&[], 3), [1, 2, 3]);
        assert_eq!(missing(&[(1, 2), (3, 3)], 3), [0; 0]);
        assert_eq!(missing(&[(5, 5), (2, 3), (3, 3)], 6), [1, 4, 6]);
        assert_eq!(missing(&[(2, 9), (3, 4)], 5), [1], "what is beyond the last is not asked for");
        assert_eq!(missing(&[(7, 8), (11, 12)], 4), [1, 2, 3, 4]);
        assert_eq!(missing(&[(1, 4)], 0), [0; 0]);
    }
}
