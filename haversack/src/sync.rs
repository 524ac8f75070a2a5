//! Syncs one replica with the log: applies the commits of others, merges, and publishes the remaining differences.
//!
//! # Invariants
//! The five rules of the [`log`](crate::log), and where they are kept:
//!
//! 1. *Fixed before tried*: [`State::begin_publishing`] before [`Remote::attempt`] (`publish`).
//! 2. *Tried until known*: `Replica::settle` is the only place that ends a publishing; unless the position was created in front of its
//!    eyes, it reads it.
//! 3. *Built on everything*: a commit is made for the position after the last applied one, and names the commit that it was built on.
//!    That nothing else is there is what creating it proves.
//! 4. *A file and its base move together*: [`apply`] and [`State::advance`], under one record.
//! 5. *Pending is derived*: [`plan::pending`] compares the working files with the bases; nothing is queued.
//!
//! Each of them, and the promises above them, is attacked by the simulator (`haversack-sim: sync`).
//!
//! # Damage and hostile writers
//! - Damage in a remote (objects that are cut, changed, replaced or gone) harms no working file, and sync overwrites nothing. After a repair, sync continues
//!   (`sync::damage`).
//! - Derived data in the state is rebuilt. Other damaged state is refused with its cure, and the cure costs no more than
//!   a merge without base (`sync::damaged_state`).
//! - One bad name, size or object does not stop the rest, and is reported (`sync::hostile`).
//! - Local edits are merged with the files at the end of the log, never with a version in between
//!   (`sync::damaged_state::long_log_is_read_to_its_end_before_merging`).

mod apply;
mod batching;
mod dump;
mod fetch;
mod held;
mod incoming;
mod join;
mod mirror;
mod origin;
mod outgoing;
mod outlook;
mod patience;
mod places;
mod plan;
mod progress;
mod publish;
mod put_back;
mod read_once;
mod rebase;
mod rebuild;
mod rebuild_store;
mod relocate;
mod remote;
mod renames;
mod roll_ups;
mod scan;
mod scope;
mod shorten;
mod skip;
mod snapshot;
mod state;
mod sync_error;
mod take_in;
mod twins;
mod upkeep;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use haversack_store::{Backend, Bytes, ErrorKind, Guard, Locator, Version};

pub use self::batching::{Batching, Due};
pub use self::dump::{Dump, DumpedBase, DumpedPublishing, dump};
use self::join::Purpose;
pub use self::mirror::Mirrored;
pub use self::origin::{OneLog, Origin, Origins};
use self::outgoing::Judgement;
pub use self::outlook::{Agreement, Outlook, Underway, look, remote_files};
pub(crate) use self::outlook::{agreement, base_of, replica_of};
pub use self::patience::{Impatient, Patience};
use self::plan::{AbsenceReason, Pending};
pub use self::progress::{Progress, Quiet, Stage};
use self::publish::{Published, Remainder, Settled};
pub(crate) use self::read_once::ReadOnce;
pub use self::rebuild_store::{Rebuilt, rebuild};
pub use self::relocate::{Moved, move_store};
pub(crate) use self::remote::{MAX_TRIES, Remote, patiently};
pub(crate) use self::scan::VERSION as NEWEST_STAT_CACHE;
use self::scan::{Found, StatCache};
pub use self::scope::Scope;
pub(crate) use self::snapshot::VERSION as NEWEST_SNAPSHOT;
use self::state::{Advance, BaseLine, State};
pub(crate) use self::state::{NEWEST_IDENTITY, NEWEST_JOURNAL};
pub use self::state::{forget, has_left, leave, return_to};
pub use self::sync_error::{SyncError, SyncErrorKind};
use self::take_in::Taking;
pub use self::upkeep::Intervals;
use crate::clock::Clock;
use crate::growth::Growth;
use crate::ids::{ContentHash, Ids, Position, ReplicaId, StoreId};
use crate::log::{Commit, Files, StoreFile};
use crate::names;
pub(crate) use crate::planted;
use crate::planted::{Planted, has};

/// Returns which store is in a remote, if there is one, and changes nothing.
pub async fn store_at(
    remote: Arc<dyn Backend>,
    patience: &dyn Patience,
) -> Result<Option<StoreFile>, SyncError> {
    Remote::new(remote).store_file(patience).await
}

