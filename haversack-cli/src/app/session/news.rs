//! The changes of other machines since the last report, and problems that need the user: one line at most.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use haversack::clock::Clock;
use haversack::ids::{Position, Timestamp};
use haversack::store::Locator;
use haversack_system::{Backoff, SystemClock};
use serde::{Deserialize, Serialize};

use crate::app::sync::kept_elsewhere;
use crate::error::CommandError;
use crate::home::Home;
use crate::home::contact::{Contact, Failure};
use crate::home::findings::{Findings, HeldFile};
use crate::home::history::{Enough, HistoryReader, Log};
use crate::home::mounts;
use crate::records;
use crate::settings::{Settings, shown};
use crate::ui::moments::{ago, counted, span, was_it};

/// The time that the remote may be offline before the user is told. A remote that is gone or refuses is reported at once.
const SILENT_SECONDS: i64 = 24 * 3600;

/// The time before a problem is reported again.
const TOLD_MILLISECONDS: i64 = 24 * 3600 * 1000;

/// The most changes that are searched for the last author.
const MAX_LOOKED_AT: usize = 2_000;

/// The reports that were shown already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ShownNews {
    /// The newest position that each project's report had.
    #[serde(default)]
    positions: BTreeMap<String, u64>,
    /// Projects of which their owner has not heard yet that they are carried.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    untold: BTreeSet<String>,
    /// Questions that the user was asked; each is asked once.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    asked: BTreeSet<String>,
    /// The time of each problem's last report.
    #[serde(default)]
    problems: BTreeMap<String, Timestamp>,
}

/// Tells if the owner of a project is informed that it is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryingNotice {
    /// There is room for it, and a user who reads it.
    Now,
    /// The next session may say it.
    Later,
    /// Other machines carry it: that is nothing new.
    Needless,
}

/// The changes in a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Files that other machines changed since the last time.
    pub(crate) files: BTreeSet<Locator>,
    /// The machine that did so last, and when.
    pub(crate) last: Option<(String, Timestamp)>,
    /// The last author of each file.
    pub(crate) authors: BTreeMap<Locator, (String, Timestamp)>,
    head: Option<Position>,
}

fn place(settings: &Settings) -> PathBuf {
    settings.home.join("state").join("hooks").join("told.toml")
}

fn told(settings: &Settings) -> ShownNews {
    records::read(&place(settings), "").ok().flatten().unwrap_or_default()
}

impl News {
    /// Reads the history on this machine for changes of a project. The files of the home are not scanned.
    pub(crate) fn of(settings: &Settings, home: &Home, prefix: &Locator) -> Result<News, CommandError> {
        let patience = Backoff::new();
        let mut history = HistoryReader::at_hand(settings, home, &patience)?;
        let ours = std::mem::take(&mut history.replicas);
        if ours.is_empty() {
            return Ok(News::default());
        }
        let seen = told(settings).positions.get(prefix.as_str()).copied().unwrap_or(0);
        let mut news = News { head: history.head, ..News::default() };
        let mut left = MAX_LOOKED_AT;
        history.each(|commit| {
            // The history from before there was a remote is of this machine, under replicas and maybe a name of its own.
            let is_local = commit.number.log == Log::Local;
            let is_new = !is_local && commit.position.number() > seen && !ours.contains(&commit.replica);
            for change in commit.changes.iter().filter(|change| change.locator.is_within(prefix)) {
                let device = if is_local { "this machine" } else { &commit.device };
                let author = || (device.to_owned(), commit.time);
                news.authors.entry(change.locator.clone()).or_insert_with(author);
                if is_new {
                    news.files.insert(change.locator.clone());
                    news.last.get_or_insert_with(author);
                }
            }
            left -= 1;
            if left == 0 { Enough::Yes } else { Enough::No }
        })?;
        Ok(news)
    }

