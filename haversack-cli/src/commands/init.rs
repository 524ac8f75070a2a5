//! `haversack init`: everything in one line, the same on every machine.

mod found;
mod places;
mod proof;

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::Args;
use haversack::sync::Quiet;

use self::found::Found;
use self::places::RemoteOption;
use super::join::{self, JoinArgs};
use super::remote::{NamedArgs, connect, refuse_second};
use super::setup;
use crate::agents::canary::{Canary, try_hooks};
use crate::agents::claude_code::ClaudeCode;
use crate::agents::claude_code::wiring;
use crate::agents::program;
use crate::agents::skills;
use crate::agents::{self, AGENTS, Agent, Change, WithPersona, WithRecall};
use crate::app;
use crate::app::projects::{elsewhere, listed, shown_id};
use crate::app::tidy::{Mode, TidyOptions, note_seen, tidy};
use crate::error::CommandError;
use crate::home::mounts;
use crate::home::{SyncOptions, Work};
use crate::projects::bind::{self, AskedBy};
use crate::projects::left_out::left_out;
use crate::projects::registry::ProjectRegistry;
use crate::records::private;
use crate::remote::address::{self, only_here, refuse_mistyped};
use crate::remote::credential::{Cloud, Source, on_path};
use crate::remote::site::{self, Asked};
use crate::remote::{self, Remote};
use crate::settings::declarations::{self, Value};
use crate::settings::{Settings, files, shown, tilde};
use crate::ui::moments::counted;
use crate::ui::paths::quoted;
use crate::ui::{Answer, Ui};

/// Sync this machine's memory: find it, wire the agents, meet the other machines (the same line on every machine)
///
/// Shows the memory that it found, the changes it will make and the files it will send, and asks once. With an address, the machines meet there.
/// Without one, you choose from the places that it finds, or memory stays on this machine. Running it again is safe.
#[derive(Clone, Debug, Args)]
pub(crate) struct InitArgs {
    /// The place where the machines meet: a directory, s3://BUCKET, az://CONTAINER, gs://BUCKET; none if left out
    url: Option<String>,

    /// This machine's name in the history; its host name if left out
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// The source of the credential, as for haversack remote add
    #[arg(long, value_name = "SOURCE")]
    credential: Option<String>,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Show the exact change to each settings file, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Send nothing, even if there is a remote; stored in config.toml
    #[arg(long)]
    keep_memory_local: bool,

    /// Roll old memory up by itself, once a day; shows first what the first run would do
    #[arg(long)]
    tidy: bool,

    /// Write a digest of each session when it ends, for the next session; it quotes your first prompts and is sent like other memory
    #[arg(long)]
    digests: bool,
}

