//! Writes changes of the memory to the index.

use std::collections::{BTreeMap, HashMap};

use futures_lite::future::block_on;
use haversack::ids::ContentHash;
use haversack::kind::Kinds;
use haversack::store::{
    Backend, Changes, ErrorKind as StoreErrorKind, Fingerprint, Locator, Sightings, Version,
};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::segment::{PostingsWriter, Record, bury, is_dead, read_postings};
use super::{FileState, version_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::query::project_of;
use crate::shares::in_shares;
use crate::text::chunks::{CutFile, cut};

/// Larger files are not indexed, and every answer says so.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The kind of files with the graph's records: ids and dates, of which the name of each entity would be found a second time.
const RECORDS: &str = "registry";

/// The number of files that one transaction takes in.
const BATCH_FILES: usize = 2000;

/// Two segments become one if the older one is at most so many times as large.
const MERGE_RATIO: i64 = 2;

/// The files that could not be taken in.
pub(super) struct Unread {
    pub(super) files: Vec<Locator>,
    /// False if the tables lack something of what was seen.
    pub(super) is_complete: bool,
}

/// A file to take in, as it was seen.
struct Seen<'a> {
    locator: &'a Locator,
    version: &'a Version,
    settled: Option<Fingerprint>,
}

/// A file that was read.
struct ReadFile {
    kind: String,
    version: Version,
    settled: Option<Fingerprint>,
    content: Content,
}

enum Content {
    Text(CutFile),
    Other(FileState),
}

/// The row of a file.
struct Row {
    id: i64,
    version: Vec<u8>,
    segment: i64,
    first: u32,
    passages: u32,
}

/// Takes in the changes since `known`.
pub(super) fn apply(
    db: &mut Connection,
    files: &dyn Backend,
    kinds: &Kinds,
    known: &Sightings,
    changes: &Changes,
) -> Result<Unread> {
    let seen = |locator| {
        let version = changes.now.version(locator)?;
        Some(Seen { locator, version, settled: changes.now.settled(locator) })
    };
    let updated: Vec<Seen<'_>> = changes.added.iter().chain(&changes.changed).filter_map(seen).collect();
    let mut settled: Vec<Seen<'_>> = Vec::new();
    for (locator, version, now) in changes.now.iter() {
        if now != known.settled(locator) && known.version(locator) == Some(version) {
            settled.push(Seen { locator, version, settled: now });
        }
    }
    let mut unread = Unread { files: Vec::new(), is_complete: true };
    if !changes.removed.is_empty() || !settled.is_empty() {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut graves = Graves::default();
        for locator in &changes.removed {
            remove(&transaction, locator, &mut graves)?;
        }
        graves.close(&transaction)?;
        for Seen { locator, version, settled } in &settled {
            let mut statement = transaction
                .prepare_cached("UPDATE file SET fingerprint = ?3 WHERE locator = ?1 AND version = ?2")?;
            statement.execute(params![
                locator.as_str(),
                version_bytes(version),
                settled.map(|settled| settled.to_bytes())
            ])?;
        }
        merge(&transaction)?;
        transaction.commit()?;
    }
    for batch in updated.chunks(BATCH_FILES) {
        // Files are read within the transaction, so that processes which start at once do not all do the same work.
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut needed = Vec::new();
        for seen in batch {
            match row(&transaction, seen.locator)? {
                Some(row) if row.version == version_bytes(seen.version) => {}
                _ => needed.push(seen),
            }
        }
        let read = in_shares(&needed, |seen| read(files, kinds, seen));
        let mut writer = SegmentWriter::default();
        for (seen, read) in needed.iter().zip(read) {
            match read {
                Ok(Some(read)) => {
                    unread.is_complete &= read.version == *seen.version;
                    writer.add(&transaction, seen.locator, &read)?;
                }
                // It was deleted since the look. The next look takes it out.
                Ok(None) => unread.is_complete = false,
                Err(()) => {
                    unread.is_complete = false;
                    unread.files.push(seen.locator.clone());
                }
            }
        }
        writer.close(&transaction)?;
        merge(&transaction)?;
        transaction.commit()?;
    }
    Ok(unread)
}

/// Reads a file and cuts it; `None` if it is gone, an error if it cannot be read.
fn read(files: &dyn Backend, kinds: &Kinds, seen: &Seen<'_>) -> std::result::Result<Option<ReadFile>, ()> {
    let object = match block_on(files.read(seen.locator)) {
        Ok(object) => object,
        Err(error) if error.kind() == StoreErrorKind::NotFound => return Ok(None),
        Err(_) => return Err(()),
    };
    let bytes = &object.bytes;
    let kind = kinds.of(seen.locator, bytes).name.clone();
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let content = match text {
        Some(_) if kind == RECORDS => Content::Other(FileState::Records),
        Some(_) if bytes.len() > MAX_FILE_BYTES => Content::Other(FileState::TooLarge),
        Some(text) => Content::Text(cut(seen.locator, text)),
        None => Content::Other(FileState::Binary),
    };
    // The fingerprint was seen before the file was read, so it says nothing about another content.
    let settled = seen.settled.filter(|_| object.version == *seen.version);
    Ok(Some(ReadFile { kind, version: object.version, settled, content }))
}

