//! Writing content: a batch of edits, each all or nothing, one directory sync for all.
//!
//! The write lock is held throughout, so the only others are programs that take no lock: editors, sync
//! clients, the agent's own tools. Steps, each over the whole batch:
//!
//! 1. Look: find or make the directories, read what a condition names, refuse what cannot be.
//! 2. Note what is about to happen.
//! 3. Write every draft beside its target, and every append to its file's end.
//! 4. Make them durable, in parallel.
//! 5. Put each draft in its place: to a free name, over whatever is there, or by exchange.
//! 6. After an exchange, look at what was displaced: ours is discarded, another program's is kept.
//! 7. Make the directories durable, drop the note, answer.

use std::io;

use bytes::{Bytes, BytesMut};

use super::content::SeenContent;
use super::core::{Core, FILE_MODE};
use super::fs::{Fs, Target};
use super::note::{self, UnderWay};
use super::recent::{KEEPS_OPEN, Reopened};
use super::recover::{Content, Leftover};
use super::temp::{Digest, TargetMark, Temp, Verdict};
use super::trust::Owed;
use super::walk::{self, EntryHandle, Opened, expect_file};
use crate::backend::{Appended, Condition, Displaced, Durability, Written};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;
use crate::refuse::{condition_failed, is_a_directory};
use crate::version::Version;

/// A change of one object's content.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) locator: Locator,
    pub(super) bytes: Bytes,
    pub(super) how: How,
}

/// The kind of an edit.
#[derive(Clone, Debug)]
pub(super) enum How {
    /// Hashed before it queued: by the many who wait, and not by the one who works for all of them.
    Write {
        wrote: Digest,
        version: Version,
        condition: Condition,
    },
    Append(Durability),
}

impl Edit {
    fn operation(&self) -> Operation {
        match self.how {
            How::Write { .. } => Operation::Write,
            How::Append(_) => Operation::Append,
        }
    }
}

/// The result of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Written(Written),
    Appended(Appended),
}

/// How an edit will take effect.
enum Plan {
    /// A draft goes to a free name.
    Create,
    /// A draft goes over whatever file is there.
    Replace,
    /// A draft changes places with the file that was read.
    Exchange { swap: Working, read: SeenContent, inode: u64, condition: Condition },
    /// The bytes go to the end of the file that is there.
    Extend { offset: u64, inode: u64, durability: Durability },
}

/// A working name and its spelling.
struct Working {
    temp: Temp,
    name: String,
}

impl From<Temp> for Working {
    fn from(temp: Temp) -> Working {
        Working { name: temp.to_string(), temp }
    }
}

/// An edit on its way.
struct Job<F: Fs> {
    operation: Operation,
    place: EntryHandle<F>,
    /// The names beside it were known when it was looked at, and no replace makes new ones.
    watched: bool,
    plan: Plan,
    /// The content of the draft, or the appended bytes.
    bytes: Bytes,
    mode: u32,
    /// The name of the draft.
    draft: String,
    /// The draft, or the file that is extended.
    file: Option<F::File>,
    /// The file that goes away, kept open: freeing its blocks can take longer than all the rest, and happens
    /// when the last handle is closed.
    old: Option<F::File>,
    answer: Done,
}

impl<F: Fs> Job<F> {
    fn failed(&self, fs: &F, error: io::Error) -> Error {
        self.place.failed(fs, self.operation, error)
    }

    /// Decides to change places with the file that was read.
    fn exchange(&mut self, wrote: Digest, read: SeenContent, inode: u64, condition: &Condition) {
        let target = TargetMark::of(&self.place.name);
        let swap = Temp::Swap { wrote, read: read.digest(), target }.into();
        self.plan = Plan::Exchange { swap, read, inode, condition: condition.clone() };
    }

