//! `haversack ls`: the projects, and the files in them.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use haversack::clock::Clock;
use haversack::store::{BackendExt, DeviceLocal, EntryKind, ErrorKind, Info, Locator, Odd, block_on};
use haversack::sync::remote_files;
use haversack::{Memory, View};
use haversack_system::SystemClock;
use serde_json::json;

use crate::error::CommandError;
use crate::home::kinds;
use crate::home::store::{PROJECT_RECORDS, is_project_record, open_to_look};
use crate::projects::names::{Names, holds_projects, locate};
use crate::remote::Remote;
use crate::settings::Settings;
use crate::ui::Ui;
use crate::ui::moments::{ago, counted, timestamp};

/// List projects, directories and files, with size and age
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// The project or directory; the whole memory if left out
    #[arg(default_value = "")]
    path: String,

    /// List the files of all directories below it
    #[arg(long, short = 'R', visible_short_alias = 'r')]
    recursive: bool,

    /// List only files of this kind, in all directories below it: haversack kinds
    #[arg(long)]
    kind: Option<String>,

    /// List the files that the remote had at the last sync, in all directories below it, with their sizes
    #[arg(long)]
    remote: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The entries of a directory, and the names in it that are no files of a memory.
struct Listing {
    infos: Vec<Info>,
    odd: Vec<Odd>,
}

