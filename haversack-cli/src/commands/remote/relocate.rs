//! `haversack remote move`: takes a store to another place, or follows another machine that did.
//!
//! The log at the old place ends with the new address. Anyone who may write there could have written it, so a machine asks its user before it
//! sends one request to the new place.

use clap::Args;
use haversack::clock::Clock;
use haversack_system::SystemClock;

use super::{Candidate, Instead, NamedArgs};
use crate::app::sync;
use crate::error::CommandError;
use crate::home::contact::Contact;
use crate::home::relocate::{MovedTo, check, move_to, where_to};
use crate::home::{SyncOptions, Work};
use crate::remote::address::refuse_mistyped;
use crate::remote::site::{self, Asked};
use crate::remote::{self, Remote};
use crate::settings::Settings;
use crate::ui::moments::{ago, counted};
use crate::ui::{Answer, Ui};

/// Take the store to another place; with --follow, go where another machine took it
///
/// Copies everything, reads the copy back, and ends the log at the old place with the new address. Your other machines then show the
/// new place and ask before they follow. After a crash, run it again to continue.
#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The new place; with --follow, its address as this machine reaches it, if that is another one
    #[arg(required_unless_present = "follow")]
    url: Option<String>,

    /// Go where another machine took the store
    #[arg(long)]
    follow: bool,

    /// The source of the new place's credential, as for haversack remote add
    #[arg(long, value_name = "SOURCE")]
    credential: Option<String>,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn cmd_move(ui: &mut Ui, settings: &Settings, args: &MoveArgs) -> Result<(), CommandError> {
    let remote = Remote::expected(settings)?;
    refuse_folder(&remote.url)?;
    match (&args.url, args.follow) {
        (url, true) => follow(ui, settings, args, &remote, url.as_deref()),
        (Some(url), false) => take(ui, settings, args, &remote, url),
        (None, false) => Ok(()),
    }
}

/// Takes the store to another place.
fn take(
    ui: &mut Ui,
    settings: &Settings,
    args: &MoveArgs,
    remote: &Remote,
    url: &str,
) -> Result<(), CommandError> {
    let asked = Asked { command: "haversack remote move", typed: url };
    let new = candidate(ui, settings, args, remote, asked)?;
    refuse_folder(&new.url)?;
    if new.url == remote.url {
        return Err(CommandError::user(
            "the store is there already",
            "Name another place: haversack remote move URL",
        ));
    }
    drop(site::store_or_empty(settings, &new, asked)?);
    match where_to(settings, remote)? {
        Some(MovedTo { url, .. }) if url == new.url => {}
        Some(moved) => return Err(moved_already(&moved)),
        None => {
            let question = format!(
                "Move the store from {} to {}? Your other machines will show the new place and ask before they follow. Not encrypted: anyone with access to that place can read it.",
                remote.url, new.url
            );
            if !args.yes && ui.ask(&question)? == Answer::No {
                ui.note("Nothing was changed.");
                return Ok(());
            }
            // Send waiting changes first: after the move, this machine uses the new place only.
            let bar = ui.progress();
            let synced = sync::sync(settings, remote, &SyncOptions::new(Work::Sync, "move"), &bar);
            bar.end();
            drop(synced?);
        }
    }
    let bar = ui.progress();
    let moved = move_to(settings, remote, &new, &bar);
    bar.end();
    let moved = moved?;
    use_new(ui, settings, remote, &new)?;
    ui.line(format!(
        "Moved the store to {}: {} copied and read back.",
        new.url,
        counted(moved.copied + moved.there, "object")
    ))?;
    ui.line("On your other machines:  haversack remote move --follow")?;
    ui.note(format!(
        "We send nothing to {} any more. The files there stay until you remove them.",
        remote.url
    ));
    Ok(())
}

/// Follows another machine that took the store to another place.
fn follow(
    ui: &mut Ui,
    settings: &Settings,
    args: &MoveArgs,
    remote: &Remote,
    url: Option<&str>,
) -> Result<(), CommandError> {
    let Some(MovedTo { url: there, device, time }) = where_to(settings, remote)? else {
        ui.note(format!("The store was not moved: it is at {}", remote.url));
        return Ok(());
    };
    let url = url.unwrap_or(&there).to_owned();
    refuse_mistyped(&url)?;
    refuse_folder(&url)?;
    ui.note(format!("\"{device}\" moved the store to {there}, {}.", ago(SystemClock.now(), time)));
    let question = format!(
        "Follow it? From then on this memory is sent to {url}. Say yes only if you or a person you trust moved it."
    );
    if !args.yes && ui.ask(&question)? == Answer::No {
        ui.note("Nothing was changed, and nothing was asked of the new place.");
        return Ok(());
    }
    let asked = Asked { command: "haversack remote move --follow", typed: &url };
    let new = candidate(ui, settings, args, remote, asked)?;
    check(settings, &new)?;
    use_new(ui, settings, remote, &new)
}

/// Returns the remote at the new place, once it was found to work.
fn candidate(
    ui: &mut Ui,
    settings: &Settings,
    args: &MoveArgs,
    remote: &Remote,
    asked: Asked<'_>,
) -> Result<Remote, CommandError> {
    let named = NamedArgs {
        url: asked.typed.to_owned(),
        device: Some(remote.device.clone()),
        no_mirror: !remote.mirror,
        credential: args.credential.clone(),
    };
    Candidate::named(ui, settings, asked, &named, Instead::OfTheOther)?.admit(ui, settings)
}

/// Uses the new place from now on, and syncs there.
fn use_new(ui: &mut Ui, settings: &Settings, old: &Remote, new: &Remote) -> Result<(), CommandError> {
    if old != new {
        new.save(settings)?;
        Contact::forget(settings)?;
    }
    let bar = ui.progress();
    let summary = sync::sync(settings, new, &SyncOptions::new(Work::Full, "move"), &bar);
    bar.end();
    ui.text(&sync::text(&summary?))
}

fn moved_already(moved: &MovedTo) -> CommandError {
    CommandError::user(
        format!("\"{}\" moved the store already, to {}", moved.device, moved.url),
        "If you or a person you trust moved it: haversack remote move --follow",
    )
}

/// Refuses a folder that a sync client replicates: there every machine has a log of its own, and no log can be ended for all.
fn refuse_folder(url: &str) -> Result<(), CommandError> {
    if !remote::is_vault(url) {
        return Ok(());
    }
    Err(CommandError::user(
        format!(
            "{url} is a folder that a sync client replicates: a store can be moved only from and to a bucket or a plain directory"
        ),
        "To move the folder itself, let its client move it, then on every machine: haversack remote remove, haversack join FOLDER",
    ))
}
