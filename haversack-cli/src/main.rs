//! The `haversack` binary: the only part of Haversack that prints, reads the environment or knows a wire
//! format.

mod agents;
mod app;
mod background;
mod commands;
mod error;
mod home;
mod projects;
mod records;
mod remote;
mod serve;
mod settings;
mod ui;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use haversack::ids::Timestamp;

use crate::commands::{Command, completions, help};
use crate::settings::{BrokenProjectFile, environment, flags, time};
use crate::ui::colors::Colors;
use crate::ui::{Presentation, Ui, pager};

/// The allocator of static Linux programs. That of musl takes one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Your agent's memory, on every machine you work on.
#[derive(Debug, Parser)]
#[command(name = "haversack", version, disable_help_subcommand = true)]
struct Arguments {
    /// The directory that Haversack keeps everything in
    #[arg(long, global = true, value_name = "DIRECTORY", display_order = flags::LAST - 1)]
    home: Option<std::path::PathBuf>,

    /// When to use colours: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        hide = true,
        default_value = "auto",
        hide_possible_values = true
    )]
    color: Colors,

    /// Print long output as it is, without a pager
    #[arg(long, global = true, hide = true)]
    no_pager: bool,

    /// The moment to take for the present
    #[arg(long, global = true, hide = true, value_name = "MOMENT", value_parser = time::parse_moment)]
    now: Option<Timestamp>,

    /// The time zone in which days are counted
    #[arg(long, global = true, hide = true, value_name = "ZONE")]
    time_zone: Option<String>,

    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    if let Some(candidates) = completions::answer() {
        return Ui::terminal(Presentation::default())
            .bytes(&candidates)
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let matches = flags::accept(
        Arguments::command().override_help(help::short(environment::columns().or_else(ui::terminal_columns))),
    )
    .try_get_matches()
    .unwrap_or_else(|error| help::suggest_only_close(error).exit());
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let pager = environment::pager().unwrap_or_else(|| pager::DEFAULT.to_owned());
    let mut ui = Ui::terminal(Presentation {
        columns: environment::columns(),
        colors: arguments.color,
        is_colorless: environment::is_colorless(),
        pager: Some(pager).filter(|pager| !arguments.no_pager && !matches!(pager.trim(), "" | "cat")),
    });
    if matches!(arguments.command, Command::Hook(_)) && std::env::current_dir().is_err() {
        // A session may outlive its directory.
        drop(std::env::set_current_dir("/"));
    }
    let home = arguments.home.clone();
    let broken = match arguments.command.must_not_stop() {
        true => BrokenProjectFile::IsIgnored,
        false => BrokenProjectFile::Fails,
    };
    let resolved = settings::load(&flags::collect(&matches, arguments.home, arguments.time_zone), broken);
    let resolved = resolved.map(|mut resolved| {
        resolved.settings.fixed_now = arguments.now;
        resolved
    });
    let done = commands::run(&mut ui, resolved, &arguments.command, home.as_deref());
    match ui.finish().and(done) {
        Ok(code) => code,
        Err(error) => {
            ui.error(&error);
            error.exit_code()
        }
    }
}