    /// Returns the line that says what arrived.
    pub(crate) fn line(&self, now: Timestamp) -> Option<String> {
        let (device, time) = self.last.as_ref()?;
        let count = match self.files.len() {
            1 => "1 memory".to_owned(),
            count => format!("{count} memories"),
        };
        Some(format!("haversack: {count} from {device}, {}", ago(now, *time)))
    }

    /// Remembers the report.
    pub(crate) fn remember(&self, settings: &Settings, prefix: &Locator) -> Result<(), CommandError> {
        let Some(head) = self.head else { return Ok(()) };
        let mut told = told(settings);
        if told.positions.insert(prefix.to_string(), head.number()) == Some(head.number()) {
            return Ok(());
        }
        records::write(&place(settings), &told, records::Weight::Light)
    }
}

/// Tells if the files of a project are known as they are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// A round has just scanned them, and recorded what it found.
    Scanned,
    /// They may have changed since the last round.
    Unknown,
}

/// Returns the line about what needs the user, if it was not told lately.
pub(crate) fn problem(
    settings: &Settings,
    home: Option<(&Home, Files)>,
    prefix: &Locator,
) -> Result<Option<String>, CommandError> {
    match find_problem(settings, home, prefix, SystemClock.now())? {
        Some((key, line)) => once(settings, key, line),
        None => Ok(None),
    }
}

/// Returns a line, if it was not told lately.
pub(crate) fn once(settings: &Settings, key: String, line: String) -> Result<Option<String>, CommandError> {
    let now = SystemClock.now();
    let mut told = told(settings);
    told.problems.retain(|_, time| now.0 - time.0 < TOLD_MILLISECONDS);
    // The user of another session has not seen the report of a session without a user.
    let key = if settings.surroundings.is_headless { format!("{key} (headless)") } else { key };
    if told.problems.contains_key(&key) {
        return Ok(None);
    }
    told.problems.insert(key, now);
    records::write(&place(settings), &told, records::Weight::Light)?;
    Ok(Some(line))
}

/// Returns true if a question was not asked before, and notes that it is asked now. Without a person in front of the session it is not
/// asked, and stays open for the next one.
pub(crate) fn may_ask(settings: &Settings, question: String) -> Result<bool, CommandError> {
    let mut told = told(settings);
    if settings.surroundings.is_headless || !told.asked.insert(question) {
        return Ok(false);
    }
    records::write(&place(settings), &told, records::Weight::Light)?;
    Ok(true)
}

/// Notes that a project is carried for the first time: its owner is to hear so.
pub(crate) fn is_new(settings: &Settings, prefix: &Locator) -> Result<(), CommandError> {
    let mut told = told(settings);
    told.untold.insert(prefix.to_string());
    records::write(&place(settings), &told, records::Weight::Light)
}

/// Returns true if the owner of a project is to hear now that it is carried: once, and never again.
pub(crate) fn is_told(
    settings: &Settings,
    prefix: &Locator,
    telling: CarryingNotice,
) -> Result<bool, CommandError> {
    let mut told = told(settings);
    if telling == CarryingNotice::Later || !told.untold.remove(prefix.as_str()) {
        return Ok(false);
    }
    records::write(&place(settings), &told, records::Weight::Light)?;
    Ok(telling == CarryingNotice::Now)
}

