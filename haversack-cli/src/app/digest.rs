//! The digest of a session, written when it ends, without a model.
//!
//! 1. The start of a session notes what is open in its project ([`begin`]), so that its end can tell what changed.
//! 2. The end of a session writes down a request ([`request`]): which session, which transcript, whose memory, on which day. The hook returns at once.
//! 3. The background process carries out the requests ([`write_requested`]): it reads the transcript, the interaction log, the kept summaries of compacted
//!    conversations and the lists, and puts the session's block into the digest of the day. A request is removed when its digest is written, so one that a
//!    kill interrupts is carried out again, with the same result. A digest that fails three times is remembered ([`failed`]), and `status` shows it.
//!
//! The day is the day on which the session ended. A session that goes on after midnight is told in two digests: the second begins where the first ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack::carry_forward;
use haversack::commitments::{self, Commitment};
use haversack::day::Day;
use haversack::digest::{SessionRecord, file_of, with_record};
use haversack::display::one_line;
use haversack::event::{self, Direction, LoggedEvent};
use haversack::ids::Timestamp;
use haversack::store::{Backend, DeviceLocal, Locator, block_on};
use haversack::{Memory, Rewritten, rewrite};
use serde::{Deserialize, Serialize};

use super::session::{self, uses};
use crate::agents;
use crate::agents::claude_code::slug;
use crate::agents::claude_code::transcript::{self, Transcript};
use crate::error::CommandError;
use crate::home::kinds;
use crate::home::mounts;
use crate::home::store::open;
use crate::projects::Project;
use crate::records::private;
use crate::remote::{Remote, device_name};
use crate::settings::{Settings, shown, tilde};
use crate::ui::paths::quoted;

/// The most times that a failing request is tried.
const MAX_TRIES: u32 = 3;

/// The number of sessions that are remembered.
const MAX_SESSIONS: usize = 500;

/// The most failed digests that are remembered.
const MAX_FAILED: usize = 20;

/// The most days before its end whose messages the digest of a session looks for.
const MAX_DAYS: i32 = 31;

/// The longest list of the memory that is compared.
const MAX_LIST_BYTES: u64 = 1024 * 1024;

/// Returns true if the end of a session writes a digest: the user asked for digests, or set up the persona.
pub(crate) fn is_wanted(settings: &Settings) -> bool {
    settings.is_digest_written || agents::has_persona(settings)
}

/// The record of a session between its start and its digests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Remembered {
    /// True if the start of the session was seen: only then can its end tell what was promised meanwhile.
    is_begun: bool,
    /// The open commitments at its start, by id or words.
    open: BTreeSet<String>,
    /// The delivered commitments at its start.
    delivered: BTreeSet<String>,
    /// The items carried forward at its start.
    pending: BTreeSet<String>,
    /// The day of its last digest.
    day: Option<String>,
    /// The end of the digest before that: messages up to here are in another day's digest.
    since: Option<Timestamp>,
    /// The end of its last digest.
    until: Option<Timestamp>,
}

/// A digest to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) session: String,
    pub(crate) transcript: Option<PathBuf>,
    /// The directory of the memory.
    pub(crate) memory: PathBuf,
    /// The place of the memory in the store, if it is carried.
    pub(crate) prefix: Option<String>,
    /// The directory of the project.
    pub(crate) root: PathBuf,
    /// The directory of the kept summaries.
    pub(crate) summaries: PathBuf,
    /// The record of the uses of the project's files.
    pub(crate) uses: PathBuf,
    pub(crate) day: String,
    /// When the session ended.
    pub(crate) ended: Timestamp,
    #[serde(default)]
    tries: u32,
}

impl Request {
    /// Returns the request for a session of a project that ends now.
    pub(crate) fn of(
        settings: &Settings,
        project: &Project,
        session: &str,
        transcript: Option<&Path>,
    ) -> Request {
        Request {
            session: session.to_owned(),
            transcript: transcript.map(Path::to_owned),
            memory: project.memory.path.clone(),
            prefix: project.prefix().map(|prefix| prefix.to_string()),
            root: project.checkout.clone(),
            summaries: session::summaries_of(settings, project),
            uses: uses::file(settings, project),
            day: settings.today().to_string(),
            ended: settings.now(),
            tries: 0,
        }
    }
}

