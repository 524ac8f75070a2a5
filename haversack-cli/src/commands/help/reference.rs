//! The page `docs/commands.md`: every command with its arguments, made from the command line itself.

use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::Arguments;

/// The command that writes the page.
const REGENERATE: &str = "cargo run --quiet --package haversack-cli -- help --reference > docs/commands.md";

/// The groups of the page, in order. A command that no group names is listed under [`OTHERS`].
const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["demo", "init", "status"]),
    ("Look", &["open", "page", "ls", "view", "recall", "log", "diff", "why", "context", "index"]),
    ("Fix", &["undo", "restore", "conflicts", "resolve", "allow"]),
    (
        "Write",
        &["new", "edit", "create", "str-replace", "insert", "append", "rename", "delete", "check", "kinds"],
    ),
    ("Graph", &["graph", "node", "connection", "ontology"]),
    ("Connect machines", &["sync", "join", "remote", "devices", "mount", "migrate", "provision"]),
    (
        "Connect agents",
        &[
            "setup",
            "project",
            "mcp",
            "serve",
            "memory-tool",
            "event",
            "summary",
            "digest",
            "commitments",
            "carry",
        ],
    ),
    (
        "Maintain",
        &[
            "tidy",
            "prune",
            "export",
            "import",
            "schedule",
            "model",
            "doctor",
            "config",
            "backends",
            "uninstall",
            "completions",
            "help",
            "version",
        ],
    ),
];

/// The title of the group for all other commands.
const OTHERS: &str = "More";

/// Returns the page in Markdown.
pub(super) fn reference() -> String {
    let mut program = Arguments::command();
    program.build();
    let commands: Vec<&Command> =
        program.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<&str> =
        commands.iter().map(|command| command.get_name()).filter(|name| !is_grouped(name)).collect();
    let groups: Vec<(&str, Vec<&Command>)> = GROUPS
        .iter()
        .map(|(title, names)| (*title, names.to_vec()))
        .chain((!others.is_empty()).then(|| (OTHERS, others.clone())))
        .map(|(title, names)| {
            let find = |name: &&str| commands.iter().copied().find(|command| command.get_name() == *name);
            (title, names.iter().filter_map(find).collect())
        })
        .collect();

    let mut page = format!(
        "# Commands\n\n<!-- Made by: {REGENERATE} -->\n\n\
         `haversack help COMMAND` prints the same text in your terminal. Every command also accepts `--home DIRECTORY` (the directory that holds \
         everything), `--config KEY=VALUE` ([settings](settings.md)), `--color auto|always|never` and `--no-pager`. `--json` prints JSON \
         where a command has it.\n\n\
         A PATH is the name of a memory file: `lighthouse/ports.md`, `ports.md` inside the checkout of lighthouse, or the real path of the file.\n"
    );
    for (title, commands) in &groups {
        let _ = write!(page, "\n**{title}**\n\n| command | effect |\n|---|---|\n");
        for command in commands {
            let name = command.get_name();
            let about = command.get_about().map(plain).unwrap_or_default();
            let _ = writeln!(page, "| [`{name}`](#haversack-{name}) | {} |", cell(&about));
        }
    }
    for (_, commands) in &groups {
        for command in commands {
            describe(&mut page, command, "haversack", 2);
        }
    }
    page
}

/// Writes the section of a command, and those of its subcommands below it.
fn describe(page: &mut String, command: &Command, parent: &str, level: usize) {
    let name = format!("{parent} {}", command.get_name());
    let _ = write!(page, "\n{} {name}\n\n", "#".repeat(level));
    if let Some(text) = command.get_long_about().or(command.get_about()) {
        let _ = write!(page, "{}\n\n", sentences(&plain(text)));
    }
    let usage = plain(&command.clone().render_usage());
    let usage = usage.trim_start_matches("Usage:").trim();
    let _ = write!(page, "```text\n{usage}\n```\n");
    let arguments: Vec<&Arg> = command.get_arguments().filter(|argument| is_shown(argument)).collect();
    if !arguments.is_empty() {
        page.push_str("\n| argument | meaning |\n|---|---|\n");
        for argument in arguments {
            let help = argument.get_long_help().or(argument.get_help()).map(plain).unwrap_or_default();
            let _ = writeln!(page, "| `{}` | {} |", cell(&spelled(argument)), cell(&help));
        }
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        describe(page, below, &name, level + 1);
    }
}

/// Returns true for the arguments that belong to one command. Those of all commands are named once, at the top.
fn is_shown(argument: &Arg) -> bool {
    let is_common =
        matches!(argument.get_id().as_str(), "help" | "version" | "home" | "config" | "color" | "no_pager");
    !argument.is_hide_set() && !is_common
}

/// Returns an argument as a user types it: `--since TIME`, `[PATH]...`.
fn spelled(argument: &Arg) -> String {
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let values = argument.get_value_names().unwrap_or_default();
    let values = values.iter().map(|value| value.as_str()).collect::<Vec<_>>().join(" ");
    match (argument.get_long(), argument.get_short()) {
        (Some(long), _) if takes_value => format!("--{long} {values}"),
        (Some(long), None) => format!("--{long}"),
        (Some(long), Some(short)) => format!("-{short}, --{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => values,
    }
}

fn plain(text: &StyledStr) -> String {
    text.to_string().trim().to_owned()
}

/// Returns a text as sentences: the first line of a command's help has no full stop.
fn sentences(help: &str) -> String {
    match help.split_once("\n\n") {
        Some((first, rest)) => format!("{}.\n\n{rest}", first.trim_end_matches('.')),
        None => format!("{}.", help.trim_end_matches('.')),
    }
}

/// Returns a text that fits into one cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_page_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/commands.md");
        let page = std::fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n");
        assert!(page == reference(), "docs/commands.md is out of date; make it again: {REGENERATE}");
    }

    #[test]
    fn commands_page_groups_name_existing_commands() {
        let program = Arguments::command();
        for name in GROUPS.iter().flat_map(|(_, names)| names.iter()) {
            assert!(program.find_subcommand(name).is_some(), "{name}");
        }
    }
}
