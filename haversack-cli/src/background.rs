//! Runs syncs in the background, so that hooks can return at once. A home has at most one background process.
//!
//! 1. A hook writes a request into `state/background/wanted`.
//! 2. The hook tries to take the background lock. If it is free, the hook starts the process. If it is taken, the running process will see the request.
//! 3. The process handles requests until none is left, releases the lock, and looks once more. The last look closes the race with a hook that found
//!    the lock taken.
//!
//! Before it syncs, the process waits 250 ms for further requests, to send their changes together. If only interaction logs grew, it waits up to 5
//! seconds or for 4 KB ([`Batching`]): a chat makes many small events, and a commit for each would fill the log. A caller who waits ends the wait.
//!
//! A lost request delays a sync and loses no data: pending changes are found by comparing each file with
//! its base.

pub(crate) mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use haversack::clock::Clock;
use haversack::store::{Backend, DeviceLocal, ErrorKind, Guard, Locator, block_on};
use haversack::sync::{Batching, Due, Quiet, remote_files};
use haversack_system::SystemClock;

use self::requests::{Question, RequestQueue, SyncRequest};
use crate::agents::journal::Journal;
use crate::agents::program;
use crate::app::{digest, mirror, recall, summary, tidy, vectors};
use crate::error::CommandError;
use crate::home::contact::{Contact, Failure};
use crate::home::{self, Home, Summary, SyncOptions, Work, local_history};
use crate::projects::proof;
use crate::records::private;
use crate::remote::{self, Remote};
use crate::settings::Settings;

/// The lock of the one process.
const LOCK: &str = "background";

/// The longest life of the process.
const LONGEST_LIFE: Duration = Duration::from_secs(60);

/// The time that vectors are made for, unless a request comes.
const LONGEST_EMBEDDING: Duration = Duration::from_secs(40);

/// The time that we wait for further writes, to send them together.
const GATHER: Duration = Duration::from_millis(250);

/// The time that a cloud may be silent, without a user who waits.
const CLOUD_WAIT: Duration = Duration::from_secs(10);

/// The time that it waits for another process that writes.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The interval at which a caller looks for its answer at first: a remote on a disk answers within some milliseconds.
const FIRST_POLLS: Duration = Duration::from_micros(500);

/// The time during which a caller looks that often.
const SOON: Duration = Duration::from_millis(40);

/// The interval at which a caller looks for its answer later.
const POLL: Duration = Duration::from_millis(5);

/// The result of a request that a caller waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The sync worked.
    Done,
    /// The sync failed, and why.
    Failed(String),
    /// It is under way, and there was no more time.
    TooLate,
    /// No sync was requested: there is no remote, or it is left alone for now.
    NotAsked,
}

fn directory(settings: &Settings) -> PathBuf {
    settings.home.join("state").join("background")
}

/// Returns the file that is there while the remote is asked, with the time since when.
fn contacting(settings: &Settings) -> PathBuf {
    directory(settings).join("contacting")
}

/// Returns the file that exists after a caller waited in vain.
fn waited(settings: &Settings) -> PathBuf {
    directory(settings).join("waited")
}

/// Hands a wish over; returns at once.
pub(crate) fn hand_over(settings: &Settings, request: &SyncRequest) -> Result<Answer, CommandError> {
    if !is_due(settings)? {
        record_soon(settings, request)?;
        return Ok(Answer::NotAsked);
    }
    RequestQueue::of(directory(settings)).add(request)?;
    start(settings)?;
    Ok(Answer::TooLate)
}

/// Hands a wish over and waits for it, but no longer than `wait`.
pub(crate) fn ask(
    settings: &Settings,
    request: &SyncRequest,
    wait: Duration,
) -> Result<Answer, CommandError> {
    let deadline = Instant::now() + wait;
    if !is_due(settings)? {
        record_soon(settings, request)?;
        return Ok(Answer::NotAsked);
    }
    let since =
        fs::read_to_string(contacting(settings)).ok().and_then(|text| text.trim().parse::<i64>().ok());
    let now = SystemClock.now().0;
    let is_hanging = since.is_some_and(|since| {
        let span = u128::try_from(now - since).unwrap_or(0);
        span < LONGEST_LIFE.as_millis() && (span > wait.as_millis() || waited(settings).exists())
    });
    if is_hanging {
        // Another caller has waited for it already: one is enough.
        return hand_over(settings, request);
    }
    let requests = RequestQueue::of(directory(settings));
    let question = requests.add_and_wait(request)?;
    start(settings)?;
    let started = Instant::now();
    while question.is_open() {
        if Instant::now() >= deadline {
            question.withdraw();
            requests.add(request)?;
            drop(private::write(&waited(settings), b""));
            return Ok(Answer::TooLate);
        }
        std::thread::sleep(if started.elapsed() < SOON { FIRST_POLLS } else { POLL });
    }
    Ok(match question.result() {
        Ok(()) => Answer::Done,
        Err(why) => Answer::Failed(why),
    })
}

