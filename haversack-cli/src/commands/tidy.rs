//! `haversack tidy`: rolls old files up, and drops what its kind does not keep.

use std::process::ExitCode;

use clap::Args;
use haversack::day::Day;
use haversack::proposal::Answered;
use serde_json::json;

use crate::app::review::{self as app_review, Verdict};
use crate::app::tidy::{self, Mode, TidyOptions, tidy};
use crate::error::CommandError;
use crate::home::store::open;
use crate::projects::names::locate_file;
use crate::settings::Settings;
use crate::ui::Ui;

/// Roll old files up into weeks, months and years, and drop what its kind does not keep
///
/// Every decision is in the log for 30 days (--log), and every change can be taken back (haversack undo). With a remote, it syncs first, and does nothing if
/// that fails. Files with `pinned: true` stay as they are.
#[derive(Debug, Args)]
pub(crate) struct TidyArgs {
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,

    /// Show what was done in the last 30 days, and why
    #[arg(long, conflicts_with = "dry_run")]
    log: bool,

    /// Give the memory of a project the status `archived`: its phase is over, and nothing is deleted
    #[arg(long, value_name = "PATH", conflicts_with_all = ["dry_run", "log", "review", "accept", "reject"])]
    archive: Option<String>,

    /// Show the memories that are proposed, and ask about each: accept, edit or reject
    #[arg(long, conflicts_with_all = ["dry_run", "log"])]
    review: bool,

    /// Add the proposal with this id to the memory
    #[arg(long, value_name = "ID", conflicts_with_all = ["dry_run", "log", "review"])]
    accept: Option<String>,

    /// With --accept: in these words
    #[arg(long, value_name = "WORDS", requires = "accept")]
    text: Option<String>,

    /// Drop the proposal with this id for good
    #[arg(long, value_name = "ID", conflicts_with_all = ["dry_run", "log", "review", "accept"])]
    reject: Option<String>,

    /// The day that counts as today
    #[arg(long, value_name = "DAY", hide = true)]
    day: Option<Day>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl TidyArgs {
    /// Returns the cause of the changes for the history, if the command may leave changes that are not in it. A tidy records its own.
    pub(super) fn cause(&self) -> Option<&'static str> {
        let is_answer = self.review || self.accept.is_some() || self.reject.is_some();
        (is_answer || self.archive.is_some()).then_some(tidy::CAUSE)
    }
}

pub(crate) fn cmd_tidy(ui: &mut Ui, settings: &Settings, args: &TidyArgs) -> Result<ExitCode, CommandError> {
    if args.log {
        return show_log(ui, settings, args);
    }
    if let Some(path) = &args.archive {
        let locator = locate_file(settings, path)?;
        tidy::archive(settings, &locator)?;
        ui.note(format!("{locator} is archived. Its text stays. To take it back: haversack undo"));
        return Ok(ExitCode::SUCCESS);
    }
    if args.review {
        return review(ui, settings, args);
    }
    if let Some(id) = args.accept.as_deref().or(args.reject.as_deref()) {
        let verdict = match (&args.accept, &args.text) {
            (None, _) => Verdict::Reject,
            (Some(_), None) => Verdict::Accept,
            (Some(_), Some(words)) => Verdict::Edit(words),
        };
        let answered = app_review::answer(settings, &open(settings)?, id, verdict)?;
        if matches!(answered, Answered::NotFound) && !args.json {
            return Err(CommandError::user(
                format!("no proposal with the id {id} waits"),
                "See the proposals: haversack tidy --review",
            ));
        }
        if args.json {
            ui.json(&json!({ "id": id, "result": app_review::told(&answered) }))?;
        } else {
            ui.note(app_review::told(&answered));
        }
        let is_done = matches!(answered, Answered::Accepted(_) | Answered::Rejected);
        return Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::from(1) });
    }
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Apply };
    let tidied = tidy(settings, &TidyOptions { day: args.day, mode }, &ui.progress())?;
    if args.json {
        let decisions: Vec<_> = tidied.plan.actions.iter().flat_map(|action| &action.decisions).collect();
        let kept: Vec<_> = tidied
            .plan
            .kept
            .iter()
            .map(|kept| json!({ "path": kept.locator.as_str(), "why": kept.why }))
            .collect();
        let stopped = tidied.applied.stopped.as_ref().map(|(_, refusal)| tidy::refusal_text(refusal));
        ui.json(&json!({
            "dry_run": args.dry_run, "actions": tidied.plan.actions.len(), "done": tidied.applied.done,
            "decisions": decisions, "kept": kept, "stopped": stopped, "proposals": tidied.proposed.new, "trouble": tidied.proposed.trouble,
        }))?;
    } else {
        ui.text(&tidied.text())?;
        ui.note(tidied.headline());
        tidied.about_proposals().into_iter().for_each(|line| ui.note(line));
    }
    let is_stopped = tidied.applied.stopped.is_some();
    Ok(if is_stopped { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Shows every proposal, and asks about each if somebody is there to answer.
fn review(ui: &mut Ui, settings: &Settings, args: &TidyArgs) -> Result<ExitCode, CommandError> {
    let memory = open(settings)?;
    let waiting = app_review::waiting(settings, &memory)?;
    if args.json {
        let all: Vec<_> = waiting
            .iter()
            .map(|waiting| json!({ "proposal": waiting.proposal, "diff": waiting.diff() }))
            .collect();
        ui.json(&json!(all))?;
        return Ok(ExitCode::SUCCESS);
    }
    for one in &waiting {
        ui.text(&one.text())?;
        if !ui.can_ask() {
            continue;
        }
        let id = &one.proposal.id;
        let answer = ui.prompt("Accept, edit, reject, or later? [a/e/r/L] ")?.unwrap_or_default();
        let words = match answer.trim() {
            "e" => ui.prompt("In these words: ")?.filter(|words| !words.trim().is_empty()),
            _ => None,
        };
        let verdict = match (answer.trim(), &words) {
            ("a", _) => Verdict::Accept,
            ("e", Some(words)) => Verdict::Edit(words),
            ("r", _) => Verdict::Reject,
            _ => continue,
        };
        ui.note(app_review::told(&app_review::answer(settings, &memory, id, verdict)?));
    }
    match waiting.is_empty() {
        true => ui.note("No proposal waits."),
        false if !ui.can_ask() => {
            ui.note("To answer: haversack tidy --accept ID, or: haversack tidy --reject ID")
        }
        false => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn show_log(ui: &mut Ui, settings: &Settings, args: &TidyArgs) -> Result<ExitCode, CommandError> {
    let decisions = tidy::log(settings)?;
    if args.json {
        ui.json(&json!(decisions))?;
        return Ok(ExitCode::SUCCESS);
    }
    ui.page();
    for decision in &decisions {
        ui.line(format!("{}  {}", decision.day, tidy::line(decision)))?;
        for part in &decision.lines {
            ui.quote(&format!("{part}\n"))?;
        }
        for dropped in &decision.dropped {
            ui.line(format!("            without {}: {}", dropped.id, dropped.why))?;
        }
    }
    if decisions.is_empty() {
        ui.note("Nothing was tidied in the last 30 days.");
    }
    Ok(ExitCode::SUCCESS)
}
