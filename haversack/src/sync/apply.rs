//! Carries out the steps that `plan` decided. It decides only how to handle programs that write at the same time.
//!
//! 1. Prepare the new contents under reserved names.
//! 2. Record the steps.
//! 3. Exchange each prepared content with its file (or move it to a free name, or move the file to a reserved name). The content under the reserved
//!    name shows afterwards if the exchange happened, even if the file changed since (docs/adr/0006).
//! 4. Move the bases. Then remove the reserved names.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use haversack_store::{
    Backend, Bytes, Condition, Entry, EntryKind, Error as StoreError, ErrorKind, Locator, Object, Operation,
    Result as StoreResult,
};

use super::plan::case_name;
use super::planted::{Planted, has};
use super::progress::{Progress, Stage};
use super::state::{ApplyRecord, Move, State};
use crate::ids::ContentHash;
use crate::many::{MAX_FILES_AT_ONCE, Work, many};
use crate::merge::{Rule, Side, conflict_name, merge};
use crate::signed;

/// The most times that a file is merged again because another program saved it.
const MAX_TRIES: usize = 8;

/// The number of contents that are prepared together, between two progress reports.
const MAX_PREPARED_TOGETHER: usize = 512;

/// How a name says that there was no file.
const NOTHING: &str = "nothing";

/// How a name ends that says that a content was put where the file had been deleted.
const PUT_BACK: &str = "-back";

/// The name of another program of this device in a note.
const HERE: &str = "this device";

/// Results that come up while working files are changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Met {
    /// Files that could not be written or removed: this disk cannot hold the name, or something that is no writable file is in the way.
    pub(crate) refused: Vec<Locator>,
    /// Files that were to go and stayed, because another program had just changed them.
    pub(crate) stayed: Vec<Locator>,
}

/// Returns true if an error of this device's storage is about one file only: the other files can be synced.
pub(crate) fn concerns_one_file(error: &StoreError) -> bool {
    matches!(error.kind(), ErrorKind::Denied | ErrorKind::Invalid | ErrorKind::Unsupported)
}

impl Met {
    fn add(&mut self, other: Met) {
        self.refused.extend(other.refused);
        self.stayed.extend(other.stayed);
    }
}

/// The names that one move uses.
struct Names {
    incoming: Locator,
    outgoing: Locator,
}

fn names(attempt: &str, number: usize) -> Names {
    let name = |which| own(&format!("{which}/{attempt}-{number}"));
    Names { incoming: name("incoming"), outgoing: name("outgoing") }
}

fn own(name: &str) -> Locator {
    Locator::reserved(&format!(".haversack/{name}")).expect("one of our own names")
}

/// Returns the file that is deleted because a move now has its name in another spelling: its content, and the new name.
fn went_for(applying: &ApplyRecord, moved: &Move) -> Option<(ContentHash, Locator)> {
    moved.new?;
    let name = Locator::fold(&moved.at);
    let is_it = |(_, other): &(usize, &Move)| {
        other.new.is_none() && other.at != moved.at && Locator::fold(&other.at) == name
    };
    let (number, went) = applying.moves.iter().enumerate().find(is_it)?;
    Some((went.expected?, names(&applying.attempt, number).outgoing))
}

/// Prepares new content for the moves: nothing has happened yet.
pub(crate) async fn prepare(
    files: &dyn Backend,
    attempt: &str,
    moves: &[Move],
    contents: &[Option<Bytes>],
    progress: &dyn Progress,
) -> StoreResult<()> {
    let incoming = |(number, content): (usize, &Option<Bytes>)| {
        Some((names(attempt, number).incoming, content.clone()?))
    };
    let half = Half::new(progress, moves.len(), 0);
    let mut incoming = contents.iter().enumerate().filter_map(incoming).peekable();
    while incoming.peek().is_some() {
        let some: Vec<(Locator, Bytes)> = incoming.by_ref().take(MAX_PREPARED_TOGETHER).collect();
        let count = some.len();
        files.prepare(some).await?;
        half.step(count);
    }
    Ok(())
}

