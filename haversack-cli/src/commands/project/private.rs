//! `haversack project private`: memory of its own for one worktree, and back.

use std::path::Path;

use crate::agents::claude_code::ClaudeCode;
use crate::agents::claude_code::private::LOCAL_SETTINGS;
use crate::app::projects::existing;
use crate::error::CommandError;
use crate::projects::Project;
use crate::projects::private::{self, InGit};
use crate::projects::registry::ProjectRegistry;
use crate::remote::Remote;
use crate::settings::Settings;
use crate::settings::tilde;
use crate::ui::Ui;
use crate::ui::moments::counted;
use crate::ui::paths::quoted;

pub(super) fn begin(ui: &mut Ui, settings: &Settings, directory: &Path) -> Result<(), CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    let begun = private::begin(settings, &claude, &existing(directory)?)?;
    let checkout = quoted(&tilde(settings, &begun.checkout));
    let memory = tilde(settings, &begun.memory);
    if !begun.is_new {
        ui.note(format!("{checkout} has private memory already, in {memory}"));
        return Ok(());
    }
    let begins = match begun.files {
        0 => String::new(),
        files => format!(", and begins with the {} there", counted(files, "file")),
    };
    ui.note(format!("{checkout} has private memory from now on. It stays on this machine and is never sent"));
    ui.note(format!("It is in {memory}{begins}"));
    ui.note(format!(
        "changed {} (take it back: haversack project private --undo {checkout})",
        tilde(settings, &begun.file)
    ));
    ui.note(format!(
        "It is for sessions that start in {checkout} itself, not below it; those that are open go on as they began."
    ));
    match private::in_git(&begun.checkout) {
        InGit::Quiet => {}
        InGit::New => ui.note(format!(
            "git shows {LOCAL_SETTINGS} as a new file; to have it ignored in all your repositories, put its name into ~/.config/git/ignore"
        )),
        InGit::Changed => {
            ui.note(format!("git has {LOCAL_SETTINGS} under version control: do not commit this line of it"));
        }
    }
    Ok(())
}

pub(super) fn end(ui: &mut Ui, settings: &Settings, directory: &Path) -> Result<(), CommandError> {
    let claude = ClaudeCode::expected(settings)?;
    let ended = private::end(settings, &existing(directory)?)?;
    let checkout = quoted(&tilde(settings, &ended.checkout));
    let project = Project::of(settings, &claude, &ProjectRegistry::of(settings)?, &ended.checkout);
    ui.note(format!("{checkout} shares the memory of {} again", project.label(settings)));
    if ended.files > 0 {
        let memory = tilde(settings, &ended.memory);
        let stay = match ended.files {
            1 => "Its private file stays".to_owned(),
            files => format!("Its {files} private files stay"),
        };
        let how = match Remote::for_looking(settings)?.filter(|_| project.prefix().is_some()) {
            Some(_) => format!("to merge them into it: haversack project bind {checkout} --from {memory}"),
            None => format!("you can move files to {}", tilde(settings, &project.memory.path)),
        };
        ui.note(format!("{stay} in {memory}; {how}"));
    }
    Ok(())
}
