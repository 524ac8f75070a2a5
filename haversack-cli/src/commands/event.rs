//! `haversack event`: notes what was said on a channel.

use std::process::ExitCode;

use clap::Args;
use haversack::event::Event;

use crate::app::event::note_event;
use crate::error::CommandError;
use crate::home::store::open;
use crate::projects::border;
use crate::settings::Settings;
use crate::ui::Ui;

/// Note one message in or out of a channel in the day's interaction log
#[derive(Debug, Args)]
pub(crate) struct EventArgs {
    /// The content of the message, in a sentence
    summary: String,

    /// The sender
    #[arg(long)]
    sender: String,

    /// inbound or outbound
    #[arg(long)]
    direction: String,

    /// The channel: terminal, email, chat …
    #[arg(long)]
    channel: Option<String>,

    /// The recipient
    #[arg(long)]
    recipient: Option<String>,

    /// The action that followed
    #[arg(long)]
    action: Option<String>,
}

pub(crate) fn cmd_event(
    ui: &mut Ui,
    settings: &Settings,
    args: &EventArgs,
) -> Result<ExitCode, CommandError> {
    let event = Event {
        summary: args.summary.clone(),
        sender: args.sender.clone(),
        direction: args.direction.clone(),
        channel: args.channel.clone(),
        recipient: args.recipient.clone(),
        action: args.action.clone(),
    };
    let place = border::place_of_facts(settings);
    match note_event(settings, &open(settings)?, &event, settings.writer.clone(), &place)? {
        Ok(noted) => {
            ui.note(format!("Noted in {}", noted.log));
            if let Some(file) = noted.met {
                ui.note(format!("{} wrote for the first time. Began a memory: {file}", event.sender.trim()));
                super::tell_index_overflow(ui, settings, &file)?;
            }
            if let Some(error) = noted.not_met {
                ui.note(format!("No memory was begun for the sender: {}", error.in_one_line()));
            }
        }
        Err(why) => return Err(CommandError::user(why, "haversack event --help")),
    }
    Ok(ExitCode::SUCCESS)
}
