//! Publishes local changes as commits.
//!
//! 1. Collect the files that differ from their bases: only those of one author, and as many as fit into one commit ([`Replica::changes`]). The others
//!    go into the next commit.
//! 2. Upload contents that are too large for a commit.
//! 3. Write the encoded commit into the journal (`begin_publishing`). From now on every attempt sends exactly these bytes, also after a crash.
//! 4. Try to create the next position with these bytes. This fails if the position exists already.
//! 5. If the answer was lost, read the position. If it has nothing, go back to step 4.
//! 6. If the position has our commit, move the bases to it. If it has another device's commit, drop our attempt, apply that commit and go back to step 1.
//!
//! Example: we have read up to position 7 and try to create position 8. The answer is lost. We read position 8. If the commit there has our id, it is
//! published. If another commit is there, we apply it, merge, and try to create position 9.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Bytes, Locator, Version};

use super::held;
use super::join::Purpose;
use super::plan::{self, Pending};
use super::planted::{Planted, has};
use super::progress::Stage;
use super::remote::{Attempt, MAX_TRIES};
use super::renames::{self, Rename};
use super::roll_ups;
use super::scan::Found;
use super::state::{Advance, BaseLine, Head, PublishRecord};
use super::{Author, Context, IMPORT, Recent, Replica, Report, Sending, SyncError};
use crate::growth::{self, Growth};
use crate::ids::{CommitId, ContentHash, Position, StoreId};
use crate::log::layout::{self, Item};
use crate::log::{Carried, Commit, Content, FileChange, MAX_CHANGES, MAX_INLINE_BYTES, What};
use crate::names;
use crate::signed::{self, Signatures, Writer};

/// The most times that a position is tried before the sync gives up until later.
const MAX_ATTEMPTS: usize = 3;

/// The most bytes of content inside one commit.
const MAX_INLINE_TOTAL: usize = 8 * 1024 * 1024;

/// The most bytes of changed files in one commit, unless one file alone has more. Sender and receiver hold them in memory together.
const MAX_FILES_TOTAL: u64 = 16 * 1024 * 1024;

/// Whose commit is at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// Ours: this attempt created it, so nothing comes after it yet.
    Created,
    /// Ours, as reading it told.
    Ours,
    /// Another device's commit.
    Theirs,
}

/// The result of an attempt to publish the differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Published {
    /// No difference can be published.
    Nothing,
    /// The file that differed disappeared before we read it: its deletion has to be published too.
    Gone,
    /// Other devices were faster: their commits must be applied first.
    Behind,
    /// A commit of ours.
    Ours { settled: Settled, left: Remainder },
}

/// Tells if a commit contains all pending changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remainder {
    Nothing,
    Something,
}

/// The content of a commit to be made.
struct Changes {
    /// The author of the commit; `None` if there are no changes.
    turn: Option<CommitAuthor>,
    changes: Vec<FileChange>,
    /// The bases that come of it.
    bases: Vec<BaseLine>,
    /// The growth of long files, as it is recorded after the commit.
    growths: BTreeMap<Locator, Growth>,
    left: Remainder,
}

/// The first step at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstStep {
    Read,
    Try,
}

/// The changes to send.
enum ToSend {
    Nothing,
    /// The decision depends on commits that others have sent since.
    AfterTakingIn,
    These(Box<Pending>),
}

/// The end of the log, compared with this replica's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogTail {
    /// The replica has applied the last known commit.
    Reached,
    /// The log has more commits.
    Behind,
}

/// Whose turn it is: the first change decides who makes the commit.
struct AuthorChooser<'a> {
    signatures: Signatures,
    author: &'a Author,
    /// True in a replica's first sync: unsigned files existed before it.
    is_first_sync: bool,
    turn: Option<CommitAuthor>,
}

/// The author of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CommitAuthor {
    /// A writer, or the process that syncs.
    Of(Writer),
    /// No author: the files existed before this replica first synced.
    Import,
}