    fn conflict(&self) -> Error {
        let condition = match &self.plan {
            Plan::Create => &Condition::Absent,
            Plan::Replace | Plan::Extend { .. } => &Condition::Any,
            Plan::Exchange { condition, .. } => condition,
        };
        condition_failed(self.operation, &self.place.locator, condition)
    }
}

/// Tells if appends are about to happen or have happened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extends {
    Announced,
    Complete,
}

/// A job, or its result once that is known.
type Slot<F> = Result<Job<F>, Ended<F>>;

/// The result of an edit.
pub(super) struct Ended<F: Fs> {
    pub(super) result: Result<Done>,
    /// Kept open until the caller that waited for the result is gone, and closed then.
    _old: Option<F::File>,
}

impl<F: Fs> From<Error> for Ended<F> {
    fn from(error: Error) -> Ended<F> {
        Ended { result: Err(error), _old: None }
    }
}

impl<F: Fs> Core<F> {
    /// Applies edits of different places together and returns a result for each.
    pub(super) fn apply(&self, edits: &[Edit]) -> Vec<Ended<F>> {
        let mut results = None;
        let locked = self.locked(|| {
            results = Some(self.apply_locked(edits));
            Ok(())
        });
        match (locked, results) {
            (Ok(()), Some(results)) => results,
            (Err(error), _) => edits
                .iter()
                .map(|edit| {
                    let refused = Error::new(error.kind(), edit.operation(), &edit.locator, error.message());
                    refused.with_source(error.to_string()).into()
                })
                .collect(),
            (Ok(()), None) => unreachable!("the work was done under the lock"),
        }
    }

    fn apply_locked(&self, edits: &[Edit]) -> Vec<Ended<F>> {
        let (mut owed, mut opened) = (Owed::default(), Opened::default());
        let look = |(number, edit)| self.look(edit, number, &mut owed, &mut opened).map_err(Ended::from);
        let mut slots: Vec<Slot<F>> = edits.iter().enumerate().map(look).collect();
        let noted = self.announce(&slots, Extends::Announced);
        self.step(&mut slots, |job| match &noted {
            Ok(()) => self.write_draft(job),
            Err(kind) => Err(job.failed(&self.fs, (*kind).into())),
        });
        // From here on an append is complete. A later change of the file is another program's.
        if slots.iter().flatten().any(|job| matches!(job.plan, Plan::Extend { .. }))
            && let Err(kind) = self.announce(&slots, Extends::Complete)
        {
            self.step(&mut slots, |job| Err(job.failed(&self.fs, kind.into())));
        }
        self.sync_contents(&mut slots);
        for slot in &mut slots {
            if let Ok(job) = slot {
                let result = self.put_in_place(job, &mut owed);
                *slot = Err(Ended { result, _old: job.old.take() });
            }
        }
        let dirs = self.trust.settle(&self.fs, owed);
        let cleared = self.fs.set_note(&[]);
        let results = slots.into_iter().zip(edits).map(|(slot, edit)| {
            let mut ended = slot.err().expect("every job was put in place or failed");
            for result in [&dirs, &cleared] {
                if let (Ok(_), Err(error)) = (&ended.result, result) {
                    let error = io::Error::new(error.kind(), error.to_string());
                    ended.result = Err(Error::from_io(edit.operation(), edit.locator.as_str(), error));
                }
            }
            ended
        });
        results.collect()
    }

    /// Does one step of every job; one that fails leaves nothing behind and is done.
    fn step(&self, slots: &mut [Slot<F>], mut step: impl FnMut(&mut Job<F>) -> Result<()>) {
        for slot in slots {
            if let Ok(job) = slot
                && let Err(error) = step(job)
            {
                self.abandon(job);
                *slot = Err(error.into());
            }
        }
    }

