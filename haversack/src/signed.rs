//! The writers of changes that are not published yet.
//!
//! The process that syncs is often not the process that wrote. So each write through [`Memory`](crate::Memory) under a name appends a line to the
//! state: the locator, a fingerprint of the new content, and the writer. When a commit is made, the newest line that fits the file's content names the
//! author of the change. Changes without
//! a signature belong to the syncing process.
//!
//! A deletion is written down under any name or none: so a sync can tell files that a verb deleted from files that disappeared
//! ([`outgoing`](crate::sync)).
//!
//! The lines are not made durable by themselves. One that is lost or damaged costs a name or a question, never a content.

use std::sync::LazyLock;

use haversack_store::{Backend, Bytes, Condition, Durability, ErrorKind, Locator, Result as StoreResult};
use serde::{Deserialize, Serialize};

use crate::ids::ContentHash;
use crate::planted::{Planted, has};

/// The name of the file with the lines.
static LINES: LazyLock<Locator> = LazyLock::new(|| Locator::parse("signed").expect("a plain name"));

/// The size at which the older half of the file is removed.
const MAX_BYTES: u64 = 512 * 1024;

/// A writer: the history shows it beside the device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The session of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The cause of its changes, if it is not the cause of the sync that sends them: "undo".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl Writer {
    /// Returns true if it has no name, and its changes have no cause of their own.
    pub fn is_nobody(&self) -> bool {
        self.agent.is_none() && self.session.is_none() && self.cause.is_none()
    }
}

/// A fingerprint of a write: the state of the file after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WriteFingerprint {
    /// This content.
    Content(String),
    /// A file that is so long now.
    Size(u64),
    /// A move to this locator, including everything below it.
    Moved,
    /// Nothing, there and below it.
    Nothing,
    /// Nothing, and the deletion was sent: a file that is there later and disappears was not deleted by this write.
    Sent,
}

impl WriteFingerprint {
    /// Returns what is left by writing a content.
    pub(crate) fn content(bytes: &[u8]) -> WriteFingerprint {
        WriteFingerprint::Content(ContentHash::of(bytes).to_string())
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    path: String,
    #[serde(rename = "left")]
    fingerprint: WriteFingerprint,
    #[serde(flatten)]
    writer: Writer,
}

/// Writes down who left what; the caller holds the store's lock.
pub(crate) async fn sign(
    state: &dyn Backend,
    writer: &Writer,
    fingerprint: impl IntoIterator<Item = (&Locator, WriteFingerprint)>,
) -> StoreResult<()> {
    // A process that was killed may have left half a line: ours begin on a line of their own.
    let mut text = vec![b'\n'];
    for (locator, fingerprint) in fingerprint {
        let line = Line { path: locator.to_string(), fingerprint, writer: writer.clone() };
        serde_json::to_writer(&mut text, &line).expect("texts and numbers print");
        text.push(b'\n');
    }
    let appended = state.append(&LINES, Bytes::from(text), Durability::AtBarrier).await?;
    if appended.offset > MAX_BYTES {
        let all = state.read(&LINES).await?;
        let half = all.bytes.len() / 2;
        let newer = memchr::memchr(b'\n', &all.bytes[half..]).map_or(half, |end| half + end + 1);
        let _ = state.write(&LINES, all.bytes.slice(newer..), Condition::Matches(all.version)).await?;
    }
    Ok(())
}

/// Notes that deletions were sent.
///
/// A file of the same name that comes back later and disappears then was not deleted by a verb.
pub(crate) async fn note_sent(state: &dyn Backend, deleted: &[Locator]) -> StoreResult<()> {
    if deleted.is_empty() {
        return Ok(());
    }
    let signatures = Signatures::read(state).await?;
    let meant = deleted.iter().filter(|locator| signatures.is_deleted_by_verb(locator));
    let lines: Vec<(&Locator, WriteFingerprint)> =
        meant.map(|locator| (locator, WriteFingerprint::Sent)).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => sign(state, &Writer::default(), lines).await,
    }
}

