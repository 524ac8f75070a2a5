//! `haversack setup`: an agent's hooks run us from now on, or not any more.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use similar::TextDiff;

use super::help::closest;
use crate::agents::claude_code::wiring;
use crate::agents::program;
use crate::agents::skills;
use crate::agents::{self, AGENTS, Agent, CODEX_ASKS, Change, WithPersona, WithRecall};
use crate::app::recall;
use crate::error::CommandError;
use crate::settings::Settings;
use crate::settings::tilde;
use crate::ui::Ui;
use crate::ui::moments::counted;

/// The name for any client of the Model Context Protocol.
const GENERIC_MCP: &str = "generic-mcp";

/// A client of the Model Context Protocol whose file we know.
struct Client {
    name: &'static str,
    /// The file with its servers.
    file: &'static str,
    /// The key of the servers in that file.
    key: &'static str,
}

/// The clients whose files we know. We print the entry and do not write it: the files hold other settings of the user.
const CLIENTS: [Client; 5] = [
    Client { name: "cursor", file: "~/.cursor/mcp.json", key: "mcpServers" },
    Client { name: "vscode", file: ".vscode/mcp.json, or \"MCP: Open User Configuration\"", key: "servers" },
    Client { name: "windsurf", file: "~/.codeium/windsurf/mcp_config.json", key: "mcpServers" },
    Client { name: "zed", file: "~/.config/zed/settings.json", key: "context_servers" },
    Client { name: "gemini-cli", file: "~/.gemini/settings.json", key: "mcpServers" },
];

/// The number of lines that are shown around a change.
const AROUND: usize = 3;

/// Let an agent's hooks sync its memory: claude-code or codex; cursor, vscode, windsurf, zed, gemini-cli, generic-mcp and any other get something to paste
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// The agent
    agent: String,

    /// Also put a marked passage into your instructions that says when the persona's files are read and written
    #[arg(long)]
    persona: bool,

    /// Also give the agent passages of the project's memory when they matter: at a prompt, before an edit or a command, after a failure
    #[arg(long)]
    recall: bool,

    /// Show the changes that it would make or has made, and do nothing
    #[arg(long, conflicts_with_all = ["remove", "print"])]
    diff: bool,

    /// Take it out again; memory stays where it is
    #[arg(long, conflicts_with = "print")]
    remove: bool,

    /// Print the hooks, to be added by hand
    #[arg(long)]
    print: bool,
}

