//! Agents that run us by hooks, and the files of theirs that say so.
//!
//! The [`ledger`] records our changes with the text before them.

pub(crate) mod canary;
pub(crate) mod claude_code;
pub(crate) mod codex;
pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod mend;
pub(crate) mod persona;
pub(crate) mod program;
pub(crate) mod skills;

pub(crate) use self::ledger::Change;

use std::fs;
use std::path::{Path, PathBuf};

use self::ledger::{Ledger, read};
use crate::agents::claude_code::wiring::{self, Hook, Unfit};
use crate::agents::claude_code::{ClaudeCode, servers};
use crate::error::CommandError;
use crate::settings::{Settings, shown};

/// The option of `haversack hook` that says that Codex asks.
pub(crate) const CODEX_OPTION: &str = "--codex";

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

/// The message for a user of Codex when its hooks change.
pub(crate) const CODEX_ASKS: &str = "Codex asks for your permission once: type /hooks in Codex";

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
            Agent::ClaudeCode => Ok(ClaudeCode::expected(settings)?.directory),
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

    /// Returns the file with the MCP servers that it starts.
    pub(crate) fn servers_file(self, settings: &Settings) -> Option<PathBuf> {
        match self {
            Agent::ClaudeCode => ClaudeCode::expected(settings).ok().map(|claude| claude.notes),
            Agent::Codex => self.directory(settings).ok().map(|directory| directory.join("config.toml")),
        }
    }

    /// Returns the file of its servers with ours, for this home.
    fn with_server(self, text: &str, program: &Path, home: &Path) -> Result<String, Unfit> {
        match self {
            Agent::ClaudeCode => servers::with_server(text, program, home),
            Agent::Codex => codex::with_server(text, program, home),
        }
    }

    fn without_server(self, text: &str) -> Result<String, Unfit> {
        match self {
            Agent::ClaudeCode => servers::without_server(text),
            Agent::Codex => codex::without_server(text),
        }
    }

    /// Returns the program and the arguments of our server in the file of its servers, if there is one.
    fn server_in(self, text: &str) -> Result<Option<(String, Vec<String>)>, Unfit> {
        match self {
            Agent::ClaudeCode => servers::ours_in(text),
            Agent::Codex => codex::ours_in(text),
        }
    }

    /// Returns the file of its servers in which ours is another program.
    fn with_server_program(self, text: &str, program: &Path) -> Result<String, Unfit> {
        match self {
            Agent::ClaudeCode => servers::with_program(text, program),
            Agent::Codex => codex::with_program(text, program),
        }
    }

    /// Returns a file of it without what is ours.
    fn without_ours(self, settings: &Settings, file: &Path, text: &str) -> Result<String, Unfit> {
        if self.settings_file(settings).is_ok_and(|settings| settings == file) {
            return wiring::without_hooks(text);
        }
        if self.directory(settings).is_ok_and(|directory| skills::is_skill(&directory, file)) {
            return Ok(text.to_owned());
        }
        match self.servers_file(settings).is_some_and(|servers| servers == file) {
            true => self.without_server(text),
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

    /// Returns the hooks that run the home's copy of this program for this home. Those that give passages are among them if the user has set
    /// them up.
    pub(crate) fn hooks(self, settings: &Settings) -> Result<Vec<Hook>, CommandError> {
        let with_recall = if self.has_recall(settings) { WithRecall::Yes } else { WithRecall::No };
        self.hooks_with(settings, with_recall)
    }

    /// Returns true if the agent's settings have our hook at the prompt.
    fn has_recall(self, settings: &Settings) -> bool {
        let text = self.settings_file(settings).ok().and_then(|file| fs::read_to_string(file).ok());
        let ours = text.and_then(|text| wiring::ours_in(&text).ok()).unwrap_or_default();
        ours.iter().any(|(event, _)| event == PROMPT)
    }

    fn hooks_with(self, settings: &Settings, with_recall: WithRecall) -> Result<Vec<Hook>, CommandError> {
        let program = program::copy_of(settings)?;
        let home = std::path::absolute(&settings.home).map_err(CommandError::from)?;
        let hook = |event: &'static str, matcher: &'static str, timeout_seconds: u32| {
            let option = if self == Agent::Codex { format!("{CODEX_OPTION} ") } else { String::new() };
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
        hooks.extend(["PreCompact", "PostCompact"].map(|event| hook(event, "", 5)));
        // Codex gives it three seconds at most, and complains if more are asked for.
        hooks.push(hook("SessionEnd", "", if self == Agent::Codex { 3 } else { 5 }));
        if self == Agent::ClaudeCode && with_recall == WithRecall::Yes {
            hooks.extend([
                hook(PROMPT, "", 5),
                hook("PreToolUse", "Edit|Bash", 5),
                hook("PostToolUseFailure", "", 5),
            ]);
        }
        Ok(hooks)
    }

    fn ledger(self, settings: &Settings) -> Ledger {
        Ledger::of(settings, self.name())
    }

    /// Returns true if it was ever on this machine.
    pub(crate) fn is_here(self, settings: &Settings) -> bool {
        self.directory(settings).is_ok_and(|directory| directory.is_dir())
    }
}

/// Returns what setting an agent up changes. What is not understood is an error that says so.
pub(crate) fn plan_setup(
    settings: &Settings,
    agent: Agent,
    with_persona: WithPersona,
    with_recall: WithRecall,
) -> Result<Vec<Change>, CommandError> {
    let file = agent.settings_file(settings)?;
    let before = read(&file)?;
    let hooks = match with_recall {
        WithRecall::Yes => agent.hooks_with(settings, with_recall)?,
        // Setting up again keeps what the user chose before.
        WithRecall::No => agent.hooks(settings)?,
    };
    let after = wiring::with_hooks(before.as_deref().unwrap_or_default(), &hooks)
        .map_err(|why| unfit(&file, agent, &why.to_string()))?;
    let mut changes = vec![Change { file, before, after: Some(after) }];
    if let Some(file) = agent.servers_file(settings) {
        let before = read(&file)?;
        let program = program::copy_of(settings)?;
        let home = std::path::absolute(&settings.home).map_err(CommandError::from)?;
        let after =
            agent.with_server(before.as_deref().unwrap_or_default(), &program, &home).map_err(|why| {
                CommandError {
                    hint: Some("Mend it, and run the same command again".to_owned()),
                    ..unfit(&file, agent, &why.to_string())
                }
            })?;
        changes.push(Change { file, before, after: Some(after) });
    }
    if with_persona == WithPersona::Yes {
        let file = agent.instructions(settings)?;
        let before = read(&file)?;
        let after = persona::with_block(before.as_deref().unwrap_or_default());
        changes.push(Change { file, before, after: Some(after) });
    }
    if agent == Agent::ClaudeCode {
        changes.extend(skills::plan(&agent.directory(settings)?, &agent.ledger(settings))?);
    }
    changes.retain(|change| change.before != change.after);
    Ok(changes)
}

/// Returns true if Claude Code starts a server of ours because its settings say so.
pub(crate) fn has_server(settings: &Settings) -> bool {
    let file = Agent::ClaudeCode.servers_file(settings);
    let text = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    servers::is_in(&text)
}

/// Returns true if this home has put the persona's passage into an agent's instructions, and it is still there.
pub(crate) fn has_persona(settings: &Settings) -> bool {
    AGENTS.into_iter().any(|agent| {
        let Ok(file) = agent.instructions(settings) else { return false };
        agent.ledger(settings).has_changed(&file)
            && fs::read_to_string(&file).is_ok_and(|text| persona::is_in(&text))
    })
}

/// Tells if the user's instructions describe how to read and write the persona's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithPersona {
    Yes,
    No,
}

/// The event of a prompt. Our hook for it is there only if the user wants passages.
const PROMPT: &str = "UserPromptSubmit";

/// Tells if an agent is given passages of memory when they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithRecall {
    Yes,
    No,
}

