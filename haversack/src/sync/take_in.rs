//! Applies incoming changes: commits of other devices that this replica has not applied yet.
//!
//! 1. Fold the commits into [`IncomingChanges`].
//! 2. Decide a step for each file ([`plan::take_in`]), and merge the files that both sides changed.
//! 3. Write the result of each step to its working file, and set the file's base to the incoming version.
//!
//! Example (each letter is a line): our base of `notes.md` is `a`, and the user's file has `ab`. Two new commits arrive. After the last one, `notes.md` is
//! `ca`. The step merges our `ab` with their `ca`; the common base is `a`. The merge writes `cab` to the file, and the base becomes `ca`. The other devices do
//! not have `b` yet: our next commit sends it.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Bytes, Error as StoreError, Locator};

use super::apply::{self, Leftovers};
use super::fetch::{NextCommits, Taken};
use super::plan::{self, AbsenceReason, Reach, Step, Theirs, Winner};
use super::planted::{Planted, has};
use super::scan::Found;
use super::state::{Advance, ApplyRecord, BaseLine, Head, Move};
use super::{Context, Deletions, Fetching, Recent, Replica, Report, SyncError};
use crate::frame::shown;
use crate::ids::{CommitId, ContentHash, Position, ReplicaId, StoreId};
use crate::log::{self, Carried, Content, FileChange, What};
use crate::merge::{Rule, Side, conflict_name, merge};
use crate::{names, signed};

/// Changes read from the log that this replica has not applied yet.
pub(super) struct IncomingChanges {
    /// The store's files after these changes.
    pub(super) state_after: log::State,
    /// The position of the last change.
    pub(super) head: Head,
    /// The files that these changes name.
    pub(super) touched: BTreeSet<Locator>,
    /// The refused names among them, each with the reason.
    pub(super) odd: BTreeMap<String, String>,
    /// The contents that the commits contain.
    pub(super) contents: BTreeMap<ContentHash, Bytes>,
    /// Last content of each deleted file, if these commits contain it.
    pub(super) content_before_deletion: BTreeMap<Locator, ContentHash>,
    /// The device that changed each file last.
    pub(super) devices: BTreeMap<Locator, String>,
    /// The replica that deleted each deleted file.
    pub(super) deleters: BTreeMap<Locator, ReplicaId>,
    /// The reason that we note for a new file whose content is not among `contents`.
    pub(super) without_content: AbsenceReason,
    /// Says if the log has more commits after these.
    pub(super) reach: Reach,
    /// The checkpoint, if the changes are one.
    pub(super) joined: Option<Position>,
}

impl IncomingChanges {
    /// Returns contents of files that the replica's view of the log has already.
    pub(super) fn of_contents(head: Head, contents: BTreeMap<ContentHash, Bytes>) -> IncomingChanges {
        IncomingChanges {
            state_after: log::State::empty(),
            head,
            touched: BTreeSet::new(),
            odd: BTreeMap::new(),
            contents,
            content_before_deletion: BTreeMap::new(),
            devices: BTreeMap::new(),
            deleters: BTreeMap::new(),
            without_content: AbsenceReason::Missing,
            reach: Reach::End,
            joined: None,
        }
    }
}

/// Steps for working files.
#[derive(Default)]
pub(super) struct Work {
    pub(super) moves: Vec<Move>,
    pub(super) contents: Vec<Option<Bytes>>,
    /// The number of moves that must be carried out in order.
    pub(super) in_order: usize,
    /// Files that are not written, each with the reason.
    pub(super) absent: BTreeMap<String, AbsenceReason>,
    /// The last content of files that the log deleted and that stay here.
    before: BTreeMap<String, ContentHash>,
    /// Of those, the files that stay because their deletion is held.
    held: BTreeSet<String>,
}

impl Work {
    pub(super) fn add(&mut self, locator: &Locator, expected: Option<ContentHash>, new: Option<Bytes>) {
        let hash = new.as_ref().map(|bytes| ContentHash::of(bytes));
        self.moves.push(Move {
            at: locator.to_string(),
            expected,
            new: hash,
            last: None,
            renamed_from: None,
        });
        self.contents.push(new);
    }