/// A digest that could not be written and is not tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailedDigest {
    pub(crate) session: String,
    pub(crate) transcript: Option<PathBuf>,
    /// The directory of the project.
    pub(crate) root: PathBuf,
    pub(crate) ended: Timestamp,
    /// The reason of the last failure.
    pub(crate) why: String,
}

impl FailedDigest {
    /// Returns the problem in a sentence.
    pub(crate) fn sentence(&self, settings: &Settings) -> String {
        let root = tilde(settings, &self.root);
        format!(
            "The digest of session {} in {root} was not written: {}",
            one_line(&self.session),
            one_line(&self.why)
        )
    }

    /// Returns the cure.
    pub(crate) fn cure(&self, settings: &Settings) -> String {
        let root = quoted(&tilde(settings, &self.root));
        let transcript = self.transcript.as_ref().filter(|file| file.is_file());
        let transcript =
            transcript.map(|file| format!(" --transcript {}", quoted(&shown(file)))).unwrap_or_default();
        format!("in {root}: haversack digest --session {}{transcript}", quoted(&self.session))
    }
}

/// Returns the digests that could not be written, the newest first.
pub(crate) fn failed(settings: &Settings) -> Vec<FailedDigest> {
    let entries = fs::read_dir(directory(settings).join("failed")).into_iter().flatten().flatten();
    let records = entries.filter_map(|entry| serde_json::from_slice(&fs::read(entry.path()).ok()?).ok());
    let mut failed: Vec<FailedDigest> = records.collect();
    failed.sort_by(|one, other| (other.ended, &other.session).cmp(&(one.ended, &one.session)));
    failed
}

/// Remembers that a digest failed until it is written.
fn remember_failure(settings: &Settings, request: &Request, why: String) -> Result<(), CommandError> {
    let file = file_in(settings, "failed", &request.session);
    let record = FailedDigest {
        session: request.session.clone(),
        transcript: request.transcript.clone(),
        root: request.root.clone(),
        ended: request.ended,
        why,
    };
    save(&file, &record)?;
    forget_old(file.parent().unwrap_or(&file), MAX_FAILED);
    Ok(())
}

fn directory(settings: &Settings) -> PathBuf {
    settings.home.join("state").join("digests")
}

/// Returns the file of a session in a directory of ours.
fn file_in(settings: &Settings, name: &str, session: &str) -> PathBuf {
    let file: String = slug::slug(session).chars().take(80).collect();
    directory(settings).join(name).join(format!("{file}.json"))
}

fn remembered_file(settings: &Settings, session: &str) -> PathBuf {
    file_in(settings, "sessions", session)
}

/// Notes what is open in a project when a session starts. A session that goes on has noted it already.
pub(crate) fn begin(
    settings: &Settings,
    project: &Project,
    session: Option<&str>,
) -> Result<(), CommandError> {
    let Some(session) = session.filter(|_| is_wanted(settings) && project.barrier.is_none()) else {
        return Ok(());
    };
    let file = remembered_file(settings, session);
    if file.exists() {
        return Ok(());
    }
    let (open, delivered) = commitments_in(&project.memory.path);
    let pending = pending_in(&project.memory.path).into_iter().collect();
    let keys = |map: &BTreeMap<String, String>| map.keys().cloned().collect();
    let remembered = Remembered {
        is_begun: true,
        open: keys(&open),
        delivered: keys(&delivered),
        pending,
        ..Remembered::default()
    };
    save(&file, &remembered)?;
    forget_old(file.parent().unwrap_or(&file), MAX_SESSIONS);
    Ok(())
}

/// Removes the oldest records of a directory beyond a number.
fn forget_old(directory: &Path, most: usize) {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        files.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    files.sort();
    let old = files.len().saturating_sub(most);
    // A record that stays is removed the next time.
    files.iter().take(old).for_each(|(_, file)| drop(fs::remove_file(file)));
}

