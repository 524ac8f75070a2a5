//! The record of a batch: once it is written, the batch happened; whoever finds it completes it.
//!
//! `batch` in the state is one line `haversack-batch 1`, one line of JSON that lists the steps, and the contents one after
//! the other. It is written whole, applied, and deleted, all under the store's lock.
//!
//! Every step can be done twice, and what is found done is made durable before the record goes. A file that is neither as the batch found it nor as the batch leaves it was changed by
//! another program: while the batch runs, that program's text is put aside; when a batch is completed later, the file may
//! have been changed on top of what the batch wrote, so it stays and the batch's own text is put aside. Nothing is dropped.

use std::sync::LazyLock;

use haversack_store::{
    Bytes, Condition, EntryKind, Error as StoreError, ErrorKind, Locator, Operation, Result as StoreResult,
    Version,
};
use serde::{Deserialize, Serialize};

use super::batch::BatchReport;
use super::{MAX_TRIES, Memory, Turn};
use crate::error::{Error, Reason, Result, Verb};

/// Where the record is.
static RECORD: LazyLock<Locator> = LazyLock::new(|| Locator::parse("batch").expect("a plain name"));

/// What the record starts with.
const HEADING: &str = "haversack-batch 1\n";

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

/// Whether the steps follow from what was just read, or were recorded some time ago.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    First,
    Again,
}

/// Records the steps and applies them.
pub(super) async fn commit(memory: &Memory, _turn: &Turn, steps: Vec<Step>) -> Result<BatchReport> {
    let root = Locator::root();
    if steps.len() > 1 {
        let written = memory.state.write(&RECORD, encode(&steps), Condition::Absent).await;
        let _ = written.map_err(|error| Error::storage(Verb::Batch, &root, error))?;
    }
    let applied = apply(memory, &steps, Run::First).await;
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
    // Whoever recorded it may have died before the record was durable: without it, a power failure in the middle of the
    // steps would leave half of them.
    let _ = memory.state.write(&RECORD, record.bytes, Condition::Matches(record.version)).await?;
    apply(memory, &steps, Run::Again).await?;
    memory.state.delete(&RECORD, Condition::Any).await
}

async fn apply(memory: &Memory, steps: &[Step], run: Run) -> StoreResult<BatchReport> {
    let mut report = BatchReport::default();
    for step in steps {
        match step {
            Step::Remove { locator, expected } => {
                if !remove(memory, locator, expected).await? {
                    report.stayed.push(locator.clone());
                }
            }
            Step::Sweep { locator } => sweep(memory, locator).await?,
            Step::Put { locator, expected, bytes } => {
                let kept = put(memory, locator, expected.clone(), bytes, run).await?;
                report.kept.extend(kept);
            }
        }
    }
    Ok(report)
}

/// Removes a file unless somebody changed it, and tells whether it is gone.
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
            Ok(written) => return Ok(written.displaced.map(|displaced| displaced.kept).or(kept)),
            Err(error) if error.kind() == ErrorKind::Conflict => match memory.files.read(locator).await {
                // Whoever wrote it may have died before it was durable: it is written once more.
                Ok(there) if there.bytes == *bytes => expected = Some(there.version),
                Ok(there) => match run {
                    Run::First => {
                        kept = Some(keep(memory, locator, &there.bytes).await?);
                        expected = Some(there.version);
                    }
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
    /// The BLAKE3 hash of the contents.
    contents: String,
    steps: Vec<Line>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    Remove { at: String, version: String },
    Sweep { at: String },
    Put { at: String, version: Option<String>, bytes: usize },
}

fn encode(steps: &[Step]) -> Bytes {
    let mut contents = Vec::new();
    let lines = steps.iter().map(|step| match step {
        Step::Remove { locator, expected } => {
            Line::Remove { at: locator.to_string(), version: expected.to_string() }
        }
        Step::Sweep { locator } => Line::Sweep { at: locator.to_string() },
        Step::Put { locator, expected, bytes } => {
            contents.extend_from_slice(bytes);
            let version = expected.as_ref().map(Version::to_string);
            Line::Put { at: locator.to_string(), version, bytes: bytes.len() }
        }
    });
    let steps = lines.collect();
    let heading = Heading { contents: Version::of_content(&contents).to_string(), steps };
    let mut record = HEADING.as_bytes().to_vec();
    record.extend(serde_json::to_vec(&heading).expect("strings and numbers print"));
    record.push(b'\n');
    record.extend(contents);
    record.into()
}

fn decode(record: &[u8]) -> StoreResult<Vec<Step>> {
    let broken = |message: &str| {
        StoreError::at(ErrorKind::Internal, Operation::Recover, "an unfinished batch", message)
    };
    let Some(rest) = record.strip_prefix(HEADING.as_bytes()) else {
        return Err(broken(
            "it was recorded by another version of Haversack: update, or move the record away",
        ));
    };
    let damaged = || broken("its record is damaged: look at it, then move it away");
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(damaged)?;
    let heading: Heading =
        serde_json::from_slice(&rest[..end]).map_err(|error| damaged().with_source(error))?;
    let mut contents = Bytes::copy_from_slice(&rest[end + 1..]);
    if Version::of_content(&contents).as_str() != heading.contents {
        return Err(damaged());
    }
    let place = |key: &str| Locator::parse(key).map_err(|error| damaged().with_source(error));
    let steps = heading.steps.into_iter().map(|line| {
        Ok(match line {
            Line::Remove { at, version } => {
                Step::Remove { locator: place(&at)?, expected: Version::new(version) }
            }
            Line::Sweep { at } => Step::Sweep { locator: place(&at)? },
            Line::Put { at, version, bytes } => {
                if bytes > contents.len() {
                    return Err(damaged());
                }
                let bytes = contents.split_to(bytes);
                Step::Put { locator: place(&at)?, expected: version.map(Version::new), bytes }
            }
        })
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(key: &str) -> Locator {
        Locator::parse(key).expect("valid")
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let steps = vec![
            Step::Remove { locator: at("old.md"), expected: Version::new("v1") },
            Step::Sweep { locator: at("empty") },
            Step::Put { locator: at("a.md"), expected: None, bytes: Bytes::from_static(b"one\n") },
            Step::Put { locator: at("b.bin"), expected: Some(Version::new("v2")), bytes: Bytes::new() },
            Step::Put {
                locator: at("c/ü.md"),
                expected: None,
                bytes: Bytes::from_static(b"\0\xff haversack-batch 1\n"),
            },
        ];
        let record = encode(&steps);
        assert_eq!(decode(&record).expect("whole"), steps);
        for cut in 0..record.len() {
            assert!(decode(&record[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_record_of_another_version_is_not_guessed_at() {
        let error = decode(b"haversack-batch 2\n{}\n").expect_err("unknown");
        assert!(error.to_string().contains("another version"), "{error}");
    }
}
