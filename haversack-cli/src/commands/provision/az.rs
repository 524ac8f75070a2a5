//! Running the Azure CLI: its answer, or what it complained about and what helps.

use std::io::{ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::plan::{self, Call, Values};
use crate::error::{CommandError, Fault};

/// The usual name of the program.
pub(super) const DEFAULT: &str = if cfg!(windows) { "az.cmd" } else { "az" };

/// The time limit of one call; creating an account takes about a minute.
const CALL_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The interval at which a running call is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The length of a complaint in a message.
const MAX_COMPLAINT_CHARACTERS: usize = 600;

/// The Azure CLI.
pub(super) struct Az {
    program: String,
}

impl Az {
    pub(super) fn new(program: &str) -> Az {
        Az { program: program.to_owned() }
    }

    /// Makes a call that has no answer but success.
    pub(super) fn run(&self, call: &Call, values: &Values) -> Result<(), CommandError> {
        self.output(call, values).map(|_| ())
    }

    /// Makes a call that answers with one value.
    pub(super) fn ask(&self, call: &Call, values: &Values) -> Result<String, CommandError> {
        self.ask_if_there(call, values)?.ok_or_else(|| {
            CommandError::user(format!("az has no answer to: {}", shown(call)), "Run it by hand to see more")
        })
    }

    /// Makes a call that answers with one value if there is any.
    pub(super) fn ask_if_there(&self, call: &Call, values: &Values) -> Result<Option<String>, CommandError> {
        let answer = self.output(call, values)?;
        let answer = answer.trim();
        Ok(Some(answer.to_owned()).filter(|answer| !answer.is_empty() && answer != "None"))
    }

    fn output(&self, call: &Call, values: &Values) -> Result<String, CommandError> {
        let arguments = call.arguments.iter().map(|argument| plan::filled(argument, values));
        let started = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = started.map_err(|error| self.did_not_start(error))?;
        let out = collect(child.stdout.take());
        let err = collect(child.stderr.take());
        let is_good = finish(&mut child)?;
        let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        match is_good {
            true => Ok(out),
            false => Err(failed(call, &err)),
        }
    }

    fn did_not_start(&self, error: std::io::Error) -> CommandError {
        let program = &self.program;
        let (message, hint) = match error.kind() {
            ErrorKind::NotFound => (
                format!("the Azure CLI is not here: {program}"),
                "Install it (https://learn.microsoft.com/cli/azure/install-azure-cli), then: az login; or give its path with --az",
            ),
            _ => (format!("the Azure CLI does not start: {program}"), "Name another one with --az"),
        };
        let hint = Some(hint.to_owned());
        CommandError { fault: Fault::User, message, source: Some(error.into()), hint }
    }
}

/// Reads all that a call prints, beside it: a full pipe would stop it.
fn collect(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // If reading fails, use the part that was read.
            drop(stream.read_to_end(&mut bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for a call, and tells whether it went well.
fn finish(child: &mut Child) -> Result<bool, CommandError> {
    let started = Instant::now();
    loop {
        let status = child.try_wait().map_err(|error| CommandError::ours(format!("az is lost: {error}")))?;
        match status {
            Some(status) => return Ok(status.success()),
            None if started.elapsed() < CALL_TIMEOUT => std::thread::sleep(LOOK_EVERY),
            None => {
                drop(child.kill());
                drop(child.wait());
                let message = format!("az did not finish within {} minutes", CALL_TIMEOUT.as_secs() / 60);
                return Err(CommandError::user(message, "Check the network"));
            }
        }
    }
}

/// Returns the error for a call that az complained about.
fn failed(call: &Call, complaint: &str) -> CommandError {
    let complaint = tidy(complaint);
    if complaint.contains("az login") {
        let error = CommandError::user("az is not signed in", "Sign in: az login");
        return CommandError { source: Some(complaint.into()), ..error };
    }
    let cure = cure(&complaint).unwrap_or("Read the message of az above");
    let error = CommandError::user(format!("this did not work: {}", shown(call)), cure);
    CommandError { source: Some(complaint.into()), ..error }
}

/// Returns what a call does, as it is called.
fn shown(call: &Call) -> String {
    let words = call.arguments.iter().take_while(|word| !word.starts_with("--"));
    let words: Vec<&str> = words.map(String::as_str).collect();
    let url = call.arguments.iter().skip_while(|word| *word != "--url").nth(1);
    format!("az {}{}", words.join(" "), url.map(|url| format!(" {url}")).unwrap_or_default())
}

/// Returns what probably helps.
fn cure(complaint: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| complaint.contains(word));
    if has(&[
        "StorageAccountAlreadyTaken",
        "AccountNameInvalid",
        "is already taken",
        "AlreadyExistsInAnotherResourceGroup",
    ]) {
        Some(
            "Another customer uses that name, or it is in another resource group. Name yours with --account or --resource-group",
        )
    } else if has(&["Authorization_RequestDenied", "Insufficient privileges"]) {
        Some(
            "Granting the permission needs an administrator of the directory (Cloud Application Administrator)",
        )
    } else if has(&["AuthorizationFailed"]) {
        Some(
            "You need to be Owner of the subscription or of the resource group, or to have one make it for you",
        )
    } else if has(&["MissingSubscriptionRegistration"]) {
        Some(
            "Let the subscription use storage first: az provider register --namespace Microsoft.Storage --wait",
        )
    } else if has(&["SubscriptionNotFound", "doesn't exist in cloud"]) {
        Some("See which subscriptions there are: az account list --output table")
    } else if has(&["LocationNotAvailableForResource", "InvalidResourceGroupLocation", "InvalidLocation"]) {
        Some("Name the region with --location: az account list-locations --output table")
    } else if has(&["PrincipalNotFound", "Request_ResourceNotFound", "does not exist in the directory"]) {
        Some(
            "Check --agent-user and --agent-id: the directory does not have both (new ones take a few minutes)",
        )
    } else {
        None
    }
}

/// Returns a complaint in one line: what az marks as an error if it does, without what it prints beside.
fn tidy(complaint: &str) -> String {
    let lines = complaint.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("WARNING")).collect();
    let from = lines.iter().position(|line| line.starts_with("ERROR")).unwrap_or(0);
    let line = lines[from.min(lines.len())..].join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).take(MAX_COMPLAINT_CHARACTERS).collect();
    match line.strip_prefix("ERROR:").unwrap_or(&line).trim() {
        "" => "az says nothing about it".to_owned(),
        line => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_one_line() {
        assert_eq!(tidy("WARNING: old\nERROR: (Taken) The name\n is gone.\n"), "(Taken) The name is gone.");
        assert_eq!(tidy("Please run 'az login'"), "Please run 'az login'");
        assert_eq!(tidy(""), "az says nothing about it");
        assert_eq!(tidy(&"x".repeat(5000)).len(), MAX_COMPLAINT_CHARACTERS);
    }

    #[test]
    fn a_call_is_shown_without_its_options() {
        let call = |words: &[&str]| Call { arguments: words.iter().map(|word| (*word).to_owned()).collect() };
        assert_eq!(shown(&call(&["group", "create", "--name", "x"])), "az group create");
        assert_eq!(shown(&call(&["rest", "--method", "get", "--url", "https://x/y"])), "az rest https://x/y");
    }
}
