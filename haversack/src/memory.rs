//! The memory as an agent uses it: a handle with eight verbs.
//!
//! # Invariants
//! 1. A verb that reads and then writes is one critical section across threads and processes: it holds the store's lock from
//!    its read to its write (`thirty_two_processes_keep_every_edit`).
//! 2. The lock orders our own; others are met by compare-and-swap. What an editor saves between our read and our write counts
//!    as having been there first: the edit is made again on top of it, and if it no longer applies the editor's text is put
//!    back and the verb refused (`editor_save_in_between_counts_first`).
//! 3. A refused verb changed nothing (`refused_verb_changes_nothing`).
//! 4. A batch is applied whole or not at all, also by a process that died; see [`batch`](mod@batch).
//!
//! Text is literal: nothing that is replaced, inserted or searched for is a pattern.

mod batch;
mod conflicts;
mod redo;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haversack_store::{
    Backend, Bytes, Condition, Displaced, Durability, EntryKind, Error as StoreError, ErrorKind, Guard, Info,
    Listing, Locator, Object, Version,
};

pub use self::batch::{BatchReport, Change};
pub use self::conflicts::{Conflicts, Resolved};
use self::redo::OtherWriters;
pub(crate) use self::redo::VERSION as NEWEST_BATCH;
use crate::error::{Error, Reason, Result, Verb};
use crate::growth;
use crate::many::{MAX_AT_ONCE, MAX_FILES_AT_ONCE, Work, many};
use crate::signed::{self, WriteFingerprint, Writer};
use crate::text::{Ending, NewText, insert_lines, replace_once};

/// The lock that everything holds which reads and then writes.
const STORE_LOCK: &str = "store";

/// The default time that a verb waits for another process.
const LOCK_WAIT: Duration = Duration::from_secs(60);

/// The largest file that is held in memory as text; agents' notes are a thousandth of it.
pub const MAX_TEXT_BYTES: u64 = 64 * 1024 * 1024;

/// The most times that an edit is repeated because another program saved in between.
const MAX_TRIES: usize = 8;

/// A handle on one memory: its files, and the state that goes with them.
#[derive(Clone)]
pub struct Memory {
    files: Arc<dyn Backend>,
    state: Arc<dyn Backend>,
    lock_wait: Duration,
    writer: Writer,
    /// False if no sync ever reads the signatures of these files.
    is_signed: bool,
}

/// The result of viewing a locator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// A file, with its content.
    File(Object),
    /// A directory, with its children.
    Directory(Listing),
}

/// The result of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The first line that changed, counted from 1.
    pub line: usize,
    /// The state the file is now.
    pub version: Version,
    /// The written content: UTF-8, because it was a text.
    content: Bytes,
}

impl Edited {
    /// Returns the text as it is now.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.content).expect("only text is edited")
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.content
    }
}

/// Tells if a delete includes directories that are not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// A file or an empty directory.
    Single,
    /// A file, or a directory with everything in it.
    Recursive,
}

/// Holds the store's lock, and with it the right to read and then write.
pub(crate) struct Turn {
    _lock: Guard,
}

impl Memory {
    /// Returns the memory whose files are in `files` and whose state is in `state`, another backend of this device.
    ///
    /// A batch that a process left unfinished is completed by the first verb that writes.
    pub fn new(files: Arc<dyn Backend>, state: Arc<dyn Backend>) -> Memory {
        Memory { files, state, lock_wait: LOCK_WAIT, writer: Writer::default(), is_signed: true }
    }

    /// Leaves signatures out: files that stand by themselves are never synced, and a line for each deletion would be one more object in a storage that is not ours.
    pub(crate) fn without_signatures(mut self) -> Memory {
        self.is_signed = false;
        self
    }

    /// Sets how long a verb waits for another process before it gives up with [`ErrorKind::Busy`].
    pub fn with_lock_wait(mut self, lock_wait: Duration) -> Memory {
        self.lock_wait = lock_wait;
        self
    }

    /// Sets the writer: the history shows later writes under this name, also if another process sends them.
    pub fn with_writer(mut self, writer: Writer) -> Memory {
        self.writer = writer;
        self
    }

    /// Returns the backend of the files.
    pub fn files(&self) -> &dyn Backend {
        &*self.files
    }

    /// Returns the content of a file, or the children of a directory.
    pub async fn view(&self, locator: &Locator) -> Result<View> {
        let error = match self.files.read(locator).await {
            Ok(object) => return checked(Verb::View, locator, object).map(View::File),
            Err(error) => self.explain(Verb::View, locator, error).await,
        };
        if *error.reason() != Reason::IsDirectory {
            return Err(error);
        }
        let listing = self.files.list(locator).await;
        listing.map(View::Directory).map_err(|error| Error::storage(Verb::View, locator, error))
    }

