//! `haversack debug`: prints Haversack's internal files, for the search of a fault.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use haversack::ids::Position;
use haversack::log::layout::{self, Item};
use haversack::log::{Carried, Commit, Folded, Segment, What};
use haversack::store::{Backend, BackendExt, Bytes, DeviceLocal, block_on};
use haversack::sync::{Dump, dump};
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::settings::{Settings, flags};
use crate::ui::Ui;

/// Look into the files that Haversack keeps for itself
#[derive(Debug, Args)]
#[command(mut_subcommands(flags::accept))]
pub(crate) struct DebugArgs {
    #[command(subcommand)]
    what: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Show what a replica remembers between syncs
    State(PlaceArgs),
    /// Show the commits of a log
    Log(PlaceArgs),
}

#[derive(Debug, Args)]
struct PlaceArgs {
    /// The directory: of a state, or the one that holds a remote
    directory: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_debug(
    ui: &mut Ui,
    settings: &Settings,
    args: &DebugArgs,
) -> Result<ExitCode, CommandError> {
    match &args.what {
        Subject::State(args) => state(ui, settings, args),
        Subject::Log(args) => log(ui, settings, args),
    }
}

/// Opens a directory that must be there: looking makes nothing.
fn open(settings: &Settings, directory: &Path) -> Result<Arc<dyn Backend>, CommandError> {
    if !directory.is_dir() {
        let message = format!("there is no directory {}", directory.display());
        return Err(CommandError::user(message, "Name a directory that is there"));
    }
    Ok(Arc::new(DeviceLocal::open(directory, settings.locks())?))
}

fn state(ui: &mut Ui, settings: &Settings, args: &PlaceArgs) -> Result<ExitCode, CommandError> {
    let found = block_on(dump(open(settings, &args.directory)?))?;
    let Some(found) = found else {
        let message = format!("there is no state of a replica in {}", args.directory.display());
        return Err(CommandError::user(message, "A state has a file called identity"));
    };
    if args.json {
        ui.json(&serde_json::to_value(&found).map_err(|error| CommandError::ours(error.to_string()))?)?;
    } else {
        tell_state(ui, &found)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn tell_state(ui: &mut Ui, found: &Dump) -> Result<(), CommandError> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    ui.line(format!("replica     {}", found.replica))?;
    ui.line(format!("store       {}", or_none(found.store.map(|store| store.to_string()))))?;
    ui.line(format!("position    {}", or_none(found.position.map(|position| position.to_string()))))?;
    let publishing = found.publishing.as_ref().map(|publishing| {
        let id = publishing.id.map_or("a commit that cannot be read".to_owned(), |id| id.to_string());
        format!("{id} at {}", publishing.position)
    });
    ui.line(format!("publishing  {}", or_none(publishing)))?;
    let applying = (!found.applying.is_empty()).then(|| found.applying.join(", "));
    ui.line(format!("applying    {}", or_none(applying)))?;
    ui.line(format!("journal     {}", if found.cut_short { "its last line is cut short" } else { "whole" }))?;
    ui.line(format!("objects     {}", found.objects))?;
    ui.line(format!("bases       {}", found.bases.len()))?;
    for base in &found.bases {
        let hash = base.hash.map_or("deleted ".to_owned(), |hash| hash.to_string()[..8].to_owned());
        let elsewhere = base.elsewhere.map_or(String::new(), |why| format!("  ({why})"));
        ui.line(format!("  {hash}  {:>9}  {}{elsewhere}", base.size, base.at))?;
    }
    Ok(())
}

fn log(ui: &mut Ui, settings: &Settings, args: &PlaceArgs) -> Result<ExitCode, CommandError> {
    let remote = open(settings, &args.directory)?;
    let mut values = Vec::new();
    for locator in block_on(remote.list_all(&layout::commits()))? {
        let Some(Item::Commit(position)) = Item::at(&locator) else { continue };
        let bytes = block_on(remote.read(&locator))?.bytes;
        let commit = read(&*remote, position, bytes);
        if args.json {
            values.push(match commit {
                Ok(commit) => as_json(&commit),
                Err(why) => json!({ "position": position.number(), "error": why }),
            });
            continue;
        }
        match commit {
            Ok(commit) => tell_commit(ui, &commit)?,
            Err(why) => ui.line(format!("{position}  cannot be read: {why}"))?,
        }
    }
    if args.json {
        ui.json(&Value::Array(values))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the commit of a position, from its segment if it is in one.
fn read(remote: &dyn Backend, position: Position, bytes: Bytes) -> Result<Commit, String> {
    let mut bytes = bytes;
    if Folded::is_at(&bytes) {
        let folded = Folded::decode(&bytes).map_err(|why| why.to_string())?;
        let segment = block_on(remote.read(&layout::segment(folded.first, folded.last)));
        let segment = segment.map_err(|error| error.to_string())?;
        let segment = Segment::decode(&segment.bytes).map_err(|why| why.to_string())?;
        bytes = segment.get(position).cloned().ok_or("its segment does not have it")?;
    }
    Commit::decode(&bytes).map_err(|why| why.to_string())
}

fn tell_commit(ui: &mut Ui, commit: &Commit) -> Result<(), CommandError> {
    let mut who = commit.device.clone();
    for more in commit.agent.iter().chain(&commit.session) {
        who.push_str(&format!(", {more}"));
    }
    ui.line(format!("{}  {}  {who}  {}", commit.position, commit.time, commit.cause))?;
    for change in &commit.changes {
        let (what, size) = of_change(&change.what);
        ui.line(format!("    {what:<7}{size:>9}  {}", change.locator))?;
    }
    for odd in &commit.odd {
        ui.line(format!("    refused           {odd}"))?;
    }
    Ok(())
}

/// Returns what a change does, and how many bytes it carries.
fn of_change(what: &What) -> (&'static str, String) {
    let bytes = |carried: &Carried| match carried {
        Carried::Inline(bytes) => bytes.len().to_string(),
        Carried::Object(_) => "object".to_owned(),
    };
    match what {
        What::Put { content, .. } => ("put", bytes(content)),
        What::Append { added, .. } => ("append", bytes(added)),
        What::Delete { .. } => ("delete", String::new()),
    }
}

fn as_json(commit: &Commit) -> Value {
    let changes = commit.changes.iter().map(|change| {
        let after = change.what.after();
        json!({
            "at": change.locator.as_str(),
            "what": of_change(&change.what).0,
            "hash": after.map(|content| content.hash.to_string()),
            "size": after.map(|content| content.size),
        })
    });
    json!({
        "position": commit.position.number(),
        "id": commit.id.to_string(),
        "previous": commit.previous.to_string(),
        "replica": commit.replica.to_string(),
        "device": commit.device,
        "agent": commit.agent,
        "session": commit.session,
        "time": commit.time.to_string(),
        "cause": commit.cause,
        "state": commit.state.to_string(),
        "changes": changes.collect::<Vec<_>>(),
        "odd": commit.odd.iter().map(|odd| odd.key.as_str()).collect::<Vec<_>>(),
    })
}
