//! `haversack why`: what sessions were given, from which file and machine, and what it cost.

use std::process::ExitCode;

use clap::Args;
use haversack::context::{Index, LeftOut, Portion};
use serde_json::json;

use crate::app::at_hand::{HandedOut, handed_out};
use crate::app::session::{self, Wanted};
use crate::error::CommandError;
use crate::projects::Project;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::{counted, local, parse_count};

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
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 5, value_parser = parse_count)]
    limit: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The most names of omitted files.
const SHOWN_LEFT_OUT: usize = 5;

pub(crate) fn cmd_why(ui: &mut Ui, settings: &Settings, args: &WhyArgs) -> Result<ExitCode, CommandError> {
    if !args.json {
        ui.page();
    }
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
    let moments: Vec<HandedOut> = handed_out(settings).into_iter().take(args.limit).collect();
    if args.json {
        return ui.json(&json!({ "sessions": given, "moments": moments }));
    }
    if given.is_empty() && moments.is_empty() {
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
        tell_left_out(ui, &given.left_out, given.more_left_out)?;
        if let Some(message) = &given.message {
            ui.line(format!("    you saw: {message}"))?;
        }
    }
    moments.iter().try_for_each(|moment| tell_moment(ui, moment))
}

/// Prints the passages that an agent was given in a moment, and those that it was nearly given.
fn tell_moment(ui: &mut Ui, moment: &HandedOut) -> Result<(), CommandError> {
    let session = moment.session.as_deref().unwrap_or("-");
    ui.line(format!(
        "{}  session {session}, {}, about {}: {}",
        local(moment.time),
        moment.moment,
        counted(moment.tokens, "token"),
        moment.asked
    ))?;
    for passage in &moment.given {
        ui.line(format!("    {}:{}-{}", passage.file, passage.first_line, passage.last_line))?;
    }
    if let Some(milliseconds) = moment.late_after_milliseconds {
        ui.line(format!(
            "    nothing given: the search took longer than {milliseconds} ms, and the agent did not wait"
        ))?;
    }
    for refused in &moment.nearly {
        ui.line(format!("    not given: {}, because {}", refused.file, refused.why))?;
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

/// Says which files were left out because the budget was spent.
pub(super) fn tell_left_out(ui: &mut Ui, left_out: &[LeftOut], more: usize) -> Result<(), CommandError> {
    for LeftOut { file, tokens } in left_out.iter().take(SHOWN_LEFT_OUT) {
        ui.line(format!("    left out: {file} (about {})", counted(*tokens, "token")))?;
    }
    let more = more + left_out.len().saturating_sub(SHOWN_LEFT_OUT);
    if more > 0 {
        ui.line(format!("    left out: {}", counted(more, "more file")))?;
    }
    Ok(())
}

fn next(ui: &mut Ui, settings: &Settings, args: &WhyArgs, project: &Project) -> Result<(), CommandError> {
    let assembled = session::next(settings, project, Wanted::by_hook(settings, Index::ReadByAgent))?;
    if args.json {
        return ui.json(&json!({
            "project": project.id,
            "tokens": assembled.tokens(),
            "portions": assembled.portions,
            "left_out": assembled.left_out,
            "more_left_out": assembled.more_left_out,
            "text": assembled.text,
        }));
    }
    if assembled.text.is_empty() {
        ui.note("Only MEMORY.md, which Claude Code reads by itself.");
        return Ok(());
    }
    ui.bytes(assembled.text.as_bytes())?;
    ui.note(format!(
        "About {} of {}; Claude Code reads MEMORY.md by itself.",
        counted(assembled.tokens(), "token"),
        settings.context_tokens
    ));
    let left_out = assembled.left_out.len() + assembled.more_left_out;
    if left_out > 0 {
        let names: Vec<&str> =
            assembled.left_out.iter().take(SHOWN_LEFT_OUT).map(|left| &*left.file).collect();
        ui.note(format!(
            "Left out, since the budget is spent: {} ({})",
            counted(left_out, "file"),
            names.join(", ")
        ));
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