/// Returns why a remote that holds another store cannot be synced with.
fn other_store(expected: StoreId, file: &StoreFile) -> SyncError {
    let found = file.store;
    match &file.predecessor {
        Some(predecessor) if predecessor.store == expected => {
            SyncError::Rebuilt { expected, found, device: file.name.clone() }
        }
        _ => SyncError::OtherStore { expected, found },
    }
}

/// The lock that a sync holds; never waited for.
const SYNC_LOCK: &str = "sync";

/// The most times that a sync starts over because another device published first.
const MAX_ROUNDS: usize = 64;

/// The most commits that one sync publishes. The next sync sends the rest.
const MAX_COMMITS: usize = 1024;

/// Says which files stay on this device.
///
/// It is asked about every content before any byte of it goes to a remote, and about nothing that is there already.
pub trait Gate: Send + Sync {
    /// Returns why a content may not be sent; `None` if it may.
    fn holds(&self, locator: &Locator, content: &[u8]) -> Option<Hold>;

    /// Returns the same for a file that the remote has with another content: secrets in that content are known to the remote already.
    fn still_holds(&self, locator: &Locator, content: &[u8], sent: &[u8]) -> Option<Hold> {
        let _ = sent;
        self.holds(locator, content)
    }

    /// Returns true if it holds nothing, whatever a content is.
    fn holds_nothing(&self) -> bool {
        false
    }
}

/// Why a file stays on this device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hold {
    /// Why, for people.
    pub why: String,
    /// The lines it is about, the first is 1; none if it is about the whole file.
    pub lines: Vec<usize>,
}

impl Hold {
    /// Returns a hold on the whole file.
    pub fn whole(why: impl Into<String>) -> Hold {
        Hold { why: why.into(), lines: Vec::new() }
    }

    /// Returns a hold because of some lines.
    pub fn lines(why: impl Into<String>, lines: Vec<usize>) -> Hold {
        Hold { why: why.into(), lines }
    }
}

/// Lets everything pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

impl Gate for Open {
    fn holds(&self, _: &Locator, _: &[u8]) -> Option<Hold> {
        None
    }

    fn holds_nothing(&self) -> bool {
        true
    }
}

/// The author of a commit, as the history shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// The device's name.
    pub device: String,
    /// The agent's name.
    pub agent: Option<String>,
    /// The session of the agent.
    pub session: Option<String>,
}

/// The parameters of a sync.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The time, for display.
    pub clock: &'a dyn Clock,
    /// The source of new ids.
    pub ids: &'a dyn Ids,
    /// The author of this sync's commits. Signed changes keep the name of their writer.
    pub author: &'a Author,
    /// Decides which files stay on this device.
    pub gate: &'a dyn Gate,
    /// Decides how long to wait for a remote, and when to stop.
    pub patience: &'a dyn Patience,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
    /// The treatment of very many deletions at once.
    pub deletions: Deletions,
    /// The replicas of this home: their deletions count as this user's.
    pub own_replicas: &'a BTreeSet<ReplicaId>,
    /// The most that one sync receives.
    pub budget: Budget,
    /// The treatment of files that people put beside the log.
    pub foreign: ForeignFiles,
    /// When files that are new here are fetched.
    pub fetching: Fetching,
    /// The intervals at which the log is folded.
    pub intervals: Intervals,
    /// The reason for the sync, for readers of the history.
    pub cause: &'a str,
    /// Finds the origin of plain objects that differ from the log.
    pub origins: &'a dyn Origins,
    /// The state with the signatures of writers. Without it, all changes are attributed to the author of this sync.
    pub signed: Option<&'a dyn Backend>,
    /// The state that holds the [archive](crate::history::archive) of commits: the manifest takes the times of files from it.
    pub archive: Option<&'a dyn Backend>,
    /// The number of plain objects to update before the manifest is written.
    pub mirrored_at_once: usize,
    /// The way to ask the remote for new commits.
    pub asking: Asking,
}

/// The way to ask the remote for new commits: one request in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Read the next position. The cheapest request; a remote that was wiped looks like one that has nothing new.
    ForNext,
    /// List the log from its last known position on, which must be there: this notices a remote that was wiped, went back or holds another
    /// store.
    FromLast,
}

