//! One log, many replicas: takes in what others committed, merges, and commits what still differs.
//!
//! # Invariants
//! The five rules of the [`log`], and where they are kept:
//!
//! 1. *Fixed before tried*: [`State::begin_publishing`] before [`Remote::attempt`].
//! 2. *Tried until known*: `Replica::settle` is the only place that ends a publishing, and it reads the position first.
//! 3. *Built on everything*: a commit is made only right after a take-in that found nothing more, and names what it was built on.
//! 4. *A file and its base move together*: [`apply`] and [`State::advance`], under one record.
//! 5. *Pending is derived*: [`plan::pending`] compares the working files with the bases; nothing is queued.
//!
//! Each of them, and the promises above them, is attacked by the simulator (`haversack-sim: sync`).

mod apply;
mod plan;
pub mod planted;
mod remote;
mod scan;
mod state;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use haversack_store::{Backend, Bytes, Error as StoreError, ErrorKind, Guard, Locator};

use self::plan::{Gone, Pending, Step, Theirs, Winner};
use self::planted::{Planted, has};
use self::remote::{Attempt, Remote};
use self::scan::{Found, StatCache};
use self::state::{Advance, Applying, BaseLine, Head, Move, Publishing, State};
pub use self::trouble::Trouble;
use crate::clock::Clock;
use crate::ids::{CommitId, ContentHash, Ids, Position, ReplicaId, StoreId};
use crate::log::{self, Carried, Commit, FileChange, MAX_CHANGES, MAX_INLINE_BYTES, Misplaced, What};
use crate::merge::{Rule, Side, merge};

/// The lock that a sync holds; never waited for.
const SYNC_LOCK: &str = "sync";

/// The most commits that are taken in at a time.
const MAX_TAKEN_COMMITS: usize = 256;

/// How often a position is tried before the sync is left for later.
const MAX_ATTEMPTS: usize = 3;

/// How often a sync starts over because another device was faster.
const MAX_ROUNDS: usize = 64;

/// The most bytes of content inside one commit.
const MAX_INLINE_TOTAL: usize = 8 * 1024 * 1024;

/// Says which files stay on this device.
pub trait Gate: Send + Sync {
    /// Returns why a content may not be sent; `None` if it may.
    fn holds(&self, locator: &Locator, content: &[u8]) -> Option<String>;
}

/// Lets everything pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

impl Gate for Open {
    fn holds(&self, _: &Locator, _: &[u8]) -> Option<String> {
        None
    }
}

/// Who makes a commit, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// What the device is called.
    pub device: String,
    /// Which agent it is.
    pub agent: Option<String>,
    /// Which of its sessions.
    pub session: Option<String>,
}

/// What a sync is given.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The time, for display.
    pub clock: &'a dyn Clock,
    /// Where new ids come from.
    pub ids: &'a dyn Ids,
    /// What stays on this device.
    pub gate: &'a dyn Gate,
    /// Who is syncing.
    pub author: &'a Author,
    /// Whether very many deletions at once are meant.
    pub deletions: Deletions,
}

/// Whether very many deletions at once are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletions {
    /// They wait until somebody says so.
    Cautious,
    /// They are.
    Allowed,
}

/// What a sync did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many commits of others were taken in.
    pub taken: usize,
    /// How many commits were published.
    pub published: usize,
    /// Files that both sides had changed.
    pub merged: Vec<Locator>,
    /// Of those, the ones in which both sides' text was kept.
    pub both_kept: Vec<Locator>,
    /// Files whose change stood against a deletion.
    pub edits_won: Vec<Locator>,
    /// Files that stay on this device, and why.
    pub held: Vec<(Locator, String)>,
    /// Files that this disk cannot hold.
    pub refused: Vec<Locator>,
    /// Deletions that wait until somebody says that they are meant.
    pub waiting_deletions: Vec<Locator>,
}

/// One directory of working files, and the log it follows.
#[derive(Debug)]
pub struct Replica {
    files: Arc<dyn Backend>,
    state: State,
    remote: Remote,
    cache: StatCache,
    _lock: Guard,
}

