//! `haversack completions SHELL`: what a shell needs to complete commands, options and the names of memories.
//!
//! 1. The user's shell reads the script that this command prints.
//! 2. When the user presses the tab key, the script runs `haversack -- WORDS…` with [`variables::COMPLETE`] set to the name of the shell.
//! 3. [`answer`] prints the candidates for the last word. Options and commands come from the command line itself; [`VALUES`] says which
//!    arguments take names of memories, projects, kinds or machines, and `app::complete` finds those.
//!
//! A mistake in the settings or a home that cannot be read gives no candidates and no message: the user is in the middle of a line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Command, CommandFactory, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, EnvCompleter, Fish, Powershell, Zsh};

use crate::Arguments;
use crate::app::complete::{Subject, candidates};
use crate::error::CommandError;
use crate::settings::flags::{self, Flag};
use crate::settings::{self, BrokenProjectFile, Settings, declarations, environment, variables};
use crate::ui::Ui;

/// Print what your shell needs to complete haversack's commands, options and the names of memories
///
/// bash: haversack completions bash > ~/.local/share/bash-completion/completions/haversack
///
/// zsh: haversack completions zsh > DIRECTORY/_haversack, where DIRECTORY is in $fpath
///
/// fish: haversack completions fish > ~/.config/fish/completions/haversack.fish
///
/// PowerShell: add to $PROFILE: haversack completions powershell | Out-String | Invoke-Expression
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell that we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Shell::Bash => &Bash,
            Shell::Zsh => &Zsh,
            Shell::Fish => &Fish,
            Shell::Powershell => &Powershell,
        }
    }
}

/// The name of the program, as users type it.
const PROGRAM: &str = "haversack";

/// The end of the script for zsh. The first tab key reads the script from the file `_haversack` as a function with that name, which only defines the completer.
/// So the first call goes on to it.
const ZSH_FIRST_CALL: &str = r#"
if [ "$funcstack[1]" = "_haversack" ]; then
    _clap_dynamic_completer_haversack "$@"
fi
"#;

/// The arguments whose values are names that this machine knows: the command, the argument, the sort of name.
const VALUES: &[(&str, &str, Subject)] = &[
    ("ls", "path", Subject::Memory),
    ("ls", "kind", Subject::Kind),
    ("view", "path", Subject::Memory),
    ("recall", "within", Subject::Memory),
    ("log", "target", Subject::Memory),
    ("diff", "wanted", Subject::Memory),
    ("undo", "target", Subject::Memory),
    ("restore", "path", Subject::Memory),
    ("conflicts", "path", Subject::Memory),
    ("allow", "places", Subject::Memory),
    ("new", "kind", Subject::Kind),
    ("edit", "path", Subject::Memory),
    ("create", "path", Subject::Memory),
    ("str-replace", "path", Subject::Memory),
    ("insert", "path", Subject::Memory),
    ("append", "path", Subject::Memory),
    ("rename", "old", Subject::Memory),
    ("rename", "new", Subject::Memory),
    ("delete", "path", Subject::Memory),
    ("check", "path", Subject::Memory),
    ("kinds show", "kind", Subject::Kind),
    ("sync", "mine", Subject::Memory),
    ("devices remove", "name", Subject::Machine),
    ("setup", "agent", Subject::Agent),
    ("project exclude", "what", Subject::Project),
    ("config set", "key", Subject::Setting),
    ("config unset", "key", Subject::Setting),
];

pub(crate) fn cmd_completions(ui: &mut Ui, args: &CompletionsArgs) -> Result<ExitCode, CommandError> {
    let mut script = Vec::new();
    args.shell.completer().write_registration(variables::COMPLETE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    if args.shell == Shell::Zsh {
        script.extend_from_slice(ZSH_FIRST_CALL.as_bytes());
    }
    ui.bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the candidates for the last of the words that a shell passes, in the form that the shell reads; `None` if no shell asks.
pub(crate) fn answer() -> Option<Vec<u8>> {
    let shell = environment::completing_shell()?;
    let mut printed = Vec::new();
    if let Ok(shell) = Shell::from_str(&shell, false) {
        let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
        let directory = std::env::current_dir().ok();
        let mut program = described(home_of(&words));
        if !words.is_empty() {
            // A word that completes to nothing is no failure.
            drop(shell.completer().write_complete(&mut program, words, directory.as_deref(), &mut printed));
        }
    }
    Some(printed)
}

/// Returns the home that the typed line names.
fn home_of(words: &[OsString]) -> Option<PathBuf> {
    let named = words.iter().zip(words.iter().skip(1)).find(|(flag, _)| *flag == "--home");
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--home=").map(PathBuf::from));
    named.map(|(_, home)| PathBuf::from(home)).or(joined)
}

/// Returns the whole command line, each argument of [`VALUES`] with its completer.
fn described(home: Option<PathBuf>) -> Command {
    let mut program = flags::accept(Arguments::command());
    program.build();
    let home = Arc::new(home);
    for (path, argument, subject) in VALUES {
        let complete = completer(Arc::clone(&home), *subject);
        let words: Vec<&str> = path.split(' ').collect();
        program = with_completer(program, &words, argument, complete);
    }
    program
}

fn with_completer(
    command: Command,
    path: &[&str],
    argument: &'static str,
    completer: ArgValueCompleter,
) -> Command {
    match path {
        [] => command.mut_arg(argument, |argument| argument.add(completer)),
        [first, rest @ ..] => {
            command.mut_subcommand(*first, |below| with_completer(below, rest, argument, completer))
        }
    }
}

fn completer(home: Arc<Option<PathBuf>>, subject: Subject) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        let (Some(typed), Ok(settings)) = (typed.to_str(), settings_of(home.as_ref().clone())) else {
            return Vec::new();
        };
        let found = candidates(&settings, subject, typed).unwrap_or_default();
        found.into_iter().map(CompletionCandidate::new).collect::<Vec<_>>()
    })
}

fn settings_of(home: Option<PathBuf>) -> Result<Settings, CommandError> {
    let home =
        home.map(|home| Flag { name: "--home", key: declarations::HOME.to_owned(), value: home.into() });
    let flags: Vec<Flag> = home.into_iter().collect();
    settings::load(&flags, BrokenProjectFile::IsIgnored).map(|resolved| resolved.settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_with_names_exists() {
        let mut program = Arguments::command();
        program.build();
        for (path, argument, _) in VALUES {
            let command = path.split(' ').try_fold(&program, |command, word| command.find_subcommand(word));
            let command = command.unwrap_or_else(|| panic!("there is no command {path}"));
            let is_there = command.get_arguments().any(|known| known.get_id() == argument);
            assert!(is_there, "{path} has no argument {argument}");
        }
    }

    #[test]
    fn home_is_read_from_the_line() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(home_of(&words("haversack --home /h ls")), Some("/h".into()));
        assert_eq!(home_of(&words("haversack ls --home=/h x")), Some("/h".into()));
        assert_eq!(home_of(&words("haversack ls --home")), None);
    }
}