/// Carries out every recorded move; moves that were carried out before stay as they are.
///
/// 1. Files make way, in order.
/// 2. Files are removed: a new file may need their names.
/// 3. Files are written. If one has the name of a directory of another (`deep` and `deep/ideas.md`), the deeper one is written first,
///    and the other one is refused. At the same time, one would remove directories that the other makes.
///
/// Other moves do not depend on one another.
pub(crate) async fn carry_out(
    files: &dyn Backend,
    state: &State,
    applying: &ApplyRecord,
    signed: Option<&dyn Backend>,
    progress: &dyn Progress,
) -> StoreResult<Met> {
    let prepared = prepared_merges(files, &applying.attempt).await?;
    let mover = |number: usize| {
        let moved = applying.moves.get(number)?;
        let locator = Locator::parse(&moved.at).ok()?;
        let (names, prefix) = (names(&applying.attempt, number), format!("{}-{number}-", applying.attempt));
        let went = went_for(applying, moved);
        Some(Mover { files, state, signed, prepared: &prepared, moved, went, locator, names, prefix })
    };
    let half = &Half::new(progress, applying.moves.len(), applying.moves.len() / 2);
    let mut met = Met::default();
    for mover in (0..applying.in_order).filter_map(mover) {
        met.add(mover.carry_out().await?);
    }
    let rest = applying.in_order.min(applying.moves.len())..applying.moves.len();
    let (removed, put): (Vec<usize>, Vec<usize>) =
        rest.partition(|number| applying.moves[*number].new.is_none());
    let name = |number: usize| Locator::fold(&applying.moves[number].at);
    let directories = directories_of(put.iter().map(|number| name(*number)));
    let (mut nested, put): (Vec<usize>, Vec<usize>) =
        put.into_iter().partition(|number| directories.contains(&*name(*number)));
    nested.sort_by_key(|number| Reverse(name(*number).matches('/').count()));
    for wave in [removed, put] {
        let moves = wave.into_iter().filter_map(mover).map(|mover| -> Work<'_, Met, StoreError> {
            Box::pin(async move {
                let met = mover.carry_out().await;
                half.step(1);
                met
            })
        });
        many(MAX_FILES_AT_ONCE, moves).await?.into_iter().for_each(|one| met.add(one));
    }
    for mover in nested.into_iter().filter_map(mover) {
        met.add(mover.carry_out().await?);
        half.step(1);
    }
    Ok(met)
}

/// Returns the directories that files with these names are in, and those above them.
fn directories_of<'a>(names: impl Iterator<Item = Cow<'a, str>>) -> BTreeSet<String> {
    let mut directories = BTreeSet::new();
    for name in names {
        let ends = name.rmatch_indices('/').map(|(end, _)| end);
        // Directories above one that is known are known.
        for directory in ends.map(|end| &name[..end]) {
            if directories.contains(directory) {
                break;
            }
            directories.insert(directory.to_owned());
        }
    }
    directories
}

/// One half of the work on some files, for the progress: first they are prepared, then exchanged.
struct Half<'a> {
    progress: &'a dyn Progress,
    total: usize,
    before: usize,
    done: AtomicUsize,
}

impl Half<'_> {
    fn new(progress: &dyn Progress, total: usize, before: usize) -> Half<'_> {
        Half { progress, total, before, done: AtomicUsize::new(0) }
    }

    fn step(&self, count: usize) {
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        self.progress.at(Stage::Fetching, self.before + done / 2, Some(self.total));
    }
}

/// Returns the names of merges that a process that died had prepared.
async fn prepared_merges(files: &dyn Backend, attempt: &str) -> StoreResult<BTreeSet<String>> {
    let mut prepared = BTreeSet::new();
    for directory in ["incoming", "outgoing"] {
        let entries = files.list(&own(directory)).await?.entries;
        let names = entries.iter().map(|entry| entry.locator.name());
        prepared.extend(names.filter(|name| name.starts_with(attempt)).map(str::to_owned));
    }
    Ok(prepared)
}

