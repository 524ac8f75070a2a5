//! Several changes, all or nothing: decided on a draft of the files, then recorded, then applied.
//!
//! The changes are made one after the other on the draft. The result is a list of [`Step`]s, at most one for each file.
//! All refusals happen here, before anything is recorded: a recorded batch can always be applied.
//!
//! Another program can save or delete a file after we looked at its name and before we read it. The read alone decides whether the file exists,
//! because the step replaces the version that was read (`batch::save_in_the_moment_of_a_creation_stays`).

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{
    BackendExt, Bytes, EntryKind, Error as StoreError, ErrorKind, Locator, Object, Operation,
};

use super::redo::{self, OtherWriters, Step};
use super::{Depth, Memory, Turn, as_text};
use crate::error::{Error, Reason, Result, Verb};
use crate::signed::WriteFingerprint;
use crate::text::{Ending, NewText, insert_lines, replace_once};

/// One change of a [batch](Memory::batch); each has the meaning of the verb with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Makes a new file.
    Create {
        /// The file.
        locator: Locator,
        /// Its content.
        bytes: Bytes,
    },
    /// Replaces the only occurrence of a text.
    StrReplace {
        /// The file.
        locator: Locator,
        /// The old text.
        old: String,
        /// The new text.
        new: String,
    },
    /// Inserts whole lines.
    Insert {
        /// The file.
        locator: Locator,
        /// The line after which; 0 is the top.
        after_line: usize,
        /// The lines.
        text: String,
        /// How the file ends afterwards.
        ending: Ending,
    },
    /// Adds to the end of a file.
    Append {
        /// The file.
        locator: Locator,
        /// The added bytes.
        bytes: Bytes,
    },
    /// Removes a file or a directory.
    Delete {
        /// The file or directory.
        locator: Locator,
        /// Tells if a directory with files is deleted too.
        depth: Depth,
    },
    /// Replaces, creates or deletes a file, if its present content is the expected one.
    Put {
        /// The file.
        locator: Locator,
        /// The present content; `None` for no file.
        expected: Option<Bytes>,
        /// The new content; `None` for no file.
        bytes: Option<Bytes>,
    },
    /// Moves a file, or every file of a directory, to a name that is free.
    Rename {
        /// From where.
        from: Locator,
        /// To where.
        to: Locator,
    },
}

/// Unexpected events in a batch: changes by other programs at the same moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchReport {
    /// The places of texts that did not end up in their files.
    pub kept: Vec<Locator>,
    /// Files that were to be removed and stayed, because another program had just changed them.
    pub stayed: Vec<Locator>,
}

/// Makes the changes, all or nothing.
pub(super) async fn apply(
    memory: &Memory,
    turn: &Turn,
    changes: &[Change],
    others: OtherWriters,
) -> Result<BatchReport> {
    let mut draft = Draft { memory, files: BTreeMap::new(), gone: BTreeSet::new() };
    for (number, change) in changes.iter().enumerate() {
        draft.change(change).await.map_err(|error| error.in_batch(number))?;
    }
    let steps = draft.steps();
    let fingerprints: Vec<(Locator, WriteFingerprint)> = steps.iter().map(Step::fingerprint).collect();
    let report = redo::commit(memory, turn, steps, others).await?;
    let is_signed = |fingerprint: &WriteFingerprint| {
        !memory.writer.is_nobody() || *fingerprint == WriteFingerprint::Nothing
    };
    let signed: Vec<(&Locator, WriteFingerprint)> = fingerprints
        .iter()
        .filter(|(_, fingerprint)| is_signed(fingerprint))
        .map(|(locator, fingerprint)| (locator, fingerprint.clone()))
        .collect();
    if !signed.is_empty() {
        memory.sign_deletion(signed).await;
    }
    Ok(report)
}

/// The files as they would be.
struct Draft<'a> {
    memory: &'a Memory,
    /// Every file that was looked at.
    files: BTreeMap<Locator, Slot>,
    /// Directories that are to go.
    gone: BTreeSet<Locator>,
}

struct Slot {
    before: Option<Object>,
    now: Option<Bytes>,
}

