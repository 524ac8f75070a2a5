//! `haversack why`: what sessions were given, from which file and machine, and what it cost.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::app::session;
use crate::app::session::context::{self, Portion};
use crate::error::CommandError;
use crate::projects::Project;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::{counted, local};

/// Show the context of the last sessions, and its cost
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// Show the context of the next session in this directory, word for word
    #[arg(long, conflicts_with = "compacted")]
    next: bool,

    /// Show the summaries of compacted conversations that are kept of this project, the newest last
    #[arg(long)]
    compacted: bool,

    /// The number of sessions
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 5)]
    limit: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_why(ui: &mut Ui, settings: &Settings, args: &WhyArgs) -> Result<ExitCode, CommandError> {
    if args.next || args.compacted {
        let project = session::project_here(settings)?;
        match args.next {
            true => next(ui, settings, args, &project)?,
            false => compacted(ui, settings, &project)?,
        }
    } else {
        last(ui, settings, args)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn last(ui: &mut Ui, settings: &Settings, args: &WhyArgs) -> Result<(), CommandError> {
    let given = session::last(settings, args.limit);
    if args.json {
        return ui.json(&json!({ "sessions": given }));
    }
    if given.is_empty() {
        ui.note("No session got anything yet. See what the next one gets: haversack why --next");
    }
    for given in given {
        let session = given.session.as_deref().unwrap_or("-");
        ui.line(format!(
            "{}  {}  session {session} ({}), about {}",
            local(given.time),
            given.project,
            given.source,
            counted(given.tokens, "token")
        ))?;
        tell_portions(ui, &given.portions)?;
        if let Some(message) = &given.message {
            ui.line(format!("    you saw: {message}"))?;
        }
    }
    Ok(())
}

fn tell_portions(ui: &mut Ui, portions: &[Portion]) -> Result<(), CommandError> {
    for Portion { file, from, tokens, left_out } in portions {
        let from = if from.is_empty() { String::new() } else { format!("  {from}") };
        let left_out = match left_out {
            0 => String::new(),
            lines => format!("  ({} left out)", counted(*lines, "line")),
        };
        ui.line(format!("    {tokens:>5}  {file}{from}{left_out}"))?;
    }
    Ok(())
}

fn next(ui: &mut Ui, settings: &Settings, args: &WhyArgs, project: &Project) -> Result<(), CommandError> {
    let assembled = session::next(settings, project);
    if args.json {
        let portions = assembled.as_ref().map(|assembled| &assembled.portions);
        let text = assembled.as_ref().map(|assembled| &assembled.text);
        return ui.json(&json!({ "project": project.id, "portions": portions, "text": text }));
    }
    match assembled {
        Some(assembled) => {
            ui.bytes(assembled.text.as_bytes())?;
            ui.note(format!(
                "About {}; Claude Code reads MEMORY.md by itself.",
                counted(context::tokens(&assembled.text), "token")
            ));
        }
        None => ui.note("Only MEMORY.md, which Claude Code reads by itself."),
    }
    Ok(())
}

fn compacted(ui: &mut Ui, settings: &Settings, project: &Project) -> Result<(), CommandError> {
    let summaries = session::summaries(settings, project)?;
    if summaries.is_empty() {
        ui.note("No conversation of this project was compacted yet.");
    }
    for summary in summaries {
        ui.bytes(&summary)?;
    }
    Ok(())
}
