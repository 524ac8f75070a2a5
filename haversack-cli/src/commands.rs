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
mod doctor;
mod insert;
mod kinds;
mod ls;
mod memory_tool;
mod new;
mod rename;
mod resolve;
mod str_replace;
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
    /// Show what two devices wrote in the same place
    Conflicts(conflicts::ConflictsArgs),
    /// Settle a conflict by saying what stays
    Resolve(resolve::ResolveArgs),
    /// Manage settings
    Config(config::ConfigArgs),
    /// Answer memory-tool commands: one JSON object per line in, one per line out
    MemoryTool(memory_tool::MemoryToolArgs),
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
        Command::Conflicts(args) => conflicts::cmd_conflicts(ui, settings, args),
        Command::Resolve(args) => resolve::cmd_resolve(ui, settings, args),
        Command::Config(args) => config::cmd_config(ui, &resolved, args),
        Command::MemoryTool(args) => memory_tool::cmd_memory_tool(ui, settings, args),
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
