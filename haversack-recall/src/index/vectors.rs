//! The vectors of the index's passages.
//!
//! Vectors are made long after the words were indexed, because a model is slow. A file's vectors are one row, named by the file's locator and version: those
//! of another version are not used. When a file changes, its unchanged passages keep their vectors.

use std::collections::HashMap;
use std::sync::Arc;

use futures_lite::future::block_on;
use haversack::store::{Backend, Locator};
use rusqlite::{OptionalExtension, TransactionBehavior, params};

use super::{FileState, Index, data_version, version_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::text::chunks::{cut, meanings};
use crate::vectors::{ENTRY_BYTES, Embedder, entries, mark_in, mark_of};

/// The most passages of a file that get vectors, so that one long log does not take all the time.
const MAX_PASSAGES: usize = 1000;

/// The most files that are looked at in one round.
const BATCH_FILES: i64 = 64;

/// The vectors of files, by the numbers of the files.
pub(crate) type FileVectors = HashMap<u32, Vec<u8>>;

/// The number of passages, and of those that have vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VectorCount {
    /// Passages with a vector.
    pub done: usize,
    /// Passages that are to have one, those included.
    pub all: usize,
}

/// A file that lacks vectors.
struct Waiting {
    locator: Locator,
    version: Vec<u8>,
    /// The texts of its passages.
    texts: Vec<String>,
    /// The vectors that stay, by the marks of their texts.
    known: HashMap<[u8; 8], [u8; ENTRY_BYTES]>,
    /// The number of passages with a vector after this round.
    done: usize,
}

impl Index {
    /// Returns all vectors that can be used.
    pub(crate) fn vectors(&mut self) -> Result<Arc<FileVectors>> {
        let now = data_version(&self.db)?;
        if let Some((_, vectors)) = self.vectors.as_ref().filter(|(then, _)| *then == now) {
            return Ok(Arc::clone(vectors));
        }
        let mut statement = self.db.prepare_cached(
            "SELECT file.id, vector.passages FROM vector JOIN file ON file.locator = vector.locator AND file.version = vector.version",
        )?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let vectors: FileVectors = rows.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        let vectors = Arc::new(vectors);
        self.vectors = Some((now, Arc::clone(&vectors)));
        Ok(vectors)
    }

    /// Returns how many passages have vectors.
    pub(crate) fn vector_count(&self) -> Result<VectorCount> {
        let count = |query: &str| -> Result<usize> {
            let bound = i64::try_from(MAX_PASSAGES).unwrap_or(i64::MAX);
            let count: i64 = self.db.query_row(query, [bound], |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or_default())
        };
        Ok(VectorCount {
            done: count(
                "SELECT coalesce(sum(min(length(vector.passages) / 396, ?1)), 0) FROM vector JOIN file ON file.locator = vector.locator AND file.version = vector.version",
            )?,
            all: count("SELECT coalesce(sum(min(passages, ?1)), 0) FROM file")?,
        })
    }

    /// Returns true if the vectors were made by a model.
    pub(crate) fn is_of_model(&self, model: &str) -> Result<bool> {
        let known: Option<String> = self
            .db
            .query_row("SELECT value FROM meta WHERE key = 'model'", [], |row| row.get(0))
            .optional()?;
        Ok(known.as_deref() == Some(model))
    }

    /// Forgets all vectors if another model made them.
    pub(crate) fn use_model(&mut self, model: &str) -> Result<()> {
        if !self.is_of_model(model)? {
            let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch("DELETE FROM vector")?;
            let _ = transaction
                .execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('model', ?1)", [model])?;
            transaction.commit()?;
            self.vectors = None;
        }
        Ok(())
    }

    /// Makes the vectors of about so many passages. Returns false if no passage lacks one.
    pub(crate) fn embed_some(
        &mut self,
        files: &dyn Backend,
        embedder: &dyn Embedder,
        passages: usize,
    ) -> Result<bool> {
        let waiting = self.waiting(files, passages)?;
        let new: Vec<&str> = waiting
            .iter()
            .flat_map(|file| {
                file.texts[..file.done].iter().filter(move |text| !file.known.contains_key(&mark_of(text)))
            })
            .map(String::as_str)
            .collect();
        let mut made = embedder.embed(&new).map_err(Error::from_model)?.into_iter();
        let mut rows: Vec<Vec<u8>> = Vec::new();
        for file in &waiting {
            let mut bytes = Vec::with_capacity(file.done * ENTRY_BYTES);
            for text in &file.texts[..file.done] {
                let mark = mark_of(text);
                match file.known.get(&mark) {
                    Some(entry) => bytes.extend(entry),
                    None => match made.next() {
                        Some(vector) => vector.write(mark, &mut bytes),
                        None => return Err(Error::new(ErrorKind::Model)),
                    },
                }
            }
            rows.push(bytes);
        }
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (Waiting { locator, version, texts, done, .. }, bytes) in waiting.iter().zip(rows) {
            let missing = i64::try_from(texts.len() - done).unwrap_or(i64::MAX);
            let _ = transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO vector (locator, version, missing, passages) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![locator.as_str(), version, missing, bytes])?;
        }
        if waiting.is_empty() {
            transaction
                .execute_batch("DELETE FROM vector WHERE locator NOT IN (SELECT locator FROM file)")?;
        }
        transaction.commit()?;
        self.vectors = None;
        Ok(!waiting.is_empty())
    }

    /// Reads some files that lack vectors, with about so many passages.
    fn waiting(&self, files: &dyn Backend, mut passages: usize) -> Result<Vec<Waiting>> {
        let mut statement = self.db.prepare_cached(
            "SELECT file.locator, file.version, vector.passages FROM file LEFT JOIN vector ON vector.locator = file.locator
             WHERE file.state = ?1 AND (vector.version IS NULL OR vector.version <> file.version OR vector.missing > 0)
             ORDER BY file.id DESC LIMIT ?2",
        )?;
        let rows = statement.query_map(params![FileState::Indexed.number(), BATCH_FILES], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, Option<Vec<u8>>>(2)?))
        })?;
        let mut waiting = Vec::new();
        for row in rows {
            let (locator, version, before) = row?;
            let locator = Locator::parse(&locator).map_err(|_| Error::new(ErrorKind::Damaged))?;
            let before = before.unwrap_or_default();
            let known = entries(&before).unwrap_or_default();
            let known: HashMap<[u8; 8], [u8; ENTRY_BYTES]> =
                known.iter().map(|entry| (mark_in(entry), *entry)).collect();
            let texts = match block_on(files.read(&locator)) {
                // The next look takes in a file that changed meanwhile. Until then it has no vectors, and none that are wrong.
                Ok(object) if version_bytes(&object.version) != version => Vec::new(),
                Ok(object) => {
                    let text = String::from_utf8_lossy(&object.bytes);
                    let mut texts = meanings(&locator, &text, &cut(&locator, &text));
                    texts.truncate(MAX_PASSAGES);
                    texts
                }
                // It is gone, or cannot be read now: only its words are searched.
                Err(_) => Vec::new(),
            };
            let mut done = 0;
            for text in &texts {
                let is_known = known.contains_key(&mark_of(text));
                if !is_known && passages == 0 {
                    break;
                }
                passages -= usize::from(!is_known);
                done += 1;
            }
            waiting.push(Waiting { locator, version, texts, known, done });
            if passages == 0 {
                break;
            }
        }
        Ok(waiting)
    }
}
