//! The store's files as plain objects beside the log, for people and other tools.
//!
//! The mirror is derived: it is written after a commit, never read to decide, and whatever is missing or stale in it is mended by the
//! next device that writes it. Only a full reconcile looks at what somebody changed there by hand.
//!
//! # Invariants
//! - Nothing that we did not write ourselves is overwritten or removed: every write names the version it replaces
//!   (`sync::mirror::a_foreign_edit_is_not_overwritten`, `sync::mirror::manifest_of_another_program_is_left_alone`).
//! - Only files at places of ours are taken in ([`places`](super::places)): files that the user keeps beside the memory stay
//!   where they are and are not sent (`sync::mirror::unrelated_files_are_left_alone`, `vault::unrelated_copies_are_left_alone`).
//! - A content that the log ever had for a file is an old mirror of ours, not somebody's edit
//!   (`sync::mirror::an_old_object_is_no_edit`).
//! - Nor is one that the log has had since this device read it: who is behind takes nothing in.
//! - An edit is taken in once, whatever happens in between (`sync::mirror::an_edit_is_taken_in_once`), and stays where it is until the log has it
//!   (`vault::an_edit_stays_until_it_was_told`); so does a copy (`vault::a_copy_stays_until_it_was_told`).
//! - What an edit lacks was taken out only if it is known what it was made from: what a sync client put in the place of a file, or made a copy
//!   of, adds and takes nothing away (`vault::a_copy_takes_nothing_away`, `vault::what_took_the_place_of_a_file_takes_nothing_away`,
//!   `vault::an_edit_of_what_another_device_wrote_takes_nothing_away`).
//! - A copy is merged once, and goes, wherever whoever takes it in is killed (`haversack-sim: copies`).
//! - That an object is not there is no deletion (`sync::mirror::what_is_gone_from_the_mirror_comes_back`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_lite::StreamExt;
use haversack_store::{Bytes, Condition, Error as StoreError, ErrorKind, Info, Locator, Version};

use super::many::{self, MAX_AT_ONCE, many};
use super::places::OurPlaces;
use super::plan::{Elsewhere, Reach};
use super::planted::{Planted, has};
use super::progress::Stage;
use super::remote::{At, MAX_TRIES, patiently};
use super::state::{Advance, BaseLine, Head, Passing};
use super::take_in::{Brought, Work};
use super::{Context, ForeignFiles, Origin, Replica, Report, Sending, Trouble};
use crate::frame::shown;
use crate::history::archive;
use crate::ids::{ContentHash, Position, StoreId, Timestamp};
use crate::log::{self, Commit, layout};
use crate::manifest::{Entry, Manifest};
use crate::merge::{Rule, Side, merge};

/// How often an object or the manifest is written anew because another device wrote it in between.
const MAX_ROUNDS: usize = 4;

/// The largest object that somebody else put there and that is looked at: it is held in memory.
const MAX_FOREIGN_BYTES: u64 = 256 * 1024 * 1024;

/// How many positions are read at a time when the log is searched.
pub(super) const SEARCHED_AT_ONCE: u64 = 64;

/// What whoever changes the mirror is called.
const THE_MIRROR: &str = "the mirror";

/// What bringing the mirror up to date came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrored {
    /// How many objects were written.
    pub written: usize,
    /// How many objects were removed.
    pub removed: usize,
    /// How many objects are still not up to date: there were more than were to be written at once.
    pub left: usize,
    /// Objects that we did not write, at places where plain copies belong: they stay as they are until a full reconcile takes them in.
    /// `manifest.json` is one of them if it is the file of another program; then no plain copy was written.
    pub foreign: Vec<Locator>,
    /// Files whose names the remote cannot hold beside the others.
    pub refused: Vec<Locator>,
}

/// The manifest as it was read.
struct Index {
    manifest: Manifest,
    version: Option<Version>,
}

/// What somebody wrote by hand, and what it was made from.
struct Edit {
    locator: Locator,
    bytes: Bytes,
    base: Base,
    lies: Lies,
}

/// Where an edit lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lies {
    /// In the place of the file: once it was taken in, it may be replaced.
    There,
    /// In a copy beside it.
    Beside,
}

/// What an edit was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Base {
    /// This: what the edit lacks of it was taken out.
    Known(Option<ContentHash>),
    /// Something like this, as far as anybody can tell: what the edit lacks of it may never have been there.
    Guessed(Option<Bytes>),
}

/// What became of a copy.
enum Merging {
    Done,
    /// It stays where it is, and is looked at again.
    NotYet,
}

/// A file whose plain copy is to be written.
struct PlainFile<'a> {
    locator: &'a Locator,
    bytes: Bytes,
    /// When a commit gave it that content, if that is known.
    mtime: Option<Timestamp>,
}

