//! Brings what is in one storage to another: plain objects, copied and read back.
//!
//! [`survey`] looks at both sides and returns a [`Plan`]; [`apply`] carries it out. What Haversack keeps for itself (`.haversack/`, its
//! `manifest.json`) is no part of it: a store's log is carried by syncing, not by copying.
//!
//! # Invariants
//! - A source is only read (`migrate::the_source_is_not_touched`).
//! - Nothing in the target is replaced: objects are created only where nothing is, and what appears there meanwhile stays
//!   (`migrate::object_that_appears_during_migration_is_not_replaced`).
//! - An object counts as copied if it was read back from the target with the hash of the source
//!   (`migrate::object_that_cannot_be_read_back_is_no_copy`).
//! - Running it again goes on: what is there already is compared and skipped, wherever the last run ended
//!   (`migrate::it_can_end_anywhere_and_goes_on`).
//! - One object that fails does not keep the others from being copied; it is in the report with its reason. Only a storage that fails
//!   again and again is left alone (`migrate::unreachable_storage_is_given_up_early`).
//! - Files of operational state at the top of a source without a prefix (`watched_chats`, cursors) go to `state/`
//!   (`plan::operational_state_goes_to_its_directory`).
//! - Every content is shown to the gate before it is sent, and again if it was read again (`migrate::the_gate_sees_what_is_sent`).

mod index;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt, stream};
use haversack_store::{
    Backend, BackendExt, Bytes, Condition, Error as StoreError, ErrorKind, Locator, Result as StoreResult,
};

pub use self::index::{Indexed, write_manifest};
use self::plan::placed;
pub use self::plan::{Found, MAX_OBJECT_BYTES, Plan, Step, plan};
use crate::ids::ContentHash;
use crate::manifest::Manifest;
use crate::sync::{Gate, MAX_TRIES, Patience, Progress, Stage, patiently};

/// The most objects under way at a time.
const MAX_AT_ONCE: usize = 16;

/// Larger objects are under way one at a time: all of one is held in memory, and again when it is read back.
const MAX_BYTES_TOGETHER: u64 = 4 * 1024 * 1024;

/// The most objects that may fail in a row because a storage does not answer. After that, the rest is skipped.
const MAX_FAILURES_IN_A_ROW: usize = 16;

/// A source of objects.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its storage.
    pub backend: Arc<dyn Backend>,
    /// The directory for its objects in the target.
    pub prefix: Locator,
}

/// The parameters of a migration.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Decides which objects may not leave; `None` if all may.
    pub gate: Option<&'a dyn Gate>,
    /// Decides how long to wait for a storage.
    pub patience: &'a dyn Patience,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
}

/// Something that is left where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The number of its source.
    pub source: usize,
    /// Its name in the target, or in the source if it cannot have a name in the target; printable.
    pub name: String,
    /// Why.
    pub why: Why,
}

/// Why something is left where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It may not leave.
    Held(String),
    /// The target has something else of that name, and nothing is replaced.
    Different,
    /// No storage, or not every disk, could hold the name.
    Name(String),
    /// It is larger than [`MAX_OBJECT_BYTES`].
    TooLarge {
        /// Its size.
        size_bytes: u64,
    },
    /// A storage failed.
    Failed(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Held(why) => write!(f, "held back, {why}"),
            Why::Different => f.write_str("something else has that name in the target"),
            Why::Name(why) | Why::Failed(why) => f.write_str(why),
            Why::TooLarge { .. } => write!(f, "it is larger than {} GiB", MAX_OBJECT_BYTES >> 30),
        }
    }
}

/// The result of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The copied objects, by their names in the target.
    pub copied: Vec<Locator>,
    /// Their number of bytes.
    pub bytes_copied: u64,
    /// The number of objects that were already there with the same content.
    pub skipped: usize,
    /// The objects that were not copied.
    pub left: Vec<Skipped>,
}

impl Report {
    /// Returns true if everything is in the target.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty()
    }
}