impl AuthorChooser<'_> {
    /// Returns true if this change belongs to the author of the commit. The first change decides the author.
    fn is_on(&mut self, locator: &Locator, content: Option<(ContentHash, u64)>) -> bool {
        let turn = self.author_of(locator, content);
        *self.turn.get_or_insert_with(|| turn.clone()) == turn
    }

    /// Returns true if a change would belong to the author of the commit, and decides nothing.
    fn would_be_on(&self, locator: &Locator, content: (ContentHash, u64)) -> bool {
        let turn = self.author_of(locator, Some(content));
        self.turn.as_ref().is_none_or(|other| *other == turn)
    }

    fn author_of(&self, locator: &Locator, content: Option<(ContentHash, u64)>) -> CommitAuthor {
        match self.signatures.writer(locator, content).cloned() {
            Some(writer) => CommitAuthor::Of(writer),
            None if self.is_first_sync => CommitAuthor::Import,
            None => CommitAuthor::Of(Writer {
                agent: self.author.agent.clone(),
                session: self.author.session.clone(),
                cause: None,
            }),
        }
    }
}

impl Replica {
    /// Finds out what became of a commit whose publishing was not finished.
    pub(super) async fn finish_publishing(
        &mut self,
        context: Context<'_>,
        store: StoreId,
    ) -> Result<(), SyncError> {
        let Some(publishing) = self.state.publishing().await.map_err(SyncError::Local)? else {
            return Ok(());
        };
        let (next, previous) = self.next();
        let commit = Commit::decode(&publishing.bytes).ok();
        if commit.is_some_and(|commit| commit.belongs(store, next, previous).is_ok()) {
            return self.settle(context, &publishing, FirstStep::Read).await.map(drop);
        }
        // The attempt is finished, or the state is older than the attempt. The log shows its result, and the files show the pending changes.
        self.state.end_publishing().await.map_err(SyncError::Local)
    }

    /// Publishes the differences. The scan stays in `seen` as long as no file was changed.
    pub(super) async fn publish(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        sending: Sending<'_>,
        seen: &mut Option<Found>,
        report: &mut Report,
    ) -> Result<Published, SyncError> {
        self.growths = match context.signed.filter(|_| context.gate.holds_nothing() && !self.reads_all) {
            Some(signed) => growth::read(signed).await.map_err(SyncError::Local)?,
            None => BTreeMap::new(),
        };
        let mut pending = match self.pending(context, sending, seen, report).await? {
            ToSend::Nothing => return Ok(Published::Nothing),
            ToSend::AfterTakingIn => return Ok(Published::Behind),
            ToSend::These(pending) => pending,
        };
        if let Some(record) =
            pending.record.take_if(|_| !pending.deleted.is_empty() || !pending.waiting.is_empty())
        {
            self.state.save_deletions(&record).await.map_err(SyncError::Local)?;
        }
        let Changes { turn, changes, bases, growths, left } = self.changes(context, &pending, report).await?;
        let Some(turn) = turn else {
            return Ok(if left == Remainder::Nothing { Published::Nothing } else { Published::Gone });
        };
        if self.log_tail(context).await? == LogTail::Behind {
            return Ok(Published::Behind);
        }
        let writer = match turn {
            CommitAuthor::Of(writer) => writer,
            CommitAuthor::Import => Writer { cause: Some(IMPORT.to_owned()), ..Writer::default() },
        };
        let cause = writer.cause.unwrap_or_else(|| context.cause.to_owned());
        let (position, previous) = self.next();
        let deleted = changes.iter().filter(|change| change.what.after().is_none());
        let deleted: Vec<Locator> = deleted.map(|change| change.locator.clone()).collect();
        let mark = self.state.known.log.mark_after(&changes);
        let mark = mark.map_err(|why| SyncError::Unfit { position, why: why.to_string() })?;
        let commit = Commit {
            store,
            position,
            id: CommitId::from_bytes(context.ids.next()),
            previous,
            replica: self.id(),
            device: names::harmless(&context.author.device),
            agent: writer.agent.as_deref().map(names::harmless),
            session: writer.session.as_deref().map(names::harmless),
            time: context.clock.now(),
            cause,
            state: mark,
            changes,
            odd: Vec::new(),
            notice: None,
        };
        let bytes = commit.encode().map_err(|why| SyncError::Unfit { position, why: why.to_string() })?;
        let publishing = PublishRecord { position, bytes, bases };
        if !has(Planted::TriedBeforeFixed) {
            self.state.begin_publishing(&publishing).await.map_err(SyncError::Local)?;
        }
        let settled = self.settle(context, &publishing, FirstStep::Try).await?;
        if settled == Settled::Theirs {
            return Ok(Published::Behind);
        }
        if let Some(signed) = context.signed {
            signed::note_sent(signed, &deleted).await.map_err(SyncError::Local)?;
            if !growths.is_empty() {
                growth::write(signed, &growths).await.map_err(SyncError::Local)?;
            }
        }
        Ok(Published::Ours { settled, left })
    }