pub(crate) fn cmd_ls(ui: &mut Ui, settings: &Settings, args: &LsArgs) -> Result<ExitCode, CommandError> {
    let locator = locate(settings, &args.path)?;
    if !args.json && (args.recursive || args.kind.is_some() || args.remote) {
        ui.page();
    }
    if args.remote {
        return list_remote(ui, settings, &locator, args);
    }
    let memory = open_to_look(settings)?;
    let names = Names::of(settings)?;
    let is_deep = args.recursive || args.kind.is_some();
    let mut listing = block_on(list(&memory, &names, &locator, is_deep))?;
    if let Some(kind) = &args.kind {
        let kinds = kinds::load(settings)?;
        let kind = kinds::named(&kinds, kind)?;
        let mut of_kind = Vec::new();
        for info in listing.infos {
            let content = block_on(memory.files().read(&info.locator))?;
            if kinds.of(&info.locator, &content.bytes).name == kind.name {
                of_kind.push(info);
            }
        }
        listing.infos = of_kind;
    }
    let Listing { infos, odd } = listing;
    if args.json {
        let entries = infos.iter().map(|info| {
            json!({
                "path": info.locator.as_str(),
                "name": names.show(&info.locator),
                "type": type_name(info),
                "size_bytes": info.size_bytes,
                "modified": info.modified.map(|modified| timestamp(modified).to_string()),
            })
        });
        let odd: Vec<_> =
            odd.iter().map(|Odd { shown, why, .. }| json!({ "name": shown, "why": why })).collect();
        ui.json(&json!({ "path": locator.as_str(), "entries": entries.collect::<Vec<_>>(), "odd": odd }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = infos.iter().map(|info| info.size_bytes.to_string().len()).max().unwrap_or(0);
    ui.table(&infos.iter().map(|info| row(&names, info, width)).collect::<Vec<_>>())?;
    if infos.is_empty()
        && let Some(kind) = &args.kind
    {
        ui.note(format!("No file here is of the kind {kind}"));
    }
    if infos.is_empty() && odd.is_empty() && args.kind.is_none() {
        ui.note(match locator.is_root() {
            true => "There is no memory yet. Begin with the memory of your agents: haversack init".to_owned(),
            false => format!("{locator} is empty"),
        });
    }
    for Odd { shown, why, .. } in odd {
        ui.note(format!("Left alone: {shown}: {why}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the files of the remote. A kind is told by the name, or by the `type` of the file that is here.
fn list_remote(
    ui: &mut Ui,
    settings: &Settings,
    below: &Locator,
    args: &LsArgs,
) -> Result<ExitCode, CommandError> {
    if Remote::for_looking(settings)?.is_none() {
        return Err(CommandError::user(
            "there is no remote, so there is nothing to list",
            "Connect this machine: haversack init URL. List its own files: haversack ls -R",
        ));
    }
    let names = Names::of(settings)?;
    let memory = open_to_look(settings)?;
    let is_asked_for = |name: &Locator| name.is_within(below) && (is_ours(below) || !is_project_record(name));
    let mut files = match settings.state().is_dir() {
        true => block_on(remote_files(Arc::new(DeviceLocal::open(settings.state(), settings.locks())?)))?,
        // A look makes no home.
        false => Vec::new(),
    };
    files.retain(|(name, _)| is_asked_for(name));
    if let Some(kind) = &args.kind {
        let kinds = kinds::load(settings)?;
        let kind = kinds::named(&kinds, kind)?;
        files.retain(|(name, _)| {
            let here = block_on(memory.files().read(name)).map(|object| object.bytes).unwrap_or_default();
            kinds.of(name, &here).name == kind.name
        });
    }
    if args.json {
        let entries = files.iter().map(
            |(name, size)| json!({ "path": name.as_str(), "name": names.show(name), "size_bytes": size }),
        );
        ui.json(&json!({ "path": below.as_str(), "remote": entries.collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = files.iter().map(|(_, size)| size.to_string().len()).max().unwrap_or(0);
    ui.table(
        &files
            .iter()
            .map(|(name, size)| vec![format!("{size:>width$}"), names.show(name)])
            .collect::<Vec<_>>(),
    )?;
    let bytes: u64 = files.iter().map(|(_, size)| size).sum();
    ui.note(format!("{}, {bytes} bytes", counted(files.len(), "file")));
    Ok(ExitCode::SUCCESS)
}

/// Returns size, age and name of an entry. The size is at the right of a column of this width.
fn row(names: &Names, info: &Info, width: usize) -> Vec<String> {
    let name = names.show(&info.locator);
    match info.kind {
        EntryKind::Directory => vec![format!("{:>width$}", "-"), String::new(), format!("{name}/")],
        EntryKind::File => {
            let age = info.modified.map(|modified| ago(SystemClock.now(), timestamp(modified)));
            vec![format!("{:>width$}", info.size_bytes), age.unwrap_or_default(), name]
        }
    }
}

fn type_name(info: &Info) -> &'static str {
    match info.kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
    }
}

/// Returns true if a place belongs to the records of projects, which are shown only if they are asked for.
fn is_ours(place: &Locator) -> bool {
    place.as_str() == "state" || place.as_str() == PROJECT_RECORDS || is_project_record(place)
}

/// Returns the entries of a directory, or those of all directories below it. A file is its own only entry.
///
/// The whole memory shows its projects beside its other directories.
async fn list(
    memory: &Memory,
    names: &Names,
    locator: &Locator,
    is_deep: bool,
) -> Result<Listing, CommandError> {
    if is_deep && memory.files().info(locator).await.is_ok_and(|info| info.kind == EntryKind::Directory) {
        let page = memory.files().scan_all(locator).await?;
        let is_asked_for = is_ours(locator);
        let infos = page.infos.into_iter().filter(|info| is_asked_for || !is_project_record(&info.locator));
        return Ok(Listing { infos: infos.collect(), odd: page.odd });
    }
    let is_above_projects = locator.is_root() || holds_projects(locator);
    let (entries, odd) = match memory.view(locator).await {
        Ok(View::File(_)) => {
            return Ok(Listing { infos: vec![memory.files().info(locator).await?], odd: Vec::new() });
        }
        Ok(View::Directory(listing)) => (listing.entries, listing.odd),
        Err(error) if error.kind() == ErrorKind::NotFound && is_above_projects => (Vec::new(), Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut infos = BTreeMap::new();
    let entries = entries.into_iter().map(|entry| entry.locator).filter(|entry| !holds_projects(entry));
    let entries = entries.filter(|entry| !locator.is_root() || !is_ours(entry));
    let projects = names.places().filter(|_| is_above_projects);
    for place in entries.chain(projects) {
        match memory.files().info(&place).await {
            Ok(info) => drop(infos.insert(names.show(&place), info)),
            // It was deleted meanwhile, or its directory is not there.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Listing { infos: infos.into_values().collect(), odd })
}