/// What a commit brought, with the hash of its bytes.
struct Taken {
    commit: Commit,
    hash: ContentHash,
}

/// Whose commit is at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    Ours,
    Theirs,
}

impl Replica {
    /// Opens a replica for one sync or several; nobody else can sync it meanwhile.
    pub async fn open(
        files: Arc<dyn Backend>,
        state: Arc<dyn Backend>,
        remote: Arc<dyn Backend>,
        ids: &dyn Ids,
    ) -> Result<Replica, Trouble> {
        let lock = state.lock(SYNC_LOCK, Duration::ZERO).await.map_err(|error| match error.kind() {
            ErrorKind::Busy => Trouble::Busy,
            _ => Trouble::Local(error),
        })?;
        let state = State::load(state, ids).await.map_err(Trouble::Local)?;
        let cache = state.cache().await.map_err(Trouble::Local)?;
        Ok(Replica { files, state, remote: Remote::new(remote), cache, _lock: lock })
    }

    /// Returns the replica's id.
    pub fn id(&self) -> ReplicaId {
        self.state.identity.replica
    }

    /// Returns the last position that was taken in.
    pub fn position(&self) -> Option<Position> {
        self.state.known.head.map(|head| head.position)
    }

    /// Takes in what is new, and publishes what still differs.
    pub async fn sync(&mut self, context: Context<'_>) -> Result<Report, Trouble> {
        let before = self.cache.clone();
        let result = self.sync_files(context).await;
        if result.is_ok() && self.cache != before {
            self.state.save_cache(&self.cache).await.map_err(Trouble::Local)?;
        }
        result
    }

    async fn sync_files(&mut self, context: Context<'_>) -> Result<Report, Trouble> {
        let mut report = Report::default();
        self.finish_applying(&mut report).await?;
        let store = self.meet(context).await?;
        self.finish_publishing().await?;
        for _ in 0..MAX_ROUNDS {
            self.take_in(context, store, &mut report).await?;
            match self.publish(context, store, &mut report).await? {
                None => return Ok(report),
                Some(Settled::Ours) => report.published += 1,
                Some(Settled::Theirs) => {}
            }
        }
        Err(Trouble::Outrun)
    }

    async fn meet(&self, context: Context<'_>) -> Result<StoreId, Trouble> {
        let found = self.remote.meet(context.clock, context.ids, &context.author.device).await?;
        match self.state.known.store {
            Some(expected) if expected != found => Err(Trouble::OtherStore { expected, found }),
            _ => Ok(found),
        }
    }

    /// Completes what a process that died was doing to working files.
    async fn finish_applying(&mut self, report: &mut Report) -> Result<(), Trouble> {
        match self.state.applying().await.map_err(Trouble::Local)? {
            None if has(Planted::LeftoversStay) => Ok(()),
            None => apply::sweep(&*self.files).await.map_err(Trouble::Local),
            Some(applying) => self.apply(&applying, report).await.map_err(Trouble::Local),
        }
    }

    /// Carries out moves that were recorded, and moves the bases with them.
    async fn apply(&mut self, applying: &Applying, report: &mut Report) -> Result<(), StoreError> {
        let is_done = self.state.known.head.is_some_and(|head| head == applying.advance.head);
        if has(Planted::BaseBeforeFile) && !is_done {
            self.state.advance(&applying.advance).await?;
            apply::carry_out(&*self.files, &self.state, applying).await?;
        } else if !is_done {
            let met = apply::carry_out(&*self.files, &self.state, applying).await?;
            let mut advance = applying.advance.clone();
            for line in &mut advance.bases {
                line.elsewhere |= met.refused.iter().any(|refused| refused.as_str() == line.at);
                if met.stayed.iter().any(|stayed| stayed.as_str() == line.at) {
                    let moved = applying.moves.iter().find(|moved| moved.at == line.at);
                    line.before = moved.and_then(|moved| moved.last.or(moved.expected));
                }
            }
            report.refused.extend(met.refused);
            report.edits_won.extend(met.stayed);
            self.state.advance(&advance).await?;
        }
        apply::clean_up(&*self.files, applying).await?;
        self.state.end_applying().await
    }

