//! Worktrees with private memory: a setting of Claude Code in the worktree names its directory, and it is never sent.
//!
//! Nothing here deletes a memory. If the setting is removed, the files stay where they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::bind::{self, AskedBy};
use super::registry::{self, Private, PrivateUse, ProjectRegistry};
use super::{Project, discover, git};
use crate::agents::claude_code::ClaudeCode;
use crate::agents::claude_code::private::{
    LOCAL_SETTINGS, SETTING, directory, named_in, with_setting, without_setting,
};
use crate::agents::claude_code::wiring::{Unfit, text_in};
use crate::agents::ledger::{Change, Ledger, read};
use crate::error::CommandError;
use crate::settings::{Settings, shown, tilde};
use crate::ui::paths::quoted;

/// The name of these settings' ledger.
const LEDGER: &str = "worktrees";

/// The result of giving a worktree private memory.
pub(crate) struct Begun {
    pub(crate) checkout: PathBuf,
    pub(crate) memory: PathBuf,
    /// The number of files that are there already.
    pub(crate) files: usize,
    /// The settings that say so.
    pub(crate) file: PathBuf,
    pub(crate) is_new: bool,
}

/// The result of ending it.
pub(crate) struct Ended {
    pub(crate) checkout: PathBuf,
    pub(crate) memory: PathBuf,
    /// The number of files that stay there.
    pub(crate) files: usize,
}

/// Git's view of the changed settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InGit {
    /// It does not show them.
    Quiet,
    /// They are a new file to it.
    New,
    /// They are committed, and differ.
    Changed,
}

/// Gives the worktree of a directory private memory.
pub(crate) fn begin(settings: &Settings, claude: &ClaudeCode, place: &Path) -> Result<Begun, CommandError> {
    let repository = git::find(place).filter(|repository| repository.is_worktree).ok_or_else(|| {
        let place = tilde(settings, place);
        CommandError::user(
            format!("{place} is no worktree: only a worktree can have memory besides that of its repository"),
            format!("Make one with git worktree add; to keep a whole project on this machine: haversack project exclude {}", quoted(&place)),
        )
    })?;
    let checkout = repository.checkout;
    let of_all = repository.root.join(LOCAL_SETTINGS);
    if of_all != checkout.join(LOCAL_SETTINGS)
        && text_in(&read(&of_all)?.unwrap_or_default(), SETTING).is_some()
    {
        return Err(CommandError::user(
            format!(
                "{} sets one memory directory for all worktrees (\"{SETTING}\")",
                tilde(settings, &of_all)
            ),
            "Take it out there first: Claude Code asks nowhere else as long as it is there",
        ));
    }
    let file = checkout.join(LOCAL_SETTINGS);
    let real = file.ancestors().find_map(|path| path.canonicalize().ok());
    if let Some(real) = real.filter(|real| !real.starts_with(&checkout)) {
        return Err(CommandError::user(
            format!("{} is not its own: it leads to {}", tilde(settings, &file), tilde(settings, &real)),
            "Replace the link by a file of this worktree. A change to the link's target would affect other worktrees",
        ));
    }
    let before = read(&file)?;
    let text = before.as_deref().unwrap_or_default();
    // A moved worktree keeps its memory.
    let memory = named_in(text).unwrap_or_else(|| directory(&claude.projects(), &checkout));
    let after = with_setting(text, &memory).map_err(|why| not_understood(&file, &why))?;
    fs::create_dir_all(&memory).map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(
            format!("the memory directory {} cannot be made", shown(&memory)),
            "Give this user access to it",
        )
    })?;
    let is_new = before.as_deref() != Some(&after);
    if is_new {
        let change = Change { file: file.clone(), before, after: Some(after) };
        Ledger::of(settings, LEDGER).make(&[change], |_, text| without_setting(text))?;
    }
    let project = Project::of(settings, claude, &ProjectRegistry::of(settings)?, &checkout);
    bind::bind(settings, claude, &project, AskedBy::Nobody)?;
    let (files, _) = discover::count(&memory);
    Ok(Begun { checkout, memory, files, file, is_new })
}

/// Returns what taking it back changes in the settings of a worktree, and where its memory is.
pub(crate) fn plan_end(
    settings: &Settings,
    checkout: &Path,
) -> Result<Option<(Change, PathBuf)>, CommandError> {
    let file = checkout.join(LOCAL_SETTINGS);
    let Some(now) = read(&file)? else { return Ok(None) };
    let Some(memory) = named_in(&now) else { return Ok(None) };
    let after = Ledger::of(settings, LEDGER).without(&file, &now, without_setting);
    let after = after.map_err(|why| not_understood(&file, &why))?;
    Ok(Some((Change { file, before: Some(now), after }, memory)))
}

/// Lets the worktree of a directory share the memory of its repository again. Its private files stay where they are.
pub(crate) fn end(settings: &Settings, place: &Path) -> Result<Ended, CommandError> {
    let checkout = git::find(place).map_or_else(|| place.to_owned(), |repository| repository.checkout);
    let Some((change, memory)) = plan_end(settings, &checkout)? else {
        return Err(CommandError::user(
            format!("{} has no private memory", tilde(settings, &checkout)),
            "See which do: haversack project list",
        ));
    };
    let is_gone = change.after.is_none();
    Ledger::of(settings, LEDGER).take_back(&[change])?;
    if is_gone {
        // We made the file, and maybe the directory; with anything else in it, it stays.
        drop(fs::remove_dir(checkout.join(".claude")));
    }
    let (files, _) = discover::count(&memory);
    if files == 0 {
        drop(fs::remove_dir(&memory));
        drop(memory.parent().map(fs::remove_dir));
    }
    let _turn = registry::turn(settings)?;
    let mut registry = ProjectRegistry::of(settings)?;
    registry.private.retain(|private| private.memory != memory);
    registry.save(settings)?;
    Ok(Ended { checkout, memory, files })
}

/// Returns every worktree that has private memory, or has ended it and left files, with the number of files.
pub(crate) fn all(settings: &Settings) -> Result<Vec<(Private, PrivateUse, usize)>, CommandError> {
    let each = ProjectRegistry::of(settings)?.private.into_iter().map(|private| {
        let usage = private.usage();
        let (files, _) = discover::count(&private.memory);
        (private, usage, files)
    });
    Ok(each.filter(|(_, usage, files)| *usage == PrivateUse::InUse || *files > 0).collect())
}

/// Returns true if a worktree has private memory that a session in a directory below it does not see.
pub(crate) fn is_missed_by(project: &Project) -> bool {
    let text = fs::read_to_string(project.checkout.join(LOCAL_SETTINGS)).unwrap_or_default();
    !project.is_private && named_in(&text).is_some()
}

/// Returns git's view of a worktree's settings. Without git, no other person sees them.
pub(crate) fn in_git(checkout: &Path) -> InGit {
    let mut git = Command::new("git");
    git.arg("-C").arg(checkout).args(["-c", "core.fsmonitor=false", "status", "--porcelain"]);
    git.args(["--untracked-files=all", "--", LOCAL_SETTINGS]).env("GIT_OPTIONAL_LOCKS", "0");
    let output = git.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let shown = output.map(|output| output.stdout).unwrap_or_default();
    match shown.get(..2) {
        Some(b"??") => InGit::New,
        Some(_) => InGit::Changed,
        None => InGit::Quiet,
    }
}

fn not_understood(file: &Path, why: &Unfit) -> CommandError {
    CommandError {
        source: Some(why.to_string().into()),
        ..CommandError::user(
            format!("{} was left as it is", shown(file)),
            "Mend it, and run the same command again",
        )
    }
}