    /// Returns the changes to send; held files are reported.
    async fn pending(
        &mut self,
        context: Context<'_>,
        sending: Sending<'_>,
        seen: &mut Option<Found>,
        report: &mut Report,
    ) -> Result<ToSend, SyncError> {
        if let Sending::Nothing = sending {
            if !self.state.known.absent.is_empty() {
                let found = self.look().await?;
                let mut met = plan::pending(self.state.known.bases(), &found.contents).met;
                met.extend(self.writable_again(&found));
                if self.put_together(context, &met, report).await? == LogTail::Behind {
                    return Ok(ToSend::AfterTakingIn);
                }
            }
            return Ok(ToSend::Nothing);
        }
        report.held.clear();
        report.waiting_deletions.clear();
        let (mut found, mut pending) = self.look_for_changes(context).await?;
        if self.complete_case_renames(context, &found, report).await? {
            (found, pending) = self.look_for_changes(context).await?;
        }
        pending.met.extend(self.writable_again(&found));
        if !pending.met.is_empty() {
            if self.put_together(context, &pending.met, report).await? == LogTail::Behind {
                return Ok(ToSend::AfterTakingIn);
            }
            (found, pending) = self.look_for_changes(context).await?;
        }
        // A scan is not one moment: a tidy can change a roll-up after the scan read it, and delete a source before the scan comes to that. A
        // second scan sees the roll-up of every deletion that the first one found.
        if pending.deleted.iter().any(roll_ups::is_dated) && !has(Planted::SourcesLeaveFirst) {
            let first = std::mem::take(&mut pending.deleted);
            (found, pending) = self.look_for_changes(context).await?;
            let is_first = |locator: &Locator| first.binary_search(locator).is_ok();
            pending.deleted.retain(|locator| !roll_ups::is_dated(locator) || is_first(locator));
        }
        pending.roll_ups =
            pending.changed.iter().filter(|at| roll_ups::place(at).is_some()).cloned().collect();
        self.forget_absent_held(context, &pending, report).await?;
        self.remember_waiting(&pending).await?;
        report.waiting_deletions.clone_from(&pending.waiting);
        let renames = renames::find(&*self.files, &self.state, &found.contents, &pending).await;
        pending.renames = renames.map_err(SyncError::Local)?;
        *seen = Some(found);
        if let Sending::One(locator) = sending {
            let rename = pending.renames.iter().find(|rename| [&rename.from, &rename.to].contains(&locator));
            let is_sent = |other: &Locator| match rename {
                Some(rename) => [&rename.from, &rename.to].contains(&other),
                None => other == locator,
            };
            pending.changed.retain(is_sent);
            pending.deleted.retain(is_sent);
        }
        let held = held::keep_here(&*self.files, &self.state, context.gate, &mut pending).await;
        report.held = held.map_err(SyncError::Local)?;
        Ok(if pending.is_empty() { ToSend::Nothing } else { ToSend::These(Box::new(pending)) })
    }

    /// Writes down the deletions that wait for the user's answer, also if there is nothing to send: other devices may add files, and then the same
    /// deletions would not be very many any more.
    async fn remember_waiting(&self, pending: &Pending) -> Result<(), SyncError> {
        let Some(record) = pending.record.as_ref().filter(|_| !pending.waiting.is_empty()) else {
            return Ok(());
        };
        if self.state.deletions().await.map_err(SyncError::Local)? != *record {
            self.state.save_deletions(record).await.map_err(SyncError::Local)?;
        }
        Ok(())
    }