    /// Makes a new file; one that is there already is not touched.
    pub async fn create(&self, locator: &Locator, bytes: impl Into<Bytes>) -> Result<Version> {
        let bytes = bytes.into();
        let _turn = self.turn(Verb::Create, locator).await?;
        let version = self.create_unsigned(locator, bytes.clone()).await?;
        self.sign(|| [(locator, WriteFingerprint::content(&bytes))]).await;
        Ok(version)
    }

    /// Creates files, each by itself, and returns the results in their order. The disk makes many of them durable at once.
    pub async fn create_all(&self, files: Vec<(Locator, Bytes)>) -> Result<Vec<Result<()>>> {
        let _turn = self.turn(Verb::Create, &Locator::root()).await?;
        let mut work: Vec<Work<'_, Result<Version>, Infallible>> = Vec::with_capacity(files.len());
        for (locator, bytes) in &files {
            work.push(Box::pin(async move { Ok(self.create_unsigned(locator, bytes.clone()).await) }));
        }
        let created = match many(self.at_once(), work).await {
            Ok(created) => created,
            Err(never) => match never {},
        };
        let is_new = files.iter().zip(&created).filter(|(_, result)| result.is_ok());
        self.sign(|| is_new.map(|((locator, bytes), _)| (locator, WriteFingerprint::content(bytes)))).await;
        Ok(created.into_iter().map(|result| result.map(drop)).collect())
    }

    /// Returns the number of files that are written together.
    fn at_once(&self) -> usize {
        // Requests to a remote are not made durable together, and a server refuses too many.
        if self.files.capabilities().tree { MAX_FILES_AT_ONCE } else { MAX_AT_ONCE }
    }

    async fn create_unsigned(&self, locator: &Locator, bytes: Bytes) -> Result<Version> {
        match self.files.write(locator, bytes, Condition::Absent).await {
            Ok(written) => Ok(written.version),
            Err(error) if error.kind() == ErrorKind::Conflict => {
                Err(Error::new(Verb::Create, locator, Reason::Exists))
            }
            Err(error) => Err(match self.files.info(locator).await {
                Ok(info) if info.kind == EntryKind::Directory => {
                    Error::new(Verb::Create, locator, Reason::Exists)
                }
                _ => Error::storage(Verb::Create, locator, error),
            }),
        }
    }

    /// Replaces the only occurrence of `old` by `new`, both literal.
    pub async fn str_replace(&self, locator: &Locator, old: &str, new: &str) -> Result<Edited> {
        self.edit(Verb::StrReplace, locator, |text| replace_once(text, old, new).map_err(Reason::from)).await
    }

    /// Inserts `text` as whole lines after line `after_line`; 0 is the top.
    pub async fn insert(
        &self,
        locator: &Locator,
        after_line: usize,
        text: &str,
        ending: Ending,
    ) -> Result<Edited> {
        let insert = |there: &str| insert_lines(there, after_line, text, ending).map_err(Reason::from);
        self.edit(Verb::Insert, locator, insert).await
    }

    /// Appends `bytes` to a file, and creates it if needed. The cost does not depend on the file's size.
    ///
    /// Returns the size before, which is where the new bytes begin.
    pub async fn append(&self, locator: &Locator, bytes: impl Into<Bytes>) -> Result<u64> {
        let bytes = bytes.into();
        let _turn = self.turn(Verb::Append, locator).await?;
        let watch = growth::Watch::begin(&*self.state, &*self.files, locator).await;
        let appended = match self.files.append(locator, bytes.clone(), Durability::Now).await {
            Ok(appended) => appended,
            Err(error) => return Err(self.explain(Verb::Append, locator, error).await),
        };
        let Some(displaced) = appended.displaced else {
            let size = appended.offset + bytes.len() as u64;
            self.sign(|| [(locator, WriteFingerprint::Size(size))]).await;
            if let Some(watch) = watch {
                watch.note(&*self.state, &*self.files, locator, appended.offset, &bytes).await;
            }
            return Ok(appended.offset);
        };
        // The file was replaced, and an editor saved in that moment: its text came first.
        let now = self.read(Verb::Append, locator).await?;
        let offset = displaced.bytes.len() as u64;
        let whole = Bytes::from([&displaced.bytes[..], &bytes[..]].concat());
        self.sign(|| [(locator, WriteFingerprint::content(&whole))]).await;
        let again = self.files.write(locator, whole, Condition::Matches(now.version)).await;
        let again = again.map_err(|error| Error::storage(Verb::Append, locator, error))?;
        if again.displaced.is_none() {
            self.release(Verb::Append, locator, displaced).await?;
        }
        Ok(offset)
    }

