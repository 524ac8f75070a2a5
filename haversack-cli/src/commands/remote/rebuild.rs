//! `haversack remote rebuild`: the machines of a store meet again after its remote was lost.

use clap::Args;
use haversack::home::HomeRebuilt as Rebuilt;

use super::{Candidate, Instead, NamedArgs};
use crate::app::sync;
use crate::error::CommandError;
use crate::home::Home;
use crate::home::contact::Contact;
use crate::home::gate::{cure, named};
use crate::home::rebuild::HomeRebuilt;
use crate::remote::site::{self, Asked, Site};
use crate::remote::{self, Remote};
use crate::settings::Settings;
use crate::ui::moments::counted;
use crate::ui::{Answer, Ui};

/// Put the store back where the remote was wiped, restored from an old backup or rebuilt by another machine
///
/// Run the same command on every machine, in any order. It merges the machines' files over the last state that they shared. Nothing is lost,
/// and deleted files stay deleted.
#[derive(Debug, Args)]
pub(crate) struct RebuildArgs {
    /// Another place to rebuild the store at, if the old one cannot be used any more
    url: Option<String>,

    /// The source of that place's credential, as for haversack remote add
    #[arg(long, value_name = "SOURCE", requires = "url")]
    credential: Option<String>,

    /// Do not ask before a new store begins in an empty place
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn cmd_rebuild(ui: &mut Ui, settings: &Settings, args: &RebuildArgs) -> Result<(), CommandError> {
    let recorded = Remote::expected(settings)?;
    let remote = match &args.url {
        None => recorded.clone(),
        Some(url) => elsewhere(ui, settings, &recorded, url, args.credential.clone())?,
    };
    let url = &remote.url;
    let Some(ours) = Home::open(settings)?.memory().look()?.store else {
        return Err(CommandError::user(
            "this memory has not synced yet, so there is no store to rebuild",
            "Send this machine's files: haversack sync",
        ));
    };
    if !remote::is_vault(url) {
        match site::look(settings, &remote)? {
            Site::Store(there) if there.store == ours => {}
            Site::Store(there) if there.predecessor.as_ref().is_some_and(|before| before.store == ours) => {
                ui.note(format!("\"{}\" rebuilt the store there. This machine follows.", there.name));
            }
            Site::Store(there) => {
                return Err(CommandError::user(
                    format!("{url} holds another store: that of \"{}\" ({})", there.name, there.store),
                    "Nothing was written there. Rebuild this memory's store at another place: haversack remote rebuild URL. Or join the other store with another home: haversack --home DIRECTORY join URL",
                ));
            }
            Site::Empty | Site::Arriving | Site::Occupied(_) => {
                let question = format!(
                    "This memory's store is not at {url}. Restore it there from this machine? If a disk is only unplugged, say no. Not encrypted: anyone with access to that place can read it."
                );
                if !args.yes && ui.ask(&question)? == Answer::No {
                    ui.note("Nothing was changed.");
                    return Ok(());
                }
            }
        }
    }
    let bar = ui.progress();
    let done = sync::rebuild(settings, &remote, &bar);
    bar.end();
    let done = done?;
    if remote != recorded {
        remote.save(settings)?;
        Contact::forget(settings)?;
    }
    tell(ui, &remote, &done)?;
    ui.text(&sync::text(&done.summary))
}

/// Returns the remote at another place, which is used instead of the one there is.
fn elsewhere(
    ui: &mut Ui,
    settings: &Settings,
    recorded: &Remote,
    url: &str,
    credential: Option<String>,
) -> Result<Remote, CommandError> {
    let asked = Asked { command: "haversack remote rebuild", typed: url };
    let named = NamedArgs {
        url: url.to_owned(),
        device: Some(recorded.device.clone()),
        no_mirror: !recorded.mirror,
        credential,
    };
    let remote = Candidate::named(ui, settings, asked, &named, Instead::OfTheOther)?.admit(ui, settings)?;
    drop(site::store_or_empty(settings, &remote, asked)?);
    Ok(remote)
}

fn tell(ui: &mut Ui, remote: &Remote, done: &HomeRebuilt) -> Result<(), CommandError> {
    let HomeRebuilt { rebuilt: Rebuilt { rebuilt, put_back }, .. } = done;
    let url = &remote.url;
    if *put_back > 0 {
        ui.line(format!("Put {} of logs back into the folder.", counted(*put_back, "file")))?;
    }
    if rebuilt.has_begun {
        ui.line(format!(
            "Began a new store at {url} that continues this one, with {}.",
            counted(rebuilt.files, "file")
        ))?;
        ui.line("On your other machines:  haversack remote rebuild")?;
    } else if rebuilt.new_store.is_some() {
        ui.line("Followed the store that continues this one.")?;
    }
    if rebuilt.positions > 0 {
        ui.line(format!(
            "Put {} back that the remote had lost.",
            counted(count(rebuilt.positions), "change")
        ))?;
    }
    if let Some(common) = rebuilt.common {
        ui.line(format!(
            "The remote has other changes since change {common}: we merged them with this machine's."
        ))?;
    }
    if rebuilt.without_base > 0 {
        ui.note(
            "This machine has no record of the last state that it shared with the others, so we merged without it. Nothing is lost, but a deleted file may be back.",
        );
    }
    for (locator, hold) in &rebuilt.held {
        ui.note(format!("{} was not sent: {}. {}", named(locator), hold.why, cure(locator, hold)));
    }
    Ok(())
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
