//! `haversack recall`: finds memories by what they say.

use std::process::ExitCode;

use clap::Args;
use haversack_recall::{ByMeaning, DEFAULT_LIMIT, Hit, Unit};
use serde_json::{Value, json};

use crate::app::recall::{
    NotRecalled, Recall, RecallRequest, found_by, is_model_behind, recall, search, without_index,
};
use crate::background;
use crate::error::CommandError;
use crate::home::store::open_to_look;
use crate::projects::border::{self, Breadth};
use crate::projects::names::{Names, locate_existing};
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::parse_count;

/// The exit code of a recall that could not look.
const COULD_NOT_LOOK: u8 = 4;

/// Search the text of all memories
///
/// In a checkout it looks in the memory of that project and in memory that belongs to no project.
///
/// Exits with 1 if nothing is relevant, and with 4 if it could not look.
#[derive(Debug, Args)]
pub(crate) struct RecallArgs {
    /// Words that the memory would contain
    #[arg(required = true)]
    query: Vec<String>,

    /// Only below this directory
    #[arg(long, value_name = "PATH", default_value = "")]
    within: String,

    /// Look in all projects that are not excluded, not only in the one of this directory
    #[arg(long)]
    everywhere: bool,

    /// Only memories of this kind; can be given several times
    #[arg(long)]
    kind: Vec<String>,

    /// Only memories about this time or later, such as 2026-11-01, yesterday, "last week" or March
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Only memories about this time or earlier
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// The most memories in the answer
    #[arg(long, short = 'n', alias = "count", value_name = "COUNT", default_value_t = DEFAULT_LIMIT, value_parser = parse_count)]
    limit: usize,

    /// Show each passage as a hit of its own, not the best one of each memory
    #[arg(long)]
    passages: bool,

    /// Print only the names of the files
    #[arg(long, conflicts_with = "json")]
    files: bool,

    /// Show how each score came about
    #[arg(long, conflicts_with = "files")]
    explain: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_recall(
    ui: &mut Ui,
    settings: &Settings,
    args: &RecallArgs,
) -> Result<ExitCode, CommandError> {
    let breadth = if args.everywhere { Breadth::Everywhere } else { Breadth::ThisProject };
    let wanted = RecallRequest {
        text: args.query.join(" "),
        within: locate_existing(settings, &args.within)?,
        projects: border::reach(settings, breadth),
        kinds: args.kind.clone(),
        since: args.since.clone(),
        until: args.until.clone(),
        unit: if args.passages { Unit::Passage } else { Unit::Memory },
        limit: args.limit,
    };
    let memory = open_to_look(settings)?;
    let found = match recall(settings, &memory, &search(settings), wanted) {
        Ok(found) => found,
        Err(NotRecalled::OtherProject(why)) => {
            let hint = "An excluded project can be searched only from its own checkout. To search the others: haversack recall --everywhere";
            return Err(CommandError::user(why, hint));
        }
        Err(NotRecalled::Unknown(error)) => return Err(error),
        Err(NotRecalled::CouldNotLook(error)) => {
            ui.error(&error);
            return Ok(ExitCode::from(COULD_NOT_LOOK));
        }
    };
    let recalled = &found.recalled;
    if is_model_behind(recalled, settings) {
        // Vectors only add to an answer: that they cannot be made is no reason to fail.
        drop(background::start_for_vectors(settings));
    }
    if args.json {
        let names = Names::of(settings)?;
        ui.json(&in_json(&found, args.explain.then(|| found.explanation(|file| names.show(file)))))?;
    } else {
        let names = Names::of(settings)?;
        ui.page();
        if args.files {
            let mut shown: Vec<String> = Vec::new();
            for name in recalled.hits.iter().map(|hit| names.show(&hit.locator)) {
                if !shown.contains(&name) {
                    ui.line(&name)?;
                    shown.push(name);
                }
            }
        } else {
            ui.recalled(&found.text(|file| names.show(file), settings.now()), |line| found.matches(line))?;
        }
        if args.explain {
            ui.quote(&format!("\n{}", found.explanation(|file| names.show(file))))?;
        }
    }
    Ok(if recalled.hits.is_empty() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Returns an answer for scripts. The parts of each score are always in it; the explanation in words only if it is asked for.
fn in_json(found: &Recall, explanation: Option<String>) -> Value {
    let recalled = &found.recalled;
    let unread: Vec<&str> = recalled.unread.iter().map(|locator| locator.as_str()).collect();
    let by_meaning = match &recalled.by_meaning {
        ByMeaning::No => Value::Null,
        ByMeaning::Compared(count) => json!({ "compared": count.done, "of": count.all }),
        ByMeaning::Failed(why) => json!({ "failed": why }),
    };
    let mut answer = json!({
        "hits": recalled.hits.iter().map(hit_in_json).collect::<Vec<_>>(),
        "nearly": recalled.nearly.iter().map(hit_in_json).collect::<Vec<_>>(),
        "looked_through": recalled.looked_through,
        "unread": unread,
        "words": recalled.words,
        "by_meaning": by_meaning,
        "without_index": recalled.without_index.map(without_index),
    });
    if let Some(explanation) = explanation {
        answer["explanation"] = explanation.into();
    }
    answer
}

fn hit_in_json(hit: &Hit) -> Value {
    let (first, last) = hit.lines;
    json!({
        "path": hit.locator.as_str(), "lines": [first, last], "kind": hit.kind, "passage": hit.passage, "score": hit.score,
        "found_by": found_by(&hit.found_by), "outdated": hit.outdated,
        "matches": hit.matches.iter().map(|span| [span.start, span.end]).collect::<Vec<_>>(),
        "parts": {
            "passage": hit.parts.passage, "neighbours": hit.parts.neighbours, "file": hit.parts.file, "in_time": hit.parts.is_in_time,
            "coverage": hit.parts.coverage,
            "meaning": hit.parts.meaning,
        },
    })
}