impl<'a> Context<'a> {
    /// Returns what most syncs are given: everything is sent and fetched, many deletions wait, and a remote that does not answer is left alone.
    pub fn new(clock: &'a dyn Clock, ids: &'a dyn Ids, author: &'a Author) -> Context<'a> {
        Context {
            clock,
            ids,
            author,
            gate: &Open,
            patience: &Impatient,
            progress: &Quiet,
            deletions: Deletions::Cautious,
            own_replicas: const { &BTreeSet::new() },
            budget: Budget::default(),
            foreign: ForeignFiles::AtOurPlaces,
            fetching: Fetching::Now,
            intervals: Intervals::default(),
            cause: "sync",
            origins: &OneLog,
            signed: None,
            archive: None,
            mirrored_at_once: usize::MAX,
            asking: Asking::ForNext,
        }
    }
}

/// The cause of a commit with files that existed before their replica first synced. No user edited them, so there is nothing to
/// undo.
pub const IMPORT: &str = "import";

/// The treatment of files that people put beside the log: which of them become edits of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignFiles {
    /// Files at places of the memory; others are left alone and reported.
    AtOurPlaces,
    /// All files. The simulator checks with this that no edit is lost: it has no files but memory.
    Anywhere,
}

/// The most that one sync receives: a hostile writer in the remote must not fill this device's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Files that others made or changed.
    pub files: u64,
    /// Their bytes, as the log names them.
    pub bytes: u64,
}

impl Default for Budget {
    /// Returns a budget without limits.
    fn default() -> Budget {
        Budget { files: u64::MAX, bytes: u64::MAX }
    }
}

/// The treatment of very many deletions at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletions {
    /// They wait for the user's answer.
    Cautious,
    /// They are.
    Allowed,
}

/// When files that are new here are fetched.
///
/// An unfetched file is not absent: it cannot be deleted here, and a new file with its name is merged with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetching {
    /// With the sync that brings them.
    Now,
    /// When a caller asks for them ([`Replica::fetch`]). Contents inside a commit are still written at once.
    WhenAsked,
}

/// Decides if the store's files are also kept as plain objects beside the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mirror {
    /// They are, for people and other tools.
    On,
    /// They are not.
    Off,
}

/// The result of a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of commits of others that were applied.
    pub taken: usize,
    /// The number of published commits.
    pub published: usize,
    /// The number of fetched files that others had made before this device joined.
    pub fetched: usize,
    /// Files that both sides had changed.
    pub merged: Vec<Locator>,
    /// Of those, the ones in which both sides' text was kept.
    pub both_kept: Vec<Locator>,
    /// Files whose edit won over a deletion.
    pub edits_won: Vec<Locator>,
    /// Files that stay on this device, and why.
    pub held: Vec<(Locator, Hold)>,
    /// Files that could not be written here: this disk cannot hold the name, or something that is no writable file is in the way.
    pub refused: Vec<Locator>,
    /// Places where files are that could not be looked at, and why: they count as they were.
    pub unseen: Vec<(Locator, String)>,
    /// Files whose content the remote does not have.
    pub missing: Vec<Locator>,
    /// Deletions that wait for the user's answer.
    pub waiting_deletions: Vec<Locator>,
    /// Files that other devices deleted, very many at once: they stay here until the user decides.
    pub held_deletions: Vec<Locator>,
    /// Files that a person had changed in the mirror by hand.
    pub foreign: Vec<Locator>,
    /// Plain objects at places that are not ours: they were left alone.
    pub unrelated: Vec<Locator>,
    /// Plain copies that were not written, because an object that we did not write is in their place.
    pub not_mirrored: Vec<Locator>,
    /// Plain objects that differ from the log, and whose origin is not known yet.
    pub awaited: Vec<(Locator, ContentHash)>,
    /// Refused names in the log or the mirror, made printable, each with the reason.
    pub odd: Vec<(String, String)>,
    /// True if the sync ended because its time was over. Finished parts are complete.
    pub out_of_time: bool,
    /// Why the log was not folded though it should have been: it is tried again later.
    pub not_folded: Option<String>,
}

