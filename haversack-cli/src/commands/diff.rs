//! `haversack diff`: what a change did, or what waits to be sent.

use std::process::ExitCode;

use clap::Args;

use crate::app::history::{Difference, differences};
use crate::error::CommandError;
use crate::home::history::ChangeNumber;
use crate::home::store::locate;
use crate::settings::Settings;
use crate::ui::Ui;

/// Show what waits to be sent, or what a change did
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Only this file or directory
    #[arg(default_value = "")]
    path: String,

    /// What this change did: its number in `haversack log`
    #[arg(long, value_name = "NUMBER")]
    at: Option<ChangeNumber>,
}

pub(crate) fn cmd_diff(ui: &mut Ui, settings: &Settings, args: &DiffArgs) -> Result<ExitCode, CommandError> {
    let differences = differences(settings, &locate(&args.path)?, args.at)?;
    let shown: String = differences.iter().map(Difference::unified).collect();
    ui.bytes(shown.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
