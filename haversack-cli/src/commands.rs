//! The commands, one file each.

mod backends;
mod demo;
mod doctor;

use std::process::ExitCode;

use clap::Subcommand;

use crate::error::CommandError;
use crate::settings::Settings;
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
    /// Write as one of the demo's processes
    #[command(hide = true)]
    DemoWriter(demo::writer::WriterArgs),
}

/// Runs a command and returns the exit code of what it found.
pub(crate) fn run(ui: &mut Ui, settings: &Settings, command: &Command) -> Result<ExitCode, CommandError> {
    match command {
        Command::Demo(args) => demo::cmd_demo(ui, args),
        Command::Doctor(args) => doctor::cmd_doctor(ui, settings, args),
        Command::Backends(args) => backends::cmd_backends(ui, args),
        Command::DemoWriter(args) => demo::writer::cmd_demo_writer(ui, args),
    }
}
