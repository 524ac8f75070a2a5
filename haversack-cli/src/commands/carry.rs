//! `haversack carry`: what to bring up in a later session.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::carry_forward::CarriedItem;
use serde_json::json;

use crate::app::carry::{add, consume, list};
use crate::app::commitments::Listed;
use crate::error::CommandError;
use crate::home::store::{open, open_to_look};
use crate::projects::border::place_of_facts;
use crate::settings::{Settings, flags};
use crate::ui::Ui;

/// Manage what to bring up next time: carry_forward.md of this directory's project
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct CarryArgs {
    #[command(subcommand)]
    command: CarryCommand,
}

/// The subcommands for items.
#[derive(Debug, Subcommand)]
enum CarryCommand {
    /// Note something to bring up
    Add {
        /// The item to bring up
        text: String,
    },
    /// Show what is pending
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Note that an item was brought up
    Consume {
        /// The number of the item, or words that only it has
        which: String,
    },
}

impl CarryArgs {
    /// Returns true if the command changes the list.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self.command, CarryCommand::List { .. })
    }
}

pub(crate) fn cmd_carry(
    ui: &mut Ui,
    settings: &Settings,
    args: &CarryArgs,
) -> Result<ExitCode, CommandError> {
    let place = place_of_facts(settings);
    match &args.command {
        CarryCommand::Add { text } => match add(settings, &open(settings)?, &place, text)? {
            Listed::Done { what: (), file } => ui.note(format!("Carried forward, in {file}")),
            Listed::Refused(why) => return Err(refused(why)),
        },
        CarryCommand::Consume { which } => match consume(settings, &open(settings)?, &place, which)? {
            Listed::Done { what, file } => ui.note(format!("Consumed: {what} ({file})")),
            Listed::Refused(why) => return Err(refused(why)),
        },
        CarryCommand::List { json } => {
            let pending = list(&open_to_look(settings)?, &place)?;
            if *json {
                let as_json = |item: &CarriedItem| json!({ "text": item.text, "day": item.day.map(|day| day.to_string()) });
                let pending: Vec<_> = pending.iter().map(as_json).collect();
                ui.json(&json!({ "pending": pending }))?;
            } else {
                if pending.is_empty() {
                    ui.note("Nothing is pending. To carry something forward: haversack carry add TEXT");
                }
                for (number, CarriedItem { text, day }) in pending.iter().enumerate() {
                    let day = day.map(|day| day.to_string()).unwrap_or_default();
                    ui.quote(&format!("{:>3}  {day:<10}  {text}\n", number + 1))?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn refused(why: String) -> CommandError {
    CommandError::user(why, "See the list: haversack carry list")
}