/// What became of the manifest.
enum Publication {
    /// It says what it should.
    Done,
    /// Another device wrote it in between.
    Outrun,
    /// The remote gave no answer: only reading it tells.
    Unanswered(StoreError),
}

/// Counts how often one request was sent without an answer, with the tries of the backend.
#[derive(Default)]
struct Unanswered {
    tries: u32,
    last: Option<StoreError>,
}

impl Unanswered {
    /// Notes why a write failed. Returns the error if it says that the write was not done and never will be.
    fn note(&mut self, error: StoreError) -> Result<(), Trouble> {
        match error.kind() {
            // Another device was faster: the next write replaces another version, so it is another request.
            ErrorKind::Conflict => {
                *self = Unanswered::default();
                Ok(())
            }
            ErrorKind::Busy | ErrorKind::Unavailable => {
                self.tries += error.tries();
                self.last = Some(error);
                Ok(())
            }
            _ => Err(Trouble::Remote(error)),
        }
    }

    /// Returns the error once the request was sent as often as it may be.
    fn give_up(&mut self) -> Result<(), Trouble> {
        match self.last.take() {
            Some(error) if self.tries >= MAX_TRIES => Err(Trouble::Remote(error)),
            _ => Ok(()),
        }
    }
}

/// What became of one object.
enum Outcome {
    Done(Option<Entry>),
    Foreign,
    /// The remote cannot hold the name, or a directory is there.
    Refused,
}

impl Replica {
    /// Brings the plain objects and the manifest up to date with the position that was taken in, and looks at those that the last
    /// reconciliation found to be something else than the manifest says.
    ///
    /// Does nothing as long as others cannot read in a log what they would see ([`is_told`](super::Origins::is_told)): it is called again then.
    pub async fn mirror(&mut self, context: Context<'_>) -> Result<Mirrored, Trouble> {
        let mut mirrored = Mirrored::default();
        if !self.is_told(context) {
            return Ok(mirrored);
        }
        self.remove_taken(context).await?;
        let mut unanswered = Unanswered::default();
        for _ in 0..MAX_ROUNDS {
            let Some(index) = self.index(context).await? else {
                mirrored.foreign.push(place());
                return Ok(mirrored);
            };
            match self.mirror_once(context, index, &self.mend, &mut mirrored).await? {
                Publication::Done => {
                    self.mend.clear();
                    self.end_foreign(&mirrored).await?;
                    return Ok(mirrored);
                }
                Publication::Outrun => unanswered = Unanswered::default(),
                Publication::Unanswered(error) => {
                    unanswered.note(error)?;
                    unanswered.give_up()?;
                }
            }
            mirrored.foreign.clear();
            mirrored.refused.clear();
        }
        // Somebody else is at it: they write what we would.
        Ok(mirrored)
    }

    /// Notes that edits which were taken in are not there any more: the same text could be put there again.
    async fn end_foreign(&mut self, mirrored: &Mirrored) -> Result<(), Trouble> {
        let known = &self.state.known;
        let (Some(store), Some(head)) = (known.store, known.head.clone()) else { return Ok(()) };
        let ended = known.foreign.iter().filter_map(|(locator, hash)| {
            let now = known.log.files().get(locator);
            let now_hash = now.map(|content| content.hash).unwrap_or(ContentHash::of(b""));
            let has_ended = *hash != now_hash && !mirrored.foreign.contains(locator);
            has_ended.then(|| BaseLine {
                elsewhere: known.elsewhere.get(locator).copied(),
                before: known.before.get(locator).copied(),
                held: known.held.contains(locator),
                foreign: Some(now_hash),
                ..BaseLine::new(locator.as_str(), now)
            })
        });
        let bases: Vec<BaseLine> = ended.collect();
        if bases.is_empty() {
            return Ok(());
        }
        let mark = known.log.mark();
        let advance = Advance { store, head, mark, attempt: None, joined: None, bases };
        self.state.advance(&advance).await.map_err(Trouble::Local)
    }

    /// Reads the manifest; `None` if `manifest.json` is the file of another program.
    async fn index(&self, context: Context<'_>) -> Result<Option<Index>, Trouble> {
        let Some(At { bytes, version }) = self.remote.read(context.patience, &place()).await? else {
            return Ok(Some(Index { manifest: Manifest::default(), version: None }));
        };
        match Manifest::decode(&bytes) {
            Ok(manifest) if manifest.store.is_none_or(|store| Some(store) == self.state.known.store) => {
                Ok(Some(Index { manifest, version }))
            }
            Err(why) if why.is_newer() => Err(Trouble::Damaged { what: "manifest.json".to_owned(), why }),
            Err(_) if !Manifest::is_remnant(&bytes, self.state.known.store) => Ok(None),
            // It is of another store, or damaged: everything is compared, and a new one is written.
            Ok(_) | Err(_) => Ok(Some(Index { manifest: Manifest::default(), version })),
        }
    }

