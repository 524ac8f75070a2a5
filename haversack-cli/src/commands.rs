//! The commands, one file each.

mod allow;
mod append;
mod archive;
mod backends;
mod background;
mod carry;
mod check;
mod commitments;
pub(crate) mod completions;
mod config;
mod conflicts;
mod connection;
mod content;
mod context;
mod create;
mod debug;
mod delete;
mod demo;
mod devices;
mod diff;
mod digest;
mod doctor;
mod edit;
mod event;
mod graph;
pub(crate) mod help;
pub(crate) mod hook;
mod index;
mod init;
mod insert;
mod join;
mod kinds;
mod log;
mod ls;
mod mcp;
mod memory_tool;
mod migrate;
mod mirror;
mod model;
mod mount;
mod new;
mod node;
mod ontology;
mod open;
mod page;
pub(crate) mod project;
mod properties;
mod provision;
mod prune;
mod recall;
mod remote;
mod rename;
mod resolve;
mod restore;
mod schedule;
mod serve;
mod setup;
mod status;
mod str_replace;
mod summary;
mod sync;
mod tidy;
mod undo;
mod uninstall;
mod version;
mod view;
mod why;

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use haversack::Edited;
use haversack::store::Locator;
use serde_json::json;

use crate::agents::mend;
use crate::agents::program;
use crate::app::index as app_index;
use crate::error::CommandError;
use crate::home::store::open_to_look;
use crate::home::{Work, local_history};
use crate::projects::border::{Face, Guard};
use crate::projects::names::Names;
use crate::remote::{Remote, is_vault};
use crate::settings::{Resolved, Settings, tilde};
use crate::ui::Ui;
use crate::ui::abbreviations::Abbreviations;
use crate::ui::moments;
use crate::ui::paths::quoted;

/// The commands. Each describes itself in its own arguments.
///
/// Only the one that is called is described to the parser: describing all of them took longer than most of them run.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Demo(demo::DemoArgs),
    Init(init::InitArgs),
    Status(status::StatusArgs),
    Doctor(doctor::DoctorArgs),
    Backends(backends::BackendsArgs),
    Ls(ls::LsArgs),
    View(view::ViewArgs),
    Create(create::CreateArgs),
    StrReplace(str_replace::StrReplaceArgs),
    Insert(insert::InsertArgs),
    Append(append::AppendArgs),
    Delete(delete::DeleteArgs),
    Edit(edit::EditArgs),
    Rename(rename::RenameArgs),
    Recall(recall::RecallArgs),
    Event(event::EventArgs),
    Summary(summary::SummaryArgs),
    Digest(digest::DigestArgs),
    Commitments(commitments::CommitmentsArgs),
    Carry(carry::CarryArgs),
    Index(index::IndexArgs),
    Context(context::ContextArgs),
    Kinds(kinds::KindsArgs),
    Node(node::NodeArgs),
    Connection(connection::ConnectionArgs),
    Ontology(ontology::OntologyArgs),
    Graph(graph::GraphArgs),
    New(new::NewArgs),
    Check(check::CheckArgs),
    Sync(sync::SyncArgs),
    Tidy(tidy::TidyArgs),
    Prune(prune::PruneArgs),
    Export(archive::ExportArgs),
    Import(archive::ImportArgs),
    Schedule(schedule::ScheduleArgs),
    Model(model::ModelArgs),
    #[command(hide = true)]
    Pull(sync::PullArgs),
    #[command(hide = true)]
    Push(sync::PushArgs),
    Join(join::JoinArgs),
    Open(open::OpenArgs),
    Page(page::PageArgs),
    Log(log::LogArgs),
    Diff(diff::DiffArgs),
    Restore(restore::RestoreArgs),
    Undo(undo::UndoArgs),
    Devices(devices::DevicesArgs),
    Allow(allow::AllowArgs),
    #[command(hide = true)]
    Mirror(mirror::MirrorArgs),
    #[command(hide = true)]
    Hook(hook::HookArgs),
    #[command(hide = true)]
    Background(background::BackgroundArgs),
    Mount(mount::MountArgs),
    Project(project::ProjectArgs),
    Setup(setup::SetupArgs),
    Uninstall(uninstall::UninstallArgs),
    Why(why::WhyArgs),
    Remote(remote::RemoteArgs),
    Provision(provision::ProvisionArgs),
    Migrate(migrate::MigrateArgs),
    Conflicts(conflicts::ConflictsArgs),
    Resolve(resolve::ResolveArgs),
    Config(config::ConfigArgs),
    MemoryTool(memory_tool::MemoryToolArgs),
    Mcp(mcp::McpArgs),
    Serve(serve::ServeArgs),
    Help(help::HelpArgs),
    Version(version::VersionArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Debug(debug::DebugArgs),
}

