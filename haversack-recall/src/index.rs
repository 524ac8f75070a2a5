//! The index: one SQLite file per store, derived from the memory and deletable at any time.
//!
//! 1. A look at the memory gives the files that changed since the last look ([`haversack::store::look_again`]; the index keeps what was seen).
//! 2. Changed files are cut into passages and written as a new [segment](segment), in one transaction. The passages of their old content are marked as dead.
//! 3. Small segments are merged into larger ones, so that there are few.
//!
//! Ranking needs the counts of terms within the projects that a query may see, and its own weights for fields. FTS5 gives neither, so the postings
//! are ours, in ordinary tables (docs/adr/0036-postings-of-recall-in-ordinary-tables.md).
//!
//! Any number of processes may use one index. Writers take turns; a writer that waited looks again at what is still to be done. A reader works on one snapshot.

pub(crate) mod place;
pub(crate) mod segment;
pub(crate) mod vectors;
mod write;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use haversack::ids::ContentHash;
use haversack::kind::Kinds;
use haversack::store::{Backend, Changes, Fingerprint, Locator, Sightings, Version};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use self::segment::{Record, is_dead, read_postings};
use crate::error::{Error, ErrorKind, Result};
use crate::text::chunks::Occurrences;

/// The newest version of the index that this release reads: the form of the tables and of everything in them.
///
/// A change of it, of how text is cut, or of how words are folded rebuilds the index.
pub const SCHEMA: i64 = 3;

/// The application id in SQLite's header, which tells our files from others: "hvsk".
const APPLICATION: i64 = 0x6876_736b;

const TABLES: &str = "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE name (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE file (
        id INTEGER PRIMARY KEY, locator TEXT NOT NULL UNIQUE, version BLOB NOT NULL, fingerprint BLOB, state INTEGER NOT NULL,
        segment INTEGER NOT NULL, first INTEGER NOT NULL, passages INTEGER NOT NULL
    );
    CREATE TABLE segment (id INTEGER PRIMARY KEY AUTOINCREMENT, alive INTEGER NOT NULL, dead BLOB NOT NULL, passages BLOB NOT NULL);
    CREATE TABLE vector (locator TEXT PRIMARY KEY, version BLOB NOT NULL, missing INTEGER NOT NULL, passages BLOB NOT NULL);
    CREATE TABLE posting (segment INTEGER NOT NULL, term TEXT NOT NULL, passages BLOB NOT NULL, PRIMARY KEY (segment, term)) WITHOUT ROWID;
";

/// The index of one store.
#[derive(Debug)]
pub(crate) struct Index {
    db: Connection,
    /// The sightings that the tables hold, with the data version at which they were read.
    seen: Option<(i64, Arc<Sightings>)>,
    /// Segments that were read. A segment's passages never change.
    segments: BTreeMap<i64, Arc<Segment>>,
    /// The vectors, as they are in the tables while their data version is this.
    vectors: Option<(i64, Arc<vectors::FileVectors>)>,
}

/// The passages of a segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) id: i64,
    pub(crate) records: Vec<Record>,
    /// The words of the whole file, at the place of its first passage.
    pub(crate) file_lengths: Vec<u32>,
}

/// The way in which a file is in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    /// Its passages are in the index.
    Indexed,
    /// It is no text.
    Binary,
    /// It is too large to be indexed.
    TooLarge,
    /// It has the records of the graph. The contents of nodes are found instead.
    Records,
}

/// The size of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Files, also those that are no text.
    pub files: usize,
    /// Passages that can be found.
    pub passages: usize,
}

impl Index {
    /// Opens an index in memory, which lasts as long as the value.
    pub(crate) fn in_memory() -> Result<Index> {
        Index::of(Connection::open_in_memory()?)
    }

    /// Takes an open database, and makes its tables if it has none.
    fn of(mut db: Connection) -> Result<Index> {
        match version_of(&db)? {
            (0, 0) => {
                let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
                // Another process may have made them while this one waited.
                if version_of(&transaction)? == (0, 0) {
                    transaction.execute_batch(TABLES)?;
                    transaction.pragma_update(None, "application_id", APPLICATION)?;
                    transaction.pragma_update(None, "user_version", SCHEMA)?;
                }
                transaction.commit()?;
            }
            (APPLICATION, SCHEMA) => {}
            (APPLICATION, newer) if newer > SCHEMA => return Err(Error::new(ErrorKind::Newer)),
            _ => return Err(Error::new(ErrorKind::Damaged)),
        }
        db.set_prepared_statement_cache_capacity(32);
        Ok(Index { db, seen: None, segments: BTreeMap::new(), vectors: None })
    }