/// Starts the process for a digest that was requested.
pub(crate) fn start_for_digest(settings: &Settings) -> Result<(), CommandError> {
    if settings.surroundings.is_quiet { Ok(()) } else { start(settings) }
}

/// Starts the process for vectors that are missing.
pub(crate) fn start_for_vectors(settings: &Settings) -> Result<(), CommandError> {
    if settings.surroundings.is_quiet { Ok(()) } else { start(settings) }
}

/// Lets the process add the changes to the history of a home without a remote.
fn record_soon(settings: &Settings, request: &SyncRequest) -> Result<(), CommandError> {
    if local_history::is_used(settings)? && settings.memory().is_dir() {
        RequestQueue::of(directory(settings)).add(request)?;
        start(settings)?;
    }
    Ok(())
}

/// Returns true if there is a remote and it may be asked now.
fn is_due(settings: &Settings) -> Result<bool, CommandError> {
    if settings.surroundings.is_quiet {
        return Ok(false);
    }
    if Remote::for_looking(settings)?.is_none() {
        tell_of_unagreed(settings)?;
        return Ok(false);
    }
    Ok(Contact::of(settings).next_try().is_none_or(|next| next <= SystemClock.now()))
}

/// Notes once, in the hooks' journal, that the user has not agreed yet to the remote in the settings.
fn tell_of_unagreed(settings: &Settings) -> Result<(), CommandError> {
    let Some(named) = Remote::unagreed(settings)? else { return Ok(()) };
    let told = directory(settings).join("unagreed");
    if fs::read_to_string(&told).is_ok_and(|told| told == named.url) {
        return Ok(());
    }
    fs::create_dir_all(directory(settings))?;
    fs::write(told, &named.url)?;
    Journal::of(settings).note("background", None, &remote::needs_a_yes(&named).message);
    Ok(())
}

/// Starts the process, unless it is there.
fn start(settings: &Settings) -> Result<(), CommandError> {
    match lock(settings)? {
        Some(free) => drop(free),
        None => return Ok(()),
    }
    let program = program::to_start(settings).map_err(CommandError::from)?;
    let mut command = Command::new(program);
    let home = std::path::absolute(&settings.home).map_err(CommandError::from)?;
    command.arg("--home").arg(&home).arg("background");
    // Not the project's directory: its settings are none of ours, and it may be deleted.
    command.current_dir(home);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(CommandError::from)?;
    // A server outlives the process, and must collect its exit code.
    drop(std::thread::Builder::new().spawn(move || child.wait()));
    Ok(())
}

