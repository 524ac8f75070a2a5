//! `haversack edit`: a file in the user's editor.

use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::app::edit::{Edited, Opened, edit};
use crate::error::CommandError;
use crate::projects::names::locate_file;
use crate::settings::{Settings, environment};
use crate::ui::Ui;

/// Change a file in your editor ($VISUAL or $EDITOR)
///
/// If another program changes the file while you edit, both changes are merged. If both changed the same passage, the editor opens the merged
/// text. A text that you leave unchanged or empty changes nothing.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The file
    path: String,
}

pub(crate) fn cmd_edit(ui: &mut Ui, settings: &Settings, args: &EditArgs) -> Result<ExitCode, CommandError> {
    let locator = locate_file(settings, &args.path)?;
    let editor = environment::editor();
    if editor.is_none() && !ui.can_ask() {
        return Err(CommandError::user(
            "no editor is set, and there is no terminal for one",
            "Name an editor with EDITOR or VISUAL",
        ));
    }
    let editor = editor.unwrap_or_else(|| DEFAULT_EDITOR.to_owned());
    let edited = edit(settings, &locator, |file, opened| {
        if opened == Opened::Merge {
            ui.note(format!(
                "{locator} changed in the same passage while you edited it. The editor opens the merged text with both passages."
            ));
        }
        run(&editor, file)
    })?;
    ui.note(match edited {
        Edited::Unchanged => format!("{locator} is unchanged"),
        Edited::Emptied => {
            format!("The text was empty, so {locator} is unchanged. To delete it: haversack delete")
        }
        Edited::Written => format!("Edited {locator}"),
        Edited::Merged => {
            format!("Edited {locator}, merged with a change that another program made while you edited")
        }
    });
    if matches!(edited, Edited::Written | Edited::Merged) {
        super::tell_overflow(ui, settings, &locator)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The editor of a user who named none.
const DEFAULT_EDITOR: &str = if cfg!(windows) { "notepad" } else { "vi" };

/// Runs an editor on a file and waits until it ends.
fn run(editor: &str, file: &Path) -> Result<(), CommandError> {
    let mut command = if cfg!(unix) {
        // As git does: the variable may hold options, and paths in quotes.
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{editor} \"$@\""), editor]);
        shell
    } else {
        let mut words = editor.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command
    };
    let failed = |why: String| {
        CommandError::user(
            format!("the editor {editor} {why}, so nothing was changed"),
            "Name another editor with EDITOR or VISUAL",
        )
    };
    match command.arg(file).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("failed ({status})"))),
        Err(error) => Err(failed(format!("did not start ({error})"))),
    }
}