    /// Returns what was last seen of the memory.
    pub(crate) fn seen(&mut self) -> Result<Arc<Sightings>> {
        let data_version = data_version(&self.db)?;
        if let Some((_, seen)) = self.seen.as_ref().filter(|(then, _)| *then == data_version) {
            return Ok(Arc::clone(seen));
        }
        let mut statement = self.db.prepare_cached("SELECT locator, version, fingerprint FROM file")?;
        let rows = statement.query_map([], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, Vec<u8>>(1)?,
                row.get::<_, Option<[u8; Fingerprint::BYTES]>>(2)?,
            ))
        })?;
        let mut seen = Vec::new();
        for row in rows {
            let (locator, version, fingerprint) = row?;
            let locator = Locator::parse(&locator).map_err(|_| Error::new(ErrorKind::Damaged))?;
            seen.push((locator, version_from(&version)?, fingerprint.map(Fingerprint::from_bytes)));
        }
        drop(statement);
        let seen: Arc<Sightings> = Arc::new(seen.into_iter().collect());
        self.seen = Some((data_version, Arc::clone(&seen)));
        Ok(seen)
    }

    /// Takes in the changes since `known`, and returns the files that could not be read.
    pub(crate) fn apply(
        &mut self,
        files: &dyn Backend,
        kinds: &Kinds,
        known: &Sightings,
        changes: Changes,
    ) -> Result<Vec<Locator>> {
        if changes.added.len() + changes.changed.len() + changes.removed.len() > 0 {
            self.vectors = None;
        }
        let unread = write::apply(&mut self.db, files, kinds, known, &changes)?;
        self.seen = match unread.is_complete {
            true => Some((data_version(&self.db)?, Arc::new(changes.now))),
            // The tables lack some of what was seen.
            false => None,
        };
        Ok(changes.unread.into_iter().chain(unread.files).collect())
    }

    /// Returns true if the index was made with this table of kinds.
    pub(crate) fn knows(&self, kinds: &Kinds) -> Result<bool> {
        Ok(write::kinds_of(&self.db)?.is_some_and(|known| known == write::name_of(kinds)))
    }

    /// Forgets everything, so that the next look indexes every file.
    pub(crate) fn clear(&mut self, kinds: &Kinds) -> Result<()> {
        (self.seen, self.vectors) = (None, None);
        write::clear(&mut self.db, kinds)
    }

    /// Forgets everything and the table of kinds, so that the next look begins anew.
    pub(crate) fn forget(&mut self) -> Result<()> {
        self.seen = None;
        Ok(self.db.execute_batch("DELETE FROM meta WHERE key = 'kinds'")?)
    }

    /// Begins to read one state of the index.
    pub(crate) fn read(&mut self) -> Result<Reader<'_>> {
        let snapshot = self.db.transaction_with_behavior(TransactionBehavior::Deferred)?;
        let mut parts = Vec::new();
        {
            let mut statement = snapshot.prepare_cached("SELECT id, dead FROM segment ORDER BY id")?;
            let rows =
                statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))?;
            for row in rows {
                parts.push(row?);
            }
        }
        self.segments.retain(|id, _| parts.iter().any(|(alive, _)| alive == id));
        let mut segments = Vec::new();
        for (id, dead) in parts {
            let segment = match self.segments.get(&id) {
                Some(segment) => Arc::clone(segment),
                None => {
                    let segment = Arc::new(read_segment(&snapshot, id)?);
                    self.segments.insert(id, Arc::clone(&segment));
                    segment
                }
            };
            segments.push((segment, dead));
        }
        Ok(Reader { snapshot, segments })
    }

    /// Returns how much the index holds.
    pub(crate) fn size(&self) -> Result<Size> {
        let count = |query: &str| -> Result<usize> {
            let count: i64 = self.db.query_row(query, [], |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or_default())
        };
        Ok(Size {
            files: count("SELECT count(*) FROM file")?,
            passages: count("SELECT coalesce(sum(alive), 0) FROM segment")?,
        })
    }

    /// Reads all of the index, and fails if any of it is damaged.
    pub(crate) fn verify(&mut self) -> Result<()> {
        let verdict: String = self.db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if verdict != "ok" {
            return Err(Error::new(ErrorKind::Damaged));
        }
        drop(self.seen()?);
        let reader = self.read()?;
        let files: HashSet<u32> = {
            let mut statement = reader.snapshot.prepare("SELECT id FROM file")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for (segment, dead) in &reader.segments {
            let mut living = segment.records.iter().zip(0..).filter(|(_, passage)| !is_dead(dead, *passage));
            if living.any(|(record, _)| !files.contains(&record.file)) {
                return Err(Error::new(ErrorKind::Damaged));
            }
        }
        for (segment, _) in &reader.segments {
            let mut statement = reader.snapshot.prepare("SELECT passages FROM posting WHERE segment = ?1")?;
            let mut rows = statement.query([segment.id])?;
            while let Some(row) = rows.next()? {
                let bytes: Vec<u8> = row.get(0)?;
                read_postings(&bytes, segment.records.len(), |_, _| {})
                    .ok_or_else(|| Error::new(ErrorKind::Damaged))?;
            }
        }
        Ok(())
    }
}