/// Lets renamed files keep their old names if the new ones could not be written; returns the old names.
///
/// A file that was taken away under its old name is put back. If a program has put another file there since, the text stays beside it.
pub(crate) async fn keep_old_names(
    files: &dyn Backend,
    applying: &ApplyRecord,
    refused: &[Locator],
) -> StoreResult<Vec<Locator>> {
    let mut kept = Vec::new();
    let is_refused = |moved: &&Move| refused.iter().any(|at| at.as_str() == moved.at);
    for moved in applying.moves.iter().filter(is_refused) {
        let Some(from) = moved.renamed_from.as_ref().and_then(|from| Locator::parse(from).ok()) else {
            continue;
        };
        let taken = applying.moves.iter().position(|moved| moved.new.is_none() && moved.at == from.as_str());
        let outgoing = taken.map(|number| names(&applying.attempt, number).outgoing);
        if let Some(outgoing) = outgoing
            && let Some(text) = read(files, &outgoing).await?
        {
            let beside = case_name(&from, &ContentHash::of(&text.bytes))
                .map_err(|reason| StoreError::invalid(Operation::Rename, &from, reason))?;
            match files.rename(&outgoing, &from).await {
                Err(error) if error.kind() == ErrorKind::Conflict || concerns_one_file(&error) => {
                    put_beside(files, &outgoing, &beside).await?;
                }
                done => done?,
            }
        }
        kept.push(from);
    }
    Ok(kept)
}

/// Moves a text under a free name; the same text may have been put there before.
async fn put_beside(files: &dyn Backend, outgoing: &Locator, beside: &Locator) -> StoreResult<()> {
    match files.rename(outgoing, beside).await {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        done => done,
    }
}

/// Removes the reserved names of an attempt; their contents are in the files, in the bases or merged.
///
/// Of a file that was refused, a content that is known nowhere else is put aside.
pub(crate) async fn clean_up(
    files: &dyn Backend,
    state: &State,
    applying: &ApplyRecord,
    refused: &[Locator],
) -> StoreResult<()> {
    let is_refused = |(_, moved): &(usize, &Move)| refused.iter().any(|at| at.as_str() == moved.at);
    let refused = applying.moves.iter().enumerate().filter(is_refused);
    let refused: Vec<String> = refused.map(|(number, _)| format!("{}-{number}", applying.attempt)).collect();
    for directory in ["incoming", "outgoing"] {
        for Entry { locator, .. } in files.list(&own(directory)).await?.entries {
            let name = locator.name();
            if !name.starts_with(&applying.attempt) {
                continue;
            }
            if refused.iter().any(|start| name.starts_with(start)) {
                put_aside(files, state, &locator).await?;
            }
            files.delete(&locator, Condition::Any).await?;
        }
    }
    Ok(())
}

/// Puts a content that is known nowhere else to the other texts that programs wrote and that were displaced.
async fn put_aside(files: &dyn Backend, state: &State, locator: &Locator) -> StoreResult<()> {
    // An empty file is a sign of ours, or has nothing to keep.
    if let Some(object) = read(files, locator).await?.filter(|object| !object.bytes.is_empty()) {
        let hash = ContentHash::of(&object.bytes);
        if state.kept(&hash).await?.is_none() {
            let aside = own(&format!("kept/{}/{}", &hash.to_string()[..16], locator.name()));
            let _ = files.write(&aside, object.bytes, Condition::Any).await?;
        }
    }
    Ok(())
}

/// Files under reserved names that no record mentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// Contents that a killed process prepared before it recorded its steps: nothing was displaced yet.
    Prepared,
    /// The record is lost: contents that wait to go in and displaced ones cannot be told apart.
    Unknown,
}