fn save(file: &Path, record: &impl Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string(record).map_err(|error| CommandError::ours(error.to_string()))?;
    crate::records::write_text(file, &text, crate::records::Weight::Light)
}

/// Writes down that a digest is wanted.
pub(crate) fn request(settings: &Settings, request: &Request) -> Result<(), CommandError> {
    let file = file_in(settings, "wanted", &request.session);
    let text = serde_json::to_string(request).map_err(|error| CommandError::ours(error.to_string()))?;
    private::write(&file, text.as_bytes()).map_err(CommandError::from)
}

/// Returns the files of the requests.
fn requests(settings: &Settings) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory(settings).join("wanted")).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Returns true if a digest waits to be written.
pub(crate) fn is_requested(settings: &Settings) -> bool {
    !requests(settings).is_empty()
}

/// Writes the digests that were requested. Returns a line for the journal for each, with its session.
pub(crate) fn write_requested(settings: &Settings) -> Vec<(String, String)> {
    let mut told = Vec::new();
    for file in requests(settings) {
        let Some(request) =
            fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Request>(&bytes).ok())
        else {
            drop(fs::remove_file(&file));
            told.push((
                "-".to_owned(),
                "the request for a digest could not be read and was removed".to_owned(),
            ));
            continue;
        };
        let session = request.session.clone();
        match write(settings, &request) {
            Ok(Written { file: digest, is_changed, is_transcript_cut }) => {
                drop(fs::remove_file(&file));
                drop(fs::remove_file(file_in(settings, "failed", &session)));
                let digest = digest.map_or("nothing to digest".to_owned(), |name| {
                    if is_changed { format!("wrote {name}") } else { format!("{name} has it already") }
                });
                let cut = if is_transcript_cut { format!("; {TRANSCRIPT_CUT}") } else { String::new() };
                told.push((session, format!("{digest}{cut}")));
            }
            Err(error) => {
                let tries = request.tries + 1;
                let why = error.in_one_line();
                told.push((session, format!("the digest was not written: {why}")));
                if tries >= MAX_TRIES {
                    // Without the record, the journal alone tells of it.
                    drop(remember_failure(settings, &request, why));
                    drop(fs::remove_file(&file));
                } else if save(&file, &Request { tries, ..request }).is_err() {
                    drop(fs::remove_file(&file));
                }
                // The next process tries again.
                break;
            }
        }
    }
    told
}

/// A digest that was written.
pub(crate) struct Written {
    /// The file; `None` if nothing happened in the session.
    pub(crate) file: Option<String>,
    pub(crate) is_changed: bool,
    /// True if the transcript is so long that only its newest part was read.
    pub(crate) is_transcript_cut: bool,
}

/// The sentence about a transcript of which only the newest part was read.
pub(crate) const TRANSCRIPT_CUT: &str = "the transcript is so long that only its newest 256 MB were read";

/// Writes the digest of a session because the user asks for it, whatever the settings say.
pub(crate) fn write_now(settings: &Settings, request: &Request) -> Result<Written, CommandError> {
    let settings = Settings { is_digest_written: true, ..settings.clone() };
    let written = write(&settings, request)?;
    drop(fs::remove_file(file_in(&settings, "failed", &request.session)));
    Ok(written)
}

