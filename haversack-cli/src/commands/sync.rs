//! `haversack sync`, `pull` and `push`: takes in what other machines wrote, and sends what is new here.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use haversack::clock::Clock;
use haversack::ids::ContentHash;
use haversack::store::{ErrorKind, Locator, block_on};
use haversack::sync::{Deletions, Hold};
use haversack::vault::Mine;
use haversack_system::SystemClock;
use serde_json::{Value, json};

use crate::app::memory_stores;
use crate::app::sync::{sync, text};
use crate::error::CommandError;
use crate::home::contact::Contact;
use crate::home::gate::named;
use crate::home::store::{LookupResult, look_up};
use crate::home::{Summary, SyncOptions, Work};
use crate::projects::names::{locate, locate_file};
use crate::remote::site::{self, Asked};
use crate::remote::{self, Remote};
use crate::settings::Settings;
use crate::ui::moments::{counted, parse_span, span};
use crate::ui::{Answer, Ui};

/// Receive the changes of other machines, and send this machine's changes
///
/// Exits with 0 if it received and sent everything, except files that are held back. Exits with 1 if it stopped before. Your files are safe in both cases.
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// Check every file and every plain copy in the remote again, and import edits that were made there by hand
    #[arg(long)]
    full: bool,

    /// In a synced folder: import files now that no machine's log names yet, because you or your agent wrote them here. With paths, only
    /// these
    #[arg(long, value_name = "PATH", num_args = 0..)]
    mine: Option<Vec<String>>,

    /// Very many deletions at once are meant: send them
    #[arg(long)]
    allow_deletes: bool,

    /// Do nothing while the remote has just failed and it is too early to ask again; look at everything if that was not done for a while
    #[arg(long)]
    when_due: bool,

    /// Stop after this time; finished parts stay valid
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    within: Option<i64>,

    /// Why, for the history
    #[arg(long, short, value_name = "TEXT", default_value = "sync")]
    message: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Receive the changes of other machines, and send nothing
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Send one file, or all changes of this machine
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The file: its path on this machine, or its place in the memory; everything if left out
    path: Option<String>,

    /// Why, for the history
    #[arg(long, short, value_name = "TEXT", default_value = "push")]
    message: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_sync(ui: &mut Ui, settings: &Settings, args: &SyncArgs) -> Result<ExitCode, CommandError> {
    if args.when_due && settings.keep_local {
        // A timer's sync has nothing to do here, and nothing is wrong.
        ui.note(
            "Memory is kept on this machine (keep-memory-local): nothing was sent, and nothing was asked.",
        );
        return Ok(ExitCode::SUCCESS);
    }
    let stores = carry_stores(ui, settings)?;
    if stores > 0 && Remote::of(settings)?.is_none() && Remote::unagreed(settings)?.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    if args.when_due
        && let Some(named) = Remote::unagreed(settings)?
    {
        // A timer's sync has no user to ask.
        ui.note(format!("Nothing was sent: {}", remote::needs_a_yes(&named).message));
        return Ok(ExitCode::SUCCESS);
    }
    let remote = agreed(ui, settings)?;
    if args.when_due
        && let Some(next) = Contact::of(settings).next_try()
        && next > SystemClock.now()
    {
        let wait = span((next.0 - SystemClock.now().0) / 1000 + 1);
        ui.note(format!("The remote failed a moment ago. Next try in {wait}, or now: haversack sync"));
        return Ok(ExitCode::SUCCESS);
    }
    let mine = match &args.mine {
        None => Mine::Nothing,
        Some(paths) if paths.is_empty() => Mine::Everything,
        Some(paths) => these(settings, &remote, paths)?,
    };
    let is_due = || Contact::of(settings).is_look_due(SystemClock.now(), &remote.url);
    let is_full = args.full || args.mine.is_some() || (args.when_due && is_due());
    let options = SyncOptions {
        work: if is_full { Work::Full } else { Work::Sync },
        deletions: if args.allow_deletes { Deletions::Allowed } else { Deletions::Cautious },
        time: args.within.map(|milliseconds| Duration::from_millis(milliseconds.unsigned_abs())),
        cause: &args.message,
        mine,
    };
    run(ui, settings, &remote, &options, args.json)
}

/// Brings memory stores together with their directories, before other machines get the result; returns how many there are.
fn carry_stores(ui: &mut Ui, settings: &Settings) -> Result<usize, CommandError> {
    let carried = memory_stores::carry_all(settings)?;
    for (store, outcome) in &carried {
        let address = &store.address;
        match outcome {
            Ok(report) => {
                let (sent, received) =
                    (counted(report.sent.len(), "file"), counted(report.received.len(), "file"));
                let deleted = counted(report.deleted.len(), "file");
                ui.note(format!("{address}: sent {sent}, received {received}, deleted {deleted}."));
                for (file, why) in &report.held {
                    ui.note(format!("{file} stays where it is: {why}"));
                }
                for file in &report.overtaken {
                    ui.note(format!("{file} changed meanwhile. The next sync takes it: haversack sync"));
                }
            }
            // The other machines do not wait for it.
            Err(error) => {
                let hint = error.hint.clone().unwrap_or_default();
                ui.note(format!("{address} was not synced: {}. {hint}", error.in_one_line()));
            }
        }
    }
    Ok(carried.len())
}