    /// Says of the last move that it puts a renamed file under its new name.
    fn name_renamed(&mut self, from: &Locator, to: &Locator) {
        if let Some(moved) = self.moves.last_mut().filter(|moved| moved.at == to.as_str()) {
            moved.renamed_from = Some(from.to_string());
        }
    }

    /// Adds a move of a content whose hash was checked.
    pub(super) fn put(
        &mut self,
        locator: &Locator,
        expected: Option<ContentHash>,
        hash: ContentHash,
        new: Bytes,
    ) {
        self.moves.push(Move {
            at: locator.to_string(),
            expected,
            new: Some(hash),
            last: None,
            renamed_from: None,
        });
        self.contents.push(Some(new));
    }
}

/// The result of applying incoming changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Taking {
    /// There was nothing.
    Nothing,
    /// Files of theirs came or went, and nothing of ours came into them.
    Plain,
    /// Something of ours and something of theirs met.
    Mixed,
}

impl Replica {
    /// Takes in commits until there are no more, first among the files as they were seen.
    pub(super) async fn take_in(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        mut seen: Option<Found>,
        report: &mut Report,
    ) -> Result<Taking, SyncError> {
        let mut any = Taking::Nothing;
        while context.patience.has_time() {
            let (taken, reach) = match self.read_log(context, store).await? {
                NextCommits::Read(taken, reach) => (taken, reach),
                NextCommits::Abridged => {
                    any = any.max(self.skip_to_checkpoint(context, store, &mut seen, report).await?);
                    if context.fetching == Fetching::Now {
                        self.fetch_new(context, report).await?;
                        seen = None;
                    }
                    continue;
                }
            };
            if taken.is_empty() {
                return Ok(any);
            }
            let changes = taken.iter().flat_map(|taken| &taken.commit.changes);
            let sizes = changes.filter_map(|change| Some(change.what.after()?.size));
            let (files, bytes) =
                sizes.fold((0, 0_u64), |(files, bytes), size| (files + 1, bytes.saturating_add(size)));
            self.receive(context, files, bytes)?;
            let incoming = self.fold(context, &taken, reach).await?;
            any = any.max(self.take_in_some(context, store, incoming, &mut seen, report).await?);
            report.taken += taken.len();
            self.note_recent(taken.into_iter().map(|taken| Recent::new(&taken.commit, taken.bytes)));
            if reach == Reach::End {
                return Ok(any);
            }
        }
        report.out_of_time = true;
        Ok(any)
    }

    /// Folds commits into one set of changes, with the contents that they carry.
    async fn fold(
        &self,
        context: Context<'_>,
        taken: &[Taken],
        reach: Reach,
    ) -> Result<IncomingChanges, SyncError> {
        let last = taken.last().expect("something was taken in");
        let mut incoming = IncomingChanges {
            state_after: self.state.known.log.clone(),
            head: last.head.clone(),
            touched: BTreeSet::new(),
            odd: BTreeMap::new(),
            contents: BTreeMap::new(),
            content_before_deletion: BTreeMap::new(),
            devices: BTreeMap::new(),
            deleters: BTreeMap::new(),
            without_content: AbsenceReason::Missing,
            reach,
            joined: None,
        };
        for Taken { commit, .. } in taken {
            incoming.odd.extend(commit.odd.iter().map(|odd| (odd.key.clone(), odd.to_string())));
            for FileChange { locator, what } in &commit.changes {
                incoming.touched.insert(locator.clone());
                incoming.devices.insert(locator.clone(), commit.device.clone());
                let (hash, size, content) = match what {
                    What::Delete { before } => {
                        incoming.deleters.insert(locator.clone(), commit.replica);
                        let mut had = incoming.state_after.files().get(locator).map(|content| content.hash);
                        if let Some(before) = before
                            && let Some(bytes) = self.remote.object(context.patience, before).await?
                        {
                            incoming.contents.insert(*before, bytes);
                            had = Some(*before);
                        }
                        let base = self.state.known.log.files().get(locator).map(|content| content.hash);
                        // This includes a content that another device restored and deleted again.
                        if let Some(had) = had.filter(|had| Some(*had) != base) {
                            incoming.content_before_deletion.insert(locator.clone(), had);
                        }
                        continue;
                    }
                    What::Put { hash, size, content, .. } => {
                        (hash, size, self.carried(context, content).await?)
                    }
                    What::Append { base, base_size, hash, size, added } => {
                        let base = match incoming.contents.get(base) {
                            _ if has(Planted::AppendToAnything) => self.local(locator).await?,
                            Some(base) => Some(base.clone()),
                            None => {
                                let base = Content { hash: *base, size: *base_size };
                                self.extended(context, locator, base).await?
                            }
                        };
                        let added = self.carried(context, added).await?;
                        let whole = base
                            .zip(added)
                            .map(|(base, added)| Bytes::from([&base[..], &added[..]].concat()));
                        (hash, size, whole)
                    }
                };
                let named = Content { hash: *hash, size: *size };
                let fits = |content: &Bytes| named.is_of(content) || has(Planted::AppendToAnything);
                if let Some(content) = content.filter(fits) {
                    incoming.contents.insert(*hash, content);
                }
            }
            incoming
                .state_after
                .apply(commit)
                .map_err(|why| SyncError::Unfit { position: commit.position, why: why.to_string() })?;
        }
        Ok(incoming)
    }