/// Removes what lies under reserved names without a record.
///
/// A file that may be a displaced text of the user, and that we do not know, moves to the directory for other programs' content.
pub(crate) async fn sweep(files: &dyn Backend, state: &State, leftovers: Leftovers) -> StoreResult<()> {
    for directory in ["incoming", "outgoing"] {
        for Entry { locator, .. } in files.list(&own(directory)).await?.entries {
            let is_ours = directory == "incoming" && leftovers == Leftovers::Prepared;
            if !is_ours {
                put_aside(files, state, &locator).await?;
            }
            files.delete(&locator, Condition::Any).await?;
        }
    }
    Ok(())
}

/// Returns the texts that were put aside: displaced contents of other programs that are known nowhere else.
pub(crate) async fn texts_put_aside(files: &dyn Backend) -> StoreResult<Vec<Locator>> {
    let mut texts = Vec::new();
    for directory in files.list(&own("kept")).await?.entries {
        texts.extend(files.list(&directory.locator).await?.entries.into_iter().map(|entry| entry.locator));
    }
    Ok(texts)
}

/// Returns true if there is neither a working file nor anything under a reserved name.
pub(crate) async fn is_nothing_there(files: &dyn Backend) -> StoreResult<bool> {
    for directory in ["incoming", "outgoing"] {
        if !files.list(&own(directory)).await?.entries.is_empty() {
            return Ok(false);
        }
    }
    Ok(files.list(&Locator::root()).await?.entries.is_empty())
}

/// Moves one working file.
struct Mover<'a> {
    files: &'a dyn Backend,
    state: &'a State,
    /// The state in which writers signed their changes.
    signed: Option<&'a dyn Backend>,
    /// Merges that were prepared before.
    prepared: &'a BTreeSet<String>,
    moved: &'a Move,
    /// The file that is deleted because this name is now spelled otherwise: its content, and the new name.
    went: Option<(ContentHash, Locator)>,
    locator: Locator,
    names: Names,
    /// The first part of the names of its merges.
    prefix: String,
}

/// The treatment of a file that a user deletes while a displaced text is merged into it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfGone {
    /// The user did not see the text: the file comes back as the merge of the text and the content that was put there.
    ComesBack { put: Option<ContentHash> },
    /// All that could be seen was.
    StaysGone,
}

/// The result for a file that was to be deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Gone,
    Stayed,
}

/// A content that waits under a reserved name to change places with the file; the name tells both.
struct Slot {
    at: Locator,
    new: ContentHash,
    /// The file's content at the time of preparing; `None` if there was no file.
    expected: Option<ContentHash>,
}

