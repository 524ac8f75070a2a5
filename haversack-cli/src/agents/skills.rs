//! The skills that come with this program: texts that teach an agent when to read and write which memory.
//!
//! Claude Code finds a skill in `skills/NAME/SKILL.md` below its directory. A skill of the same name that the user wrote is left alone.

use std::fs;
use std::path::{Path, PathBuf};

use super::ledger::{Change, Ledger, read};
use crate::error::CommandError;

/// The skills: their names and their texts.
pub(crate) const SKILLS: [(&str, &str); 3] = [
    ("remember", include_str!("../../../plugin/skills/remember/SKILL.md")),
    ("digest-session", include_str!("../../../plugin/skills/digest-session/SKILL.md")),
    ("refresh-persona", include_str!("../../../plugin/skills/refresh-persona/SKILL.md")),
];

/// The name of the file with the text of a skill.
const FILE: &str = "SKILL.md";

/// Returns the directory of the skills in an agent's directory.
pub(crate) fn directory(agent: &Path) -> PathBuf {
    agent.join("skills")
}

/// Returns the files of our skills in an agent's directory, with their texts.
pub(super) fn files(agent: &Path) -> [(PathBuf, &'static str); 3] {
    SKILLS.map(|(name, text)| (directory(agent).join(name).join(FILE), text))
}

/// Returns the changes that install the skills. A file that another program or the user wrote is left out.
pub(super) fn plan(agent: &Path, ledger: &Ledger) -> Result<Vec<Change>, CommandError> {
    let mut changes = Vec::new();
    for (file, text) in files(agent) {
        let before = read(&file)?;
        if before.as_deref().is_none_or(|before| before == text || ledger.has_written(&file, before)) {
            changes.push(Change { file, before, after: Some(text.to_owned()) });
        }
    }
    Ok(changes)
}

/// Returns true if a file is the place of one of our skills.
pub(crate) fn is_skill(agent: &Path, file: &Path) -> bool {
    files(agent).iter().any(|(place, _)| place == file)
}

/// Deletes the directories of skills that are empty now.
pub(super) fn tidy(agent: &Path) {
    for (file, _) in files(agent) {
        // A directory with other files is not deleted: this call refuses it.
        drop(file.parent().map(fs::remove_dir));
    }
    drop(fs::remove_dir(directory(agent)));
}