    pub(super) async fn carried(
        &self,
        context: Context<'_>,
        carried: &Carried,
    ) -> Result<Option<Bytes>, SyncError> {
        match carried {
            Carried::Inline(bytes) => Ok(Some(bytes.clone())),
            Carried::Object(hash) => self.remote.object(context.patience, hash).await,
        }
    }

    /// Applies incoming changes, and moves the bases with the files.
    ///
    /// Starts from the working files in `seen`, or looks at them if it is empty. Leaves the files as they are now in `seen`, or nothing if only
    /// another look can tell.
    pub(super) async fn take_in_some(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        incoming: IncomingChanges,
        seen: &mut Option<Found>,
        report: &mut Report,
    ) -> Result<Taking, SyncError> {
        let mut found = match seen.take() {
            // If a program changes the file now, the replacement will notice.
            Some(seen) => seen,
            None => self.look_for_changes(context).await?.0,
        };
        let bases = self.state.known.bases();
        // A name that was good before and is odd now is only written down.
        let touched =
            || incoming.touched.iter().filter(|at| !incoming.state_after.odd().contains_key(at.as_str()));
        let theirs: plan::TheirFiles = touched()
            .filter(|locator| self.scope.contains(locator))
            .map(|locator| {
                let theirs = match incoming.state_after.files().get(locator) {
                    Some(content) => Theirs::Has(content.hash),
                    None if has(Planted::LastIsIgnored) => Theirs::Deleted { last: None },
                    None => Theirs::Deleted { last: incoming.content_before_deletion.get(locator).copied() },
                };
                (locator.clone(), theirs)
            })
            .collect();
        let steps = plan::take_in(bases, &found.contents, &theirs, incoming.reach);
        let is_plain =
            |step: &Step| matches!(step, Step::Take { .. } | Step::Remove { .. } | Step::Agree { .. });
        let mut taking = if steps.iter().all(is_plain) { Taking::Plain } else { Taking::Mixed };
        let is_foreseen = steps.iter().all(|step| is_plain(step) || matches!(step, Step::Wait { .. }));
        let (edits_won, refused) = (report.edits_won.len(), report.refused.len());
        let packed = self.keep_incoming(&incoming).await?;
        let mut work = Work::default();
        let judged = self.judge_removals(context, &incoming, &steps).await?;
        for step in &steps {
            match step {
                Step::Remove { locator, expected, .. } if judged.held.contains(locator) => {
                    work.before.insert(locator.to_string(), *expected);
                    work.held.insert(locator.to_string());
                }
                step => match self.prepare(context, step, &incoming, &mut work, report).await {
                    Err(SyncError::Local(error)) if apply::concerns_one_file(&error) => {
                        self.refuse(step.locator(), &incoming, &mut work, report).await?;
                        if let Step::FollowOurRename { from, .. } = step {
                            // Their change is not in the renamed file: the old name comes back with it.
                            work.absent.insert(from.to_string(), AbsenceReason::Unfetched);
                        }
                    }
                    prepared => prepared?,
                },
            }
        }
        if has(Planted::CommitOnStaleRead) {
            work = Work::default();
        }
        let odd = incoming.odd.keys().filter(|key| !incoming.state_after.files().contains_key(key.as_str()));
        let keys = touched().map(Locator::as_str).chain(odd.map(String::as_str));
        let bases = keys.map(|key| {
            let content = incoming
                .state_after
                .files()
                .get(key)
                .or_else(|| incoming.state_after.odd().get(key).copied());
            // A twin has a good name, and would be missed here.
            let is_odd = incoming.state_after.odd().contains_key(key);
            let absent = match work.absent.get(key) {
                Some(why) => Some(*why),
                None if is_odd => Some(AbsenceReason::Refused),
                None if content.is_some() && !self.scope.contains_name(key) => Some(AbsenceReason::Unbound),
                None => None,
            };
            BaseLine {
                absent,
                before: work.before.get(key).copied(),
                held: work.held.contains(key),
                pack: content.and_then(|content| packed.get(&content.hash).copied()),
                ..BaseLine::new(key, content)
            }
        });
        let advance = Advance {
            store,
            head: incoming.head.clone(),
            mark: incoming.state_after.mark(),
            attempt: None,
            joined: incoming.joined,
            bases: bases.collect(),
        };
        let moved = work.moves.iter().filter_map(|moved| Some((Locator::parse(&moved.at).ok()?, moved.new)));
        let moved: BTreeMap<Locator, Option<ContentHash>> = moved.collect();
        self.carry_out(context, work, advance, report).await?;
        // Keep the result of the look: looking at all files again after each part of a long log would take longer than reading the log.
        if is_foreseen && (report.edits_won.len(), report.refused.len()) == (edits_won, refused) {
            found.contents.note(&moved);
            *seen = Some(found);
        }
        if let Some(removals) = judged.removals {
            self.state.save_removals(&removals).await.map_err(SyncError::Local)?;
        }
        report.odd.extend(incoming.odd.into_iter().map(|(key, why)| (shown(&key), why)));
        // A program changed a file that was to be deleted.
        if report.edits_won.len() > edits_won {
            taking = Taking::Mixed;
        }
        Ok(taking)
    }