    /// Merges files that exist both here and in the log without a common base, after the whole log was applied. A version in between would only cause conflicts.
    async fn put_together(
        &mut self,
        context: Context<'_>,
        met: &[Locator],
        report: &mut Report,
    ) -> Result<LogTail, SyncError> {
        if met.is_empty() {
            return Ok(LogTail::Reached);
        }
        let log_tail = self.log_tail(context).await?;
        if log_tail == LogTail::Reached {
            self.materialise(context, met, Purpose::Meeting, report).await?;
        }
        Ok(log_tail)
    }

    /// Checks that the base of the next commit is still in the log, and that no later commit is known.
    pub(super) async fn log_tail(&self, context: Context<'_>) -> Result<LogTail, SyncError> {
        let head = self.state.known.head.as_ref();
        let after = head.and_then(|head| Position::new(head.position.number() - 1)).map(layout::commit);
        let items = self.remote.items(context.patience, &layout::commits(), after.as_ref()).await?;
        let next = self.next().0;
        let mut later = items.iter().filter_map(|(item, _)| match item {
            Item::Commit(position) if *position >= next => Some(*position),
            _ => None,
        });
        if let Some(later) = later.next() {
            // Positions are created in order: if a later one is there, the next one was, before it was listed.
            return match later == next || self.remote.at(context.patience, next).await?.is_some() {
                true => Ok(LogTail::Behind),
                false => Err(SyncError::Gap { missing: next, found: later }),
            };
        }
        let Some(head) = head else { return Ok(LogTail::Reached) };
        let listed = items.iter().find(|(item, _)| *item == Item::Commit(head.position));
        let version = listed.and_then(|(_, info)| info.version.as_ref()).map(Version::as_str);
        if version.is_some() && version == head.version.as_deref() {
            return Ok(LogTail::Reached);
        }
        self.check_head(context).await?;
        Ok(LogTail::Reached)
    }

