//! `haversack log`: who wrote what, on which machine, when and why.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use haversack::log::{Commit, What};
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::home::Home;
use crate::home::history::{AtHand, Enough, Past, Waiting};
use crate::home::store::locate;
use crate::settings::Settings;
use crate::system::Timed;
use crate::ui::Ui;
use crate::ui::moments::local;

/// Show who wrote what, on which machine, when and why
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Only what happened to this file or directory
    #[arg(default_value = "")]
    path: String,

    /// How many changes
    #[arg(long, short = 'n', default_value_t = 20)]
    count: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl LogArgs {
    /// Asks for the last changes of a file or directory.
    pub(crate) fn new(path: String, count: usize) -> LogArgs {
        LogArgs { path, count, json: false }
    }
}

pub(crate) fn cmd_log(ui: &mut Ui, settings: &Settings, args: &LogArgs) -> Result<ExitCode, CommandError> {
    let below = locate(&args.path)?;
    let patience = Timed::for_at_most(None);
    let home = Home::open(settings)?;
    let mut past = Past::open(settings, &home, &patience)?;
    let waiting = past.waiting(&home)?;
    let waiting: Vec<&Waiting> = waiting.iter().filter(|file| file.locator.is_within(&below)).collect();
    let mut commits: Vec<Arc<Commit>> = Vec::new();
    let at_hand = past.each(|commit| {
        if commits.len() >= args.count {
            return Enough::Yes;
        }
        if commit.changes.iter().any(|change| change.locator.is_within(&below)) {
            commits.push(commit.clone());
        }
        Enough::No
    })?;
    if waiting.is_empty() && commits.is_empty() {
        past.refuse_unknown(settings, &below)?;
    }
    if args.json {
        let waiting = waiting.iter().map(|file| file.to_json()).collect::<Vec<_>>();
        let commits = commits.iter().map(|commit| to_json(commit)).collect::<Vec<_>>();
        ui.json(&json!({ "waiting": waiting, "changes": commits, "all_at_hand": at_hand == AtHand::All }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !waiting.is_empty() {
        ui.line("not sent yet")?;
        for file in waiting {
            ui.line(format!("      {:<8}  {}", file.what(), file.locator))?;
        }
    }
    for commit in &commits {
        ui.line(headline(commit))?;
        for change in commit.changes.iter().filter(|change| change.locator.is_within(&below)) {
            ui.line(format!("      {:<8}  {}", what(&change.what), change.locator))?;
        }
    }
    if at_hand == AtHand::Some {
        ui.note("What happened before is in the remote, which cannot be reached.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns who made a commit, when and why, in one line.
pub(crate) fn headline(commit: &Commit) -> String {
    let agent = commit.agent.as_ref().map(|agent| format!(" {agent}")).unwrap_or_default();
    let session = commit.session.as_ref().map(|session| format!(" session {session}")).unwrap_or_default();
    let Commit { position, device, cause, .. } = commit;
    format!("{:>4}  {}  {device}{agent}{session}: {cause}", position.number(), local(commit.time))
}

fn what(what: &What) -> &'static str {
    match what {
        What::Put { .. } => "written",
        What::Append { .. } => "appended",
        What::Delete { .. } => "deleted",
    }
}

impl Waiting {
    /// Returns what was done to the file.
    pub(crate) fn what(&self) -> &'static str {
        match (&self.before, &self.now) {
            (None, _) => "new",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "deleted",
        }
    }

    fn to_json(&self) -> Value {
        json!({ "path": self.locator.as_str(), "what": self.what() })
    }
}

fn to_json(commit: &Commit) -> Value {
    let changes = commit.changes.iter().map(|change| {
        let size = change.what.after().map(|content| content.size);
        json!({ "path": change.locator.as_str(), "what": what(&change.what), "size_bytes": size })
    });
    json!({
        "number": commit.position.number(),
        "id": commit.id.to_string(),
        "time": commit.time.to_string(),
        "device": commit.device,
        "agent": commit.agent,
        "session": commit.session,
        "cause": commit.cause,
        "files": changes.collect::<Vec<_>>(),
    })
}