/// One directory of working files, and the log it follows.
#[derive(Debug)]
pub struct Replica {
    files: Arc<dyn Backend>,
    state: State,
    remote: Remote,
    cache: StatCache,
    scope: Scope,
    recent: Vec<Recent>,
    /// Objects of the mirror that the last reconcile found to be stale.
    stale_objects: BTreeSet<Locator>,
    /// Conflict copies in the mirror that we merged, and remove once other devices can read so.
    merged_copies: BTreeMap<Locator, Version>,
    /// Locators that the last scan could not read, each with the reason.
    unseen: Vec<(Locator, String)>,
    /// The amount that this sync has received.
    received: Budget,
    /// The growth of files that the last scan did not read.
    growths: BTreeMap<Locator, Growth>,
    /// True while everything is checked again: then every file is read.
    reads_all: bool,
    /// True while this replica syncs for the first time: its files were there before.
    is_first_sync: bool,
    _lock: Guard,
}

/// A commit that was applied or published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// Its position in the log.
    pub position: Position,
    /// Whose it is.
    pub replica: ReplicaId,
    /// The files that it changed.
    pub files: Vec<Locator>,
    /// The encoded commit. Of very many commits, only the newest have it.
    pub bytes: Option<Bytes>,
}

impl Recent {
    fn new(commit: &Commit, bytes: Bytes) -> Recent {
        let files = commit.changes.iter().map(|change| change.locator.clone()).collect();
        Recent { position: commit.position, replica: commit.replica, files, bytes: Some(bytes) }
    }

    /// Returns its position with its bytes, if they are still here.
    pub fn read(self) -> Option<(Position, Bytes)> {
        Some((self.position, self.bytes?))
    }
}

/// The most bytes of commits that a replica holds for [`Replica::take_recent`].
const MAX_RECENT_BYTES: usize = 16 * 1024 * 1024;

/// Selects the changes of this device to send.
#[derive(Clone, Copy, Debug)]
enum Sending<'a> {
    All,
    One(&'a Locator),
    Nothing,
}

impl Replica {
    /// Opens a replica for one sync or several; no other process can sync it at the same time.
    pub async fn open(
        files: Arc<dyn Backend>,
        state: Arc<dyn Backend>,
        remote: Arc<dyn Backend>,
        ids: &dyn Ids,
    ) -> Result<Replica, SyncError> {
        Replica::open_within(files, state, remote, ids, Duration::ZERO).await
    }

    /// Opens a replica, and waits at most `lock_wait` for another process that syncs it.
    pub async fn open_within(
        files: Arc<dyn Backend>,
        state: Arc<dyn Backend>,
        remote: Arc<dyn Backend>,
        ids: &dyn Ids,
        lock_wait: Duration,
    ) -> Result<Replica, SyncError> {
        let lock = match state.lock(SYNC_LOCK, lock_wait).await {
            Ok(lock) => lock,
            Err(_) if has(Planted::NoSyncLock) => Guard::new(()),
            Err(error) if error.kind() == ErrorKind::Busy => return Err(SyncError::Busy),
            Err(error) => return Err(SyncError::Local(error)),
        };
        let state = State::load(state, ids).await.map_err(SyncError::Local)?;
        let cache = state.cache().await.map_err(SyncError::Local)?;
        let (scope, recent) = (Scope::default(), Vec::new());
        let (remote, stale_objects, merged_copies) = (Remote::new(remote), BTreeSet::new(), BTreeMap::new());
        let (unseen, received) = (Vec::new(), Budget { files: 0, bytes: 0 });
        let is_first_sync = !state.has_begun().await.map_err(SyncError::Local)?;
        Ok(Replica {
            files,
            state,
            remote,
            cache,
            scope,
            recent,
            stale_objects,
            merged_copies,
            unseen,
            received,
            growths: BTreeMap::new(),
            reads_all: false,
            is_first_sync,
            _lock: lock,
        })
    }

    /// Restricts the replica to a part of the store.
    pub fn with_scope(self, scope: Scope) -> Replica {
        Replica { scope, ..self }
    }

    /// Returns the replica's id.
    pub fn id(&self) -> ReplicaId {
        self.state.identity.replica
    }

    /// Returns the last applied position.
    pub fn position(&self) -> Option<Position> {
        self.state.known.head.as_ref().map(|head| head.position)
    }

    /// Returns the store that the replica follows, once it was met.
    pub fn store(&self) -> Option<StoreId> {
        self.state.known.store
    }

