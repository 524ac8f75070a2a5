//! Answers an agent's hook: `haversack hook EVENT`, JSON on stdin.
//!
//! A hook never disturbs the agent: in every case, the answer is a success, in time, and stdout has only the protocol. A problem is a line in
//! the journal and, if the user has to act, one line that the user sees.

pub(crate) mod input;
mod moments;
mod start;

use std::path::PathBuf;
use std::time::Duration;

use haversack::index;
use serde_json::{Value, json};

use self::input::Input;
use crate::agents::claude_code::ClaudeCode;
use crate::agents::claude_code::wiring::{self, CommandLine};
use crate::agents::program::{self, Usability};
use crate::app::{self, digest, session};
use crate::background::requests::SyncRequest;
use crate::background::{self, Answer};
use crate::error::CommandError;
use crate::home::store::{open_to_look, place_of};
use crate::projects::Project;
use crate::projects::registry::ProjectRegistry;
use crate::settings::Settings;

/// The time that the start of a session waits for other machines' memory.
pub(crate) const PULL_WAIT: Duration = Duration::from_millis(1500);

/// The time limit of a hook; the start of a session has this much in addition.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

/// When a hook fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A session begins, continues, or begins again.
    SessionStart,
    /// The user sent a prompt.
    UserPromptSubmit,
    /// The agent is about to use a tool.
    PreToolUse,
    /// A tool wrote something.
    PostToolUse,
    /// A tool failed.
    PostToolUseFailure,
    /// A file that is watched changed.
    FileChanged,
    /// The conversation is about to be compacted.
    PreCompact,
    /// It was.
    PostCompact,
    /// A session ends.
    SessionEnd,
}

/// All events, with their names.
pub(crate) const EVENTS: [(&str, Event); 9] = [
    ("SessionStart", Event::SessionStart),
    ("UserPromptSubmit", Event::UserPromptSubmit),
    ("PreToolUse", Event::PreToolUse),
    ("PostToolUse", Event::PostToolUse),
    ("PostToolUseFailure", Event::PostToolUseFailure),
    ("FileChanged", Event::FileChanged),
    ("PreCompact", Event::PreCompact),
    ("PostCompact", Event::PostCompact),
    ("SessionEnd", Event::SessionEnd),
];

impl Event {
    /// Returns the event of a name.
    pub(crate) fn of(name: &str) -> Option<Event> {
        EVENTS.iter().find(|(other, _)| *other == name).map(|(_, event)| *event)
    }

    /// Returns the name of the event.
    fn name(self) -> &'static str {
        EVENTS.iter().find(|(_, event)| *event == self).map_or("", |(name, _)| name)
    }
}

/// The result of a hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// The answer to the agent; `None` if there is none.
    pub(crate) output: Option<Value>,
    /// The line for the journal.
    pub(crate) note: String,
}

impl Outcome {
    fn quiet(note: impl Into<String>) -> Outcome {
        Outcome { output: None, note: note.into() }
    }
}

/// Handles an event.
pub(crate) fn run(settings: &Settings, event: Event, input: &Input) -> Result<Outcome, CommandError> {
    match event {
        Event::SessionStart => start::run(settings, input),
        Event::PostToolUse | Event::FileChanged => wrote(settings, event, input),
        Event::UserPromptSubmit | Event::PreToolUse | Event::PostToolUseFailure => {
            moments::run(settings, event, input)
        }
        Event::PreCompact => sync_project(settings, input),
        Event::PostCompact => {
            let kept = keep_summary(settings, input)?;
            let synced = sync_project(settings, input)?;
            Ok(Outcome::quiet(format!("{kept}; {}", synced.note)))
        }
        Event::SessionEnd => {
            let digest = request_digest(settings, input).unwrap_or_else(|error| Some(error.message));
            let request = SyncRequest { prefix: None, session: input.session_id.clone(), files: Vec::new() };
            let answer = background::hand_over(settings, &request)?;
            if digest.is_none() && answer != Answer::NotAsked {
                // The process that syncs counts which memories the session read, too.
                request_record(settings, input)?;
            }
            let synced = told(answer);
            Ok(Outcome::quiet(digest.map_or(synced.clone(), |digest| format!("{digest}; {synced}"))))
        }
    }
}

