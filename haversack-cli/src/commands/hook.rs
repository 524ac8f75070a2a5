//! `haversack hook`: what an agent's hooks run.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use crate::agents::CODEX_OPTION;
use crate::agents::journal::Journal;
use crate::error::{CommandError, Warning};
use crate::serve::hooks::input::{Input, Understood};
use crate::serve::hooks::{self, Event, LONGEST, Outcome, PULL_WAIT};
use crate::settings::Settings;
use crate::ui::Ui;

/// The word that a plugin adds: where the settings have our hooks too, they alone fire.
const PLUGIN: &str = "--plugin";

/// Answer a hook of an agent: JSON on stdin, JSON on stdout; always succeeds
#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// The event, as SessionStart
    // Nothing here may be a mistake of usage: its exit code would block the agent.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "EVENT")]
    words: Vec<String>,
}

impl HookArgs {
    fn event(&self) -> &str {
        self.words.iter().map(String::as_str).find(|word| !word.starts_with("--")).unwrap_or("-")
    }

    fn has(&self, option: &str) -> bool {
        self.words.iter().any(|word| word == option)
    }
}

pub(crate) fn cmd_hook(ui: &mut Ui, settings: &Settings, args: &HookArgs) -> Result<ExitCode, CommandError> {
    let started = Instant::now();
    let name = args.event();
    let journal = Journal::of(settings);
    let event = Event::of(name);
    let longest = if event == Some(Event::SessionStart) { PULL_WAIT + LONGEST } else { LONGEST };
    end_after(longest, name, Journal::of(settings));
    let Understood { input, trouble } = Input::read(io::stdin().lock());
    let mut settings = settings.clone();
    settings.lock_wait = settings.lock_wait.min(LONGEST / 2);
    let answered = catch_unwind(AssertUnwindSafe(|| match event {
        None => Ok(Outcome { output: None, note: "no such event".to_owned() }),
        Some(_) if args.has(PLUGIN) && hooks::are_wired(&settings, &input) => {
            Ok(Outcome { output: None, note: "the hooks in the settings do it".to_owned() })
        }
        Some(event) => hooks::run(&settings, event, &input),
    }));
    let outcome = match answered {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => {
            let cause = error.source.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
            Outcome { output: None, note: format!("failed: {}{cause}", error.message) }
        }
        Err(_) => Outcome { output: None, note: "failed: a mistake of ours".to_owned() },
    };
    if let Some(output) =
        outcome.output.map(|output| if args.has(CODEX_OPTION) { for_codex(output) } else { output })
    {
        // The agent may have closed the pipe.
        drop(ui.json_line(&output));
    }
    let took = started.elapsed().as_millis();
    let trouble = trouble.map(|trouble| format!(" ({trouble})")).unwrap_or_default();
    journal.note(name, input.session_id.as_deref(), &format!("{}{trouble} in {took} ms", outcome.note));
    Ok(ExitCode::SUCCESS)
}

/// Takes out what Codex does not know; it would refuse the rest with it.
fn for_codex(mut output: Value) -> Value {
    if let Some(specific) = output.get_mut("hookSpecificOutput").and_then(Value::as_object_mut) {
        specific.remove("watchPaths");
    }
    output
}

/// Answers a hook if the settings are wrong: does nothing, and does not stop the agent.
pub(crate) fn without_settings(home: Option<&Path>, error: &CommandError, args: &HookArgs) -> ExitCode {
    drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
    if let Some(home) = home {
        let cause = error.source.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        Journal::in_home(home).note(args.event(), None, &format!("failed: {}{cause}", error.message));
    }
    ExitCode::SUCCESS
}

/// Writes a warning about the settings into the journal: the output of a hook is not read by people.
pub(crate) fn note_warning(settings: &Settings, args: &HookArgs, warning: &Warning) {
    Journal::of(settings).note(args.event(), None, &format!("warning: {}", warning.message));
}

/// Ends this process in time, whatever it waits for: a disk, a lock, or an input that never ends.
fn end_after(time: Duration, event: &str, journal: Journal) {
    let event = event.to_owned();
    std::thread::spawn(move || {
        std::thread::sleep(time);
        journal.note(&event, None, "gave up: there was no more time");
        std::process::exit(0);
    });
}