impl Command {
    /// Returns true if an agent runs this command and would be left without memory if it stopped.
    pub(crate) fn must_not_stop(&self) -> bool {
        matches!(self, Command::Hook(_) | Command::Background(_) | Command::Mcp(_) | Command::MemoryTool(_))
    }
}

impl Command {
    /// Returns true if this command writes text of the user's or an agent's into memory that is carried.
    fn writes_memory(&self) -> bool {
        match self {
            Command::Node(args) => return args.writes(),
            Command::Connection(args) => return args.writes(),
            Command::Ontology(args) => return args.writes(),
            Command::Graph(args) => return args.writes(),
            Command::Commitments(args) => return args.writes(),
            Command::Carry(args) => return args.writes(),
            _ => {}
        }
        matches!(
            self,
            Command::Create(_)
                | Command::StrReplace(_)
                | Command::Insert(_)
                | Command::Append(_)
                | Command::Edit(_)
                | Command::Rename(_)
                | Command::New(_)
                | Command::Event(_)
                | Command::Summary(_)
                | Command::Digest(_)
        )
    }
}

impl Command {
    /// Returns the cause under which this command's changes are in the history of a home without a remote; `None` if it changes no memory.
    fn cause(&self) -> Option<&'static str> {
        Some(match self {
            Command::Create(_) => "create",
            Command::StrReplace(_) => "str-replace",
            Command::Insert(_) => "insert",
            Command::Append(_) => "append",
            Command::Delete(_) => "delete",
            Command::Edit(_) => "edit",
            Command::Rename(_) => "rename",
            Command::New(_) => "new",
            Command::Event(_) => "event",
            Command::Summary(_) => "summary",
            Command::Digest(_) => "digest",
            Command::Commitments(args) if args.writes() => "commitments",
            Command::Carry(args) if args.writes() => "carry",
            Command::Index(_) => "index",
            Command::Undo(_) => "undo",
            Command::Restore(_) => "restore",
            Command::Resolve(_) => "resolve",
            Command::Migrate(_) => "migrate",
            Command::Tidy(args) => return args.cause(),
            Command::Prune(_) => "prune",
            Command::Import(_) => "import",
            Command::MemoryTool(_) => "memory-tool",
            Command::Node(args) if args.writes() => "node",
            Command::Connection(args) if args.writes() => "connection",
            Command::Ontology(args) if args.writes() => "ontology",
            Command::Graph(args) if args.writes() => "graph",
            Command::Doctor(args) if args.fixes() => "doctor",
            Command::Mount(_) | Command::Project(_) => "bind",
            _ => return None,
        })
    }
}

/// The upkeep of agents' hooks before a command does its own work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upkeep {
    Nothing,
    /// Replaces the home's copy of the program if this release is higher.
    Upgrade,
    /// Upgrades, and mends hooks that run no program any more.
    UpgradeAndMend,
}

impl Command {
    fn upkeep(&self) -> Upkeep {
        match self {
            // Hooks have no time; the background process that they start upgrades. The others decide about the copy themselves, or use no home.
            Command::Hook(_)
            | Command::Setup(_)
            | Command::Init(_)
            | Command::Uninstall(_)
            | Command::Demo(_)
            | Command::Help(_)
            | Command::Completions(_)
            | Command::Version(_) => Upkeep::Nothing,
            // Agents and other processes start these, or they report dead hooks and change nothing.
            Command::Background(_)
            | Command::Mirror(_)
            | Command::Mcp(_)
            | Command::MemoryTool(_)
            | Command::Serve(_)
            | Command::Open(_)
            | Command::Status(_)
            | Command::Doctor(_) => Upkeep::Upgrade,
            _ => Upkeep::UpgradeAndMend,
        }
    }
}

/// Keeps the hooks of agents running across upgrades. A failure is one line: the command itself does not depend on it.
fn keep_hooks_running(ui: &mut Ui, settings: &Settings, upkeep: Upkeep) {
    if upkeep == Upkeep::Nothing {
        return;
    }
    if let Err(error) = program::upgrade(settings) {
        let hint = error.hint.clone().unwrap_or_default();
        ui.note(format!("Hooks go on with an older release: {}. {hint}", error.in_one_line()));
    }
    if upkeep == Upkeep::UpgradeAndMend {
        mend::mend(ui, settings);
    }
}