/// Returns the remote of a home; the user is asked once about one that only the settings name.
fn agreed(ui: &mut Ui, settings: &Settings) -> Result<Remote, CommandError> {
    let Some(named) = Remote::unagreed(settings)?.filter(|_| ui.can_ask()) else {
        return Remote::expected(settings);
    };
    let url = &named.url;
    let question = format!(
        "The settings define the remote {url}. Send this memory there, now and from now on? Not encrypted: anyone with access to that place can read it."
    );
    if ui.ask(&question)? == Answer::No {
        return Remote::expected(settings);
    }
    drop(site::store_or_empty(settings, &named, Asked { command: "haversack remote add", typed: url })?);
    named.save(settings)?;
    Ok(named)
}

/// Returns the plain files at these paths, as they are there now. A path that is neither in the folder nor in the memory is an error.
fn these(settings: &Settings, remote: &Remote, paths: &[String]) -> Result<Mine, CommandError> {
    let locators = paths.iter().map(|path| locate(settings, path)).collect::<Result<Vec<Locator>, _>>()?;
    let vault = remote::vault(settings, remote)?;
    let mut these = BTreeSet::new();
    for (locator, path) in locators.into_iter().zip(paths) {
        let read = vault.as_ref().map(|vault| block_on(vault.folder.read(&locator)));
        match read {
            Some(Ok(there)) => drop(these.insert((locator, ContentHash::of(&there.bytes)))),
            // The sync client has only its name. The file is imported when the client downloads it.
            Some(Err(error)) if error.kind() == ErrorKind::Unavailable => {}
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            Some(Err(_)) | None if look_up(settings, &locator)? == LookupResult::Nothing => {
                return Err(CommandError::user(
                    format!("there is no {path}, neither in the memory nor in the synced folder"),
                    "See the files that wait: haversack status",
                ));
            }
            // Every sync sends it.
            Some(Err(_)) | None => {}
        }
    }
    if vault.is_none() {
        return Ok(Mine::Nothing);
    }
    Ok(Mine::These(these))
}

pub(crate) fn cmd_pull(ui: &mut Ui, settings: &Settings, args: &PullArgs) -> Result<ExitCode, CommandError> {
    let remote = agreed(ui, settings)?;
    let options = SyncOptions::new(Work::Pull, "pull");
    run(ui, settings, &remote, &options, args.json)
}

pub(crate) fn cmd_push(ui: &mut Ui, settings: &Settings, args: &PushArgs) -> Result<ExitCode, CommandError> {
    let remote = agreed(ui, settings)?;
    let locator = args.path.as_deref().map(|path| locate_file(settings, path)).transpose()?;
    let what = locator.as_ref().map_or(Work::Sync, Work::PushOne);
    let options = SyncOptions::new(what, &args.message);
    run(ui, settings, &remote, &options, args.json)
}

fn run(
    ui: &mut Ui,
    settings: &Settings,
    remote: &Remote,
    options: &SyncOptions<'_>,
    as_json: bool,
) -> Result<ExitCode, CommandError> {
    let bar = ui.progress();
    let summary = sync(settings, remote, options, &bar);
    bar.end();
    let summary = summary?;
    if as_json {
        ui.json(&to_json(&summary))?;
    } else {
        ui.text(&text(&summary))?;
    }
    Ok(if summary.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Returns what a sync did, for programs.
pub(crate) fn to_json(summary: &Summary) -> Value {
    let names = |locators: &[Locator]| locators.iter().map(Locator::to_string).collect::<Vec<_>>();
    let holds = |holds: &[(Locator, Hold)]| {
        let each = |(locator, hold): &(Locator, Hold)| json!({ "path": named(locator), "why": hold.why, "lines": hold.lines });
        holds.iter().map(each).collect::<Vec<_>>()
    };
    let report = &summary.report;
    let files = |files: &BTreeSet<Locator>| files.iter().map(Locator::to_string).collect::<Vec<_>>();
    json!({
        "sent": files(&summary.sent),
        "received": files(&summary.received),
        "fetched": report.fetched,
        "merged": names(&report.merged),
        "both_kept": names(&report.both_kept),
        "edits_won": names(&report.edits_won),
        "held": holds(&report.held),
        "refused": names(&report.refused),
        "missing": names(&report.missing),
        "unseen": report.unseen.iter().map(|(locator, why)| json!({ "path": locator.to_string(), "why": why })).collect::<Vec<_>>(),
        "odd": report.odd.iter().map(|(name, why)| json!({ "name": name, "why": why })).collect::<Vec<_>>(),
        "waiting_deletions": names(&report.waiting_deletions),
        "held_deletions": names(&report.held_deletions),
        "foreign": names(&report.foreign),
        "not_mirrored": names(&report.not_mirrored),
        "unrelated": names(&report.unrelated),
        "awaited": report.awaited.iter().map(|(locator, _)| locator.to_string()).collect::<Vec<_>>(),
        "rescued": summary.rescued.iter().map(|(_, locator)| locator.to_string()).collect::<Vec<_>>(),
        "arriving": summary.arriving(),
        "mended": summary.mended,
        "vanished": summary.vanished,
        "unbound": summary.unbound,
        "failed": summary.failed.iter().map(|(name, why)| json!({ "directory": name, "why": why })).collect::<Vec<_>>(),
        "out_of_time": report.out_of_time,
    })
}
