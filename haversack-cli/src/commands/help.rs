//! `haversack help`: the short page is for people, the long one lists everything.

mod manual;
mod reference;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory};

use crate::Arguments;
use crate::error::CommandError;
use crate::settings::flags;
use crate::ui::Ui;
use crate::ui::wrap::wrapped;

/// The text of `haversack --help`.
pub(crate) const SHORT: &str = "\
Your agent's memory, on every machine you work on.

Usage: haversack [--home DIRECTORY] COMMAND

Start    demo          See it work, in a sandbox
         init          Sync this machine's memory (the same line on every machine)
         status        Is all well? If not, what to do
Look     open          See, search and mend it all in your browser
         ls, view      What the agent knows here
         recall        Find it by what it says
         log, diff     Who wrote it, where, when
         why           The context of the last sessions, and its cost
Fix      undo          Take a change, a session or a join back
         restore       Bring a file back as it once was
         conflicts     Memories with two versions: resolve them
         allow         Send a line that only looks like a secret
Write    edit, new     Change a memory in your editor, or begin one
Manage   sync          Now, instead of by itself
         migrate       Copy what you have to another storage
         remote, join, project, devices, setup, mount, config
         tidy, prune   Roll up what is old; delete what is old
         export        The memory in one file; import takes it in
         doctor        Check everything
         uninstall     Leave; your files stay

One command: haversack help COMMAND. Everywhere: --color auto|always|never, --no-pager
For agents and scripts (mcp, serve, memory-tool, create, append, …): haversack help --all
";

/// Show the commands, or explain one
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Explain this command, as `haversack COMMAND --help` does
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,

    /// Show every command
    #[arg(long, conflicts_with = "command")]
    all: bool,

    /// Print every command with its arguments, as Markdown
    #[arg(long, conflicts_with_all = ["command", "all"])]
    reference: bool,

    /// Write the manual pages for `man` into this directory
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["command", "all", "reference"])]
    man: Option<PathBuf>,
}