    /// Returns the log's files at the last applied position.
    pub fn log_files(&self) -> &Files {
        self.state.known.log.files()
    }

    /// Returns the commits that were applied or published since the last call.
    pub fn take_recent(&mut self) -> Vec<Recent> {
        std::mem::take(&mut self.recent)
    }

    fn note_recent(&mut self, commits: impl IntoIterator<Item = Recent>) {
        self.recent.extend(commits);
        let mut total = 0;
        for recent in self.recent.iter_mut().rev() {
            total += recent.bytes.as_ref().map_or(0, Bytes::len);
            if total > MAX_RECENT_BYTES {
                recent.bytes = None;
            }
        }
    }

    /// Returns the files of the log that were not fetched yet.
    pub fn unfetched(&self) -> Vec<Locator> {
        self.absent(AbsenceReason::Unfetched)
    }

    /// Applies new commits, and publishes the remaining differences.
    pub async fn sync(&mut self, context: Context<'_>) -> Result<Report, SyncError> {
        self.run(context, Sending::All).await
    }

    /// Applies new commits, and publishes nothing.
    pub async fn pull(&mut self, context: Context<'_>) -> Result<Report, SyncError> {
        self.run(context, Sending::Nothing).await
    }

    /// Publishes one file, after applying new commits.
    pub async fn push_one(&mut self, context: Context<'_>, locator: &Locator) -> Result<Report, SyncError> {
        self.run(context, Sending::One(locator)).await
    }

    /// Checks everything again: all files here, all objects of the mirror, contents that were missing before, and objects that are not needed any more.
    pub async fn reconcile(&mut self, context: Context<'_>, mirror: Mirror) -> Result<Report, SyncError> {
        let mut report = Report::default();
        self.cache = StatCache::default();
        self.reads_all = true;
        self.check_store(context).await?;
        self.rounds(context, Sending::All, &mut report).await?;
        self.state.begin().await.map_err(SyncError::Local)?;
        for why in [AbsenceReason::Refused, AbsenceReason::Missing] {
            self.materialise(context, &self.absent(why), Purpose::Asked, &mut report).await?;
        }
        if mirror == Mirror::On {
            // Read the manifest before listing: an object that another device adds in between is then new, not missing.
            let manifest = self.mirror_manifest(context).await?;
            let listing = self.list_mirror(context).await?;
            self.stale_objects = self.import_edits(context, &manifest, &listing, &mut report).await?;
            self.import_copies(context, &listing, &mut report).await?;
            self.rounds(context, Sending::All, &mut report).await?;
            report.not_mirrored = self.mirror(context).await?.foreign;
        }
        report.not_folded = self.upkeep(context).await.err().map(|trouble| trouble.to_string());
        self.compact(context).await?;
        // If it fails, the next full sync continues.
        if let Err(trouble) = self.shorten(context).await {
            report.not_folded.get_or_insert(trouble.to_string());
        }
        self.state.collect().await.map_err(SyncError::Local)?;
        self.state.save_cache(&mut self.cache).await.map_err(SyncError::Local)?;
        self.reads_all = false;
        self.name_what_stays(&mut report);
        Ok(report)
    }

    /// Makes sure that the remote is still the one it was, and whole as far as it can be seen.
    async fn check_store(&self, context: Context<'_>) -> Result<(), SyncError> {
        let Some(expected) = self.state.known.store else { return Ok(()) };
        match self.remote.store_file(context.patience).await? {
            Some(file) if file.store != expected => Err(other_store(expected, &file)),
            _ => self.log_tail(context).await.map(drop),
        }
    }

    /// Fetches files that were not fetched when the log was applied.
    pub async fn fetch(&mut self, context: Context<'_>, locators: &[Locator]) -> Result<Report, SyncError> {
        let mut report = Report::default();
        self.finish_applying(context, &mut report).await?;
        self.materialise(context, locators, Purpose::Asked, &mut report).await?;
        Ok(report)
    }

