//! The record of a batch. Once it is written, the batch counts as done; the next process that finds it completes it.
//!
//! `batch` in the state is a [frame](crate::frame) whose heading lists the steps, with the contents one after the other. It is written whole, applied,
//! and deleted, all under the store's lock.
//!
//! Every step can be done twice, and what is found done is made durable before the record goes. A file that is neither as the batch found it nor as the batch leaves it was changed by
//! another program: while the batch runs, that program's text is put aside; when a batch is completed later, the file may
//! have been changed on top of what the batch wrote, so it stays and the batch's own text is put aside. Then the files that the batch was to remove
//! after it stay too. Nothing is dropped.

use std::convert::Infallible;
use std::sync::LazyLock;

use haversack_store::{
    Bytes, Condition, EntryKind, Error as StoreError, ErrorKind, Locator, Operation, Result as StoreResult,
    Version,
};
use serde::{Deserialize, Serialize};

use super::batch::BatchReport;
use super::{MAX_TRIES, Memory, Turn};
use crate::error::{Error, Reason, Result, Verb};
use crate::frame::{self, BadFrame, Framed, Parts, Unfit, as_number};
use crate::many::{Work, many};
use crate::signed::WriteFingerprint;

/// The name of the record.
static RECORD: LazyLock<Locator> = LazyLock::new(|| Locator::parse("batch").expect("a plain name"));

const KIND: &str = "batch";
pub(crate) const VERSION: u32 = 1;

/// The largest record: everything that a batch writes.
const MAX_RECORD_BYTES: usize = 1024 * 1024 * 1024;

/// One step of a batch: at most one for each file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Removes the file if it is still what it was.
    Remove { locator: Locator, expected: Version },
    /// Removes the directory if it is empty.
    Sweep { locator: Locator },
    /// Writes the file: in place of what it was, or as a new one.
    Put { locator: Locator, expected: Option<Version>, bytes: Bytes },
}

impl Step {
    /// Returns what it leaves where.
    pub(super) fn fingerprint(&self) -> (Locator, WriteFingerprint) {
        match self {
            Step::Remove { locator, .. } | Step::Sweep { locator } => {
                (locator.clone(), WriteFingerprint::Nothing)
            }
            Step::Put { locator, bytes, .. } => (locator.clone(), WriteFingerprint::content(bytes)),
        }
    }
}

/// Tells if the steps follow from a read just now, or were recorded some time ago.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    First,
    /// As the first run, but the text of another program stays where it is.
    Yielding,
    Again,
}

/// What a batch does with a file that another program changes in the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherWriters {
    /// It writes its own text, and puts the other program's aside.
    PutAside,
    /// It leaves the other program's text, and removes no file after that.
    GoFirst,
}

/// Records the steps and applies them.
pub(super) async fn commit(
    memory: &Memory,
    _turn: &Turn,
    steps: Vec<Step>,
    others: OtherWriters,
) -> Result<BatchReport> {
    let root = Locator::root();
    if steps.len() > 1 {
        // A record that could not be read back would block all later writes.
        let record = encode(&steps).map_err(|_too_large| {
            let contents = steps.iter().map(|step| match step {
                Step::Put { bytes, .. } => as_number(bytes.len()),
                Step::Remove { .. } | Step::Sweep { .. } => 0,
            });
            Error::new(Verb::Batch, &root, Reason::TooLarge { size_bytes: contents.sum() })
        })?;
        let written = memory.state.write(&RECORD, record, Condition::Absent).await;
        let _ = written.map_err(|error| Error::storage(Verb::Batch, &root, error))?;
    }
    let run = match others {
        OtherWriters::PutAside => Run::First,
        OtherWriters::GoFirst => Run::Yielding,
    };
    let applied = apply(memory, &steps, run).await;
    // One step is all or nothing by itself.
    let unfinished = if steps.len() > 1 { Reason::Unfinished } else { Reason::Storage };
    let report = applied.map_err(|error| Error::new(Verb::Batch, &root, unfinished).caused_by(error))?;
    if steps.len() > 1 {
        let deleted = memory.state.delete(&RECORD, Condition::Any).await;
        deleted.map_err(|error| Error::storage(Verb::Batch, &root, error))?;
    }
    Ok(report)
}

