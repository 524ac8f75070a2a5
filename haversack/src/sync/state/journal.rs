//! The journal of the state: one line for each [`Advance`], folded into a snapshot when it grows long.
//!
//! 1. [`State::advance`] appends a line, durably, then applies it in memory.
//! 2. When the journal is long, `fold` writes a snapshot with the next number and deletes the journal of the last one.
//! 3. At the next start, `replay` applies the lines of the snapshot's journal. A last line that was cut short did not happen.

use haversack_store::{Bytes, Condition, Durability, ErrorKind, Locator, Result as StoreResult};

use super::files::{damaged, encode, place};
use super::{Advance, LogView, State};
use crate::ids::ContentHash;
use crate::sync::planted::{Planted, has};
use crate::sync::snapshot;

/// The version of the journal's lines. They name none, because a new form of them takes a new version of the snapshot.
pub(crate) const VERSION: u32 = 1;

/// We fold a journal that is longer than this, unless it is short compared with the snapshot.
const MAX_JOURNAL_BYTES: u64 = 64 * 1024;

/// We fold a journal that is longer than this part of the snapshot. A sync that moves all bases in many steps thus writes few snapshots.
const JOURNAL_SHARE: u64 = 4;

/// The end of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalEnd {
    /// The last line is whole.
    Whole,
    /// A crash cut the last line short: that advance did not happen.
    CutShort,
}

impl State {
    fn journal(&self) -> Locator {
        place(&format!("journal-{}", self.snapshot))
    }

    /// Applies the lines of the journal to the snapshot.
    pub(super) async fn replay(&mut self) -> StoreResult<JournalEnd> {
        let journal = match self.backend.read(&self.journal()).await {
            Ok(journal) => journal.bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(JournalEnd::Whole),
            Err(error) => return Err(error),
        };
        let mut rest = &journal[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let Some(advance) = parse_line(&rest[..end]) else {
                if end + 1 == rest.len() {
                    break;
                }
                return Err(damaged("journal", "a line in the middle of it"));
            };
            self.known.advance(&advance)?;
            rest = &rest[end + 1..];
        }
        self.journal_bytes = journal.len() as u64;
        Ok(if rest.is_empty() { JournalEnd::Whole } else { JournalEnd::CutShort })
    }

    /// Moves bases and position, together, durably.
    pub(crate) async fn advance(&mut self, advance: &Advance) -> StoreResult<()> {
        if !self.fits(advance) {
            return Err(damaged("bases", "one of them"));
        }
        let json = serde_json::to_vec(advance).expect("strings and numbers print");
        let mut bytes = format!("{} ", &ContentHash::of(&json).to_string()[..16]).into_bytes();
        bytes.extend(json);
        bytes.push(b'\n');
        let added = bytes.len() as u64;
        let _ = self.backend.append(&self.journal(), bytes.into(), Durability::Now).await?;
        self.journal_bytes += added;
        self.is_durable = true;
        self.known.advance(advance)?;
        if self.journal_bytes > MAX_JOURNAL_BYTES.max(self.snapshot_bytes / JOURNAL_SHARE) {
            self.fold().await?;
        }
        Ok(())
    }

    /// Makes durable everything that this process has read. Call it before any action that relies on it.
    ///
    /// A process may have been killed after it wrote a line of the journal or renamed a record, and before the disk had it. We can read
    /// such bytes, and they are gone after a power failure.
    pub(crate) async fn make_durable(&mut self) -> StoreResult<()> {
        if self.is_durable || has(Planted::SeenIsDurable) {
            return Ok(());
        }
        self.backend.barrier().await?;
        if self.journal_bytes > 0 {
            let _ = self.backend.append(&self.journal(), Bytes::new(), Durability::Now).await?;
        }
        self.is_durable = true;
        Ok(())
    }

    /// Returns true if the bases have the expected mark after an advance. Otherwise the advance was made on other bases.
    pub(crate) fn fits(&self, advance: &Advance) -> bool {
        let lines = advance.bases.iter().map(|line| (line.at.as_str(), line.hash));
        self.known.log.mark_with(lines) == advance.mark
    }

    /// Writes a snapshot that includes the journal.
    pub(super) async fn fold(&mut self) -> StoreResult<()> {
        let old = self.journal();
        let (heading, parts) = snapshot::write(&self.known, self.snapshot + 1);
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let bytes = encode("snapshot", snapshot::VERSION, &heading, &parts)?;
        // A lost snapshot may have left a journal with this number.
        let new = place(&format!("journal-{}", heading.number));
        self.backend.delete(&new, Condition::Any).await?;
        let _ = self.backend.write(&place("snapshot"), bytes.clone(), Condition::Any).await?;
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        snapshot::settle(&mut self.known, &heading, &bytes.slice(bytes.len() - length..));
        (self.snapshot_bytes, self.is_old) = (length as u64, false);
        self.snapshot += 1;
        self.journal_bytes = 0;
        self.is_durable = true;
        self.backend.delete(&old, Condition::Any).await
    }

    /// Forgets the store, the position and all bases, in one step. The contents stay until the next collection.
    pub(crate) async fn forget_log(&mut self) -> StoreResult<()> {
        self.known = LogView { foreign: std::mem::take(&mut self.known.foreign), ..LogView::default() };
        self.fold().await
    }

    /// Returns true if an attempt at working files has moved its bases.
    pub(crate) fn has_ended(&self, attempt: &str) -> bool {
        self.known.attempt.as_deref() == Some(attempt)
    }
}

/// Parses a line of the journal; `None` if it was cut short.
fn parse_line(line: &[u8]) -> Option<Advance> {
    let (hash, json) = line.split_at_checked(17)?;
    let expected = format!("{} ", &ContentHash::of(json).to_string()[..16]);
    (hash == expected.as_bytes()).then(|| serde_json::from_slice(json).ok())?
}