impl Draft<'_> {
    async fn change(&mut self, change: &Change) -> Result<()> {
        match change {
            Change::Create { locator, bytes } => self.create(Verb::Create, locator, bytes.clone()).await,
            Change::StrReplace { locator, old, new } => {
                self.edit(Verb::StrReplace, locator, |text| {
                    replace_once(text, old, new).map_err(Reason::from)
                })
                .await
            }
            Change::Insert { locator, after_line, text, ending } => {
                self.edit(Verb::Insert, locator, |there| {
                    insert_lines(there, *after_line, text, *ending).map_err(Reason::from)
                })
                .await
            }
            Change::Append { locator, bytes } => {
                let verb = Verb::Append;
                let slot = match self.kind(verb, locator).await? {
                    None => {
                        self.check_new(verb, locator).await?;
                        self.slot(verb, locator).await?
                    }
                    Some(_) => self.file(verb, locator).await?,
                };
                let there = slot.now.take().unwrap_or_default();
                slot.now = Some(Bytes::from([&there[..], &bytes[..]].concat()));
                Ok(())
            }
            Change::Delete { locator, depth } => self.delete(locator, *depth).await,
            Change::Put { locator, expected, bytes } => {
                self.put(locator, expected.as_ref(), bytes.as_ref()).await
            }
            Change::Rename { from, to } => self.rename(from, to).await,
        }
    }

    async fn create(&mut self, verb: Verb, locator: &Locator, bytes: Bytes) -> Result<()> {
        if self.kind(verb, locator).await?.is_some() {
            return Err(Error::new(verb, locator, Reason::Exists));
        }
        self.check_new(verb, locator).await?;
        let slot = self.slot(verb, locator).await?;
        // Another program may have saved the file after the look above.
        if slot.now.is_some() {
            return Err(Error::new(verb, locator, Reason::Exists));
        }
        slot.now = Some(bytes);
        Ok(())
    }

    async fn put(
        &mut self,
        locator: &Locator,
        expected: Option<&Bytes>,
        bytes: Option<&Bytes>,
    ) -> Result<()> {
        let verb = Verb::Batch;
        if let (None, Some(bytes)) = (expected, bytes) {
            return self.create(verb, locator, bytes.clone()).await;
        }
        let slot = self.slot(verb, locator).await?;
        if slot.now.as_ref() != expected {
            return Err(Error::new(verb, locator, Reason::Changed));
        }
        slot.now = bytes.cloned();
        Ok(())
    }

    async fn edit(
        &mut self,
        verb: Verb,
        locator: &Locator,
        change: impl Fn(&str) -> Result<NewText, Reason>,
    ) -> Result<()> {
        let slot = self.file(verb, locator).await?;
        let there = slot.now.as_deref().ok_or_else(|| Error::new(verb, locator, Reason::NotFound))?;
        let new = as_text(there).and_then(change).map_err(|reason| Error::new(verb, locator, reason))?;
        slot.now = Some(new.text.into());
        Ok(())
    }

    async fn delete(&mut self, locator: &Locator, depth: Depth) -> Result<()> {
        let verb = Verb::Delete;
        if locator.is_root() {
            return Err(Error::new(verb, locator, Reason::IsRoot));
        }
        match self.kind(verb, locator).await? {
            None => Err(Error::new(verb, locator, Reason::NotFound)),
            Some(EntryKind::File) => {
                self.slot(verb, locator).await?.now = None;
                Ok(())
            }
            Some(EntryKind::Directory) => {
                let below = self.below(verb, locator).await?;
                if depth == Depth::Single && !below.is_empty() {
                    return Err(Error::new(verb, locator, Reason::NotEmpty));
                }
                for file in &below {
                    self.slot(verb, file).await?.now = None;
                }
                self.forget_directories(verb, locator).await
            }
        }
    }

    async fn rename(&mut self, from: &Locator, to: &Locator) -> Result<()> {
        let verb = Verb::Rename;
        if from.is_root() {
            return Err(Error::new(verb, from, Reason::IsRoot));
        }
        let Some(kind) = self.kind(verb, from).await? else {
            return Err(Error::new(verb, from, Reason::NotFound));
        };
        if self.kind(verb, to).await?.is_some() {
            return Err(Error::new(verb, to, Reason::Exists));
        }
        if to.is_within(from) {
            return Err(Error::new(verb, from, Reason::IntoItself));
        }
        let moving = match kind {
            EntryKind::File => vec![from.clone()],
            EntryKind::Directory => self.below(verb, from).await?,
        };
        let mut moved = Vec::new();
        for old in moving {
            let bytes = self.slot(verb, &old).await?.now.take();
            // Another program may have deleted the file after the look above.
            let bytes = bytes.ok_or_else(|| Error::new(verb, &old, Reason::NotFound))?;
            let rest = &old.as_str()[from.as_str().len()..];
            let new = to.child(rest).map_err(|reason| {
                Error::storage(verb, &old, StoreError::invalid(Operation::Rename, &old, reason))
            })?;
            moved.push((new, bytes));
        }
        if kind == EntryKind::Directory {
            self.forget_directories(verb, from).await?;
        }
        for (new, bytes) in moved {
            self.create(verb, &new, bytes).await?;
        }
        Ok(())
    }

    /// Marks a directory and those below it as gone.
    async fn forget_directories(&mut self, verb: Verb, directory: &Locator) -> Result<()> {
        let mut found = vec![directory.clone()];
        while let Some(at) = found.pop() {
            let listing = self.memory.files().list(&at).await;
            let listing = listing.map_err(|error| Error::storage(verb, directory, error))?;
            let below = listing.entries.into_iter().filter(|entry| entry.kind == EntryKind::Directory);
            found.extend(below.map(|entry| entry.locator));
            self.gone.insert(at);
        }
        Ok(())
    }

    /// Returns the kind of a locator in the draft.
    async fn kind(&self, verb: Verb, locator: &Locator) -> Result<Option<EntryKind>> {
        if let Some(slot) = self.files.get(locator)
            && slot.now.is_some()
        {
            return Ok(Some(EntryKind::File));
        }
        let holds_a_file =
            self.files.iter().any(|(file, slot)| slot.now.is_some() && file.is_within(locator));
        if holds_a_file || locator.is_root() {
            return Ok(Some(EntryKind::Directory));
        }
        if self.files.contains_key(locator) || self.gone.contains(locator) {
            return Ok(None);
        }
        match self.memory.info(verb, locator).await {
            Ok(info) => Ok(Some(info.kind)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the files of the draft below a directory.
    async fn below(&self, verb: Verb, directory: &Locator) -> Result<Vec<Locator>> {
        let stored = self.memory.files().list_all(directory).await;
        let stored = stored.map_err(|error| Error::storage(verb, directory, error))?;
        let stored = stored.into_iter().filter(|file| !self.files.contains_key(file));
        let drafted =
            self.files.iter().filter(|(file, slot)| slot.now.is_some() && file.is_within(directory));
        Ok(stored.chain(drafted.map(|(file, _)| file.clone())).collect())
    }

    /// Returns the slot of a file that is there.
    async fn file(&mut self, verb: Verb, locator: &Locator) -> Result<&mut Slot> {
        match self.kind(verb, locator).await? {
            None => Err(Error::new(verb, locator, Reason::NotFound)),
            Some(EntryKind::Directory) => Err(Error::new(verb, locator, Reason::IsDirectory)),
            Some(EntryKind::File) => self.slot(verb, locator).await,
        }
    }

    /// Returns the slot of a locator, after reading its file.
    async fn slot(&mut self, verb: Verb, locator: &Locator) -> Result<&mut Slot> {
        if !self.files.contains_key(locator) {
            let before = match self.memory.read(verb, locator).await {
                Ok(object) => Some(object),
                Err(error) if *error.reason() == Reason::NotFound => None,
                // A directory that the draft has removed: a file may take its place.
                Err(error) if *error.reason() == Reason::IsDirectory && self.gone.contains(locator) => None,
                Err(error) => return Err(error),
            };
            let now = before.as_ref().map(|object| object.bytes.clone());
            self.files.insert(locator.clone(), Slot { before, now });
        }
        Ok(self.files.get_mut(locator).expect("it was just put there"))
    }

    /// Refuses a new name that the storage would refuse.
    async fn check_new(&self, verb: Verb, locator: &Locator) -> Result<()> {
        let refuse = |message: String| {
            let source = StoreError::new(ErrorKind::Invalid, Operation::Write, locator, message);
            Err(Error::storage(verb, locator, source))
        };
        if let Err(reason) = locator.check_portable() {
            return Err(Error::storage(
                verb,
                locator,
                StoreError::invalid(Operation::Write, locator, reason),
            ));
        }
        let mut new = locator.clone();
        while let Some(parent) = new.parent() {
            if let Some(twin) = self.twin(verb, &parent, &new).await? {
                return refuse(format!("{twin} differs only by case"));
            }
            match self.kind(verb, &parent).await? {
                None => new = parent,
                Some(EntryKind::File) => return refuse(format!("{parent} is a file, not a directory")),
                Some(EntryKind::Directory) => break,
            }
        }
        Ok(())
    }

    /// Returns a name in `parent` that differs from that of `new` only by case.
    async fn twin(&self, verb: Verb, parent: &Locator, new: &Locator) -> Result<Option<Locator>> {
        let folded = new.folded();
        let is_twin = |other: &Locator| other != new && other.folded() == folded;
        let depth = new.segments().count();
        for (file, _) in self.files.iter().filter(|(_, slot)| slot.now.is_some()) {
            let above = std::iter::successors(Some(file.clone()), Locator::parent);
            for place in above.filter(|place| place.segments().count() == depth) {
                if is_twin(&place) {
                    return Ok(Some(place));
                }
            }
        }
        let listing = self.memory.files().list(parent).await;
        let listing = listing.map_err(|error| Error::storage(verb, parent, error))?;
        for entry in listing.entries.into_iter().filter(|entry| is_twin(&entry.locator)) {
            if self.kind(verb, &entry.locator).await?.is_some() {
                return Ok(Some(entry.locator));
            }
        }
        Ok(None)
    }

    /// Returns what is to be done: first what goes, then what comes.
    /// Returns the steps: writes first, so that a program that looks in between sees a text twice rather than not at all. A file that takes the place of a removed
    /// file or directory is written after the removal.
    fn steps(self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut puts = Vec::new();
        let mut removed: BTreeSet<String> = self.gone.iter().map(Locator::folded).collect();
        let is_removed = |slot: &Slot| slot.before.is_some() && slot.now.is_none();
        removed.extend(self.files.iter().filter(|(_, slot)| is_removed(slot)).map(|(at, _)| at.folded()));
        for (locator, Slot { before, now }) in self.files {
            match (before, now) {
                (Some(before), None) => steps.push(Step::Remove { locator, expected: before.version }),
                (None, Some(bytes)) => puts.push(Step::Put { locator, expected: None, bytes }),
                (Some(before), Some(bytes)) if before.bytes != bytes => {
                    puts.push(Step::Put { locator, expected: Some(before.version), bytes });
                }
                (None, None) | (Some(_), Some(_)) => {}
            }
        }
        // The deepest sort last.
        steps.extend(self.gone.into_iter().rev().map(|locator| Step::Sweep { locator }));
        let is_late = |put: &Step| matches!(put, Step::Put { locator, .. } if is_in_the_way(&removed, &locator.folded()));
        let (late, mut all): (Vec<Step>, Vec<Step>) = puts.into_iter().partition(is_late);
        all.extend(steps);
        all.extend(late);
        all
    }
}

/// Returns true if a file has the name of a removed one, or one of them is a directory of the other's. Names are folded.
fn is_in_the_way(removed: &BTreeSet<String>, name: &str) -> bool {
    let below = format!("{name}/");
    removed.contains(name)
        || removed.range(below.clone()..).next().is_some_and(|other| other.starts_with(&below))
        || name.match_indices('/').any(|(at, _)| removed.contains(&name[..at]))
}