/// A segment that is being written.
#[derive(Default)]
struct SegmentWriter {
    passages: u32,
    records: Vec<u8>,
    postings: HashMap<String, PostingsWriter>,
    /// The numbers and first passages of its files.
    files: Vec<(i64, u32)>,
    graves: Graves,
}

impl SegmentWriter {
    fn add(&mut self, transaction: &Transaction<'_>, locator: &Locator, read: &ReadFile) -> Result<()> {
        remove(transaction, locator, &mut self.graves)?;
        let (state, passages) = match &read.content {
            Content::Text(file) => (FileState::Indexed, file.chunks.len()),
            Content::Other(state) => (*state, 0),
        };
        let passages = u32::try_from(passages).unwrap_or(u32::MAX);
        let mut statement = transaction.prepare_cached(
            "INSERT INTO file (locator, version, fingerprint, state, segment, first, passages) VALUES (?1, ?2, ?3, ?4, 0, 0, ?5)",
        )?;
        let id = statement.insert(params![
            locator.as_str(),
            version_bytes(&read.version),
            read.settled.map(|settled| settled.to_bytes()),
            state.number(),
            passages
        ])?;
        let Content::Text(file) = &read.content else { return Ok(()) };
        let project = match project_of(locator) {
            Some(project) => name(transaction, &format!("project {project}"))?,
            None => 0,
        };
        let kind = name(transaction, &format!("kind {}", read.kind))?;
        self.files.push((id, self.passages));
        for (chunk, place) in file.chunks.iter().zip(0..) {
            let (first, last) = chunk.lines;
            let record = Record {
                file: u32::try_from(id).map_err(|_| Error::new(ErrorKind::Damaged))?,
                first_line: first,
                more_lines: u16::try_from(last - first).unwrap_or(u16::MAX),
                length: chunk.length,
                day: chunk.day.unwrap_or_default(),
                project,
                kind,
                place,
                outdated_from: file.outdated_from,
            };
            record.write(&mut self.records);
            for (term, occurrences) in &chunk.terms {
                let passage = self.passages;
                match self.postings.get_mut(term) {
                    Some(postings) => postings.push(passage, *occurrences),
                    None => self.postings.entry(term.clone()).or_default().push(passage, *occurrences),
                }
            }
            self.passages += 1;
        }
        Ok(())
    }

    fn close(self, transaction: &Transaction<'_>) -> Result<()> {
        self.graves.close(transaction)?;
        if self.passages == 0 {
            return Ok(());
        }
        transaction.execute(
            "INSERT INTO segment (alive, dead, passages) VALUES (?1, x'', ?2)",
            params![self.passages, self.records],
        )?;
        let segment = transaction.last_insert_rowid();
        let mut file =
            transaction.prepare_cached("UPDATE file SET segment = ?2, first = ?3 WHERE id = ?1")?;
        for (id, first) in self.files {
            file.execute(params![id, segment, first])?;
        }
        let mut posting = transaction
            .prepare_cached("INSERT INTO posting (segment, term, passages) VALUES (?1, ?2, ?3)")?;
        // In the order of the table.
        let mut postings: Vec<(String, PostingsWriter)> = self.postings.into_iter().collect();
        postings.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (term, postings) in postings {
            posting.execute(params![segment, term, postings.into_bytes()])?;
        }
        Ok(())
    }
}

/// Passages that a transaction marks as dead.
#[derive(Default)]
struct Graves(BTreeMap<i64, Vec<std::ops::Range<u32>>>);

impl Graves {
    fn close(self, transaction: &Transaction<'_>) -> Result<()> {
        for (segment, passages) in self.0 {
            let mut dead: Vec<u8> =
                transaction
                    .query_row("SELECT dead FROM segment WHERE id = ?1", [segment], |row| row.get(0))?;
            let count: u32 = passages.iter().map(|passages| passages.end - passages.start).sum();
            passages.into_iter().for_each(|passages| bury(&mut dead, passages));
            transaction.execute(
                "UPDATE segment SET dead = ?2, alive = alive - ?3 WHERE id = ?1",
                params![segment, dead, count],
            )?;
        }
        Ok(())
    }
}

fn row(transaction: &Transaction<'_>, locator: &Locator) -> Result<Option<Row>> {
    let mut statement = transaction
        .prepare_cached("SELECT id, version, segment, first, passages FROM file WHERE locator = ?1")?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Row {
            id: row.get(0)?,
            version: row.get(1)?,
            segment: row.get(2)?,
            first: row.get(3)?,
            passages: row.get(4)?,
        })
    };
    Ok(statement.query_row([locator.as_str()], read).optional()?)
}

