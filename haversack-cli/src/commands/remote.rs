//! `haversack remote`: where the devices of this memory meet.

mod history;
mod rebuild;
mod relocate;
mod test;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use haversack::clock::Clock;
use haversack_system::SystemClock;
use serde_json::json;

use self::history::{HistoryArgs, cmd_history};
use self::rebuild::{RebuildArgs, cmd_rebuild};
use self::relocate::{MoveArgs, cmd_move};
use self::test::{TestArgs, Trial, test};
use crate::error::{CommandError, Warning};
use crate::home::Home;
use crate::home::contact::Contact;
use crate::home::local_history;
use crate::remote::address::{self, Address};
use crate::remote::credential::{Cloud, PreviousCredentials, Source};
use crate::remote::site::{self, Asked};
use crate::remote::{self, Remote};
use crate::settings::{Settings, flags};
use crate::ui::Ui;
use crate::ui::moments::ago;
use crate::ui::paths::quoted;

/// Manage where the devices of this memory meet
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct RemoteArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Sync this memory with other machines through a storage of yours
    Add(AddArgs),
    /// Show the remote, and when it was last reached
    List(ListArgs),
    /// Try the remote: is it reached, with which credential, and does it keep its promises
    Test(TestArgs),
    History(HistoryArgs),
    Rebuild(RebuildArgs),
    Move(MoveArgs),
    /// Stop syncing; the files stay, here and there
    Remove,
}

/// How a remote is named, for those commands that do.
#[derive(Clone, Debug, Args)]
pub(crate) struct NamedArgs {
    /// The place: a path like ~/Dropbox/haversack, file:///a/directory, s3://BUCKET/PREFIX, az://CONTAINER/PREFIX, gs://BUCKET/PREFIX or
    /// https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX
    pub(crate) url: String,

    /// This machine's name in the history; its host name if left out
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,

    /// Keep no plain copies of the files there, only the log
    #[arg(long)]
    pub(crate) no_mirror: bool,

    /// The source of the credential: profile:NAME (S3), az or agent-identity:FILE (Azure), google:FILE, instance (the machine's own),
    /// none, or file, which stores this shell's variables in a file of the home that only you can read (keychain: in the
    /// system's)
    #[arg(long, value_name = "SOURCE")]
    pub(crate) credential: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    pub(crate) named: NamedArgs,
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
        Action::Test(args) => return test(ui, settings, args),
        Action::History(args) => cmd_history(ui, settings, args)?,
        Action::Rebuild(args) => cmd_rebuild(ui, settings, args)?,
        Action::Move(args) => cmd_move(ui, settings, args)?,
        Action::Remove => remove(ui, settings)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn add(ui: &mut Ui, settings: &Settings, AddArgs { named }: &AddArgs) -> Result<(), CommandError> {
    let device = connect(ui, settings, named)?;
    ui.note(format!(
        "This machine's name is \"{device}\" (change it with --device NAME). Send its files: haversack sync"
    ));
    Ok(())
}

/// Makes a place the remote of this home; returns the name of this machine there.
pub(crate) fn connect(ui: &mut Ui, settings: &Settings, named: &NamedArgs) -> Result<String, CommandError> {
    let url = &named.url;
    let asked = Asked { command: "haversack remote add", typed: url };
    let remote = Candidate::named(ui, settings, asked, named, Instead::OfNothing)?.admit(ui, settings)?;
    let there = site::store_or_empty(settings, &remote, asked)?;
    // The directory is made now, so that one that cannot be made is told about at once.
    drop(remote::plain(settings, &remote)?);
    let home = Home::open(settings)?;
    let ours = home.memory().look()?.store;
    if let Some(there) = there.as_ref().filter(|there| Some(there.store) != ours)
        && !home.return_to(settings, there.store)?
    {
        return Err(CommandError::user(
            format!("there is a store already: \"{}\"", there.name),
            format!("Look at it and join it: haversack join {}", quoted(url)),
        ));
    }
    if there.is_none() && ours.is_some() {
        home.leave(settings)?;
        ui.note("There is nothing yet: a new store begins there, with everything that is here.");
    }
    remote.save(settings)?;
    Ok(remote.device)
}

/// Tells if a named remote replaces the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    /// There must be no other.
    OfNothing,
    /// It does: the store was moved or rebuilt there.
    OfTheOther,
}

/// A named remote, which is used after a successful test.
pub(crate) struct Candidate {
    remote: Remote,
    /// Under way where a credential is needed.
    trial: Option<Trial>,
    /// The stored credentials before.
    before: PreviousCredentials,
}

