//! `haversack undo`: takes a change back, keeping what was edited later.

use std::convert::Infallible;
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use serde_json::json;

use crate::app::undo::join::{self, JoinUndone};
use crate::app::undo::{DONE, NOTHING, Outcome, Wanted, plan};
use crate::error::CommandError;
use crate::home::history::ChangeNumber;
use crate::projects::names::locate;
use crate::settings::Settings;
use crate::ui::moments::parse_span;
use crate::ui::{Answer, Ui};

/// Take back the last change, a change by its number, a file's last change, a session, or a join
///
/// Later edits stay. The result is a new version, which syncs like any edit and can be undone too.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Only this change, of any machine: its number in `haversack log`; or only the last change of this file
    #[arg(value_name = "NUMBER|PATH")]
    target: Option<Target>,

    /// Everything that a session of an agent did: its id, the beginning of it, or "last" for the newest
    #[arg(long, value_name = "ID", conflicts_with_all = ["target", "join", "since"])]
    session: Option<String>,

    /// Everything of the last 30min, 2h, 3d or 1w
    #[arg(long, value_name = "TIME", value_parser = parse_span, conflicts_with_all = ["target", "join"])]
    since: Option<i64>,

    /// Leave the joined store: delete its files here and this machine's files there, and restore the files from before
    #[arg(long, conflicts_with = "target")]
    join: bool,

    /// Show the changes, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The change or the file that an undo is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// The number of a change.
    Change(ChangeNumber),
    /// A file, of which the last change is meant.
    Path(String),
}

impl FromStr for Target {
    type Err = Infallible;

    /// Reads `12` and `local-12` as numbers; `/memories/12` names a file that is called 12.
    fn from_str(text: &str) -> Result<Target, Infallible> {
        Ok(text.parse().map_or_else(|_| Target::Path(text.to_owned()), Target::Change))
    }
}

impl UndoArgs {
    /// Returns the changes that the arguments name.
    fn wanted(&self, settings: &Settings) -> Result<Wanted, CommandError> {
        Ok(match (&self.target, &self.session, self.since) {
            (Some(Target::Change(number)), ..) => Wanted::Change(*number),
            (Some(Target::Path(path)), ..) => Wanted::File(locate(settings, path)?),
            (None, Some(session), _) => Wanted::Session(session.clone()),
            (None, None, Some(span)) => Wanted::Since(span),
            (None, None, None) => Wanted::Last,
        })
    }
}

pub(crate) fn cmd_undo(ui: &mut Ui, settings: &Settings, args: &UndoArgs) -> Result<ExitCode, CommandError> {
    if args.join {
        return undo_join(ui, settings, args);
    }
    let plan = plan(settings, &args.wanted(settings)?)?;
    tell(ui, &plan.text(), &plan.outcomes, args)?;
    if plan.is_empty() {
        ui.note(NOTHING);
        return Ok(ExitCode::from(1));
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && ui.ask("Take that back? Later edits to these files stay.")? == Answer::No {
        ui.note("Nothing was changed.");
        return Ok(ExitCode::from(1));
    }
    plan.carry_out(settings)?;
    ui.note(DONE);
    Ok(ExitCode::SUCCESS)
}

fn undo_join(ui: &mut Ui, settings: &Settings, args: &UndoArgs) -> Result<ExitCode, CommandError> {
    let plan = join::plan(settings)?;
    tell(ui, &plan.text(), &plan.outcomes, args)?;
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let question =
        "Leave that store, take back this machine's files there, and restore the files from before the join?";
    if !args.yes && ui.ask(question)? == Answer::No {
        ui.note("Nothing was changed.");
        return Ok(ExitCode::from(1));
    }
    let JoinUndone { url, taken_back } = plan.carry_out(settings)?;
    ui.note(format!(
        "Left {url}. {taken_back} of this machine's files were taken back there. The files here are as they were before the join."
    ));
    Ok(ExitCode::SUCCESS)
}

/// Prints a plan.
fn tell(ui: &mut Ui, text: &str, outcomes: &[Outcome], args: &UndoArgs) -> Result<(), CommandError> {
    if !args.json {
        return ui.text(text);
    }
    let each = outcomes.iter().map(|outcome| {
        let (removed, added) = outcome.line_counts();
        json!({
            "path": outcome.locator.as_str(), "stays": outcome.stays, "removed_lines": removed, "added_lines": added,
            "comes_back": outcome.comes_back(), "goes": outcome.is_deleted(),
            "is_sent_again": outcome.is_sent_again,
        })
    });
    ui.json(&json!({ "files": each.collect::<Vec<_>>(), "done": !args.dry_run }))
}
