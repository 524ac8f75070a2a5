//! `haversack commitments`: what was promised, and whether it was delivered.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::commitments::Commitment;
use serde_json::json;

use crate::app::commitments::{Listed, add, deliver, list};
use crate::error::CommandError;
use crate::home::store::{open, open_to_look};
use crate::projects::border::place_of_facts;
use crate::settings::{Settings, flags};
use crate::ui::Ui;

/// Manage what was promised: running_commitments.md of this directory's project
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct CommitmentsArgs {
    #[command(subcommand)]
    command: CommitmentsCommand,
}

/// The subcommands for commitments.
#[derive(Debug, Subcommand)]
enum CommitmentsCommand {
    /// Note a promise; it gets an id
    Add {
        /// The promise
        text: String,
    },
    /// Note that a promise was kept
    Deliver {
        /// The id of the commitment, or words that only it has
        which: String,
    },
    /// Show what is open, and what was delivered last
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl CommitmentsArgs {
    /// Returns true if the command changes the list.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self.command, CommitmentsCommand::List { .. })
    }
}

pub(crate) fn cmd_commitments(
    ui: &mut Ui,
    settings: &Settings,
    args: &CommitmentsArgs,
) -> Result<ExitCode, CommandError> {
    let place = place_of_facts(settings);
    match &args.command {
        CommitmentsCommand::Add { text } => match add(settings, &open(settings)?, &place, text)? {
            Listed::Done { what: id, file } => {
                ui.line(&id)?;
                ui.note(format!("Promised, in {file}. When it is done: haversack commitments deliver {id}"));
            }
            Listed::Refused(why) => return Err(refused(why)),
        },
        CommitmentsCommand::Deliver { which } => match deliver(settings, &open(settings)?, &place, which)? {
            Listed::Done { what, file } => ui.note(format!("Delivered: {} ({file})", what.text)),
            Listed::Refused(why) => return Err(refused(why)),
        },
        CommitmentsCommand::List { json } => {
            let all = list(&open_to_look(settings)?, &place)?;
            if *json {
                let all: Vec<_> = all.iter().map(as_json).collect();
                ui.json(&json!({ "commitments": all }))?;
            } else {
                write(ui, &all)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn refused(why: String) -> CommandError {
    CommandError::user(why, "See the commitments: haversack commitments list")
}

fn write(ui: &mut Ui, all: &[Commitment]) -> Result<(), CommandError> {
    if all.is_empty() {
        ui.note("Nothing is promised. To note a promise: haversack commitments add TEXT");
    }
    for Commitment { id, text, day, is_delivered } in all {
        let id = id.as_deref().unwrap_or("-");
        let day = day.map(|day| day.to_string()).unwrap_or_default();
        let state = if *is_delivered { "delivered" } else { "open" };
        ui.quote(&format!("{id:<10}  {state:<9}  {day:<10}  {text}\n"))?;
    }
    Ok(())
}

fn as_json(commitment: &Commitment) -> serde_json::Value {
    let Commitment { id, text, day, is_delivered } = commitment;
    json!({ "id": id, "text": text, "day": day.map(|day| day.to_string()), "delivered": is_delivered })
}
