//! `haversack uninstall`: leaves every agent as it was; memory stays.

use std::process::ExitCode;

use clap::Args;

use super::setup;
use crate::agents::program;
use crate::agents::{self, AGENTS};
use crate::error::CommandError;
use crate::home::mounts::{self, Leftover, Mount};
use crate::projects::private;
use crate::projects::registry::PrivateUse;
use crate::remote::Remote;
use crate::settings::Settings;
use crate::settings::tilde;
use crate::ui::moments::counted;
use crate::ui::paths::quoted;
use crate::ui::{Answer, Ui};

/// Leave: take our hooks out of every agent; your files stay
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Show the changes, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn cmd_uninstall(
    ui: &mut Ui,
    settings: &Settings,
    args: &UninstallArgs,
) -> Result<ExitCode, CommandError> {
    let asks = !args.yes && !args.dry_run && ui.can_ask();
    let question = "Take Haversack out of every agent on this machine? Your memory stays. To see each change first: --dry-run";
    if asks && ui.ask(question)? == Answer::No {
        ui.note("Nothing was changed.");
        return Ok(ExitCode::from(1));
    }
    let here = AGENTS.into_iter().filter(|agent| agent.is_here(settings));
    for agent in here {
        match args.dry_run {
            true => setup::show(ui, settings, &agents::plan_removal(settings, agent)?)?,
            false => setup::remove(ui, settings, agent)?,
        }
    }
    leave_worktrees(ui, settings, args)?;
    if !args.dry_run {
        tidy_bound_directories(ui, settings)?;
    }
    let bin = tilde(settings, &program::directory_of_all(&settings.home));
    match args.dry_run {
        true if program::is_recorded(settings) => {
            ui.note(format!("{bin}, the program that hooks run, would be removed"))
        }
        true => {}
        false if program::remove_all(settings)? => {
            ui.note(format!("Removed {bin}, the program that hooks ran"))
        }
        false => {}
    }
    ui.note("Memory is where your agents have it, and they go on with it by themselves.");
    if let Some(remote) = Remote::recorded(settings)? {
        ui.note(format!("The files that were sent stay in {}", remote.url));
    }
    ui.note(format!(
        "Haversack's other files are in {}. Delete them if you do not need the history or settings",
        tilde(settings, &settings.home)
    ));
    Ok(ExitCode::SUCCESS)
}

/// Deletes our staging directories in the agents' memory directories. Texts of other programs that we put aside there stay.
fn tidy_bound_directories(ui: &mut Ui, settings: &Settings) -> Result<(), CommandError> {
    for mount in mounts::of(settings)?.into_iter().filter(Mount::is_there) {
        if let Leftover::Files(directory) = mount.remove_staging() {
            ui.note(format!(
                "{} holds texts of other programs that we put aside: look at them, then delete it",
                tilde(settings, &directory)
            ));
        }
    }
    Ok(())
}

/// Takes back the settings of worktrees with nothing of their own. Those with memory keep it: without the setting Claude Code would not find it.
fn leave_worktrees(ui: &mut Ui, settings: &Settings, args: &UninstallArgs) -> Result<(), CommandError> {
    for (private, usage, files) in private::all(settings)? {
        let checkout = quoted(&tilde(settings, &private.checkout));
        match (usage, files) {
            (PrivateUse::InUse, 0) => match args.dry_run {
                true => {
                    let change = private::plan_end(settings, &private.checkout)?.map(|(change, _)| change);
                    setup::show(ui, settings, change.as_slice())?;
                }
                false => {
                    private::end(settings, &private.checkout)?;
                    ui.note(format!("{checkout} shares the memory of its repository again"));
                }
            },
            (PrivateUse::InUse, files) => ui.note(format!(
                "{checkout} keeps its private memory, {} in {}. To stop that: haversack project private --undo {checkout}",
                counted(files, "file"),
                tilde(settings, &private.memory)
            )),
            (PrivateUse::Unused | PrivateUse::Gone, _) => {}
        }
    }
    Ok(())
}