/// Looks at what the sources have and what the target holds, and decides what would be done; changes nothing.
///
/// A source or target that cannot be looked at is an error: it is not empty.
pub async fn survey(sources: &[Source], target: &dyn Backend, context: Context<'_>) -> StoreResult<Plan> {
    let root = Locator::root();
    let mut found = Vec::new();
    let mut odd = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let page = patiently(context.patience, || source.backend.scan_all(&root)).await?;
        let manifest = manifest_of_others(&*source.backend, context).await?;
        let infos = page.infos.iter().map(|info| (info.locator.clone(), info.size_bytes));
        let of_source: BTreeMap<Locator, u64> = infos.chain(manifest).collect();
        // A name that is told of but served as well is judged by the plan.
        let not_served = page.odd.into_iter().filter(|odd| !of_source.contains_key(odd.shown.as_str()));
        odd.extend(not_served.map(|odd| Skipped {
            source: number,
            name: odd.shown,
            why: Why::Name(odd.why),
        }));
        found.extend(of_source.into_iter().map(|(locator, size_bytes)| Found {
            source: number,
            locator,
            size_bytes,
            held: None,
        }));
    }
    if let Some(gate) = context.gate {
        show_to_gate(sources, &mut found, gate, context).await;
    }
    let mut there = BTreeMap::new();
    let prefixes: BTreeSet<&Locator> = sources.iter().map(|source| &source.prefix).collect();
    for prefix in &prefixes {
        if prefixes.iter().any(|other| prefix.is_within(other) && other != prefix) {
            continue;
        }
        let page = patiently(context.patience, || target.scan_all(prefix)).await?;
        there.extend(page.infos.into_iter().map(|info| (info.locator, info.size_bytes)));
    }
    let prefixes: Vec<Locator> = sources.iter().map(|source| source.prefix.clone()).collect();
    let mut plan = plan(&prefixes, &found, &there);
    odd.sort_by(|one, other| (one.source, &one.name).cmp(&(other.source, &other.name)));
    plan.left.splice(0..0, odd);
    Ok(plan)
}

/// Carries a plan out; goes on whatever happens to one object.
pub async fn apply(sources: &[Source], target: &dyn Backend, plan: Plan, context: Context<'_>) -> Report {
    let mut report = Report { left: plan.left, ..Report::default() };
    let work = Work {
        sources,
        target,
        context,
        total: plan.copies.len() + plan.compares.len(),
        done: AtomicUsize::new(0),
        failures: AtomicUsize::new(0),
    };
    // The copy of another source may be the object that is compared.
    for (steps, how) in [(plan.copies, How::Copy), (plan.compares, How::Compare)] {
        let (small, large): (Vec<_>, Vec<_>) =
            steps.into_iter().partition(|step| step.size_bytes <= MAX_BYTES_TOGETHER);
        for (steps, at_once) in [(small, MAX_AT_ONCE), (large, 1)] {
            let under_way = steps.into_iter().map(|step| work.start(step, how));
            let mut ended = stream::iter(under_way).buffered(at_once);
            while let Some((step, outcome)) = ended.next().await {
                match outcome {
                    Ok(Outcome::Copied(bytes)) => {
                        report.bytes_copied += bytes;
                        report.copied.push(step.to);
                    }
                    Ok(Outcome::Same) => report.skipped += 1,
                    Err(why) => {
                        report.left.push(Skipped { source: step.source, name: step.to.to_string(), why });
                    }
                }
            }
        }
    }
    report.copied.sort();
    report
}

/// Something that is under way.
type UnderWay<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Copy,
    Compare,
}

/// The result for an object that is in the target now.
enum Outcome {
    Copied(u64),
    Same,
}

/// Data that all steps of a migration share.
struct Work<'a> {
    sources: &'a [Source],
    target: &'a dyn Backend,
    context: Context<'a>,
    total: usize,
    done: AtomicUsize,
    /// The number of failures in a row because a storage did not answer.
    failures: AtomicUsize,
}

