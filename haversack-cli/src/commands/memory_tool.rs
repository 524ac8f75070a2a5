//! `haversack memory-tool`: the bridge for any program with Anthropic's memory tool.

use std::process::ExitCode;

use clap::Args;

use crate::error::CommandError;
use crate::serve::memory_tool;
use crate::settings::Settings;
use crate::ui::Ui;

/// Answer memory-tool commands: one JSON object per line in, one per line out
#[derive(Debug, Args)]
pub(crate) struct MemoryToolArgs {}

pub(crate) fn cmd_memory_tool(
    ui: &mut Ui,
    settings: &Settings,
    _args: &MemoryToolArgs,
) -> Result<ExitCode, CommandError> {
    memory_tool::serve(ui, settings)?;
    Ok(ExitCode::SUCCESS)
}
