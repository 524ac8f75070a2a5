//! Proves that an agent's hooks fire: runs them as the agent would, with nothing in the environment, and looks for what they leave.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use haversack::ids::{ContentHash, Ids};
use haversack_system::RandomIds;
use serde_json::{Value, json};

use super::Agent;
use crate::agents::claude_code::wiring;
use crate::agents::journal::Journal;
use crate::error::CommandError;
use crate::settings::Settings;

/// The result of a test of an agent's hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Canary {
    /// So many fired.
    Fired(usize),
    /// None of ours is in the settings.
    NotWired,
    /// All hooks are switched off there.
    SwitchedOff,
    /// This one did not fire, and why.
    Silent { event: String, why: String },
}

/// Runs every hook of ours that an agent has.
pub(crate) fn try_hooks(settings: &Settings, agent: Agent) -> Result<Canary, CommandError> {
    let file = agent.settings_file(settings)?;
    let text = super::ledger::read(&file)?.unwrap_or_default();
    let ours = wiring::ours_in(&text).map_err(|why| super::unfit(&file, agent, &why.to_string()))?;
    if wiring::is_on(&text, "disableAllHooks") == Some(true) {
        return Ok(Canary::SwitchedOff);
    }
    if ours.is_empty() {
        return Ok(Canary::NotWired);
    }
    let journal = Journal::of(settings);
    for (event, command) in &ours {
        let session = format!("canary-{}", &ContentHash::of(&RandomIds.next()).to_string()[..8]);
        if let Err(why) = fire(event, command, &session) {
            return Ok(Canary::Silent { event: event.clone(), why });
        }
        let noted = fs::read_to_string(journal.file()).unwrap_or_default();
        if !noted.contains(&session) {
            let why = "it ran, and left no line in the journal of this home".to_owned();
            return Ok(Canary::Silent { event: event.clone(), why });
        }
    }
    Ok(Canary::Fired(ours.len()))
}

/// Returns the input that the agent gives to a hook. The file in it is in no memory, so the hook has nothing to send.
fn input(event: &str, session: &str) -> Value {
    let file = std::env::temp_dir().join(format!("{session}.md"));
    let mut input =
        json!({ "session_id": session, "cwd": "/", "hook_event_name": event, "source": "startup" });
    match event {
        "PostToolUse" => {
            input["tool_name"] = json!("Write");
            input["tool_input"] = json!({ "file_path": file, "content": "" });
        }
        "FileChanged" => input["file_path"] = json!(file),
        _ => {}
    }
    input
}

fn fire(event: &str, command: &str, session: &str) -> Result<(), String> {
    let mut shell = if cfg!(windows) { Command::new("cmd") } else { Command::new("/bin/sh") };
    shell.arg(if cfg!(windows) { "/C" } else { "-c" }).arg(command);
    // The remote is not asked by a canary, and no project is bound.
    shell.env_clear().env(crate::settings::variables::SYNC, "off").current_dir(std::env::temp_dir());
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().map_err(|error| error.to_string())?;
    let input = input(event, session);
    if let Some(mut stdin) = child.stdin.take() {
        drop(stdin.write_all(input.to_string().as_bytes()));
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Ok(()),
        code => Err(format!(
            "its command ended with {}: {}",
            code.map_or("a signal".to_owned(), |code| code.to_string()),
            said.lines().next().unwrap_or("and said nothing")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_names_a_file_where_the_agent_does() {
        let file = |event: &str, place: &str| {
            input(event, "canary-1").pointer(place).and_then(Value::as_str).map(str::to_owned)
        };
        let by_tool = file("PostToolUse", "/tool_input/file_path").expect("a file");
        assert!(std::path::Path::new(&by_tool).is_absolute(), "{by_tool}");
        assert_eq!(file("FileChanged", "/file_path"), Some(by_tool));
        assert_eq!(file("SessionStart", "/tool_input/file_path"), None);
    }
}