    /// Step 1: decides how the edit can take effect.
    fn look(&self, edit: &Edit, number: usize, owed: &mut Owed<F>, opened: &mut Opened<F>) -> Result<Job<F>> {
        let operation = edit.operation();
        if edit.locator.is_root() {
            return Err(is_a_directory(operation, &edit.locator));
        }
        let must_exist = matches!(edit.how, How::Write { condition: Condition::Matches(_), .. });
        let mut way = Vec::new();
        let place = match opened.find(&self.fs, operation, &edit.locator) {
            Some(place) => place,
            None => match self.find_with_way(operation, &edit.locator, &mut way) {
                Err(error) if error.kind() == ErrorKind::NotFound && !must_exist => {
                    walk::find_or_make(&self.fs, &self.twins, operation, &edit.locator, &mut way)
                }
                found => found,
            },
        };
        let gone = |error: Error| match &edit.how {
            How::Write { condition: condition @ Condition::Matches(_), .. }
                if error.kind() == ErrorKind::NotFound =>
            {
                condition_failed(operation, &edit.locator, condition)
            }
            _ => error,
        };
        let place = place.map_err(gone)?;
        let dir = self
            .trust
            .question(&self.fs, &way, owed)
            .and_then(|last| last.map_or_else(|| self.fs.stat_dir(&place.dir), Ok))
            .map_err(|error| place.failed(&self.fs, operation, error))?;
        opened.note(&place);
        let mut job = Job {
            operation,
            watched: self.twins.knows(&place.locator, &dir),
            place,
            plan: Plan::Create,
            bytes: edit.bytes.clone(),
            mode: FILE_MODE,
            draft: Temp::Draft(number).to_string(),
            file: None,
            old: None,
            answer: Done::Appended(Appended { offset: 0, displaced: None }),
        };
        match &edit.how {
            How::Write { wrote, version, condition } => {
                job.answer = Done::Written(Written { version: version.clone(), displaced: None });
                self.look_for_write(&mut job, *wrote, condition).map_err(gone)?;
            }
            How::Append(durability) => self.look_for_append(&mut job, *durability)?,
        }
        if matches!(job.plan, Plan::Create) {
            self.check_new(operation, &job.place, &dir, None)?;
        }
        Ok(job)
    }

