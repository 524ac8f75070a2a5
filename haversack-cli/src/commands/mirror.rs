//! `haversack mirror`: writes the plain copies in the remote that a sync left for later.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::app::mirror::{GATHER, write};
use crate::error::CommandError;
use crate::settings::Settings;
use crate::ui::Ui;

/// Write the plain copies in the remote that a sync left for later
#[derive(Debug, Args)]
pub(crate) struct MirrorArgs {
    /// Begin at once
    #[arg(long)]
    at_once: bool,
}

pub(crate) fn cmd_mirror(
    ui: &mut Ui,
    settings: &Settings,
    args: &MirrorArgs,
) -> Result<ExitCode, CommandError> {
    let bar = ui.progress();
    let written = write(settings, if args.at_once { Duration::ZERO } else { GATHER }, &bar);
    bar.end();
    written.map(|()| ExitCode::SUCCESS)
}
