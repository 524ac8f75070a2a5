//! `haversack ls`: what is in a directory.

use std::process::ExitCode;

use clap::Args;
use haversack::store::{BackendExt, Entry, EntryKind, Error, ErrorKind, Info, Odd, block_on};
use haversack::{Memory, View};
use serde_json::json;

use crate::error::CommandError;
use crate::home::store::{locate, open_to_look};
use crate::settings::Settings;
use crate::ui::Ui;

/// List what is in a directory
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// The directory; the whole memory if left out
    #[arg(default_value = "")]
    path: String,

    /// List the files of all directories below it
    #[arg(long, short)]
    recursive: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_ls(ui: &mut Ui, settings: &Settings, args: &LsArgs) -> Result<ExitCode, CommandError> {
    let locator = locate(&args.path)?;
    let memory = open_to_look(settings)?;
    let found: Result<_, CommandError> = block_on(async {
        match memory.view(&locator).await? {
            View::File(_) => Ok((vec![memory.files().info(&locator).await?], Vec::new())),
            View::Directory(_) if args.recursive => {
                let page = memory.files().scan_all(&locator).await?;
                Ok((page.infos, page.odd))
            }
            View::Directory(listing) => Ok((infos(&memory, listing.entries).await?, listing.odd)),
        }
    });
    let (infos, odd) = found?;
    if args.json {
        let entries: Vec<_> = infos
            .iter()
            .map(|info| {
                json!({ "path": info.locator.as_str(), "type": kind(info), "size_bytes": info.size_bytes })
            })
            .collect();
        let odd: Vec<_> =
            odd.iter().map(|Odd { shown, why, .. }| json!({ "name": shown, "why": why })).collect();
        ui.json(&json!({ "path": locator.as_str(), "entries": entries, "odd": odd }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = infos.iter().map(|info| info.size_bytes.to_string().len()).max().unwrap_or(0);
    let lines: Vec<String> = infos
        .iter()
        .map(|info| match info.kind {
            EntryKind::Directory => format!("{:>width$}  {}/\n", "-", info.locator),
            EntryKind::File => format!("{:>width$}  {}\n", info.size_bytes, info.locator),
        })
        .collect();
    ui.text(&lines.concat())?;
    for Odd { shown, why, .. } in odd {
        ui.note(format!("Left alone: {shown}: {why}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn kind(info: &Info) -> &'static str {
    match info.kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
    }
}

/// Returns what is known about each entry; what is gone meanwhile is left out.
async fn infos(memory: &Memory, entries: Vec<Entry>) -> Result<Vec<Info>, Error> {
    let mut infos = Vec::with_capacity(entries.len());
    for entry in entries {
        match memory.files().info(&entry.locator).await {
            Ok(info) => infos.push(info),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(infos)
}