    fn look_for_write(&self, job: &mut Job<F>, wrote: Digest, condition: &Condition) -> Result<()> {
        let locator = &job.place.locator;
        if let Condition::Matches(version) = condition {
            let (old, stat, looks_untouched) = match self.recent.take(&self.fs, &job.place, version) {
                Some(Reopened { file, stat, looks_untouched }) => (file, stat, looks_untouched),
                None => {
                    let (file, stat) = self.open_file(job.operation, &job.place)?;
                    (file, stat, false)
                }
            };
            // If the file looks untouched since our last read, do not read it again: the exchange returns the displaced content.
            let believed = self.memo.called(version).filter(|_| looks_untouched && self.fs.can_exchange());
            let held = match believed {
                Some(known) => Some(SeenContent::Known(known)),
                None => self.holds(&old, stat.size, version).map_err(|error| job.failed(&self.fs, error))?,
            };
            let Some(read) = held else {
                return Err(condition_failed(job.operation, locator, condition));
            };
            job.mode = stat.mode & 0o777;
            job.old = Some(old);
            job.exchange(wrote, read, stat.inode, condition);
            return Ok(());
        }
        match self.fs.stat(&job.place.dir, &job.place.name) {
            Ok(stat) => {
                expect_file(job.operation, locator, stat.kind)?;
                if *condition == Condition::Absent {
                    return Err(condition_failed(job.operation, locator, condition));
                }
                job.mode = stat.mode & 0o777;
                // Only to close it later: a file that cannot be read can be replaced all the same.
                job.old = self.fs.open(&job.place.dir, &job.place.name).ok();
                job.plan = Plan::Replace;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(job.failed(&self.fs, error)),
        }
    }

    fn look_for_append(&self, job: &mut Job<F>, durability: Durability) -> Result<()> {
        let file = match self.fs.open_append(&job.place.dir, &job.place.name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(job.failed(&self.fs, error)),
        };
        let stat = self.fs.stat_file(&file).map_err(|error| job.failed(&self.fs, error))?;
        expect_file(job.operation, &job.place.locator, stat.kind)?;
        job.answer = Done::Appended(Appended { offset: stat.size, displaced: None });
        if stat.links == 1 && self.fs.grows_in_place() {
            job.plan = Plan::Extend { offset: stat.size, inode: stat.inode, durability };
            job.file = Some(file);
            return Ok(());
        }
        // The file has another name, perhaps outside the root, whose content must not change. Or no reader
        // may see half of the file.
        let (current, _, stat) = self.load(job.operation, &job.place)?;
        let mut whole = BytesMut::with_capacity(current.len() + job.bytes.len());
        whole.extend_from_slice(&current);
        whole.extend_from_slice(&job.bytes);
        job.bytes = whole.freeze();
        job.mode = stat.mode & 0o777;
        let (wrote, read) = (Digest::of(&job.bytes), SeenContent::Hashed(Digest::of(&current)));
        job.exchange(wrote, read, stat.inode, &Condition::Any);
        Ok(())
    }

    /// Step 2: writes the note.
    fn announce(&self, slots: &[Slot<F>], extends: Extends) -> Result<(), io::ErrorKind> {
        let mut under_way = Vec::new();
        for job in slots.iter().flatten() {
            let target = job.place.locator.clone();
            if let Plan::Extend { offset, inode, .. } = job.plan {
                if extends == Extends::Announced {
                    under_way.push(UnderWay::Extend { target, inode, offset, bytes: job.bytes.to_vec() });
                }
                continue;
            }
            under_way.push(UnderWay::Temp { name: job.draft.clone(), target: target.clone() });
            if let Plan::Exchange { swap, .. } = &job.plan {
                under_way.push(UnderWay::Temp { name: swap.name.clone(), target });
            }
        }
        if under_way.is_empty() && extends == Extends::Announced {
            return Ok(());
        }
        self.fs.set_note(&note::encode(&under_way)).map_err(|error| error.kind())
    }

    /// Step 3: writes the draft, or adds the bytes.
    fn write_draft(&self, job: &mut Job<F>) -> Result<()> {
        if let Plan::Extend { .. } = job.plan {
            let file = job.file.as_ref().expect("opened when it was looked at");
            return self.append_all(file, &job.bytes).map_err(|error| job.failed(&self.fs, error));
        }
        let create = || self.fs.create(&job.place.dir, &job.draft, job.mode);
        let file = match create() {
            // We hold the lock, so its writer is dead.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.fs.unlink(&job.place.dir, &job.draft).and_then(|()| create())
            }
            created => created,
        };
        let file = file.map_err(|error| job.failed(&self.fs, error))?;
        let written = self.append_all(&file, &job.bytes).map_err(|error| job.failed(&self.fs, error));
        job.file = Some(file);
        written
    }

