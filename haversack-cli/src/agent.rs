//! Agents that run us by hooks, and the files of theirs that say so.
//!
//! What we change in them is written down with what was there before: as long as nobody else changed the file, it is put back byte for byte.

pub(crate) mod canary;
pub(crate) mod persona;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use haversack::ids::ContentHash;
use serde::{Deserialize, Serialize};

use crate::claude_code::servers;
use crate::claude_code::wiring::{self, Hook, Unfit};
use crate::commands::hook::CODEX;
use crate::error::CommandError;
use crate::projects::claude_code;
use crate::records;
use crate::settings::{Settings, shown};

/// An agent that we know how to set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    ClaudeCode,
    Codex,
}

/// Every agent that we know how to set up.
pub(crate) const AGENTS: [Agent; 2] = [Agent::ClaudeCode, Agent::Codex];

/// The tools of Claude Code that write files.
const WRITERS: &str = "Write|Edit|MultiEdit|NotebookEdit";

/// What is to become of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) file: PathBuf,
    /// What is in it; `None` if it is not there.
    pub(crate) before: Option<String>,
    /// What is to be in it; `None` if it is to go.
    pub(crate) after: Option<String>,
}

/// What we changed, so that it can be taken back: `state/agents/NAME.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    #[serde(default)]
    file: Vec<Changed>,
}

/// A file that we changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changed {
    path: PathBuf,
    /// What was in it; `None` if it was not there.
    before: Option<String>,
    /// The hash of what we wrote.
    after: String,
}

impl Agent {
    /// Returns its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Agent::ClaudeCode => "claude-code",
            Agent::Codex => "codex",
        }
    }

    /// Returns what people call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Agent::ClaudeCode => "Claude Code",
            Agent::Codex => "Codex",
        }
    }

    /// Returns the agent of a name.
    pub(crate) fn of(name: &str) -> Option<Agent> {
        AGENTS.into_iter().find(|agent| agent.name() == name)
    }

    /// Returns where it keeps its things.
    pub(crate) fn directory(self, settings: &Settings) -> Result<PathBuf, CommandError> {
        match self {
            Agent::ClaudeCode => Ok(claude_code(settings)?.directory),
            Agent::Codex => {
                let user = settings.surroundings.user.as_ref().map(|user| user.join(".codex"));
                let directory = settings.surroundings.codex_directory.clone().or(user);
                directory.ok_or_else(|| {
                    CommandError::user("this user has no home directory", "Set HOME or CODEX_HOME")
                })
            }
        }
    }

    /// Returns the file with its hooks.
    pub(crate) fn settings_file(self, settings: &Settings) -> Result<PathBuf, CommandError> {
        let name = match self {
            Agent::ClaudeCode => "settings.json",
            Agent::Codex => "hooks.json",
        };
        Ok(self.directory(settings)?.join(name))
    }

    /// Returns the file with the MCP servers that it starts, if we know how to write it.
    pub(crate) fn servers_file(self, settings: &Settings) -> Option<PathBuf> {
        match self {
            Agent::ClaudeCode => claude_code(settings).ok().map(|claude| claude.notes),
            Agent::Codex => None,
        }
    }

    /// Returns a file of it without what is ours.
    fn without_ours(self, settings: &Settings, file: &Path, text: &str) -> Result<String, Unfit> {
        if self.settings_file(settings).is_ok_and(|settings| settings == file) {
            return wiring::without_hooks(text);
        }
        match self.servers_file(settings).is_some_and(|servers| servers == file) {
            true => servers::without_server(text),
            false => Ok(persona::without_block(text)),
        }
    }

    /// Returns the file with what the user always tells it.
    pub(crate) fn instructions(self, settings: &Settings) -> Result<PathBuf, CommandError> {
        let name = match self {
            Agent::ClaudeCode => "CLAUDE.md",
            Agent::Codex => "AGENTS.md",
        };
        Ok(self.directory(settings)?.join(name))
    }

    /// Returns the hooks that run this very program for this home.
    pub(crate) fn hooks(self, settings: &Settings) -> Result<Vec<Hook>, CommandError> {
        let program = std::env::current_exe().map_err(CommandError::from)?;
        let home = std::path::absolute(&settings.home).map_err(CommandError::from)?;
        let hook = |event: &'static str, matcher: &'static str, timeout_seconds: u32| {
            let option = if self == Agent::Codex { format!("{CODEX} ") } else { String::new() };
            Hook {
                event,
                matcher,
                command: wiring::command(&program, &home, &option, event),
                timeout_seconds,
            }
        };
        let mut hooks = vec![
            hook("SessionStart", "", 10),
            hook("PostToolUse", if self == Agent::ClaudeCode { WRITERS } else { "" }, 5),
        ];
        if self == Agent::ClaudeCode {
            hooks.push(hook("FileChanged", "", 5));
        }
        hooks.extend(["PreCompact", "PostCompact", "SessionEnd"].map(|event| hook(event, "", 5)));
        Ok(hooks)
    }

    fn record_file(self, settings: &Settings) -> PathBuf {
        settings.home.join("state").join("agents").join(format!("{}.toml", self.name()))
    }

    fn record(self, settings: &Settings) -> Record {
        records::read(&self.record_file(settings), "").ok().flatten().unwrap_or_default()
    }

    /// Tells whether it was ever on this machine.
    pub(crate) fn is_here(self, settings: &Settings) -> bool {
        self.directory(settings).is_ok_and(|directory| directory.is_dir())
    }
}

