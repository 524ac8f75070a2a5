//! Finds and mends entries of ours in agents' settings that run no program any more.
//!
//! An entry is dead if its program is missing or cannot be started. An entry of this home is also dead if it names a program outside of the home's
//! `bin`: that program may be removed at any time (an older release wrote such entries).
//!
//! `status` and `doctor` report dead entries. Other commands mend those of this home: they make the home's copy of the program if it is missing, and
//! replace the program in the entry. Nothing else in the file changes. Entries of another home are that home's to mend.

use std::fs;
use std::path::{Path, PathBuf};

use super::{AGENTS, Agent, CODEX_ASKS, Change, ledger};
use crate::agents::claude_code::wiring::{self, CommandLine};
use crate::agents::program::{self, Usability};
use crate::error::CommandError;
use crate::settings::Settings;
use crate::settings::tilde;
use crate::ui::Ui;
use crate::ui::moments::counted;

/// Entries of an agent's settings that run no program, or one that may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadEntries {
    /// The number of dead hooks.
    hooks: usize,
    /// True if the MCP server is dead.
    has_server: bool,
    /// The program of the first dead entry.
    program: PathBuf,
    /// The flaw of that program.
    pub(crate) flaw: Flaw,
}

/// Why an entry is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Its program is not there.
    Missing,
    /// Its program may not be run.
    NotExecutable,
    /// Its program is not in the home, and may be removed at any time.
    OutsideHome,
}

impl DeadEntries {
    /// Returns the entries in words, as `6 hooks and the MCP server`.
    fn named(&self) -> String {
        match (self.hooks, self.has_server) {
            (0, _) => "the MCP server".to_owned(),
            (hooks, false) => counted(hooks, "hook"),
            (hooks, true) => format!("{} and the MCP server", counted(hooks, "hook")),
        }
    }

    /// Returns which program was the trouble, and why.
    fn why(&self, settings: &Settings) -> String {
        let program = tilde(settings, &self.program);
        match self.flaw {
            Flaw::Missing => format!("{program} is not there"),
            Flaw::NotExecutable => format!("{program} is not executable"),
            Flaw::OutsideHome => format!("{program} is outside of the home, and may be removed at any time"),
        }
    }

    /// Returns what is wrong, in a sentence for `status` and `doctor`.
    pub(crate) fn sentence(&self, settings: &Settings, agent: Agent) -> String {
        let do_not_run = if self.flaw == Flaw::OutsideHome { "can stop working" } else { "cannot run" };
        format!("{} of {} {do_not_run}: {}", self.named(), agent.title(), self.why(settings))
    }
}

/// Returns the command that mends an agent's entries.
pub(crate) fn cure(agent: Agent) -> String {
    format!("haversack setup {}", agent.name())
}

/// Returns the dead entries of ours in an agent's settings, if there are any.
///
/// Settings that cannot be read or understood have none: `doctor` reports those.
pub(crate) fn find(settings: &Settings, agent: Agent) -> Option<DeadEntries> {
    Installation::of(settings).ok()?.look(settings, agent, Of::AnyHome).map(|found| found.dead)
}

/// Mends the entries of this home in the settings of every agent, and says so in one line for each agent.
pub(crate) fn mend(ui: &mut Ui, settings: &Settings) {
    let has_copy = program::is_recorded(settings);
    for agent in AGENTS.into_iter().filter(|agent| has_copy || agent.ledger(settings).exists()) {
        match mend_agent(settings, agent) {
            Ok(None) => {}
            Ok(Some(line)) => ui.note(line),
            Err(error) => ui.note(format!(
                "Could not mend the hooks of {}: {}. Run: {}",
                agent.title(),
                error.in_one_line(),
                cure(agent)
            )),
        }
    }
}

fn mend_agent(settings: &Settings, agent: Agent) -> Result<Option<String>, CommandError> {
    let place = Installation::of(settings)?;
    let Some(found) = place.look(settings, agent, Of::ThisHome) else { return Ok(None) };
    if program::usability(&place.copy) != Usability::Usable {
        program::install(settings)?;
    }
    super::set_up(settings, agent, &found.changes)?;
    let (entries, copy) = (found.dead.named(), tilde(settings, &place.copy));
    let how = match found.changes.is_empty() {
        true => format!("made their program {copy} again"),
        false => format!("they run {copy} now, because {}", found.dead.why(settings)),
    };
    // Codex trusts a hook by its command.
    let and = if agent == Agent::Codex && !found.changes.is_empty() {
        format!(". {CODEX_ASKS}")
    } else {
        String::new()
    };
    Ok(Some(format!("Mended {entries} of {}: {how}{and}", agent.title())))
}