    /// Finds out what became of a commit whose publishing was not finished.
    async fn finish_publishing(&mut self) -> Result<(), Trouble> {
        match self.state.publishing().await.map_err(Trouble::Local)? {
            None => Ok(()),
            Some(publishing) => self.settle(&publishing, FirstStep::Read).await.map(drop),
        }
    }

    /// Tries to create a position until it is known whose commit is there.
    async fn settle(&mut self, publishing: &Publishing, first: FirstStep) -> Result<Settled, Trouble> {
        let Publishing { position, bytes } = publishing;
        let mut last = None;
        let mut step = first;
        for _ in 0..MAX_ATTEMPTS {
            if step == FirstStep::Try {
                let attempt = self.remote.attempt(*position, bytes.clone()).await;
                if has(Planted::TriedBeforeFixed) {
                    self.state.begin_publishing(publishing).await.map_err(Trouble::Local)?;
                }
                match attempt {
                    Attempt::Created => return self.settled(publishing, Settled::Ours).await,
                    Attempt::NotKnown(_) if has(Planted::LostAnswerMeansOurs) => {
                        return self.settled(publishing, Settled::Ours).await;
                    }
                    Attempt::NotKnown(_) if has(Planted::LostAnswerMeansTheirs) => {
                        return self.settled(publishing, Settled::Theirs).await;
                    }
                    Attempt::NotKnown(error) if has(Planted::NewBytesForEveryAttempt) => {
                        self.state.end_publishing().await.map_err(Trouble::Local)?;
                        return Err(Trouble::Remote(error));
                    }
                    Attempt::NotKnown(error) => last = Some(error),
                }
            }
            step = FirstStep::Try;
            match self.remote.at(*position).await? {
                Some(there) if there == *bytes => return self.settled(publishing, Settled::Ours).await,
                Some(_) => return self.settled(publishing, Settled::Theirs).await,
                // Nothing there says nothing: an attempt may still be on its way.
                None => {}
            }
        }
        Err(last.map_or(Trouble::Unclear("a position"), Trouble::Remote))
    }

    /// Ends a publishing whose outcome is known.
    async fn settled(&mut self, publishing: &Publishing, settled: Settled) -> Result<Settled, Trouble> {
        if settled == Settled::Ours {
            let commit = Commit::decode(&publishing.bytes)
                .map_err(|why| Trouble::Damaged { what: "our own commit".to_owned(), why })?;
            let is_done = self.position().is_some_and(|position| position >= commit.position);
            if !is_done {
                let mut log = self.state.known.log.clone();
                log.apply(&commit)
                    .map_err(|why| Trouble::Unfit { position: commit.position, why: why.to_string() })?;
                let head = Head { position: commit.position, hash: ContentHash::of(&publishing.bytes) };
                let advance = Advance {
                    store: commit.store,
                    head,
                    mark: log.mark(),
                    bases: commit
                        .changes
                        .iter()
                        .map(|change| BaseLine::new(change.locator.as_str(), change.what.after()))
                        .collect(),
                };
                self.state.advance(&advance).await.map_err(Trouble::Local)?;
            }
        }
        self.state.end_publishing().await.map_err(Trouble::Local)?;
        Ok(settled)
    }

    /// Takes in commits until there are no more.
    async fn take_in(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        report: &mut Report,
    ) -> Result<(), Trouble> {
        loop {
            let taken = self.fetch(store).await?;
            if taken.is_empty() {
                return Ok(());
            }
            self.take_in_some(context, store, &taken, report).await?;
            report.taken += taken.len();
        }
    }

    /// Reads the positions after the last one that was taken in.
    async fn fetch(&self, store: StoreId) -> Result<Vec<Taken>, Trouble> {
        let mut taken = Vec::new();
        let (mut position, mut previous) = self.next();
        while taken.len() < MAX_TAKEN_COMMITS {
            let Some(bytes) = self.remote.at(position).await? else { break };
            let commit = Commit::decode(&bytes).map_err(|why| Trouble::Damaged {
                what: format!("the commit at position {}", position.number()),
                why,
            })?;
            commit.belongs(store, position, previous).map_err(|why| match why {
                // What we built on is not what they built on.
                Misplaced::Past { .. } => Trouble::WentBack { position },
                why => Trouble::Unfit { position, why: why.to_string() },
            })?;
            let hash = ContentHash::of(&bytes);
            taken.push(Taken { commit, hash });
            let Some(next) = position.next() else { break };
            (position, previous) = (next, hash);
        }
        Ok(taken)
    }