/// Returns what setting an agent up changes. What is not understood is an error that says so.
pub(crate) fn plan_setup(
    settings: &Settings,
    agent: Agent,
    with_persona: WithPersona,
) -> Result<Vec<Change>, CommandError> {
    let file = agent.settings_file(settings)?;
    let before = read(&file)?;
    let hooks = agent.hooks(settings)?;
    let after = wiring::with_hooks(before.as_deref().unwrap_or_default(), &hooks)
        .map_err(|why| unfit(&file, agent, &why.to_string()))?;
    let mut changes = vec![Change { file, before, after: Some(after) }];
    if let Some(file) = agent.servers_file(settings) {
        let before = read(&file)?;
        let program = std::env::current_exe().map_err(CommandError::from)?;
        let home = std::path::absolute(&settings.home).map_err(CommandError::from)?;
        let after = servers::with_server(before.as_deref().unwrap_or_default(), &program, &home)
            .map_err(|why| unfit(&file, agent, &why.to_string()))?;
        changes.push(Change { file, before, after: Some(after) });
    }
    if with_persona == WithPersona::Yes {
        let file = agent.instructions(settings)?;
        let before = read(&file)?;
        let after = persona::with_block(before.as_deref().unwrap_or_default());
        changes.push(Change { file, before, after: Some(after) });
    }
    changes.retain(|change| change.before != change.after);
    Ok(changes)
}

/// Tells whether Claude Code starts a server of ours because its settings say so.
pub(crate) fn has_server(settings: &Settings) -> bool {
    let file = Agent::ClaudeCode.servers_file(settings);
    let text = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    servers::is_in(&text)
}

/// Whether the user's instructions say how the persona's files are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithPersona {
    Yes,
    No,
}

/// Returns what taking our hooks out of an agent changes.
pub(crate) fn plan_removal(settings: &Settings, agent: Agent) -> Result<Vec<Change>, CommandError> {
    let record = agent.record(settings);
    let mut changes = Vec::new();
    let files = [
        Some(agent.settings_file(settings)?),
        agent.servers_file(settings),
        Some(agent.instructions(settings)?),
    ];
    for file in files.into_iter().flatten() {
        let Some(now) = read(&file)? else { continue };
        let changed = record.file.iter().find(|changed| changed.path == file && changed.after == hash(&now));
        let after = match changed {
            // Nobody touched it since.
            Some(changed) => changed.before.clone(),
            None => {
                let without = agent.without_ours(settings, &file, &now);
                Some(without.map_err(|why| unfit(&file, agent, &why.to_string()))?)
            }
        };
        changes.push(Change { file, before: Some(now), after });
    }
    changes.retain(|change| change.before != change.after);
    Ok(changes)
}