/// Returns true if the hooks in the settings fire already: then a plugin's have nothing to do. Hooks whose program is gone do not fire.
pub(crate) fn are_wired(settings: &Settings, input: &Input) -> bool {
    let claude = ClaudeCode::of(settings, input.transcript_path.as_deref());
    let text =
        claude.and_then(|claude| std::fs::read_to_string(claude.settings_file()).ok()).unwrap_or_default();
    let can_fire = |command: &str| {
        let program = CommandLine::parse(command).map(|line| line.program);
        program.is_some_and(|program| {
            !program.is_absolute() || program::usability(&program) == Usability::Usable
        })
    };
    wiring::ours_in(&text).is_ok_and(|ours| ours.iter().any(|(_, command)| can_fire(command)))
}

/// Sends a written file, if it is memory. Tells the agent if it made an index longer than sessions read.
fn wrote(settings: &Settings, event: Event, input: &Input) -> Result<Outcome, CommandError> {
    let Some(path) = input.written() else { return Ok(Outcome::quiet("names no file")) };
    let place = place_of(settings, path)?.filter(|(prefix, _)| !prefix.is_root());
    let Some((prefix, file)) = place else { return Ok(Outcome::quiet("no memory")) };
    let note = file.to_string();
    let is_index = event == Event::PostToolUse && file.name() == index::FILE;
    let overflow = if is_index { app::index::overflow(&open_to_look(settings)?, &file) } else { None };
    let request = SyncRequest { prefix: Some(prefix), session: input.session_id.clone(), files: vec![file] };
    let answer = background::hand_over(settings, &request)?;
    let output = overflow.map(|overflow| {
        json!({ "hookSpecificOutput": { "hookEventName": event.name(), "additionalContext": overflow } })
    });
    Ok(Outcome { output, note: format!("{note}: {}", told(answer)) })
}

/// Sends what waits in the session's project.
fn sync_project(settings: &Settings, input: &Input) -> Result<Outcome, CommandError> {
    let prefix = project_of(settings, input)?.and_then(|project| project.prefix());
    let Some(prefix) = prefix else { return Ok(Outcome::quiet("stays on this machine")) };
    let request = SyncRequest { prefix: Some(prefix), session: input.session_id.clone(), files: Vec::new() };
    Ok(Outcome::quiet(told(background::hand_over(settings, &request)?)))
}

/// Returns the directory that a session started in: the one it is in now may be another.
fn directory_of(settings: &Settings, input: &Input) -> Option<PathBuf> {
    settings.surroundings.claude_start.clone().or_else(|| input.directory())
}

fn project_of(settings: &Settings, input: &Input) -> Result<Option<Project>, CommandError> {
    let claude = ClaudeCode::of(settings, input.transcript_path.as_deref());
    let Some((claude, directory)) = claude.zip(directory_of(settings, input)) else { return Ok(None) };
    Ok(Some(Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &directory)))
}

/// Asks the background process for the digest of a session that ends.
fn request_digest(settings: &Settings, input: &Input) -> Result<Option<String>, CommandError> {
    if !digest::is_wanted(settings) {
        return Ok(None);
    }
    if !request_record(settings, input)? {
        return Ok(Some("no digest: the session or its project is not known".to_owned()));
    }
    background::start_for_digest(settings)?;
    Ok(Some("digest requested".to_owned()))
}

/// Writes down which session ended; returns false if it is not known, or its project is not.
fn request_record(settings: &Settings, input: &Input) -> Result<bool, CommandError> {
    let Some(session) = input.session_id.as_deref() else { return Ok(false) };
    let Some(project) = project_of(settings, input)?.filter(|project| project.barrier.is_none()) else {
        return Ok(false);
    };
    let request = digest::Request::of(settings, &project, session, input.transcript_path.as_deref());
    digest::request(settings, &request)?;
    Ok(true)
}

/// Keeps the client's summary of a conversation, for the session's digest. It stays on this machine.
fn keep_summary(settings: &Settings, input: &Input) -> Result<String, CommandError> {
    let Some(summary) = input.compact_summary.as_deref().filter(|summary| !summary.trim().is_empty()) else {
        return Ok("no summary".to_owned());
    };
    let Some(project) = project_of(settings, input)? else { return Ok("no project".to_owned()) };
    session::keep_summary(settings, &project, input.session_id.as_deref(), summary)?;
    Ok("summary kept".to_owned())
}

fn told(answer: Answer) -> String {
    match answer {
        Answer::Done => "synced".to_owned(),
        Answer::Failed(why) => format!("sync failed: {why}"),
        Answer::TooLate => "handed over".to_owned(),
        Answer::NotAsked => "kept here for now".to_owned(),
    }
}