/// Writes the digest of a session.
fn write(settings: &Settings, request: &Request) -> Result<Written, CommandError> {
    let day: Day = request.day.parse().map_err(|_| CommandError::ours("a digest has no day"))?;
    let remembered_file = remembered_file(settings, &request.session);
    let mut remembered = fs::read(&remembered_file)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Remembered>(&bytes).ok())
        .unwrap_or_default();
    let since = match remembered.day.as_deref() {
        Some(last) if last == request.day => remembered.since,
        Some(_) => remembered.until,
        None => None,
    };
    let transcript = match &request.transcript {
        // A transcript that is gone leaves the rest of the record.
        Some(file) => transcript::read(file, since).unwrap_or_default(),
        None => Transcript::default(),
    };
    let used = transcript.read.iter().filter_map(|file| below(&request.memory, file));
    // Losing a count costs order alone.
    drop(uses::count(&request.uses, used));
    let is_transcript_cut = transcript.is_cut;
    if !is_wanted(settings) {
        return Ok(Written { file: None, is_changed: false, is_transcript_cut });
    }
    let record = record(settings, request, &remembered, transcript, since);
    if record.is_empty() {
        return Ok(Written { file: None, is_changed: false, is_transcript_cut });
    }
    let kinds = kinds::load(settings)?;
    let (memory, place) = memory_of(settings, request)?;
    let name = file_of(day);
    let locator = place.child(&name).map_err(|error| CommandError::ours(error.to_string()))?;
    let done = block_on(rewrite(&memory, &locator, |text| Some(with_record(text, &kinds, day, &record))))?;
    remembered.since = since;
    remembered.until = Some(request.ended);
    remembered.day = Some(request.day.clone());
    // Without it, a later digest of the session tells the same once more.
    drop(save(&remembered_file, &remembered));
    Ok(Written { file: Some(name), is_changed: done == Rewritten::Changed, is_transcript_cut })
}

/// Opens the memory of a request, and tells where in it the digest goes.
fn memory_of(settings: &Settings, request: &Request) -> Result<(Memory, Locator), CommandError> {
    let mut writer = settings.writer.clone();
    writer.session = Some(request.session.clone());
    writer.agent = writer.agent.or(Some("claude-code".to_owned()));
    let prefix = request.prefix.as_deref().and_then(|prefix| Locator::parse(prefix).ok());
    let is_bound = |prefix: &Locator| -> Result<bool, CommandError> {
        Ok(mounts::of(settings)?.iter().any(|mount| mount.prefix == *prefix && mount.is_there()))
    };
    if let Some(prefix) = prefix
        && is_bound(&prefix)?
    {
        return Ok((open(settings)?.with_writer(writer), prefix));
    }
    // Memory that stays on this machine is in its own directory, and nowhere else.
    fs::create_dir_all(&request.memory)?;
    let files: Arc<dyn Backend> = Arc::new(DeviceLocal::open_real(&request.memory, settings.shared_locks())?);
    let state = DeviceLocal::open(directory(settings).join("local"), settings.locks())?;
    Ok((Memory::new(files, Arc::new(state)).with_lock_wait(settings.lock_wait), Locator::root()))
}

fn record(
    settings: &Settings,
    request: &Request,
    before: &Remembered,
    transcript: Transcript,
    since: Option<Timestamp>,
) -> SessionRecord {
    let (open, delivered, pending) = match before.is_begun {
        true => {
            let (open, delivered) = commitments_in(&request.memory);
            (open, delivered, pending_in(&request.memory))
        }
        false => Default::default(),
    };
    let new = |now: &BTreeMap<String, String>, before: &BTreeSet<String>| -> Vec<String> {
        now.iter().filter(|(key, _)| !before.contains(*key)).map(|(_, text)| text.clone()).collect()
    };
    let made: Vec<String> = open
        .iter()
        .filter(|(key, _)| !before.open.contains(*key) && !before.delivered.contains(*key))
        .map(|(_, text)| text.clone())
        .collect();
    let mut left_open = made.clone();
    left_open.extend(pending.into_iter().filter(|item| !before.pending.contains(item)));
    left_open.extend(transcript.unfinished.iter().cloned());
    let kept = session::summaries_of_session(&request.summaries, &request.session);
    let digest = format!("session_digest_{}.md", request.day);
    let changed = transcript.written.iter().filter_map(|file| name_of(settings, request, file));
    let minutes = transcript.first.zip(transcript.last).map(|(first, last)| (last.0 - first.0) / 60_000);
    SessionRecord {
        session: request.session.clone(),
        files: changed.filter(|name| !name.ends_with(&digest)).collect(),
        events: events(settings, request, &transcript, since),
        opened: made,
        closed: new(&delivered, &before.delivered),
        compactions: kept.len().max(transcript.compactions),
        compacted: kept.into_iter().next_back().or(transcript.compacted),
        open: left_open,
        minutes: minutes.and_then(|minutes| u64::try_from(minutes).ok()),
        prompts: transcript.prompts,
    }
}