    /// Returns the position after the last one that was taken in, and what a commit there was built on.
    fn next(&self) -> (Position, ContentHash) {
        match self.state.known.head {
            None => (Position::FIRST, ContentHash::of(b"")),
            Some(head) => (head.position.next().unwrap_or(Position::LAST), head.hash),
        }
    }

    async fn take_in_some(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        taken: &[Taken],
        report: &mut Report,
    ) -> Result<(), Trouble> {
        let brought = self.fold(taken).await?;
        let found = self.look().await?;
        let bases = self.state.known.bases();
        let gone = plan::judge_gone(bases, &found.contents, &plan::pending(bases, &found.contents));
        if gone == Gone::Vanished && context.deletions == Deletions::Cautious {
            return Err(Trouble::Vanished);
        }
        let theirs: plan::Brought = brought
            .touched
            .iter()
            .map(|locator| {
                let theirs = match brought.log.files().get(locator) {
                    Some(content) => Theirs::Has(content.hash),
                    None if has(Planted::LastIsIgnored) => Theirs::Deleted { last: None },
                    None => Theirs::Deleted { last: brought.last.get(locator).copied() },
                };
                (locator.clone(), theirs)
            })
            .collect();
        let steps = plan::take_in(bases, &found.contents, &theirs).map_err(|reason| Trouble::Unfit {
            position: taken[0].commit.position,
            why: reason.to_string(),
        })?;
        // The contents of the new bases are kept before any base moves.
        for locator in brought.touched.iter().filter(|_| !has(Planted::BasesAreNotKept)) {
            let now = brought.log.files().get(locator).map(|content| &content.hash);
            if let Some(hash) = now.or_else(|| brought.last.get(locator))
                && let Some(bytes) = brought.contents.get(hash)
            {
                self.state.keep(bytes).await.map_err(Trouble::Local)?;
            }
        }
        let device = taken.last().map_or("", |taken| taken.commit.device.as_str());
        let mut work = Work::default();
        for step in &steps {
            self.prepare(context, step, device, &brought, &mut work, report).await?;
        }
        let last = taken.last().expect("something was taken in");
        let keys: BTreeSet<String> = taken
            .iter()
            .flat_map(|taken| {
                let files = taken.commit.changes.iter().map(|change| change.locator.to_string());
                files.chain(taken.commit.odd.iter().map(|odd| odd.key.clone()))
            })
            .collect();
        let bases = keys.iter().map(|key| {
            let content = brought.log.files().get(key.as_str()).or_else(|| brought.log.odd().get(key));
            let mut line = BaseLine::new(key, content.copied());
            line.elsewhere = work.elsewhere.contains(key);
            line.before = work.before.get(key).copied();
            line
        });
        let advance = Advance {
            store,
            head: Head { position: last.commit.position, hash: last.hash },
            mark: brought.log.mark(),
            bases: bases.collect(),
        };
        if work.moves.is_empty() {
            return self.state.advance(&advance).await.map_err(Trouble::Local);
        }
        let attempt = CommitId::from_bytes(context.ids.next()).to_string();
        let prepared = apply::prepare(&*self.files, &attempt, &work.moves, &work.contents).await;
        prepared.map_err(Trouble::Local)?;
        let applying = Applying { attempt, moves: work.moves, advance };
        if !has(Planted::FileWithoutRecord) {
            self.state.begin_applying(&applying).await.map_err(Trouble::Local)?;
        }
        self.apply(&applying, report).await.map_err(Trouble::Local)
    }