/// Returns what taking our hooks out of an agent changes.
pub(crate) fn plan_removal(settings: &Settings, agent: Agent) -> Result<Vec<Change>, CommandError> {
    let ledger = agent.ledger(settings);
    let mut changes = Vec::new();
    let files = [
        Some(agent.settings_file(settings)?),
        agent.servers_file(settings),
        Some(agent.instructions(settings)?),
    ];
    for file in files.into_iter().flatten() {
        let Some(now) = read(&file)? else { continue };
        let after = ledger.without(&file, &now, |text| agent.without_ours(settings, &file, text));
        let after = after.map_err(|why| unfit(&file, agent, &why.to_string()))?;
        changes.push(Change { file, before: Some(now), after });
    }
    for (file, _) in skills::files(&agent.directory(settings)?) {
        // A skill that the user changed since is the user's.
        if let Some(now) = read(&file)?.filter(|now| ledger.has_written(&file, now)) {
            let after = ledger.before(&file);
            changes.push(Change { file, before: Some(now), after });
        }
    }
    changes.retain(|change| change.before != change.after);
    Ok(changes)
}

/// Returns our changes for an agent, if no other program changed the files since.
pub(crate) fn changed(settings: &Settings, agent: Agent) -> Result<Vec<Change>, CommandError> {
    agent.ledger(settings).changed()
}

/// Makes a setup's changes, and writes down what was there.
pub(crate) fn set_up(settings: &Settings, agent: Agent, changes: &[Change]) -> Result<(), CommandError> {
    agent.ledger(settings).make(changes, |file, text| agent.without_ours(settings, file, text))
}

/// Makes a removal's changes, and forgets what was there.
pub(crate) fn remove(settings: &Settings, agent: Agent, changes: &[Change]) -> Result<(), CommandError> {
    agent.ledger(settings).take_back(changes)?;
    if changes.iter().any(|change| change.after.is_none()) {
        skills::tidy(&agent.directory(settings)?);
    }
    agent.ledger(settings).forget()
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
