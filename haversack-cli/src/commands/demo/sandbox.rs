//! A directory of its own for the demo: two homes, the directory where they meet, and a user who has nothing else.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use haversack::ids::Ids;
use haversack::store::file_address;
use haversack_system::RandomIds;
use serde_json::Value;

use super::script::Machine;
use super::tally::Files;
use crate::error::CommandError;
use crate::settings::{environment, shown};

/// The most names that are tried.
const MAX_NAMES: usize = 100;

/// The directory of the demo.
#[derive(Clone, Debug)]
pub(super) struct Sandbox {
    pub(super) base: PathBuf,
}

/// The output of a command.
#[derive(Clone, Debug)]
pub(super) struct Printed {
    pub(super) stdout: String,
}

impl Printed {
    /// Returns the data of a command that was asked for JSON.
    pub(super) fn json(&self) -> Result<Value, CommandError> {
        serde_json::from_str(&self.stdout)
            .map_err(|error| CommandError::ours(format!("a command printed no JSON: {error}")))
    }
}

impl Sandbox {
    pub(super) fn new() -> Result<Sandbox, CommandError> {
        let temporary = std::env::temp_dir();
        let made = (0..MAX_NAMES)
            .map(|_| {
                let [one, two, ..] = RandomIds.next();
                let base = temporary.join(format!("haversack-demo-{one:02x}{two:02x}"));
                std::fs::create_dir(&base).map(|()| base)
            })
            .find(|made| !made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists));
        let made = made.unwrap_or_else(|| Err(ErrorKind::AlreadyExists.into()));
        // With every link resolved: the homes remember where they meet.
        let base = made.and_then(|base| base.canonicalize());
        let sandbox = base.and_then(|base| {
            std::fs::create_dir(base.join("user"))?;
            Ok(Sandbox { base })
        });
        sandbox.map_err(|error| CommandError {
            source: Some(error.into()),
            ..CommandError::user("the sandbox could not be made", "Set TMPDIR to a writable directory")
        })
    }

    /// Deletes everything of the demo.
    pub(super) fn delete(&self) -> Result<(), CommandError> {
        std::fs::remove_dir_all(&self.base).map_err(|error| CommandError {
            source: Some(error.into()),
            ..CommandError::user(
                format!("the sandbox {} could not be deleted", shown(&self.base)),
                "It holds nothing of yours: delete it by hand",
            )
        })
    }

    /// Returns the home of a machine.
    pub(super) fn home(&self, machine: Machine) -> PathBuf {
        self.base.join(machine.name())
    }

    /// Returns the files of both machines, as they are now.
    pub(super) fn files_of_both(&self) -> Result<[Files; 2], CommandError> {
        let files = |machine: Machine| {
            read(&self.home(machine).join("memory")).map_err(|error| CommandError {
                source: Some(error.into()),
                ..CommandError::ours(format!("the files of the {} cannot be read", machine.name()))
            })
        };
        Ok([files(Machine::Laptop)?, files(Machine::Desktop)?])
    }

    /// Returns the directory of the demo's user, who has nothing in it.
    pub(super) fn user(&self) -> PathBuf {
        self.base.join("user")
    }

    /// Returns the directory where the machines meet.
    pub(super) fn shared(&self) -> PathBuf {
        self.base.join("shared")
    }

    /// Returns its address.
    pub(super) fn url(&self) -> Result<String, CommandError> {
        Ok(file_address(&self.shared())?)
    }

    /// Runs a command on a machine, which must go well, and returns what it printed.
    pub(super) fn run(&self, machine: Machine, arguments: &[&str]) -> Result<Printed, CommandError> {
        self.run_with(machine, arguments, "")
    }

    /// Runs a command on a machine, and gives it a text on stdin.
    pub(super) fn run_with(
        &self,
        machine: Machine,
        arguments: &[&str],
        stdin: &str,
    ) -> Result<Printed, CommandError> {
        let name = format!("haversack {} on the {}", arguments[0], machine.name());
        let failed = |error: std::io::Error| CommandError {
            source: Some(error.into()),
            ..CommandError::ours(format!("{name} could not be run"))
        };
        let mut command = self.command(machine, arguments)?;
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(stdin.as_bytes()).map_err(failed)?;
        }
        let output = child.wait_with_output().map_err(failed)?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        // `status` exits with 1 if it needs the user; that is no failure.
        if output.status.success() || arguments[0] == "status" {
            return Ok(Printed { stdout });
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(CommandError::user(
            format!("{name} failed:\n{}", said.trim_end()),
            format!("The demo's files are in {}; set TMPDIR for another place", shown(&self.base)),
        ))
    }

    /// Starts a command on a machine.
    pub(super) fn start(&self, machine: Machine, arguments: &[&str]) -> Result<Child, CommandError> {
        let mut command = self.command(machine, arguments)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|error| {
            CommandError {
                source: Some(error.into()),
                ..CommandError::ours(format!("haversack {} could not be started", arguments[0]))
            }
        })
    }

    /// Returns this very program, as the demo's user runs it: with nothing of the real user's surroundings.
    fn command(&self, machine: Machine, arguments: &[&str]) -> Result<Command, CommandError> {
        let program = std::env::current_exe().map_err(|error| CommandError {
            source: Some(error.into()),
            ..CommandError::ours("the program cannot find itself")
        })?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(environment::of_the_system())
            .env(if cfg!(windows) { "USERPROFILE" } else { "HOME" }, self.user());
        if cfg!(windows) {
            // Windows keeps the directories of programs apart from the user's own.
            command
                .env("APPDATA", self.user().join("Roaming"))
                .env("LOCALAPPDATA", self.user().join("Local"));
        }
        command
            .args([Path::new("--home"), &self.home(machine)])
            .args(arguments)
            .current_dir(&self.base)
            .stdout(Stdio::piped());
        Ok(command)
    }
}

/// Reads the files of a directory, and nothing below it.
pub(super) fn read(directory: &Path) -> std::io::Result<Files> {
    let mut files = Files::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let bytes = std::fs::read(entry.path())?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            files.insert(entry.file_name().to_string_lossy().into_owned(), text);
        }
    }
    Ok(files)
}
