//! `haversack background`: syncs for hooks that have long returned. Hooks start it.

use std::process::ExitCode;

use clap::Args;

use crate::agents::journal::Journal;
use crate::background;
use crate::error::CommandError;
use crate::settings::Settings;

/// Sync what hooks handed over; there is at most one for a home, and it ends by itself
#[derive(Debug, Args)]
pub(crate) struct BackgroundArgs {}

pub(crate) fn cmd_background(settings: &Settings, _args: &BackgroundArgs) -> Result<ExitCode, CommandError> {
    background::run(settings).inspect_err(|error| {
        Journal::of(settings).note("background", None, &format!("failed: {}", error.message));
    })?;
    Ok(ExitCode::SUCCESS)
}