    /// Returns the changes of the next commit, as many as fit into one, and their author.
    ///
    /// A commit has one author. Changes that another writer signed wait for the next commit.
    async fn changes(
        &self,
        context: Context<'_>,
        pending: &Pending,
        report: &mut Report,
    ) -> Result<Changes, SyncError> {
        let signatures = match context.signed {
            Some(state) => Signatures::read(state).await.map_err(SyncError::Local)?,
            None => Signatures::default(),
        };
        let is_first_sync = self.is_first_sync;
        let mut turns = AuthorChooser { signatures, author: context.author, is_first_sync, turn: None };
        let mut changes = Vec::new();
        let mut contents = Vec::new();
        let (mut growths, mut packed) = (BTreeMap::new(), BTreeMap::new());
        let (mut inline, mut total) = (0, 0);
        let mut left = Remainder::Nothing;
        let mut is_cut = false;
        let mut old_halves = 0;
        let mut order: Vec<&Locator> = pending.changed.iter().collect();
        order.sort_by_key(|locator| roll_ups::rank(locator));
        let is_here = |locator: &&Locator| pending.changed.binary_search(locator).is_ok();
        let mut unsent: BTreeSet<&Locator> = pending.roll_ups.iter().filter(|at| !is_here(at)).collect();
        let mut waiting: Vec<&Locator> = Vec::new();
        let old_names: BTreeMap<&Locator, &Rename> =
            pending.renames.iter().map(|rename| (&rename.to, rename)).collect();
        for (number, locator) in order.iter().copied().enumerate() {
            // A rename needs room for both of its halves.
            let is_full = changes.len() + old_halves + 1 >= MAX_CHANGES || inline > MAX_INLINE_TOTAL;
            if is_full || total > MAX_FILES_TOTAL {
                left = Remainder::Something;
                is_cut = true;
                unsent.extend(order[number..].iter().filter(|at| roll_ups::place(at).is_some()));
                break;
            }
            let is_source = roll_ups::is_source_of(locator, unsent.iter().copied());
            if roll_ups::place(locator).is_some() {
                unsent.insert(locator);
            }
            context.progress.at(Stage::Sending, number, Some(pending.changed.len()));
            if let Some((what, growth)) = self.grown(context, locator, &mut turns).await? {
                inline += what.inline().map_or(0, Bytes::len);
                packed.extend(what.after().map(|content| (content.hash, (growth.kept(), 0))));
                changes.push(FileChange { locator: locator.clone(), what });
                growths.insert(locator.clone(), growth);
                unsent.remove(locator);
                continue;
            }
            let base = self.state.known.log.files().get(locator);
            let may_grow = context.gate.holds_nothing() && context.signed.is_some();
            let before = match may_grow && base.is_some() {
                true => self.files.info(locator).await.ok(),
                false => None,
            };
            let Some(bytes) = self.local(locator).await? else {
                left = Remainder::Something;
                continue;
            };
            let hash = ContentHash::of(&bytes);
            if base.is_some_and(|base| base.hash == hash) {
                unsent.remove(locator);
                continue;
            }
            if is_source
                && let Some(base) = base
                && !self.keeps_lines(&base.hash, &bytes).await?
            {
                waiting.push(locator);
                continue;
            }
            let rename = old_names.get(locator);
            let sent = base.map(|base| base.hash).or(rename.map(|rename| rename.before));
            let hold = held::hold(&self.state, context.gate, locator, &bytes, sent).await;
            let is_ignored = has(Planted::GateIgnoresMerges) && report.merged.contains(locator);
            if let Some(hold) = hold.map_err(SyncError::Local)?.filter(|_| !is_ignored) {
                report.held.push((locator.clone(), hold));
                continue;
            }
            let size = bytes.len() as u64;
            if !turns.is_on(locator, Some((hash, size))) {
                left = Remainder::Something;
                continue;
            }
            total += size;
            let extends = |base: &Content| {
                let start = usize::try_from(base.size).ok().and_then(|length| bytes.get(..length));
                base.size > 0 && base.size < size && start.map(ContentHash::of) == Some(base.hash)
            };
            let extended = base.filter(extends);
            let watched = before.filter(|info| {
                size >= growth::MIN_BYTES
                    && extended.is_some()
                    && info.size_bytes == size
                    && info.version.is_none()
            });
            let kept = match watched {
                Some(info) => {
                    let name = self.state.keep_growing(&bytes).await.map_err(SyncError::Local)?;
                    name.map(|name| (name, info.fingerprint))
                }
                None => None,
            };
            match kept {
                Some((name, fingerprint)) => {
                    packed.insert(hash, (name, 0));
                    growths.insert(locator.clone(), Growth::begin(locator, &bytes, &fingerprint, name));
                }
                None => contents.push((hash, bytes.clone())),
            }
            let carry = match extended {
                Some(base) => bytes.slice(usize::try_from(base.size).unwrap_or(0)..),
                None => bytes,
            };
            let carried = if carry.len() <= MAX_INLINE_BYTES {
                inline += carry.len();
                Carried::Inline(carry)
            } else {
                Carried::Object(self.remote.put_object(context.patience, &carry).await?)
            };
            let what = match extended {
                Some(base) => {
                    What::Append { base: base.hash, base_size: base.size, hash, size, added: carried }
                }
                None => {
                    let from = self.state.known.before.get(locator).copied().filter(|_| base.is_none());
                    What::Put { hash, size, content: carried, from }
                }
            };
            unsent.remove(locator);
            old_halves += usize::from(rename.is_some());
            changes.push(FileChange { locator: locator.clone(), what });
        }
        let waits = |deleted: &Locator| roll_ups::is_source_of(deleted, unsent.iter().copied());
        // The old name of a rename goes with the new one, or stays.
        let sent: BTreeMap<&Locator, ContentHash> =
            changes.iter().filter_map(|change| Some((&change.locator, change.what.after()?.hash))).collect();
        let goes = |rename: &&Rename| {
            let Some(hash) = sent.get(&rename.to) else { return false };
            // The two names cannot be in one store.
            let is_in_the_way =
                rename.from.folded() == rename.to.folded() || rename.to.is_within(&rename.from);
            let is_deleted = pending.deleted.binary_search(&rename.from).is_ok();
            is_deleted && (*hash == rename.before || is_in_the_way || !waits(&rename.from))
        };
        let renamed: Vec<FileChange> =
            pending.renames.iter().filter(goes).map(|rename| deletion(&rename.from)).collect();
        changes.extend(renamed);
        let old_names: BTreeSet<&Locator> = pending.renames.iter().map(|rename| &rename.from).collect();
        for locator in
            pending.deleted.iter().filter(|locator| !old_names.contains(locator) && !waits(locator))
        {
            // A change that did not fit can be the roll-up of a deleted file: deletions wait until all changes are sent.
            if !is_cut && changes.len() < MAX_CHANGES && turns.is_on(locator, None) {
                changes.push(deletion(locator));
            } else {
                left = Remainder::Something;
            }
        }
        let is_held = |locator: &&Locator| {
            let mut held = report.held.iter().map(|(held, _)| held);
            held.any(|held| unsent.contains(held) && roll_ups::is_source_of(locator, [held]))
        };
        let (stays, later): (Vec<&Locator>, Vec<&Locator>) = waiting.iter().copied().partition(is_held);
        if !later.is_empty() && turns.turn.is_some() {
            left = Remainder::Something;
        }
        let is_awaited = |roll_up: &Locator| {
            let mut sources = pending.deleted.iter().chain(waiting.iter().copied());
            sources.any(|locator| roll_ups::is_source_of(locator, [roll_up]))
        };
        for (locator, hold) in report.held.iter_mut().filter(|(locator, _)| is_awaited(locator)) {
            if unsent.contains(locator) {
                *hold = roll_ups::with_sources(hold.clone());
            }
        }
        report.held.extend(stays.into_iter().map(|at| (at.clone(), roll_ups::hold_of_source())));
        packed.extend(self.state.keep_all(&contents).await.map_err(SyncError::Local)?);
        let base = |change: &FileChange| {
            let after = change.what.after();
            let pack = after.and_then(|content| packed.get(&content.hash).copied());
            BaseLine { pack, ..BaseLine::new(change.locator.as_str(), after) }
        };
        let bases = changes.iter().map(base).collect();
        Ok(Changes { turn: turns.turn, changes, bases, growths, left })
    }