pub(crate) fn cmd_init(ui: &mut Ui, settings: &Settings, args: &InitArgs) -> Result<ExitCode, CommandError> {
    let mut settings = settings.clone();
    let mut args = args.clone();
    let asks = if args.yes || args.dry_run { Asks::No } else { Asks::Yes };
    settings.keep_local |= args.keep_memory_local;
    settings.home = std::path::absolute(&settings.home)?;
    match std::fs::metadata(&settings.home) {
        Ok(found) if !found.is_dir() => return Err(unwritable(&settings, ErrorKind::NotADirectory.into())),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(unwritable(&settings, error)),
        Ok(_) | Err(_) => {}
    }
    let is_open = args.url.is_none() && !settings.keep_local && asks == Asks::Yes && ui.can_ask();
    if is_open && Remote::unagreed(&settings)?.is_none() && Remote::for_looking(&settings)?.is_none() {
        choose_place(ui, &settings, &mut args)?;
    }
    let args = &args;
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
    if let Some(url) = &url {
        refuse_second(&settings, url)?;
    }
    let found = Found::look(&settings)?;
    found.tell(ui, url.is_some())?;
    let agents: Vec<Agent> = AGENTS.into_iter().filter(|agent| agent.is_here(&settings)).collect();
    // Before anything is done: a settings file that is not understood stops it here.
    let changes = plan(ui, &settings, &agents).inspect_err(|_| {
        if args.yes {
            // The hooks that were printed name the copy. If it cannot be made, the error of the settings file is the one to tell.
            drop(program::install(&settings));
        }
    })?;
    let is_ours = match &url {
        Some(url) => Remote::recorded(&settings)?.is_some_and(|remote| remote.url == *url),
        None => false,
    };
    if !args.yes {
        tell_plan(ui, &settings, args, &changes, &found, (url.as_deref(), is_ours))?;
    }
    if args.dry_run {
        if let Some(url) = url.as_ref().filter(|_| !is_ours) {
            ui.note(match try_address(&settings, url, args)? {
                Some(true) => format!("{url} answers. A store is there, and this machine would join it."),
                Some(false) => format!("{url} answers. No store is there yet, and one would begin."),
                None => format!("{url} was not tried, because that would keep the credential."),
            });
        }
        for (_, changes) in changes.iter().filter(|(_, changes)| !changes.is_empty()) {
            setup::show(ui, &settings, changes)?;
        }
        if args.tidy && !settings.is_tidied_by_itself {
            ui.note("tidy.auto would be switched on. See the first run: haversack tidy --dry-run");
        }
        ui.note("This was a dry run: nothing was done.");
        return Ok(ExitCode::SUCCESS);
    }
    let adds_digests = args.digests && !settings.is_digest_written;
    let is_settled = is_ours && !adds_digests && changes.iter().all(|(_, changes)| changes.is_empty());
    if asks == Asks::Yes && !ui.can_ask() {
        // An address that does not work is the more useful error.
        if let Some(url) = url.as_ref().filter(|_| !is_ours) {
            try_address(&settings, url, args)?;
        }
        return Err(CommandError::user(
            "this needs your yes, and this is not a terminal. Nothing was changed",
            "Say it with the command: --yes. See all changes first: --dry-run",
        ));
    }
    // A new address has a question of its own: start a store, or join one.
    let has_own_question = url.is_some() && !is_ours;
    if asks == Asks::Yes && !has_own_question && !is_settled && ui.ask("Do this?")? == Answer::No {
        ui.note("Nothing was changed.");
        return Ok(ExitCode::from(1));
    }
    prepare_home(&settings)?;
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
        program::install(&settings).map_err(|error| not_set_up(error, url.as_deref(), agents[0]))?;
    }
    for (agent, changes) in &changes {
        setup::set_up(ui, &settings, *agent, changes)
            .map_err(|error| not_set_up(error, url.as_deref(), *agent))?;
    }
    let is_new = changes.iter().any(|(_, changes)| !changes.is_empty());
    if args.tidy {
        switch_tidy_on(ui, &settings)?;
    }
    if adds_digests {
        files::write_setting(&settings.home, declarations::DIGEST_AUTO, &Value::Switch(true))?;
        ui.note(
            "Each session gets a digest when it ends. To stop it: haversack config set digest.auto false",
        );
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
    if is_sound && is_new && asks == Asks::Yes && !settings.is_tidied_by_itself && !args.tidy {
        ui.note(TIDY_OFFER);
    }
    match (&url, is_sound) {
        (_, false) => return Ok(ExitCode::from(1)),
        (Some(url), true) => {
            tell_without_commit(ui, &settings)?;
            ui.line(format!("Done. On your other machine:  {}", other_line(&settings, args, url)))?;
        }
        (None, true) => {
            ui.line("Done, on this machine only. To sync it with others:  haversack init URL")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns true if the user has to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Yes,
    No,
}

/// The most projects that are named as not being here.
const MAX_ABSENT: usize = 5;

/// Lets the user choose a place at which the machines meet, from those that are here.
fn choose_place(ui: &mut Ui, settings: &Settings, args: &mut InitArgs) -> Result<(), CommandError> {
    let Some(user) = &settings.surroundings.user else { return Ok(()) };
    let places = places::find(user, on_path("az").is_some());
    ui.note("Where should your machines meet?");
    for (place, number) in places.iter().zip(1..) {
        ui.note(match place {
            RemoteOption::Folder { client, directory } => {
                format!("  {number}  {client}: {}", tilde(settings, directory))
            }
            RemoteOption::S3 { profile } => {
                format!("  {number}  a bucket in S3, with the AWS profile {profile}")
            }
            RemoteOption::Azure => format!("  {number}  a container in Azure, with the login of az"),
        });
    }
    ui.note("  a  another address: a directory, s3://BUCKET, az://CONTAINER, gs://BUCKET");
    ui.note("  n  nowhere: memory stays on this machine");
    loop {
        let answer = ui.prompt("Your choice:")?.unwrap_or_else(|| "n".to_owned());
        let chosen = answer.parse::<usize>().ok().and_then(|number| places.get(number.checked_sub(1)?));
        match (chosen, answer.to_lowercase().as_str()) {
            (Some(RemoteOption::Folder { directory, .. }), _) => args.url = Some(shown(directory)),
            (Some(RemoteOption::S3 { profile }), _) => {
                let bucket = ui.prompt("Bucket, as NAME or NAME/PREFIX:")?;
                args.url = bucket.filter(|name| !name.is_empty()).map(|name| with_scheme("s3", &name));
                args.credential = Some(format!("profile:{profile}"));
            }
            (Some(RemoteOption::Azure), _) => {
                let container = ui.prompt(
                    "Container, as https://ACCOUNT.blob.core.windows.net/CONTAINER or az://CONTAINER:",
                )?;
                args.url = container.filter(|name| !name.is_empty()).map(|name| with_scheme("az", &name));
                args.credential = Some("az".to_owned());
            }
            (None, "a") => args.url = ui.prompt("Address:")?.filter(|address| !address.is_empty()),
            (None, "n" | "") => return Ok(()),
            (None, _) => continue,
        }
        if args.url.is_some() {
            return Ok(());
        }
        args.credential = None;
    }
}

/// Returns an address, with a scheme if it has none.
fn with_scheme(scheme: &str, typed: &str) -> String {
    if typed.contains("://") { typed.to_owned() } else { format!("{scheme}://{typed}") }
}

/// Tells everything that will be changed and sent.
fn tell_plan(
    ui: &mut Ui,
    settings: &Settings,
    args: &InitArgs,
    changes: &[(Agent, Vec<Change>)],
    found: &Found,
    (url, is_ours): (Option<&str>, bool),
) -> Result<(), CommandError> {
    let mut lines = Vec::new();
    for (agent, changes) in changes {
        let directory = agent.directory(settings)?;
        let (skill_files, files): (Vec<&Change>, Vec<&Change>) =
            changes.iter().partition(|change| skills::is_skill(&directory, &change.file));
        lines.extend(files.iter().map(|change| format!("  change  {}", tilde(settings, &change.file))));
        if !skill_files.is_empty() {
            let skills_directory = tilde(settings, &skills::directory(&directory));
            lines.push(format!("  add     {} to {skills_directory}", counted(skill_files.len(), "skill")));
        }
    }
    if !changes.is_empty() && !program::is_recorded(settings) {
        lines.push(format!(
            "  add     {} (this program, for hooks)",
            tilde(settings, &program::copy_of(settings)?)
        ));
    }
    if args.keep_memory_local {
        lines.push(format!(
            "  change  {} (keep-memory-local)",
            tilde(settings, &files::user_file(&settings.home))
        ));
    }
    if !settings.is_digest_written {
        lines.push(match args.digests {
            true => format!(
                "  change  {} (digest.auto: a digest of each session, which quotes your first prompts)",
                tilde(settings, &files::user_file(&settings.home))
            ),
            // A digest quotes prompts and is sent, so the user chooses it.
            false => "  leave   digests of sessions off (to have them: --digests)".to_owned(),
        });
    }
    if url.is_some() && !is_ours {
        lines.push(format!("  add     {} (the remote)", tilde(settings, &settings.store().remote())));
    }
    let bound = mounts::of(settings)?;
    let unbound = found.carried().filter(|project| {
        let prefix = project.prefix();
        bound.iter().all(|mount| Some(&mount.prefix) != prefix.as_ref())
    });
    match unbound.count() {
        0 => {}
        count => lines.push(format!(
            "  add     {} to {}",
            counted(count, "project"),
            tilde(settings, &settings.store().mounts())
        )),
    }
    match url {
        Some(url) if is_ours => {
            lines.push(format!(
                "  send    only what changed since the last sync, to {}",
                place_of(settings, args, url)
            ));
        }
        Some(url) if found.to_carry() == 0 => {
            lines.push(format!(
                "  send    nothing yet to {}: {}",
                place_of(settings, args, url),
                found.why_nothing()
            ));
        }
        Some(url) => {
            lines.push(format!("  send    {} to {}", found.to_send(), place_of(settings, args, url)));
        }
        None => lines.push("  send    nothing: memory stays on this machine".to_owned()),
    }
    ui.note(format!("init will:\n{}", lines.join("\n")));
    Ok(())
}

/// Returns an address as the user would type it on any machine: a directory below the home directory begins with `~`.
fn place_of(settings: &Settings, args: &InitArgs, url: &str) -> String {
    let is_path = match &args.url {
        Some(typed) => !typed.contains("://"),
        None => remote::is_vault(url),
    };
    match haversack::store::directory_of(url) {
        Ok(directory) if is_path => quoted(&tilde(settings, &directory.canonicalize().unwrap_or(directory))),
        _ => quoted(args.url.as_deref().unwrap_or(url)),
    }
}

/// Returns the line that brings another machine to the same store.
fn other_line(settings: &Settings, args: &InitArgs, url: &str) -> String {
    let credential = args.credential.as_ref().map(|source| format!(" --credential {}", quoted(source)));
    format!("haversack init {}{}", place_of(settings, args, url), credential.unwrap_or_default())
}

/// Returns true if there is a store at an address; `None` if a try would write the credential down.
fn try_address(settings: &Settings, url: &str, args: &InitArgs) -> Result<Option<bool>, CommandError> {
    match args.credential.as_deref() {
        Some("file" | "keychain") => Ok(None),
        _ => there_is_a_store(settings, url, args).map(Some),
    }
}

/// The offer to roll old memory up.
const TIDY_OFFER: &str = "Optional: old memory rolled up once a day. See what that would do: haversack tidy --dry-run. To turn it on: haversack config set tidy.auto true";

/// Lets the home tidy by itself, and shows the first run as a dry run, so that the user sees what will happen.
fn switch_tidy_on(ui: &mut Ui, settings: &Settings) -> Result<(), CommandError> {
    if settings.is_tidied_by_itself {
        return Ok(());
    }
    let first = tidy(settings, &TidyOptions { day: None, mode: Mode::DryRun }, &Quiet)?;
    ui.note(match first.plan.actions.len() {
        0 => "Tidying would have nothing to do yet.".to_owned(),
        count => format!("The first tidy would do {}:", counted(count, "thing")),
    });
    let lines = first.text();
    for line in lines.lines().take(MAX_TIDY_LINES) {
        ui.note(format!("  {line}"));
    }
    if lines.lines().count() > MAX_TIDY_LINES {
        ui.note("  … all of it: haversack tidy --dry-run");
    }
    note_seen(settings)?;
    files::write_setting(&settings.home, declarations::TIDY_AUTO, &Value::Switch(true))?;
    ui.note("Old memory is tidied once a day. To stop it: haversack config set tidy.auto false");
    Ok(())
}

/// The most lines of the first tidy that are shown.
const MAX_TIDY_LINES: usize = 10;

/// Makes the home's directory. A home that cannot be written stops here, before anything else is done.
fn prepare_home(settings: &Settings) -> Result<(), CommandError> {
    let state = settings.home.join("state");
    let probe = state.join("init-probe");
    let made = private::create_directories(&state)
        .and_then(|()| private::write(&probe, b""))
        .and_then(|()| std::fs::remove_file(&probe));
    made.map_err(|error| unwritable(settings, error))
}

fn unwritable(settings: &Settings, error: io::Error) -> CommandError {
    CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("{} cannot be written; nothing was changed", shown(&settings.home)),
            "Give this user access to it, or choose another: haversack --home DIRECTORY init",
        )
    }
}