/// Takes a file out of the index.
fn remove(transaction: &Transaction<'_>, locator: &Locator, graves: &mut Graves) -> Result<()> {
    let Some(row) = row(transaction, locator)? else { return Ok(()) };
    transaction.prepare_cached("DELETE FROM file WHERE id = ?1")?.execute([row.id])?;
    if row.passages > 0 {
        graves.0.entry(row.segment).or_default().push(row.first..row.first + row.passages);
    }
    Ok(())
}

/// Returns the number of a name; the names are few.
fn name(transaction: &Transaction<'_>, name: &str) -> Result<u16> {
    let known = transaction
        .prepare_cached("SELECT id FROM name WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    let id = transaction.prepare_cached("INSERT INTO name (name) VALUES (?1)")?.insert([name])?;
    u16::try_from(id).map_err(|_| Error::new(ErrorKind::Damaged))
}

/// Merges the newest segments while they are not much smaller than the one before, and drops dead ones.
fn merge(transaction: &Transaction<'_>) -> Result<()> {
    let mut statement =
        transaction.prepare_cached("SELECT id, alive, length(dead) FROM segment ORDER BY id DESC")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let segments: Vec<(i64, i64, i64)> = rows.collect::<rusqlite::Result<_>>()?;
    drop(statement);
    let mut merged: Vec<i64> = Vec::new();
    let mut size = 0;
    for (id, alive, _) in &segments {
        if !merged.is_empty() && *alive > size * MERGE_RATIO {
            break;
        }
        merged.push(*id);
        size += alive;
    }
    let is_mostly_dead =
        |(id, alive, bytes): &&(i64, i64, i64)| !merged.contains(id) && (*alive == 0 || *alive < bytes * 4);
    let rewritten: Vec<i64> = segments.iter().filter(is_mostly_dead).map(|(id, _, _)| *id).collect();
    if merged.len() > 1 || segments.first().is_some_and(|(_, alive, bytes)| *alive == 0 || *alive < bytes * 4)
    {
        combine(transaction, &merged)?;
    }
    rewritten.iter().try_for_each(|id| combine(transaction, &[*id]))
}

/// Writes the living passages of some segments, given newest first, as one new segment.
fn combine(transaction: &Transaction<'_>, segments: &[i64]) -> Result<()> {
    let mut writer = SegmentWriter::default();
    for id in segments.iter().rev() {
        let damaged = || Error::new(ErrorKind::Damaged);
        let (dead, records): (Vec<u8>, Vec<u8>) =
            transaction.query_row("SELECT dead, passages FROM segment WHERE id = ?1", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let records = Record::read_all(&records).ok_or_else(damaged)?;
        let mut moved: Vec<Option<u32>> = Vec::with_capacity(records.len());
        for (record, passage) in records.iter().zip(0..) {
            if is_dead(&dead, passage) {
                moved.push(None);
                continue;
            }
            if record.place == 0 {
                writer.files.push((i64::from(record.file), writer.passages));
            }
            record.write(&mut writer.records);
            moved.push(Some(writer.passages));
            writer.passages += 1;
        }
        let mut statement =
            transaction.prepare_cached("SELECT term, passages FROM posting WHERE segment = ?1")?;
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            let term = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
            let bytes = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            let mut living = Vec::new();
            let each = |passage: u32, occurrences| {
                let moved =
                    usize::try_from(passage).ok().and_then(|passage| moved.get(passage).copied().flatten());
                living.extend(moved.map(|moved| (moved, occurrences)));
            };
            read_postings(bytes, records.len(), each).ok_or_else(damaged)?;
            if living.is_empty() {
                continue;
            }
            if !writer.postings.contains_key(term) {
                writer.postings.insert(term.to_owned(), PostingsWriter::default());
            }
            let postings = writer.postings.get_mut(term).ok_or_else(damaged)?;
            living.into_iter().for_each(|(passage, occurrences)| postings.push(passage, occurrences));
        }
    }
    for id in segments {
        transaction.execute("DELETE FROM posting WHERE segment = ?1", [id])?;
        transaction.execute("DELETE FROM segment WHERE id = ?1", [id])?;
    }
    writer.close(transaction)
}

/// Returns the name of the table of kinds that the index was made with.
pub(super) fn kinds_of(db: &Connection) -> Result<Option<String>> {
    Ok(db.query_row("SELECT value FROM meta WHERE key = 'kinds'", [], |row| row.get(0)).optional()?)
}

/// Returns a name that tells tables of kinds apart.
pub(super) fn name_of(kinds: &Kinds) -> String {
    ContentHash::of(format!("{kinds:?}").as_bytes()).to_string()
}

/// Empties all tables, and notes the table of kinds for what comes.
pub(super) fn clear(db: &mut Connection, kinds: &Kinds) -> Result<()> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let wanted = name_of(kinds);
    // Another process may have done it while this one waited.
    if kinds_of(&transaction)?.as_ref() != Some(&wanted) {
        transaction
            .execute_batch("DELETE FROM posting; DELETE FROM segment; DELETE FROM file; DELETE FROM name;")?;
        transaction.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('kinds', ?1)", [wanted])?;
    }
    transaction.commit()?;
    Ok(())
}