    /// Returns the appended bytes of a file whose growth is recorded, as a change, and its growth afterwards. `None` if the file has to be read.
    async fn grown(
        &self,
        context: Context<'_>,
        locator: &Locator,
        turns: &mut AuthorChooser<'_>,
    ) -> Result<Option<(What, Growth)>, SyncError> {
        let Some(growth) = self.growths.get(locator) else { return Ok(None) };
        let (base, after) = (growth.base(), growth.published());
        let Content { hash, size } = after.base();
        let is_base = self.state.known.log.files().get(locator) == Some(base);
        if !is_base || size == base.size || !turns.would_be_on(locator, (hash, size)) {
            return Ok(None);
        }
        let added = growth.added();
        if !self.state.grow(&growth.kept(), base.size, &added).await.map_err(SyncError::Local)? {
            return Ok(None);
        }
        turns.is_on(locator, Some((hash, size)));
        let added = match added.len() <= MAX_INLINE_BYTES {
            true => Carried::Inline(added),
            false => Carried::Object(self.remote.put_object(context.patience, &added).await?),
        };
        Ok(Some((What::Append { base: base.hash, base_size: base.size, hash, size, added }, after)))
    }

    /// Returns true if a content has all lines of an earlier one.
    async fn keeps_lines(&self, before: &ContentHash, bytes: &[u8]) -> Result<bool, SyncError> {
        let before = self.state.kept(before).await.map_err(SyncError::Local)?;
        Ok(before.is_some_and(|before| roll_ups::has_all_lines(&before, bytes)))
    }