    /// Keeps the contents of the new bases, before any base moves.
    async fn keep_incoming(
        &self,
        incoming: &IncomingChanges,
    ) -> Result<BTreeMap<ContentHash, (ContentHash, u64)>, SyncError> {
        if has(Planted::BasesAreNotKept) {
            return Ok(BTreeMap::new());
        }
        let mut contents = Vec::new();
        for locator in incoming.touched.iter().filter(|locator| self.scope.contains(locator)) {
            let now = incoming.state_after.files().get(locator).map(|content| content.hash);
            match (now, incoming.content_before_deletion.get(locator)) {
                (Some(now), _) => {
                    contents.extend(incoming.contents.get(&now).map(|bytes| (now, bytes.clone())));
                }
                (None, Some(last)) => {
                    if let Some(bytes) = incoming.contents.get(last) {
                        self.state.keep(bytes).await.map_err(SyncError::Local)?;
                    }
                }
                (None, None) => {}
            }
        }
        self.state.keep_all(&contents).await.map_err(SyncError::Local)
    }

    /// Carries out the steps on working files, under a record, and moves the bases with them.
    pub(super) async fn carry_out(
        &mut self,
        context: Context<'_>,
        work: Work,
        mut advance: Advance,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        if work.moves.is_empty() {
            return self.state.advance(&advance).await.map_err(SyncError::Local);
        }
        let attempt = CommitId::from_bytes(context.ids.next()).to_string();
        advance.attempt = Some(attempt.clone());
        let prepared =
            apply::prepare(&*self.files, &attempt, &work.moves, &work.contents, context.progress).await;
        prepared.map_err(SyncError::Local)?;
        let applying = ApplyRecord { attempt, in_order: work.in_order, moves: work.moves, advance };
        if !has(Planted::FileWithoutRecord) {
            self.state.begin_applying(&applying).await.map_err(SyncError::Local)?;
        }
        self.apply(context, &applying, report).await.map_err(SyncError::Local)
    }

