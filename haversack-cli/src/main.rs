//! The `haversack` binary: the only part of Haversack that prints, reads the environment or knows a wire
//! format.

mod commands;
mod error;
mod settings;
mod ui;
mod variables;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;
use crate::settings::Settings;
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
    let arguments = Arguments::parse();
    let mut ui = Ui::terminal();
    let result = Settings::resolve(arguments.home, |name| std::env::var_os(name))
        .and_then(|settings| commands::run(&mut ui, &settings, &arguments.command));
    match result {
        Ok(code) => code,
        Err(error) => {
            ui.error(&error);
            error.exit_code()
        }
    }
}