pub(crate) fn cmd_setup(
    ui: &mut Ui,
    settings: &Settings,
    args: &SetupArgs,
) -> Result<ExitCode, CommandError> {
    let clients = CLIENTS.iter().map(|client| client.name);
    let mut known = AGENTS.map(Agent::name).into_iter().chain(clients).chain([GENERIC_MCP]);
    if !known.clone().any(|name| name == args.agent)
        && let Some(alike) = closest(&args.agent, &mut known)
    {
        return Err(CommandError::user(
            format!("there is no agent {} that we know", args.agent),
            format!("Did you mean {alike}? For any other agent: haversack setup {GENERIC_MCP}"),
        ));
    }
    if !args.diff && !args.remove {
        // Everything below names the copy: settings that are written and hooks that are printed.
        program::install(settings)?;
    }
    if args.agent == GENERIC_MCP {
        return paste_mcp(ui, settings);
    }
    if let Some(client) = CLIENTS.iter().find(|client| client.name == args.agent) {
        return paste_client(ui, settings, client, args);
    }
    let Some(agent) = Agent::of(&args.agent) else { return paste(ui, settings, &args.agent) };
    if args.print {
        ui.bytes(wiring::to_paste(&agent.hooks(settings)?).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.remove {
        remove(ui, settings, agent)?;
        return Ok(ExitCode::SUCCESS);
    }
    let with_persona = if args.persona { WithPersona::Yes } else { WithPersona::No };
    let with_recall = if args.recall { WithRecall::Yes } else { WithRecall::No };
    if args.recall && agent != Agent::ClaudeCode {
        return Err(CommandError::user(
            format!("{} is not given passages: --recall is for claude-code", agent.title()),
            format!("haversack setup {}", agent.name()),
        ));
    }
    let changes = match agents::plan_setup(settings, agent, with_persona, with_recall) {
        Ok(changes) => changes,
        Err(error) => {
            // A user who repairs the file by hand needs to know our entries.
            ui.bytes(wiring::to_paste(&agent.hooks(settings)?).as_bytes())?;
            return Err(error);
        }
    };
    if args.diff {
        let shown = if changes.is_empty() { agents::changed(settings, agent)? } else { changes };
        show(ui, settings, &shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    set_up(ui, settings, agent, &changes)?;
    if args.recall {
        // Hooks search the index as it stands, so it must be there.
        recall::refresh(settings)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the changes of a setup, and says which.
pub(crate) fn set_up(
    ui: &mut Ui,
    settings: &Settings,
    agent: Agent,
    changes: &[Change],
) -> Result<(), CommandError> {
    if changes.is_empty() {
        ui.note(format!("{} is set up already", agent.title()));
        return Ok(());
    }
    agents::set_up(settings, agent, changes)?;
    let hooks = counted(agent.hooks(settings)?.len(), "hook");
    let directory = agent.directory(settings)?;
    let (skill_files, changes): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| skills::is_skill(&directory, &change.file));
    for change in changes {
        let what = match &change.file {
            file if *file == agent.settings_file(settings)? => hooks.clone(),
            file if Some(file) == agent.servers_file(settings).as_ref() => "an MCP server".to_owned(),
            _ => "a marked passage".to_owned(),
        };
        ui.note(format!(
            "changed {} ({what}; see it: haversack setup {} --diff)",
            tilde(settings, &change.file),
            agent.name()
        ));
    }
    if !skill_files.is_empty() {
        ui.note(format!(
            "added {} to {}",
            counted(skill_files.len(), "skill"),
            tilde(settings, &skills::directory(&directory))
        ));
    }
    if agent == Agent::Codex {
        ui.note(CODEX_ASKS);
    }
    Ok(())
}

/// Takes our hooks out of an agent, and says so.
pub(crate) fn remove(ui: &mut Ui, settings: &Settings, agent: Agent) -> Result<(), CommandError> {
    let changes = agents::plan_removal(settings, agent)?;
    agents::remove(settings, agent, &changes)?;
    let directory = agent.directory(settings)?;
    let (skill_files, others): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| skills::is_skill(&directory, &change.file));
    for change in others {
        ui.note(match &change.after {
            Some(_) => format!("{} is without us again", tilde(settings, &change.file)),
            None => format!("{} is gone again: it was not there before", tilde(settings, &change.file)),
        });
    }
    if !skill_files.is_empty() {
        ui.note(format!(
            "Removed {} from {}",
            counted(skill_files.len(), "skill"),
            tilde(settings, &skills::directory(&directory))
        ));
    }
    if changes.is_empty() {
        ui.note(format!("Nothing of ours was in the settings of {}", agent.title()));
    }
    Ok(())
}

/// Prints changes of files as a diff.
pub(crate) fn show(ui: &mut Ui, settings: &Settings, changes: &[Change]) -> Result<(), CommandError> {
    let directory = Agent::ClaudeCode.directory(settings)?;
    let (skill_files, others): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| skills::is_skill(&directory, &change.file));
    for Change { file, before, after } in others {
        let name = tilde(settings, file);
        let [old, new] = [before, after].map(|text| text.clone().unwrap_or_default());
        let headers = [(before, "a"), (after, "b")];
        let [from, to] = headers.map(|(text, side)| match text {
            Some(_) => format!("{side}/{name}"),
            None => "/dev/null".to_owned(),
        });
        let diff = TextDiff::from_lines(&old, &new);
        ui.bytes(diff.unified_diff().context_radius(AROUND).header(&from, &to).to_string().as_bytes())?;
    }
    if !skill_files.is_empty() {
        // Their texts are long, and belong to no settings.
        let names = skill_files.iter().filter_map(|change| change.file.parent()?.file_name());
        let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        let place = tilde(settings, &skills::directory(&directory));
        ui.note(format!("{} in {place}: {}", counted(names.len(), "skill"), names.join(", ")));
    }
    if changes.is_empty() {
        ui.note("Nothing is to be changed");
    }
    Ok(())
}

/// Prints what makes any client of the Model Context Protocol start us for this home.
fn paste_mcp(ui: &mut Ui, settings: &Settings) -> Result<ExitCode, CommandError> {
    let program = program::copy_of(settings)?;
    let home = std::path::absolute(&settings.home).map_err(CommandError::from)?;
    let arguments = ["--home", &home.to_string_lossy(), "mcp"].map(str::to_owned);
    ui.note("Into the file where your client has its MCP servers (mcp.json, .mcp.json, claude_desktop_config.json …):");
    ui.json(&json!({ "mcpServers": { "haversack": { "command": program.to_string_lossy(), "args": arguments } } }))?;
    ui.note("Clients that speak HTTP: haversack serve");
    Ok(ExitCode::SUCCESS)
}

/// Prints the entry of our server for a client, and the file it belongs into.
fn paste_client(
    ui: &mut Ui,
    settings: &Settings,
    client: &Client,
    args: &SetupArgs,
) -> Result<ExitCode, CommandError> {
    let Client { file, key, .. } = client;
    if args.remove {
        ui.note(format!("Take \"haversack\" out of \"{key}\" in {file}"));
        return Ok(ExitCode::SUCCESS);
    }
    let program = program::copy_of(settings)?;
    let home = std::path::absolute(&settings.home).map_err(CommandError::from)?;
    let arguments = ["--home", &home.to_string_lossy(), "mcp"].map(str::to_owned);
    ui.note(format!("Put this into {file}, beside the servers that are in \"{key}\" already:"));
    ui.json(&json!({ *key: { "haversack": { "command": program.to_string_lossy(), "args": arguments } } }))?;
    Ok(ExitCode::SUCCESS)
}

fn paste(ui: &mut Ui, settings: &Settings, name: &str) -> Result<ExitCode, CommandError> {
    let known = AGENTS.map(Agent::name).join(" and ");
    ui.note(format!(
        "{name} is not an agent that we can set up ({known}). If its hooks are commands with JSON on stdin, paste these:"
    ));
    ui.bytes(wiring::to_paste(&Agent::Codex.hooks(settings)?).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