    /// Completes the steps of a killed process.
    pub(super) async fn finish_applying(
        &mut self,
        context: Context<'_>,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let applying = self.state.applying().await.map_err(SyncError::Local)?;
        if applying.is_some() && !has(Planted::SeenIsDurable) {
            // The record and its results can be read, but the killed process may not have made them durable.
            self.state.make_durable().await.map_err(SyncError::Local)?;
            self.files.barrier().await.map_err(SyncError::Local)?;
        }
        let leftovers = match applying {
            None if has(Planted::LeftoversStay) => return Ok(()),
            // A replica that starts anew may have lost a record together with its state.
            None if self.state.is_fresh() => Leftovers::Unknown,
            None => Leftovers::Prepared,
            Some(applying)
                if self.state.has_ended(&applying.attempt) || self.state.fits(&applying.advance) =>
            {
                if has(Planted::IncomingSwept) {
                    let swept = apply::sweep(&*self.files, &self.state, Leftovers::Prepared).await;
                    swept.map_err(SyncError::Local)?;
                }
                // If the directory is empty, nothing was done there: it was emptied or is missing.
                if !self.state.has_ended(&applying.attempt)
                    && context.deletions == Deletions::Cautious
                    && !has(Planted::VanishedIsDone)
                    && apply::is_nothing_there(&*self.files).await.map_err(SyncError::Local)?
                {
                    return Err(SyncError::Vanished);
                }
                return self.apply(context, &applying, report).await.map_err(SyncError::Local);
            }
            // The state went back behind it: the log will say the same again.
            Some(_) => {
                let swept = apply::sweep(&*self.files, &self.state, Leftovers::Unknown).await;
                swept.map_err(SyncError::Local)?;
                return self.state.end_applying().await.map_err(SyncError::Local);
            }
        };
        apply::sweep(&*self.files, &self.state, leftovers).await.map_err(SyncError::Local)?;
        self.state.settle_in().await.map_err(SyncError::Local)
    }

    /// Carries out moves that were recorded, and moves the bases with them.
    async fn apply(
        &mut self,
        context: Context<'_>,
        applying: &ApplyRecord,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        let Context { signed, progress, .. } = context;
        let is_done = self.state.has_ended(&applying.attempt);
        self.state.expect(&applying.advance);
        let mut refused = Vec::new();
        if has(Planted::BaseBeforeFile) && !is_done {
            self.state.advance(&applying.advance).await?;
            apply::carry_out(&*self.files, &self.state, applying, signed, progress).await?;
        } else if !is_done {
            let met = apply::carry_out(&*self.files, &self.state, applying, signed, progress).await?;
            let mut advance = applying.advance.clone();
            let mut refused_bases = Vec::new();
            let kept_renames = apply::keep_old_names(&*self.files, applying, &met.refused).await?;
            for line in &mut advance.bases {
                if kept_renames.iter().any(|from| from.as_str() == line.at) {
                    match line.hash {
                        // They changed a file that was renamed here. It comes back under its old name, with their change.
                        Some(_) => line.absent = Some(AbsenceReason::Unfetched),
                        // They renamed a file that was changed here. It stays under its old name, and is sent as a new file.
                        None => line.before = self.state.known.ground(&line.at),
                    }
                }
                if met.refused.iter().any(|refused| refused.as_str() == line.at) {
                    line.absent = line.hash.map(|_| AbsenceReason::Refused);
                    line.before = self.state.known.ground(&line.at);
                    // A file that could not be removed stays, as if its deletion was held.
                    line.held = line.hash.is_none() && line.before.is_some();
                    // The edit in the mirror was not imported: it has to stay there.
                    line.foreign = None;
                    refused_bases.extend(line.before);
                }
                if met.stayed.iter().any(|stayed| stayed.as_str() == line.at) {
                    let moved = applying.moves.iter().find(|moved| moved.at == line.at);
                    // Only a content of the log is common ground, never a text that was not sent.
                    let ground = self.state.known.ground(&line.at);
                    line.before = moved.and_then(|moved| moved.last).or(ground);
                }
            }
            for base in &refused_bases {
                // Its line names the pack of another content.
                if let Some(bytes) = self.state.kept(base).await? {
                    self.state.keep(&bytes).await?;
                }
            }
            refused.clone_from(&met.refused);
            report.refused.extend(met.refused);
            report.edits_won.extend(met.stayed);
            self.state.advance(&advance).await?;
        }
        for moved in &applying.moves {
            self.cache.forget(&moved.at);
        }
        apply::clean_up(&*self.files, &self.state, applying, &refused).await?;
        self.state.end_applying().await
    }