impl Mover<'_> {
    /// Moves the file; a file that cannot be written stops only itself.
    async fn carry_out(self) -> StoreResult<Met> {
        let mut met = Met::default();
        match self.carry_out_into(&mut met).await {
            Err(error) if concerns_one_file(&error) => met.refused.push(self.locator),
            done => done?,
        }
        Ok(met)
    }

    async fn carry_out_into(&self, met: &mut Met) -> StoreResult<()> {
        match (self.moved.expected, self.moved.new) {
            (None, Some(_)) => self.put_new(met).await?,
            (Some(expected), Some(new)) => self.replace(expected, new).await?,
            (Some(expected), None) => {
                if self.take_away(expected, self.moved.last).await? == Fate::Stayed {
                    met.stayed.push(self.locator.clone());
                }
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// Moves new content to a free name.
    async fn put_new(&self, met: &mut Met) -> StoreResult<()> {
        if self.slot(1).is_none() {
            match self.files.rename(&self.names.incoming, &self.locator).await {
                Ok(()) => return Ok(()),
                // It was moved before.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Conflict && self.is_directory().await? => {
                    // The files in it may have just gone. A directory that still has some stays.
                    if !remove_empty_directories(self.files, &self.locator).await? {
                        met.refused.push(self.locator.clone());
                        return Ok(());
                    }
                    return self.files.rename(&self.names.incoming, &self.locator).await;
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                // The user has the file under its other spelling in this moment: the new content is merged into it there.
                Err(error)
                    if error.kind() == ErrorKind::Invalid
                        && (self.went.is_some() || self.moved.last.is_some())
                        && self.other_spelling().await?.is_some() => {}
                // This disk cannot hold the name, or a file is where a directory would be.
                Err(error) if error.kind() == ErrorKind::Invalid => {
                    met.refused.push(self.locator.clone());
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        let Some(new) = read(self.files, &self.names.incoming).await? else { return Ok(()) };
        let base = self.ground_of_new().await?;
        self.reconcile(IfGone::ComesBack { put: None }, base, new.bytes).await
    }

    async fn is_directory(&self) -> StoreResult<bool> {
        match self.files.info(&self.locator).await {
            Ok(info) => Ok(info.kind == EntryKind::Directory),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the base of a file that a program has put at the name of new content.
    ///
    /// If the content comes with a rename and the old name was not taken away by us, the program has renamed the file: both go back to
    /// the content of the old name. If we took it away, the program has made a new file.
    async fn ground_of_new(&self) -> StoreResult<Option<Bytes>> {
        let Some((expected, outgoing)) = &self.went else { return self.kept(self.moved.last).await };
        let taken = read(self.files, outgoing).await?;
        match taken.is_some_and(|taken| ContentHash::of(&taken.bytes) == *expected) {
            true => Ok(None),
            false => self.state.kept(expected).await,
        }
    }

    /// Returns the other spelling that the file has now, if a program has renamed it by case in this moment.
    async fn other_spelling(&self) -> StoreResult<Option<Locator>> {
        let parent = self.locator.parent().unwrap_or_else(Locator::root);
        let entries = match self.files.list(&parent).await {
            Ok(listing) => listing.entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let folded = self.locator.folded();
        let is_it = |entry: &Entry| {
            let is_other = entry.locator != self.locator && entry.locator.folded() == folded;
            is_other && entry.kind == EntryKind::File
        };
        Ok(entries.into_iter().find(is_it).map(|entry| entry.locator))
    }

    /// Lets new content change places with the file.
    async fn replace(&self, expected: ContentHash, new: ContentHash) -> StoreResult<()> {
        let slot = Slot { at: self.names.incoming.clone(), new, expected: Some(expected) };
        match self.exchange(&slot, IfGone::ComesBack { put: None }).await? {
            None => Ok(()),
            Some(_) if has(Planted::DisplacedIsDropped) => Ok(()),
            Some(displaced) if has(Planted::DisplacedIsMergedAgain) => {
                let Some(now) = read(self.files, &self.locator).await? else { return Ok(()) };
                let slot = self
                    .prepare(1, self.state.kept(&expected).await?.as_ref(), &displaced, Some(&now.bytes))
                    .await?;
                let merged = read(self.files, &slot.at).await?.map(|object| object.bytes).unwrap_or_default();
                self.files.delete(&slot.at, Condition::Any).await?;
                let _ = self.files.write(&self.locator, merged, Condition::Any).await?;
                Ok(())
            }
            Some(displaced) => {
                let base = self.state.kept(&expected).await?;
                self.reconcile(IfGone::ComesBack { put: Some(new) }, base, displaced).await
            }
        }
    }

    /// Moves a file to a reserved name. If a program changed the file, puts it back, and merges the changes that the other side made before the
    /// deletion is merged into it.
    async fn take_away(&self, expected: ContentHash, last: Option<ContentHash>) -> StoreResult<Fate> {
        let base = self.state.kept(&expected).await?;
        if self.slot(1).is_some() {
            // It stayed, and is being merged.
            self.reconcile(IfGone::StaysGone, base, Bytes::new()).await?;
            return Ok(Fate::Stayed);
        }
        if read(self.files, &self.names.outgoing).await?.is_none() {
            match self.files.rename(&self.locator, &self.names.outgoing).await {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Fate::Gone),
                Err(error) => return Err(error),
            }
        }
        let Some(gone) = read(self.files, &self.names.outgoing).await? else { return Ok(Fate::Gone) };
        if ContentHash::of(&gone.bytes) == expected {
            return Ok(Fate::Gone);
        }
        match self.files.rename(&self.names.outgoing, &self.locator).await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.reconcile(IfGone::ComesBack { put: None }, None, gone.bytes).await?;
                return Ok(Fate::Stayed);
            }
            // Another program made a file there whose name differs only by case, or put something else in the way.
            Err(error) if concerns_one_file(&error) => {
                self.put_back_beside(&gone.bytes).await?;
                return Ok(Fate::Stayed);
            }
            Err(error) => return Err(error),
        }
        let last = match last {
            Some(last) => self.state.kept(&last).await?,
            None => None,
        };
        if let Some(last) = last {
            self.reconcile(IfGone::StaysGone, base, last).await?;
        }
        Ok(Fate::Stayed)
    }

    /// Puts a text of the user's, whose own name is taken, under a name beside it: the next look finds it there.
    async fn put_back_beside(&self, text: &Bytes) -> StoreResult<()> {
        let beside = case_name(&self.locator, &ContentHash::of(text))
            .map_err(|reason| StoreError::invalid(Operation::Rename, &self.locator, reason))?;
        put_beside(self.files, &self.names.outgoing, &beside).await
    }

    /// Exchanges a prepared content with the file, and returns the displaced content if it is not the expected one.
    ///
    /// The old content moves on to the outgoing names, because it can be equal to a content that waits to go in. After a crash, the names tell
    /// how far the exchange was.
    async fn exchange(&self, slot: &Slot, if_gone: IfGone) -> StoreResult<Option<Bytes>> {
        let outgoing = own(&format!("outgoing/{}", slot.at.name()));
        let sign = format!("{}{PUT_BACK}", slot.at.name());
        let prepared = read(self.files, &slot.at).await?;
        // After an exchange, the displaced content is there, also if other ways were tried before.
        if prepared.is_none() && self.prepared.contains(&sign) && read(self.files, &outgoing).await?.is_none()
        {
            return Ok(None);
        }
        if let Some(prepared) = prepared {
            if ContentHash::of(&prepared.bytes) == slot.new {
                let mut exchanged = self.files.exchange(&slot.at, &self.locator).await;
                if exchanged.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
                    && let Some(other) = self.other_spelling().await?
                {
                    exchanged = self.files.exchange(&slot.at, &other).await;
                    // A program renames it again and again.
                    if exchanged.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                        return Err(self.restless());
                    }
                }
                match exchanged {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound && if_gone == IfGone::StaysGone => {
                        return Ok(None);
                    }
                    // A user deleted the file: the other side's change wins.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        // Nothing comes out that would tell later that it happened.
                        let sign = own(&format!("outgoing/{sign}"));
                        let _ = self.files.write(&sign, Bytes::new(), Condition::Any).await?;
                        return match self.files.rename(&slot.at, &self.locator).await {
                            Ok(()) => Ok(None),
                            // And made it again: as if it had been changed.
                            Err(error) if error.kind() == ErrorKind::Conflict => Err(self.restless()),
                            Err(error) => Err(error),
                        };
                    }
                    Err(error) if error.kind() == ErrorKind::Unsupported => {
                        return self.exchange_by_writing(slot, prepared.bytes).await;
                    }
                    Err(error) => return Err(error),
                }
            }
            self.files.rename(&slot.at, &outgoing).await?;
        }
        let displaced = match read(self.files, &outgoing).await {
            // The exchange returned a file that we may not read: put it back.
            Err(error) if concerns_one_file(&error) => {
                self.files.exchange(&outgoing, &self.locator).await?;
                return Err(error);
            }
            displaced => displaced?.map(|object| object.bytes),
        };
        Ok(displaced.filter(|displaced| Some(ContentHash::of(displaced)) != slot.expected))
    }

    /// Replaces the file where two objects cannot change places: a crash in this moment leaves no sign.
    async fn exchange_by_writing(&self, slot: &Slot, new: Bytes) -> StoreResult<Option<Bytes>> {
        let Some(there) = read(self.files, &self.locator).await? else { return Err(self.restless()) };
        let written = self.files.write(&self.locator, new, Condition::Matches(there.version)).await;
        match written {
            Ok(_) => Ok((Some(ContentHash::of(&there.bytes)) != slot.expected).then_some(there.bytes)),
            Err(error) if error.kind() == ErrorKind::Conflict => Err(self.restless()),
            Err(error) => Err(error),
        }
    }

    /// Merges a content into the file that another program had put there and that was displaced.
    ///
    /// The merge is exchanged with the file too, so that it is made once: made again after a crash, it would bring back lines that the
    /// user has removed since.
    async fn reconcile(
        &self,
        mut if_gone: IfGone,
        mut base: Option<Bytes>,
        mut other: Bytes,
    ) -> StoreResult<()> {
        for round in 1..=MAX_TRIES {
            let slot = match self.slot(round) {
                Some(slot) => slot,
                None => {
                    let mut there = read(self.files, &self.locator).await?;
                    if there.is_none()
                        && let Some(other) = self.other_spelling().await?
                    {
                        there = read(self.files, &other).await?;
                    }
                    let now = match (there, if_gone) {
                        (Some(now), _) => Some(now.bytes),
                        (None, IfGone::StaysGone) => return Ok(()),
                        // A user deleted the file without having seen this text: the file comes back, merged with the version that the user saw.
                        (None, IfGone::ComesBack { put: Some(put) }) => self.state.kept(&put).await?,
                        (None, IfGone::ComesBack { put: None }) => None,
                    };
                    self.prepare(round, base.as_ref(), &other, now.as_ref()).await?
                }
            };
            // A user who deletes the file now has seen everything that the merge would show.
            let seen = self.kept(slot.expected).await?;
            let merged = self.state.kept(&slot.new).await?;
            if let (Some(seen), Some(merged)) = (seen, merged)
                && shows_nothing_new(&merged, &seen)
            {
                if_gone = IfGone::StaysGone;
            }
            match self.exchange(&slot, if_gone).await? {
                None => return Ok(()),
                Some(displaced) => {
                    base = self.kept(slot.expected).await?;
                    other = displaced;
                    if_gone = IfGone::ComesBack { put: Some(slot.new) };
                }
            }
        }
        Err(self.restless())
    }

    /// Prepares the merge of two contents to change places with the file.
    async fn prepare(
        &self,
        round: usize,
        base: Option<&Bytes>,
        other: &Bytes,
        now: Option<&Bytes>,
    ) -> StoreResult<Slot> {
        let mut expected = None;
        let mut content = other.clone();
        if let Some(now) = now {
            let all = base.into_iter().chain([now, other]).map(|bytes| &bytes[..]);
            let rule = Rule::of(&self.locator, all);
            let (ours, theirs) = (Side { bytes: other, device: HERE }, Side { bytes: now, device: HERE });
            let merged = merge(rule, base.map(|base| &base[..]), ours, theirs);
            if let Some(signed) = self.signed.filter(|_| !has(Planted::MergeIsNotSigned)) {
                let results: [(&Locator, &[u8]); 1] = [(&self.locator, &merged.bytes)];
                signed::sign_merged(signed, &self.locator, &[other, now], &results).await?;
            }
            if let Some(copy) = merged.copy {
                put_copy(self.files, &self.locator, copy).await?;
            }
            expected = Some(self.state.keep(now).await?);
            content = merged.bytes;
        }
        let new = self.state.keep(&content).await?;
        let shown = expected.map_or(NOTHING.to_owned(), |expected| expected.to_string());
        let at = own(&format!("incoming/{}{round}-{new}-{shown}", self.prefix));
        let _ = self.files.write(&at, content, Condition::Any).await?;
        Ok(Slot { at, new, expected })
    }

    async fn kept(&self, hash: Option<ContentHash>) -> StoreResult<Option<Bytes>> {
        match hash {
            Some(hash) => self.state.kept(&hash).await,
            None => Ok(None),
        }
    }

    /// Returns the slot of a round, if one was prepared before.
    fn slot(&self, round: usize) -> Option<Slot> {
        let start = format!("{}{round}-", self.prefix);
        let name = self.prepared.range(start.clone()..).next()?;
        let name = name.strip_suffix(PUT_BACK).unwrap_or(name);
        let (new, expected) = name.strip_prefix(&start)?.split_once('-')?;
        let at = own(&format!("incoming/{name}"));
        Some(Slot { at, new: new.parse().ok()?, expected: expected.parse().ok() })
    }

    /// The error for a file that other programs keep changing: everything is under reserved names, and the next sync continues from there.
    fn restless(&self) -> StoreError {
        let message = "another program keeps changing it";
        StoreError::new(ErrorKind::Busy, Operation::Write, &self.locator, message)
    }
}

/// Returns true if everything that a text says is also in another.
fn shows_nothing_new(text: &[u8], other: &[u8]) -> bool {
    fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        bytes.split(|byte| *byte == b'\n').map(said)
    }
    let seen: BTreeSet<&[u8]> = lines(other).collect();
    lines(text).all(|line| seen.contains(line))
}

/// Returns a line as its user wrote it: a merge of a summary updates the count of items in each heading.
fn said(line: &[u8]) -> &[u8] {
    let Some(inner) = line.strip_suffix(b")").filter(|_| line.starts_with(b"#")) else { return line };
    let digits = inner.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let heading = inner[..inner.len() - digits].strip_suffix(b" (");
    heading.filter(|_| digits > 0).unwrap_or(line)
}

/// Puts a content that could not be merged beside its file; the same content has the same name.
pub(crate) async fn put_copy(files: &dyn Backend, locator: &Locator, copy: Bytes) -> StoreResult<()> {
    let name = conflict_name(locator, &copy)
        .map_err(|reason| StoreError::invalid(Operation::Write, locator, reason))?;
    match files.write(&name, copy, Condition::Absent).await {
        Err(error) if error.kind() != ErrorKind::Conflict => Err(error),
        _ => Ok(()),
    }
}

/// Removes a directory and those below it if there is nothing else in them; returns true if it is gone.
async fn remove_empty_directories(files: &dyn Backend, locator: &Locator) -> StoreResult<bool> {
    let mut directories = vec![locator.clone()];
    let mut at = 0;
    while let Some(directory) = directories.get(at).cloned() {
        at += 1;
        let listing = files.list(&directory).await?;
        if !listing.odd.is_empty() || listing.entries.iter().any(|entry| entry.kind == EntryKind::File) {
            return Ok(false);
        }
        directories.extend(listing.entries.into_iter().map(|entry| entry.locator));
    }
    // The deepest were found last.
    for directory in directories.iter().rev() {
        // The condition spares a file that another program has just put in the directory's place.
        match files.delete(directory, Condition::Absent).await {
            Ok(()) => {}
            // Another program has just put something into it, or in its place.
            Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Conflict) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

async fn read(files: &dyn Backend, locator: &Locator) -> StoreResult<Option<Object>> {
    match files.read(locator).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seed 77675708 of the vault's schedules: a file that was deleted came back, because a merge into it had counted its items again.
    #[test]
    fn what_a_merge_counts_nobody_wrote() {
        let seen = b"# Day\n\n## Handled (2)\n- lamp\n- oil\n";
        assert!(shows_nothing_new(b"# Day\n\n## Handled (1)\n- oil\n", seen));
        assert!(!shows_nothing_new(b"# Day\n\n## Handled (1)\n- wick\n", seen));
        assert!(!shows_nothing_new(b"# Day (fog)\n", seen) && !shows_nothing_new(b"- (3)\n", seen));
        assert_eq!(
            [&b"## a (12)"[..], b"## a ()", b"a (1)", b"#"].map(said),
            [&b"## a"[..], b"## a ()", b"a (1)", b"#"]
        );
    }
}