/// Returns the short names for messages: those of the projects, and the path of a synced folder in the place of its address.
///
/// Records that cannot be read are the concern of the command itself. Until they are mended, messages show locators.
fn abbreviations(settings: &Settings) -> Abbreviations {
    let names = Names::of(settings).unwrap_or_default().abbreviations();
    let remote = Remote::recorded(settings).ok().flatten().filter(|remote| is_vault(&remote.url));
    match remote.map(|remote| (haversack::store::directory_of(&remote.url), remote.url)) {
        Some((Ok(directory), url)) => names.with(url, quoted(&tilde(settings, &directory))),
        _ => names,
    }
}

/// Runs a command and returns the exit code of what it found.
///
/// With settings that are wrong no command runs; the doctor alone has something to say about them.
pub(crate) fn run(
    ui: &mut Ui,
    resolved: Result<Resolved, CommandError>,
    command: &Command,
    home: Option<&Path>,
) -> Result<ExitCode, CommandError> {
    let resolved = match (resolved, command) {
        (Ok(resolved), _) => resolved,
        (Err(error), Command::Doctor(args)) => return doctor::report_settings(ui, &error, args),
        (Err(error), Command::Hook(args)) => return Ok(hook::without_settings(home, &error, args)),
        (Err(error), _) => return Err(error),
    };
    let settings = &resolved.settings;
    moments::show_times_in(&settings.zone);
    if !command.must_not_stop() {
        ui.abbreviate(abbreviations(settings));
    }
    // Those that are asked about the remote tell of half a one themselves.
    let is_told = matches!(
        command,
        Command::Status(_) | Command::Sync(_) | Command::Pull(_) | Command::Push(_) | Command::Mirror(_)
    );
    let half = settings.half_remote().filter(|_| is_told);
    if !matches!(command, Command::Doctor(_)) {
        let warnings = resolved.warnings.iter().filter(|warning| Some(*warning) != half.as_ref());
        warnings.clone().for_each(|warning| ui.warning(warning));
        if let Command::Hook(args) = command {
            warnings.for_each(|warning| hook::note_warning(settings, args, warning));
        }
    }
    keep_hooks_running(ui, settings, command.upkeep());
    if let Some(refusal) =
        command.writes_memory().then(|| Guard::new(settings, Face::Command).refusal()).flatten()
    {
        return Err(refusal.for_user());
    }
    let done = dispatch(ui, &resolved, command);
    if let Some(cause) = command.cause()
        && let Err(error) = local_history::record(settings, Work::Sync, cause)
    {
        ui.note(format!("This change is not in the history yet: {}", error.in_one_line()));
    }
    done
}

