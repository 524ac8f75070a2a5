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
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::home::contact::Contact;
use crate::home::gate::{cure, named};
use crate::home::store::{locate, locate_file};
use crate::home::{self, Manner, Summary, Work};
use crate::remote::site::{self, Asked};
use crate::remote::{self, Remote};
use crate::settings::Settings;
use crate::system::SystemClock;
use crate::ui::moments::{counted, parse_span, span};
use crate::ui::{Answer, Ui};

/// Take in what other machines wrote, and send what is new here
///
/// Exits with 0 if everything was taken in and sent that may be, with 1 if it stopped before; what was written here is safe either way.
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// Look at every file and every plain object in the remote again, and take in what somebody changed there by hand
    #[arg(long)]
    full: bool,

    /// In a folder that a sync client replicates: what no machine's log names was written here, by you or your agent; take it in now.
    /// With paths, only these
    #[arg(long, value_name = "PATH", num_args = 0..)]
    mine: Option<Vec<String>>,

    /// Very many deletions at once are meant: send them
    #[arg(long)]
    allow_deletes: bool,

    /// Do nothing while the remote has just failed and it is too early to ask again; look at everything if that was not done for a while
    #[arg(long)]
    when_due: bool,

    /// Stop after this time; what was done until then is whole
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    within: Option<i64>,

    /// Why, for the history
    #[arg(long, short, value_name = "TEXT", default_value = "sync")]
    message: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Take in what other machines wrote, and send nothing
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Send one file, or everything that is new here
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
        // Whoever syncs by the clock has nothing to do here, and nothing is wrong.
        ui.note(
            "Memory is kept on this machine (keep-memory-local): nothing was sent, and nothing was asked.",
        );
        return Ok(ExitCode::SUCCESS);
    }
    if args.when_due
        && let Some(named) = Remote::unagreed(settings)?
    {
        // Whoever syncs by the clock is nobody to ask.
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
    let manner = Manner {
        work: if is_full { Work::Full } else { Work::Sync },
        deletions: if args.allow_deletes { Deletions::Allowed } else { Deletions::Cautious },
        time: args.within.map(|milliseconds| Duration::from_millis(milliseconds.unsigned_abs())),
        cause: &args.message,
        mine,
    };
    run(ui, settings, &remote, &manner, args.json)
}

/// Returns the remote of a home; the user is asked once about one that only the settings name.
fn agreed(ui: &mut Ui, settings: &Settings) -> Result<Remote, CommandError> {
    let Some(named) = Remote::unagreed(settings)?.filter(|_| ui.can_ask()) else {
        return Remote::expected(settings);
    };
    let url = &named.url;
    let question = format!(
        "The settings name the remote {url}. Send this memory there, now and from now on? Not encrypted: who can read it there can read it."
    );
    if ui.ask(&question)? == Answer::No {
        return Remote::expected(settings);
    }
    drop(site::store_or_empty(settings, &named, Asked { command: "haversack remote add", typed: url })?);
    named.save(settings)?;
    Ok(named)
}

