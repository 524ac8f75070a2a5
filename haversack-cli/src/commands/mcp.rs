//! `haversack mcp`: the memory for a client of the Model Context Protocol that starts us.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::agents;
use crate::error::CommandError;
use crate::serve::mcp::{self, Offer};
use crate::serve::server_memory;
use crate::settings::Settings;

/// Serve the memory over the Model Context Protocol on stdin and stdout, until the input ends
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Do nothing where the user's settings have a server of ours already: a plugin starts this one
    #[arg(long, hide = true)]
    plugin: bool,

    /// The tools to offer: our own, or those of @modelcontextprotocol/server-memory over the graph of this memory
    #[arg(long, value_enum, default_value_t = Tools::Haversack)]
    tools: Tools,
}

/// The tools that are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tools {
    Haversack,
    ServerMemory,
}

pub(crate) fn cmd_mcp(settings: &Settings, args: &McpArgs) -> Result<ExitCode, CommandError> {
    if args.tools == Tools::ServerMemory {
        server_memory::serve_stdio(settings)?;
        return Ok(ExitCode::SUCCESS);
    }
    let offer = if args.plugin && agents::has_server(settings) { Offer::Nothing } else { Offer::Everything };
    mcp::serve_stdio(settings, offer)?;
    Ok(ExitCode::SUCCESS)
}
