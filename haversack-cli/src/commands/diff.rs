//! `haversack diff`: what a change did, or what waits to be sent.

use std::process::ExitCode;

use clap::Args;
use haversack::display::one_line;
use haversack::store::{Bytes, Locator};
use similar::TextDiff;

use crate::error::CommandError;
use crate::home::Home;
use crate::home::history::Past;
use crate::home::store::locate;
use crate::settings::Settings;
use crate::system::Timed;
use crate::ui::Ui;

/// Show what waits to be sent, or what a change did
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Only this file or directory
    #[arg(default_value = "")]
    path: String,

    /// What this change did: its number in `haversack log`
    #[arg(long, value_name = "NUMBER")]
    at: Option<u64>,
}

pub(crate) fn cmd_diff(ui: &mut Ui, settings: &Settings, args: &DiffArgs) -> Result<ExitCode, CommandError> {
    let below = locate(&args.path)?;
    let patience = Timed::for_at_most(None);
    let home = Home::open(settings)?;
    let mut past = Past::open(settings, &home, &patience)?;
    let mut shown = Vec::new();
    match args.at {
        Some(number) => {
            let commit = past.commit(number)?;
            for change in commit.changes.iter().filter(|change| change.locator.is_within(&below)) {
                let (before, after) = past.around(&change.locator, &commit)?;
                shown.push(unified(&change.locator, before.as_ref(), after.as_ref()));
            }
        }
        None => {
            for file in past.waiting(&home)?.into_iter().filter(|file| file.locator.is_within(&below)) {
                shown.push(unified(&file.locator, file.before.as_ref(), file.now.as_ref()));
            }
        }
    }
    if shown.is_empty() {
        past.refuse_unknown(settings, &below)?;
    }
    ui.bytes(shown.concat().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the difference of two contents as programs read it.
pub(crate) fn unified(locator: &Locator, before: Option<&Bytes>, after: Option<&Bytes>) -> String {
    let text =
        |bytes: Option<&Bytes>| std::str::from_utf8(bytes.map_or(&[], |bytes| bytes)).map(str::to_owned);
    // The lines of the files are data. Their names are ours to show.
    let locator = one_line(locator.as_str());
    let name = |side: &str, bytes: Option<&Bytes>| match bytes {
        Some(_) => format!("{side}/{locator}"),
        None => "/dev/null".to_owned(),
    };
    let (Ok(old), Ok(new)) = (text(before), text(after)) else {
        return format!("Binary file {locator} differs\n");
    };
    let diff = TextDiff::from_lines(&old, &new);
    diff.unified_diff().header(&name("a", before), &name("b", after)).to_string()
}

/// Returns how many lines a change takes away and adds.
pub(crate) fn counts(before: Option<&Bytes>, after: Option<&Bytes>) -> (usize, usize) {
    let text = |bytes: Option<&Bytes>| String::from_utf8_lossy(bytes.map_or(&[], |bytes| bytes)).into_owned();
    let (old, new) = (text(before), text(after));
    let diff = TextDiff::from_lines(&old, &new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(similar::ChangeTag::Delete), count(similar::ChangeTag::Insert))
}
