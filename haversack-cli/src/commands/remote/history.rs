//! `haversack remote history`: how long the remote keeps the contents of old changes.

use clap::Args;
use serde_json::json;

use crate::error::CommandError;
use crate::home::history_days::{KeptContents, MIN_DAYS, keep_contents, kept_contents};
use crate::remote::{self, Remote};
use crate::settings::Settings;
use crate::ui::Ui;

/// Show or set how long the remote keeps the contents of old changes
///
/// The number of days belongs to the store: all machines share it. After that time, the remote still has who changed which file and when, and the
/// present files. It has no old texts any more. Each machine also keeps the changes of the last year by itself. A synced folder keeps everything.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The days that it keeps contents, at least 30
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(MIN_DAYS..=36_500))]
    days: Option<u64>,

    /// Keep contents for ever
    #[arg(long, conflicts_with = "days")]
    forever: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn cmd_history(ui: &mut Ui, settings: &Settings, args: &HistoryArgs) -> Result<(), CommandError> {
    let wanted = match (args.days, args.forever) {
        (Some(days), _) => Some(KeptContents::Days(days)),
        (None, true) => Some(KeptContents::Forever),
        (None, false) => None,
    };
    if let Some(wanted) = wanted {
        keep_contents(settings, wanted)?;
    }
    let kept = kept_contents(settings)?;
    if args.json {
        let days = match kept {
            KeptContents::Days(days) => Some(days),
            KeptContents::Forever => None,
        };
        return ui.line(json!({ "days": days }).to_string());
    }
    match kept {
        KeptContents::Days(days) => {
            ui.line(format!("The remote keeps the contents of a change for {days} days."))?
        }
        KeptContents::Forever => ui.line("The remote keeps the contents of every change.")?,
    }
    let remote = Remote::recorded(settings)?;
    if remote.is_some_and(|remote| remote::is_vault(&remote.url)) {
        ui.note("This remote is a synced folder, which keeps everything.");
    } else if wanted.is_some() {
        ui.note("Your other machines get this number with the next sync: haversack sync");
    }
    Ok(())
}
