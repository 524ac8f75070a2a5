//! `--config KEY=VALUE`, before or after any command.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::declarations;

/// One setting given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    /// The flag's name, dashes and all.
    pub(crate) name: &'static str,
    pub(crate) key: String,
    pub(crate) value: OsString,
}

/// Both the name and the id of the argument.
const CONFIG: &str = "config";

/// The place of common options in the help: after the command's own.
pub(crate) const LAST: usize = 900;

/// Adds the flag to a command and to everything below it that is described already; what is not yet, adds it by itself.
///
/// A global argument of clap's would not do: given both before and after a subcommand, the former is
/// dropped in silence.
pub(crate) fn accept(command: Command) -> Command {
    let argument = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("KEY=VALUE")
        .help("Change a setting for this run; can be given more than once")
        .action(ArgAction::Append)
        .display_order(LAST)
        .value_parser(ValueParser::new(parse));
    command.arg(argument).mut_subcommands(accept)
}

/// Returns every flag in the order given, `--time-zone` and `--home` last: they have names of their own and win.
pub(crate) fn collect(matches: &ArgMatches, home: Option<PathBuf>, time_zone: Option<String>) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut level = Some(matches);
    while let Some(matches) = level {
        flags.extend(matches.get_many::<Flag>(CONFIG).into_iter().flatten().cloned());
        level = matches.subcommand().map(|(_, below)| below);
    }
    flags.extend(time_zone.map(|zone| Flag {
        name: "--time-zone",
        key: declarations::TIME_ZONE.to_owned(),
        value: zone.into(),
    }));
    flags.extend(home.map(|home| Flag {
        name: "--home",
        key: declarations::HOME.to_owned(),
        value: home.into(),
    }));
    flags
}

fn parse(text: &str) -> Result<Flag, String> {
    match text.split_once('=').map(|(key, value)| (key.trim(), value)) {
        Some((key, value)) if !key.is_empty() => {
            Ok(Flag { name: "--config", key: key.to_owned(), value: value.into() })
        }
        _ => Err("it is not of the form KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Arguments;

    fn without(command: &Command) -> Vec<String> {
        let has = command.get_arguments().any(|argument| argument.get_id() == CONFIG);
        let below = command.get_subcommands().flat_map(without);
        below.chain((!has).then(|| command.get_name().to_owned())).collect()
    }

    #[test]
    fn every_command_accepts_it() {
        let mut command = accept(Arguments::command());
        command.build();
        assert!(command.get_subcommands().any(|command| command.get_subcommands().count() > 1));
        assert_eq!(without(&command), [""; 0]);
    }
}
