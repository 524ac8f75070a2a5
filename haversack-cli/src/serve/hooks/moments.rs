//! The hooks that give an agent passages of its project's memory: at a prompt, before an edit or a command, and after a failure.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::input::Input;
use super::{Event, Outcome, project_of};
use crate::app::at_hand::{Moment, passages};
use crate::error::CommandError;
use crate::settings::Settings;

/// Answers a hook with passages, or with nothing. A late answer is no answer, because the user or the agent waits.
pub(super) fn run(settings: &Settings, event: Event, input: &Input) -> Result<Outcome, CommandError> {
    let started = Instant::now();
    let failure = input.failure();
    let moment = match event {
        Event::UserPromptSubmit => input.prompt.as_deref().map(Moment::Prompt),
        Event::PostToolUseFailure => failure.as_deref().map(Moment::Failure),
        Event::PreToolUse => {
            input.written().map(Path::new).map(Moment::Edit).or(input.command().map(Moment::Command))
        }
        Event::SessionStart
        | Event::PostToolUse
        | Event::FileChanged
        | Event::PreCompact
        | Event::PostCompact
        | Event::SessionEnd => None,
    };
    let Some(moment) = moment else { return Ok(Outcome::quiet("nothing to look for")) };
    let project =
        project_of(settings, input)?.filter(|project| project.barrier.is_none() && !project.is_excluded);
    let Some(prefix) = project.and_then(|project| project.prefix()) else {
        return Ok(Outcome::quiet("no project"));
    };
    let Some((text, record)) = passages(settings, &prefix, input.session_id.as_deref(), moment)? else {
        return Ok(Outcome::quiet("nothing to give"));
    };
    if started.elapsed() > settings.hook_wait {
        return Ok(Outcome::quiet(format!(
            "gave nothing: it took more than {} ms",
            settings.hook_wait.as_millis()
        )));
    }
    record.note(settings);
    let output =
        json!({ "hookSpecificOutput": { "hookEventName": event.name(), "additionalContext": text } });
    Ok(Outcome {
        output: Some(output),
        note: format!("gave {} passages, about {} tokens", record.given.len(), record.tokens),
    })
}