/// One state of the index, for reading.
pub(crate) struct Reader<'i> {
    snapshot: Transaction<'i>,
    /// The segments with their dead passages.
    pub(crate) segments: Vec<(Arc<Segment>, Vec<u8>)>,
}

impl Reader<'_> {
    /// Calls `found` with every living passage of a segment that has a term.
    pub(crate) fn postings(
        &self,
        segment: usize,
        term: &str,
        mut found: impl FnMut(u32, Occurrences),
    ) -> Result<()> {
        let (segment, dead) = &self.segments[segment];
        let mut statement =
            self.snapshot.prepare_cached("SELECT passages FROM posting WHERE segment = ?1 AND term = ?2")?;
        let mut rows = statement.query(params![segment.id, term])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        let bytes = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
        let each = |passage, occurrences| {
            if !is_dead(dead, passage) {
                found(passage, occurrences);
            }
        };
        read_postings(bytes, segment.records.len(), each).ok_or_else(|| Error::new(ErrorKind::Damaged))
    }

    /// Returns the name of a file by its number.
    pub(crate) fn locator(&self, file: u32) -> Result<Locator> {
        let mut statement = self.snapshot.prepare_cached("SELECT locator FROM file WHERE id = ?1")?;
        let name = statement.query_row([file], |row| row.get::<_, String>(0)).optional()?;
        let name = name.ok_or_else(|| Error::new(ErrorKind::Damaged))?;
        Locator::parse(&name).map_err(|_| Error::new(ErrorKind::Damaged))
    }

    /// Returns the numbers of the files at or below a place.
    pub(crate) fn within(&self, place: &Locator) -> Result<HashSet<u32>> {
        let mut statement = self.snapshot.prepare_cached(
            "SELECT id FROM file WHERE locator = ?1 OR (locator > ?1 || '/' AND locator < ?1 || '0')",
        )?;
        let rows = statement.query_map([place.as_str()], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the names of projects and kinds, by their numbers.
    pub(crate) fn names(&self) -> Result<BTreeMap<u16, String>> {
        let mut statement = self.snapshot.prepare_cached("SELECT id, name FROM name")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the files that are too large to be indexed.
    pub(crate) fn too_large(&self) -> Result<BTreeSet<Locator>> {
        let mut statement = self.snapshot.prepare_cached("SELECT locator FROM file WHERE state = ?1")?;
        let rows = statement.query_map([FileState::TooLarge.number()], |row| row.get::<_, String>(0))?;
        rows.map(|row| Locator::parse(&row?).map_err(|_| Error::new(ErrorKind::Damaged))).collect()
    }
}

impl FileState {
    fn number(self) -> i64 {
        match self {
            FileState::Indexed => 0,
            FileState::Binary => 1,
            FileState::TooLarge => 2,
            FileState::Records => 3,
        }
    }
}

fn read_segment(snapshot: &Transaction<'_>, id: i64) -> Result<Segment> {
    let bytes: Vec<u8> = snapshot
        .prepare_cached("SELECT passages FROM segment WHERE id = ?1")?
        .query_row([id], |row| row.get(0))?;
    let records = Record::read_all(&bytes).ok_or_else(|| Error::new(ErrorKind::Damaged))?;
    let mut file_lengths = vec![0u32; records.len()];
    for (at, record) in records.iter().enumerate() {
        file_lengths[at - usize::from(record.place)] += u32::from(record.length);
    }
    Ok(Segment { id, records, file_lengths })
}

/// Returns the mark of the program and the version of the tables. A new file has neither.
fn version_of(db: &Connection) -> rusqlite::Result<(i64, i64)> {
    let read = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok((read("application_id")?, read("user_version")?))
}

/// Returns a number that changes when another process changed the tables.
fn data_version(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "data_version", |row| row.get(0))
}

/// Returns a version as the tables have it: a content hash in half as many bytes.
fn version_bytes(version: &Version) -> Vec<u8> {
    match version.as_str().parse::<ContentHash>() {
        Ok(hash) => hash.to_bytes().to_vec(),
        Err(_) => [b"=", version.as_str().as_bytes()].concat(),
    }
}

fn version_from(bytes: &[u8]) -> Result<Version> {
    if let Ok(hash) = <[u8; 32]>::try_from(bytes) {
        return Ok(Version::new(ContentHash::from_bytes(hash).to_string()));
    }
    let spelling = bytes.strip_prefix(b"=").and_then(|bytes| std::str::from_utf8(bytes).ok());
    spelling.map(Version::new).ok_or_else(|| Error::new(ErrorKind::Damaged))
}
