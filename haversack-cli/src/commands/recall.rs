//! `haversack recall`: finds memories by what they say.

use std::process::ExitCode;

use clap::Args;
use haversack::clock::Clock;
use haversack_recall::{DEFAULT_LIMIT, Query, TextCache};
use haversack_system::SystemClock;
use serde_json::json;

use crate::app::recall::{NotRecalled, recall};
use crate::error::CommandError;
use crate::home::store::open_to_look;
use crate::projects::border::{self, Breadth};
use crate::projects::names::{Names, locate};
use crate::settings::Settings;
use crate::ui::{Ui, colors};

/// Search the text of all memories
///
/// In a checkout it looks in the memory of that project and in memory that belongs to no project.
///
/// Exits with 1 if nothing is relevant, and fails if it could not look.
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

    /// The most memories in the answer
    #[arg(long, short = 'n', default_value_t = DEFAULT_LIMIT)]
    count: usize,

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
    let query = Query {
        text: args.query.join(" "),
        within: locate(settings, &args.within)?,
        projects: border::reach(settings, breadth),
        limit: args.count,
    };
    let found = recall(&open_to_look(settings)?, &mut TextCache::new(), query).map_err(|error| match error {
        NotRecalled::OtherProject(why) => CommandError::user(
            why,
            "To look there: haversack recall --everywhere; excluded projects only from their own checkout",
        ),
        NotRecalled::CouldNotLook(error) => error,
    })?;
    let recalled = &found.recalled;
    if args.json {
        let hits = recalled.hits.iter().map(|hit| {
            let (first, last) = hit.lines;
            json!({ "path": hit.locator.as_str(), "lines": [first, last], "kind": hit.kind, "passage": hit.passage, "score": hit.score })
        });
        let unread: Vec<&str> = recalled.unread.iter().map(|locator| locator.as_str()).collect();
        ui.json(&json!({ "hits": hits.collect::<Vec<_>>(), "looked_through": recalled.looked_through, "unread": unread }))?;
    } else {
        let names = Names::of(settings)?;
        ui.page();
        ui.painted_quote(&found.text(|file| names.show(file), SystemClock.now()), colors::recall)?;
    }
    Ok(if recalled.hits.is_empty() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