    /// Returns what commits come to, and the contents they carry.
    async fn fold(&self, taken: &[Taken]) -> Result<Folded, Trouble> {
        let mut folded = Folded {
            log: self.state.known.log.clone(),
            touched: BTreeSet::new(),
            contents: BTreeMap::new(),
            last: BTreeMap::new(),
        };
        for Taken { commit, .. } in taken {
            let unfit = |why: String| Trouble::Unfit { position: commit.position, why };
            for FileChange { locator, what } in &commit.changes {
                folded.touched.insert(locator.clone());
                let (hash, content) = match what {
                    What::Delete => {
                        let had = folded.log.files().get(locator).map(|content| content.hash);
                        let base = self.state.known.log.files().get(locator).map(|content| content.hash);
                        // What another device brought back and deleted again counts as well.
                        if let Some(had) = had.filter(|had| Some(*had) != base) {
                            folded.last.insert(locator.clone(), had);
                        }
                        continue;
                    }
                    What::Put { hash, content, .. } => (hash, self.carried(content).await?),
                    What::Append { base, hash, added, .. } => {
                        let base = match folded.contents.get(base) {
                            _ if has(Planted::AppendToAnything) => self.local(locator).await?,
                            Some(base) => Some(base.clone()),
                            None => self.state.kept(base).await.map_err(Trouble::Local)?,
                        };
                        let added = self.carried(added).await?;
                        let whole = base
                            .zip(added)
                            .map(|(base, added)| Bytes::from([&base[..], &added[..]].concat()));
                        (hash, whole)
                    }
                };
                let fits =
                    |content: &Bytes| ContentHash::of(content) == *hash || has(Planted::AppendToAnything);
                if let Some(content) = content.filter(fits) {
                    folded.contents.insert(*hash, content);
                }
            }
            folded.log.apply(commit).map_err(|why| unfit(why.to_string()))?;
        }
        Ok(folded)
    }

    async fn carried(&self, carried: &Carried) -> Result<Option<Bytes>, Trouble> {
        match carried {
            Carried::Inline(bytes) => Ok(Some(bytes.clone())),
            Carried::Object(hash) => self.remote.object(hash).await,
        }
    }

    async fn look(&mut self) -> Result<Found, Trouble> {
        scan::scan(&*self.files, &mut self.cache).await.map_err(Trouble::Local)
    }

    /// Returns the content of a base, from this take-in or from an earlier one.
    async fn content(&self, folded: &Folded, hash: &ContentHash) -> Result<Option<Bytes>, Trouble> {
        match folded.contents.get(hash) {
            Some(bytes) => Ok(Some(bytes.clone())),
            None => self.state.kept(hash).await.map_err(Trouble::Local),
        }
    }

    /// Turns a step into moves of working files.
    async fn prepare(
        &self,
        context: Context<'_>,
        step: &Step,
        their_device: &str,
        folded: &Folded,
        work: &mut Work,
        report: &mut Report,
    ) -> Result<(), Trouble> {
        match step {
            Step::Agree { .. } => {}
            Step::Take { locator, expected, theirs } => {
                self.put(locator, *expected, theirs, folded, work).await?;
            }
            Step::EditWins { locator, winner } => {
                report.edits_won.push(locator.clone());
                match winner {
                    Winner::Theirs(theirs) => self.put(locator, None, theirs, folded, work).await?,
                    Winner::Ours { last } => {
                        let base = self.state.known.log.files().get(locator).map(|content| content.hash);
                        let base = base.or_else(|| self.state.known.before.get(locator).copied());
                        if let Some(last) = last {
                            self.mix(context, locator, base, last, their_device, folded, work, report)
                                .await?;
                        }
                        let before = last.or(base);
                        let before = before.filter(|_| !has(Planted::StartIsForgotten));
                        work.before.extend(before.map(|before| (locator.to_string(), before)));
                    }
                }
            }
            Step::Remove { locator, expected, last } => {
                let moved =
                    Move { at: locator.to_string(), expected: Some(*expected), new: None, last: *last };
                work.moves.push(moved);
                work.contents.push(None);
            }
            Step::MakeWay { from, to, expected } => {
                let Some(ours) = self.local(from).await? else { return Ok(()) };
                if ContentHash::of(&ours) == *expected {
                    work.add(to, None, Some(ours));
                    work.add(from, Some(*expected), None);
                }
            }
            Step::Merge { locator, base, theirs, .. } => {
                self.mix(context, locator, *base, theirs, their_device, folded, work, report).await?;
            }
        }
        Ok(())
    }

