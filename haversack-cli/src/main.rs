//! The `haversack` binary: the only part of Haversack that prints, reads the environment or knows a wire
//! format.

mod allowed;
mod commands;
mod contact;
mod credential;
mod error;
mod gate;
mod home;
mod joined;
mod moments;
mod mounts;
mod past;
mod records;
mod remote;
mod settings;
mod store;
mod system;
mod ui;
mod variables;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::commands::{Command, help};
use crate::settings::flags;
use crate::ui::Ui;

/// Your agent's memory, on every machine you work on.
#[derive(Debug, Parser)]
#[command(name = "haversack", version, disable_help_subcommand = true)]
struct Arguments {
    /// The directory that Haversack keeps everything in
    #[arg(long, global = true, value_name = "DIRECTORY")]
    home: Option<std::path::PathBuf>,

    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let matches = flags::accept(Arguments::command().override_help(help::SHORT)).get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let mut ui = Ui::terminal();
    let resolved = settings::load(&flags::collect(&matches, arguments.home));
    match commands::run(&mut ui, resolved, &arguments.command) {
        Ok(code) => code,
        Err(error) => {
            ui.error(&error);
            error.exit_code()
        }
    }
}
