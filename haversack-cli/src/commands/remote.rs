//! `haversack remote`: where the devices of this memory meet.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::clock::Clock;
use haversack::store::block_on;
use haversack::sync::store_at;
use serde_json::json;

use crate::contact::Contact;
use crate::error::CommandError;
use crate::home::Home;
use crate::moments::ago;
use crate::remote::{self, Remote};
use crate::settings::Settings;
use crate::system::{SystemClock, Timed};
use crate::ui::Ui;

/// Manage where the devices of this memory meet
#[derive(Debug, Args)]
pub(crate) struct RemoteArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Carry this memory to other machines through a storage of yours
    Add(AddArgs),
    /// Show the remote, and when it was last reached
    List(ListArgs),
    /// Stop syncing; the files stay, here and there
    Remove,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Where: file:///a/directory
    url: String,

    /// What to call this machine; its own name if left out
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// Keep no plain copies of the files there, only the log
    #[arg(long)]
    no_mirror: bool,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_remote(
    ui: &mut Ui,
    settings: &Settings,
    args: &RemoteArgs,
) -> Result<ExitCode, CommandError> {
    match &args.action {
        Action::Add(args) => add(ui, settings, args)?,
        Action::List(args) => list(ui, settings, args)?,
        Action::Remove => remove(ui, settings)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn add(
    ui: &mut Ui,
    settings: &Settings,
    AddArgs { url, device, no_mirror }: &AddArgs,
) -> Result<(), CommandError> {
    refuse_second(settings, url)?;
    let backend = remote::make(settings, url)?;
    let there = block_on(store_at(backend, &Timed::for_at_most(None)))?;
    let home = Home::open(settings)?;
    let ours = home.memory().look()?.store;
    if let Some(there) = there.as_ref().filter(|there| Some(there.store) != ours) {
        return Err(CommandError::user(
            format!("there is a store already: \"{}\"", there.name),
            format!("See what it has and join it: haversack join {url}"),
        ));
    }
    if there.is_none() && ours.is_some() {
        // What was agreed on with another store means nothing to a new one.
        home.forget()?;
        ui.note("There is nothing yet: a new store begins there, with everything that is here.");
    }
    let device = device.clone().unwrap_or_else(remote::device_name);
    Remote { url: url.clone(), device: device.clone(), mirror: !no_mirror }.save(settings)?;
    ui.note(format!("This machine is called \"{device}\" there. Send what is here: haversack sync"));
    Ok(())
}

/// Refuses a second remote.
pub(crate) fn refuse_second(settings: &Settings, url: &str) -> Result<(), CommandError> {
    match Remote::of(settings)? {
        Some(remote) if remote.url != url => Err(CommandError::user(
            format!("this memory has a remote already: {}", remote.url),
            "One is enough. Leave it first: haversack remote remove",
        )),
        _ => Ok(()),
    }
}

fn list(ui: &mut Ui, settings: &Settings, args: &ListArgs) -> Result<(), CommandError> {
    let remote = Remote::of(settings)?;
    let contact = Contact::of(settings);
    let reached = contact.reached;
    if args.json {
        let shown = remote.map(|remote| {
            json!({ "url": remote.url, "device": remote.device, "reached": reached.map(|at| at.to_string()) })
        });
        return ui.json(&json!({ "remotes": shown.into_iter().collect::<Vec<_>>() }));
    }
    let Some(remote) = remote else {
        ui.note("There is no remote. Name one: haversack remote add file:///a/directory");
        return Ok(());
    };
    let reached = reached.map_or("never".to_owned(), |reached| ago(SystemClock.now(), reached));
    ui.line(format!("{}  this machine is \"{}\"  last reached: {reached}", remote.url, remote.device))
}

fn remove(ui: &mut Ui, settings: &Settings) -> Result<(), CommandError> {
    let remote = Remote::expected(settings)?;
    Remote::forget(settings)?;
    Contact::forget(settings)?;
    ui.note(format!("Nothing is sent to {} any more. The files stay, here and there.", remote.url));
    Ok(())
}