/// Signs the results of a merge under the writer of one of its sides, if there is one: the results hold the signed change, and no other commit
/// sends it. If both sides were signed, the later signature counts, because the earlier one is more likely to have been sent.
pub(crate) async fn sign_merged(
    state: &dyn Backend,
    locator: &Locator,
    sides: &[&[u8]],
    results: &[(&Locator, &[u8])],
) -> StoreResult<()> {
    let signatures = Signatures::read(state).await?;
    let content = |bytes: &[u8]| Some((ContentHash::of(bytes), bytes.len() as u64));
    let newest = sides.iter().filter_map(|side| signatures.newest(locator, content(side))).max();
    let Some((_, _, writer)) = newest.and_then(|number| signatures.lines.get(number)) else { return Ok(()) };
    if writer.is_nobody() {
        return Ok(());
    }
    // A merge that is repeated after a crash must not sign again: its line would be newer than the lines of later writes.
    let is_signed =
        |locator: &Locator, bytes: &[u8]| signatures.writer(locator, content(bytes)) == Some(writer);
    let unsigned = results.iter().filter(|(locator, bytes)| !is_signed(locator, bytes));
    let lines: Vec<_> =
        unsigned.map(|(locator, bytes)| (*locator, WriteFingerprint::content(bytes))).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => sign(state, writer, lines).await,
    }
}

/// Returns who left a place as it is now, as far as it was signed in a store's state and was not sent yet.
pub async fn writer_of(
    state: &dyn Backend,
    locator: &Locator,
    content: Option<&[u8]>,
) -> StoreResult<Option<Writer>> {
    let content = content.map(|bytes| (ContentHash::of(bytes), bytes.len() as u64));
    Ok(Signatures::read(state).await?.writer(locator, content).cloned())
}

/// The signatures.
#[derive(Debug, Default)]
pub(crate) struct Signatures {
    lines: Vec<(Locator, WriteFingerprint, Writer)>,
}

