//! `haversack mcp`: the memory for a client of the Model Context Protocol that starts us.

use std::process::ExitCode;

use clap::Args;

use crate::agents;
use crate::error::CommandError;
use crate::serve::mcp::{self, Offer};
use crate::settings::Settings;

/// Serve the memory over the Model Context Protocol on stdin and stdout, until the input ends
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Do nothing where the user's settings have a server of ours already: a plugin starts this one
    #[arg(long, hide = true)]
    plugin: bool,
}

pub(crate) fn cmd_mcp(settings: &Settings, args: &McpArgs) -> Result<ExitCode, CommandError> {
    let offer = if args.plugin && agents::has_server(settings) { Offer::Nothing } else { Offer::Everything };
    mcp::serve_stdio(settings, offer)?;
    Ok(ExitCode::SUCCESS)
}