impl Candidate {
    /// Returns the remote that is named, the only one, and begins to try it in a process without this shell's variables.
    pub(crate) fn named(
        ui: &mut Ui,
        settings: &Settings,
        asked: Asked<'_>,
        named: &NamedArgs,
        instead: Instead,
    ) -> Result<Candidate, CommandError> {
        remote::refuse_local(settings)?;
        let Address { url, note } = address::address(ui, settings, Asked { typed: &named.url, ..asked })?;
        if instead == Instead::OfNothing {
            refuse_second(settings, &url)?;
        }
        if let Some(note) = note {
            ui.note(note);
        }
        let device = match &named.device {
            Some(name) => remote::checked_device_name(name)?,
            None => remote::device_name(),
        };
        let remote = Remote { mirror: !named.no_mirror, ..Remote::new(url, device) };
        let mut candidate = Candidate { remote, trial: None, before: PreviousCredentials::of(settings) };
        let agreed = Remote::unagreed(settings)?.filter(|named| named.url == candidate.remote.url);
        if let Some(agreed) = agreed.filter(|_| named.credential.is_none()) {
            // Its place and its credential come from the settings and the shell, each time.
            let Remote { device, mirror, .. } = candidate.remote;
            candidate.remote = Remote { device, mirror, ..agreed };
            return Ok(candidate);
        }
        if let Some(cloud) = Cloud::of(&named.url) {
            candidate.remote.settings = cloud.place(&settings.cloud);
            let source = Source::choose(settings, cloud, named.credential.as_deref())?;
            candidate.remote.credential = Some(source);
            match Trial::begin(settings, &candidate.remote) {
                Ok(trial) => candidate.trial = Some(trial),
                Err(error) => return Err(candidate.refuse(settings, error)),
            }
        }
        Ok(candidate)
    }

    /// Returns the remote, which may turn out not to work.
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Waits until it was tried, and returns the remote if it may be used.
    pub(crate) fn admit(mut self, ui: &mut Ui, settings: &Settings) -> Result<Remote, CommandError> {
        let Some(trial) = self.trial.take() else { return Ok(self.remote) };
        let bar = ui.progress();
        let tried = trial.end();
        bar.end();
        match tried {
            Ok(told) => {
                ui.note(told);
                Ok(self.remote)
            }
            Err(error) => Err(self.refuse(settings, error)),
        }
    }

    /// Returns why it cannot be used. What was handed in for nothing is not kept, and what worked before is.
    fn refuse(self, settings: &Settings, error: CommandError) -> CommandError {
        let put_back = match (&self.remote.credential, Remote::recorded(settings)) {
            (Some(Source::File), _) => self.before.put_back(settings),
            (Some(source), Ok(None)) => source.forget(settings),
            (Some(_), Err(unread)) => Err(unread),
            (Some(_), Ok(Some(_))) | (None, _) => Ok(()),
        };
        put_back.err().unwrap_or(error)
    }
}

/// Refuses a second remote.
pub(crate) fn refuse_second(settings: &Settings, url: &str) -> Result<(), CommandError> {
    match Remote::recorded(settings)? {
        Some(remote) if remote.url != url && !remote.from_settings => Err(CommandError::user(
            format!("this memory has a remote already: {}", remote.url),
            "One is enough. Leave it first: haversack remote remove",
        )),
        _ => Ok(()),
    }
}

fn list(ui: &mut Ui, settings: &Settings, args: &ListArgs) -> Result<(), CommandError> {
    let remote = Remote::recorded(settings)?.or(Remote::of(settings)?);
    let contact = Contact::of(settings);
    let reached = contact.reached;
    if args.json {
        let shown = remote.map(|remote| {
            json!({ "url": remote.url, "device": remote.device, "reached": reached.map(|at| at.to_string()) })
        });
        return ui.json(&json!({ "remotes": shown.into_iter().collect::<Vec<_>>() }));
    }
    let Some(remote) = remote else {
        if let Some(named) = Remote::unagreed(settings)? {
            let Warning { message, cure } = remote::needs_a_yes(&named);
            ui.note(format!("There is no remote: {message}\n{cure}"));
            return Ok(());
        }
        ui.note("There is no remote. Name one: haversack remote add file:///a/directory");
        return Ok(());
    };
    let reached = reached.map_or("never".to_owned(), |reached| ago(SystemClock.now(), reached));
    ui.line(format!("{}  this machine is \"{}\"  last reached: {reached}", remote.url, remote.device))?;
    if settings.keep_local {
        ui.note("It is not used: memory is kept on this machine (keep-memory-local).");
    }
    Ok(())
}

fn remove(ui: &mut Ui, settings: &Settings) -> Result<(), CommandError> {
    let Some(remote) = Remote::recorded(settings)? else {
        return Remote::expected(settings).map(drop);
    };
    // Before the remote is forgotten: a command that is stopped here is repeated.
    if let Err(error) = local_history::resume(settings) {
        ui.note(format!("The changes until now are not in the local history yet: {}", error.in_one_line()));
    }
    Remote::forget(settings)?;
    Contact::forget(settings)?;
    ui.note(format!("Nothing is sent to {} any more. The files stay, here and there.", remote.url));
    Ok(())
}