/// Returns the plain files at these paths, as they are there now.
fn these(settings: &Settings, remote: &Remote, paths: &[String]) -> Result<Mine, CommandError> {
    let locators = paths.iter().map(|path| locate(path)).collect::<Result<Vec<Locator>, _>>()?;
    let Some(vault) = remote::vault(settings, remote)? else { return Ok(Mine::Nothing) };
    let mut these = BTreeSet::new();
    for locator in locators {
        match block_on(vault.folder.read(&locator)) {
            Ok(there) => drop(these.insert((locator, ContentHash::of(&there.bytes)))),
            // Nothing is there, or its client has only its name: there is nothing to take in.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unavailable) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Mine::These(these))
}

pub(crate) fn cmd_pull(ui: &mut Ui, settings: &Settings, args: &PullArgs) -> Result<ExitCode, CommandError> {
    let remote = agreed(ui, settings)?;
    let manner = Manner::new(Work::Pull, "pull");
    run(ui, settings, &remote, &manner, args.json)
}

pub(crate) fn cmd_push(ui: &mut Ui, settings: &Settings, args: &PushArgs) -> Result<ExitCode, CommandError> {
    let remote = agreed(ui, settings)?;
    let locator = args.path.as_deref().map(|path| locate_file(settings, path)).transpose()?;
    let what = locator.as_ref().map_or(Work::Sync, Work::PushOne);
    let manner = Manner::new(what, &args.message);
    run(ui, settings, &remote, &manner, args.json)
}

fn run(
    ui: &mut Ui,
    settings: &Settings,
    remote: &Remote,
    manner: &Manner<'_>,
    as_json: bool,
) -> Result<ExitCode, CommandError> {
    let bar = ui.progress();
    let summary = home::sync(settings, remote, manner, &bar);
    bar.end();
    let summary = summary?;
    if as_json {
        ui.json(&to_json(&summary))?;
    } else {
        tell(ui, &summary)?;
    }
    Ok(if summary.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// What became of files that disappeared here.
pub(crate) const KEPT_ELSEWHERE: &str = "We did not delete them on your other machines";

/// What the user can do about files that disappeared here.
pub(crate) const WAITING_CURE: &str = "to bring them back: haversack restore --deleted; if you meant to delete them: haversack sync --allow-deletes";

/// What is wrong with a file that could not be written here.
pub(crate) const REFUSED: &str =
    "could not be written here: something else is in its place, or this disk cannot hold the name";

/// What the user can do about it.
pub(crate) const REFUSED_CURE: &str =
    "move away what is in its place, or rename the file on another machine, then: haversack sync";

/// What to do about a place that could not be looked at.
pub(crate) const UNSEEN: &str =
    "let it be read, or put a plain file or directory there; until then it counts as it was";

/// Prints what a sync did, and what it left for somebody to do.
pub(crate) fn tell(ui: &mut Ui, summary: &Summary) -> Result<(), CommandError> {
    ui.line(headline(summary))?;
    let report = &summary.report;
    let mut note = |text: String, cure: &str| ui.line(format!("  {text}\n  → {cure}"));
    for locator in &report.both_kept {
        note(format!("{locator}: both versions of a passage are kept"), "haversack conflicts")?;
    }
    for locator in &report.edits_won {
        note(
            format!("{locator} was deleted on one machine and changed on another: it stays"),
            &format!("if it is to go: haversack delete {locator}"),
        )?;
    }
    for (locator, hold) in &report.held {
        let what = format!("{} stays on this machine: {}", named(locator), hold.why);
        note(what, &cure(locator, hold))?;
    }
    if !report.held_deletions.is_empty() {
        note(
            format!(
                "{} were deleted on another machine, very many at once: we kept them here",
                counted(report.held_deletions.len(), "file")
            ),
            "to send them again: haversack restore --deleted; if they are meant to go: haversack sync --allow-deletes",
        )?;
    }
    if !report.waiting_deletions.is_empty() {
        note(
            format!("{} disappeared here. {KEPT_ELSEWHERE}", counted(report.waiting_deletions.len(), "file")),
            WAITING_CURE,
        )?;
    }
    let is_told = |locator: &&Locator| report.unseen.iter().all(|(unseen, _)| unseen != *locator);
    for locator in report.refused.iter().filter(is_told) {
        note(format!("{locator} {REFUSED}"), REFUSED_CURE)?;
    }
    for (locator, why) in &report.unseen {
        note(format!("{locator} could not be looked at: {why}"), UNSEEN)?;
    }
    for locator in &report.missing {
        note(format!("the remote does not have the content of {locator}"), "haversack sync --full")?;
    }
    for (name, why) in &report.odd {
        note(format!("{name}: {why}"), "it is left alone")?;
    }
    for locator in &report.not_mirrored {
        let (what, cure) = not_mirrored(locator.as_str());
        note(what, &cure)?;
    }
    if !report.unrelated.is_empty() {
        let count = report.unrelated.len();
        let names: Vec<&str> = report.unrelated.iter().take(MAX_UNRELATED).map(Locator::as_str).collect();
        let more = if count > MAX_UNRELATED { ", …" } else { "" };
        note(
            format!(
                "{} in the remote {} no part of this memory: {}{more}",
                counted(count, "file"),
                if count == 1 { "is" } else { "are" },
                names.join(", ")
            ),
            "nothing was taken in or changed; to keep one as memory, copy it into the memory",
        )?;
    }
    for (place, locator) in &summary.rescued {
        note(
            format!("{locator}: an edit that the folder's client could not upload was taken in"),
            &format!("it is still where the client put it, and is not needed any more: {place}"),
        )?;
    }
    for (locator, _) in &report.awaited {
        note(
            format!("{locator} in the folder differs, and no machine's log says why: it is waited for"),
            &format!("if it was written on this machine: haversack sync --mine {locator}"),
        )?;
    }
    if summary.arriving() > 0 {
        note(
            format!("{} not arrived whole", parts_of_logs(summary.arriving())),
            "they are taken in once the folder's client has brought the rest",
        )?;
    }
    for name in &summary.vanished {
        note(
            format!("{name} is not there, may not be read, or was emptied: nothing was deleted anywhere"),
            &format!("put it back, or: haversack mount remove {name}"),
        )?;
    }
    for name in &summary.unbound {
        note(
            format!("{name} became a link: we do not carry it any more, and nothing was deleted anywhere"),
            &format!("put a directory in its place, or: haversack mount remove {name}"),
        )?;
    }
    for (name, why) in &summary.failed {
        note(
            format!("{name} was left out: {why}"),
            "All that was written there is safe. See to it, then: haversack sync",
        )?;
    }
    if report.out_of_time {
        note("there was no more time: the rest follows with the next sync".to_owned(), "haversack sync")?;
    }
    if let Some(why) = &report.not_folded {
        note(format!("the log was not folded: {why}"), "it is tried again with the next sync")?;
    }
    Ok(())
}

/// How many files that are no part of the memory are named.
const MAX_UNRELATED: usize = 5;

/// Says that a plain copy was not written because another file is in its place, and what to do.
pub(crate) fn not_mirrored(name: &str) -> (String, String) {
    if name == "manifest.json" {
        return (
            "manifest.json in the remote is the file of another program: it was left alone, and no plain copies are written".to_owned(),
            "move that file away, then: haversack sync --full".to_owned(),
        );
    }
    (
        format!("{name} in the remote is not what we wrote there: it was left alone"),
        "take it in as an edit: haversack sync --full".to_owned(),
    )
}

/// Begins a sentence about so many parts of other machines' logs.
pub(crate) fn parts_of_logs(number: usize) -> String {
    let have = if number == 1 { "has" } else { "have" };
    format!("{} of other machines' logs {have}", counted(number, "part"))
}

fn headline(summary: &Summary) -> String {
    let count = |number: usize| counted(number, "file");
    let mut parts = Vec::new();
    if !summary.sent.is_empty() {
        parts.push(format!("sent {}", count(summary.sent.len())));
    }
    if summary.received() > 0 {
        parts.push(format!("received {}", count(summary.received())));
    }
    if !summary.report.merged.is_empty() {
        parts.push(format!("merged {}", count(summary.report.merged.len())));
    }
    if !summary.report.foreign.is_empty() {
        parts.push(format!("took in {} changed by hand in the remote", count(summary.report.foreign.len())));
    }
    if summary.mended > 0 {
        parts.push(format!("put {} of logs back that the folder had lost", count(summary.mended)));
    }
    let text = parts.join(", ");
    match text.split_at_checked(1) {
        Some((first, rest)) => format!("{}{rest}.", first.to_uppercase()),
        None => "Nothing new.".to_owned(),
    }
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