/// Returns the name of a file as the digest tells it.
fn name_of(settings: &Settings, request: &Request, file: &Path) -> Option<String> {
    if let Some(name) = below(&request.memory, file) {
        return Some(format!("memory/{name}"));
    }
    Some(below(&request.root, file).unwrap_or_else(|| tilde(settings, file)))
}

fn below(directory: &Path, file: &Path) -> Option<String> {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let below = file.strip_prefix(directory).or_else(|_| file.strip_prefix(&real)).ok()?;
    let name = below.to_str()?.replace('\\', "/");
    (!name.is_empty()).then_some(name)
}

/// Returns the messages that were noted on this machine while the session lasted, of all days from its first moment to its end. Messages up to `since` are
/// in an earlier digest.
fn events(
    settings: &Settings,
    request: &Request,
    transcript: &Transcript,
    since: Option<Timestamp>,
) -> Vec<String> {
    let Ok(memory) = open(settings) else { return Vec::new() };
    let device = Remote::recorded(settings).ok().flatten().map_or_else(device_name, |remote| remote.device);
    let from = transcript.first.unwrap_or(request.ended).min(request.ended);
    let is_of_session = |event: &LoggedEvent| match &event.session {
        Some(session) if *session == request.session => since.is_none_or(|since| event.time > since),
        _ => event.time >= from && event.time <= request.ended && event.device.as_ref() == Some(&device),
    };
    let last = settings.zone.day_of(request.ended);
    let first = settings.zone.day_of(from).max(last.plus(-MAX_DAYS));
    let mut told = Vec::new();
    for day in (0..=last.days_since(first)).map(|days| first.plus(days)) {
        let Ok(log) = block_on(Backend::read(memory.files(), &event::log_of(day))) else { continue };
        let events = event::read(&log.bytes).events;
        told.extend(events.iter().filter(|event| is_of_session(event)).map(|event| {
            let time = settings.zone.time_of(event.time);
            let time = if day == last { time } else { format!("{day} {time}") };
            let who = match event.direction {
                Direction::Inbound => event.sender.clone(),
                Direction::Outbound => format!("to {}", event.recipient.as_deref().unwrap_or("all")),
            };
            format!("{time} {who} ({}): {}", event.channel, event.summary)
        }));
    }
    told
}

fn list_in(memory: &Path, name: &str) -> Option<String> {
    let file = memory.join(name);
    let metadata = file.symlink_metadata().ok()?;
    let is_fit = metadata.is_file() && metadata.len() <= MAX_LIST_BYTES;
    is_fit.then(|| fs::read_to_string(file).ok()).flatten()
}

/// Returns the open and the delivered commitments in a directory: their texts by id or words.
fn commitments_in(memory: &Path) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let text = list_in(memory, commitments::FILE).unwrap_or_default();
    let key = |one: &Commitment| one.id.clone().unwrap_or_else(|| one.text.to_lowercase());
    let (delivered, open): (Vec<_>, Vec<_>) =
        commitments::list(&text).into_iter().partition(|one| one.is_delivered);
    let by_key = |all: Vec<Commitment>| all.into_iter().map(|one| (key(&one), one.text)).collect();
    (by_key(open), by_key(delivered))
}

fn pending_in(memory: &Path) -> Vec<String> {
    let text = list_in(memory, carry_forward::FILE).unwrap_or_default();
    carry_forward::pending(&text).into_iter().map(|item| item.text).collect()
}

/// Returns the newest transcript of a project's sessions, with the id of its session.
pub(crate) fn latest_transcript(directory: &Path) -> Option<(String, PathBuf)> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let files =
        entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "jsonl"));
    let newest =
        files.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).max()?;
    let session = newest.1.file_stem()?.to_str()?.to_owned();
    Some((session, newest.1))
}
