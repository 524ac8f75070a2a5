//! Checks that the remote answers, lets us in, and is the store of this memory. Changes nothing there.

use std::time::Duration;

use haversack::check::Finding;

use crate::error::CommandError;
use crate::home::Home;
use crate::remote::site::{self, Site};
use crate::remote::{self, Remote};
use crate::settings::Settings;

/// The time that a cloud may be silent before the check fails.
const CLOUD_WAIT: Duration = Duration::from_secs(10);

const SUBJECT: &str = "remote";

/// Looks at the remote, if this memory has one. Asks nothing if memory is kept on this machine.
pub(super) fn examine(settings: &Settings) -> Option<Finding> {
    let remote = match Remote::for_looking(settings) {
        Ok(remote) => remote?,
        Err(error) => return Some(failed(error)),
    };
    let mut settings = settings.clone();
    settings.cloud_wait = settings.cloud_wait.min(CLOUD_WAIT);
    Some(look(&settings, &remote).unwrap_or_else(failed))
}

fn look(settings: &Settings, remote: &Remote) -> Result<Finding, CommandError> {
    let url = &remote.url;
    drop(remote::open(settings, remote)?);
    let site = site::look(settings, remote)?;
    let ours = Home::open(settings)?.memory().look()?.store;
    let lost = "Nothing is lost on this machine. Put the store back: haversack remote rebuild. Or leave this remote: haversack remote remove";
    Ok(match (site, ours) {
        (Site::Store(there), Some(ours)) if there.store == ours => {
            Finding::ok(SUBJECT, format!("{url} answers, and is this memory's store"))
        }
        (Site::Store(there), Some(ours))
            if there.predecessor.as_ref().is_some_and(|before| before.store == ours) =>
        {
            Finding::fail(
                SUBJECT,
                format!("the store at {url} was lost, and \"{}\" rebuilt it", there.name),
                "Follow it, and merge this machine's files with it: haversack remote rebuild",
            )
        }
        (Site::Store(there), Some(_)) => Finding::fail(
            SUBJECT,
            format!("{url} holds another store than this memory's: that of \"{}\"", there.name),
            "Rebuild this memory's store at another place: haversack remote rebuild URL",
        ),
        (Site::Store(_), None) => Finding::warn(
            SUBJECT,
            format!("{url} answers, and this machine has not synced with it yet"),
            "haversack sync",
        ),
        (Site::Empty, None) => Finding::warn(
            SUBJECT,
            format!("{url} answers, and is empty: nothing was sent yet"),
            "haversack sync",
        ),
        (Site::Empty, Some(_)) => {
            Finding::fail(SUBJECT, format!("{url} answers, and this memory's store is gone from it"), lost)
        }
        (Site::Arriving, _) => Finding::warn(
            SUBJECT,
            format!("{url} holds a part of a store: its sync client has not brought the rest yet"),
            "Wait until the client is done, then: haversack sync",
        ),
        (Site::Occupied(names), _) => Finding::fail(
            SUBJECT,
            format!("{url} holds other files ({}) and no store of Haversack", names.join(", ")),
            lost,
        ),
    })
}

fn failed(error: CommandError) -> Finding {
    let cure = error.hint.clone().unwrap_or_else(|| "haversack remote test".to_owned());
    Finding::fail(SUBJECT, error.in_one_line(), cure)
}
