//! The hooks that give an agent passages of its project's memory: at a prompt, before an edit or a command, and after a failure.
//!
//! The user or the agent waits for the answer, and another process may hold the index locked. So a thread searches, and the hook waits for it no longer
//! than `recall.hook-milliseconds`. The thread of a search that is too late ends with the process.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use serde_json::json;

use super::input::Input;
use super::{Event, Outcome, project_of};
use crate::app::at_hand::{HandedOut, Moment, passages};
use crate::error::CommandError;
use crate::settings::Settings;

/// The result of a search for passages.
enum Search {
    /// The session has no project whose memory may be given.
    NoProject,
    Done(Option<(Option<String>, HandedOut)>),
}

/// Answers a hook with passages, or with nothing. A late answer is no answer.
pub(super) fn run(settings: &Settings, event: Event, input: &Input) -> Result<Outcome, CommandError> {
    let started = Instant::now();
    let Some(moment) = moment(event, input) else { return Ok(Outcome::quiet("nothing to look for")) };
    let (sender, receiver) = mpsc::channel();
    let task = (settings.clone(), input.clone(), moment.clone());
    thread::spawn(move || {
        let (settings, input, moment) = task;
        // The hook may have stopped waiting.
        drop(sender.send(search(&settings, &input, &moment)));
    });
    let found = match receiver.recv_timeout(settings.hook_wait.saturating_sub(started.elapsed())) {
        Ok(Ok(Search::Done(found))) => found,
        Ok(Ok(Search::NoProject)) => return Ok(Outcome::quiet("no project")),
        Ok(Err(error)) => return Err(error),
        Err(RecvTimeoutError::Timeout) => {
            let wait = settings.hook_wait;
            HandedOut::late(settings, input.session_id.as_deref(), &moment, wait).note(settings);
            return Ok(Outcome::quiet(format!(
                "gave nothing: the search took more than {} ms",
                wait.as_millis()
            )));
        }
        Err(RecvTimeoutError::Disconnected) => {
            return Err(CommandError::ours("the search for passages ended without an answer"));
        }
    };
    let Some((text, record)) = found else { return Ok(Outcome::quiet("nothing to give")) };
    record.note(settings);
    let Some(text) = text else { return Ok(Outcome::quiet("nothing to give")) };
    let output =
        json!({ "hookSpecificOutput": { "hookEventName": event.name(), "additionalContext": text } });
    Ok(Outcome {
        output: Some(output),
        note: format!("gave {} passages, about {} tokens", record.given.len(), record.tokens),
    })
}

fn moment(event: Event, input: &Input) -> Option<Moment> {
    let command = || input.command().map(str::to_owned);
    match event {
        Event::UserPromptSubmit => input.prompt.clone().map(Moment::Prompt),
        Event::PostToolUseFailure => {
            input.error.clone().map(|error| Moment::Failure { command: command(), error })
        }
        Event::PreToolUse => {
            let file = input.written().map(|file| Moment::Edit(file.to_owned()));
            file.or_else(|| command().map(Moment::Command))
        }
        Event::SessionStart
        | Event::PostToolUse
        | Event::FileChanged
        | Event::PreCompact
        | Event::PostCompact
        | Event::SessionEnd => None,
    }
}

fn search(settings: &Settings, input: &Input, moment: &Moment) -> Result<Search, CommandError> {
    let project =
        project_of(settings, input)?.filter(|project| project.barrier.is_none() && !project.is_excluded);
    let Some(prefix) = project.and_then(|project| project.prefix()) else { return Ok(Search::NoProject) };
    passages(settings, &prefix, input.session_id.as_deref(), moment).map(Search::Done)
}
