//! The copies of all entries that a device has read, in its home: a file that the folder loses is not lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_lite::StreamExt;
use haversack_store::{Backend, Bytes, Condition, ErrorKind, Locator};

use super::entries::{Entries, MAX_ENTRIES_BYTES};
use super::entry::Entry;
use super::layout::Range;
use super::logs::{Logs, Numbered};
use crate::ids::ReplicaId;
use crate::sync::SyncError;

/// After so many files of single entries a log is folded.
pub(super) const FOLDED_ENTRIES: usize = 128;

/// The entries that are kept.
#[derive(Debug)]
pub(super) struct LogCopies {
    home: Arc<dyn Backend>,
    files: BTreeMap<ReplicaId, BTreeSet<Range>>,
    /// The file that was read last. Most readers read its next entry too.
    last: Option<(ReplicaId, Range, Vec<Bytes>)>,
    /// The entry that was read last. Most readers ask for its next file too.
    entry: Option<(Numbered, Arc<Entry>)>,
}

fn directory() -> Locator {
    Locator::parse("logs").expect("a plain name")
}

fn place(replica: ReplicaId, range: Range) -> Locator {
    Locator::parse(&format!("logs/{replica}/{}", range.name())).expect("plain names")
}

/// Returns the replica and range of a file's name, the reverse of [`place`].
fn at(locator: &Locator) -> Option<(ReplicaId, Range)> {
    let (replica, name) = locator.as_str().strip_prefix("logs/")?.split_once('/')?;
    Some((replica.parse().ok()?, Range::from_name(name)?))
}

impl LogCopies {
    /// Reads the copies; a damaged one counts as not read yet.
    pub(super) async fn load(home: Arc<dyn Backend>) -> Result<(LogCopies, Logs), SyncError> {
        let mut found = Vec::new();
        let mut pages = home.scan(&directory(), None);
        while let Some(page) = pages.next().await {
            found.extend(page.map_err(SyncError::Local)?.infos.iter().filter_map(|info| at(&info.locator)));
        }
        drop(pages);
        let mut kept = LogCopies { home, files: BTreeMap::new(), last: None, entry: None };
        let mut logs = Logs::default();
        for (replica, range) in found {
            let Some(bytes) = kept.read(replica, range).await? else { continue };
            let Ok(entries) = Entries::decode(replica, range, &bytes) else { continue };
            for entry in &entries {
                logs.add(entry);
            }
            kept.files.entry(replica).or_default().insert(range);
        }
        Ok((kept, logs))
    }

    /// Keeps a file of a log.
    pub(super) async fn add(
        &mut self,
        replica: ReplicaId,
        range: Range,
        bytes: Bytes,
    ) -> Result<(), SyncError> {
        // Something damaged may be there.
        let written = self.home.write(&place(replica, range), bytes, Condition::Any).await;
        let _ = written.map_err(SyncError::Local)?;
        self.files.entry(replica).or_default().insert(range);
        Ok(())
    }

    /// Returns the bytes of an entry.
    pub(super) async fn bytes(&mut self, (replica, number): Numbered) -> Result<Option<Bytes>, SyncError> {
        let covers = |range: &Range| (range.first..=range.last).contains(&number);
        let Some(range) = self.files.get(&replica).and_then(|files| files.iter().copied().find(covers))
        else {
            return Ok(None);
        };
        let index = usize::try_from(number - range.first).unwrap_or(usize::MAX);
        if let Some((of, at, parts)) = &self.last
            && (*of, *at) == (replica, range)
        {
            return Ok(parts.get(index).cloned());
        }
        let Some(bytes) = self.read(replica, range).await? else { return Ok(None) };
        if range.first == range.last {
            return Ok(Some(bytes));
        }
        let parts = Entries::parts(replica, range, &bytes)
            .map_err(|why| SyncError::Damaged { what: "a log that is kept here".to_owned(), why })?;
        let found = parts.get(index).cloned();
        self.last = Some((replica, range, parts));
        Ok(found)
    }

    /// Returns an entry.
    pub(super) async fn entry(&mut self, at: Numbered) -> Result<Option<Arc<Entry>>, SyncError> {
        if let Some((_, entry)) = self.entry.as_ref().filter(|(known, _)| *known == at) {
            return Ok(Some(entry.clone()));
        }
        let Some(bytes) = self.bytes(at).await? else { return Ok(None) };
        let entry = Entry::decode(&bytes)
            .map_err(|why| SyncError::Damaged { what: "an entry that is kept here".to_owned(), why })?;
        let entry = Arc::new(entry);
        self.entry = Some((at, entry.clone()));
        Ok(Some(entry))
    }

    /// Puts the oldest single entries of a log into one file, if they are many; returns that file, and which entries are in it.
    pub(super) async fn fold(&mut self, replica: ReplicaId) -> Result<Option<(Range, Bytes)>, SyncError> {
        let single: Vec<u64> = self
            .files
            .get(&replica)
            .into_iter()
            .flatten()
            .filter(|range| range.first == range.last)
            .map(|range| range.first)
            .collect();
        if single.len() < 2 * FOLDED_ENTRIES {
            return Ok(None);
        }
        let mut entries = Vec::new();
        let mut size = 0;
        for (index, number) in single.iter().take(FOLDED_ENTRIES).enumerate() {
            if index > 0 && *number != single[index - 1] + 1 {
                break;
            }
            let Some(bytes) = self.bytes((replica, *number)).await? else { break };
            size += bytes.len();
            if size > MAX_ENTRIES_BYTES / 2 {
                break;
            }
            entries.push(bytes);
        }
        if entries.len() < 2 {
            return Ok(None);
        }
        let range = Range { first: single[0], last: single[entries.len() - 1] };
        let file = Entries { replica, range, entries };
        let Ok(bytes) = file.encode() else { return Ok(None) };
        self.add(replica, range, bytes.clone()).await?;
        for number in range.first..=range.last {
            self.home
                .delete(&place(replica, Range::one(number)), Condition::Any)
                .await
                .map_err(SyncError::Local)?;
            self.files.entry(replica).or_default().remove(&Range::one(number));
        }
        Ok(Some((range, bytes)))
    }

    /// Forgets the single entries of a log from a number on, which are kept under another name.
    pub(super) async fn forget(&mut self, replica: ReplicaId, first: u64) -> Result<(), SyncError> {
        let files = self.files.entry(replica).or_default();
        let gone: Vec<Range> = files.iter().copied().filter(|range| range.first >= first).collect();
        for range in gone {
            self.home.delete(&place(replica, range), Condition::Any).await.map_err(SyncError::Local)?;
            files.remove(&range);
        }
        self.entry = None;
        Ok(())
    }

    /// Returns the replicas whose entries are kept.
    pub(super) fn replicas(&self) -> Vec<ReplicaId> {
        self.files.keys().copied().collect()
    }

    async fn read(&self, replica: ReplicaId, range: Range) -> Result<Option<Bytes>, SyncError> {
        match self.home.read(&place(replica, range)).await {
            Ok(object) => Ok(Some(object.bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SyncError::Local(error)),
        }
    }
}