/// Completes a batch that was recorded and not finished.
pub(super) async fn complete(memory: &Memory, _turn: &Turn) -> StoreResult<()> {
    let record = match memory.state.read(&RECORD).await {
        Ok(record) => record,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let steps = decode(&record.bytes)?;
    // The process that recorded it may have died before the record was durable. Without the record, a power failure in the middle of the
    // steps would leave half of them.
    let _ = memory.state.write(&RECORD, record.bytes, Condition::Matches(record.version)).await?;
    apply(memory, &steps, Run::Again).await?;
    memory.state.delete(&RECORD, Condition::Any).await
}

async fn apply(memory: &Memory, steps: &[Step], run: Run) -> StoreResult<BatchReport> {
    let mut report = BatchReport::default();
    let mut rest = steps;
    while let Some((step, others)) = rest.split_first() {
        match step {
            // The text that was to replace these files is in no file, so they stay.
            Step::Remove { locator, .. } if run != Run::First && !report.kept.is_empty() => {
                report.stayed.push(locator.clone());
            }
            Step::Remove { locator, expected } => {
                if !remove(memory, locator, expected).await? {
                    report.stayed.push(locator.clone());
                }
            }
            Step::Sweep { locator } => sweep(memory, locator).await?,
            Step::Put { .. } => {
                let puts = rest.iter().take_while(|step| matches!(step, Step::Put { .. })).count();
                for kept in put_all(memory, &rest[..puts], run).await {
                    report.kept.extend(kept?);
                }
                rest = &rest[puts..];
                continue;
            }
        }
        rest = others;
    }
    Ok(report)
}

/// Writes files, each of a step of its own: the disk makes many of them durable at once. None is under way any more when this returns.
async fn put_all(memory: &Memory, steps: &[Step], run: Run) -> Vec<StoreResult<Option<Locator>>> {
    let mut work: Vec<Work<'_, StoreResult<Option<Locator>>, Infallible>> = Vec::with_capacity(steps.len());
    for step in steps {
        if let Step::Put { locator, expected, bytes } = step {
            work.push(Box::pin(async move { Ok(put(memory, locator, expected.clone(), bytes, run).await) }));
        }
    }
    match many(memory.at_once(), work).await {
        Ok(written) => written,
        Err(never) => match never {},
    }
}

/// Deletes a file unless a program changed it; returns true if it is gone.
async fn remove(memory: &Memory, locator: &Locator, expected: &Version) -> StoreResult<bool> {
    match memory.files.delete(locator, Condition::Matches(expected.clone())).await {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Conflict => match memory.files.info(locator).await {
            Ok(_) => Ok(false),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Removes a directory if it is empty; a file that took its place meanwhile stays.
async fn sweep(memory: &Memory, locator: &Locator) -> StoreResult<()> {
    match memory.files.info(locator).await {
        Ok(info) if info.kind == EntryKind::Directory => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    match memory.files.delete(locator, Condition::Any).await {
        // Another program put something there.
        Err(error) if error.kind() == ErrorKind::Invalid => Ok(()),
        result => result,
    }
}

/// Writes a file and returns where a text is kept that is not in it.
async fn put(
    memory: &Memory,
    locator: &Locator,
    mut expected: Option<Version>,
    bytes: &Bytes,
    run: Run,
) -> StoreResult<Option<Locator>> {
    let mut kept = None;
    for _ in 0..MAX_TRIES {
        let condition = expected.map_or(Condition::Absent, Condition::Matches);
        match memory.files.write(locator, bytes.clone(), condition).await {
            Ok(written) => {
                let Some(displaced) = written.displaced else { return Ok(kept) };
                if run != Run::First {
                    let ours = Condition::Matches(written.version);
                    let back = memory.files.write(locator, displaced.bytes, ours).await;
                    if back.is_ok_and(|back| back.displaced.is_none()) {
                        memory.files.delete(&displaced.kept, Condition::Any).await?;
                        return match run {
                            Run::Again => keep(memory, locator, bytes).await.map(Some),
                            Run::First | Run::Yielding => Ok(Some(locator.clone())),
                        };
                    }
                }
                return Ok(Some(displaced.kept));
            }
            Err(error) if error.kind() == ErrorKind::Conflict => match memory.files.read(locator).await {
                // The process that wrote it may have died before it was durable: write it again.
                Ok(there) if there.bytes == *bytes => expected = Some(there.version),
                Ok(there) => match run {
                    Run::First => {
                        kept = Some(keep(memory, locator, &there.bytes).await?);
                        expected = Some(there.version);
                    }
                    Run::Yielding => return Ok(Some(locator.clone())),
                    Run::Again => return keep(memory, locator, bytes).await.map(Some),
                },
                Err(error) if error.kind() == ErrorKind::NotFound => expected = None,
                // Something that is no file took the place.
                Err(error) if error.kind() == ErrorKind::Invalid => break,
                Err(error) => return Err(error),
            },
            // It can never be put there, and must not stand in the way of all later writes.
            Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported) => break,
            Err(error) => return Err(error),
        }
    }
    keep(memory, locator, bytes).await.map(Some)
}

/// Puts a text on the shelf of those that wait to be merged.
async fn keep(memory: &Memory, locator: &Locator, bytes: &Bytes) -> StoreResult<Locator> {
    let content = Version::of_content(bytes);
    let shelf = format!(".haversack/kept/{}", &content.as_str()[..16]);
    let place = Locator::reserved(&format!("{shelf}/{locator}"))
        .or_else(|_| Locator::reserved(&format!("{shelf}/content")))
        .map_err(|reason| StoreError::invalid(Operation::Write, locator, reason))?;
    let _kept = memory.files.write(&place, bytes.clone(), Condition::Any).await?;
    Ok(place)
}

#[derive(Debug, Serialize, Deserialize)]
struct Heading {
    steps: Vec<Line>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Remove { at: String, version: String },
    Sweep { at: String },
    Put { at: String, version: Option<String>, bytes: u64 },
}

fn encode(steps: &[Step]) -> Result<Bytes, Unfit> {
    let mut contents: Vec<&[u8]> = Vec::new();
    let lines = steps.iter().map(|step| match step {
        Step::Remove { locator, expected } => {
            Line::Remove { at: locator.to_string(), version: expected.to_string() }
        }
        Step::Sweep { locator } => Line::Sweep { at: locator.to_string() },
        Step::Put { locator, expected, bytes } => {
            contents.push(bytes);
            let version = expected.as_ref().map(Version::to_string);
            Line::Put { at: locator.to_string(), version, bytes: as_number(bytes.len()) }
        }
    });
    let heading = Heading { steps: lines.collect() };
    frame::encode(KIND, VERSION, &heading, &contents, MAX_RECORD_BYTES)
}

fn decode(record: &Bytes) -> StoreResult<Vec<Step>> {
    let steps = frame::decode::<Heading>(KIND, VERSION, record, MAX_RECORD_BYTES).and_then(read);
    steps.map_err(|bad| {
        let message = match bad {
            BadFrame::NotOurs | BadFrame::Newer { .. } | BadFrame::NewerPart { .. } => {
                "it was recorded by another version of Haversack: update, or move the record away"
            }
            BadFrame::Truncated | BadFrame::Damaged { .. } | BadFrame::TooLarge { .. } => {
                "its record is damaged: look at it, then move it away"
            }
        };
        StoreError::at(ErrorKind::Internal, Operation::Recover, "an unfinished batch", message)
            .with_source(bad)
    })
}

fn read(framed: Framed<Heading>) -> Result<Vec<Step>, BadFrame> {
    let mut parts = Parts::of(framed.contents);
    let place = |key: &str| Locator::parse(key).map_err(|error| BadFrame::damaged(error.to_string()));
    let mut steps = Vec::with_capacity(framed.heading.steps.len());
    for line in framed.heading.steps {
        steps.push(match line {
            Line::Remove { at, version } => {
                Step::Remove { locator: place(&at)?, expected: Version::new(version) }
            }
            Line::Sweep { at } => Step::Sweep { locator: place(&at)? },
            Line::Put { at, version, bytes } => {
                let bytes = parts.take(bytes)?;
                Step::Put { locator: place(&at)?, expected: version.map(Version::new), bytes }
            }
        });
    }
    parts.end()?;
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(key: &str) -> Locator {
        Locator::parse(key).expect("valid")
    }

    /// A record of the first version with this frame.
    const FIXTURE: &[u8] = include_bytes!("../../tests/fixtures/batch-1");

    fn example() -> Vec<Step> {
        vec![
            Step::Remove { locator: at("old.md"), expected: Version::new("v1") },
            Step::Sweep { locator: at("empty") },
            Step::Put { locator: at("a.md"), expected: None, bytes: Bytes::from_static(b"one\n") },
            Step::Put { locator: at("b.bin"), expected: Some(Version::new("v2")), bytes: Bytes::new() },
            Step::Put {
                locator: at("c/ü.md"),
                expected: None,
                bytes: Bytes::from_static(b"\0\xff haversack-batch 1\n"),
            },
        ]
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let steps = example();
        let record = encode(&steps).expect("small");
        assert_eq!(decode(&record).expect("whole"), steps);
        for cut in 0..record.len() {
            assert!(decode(&record.slice(..cut)).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn the_format_does_not_change_by_accident() {
        assert_eq!(encode(&example()).expect("small"), FIXTURE);
        assert_eq!(decode(&Bytes::from_static(FIXTURE)).expect("whole"), example());
    }

    #[test]
    fn every_flip_in_a_record_is_refused() {
        let record = encode(&example()).expect("small");
        for place in 0..record.len() {
            let mut flipped = record.to_vec();
            flipped[place] ^= 1;
            let error = decode(&flipped.into()).expect_err("damaged");
            assert_eq!(error.kind(), ErrorKind::Internal, "{place}");
        }
    }

    #[test]
    fn contents_are_as_long_as_the_steps_say() {
        let contents: &[(&[u8], u64)] = &[(b"one", 4), (b"one", 2), (b"one", u64::MAX)];
        for (contents, bytes) in contents {
            let heading =
                Heading { steps: vec![Line::Put { at: "a.md".to_owned(), version: None, bytes: *bytes }] };
            let record =
                frame::encode(KIND, VERSION, &heading, &[contents], MAX_RECORD_BYTES).expect("small");
            assert!(decode(&record).expect_err("a lie").to_string().contains("damaged"), "{bytes}");
        }
    }

    #[test]
    fn a_record_of_another_version_is_not_guessed_at() {
        let error = decode(&Bytes::from_static(b"haversack-batch 2\n{}\n")).expect_err("unknown");
        assert!(error.to_string().contains("another version"), "{error}");
    }
}
