//! `haversack ls`: the projects, and the files in them.

use std::process::ExitCode;

use clap::Args;
use haversack::clock::Clock;
use haversack::store::{EntryKind, Info, Locator, Odd};
use haversack_system::SystemClock;
use serde_json::json;

use crate::app::list::{Depth, Listing, list, list_of_remote};
use crate::error::CommandError;
use crate::projects::names::{Names, locate};
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

pub(crate) fn cmd_ls(ui: &mut Ui, settings: &Settings, args: &LsArgs) -> Result<ExitCode, CommandError> {
    let locator = locate(settings, &args.path)?;
    if !args.json && (args.recursive || args.kind.is_some() || args.remote) {
        ui.page();
    }
    if args.remote {
        return list_remote(ui, settings, &locator, args);
    }
    let names = Names::of(settings)?;
    let depth = if args.recursive { Depth::All } else { Depth::One };
    let Listing { infos, odd } = list(settings, &names, &locator, depth, args.kind.as_deref())?;
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

/// Lists the files of the remote.
fn list_remote(
    ui: &mut Ui,
    settings: &Settings,
    below: &Locator,
    args: &LsArgs,
) -> Result<ExitCode, CommandError> {
    let names = Names::of(settings)?;
    let files = list_of_remote(settings, below, args.kind.as_deref())?;
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
