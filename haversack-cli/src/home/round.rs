//! One sync of a home: all its replicas in order, through a folder or straight to the log, then the archive, the plain copies and the contact.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use haversack::clock::Clock;
use haversack::history::archive::{self, Bounds};
use haversack::ids::{Position, ReplicaId, Timestamp};
use haversack::merge::{Rule, Side, merge};
use haversack::store::{
    Backend, BackendExt, Condition, DeviceLocal, ErrorKind, Locator, Prefixed, block_on, is_fenced,
};
use haversack::sync::{
    Asking, Author, Context, Deletions, Mirror, OneLog, Origins, Patience, Progress, ReadOnce, Recent,
    Replica, Report, Trouble,
};
use haversack::vault::{Carriage, FolderOrigins, Mine};

use super::contact::{Contact, Failure};
use super::replicas::{Home, Place, bridge_patiently, open_mount, open_patiently, open_state};
use super::{lost_and_found, mounts, store};
use crate::background;
use crate::error::CommandError;
use crate::projects::proof;
use crate::remote::{self, Remote};
use crate::settings::{Settings, shown};
use crate::system::{RandomIds, SystemClock, Timed};

/// The most history that is kept beside what the remote has.
const MAX_HISTORY_BYTES: u64 = 64 * 1024 * 1024;

/// How long history is kept here.
const MAX_HISTORY_DAYS: i64 = 365;

/// Up to so many files the plain copies are written at once; a larger store's are written in the background.
const MAX_MIRRORED_AT_ONCE: usize = 200;

/// How a sync is to be done.
pub(crate) struct Manner<'a> {
    pub(crate) what: Work<'a>,
    pub(crate) deletions: Deletions,
    /// How much time there is.
    pub(crate) time: Option<Duration>,
    /// Why, for the history.
    pub(crate) cause: &'a str,
    /// Which plain files in a replicated folder somebody here wrote.
    pub(crate) mine: Mine,
}

impl<'a> Manner<'a> {
    /// Returns how most syncs are done: with all the time it takes, and very many deletions wait.
    pub(crate) fn new(what: Work<'a>, cause: &'a str) -> Manner<'a> {
        Manner { what, deletions: Deletions::Cautious, time: None, cause, mine: Mine::Nothing }
    }
}

/// What a sync does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work<'a> {
    /// Takes in what is new, and sends what differs.
    Sync,
    /// Takes in what is new.
    Pull,
    /// Takes in what is new, and sends what differs, in the directory that is bound there and in the memory itself.
    Near(&'a Locator),
    /// Sends one file.
    PushOne(&'a Locator),
    /// Looks at everything again.
    Full(Mirror),
}

impl Work<'_> {
    /// Returns what looks at everything in a remote again.
    pub(crate) fn full(remote: &Remote) -> Work<'static> {
        Work::Full(if remote.mirror { Mirror::On } else { Mirror::Off })
    }
}

/// What a sync of a home did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// Files of ours that others get.
    pub(crate) sent: BTreeSet<Locator>,
    /// Files of others that came here.
    pub(crate) received: BTreeSet<Locator>,
    /// The rest, of all replicas together.
    pub(crate) report: Report,
    /// Bound directories that are not there or were emptied.
    pub(crate) vanished: Vec<String>,
    /// Bound directories that became links, and are not bound any more.
    pub(crate) unbound: Vec<String>,
    /// Bound directories whose own disk failed, and why; the others are synced all the same.
    pub(crate) failed: Vec<(String, String)>,
    /// The positions that we published.
    pub(crate) published: Vec<Position>,
    /// Which of our replicas did so.
    publishers: BTreeSet<ReplicaId>,
    /// True if the plain copies in the remote were looked at: those that are not in the report are as they should be.
    is_mirrored: bool,
    /// Whether the plain copies in the remote are still to be written, by whoever asked for the sync.
    pub(crate) is_mirror_late: bool,
    /// What was carried to and from a folder that is replicated.
    pub(crate) carriage: Carriage,
    /// Edits that the client of such a folder could not upload and that were taken in: where they are, and of which files.
    pub(crate) rescued: Vec<(String, Locator)>,
    /// How many files of logs were put back that such a folder had lost.
    pub(crate) mended: usize,
    /// The newest position that this home knew before.
    known: Option<Position>,
    /// The newest position that it knows now.
    pub(crate) position: Option<Position>,
}