    async fn run(&mut self, context: Context<'_>, sending: Sending<'_>) -> Result<Report, SyncError> {
        let mut report = Report::default();
        self.rounds(context, sending, &mut report).await?;
        if matches!(sending, Sending::All) && !report.out_of_time {
            self.state.begin().await.map_err(SyncError::Local)?;
        }
        if report.published > 0 {
            report.not_folded = self.upkeep(context).await.err().map(|trouble| trouble.to_string());
        }
        if self.cache.is_worth_writing() {
            self.state.save_cache(&mut self.cache).await.map_err(SyncError::Local)?;
        }
        report.unseen = std::mem::take(&mut self.unseen);
        self.name_what_stays(&mut report);
        Ok(report)
    }

    /// Names the files that are not as the log says, for as long as that is so.
    fn name_what_stays(&self, report: &mut Report) {
        report.held.sort_by(|(one, _), (other, _)| one.cmp(other));
        report.held_deletions = self.state.known.held.iter().cloned().collect();
        // A file of the log with a name that is refused everywhere is reported as odd.
        let refused = self.absent(AbsenceReason::Refused).into_iter();
        let refused = refused.filter(|locator| !self.state.known.log.odd().contains_key(locator.as_str()));
        report.refused.extend(refused);
        report.refused.sort_unstable();
        report.refused.dedup();
    }

    async fn rounds(
        &mut self,
        context: Context<'_>,
        sending: Sending<'_>,
        report: &mut Report,
    ) -> Result<(), SyncError> {
        self.received = Budget { files: 0, bytes: 0 };
        self.is_first_sync = !self.state.has_begun().await.map_err(SyncError::Local)?;
        self.finish_applying(context, report).await?;
        self.rescope().await?;
        self.let_held_go(context, report).await?;
        let store = self.meet(context).await?;
        self.finish_publishing(context, store).await?;
        // The commit of a killed process may hold files that have left the scope since: their absence here is no deletion.
        self.rescope().await?;
        if self.state.known.head.is_none() {
            self.join(context, store, report).await?;
        }
        if context.fetching == Fetching::Now {
            self.fetch_new(context, report).await?;
        }
        // True if there was nothing, a moment ago, after the last position that was applied or created.
        let mut is_newest = false;
        let mut rounds = 0;
        while rounds < MAX_ROUNDS {
            if !context.patience.has_time() || report.published >= MAX_COMMITS {
                report.out_of_time = true;
                return Ok(());
            }
            let mut seen = None;
            let published = self.publish(context, store, sending, &mut seen, report).await?;
            match published {
                Published::Ours { settled, left } => {
                    report.published += 1;
                    is_newest = settled == Settled::Created;
                    // A later edit belongs to the next sync.
                    match is_newest && left == Remainder::Nothing {
                        true => return Ok(()),
                        false => continue,
                    }
                }
                Published::Gone if rounds + 1 < MAX_ROUNDS => {
                    rounds += 1;
                    continue;
                }
                Published::Nothing | Published::Gone if is_newest => return Ok(()),
                Published::Behind | Published::Nothing | Published::Gone => {}
            }
            rounds += 1;
            let context = match published {
                // The next position is taken, even if a listing does not show it.
                Published::Behind => Context { asking: Asking::ForNext, ..context },
                Published::Ours { .. } | Published::Nothing | Published::Gone => context,
            };
            let taken = self.take_in(context, store, seen, report).await?;
            is_newest = taken != Taking::Nothing;
            // If nothing differed before, and the incoming commits contained nothing of ours, nothing differs now.
            if taken != Taking::Mixed && published != Published::Behind {
                return Ok(());
            }
        }
        Err(SyncError::Outrun)
    }

    /// Returns which store the remote holds; once that is known, every commit says it.
    async fn meet(&self, context: Context<'_>) -> Result<StoreId, SyncError> {
        match self.state.known.store {
            Some(store) => Ok(store),
            None => {
                let Context { patience, clock, ids, author, .. } = context;
                self.remote.meet(patience, clock, ids, &names::harmless(&author.device)).await
            }
        }
    }

    async fn look(&mut self) -> Result<Found, SyncError> {
        let found = scan::scan(&*self.files, &mut self.cache, &self.growths).await;
        let mut found = found.map_err(SyncError::Local)?;
        self.growths.retain(|locator, _| found.grown.contains(locator));
        found.contents.retain(|locator| self.scope.contains(locator));
        found.keep_unseen(self.state.known.bases());
        self.unseen.clone_from(&found.unseen);
        Ok(found)
    }

