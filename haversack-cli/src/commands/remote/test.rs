//! `haversack remote test`: what there is to know about a remote, and the cure for what is wrong with it.

use std::io::Write;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use haversack::ids::Ids;
use haversack::store::{block_on, cloud};
use haversack_system::RandomIds;
use serde::{Deserialize, Serialize};

use crate::error::CommandError;
use crate::remote::credential::Cloud;
use crate::remote::{self, Remote};
use crate::settings::{Settings, environment};
use crate::ui::Ui;

/// The seconds between two clocks at which a storage refuses; we report it earlier.
const CLOCKS_APART_SECONDS: i64 = 300;

#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Try the remote that is described on standard input, and not the one of this home
    #[arg(long, hide = true)]
    described: bool,
}

/// How a remote did.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Report {
    url: String,
    /// Why it cannot be used, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The cure.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The source of the credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<String>,
    /// The duration of a request, there and back.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_ms: Option<u64>,
    /// The seconds by which its clock is ahead of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_ahead_seconds: Option<i64>,
    /// True if it refuses writes whose condition fails.
    compare_and_swap: bool,
}

pub(super) fn test(ui: &mut Ui, settings: &Settings, args: &TestArgs) -> Result<ExitCode, CommandError> {
    let remote = if args.described { described()? } else { Remote::expected(settings)? };
    remote::refuse_local(settings)?;
    let bar = ui.progress();
    let examined = examine(settings, &remote);
    bar.end();
    match examined {
        Ok(report) if args.json => ui.json(&serde_json::to_value(&report).unwrap_or_default())?,
        Ok(report) => report.tell(ui)?,
        Err(error) if args.json => {
            let report = Report {
                url: remote.url,
                error: Some(in_one_line(&error)),
                hint: error.hint,
                ..Report::default()
            };
            ui.json(&serde_json::to_value(&report).unwrap_or_default())?;
            return Ok(ExitCode::from(1));
        }
        Err(error) => return Err(error),
    }
    Ok(ExitCode::SUCCESS)
}

fn described() -> Result<Remote, CommandError> {
    let text = std::io::read_to_string(std::io::stdin())?;
    toml::from_str(&text).map_err(|error| CommandError::ours(format!("no remote is described: {error}")))
}

fn examine(settings: &Settings, remote: &Remote) -> Result<Report, CommandError> {
    let unique: String = RandomIds.next().iter().map(|byte| format!("{byte:02x}")).collect();
    let report = Report { url: remote.url.clone(), compare_and_swap: true, ..Report::default() };
    let milliseconds = |time: Duration| Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    if Cloud::of(&remote.url).is_some() {
        let found = block_on(cloud::examine(&remote.options(settings)?, &unique)).map_err(|error| {
            let error = CommandError::from(error);
            let hint =
                error.hint.unwrap_or("Correct it, and add it again: haversack remote add URL".to_owned());
            CommandError { hint: Some(hint), ..error }
        })?;
        return Ok(Report {
            credential: Some(found.credential),
            round_trip_ms: milliseconds(found.round_trip),
            clock_ahead_seconds: found.ahead_seconds,
            ..report
        });
    }
    let backend = remote::open(settings, remote)?;
    let round_trip = block_on(cloud::reach(&*backend, &unique))?;
    block_on(cloud::probe(&*backend, &unique))?;
    Ok(Report { round_trip_ms: milliseconds(round_trip), ..report })
}

/// A remote that is being tried as a hook would reach it: in a process that has none of this shell's variables.
pub(super) struct Trial {
    child: Child,
}

impl Trial {
    /// Begins to try a remote.
    pub(super) fn begin(settings: &Settings, remote: &Remote) -> Result<Trial, CommandError> {
        let described = toml::to_string(remote).map_err(|error| CommandError::ours(error.to_string()))?;
        // It runs elsewhere, where a relative path would name something else.
        let home = std::path::absolute(&settings.home).map_err(untried)?;
        let mut command = Command::new(std::env::current_exe().map_err(untried)?);
        command.arg("--home").arg(home).args(["remote", "test", "--json", "--described"]);
        command.env_clear().envs(environment::of_the_system()).current_dir(std::env::temp_dir());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut trial = Trial { child: command.spawn().map_err(untried)? };
        if let Some(mut stdin) = trial.child.stdin.take() {
            stdin.write_all(described.as_bytes()).map_err(untried)?;
        }
        Ok(trial)
    }

    /// Waits for its end, and returns what to tell about the remote.
    pub(super) fn end(self) -> Result<String, CommandError> {
        let output = self.child.wait_with_output().map_err(untried)?;
        let Ok(report) = serde_json::from_slice::<Report>(&output.stdout) else {
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(CommandError::user(
                format!("the remote could not be tried: {complaint}"),
                "Run the same command again",
            ));
        };
        match report.error {
            None => Ok(report.in_one_line()),
            Some(error) => Err(CommandError {
                source: Some(error.into()),
                hint: report.hint,
                ..CommandError::user("the remote cannot be used with the recorded settings", "")
            }),
        }
    }
}

fn untried(error: std::io::Error) -> CommandError {
    CommandError {
        source: Some(error.into()),
        ..CommandError::user("the remote could not be tried", "Run the same command again")
    }
}

fn in_one_line(error: &CommandError) -> String {
    let mut line = error.message.clone();
    let mut cause = error.source.as_ref().map(|cause| &**cause as &dyn std::error::Error);
    while let Some(error) = cause {
        line = format!("{line}: {error}");
        cause = error.source();
    }
    line
}

impl Report {
    fn clocks(&self) -> Option<String> {
        let apart = self.clock_ahead_seconds?;
        let told = match apart {
            -1..=1 => "the same as here".to_owned(),
            2.. => format!("{apart} s ahead of this machine's"),
            _ => format!("{} s behind this machine's", -apart),
        };
        Some(if apart.abs() < CLOCKS_APART_SECONDS {
            told
        } else {
            format!("{told}: set this machine's clock")
        })
    }

    fn in_one_line(&self) -> String {
        let credential = self.credential.as_deref().unwrap_or("none");
        let time = self.round_trip_ms.unwrap_or_default();
        format!(
            "Reached in {time} ms with {credential}, also without this shell. It refuses a second writer, as it must."
        )
    }

    fn tell(&self, ui: &mut Ui) -> Result<(), CommandError> {
        ui.line(format!("{} works.", self.url))?;
        let mut rows = Vec::new();
        let mut row = |what: &str, told: String| rows.push(vec![format!("  {what}"), told]);
        row("reached in", format!("{} ms", self.round_trip_ms.unwrap_or_default()));
        if let Some(credential) = &self.credential {
            row("credential", credential.clone());
        }
        row("compare-and-swap", "kept: a second writer and a stale one are refused".to_owned());
        if let Some(clocks) = self.clocks() {
            row("clock", clocks);
        }
        ui.table(&rows)
    }
}