impl Signatures {
    /// Reads the signatures; damaged lines are skipped.
    pub(crate) async fn read(state: &dyn Backend) -> StoreResult<Signatures> {
        let bytes = match state.read(&LINES).await {
            Ok(object) => object.bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Signatures::default()),
            Err(error) => return Err(error),
        };
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| {
            let Line { path, fingerprint, writer } = serde_json::from_slice(line).ok()?;
            Some((Locator::parse(&path).ok()?, fingerprint, writer))
        });
        Ok(Signatures { lines: lines.collect() })
    }

    /// Returns who left a place as it is: with a content of a size, or with nothing.
    pub(crate) fn writer(&self, locator: &Locator, content: Option<(ContentHash, u64)>) -> Option<&Writer> {
        let newest = match has(Planted::LastWriterIsTaken) {
            true => self.lines.last(),
            false => self.newest(locator, content).and_then(|number| self.lines.get(number)),
        };
        newest.map(|(_, _, writer)| writer).filter(|writer| !writer.is_nobody())
    }

    /// Returns the number of the newest line that fits a place as it is.
    fn newest(&self, locator: &Locator, content: Option<(ContentHash, u64)>) -> Option<usize> {
        let fits = |(path, fingerprint, _): &(Locator, WriteFingerprint, Writer)| match (fingerprint, content)
        {
            (WriteFingerprint::Content(hash), Some((now, _))) => path == locator && *hash == now.to_string(),
            (WriteFingerprint::Size(_), Some(_)) if has(Planted::AppendsAreNotSigned) => false,
            (WriteFingerprint::Size(size), Some((_, now))) => path == locator && *size == now,
            (WriteFingerprint::Moved, Some(_)) | (WriteFingerprint::Nothing, None) => locator.is_within(path),
            (WriteFingerprint::Content(_) | WriteFingerprint::Size(_) | WriteFingerprint::Moved, None)
            | (WriteFingerprint::Nothing, Some(_)) => false,
            (WriteFingerprint::Sent, _) => false,
        };
        self.lines.iter().rposition(fits)
    }

    /// Returns true if one of our verbs deleted a file that is gone, after all that is known to have been written there.
    pub(crate) fn is_deleted_by_verb(&self, locator: &Locator) -> bool {
        let about = self.lines.iter().rev().find(|(path, fingerprint, _)| match fingerprint {
            WriteFingerprint::Content(_) | WriteFingerprint::Size(_) | WriteFingerprint::Sent => {
                path == locator
            }
            WriteFingerprint::Moved | WriteFingerprint::Nothing => locator.is_within(path),
        });
        about.is_some_and(|(_, fingerprint, _)| *fingerprint == WriteFingerprint::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use futures_lite::future::block_on;
    use haversack_store::InMemory;

    use super::*;

    fn locator(name: &str) -> Locator {
        Locator::parse(name).expect("valid")
    }

    fn writer(agent: &str) -> Writer {
        Writer { agent: Some(agent.to_owned()), session: Some("7f3a".to_owned()), cause: None }
    }

    #[test]
    fn the_newest_line_that_fits_tells_whose_it_is() {
        let state = InMemory::new();
        let (note, logs, moved) = (locator("note.md"), locator("events.jsonl"), locator("lighthouse"));
        let signed = [
            ("one", &note, WriteFingerprint::content(b"first")),
            ("two", &note, WriteFingerprint::content(b"second")),
            ("one", &logs, WriteFingerprint::Size(12)),
            ("two", &moved, WriteFingerprint::Moved),
            ("one", &moved, WriteFingerprint::Nothing),
        ];
        for (agent, locator, fingerprint) in signed {
            block_on(sign(&state, &writer(agent), [(locator, fingerprint)])).expect("signed");
        }
        let _ = block_on(state.append(&LINES, Bytes::from_static(b"{half a li"), Durability::AtBarrier))
            .expect("there");
        let signatures = block_on(Signatures::read(&state)).expect("read");
        let who = |locator: &Locator, content: Option<&[u8]>| {
            let content = content.map(|bytes| (ContentHash::of(bytes), bytes.len() as u64));
            signatures.writer(locator, content).and_then(|writer| writer.agent.clone()).unwrap_or_default()
        };
        assert_eq!(who(&note, Some(b"first")), "one");
        assert_eq!(who(&note, Some(b"second")), "two");
        assert_eq!(who(&note, Some(b"the user's")), "");
        assert_eq!(who(&note, None), "");
        assert_eq!(who(&logs, Some(b"twelve bytes")), "one");
        assert_eq!(who(&locator("lighthouse/lamp.md"), Some(b"lamp")), "two");
        assert_eq!(who(&locator("lighthouse/lamp.md"), None), "one");
        assert_eq!(who(&locator("lighthouses.md"), None), "");
    }

    #[test]
    fn repeated_merge_is_signed_once() {
        let state = InMemory::new();
        let note = locator("note.md");
        let merge = || {
            block_on(sign_merged(&state, &note, &[b"mine"], &[(&note, b"mine and theirs")])).expect("signed");
            block_on(state.read(&LINES)).expect("there").bytes.len()
        };
        block_on(sign(&state, &writer("one"), [(&note, WriteFingerprint::content(b"mine"))]))
            .expect("signed");
        let once = merge();
        assert_eq!(merge(), once);
        let found = block_on(writer_of(&state, &note, Some(b"mine and theirs"))).expect("read");
        assert_eq!(found, Some(writer("one")));
    }

    #[test]
    fn line_after_half_a_line_counts() {
        let state = InMemory::new();
        let note = locator("note.md");
        let half = Bytes::from_static(b"{half a li");
        let _ = block_on(state.append(&LINES, half, Durability::AtBarrier)).expect("there");
        block_on(sign(&state, &writer("one"), [(&note, WriteFingerprint::content(b"first"))]))
            .expect("signed");
        let found = block_on(writer_of(&state, &note, Some(b"first"))).expect("read");
        assert_eq!(found, Some(writer("one")));
    }

    #[test]
    fn only_the_newer_half_of_a_long_file_is_kept() {
        let state = InMemory::new();
        let note = locator("note.md");
        for number in 0..6000_u32 {
            let fingerprint = WriteFingerprint::content(&number.to_le_bytes());
            block_on(sign(&state, &writer("one"), [(&note, fingerprint)])).expect("signed");
        }
        let length = block_on(state.read(&LINES)).expect("there").bytes.len() as u64;
        assert!(length < MAX_BYTES + 1000, "{length}");
        let signatures = block_on(Signatures::read(&state)).expect("read");
        let knows = |number: u32| {
            signatures.writer(&note, Some((ContentHash::of(&number.to_le_bytes()), 4))).is_some()
        };
        assert!(knows(5999) && !knows(0));
    }
}