    /// Removes a file or a directory.
    pub async fn delete(&self, locator: &Locator, depth: Depth) -> Result<()> {
        let _turn = self.turn(Verb::Delete, locator).await?;
        self.delete_in_turn(locator, depth).await?;
        self.sign_deletion([(locator, WriteFingerprint::Nothing)]).await;
        Ok(())
    }

    async fn delete_in_turn(&self, locator: &Locator, depth: Depth) -> Result<()> {
        if locator.is_root() {
            return Err(Error::new(Verb::Delete, locator, Reason::IsRoot));
        }
        let failed = |error| Error::storage(Verb::Delete, locator, error);
        let info = self.info(Verb::Delete, locator).await?;
        if info.kind == EntryKind::File {
            return self.files.delete(locator, Condition::Any).await.map_err(failed);
        }
        let mut directories = vec![locator.clone()];
        let mut at = 0;
        while let Some(directory) = directories.get(at).cloned() {
            at += 1;
            let listing = self.files.list(&directory).await.map_err(failed)?;
            let taken = !listing.entries.is_empty() || !listing.odd.is_empty();
            if depth == Depth::Single && taken {
                return Err(Error::new(Verb::Delete, locator, Reason::NotEmpty));
            }
            for entry in listing.entries {
                match entry.kind {
                    EntryKind::File => {
                        self.files.delete(&entry.locator, Condition::Any).await.map_err(failed)?
                    }
                    EntryKind::Directory => directories.push(entry.locator),
                }
            }
        }
        // The deepest were found last.
        for directory in directories.iter().rev() {
            self.files.delete(directory, Condition::Any).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Moves a file or a directory to a name that is free.
    pub async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        if from.is_root() {
            return Err(Error::new(Verb::Rename, from, Reason::IsRoot));
        }
        if to != from && to.is_within(from) {
            return Err(Error::new(Verb::Rename, from, Reason::IntoItself));
        }
        let _turn = self.turn(Verb::Rename, from).await?;
        if to.is_root() || to == from {
            self.info(Verb::Rename, from).await?;
            return Err(Error::new(Verb::Rename, to, Reason::Exists));
        }
        self.files.rename(from, to).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::new(Verb::Rename, from, Reason::NotFound),
            ErrorKind::Conflict => Error::new(Verb::Rename, to, Reason::Exists),
            _ => Error::storage(Verb::Rename, from, error),
        })?;
        self.sign_deletion([(from, WriteFingerprint::Nothing), (to, WriteFingerprint::Moved)]).await;
        Ok(())
    }

    /// Applies several changes, all or nothing, each seeing those before it.
    ///
    /// If one is refused, nothing is done and the error says [which](Error::change). Programs outside may see some of the
    /// changes before the others. If the process dies in between, the next writer completes the batch.
    pub async fn batch(&self, changes: &[Change]) -> Result<BatchReport> {
        let turn = self.turn(Verb::Batch, &Locator::root()).await?;
        batch::apply(self, &turn, changes, OtherWriters::PutAside).await
    }

    /// Does the same for changes that can be decided anew: if another program changes one of the files in the same moment, its text stays, no file is removed after
    /// that, and the error says so.
    pub async fn batch_unless_changed(&self, changes: &[Change]) -> Result<()> {
        let turn = self.turn(Verb::Batch, &Locator::root()).await?;
        let report = batch::apply(self, &turn, changes, OtherWriters::GoFirst).await?;
        match report.kept.first() {
            Some(changed) => Err(Error::new(Verb::Batch, changed, Reason::Changed)),
            None => Ok(()),
        }
    }

    /// Completes a batch that a process which died left unfinished, if there is one.
    pub async fn complete(&self) -> Result<()> {
        self.turn(Verb::Batch, &Locator::root()).await.map(drop)
    }

    /// Takes the store's lock and completes the unfinished batch of a dead process.
    async fn turn(&self, verb: Verb, locator: &Locator) -> Result<Turn> {
        let lock = self.files.lock(STORE_LOCK, self.lock_wait).await;
        let turn = Turn { _lock: lock.map_err(|error| Error::storage(verb, locator, error))? };
        redo::complete(self, &turn).await.map_err(|error| Error::storage(verb, locator, error))?;
        Ok(turn)
    }

    /// Reads a text, changes it and writes it, as one step.
    async fn edit(
        &self,
        verb: Verb,
        locator: &Locator,
        change: impl Fn(&str) -> Result<NewText, Reason>,
    ) -> Result<Edited> {
        let _turn = self.turn(verb, locator).await?;
        let mut seen = self.read(verb, locator).await?;
        // An editor's text that our first write displaced, kept until ours is on top of it.
        let mut displaced: Option<Displaced> = None;
        for _ in 0..MAX_TRIES {
            let new = match as_text(&seen.bytes).and_then(&change) {
                Ok(new) => new,
                Err(reason) => {
                    if let Some(displaced) = displaced {
                        self.put_back(verb, locator, displaced, seen.version).await?;
                    }
                    return Err(Error::new(verb, locator, reason));
                }
            };
            let content = Bytes::from(new.text);
            let condition = Condition::Matches(seen.version.clone());
            match self.files.write(locator, content.clone(), condition).await {
                Ok(written) => {
                    if let Some(merged) = displaced.take() {
                        self.release(verb, locator, merged).await?;
                    }
                    let Some(in_between) = written.displaced else {
                        self.sign(|| [(locator, WriteFingerprint::content(&content))]).await;
                        return Ok(Edited { line: new.line, version: written.version, content });
                    };
                    seen = Object { bytes: in_between.bytes.clone(), version: written.version };
                    displaced = Some(in_between);
                }
                // Another program saved before our write began. If it replaced what we had put there, the text that it did
                // not see stays on its shelf.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    seen = self.read(verb, locator).await?;
                    displaced = None;
                }
                Err(error) => return Err(self.explain(verb, locator, error).await),
            }
        }
        Err(Error::new(verb, locator, Reason::Restless))
    }

    /// Signs a write, if the writer has a name. The write is done, so it does not fail if it cannot be signed. A write without
    /// a name is not hashed either.
    async fn sign<'a, L: IntoIterator<Item = (&'a Locator, WriteFingerprint)>>(
        &self,
        fingerprint: impl FnOnce() -> L,
    ) {
        if self.is_signed && !self.writer.is_nobody() {
            drop(signed::sign(&*self.state, &self.writer, fingerprint()).await);
        }
    }

    /// Signs a change that took a file away, with or without a name: the next sync then knows that the deletion was meant.
    async fn sign_deletion<'a>(
        &self,
        fingerprint: impl IntoIterator<Item = (&'a Locator, WriteFingerprint)>,
    ) {
        if self.is_signed {
            drop(signed::sign(&*self.state, &self.writer, fingerprint).await);
        }
    }

    /// Puts an editor's text back in the place of ours, which does not apply to it.
    async fn put_back(&self, verb: Verb, locator: &Locator, editors: Displaced, ours: Version) -> Result<()> {
        match self.files.write(locator, editors.bytes.clone(), Condition::Matches(ours)).await {
            Ok(written) if written.displaced.is_none() => self.release(verb, locator, editors).await,
            // It was changed once more: that text is newer, and the displaced one stays on its shelf.
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            Err(error) => Err(Error::storage(verb, locator, error)),
        }
    }

    /// Gives up the kept copy of a text that is in the file again.
    async fn release(&self, verb: Verb, locator: &Locator, merged: Displaced) -> Result<()> {
        let released = self.files.delete(&merged.kept, Condition::Any).await;
        released.map_err(|error| Error::storage(verb, locator, error))
    }

    async fn read(&self, verb: Verb, locator: &Locator) -> Result<Object> {
        match self.files.read(locator).await {
            Ok(object) => checked(verb, locator, object),
            Err(error) => Err(self.explain(verb, locator, error).await),
        }
    }

    pub(crate) async fn info(&self, verb: Verb, locator: &Locator) -> Result<Info> {
        self.files.info(locator).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::new(verb, locator, Reason::NotFound),
            _ => Error::storage(verb, locator, error),
        })
    }

    /// Returns the error of a verb whose storage refused, told as precisely as it can be.
    async fn explain(&self, verb: Verb, locator: &Locator, error: StoreError) -> Error {
        match (error.kind(), self.files.info(locator).await) {
            // A storage without real directories finds nothing at one.
            (ErrorKind::Invalid | ErrorKind::NotFound, Ok(info)) if info.kind == EntryKind::Directory => {
                Error::new(verb, locator, Reason::IsDirectory)
            }
            (ErrorKind::NotFound, _) => Error::new(verb, locator, Reason::NotFound),
            _ => Error::storage(verb, locator, error),
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("files", &self.files).finish_non_exhaustive()
    }
}

/// Refuses an object that is too large to be worked on as text.
fn checked(verb: Verb, locator: &Locator, object: Object) -> Result<Object> {
    let size_bytes = object.bytes.len() as u64;
    if size_bytes > MAX_TEXT_BYTES {
        return Err(Error::new(verb, locator, Reason::TooLarge { size_bytes }));
    }
    Ok(object)
}

/// Returns bytes as the text they are.
pub(crate) fn as_text(bytes: &[u8]) -> Result<&str, Reason> {
    std::str::from_utf8(bytes).map_err(|error| Reason::NotText { valid_bytes: error.valid_up_to() })
}
