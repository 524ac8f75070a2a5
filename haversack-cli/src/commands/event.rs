//! `haversack event`: notes what was said on a channel.

use std::process::ExitCode;

use clap::Args;
use haversack::event::Event;

use crate::app::event::note_event;
use crate::error::CommandError;
use crate::home::store::open;
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
    match note_event(settings, &open(settings)?, &event, settings.writer.clone())? {
        Ok(event) => ui.note(format!("Noted in {}", event.log)),
        Err(why) => return Err(CommandError::user(why, "haversack event --help")),
    }
    Ok(ExitCode::SUCCESS)
}