/// Syncs every replica of a home, and writes down how it went.
pub(crate) fn sync(
    settings: &Settings,
    remote: &Remote,
    manner: &Manner<'_>,
    progress: &dyn Progress,
) -> Result<Summary, CommandError> {
    noting_contact(settings, manner, || {
        let backend =
            remote::open(settings, remote).map_err(|error| Stopped::There(Failure::Refused, error))?;
        sync_home(settings, remote, Arc::new(ReadOnce::new(backend)), manner, progress)
    })
}

/// Does the same with a remote that is open already.
pub(crate) fn sync_with(
    settings: &Settings,
    remote: &Remote,
    backend: Arc<dyn Backend>,
    manner: &Manner<'_>,
    progress: &dyn Progress,
) -> Result<Summary, CommandError> {
    noting_contact(settings, manner, || sync_home(settings, remote, backend, manner, progress))
}

/// Syncs, and notes whether the remote was reached.
fn noting_contact(
    settings: &Settings,
    manner: &Manner<'_>,
    sync: impl FnOnce() -> Result<Summary, Stopped>,
) -> Result<Summary, CommandError> {
    if let Some(finding) = haversack::secrets::find(manner.cause.as_bytes()).first() {
        // Everybody who has the remote reads it in the history.
        return Err(CommandError::user(
            format!("the message holds {} ({}), so nothing was sent", finding.rule.name, finding.rule.id),
            "Say it without the secret: haversack sync --message TEXT",
        ));
    }
    let now = SystemClock.now();
    match sync() {
        Ok(summary) => {
            let mut contact = Contact::of(settings).reached(now, summary.arriving());
            if summary.is_mirrored || matches!(manner.what, Work::Full(Mirror::On)) {
                contact = contact.with_not_mirrored(&summary.report.not_mirrored);
            }
            let contact = match manner.what {
                Work::Full(_) => contact.looked(now),
                Work::Sync | Work::Pull | Work::Near(_) | Work::PushOne(_) => contact,
            };
            contact.save(settings)?;
            Ok(summary)
        }
        Err(Stopped::There(failure, error)) => {
            Contact::of(settings).failed(now, failure, &error).save(settings)?;
            Err(error)
        }
        Err(Stopped::Here(error)) => Err(error),
    }
}

/// Where it was that a sync could not go on.
enum Stopped {
    Here(CommandError),
    There(Failure, CommandError),
}

impl From<CommandError> for Stopped {
    fn from(error: CommandError) -> Stopped {
        Stopped::Here(error)
    }
}

impl From<Trouble> for Stopped {
    fn from(trouble: Trouble) -> Stopped {
        match trouble {
            Trouble::Busy | Trouble::Local(_) | Trouble::Vanished => Stopped::Here(trouble.into()),
            _ => Stopped::There(Failure::of(&trouble), trouble.into()),
        }
    }
}