    /// Merges a content of theirs into a working file.
    #[expect(clippy::too_many_arguments, reason = "all of it is what a merge is about")]
    async fn mix(
        &self,
        context: Context<'_>,
        locator: &Locator,
        base: Option<ContentHash>,
        theirs: &ContentHash,
        their_device: &str,
        folded: &Folded,
        work: &mut Work,
        report: &mut Report,
    ) -> Result<(), Trouble> {
        let Some(theirs) = self.content(folded, theirs).await? else {
            work.elsewhere.insert(locator.to_string());
            return Ok(());
        };
        // Read now: it may have changed since the look.
        let Some(ours) = self.local(locator).await? else {
            work.add(locator, None, Some(theirs));
            return Ok(());
        };
        let base = match base {
            Some(base) => self.content(folded, &base).await?,
            None => None,
        };
        let all = base.iter().chain([&ours, &theirs]).map(|bytes| &bytes[..]);
        let rule = Rule::of(locator, all);
        let sides = [
            Side { bytes: &ours, device: &context.author.device },
            Side { bytes: &theirs, device: their_device },
        ];
        let base = base.filter(|_| !has(Planted::Union));
        let mut merged = merge(rule, base.as_deref(), sides[0], sides[1]);
        if has(Planted::NewestWins) {
            merged.bytes = theirs.clone();
        }
        report.merged.push(locator.clone());
        if merged.both_kept {
            report.both_kept.push(locator.clone());
        }
        if let Some(copy) = merged.copy {
            apply::put_copy(&*self.files, locator, copy).await.map_err(Trouble::Local)?;
        }
        if merged.bytes != ours {
            // Both at hand if somebody changes the file once more while it is replaced.
            let expected = self.state.keep(&ours).await.map_err(Trouble::Local)?;
            self.state.keep(&merged.bytes).await.map_err(Trouble::Local)?;
            work.add(locator, Some(expected), Some(merged.bytes));
        }
        Ok(())
    }

    async fn put(
        &self,
        locator: &Locator,
        expected: Option<ContentHash>,
        theirs: &ContentHash,
        folded: &Folded,
        work: &mut Work,
    ) -> Result<(), Trouble> {
        match self.content(folded, theirs).await? {
            Some(content) => work.add(locator, expected, Some(content)),
            // The log names a content that is not to be had: the file is not here, which is no deletion.
            None => drop(work.elsewhere.insert(locator.to_string())),
        }
        Ok(())
    }