    /// Returns a content, from the new commits or from the state.
    async fn content(
        &self,
        context: Context<'_>,
        incoming: &IncomingChanges,
        hash: &ContentHash,
    ) -> Result<Option<Bytes>, SyncError> {
        match incoming.contents.get(hash) {
            Some(bytes) => Ok(Some(bytes.clone())),
            None => self.base_content(context, hash).await,
        }
    }

    /// Turns a step into moves of working files.
    async fn prepare(
        &self,
        context: Context<'_>,
        step: &Step,
        incoming: &IncomingChanges,
        work: &mut Work,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        match step {
            Step::Agree { locator } => self.keep_agreed(locator, incoming, work).await?,
            Step::Wait { locator } => {
                work.absent.insert(locator.to_string(), AbsenceReason::Unfetched);
            }
            Step::Take { locator, expected, theirs } => {
                self.put(locator, *expected, theirs, incoming, work, report).await?;
            }
            Step::EditWins { locator, winner } => {
                report.edits_won.push(locator.clone());
                match winner {
                    Winner::Theirs(theirs) => {
                        self.put(locator, None, theirs, incoming, work, report).await?;
                    }
                    Winner::Ours { last } => {
                        let base = self.state.known.log.files().get(locator).map(|content| content.hash);
                        // A file that was never here is no base of a local edit.
                        let base = base.filter(|_| !self.state.known.absent.contains_key(locator));
                        let base = base.or_else(|| self.state.known.before.get(locator).copied());
                        if let Some(last) = last {
                            self.mix(context, locator, base, last, incoming, work, report).await?;
                        }
                        let before = last.or(base);
                        let before = before.filter(|_| !has(Planted::StartIsForgotten));
                        work.before.extend(before.map(|before| (locator.to_string(), before)));
                    }
                }
            }
            Step::Remove { locator, expected, last } => {
                let (at, expected) = (locator.to_string(), Some(*expected));
                work.moves.push(Move { at, expected, new: None, last: *last, renamed_from: None });
                work.contents.push(None);
            }
            Step::MakeWay { from, to, expected } => {
                let Some(ours) = self.local(from).await? else { return Ok(()) };
                if ContentHash::of(&ours) == *expected {
                    self.state.keep(&ours).await.map_err(SyncError::Local)?;
                    work.add(to, None, Some(ours));
                    work.add(from, Some(*expected), None);
                    work.in_order = work.moves.len();
                }
            }
            Step::Merge { locator, base, theirs, .. } => {
                self.mix(context, locator, *base, theirs, incoming, work, report).await?;
            }
            Step::FollowTheirRename { from, to, base, theirs, .. } => {
                self.follow_their_rename(context, (from, to), *base, theirs, incoming, work, report).await?;
            }
            Step::FollowOurRename { from, to, base, theirs } => {
                if self.content(context, incoming, theirs).await?.is_some() {
                    self.mix(context, to, Some(*base), theirs, incoming, work, report).await?;
                    work.name_renamed(from, to);
                } else if incoming.state_after.files().contains_key(from) {
                    // Their change is not at hand: the old name is not here, which is no deletion.
                    self.put(from, None, theirs, incoming, work, report).await?;
                }
            }
        }
        Ok(())
    }