fn lock(settings: &Settings) -> Result<Option<Guard>, CommandError> {
    let state = DeviceLocal::open(settings.state(), settings.locks())?;
    match block_on(Backend::lock(&state, LOCK, Duration::ZERO)) {
        Ok(guard) => Ok(Some(guard)),
        Err(error) if error.kind() == ErrorKind::Busy => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Runs the background process: handles requests until none is left.
pub(crate) fn run(settings: &Settings) -> Result<(), CommandError> {
    // A session of its own, so that ending the agent's processes does not end this one.
    #[cfg(unix)]
    let _ = rustix::process::setsid();
    let mut settings = settings.clone();
    settings.cloud_wait = settings.cloud_wait.min(CLOUD_WAIT);
    settings.lock_wait = settings.lock_wait.min(LOCK_WAIT);
    let is_asking = Arc::new(AtomicBool::new(false));
    end_after(LONGEST_LIFE, &settings, is_asking.clone());
    let requests = RequestQueue::of(directory(&settings));
    loop {
        let Some(turn) = lock(&settings)? else { return Ok(()) };
        let mut is_mirror_late = false;
        let mut is_stuck;
        loop {
            let mut wanted = requests.take();
            // Before the syncs, which send what is written here.
            let digested = digest::write_requested(&settings);
            for (session, told) in &digested {
                Journal::of(&settings).note("background", Some(session), told);
            }
            // A digest that fails is tried again by the next process.
            is_stuck = !digested.is_empty() && digest::is_requested(&settings);
            if wanted.is_empty() && (digested.is_empty() || is_stuck) {
                break;
            }
            if wanted.is_empty() {
                continue;
            }
            let mut unsent = UnsentBytes::new(&settings);
            gather(&requests, &mut wanted, &SystemClock, &mut std::thread::sleep, &mut |files| {
                unsent.of(files)
            });
            is_mirror_late |= fulfil(&settings, wanted, &is_asking);
        }
        if is_mirror_late {
            // It is derived: what could not be written now is written by the next who sends something.
            drop(mirror::write_now(&settings));
        }
        if let Err(error) = proof::record_roots(&settings) {
            Journal::of(&settings).note("background", None, &format!("failed: {}", error.message));
        }
        // Hooks search the index as it stands.
        if let Err(error) = recall::refresh_if_used(&settings) {
            Journal::of(&settings).note(
                "background",
                None,
                &format!("the index was not refreshed: {}", error.in_one_line()),
            );
        }
        look_when_due(&settings);
        tidy_when_due(&settings);
        if let Err(error) = vectors::embed_for(&settings, LONGEST_EMBEDDING, || !requests.is_empty()) {
            Journal::of(&settings).note(
                "background",
                None,
                &format!("the model made no vectors: {}", error.in_one_line()),
            );
        }
        drop(turn);
        if requests.is_empty() && (is_stuck || !digest::is_requested(&settings)) {
            return Ok(());
        }
    }
}

/// Waits for further requests, to send their changes together. `unsent` returns how many bytes of some files wait to be sent.
fn gather(
    requests: &RequestQueue,
    wanted: &mut Vec<(SyncRequest, Option<Question>)>,
    clock: &dyn Clock,
    sleep: &mut dyn FnMut(Duration),
    unsent: &mut dyn FnMut(&BTreeSet<Locator>) -> u64,
) {
    let mut batching = Batching::default();
    let mut noted = 0;
    while wanted.iter().all(|(request, question)| question.is_none() && is_growth(request)) {
        let files = wanted.iter().flat_map(|(request, _)| request.files.iter().cloned()).collect();
        let bytes = unsent(&files);
        batching.wrote(clock.now(), bytes.saturating_sub(noted));
        noted = noted.max(bytes);
        let Due::In(rest) = batching.due(clock.now()) else { return };
        sleep(rest.min(GATHER));
        wanted.extend(requests.take());
    }
    if wanted.iter().all(|(_, question)| question.is_none()) {
        sleep(GATHER);
        wanted.extend(requests.take());
    }
}

/// Returns true if a request is about lines in interaction logs, and nothing else.
fn is_growth(request: &SyncRequest) -> bool {
    let is_log = |file: &Locator| {
        file.parent().is_some_and(|directory| directory.name() == "interactions")
            && file.name().ends_with(".jsonl")
    };
    !request.files.is_empty() && request.files.iter().all(is_log)
}

/// Measures the growth of files since they were last sent.
struct UnsentBytes<'a> {
    settings: &'a Settings,
    home: Option<Home>,
    /// The size of each file at the last sync.
    sent: BTreeMap<Locator, u64>,
}

impl UnsentBytes<'_> {
    fn new(settings: &Settings) -> UnsentBytes<'_> {
        UnsentBytes { settings, home: None, sent: BTreeMap::new() }
    }

    /// Returns the number of bytes that some files grew by. A home that cannot be opened counts as one that did not grow.
    fn of(&mut self, files: &BTreeSet<Locator>) -> u64 {
        if self.home.is_none() {
            self.home = open_home(self.settings).ok();
        }
        let Some(home) = &self.home else { return 0 };
        let mut bytes = 0;
        for file in files {
            let Some(place) = home.places().find(|place| place.scope.contains(file)) else { continue };
            let sent = self.sent.entry(file.clone()).or_insert_with(|| {
                let sent = block_on(remote_files(place.state.clone())).unwrap_or_default();
                sent.into_iter().find(|(name, _)| name == file).map_or(0, |(_, size)| size)
            });
            let now = block_on(place.files.info(file)).map_or(0, |info| info.size_bytes);
            bytes += now.saturating_sub(*sent);
        }
        bytes
    }
}

/// Ends this process after a time, in any state: everything that it does may be killed.
fn end_after(time: Duration, settings: &Settings, is_asking: Arc<AtomicBool>) {
    let settings = settings.clone();
    std::thread::spawn(move || {
        std::thread::sleep(time);
        if is_asking.load(Ordering::SeqCst) {
            let error = CommandError::user("the remote does not answer", "haversack remote test");
            let contact = Contact::of(&settings).failed(SystemClock.now(), Failure::Offline, &error);
            drop(contact.save(&settings));
            drop(fs::remove_file(contacting(&settings)));
        }
        std::process::exit(0);
    });
}