    /// Tries to create a position until it is known whose commit is there.
    async fn settle(
        &mut self,
        context: Context<'_>,
        publishing: &PublishRecord,
        first: FirstStep,
    ) -> Result<Settled, SyncError> {
        let PublishRecord { position, bytes, .. } = publishing;
        let mut last = None;
        let mut tries = 0;
        let mut step = first;
        for attempt in 1..=MAX_ATTEMPTS {
            if step == FirstStep::Try {
                let tried = self.remote.attempt(*position, bytes.clone()).await;
                if has(Planted::TriedBeforeFixed) {
                    self.state.begin_publishing(publishing).await.map_err(SyncError::Local)?;
                }
                match tried {
                    Attempt::Created(version) => {
                        self.confirm_objects(context, publishing).await?;
                        return self.settled(publishing, Settled::Created, Some(version)).await;
                    }
                    Attempt::NotKnown(_) if has(Planted::LostAnswerMeansOurs) => {
                        return self.settled(publishing, Settled::Ours, None).await;
                    }
                    Attempt::NotKnown(_) if has(Planted::LostAnswerMeansTheirs) => {
                        return self.settled(publishing, Settled::Theirs, None).await;
                    }
                    Attempt::NotKnown(error) if has(Planted::NewBytesForEveryAttempt) => {
                        self.state.end_publishing().await.map_err(SyncError::Local)?;
                        return Err(SyncError::Remote(error));
                    }
                    Attempt::NotKnown(error) => {
                        tries += error.tries();
                        last = Some(error);
                    }
                }
            }
            match self.remote.at(context.patience, *position).await? {
                Some(there)
                    if there.bytes == *bytes
                        || there.is_abridged() && there.hash() == ContentHash::of(bytes) =>
                {
                    self.confirm_objects(context, publishing).await?;
                    return self.settled(publishing, Settled::Ours, there.version).await;
                }
                Some(_) => return self.settled(publishing, Settled::Theirs, None).await,
                // Nothing there says nothing: an attempt may still be on its way.
                None => {}
            }
            if step == FirstStep::Read {
                // The attempt may be old: its base must still be there.
                step = FirstStep::Try;
                self.check_head(context).await?;
            } else if tries >= MAX_TRIES || attempt < MAX_ATTEMPTS && !context.patience.wait(attempt).await {
                break;
            }
        }
        Err(last.map_or(SyncError::Unclear("a position"), SyncError::Remote))
    }

    /// Puts back the objects that a published commit names, if another device deleted them as old ones before it knew of the commit.
    async fn confirm_objects(
        &self,
        context: Context<'_>,
        publishing: &PublishRecord,
    ) -> Result<(), SyncError> {
        let Ok(commit) = Commit::decode(&publishing.bytes) else { return Ok(()) };
        for what in commit.changes.iter().map(|change| &change.what) {
            self.put_back_object(context, std::slice::from_ref(self), what).await?;
        }
        Ok(())
    }

    /// Checks that the last applied position has not changed.
    pub(super) async fn check_head(&self, context: Context<'_>) -> Result<(), SyncError> {
        let Some(head) = &self.state.known.head else { return Ok(()) };
        let there = self.remote.at(context.patience, head.position).await?;
        if there.as_ref().is_some_and(|at| at.hash() == head.hash) {
            return Ok(());
        }
        let other = there.and_then(|at| at.commit().ok()).map(|commit| commit.store);
        Err(self.what_happened(context, head.position, other).await?)
    }

    /// Ends a publishing whose outcome is known.
    pub(super) async fn settled(
        &mut self,
        publishing: &PublishRecord,
        settled: Settled,
        version: Option<Version>,
    ) -> Result<Settled, SyncError> {
        if settled != Settled::Theirs {
            let commit = Commit::decode(&publishing.bytes)
                .map_err(|why| SyncError::Damaged { what: "our own commit".to_owned(), why })?;
            let is_done = self.position().is_some_and(|position| position >= commit.position);
            if !is_done {
                let head = Head {
                    position: commit.position,
                    hash: ContentHash::of(&publishing.bytes),
                    version: version.map(|version| version.to_string()),
                };
                let advance = Advance {
                    store: commit.store,
                    head,
                    mark: commit.state,
                    attempt: None,
                    joined: None,
                    bases: publishing.bases.clone(),
                };
                self.state.advance(&advance).await.map_err(SyncError::Local)?;
                self.note_recent([Recent::new(&commit, publishing.bytes.clone())]);
            }
        }
        self.state.end_publishing().await.map_err(SyncError::Local)?;
        Ok(settled)
    }
}

/// Returns the change that deletes a file.
fn deletion(locator: &Locator) -> FileChange {
    FileChange { locator: locator.clone(), what: What::Delete { before: None } }
}
