//! `haversack mcp`: the memory for a client of the Model Context Protocol that starts us.

use std::process::ExitCode;

use clap::Args;

use crate::error::CommandError;
use crate::mcp;
use crate::settings::Settings;

/// Serve the memory over the Model Context Protocol on stdin and stdout, until the input ends
#[derive(Debug, Args)]
pub(crate) struct McpArgs {}

pub(crate) fn cmd_mcp(settings: &Settings, _args: &McpArgs) -> Result<ExitCode, CommandError> {
    mcp::serve_stdio(settings)?;
    Ok(ExitCode::SUCCESS)
}