    /// Merges a file that was changed here into the file that they renamed it to, and removes the old name.
    #[expect(clippy::too_many_arguments, reason = "all of it is what a merge is about")]
    async fn follow_their_rename(
        &self,
        context: Context<'_>,
        (from, to): (&Locator, &Locator),
        base: Option<ContentHash>,
        theirs: &ContentHash,
        incoming: &IncomingChanges,
        work: &mut Work,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let their_content = self.content(context, incoming, theirs).await?;
        let (Some(their_content), Some(ours)) = (their_content, self.local(from).await?) else {
            // Theirs is not at hand, or ours has just gone. Each file is taken by itself; ours stays where it is.
            report.edits_won.push(from.clone());
            work.before.extend(base.map(|base| (from.to_string(), base)));
            self.put(to, None, theirs, incoming, work, report).await?;
            // The user may have just renamed ours in the same way.
            if let Some(moved) = work.moves.last_mut().filter(|moved| moved.at == to.as_str()) {
                moved.last = base;
            }
            return Ok(());
        };
        let base = match base {
            Some(base) => self.content(context, incoming, &base).await?,
            None => None,
        };
        let mut merged = self.merged(context, to, base, &ours, &their_content, incoming, report).await?;
        if has(Planted::RenameDropsEdit) {
            merged = their_content;
        }
        let expected = self.state.keep(&ours).await.map_err(SyncError::Local)?;
        self.state.keep(&merged).await.map_err(SyncError::Local)?;
        work.add(from, Some(expected), None);
        work.add(to, None, Some(merged));
        work.name_renamed(from, to);
        Ok(())
    }

    /// Returns the merge of a working file with their content; what cannot be merged is put beside it.
    #[expect(clippy::too_many_arguments, reason = "all of it is what a merge is about")]
    pub(super) async fn merged(
        &self,
        context: Context<'_>,
        locator: &Locator,
        base: Option<Bytes>,
        ours: &Bytes,
        theirs: &Bytes,
        incoming: &IncomingChanges,
        report: &mut Report,
    ) -> Result<Bytes, SyncError> {
        let all = base.iter().chain([ours, theirs]).map(|bytes| &bytes[..]);
        let rule = Rule::of(locator, all);
        let device = incoming.devices.get(locator).map_or("another device", String::as_str);
        // A merged text may name the device whose passage is kept beside another.
        let here = names::harmless(&context.author.device);
        let sides = [Side { bytes: ours, device: &here }, Side { bytes: theirs, device }];
        let base = base.filter(|_| !has(Planted::Union));
        let mut merged = merge(rule, base.as_deref(), sides[0], sides[1]);
        if has(Planted::NewestWins) {
            merged.bytes = theirs.clone();
        }
        report.merged.push(locator.clone());
        if merged.both_kept {
            report.both_kept.push(locator.clone());
        }
        if let Some(signed) = context.signed.filter(|_| !has(Planted::MergeIsNotSigned)) {
            let copy = merged.copy.as_ref().filter(|copy| *copy == ours);
            let copy = copy.and_then(|copy| Some((conflict_name(locator, copy).ok()?, copy)));
            let mut results: Vec<(&Locator, &[u8])> = vec![(locator, &merged.bytes)];
            results.extend(copy.as_ref().map(|(name, copy)| (name, &copy[..])));
            let signed = signed::sign_merged(signed, locator, &[ours], &results).await;
            signed.map_err(SyncError::Local)?;
        }
        if let Some(copy) = merged.copy {
            apply::put_copy(&*self.files, locator, copy).await.map_err(SyncError::Local)?;
        }
        Ok(merged.bytes)
    }

