//! Finds memory and checkouts that are not synced although the user did not choose so. A status must not call that "in sync".
//!
//! Projects that the user excluded, worktrees with private memory and projects without a name are not listed: they stay here by a rule
//! that the user knows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::registry::ProjectRegistry;
use super::{Barrier, KnownBy, Project, border, discover, id_of_prefix, proof};
use crate::agents::claude_code::ClaudeCode;
use crate::agents::claude_code::private::is_private;
use crate::error::CommandError;
use crate::home::mounts;
use crate::settings::Settings;

/// The memory and the checkouts that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Checkouts that get no memory until the user agrees.
    pub(crate) refused: Vec<Project>,
    /// Memory directories of Claude Code whose project's directory is unknown, and the number of their files.
    pub(crate) unknown: Vec<(PathBuf, usize)>,
    /// Bound projects without a recorded commit: their clones on other machines would be refused.
    pub(crate) without_commit: Vec<Project>,
}

/// Looks for them; changes nothing.
pub(crate) fn left_out(settings: &Settings) -> Result<LeftOut, CommandError> {
    let mut left = LeftOut::default();
    let Some(claude) = ClaudeCode::of(settings, None) else { return Ok(left) };
    let registry = ProjectRegistry::of(settings)?;
    let mounts = mounts::of(settings)?;
    let is_bound = |memory: &Path| mounts.iter().any(|mount| mount.directory == memory);
    let mut roots: Vec<PathBuf> = registry.seen.iter().map(|seen| seen.root.clone()).collect();
    for found in discover::discover(&claude) {
        let real = found.memory.canonicalize().unwrap_or_else(|_| found.memory.clone());
        let is_seen = registry.seen.iter().any(|seen| seen.memory == real && seen.root.is_dir());
        match found.root.filter(|root| root.is_dir()) {
            Some(root) => roots.push(root),
            None if is_seen || is_private(&found.memory) || is_bound(&real) => {}
            None => left.unknown.push((found.memory, found.files)),
        }
    }
    roots.extend(discover::noted(&claude));
    let mut projects: BTreeMap<PathBuf, Project> = BTreeMap::new();
    let all = roots.iter().filter(|root| root.is_dir());
    let all = all.map(|root| Project::of(settings, &claude, &registry, root)).chain(border::here(settings));
    projects.extend(all.map(|project| (project.checkout.clone(), project)));
    for project in projects.into_values().filter(|project| !project.is_excluded && !project.is_private) {
        let Some(id) = &project.id else { continue };
        let is_bound = || mounts.iter().any(|mount| id_of_prefix(&mount.prefix) == Some(id));
        match &project.barrier {
            Some(Barrier::Unproven(_)) => left.refused.push(project),
            Some(Barrier::NamedByProject(_) | Barrier::PrivateElsewhere) => {}
            None if project.known_by == KnownBy::Repository
                && is_bound()
                && proof::names_no_commit(settings, id) =>
            {
                left.without_commit.push(project);
            }
            None => {}
        }
    }
    Ok(left)
}