    /// Writes the objects that are not up to date, then the manifest.
    async fn mirror_once(
        &self,
        context: Context<'_>,
        index: Index,
        mend: &BTreeSet<Locator>,
        mirrored: &mut Mirrored,
    ) -> Result<Publication, Trouble> {
        let Some(head) = &self.state.known.head else { return Ok(Publication::Done) };
        let Index { manifest, version } = index;
        if let Some(ahead) = manifest.position.filter(|position| *position > head.position)
            && self.remote.read(context.patience, &layout::commit(ahead)).await?.is_some()
        {
            // A device that is behind leaves the manifest alone. One that is ahead of the log is damaged.
            return Ok(Publication::Done);
        }
        let files = self.state.known.log.files();
        let mut entries = manifest.entries.clone();
        let is_stale = |locator: &Locator| {
            let now = files.get(locator).map(|content| content.hash);
            let is_written = manifest.entries.get(locator).is_some_and(|entry| entry.hash == now);
            // What is outside of our part has its content elsewhere: whoever has that writes it.
            let is_here = now.is_none() || self.scope.contains(locator);
            is_here && (!is_written || now.is_none() || mend.contains(locator))
        };
        let named = manifest.entries.keys().chain(mend).cloned();
        let all: BTreeSet<Locator> = files.keys().chain(named).collect();
        let mut stale: Vec<&Locator> = all.iter().filter(|locator| is_stale(locator)).collect();
        mirrored.left = stale.len().saturating_sub(context.mirrored_at_once);
        stale.truncate(context.mirrored_at_once);
        // What goes before what comes: a new object may need its name. Otherwise they have nothing to do with one another.
        let (goes, comes): (Vec<&Locator>, Vec<&Locator>) =
            stale.iter().partition(|locator| !files.contains_key(**locator));
        let times = self.times(context, &comes, &manifest).await?;
        let mut outcomes = self.mirror_some(context, &goes, &manifest, &times).await?;
        outcomes.extend(self.mirror_some(context, &comes, &manifest, &times).await?);
        for (locator, outcome) in goes.iter().chain(&comes).zip(outcomes) {
            // Not fetched here: whoever has it writes it.
            let Some(outcome) = outcome else { continue };
            match outcome {
                Outcome::Done(Some(entry)) => {
                    mirrored.written += 1;
                    entries.insert((*locator).clone(), entry);
                }
                Outcome::Done(None) => {
                    mirrored.removed += 1;
                    entries.remove(*locator);
                }
                // The entry stays: it tells what the edit was made from.
                Outcome::Foreign => mirrored.foreign.push((*locator).clone()),
                Outcome::Refused => {
                    entries.remove(*locator);
                    mirrored.refused.extend(files.contains_key(*locator).then(|| (*locator).clone()));
                }
            }
        }
        let is_current = stale.is_empty() || manifest.position == Some(head.position);
        if is_current && entries == manifest.entries && version.is_some() {
            return Ok(Publication::Done);
        }
        let store = self.state.known.store;
        // As long as something is left, the objects are not those of the newest position.
        let position = if mirrored.left == 0 { Some(head.position) } else { manifest.position };
        let manifest = Manifest { store, position, updated_at: Some(context.clock.now()), entries };
        let condition = version.map_or(Condition::Absent, Condition::Matches);
        match self.remote.backend().write(&place(), manifest.encode(), condition).await {
            Ok(_) => Ok(Publication::Done),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Publication::Outrun),
            Err(error) => Ok(Publication::Unanswered(error)),
        }
    }

    /// Returns when files were changed last, as far as that is known. In this order:
    ///
    /// 1. The manifest, for a file that it has with the same content.
    /// 2. The commits that this replica just took in or published.
    /// 3. The archive on this device.
    async fn times(
        &self,
        context: Context<'_>,
        locators: &[&Locator],
        manifest: &Manifest,
    ) -> Result<BTreeMap<Locator, Timestamp>, Trouble> {
        let mut times = BTreeMap::new();
        let mut wanted = BTreeMap::new();
        for locator in locators {
            let Some(content) = self.state.known.log.files().get(*locator) else { continue };
            let entry = manifest.entries.get(*locator).filter(|entry| entry.hash == Some(content.hash));
            match entry.and_then(|entry| entry.mtime) {
                Some(time) => drop(times.insert((*locator).clone(), time)),
                None => drop(wanted.insert((*locator).clone(), content.hash)),
            }
        }
        for recent in self.recent.iter().rev() {
            let commit = recent.bytes.as_ref().and_then(|bytes| Commit::decode(bytes).ok());
            if let Some(commit) = commit {
                times.extend(archive::times_in(&commit, &mut wanted));
            }
        }
        if let (Some(state), Some(store)) = (context.archive, self.state.known.store) {
            times.extend(archive::times(state, store, wanted).await.map_err(Trouble::Local)?);
        }
        Ok(times)
    }

    /// Brings objects up to date, several at a time.
    async fn mirror_some(
        &self,
        context: Context<'_>,
        locators: &[&Locator],
        manifest: &Manifest,
        times: &BTreeMap<Locator, Timestamp>,
    ) -> Result<Vec<Option<Outcome>>, Trouble> {
        let done = &AtomicUsize::new(0);
        let mut work: Vec<many::Work<'_, Option<Outcome>, Trouble>> = Vec::with_capacity(locators.len());
        for locator in locators {
            work.push(Box::pin(async move {
                let outcome = self.mirror_one(context, locator, manifest, times).await;
                let number = done.fetch_add(1, Ordering::Relaxed) + 1;
                context.progress.at(Stage::Mirroring, number, Some(locators.len()));
                outcome
            }));
        }
        many(MAX_AT_ONCE, work).await
    }

    /// Brings one object up to date; `None` if its content is not here.
    async fn mirror_one(
        &self,
        context: Context<'_>,
        locator: &Locator,
        manifest: &Manifest,
        times: &BTreeMap<Locator, Timestamp>,
    ) -> Result<Option<Outcome>, Trouble> {
        let (entry, since) = (manifest.entries.get(locator), manifest.position);
        let outcome = match self.state.known.log.files().get(locator) {
            Some(content) => {
                let Some(bytes) = self.state.kept(&content.hash).await.map_err(Trouble::Local)? else {
                    return Ok(None);
                };
                let file = PlainFile { locator, bytes, mtime: times.get(locator).copied() };
                self.put_plain(context, &file, entry, since).await
            }
            None => self.remove_plain(context, locator, entry, since).await,
        };
        match outcome {
            Err(Trouble::Remote(error)) if error.kind() == ErrorKind::Invalid => Ok(Some(Outcome::Refused)),
            outcome => outcome.map(Some),
        }
    }

    /// Writes an object, unless somebody else has changed it.
    async fn put_plain(
        &self,
        context: Context<'_>,
        file: &PlainFile<'_>,
        entry: Option<&Entry>,
        since: Option<Position>,
    ) -> Result<Outcome, Trouble> {
        let PlainFile { locator, bytes, mtime } = file;
        let hash = ContentHash::of(bytes);
        let entry_of = |version: &Version| Entry {
            size: bytes.len() as u64,
            mtime: *mtime,
            hash: Some(hash),
            version: Some(version.to_string()),
        };
        let known = entry.and_then(|entry| entry.version.as_deref()).map(Version::new);
        let mut condition = known.map_or(Condition::Absent, Condition::Matches);
        let mut unanswered = Unanswered::default();
        for _ in 0..MAX_ROUNDS {
            let written = self.remote.backend().write(locator, bytes.clone(), condition.clone()).await;
            match written {
                Ok(written) => return Ok(Outcome::Done(Some(entry_of(&written.version)))),
                Err(error) => unanswered.note(error)?,
            }
            match self.remote.read(context.patience, locator).await? {
                None => condition = Condition::Absent,
                Some(At { bytes: there, version }) => {
                    let Some(version) = version else { return Ok(Outcome::Foreign) };
                    let there = ContentHash::of(&there);
                    if there == hash {
                        return Ok(Outcome::Done(Some(entry_of(&version))));
                    }
                    if !self.is_ours(context, locator, there, entry, since).await? {
                        return Ok(Outcome::Foreign);
                    }
                    condition = Condition::Matches(version);
                }
            }
            unanswered.give_up()?;
        }
        Ok(Outcome::Foreign)
    }

    /// Removes an object, unless somebody else has changed it.
    async fn remove_plain(
        &self,
        context: Context<'_>,
        locator: &Locator,
        entry: Option<&Entry>,
        since: Option<Position>,
    ) -> Result<Outcome, Trouble> {
        let mut unanswered = Unanswered::default();
        for _ in 0..MAX_ROUNDS {
            let Some(At { bytes, version: Some(version) }) =
                self.remote.read(context.patience, locator).await?
            else {
                return Ok(Outcome::Done(None));
            };
            if !self.is_ours(context, locator, ContentHash::of(&bytes), entry, since).await? {
                return Ok(Outcome::Foreign);
            }
            match self.remote.backend().delete(locator, Condition::Matches(version)).await {
                Ok(()) => return Ok(Outcome::Done(None)),
                Err(error) => unanswered.note(error)?,
            }
            unanswered.give_up()?;
        }
        Ok(Outcome::Foreign)
    }

    /// Tells whether an object holds what a device of ours has written there: what the manifest says, or what the log had since.
    async fn is_ours(
        &self,
        context: Context<'_>,
        locator: &Locator,
        hash: ContentHash,
        entry: Option<&Entry>,
        since: Option<Position>,
    ) -> Result<bool, Trouble> {
        // An edit that was taken in may be replaced too, once it was told.
        let was_taken_in =
            self.state.known.foreign.get(locator) == Some(&hash) && self.is_in_log(locator).await?;
        if has(Planted::ForeignOverwritten)
            || was_taken_in
            || entry.is_some_and(|entry| entry.hash == Some(hash))
        {
            return Ok(true);
        }
        if context.origins.of(locator, &hash) == Origin::Ours {
            return Ok(true);
        }
        // Most likely somebody wrote it since the manifest was; but a manifest can lag behind.
        for from in since.into_iter().chain([Position::FIRST]) {
            let suspects = [(locator.clone(), hash)].into();
            match self.known_to_log(context, suspects, from).await {
                Ok(known) if known.is_empty() => {}
                Ok(_) => return Ok(true),
                // What cannot be told stays.
                Err(Trouble::Damaged { .. }) => return Ok(false),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(false)
    }

    /// Tells whether the log has a working file as it is.
    async fn is_in_log(&self, locator: &Locator) -> Result<bool, Trouble> {
        let here = self.local(locator).await?.map(|bytes| ContentHash::of(&bytes));
        Ok(here == self.state.known.log.files().get(locator).map(|content| content.hash))
    }

    /// Returns which contents the log ever had for their files, from a position on.
    async fn known_to_log(
        &self,
        context: Context<'_>,
        suspects: BTreeSet<(Locator, ContentHash)>,
        from: Position,
    ) -> Result<BTreeSet<(Locator, ContentHash)>, Trouble> {
        let mut known = BTreeSet::new();
        let Some(head) = &self.state.known.head else { return Ok(known) };
        let mut next = from.number();
        while next <= head.position.number() && known.len() < suspects.len() {
            let end = head.position.number().min(next + SEARCHED_AT_ONCE - 1);
            let positions = (next..=end).filter_map(Position::new).collect();
            for at in self.read_positions(context, positions).await?.into_iter().flatten() {
                let Ok(commit) = Commit::decode(&at.bytes) else { continue };
                let contents = commit.changes.into_iter().filter_map(|change| {
                    let content = change.what.after()?;
                    Some((change.locator, content.hash))
                });
                known.extend(contents.filter(|content| suspects.contains(content)));
            }
            next = end + 1;
        }
        Ok(known)
    }

    /// Splits objects into those whose names the log ever had, and the others.
    async fn once_in_log(
        &self,
        context: Context<'_>,
        objects: Vec<Info>,
    ) -> Result<(Vec<Info>, Vec<Info>), Trouble> {
        let Some(head) = self.state.known.head.as_ref().filter(|_| !objects.is_empty()) else {
            return Ok((Vec::new(), objects));
        };
        let mut names = BTreeSet::new();
        let mut next = Position::FIRST.number();
        while next <= head.position.number() {
            let end = head.position.number().min(next + SEARCHED_AT_ONCE - 1);
            let positions = (next..=end).filter_map(Position::new).collect();
            let read = match self.read_positions(context, positions).await {
                // What cannot be told stays.
                Err(Trouble::Damaged { .. }) => break,
                read => read?,
            };
            let commits = read.into_iter().flatten().filter_map(|at| Commit::decode(&at.bytes).ok());
            names.extend(commits.flat_map(|commit| commit.changes).map(|change| change.locator));
            next = end + 1;
        }
        Ok(objects.into_iter().partition(|info| names.contains(&info.locator)))
    }

    /// Takes in what somebody changed in the mirror by hand, as if it had been changed here.
    ///
    /// Returns the objects that are not what they should be.
    pub(super) async fn take_in_foreign(
        &mut self,
        context: Context<'_>,
        report: &mut Report,
    ) -> Result<BTreeSet<Locator>, Trouble> {
        let mut mend = BTreeSet::new();
        // Without a manifest of ours the log alone tells which contents are ours.
        let manifest = self.index(context).await?.map(|index| index.manifest).unwrap_or_default();
        let (changed, copied) = self.changed_objects(context, &manifest, &mut mend, report).await?;
        if !changed.is_empty() && self.remote.at(context.patience, self.next().0).await?.is_some() {
            // Whoever committed that may have mirrored it: only once it was taken in can it be told from an edit.
            return Ok(mend);
        }
        let (Some(store), Some(head)) = (self.state.known.store, self.state.known.head.clone()) else {
            // Nobody has committed anything yet: what lies there is simply new here.
            for (locator, bytes) in changed {
                let hash = ContentHash::of(&bytes);
                if context.origins.of(&locator, &hash) == Origin::Unclear {
                    report.awaited.push((locator, hash));
                    continue;
                }
                match self.files.write(&locator, bytes, Condition::Absent).await {
                    Ok(_) => report.foreign.push(locator),
                    Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Invalid) => {}
                    Err(error) => return Err(Trouble::Local(error)),
                }
            }
            return Ok(mend);
        };
        let suspects = changed.iter().map(|(locator, bytes)| (locator.clone(), ContentHash::of(bytes)));
        let known = self.known_to_log(context, suspects.collect(), Position::FIRST).await?;
        let mut edits = Vec::new();
        for (locator, bytes) in changed {
            mend.insert(locator.clone());
            let hash = ContentHash::of(&bytes);
            let is_old = known.contains(&(locator.clone(), hash));
            if is_old || self.state.known.foreign.get(&locator) == Some(&hash) {
                continue;
            }
            match context.origins.of(&locator, &hash) {
                Origin::Ours => {}
                Origin::Edit => {
                    let base = manifest.entries.get(&locator).and_then(|entry| entry.hash);
                    let is_crossed = base.is_some_and(|base| context.origins.is_crossed(&locator, &base));
                    // Where a sync client made a copy, or another device wrote too, it may have been made from something else than what
                    // we put there.
                    let base = match is_crossed || copied.contains(&locator) {
                        true => Base::Guessed(self.most_like(context, &locator, &bytes).await?),
                        false => Base::Known(base),
                    };
                    edits.push(Edit { locator, bytes, base, lies: Lies::There });
                }
                Origin::Unclear => report.awaited.push((locator, hash)),
            }
        }
        self.take_in_edits(context, store, head, edits, Work::default(), report).await?;
        Ok(mend)
    }

    /// Puts what somebody wrote by hand into the working files, together with what is to be done to them anyway.
    async fn take_in_edits(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        head: Head,
        edits: Vec<Edit>,
        mut work: Work,
        report: &mut Report,
    ) -> Result<(), Trouble> {
        let mut bases = Vec::new();
        for Edit { locator, bytes, base, lies } in edits {
            // What somebody put in the file's own place is still known as taken in when a copy is.
            let foreign = (lies == Lies::There).then(|| ContentHash::of(&bytes));
            let (base, bytes) = match base {
                Base::Known(base) => (base, bytes),
                Base::Guessed(None) => (None, bytes),
                Base::Guessed(Some(base)) => match with_all_of(&locator, &base, &bytes) {
                    Some(all) if self.local(&locator).await?.is_some() => {
                        (Some(self.state.keep(&base).await.map_err(Trouble::Local)?), all)
                    }
                    Some(_) | None => (None, bytes),
                },
            };
            let theirs = ContentHash::of(&bytes);
            let brought = Brought {
                log: log::State::empty(),
                head: head.clone(),
                touched: BTreeSet::new(),
                odd: BTreeMap::new(),
                contents: [(theirs, bytes)].into(),
                last: BTreeMap::new(),
                devices: [(locator.clone(), THE_MIRROR.to_owned())].into(),
                deleters: BTreeMap::new(),
                without_content: Elsewhere::Missing,
                reach: Reach::End,
                joined: None,
            };
            self.mix(context, &locator, base, &theirs, &brought, &mut work, report).await?;
            let content = self.state.known.log.files().get(&locator);
            bases.push(BaseLine {
                elsewhere: self.state.known.elsewhere.get(&locator).copied(),
                before: self.state.known.before.get(&locator).copied(),
                held: self.state.known.held.contains(&locator),
                foreign,
                ..BaseLine::new(locator.as_str(), content)
            });
            report.foreign.push(locator);
        }
        if bases.is_empty() {
            return Ok(());
        }
        let mark = self.state.known.log.mark();
        let advance = Advance { store, head, mark, attempt: None, joined: None, bases };
        self.carry_out(context, work, advance, report).await
    }

    /// Takes in the copies that a sync client made of plain files, and removes them; those that nobody was told of yet with the next mirror.
    ///
    /// What a copy holds that no device wrote is in the history under its own name, and in the file it is a copy of. A copy that is a file
    /// of the store by now is somebody's, and stays.
    pub(super) async fn take_in_copies(
        &mut self,
        context: Context<'_>,
        report: &mut Report,
    ) -> Result<(), Trouble> {
        self.finish_passing(context, report).await?;
        let list = || async {
            let mut names = Vec::new();
            let mut pages = self.remote.backend().scan(&Locator::root(), None);
            while let Some(page) = pages.next().await {
                names.extend(page?.infos.into_iter().map(|info| info.locator));
            }
            Ok(names)
        };
        let names = patiently(context.patience, list).await.map_err(Trouble::Remote)?;
        let ours = OurPlaces::of(self.state.known.log.files());
        for (copy, original) in context.origins.copies(&names) {
            let is_ours = |locator: &Locator| self.state.known.log.files().contains_key(locator);
            if !self.scope.contains(&copy) || is_ours(&copy) {
                continue;
            }
            let is_near = context.foreign == ForeignFiles::Anywhere || ours.contain(&original);
            if !is_near && !context.origins.is_claimed(&copy) {
                report.unrelated.push(copy);
                continue;
            }
            let Some(At { bytes, version: Some(version) }) =
                self.remote.read(context.patience, &copy).await?
            else {
                continue;
            };
            let hash = ContentHash::of(&bytes);
            let suspects = [(original.clone(), hash), (copy.clone(), hash)].into();
            let is_known = !self.known_to_log(context, suspects, Position::FIRST).await?.is_empty();
            let origin = match context.origins.of(&original, &hash) {
                _ if is_known => Origin::Ours,
                // It was waited for under its own name.
                Origin::Unclear => context.origins.of(&copy, &hash),
                origin => origin,
            };
            match origin {
                // As long as no log has what took its place, it shows everybody that this was not made from it.
                Origin::Ours if !self.is_told_of(context, &original).await? => {}
                Origin::Ours => drop(self.taken.insert(copy, version)),
                Origin::Unclear => report.awaited.push((copy, hash)),
                Origin::Edit => match self.merge_copy(context, &copy, &original, bytes, report).await? {
                    Merging::Done => drop(self.taken.insert(copy, version)),
                    Merging::NotYet => {}
                },
            }
        }
        self.remove_taken(context).await
    }

    /// Removes copies that were taken in, once everybody can read in a log what they held.
    async fn remove_taken(&mut self, context: Context<'_>) -> Result<(), Trouble> {
        if !self.is_told(context) {
            return Ok(());
        }
        while let Some((copy, version)) = self.taken.pop_first() {
            match self.remote.backend().delete(&copy, Condition::Matches(version)).await {
                Ok(()) => {}
                // It has changed since: it is looked at again.
                Err(error) if says_nothing(&error) || error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Trouble::Remote(error)),
            }
        }
        Ok(())
    }

    /// Tells whether others can read in a log all that the plain objects show.
    fn is_told(&self, context: Context<'_>) -> bool {
        self.state.known.head.as_ref().is_none_or(|head| context.origins.is_told(head.position))
    }

    /// Tells whether a log has what lies in the place of a file, or nothing does.
    async fn is_told_of(&self, context: Context<'_>, locator: &Locator) -> Result<bool, Trouble> {
        let Some(At { bytes, .. }) = self.remote.read(context.patience, locator).await? else {
            return Ok(true);
        };
        let hash = ContentHash::of(&bytes);
        if context.origins.of(locator, &hash) == Origin::Ours {
            return Ok(true);
        }
        let suspects = [(locator.clone(), hash)].into();
        Ok(!self.known_to_log(context, suspects, Position::FIRST).await?.is_empty())
    }

    /// Puts what a copy holds into the history and into the file it is a copy of.
    ///
    /// Both happen to the working files in one step, so that whoever is killed leaves a copy that was merged; that it is still to go is
    /// written down.
    async fn merge_copy(
        &mut self,
        context: Context<'_>,
        copy: &Locator,
        original: &Locator,
        bytes: Bytes,
        report: &mut Report,
    ) -> Result<Merging, Trouble> {
        if self.local(copy).await?.is_some() {
            // Something of that name is here that does not leave this machine.
            return Ok(Merging::NotYet);
        }
        let (Some(store), Some(head)) = (self.state.known.store, self.state.known.head.clone()) else {
            // Nobody has committed anything yet: what it holds is simply new here.
            return match self.files.write(original, bytes, Condition::Absent).await {
                Ok(_) => self.rounds(context, Sending::All, report).await.map(|()| Merging::Done),
                Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Invalid) => {
                    Ok(Merging::NotYet)
                }
                Err(error) => Err(Trouble::Local(error)),
            };
        };
        // What it was made from the client does not tell.
        let base = Base::Guessed(self.most_like(context, original, &bytes).await?);
        let mut work = Work::default();
        let hash = self.state.keep(&bytes).await.map_err(Trouble::Local)?;
        work.add(copy, None, Some(bytes.clone()));
        let passing = Passing { at: copy.to_string(), hash };
        self.state.begin_passing(&passing).await.map_err(Trouble::Local)?;
        let edit = Edit { locator: original.clone(), bytes, base, lies: Lies::Beside };
        self.take_in_edits(context, store, head, vec![edit], work, report).await?;
        self.rounds(context, Sending::All, report).await?;
        if report.refused.contains(original) {
            // It has a place of its own then.
            self.state.end_passing().await.map_err(Trouble::Local)?;
            return Ok(Merging::Done);
        }
        self.finish_passing(context, report).await?;
        Ok(Merging::Done)
    }

    /// Removes the working file of a copy that was merged; what somebody has made of it since stays.
    async fn finish_passing(&mut self, context: Context<'_>, report: &mut Report) -> Result<(), Trouble> {
        let Some(passing) = self.state.passing().await.map_err(Trouble::Local)? else { return Ok(()) };
        if let Ok(copy) = Locator::parse(&passing.at) {
            let there = match self.files.read(&copy).await {
                Ok(there) => Some(there),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(Trouble::Local(error)),
            };
            if let Some(there) = there.filter(|there| ContentHash::of(&there.bytes) == passing.hash) {
                match self.files.delete(&copy, Condition::Matches(there.version)).await {
                    Ok(()) => {}
                    Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => {}
                    Err(error) => return Err(Trouble::Local(error)),
                }
                self.rounds(context, Sending::All, report).await?;
            }
        }
        self.state.end_passing().await.map_err(Trouble::Local)
    }

    /// Returns the objects that hold something else than the manifest and the log say, and those of which a sync client made copies; notes
    /// those that are not there.
    async fn changed_objects(
        &self,
        context: Context<'_>,
        manifest: &Manifest,
        mend: &mut BTreeSet<Locator>,
        report: &mut Report,
    ) -> Result<(Vec<(Locator, Bytes)>, BTreeSet<Locator>), Trouble> {
        let list = || async {
            let mut infos = Vec::new();
            let mut odd = Vec::new();
            let mut pages = self.remote.backend().scan(&Locator::root(), None);
            while let Some(page) = pages.next().await {
                let page = page?;
                infos.extend(page.infos);
                odd.extend(page.odd);
            }
            Ok((infos, odd))
        };
        let (infos, odd): (Vec<Info>, _) =
            patiently(context.patience, list).await.map_err(Trouble::Remote)?;
        report.odd.extend(odd.into_iter().map(|odd| (odd.shown, odd.why)));
        let there: BTreeSet<&Locator> = infos.iter().map(|info| &info.locator).collect();
        let names: Vec<Locator> = infos.iter().map(|info| info.locator.clone()).collect();
        let (copies, copied): (BTreeSet<Locator>, BTreeSet<Locator>) =
            context.origins.copies(&names).into_iter().unzip();
        mend.extend(manifest.entries.keys().filter(|locator| !there.contains(locator)).cloned());
        let ours = OurPlaces::of(self.state.known.log.files());
        let is_near = |locator: &Locator| {
            context.foreign == ForeignFiles::Anywhere
                || manifest.entries.contains_key(locator)
                || ours.contain(locator)
                || context.origins.is_claimed(locator)
        };
        // What belongs to another replica of this device is for that one to take in.
        let in_scope = infos.into_iter().filter(|info| self.scope.contains(&info.locator));
        let (infos, far): (Vec<Info>, Vec<Info>) =
            in_scope.filter(|info| !copies.contains(&info.locator)).partition(|info| is_near(&info.locator));
        // The log may have had one of them before: then it is what a slow device wrote, and has to go.
        let (stale, unrelated) = self.once_in_log(context, far).await?;
        report.unrelated.extend(unrelated.into_iter().map(|info| info.locator));
        let mut changed = Vec::new();
        for info in infos.into_iter().chain(stale) {
            let entry = manifest.entries.get(&info.locator);
            let version = info.version.as_ref().map(Version::as_str);
            if version.is_some() && entry.is_some_and(|entry| entry.version.as_deref() == version) {
                continue;
            }
            if info.size_bytes > MAX_FOREIGN_BYTES {
                let why = format!("it is larger than {} MiB, and no memory", MAX_FOREIGN_BYTES / 1024 / 1024);
                report.odd.push((shown(info.locator.as_str()), why));
                continue;
            }
            let at = match self.remote.read(context.patience, &info.locator).await {
                // A file that the sync client has not brought yet stops only itself.
                Err(Trouble::Remote(error)) if error.is_content_awaited() => {
                    report.odd.push((shown(info.locator.as_str()), error.message().to_owned()));
                    continue;
                }
                at => at?,
            };
            let Some(at) = at else { continue };
            let hash = Some(ContentHash::of(&at.bytes));
            let now = self.state.known.log.files().get(&info.locator).map(|content| content.hash);
            if hash != now && hash != entry.and_then(|entry| entry.hash) {
                changed.push((info.locator, at.bytes));
            }
        }
        Ok((changed, copied))
    }
}

/// Returns an edit with everything that something had which it may not have been made from; `None` if there is no such text.
fn with_all_of(locator: &Locator, base: &Bytes, edit: &Bytes) -> Option<Bytes> {
    let side = |bytes| Side { bytes, device: THE_MIRROR };
    let merged = merge(Rule::of(locator, [&base[..], &edit[..]]), None, side(base), side(edit));
    merged.copy.is_none().then_some(merged.bytes)
}

/// Tells whether what became of a write can only be seen by looking.
fn says_nothing(error: &StoreError) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Busy | ErrorKind::Unavailable)
}

fn place() -> Locator {
    Locator::reserved("manifest.json").expect("one of our own names")
}