fn dispatch(ui: &mut Ui, resolved: &Resolved, command: &Command) -> Result<ExitCode, CommandError> {
    let settings = &resolved.settings;
    match command {
        Command::Demo(args) => demo::cmd_demo(ui, args),
        Command::Doctor(args) => doctor::cmd_doctor(ui, resolved, args),
        Command::Backends(args) => backends::cmd_backends(ui, args),
        Command::Ls(args) => ls::cmd_ls(ui, settings, args),
        Command::View(args) => view::cmd_view(ui, settings, args),
        Command::Create(args) => create::cmd_create(ui, settings, args),
        Command::StrReplace(args) => str_replace::cmd_str_replace(ui, settings, args),
        Command::Insert(args) => insert::cmd_insert(ui, settings, args),
        Command::Append(args) => append::cmd_append(ui, settings, args),
        Command::Delete(args) => delete::cmd_delete(ui, settings, args),
        Command::Edit(args) => edit::cmd_edit(ui, settings, args),
        Command::Rename(args) => rename::cmd_rename(ui, settings, args),
        Command::Kinds(args) => kinds::cmd_kinds(ui, settings, args),
        Command::Node(args) => node::cmd_node(ui, settings, args),
        Command::Connection(args) => connection::cmd_connection(ui, settings, args),
        Command::Ontology(args) => ontology::cmd_ontology(ui, settings, args),
        Command::Graph(args) => graph::cmd_graph(ui, settings, args),
        Command::New(args) => new::cmd_new(ui, settings, args),
        Command::Check(args) => check::cmd_check(ui, settings, args),
        Command::Sync(args) => sync::cmd_sync(ui, settings, args),
        Command::Tidy(args) => tidy::cmd_tidy(ui, settings, args),
        Command::Prune(args) => prune::cmd_prune(ui, settings, args),
        Command::Schedule(args) => schedule::cmd_schedule(ui, settings, args),
        Command::Model(args) => model::cmd_model(ui, settings, args),
        Command::Export(args) => archive::cmd_export(ui, settings, args),
        Command::Import(args) => archive::cmd_import(ui, settings, args),
        Command::Pull(args) => sync::cmd_pull(ui, settings, args),
        Command::Push(args) => sync::cmd_push(ui, settings, args),
        Command::Status(args) => status::cmd_status(ui, settings, args),
        Command::Join(args) => join::cmd_join(ui, settings, args),
        Command::Open(args) => open::cmd_open(ui, resolved, args),
        Command::Page(args) => page::cmd_page(ui, resolved, args),
        Command::Log(args) => log::cmd_log(ui, settings, args),
        Command::Diff(args) => diff::cmd_diff(ui, settings, args),
        Command::Restore(args) => restore::cmd_restore(ui, settings, args),
        Command::Undo(args) => undo::cmd_undo(ui, settings, args),
        Command::Allow(args) => allow::cmd_allow(ui, settings, args),
        Command::Devices(args) => devices::cmd_devices(ui, settings, args),
        Command::Mirror(args) => mirror::cmd_mirror(ui, settings, args),
        Command::Hook(args) => hook::cmd_hook(ui, settings, args),
        Command::Background(args) => background::cmd_background(settings, args),
        Command::Mount(args) => mount::cmd_mount(ui, settings, args),
        Command::Init(args) => init::cmd_init(ui, settings, args),
        Command::Setup(args) => setup::cmd_setup(ui, settings, args),
        Command::Uninstall(args) => uninstall::cmd_uninstall(ui, settings, args),
        Command::Why(args) => why::cmd_why(ui, settings, args),
        Command::Project(args) => project::cmd_project(ui, settings, args),
        Command::Remote(args) => remote::cmd_remote(ui, settings, args),
        Command::Provision(args) => provision::cmd_provision(ui, settings, args),
        Command::Migrate(args) => migrate::cmd_migrate(ui, settings, args),
        Command::Conflicts(args) => conflicts::cmd_conflicts(ui, settings, args),
        Command::Resolve(args) => resolve::cmd_resolve(ui, settings, args),
        Command::Config(args) => config::cmd_config(ui, resolved, args),
        Command::MemoryTool(args) => memory_tool::cmd_memory_tool(ui, settings, args),
        Command::Mcp(args) => mcp::cmd_mcp(settings, args),
        Command::Serve(args) => serve::cmd_serve(ui, settings, args),
        Command::Recall(args) => recall::cmd_recall(ui, settings, args),
        Command::Event(args) => event::cmd_event(ui, settings, args),
        Command::Summary(args) => summary::cmd_summary(ui, settings, args),
        Command::Digest(args) => digest::cmd_digest(ui, settings, args),
        Command::Commitments(args) => commitments::cmd_commitments(ui, settings, args),
        Command::Carry(args) => carry::cmd_carry(ui, settings, args),
        Command::Index(args) => index::cmd_index(ui, settings, args),
        Command::Context(args) => context::cmd_context(ui, settings, args),
        Command::Help(args) => help::cmd_help(ui, args),
        Command::Version(args) => version::cmd_version(ui, args),
        Command::Completions(args) => completions::cmd_completions(ui, args),
        Command::Debug(args) => debug::cmd_debug(ui, settings, args),
    }
}

/// Prints what an edit did.
fn tell_edited(
    ui: &mut Ui,
    locator: &Locator,
    edited: &Edited,
    as_json: bool,
) -> Result<ExitCode, CommandError> {
    if as_json {
        let version = edited.version.as_str();
        ui.json(&json!({ "path": locator.as_str(), "line": edited.line, "version": version }))?;
    } else {
        ui.note(format!("Edited {locator} in line {}", edited.line));
    }
    if locator.name() == haversack::index::FILE {
        tell(ui, app_index::overflow_of(locator, edited.text()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells the user if sessions do not read the end of an index that a command wrote; other files are not looked at.
fn tell_overflow(ui: &mut Ui, settings: &Settings, written: &Locator) -> Result<(), CommandError> {
    if written.name() == haversack::index::FILE {
        tell(ui, app_index::overflow(&open_to_look(settings)?, written));
    }
    Ok(())
}

/// Tells the user if sessions do not read the end of the index that has a line for this new file.
fn tell_index_overflow(ui: &mut Ui, settings: &Settings, listed: &Locator) -> Result<(), CommandError> {
    tell(ui, app_index::overflow(&open_to_look(settings)?, listed));
    Ok(())
}

fn tell(ui: &mut Ui, message: Option<String>) {
    message.into_iter().for_each(|message| ui.note(message));
}