/// Handles requests; returns true if the plain copies in the remote still have to be written.
fn fulfil(settings: &Settings, wanted: Vec<(SyncRequest, Option<Question>)>, is_asking: &AtomicBool) -> bool {
    let journal = Journal::of(settings);
    let sessions: BTreeSet<&str> =
        wanted.iter().filter_map(|(request, _)| request.session.as_deref()).collect();
    let mut is_mirror_late = false;
    let is_local = local_history::is_used(settings).unwrap_or(false);
    let mut sync = |work: Work<'_>, session: Option<&str>| -> Result<(), String> {
        if is_local {
            return local_history::record(&signed(settings, session), work, "session").map_err(|error| {
                let why = error.in_one_line();
                journal.note("background", session, &format!("the history was not kept: {why}"));
                why
            });
        }
        let summary = match sync(settings, work, session, is_asking) {
            Ok(Some(summary)) => summary,
            // An earlier request of this round has failed, so that the remote is left alone now.
            Ok(None) => {
                return Err(Contact::of(settings).trouble.unwrap_or("there is no remote".to_owned()));
            }
            Err(error) => {
                let why = error.in_one_line();
                journal.note("background", session, &format!("sync failed: {why}"));
                return Err(why);
            }
        };
        is_mirror_late |= summary.is_mirror_late;
        let counts = format!("sent {}, received {}", summary.sent.len(), summary.received());
        journal.note("background", session, &counts);
        match summary.failed.first() {
            Some((name, why)) => {
                let why = format!("{name} was left out: {why}");
                journal.note("background", session, &format!("sync failed: {why}"));
                Err(why)
            }
            None => Ok(()),
        }
    };
    if sessions.len() > 1 {
        // Each session's files under its own name, so that one of them can be taken back.
        for (request, _) in &wanted {
            for file in &request.files {
                // The sync below sends what this one could not.
                drop(sync(Work::PushOne(file), request.session.as_deref()));
            }
        }
    }
    let session = sessions.first().copied().filter(|_| sessions.len() == 1);
    let mut done: BTreeMap<Option<&Locator>, Result<(), String>> = BTreeMap::new();
    // Requests with a waiting caller come first.
    let (asked, others): (Vec<_>, Vec<_>) = wanted.iter().partition(|(_, question)| question.is_some());
    for (request, question) in asked.into_iter().chain(others) {
        let prefix = request.prefix.as_ref();
        // A sync of everything is one of each prefix.
        let result = match done.get(&prefix).or_else(|| done.get(&None)) {
            Some(result) => result.clone(),
            None => {
                let is_needed = question.is_some() || prefix.is_none() || has_changed(settings, request);
                let result = match prefix {
                    _ if !is_needed => Ok(()),
                    Some(prefix) => sync(Work::Near(prefix), session),
                    None => sync(Work::Sync, session),
                };
                done.insert(prefix, result.clone());
                result
            }
        };
        if let Some(question) = question {
            question.answer(&result);
        }
    }
    is_mirror_late
}

/// Checks the whole remote if that is due: edits by hand, copies of a client, lost files.
///
/// No caller waits for it. If it takes longer than this process lives, it is tried again only after the same interval.
fn look_when_due(settings: &Settings) {
    let Ok(Some(remote)) = Remote::for_looking(settings) else { return };
    let (now, contact) = (SystemClock.now(), Contact::of(settings));
    if !contact.is_look_due(now, &remote.url) || contact.next_try().is_some_and(|next| next > now) {
        return;
    }
    drop(contact.looked(now).save(settings));
    let options = SyncOptions { time: Some(LONGEST_LIFE), ..SyncOptions::new(Work::Full, "session") };
    let told = match home::sync(settings, &remote, &options, &Quiet) {
        Ok(summary) => {
            format!("looked at everything: sent {}, received {}", summary.sent.len(), summary.received())
        }
        Err(error) => format!("sync failed: {}", error.in_one_line()),
    };
    Journal::of(settings).note("background", None, &told);
}

/// Tidies once a day, if the user switched that on. Killed in between, the next tidy goes on.
fn tidy_when_due(settings: &Settings) {
    if Contact::of(settings).next_try().is_some_and(|next| next > SystemClock.now()) {
        return;
    }
    match tidy::tidy_when_due(settings) {
        Ok(None) => {}
        Ok(Some(tidied)) => Journal::of(settings).note("background", None, &tidied.headline()),
        Err(error) => {
            Journal::of(settings).note("background", None, &format!("tidy failed: {}", error.in_one_line()))
        }
    }
}