pub(crate) fn cmd_help(ui: &mut Ui, args: &HelpArgs) -> Result<ExitCode, CommandError> {
    if !args.command.is_empty() {
        return explain(ui, &args.command);
    }
    if let Some(directory) = &args.man {
        manual::write(directory)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.reference {
        ui.bytes(reference::reference().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    ui.page();
    let page = match args.all {
        true => {
            let mut everything = Arguments::command().mut_subcommands(|command| command.hide(false));
            everything.build();
            everything.render_help().to_string()
        }
        false => short(ui.width().filter(|_| ui.is_watched())),
    };
    ui.bytes(page.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the page of `haversack --help`, its lines broken for a narrow terminal.
pub(crate) fn short(columns: Option<usize>) -> String {
    let Some(columns) = columns.filter(|columns| *columns > MEANING_AT) else { return SHORT.to_owned() };
    let mut page = String::new();
    for line in SHORT.lines() {
        // A command and its description are beside each other, as in `         init          Carry …`.
        let at =
            if line.get(9..10).is_some_and(|c| c != " ") && line.len() > MEANING_AT { MEANING_AT } else { 0 };
        let is_described = at > 0 && line[..at].ends_with("  ") && columns > MEANING_AT + 10;
        let (left, right) = line.split_at(if is_described { at } else { 0 });
        for (number, part) in wrapped(right, columns - left.len()).iter().enumerate() {
            let start = if number == 0 { left.to_owned() } else { " ".repeat(left.len()) };
            page.push_str(&format!("{start}{part}\n"));
        }
        if line.is_empty() {
            page.push('\n');
        }
    }
    page
}

/// The column of the descriptions in [`SHORT`].
const MEANING_AT: usize = 23;

/// Prints the help of a command, named by one word or several (`config set`).
fn explain(ui: &mut Ui, words: &[String]) -> Result<ExitCode, CommandError> {
    let mut command = flags::accept(Arguments::command());
    command.build();
    let mut named = &mut command;
    for word in words {
        let alike = meant(word, named);
        named = named.find_subcommand_mut(word).ok_or_else(|| {
            let hint = match alike {
                Some(alike) => format!("Did you mean {alike}? See all commands: haversack help --all"),
                None => "See all commands: haversack help --all".to_owned(),
            };
            CommandError::user(format!("there is no command {}", words.join(" ")), hint)
        })?;
    }
    let words = ["haversack"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    match command.try_get_matches_from(words) {
        Err(page) => ui.bytes(page.render().to_string().as_bytes())?,
        Ok(_) => return Err(CommandError::ours("a command has no help")),
    }
    Ok(ExitCode::SUCCESS)
}

/// The share of letters that a mistyped name and a known one must have in common for a suggestion.
const CLOSE: f64 = 0.6;

/// Returns the known name that a mistyped one is close to: most letters are the same, or one begins with the other.
pub(crate) fn closest<'n>(typed: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let closeness = |known: &str| match known.starts_with(typed) && typed.len() >= 2 {
        true => 1.0,
        false => strsim::normalized_damerau_levenshtein(typed, known),
    };
    let all = known.into_iter().map(|known| (closeness(known), known));
    let best = all.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|(closeness, _)| *closeness >= CLOSE).map(|(_, known)| known.to_owned())
}

/// Words for one thing: the first that is a command is what the user of another word means.
const SYNONYMS: [&[&str]; 15] = [
    &["recall", "find", "search", "grep", "query", "lookup", "ask"],
    &["view", "get", "cat", "show", "read", "print"],
    &["delete", "remove", "rm", "del", "erase", "forget", "unlink"],
    &["ls", "list", "dir", "tree"],
    &["rename", "mv", "move"],
    &["sync", "push", "pull", "fetch", "send", "refresh"],
    &["undo", "revert", "rollback"],
    &["log", "history", "changes"],
    &["new", "add", "touch", "remember", "save", "write"],
    &["resolve", "merge", "settle"],
    &["init", "start", "begin", "connect", "login"],
    &["setup", "install", "hooks"],
    &["doctor", "diagnose", "fix", "repair"],
    &["config", "settings", "preferences"],
    &["open", "ui", "web", "browser"],
];

/// Returns the subcommand that a mistyped word means: by another word for the same thing, or by likeness.
fn meant(typed: &str, command: &clap::Command) -> Option<String> {
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let word = typed.to_lowercase();
    let group = SYNONYMS.iter().find(|group| group.contains(&word.as_str()));
    let same = group.and_then(|group| group.iter().find(|name| names.contains(name)));
    same.map(|name| (*name).to_owned()).or_else(|| closest(typed, names))
}

/// Returns the command whose subcommand was mistyped, by the words of the command line before it.
fn command_before(typed: &str, words: impl Iterator<Item = String>) -> clap::Command {
    let mut command = Arguments::command();
    // The subcommands of a subcommand exist only after this.
    command.build();
    for word in words.take_while(|word| word != typed) {
        if let Some(inner) = command.find_subcommand(&word).cloned() {
            command = inner;
        }
    }
    command
}

/// Keeps the suggestion for a mistyped command only if the names are close, or mean the same.
pub(crate) fn suggest_only_close(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand).cloned() else {
        return error;
    };
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::Suggested);
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    match meant(&typed, &command_before(&typed, words)) {
        Some(one) => error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![one])),
        None => {
            let tip = "see all commands: haversack help --all".into();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]))
        }
    };
    error
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

    #[test]
    fn short_page_fits_a_narrow_terminal() {
        assert_eq!((short(Some(200)), short(Some(0))), (SHORT.to_owned(), SHORT.to_owned()));
        let narrow = short(Some(60));
        assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
        assert!(
            narrow.contains(
                "Sync this machine's memory (the same\n                       line on every machine)"
            ),
            "{narrow}"
        );
        assert_eq!(
            narrow.split_whitespace().collect::<Vec<_>>(),
            SHORT.split_whitespace().collect::<Vec<_>>()
        );
    }

    #[test]
    fn words_of_other_programs_are_understood() {
        let mut all = Arguments::command();
        all.build();
        for (typed, expected) in [
            ("find", Some("recall")),
            ("search", Some("recall")),
            ("grep", Some("recall")),
            ("get", Some("view")),
            ("cat", Some("view")),
            ("rm", Some("delete")),
            ("list", Some("ls")),
            ("mv", Some("rename")),
            ("push", Some("sync")),
            ("history", Some("log")),
            ("statsu", Some("status")),
            ("frobnicate", None),
        ] {
            assert_eq!(meant(typed, &all).as_deref(), expected, "{typed}");
        }
        let mount = all.find_subcommand("mount").expect("a command");
        assert_eq!(meant("rm", mount).as_deref(), Some("remove"));
        assert_eq!(meant("ls", mount).as_deref(), Some("list"));
        // Every group names a command.
        for group in SYNONYMS {
            assert!(all.find_subcommand(group[0]).is_some(), "{}", group[0]);
        }
    }

    #[test]
    fn closest_name_is_suggested_only_when_close() {
        let known = || ["status", "setup", "restore", "recall", "log", "conflicts", "mcp"];
        for (typed, expected) in [
            ("statsu", Some("status")),
            ("stat", Some("status")),
            ("recal", Some("recall")),
            ("conflict", Some("conflicts")),
            ("lgo", Some("log")),
            ("frobnicate", None),
            ("start", None),
            ("push-all", None),
            ("x", None),
        ] {
            assert_eq!(closest(typed, known()).as_deref(), expected, "{typed}");
        }
    }
}