impl Work<'_> {
    fn start(&self, step: Step, how: How) -> UnderWay<'_, (Step, Result<Outcome, Why>)> {
        Box::pin(async move {
            let outcome = self.carry_out(&step, how).await;
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            self.context.progress.at(Stage::Copying, done, Some(self.total));
            (step, outcome)
        })
    }

    async fn carry_out(&self, step: &Step, how: How) -> Result<Outcome, Why> {
        if self.failures.load(Ordering::Relaxed) >= MAX_FAILURES_IN_A_ROW {
            return Err(Why::Failed("it was not tried: the storage failed again and again".to_owned()));
        }
        let outcome = match how {
            How::Copy => self.copy(step).await,
            How::Compare => self.compare(step).await,
        };
        match &outcome {
            Err(SyncError::Storage(error)) if is_about_the_storage(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) | Err(_) => self.failures.store(0, Ordering::Relaxed),
        }
        outcome.map_err(|trouble| match trouble {
            SyncError::Storage(error) => Why::Failed(explain(&error)),
            SyncError::Known(why) => why,
        })
    }

    async fn read(&self, step: &Step) -> Result<Bytes, SyncError> {
        let Some(source) = self.sources.get(step.source) else {
            return Err(SyncError::Known(Why::Failed("there is no such source".to_owned())));
        };
        let read = || source.backend.read(&step.from);
        Ok(patiently(self.context.patience, read).await.map_err(SyncError::Storage)?.bytes)
    }

    /// Returns the hash of what the target holds; `None` if it holds nothing.
    async fn there(&self, step: &Step) -> Result<Option<ContentHash>, SyncError> {
        match patiently(self.context.patience, || self.target.read(&step.to)).await {
            Ok(object) => Ok(Some(ContentHash::of(&object.bytes))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SyncError::Storage(error)),
        }
    }

    async fn copy(&self, step: &Step) -> Result<Outcome, SyncError> {
        let bytes = self.read(step).await?;
        if let Some(why) =
            self.context.gate.and_then(|gate| gate.holds(&step.to, &bytes)).map(|hold| hold.why)
        {
            return Err(SyncError::Known(Why::Held(why)));
        }
        let hash = ContentHash::of(&bytes);
        let copied = Outcome::Copied(bytes.len() as u64);
        let mut may_be_ours = false;
        let mut repetition = 0;
        let mut tries = 0;
        loop {
            let written = self.target.write(&step.to, bytes.clone(), Condition::Absent).await;
            let trouble = match written {
                Ok(_) => {
                    return match self.there(step).await? {
                        Some(found) if found == hash => Ok(copied),
                        Some(_) => Err(lost("what was read back is not what was sent")),
                        None => Err(lost("it was not there when it was read back")),
                    };
                }
                Err(error) if says_nothing(&error) => error,
                Err(error) => return Err(SyncError::Storage(error)),
            };
            repetition += 1;
            tries += trouble.tries();
            may_be_ours |= trouble.kind() != ErrorKind::Conflict;
            match self.there(step).await? {
                Some(found) if found == hash && may_be_ours => return Ok(copied),
                Some(found) if found == hash => return Ok(Outcome::Same),
                Some(_) => return Err(SyncError::Known(Why::Different)),
                None if tries >= MAX_TRIES || !self.context.patience.wait(repetition).await => {
                    return Err(SyncError::Storage(trouble));
                }
                None => {}
            }
        }
    }

    async fn compare(&self, step: &Step) -> Result<Outcome, SyncError> {
        let bytes = self.read(step).await?;
        match self.there(step).await? {
            Some(found) if found == ContentHash::of(&bytes) => Ok(Outcome::Same),
            Some(_) => Err(SyncError::Known(Why::Different)),
            None => Err(lost("it was there before, and is not any more")),
        }
    }
}

/// Why a step did not work.
enum SyncError {
    Storage(StoreError),
    Known(Why),
}

fn lost(what: &str) -> SyncError {
    SyncError::Known(Why::Failed(what.to_owned()))
}

/// Returns true if what became of a write can only be seen by looking.
fn says_nothing(error: &StoreError) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Busy | ErrorKind::Unavailable)
}

/// Returns true if the next object will probably fail as well.
fn is_about_the_storage(error: &StoreError) -> bool {
    matches!(error.kind(), ErrorKind::Busy | ErrorKind::Unavailable | ErrorKind::Denied | ErrorKind::Full)
}

/// Returns an error with what led to it, without the place, which is told beside it.
fn explain(error: &StoreError) -> String {
    let mut text = error.message().to_owned();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// Returns a `manifest.json` of another program: scans hide it, and it must not be missing in the copy.
async fn manifest_of_others(
    source: &dyn Backend,
    context: Context<'_>,
) -> StoreResult<Option<(Locator, u64)>> {
    let place = Locator::reserved("manifest.json").expect("one of our own names");
    match patiently(context.patience, || source.read(&place)).await {
        Ok(object) => {
            // An index of plain objects is derived, so it needs no copy.
            let is_ours = match Manifest::decode(&object.bytes) {
                Ok(_) => true,
                Err(why) => why.is_newer(),
            };
            Ok((!is_ours).then_some((place, object.bytes.len() as u64)))
        }
        // A directory of that name is not a file.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Asks the gate about every object; one that cannot be read now is asked about when it is copied.
async fn show_to_gate(sources: &[Source], found: &mut [Found], gate: &dyn Gate, context: Context<'_>) {
    let total = found.len();
    let ask = |at: usize, found: &Found| -> UnderWay<'_, (usize, Option<String>)> {
        let (source, from) = (&sources[found.source], found.locator.clone());
        let is_read = found.size_bytes <= MAX_OBJECT_BYTES;
        Box::pin(async move {
            let to = placed(&source.prefix, &from);
            let (Ok(to), true) = (to, is_read) else { return (at, None) };
            let read = patiently(context.patience, || source.backend.read(&from)).await;
            (at, read.ok().and_then(|object| gate.holds(&to, &object.bytes)).map(|hold| hold.why))
        })
    };
    let is_small = |found: &Found| found.size_bytes <= MAX_BYTES_TOGETHER;
    let (mut held, mut done) = (Vec::new(), 0);
    for (small, at_once) in [(true, MAX_AT_ONCE), (false, 1)] {
        let asked = found.iter().enumerate().filter(|(_, found)| is_small(found) == small);
        let asked: Vec<_> = asked.map(|(at, found)| ask(at, found)).collect();
        let mut answers = stream::iter(asked).buffered(at_once);
        while let Some(answer) = answers.next().await {
            held.push(answer);
            done += 1;
            context.progress.at(Stage::Looking, done, Some(total));
        }
    }
    for (at, why) in held {
        found[at].held = why;
    }
}