/// The entries to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    AnyHome,
    ThisHome,
}

/// A home and its copy of the program, in full.
struct Installation {
    home: PathBuf,
    copy: PathBuf,
}

/// Dead entries, and the changes that mend those of this home.
struct Found {
    dead: DeadEntries,
    changes: Vec<Change>,
}

impl Installation {
    fn of(settings: &Settings) -> Result<Installation, CommandError> {
        let home = std::path::absolute(&settings.home).map_err(CommandError::from)?;
        Ok(Installation { copy: program::place(&home), home })
    }

    /// Returns the dead entries of an agent, and what mends those of this home.
    fn look(&self, settings: &Settings, agent: Agent, of: Of) -> Option<Found> {
        let mut programs = Vec::new();
        let mut changes = Vec::new();
        if let Some((file, text)) = read(agent.settings_file(settings).ok()) {
            for (_, command) in wiring::ours_in(&text).unwrap_or_default() {
                let line = CommandLine::parse(&command);
                programs.extend(line.and_then(|line| {
                    let flaw = self.flaw(&line.program, line.home.as_deref(), of)?;
                    Some((line.program, flaw))
                }));
            }
            let after = wiring::with_commands(&text, |command| {
                let line = CommandLine::parse(command)?;
                self.flaw(&line.program, line.home.as_deref(), Of::ThisHome)?;
                Some(line.with_program(&self.copy)).filter(|new| new != command)
            });
            changes.extend(after.ok().map(|after| Change { file, before: Some(text), after: Some(after) }));
        }
        let hooks = programs.len();
        if let Some((file, text)) = read(agent.servers_file(settings))
            && !self.is_surely_in(&text)
            && let Ok(Some((command, arguments))) = agent.server_in(&text)
        {
            let (program, home) = (PathBuf::from(command), arguments.get(1).map(Path::new));
            if self.flaw(&program, home, Of::ThisHome).is_some() {
                let after = agent.with_server_program(&text, &self.copy).ok();
                changes.extend(after.map(|after| Change { file, before: Some(text), after: Some(after) }));
            }
            programs.extend(self.flaw(&program, home, of).map(|flaw| (program, flaw)));
        }
        changes.retain(|change| change.before != change.after);
        let has_server = programs.len() > hooks;
        let (program, flaw) = programs.into_iter().next()?;
        Some(Found { dead: DeadEntries { hooks, has_server, program, flaw }, changes })
    }

    /// Returns true if a text names the copy, and the copy can be started. Claude Code's list of servers is in a file of megabytes, perhaps: it is
    /// parsed only where this is not so.
    fn is_surely_in(&self, text: &str) -> bool {
        text.contains(&*self.copy.to_string_lossy()) && program::usability(&self.copy) == Usability::Usable
    }

    /// Returns why an entry is dead, if it is. A name without a path is looked up by the agent, and not judged here.
    fn flaw(&self, program: &Path, home: Option<&Path>, of: Of) -> Option<Flaw> {
        let is_of_this_home = home.is_some_and(|home| is_same_place(home, &self.home));
        if !program.is_absolute() || (of == Of::ThisHome && !is_of_this_home) {
            return None;
        }
        match program::usability(program) {
            Usability::Missing => Some(Flaw::Missing),
            Usability::NotExecutable => Some(Flaw::NotExecutable),
            Usability::Usable if !is_of_this_home => None,
            Usability::Usable => {
                let bin = program::directory_of_all(&self.home);
                let is_inside = program.starts_with(&bin)
                    || program.ancestors().any(|directory| is_same_place(directory, &bin));
                (!is_inside).then_some(Flaw::OutsideHome)
            }
        }
    }
}

/// Reads a file of an agent; `None` if it is not there or cannot be read.
fn read(file: Option<PathBuf>) -> Option<(PathBuf, String)> {
    let file = file?;
    let text = ledger::read(&file).ok()??;
    Some((file, text))
}

/// Returns true if two paths name one place, under two spellings perhaps.
fn is_same_place(one: &Path, other: &Path) -> bool {
    one == other
        || fs::canonicalize(one).is_ok_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}
