//! `haversack init`: everything in one line, the same on every machine.

mod found;
mod proof;

use std::process::ExitCode;

use clap::Args;

use self::found::Found;
use super::join::{self, JoinArgs};
use super::remote::{AddArgs, NamedArgs, add};
use super::setup;
use crate::agents::canary::{Canary, try_hooks};
use crate::agents::claude_code::ClaudeCode;
use crate::agents::claude_code::wiring;
use crate::agents::program;
use crate::agents::{self, AGENTS, Agent, Change, WithPersona};
use crate::app;
use crate::error::CommandError;
use crate::home::mounts;
use crate::home::{Manner, Work};
use crate::projects::bind::{self, AskedBy};
use crate::projects::book::Book;
use crate::remote::address::{self, only_here, refuse_mistyped};
use crate::remote::credential::{Cloud, Source};
use crate::remote::site::{self, Asked};
use crate::remote::{self, Remote};
use crate::settings::declarations::{self, Value};
use crate::settings::{Settings, files, shown};
use crate::ui::moments::counted;
use crate::ui::{Answer, Ui};

/// Carry this machine's memory: find it, wire the agents, meet the other machines (the same line on every machine)
///
/// Shows what it found before it does anything. With an address, memory goes there and comes from there; without one it stays on this
/// machine. Running it again is safe.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Where the machines meet: a directory, s3://BUCKET, az://CONTAINER, gs://BUCKET; nowhere if left out
    url: Option<String>,

    /// What to call this machine; its own name if left out
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// Where the credential comes from, as for haversack remote add
    #[arg(long, value_name = "SOURCE")]
    credential: Option<String>,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Show what would be done, with the exact change to each settings file, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Send nothing, whatever remote there is, now and from now on; config.toml remembers it
    #[arg(long)]
    keep_memory_local: bool,
}