    /// Looks for what differs from the bases; a directory that vanished is no deletion.
    ///
    /// Deletions that wait for the user's answer are in [`Pending::waiting`].
    async fn look_for_changes(&mut self, context: Context<'_>) -> Result<(Found, Pending), SyncError> {
        let before = self.cache.len();
        let found = self.look().await?;
        let mut pending = plan::pending(self.state.known.bases(), &found.contents);
        if context.deletions == Deletions::Cautious && !has(Planted::AbsenceIsMassDeletion) {
            let now = context.clock.now();
            let judged = outgoing::look(&self.state, now, context.signed, &found.contents, &pending).await;
            match judged.map_err(SyncError::Local)? {
                Judgement::Vanished => return Err(SyncError::Vanished),
                // Files that the log does not know yet do not disappear all at once by themselves either.
                Judgement::Waiting(..)
                    if before > 1 && found.contents.is_empty() && pending.deleted.is_empty() =>
                {
                    return Err(SyncError::Vanished);
                }
                Judgement::Waiting(waiting, record) => pending.wait(waiting, record),
            }
        }
        Ok((found, pending))
    }

    /// Lets go of the files outside of the replica's scope, because they are about to be moved to another directory: from then on their
    /// absence is no deletion, also if they come back into the scope. Returns false if a killed process left work that the next sync has to
    /// finish first.
    pub(crate) async fn let_go(&mut self) -> Result<bool, SyncError> {
        if self.state.applying().await.map_err(SyncError::Local)?.is_some() {
            return Ok(false);
        }
        self.rescope().await?;
        // A directory that is empty after the move did not vanish.
        self.cache = StatCache::default();
        self.state.save_cache(&mut self.cache).await.map_err(SyncError::Local)?;
        Ok(true)
    }

    /// Lets go of files that are not in the replica's scope any more, and asks for those that are now.
    async fn rescope(&mut self) -> Result<(), SyncError> {
        let known = &self.state.known;
        let (Some(store), Some(head)) = (known.store, known.head.clone()) else { return Ok(()) };
        if self.scope.is_everything() && known.absent.values().all(|why| *why != AbsenceReason::Unbound) {
            return Ok(());
        }
        let moved = known.log.files().entries().filter_map(|entry| {
            let now = known.absent.get(entry.name).copied();
            let then = match (self.scope.holds(entry.name), now == Some(AbsenceReason::Unbound)) {
                (true, true) => AbsenceReason::Unfetched,
                (false, false) => AbsenceReason::Unbound,
                (true, false) | (false, true) => return None,
            };
            let is_deleted = then == AbsenceReason::Unfetched && has(Planted::UnbindingDeletes);
            Some(BaseLine {
                absent: Some(then).filter(|_| !is_deleted),
                foreign: known.foreign.get(entry.name).copied(),
                ..BaseLine::new(entry.name, Some(entry.content))
            })
        });
        let bases: Vec<BaseLine> = moved.collect();
        if bases.is_empty() {
            return Ok(());
        }
        let advance = Advance { store, head, mark: known.log.mark(), attempt: None, joined: None, bases };
        self.state.advance(&advance).await.map_err(SyncError::Local)
    }

    /// Counts the next received files and bytes; stops before they exceed the budget.
    fn receive(&mut self, context: Context<'_>, files: u64, bytes: u64) -> Result<(), SyncError> {
        self.received.files = self.received.files.saturating_add(files);
        self.received.bytes = self.received.bytes.saturating_add(bytes);
        let Budget { files, bytes } = context.budget;
        match self.received.files > files || self.received.bytes > bytes {
            true => Err(SyncError::TooMuch { received: self.received, budget: context.budget }),
            false => Ok(()),
        }
    }

    fn absent(&self, why: AbsenceReason) -> Vec<Locator> {
        let absent = self.state.known.absent.iter();
        absent.filter(|(_, found)| **found == why).map(|(locator, _)| locator.clone()).collect()
    }

    async fn local(&self, locator: &Locator) -> Result<Option<Bytes>, SyncError> {
        match self.files.read(locator).await {
            Ok(object) => Ok(Some(object.bytes)),
            // A directory is no file.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => Ok(None),
            Err(error) => Err(SyncError::Local(error)),
        }
    }
}