fn find_problem(
    settings: &Settings,
    home: Option<(&Home, Files)>,
    prefix: &Locator,
    now: Timestamp,
) -> Result<Option<(String, String)>, CommandError> {
    let told =
        |key: &str, what: String| Some((key.to_owned(), format!("haversack: {what}. Run: haversack status")));
    let contact = Contact::of(settings);
    let failing = contact.failing_since.map_or(0, |since| (now.0 - since.0) / 1000);
    let is_refused = contact.failure == Some(Failure::Refused);
    if (is_refused || failing >= SILENT_SECONDS) && !settings.keep_local {
        let span = if failing < 60 { String::new() } else { format!(" for {}", span(failing)) };
        let trouble = contact.trouble.map(|trouble| format!(" ({trouble})")).unwrap_or_default();
        let key = if is_refused { "refused" } else { "silent" };
        return Ok(told(key, format!("nothing sent{span}{trouble}")));
    }
    if let Some(mount) = mounts::unbound(settings)?.first() {
        let name = shown(&mount.directory);
        return Ok(told(&format!("unbound {name}"), format!("{name} became a link and is not synced")));
    }
    let Some((home, files)) = home else { return Ok(None) };
    let recorded = match files {
        Files::Scanned => Findings::recorded(settings, prefix),
        Files::Unknown => None,
    };
    let findings = match recorded {
        Some(findings) => findings,
        None => Findings::look(settings, home, prefix)?,
    };
    if let Some(HeldFile { name, why }) = &findings.first_held {
        let more = match findings.held {
            1 => String::new(),
            count => format!(", and {}", counted(count - 1, "more file")),
        };
        return Ok(told(&format!("held {name}"), format!("{name} is held back: {why}{more}")));
    }
    if findings.held_deletions > 0 {
        let count = counted(findings.held_deletions, "file");
        let (_, it) = was_it(findings.held_deletions);
        return Ok(told("held deletions", format!("another machine deleted {count}; we kept {it} here")));
    }
    if findings.waiting_deletions > 0 {
        let gone = findings.waiting_deletions;
        let what = format!("{} disappeared here. {}", counted(gone, "file"), kept_elsewhere(gone));
        return Ok(told("deletions", what));
    }
    Ok(findings.first_conflict(settings)?.and_then(|conflict| {
        told(
            &format!("versions {}", conflict.locator),
            format!("{} has two versions of one passage", conflict.locator),
        )
    }))
}

#[cfg(test)]
mod tests {
    use haversack::sync::Quiet;

    use super::*;
    use crate::home::{SyncOptions, Work, sync_with};
    use crate::remote::{self, Remote};

    /// A session start that waited for a round takes the round's findings: it does not see files that were written after the round.
    #[test]
    fn session_start_after_a_round_scans_no_files() {
        let directory = tempfile::tempdir().expect("made");
        let settings = Settings::of_home(directory.path().join("home"));
        let remote = Remote::new(format!("file://{}", directory.path().join("remote").display()), "laptop");
        let meeting = remote::new_meeting(&settings, &remote).expect("made");
        let prefix = Locator::parse("lighthouse").expect("a name");
        let write = |name: &str, text: &str| {
            let file = settings.memory().join("lighthouse").join(name);
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("made");
            std::fs::write(file, text).expect("written");
        };
        let round = || {
            let options = SyncOptions::new(Work::Near(&prefix), "session");
            sync_with(&settings, &remote, &meeting, &options, &Quiet).map(drop)
        };
        let told = |files| {
            let home = Home::open(&settings).expect("opened");
            let found = find_problem(&settings, Some((&home, files)), &prefix, SystemClock.now());
            found.expect("looked").map(|(key, _)| key)
        };
        let token = format!("gh{}_{}\n", "p", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        write("lamp.md", "white\n");
        round().expect("synced");
        assert_eq!(told(Files::Scanned), None, "the first start looks at all files");
        write("ports.md", "staging 1\n> [also, from desktop:]\nstaging 2\n");
        assert_eq!(told(Files::Scanned), None);
        assert_eq!(told(Files::Unknown).as_deref(), Some("versions lighthouse/ports.md"));
        write("tide.md", "low\n> [also, from desktop:]\nhigh\n");
        round().expect("synced");
        write("ports.md", "staging 2\n");
        write("deploy.md", &token);
        assert_eq!(told(Files::Scanned).as_deref(), Some("versions lighthouse/tide.md"));
        round().expect("synced");
        assert_eq!(told(Files::Scanned).as_deref(), Some("held lighthouse/deploy.md"));
        // A round that failed may have written files: the next start looks at all of them.
        std::fs::remove_dir_all(directory.path().join("remote")).expect("removed");
        assert!(round().is_err());
        assert_eq!(Findings::recorded(&settings, &prefix), None);
    }
}