pub(crate) fn cmd_init(ui: &mut Ui, settings: &Settings, args: &InitArgs) -> Result<ExitCode, CommandError> {
    let mut settings = settings.clone();
    settings.keep_local |= args.keep_memory_local;
    settings.home = std::path::absolute(&settings.home)?;
    let url = match args.url.as_deref() {
        Some(typed) if settings.keep_local => refuse_mistyped(typed).map(|()| None)?,
        None if settings.keep_local => None,
        Some(typed) => {
            let asked = Asked { command: "haversack init", typed };
            Some(address::address(ui, &settings, asked)?.url)
        }
        None => match Remote::unagreed(&settings)? {
            Some(named) => Some(named.url),
            None => Remote::for_looking(&settings)?.map(|remote| remote.url),
        },
    };
    let found = Found::look(&settings)?;
    found.tell(ui, url.is_some())?;
    let agents: Vec<Agent> = AGENTS.into_iter().filter(|agent| agent.is_here(&settings)).collect();
    // Before anything is done: a settings file that is not understood stops it here.
    let changes = plan(ui, &settings, &agents).inspect_err(|_| {
        if !args.dry_run {
            // The hooks that were printed name the copy. If it cannot be made, the error of the settings file is the one to tell.
            drop(program::install(&settings));
        }
    })?;
    if args.dry_run {
        for (_, changes) in changes.iter().filter(|(_, changes)| !changes.is_empty()) {
            setup::show(ui, &settings, changes)?;
        }
        ui.note("This was a dry run: nothing was done.");
        return Ok(ExitCode::SUCCESS);
    }
    if args.keep_memory_local {
        files::write_setting(&settings.home, declarations::KEEP_MEMORY_LOCAL, &Value::Switch(true))?;
    }
    match &url {
        Some(url) => {
            if meet(ui, &settings, args, url, &found)? == Met::Refused {
                return Ok(ExitCode::from(1));
            }
        }
        None => bind_all(&settings, &found)?,
    }
    if !agents.is_empty() {
        program::install(&settings)?;
    }
    for (agent, changes) in &changes {
        setup::set_up(ui, &settings, *agent, changes)?;
    }
    let is_sound = check(ui, &settings, &agents, url.is_some())?;
    if settings.keep_local {
        let unused = match &args.url {
            Some(url) => format!("{url} is not used: memory"),
            None => "Memory".to_owned(),
        };
        ui.note(format!(
            "{unused} stays on this machine (keep-memory-local). To let it leave: take that line out of {}",
            shown(&files::user_file(&settings.home))
        ));
    }
    match (&url, is_sound) {
        (_, false) => return Ok(ExitCode::from(1)),
        (Some(url), true) => {
            let typed = args.url.as_deref().unwrap_or(url);
            ui.line(format!("Done. On your other machine:  haversack init {typed}"))?;
        }
        (None, true) => {
            ui.line("Done, on this machine only. To carry it to others:  haversack init URL")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn plan(
    ui: &mut Ui,
    settings: &Settings,
    agents: &[Agent],
) -> Result<Vec<(Agent, Vec<Change>)>, CommandError> {
    let mut plans = Vec::new();
    for agent in agents {
        let changes = agents::plan_setup(settings, *agent, WithPersona::No).inspect_err(|_| {
            let hooks = agent.hooks(settings).map(|hooks| wiring::to_paste(&hooks));
            drop(ui.bytes(hooks.unwrap_or_default().as_bytes()));
        })?;
        plans.push((*agent, changes));
    }
    if agents.is_empty() {
        ui.note("No agent was found on this machine. When there is one: haversack setup claude-code");
    }
    Ok(plans)
}

/// Whether the user wanted to meet the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    Agreed,
    Refused,
}

/// Meets the other machines of a store, or begins it.
fn meet(
    ui: &mut Ui,
    settings: &Settings,
    args: &InitArgs,
    url: &str,
    found: &Found,
) -> Result<Met, CommandError> {
    let named = || NamedArgs {
        url: url.to_owned(),
        device: args.device.clone(),
        no_mirror: false,
        credential: args.credential.clone(),
    };
    let is_ours = Remote::recorded(settings)?.is_some_and(|remote| remote.url == url);
    let before = (mounts::of(settings)?, Book::of(settings)?);
    if is_ours {
        bind_all(settings, found)?;
        send(ui, settings)?;
        return Ok(Met::Agreed);
    }
    if there_is_a_store(settings, url, args)? {
        // Bound directories are in the preview of the merge; until the answer nothing has left this machine.
        let join = JoinArgs { named: named(), yes: args.yes, json: false };
        let joined = join::join(ui, settings, &join, || bind_all(settings, found)).map_err(incomplete);
        if !matches!(&joined, Ok(code) if *code == ExitCode::SUCCESS) {
            mounts::save(settings, &before.0)?;
            before.1.save(settings)?;
            return joined.map(|_| Met::Refused);
        }
        return Ok(Met::Agreed);
    }
    let question = format!(
        "{}Start a new store at {url} and copy {} there? Not encrypted: who can read it there can read them.",
        reach(url),
        counted(found.to_carry(), "file")
    );
    if !args.yes && ui.ask(&question)? == Answer::No {
        ui.note("Nothing was changed.");
        return Ok(Met::Refused);
    }
    add(ui, settings, &AddArgs { named: named() })?;
    bind_all(settings, found)?;
    send(ui, settings)?;
    Ok(Met::Agreed)
}

/// Says of a directory that nothing replicates that other machines do not see it.
fn reach(url: &str) -> String {
    match haversack::store::directory_of(url) {
        Ok(directory) if !remote::is_vault(url) => format!("{}. ", only_here(&shown(&directory))),
        _ => String::new(),
    }
}

/// Returns true if there is a store at an address, and false if one can begin there.
fn there_is_a_store(settings: &Settings, url: &str, args: &InitArgs) -> Result<bool, CommandError> {
    let mut remote = Remote::at(settings, url)?;
    if let Some(cloud) = Cloud::of(url).filter(|_| !remote.from_settings) {
        remote.settings = cloud.place(&settings.cloud);
        if let Some(source) = &args.credential {
            remote.credential = Some(Source::choose(settings, cloud, Some(source))?);
        }
    }
    let asked = Asked { command: "haversack init", typed: args.url.as_deref().unwrap_or(url) };
    Ok(site::store_or_empty(settings, &remote, asked)?.is_some())
}

fn bind_all(settings: &Settings, found: &Found) -> Result<(), CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    for project in found.carried() {
        bind::bind(settings, &claude, project, AskedBy::Nobody)?;
    }
    Ok(())
}

fn send(ui: &mut Ui, settings: &Settings) -> Result<(), CommandError> {
    let remote = Remote::expected(settings)?;
    let manner = Manner::new(Work::Sync, "init");
    let bar = ui.progress();
    let summary = app::sync::sync(settings, &remote, &manner, &bar);
    bar.end();
    ui.text(&app::sync::text(&summary.map_err(incomplete)?))
}

/// Says that not everything is there, and that it can be gone on with.
fn incomplete(error: CommandError) -> CommandError {
    let again = "Nothing is lost; run the same command again, and it goes on";
    CommandError {
        message: format!("INCOMPLETE: {}", error.message),
        hint: error.hint.or(Some(again.to_owned())),
        ..error
    }
}

/// Proves that hooks fire, and that what was sent comes back.
fn check(ui: &mut Ui, settings: &Settings, agents: &[Agent], has_remote: bool) -> Result<bool, CommandError> {
    let mut parts = Vec::new();
    for agent in agents {
        match try_hooks(settings, *agent)? {
            Canary::Fired(count) => {
                parts.push(format!("{} of {} fired", counted(count, "hook"), agent.title()))
            }
            Canary::SwitchedOff => {
                parts.push(format!("the hooks of {} are switched off in its settings", agent.title()))
            }
            Canary::NotWired => parts.push(format!("{} has no hook of ours", agent.title())),
            Canary::Silent { event, why } => {
                ui.line(format!("INCOMPLETE: the hook {event} of {} did not fire: {why}", agent.title()))?;
                return Ok(false);
            }
        }
    }
    if has_remote {
        match proof::read_back(settings)? {
            proof::ReadBack { missing, files } if missing.is_empty() => {
                parts.push(format!("{} read back from the store", counted(files, "file")));
            }
            proof::ReadBack { missing, .. } => {
                let names: Vec<String> = missing.iter().take(5).map(ToString::to_string).collect();
                ui.line(format!(
                    "INCOMPLETE: {} not as here in the store: {}",
                    counted(missing.len(), "file"),
                    names.join(", ")
                ))?;
                ui.note("Hint: Nothing is lost; run the same command again, and it goes on");
                return Ok(false);
            }
        }
    }
    if !parts.is_empty() {
        ui.note(format!("self-check: {}", parts.join(", ")));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_says_that_a_plain_directory_is_on_this_machine_only() {
        assert_eq!(
            reach("file:///srv/my%20memory"),
            "/srv/my memory is on this machine only: your other machines will not see it unless something copies it. "
        );
        assert_eq!((reach("vault:///srv/memory"), reach("s3://bucket")), (String::new(), String::new()));
    }
}
