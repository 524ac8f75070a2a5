//! `haversack page`: the memory as one file to look at or to send.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::error::CommandError;
use crate::records::private;
use crate::serve::page::{Export, MARK, export};
use crate::settings::{Resolved, shown};
use crate::ui::Ui;
use crate::ui::moments::counted;

/// Write the memory into one HTML file, to look at or to send
///
/// The file has no script and loads nothing. Memories that look like they hold a secret are left out. For the live page: haversack open
#[derive(Debug, Args)]
pub(crate) struct PageArgs {
    /// The file to write; an earlier page in its place is replaced
    #[arg(long = "static", value_name = "FILE.html")]
    file: PathBuf,
}

pub(crate) fn cmd_page(ui: &mut Ui, resolved: &Resolved, args: &PageArgs) -> Result<ExitCode, CommandError> {
    let file = &args.file;
    if file.exists() && !is_page(file) {
        return Err(CommandError::user(
            format!("{} is there already and is no page of ours, so it was not replaced", shown(file)),
            "Name another file: haversack page --static memory.html",
        ));
    }
    let Export { html, memories, secret, left_out } = export(resolved)?;
    private::write(file, html.as_bytes()).map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("{} could not be written", shown(file)),
            "Name a place that you may write to",
        )
    })?;
    ui.note(format!("Wrote {} into {}", counted(memories, "file"), shown(file)));
    if !secret.is_empty() {
        ui.note(format!("Left out {}: they look like they hold a secret", counted(secret.len(), "file")));
    }
    if left_out > 0 {
        ui.note(format!("Left out {}: too large together, or not readable", counted(left_out, "file")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells whether a file is an earlier page of ours.
fn is_page(file: &Path) -> bool {
    let mut beginning = vec![0; 64];
    let read = std::fs::File::open(file).and_then(|mut file| file.read(&mut beginning));
    read.is_ok_and(|length| String::from_utf8_lossy(&beginning[..length]).contains(MARK))
}