    async fn local(&self, locator: &Locator) -> Result<Option<Bytes>, Trouble> {
        match self.files.read(locator).await {
            Ok(object) => Ok(Some(object.bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Trouble::Local(error)),
        }
    }

    /// Publishes what differs; `None` if nothing does.
    async fn publish(
        &mut self,
        context: Context<'_>,
        store: StoreId,
        report: &mut Report,
    ) -> Result<Option<Settled>, Trouble> {
        let found = self.look().await?;
        let bases = self.state.known.bases();
        let mut pending = plan::pending(bases, &found.contents);
        report.held.clear();
        report.waiting_deletions.clear();
        match plan::judge_gone(bases, &found.contents, &pending) {
            Gone::Deleted => {}
            Gone::Ask if context.deletions == Deletions::Allowed => {}
            Gone::Ask => report.waiting_deletions = std::mem::take(&mut pending.deleted),
            Gone::Vanished if context.deletions == Deletions::Allowed => {}
            Gone::Vanished => return Err(Trouble::Vanished),
        }
        if pending.is_empty() {
            return Ok(None);
        }
        let changes = self.changes(context, &pending, report).await?;
        if changes.is_empty() {
            return Ok(None);
        }
        self.check_head().await?;
        let (position, previous) = self.next();
        let mark = self.state.known.log.mark_after(&changes);
        let mark = mark.map_err(|why| Trouble::Unfit { position, why: why.to_string() })?;
        let commit = Commit {
            store,
            position,
            id: CommitId::from_bytes(context.ids.next()),
            previous,
            replica: self.id(),
            device: context.author.device.clone(),
            agent: context.author.agent.clone(),
            session: context.author.session.clone(),
            time: context.clock.now(),
            cause: "sync".to_owned(),
            state: mark,
            changes,
            odd: Vec::new(),
        };
        let bytes = commit.encode().map_err(|why| Trouble::Unfit { position, why: why.to_string() })?;
        let publishing = Publishing { position, bytes };
        if !has(Planted::TriedBeforeFixed) {
            self.state.begin_publishing(&publishing).await.map_err(Trouble::Local)?;
        }
        self.settle(&publishing, FirstStep::Try).await.map(Some)
    }

    /// Makes sure that what the next commit is built on is still what it was.
    async fn check_head(&self) -> Result<(), Trouble> {
        let Some(head) = self.state.known.head else { return Ok(()) };
        match self.remote.at(head.position).await? {
            Some(bytes) if ContentHash::of(&bytes) == head.hash => Ok(()),
            _ => Err(Trouble::WentBack { position: head.position }),
        }
    }

    /// Returns what a commit says about the files that differ, as many as fit into one.
    async fn changes(
        &self,
        context: Context<'_>,
        pending: &Pending,
        report: &mut Report,
    ) -> Result<Vec<FileChange>, Trouble> {
        let mut changes = Vec::new();
        let mut inline = 0;
        for locator in &pending.changed {
            if changes.len() >= MAX_CHANGES || inline > MAX_INLINE_TOTAL {
                break;
            }
            let Some(bytes) = self.local(locator).await? else { continue };
            if let Some(why) = context.gate.holds(locator, &bytes) {
                report.held.push((locator.clone(), why));
                continue;
            }
            let base = self.state.known.log.files().get(locator).copied();
            let hash = self.state.keep(&bytes).await.map_err(Trouble::Local)?;
            if base.is_some_and(|base| base.hash == hash) {
                continue;
            }
            let size = bytes.len() as u64;
            let extended = match base {
                Some(base) if base.size > 0 && base.size < size => {
                    let kept = self.state.kept(&base.hash).await.map_err(Trouble::Local)?;
                    kept.filter(|kept| bytes.starts_with(kept)).map(|_| base)
                }
                _ => None,
            };
            let carry = match extended {
                Some(base) => bytes.slice(usize::try_from(base.size).unwrap_or(0)..),
                None => bytes,
            };
            let carried = if carry.len() <= MAX_INLINE_BYTES {
                inline += carry.len();
                Carried::Inline(carry)
            } else {
                Carried::Object(self.remote.put_object(&carry).await?)
            };
            let what = match extended {
                Some(base) => {
                    What::Append { base: base.hash, base_size: base.size, hash, size, added: carried }
                }
                None => What::Put { hash, size, content: carried },
            };
            changes.push(FileChange { locator: locator.clone(), what });
        }
        let room = MAX_CHANGES - changes.len();
        let deleted = pending.deleted.iter().take(room);
        changes.extend(deleted.map(|locator| FileChange { locator: locator.clone(), what: What::Delete }));
        Ok(changes)
    }
}

/// What is done first about a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstStep {
    Read,
    Try,
}

/// What commits come to.
struct Folded {
    log: log::State,
    touched: BTreeSet<Locator>,
    contents: BTreeMap<ContentHash, Bytes>,
    /// Of files that were deleted, what they held before, if it came with the same commits.
    last: BTreeMap<Locator, ContentHash>,
}

/// What is to be done to working files.
#[derive(Default)]
struct Work {
    moves: Vec<Move>,
    contents: Vec<Option<Bytes>>,
    /// Files whose content cannot be had.
    elsewhere: BTreeSet<String>,
    /// What files held that the log deleted and that stay here.
    before: BTreeMap<String, ContentHash>,
}

impl Work {
    fn add(&mut self, locator: &Locator, expected: Option<ContentHash>, new: Option<Bytes>) {
        let hash = new.as_ref().map(|bytes| ContentHash::of(bytes));
        self.moves.push(Move { at: locator.to_string(), expected, new: hash, last: None });
        self.contents.push(new);
    }
}
