//! The commands, one file each.

mod append;
mod backends;
mod check;
mod config;
mod conflicts;
mod content;
mod create;
mod debug;
mod delete;
mod demo;
mod devices;
mod diff;
mod doctor;
pub(crate) mod help;
mod insert;
mod join;
mod kinds;
mod log;
mod ls;
mod memory_tool;
mod mount;
mod new;
mod remote;
mod rename;
mod resolve;
mod restore;
mod status;
mod str_replace;
mod sync;
mod undo;
mod view;

use std::process::ExitCode;

use clap::Subcommand;
use haversack::Edited;
use haversack::store::Locator;
use serde_json::json;

use crate::error::CommandError;
use crate::settings::Resolved;
use crate::ui::Ui;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See it work, in a sandbox
    Demo(demo::DemoArgs),
    /// Tell whether all is well, and what to do if not
    Status(status::StatusArgs),
    /// Check everything that memory depends on
    Doctor(doctor::DoctorArgs),
    /// Show where memory can live, and what each place promises
    Backends(backends::BackendsArgs),
    /// List what is in a directory
    Ls(ls::LsArgs),
    /// Print a file as it is
    View(view::ViewArgs),
    /// Make a new file
    Create(create::CreateArgs),
    /// Replace a text that occurs exactly once in a file
    StrReplace(str_replace::StrReplaceArgs),
    /// Insert whole lines after a line of a file
    Insert(insert::InsertArgs),
    /// Add to the end of a file, making it if need be
    Append(append::AppendArgs),
    /// Delete a file or an empty directory
    Delete(delete::DeleteArgs),
    /// Move a file or directory to a name that is free
    Rename(rename::RenameArgs),
    /// Show the kinds of memory: how each is recognised, merged and loaded
    Kinds(kinds::KindsArgs),
    /// Begin a memory of a kind, from its template
    New(new::NewArgs),
    /// Check that every memory is as its kind wants it
    Check(check::CheckArgs),
    /// Take in what other machines wrote, and send what is new here
    Sync(sync::SyncArgs),
    /// Take in what other machines wrote, and send nothing
    #[command(hide = true)]
    Pull(sync::PullArgs),
    /// Send one file, or everything that is new here
    #[command(hide = true)]
    Push(sync::PushArgs),
    /// Join a store: its memory comes here, and this machine's memory goes there
    Join(join::JoinArgs),
    /// Show who wrote what, on which machine, when and why
    Log(log::LogArgs),
    /// Show what waits to be sent, or what a change did
    Diff(diff::DiffArgs),
    /// Bring a file back as it once was
    Restore(restore::RestoreArgs),
    /// Take back the last change, a file's last change, a session, or a join
    Undo(undo::UndoArgs),
    /// Show the machines that write to this memory, or take one off the list
    Devices(devices::DevicesArgs),
    /// Bind directories that other programs write to places in this memory
    Mount(mount::MountArgs),
    /// Manage where the devices of this memory meet
    Remote(remote::RemoteArgs),
    /// Show what two devices wrote in the same place
    Conflicts(conflicts::ConflictsArgs),
    /// Settle a conflict by saying what stays
    Resolve(resolve::ResolveArgs),
    /// Manage settings
    Config(config::ConfigArgs),
    /// Answer memory-tool commands: one JSON object per line in, one per line out
    MemoryTool(memory_tool::MemoryToolArgs),
    /// Show what there is
    Help(help::HelpArgs),
    /// Look into the files that Haversack keeps for itself
    #[command(hide = true)]
    Debug(debug::DebugArgs),
    /// Write as one of the demo's processes
    #[command(hide = true)]
    DemoWriter(demo::writer::WriterArgs),
}

/// Runs a command and returns the exit code of what it found.
///
/// With settings that are wrong no command runs; the doctor alone has something to say about them.
pub(crate) fn run(
    ui: &mut Ui,
    resolved: Result<Resolved, CommandError>,
    command: &Command,
) -> Result<ExitCode, CommandError> {
    let resolved = match (resolved, command) {
        (Ok(resolved), _) => resolved,
        (Err(error), Command::Doctor(args)) => return doctor::report_settings(ui, &error, args),
        (Err(error), _) => return Err(error),
    };
    let settings = &resolved.settings;
    if !matches!(command, Command::Doctor(_)) {
        resolved.warnings.iter().for_each(|warning| ui.warning(warning));
    }
    match command {
        Command::Demo(args) => demo::cmd_demo(ui, args),
        Command::Doctor(args) => doctor::cmd_doctor(ui, &resolved, args),
        Command::Backends(args) => backends::cmd_backends(ui, args),
        Command::Ls(args) => ls::cmd_ls(ui, settings, args),
        Command::View(args) => view::cmd_view(ui, settings, args),
        Command::Create(args) => create::cmd_create(ui, settings, args),
        Command::StrReplace(args) => str_replace::cmd_str_replace(ui, settings, args),
        Command::Insert(args) => insert::cmd_insert(ui, settings, args),
        Command::Append(args) => append::cmd_append(ui, settings, args),
        Command::Delete(args) => delete::cmd_delete(ui, settings, args),
        Command::Rename(args) => rename::cmd_rename(ui, settings, args),
        Command::Kinds(args) => kinds::cmd_kinds(ui, settings, args),
        Command::New(args) => new::cmd_new(ui, settings, args),
        Command::Check(args) => check::cmd_check(ui, settings, args),
        Command::Sync(args) => sync::cmd_sync(ui, settings, args),
        Command::Pull(args) => sync::cmd_pull(ui, settings, args),
        Command::Push(args) => sync::cmd_push(ui, settings, args),
        Command::Status(args) => status::cmd_status(ui, settings, args),
        Command::Join(args) => join::cmd_join(ui, settings, args),
        Command::Log(args) => log::cmd_log(ui, settings, args),
        Command::Diff(args) => diff::cmd_diff(ui, settings, args),
        Command::Restore(args) => restore::cmd_restore(ui, settings, args),
        Command::Undo(args) => undo::cmd_undo(ui, settings, args),
        Command::Devices(args) => devices::cmd_devices(ui, settings, args),
        Command::Mount(args) => mount::cmd_mount(ui, settings, args),
        Command::Remote(args) => remote::cmd_remote(ui, settings, args),
        Command::Conflicts(args) => conflicts::cmd_conflicts(ui, settings, args),
        Command::Resolve(args) => resolve::cmd_resolve(ui, settings, args),
        Command::Config(args) => config::cmd_config(ui, &resolved, args),
        Command::MemoryTool(args) => memory_tool::cmd_memory_tool(ui, settings, args),
        Command::Help(args) => help::cmd_help(ui, args),
        Command::Debug(args) => debug::cmd_debug(ui, settings, args),
        Command::DemoWriter(args) => demo::writer::cmd_demo_writer(ui, args),
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
    Ok(ExitCode::SUCCESS)
}
