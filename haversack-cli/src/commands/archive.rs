//! `haversack export` and `import`: the memory in one file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use haversack::store::Locator;
use serde_json::json;

use crate::app::archive::{self, Imported};
use crate::error::CommandError;
use crate::projects::names::locate_existing;
use crate::settings::{Settings, shown};
use crate::ui::Ui;
use crate::ui::moments::counted;

/// Write the memory into one file: FILE.tar.zst
///
/// Any program that reads .tar.zst can open it. It holds files that stay on this machine too, so keep it private.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The file to write; it must not exist
    file: PathBuf,

    /// The directory of the memory; the whole memory if left out
    #[arg(default_value = "")]
    path: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Take in a file that haversack export wrote
///
/// Everything in it is checked before anything is written. A file that is here with other words is merged: the lines of both stay.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file to read
    file: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn cmd_export(
    ui: &mut Ui,
    settings: &Settings,
    args: &ExportArgs,
) -> Result<ExitCode, CommandError> {
    let place = locate_existing(settings, &args.path)?;
    let exported = archive::export(settings, &place, &args.file)?;
    if args.json {
        ui.json(
            &json!({ "file": shown(&args.file), "files": exported.files, "size_bytes": exported.bytes }),
        )?;
    } else {
        let count = counted(exported.files, "file");
        ui.note(format!("Exported {count}, {} bytes, to {}", exported.bytes, shown(&args.file)));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn cmd_import(
    ui: &mut Ui,
    settings: &Settings,
    args: &ImportArgs,
) -> Result<ExitCode, CommandError> {
    let imported = archive::import(settings, &args.file)?;
    let Imported { created, merged, same, copies, refused } = &imported;
    if args.json {
        let names = |all: &[Locator]| all.iter().map(Locator::to_string).collect::<Vec<_>>();
        let refused: Vec<_> =
            refused.iter().map(|(locator, why)| json!({ "path": locator.as_str(), "why": why })).collect();
        ui.json(&json!({
            "created": names(created), "merged": names(merged), "same": same, "copies": names(copies), "refused": refused,
        }))?;
    } else {
        for locator in merged {
            ui.line(format!("merged {locator}"))?;
        }
        for copy in copies {
            ui.line(format!("{copy}: the content of the archive, beside the file that was here"))?;
        }
        for (locator, why) in refused {
            ui.line(format!("{locator} was not imported: {why}"))?;
        }
        ui.note(format!(
            "Imported {}; {same} were here already.",
            counted(created.len() + merged.len() + copies.len(), "file")
        ));
    }
    Ok(if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