/// Returns true if something waits to be sent there: a file that we put there ourselves is no news to the remote.
fn has_changed(settings: &Settings, request: &SyncRequest) -> bool {
    let Some(prefix) = &request.prefix else { return true };
    let Ok(home) = open_home(settings) else { return true };
    let places = home.places().filter(|place| place.scope.contains(prefix));
    let mut looks = places.map(|place| place.look());
    looks.any(|look| {
        look.map_or(true, |look| look.waiting() > 0 || look.underway.publishing || look.underway.applying)
    })
}

/// Opens the home with the log that its syncs write to.
fn open_home(settings: &Settings) -> Result<Home, CommandError> {
    match local_history::is_used(settings) {
        Ok(true) => Home::open_for_local_history(settings),
        _ => Home::open(settings),
    }
}

/// Returns the settings with a session as the writer of the changes that no writer signed.
fn signed(settings: &Settings, session: Option<&str>) -> Settings {
    let mut settings = settings.clone();
    settings.writer.agent = settings.writer.agent.or(session.map(|_| "claude-code".to_owned()));
    settings.writer.session = session.map(str::to_owned);
    settings
}

fn sync(
    settings: &Settings,
    work: Work<'_>,
    session: Option<&str>,
    is_asking: &AtomicBool,
) -> Result<Option<Summary>, CommandError> {
    let Some(remote) = Remote::for_looking(settings)? else { return Ok(None) };
    if Contact::of(settings).next_try().is_some_and(|next| next > SystemClock.now()) {
        return Ok(None);
    }
    let settings = signed(settings, session);
    let options = SyncOptions { time: Some(LONGEST_LIFE), ..SyncOptions::new(work, "session") };
    drop(private::write(&contacting(&settings), SystemClock.now().0.to_string().as_bytes()));
    is_asking.store(true, Ordering::SeqCst);
    let summary = home::sync(&settings, &remote, &options, &Quiet);
    is_asking.store(false, Ordering::SeqCst);
    drop(fs::remove_file(contacting(&settings)));
    drop(fs::remove_file(waited(&settings)));
    if let Ok(summary) = &summary {
        for (day, error) in summary::refresh(&settings, &summary.received) {
            let told = format!("the summary of {day} was not made again: {}", error.in_one_line());
            Journal::of(&settings).note("background", session, &told);
        }
    }
    summary.map(Some)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use haversack::ids::Timestamp;

    use super::*;

    /// A clock that only a sleep moves, in milliseconds.
    struct SleepClock(AtomicU64);

    impl Clock for SleepClock {
        fn now(&self) -> Timestamp {
            Timestamp(i64::try_from(self.0.load(Ordering::SeqCst)).expect("early"))
        }
    }

    #[test]
    fn events_of_a_chat_are_gathered_for_five_seconds_or_four_kilobytes() {
        let gathered = |event_bytes: u64, then: Option<SyncRequest>, is_waited_for: bool| {
            let directory = tempfile::tempdir().expect("made");
            let requests = RequestQueue::of(directory.path().to_owned());
            let log = Locator::parse("chats/interactions/2026-11-19.jsonl").expect("a name");
            let event = SyncRequest { files: vec![log], ..SyncRequest::default() };
            requests.add(&event).expect("added");
            let mut wanted = requests.take();
            let clock = SleepClock(AtomicU64::new(0));
            let mut events = 1;
            let mut sleep = |duration: Duration| {
                clock.0.fetch_add(u64::try_from(duration.as_millis()).expect("short"), Ordering::SeqCst);
                events += 1;
                match then.as_ref().filter(|_| events == 3) {
                    Some(request) if is_waited_for => drop(requests.add_and_wait(request).expect("added")),
                    Some(request) => requests.add(request).expect("added"),
                    None => requests.add(&event).expect("added"),
                }
            };
            let mut unsent = |_: &BTreeSet<Locator>| event_bytes * (1 + clock.0.load(Ordering::SeqCst) / 250);
            gather(&requests, &mut wanted, &clock, &mut sleep, &mut unsent);
            clock.0.load(Ordering::SeqCst)
        };
        assert_eq!(gathered(100, None, false), 5_000);
        assert_eq!(gathered(1_000, None, false), 1_000, "4 KB wait");
        let files = vec![Locator::parse("lamp.md").expect("a name")];
        let write = SyncRequest { files, ..SyncRequest::default() };
        assert_eq!(gathered(100, Some(write.clone()), false), 750, "another file was written");
        assert_eq!(gathered(100, Some(write), true), 500, "a caller waits");
    }
}
