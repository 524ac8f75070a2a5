//! The journal of the state: how positions and bases move, one line for each advance, and how they are folded into a snapshot.

use haversack_store::{Bytes, Condition, Durability, ErrorKind, Locator, Result as StoreResult};

use super::files::{damaged, encode, place};
use super::{Advance, Known, State};
use crate::ids::ContentHash;
use crate::sync::planted::{Planted, has};
use crate::sync::snapshot;

/// A journal that is longer than this is folded into a snapshot, unless it is short beside the snapshot there is.
const MAX_JOURNAL_BYTES: u64 = 64 * 1024;

/// A journal that is longer than this part of the snapshot is folded into another: so whoever moves all bases in many steps writes them
/// down a few times, not with every step.
const JOURNAL_SHARE: u64 = 4;

/// How a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Journal {
    /// With a whole line.
    Whole,
    /// With a line that a crash cut short: it did not happen.
    CutShort,
}

impl State {
    fn journal(&self) -> Locator {
        place(&format!("journal-{}", self.snapshot))
    }

    /// Takes in what the journal says has moved since the snapshot.
    pub(super) async fn replay(&mut self) -> StoreResult<Journal> {
        let journal = match self.backend.read(&self.journal()).await {
            Ok(journal) => journal.bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Journal::Whole),
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
        Ok(if rest.is_empty() { Journal::Whole } else { Journal::CutShort })
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

    /// Makes durable what this process has only read; until then nothing may be done that would be wrong without it.
    ///
    /// Whoever wrote the last line of the journal, or gave a record its name, may have been killed before the disk knew of it: it can
    /// be read, and is gone when the machine stops.
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

    /// Tells whether bases come to what they should: if they do not, others were there when that was written down.
    pub(crate) fn fits(&self, advance: &Advance) -> bool {
        let lines = advance.bases.iter().map(|line| (line.at.as_str(), line.hash));
        self.known.log.mark_with(lines) == advance.mark
    }

    /// Writes a snapshot; what the journal said is in it.
    pub(super) async fn fold(&mut self) -> StoreResult<()> {
        let old = self.journal();
        let (heading, parts) = snapshot::write(&self.known, self.snapshot + 1);
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let bytes = encode("snapshot", snapshot::VERSION, &heading, &parts)?;
        // If a snapshot got lost, a journal of that number may be left of it.
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

    /// Forgets the store, the position and all bases, in one step; what is kept of contents stays until it is collected.
    pub(crate) async fn forget_log(&mut self) -> StoreResult<()> {
        self.known = Known { foreign: std::mem::take(&mut self.known.foreign), ..Known::default() };
        self.fold().await
    }

    /// Tells whether an attempt at working files has moved its bases.
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
