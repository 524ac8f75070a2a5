//! `haversack help`: the short page is for people, the long one lists everything.

use std::process::ExitCode;

use clap::{Args, CommandFactory};

use crate::Arguments;
use crate::error::CommandError;
use crate::ui::Ui;

/// What `haversack --help` shows.
pub(crate) const SHORT: &str = "\
Your agent's memory, on every machine you work on.

Usage: haversack [--home DIRECTORY] COMMAND

Start    demo          See it work, in a sandbox
         init          Carry this machine's memory (the same line on every machine)
         status        Is all well? If not, what to do
Look     ls, view      What the agent knows here
         recall        Find it by what it says
         log, diff     Who wrote it, where, when
         why           What the last sessions were given, and its cost
Fix      undo          Take a change, a session or a join back
         restore       Bring a file back as it once was
         conflicts     Memories with two versions: resolve them
         allow         Send a line that only looks like a secret
Manage   sync          Now, instead of by itself
         migrate       Copy what you have to another storage
         remote, join, project, devices, setup, mount, config
         doctor        Check everything
         uninstall     Leave; your files stay

For agents and scripts (mcp, serve, memory-tool, create, append, …): haversack help --all
";

/// Show what there is
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Show every command
    #[arg(long)]
    all: bool,
}

pub(crate) fn cmd_help(ui: &mut Ui, args: &HelpArgs) -> Result<ExitCode, CommandError> {
    let page = match args.all {
        true => {
            let mut everything = Arguments::command().mut_subcommands(|command| command.hide(false));
            everything.build();
            everything.render_help().to_string()
        }
        false => SHORT.to_owned(),
    };
    ui.bytes(page.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_short_page_exists() {
        let words = SHORT.lines().filter(|line| line.starts_with("         ") || line.contains("    "));
        let commands: Vec<String> =
            Arguments::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
        let mut seen = 0;
        for line in words.skip(1) {
            let named = line.get(9..23).unwrap_or(line.get(9..).unwrap_or_default());
            let named = if line.contains("remote, join") { &line[9..] } else { named };
            for name in named.split([',', ' ']).filter(|name| !name.is_empty() && *name != "add") {
                assert!(commands.iter().any(|command| command == name), "{name}");
                seen += 1;
            }
        }
        assert!(seen > 14, "{seen}");
    }
}