fn sync_home(
    settings: &Settings,
    remote: &Remote,
    backend: Arc<dyn Backend>,
    manner: &Manner<'_>,
    progress: &dyn Progress,
) -> Result<Summary, Stopped> {
    let unbound = mounts::unbind_links(settings)?;
    let home = Home::open(settings)?;
    store::complete(settings, &home)?;
    adopt(settings)?;
    let writer = &settings.writer;
    let author = Author {
        device: remote.device.clone(),
        agent: writer.agent.clone(),
        session: writer.session.clone(),
    };
    let patience = Timed::for_at_most(manner.time);
    let context = Context {
        gate: &*home.memory().gate,
        patience: &patience,
        progress,
        deletions: manner.deletions,
        budget: settings.budget,
        cause: manner.cause,
        signed: Some(&*home.memory().state),
        archive: Some(&*home.memory().state),
        asking: asking(remote),
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    let mut summary = Summary {
        vanished: home.vanished.iter().map(|mount| shown(&mount.directory)).collect(),
        unbound: unbound.iter().map(|mount| shown(&mount.directory)).collect(),
        ..Summary::default()
    };
    let is_about = |place: &&Place| match manner.what {
        Work::PushOne(locator) => place.scope.contains(locator),
        Work::Near(prefix) => place.scope.contains(prefix) || std::ptr::eq(*place, home.memory()),
        Work::Sync | Work::Pull | Work::Full(_) => true,
    };
    let places: Vec<&Place> = home.places.iter().filter(is_about).collect();
    let mut bridge = match remote::vault(settings, remote)? {
        Some(vault) => Some((bridge_patiently(settings, &vault)?, vault)),
        None => None,
    };
    if let Some((bridge, _)) = &mut bridge {
        summary.carried(block_on(bridge.prepare(context))?);
    }
    let mut replicas = Vec::new();
    for place in places {
        replicas.push((place, open_patiently(settings, place, backend.clone())?));
    }
    let own: BTreeSet<ReplicaId> = own_replicas(settings, &home)?;
    let context = Context { own_replicas: &own, ..context };
    // What some replica of this home knew before is no news to a new one.
    summary.known = replicas.iter().filter_map(|(_, replica)| replica.position()).max();
    let origins = match &mut bridge {
        None => {
            run_all(&home, &mut replicas, context, manner.what, &mut summary)?;
            None
        }
        Some((bridge, vault)) => {
            // What was changed here was changed in what was here, and is told before anything else is taken in.
            let first = match manner.what {
                Work::Full(_) => Work::Sync,
                what => what,
            };
            if first != Work::Pull {
                run_all(&home, &mut replicas, context, first, &mut summary)?;
            }
            let carried = block_on(bridge.carry(context))?;
            let is_more = carried.taken > 0 || matches!(manner.what, Work::Full(_) | Work::Pull);
            summary.carried(carried);
            let looks = matches!(manner.what, Work::Full(Mirror::On)) || remote.mirror;
            let mut mine = manner.mine.clone();
            if let Work::Full(Mirror::On) = manner.what {
                let lost = lost_and_found::look(settings, remote, vault, bridge)?;
                mine = lost_and_found::with_these(&mine, lost_and_found::bring_back(vault, &lost)?);
                summary.rescued.extend(lost.edits.into_iter().map(|edit| (shown(&edit.path), edit.of)));
            }
            let mut origins = match looks && (is_more || summary.report.published > 0) {
                true => Some(block_on(bridge.origins(context, mine.clone()))?),
                false => None,
            };
            if is_more {
                let known = Context { origins: origins_of(&origins), ..context };
                let before = summary.report.published;
                run_all(&home, &mut replicas, known, manner.what, &mut summary)?;
                if summary.report.published > before {
                    let carried = block_on(bridge.carry(context))?;
                    if carried.taken > 0 {
                        run_all(&home, &mut replicas, context, Work::Pull, &mut summary)?;
                    }
                    summary.carried(carried);
                    // What was told with it may be shown as plain files now.
                    if origins.is_some() {
                        origins = Some(block_on(bridge.origins(context, mine))?);
                    }
                }
            }
            if let Work::Full(_) = manner.what {
                block_on(bridge.await_files(context, &summary.report.awaited))?;
                summary.mended = block_on(bridge.mend())?;
            }
            origins
        }
    };
    let context = Context { origins: origins_of(&origins), ..context };
    let mut replicas: Vec<Replica> = replicas.into_iter().map(|(_, replica)| replica).collect();
    summary.account(&home, &own, &mut replicas)?;
    summary.position = replicas.iter().filter_map(Replica::position).max();
    let is_new = !summary.published.is_empty() || summary.carriage.taken > 0;
    let is_mirrored = remote.mirror && is_new && patience.has_time();
    let files = replicas.last().map_or(0, |replica| replica.log_files().len());
    if is_mirrored && files <= MAX_MIRRORED_AT_ONCE {
        // Each has the contents of its own part only.
        let last = replicas.last().map(Replica::id);
        let has_new = |id| summary.carriage.taken > 0 || summary.publishers.contains(&id) || Some(id) == last;
        for replica in replicas.iter_mut().filter(|replica| has_new(replica.id())) {
            let mirrored = match block_on(replica.mirror(context)) {
                Ok(mirrored) => mirrored,
                // The plain copies are derived: the next machine that sends something writes them. The other replicas would send the same
                // requests to a remote that does not answer.
                Err(Trouble::Remote(_)) => break,
                Err(_) => continue,
            };
            let left_alone = Report { not_mirrored: mirrored.foreign, ..Report::default() };
            add(&mut summary.report, left_alone);
        }
        summary.is_mirrored = true;
    } else if is_mirrored && settings.surroundings.is_background {
        // Whoever syncs in the background sees to it.
        summary.is_mirror_late = true;
    } else if is_mirrored {
        drop((replicas, bridge));
        background::mirror::start(settings);
    }
    if remote::is_vault(&remote.url) {
        // In a replicated folder a plain file that we do not know may be on its way with its log: the report has it as awaited.
        summary.report.not_mirrored.clear();
    }
    Ok(summary)
}

/// Returns how the remote is asked for news. A folder has been looked at already; anything else may have been wiped or replaced.
pub(super) fn asking(remote: &Remote) -> Asking {
    if remote::is_vault(&remote.url) { Asking::ForNext } else { Asking::FromLast }
}

/// Returns the ids of all replicas of a home that have synced before, also of bound directories that are not there now.
pub(super) fn own_replicas(settings: &Settings, home: &Home) -> Result<BTreeSet<ReplicaId>, CommandError> {
    let mut states: Vec<Arc<dyn Backend>> = home.places.iter().map(|place| place.state.clone()).collect();
    for directory in home.vanished.iter().map(|mount| mount.state(settings)).filter(|state| state.is_dir()) {
        states.push(open_state(settings, directory)?);
    }
    let mut own = BTreeSet::new();
    for state in states {
        own.extend(block_on(haversack::sync::replica_of(state))?);
    }
    Ok(own)
}

/// Returns where plain files come from, as far as it was asked.
fn origins_of(origins: &Option<FolderOrigins>) -> &dyn Origins {
    match origins {
        Some(origins) => origins,
        None => &OneLog,
    }
}

/// Lets every replica do its part; one whose directory is not there, or fails, is left out from then on.
fn run_all<'a>(
    home: &'a Home,
    replicas: &mut Vec<(&'a Place, Replica)>,
    context: Context<'_>,
    what: Work<'_>,
    summary: &mut Summary,
) -> Result<(), Stopped> {
    let mut done: Vec<(&Place, Replica)> = Vec::new();
    let mut stopped = None;
    for (place, mut replica) in std::mem::take(replicas) {
        if stopped.is_some() {
            done.push((place, replica));
            continue;
        }
        let is_memory = std::ptr::eq(place, home.memory());
        match block_on(run(&mut replica, context, what)) {
            Ok(report) => add(&mut summary.report, report),
            Err(Trouble::Vanished) if !is_memory => {
                summary.vanished.push(place.name.clone());
                continue;
            }
            Err(Trouble::Local(error)) if !is_memory => {
                let why = place.explain(Trouble::Local(error)).in_one_line();
                summary.failed.push((place.name.clone(), why));
                continue;
            }
            Err(trouble @ Trouble::Local(_)) => stopped = Some(Stopped::Here(place.explain(trouble))),
            Err(trouble) => stopped = Some(trouble.into()),
        }
        done.push((place, replica));
    }
    *replicas = done;
    if let Some(stopped) = stopped {
        // What was done until then is in the history all the same.
        let mut all: Vec<Replica> =
            std::mem::take(replicas).into_iter().map(|(_, replica)| replica).collect();
        drop(summary.account(home, context.own_replicas, &mut all));
        return Err(stopped);
    }
    // What one of them sent, those before it have not taken in yet.
    let newest = replicas.iter().filter_map(|(_, replica)| replica.position()).max();
    for (_, replica) in replicas.iter_mut().filter(|(_, replica)| replica.position() < newest) {
        add(&mut summary.report, block_on(replica.pull(context))?);
    }
    Ok(())
}

async fn run(replica: &mut Replica, context: Context<'_>, what: Work<'_>) -> Result<Report, Trouble> {
    match what {
        Work::Sync | Work::Near(_) => replica.sync(context).await,
        Work::Pull => replica.pull(context).await,
        Work::PushOne(locator) => replica.push_one(context, locator).await,
        Work::Full(mirror) => replica.reconcile(context, mirror).await,
    }
}

impl Summary {
    /// Adds what was carried to and from a folder.
    fn carried(&mut self, carried: Carriage) {
        self.carriage.taken += carried.taken;
        self.carriage.sent += carried.sent;
        (self.carriage.waiting, self.carriage.early) = (carried.waiting, carried.early);
    }

    /// Returns how many parts of other machines' logs have not arrived whole in a folder.
    pub(crate) fn arriving(&self) -> usize {
        self.carriage.waiting.len() + self.carriage.early
    }

    /// Counts the files that the new commits sent and received, and keeps the commits for the history.
    ///
    /// `own` are the ids of all replicas of the home, also of those that do not sync now: their commits are no news from another machine.
    pub(super) fn account(
        &mut self,
        home: &Home,
        own: &BTreeSet<ReplicaId>,
        replicas: &mut [Replica],
    ) -> Result<(), CommandError> {
        let syncing: BTreeSet<ReplicaId> = replicas.iter().map(Replica::id).collect();
        let store = replicas.iter().find_map(Replica::store);
        let recent = replicas.iter_mut().flat_map(Replica::take_recent);
        let recent: BTreeMap<Position, Recent> = recent.map(|recent| (recent.position, recent)).collect();
        let mut commits = Vec::new();
        for (position, Recent { replica, files, bytes, .. }) in recent {
            commits.extend(bytes.map(|bytes| (position, bytes)));
            if Some(position) <= self.known {
                continue;
            }
            // The records of projects are ours: the user counts memories.
            let files = files.into_iter().filter(|file| !proof::is_record(file));
            if syncing.contains(&replica) {
                self.sent.extend(files);
                self.published.push(position);
                self.publishers.insert(replica);
            } else if !own.contains(&replica) {
                self.received.extend(files);
            }
        }
        let Some(store) = store else { return Ok(()) };
        let day = 24 * 3600 * 1000;
        let oldest = Timestamp(SystemClock.now().0 - MAX_HISTORY_DAYS * day);
        let bounds = Bounds { bytes: MAX_HISTORY_BYTES, oldest };
        Ok(block_on(archive::keep(&*home.memory().state, store, commits, bounds))?)
    }

    /// Returns how many files came here, of which some may have been joined without their commits.
    pub(crate) fn received(&self) -> usize {
        self.received.len().max(self.report.fetched)
    }
}

fn add(sum: &mut Report, report: Report) {
    sum.taken += report.taken;
    sum.published += report.published;
    sum.fetched += report.fetched;
    sum.merged.extend(report.merged);
    sum.both_kept.extend(report.both_kept);
    sum.edits_won.extend(report.edits_won);
    sum.held.extend(report.held);
    sum.refused.extend(report.refused);
    sum.refused.sort_unstable();
    sum.refused.dedup();
    sum.missing.extend(report.missing);
    sum.waiting_deletions.extend(report.waiting_deletions);
    // Each replica tells of all that it holds, in every round.
    let known: BTreeSet<Locator> = sum.held_deletions.drain(..).chain(report.held_deletions).collect();
    sum.held_deletions = known.into_iter().collect();
    sum.foreign.extend(report.foreign);
    sum.unrelated.extend(report.unrelated);
    sum.not_mirrored.extend(report.not_mirrored);
    sum.not_mirrored.sort_unstable();
    sum.not_mirrored.dedup();
    sum.awaited.extend(report.awaited);
    sum.odd.extend(report.odd);
    sum.unseen.extend(report.unseen);
    sum.out_of_time |= report.out_of_time;
    sum.not_folded = report.not_folded.or(sum.not_folded.take());
}

/// Moves what is in the memory's own directory under a bound prefix to where it belongs.
///
/// It was there before the directory was bound, or was written while the directory was not there.
pub(crate) fn adopt(settings: &Settings) -> Result<(), CommandError> {
    let mounts = mounts::of(settings)?;
    if mounts.is_empty() {
        return Ok(());
    }
    let base: Arc<dyn Backend> = Arc::new(DeviceLocal::open(settings.memory(), settings.locks())?);
    block_on(async {
        let _turn = base.lock("store", settings.lock_wait).await?;
        // The deepest first: what is below another's prefix is its own.
        let mut mounts = mounts;
        mounts.sort_by(|one, other| other.prefix.cmp(&one.prefix));
        for mount in mounts.iter().filter(|mount| mount.is_there()) {
            let here = Prefixed::new(base.clone(), mount.prefix.clone());
            let files = here.list_all(&Locator::root()).await?;
            if files.is_empty() {
                continue;
            }
            let there = open_mount(settings, mount)?;
            for file in files.into_iter().filter(|file| !is_fenced(file.as_str())) {
                hand_over(&here, &*there, &file).await?;
            }
        }
        Ok(())
    })
}

/// Moves one file from one backend to another; where both have it, they are merged.
async fn hand_over(from: &dyn Backend, to: &dyn Backend, locator: &Locator) -> Result<(), CommandError> {
    let ours = from.read(locator).await?;
    loop {
        match to.write(locator, ours.bytes.clone(), Condition::Absent).await {
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error.into()),
        }
        let theirs = match to.read(locator).await {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            theirs => theirs?,
        };
        if theirs.bytes == ours.bytes {
            break;
        }
        let rule = Rule::of(locator, [&ours.bytes[..], &theirs.bytes[..]]);
        let sides = [&ours.bytes, &theirs.bytes].map(|bytes| Side { bytes, device: "this machine" });
        let merged = merge(rule, None, sides[0], sides[1]);
        if let Some(copy) = merged.copy
            && let Ok(name) = haversack::merge::conflict_name(locator, &copy)
        {
            let _ = to.write(&name, copy, Condition::Any).await?;
        }
        match to.write(locator, merged.bytes, Condition::Matches(theirs.version)).await {
            Ok(written) if written.displaced.is_none() => break,
            // Somebody saved meanwhile: what was displaced is on its shelf, and is merged with the next sync.
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error.into()),
        }
    }
    from.delete(locator, Condition::Matches(ours.version)).await?;
    Ok(())
}