/// Returns what was changed for an agent, if nobody changed it since.
pub(crate) fn changed(settings: &Settings, agent: Agent) -> Result<Vec<Change>, CommandError> {
    let mut changes = Vec::new();
    for Changed { path, before, after } in agent.record(settings).file {
        if let Some(now) = read(&path)?.filter(|now| hash(now) == after) {
            changes.push(Change { file: path, before, after: Some(now) });
        }
    }
    Ok(changes)
}

/// Makes a setup's changes, and writes down what was there.
pub(crate) fn set_up(settings: &Settings, agent: Agent, changes: &[Change]) -> Result<(), CommandError> {
    let mut record = agent.record(settings);
    for Change { file, before, after } in changes {
        let now = before.as_deref().map(hash);
        let earlier =
            record.file.iter().find(|changed| changed.path == *file && Some(&changed.after) == now.as_ref());
        let before = match (earlier, before) {
            (Some(earlier), _) => earlier.before.clone(),
            // Ours were in it already, from a setup that nobody remembers: without them it is what was there.
            (None, Some(before)) => {
                Some(agent.without_ours(settings, file, before).unwrap_or_else(|_| before.clone()))
            }
            (None, None) => None,
        };
        record.file.retain(|changed| changed.path != *file);
        record.file.push(Changed {
            path: file.clone(),
            before,
            after: hash(after.as_deref().unwrap_or_default()),
        });
    }
    // First: if what follows is cut short, it is known what was there.
    write_record(&agent.record_file(settings), &record)?;
    changes.iter().try_for_each(carry_out)
}

/// Makes a removal's changes, and forgets what was there.
pub(crate) fn remove(settings: &Settings, agent: Agent, changes: &[Change]) -> Result<(), CommandError> {
    changes.iter().try_for_each(carry_out)?;
    records::remove(&agent.record_file(settings))
}

/// Writes a file whole or not at all; what a link leads to is written, and the link stays.
fn carry_out(change: &Change) -> Result<(), CommandError> {
    let file = change.file.canonicalize().unwrap_or_else(|_| change.file.clone());
    let write = || -> io::Result<()> {
        let Some(text) = &change.after else { return fs::remove_file(&change.file) };
        let directory = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let draft = file.with_extension(format!("haversack-{}", std::process::id()));
        let permissions = fs::metadata(&file).map(|metadata| metadata.permissions());
        let mut out = fs::File::create(&draft)?;
        let written = out.write_all(text.as_bytes()).and_then(|()| out.sync_all());
        let written = written.and_then(|()| {
            permissions.map_or(Ok(()), |permissions| fs::set_permissions(&draft, permissions))
        });
        written.and_then(|()| fs::rename(&draft, &file)).inspect_err(|_| drop(fs::remove_file(&draft)))
    };
    write().map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("{} could not be written; it is as it was", shown(&change.file)),
            "Give this user access to it, and run the same command again",
        )
    })
}

/// Writes the record where only its owner can read it: settings may hold keys.
fn write_record(file: &Path, record: &Record) -> Result<(), CommandError> {
    records::write(file, record, records::Weight::Durable)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        drop(fs::set_permissions(file, fs::Permissions::from_mode(0o600)));
    }
    Ok(())
}

fn read(file: &Path) -> Result<Option<String>, CommandError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError {
            source: Some(error.into()),
            ..CommandError::user(format!("{} could not be read", shown(file)), "Give this user access to it")
        }),
    }
}

fn hash(text: &str) -> String {
    ContentHash::of(text.as_bytes()).to_string()
}

fn unfit(file: &Path, agent: Agent, why: &str) -> CommandError {
    CommandError {
        source: Some(why.to_owned().into()),
        ..CommandError::user(
            format!("{} is not understood, so it was left as it is", shown(file)),
            format!("Mend it, or put the hooks in by hand: haversack setup {} --print", agent.name()),
        )
    }
}