    /// Leaves a working file alone that cannot be read, and remembers which content it goes back to.
    async fn refuse(
        &self,
        locator: &Locator,
        incoming: &IncomingChanges,
        work: &mut Work,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        report.refused.push(locator.clone());
        let before = self.state.known.ground(locator.as_str());
        if let Some(before) = before
            && let Some(bytes) = self.state.kept(&before).await.map_err(SyncError::Local)?
        {
            self.state.keep(&bytes).await.map_err(SyncError::Local)?;
            work.before.insert(locator.to_string(), before);
        }
        match incoming.state_after.files().contains_key(locator) {
            true => drop(work.absent.insert(locator.to_string(), AbsenceReason::Refused)),
            false => drop(work.held.insert(locator.to_string())),
        }
        Ok(())
    }

    /// Keeps the content of a working file that equals the log's, if the commits do not contain it: it becomes a base.
    async fn keep_agreed(
        &self,
        locator: &Locator,
        incoming: &IncomingChanges,
        work: &mut Work,
    ) -> Result<(), SyncError> {
        let Some(Content { hash, .. }) = incoming.state_after.files().get(locator) else { return Ok(()) };
        let is_here = incoming.contents.contains_key(&hash)
            || self.state.kept(&hash).await.map_err(SyncError::Local)?.is_some();
        if is_here || has(Planted::BasesAreNotKept) {
            return Ok(());
        }
        match self.local(locator).await?.filter(|bytes| ContentHash::of(bytes) == hash) {
            Some(bytes) => drop(self.state.keep(&bytes).await.map_err(SyncError::Local)?),
            // A program has just changed it.
            None => drop(work.absent.insert(locator.to_string(), AbsenceReason::Unfetched)),
        }
        Ok(())
    }

    /// Merges a content of theirs into a working file.
    #[expect(clippy::too_many_arguments, reason = "all of it is what a merge is about")]
    pub(super) async fn mix(
        &self,
        context: Context<'_>,
        locator: &Locator,
        base: Option<ContentHash>,
        theirs: &ContentHash,
        incoming: &IncomingChanges,
        work: &mut Work,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let Some(theirs) = self.content(context, incoming, theirs).await? else {
            // Both stay unchanged until the other content is available.
            report.missing.push(locator.clone());
            work.absent.insert(locator.to_string(), AbsenceReason::Missing);
            return Ok(());
        };
        // Read now: it may have changed since the look.
        let Some(ours) = self.local(locator).await? else {
            self.state.keep(&theirs).await.map_err(SyncError::Local)?;
            work.add(locator, None, Some(theirs));
            // It may have another spelling since.
            if let Some(moved) = work.moves.last_mut() {
                moved.last = base;
            }
            return Ok(());
        };
        let base = match base {
            Some(base) => self.content(context, incoming, &base).await?,
            None => None,
        };
        let merged = self.merged(context, locator, base, &ours, &theirs, incoming, report).await?;
        if merged != ours {
            // Keep both: another program may change the file once more while we replace it.
            let expected = self.state.keep(&ours).await.map_err(SyncError::Local)?;
            self.state.keep(&merged).await.map_err(SyncError::Local)?;
            work.add(locator, Some(expected), Some(merged));
        }
        Ok(())
    }

    async fn put(
        &self,
        locator: &Locator,
        expected: Option<ContentHash>,
        theirs: &ContentHash,
        incoming: &IncomingChanges,
        work: &mut Work,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        let content = match incoming.contents.get(theirs) {
            Some(content) => Some(content.clone()),
            // A later fetch looks here first.
            None if incoming.without_content == AbsenceReason::Unfetched => None,
            None => self.state.kept(theirs).await.map_err(SyncError::Local)?,
        };
        match content {
            Some(content) => work.put(locator, expected, *theirs, content),
            // The log names a content that is not at hand: the file is not here, which is no deletion.
            None => {
                // The working file still has the base, over which a later content is merged.
                if let Some(base) = expected
                    && let Some(bytes) = self.state.kept(&base).await.map_err(SyncError::Local)?
                {
                    self.state.keep(&bytes).await.map_err(SyncError::Local)?;
                    work.before.insert(locator.to_string(), base);
                }
                if incoming.without_content == AbsenceReason::Missing {
                    report.missing.push(locator.clone());
                }
                work.absent.insert(locator.to_string(), incoming.without_content);
            }
        }
        Ok(())
    }
}