    pub(super) fn append_all(&self, file: &F::File, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.fs.append(file, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Step 4: makes drafts and appended bytes durable.
    fn sync_contents(&self, slots: &mut [Slot<F>]) {
        let wants_sync =
            |job: &Job<F>| !matches!(job.plan, Plan::Extend { durability: Durability::AtBarrier, .. });
        let files: Vec<&F::File> = slots
            .iter()
            .filter_map(|slot| slot.as_ref().ok())
            .filter(|job| wants_sync(job))
            .filter_map(|job| job.file.as_ref())
            .collect();
        if files.is_empty() {
            return;
        }
        let mut results = self.fs.sync_files(&files).into_iter();
        self.step(slots, |job| {
            if !wants_sync(job) {
                return Ok(());
            }
            // A failed sync is not tried again on the same handle: the pages may be marked clean and lost.
            let result = results.next().unwrap_or_else(|| Err(io::Error::other("no answer")));
            result.map_err(|error| job.failed(&self.fs, error))
        });
    }

    /// Steps 5 and 6: lets the edit take effect.
    fn put_in_place(&self, job: &mut Job<F>, owed: &mut Owed<F>) -> Result<Done> {
        // Windows may refuse to replace a file that we still have open.
        if !KEEPS_OPEN {
            drop(job.old.take());
        }
        let target = match &job.plan {
            Plan::Extend { offset, inode, durability } => {
                let (offset, inode, durability) = (*offset, *inode, *durability);
                return self.confirm_extended(job, offset, inode, durability);
            }
            Plan::Exchange { swap, read, inode, .. } => {
                let displaced = self.exchange(job, swap, read, *inode)?;
                match &mut job.answer {
                    Done::Written(written) => written.displaced = displaced,
                    Done::Appended(appended) => appended.displaced = displaced,
                }
                None
            }
            Plan::Create => Some(Target::Free),
            Plan::Replace => Some(Target::Replaced),
        };
        if let Some(target) = target {
            let EntryHandle { dir, name, .. } = &job.place;
            if let Err(error) = self.fs.rename(dir, &job.draft, dir, name, target) {
                let taken = error.kind() == io::ErrorKind::AlreadyExists;
                self.abandon(job);
                return Err(if taken { job.conflict() } else { job.failed(&self.fs, error) });
            }
        }
        let EntryHandle { dir, name, locator } = &job.place;
        let now = owed.add(&self.fs, dir);
        match (&job.plan, &now) {
            (Plan::Create, now) => self.twins.created(locator, now.as_ref().ok(), name),
            (_, Ok(now)) if job.watched => self.twins.replaced(locator, now),
            _ => {}
        }
        now.map_err(|error| job.failed(&self.fs, error))?;
        Ok(job.answer.clone())
    }

    /// Makes sure that the file that was extended is still the one under its name.
    fn confirm_extended(
        &self,
        job: &mut Job<F>,
        offset: u64,
        inode: u64,
        durability: Durability,
    ) -> Result<Done> {
        let file = job.file.take().expect("opened when it was looked at");
        let there = self.fs.stat(&job.place.dir, &job.place.name);
        if !there.as_ref().is_ok_and(|stat| stat.inode == inode) {
            // Another program saved by rename, or deleted: our bytes went to a file that is no more.
            self.cut_if_ours(&file, offset, &job.bytes).map_err(|error| job.failed(&self.fs, error))?;
            return Err(job.conflict());
        }
        if durability == Durability::AtBarrier {
            self.sync_later(file, inode).map_err(|error| job.failed(&self.fs, error))?;
        }
        Ok(job.answer.clone())
    }

    fn exchange(
        &self,
        job: &Job<F>,
        swap: &Working,
        read: &SeenContent,
        inode: u64,
    ) -> Result<Option<Displaced>> {
        let (fs, dir, name) = (&self.fs, &job.place.dir, job.place.name.as_str());
        let (draft, swap_name) = (job.draft.as_str(), swap.name.as_str());
        let give_up = |temp: &str, error: Error| {
            // Nothing took effect and the error says so; a leftover is found by the next writer.
            drop(fs.unlink(dir, temp));
            Err(error)
        };
        if !fs.can_exchange() {
            return self.replace_if_unchanged(job, draft, read.digest()).map(|()| None);
        }
        let ready = match fs.rename(dir, draft, dir, swap_name, Target::Free) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let parent = job.place.locator.parent().unwrap_or_else(Locator::root);
                self.recover_leftover(&Leftover { parent, temp: swap.temp.clone() }, Some(&job.place.locator))
                    .map_err(io::Error::other)
                    .and_then(|()| fs.rename(dir, draft, dir, swap_name, Target::Free))
            }
            result => result,
        };
        if let Err(error) = ready {
            return give_up(draft, job.failed(fs, error));
        }
        match fs.rename(dir, swap_name, dir, name, Target::Exchanged) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                return self.replace_if_unchanged(job, swap_name, read.digest()).map(|()| None);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return give_up(swap_name, job.conflict());
            }
            Err(error) => return give_up(swap_name, job.failed(fs, error)),
        }
        if self.is_what_was_read(job, swap, read, inode).map_err(|error| job.failed(fs, error))? {
            fs.unlink(dir, swap_name).map_err(|error| job.failed(fs, error))?;
            return Ok(None);
        }
        let content = self.content_of(dir, swap_name).map_err(|error| job.failed(fs, error))?;
        if let Some(Content::Thing) = content {
            // A link or directory took the file's place: it goes back, and our content goes away.
            fs.rename(dir, swap_name, dir, name, Target::Exchanged).map_err(|error| job.failed(fs, error))?;
            let ours = self.content_of(dir, swap_name).map_err(|error| job.failed(fs, error))?;
            self.discard_or_keep(job, swap, ours)?;
            return Err(job.conflict());
        }
        self.discard_or_keep(job, swap, content)
    }

    /// Returns true if the exchange displaced the very file that was read, with the content that was read.
    ///
    /// Through the handle it was read by: the common case opens nothing and holds nothing in memory.
    fn is_what_was_read(
        &self,
        job: &Job<F>,
        swap: &Working,
        read: &SeenContent,
        inode: u64,
    ) -> io::Result<bool> {
        let Some(old) = &job.old else { return Ok(false) };
        match self.fs.stat(&job.place.dir, &swap.name) {
            Ok(stat) if stat.inode == inode => self.still_holds(old, stat.size, read),
            _ => Ok(false),
        }
    }

    /// Removes what is under the swap name if it is ours, else keeps it; the judgement is recovery's.
    fn discard_or_keep(
        &self,
        job: &Job<F>,
        swap: &Working,
        content: Option<Content>,
    ) -> Result<Option<Displaced>> {
        let (fs, dir) = (&self.fs, &job.place.dir);
        let failed = |error| job.failed(fs, error);
        let is_ours = |bytes: &Bytes| swap.temp.judge(Digest::of(bytes)) == Verdict::Discard;
        match content {
            None => Ok(None),
            Some(Content::File(bytes)) if is_ours(&bytes) => {
                fs.unlink(dir, &swap.name).map_err(failed)?;
                Ok(None)
            }
            Some(content) => {
                let kept = self.keep(dir, &swap.name, &job.place.locator, &content).map_err(failed)?;
                Ok(match content {
                    Content::File(bytes) => Some(Displaced { bytes, kept }),
                    Content::Thing => None,
                })
            }
        }
    }

    /// Replaces on a filesystem that cannot exchange: looks once more, then renames.
    ///
    /// A save of another program between the two is lost; no call of such a filesystem can detect it.
    fn replace_if_unchanged(&self, job: &Job<F>, draft: &str, read: Digest) -> Result<()> {
        let (dir, name) = (&job.place.dir, job.place.name.as_str());
        let content = self.content_of(dir, name).map_err(|error| job.failed(&self.fs, error))?;
        let unchanged = matches!(&content, Some(Content::File(bytes)) if Digest::of(bytes) == read);
        let result = if unchanged {
            self.fs
                .rename(dir, draft, dir, name, Target::Replaced)
                .map_err(|error| job.failed(&self.fs, error))
        } else {
            Err(job.conflict())
        };
        if result.is_err() {
            drop(self.fs.unlink(dir, draft));
        }
        result
    }

    /// Takes back what a job that failed wrote so far; what it says is more useful than a second failure.
    fn abandon(&self, job: &Job<F>) {
        match (&job.plan, &job.file) {
            (Plan::Extend { offset, .. }, Some(file)) => drop(self.cut_if_ours(file, *offset, &job.bytes)),
            (Plan::Create | Plan::Replace | Plan::Exchange { .. }, Some(_)) => {
                drop(self.fs.unlink(&job.place.dir, &job.draft));
            }
            (_, None) => {}
        }
    }
}