/// Says that memory was taken care of and an agent was not.
fn not_set_up(error: CommandError, url: Option<&str>, agent: Agent) -> CommandError {
    let done = match url {
        Some(url) => format!("Memory is sent to {url}"),
        None => "Memory is safe on this machine".to_owned(),
    };
    let again = error.hint.unwrap_or_else(|| "Run the same command again to continue".to_owned());
    CommandError {
        message: format!("INCOMPLETE: {}", error.message),
        hint: Some(format!("{done}; {} is not set up. {again}", agent.title())),
        ..error
    }
}

fn plan(
    ui: &mut Ui,
    settings: &Settings,
    agents: &[Agent],
) -> Result<Vec<(Agent, Vec<Change>)>, CommandError> {
    let mut plans = Vec::new();
    for agent in agents {
        let changes =
            agents::plan_setup(settings, *agent, WithPersona::No, WithRecall::No).inspect_err(|_| {
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

/// Tells if the user wanted to join the other machines.
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
    let before = (mounts::of(settings)?, ProjectRegistry::of(settings)?);
    if is_ours {
        bind_all(settings, found)?;
        ui.abbreviate(super::abbreviations(settings));
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
        ui.abbreviate(super::abbreviations(settings));
        tell_absent(ui, settings)?;
        return Ok(Met::Agreed);
    }
    let place = place_of(settings, args, url);
    let (start, sent) = match found.to_carry() {
        0 => (format!("Start a new store at {place}"), "your memory"),
        _ => (format!("Start a new store at {place} and copy {} there", found.to_send()), "them"),
    };
    let question =
        format!("{}{start}? Not encrypted: anyone with access to that place can read {sent}.", reach(url));
    if !args.yes && ui.ask(&question)? == Answer::No {
        ui.note("Nothing was changed.");
        return Ok(Met::Refused);
    }
    let device = connect(ui, settings, &named())?;
    ui.note(format!("This machine's name is \"{device}\" (change it with --device NAME)."));
    bind_all(settings, found)?;
    ui.abbreviate(super::abbreviations(settings));
    send(ui, settings)?;
    Ok(Met::Agreed)
}

/// Names the projects of the store that this machine has no directory of.
fn tell_absent(ui: &mut Ui, settings: &Settings) -> Result<(), CommandError> {
    let listed = listed(settings, &ClaudeCode::expected(settings)?, &ProjectRegistry::of(settings)?);
    let absent: Vec<String> =
        elsewhere(settings, &listed)?.into_iter().map(|(id, _)| shown_id(&id)).collect();
    let more = absent.len().saturating_sub(MAX_ABSENT);
    let named = absent[..absent.len() - more].join(", ");
    match (absent.len(), more) {
        (0, _) => {}
        (1, _) => {
            ui.note(format!("{named} is not on this machine yet. Its memory arrives when you first open Claude Code in it."));
        }
        (_, 0) => ui.note(format!(
            "These projects are not on this machine yet: {named}. Their memory arrives when you first open Claude Code in them."
        )),
        (_, more) => ui.note(format!(
            "These projects are not on this machine yet: {named} and {more} more. Their memory arrives when you first open Claude Code in them."
        )),
    }
    Ok(())
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

/// Names the projects whose clones on other machines would be refused.
fn tell_without_commit(ui: &mut Ui, settings: &Settings) -> Result<(), CommandError> {
    for project in left_out(settings)?.without_commit {
        ui.note(format!(
            "{} has no commit that a clone could prove itself with. Commit, and start a session there; or, on your other machine: haversack project bind DIRECTORY",
            project.label(settings)
        ));
    }
    Ok(())
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
    let options = SyncOptions::new(Work::Sync, "init");
    let bar = ui.progress();
    let summary = app::sync::sync(settings, &remote, &options, &bar);
    bar.end();
    ui.text(&app::sync::text(&summary.map_err(incomplete)?))
}

/// Says that not everything is there, and that it can be gone on with.
fn incomplete(error: CommandError) -> CommandError {
    let again = "Nothing is lost; run the same command again to continue";
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
                ui.note("Hint: Nothing is lost; run the same command again to continue");
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
